/* The driver itself, as its users see it: only the public header. */
#include "support/dvtest.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "davit/driver.h"

static void allocate(void *ctx, struct davit_call *call,
                     const struct davit_allocate_request *request)
{
    (void)ctx;
    (void)request;
    davit_call_finish(call);
}

struct world {
    struct davit_driver *driver;
    struct davit_poll *poll;
    int fds[2];
    int n_bytes;
    int signum;
};

static int start(void **state)
{
    static struct world world;
    struct davit_error error;

    memset(&world, 0, sizeof(world));
    world.driver = davit_driver_new(&error);
    assert_non_null(world.driver);
    assert_int_equal(pipe(world.fds), 0);
    *state = &world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;

    davit_driver_free(world->driver);
    assert_int_equal(close(world->fds[0]), 0);
    assert_int_equal(close(world->fds[1]), 0);
    return 0;
}

static void on_readable(void *ctx, unsigned events)
{
    struct world *world = ctx;
    char byte;

    assert_int_equal(events, DAVIT_READABLE);
    assert_int_equal(read(world->fds[0], &byte, 1), 1);
    world->n_bytes++;
    if (byte == '.') {
        davit_poll_close(world->poll); /* in its own callback */
        davit_driver_stop(world->driver);
    }
}

static void descriptors_run_on_the_loop(void **state)
{
    struct world *world = *state;
    struct davit_error error;

    world->poll =
        davit_poll_open(world->driver, world->fds[0], DAVIT_READABLE, on_readable, world, &error);
    assert_non_null(world->poll);
    assert_int_equal(write(world->fds[1], "ab.", 3), 3);
    davit_driver_run(world->driver);
    assert_int_equal(world->n_bytes, 3);
    davit_poll_close(NULL);
    assert_null(davit_poll_open(world->driver, -1, DAVIT_READABLE, on_readable, world, &error));
    assert_int_not_equal(error.code, DAVIT_OK);
    assert_non_null(strstr(error.message, "-1"));
}

static void on_writable(void *ctx, unsigned events)
{
    struct world *world = ctx;

    assert_int_equal(events, DAVIT_WRITABLE);
    davit_poll_set(world->poll, 0);
    assert_int_equal(write(world->fds[1], ".", 1), 1);
}

static void what_is_waited_for_can_change(void **state)
{
    struct world *world = *state;
    struct davit_poll *reading =
        davit_poll_open(world->driver, world->fds[0], DAVIT_READABLE, on_readable, world, NULL);

    assert_non_null(reading);
    world->poll = davit_poll_open(world->driver, world->fds[1], 0, on_writable, world, NULL);
    assert_non_null(world->poll);
    davit_poll_set(world->poll, DAVIT_WRITABLE);
    davit_driver_run(world->driver); /* on_readable closes the poll for writing */
    assert_int_equal(world->n_bytes, 1);
    davit_poll_close(reading);
}

static void on_signal(void *ctx, int signum)
{
    struct world *world = ctx;

    world->signum = signum;
    davit_driver_stop(world->driver);
}

static void signals_run_on_the_loop(void **state)
{
    struct world *world = *state;
    struct davit_error error;

    assert_true(davit_driver_on_signal(world->driver, SIGUSR1, on_signal, world, &error));
    assert_false(davit_driver_on_signal(world->driver, SIGKILL, on_signal, world, &error));
    assert_int_equal(raise(SIGUSR1), 0);
    davit_driver_run(world->driver);
    assert_int_equal(world->signum, SIGUSR1);
}

static void what_is_left_open_is_closed_with_the_driver(void **state)
{
    struct davit_device_plugin_options options = {
        .resource = "example.com/tty",
        .socket_dir = "/nonexistent/dir",
        .allocate = allocate,
    };
    struct world *world = *state;

    assert_non_null(
        davit_poll_open(world->driver, world->fds[0], DAVIT_READABLE, on_readable, world, NULL));
    assert_non_null(davit_device_plugin_open(world->driver, &options, NULL));
    davit_driver_free(NULL);
    davit_device_plugin_close(NULL);
}

static void bad_options_are_refused(void **state)
{
    static const struct {
        struct davit_device_plugin_options options;
        const char *text;
    } rows[] = {
        {{.allocate = allocate},                                                "resource name \"\""   },
        {{.resource = "tty", .allocate = allocate},                             "resource name \"tty\""},
        {{.resource = "e.com/x"},                                               "needs an allocate"    },
        {{.resource = "e.com/x", .allocate = allocate, .socket_name = "a/b"},
         "socket name \"a/b\""                                                                         },
        {{.resource = "e.com/x", .allocate = allocate, .register_through = 12},
         "no such way in 0xc"                                                                          },
        {{.resource = "e.com/x",
          .allocate = allocate,
          .register_through = DAVIT_REGISTER_CLASSIC | DAVIT_REGISTER_WATCHER,
          .registry_dir =
              "/a/directory/with/so/long/a/name/that/no/address/of/a/socket/holds/it/at/"
              "all/because/there/are/only/107/bytes"},
         "longer than 107"                                                                             },
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct davit_error error;

        assert_null(davit_device_plugin_open(world->driver, &rows[i].options, &error));
        assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
        if (!strstr(error.message, rows[i].text))
            fail_msg("row %zu: %s", i, error.message);
        assert_null(davit_device_plugin_open(world->driver, &rows[i].options, NULL));
    }
}

static char lines[65536];
static size_t n_lines;

static void keep_line(void *ctx, enum davit_log_level level, const char *line, size_t n)
{
    assert_ptr_equal(ctx, lines);
    assert_true(level <= DAVIT_LOG_INFO);
    assert_true(n > 0 && line[n - 1] == '\n' && n_lines + n < sizeof(lines));
    memcpy(lines + n_lines, line, n);
    n_lines += n;
}

static void stop_at_problem(void *ctx, const struct davit_event *event)
{
    struct world *world = ctx;

    if (event->kind == DAVIT_PROBLEM)
        davit_driver_stop(world->driver);
}

static void the_log_goes_where_it_is_sent(void **state)
{
    struct world *world = *state;
    struct davit_device_plugin_options options = {
        .resource = "example.com/tty",
        .socket_dir = "/nonexistent/dir",
        .allocate = allocate,
        .event = stop_at_problem,
        .ctx = world,
    };

    davit_log_to(DAVIT_LOG_INFO, keep_line, lines);
    assert_non_null(davit_device_plugin_open(world->driver, &options, NULL));
    davit_driver_run(world->driver);
    assert_non_null(strstr(lines, "driver: failed; trying again"));
    assert_non_null(strstr(lines, "resource=example.com/tty"));
    davit_log_to(DAVIT_LOG_ERROR, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define DRIVER_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
        DRIVER_TEST(descriptors_run_on_the_loop),
        DRIVER_TEST(what_is_waited_for_can_change),
        DRIVER_TEST(signals_run_on_the_loop),
        DRIVER_TEST(what_is_left_open_is_closed_with_the_driver),
        DRIVER_TEST(bad_options_are_refused),
        DRIVER_TEST(the_log_goes_where_it_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
