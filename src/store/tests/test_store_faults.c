#include "support/dvtest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/tests/test_disk.h"
#include "store/tests/test_store_fixture.h"

static int start_disk(void **state)
{
    disk_reset();
    return start(state);
}

static int end_disk(void **state)
{
    disk_reset();
    return end(state);
}

/* ---- when is it durable ---- */

struct writer {
    struct dv_store_write write;
    int n_done;
    enum dv_code code;
    uint64_t n_syncs; /* when it was done */
};

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct writer *writer = DV_CONTAINER(write, struct writer, write);

    writer->n_done++;
    writer->code = err ? err->code : DV_OK;
    writer->n_syncs = disk_n_syncs();
}

static bool was_written(void *ctx)
{
    return ((struct writer *)ctx)->n_done > 0;
}

static void start_write(struct fixture *fixture, struct writer *writer, const char *key)
{
    const struct dv_store_change change = {DV_STORE_PUT, PODS, dv_str_from_c(key),
                                           DV_STR_INIT("1")};

    *writer = (struct writer){.write = {.done = on_written}};
    dv_store_write(fixture->store, &writer->write, &change, 1);
}

struct turn {
    struct dv_task task;
    bool is_over;
};

static void on_turn(struct dv_task *task)
{
    DV_CONTAINER(task, struct turn, task)->is_over = true;
}

static bool turn_is_over(void *ctx)
{
    return ((struct turn *)ctx)->is_over;
}

/* All tasks that are posted by now have run. */
static void end_turn(struct fixture *fixture)
{
    struct turn turn = {0};

    dv_task_post(&turn.task, fixture->loop, on_turn);
    run_until(fixture, turn_is_over, &turn);
}

static void done_comes_after_a_sync(void **state)
{
    struct fixture *fixture = *state;
    struct writer writer;
    char key[] = "a";

    must_open(fixture);
    for (int i = 0; i < 20; i++) {
        uint64_t n_before = disk_n_syncs();

        key[0] = (char)('a' + i); /* what is there already needs no sync */
        start_write(fixture, &writer, key);
        run_until(fixture, was_written, &writer);
        assert_true(writer.n_syncs > n_before);
    }
}

static void done_does_not_come_before_the_sync_has_returned(void **state)
{
    struct fixture *fixture = *state;
    struct writer writer;

    must_open(fixture);
    disk_hold();
    start_write(fixture, &writer, "a");
    end_turn(fixture);
    disk_wait_held();
    for (int i = 0; i < 10; i++) {
        end_turn(fixture);
        assert_int_equal(writer.n_done, 0);
    }
    disk_release();
    run_until(fixture, was_written, &writer);
    assert_int_equal(writer.code, DV_OK);
}

static void writes_that_arrive_during_a_commit_share_the_next(void **state)
{
    struct fixture *fixture = *state;
    struct writer writers[11];
    struct dv_store_stats stats;
    char key[] = "a";

    must_open(fixture);
    disk_hold();
    for (size_t i = 0; i < DV_COUNT(writers); i++) {
        key[0] = (char)('a' + i);
        start_write(fixture, &writers[i], key);
        end_turn(fixture); /* each in a turn of its own */
        if (i == 0)
            disk_wait_held();
    }
    disk_release();
    run_until(fixture, was_written, &writers[10]);
    dv_store_get_stats(fixture->store, &stats);
    assert_int_equal(stats.n_commits, 2);
    assert_int_equal(stats.n_writes, 11);
    assert_int_equal(stats.commits_by_writes[0], 1);
    assert_int_equal(stats.commits_by_writes[4], 1); /* up to 16 */
    for (size_t i = 0; i < DV_COUNT(writers); i++)
        assert_int_equal(writers[i].n_done, 1);
}

/* ---- every call fails in turn ---- */

#define N_SETS 5u
#define SET_ROWS 10u
#define ROW_BYTES 90000u

static char row_bytes[SET_ROWS][ROW_BYTES]; /* some 220 pages a set, so that checkpoints happen */

static enum dv_code write_large(struct fixture *fixture, size_t set)
{
    struct dv_store_change changes[SET_ROWS + 1];
    char keys[SET_ROWS][16];
    char number[8];

    for (size_t i = 0; i < SET_ROWS; i++) {
        size_t key_n = (size_t)snprintf(keys[i], sizeof(keys[i]), "row-%zu-%zu", set, i);

        changes[i] = (struct dv_store_change){
            DV_STORE_PUT, PODS, {keys[i], key_n},
              make_value(set, ROW_BYTES, row_bytes[i])
        };
    }
    changes[SET_ROWS] = (struct dv_store_change){
        DV_STORE_PUT,
        CLAIMS,
        DV_STR_INIT("last"),
        {number, (size_t)snprintf(number, sizeof(number), "%zu", set)}
    };
    return write_set(fixture, changes, SET_ROWS + 1);
}

/* The sets that were acknowledged, whole, and no other. */
static void check_sets(struct fixture *fixture, const bool has_set[N_SETS])
{
    char expected[32] = "";
    dv_str rows;

    for (size_t set = 0; set < N_SETS; set++)
        if (has_set[set])
            (void)snprintf(expected, sizeof(expected), "last=%zu ", set);
    assert_string_equal(rows_of(fixture, CLAIMS), expected);
    assert_non_null(rows_of(fixture, PODS));
    rows = dv_buf_str(&fixture->text);
    for (size_t set = 0; set < N_SETS; set++)
        for (size_t i = 0; has_set[set] && i < SET_ROWS; i++) {
            char key[32];
            size_t n = (size_t)snprintf(key, sizeof(key), "row-%zu-%zu=", set, i);

            assert_true(dv_str_starts_with(rows, (dv_str){key, n}));
            assert_memory_equal(rows.p + n, make_value(set, ROW_BYTES, row_bytes[0]).p, ROW_BYTES);
            rows = dv_str_slice(rows, n + ROW_BYTES + 1, rows.n);
        }
    assert_str(rows, "");
}

/* Opens, writes and checks with a disk that fails as ordered; then with one that works. */
static void run_script(struct fixture *fixture, enum dv_code expected)
{
    bool has_set[N_SETS] = {false};

    if (open_store(fixture)) {
        for (size_t set = 0; set < N_SETS; set++) {
            enum dv_code code = write_large(fixture, set);

            has_set[set] = code == DV_OK;
            if (code != DV_OK)
                assert_err(&fixture->err, expected, fixture->path);
        }
    } else {
        assert_err(&fixture->err, expected, fixture->path);
    }
    disk_fail(0, 0, 0);
    if (!fixture->store)
        must_open(fixture);
    assert_null(find_file(fixture, ".damaged"));
    check_sets(fixture, has_set); /* as committed last */
    has_set[N_SETS - 1] = true;
    assert_ok(write_large(fixture, N_SETS - 1) == DV_OK, &fixture->err);
    reopen(fixture);
    assert_null(dv_store_set_aside(fixture->store));
    check_sets(fixture, has_set);
    close_store(fixture);
    assert_int_equal(unlink(fixture->path), 0);
}

static void fail_each_call(struct fixture *fixture, uint64_t n_failing, int errnum,
                           enum dv_code expected)
{
    uint64_t nth = 1;

    do { /* one after the other through opening and the first set, then in larger steps */
        disk_reset();
        disk_fail(nth, n_failing, errnum);
        run_script(fixture, expected);
        nth += nth < 25 ? 1 : 211;
    } while (disk_n_calls() > nth);
    assert_true(nth > 2000); /* through several checkpoints */
}

static void a_disk_that_is_full_once_costs_the_writes_of_that_commit(void **state)
{
    fail_each_call(*state, 1, ENOSPC, DV_RESOURCE_EXHAUSTED);
}

static void a_disk_that_stays_full_costs_writes_until_there_is_space(void **state)
{
    fail_each_call(*state, UINT32_MAX, ENOSPC, DV_RESOURCE_EXHAUSTED);
}

static void a_disk_that_fails_once_costs_the_writes_of_that_commit(void **state)
{
    fail_each_call(*state, 1, EIO, DV_DATA_LOSS);
}

static void checkpoints_that_fail_cost_no_write_until_the_log_is_too_large(void **state)
{
    struct fixture *fixture = *state;
    struct dv_store_stats stats;
    char *value = calloc(1, 4u << 20);
    const struct dv_store_change change = {
        DV_STORE_PUT, PODS, DV_STR_INIT("a"), {value, 4u << 20}
    };
    int n_writes = 0;

    assert_non_null(value);
    must_open(fixture);
    disk_fail_file(fixture->path, EIO);
    while (n_writes < 50 && write_set(fixture, &change, 1) == DV_OK)
        memset(value, ++n_writes, 4u << 20);
    assert_in_range(n_writes, 30, 40); /* 128 MiB */
    assert_err(&fixture->err, DV_DATA_LOSS, "checkpoint");
    dv_store_get_stats(fixture->store, &stats);
    assert_true(stats.n_failed_checkpoints > 30);
    assert_int_equal(stats.n_checkpoints, 0);
    assert_true(stats.wal_bytes > 128u << 20);
    disk_reset();
    assert_int_equal(write_set(fixture, &change, 1), DV_OK);
    close_store(fixture);
    free(value);
}

static void the_log_stays_small(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_store_change forget = {DV_STORE_DELETE_PREFIX, PODS, DV_STR_INIT("row-"),
                                           DV_STR_INIT("")};
    struct dv_store_stats stats;
    size_t largest = 0;

    must_open(fixture);
    for (size_t i = 0; i < 50; i++) {
        size_t size;

        assert_int_equal(write_large(fixture, i), DV_OK);
        assert_int_equal(write_set(fixture, &forget, 1), DV_OK);
        size = file_size(find_file(fixture, "-wal"));
        largest = size > largest ? size : largest;
    }
    dv_store_get_stats(fixture->store, &stats);
    assert_in_range(stats.n_checkpoints, 5, 50);
    assert_true(largest < 8u << 20); /* 1,000 pages, and the last set */
}

/* ---- full disks of other makes ---- */

static void fill_up(struct fixture *fixture, enum dv_code expected)
{
    bool has_set[N_SETS] = {false};
    size_t n_sets = 0;

    while (n_sets < N_SETS && write_large(fixture, n_sets) == DV_OK)
        has_set[n_sets++] = true;
    assert_in_range(n_sets, 1, N_SETS - 1);
    assert_err(&fixture->err, expected, fixture->path);
    check_sets(fixture, has_set);
    assert_int_not_equal(write_large(fixture, n_sets), DV_OK);
    check_sets(fixture, has_set);
}

static void a_limit_on_the_size_of_files_is_a_full_disk(void **state)
{
    struct fixture *fixture = *state;
    struct rlimit before;
    struct rlimit small;

    must_open(fixture);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 3u << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fill_up(fixture, DV_RESOURCE_EXHAUSTED); /* and no signal that ends us */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(write_large(fixture, 0), DV_OK);
}

static void a_full_file_system_is_told_and_recovers(void **state)
{
    struct fixture *fixture = *state;
    char ballast[sizeof(fixture->path) + 16];
    int fd;

    if (mount("none", fixture->dir, "tmpfs", 0, "size=8m") != 0) {
        print_message("not run: needs the right to mount\n");
        skip();
    }
    (void)snprintf(ballast, sizeof(ballast), "%s/ballast", fixture->dir);
    fd = open(ballast, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    must_open(fixture);
    assert_int_equal(posix_fallocate(fd, 0, 5 << 20), 0);
    assert_int_equal(close(fd), 0);
    fill_up(fixture, DV_RESOURCE_EXHAUSTED);
    close_store(fixture);
    must_open(fixture); /* a full disk keeps nobody from reading */
    assert_int_equal(unlink(ballast), 0);
    assert_int_equal(write_large(fixture, 0), DV_OK);
    close_store(fixture);
    assert_int_equal(umount(fixture->dir), 0);
}

/* ---- what is submitted while a damaged file is being replaced ---- */

/* Starts a write that reads all rows, and so finds a page that is damaged. */
static void start_sweep(struct fixture *fixture, struct writer *writer)
{
    const struct dv_store_change change = {.kind = DV_STORE_DELETE_PREFIX, .table = PODS};

    *writer = (struct writer){.write = {.done = on_written}};
    dv_store_write(fixture->store, &writer->write, &change, 1);
}

static struct writer rebuild_writer;

static void rebuild(struct fixture *fixture)
{
    start_write(fixture, &rebuild_writer, "rebuilt");
}

static void scribble(const char *path)
{
    char junk[4096];
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    memset(junk, 0x5a, sizeof(junk));
    assert_true(fd >= 0);
    for (off_t page = 1; page < 700; page++)
        assert_int_equal(pwrite(fd, junk, sizeof(junk), page * 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
}

static void a_write_from_before_the_news_does_not_get_into_the_new_file(void **state)
{
    struct fixture *fixture = *state;
    struct writer sweep;
    struct writer during;

    must_open(fixture);
    for (size_t i = 0; i < N_SETS; i++) /* more than SQLite keeps in memory */
        assert_int_equal(write_large(fixture, i), DV_OK);
    reopen(fixture);
    scribble(fixture->path);
    fixture->on_damaged = rebuild;
    disk_hold();
    start_sweep(fixture, &sweep);
    end_turn(fixture);
    disk_wait_held(); /* damage was found, and the new file is being synced */
    start_write(fixture, &during, "during");
    end_turn(fixture);
    disk_release();
    run_until(fixture, was_written, &during);
    assert_int_equal(sweep.n_done, 1);
    assert_int_equal(sweep.code, DV_DATA_LOSS);
    assert_int_equal(during.code, DV_DATA_LOSS);
    run_until(fixture, was_written, &rebuild_writer);
    assert_int_equal(rebuild_writer.code, DV_OK);
    assert_int_equal(fixture->n_damaged, 1);
    assert_string_equal(rows_of(fixture, PODS), "rebuilt=1 ");
}

static void a_damaged_file_is_replaced_when_the_disk_has_space_again(void **state)
{
    struct fixture *fixture = *state;
    struct writer sweep;

    must_open(fixture);
    for (size_t i = 0; i < N_SETS; i++)
        assert_int_equal(write_large(fixture, i), DV_OK);
    reopen(fixture);
    scribble(fixture->path);
    disk_fail(1, UINT32_MAX, ENOSPC);
    start_sweep(fixture, &sweep);
    run_until(fixture, was_written, &sweep);
    assert_int_equal(sweep.code, DV_RESOURCE_EXHAUSTED);
    assert_int_equal(put(fixture, PODS, "a", "1"), DV_RESOURCE_EXHAUSTED);
    assert_err(&fixture->err, DV_RESOURCE_EXHAUSTED, fixture->path);
    assert_int_equal(fixture->n_damaged, 0);
    assert_null(find_file(fixture, ".damaged"));
    disk_reset();
    assert_int_equal(put(fixture, PODS, "a", "1"), DV_DATA_LOSS); /* brings the news */
    assert_int_equal(fixture->n_damaged, 1);
    assert_non_null(find_file(fixture, ".damaged"));
    must_put(fixture, PODS, "b", "1");
    assert_string_equal(rows_of(fixture, PODS), "b=1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(done_comes_after_a_sync, start_disk, end_disk),
        cmocka_unit_test_setup_teardown(done_does_not_come_before_the_sync_has_returned, start_disk,
                                        end_disk),
        cmocka_unit_test_setup_teardown(writes_that_arrive_during_a_commit_share_the_next,
                                        start_disk, end_disk),
        cmocka_unit_test_setup_teardown(a_disk_that_is_full_once_costs_the_writes_of_that_commit,
                                        start_disk, end_disk),
        cmocka_unit_test_setup_teardown(a_disk_that_stays_full_costs_writes_until_there_is_space,
                                        start_disk, end_disk),
        cmocka_unit_test_setup_teardown(a_disk_that_fails_once_costs_the_writes_of_that_commit,
                                        start_disk, end_disk),
        cmocka_unit_test_setup_teardown(
            checkpoints_that_fail_cost_no_write_until_the_log_is_too_large, start_disk, end_disk),
        cmocka_unit_test_setup_teardown(the_log_stays_small, start_disk, end_disk),
        cmocka_unit_test_setup_teardown(a_limit_on_the_size_of_files_is_a_full_disk, start_disk,
                                        end_disk),
        cmocka_unit_test_setup_teardown(a_full_file_system_is_told_and_recovers, start_disk,
                                        end_disk),
        cmocka_unit_test_setup_teardown(a_write_from_before_the_news_does_not_get_into_the_new_file,
                                        start_disk, end_disk),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_replaced_when_the_disk_has_space_again,
                                        start_disk, end_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
