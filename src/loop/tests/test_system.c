#include "support/dvtest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"

struct fixture {
    struct dv_loop *loop;
    struct dv_watch *watch;
    struct dv_buf seen; /* "+name " added, "-name " removed, "~name " changed, "gone " */
    size_t want;
    bool closes_watch;
    char dir[64];
    int n_closed;
    int signum;
};

static int start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct dv_err err;

    assert_non_null(fixture);
    fixture->loop = dv_loop_new(dv_clock_real(), &err);
    dv_buf_init(&fixture->seen, 1u << 20);
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/dv-watch-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    *state = fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->watch)
        dv_watch_close(fixture->watch, NULL, NULL);
    dv_loop_free(fixture->loop);
    dv_buf_fini(&fixture->seen);
    (void)rmdir(fixture->dir); /* one test removes it itself */
    free(fixture);
    return 0;
}

static void count_closed(void *ctx)
{
    (*(int *)ctx)++;
}

static void on_event(void *ctx, const struct dv_watch_event *event)
{
    static const char *const marks[] = {
        [DV_WATCH_ADDED] = "+",       [DV_WATCH_REMOVED] = "-",         [DV_WATCH_CHANGED] = "~",
        [DV_WATCH_DIR_GONE] = "gone", [DV_WATCH_OVERFLOW] = "overflow",
    };
    struct fixture *fixture = ctx;

    dv_buf_printf(&fixture->seen, "%s%.*s%s ", marks[event->kind], DV_FMT(event->name),
                  event->is_dir ? "/" : "");
    if (event->kind != DV_WATCH_OVERFLOW)
        assert_str(event->dir, fixture->dir);
    if (fixture->closes_watch) {
        dv_watch_close(fixture->watch, count_closed, &fixture->n_closed);
        fixture->watch = NULL;
    }
}

static void open_watch(struct fixture *fixture)
{
    struct dv_err err;

    fixture->watch = dv_watch_open(fixture->loop, on_event, fixture, &err);
    assert_non_null(fixture->watch);
    assert_ok(dv_watch_add(fixture->watch, dv_str_from_c(fixture->dir), &err), &err);
    assert_ok(dv_watch_add(fixture->watch, dv_str_from_c(fixture->dir), &err), &err);
}

static const char *in_dir(struct fixture *fixture, const char *name)
{
    static char path[2][100];
    static int turn;

    turn = !turn;
    (void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", fixture->dir, name);
    return path[turn];
}

static void touch(struct fixture *fixture, const char *name)
{
    int fd = open(in_dir(fixture, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static bool seen_enough(void *ctx)
{
    const struct fixture *fixture = ctx;

    return fixture->seen.n >= fixture->want;
}

static void expect_events(struct fixture *fixture, const char *want)
{
    fixture->want = strlen(want);
    if (!dv_loop_run_until(fixture->loop, seen_enough, fixture, 5000))
        fail_msg("seen only %s", dv_buf_c(&fixture->seen));
    assert_str(dv_buf_str(&fixture->seen), want);
    dv_buf_clear(&fixture->seen);
}

static void a_watch_reports_what_happens_in_a_directory(void **state)
{
    struct fixture *fixture = *state;

    open_watch(fixture);
    touch(fixture, "a");
    assert_int_equal(mkdir(in_dir(fixture, "sub"), 0700), 0);
    assert_int_equal(rename(in_dir(fixture, "a"), in_dir(fixture, "b")), 0);
    assert_int_equal(unlink(in_dir(fixture, "b")), 0);
    assert_int_equal(rmdir(in_dir(fixture, "sub")), 0);
    expect_events(fixture, "+a ~a +sub/ -a +b -b -sub/ ");
}

static void writes_are_told_before_the_file_is_closed(void **state)
{
    struct fixture *fixture = *state;
    struct dv_err err;
    int fd;

    touch(fixture, "a");
    fd = open(in_dir(fixture, "a"), O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    fixture->watch = dv_watch_open(fixture->loop, on_event, fixture, &err);
    assert_non_null(fixture->watch);
    assert_ok(dv_watch_add_writes(fixture->watch, dv_str_from_c(fixture->dir), &err), &err);
    assert_int_equal(write(fd, "x", 1), 1);
    expect_events(fixture, "~a ");
    assert_int_equal(close(fd), 0);
    expect_events(fixture, "~a ");
}

static void a_removed_directory_is_told_and_can_be_watched_again(void **state)
{
    struct fixture *fixture = *state;
    struct dv_err err;

    open_watch(fixture);
    assert_int_equal(rmdir(fixture->dir), 0);
    expect_events(fixture, "gone ");
    assert_false(dv_watch_add(fixture->watch, dv_str_from_c(fixture->dir), &err));
    assert_err(&err, DV_NOT_FOUND, fixture->dir);
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
    assert_ok(dv_watch_add(fixture->watch, dv_str_from_c(fixture->dir), &err), &err);
    touch(fixture, "x");
    expect_events(fixture, "+x ~x ");
    assert_int_equal(unlink(in_dir(fixture, "x")), 0);
    dv_watch_remove(fixture->watch, dv_str_from_c(fixture->dir));
    dv_watch_remove(fixture->watch, dv_str_from_c(fixture->dir)); /* absent: nothing happens */
}

static void draining_tells_at_once_what_has_happened(void **state)
{
    struct fixture *fixture = *state;
    char name[8];

    open_watch(fixture);
    dv_watch_drain(fixture->watch); /* nothing yet */
    assert_int_equal(fixture->seen.n, 0);
    touch(fixture, "a");
    assert_int_equal(rename(in_dir(fixture, "a"), in_dir(fixture, "b")), 0);
    dv_watch_drain(fixture->watch);
    assert_str(dv_buf_str(&fixture->seen), "+a ~a -a +b ");
    dv_buf_clear(&fixture->seen);
    for (int i = 0; i < 2000; i++) { /* more than one read takes */
        (void)snprintf(name, sizeof(name), "%d", i);
        touch(fixture, name);
    }
    dv_watch_drain(fixture->watch);
    assert_true(dv_str_ends_with(dv_buf_str(&fixture->seen), DV_STR("+1999 ~1999 ")));
    dv_buf_clear(&fixture->seen);
    assert_int_equal(unlink(in_dir(fixture, "b")), 0); /* and the loop goes on as before */
    expect_events(fixture, "-b ");
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(unlink(in_dir(fixture, name)), 0);
    }
    fixture->closes_watch = true;
    dv_watch_drain(fixture->watch); /* closed by the first, and no more is read */
    assert_str(dv_buf_str(&fixture->seen), "-0 ");
}

static bool watch_closed(void *ctx)
{
    return ((struct fixture *)ctx)->n_closed > 0;
}

static void a_watch_may_be_closed_by_its_own_callback(void **state)
{
    struct fixture *fixture = *state;

    open_watch(fixture);
    fixture->closes_watch = true;
    touch(fixture, "a"); /* two events, of which only the first may arrive */
    assert_int_equal(unlink(in_dir(fixture, "a")), 0);
    assert_true(dv_loop_run_until(fixture->loop, watch_closed, fixture, 5000));
    assert_str(dv_buf_str(&fixture->seen), "+a ");
}

static bool seen_overflow(void *ctx)
{
    const struct fixture *fixture = ctx;

    return dv_str_find(dv_buf_str(&fixture->seen), DV_STR("overflow")) < fixture->seen.n;
}

static void lost_events_are_told(void **state)
{
    struct fixture *fixture = *state;
    char name[16];

    open_watch(fixture);
    /* More than fs.inotify.max_queued_events of any usual setting (16384). */
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof(name), "%d", i % 7);
        touch(fixture, name);
        assert_int_equal(unlink(in_dir(fixture, name)), 0);
    }
    assert_true(dv_loop_run_until(fixture->loop, seen_overflow, fixture, 10000));
}

static void on_signal(void *ctx, int signum)
{
    ((struct fixture *)ctx)->signum = signum;
}

static bool signalled(void *ctx)
{
    return ((struct fixture *)ctx)->signum != 0;
}

static void signals_arrive_on_the_loop(void **state)
{
    struct fixture *fixture = *state;
    struct dv_err err;
    struct dv_signal *handle = dv_signal_open(fixture->loop, SIGUSR1, on_signal, fixture, &err);

    assert_non_null(handle);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(fixture->signum, 0);
    assert_true(dv_loop_run_until(fixture->loop, signalled, fixture, 5000));
    assert_int_equal(fixture->signum, SIGUSR1);
    dv_signal_close(handle, NULL, NULL);
    assert_null(dv_signal_open(fixture->loop, SIGKILL, on_signal, fixture, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "signal 9");
}

struct pipe_end {
    int fd;
    unsigned events;
};

static void on_ready(void *ctx, unsigned events)
{
    ((struct pipe_end *)ctx)->events |= events;
}

static bool is_ready(void *ctx)
{
    return ((struct pipe_end *)ctx)->events != 0;
}

static void readiness_of_a_foreign_descriptor_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct pipe_end end_of = {0};
    struct dv_poll *poll;
    struct dv_err err;
    int fds[2];

    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    poll = dv_poll_open(fixture->loop, fds[0], on_ready, &end_of, &err);
    assert_non_null(poll);
    dv_poll_set(poll, DV_POLL_READ);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_true(dv_loop_run_until(fixture->loop, is_ready, &end_of, 5000));
    assert_int_equal(end_of.events, DV_POLL_READ);
    dv_poll_set(poll, 0);
    dv_poll_close(poll, NULL, NULL);
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_null(dv_poll_open(fixture->loop, -1, on_ready, &end_of, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_watch_reports_what_happens_in_a_directory, start, end),
        cmocka_unit_test_setup_teardown(writes_are_told_before_the_file_is_closed, start, end),
        cmocka_unit_test_setup_teardown(a_removed_directory_is_told_and_can_be_watched_again, start,
                                        end),
        cmocka_unit_test_setup_teardown(draining_tells_at_once_what_has_happened, start, end),
        cmocka_unit_test_setup_teardown(a_watch_may_be_closed_by_its_own_callback, start, end),
        cmocka_unit_test_setup_teardown(lost_events_are_told, start, end),
        cmocka_unit_test_setup_teardown(signals_arrive_on_the_loop, start, end),
        cmocka_unit_test_setup_teardown(readiness_of_a_foreign_descriptor_is_told, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
