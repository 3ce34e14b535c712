#include "store/tests/test_store_crash.h"

#include "support/dvtest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "loop/loop.h"
#include "store/store.h"
#include "store/tests/test_disk.h"
#include "store/tests/test_store_fixture.h"

/* ---- kill -9 ---- */

#define N_ROUNDS 50
#define KILL_VALUE_BYTES 300u
#define KILL_AFTER_MS_MAX 25

/* The child: this program again. It tells on its standard output, set by set, what is durable. */
static void tell(uint64_t n)
{
    if (write(1, &n, sizeof(n)) != sizeof(n))
        _exit(3);
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)set_aside;
    _exit(4);
}

static int run_child(const char *path, const char *first)
{
    static const char *const names[] = {[PODS] = "pods", [CLAIMS] = "claims"};
    static const struct dv_store_schema schema = {.tables = names, .n_tables = 2};
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    struct crash_load load = {
        .last = UINT64_MAX, .value_bytes = KILL_VALUE_BYTES, .acknowledged = tell};
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);

    if (!loop || !dv_str_to_u64(dv_str_from_c(first), &load.next))
        return 1;
    load.store = dv_store_open(loop, dv_str_from_c(path), &options, &err);
    if (!load.store) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    crash_start(&load);
    dv_loop_run(loop); /* until we are killed */
    return 5;
}

static pid_t start_child(struct fixture *fixture, uint64_t first, int *out)
{
    char number[24];
    int fds[2];
    pid_t child;

    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)first);
    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0) {
        (void)dup2(fds[1], 1);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl("/proc/self/exe", "test_store_crash", fixture->path, number, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(close(fds[1]), 0);
    *out = fds[0];
    return child;
}

/* The last that the child told, all of it read. */
static uint64_t last_told(int fd, uint64_t last)
{
    uint64_t n;

    while (read(fd, &n, sizeof(n)) == sizeof(n)) {
        assert_int_equal(n, last + 1); /* in the order of submission */
        last = n;
    }
    assert_int_equal(close(fd), 0);
    return last;
}

static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&pause, NULL);
}

static void nothing_acknowledged_is_lost_and_nothing_is_half_there_after_kill_9(void **state)
{
    struct fixture *fixture = *state;
    uint64_t last = 0;

    must_open(fixture);
    close_store(fixture);
    srandom((unsigned)time(NULL));
    for (int round = 0; round < N_ROUNDS; round++) {
        uint64_t told;
        uint64_t first;
        int status;
        int out;
        pid_t child = start_child(fixture, last + 1, &out);

        /* From the first acknowledgement on, so that rounds differ in what is cut off; some are
         * killed while they open. */
        if (round % 5 != 0 && read(out, &first, sizeof(first)) == sizeof(first))
            assert_int_equal(first, ++last);
        sleep_ms(random() % KILL_AFTER_MS_MAX);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status)); /* else it has failed by itself */
        told = last_told(out, last);
        must_open(fixture);
        last = crash_check(fixture, KILL_VALUE_BYTES);
        assert_in_range(last, told, told + CRASH_N_CLIENTS);
        close_store(fixture);
    }
    print_message("%d kills, %llu sets acknowledged, none lost, none half applied\n", N_ROUNDS,
                  (unsigned long long)last);
    assert_true(last > N_ROUNDS);
}

/* ---- power cuts ---- */

#define N_CUTS 200
#define POWER_N_SETS 1600u
#define POWER_VALUE_BYTES 3000u

static bool is_over(void *ctx)
{
    return ((struct crash_load *)ctx)->n_busy == 0;
}

static void nothing_acknowledged_is_lost_when_the_power_fails(void **state)
{
    struct fixture *fixture = *state;
    struct crash_load load = {.next = 1,
                              .last = POWER_N_SETS,
                              .value_bytes = POWER_VALUE_BYTES,
                              .acknowledged = disk_mark};
    struct dv_store_stats stats;
    unsigned seed = (unsigned)time(NULL);
    size_t n_unsynced = 0;

    must_open(fixture);
    load.store = fixture->store;
    disk_record(fixture->path);
    crash_start(&load);
    run_until(fixture, is_over, &load);
    dv_store_get_stats(fixture->store, &stats);
    assert_true(stats.n_checkpoints > 1);
    close_store(fixture);
    (void)strncat(fixture->path, "-cut", sizeof(fixture->path) - strlen(fixture->path) - 1);
    for (unsigned i = 0; i < N_CUTS; i++) {
        uint64_t at = (uint64_t)rand_r(&seed) % disk_n_recorded();
        uint64_t told = disk_make_image(fixture->path, at, i);
        uint64_t last;

        must_open(fixture);
        last = crash_check(fixture, POWER_VALUE_BYTES);
        assert_in_range(last, told, told + CRASH_N_CLIENTS);
        n_unsynced += last > told;
        close_store(fixture);
    }
    print_message("%d cuts in %llu writes and syncs; in %zu more was there than acknowledged\n",
                  N_CUTS, (unsigned long long)disk_n_recorded(), n_unsynced);
}

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            nothing_acknowledged_is_lost_and_nothing_is_half_there_after_kill_9, start_disk,
            end_disk),
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_when_the_power_fails,
                                        start_disk, end_disk),
    };

    if (argc == 3)
        return run_child(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
