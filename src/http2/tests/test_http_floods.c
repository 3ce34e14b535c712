/* Clients that mean harm: their connections end, cost little until then, and honest clients that
 * look a little like them go on. */
#include "support/dvtest.h"

#include <malloc.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "http2/flood.h"
#include "http2/http2_server.h"
#include "http2/tests/test_guest.h"

/* What a client may make us hold that keeps to no rule: frames to answer it, a header list. */
#define MEMORY_BYTES_MAX (8u << 20)

/* Says a thing again and again; each # in it is the id of a new stream. Returns how often it was
 * heard before the connection was ended; n when it never was. */
static size_t flood(struct guest *guest, const char *frames, size_t n, uint64_t pause_ms,
                    bool reads)
{
    size_t before = mallinfo2().uordblks;
    struct dv_buf text;
    struct dv_err err;
    size_t i;

    guest->is_quiet = true;
    dv_buf_init(&text, 1u << 16);
    for (i = 0; i < n; i++) {
        dv_buf_clear(&text);
        for (const char *c = frames; *c; c++) {
            if (*c == '#')
                dv_buf_add_u64(&text, 2 * i + 1);
            else
                dv_buf_add_char(&text, *c);
        }
        guest->now_ms += pause_ms;
        if (!guest_try(guest, dv_buf_c(&text), &err))
            break;
        if (reads)
            (void)guest_hear(guest);
        if (dv_h2_server_is_over(guest->server))
            break;
        assert_true(mallinfo2().uordblks < before + MEMORY_BYTES_MAX);
    }
    dv_buf_fini(&text);
    return i;
}

static void floods_end_the_connection(void **state)
{
    static const struct {
        const char *frames;
        const char *why;
        size_t n_max;
        bool reads;
    } rows[] = {
        {"ping 0000000000000000",                            "carry nothing",   10001, true },
        {"settings 3=1",                                     "carry nothing",   10001, true },
        {"settings",                                         "carry nothing",   10001, true },
        {"window 0 1",                                       "carry nothing",   10001, true },
        {"priority 1 0000000000",                            "carry nothing",   10001, true },
        {"ping 0000000000000000",                            "",                2000,  false},
        {"settings 3=1",                                     "",                2000,  false},
 /* CVE-2023-44487, and the same by way of our own resets: CVE-2025-8671 */
        {"headers # " POST "\nreset # 8",                    "breaks too many", 501,   true },
        {"headers # " POST "\nwindow # 2147483647",          "breaks too many", 501,   true },
        {"headers+end # " GET "\ndata # 00",                 "",                501,   true },
        {"headers+end # " GET "|connection=a",               "breaks too many", 501,   true },
        {"headers # " POST "|content-length=1\ndata+end # ", "breaks too many", 501,   true },
        {"headers # " POST "\nreset # 8",                    "breaks too many", 501,   false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;
        size_t n;

        guest_meet(&guest, NULL);
        guest.on_complete = NULL;
        n = flood(&guest, rows[i].frames, rows[i].n_max + 1, 0, rows[i].reads);
        if (n > rows[i].n_max)
            fail_msg("row %zu (%s) goes on", i, rows[i].frames);
        if (rows[i].why[0]) {
            assert_err(dv_h2_server_complaint(guest.server), DV_RESOURCE_EXHAUSTED, rows[i].why);
            if (!dv_h2_server_is_over(guest.server))
                (void)guest_hear(&guest);
            assert_non_null(strstr(dv_buf_c(&guest.wire.heard), "ENHANCE_YOUR_CALM"));
        }
        guest_part(&guest);
    }
}

/* What it sends is ignored once there is a fault that it does not read of. */
static void whoever_never_reads_costs_little(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    assert_int_equal(flood(&guest, "headers+end # " GET "|connection=a", 20000, 0, false), 20000);
    assert_in_range(dv_h2_server_n_streams(guest.server), 1, 100);
    guest_part(&guest);
}

static void empty_data_is_a_flood(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest_say(&guest, "headers 1 " POST);
    assert_in_range(flood(&guest, "data 1 ", 20000, 0, true), 9000, 10001);
    guest_part(&guest);
}

static void endless_continuations_end_the_connection(void **state)
{
    struct guest guest;

    (void)state;
    guest_meet(&guest, NULL);
    guest_say(&guest, "headers+part 1 " GET);
    assert_in_range(flood(&guest, "continuation+part 1 ", 1000, 0, true), 1, 100);
    guest_part(&guest);
}

/* The same frames, in the way that real clients send them. */
static void honest_clients_go_on(void **state)
{
    static const struct {
        const char *frames;
        size_t n;
        uint64_t pause_ms;
    } rows[] = {
        {"ping 0000000000000000",                        50000, 10}, /* a hundred a second, for long */
        {"headers # " POST "\nreset # 8",                3000,  40}, /* gives one up now and then */
        {"headers+end # " GET "\nwindow 0 100",          30000, 0 }, /* as fast as it can */
        {"headers+end # " GET "\nping 0000000000000000", 30000, 0 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;

        guest_meet(&guest, NULL);
        if (flood(&guest, rows[i].frames, rows[i].n, rows[i].pause_ms, true) < rows[i].n &&
            !strstr(dv_h2_server_complaint(guest.server)->msg, "INTERNAL_ERROR"))
            fail_msg("%s: %s", rows[i].frames, dv_h2_server_complaint(guest.server)->msg);
        guest_part(&guest);
    }
}

/* Every DATA frame is followed by updates of both windows, as the most eager clients do it. */
static void whoever_reads_much_may_open_windows_often(void **state)
{
    struct guest guest;
    struct dv_err err;

    (void)state;
    guest_meet(&guest, NULL);
    guest.is_quiet = true;
    guest.on_complete = guest_begin;
    guest_say(&guest, "headers+end 1 " GET);
    (void)guest_hear(&guest);
    for (int i = 0; i < 20000; i++) {
        struct dv_h2_bytes piece = guest_bytes(&guest, 300);

        assert_ok(dv_h2_stream_send(guest.stream, &piece, &err), &err);
        assert_non_null(strstr(guest_hear(&guest), "data 1 of 300 bytes"));
        guest_say(&guest, "window 0 300\nwindow 1 300");
    }
    guest_part(&guest);
}

/* CVE-2019-9511: an answer that is asked for a byte at a time. */
static void whoever_reads_byte_by_byte_is_cut_off(void **state)
{
    struct guest guest;
    struct dv_h2_bytes piece;
    struct dv_err err;

    (void)state;
    guest_meet(&guest, NULL);
    guest.on_complete = guest_begin;
    guest_say(&guest, "settings 4=0\nheaders+end 1 " GET);
    piece = guest_bytes(&guest, 1u << 20);
    assert_ok(dv_h2_stream_send(guest.stream, &piece, &err), &err);
    assert_in_range(flood(&guest, "window 1 1", 20000, 0, true), 9000, 10001);
    guest_part(&guest);
}

static void windows_that_cannot_be_end_stream_or_connection(void **state)
{
    static const struct {
        const char *frames;
        const char *heard;
    } rows[] = {
        {"window 1 0",            "goaway 1 PROTOCOL_ERROR\n"    },
        {"window 0 0",            "goaway 1 PROTOCOL_ERROR\n"    },
        {"window 1 2147483647",   "reset 1 FLOW_CONTROL_ERROR\n" },
        {"window 0 2147483647",   "goaway 1 FLOW_CONTROL_ERROR\n"},
        {"settings 4=2147483648", "goaway 1 FLOW_CONTROL_ERROR\n"},
        {"settings 5=100",        "goaway 1 PROTOCOL_ERROR\n"    },
        {"frame 0 6 0 00",        "goaway 1 FRAME_SIZE_ERROR\n"  },
        {"continuation 1 ",       "goaway 1 PROTOCOL_ERROR\n"    },
        {"headers+end 2 " GET,    "goaway 1 PROTOCOL_ERROR\n"    },
        {"data 7 00",             "goaway 1 PROTOCOL_ERROR\n"    },
        {"push 1 2 " GET,         "goaway 1 PROTOCOL_ERROR\n"    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct guest guest;
        struct dv_err err;

        guest_meet(&guest, NULL);
        guest.on_complete = NULL;
        guest_say(&guest, "headers+end 1 " GET);
        (void)guest_try(&guest, rows[i].frames, &err);
        if (strcmp(guest_hear(&guest), rows[i].heard) != 0)
            fail_msg("%s: %s", rows[i].frames, dv_buf_c(&guest.wire.heard));
        guest_part(&guest);
    }
}

static void no_more_streams_than_allowed_are_open(void **state)
{
    struct dv_h2_server_options options = {.streams_max = 3};
    struct guest guest;

    (void)state;
    guest_meet(&guest, &options);
    guest.on_complete = NULL;
    assert_in_range(flood(&guest, "headers+end # " GET, 100, 0, true), 3, 5);
    assert_int_equal(guest.n_begun, 3);
    guest_part(&guest);
}

/* A field that the table has is one byte on the wire and four thousand to us. */
static void a_header_bomb_is_reset_and_costs_little(void **state)
{
    struct guest guest;
    struct dv_buf text;
    size_t before;

    (void)state;
    guest_meet(&guest, NULL);
    dv_buf_init(&text, 1u << 20);
    dv_buf_add_c(&text, "headers+end 1 " GET "|x-bomb=");
    for (int i = 0; i < 3900; i++)
        dv_buf_add_char(&text, 'b');
    dv_buf_add_c(&text, "\nframe 3 1 5 ");
    for (int i = 0; i < 16000; i++)
        dv_buf_add_c(&text, "be"); /* the newest entry of the table */
    before = mallinfo2().uordblks;
    guest.is_quiet = true;
    guest_say(&guest, dv_buf_c(&text));
    assert_true(mallinfo2().uordblks < before + MEMORY_BYTES_MAX);
    assert_int_equal(guest.n_begun, 1);
    assert_non_null(strstr(guest_hear(&guest), "reset 3 "));
    dv_buf_fini(&text);
    guest_part(&guest);
}

static void whoever_does_not_speak_http2_is_told_off(void **state)
{
    static const struct dv_h2_server_options options;
    struct dv_h2_server_handler handler = {0};
    struct dv_h2_server *server = dv_h2_server_new(&options, &handler);
    struct dv_err err;

    (void)state;
    assert_false(
        dv_h2_server_receive(server, DV_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 0, &err));
    assert_err(&err, DV_INTERNAL, "does not speak HTTP/2");
    assert_false(dv_h2_server_receive(server, DV_STR("GET"), 0, &err));
    dv_h2_server_lose(server, &err);
    dv_h2_server_free(server);
}

static void levels_fall_with_time_and_never_below_nothing(void **state)
{
    struct dv_h2_flood level = {0};

    (void)state;
    dv_h2_flood_tick(&level, UINT64_MAX / 2); /* the first time is any time */
    dv_h2_flood_on_answer(&level);
    for (int i = 0; i < 500; i++)
        assert_true(dv_h2_flood_on_broken_stream(&level));
    assert_false(dv_h2_flood_on_broken_stream(&level));
    dv_h2_flood_tick(&level, UINT64_MAX / 2 - 5); /* a clock that goes back pays nothing */
    assert_false(dv_h2_flood_on_broken_stream(&level));
    dv_h2_flood_tick(&level, UINT64_MAX / 2 + 1000);
    for (int i = 0; i < 31; i++)
        assert_true(dv_h2_flood_on_broken_stream(&level));
    assert_false(dv_h2_flood_on_broken_stream(&level));
    dv_h2_flood_tick(&level, UINT64_MAX);
    assert_int_equal(level.broken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floods_end_the_connection),
        cmocka_unit_test(whoever_never_reads_costs_little),
        cmocka_unit_test(empty_data_is_a_flood),
        cmocka_unit_test(endless_continuations_end_the_connection),
        cmocka_unit_test(honest_clients_go_on),
        cmocka_unit_test(whoever_reads_much_may_open_windows_often),
        cmocka_unit_test(whoever_reads_byte_by_byte_is_cut_off),
        cmocka_unit_test(windows_that_cannot_be_end_stream_or_connection),
        cmocka_unit_test(no_more_streams_than_allowed_are_open),
        cmocka_unit_test(a_header_bomb_is_reset_and_costs_little),
        cmocka_unit_test(whoever_does_not_speak_http2_is_told_off),
        cmocka_unit_test(levels_fall_with_time_and_never_below_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
