/* What an observer of both sides of a connection is told. */
#include "support/dvtest.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/defs.h"
#include "grpc/grpc.h"
#include "grpc/tests/test_grpc_fixture.h"

#define SEEN_BYTES_MAX 65536u

struct watcher {
    struct dv_grpc_observer observer;
    struct dv_buf seen[2]; /* of what we call, of what we serve */
    uint64_t calls[2];     /* their ids */
};

static void on_event(struct dv_grpc_observer *observer, const struct dv_grpc_event *event)
{
    static const char *const kinds[] = {
        "connected", "connect-failed", "disconnected", "call", "message", "end", "refused"};
    struct watcher *watcher = DV_CONTAINER(observer, struct watcher, observer);
    struct dv_buf *seen = &watcher->seen[event->is_served];

    dv_buf_printf(seen, "%s", kinds[event->kind]);
    if (event->method.n > 0)
        dv_buf_printf(seen, " %.*s", DV_FMT(event->method));
    if (event->message.p)
        dv_buf_printf(seen, " %s%.*s", event->is_sent ? ">" : "<", DV_FMT(event->message));
    if (event->kind == DV_GRPC_CALL && event->timeout_ms != DV_NO_DEADLINE)
        dv_buf_printf(seen, " %llums", (unsigned long long)event->timeout_ms);
    if (event->kind == DV_GRPC_END && !event->status)
        dv_buf_add_c(seen, " OK");
    if (event->status)
        dv_buf_printf(seen, " %s", dv_code_name(event->status->code));
    dv_buf_add_c(seen, "\n");
    if (event->kind == DV_GRPC_CONNECTED) {
        assert_int_equal(event->peer.pid, getpid());
        assert_int_not_equal(event->connection, 0);
        assert_true(event->path.n > 0);
    }
    if (event->kind == DV_GRPC_CALL)
        watcher->calls[event->is_served] = event->call;
    else if (event->call != 0)
        assert_int_equal(watcher->calls[event->is_served], event->call);
    assert_str(event->name, event->is_served ? "test" : "test-peer");
}

static void watch(struct watcher *watcher, struct fixture *fixture)
{
    *watcher = (struct watcher){.observer = {on_event}};
    dv_buf_init(&watcher->seen[0], SEEN_BYTES_MAX);
    dv_buf_init(&watcher->seen[1], SEEN_BYTES_MAX);
    fixture->observer = &watcher->observer;
}

static void unwatch(struct watcher *watcher)
{
    dv_buf_fini(&watcher->seen[0]);
    dv_buf_fini(&watcher->seen[1]);
}

static void run(struct fixture *fixture, const char *method, const char *text)
{
    struct probe probe = {.call = {.is_stream = true}};

    probe_start(&probe, fixture, method, text, 5000);
    wait_done(fixture, &probe);
    probe_fini(&probe);
}

/* What both sides have seen is taken apart, because their events may come in either order. */
static void both_sides_tell_all_of_a_call(void **state)
{
    struct fixture *fixture = *state;
    struct watcher watcher;

    watch(&watcher, fixture);
    fixture_serve(fixture);
    fixture_connect(fixture, false);
    wait_state(fixture, DV_CHANNEL_READY);
    run(fixture, TEST_ECHO, "hello");
    run(fixture, TEST_WATCH, "x");
    run(fixture, TEST_FAIL, "bad");
    run(fixture, "/test.Service/Nothing", "?");
    fixture_close_channel(fixture);
    wait_connections(fixture, 0);
    assert_str(dv_buf_str(&watcher.seen[0]), "connected\n"
                                             "call /test.Service/Echo >hello 5000ms\n"
                                             "message /test.Service/Echo <hello\n"
                                             "end /test.Service/Echo OK\n"
                                             "call /test.Service/Watch >x 5000ms\n"
                                             "message /test.Service/Watch <x\n"
                                             "message /test.Service/Watch <x\n"
                                             "message /test.Service/Watch <x\n"
                                             "end /test.Service/Watch OK\n"
                                             "call /test.Service/Fail >bad 5000ms\n"
                                             "end /test.Service/Fail NOT_FOUND\n"
                                             "call /test.Service/Nothing >? 5000ms\n"
                                             "end /test.Service/Nothing UNIMPLEMENTED\n"
                                             "disconnected CANCELLED\n");
    assert_str(dv_buf_str(&watcher.seen[1]), "connected\n"
                                             "call /test.Service/Echo 5000ms\n"
                                             "message /test.Service/Echo <hello\n"
                                             "message /test.Service/Echo >hello\n"
                                             "end /test.Service/Echo OK\n"
                                             "call /test.Service/Watch 5000ms\n"
                                             "message /test.Service/Watch <x\n"
                                             "message /test.Service/Watch >x\n"
                                             "message /test.Service/Watch >x\n"
                                             "message /test.Service/Watch >x\n"
                                             "end /test.Service/Watch OK\n"
                                             "call /test.Service/Fail 5000ms\n"
                                             "message /test.Service/Fail <bad\n"
                                             "end /test.Service/Fail NOT_FOUND\n"
                                             "call /test.Service/Nothing 5000ms\n"
                                             "end /test.Service/Nothing UNIMPLEMENTED\n"
                                             "refused UNIMPLEMENTED\n"
                                             "disconnected UNAVAILABLE\n");
    fixture_stop_serving(fixture, 0);
    unwatch(&watcher);
}

static void attempts_that_fail_are_told(void **state)
{
    struct fixture *fixture = *state;
    struct watcher watcher;

    watch(&watcher, fixture);
    fixture_connect(fixture, true);
    wait_state(fixture, DV_CHANNEL_LOST);
    run(fixture, TEST_ECHO, "hello");
    assert_str(dv_buf_str(&watcher.seen[0]), "connect-failed NOT_FOUND\n"
                                             "call /test.Service/Echo >hello 5000ms\n"
                                             "end /test.Service/Echo UNAVAILABLE\n");
    fixture_close_channel(fixture);
    settle(fixture);
    unwatch(&watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_sides_tell_all_of_a_call, fixture_start, fixture_end),
        cmocka_unit_test_setup_teardown(attempts_that_fail_are_told, fixture_start, fixture_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
