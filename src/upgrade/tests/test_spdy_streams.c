/* What streams are for, by their fields: exec, attach, port-forward, and the choice of a version.
 */
#include "support/dvtest.h"

#include <string.h>

#include "base/defs.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/upgrade.h"

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    (void)handler;
    (void)stream;
    (void)fields;
    (void)n_fields;
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    (void)handler;
    (void)stream;
    (void)err;
}

static struct dv_spdy_handler handler = {.opened = on_opened, .ended = on_ended};

static void spdy_end(struct dv_spdy *spdy)
{
    struct dv_err gone;

    (void)dv_fail(&gone, DV_UNAVAILABLE, "the test is over");
    dv_spdy_lose(spdy, &gone);
    dv_spdy_free(spdy);
}

static void exec_wants_the_streams_that_were_asked_for(void **state)
{
    static const struct {
        struct dv_exec_request request;
        const char *version;
        const char *wanted;
    } rows[] = {
        {{.has_stdout = true, .has_stderr = true},                  "v4.channel.k8s.io", "error stdout stderr "      },
        {{.has_stdin = true},                                       "v4.channel.k8s.io", "error stdin "              },
        {{.has_stdin = true, .has_stdout = true, .has_tty = true},
         "v4.channel.k8s.io",                                                            "error stdin stdout resize "},
        {{.has_stdout = true, .has_stderr = true, .has_tty = true},
         "v3.channel.k8s.io",                                                            "error stdout resize "      },
        {{.has_stdout = true, .has_tty = true},                     "v2.channel.k8s.io", "error stdout "             },
        {{.has_stdout = true},                                      "channel.k8s.io",    "error stdout "             },
    };
    struct dv_spdy_options options = {.is_client = true};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_exec_version *version =
            dv_exec_version_find(dv_str_from_c(rows[i].version));
        struct dv_spdy *spdy = dv_spdy_new(&options, &handler);
        struct dv_exec_streams set;
        struct dv_err err;
        char text[100] = "";

        assert_non_null(version);
        dv_exec_streams_init(&set, &rows[i].request, version);
        assert_false(dv_exec_streams_are_complete(&set));
        assert_ok(dv_exec_streams_open(&set, spdy, &err), &err);
        assert_true(dv_exec_streams_are_complete(&set));
        for (int t = 0; t < DV_N_STREAM_TYPES; t++) {
            enum dv_stream_type type;

            if (!set.streams[t])
                continue;
            assert_true(dv_exec_streams_find(&set, set.streams[t], &type));
            assert_int_equal(type, t);
            (void)strcat(text, dv_stream_type_name(type).p);
            (void)strcat(text, " ");
        }
        assert_string_equal(text, rows[i].wanted);
        spdy_end(spdy);
    }
}

static void exec_takes_each_stream_once(void **state)
{
    static const struct {
        const char *type;
        const char *fault; /* NULL: none */
    } rows[] = {
        {"stdin",  NULL                                },
        {"stdin",  "a second stream of type \"stdin\"" },
        {"stderr", "unexpected stream type: \"stderr\""},
        {"data",   "unexpected stream type: \"data\""  },
        {"",       "unexpected stream type: \"\""      },
        {"error",  NULL                                },
    };
    struct dv_exec_request request = {.has_stdin = true};
    struct dv_spdy_options options = {.is_client = true};
    struct dv_spdy *spdy = dv_spdy_new(&options, &handler);
    struct dv_exec_streams set;

    (void)state;
    dv_exec_streams_init(&set, &request, dv_exec_version_find(DV_STR("v4.channel.k8s.io")));
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_spdy_field field = {DV_STR("streamtype"), dv_str_from_c(rows[i].type)};
        struct dv_err err;
        struct dv_spdy_stream *stream = dv_spdy_open(spdy, &field, 1, NULL, &err);
        enum dv_stream_type type;

        if (dv_exec_streams_add(&set, stream, &field, 1, &err)) {
            assert_null(rows[i].fault);
            assert_true(dv_exec_streams_find(&set, stream, &type));
        } else {
            assert_non_null(rows[i].fault);
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].fault);
            assert_false(dv_exec_streams_find(&set, stream, &type));
        }
        assert_int_equal(dv_exec_streams_are_complete(&set), i == DV_COUNT(rows) - 1);
    }
    spdy_end(spdy);
}

struct stream_row {
    const char *type;
    const char *port;
    const char *request;
    const char *fault; /* NULL: none */
    bool is_complete;
};

static void check_pairs(const struct stream_row *rows, size_t n)
{
    struct dv_spdy_options options = {.is_client = true};
    struct dv_spdy *spdy = dv_spdy_new(&options, &handler);
    struct dv_port_pairs pairs;

    dv_port_pairs_init(&pairs, 3);
    for (size_t i = 0; i < n; i++) {
        struct dv_spdy_field fields[] = {
            {DV_STR("streamtype"), dv_str_from_c(rows[i].type)   },
            {DV_STR("port"),       dv_str_from_c(rows[i].port)   },
            {DV_STR("requestid"),  dv_str_from_c(rows[i].request)},
        };
        struct dv_err err;
        struct dv_spdy_stream *stream = dv_spdy_open(spdy, fields, 3, NULL, &err);
        struct dv_port_pair *pair = dv_port_pairs_add(&pairs, stream, fields, 3, &err);

        if (!pair) {
            if (!rows[i].fault)
                fail_msg("row %zu: %s", i, err.msg);
            assert_err(&err, err.code, rows[i].fault);
            assert_null(dv_port_pairs_find(&pairs, stream));
            continue;
        }
        assert_null(rows[i].fault);
        assert_ptr_equal(dv_port_pairs_find(&pairs, stream), pair);
        assert_int_equal(pair->error && pair->data, rows[i].is_complete);
        if (rows[i].is_complete)
            dv_port_pairs_remove(&pairs, pair);
    }
    dv_port_pairs_fini(&pairs);
    assert_int_equal(pairs.n, 0);
    spdy_end(spdy);
}

static void streams_of_a_connection_to_a_port_find_each_other(void **state)
{
    static const struct stream_row interleaved[] = {
        {"error", "80",    "0", NULL,                            false},
        {"error", "81",    "1", NULL,                            false},
        {"data",  "81",    "1", NULL,                            true },
        {"data",  "80",    "0", NULL,                            true },
        {"error", "80",    "0", NULL,                            false}, /* used again */
        {"error", "80",    "0", "error stream already assigned", false},
        {"data",  "8080",  "0", "request 0 is for port 80",      false},
        {"error", "65535", "a", NULL,                            false},
        {"error", "1",     "b", NULL,                            false},
        {"error", "1",     "c", "more than 3 connections",       false},
        {"data",  "1",     "b", NULL,                            true },
    };
    static const struct stream_row faulty[] = {
        {"error", "",      "0",                                                                "\"port\" header is required",       false},
        {"error", "x",     "0",                                                                "unable to parse \"x\" as a port",   false},
        {"error", "65536", "0",                                                                "unable to parse \"65536\"",         false},
        {"error", "-1",    "0",                                                                "unable to parse \"-1\"",            false},
        {"error", "0",     "0",                                                                "must be > 0",                       false},
        {"",      "80",    "0",                                                                "\"streamType\" header is required", false},
        {"stdin", "80",    "0",                                                                "invalid stream type \"stdin\"",     false},
        {"error", "80",    "0123456789012345678901234567890123456789012345678901234567890123",
         "longer than 63 bytes",                                                                                                    false},
    };
    /* old clients: the stream's own id, and two less for the data */
    static const struct stream_row nameless[] = {
        {"error", "80", "", NULL, false},
        {"data",  "80", "", NULL, true },
        {"error", "80", "", NULL, false},
        {"data",  "80", "", NULL, true },
    };

    (void)state;
    check_pairs(interleaved, DV_COUNT(interleaved));
    check_pairs(faulty, DV_COUNT(faulty));
    check_pairs(nameless, DV_COUNT(nameless));
}

static void the_first_version_of_the_client_that_is_served_is_chosen(void **state)
{
    static const struct {
        dv_str offers[3];
        size_t n_offers;
        const char *chosen; /* NULL: none */
        enum dv_code code;
    } rows[] = {
        {{DV_STR_INIT("v6.channel.k8s.io"), DV_STR_INIT("v4.channel.k8s.io")},
         2,                                                                       "v4.channel.k8s.io",
         DV_OK                                                                                                             },
        {{DV_STR_INIT("v3.channel.k8s.io, v4.channel.k8s.io")},                1, "v3.channel.k8s.io", DV_OK               },
        {{DV_STR_INIT("channel.k8s.io")},                                      1, "channel.k8s.io",    DV_OK               },
        {{DV_STR_INIT("v5.channel.k8s.io")},                                   1, "v5.channel.k8s.io", DV_OK               },
        {{DV_STR_INIT("v6.channel.k8s.io")},                                   1, NULL,                DV_PERMISSION_DENIED},
        {{DV_STR_INIT("")},                                                    1, NULL,                DV_INVALID_ARGUMENT },
        {{DV_STR_INIT("")},                                                    0, NULL,                DV_INVALID_ARGUMENT },
    };
    size_t n;
    const dv_str *served = dv_exec_versions(&n);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_err err;
        dv_str version;

        if (dv_upgrade_negotiate(rows[i].offers, rows[i].n_offers, served, n, &version, &err)) {
            assert_non_null(rows[i].chosen);
            assert_str(version, rows[i].chosen);
            assert_non_null(dv_exec_version_find(version));
        } else {
            assert_null(rows[i].chosen);
            assert_err(&err, rows[i].code, "unable to upgrade");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exec_wants_the_streams_that_were_asked_for),
        cmocka_unit_test(exec_takes_each_stream_once),
        cmocka_unit_test(streams_of_a_connection_to_a_port_find_each_other),
        cmocka_unit_test(the_first_version_of_the_client_that_is_served_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
