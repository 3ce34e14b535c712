#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/auth/jwt.h"
#include "support/arena.h"

#define TEXT_BYTES_MAX 65536u

/* Joins a header and claims, as JSON, to a token; the signature is "AAAA". */
static dv_str token_of(const char *header, const char *claims, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_base64url_encode(dv_str_from_c(header), &buf);
    dv_buf_add_char(&buf, '.');
    dv_base64url_encode(dv_str_from_c(claims), &buf);
    dv_buf_add_c(&buf, ".AAAA");
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static void what_is_printed_is_read(void **state)
{
    dv_str audiences[] = {DV_STR("https://kubernetes.default.svc"), DV_STR("")};
    const struct dv_jwt_claims claims = {
        .issuer = DV_STR("https://kubernetes.default.svc"),
        .subject = DV_STR("system:serviceaccount:ns:sa"),
        .audiences = {audiences,    2               },
        .expires_s = 1003607,
        .not_before_s = 1000000,
        .issued_s = 1000000,
        .id = DV_STR("4e1e5a2c-0f45-4d5a-8b7d-6f0d1f0c9f55"),
        .namespace = DV_STR("ns"),
        .account = {DV_STR("sa"), DV_STR("sa-uid")},
        .pod = {DV_STR("p"),  DV_STR("p-uid") },
        .node = {DV_STR("n1"), DV_STR_NONE     },
        .warn_after_s = 1003607,
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_jwt jwt;
    struct dv_err err;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_jwt_print(DV_STR("ES256"), DV_STR("key-1"), &claims, &buf);
    dv_buf_add_c(&buf, ".AQID");
    assert_ok(dv_jwt_read(dv_buf_str(&buf), *state, &jwt, &err), &err);
    assert_str(jwt.algorithm, "ES256");
    assert_str(jwt.key_id, "key-1");
    assert_true(dv_str_eq(jwt.signature, DV_STR("\1\2\3")));
    assert_int_equal(jwt.signed_text.n, buf.n - 5);
    assert_str(jwt.claims.issuer, "https://kubernetes.default.svc");
    assert_str(jwt.claims.subject, "system:serviceaccount:ns:sa");
    assert_int_equal(jwt.claims.audiences.n, 2);
    assert_str(jwt.claims.audiences.v[1], "");
    assert_int_equal(jwt.claims.expires_s, 1003607);
    assert_int_equal(jwt.claims.not_before_s, 1000000);
    assert_int_equal(jwt.claims.issued_s, 1000000);
    assert_str(jwt.claims.id, "4e1e5a2c-0f45-4d5a-8b7d-6f0d1f0c9f55");
    assert_str(jwt.claims.namespace, "ns");
    assert_str(jwt.claims.account.name, "sa");
    assert_str(jwt.claims.account.uid, "sa-uid");
    assert_str(jwt.claims.pod.name, "p");
    assert_str(jwt.claims.pod.uid, "p-uid");
    assert_str(jwt.claims.node.name, "n1");
    assert_int_equal(jwt.claims.node.uid.n, 0);
    assert_int_equal(jwt.claims.secret.name.n, 0);
    assert_int_equal(jwt.claims.warn_after_s, 1003607);
}

static void one_audience_may_be_a_text(void **state)
{
    dv_str text = token_of("{\"alg\":\"RS256\"}", "{\"aud\":\"vault\"}", *state);
    struct dv_jwt jwt;
    struct dv_err err;

    assert_ok(dv_jwt_read(text, *state, &jwt, &err), &err);
    assert_int_equal(jwt.claims.audiences.n, 1);
    assert_str(jwt.claims.audiences.v[0], "vault");
}

static void refuses_texts_that_are_no_tokens(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"",            "not a token in three parts"                },
        {"a",           "not a token in three parts"                },
        {"a.b",         "not a token in three parts"                },
        {"a.b.c",       "the token's header: it is not base64url"   },
        {"bnVsbA.e30.", "the token's header: "                      },
        {"e30.e30.=",   "the token's signature: it is not base64url"},
        {"e30.e30.a.b", "the token's signature: it is not base64url"},
        {"e30.IQ.AA",   "the token's claims: "                      },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_jwt jwt;
        struct dv_err err;

        assert_false(dv_jwt_read(dv_str_from_c(rows[i].text), *state, &jwt, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
    }
}

static void refuses_claims_that_are_not_what_they_should_be(void **state)
{
    static const struct {
        const char *header;
        const char *claims;
        const char *why;
    } rows[] = {
        {"{\"alg\":1}",                   "{}",                                  "header: "     },
        {"{\"alg\":\"a\",\"alg\":\"b\"}", "{}",                                  "header: "     },
        {"{\"crit\":[\"x\"]}",            "{}",                                  "crit"         },
        {"{}",                            "[]",                                  "claims: "     },
        {"{}",                            "{\"iss\":1}",                         "iss"          },
        {"{}",                            "{\"aud\":[1]}",                       "aud"          },
        {"{}",                            "{\"aud\":{}}",                        "aud"          },
        {"{}",                            "{\"exp\":\"1\"}",                     "exp"          },
        {"{}",                            "{\"exp\":1.5}",                       "exp"          },
        {"{}",                            "{\"exp\":-1}",                        "from 1970"    },
        {"{}",                            "{\"exp\":9223372036854775807}",       "to 9999"      },
        {"{}",                            "{\"kubernetes.io\":1}",               "kubernetes.io"},
        {"{}",                            "{\"kubernetes.io\":{\"pod\":\"p\"}}", "pod"          },
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        dv_str text = token_of(rows[i].header, rows[i].claims, *state);
        struct dv_jwt jwt;
        struct dv_err err;

        assert_false(dv_jwt_read(text, *state, &jwt, &err));
        assert_non_null(strstr(err.msg, rows[i].why));
    }
}

static void refuses_a_long_text_before_it_is_read(void **state)
{
    char *text = dv_arena_alloc(*state, DV_JWT_BYTES_MAX + 1, 1);
    struct dv_jwt jwt;
    struct dv_err err;

    memset(text, '.', DV_JWT_BYTES_MAX + 1);
    assert_false(dv_jwt_read((dv_str){text, DV_JWT_BYTES_MAX + 1}, *state, &jwt, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "a token of 32769 bytes, up to 32768 are read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(what_is_printed_is_read),
        arena_test(one_audience_may_be_a_text),
        arena_test(refuses_texts_that_are_no_tokens),
        arena_test(refuses_claims_that_are_not_what_they_should_be),
        arena_test(refuses_a_long_text_before_it_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
