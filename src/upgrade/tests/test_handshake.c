/* The handshake of a WebSocket: what is accepted, which subprotocol is chosen, what a client
 * checks. */
#include "support/dvtest.h"

#include "base/buf.h"
#include "base/defs.h"
#include "upgrade/websocket.h"
#include "upgrade/wire/sha1.h"

/* RFC 6455, 1.3. */
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static void sha1_is_that_of_the_standard(void **state)
{
    static const struct {
        const char *text;
        const char *digest;
    } rows[] = {
        {"",                                                                 "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc",                                                              "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"                                                                    },
        {"0123456789012345678901234567890123456789012345678901234567890123",
         "cf0800f7644ace3cb4c3fa33388d3ba0ea3c8b6e"                                                                    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        uint8_t digest[DV_SHA1_BYTES];
        struct dv_buf text;

        dv_buf_init(&text, 100);
        dv_sha1(dv_str_from_c(rows[i].text), digest);
        for (size_t k = 0; k < sizeof(digest); k++)
            dv_buf_printf(&text, "%02x", digest[k]);
        assert_string_equal(dv_buf_c(&text), rows[i].digest);
        dv_buf_fini(&text);
    }
}

static struct dv_ws_fields request_of(const char *connection, const char *upgrade,
                                      const char *version, const char *key)
{
    return (struct dv_ws_fields){.connection = dv_str_from_c(connection),
                                 .upgrade = dv_str_from_c(upgrade),
                                 .version = dv_str_from_c(version),
                                 .key = dv_str_from_c(key)};
}

static void requests_are_accepted_or_refused(void **state)
{
    static const struct {
        const char *connection;
        const char *upgrade;
        const char *version;
        const char *key;
        const char *fault; /* NULL: none */
    } rows[] = {
        {"Upgrade",             "websocket",      "13", KEY,                        NULL               },
        {"keep-alive, UPGRADE", "WebSocket",      "13", KEY,                        NULL               },
        {"upgrade",             "h2c, websocket", "13", KEY,                        NULL               },
        {"",                    "websocket",      "13", KEY,                        "does not ask"     },
        {"keep-alive",          "websocket",      "13", KEY,                        "does not ask"     },
        {"Upgrade",             "",               "13", KEY,                        "does not ask"     },
        {"Upgrade",             "SPDY/3.1",       "13", KEY,                        "does not ask"     },
        {"Upgrade",             "websocket",      "8",  KEY,                        "is not 13"        },
        {"Upgrade",             "websocket",      "",   KEY,                        "is not 13"        },
        {"Upgrade",             "websocket",      "13", "",                         "Sec-WebSocket-Key"},
        {"Upgrade",             "websocket",      "13", "dGhlIHNhbXBsZSBub25jZQ",   "Sec-WebSocket-Key"},
        {"Upgrade",             "websocket",      "13", "dGhlIHNhbXBsZSBub25jZ!==", "Sec-WebSocket-Key"},
        {"Upgrade",             "websocket",      "13", KEY "AAAA",                 "Sec-WebSocket-Key"},
    };
    static const dv_str served[] = {DV_STR_INIT("")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_ws_fields request =
            request_of(rows[i].connection, rows[i].upgrade, rows[i].version, rows[i].key);
        char accept[DV_WS_ACCEPT_BYTES];
        struct dv_err err;
        dv_str protocol;

        if (dv_ws_accept(&request, served, 1, accept, &protocol, &err)) {
            assert_null(rows[i].fault);
            assert_string_equal(accept, ACCEPT);
            assert_str(protocol, "");
        } else {
            assert_non_null(rows[i].fault);
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].fault);
        }
    }
}

static void the_first_subprotocol_of_the_client_that_is_served_is_chosen(void **state)
{
    static const struct {
        dv_str lists[2];
        size_t n_lists;
        const char *chosen; /* NULL: none */
    } rows[] = {
        {{DV_STR_INIT("")},                       0, ""  },
        {{DV_STR_INIT("")},                       1, ""  },
        {{DV_STR_INIT("v5")},                     1, "v5"},
        {{DV_STR_INIT("v4, v5")},                 1, "v4"},
        {{DV_STR_INIT("x ,v5,v4")},               1, "v5"},
        {{DV_STR_INIT("x"), DV_STR_INIT("v4")},   2, "v4"},
        {{DV_STR_INIT("x")},                      1, NULL},
        {{DV_STR_INIT("V5")},                     1, NULL},
        {{DV_STR_INIT("x,,y"), DV_STR_INIT("z")}, 2, NULL},
    };
    static const dv_str served[] = {DV_STR_INIT("v5"), DV_STR_INIT("v4"), DV_STR_INIT("")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_ws_fields request = request_of("Upgrade", "websocket", "13", KEY);
        char accept[DV_WS_ACCEPT_BYTES];
        struct dv_err err;
        dv_str protocol;

        request.protocols = rows[i].lists;
        request.n_protocols = rows[i].n_lists;
        if (dv_ws_accept(&request, served, DV_COUNT(served), accept, &protocol, &err)) {
            assert_non_null(rows[i].chosen);
            assert_str(protocol, rows[i].chosen);
        } else {
            assert_null(rows[i].chosen);
            assert_err(&err, DV_PERMISSION_DENIED, "subprotocol");
        }
        if (i == 0) /* whoever names none gets none, where there is no empty one */
            assert_false(dv_ws_accept(&request, served, 2, accept, &protocol, &err));
    }
}

static void answers_are_checked(void **state)
{
    static const struct {
        struct dv_ws_fields answer;
        const char *protocol;
        const char *fault; /* NULL: none */
    } rows[] = {
        {{.connection = DV_STR_INIT("Upgrade"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT(ACCEPT)},
         "v4", NULL               },
        {{.connection = DV_STR_INIT("Upgrade"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT(ACCEPT)},
         "",   NULL               },
        {{.connection = DV_STR_INIT("Upgrade"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT(ACCEPT)},
         "v9", "not offered"      },
        {{.connection = DV_STR_INIT("Upgrade"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT("x" ACCEPT)},
         "v4", "belong to our key"},
        {{.connection = DV_STR_INIT("close"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT(ACCEPT)},
         "v4", "has not changed"  },
        {{.connection = DV_STR_INIT("Upgrade"),
          .upgrade = DV_STR_INIT("websocket"),
          .accept = DV_STR_INIT(ACCEPT),
          .extensions = DV_STR_INIT("permessage-deflate")},
         "v4", "an extension"     },
    };
    static const dv_str offered[] = {DV_STR_INIT("v5"), DV_STR_INIT("v4")};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_ws_fields answer = rows[i].answer;
        dv_str list = dv_str_from_c(rows[i].protocol);
        struct dv_err err;
        dv_str protocol;

        answer.protocols = &list;
        answer.n_protocols = 1;
        if (dv_ws_check_answer(&answer, DV_STR(KEY), offered, 2, &protocol, &err)) {
            assert_null(rows[i].fault);
            assert_str(protocol, rows[i].protocol);
        } else {
            assert_non_null(rows[i].fault);
            assert_err(&err, DV_INTERNAL, rows[i].fault);
        }
    }
}

static void a_key_is_base64(void **state)
{
    char key[DV_WS_KEY_BYTES];

    (void)state;
    dv_ws_key((const uint8_t *)"the sample nonce", key);
    assert_string_equal(key, KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha1_is_that_of_the_standard),
        cmocka_unit_test(requests_are_accepted_or_refused),
        cmocka_unit_test(the_first_subprotocol_of_the_client_that_is_served_is_chosen),
        cmocka_unit_test(answers_are_checked),
        cmocka_unit_test(a_key_is_base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
