#include "support/dvtest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/tests/test_store_fixture.h"

#define CHANGE(kind, table, key, value)                                                            \
    ((struct dv_store_change){(kind), (table), DV_STR(key), DV_STR(value)})
#define PUT(table, key, value) CHANGE(DV_STORE_PUT, table, key, value)
#define DELETE(table, key) CHANGE(DV_STORE_DELETE, table, key, "")
#define DELETE_PREFIX(table, key) CHANGE(DV_STORE_DELETE_PREFIX, table, key, "")

/* One of many writes that are under way together. */
struct client {
    struct dv_store_write write;
    struct crowd *crowd;
    size_t id;
    int n_done;
    enum dv_code code;
    int n_left; /* that it still writes, one after the other */
};

struct crowd {
    struct fixture *fixture;
    struct client clients[64];
    size_t order[64]; /* ids, as they were called done first */
    size_t n_done;    /* clients that were */
    size_t n_busy;    /* clients with something left */
    pthread_t thread;
};

static void write_again(struct client *client);

static void on_client_done(struct dv_store_write *write, const struct dv_err *err)
{
    struct client *client = DV_CONTAINER(write, struct client, write);
    struct crowd *crowd = client->crowd;

    assert_true(pthread_equal(crowd->thread, pthread_self()));
    if (client->n_done++ == 0)
        crowd->order[crowd->n_done++] = client->id;
    client->code = err ? err->code : DV_OK;
    if (client->n_left > 0)
        write_again(client);
    else
        crowd->n_busy--;
}

static void write_again(struct client *client)
{
    char key[16];
    const struct dv_store_change change = {
        DV_STORE_PUT,
        PODS,
        {key, (size_t)snprintf(key, sizeof(key), "%zu-%d", client->id, client->n_left)},
        DV_STR("x")
    };

    client->n_left--;
    dv_store_write(client->crowd->fixture->store, &client->write, &change, 1);
}

static struct crowd *start_crowd(struct fixture *fixture, size_t n_clients, int n_writes)
{
    struct crowd *crowd = DV_ALLOC(struct crowd);

    crowd->fixture = fixture;
    crowd->thread = pthread_self();
    crowd->n_busy = n_clients;
    for (size_t i = 0; i < n_clients; i++) {
        crowd->clients[i] = (struct client){
            .write = {.done = on_client_done}, .crowd = crowd, .id = i, .n_left = n_writes};
        write_again(&crowd->clients[i]);
        assert_int_equal(crowd->n_done, 0);
    }
    return crowd;
}

static bool is_over(void *ctx)
{
    return ((struct crowd *)ctx)->n_busy == 0;
}

static void writes_are_done_once_in_order_on_the_loops_thread(void **state)
{
    struct fixture *fixture = *state;
    struct crowd *crowd;

    must_open(fixture);
    crowd = start_crowd(fixture, 64, 1);
    run_until(fixture, is_over, crowd);
    assert_int_equal(crowd->n_done, 64);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(crowd->order[i], i);
        assert_int_equal(crowd->clients[i].n_done, 1);
        assert_int_equal(crowd->clients[i].code, DV_OK);
    }
    free(crowd);
}

static void writes_of_one_turn_share_a_commit(void **state)
{
    struct fixture *fixture = *state;
    struct dv_store_stats stats;
    struct crowd *crowd;

    must_open(fixture);
    crowd = start_crowd(fixture, 64, 1);
    dv_store_get_stats(fixture->store, &stats);
    assert_int_equal(stats.n_queued, 64);
    assert_int_equal(stats.n_commits, 0);
    run_until(fixture, is_over, crowd);
    dv_store_get_stats(fixture->store, &stats);
    assert_int_equal(stats.n_commits, 1);
    assert_int_equal(stats.n_writes, 64);
    assert_int_equal(stats.n_changes, 64);
    assert_int_equal(stats.commits_by_writes[6], 1); /* up to 64 */
    assert_int_equal(stats.n_queued, 0);
    assert_int_equal(stats.queued_bytes, 0);
    assert_true(stats.commit_ns > 0);
    free(crowd);
}

static void writers_that_go_on_and_on_share_commits(void **state)
{
    struct fixture *fixture = *state;
    struct dv_store_stats stats;
    struct crowd *crowd;
    uint64_t n_timed = 0;

    must_open(fixture);
    crowd = start_crowd(fixture, 64, 20);
    run_until(fixture, is_over, crowd);
    dv_store_get_stats(fixture->store, &stats);
    assert_int_equal(stats.n_writes, 64 * 20);
    /* One commit a round, or two that take turns when the thread was faster than the loop. */
    assert_in_range(stats.n_commits, 20, 64 * 20 / 8);
    for (size_t i = 0; i < DV_STORE_N_BUCKETS; i++)
        n_timed += stats.commits_by_us[i];
    assert_int_equal(n_timed, stats.n_commits);
    free(crowd);
}

static void changes_of_a_set_apply_in_their_order(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change changes[] = {
        PUT(PODS, "a", "1"), PUT(PODS, "a", "2"),  PUT(PODS, "b", "1"),   DELETE(PODS, "b"),
        DELETE(PODS, "c"),   PUT(CLAIMS, "a", ""), PUT(PODS, "long", "1")};

    must_open(fixture);
    assert_int_equal(write_set(fixture, changes, DV_COUNT(changes)), DV_OK);
    assert_string_equal(rows_of(fixture, PODS), "a=2 long=1 ");
    assert_string_equal(rows_of(fixture, CLAIMS), "a= ");
    reopen(fixture);
    assert_string_equal(load_rows(fixture, PODS), "a=2 long=1 ");
    assert_string_equal(load_rows(fixture, CLAIMS), "a= ");
}

static void an_empty_set_is_done_after_what_came_before(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture);
    assert_int_equal(write_set(fixture, NULL, 0), DV_OK);
    must_put(fixture, PODS, "a", "1");
    assert_int_equal(write_set(fixture, NULL, 0), DV_OK);
    assert_string_equal(rows_of(fixture, PODS), "a=1 ");
}

static void a_prefix_deletes_what_begins_with_it(void **state)
{
    static const struct {
        dv_str prefix;
        const char *left;
    } cases[] = {
        {DV_STR_INIT("a/"),       "a=0 a0=0 b=0 \xfe=0 \xff=0 \xff\xff=0 \xff\xff z=0 "         },
        {DV_STR_INIT("a"),        "b=0 \xfe=0 \xff=0 \xff\xff=0 \xff\xff z=0 "                  },
        {DV_STR_INIT("a/\xff"),   "a=0 a/=0 a/b=0 a/b/c=0 a0=0 b=0 \xfe=0 \xff=0 \xff\xff=0 "
                                "\xff\xff z=0 "                  },
        {DV_STR_INIT("\xff"),     "a=0 a/=0 a/b=0 a/b/c=0 a/\xff=0 a/\xff"
                              "9=0 a0=0 b=0 \xfe=0 "               },
        {DV_STR_INIT("\xff\xff"), "a=0 a/=0 a/b=0 a/b/c=0 a/\xff=0 a/\xff"
                                  "9=0 a0=0 b=0 \xfe=0 \xff=0 "},
        {DV_STR_INIT("nothing"),  "a=0 a/=0 a/b=0 a/b/c=0 a/\xff=0 a/\xff"
                                 "9=0 a0=0 b=0 \xfe=0 \xff=0 \xff\xff=0 "
                                 "\xff\xff z=0 "                },
        {DV_STR_INIT(""),         ""                                                            },
    };
    const struct dv_store_change fill[] = {
        PUT(PODS, "a", "0"),
        PUT(PODS, "a/", "0"),
        PUT(PODS, "a/b", "0"),
        PUT(PODS, "a/b/c", "0"),
        PUT(PODS, "a/\xff", "0"),
        PUT(PODS,
            "a/\xff"
            "9",
            "0"),
        PUT(PODS, "a0", "0"),
        PUT(PODS, "b", "0"),
        PUT(PODS, "\xfe", "0"),
        PUT(PODS, "\xff", "0"),
        PUT(PODS, "\xff\xff", "0"),
        PUT(PODS, "\xff\xff z", "0"),
        PUT(CLAIMS, "a/b", "0"),
    };
    struct fixture *fixture = *state;

    must_open(fixture);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_store_change cut = {DV_STORE_DELETE_PREFIX, PODS, cases[i].prefix,
                                            DV_STR_NONE};

        assert_int_equal(write_set(fixture, fill, DV_COUNT(fill)), DV_OK);
        assert_int_equal(write_set(fixture, &cut, 1), DV_OK);
        assert_string_equal(rows_of(fixture, PODS), cases[i].left);
        assert_string_equal(rows_of(fixture, CLAIMS), "a/b=0 ");
    }
}

static void keys_and_values_of_any_bytes_come_back(void **state)
{
    struct fixture *fixture = *state;
    char key[DV_STORE_KEY_BYTES_MAX];
    char value[70000];
    const struct dv_store_change changes[] = {
        {DV_STORE_PUT, PODS, {key, sizeof(key)}, {value, sizeof(value)}},
        {DV_STORE_PUT, PODS, {"\0", 1},          {"\0\0\0", 3}         },
    };
    dv_str got;

    memset(key, 0xff, sizeof(key));
    memset(value, 0, sizeof(value));
    must_open(fixture);
    assert_int_equal(write_set(fixture, changes, DV_COUNT(changes)), DV_OK);
    reopen(fixture);
    assert_non_null(load_rows(fixture, PODS));
    got = dv_buf_str(&fixture->text);
    assert_int_equal(got.n, 6 + sizeof(key) + sizeof(value) + 2);
    assert_memory_equal(got.p, "\0=\0\0\0 ", 6);
    assert_memory_equal(got.p + 6, key, sizeof(key));
    assert_memory_equal(got.p + 7 + sizeof(key), value, sizeof(value));
}

static void keys_and_values_out_of_bounds_are_refused_and_named(void **state)
{
    struct fixture *fixture = *state;
    char *large = calloc(1, DV_STORE_VALUE_BYTES_MAX + 1);
    const struct {
        struct dv_store_change change;
        const char *text;
    } cases[] = {
        {{DV_STORE_PUT, PODS, DV_STR_INIT(""), DV_STR_INIT("x")},                         "key of 0 bytes"     },
        {{DV_STORE_DELETE, PODS, DV_STR_INIT(""), DV_STR_INIT("")},                       "key of 0 bytes"     },
        {{DV_STORE_PUT, PODS, {large, DV_STORE_KEY_BYTES_MAX + 1}, DV_STR_INIT("x")},
         "key of 2049 bytes"                                                                                   },
        {{DV_STORE_DELETE_PREFIX, PODS, {large, 100000}, DV_STR_INIT("")},                "key of 100000 bytes"},
        {{DV_STORE_PUT, PODS, DV_STR_INIT("big"), {large, DV_STORE_VALUE_BYTES_MAX + 1}},
         "key \"big\": 16777217 bytes"                                                                         },
    };

    assert_non_null(large);
    must_open(fixture);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_store_change changes[] = {PUT(PODS, "before", "1"), cases[i].change};

        assert_int_equal(write_set(fixture, changes, 2), DV_INVALID_ARGUMENT);
        assert_err(&fixture->err, DV_INVALID_ARGUMENT, cases[i].text);
    }
    assert_string_equal(rows_of(fixture, PODS), "");
    free(large);
}

static void a_full_queue_pushes_back_and_recovers(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change small = PUT(PODS, "a", "1");
    char value[2000];
    const struct dv_store_change large = {DV_STORE_PUT, PODS, DV_STR_INIT("b"),
                                          make_value(1, sizeof(value), value)};
    struct crowd *crowd;

    fixture->options.n_queued_max = 10;
    fixture->options.queued_bytes_max = 2000;
    must_open(fixture);
    crowd = start_crowd(fixture, 12, 1);
    run_until(fixture, is_over, crowd);
    assert_int_equal(crowd->order[0], 10); /* refusals do not wait for the disk */
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(crowd->clients[i].code, i < 10 ? DV_OK : DV_RESOURCE_EXHAUSTED);
    assert_int_equal(write_set(fixture, &large, 1), DV_RESOURCE_EXHAUSTED);
    assert_err(&fixture->err, DV_RESOURCE_EXHAUSTED, "2000 are the limit");
    assert_int_equal(write_set(fixture, &small, 1), DV_OK);
    free(crowd);
}

struct closer {
    struct dv_store_write write;
    struct dv_store_write late;
    struct fixture *fixture;
    enum dv_code late_code;
    int n_late;
};

static void on_late(struct dv_store_write *write, const struct dv_err *err)
{
    struct closer *closer = DV_CONTAINER(write, struct closer, late);

    assert_non_null(err);
    assert_false(closer->fixture->is_closed);
    closer->late_code = err->code;
    closer->n_late++;
}

static void set_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static bool was_closed(void *ctx)
{
    return ((struct fixture *)ctx)->is_closed;
}

static void on_first_done(struct dv_store_write *write, const struct dv_err *err)
{
    struct closer *closer = DV_CONTAINER(write, struct closer, write);
    const struct dv_store_change change = PUT(PODS, "late", "1");

    assert_null(err);
    dv_store_close(closer->fixture->store, set_closed, closer->fixture);
    dv_store_write(closer->fixture->store, &closer->late, &change, 1);
    closer->fixture->store = NULL;
}

static void closing_finishes_what_is_queued(void **state)
{
    struct fixture *fixture = *state;
    struct crowd *crowd;

    must_open(fixture);
    crowd = start_crowd(fixture, 64, 1);
    dv_store_close(fixture->store, set_closed, fixture);
    fixture->store = NULL;
    assert_int_equal(crowd->n_done, 0);
    run_until(fixture, was_closed, fixture);
    assert_int_equal(crowd->n_done, 64);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(crowd->clients[i].code, DV_OK);
    assert_null(find_file(fixture, "-wal"));
    free(crowd);
    must_open(fixture);
    assert_non_null(load_rows(fixture, PODS));
    assert_int_equal(fixture->text.n, 10 * 6 + 54 * 7); /* "7-1=x ", "63-1=x " */
}

static void a_callback_may_close_the_store_and_late_writes_are_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct closer closer = {
        .write = {.done = on_first_done}, .late = {.done = on_late}, .fixture = fixture};
    const struct dv_store_change change = PUT(PODS, "first", "1");

    must_open(fixture);
    dv_store_write(fixture->store, &closer.write, &change, 1);
    run_until(fixture, was_closed, fixture);
    assert_int_equal(closer.n_late, 1);
    assert_int_equal(closer.late_code, DV_CANCELLED);
    must_open(fixture);
    assert_string_equal(load_rows(fixture, PODS), "first=1 ");
}

static void a_store_works_on_a_loop_whose_clock_stands_still(void **state)
{
    struct fixture *fixture = *state;
    struct dv_loop *loop = fixture->loop;
    struct dv_clock_virtual clock;

    dv_clock_virtual_init(&clock);
    fixture->loop = dv_loop_new(&clock.clock, &fixture->err);
    assert_non_null(fixture->loop);
    must_open(fixture);
    must_put(fixture, PODS, "a", "1");
    close_store(fixture);
    dv_loop_free(fixture->loop);
    fixture->loop = loop;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_are_done_once_in_order_on_the_loops_thread, start,
                                        end),
        cmocka_unit_test_setup_teardown(writes_of_one_turn_share_a_commit, start, end),
        cmocka_unit_test_setup_teardown(writers_that_go_on_and_on_share_commits, start, end),
        cmocka_unit_test_setup_teardown(changes_of_a_set_apply_in_their_order, start, end),
        cmocka_unit_test_setup_teardown(an_empty_set_is_done_after_what_came_before, start, end),
        cmocka_unit_test_setup_teardown(a_prefix_deletes_what_begins_with_it, start, end),
        cmocka_unit_test_setup_teardown(keys_and_values_of_any_bytes_come_back, start, end),
        cmocka_unit_test_setup_teardown(keys_and_values_out_of_bounds_are_refused_and_named, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_full_queue_pushes_back_and_recovers, start, end),
        cmocka_unit_test_setup_teardown(closing_finishes_what_is_queued, start, end),
        cmocka_unit_test_setup_teardown(a_store_works_on_a_loop_whose_clock_stands_still, start,
                                        end),
        cmocka_unit_test_setup_teardown(
            a_callback_may_close_the_store_and_late_writes_are_cancelled, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
