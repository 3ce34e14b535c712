/* WebSocket: its frames in both directions, and peers that break its rules. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "upgrade/websocket.h"

/* Events are lines: "text hi", "binary+ h", "+ i" and so on ('+': more follows, or came before),
 * "pong x", "closed 1000 why". */
struct end {
    struct dv_ws_handler handler;
    struct dv_ws *ws;
    struct dv_buf events;
};

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    if (part->is_first)
        dv_buf_add_c(&end->events, part->is_text ? "text" : "binary");
    dv_buf_printf(&end->events, "%s", part->is_last ? " " : "+ ");
    if (part->bytes.n < 200)
        dv_buf_add(&end->events, part->bytes);
    else
        dv_buf_printf(&end->events, "of %zu", part->bytes.n);
    dv_buf_add_char(&end->events, '\n');
}

static void on_pong(struct dv_ws_handler *handler, dv_str payload)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    dv_buf_printf(&end->events, "pong %.*s\n", DV_FMT(payload));
}

static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    dv_buf_printf(&end->events, "closed %u %.*s\n", code, DV_FMT(reason));
}

/* The mask of RFC 6455, 5.7. */
static void fixed_mask(void *ctx, uint8_t mask[4])
{
    static const uint8_t fixed[4] = {0x37, 0xfa, 0x21, 0x3d};

    (void)ctx;
    memcpy(mask, fixed, sizeof(fixed));
}

static void end_init(struct end *end, bool is_client, size_t unsent_bytes_max)
{
    struct dv_ws_options options = {
        .is_client = is_client, .random = fixed_mask, .unsent_bytes_max = unsent_bytes_max};

    end->handler = (struct dv_ws_handler){on_message, on_pong, on_closed};
    dv_buf_init(&end->events, 1u << 20);
    end->ws = dv_ws_new(&options, &end->handler);
}

static void end_fini(struct end *end)
{
    dv_ws_free(end->ws);
    dv_buf_fini(&end->events);
}

#define assert_events(end, want)                                                                   \
    do {                                                                                           \
        assert_string_equal(dv_buf_c(&(end)->events), (want));                                     \
        dv_buf_clear(&(end)->events);                                                              \
    } while (0)

static dv_str pulled(struct end *end)
{
    dv_str bytes;

    return dv_ws_pull(end->ws, &bytes) ? bytes : DV_STR("");
}

#define assert_bytes(bytes, literal)                                                               \
    do {                                                                                           \
        dv_str got = (bytes);                                                                      \
        assert_int_equal(got.n, sizeof(literal) - 1);                                              \
        assert_memory_equal(got.p, (literal), got.n);                                              \
    } while (0)

/* RFC 6455, 5.7. */
static void frames_are_those_of_the_standard(void **state)
{
    static const struct {
        bool is_client;
        dv_str bytes;
        const char *events;
    } rows[] = {
        {true,  DV_STR_INIT("\x81\x05Hello"),                                "text Hello\n"       },
        {false, DV_STR_INIT("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text Hello\n"       },
        {true,  DV_STR_INIT("\x01\x03Hel\x80\x02lo"),                        "text+ Hel\n lo\n"   },
        {true,  DV_STR_INIT("\x8a\x05Hello"),                                "pong Hello\n"       },
 /* control frames between fragments; empty ones */
        {true,
         DV_STR_INIT("\x02\x01"
                     "a\x8a\x00\x00\x00\x80\x01"
                     "b"),
         "binary+ a\npong \n b\n"                                                                 },
        {true,  DV_STR_INIT("\x82\x00"),                                     "binary \n"          },
        {true,  DV_STR_INIT("\x02\x00\x80\x00"),                             "binary+ \n \n"      },
        {true,  DV_STR_INIT("\x81\x02\xc3\xa4"),                             "text \xc3\xa4\n"    },
        {true,  DV_STR_INIT("\x01\x01\xc3\x80\x01\xa4"),                     "text+ \xc3\n \xa4\n"},
        {true,  DV_STR_INIT("\x88\x00"),                                     "closed 1005 \n"     },
        {true,
         DV_STR_INIT("\x88\x05\x03\xe8"
                     "bye"),
         "closed 1000 bye\n"                                                                      },
        {true,  DV_STR_INIT("\x88\x02\x0f\xa0\x81\x01x"),                    "closed 4000 \n"     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
            struct end end;
            struct dv_err err;

            end_init(&end, rows[i].is_client, 0);
            for (size_t k = 0; in_pieces && k < rows[i].bytes.n; k++)
                assert_ok(dv_ws_receive(end.ws, dv_str_slice(rows[i].bytes, k, k + 1), &err), &err);
            if (!in_pieces) {
                assert_ok(dv_ws_receive(end.ws, rows[i].bytes, &err), &err);
                assert_events(&end, rows[i].events);
            }
            end_fini(&end);
        }
    }
}

static void lengths_are_as_short_as_they_can_be(void **state)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, 200000};
    static const char zeros[200000];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        size_t n_head = sizes[i] < 126 ? 2 : sizes[i] < 65536 ? 4 : 10;
        struct end server;
        struct end client;
        struct dv_err err;
        dv_str bytes;

        end_init(&server, false, 0);
        end_init(&client, true, 0);
        assert_ok(dv_ws_send(server.ws, false, (dv_str){zeros, sizes[i]}, &err), &err);
        bytes = pulled(&server);
        assert_int_equal(bytes.n, n_head + sizes[i]);
        assert_ok(dv_ws_receive(client.ws, bytes, &err), &err);
        assert_ok(dv_ws_send(client.ws, false, (dv_str){zeros, sizes[i]}, &err), &err);
        bytes = pulled(&client);
        assert_int_equal(bytes.n, n_head + 4 + sizes[i]);
        assert_ok(dv_ws_receive(server.ws, bytes, &err), &err);
        dv_buf_clear(&server.events);
        end_fini(&server);
        end_fini(&client);
    }
}

static void clients_mask_what_they_send(void **state)
{
    struct end end;
    struct dv_err err;

    (void)state;
    end_init(&end, true, 0);
    assert_ok(dv_ws_send(end.ws, true, DV_STR("Hello"), &err), &err);
    assert_bytes(pulled(&end), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
    end_fini(&end);
}

static void rules_that_are_broken_end_the_session(void **state)
{
    static const struct {
        bool is_client;
        dv_str bytes;
        const char *why;
        unsigned code;
    } rows[] = {
        {true,  DV_STR_INIT("\xc1\x00"),                     "reserved",             1002},
        {true,  DV_STR_INIT("\x91\x00"),                     "reserved",             1002},
        {true,  DV_STR_INIT("\x83\x00"),                     "unknown opcode",       1002},
        {true,  DV_STR_INIT("\x8b\x00"),                     "unknown opcode",       1002},
        {false, DV_STR_INIT("\x81\x00"),                     "not masked",           1002},
        {true,  DV_STR_INIT("\x81\x80"),                     "is masked",            1002},
        {true,  DV_STR_INIT("\x80\x00"),                     "continuation without", 1002},
        {true,  DV_STR_INIT("\x01\x00\x81\x00"),             "within a message",     1002},
        {true,  DV_STR_INIT("\x09\x00"),                     "in fragments",         1002},
        {true,  DV_STR_INIT("\x89\x7e"),                     "long control",         1002},
        {true,  DV_STR_INIT("\x82\x7e\x00\x7d"),             "length is malformed",  1002},
        {true,  DV_STR_INIT("\x82\x7f\0\0\0\0\0\0\xff\xff"), "length is malformed",  1002},
        {true,  DV_STR_INIT("\x82\x7f\x80\0\0\0\0\1\0\0"),   "length is malformed",  1002},
        {true,  DV_STR_INIT("\x81\x01\xff"),                 "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x81\x01\xc3"),                 "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x81\x02\xc0\x80"),             "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x81\x03\xed\xa0\x80"),         "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x81\x04\xf4\x90\x80\x80"),     "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x01\x01\xc3\x80\x01x"),        "not UTF-8",            1007},
        {true,  DV_STR_INIT("\x88\x01x"),                    "valid code",           1002},
        {true,  DV_STR_INIT("\x88\x02\x03\xed"),             "valid code",           1002},
        {true,  DV_STR_INIT("\x88\x02\x00\x00"),             "valid code",           1002},
        {true,  DV_STR_INIT("\x88\x02\x13\x88"),             "valid code",           1002},
        {true,  DV_STR_INIT("\x88\x03\x03\xe8\xff"),         "not UTF-8",            1007},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct end end;
        struct dv_err err;
        dv_str close;

        end_init(&end, rows[i].is_client, 0);
        if (dv_ws_receive(end.ws, rows[i].bytes, &err))
            fail_msg("row %zu is taken", i);
        assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
        assert_false(dv_ws_receive(end.ws, DV_STR("\x81\x00"), &err)); /* nothing more is heard */
        assert_true(dv_ws_is_over(end.ws));
        close = pulled(&end);
        assert_true(close.n >= 4 && close.p[0] == '\x88');
        if (!rows[i].is_client)
            assert_int_equal((uint8_t)close.p[2] << 8 | (uint8_t)close.p[3], rows[i].code);
        end_fini(&end);
    }
}

static void pings_are_answered_once(void **state)
{
    struct end end;
    struct dv_err err;

    (void)state;
    end_init(&end, false, 0);
    for (int i = 0; i < 100000; i++)
        assert_ok(dv_ws_receive(end.ws, DV_STR("\x89\x82\0\0\0\0ab"), &err), &err);
    assert_ok(dv_ws_receive(end.ws, DV_STR("\x89\x82\0\0\0\0cd"), &err), &err);
    assert_int_equal(dv_ws_unsent_bytes(end.ws), 0);
    assert_bytes(pulled(&end), "\x8a\x02"
                               "cd");
    assert_bytes(pulled(&end), "");
    end_fini(&end);
}

static void both_sides_close(void **state)
{
    struct end server;
    struct end client;
    struct dv_err err;

    (void)state;
    end_init(&server, false, 0);
    end_init(&client, true, 0);
    assert_ok(dv_ws_send(server.ws, true, DV_STR("last"), &err), &err);
    dv_ws_close(server.ws, DV_WS_NORMAL, DV_STR("done"));
    dv_ws_close(server.ws, DV_WS_INTERNAL_ERROR, DV_STR("again"));
    assert_false(dv_ws_send(server.ws, true, DV_STR("late"), &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "closed");
    dv_ws_ping(server.ws, DV_STR("late"));
    assert_false(dv_ws_is_over(server.ws));
    assert_ok(dv_ws_receive(client.ws, pulled(&server), &err), &err);
    assert_events(&client, "text last\nclosed 1000 done\n");
    assert_true(dv_ws_is_over(client.ws));
    assert_ok(dv_ws_receive(server.ws, pulled(&client), &err), &err);
    assert_events(&server, "closed 1000 \n");
    assert_true(dv_ws_is_over(server.ws));
    end_fini(&server);
    end_fini(&client);
}

static void long_reasons_are_cut_between_characters(void **state)
{
    struct dv_buf reason;
    struct end server;
    struct end client;
    struct dv_err err;

    (void)state;
    end_init(&server, false, 0);
    end_init(&client, true, 0);
    dv_buf_init(&reason, 1000);
    for (int i = 0; i < 100; i++)
        dv_buf_add_c(&reason, "\xc3\xa4");
    dv_ws_close(server.ws, DV_WS_INTERNAL_ERROR, dv_buf_str(&reason));
    assert_ok(dv_ws_receive(client.ws, pulled(&server), &err), &err);
    assert_int_equal(client.events.n, strlen("closed 1011 \n") + 122);
    dv_buf_fini(&reason);
    end_fini(&server);
    end_fini(&client);
}

static void a_peer_that_does_not_read_costs_no_more_than_the_limit(void **state)
{
    static const char zeros[100000];
    struct end end;
    struct dv_err err;

    (void)state;
    end_init(&end, false, 50000);
    assert_ok(dv_ws_send(end.ws, false, (dv_str){zeros, 100000}, &err), &err); /* one always may */
    assert_false(dv_ws_send(end.ws, false, DV_STR("x"), &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "does not read");
    (void)pulled(&end);
    assert_ok(dv_ws_send(end.ws, false, DV_STR("x"), &err), &err);
    end_fini(&end);
}

/* A frame may claim to be of any length: it is handed on as it comes. */
static void a_frame_of_exabytes_costs_nothing(void **state)
{
    struct end end;
    struct dv_err err;

    (void)state;
    end_init(&end, true, 0);
    assert_ok(dv_ws_receive(end.ws,
                            DV_STR("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"
                                   "ab"),
                            &err),
              &err);
    assert_events(&end, "binary+ ab\n");
    end_fini(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_those_of_the_standard),
        cmocka_unit_test(lengths_are_as_short_as_they_can_be),
        cmocka_unit_test(clients_mask_what_they_send),
        cmocka_unit_test(rules_that_are_broken_end_the_session),
        cmocka_unit_test(pings_are_answered_once),
        cmocka_unit_test(both_sides_close),
        cmocka_unit_test(long_reasons_are_cut_between_characters),
        cmocka_unit_test(a_peer_that_does_not_read_costs_no_more_than_the_limit),
        cmocka_unit_test(a_frame_of_exabytes_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
