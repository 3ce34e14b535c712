/* Channels in a WebSocket: their protocols, both sides, and messages that are none. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "upgrade/channels.h"
#include "upgrade/websocket.h"

/* Events are lines: "0 text", "0 closed", "ended 1000". */
struct end {
    struct dv_channels_handler handler;
    struct dv_channels *channels;
    struct dv_buf events;
};

static void on_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    assert_true(bytes.n > 0);
    if (bytes.n < 200)
        dv_buf_printf(&end->events, "%u %.*s\n", channel, DV_FMT(bytes));
    else
        dv_buf_printf(&end->events, "%u of %zu\n", channel, bytes.n);
}

static void on_closed(struct dv_channels_handler *handler, unsigned channel)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    dv_buf_printf(&end->events, "%u closed\n", channel);
}

static void on_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    struct end *end = DV_CONTAINER(handler, struct end, handler);

    (void)reason;
    dv_buf_printf(&end->events, "ended %u\n", code);
}

static void no_mask(void *ctx, uint8_t mask[4])
{
    (void)ctx;
    memset(mask, 0, 4);
}

static void end_init(struct end *end, bool is_client, const char *protocol)
{
    struct dv_channels_options options = {
        .ws = {.is_client = is_client, .random = no_mask},
        .protocol = dv_channel_protocol_find(dv_str_from_c(protocol)),
        .n_channels = DV_N_CHANNELS,
    };

    assert_non_null(options.protocol);
    end->handler = (struct dv_channels_handler){on_data, on_closed, on_ended};
    dv_buf_init(&end->events, 1u << 20);
    end->channels = dv_channels_new(&options, &end->handler);
}

static void end_fini(struct end *end)
{
    dv_channels_free(end->channels);
    dv_buf_fini(&end->events);
}

#define assert_events(end, want)                                                                   \
    do {                                                                                           \
        assert_string_equal(dv_buf_c(&(end)->events), (want));                                     \
        dv_buf_clear(&(end)->events);                                                              \
    } while (0)

static void carry(struct end *from, struct end *to)
{
    struct dv_err err;
    dv_str bytes;

    while (dv_channels_pull(from->channels, &bytes))
        assert_ok(dv_channels_receive(to->channels, bytes, &err), &err);
}

static void send(struct end *end, unsigned channel, const char *text)
{
    struct dv_err err;

    assert_ok(dv_channels_send(end->channels, channel, dv_str_from_c(text), &err), &err);
}

static void both_sides_speak_in_every_protocol(void **state)
{
    size_t n;
    const dv_str *names = dv_channel_protocols(DV_CHANNELS_OF_EXEC, &n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct dv_channel_protocol *protocol = dv_channel_protocol_find(names[i]);
        struct end server;
        struct end client;
        struct dv_err err;

        end_init(&server, false, protocol->name.p);
        end_init(&client, true, protocol->name.p);
        send(&server, DV_CHANNEL_STDOUT, ""); /* nothing but a sign of life */
        send(&server, DV_CHANNEL_STDOUT, "out");
        send(&server, DV_CHANNEL_STDERR, "e");
        send(&client, DV_CHANNEL_STDIN, "in");
        if (protocol->can_close) {
            assert_ok(dv_channels_close(client.channels, DV_CHANNEL_STDIN, &err), &err);
        } else {
            assert_false(dv_channels_close(client.channels, DV_CHANNEL_STDIN, &err));
            assert_err(&err, DV_UNIMPLEMENTED, "cannot be ended");
        }
        dv_channels_ping(client.channels);
        carry(&client, &server);
        assert_events(&server, protocol->can_close ? "0 in\n0 closed\n" : "0 in\n");
        send(&server, DV_CHANNEL_ERROR, "{}");
        dv_channels_end(server.channels, DV_WS_NORMAL, DV_STR_NONE);
        carry(&server, &client);
        assert_events(&client, "1 out\n2 e\n3 {}\nended 1000\n");
        carry(&client, &server);
        assert_true(dv_channels_is_over(server.channels));
        assert_true(dv_channels_is_over(client.channels));
        end_fini(&server);
        end_fini(&client);
    }
}

static void frames_are_those_of_the_reference(void **state)
{
    static const struct {
        const char *protocol;
        const char *text;
        dv_str bytes;
    } rows[] = {
        {"v4.channel.k8s.io",        "hi", DV_STR_INIT("\x82\x03\x01hi")},
        {"v5.channel.k8s.io",        "",   DV_STR_INIT("\x82\x01\x01")  },
        {"v4.base64.channel.k8s.io", "hi",
         DV_STR_INIT("\x81\x05"
                     "1aGk=")                                           },
        {"base64.channel.k8s.io",    "",
         DV_STR_INIT("\x81\x01"
                     "1")                                               },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct end end;
        dv_str bytes;

        end_init(&end, false, rows[i].protocol);
        send(&end, DV_CHANNEL_STDOUT, rows[i].text);
        assert_true(dv_channels_pull(end.channels, &bytes));
        assert_true(dv_str_eq(bytes, rows[i].bytes));
        end_fini(&end);
    }
}

/* What clients send, and what comes of it. A server's peer masks; a client's does not. */
static void messages_are_taken_or_refused(void **state)
{
    static const struct {
        const char *protocol;
        dv_str bytes;
        const char *events;
        const char *fault; /* NULL: none */
    } rows[] = {
        {"v4.channel.k8s.io",     DV_STR_INIT("\x82\x00"),                      "",           NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x82\x01\x00"),                  "",           NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x82\x02\x05x\x82\x02\x00y"),    "0 y\n",      NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x82\x02\xffx\x82\x02\x00y"),    "0 y\n",      NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x81\x02\x00x"),                 "0 x\n",      NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x02\x00\x00\x01\x00\x80\x01x"), "0 x\n",      NULL        },
        {"v4.channel.k8s.io",     DV_STR_INIT("\x02\x02\x00x\x80\x01y"),        "0 x\n0 y\n", NULL        },
        {"v5.channel.k8s.io",     DV_STR_INIT("\x82\x02\xff\x00"),              "0 closed\n", NULL        },
        {"v5.channel.k8s.io",     DV_STR_INIT("\x02\x01\xff\x80\x01\x04"),      "4 closed\n", NULL        },
        {"v5.channel.k8s.io",     DV_STR_INIT("\x82\x02\xff\x09"),              "",           NULL        },
        {"v5.channel.k8s.io",     DV_STR_INIT("\x82\x01\xff"),                  "",           "not one"   },
        {"v5.channel.k8s.io",     DV_STR_INIT("\x82\x03\xff\x00\x01"),          "",           "not one"   },
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x81\x05"
                     "0aGk="),
         "0 hi\n",                                                                            NULL        },
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x01\x02"
                     "0a\x80\x03Gk="),
         "0 hi\n",                                                                            NULL        },
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x01\x05"
                     "0aGhh\x80\x04YWFh"),
         "0 hha\n0 aaa\n",                                                                    NULL        },
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x81\x07"
                     "0aG\r\nk="),
         "0 hi\n",                                                                            NULL        },
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x81\x04"
                     "0aGk"),
         "",                                                                                  "not base64"},
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x81\x05"
                     "0a!k="),
         "",                                                                                  "not base64"},
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x01\x05"
                     "0aGk=\x80\x04YWFh"),
         "0 hi\n",                                                                            "not base64"},
        {"base64.channel.k8s.io",
         DV_STR_INIT("\x81\x01"
                     "\x2f"),
         "",                                                                                  NULL        },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        for (size_t step = 1; step < 100; step += 98) { /* byte by byte, and all at once */
            struct end end;
            struct dv_err err;
            bool is_fine = true;

            end_init(&end, true, rows[i].protocol);
            for (size_t k = 0; is_fine && k < rows[i].bytes.n; k += step)
                is_fine = dv_channels_receive(end.channels,
                                              dv_str_slice(rows[i].bytes, k, k + step), &err);
            if (is_fine != (rows[i].fault == NULL))
                fail_msg("row %zu is %s", i, is_fine ? "taken" : err.msg);
            if (!is_fine)
                assert_err(&err, DV_INVALID_ARGUMENT, rows[i].fault);
            if (step > 1)
                assert_events(&end, rows[i].events);
            assert_int_equal(dv_channels_is_over(end.channels), !is_fine);
            end_fini(&end);
        }
    }
}

static void long_output_goes_in_messages_of_32_kib(void **state)
{
    static const char zeros[100000];
    struct end server;
    struct end client;
    struct dv_err err;

    (void)state;
    end_init(&server, false, "v5.channel.k8s.io");
    end_init(&client, true, "v5.channel.k8s.io");
    assert_ok(dv_channels_send(server.channels, 1, (dv_str){zeros, 100000}, &err), &err);
    assert_int_equal(dv_channels_unsent_bytes(server.channels), 100000 + 4 * 5);
    assert_ok(dv_channels_send(server.channels, 1, (dv_str){zeros, 100000}, &err), &err);
    assert_false(dv_channels_send(server.channels, 1, (dv_str){zeros, 100000}, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "does not read");
    carry(&server, &client);
    assert_events(&client, "1 of 32767\n1 of 32767\n1 of 32767\n1 of 1699\n"
                           "1 of 32767\n1 of 32767\n1 of 32767\n1 of 1699\n");
    end_fini(&server);
    end_fini(&client);
}

static void the_protocols_of_port_forward_are_served(void **state)
{
    size_t n;
    const dv_str *names = dv_channel_protocols(DV_CHANNELS_OF_PORT_FORWARD, &n);

    (void)state;
    assert_str(names[0], DV_CHANNEL_TUNNEL);
    assert_null(dv_channel_protocol_find(names[0])); /* it has no channels */
    for (size_t i = 1; i < n; i++)
        assert_non_null(dv_channel_protocol_find(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_speak_in_every_protocol),
        cmocka_unit_test(frames_are_those_of_the_reference),
        cmocka_unit_test(messages_are_taken_or_refused),
        cmocka_unit_test(long_output_goes_in_messages_of_32_kib),
        cmocka_unit_test(the_protocols_of_port_forward_are_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
