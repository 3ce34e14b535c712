/* Two SPDY sessions that speak with each other: the life of streams, back-pressure. */
#include "support/dvtest.h"

#include <string.h>

#include "base/buf.h"
#include "upgrade/spdy.h"
#include "upgrade/tests/test_spdy_side.h"

struct pair {
    struct side client;
    struct side server;
};

static void pair_init(struct pair *pair, const struct dv_spdy_options *common)
{
    struct dv_spdy_options options = *common;

    options.is_client = true;
    side_init(&pair->client, &options);
    options.is_client = false;
    side_init(&pair->server, &options);
}

static void pair_fini(struct pair *pair)
{
    side_fini(&pair->client);
    side_fini(&pair->server);
}

static const struct dv_spdy_options plain;

static void send_all(struct dv_spdy_stream *stream, const char *text)
{
    assert_int_equal(dv_spdy_send(stream, dv_str_from_c(text)), strlen(text));
}

static void streams_are_opened_used_and_finished(void **state)
{
    struct pair pair;
    struct dv_spdy_stream *in;
    struct dv_spdy_stream *out;

    (void)state;
    for (size_t step = 1; step < 3; step++) { /* also byte by byte */
        pair_init(&pair, &plain);
        in = side_open(&pair.client, "stdin");
        out = side_open(&pair.client, "stdout");
        send_all(in, "hello");
        dv_spdy_finish(in);
        dv_spdy_finish(in);
        assert_int_equal(dv_spdy_send(in, DV_STR("late")), 0);
        assert_true(side_carry(&pair.client, &pair.server, step == 1 ? 1 : SIZE_MAX));
        if (step > 1)
            assert_events(&pair.server, "1 opened streamtype=stdin\n3 opened streamtype=stdout\n"
                                        "1 data hello\n1 finished\n");
        send_all(pair.server.stream, "answer");
        dv_spdy_finish(pair.server.stream);
        assert_true(side_carry(&pair.server, &pair.client, SIZE_MAX));
        assert_events(&pair.client, "1 replied\n3 replied\n3 data answer\n3 finished\n");
        dv_spdy_finish(out);
        dv_spdy_settle(pair.client.spdy);
        assert_events(&pair.client, "3 ended OK\n");
        dv_buf_clear(&pair.server.events);
        sides_talk(&pair.client, &pair.server);
        assert_events(&pair.server, "3 finished\n3 ended OK\n");
        pair_fini(&pair);
    }
}

static void both_sides_can_open(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, &plain);
    (void)side_open(&pair.client, "a");
    (void)side_open(&pair.server, "b");
    (void)side_open(&pair.server, "c");
    sides_talk(&pair.client, &pair.server);
    assert_events(&pair.client, "2 opened streamtype=b\n4 opened streamtype=c\n1 replied\n");
    assert_events(&pair.server, "1 opened streamtype=a\n2 replied\n4 replied\n");
    pair_fini(&pair);
}

static void resets_end_a_stream_on_both_sides(void **state)
{
    struct pair pair;
    struct dv_spdy_stream *stream;

    (void)state;
    pair_init(&pair, &plain);
    stream = side_open(&pair.client, "a");
    (void)side_open(&pair.client, "b");
    sides_talk(&pair.client, &pair.server);
    dv_buf_clear(&pair.client.events);
    dv_buf_clear(&pair.server.events);
    dv_spdy_reset(stream, DV_SPDY_CANCEL);
    dv_spdy_reset(stream, DV_SPDY_CANCEL);
    assert_int_equal(dv_spdy_send(stream, DV_STR("late")), 0);
    dv_spdy_finish(stream);
    assert_events(&pair.client, ""); /* told later */
    sides_talk(&pair.client, &pair.server);
    assert_events(&pair.client, "1 ended CANCELLED\n");
    assert_events(&pair.server, "1 ended CANCELLED\n");
    pair_fini(&pair);
}

/* What is sent to a stream after its end crosses the end on the wire. */
static void late_data_of_an_ended_stream_is_dropped(void **state)
{
    struct pair pair;
    struct dv_spdy_stream *stream;

    (void)state;
    pair_init(&pair, &plain);
    stream = side_open(&pair.client, "a");
    sides_talk(&pair.client, &pair.server);
    send_all(stream, "on its way");
    dv_spdy_reset(pair.server.stream, DV_SPDY_CANCEL);
    dv_spdy_settle(pair.server.spdy);
    dv_buf_clear(&pair.server.events);
    assert_true(side_carry(&pair.client, &pair.server, SIZE_MAX));
    assert_events(&pair.server, "");
    sides_talk(&pair.client, &pair.server);
    pair_fini(&pair);
}

static void whoever_goes_away_lets_streams_end(void **state)
{
    struct pair pair;
    struct dv_spdy_stream *stream;
    struct dv_err err;

    (void)state;
    pair_init(&pair, &plain);
    stream = side_open(&pair.client, "a");
    sides_talk(&pair.client, &pair.server);
    dv_buf_clear(&pair.client.events);
    (void)side_open(&pair.client, "b"); /* crosses the GOAWAY */
    dv_spdy_go_away(pair.server.spdy);
    dv_spdy_go_away(pair.server.spdy);
    assert_true(side_carry(&pair.server, &pair.client, SIZE_MAX));
    assert_events(&pair.client, "going away\n3 ended UNAVAILABLE\n");
    assert_null(dv_spdy_open(pair.client.spdy, NULL, 0, NULL, &err));
    assert_err(&err, DV_UNAVAILABLE, "no more streams");
    sides_talk(&pair.client, &pair.server);
    assert_false(dv_spdy_is_over(pair.client.spdy));
    dv_spdy_finish(stream);
    dv_spdy_finish(pair.server.stream);
    sides_talk(&pair.client, &pair.server);
    assert_true(dv_spdy_is_over(pair.client.spdy));
    assert_true(dv_spdy_is_over(pair.server.spdy));
    pair_fini(&pair);
}

static void pings_are_echoed(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair, &plain);
    dv_spdy_ping(pair.client.spdy);
    dv_spdy_ping(pair.client.spdy);
    dv_spdy_ping(pair.server.spdy);
    sides_talk(&pair.client, &pair.server);
    assert_events(&pair.client, "pong\npong\n");
    assert_events(&pair.server, "pong\n");
    pair_fini(&pair);
}

/* ---- back-pressure ---- */

static const char zeros[1u << 20];

static void send_more(struct side *side, struct dv_spdy_stream *stream)
{
    side->left -= dv_spdy_send(stream, (dv_str){zeros, side->left});
    if (side->left == 0)
        dv_spdy_finish(stream);
}

static void no_more_is_taken_than_may_wait(void **state)
{
    struct dv_spdy_options options = {.unsent_bytes_max = 100000};
    struct pair pair;
    struct dv_spdy_stream *stream;

    (void)state;
    pair_init(&pair, &options);
    pair.client.on_room = send_more;
    pair.client.left = sizeof(zeros);
    stream = side_open(&pair.client, "a");
    send_more(&pair.client, stream);
    assert_in_range(dv_spdy_unsent_bytes(pair.client.spdy), 99000, 100100);
    pair.server.is_quiet = true;
    sides_talk(&pair.client, &pair.server);
    assert_int_equal(pair.server.n_data, sizeof(zeros));
    assert_int_equal(pair.client.left, 0);
    pair_fini(&pair);
}

static void streams_that_wait_take_turns(void **state)
{
    struct dv_spdy_options options = {.unsent_bytes_max = 50000};
    struct pair pair;
    struct dv_spdy_stream *streams[3];

    (void)state;
    pair_init(&pair, &options);
    pair.server.is_quiet = true;
    for (size_t i = 0; i < 3; i++)
        streams[i] = side_open(&pair.client, "a");
    for (size_t i = 0; i < 3; i++)
        (void)dv_spdy_send(streams[i], (dv_str){zeros, 200000});
    for (int i = 0; i < 3; i++) {
        dv_str bytes;

        assert_true(dv_spdy_pull(pair.client.spdy, &bytes));
        for (size_t k = 0; k < 3; k++) /* each has been told */
            (void)dv_spdy_send(streams[k], (dv_str){zeros, 50000});
    }
    assert_non_null(strstr(dv_buf_c(&pair.client.events), "1 room\n3 room\n5 room\n"));
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_opened_used_and_finished),
        cmocka_unit_test(both_sides_can_open),
        cmocka_unit_test(resets_end_a_stream_on_both_sides),
        cmocka_unit_test(late_data_of_an_ended_stream_is_dropped),
        cmocka_unit_test(whoever_goes_away_lets_streams_end),
        cmocka_unit_test(pings_are_echoed),
        cmocka_unit_test(no_more_is_taken_than_may_wait),
        cmocka_unit_test(streams_that_wait_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
