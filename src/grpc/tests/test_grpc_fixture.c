#include "grpc/tests/test_grpc_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "http2/http2.h"
#include "support/dvtest.h"
#include "support/lines.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 10000u

/* ---- the server's handlers ---- */

static void note_call(struct fixture *fixture, struct dv_server_call *call)
{
    fixture->peer = dv_server_call_peer(call);
    fixture->server_deadline_ms = dv_server_call_deadline_ms(call);
}

static void handle_echo(void *ctx, struct dv_server_call *call, dv_str request)
{
    note_call(ctx, call);
    dv_server_call_reply(call, dv_h2_msg_copy(request));
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct fixture *fixture = ctx;

    assert_true(dv_server_call_is_cancelled(call));
    fixture->n_cancelled++;
    if (fixture->finishes_on_cancel) {
        dv_server_call_finish(call, NULL);
        fixture->held = NULL;
    }
}

static void handle_hold(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct fixture *fixture = ctx;

    (void)request;
    note_call(fixture, call);
    dv_server_call_on_cancel(call, on_cancelled, fixture);
    fixture->held = call;
    fixture->n_held++;
}

static void handle_watch(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_h2_msg *msg = dv_h2_msg_copy(request);
    struct dv_err err;

    note_call(ctx, call);
    for (int i = 0; i < 3; i++)
        assert_ok(dv_server_call_send(call, msg, &err), &err);
    dv_h2_msg_unref(msg);
    dv_server_call_finish(call, NULL);
}

static void handle_fail(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_err err;

    note_call(ctx, call);
    (void)dv_fail(&err, DV_NOT_FOUND, "%.*s", DV_FMT(request));
    dv_server_call_finish(call, &err);
}

static void on_complaint(void *ctx, const struct dv_peer *peer, const struct dv_err *err)
{
    struct fixture *fixture = ctx;

    assert_int_equal(peer->pid, getpid());
    dv_buf_printf(&fixture->complaints, "%s %s;", dv_code_name(err->code), err->msg);
}

static void on_remade(void *ctx, const struct dv_err *err)
{
    struct fixture *fixture = ctx;

    if (err) {
        fixture->n_remade_in_vain++;
        fixture->remade = *err;
    } else {
        fixture->n_remade++;
    }
}

void fixture_serve(struct fixture *fixture)
{
    static const struct dv_method methods[] = {
        {TEST_ECHO,  handle_echo },
        {TEST_HOLD,  handle_hold },
        {TEST_WATCH, handle_watch},
        {TEST_FAIL,  handle_fail },
    };
    const struct dv_service service = {methods, DV_COUNT(methods), fixture};
    struct dv_server_options options = {
        .name = DV_STR("test"),
        .mode = 0600,
        .services = &service,
        .n_services = 1,
        .connections_max = fixture->connections_max,
        .complaint = on_complaint,
        .remade = fixture->keeps_file ? on_remade : NULL,
        .ctx = fixture,
        .observer = fixture->observer,
    };
    struct dv_err err;

    fixture->server = dv_server_open(fixture->loop, dv_str_from_c(fixture->path), &options, &err);
    assert_non_null(fixture->server);
}

static void on_server_closed(void *ctx)
{
    ((struct fixture *)ctx)->n_servers_closed++;
}

void fixture_stop_serving(struct fixture *fixture, uint64_t grace_ms)
{
    dv_server_close(fixture->server, grace_ms, on_server_closed, fixture);
    fixture->server = NULL;
}

/* ---- the channel ---- */

static void on_changed(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    static const char *const names[] = {
        [DV_CHANNEL_CONNECTING] = "connecting",
        [DV_CHANNEL_READY] = "ready",
        [DV_CHANNEL_FAILING] = "failing",
        [DV_CHANNEL_LOST] = "lost",
    };
    struct fixture *fixture = ctx;

    assert_true(err || state != DV_CHANNEL_FAILING);
    dv_buf_printf(&fixture->states, "%s ", names[state]);
}

void fixture_connect(struct fixture *fixture, bool connects_once)
{
    struct dv_channel_options options = {
        .name = DV_STR("test-peer"),
        .connects_once = connects_once,
        .changed = on_changed,
        .ctx = fixture,
        .observer = fixture->observer,
    };
    struct dv_err err;

    fixture->channel = dv_channel_open(fixture->loop, dv_str_from_c(fixture->path), &options, &err);
    assert_non_null(fixture->channel);
}

static void on_channel_closed(void *ctx)
{
    ((struct fixture *)ctx)->n_channels_closed++;
}

void fixture_close_channel(struct fixture *fixture)
{
    dv_channel_close(fixture->channel, on_channel_closed, fixture);
    fixture->channel = NULL;
}

/* ---- life ---- */

int fixture_start(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct dv_err err;

    assert_non_null(fixture);
    dv_buf_init(&fixture->complaints, 1u << 20);
    dv_buf_init(&fixture->states, 1u << 20);
    dv_buf_init(&fixture->log, 16u << 20);
    lines_keep(&fixture->log, DV_LOG_DEBUG);
    dv_clock_virtual_init(&fixture->clock);
    fixture->loop = dv_loop_new(&fixture->clock.clock, &err);
    assert_non_null(fixture->loop);
    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/dv-grpc-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/s.sock", fixture->dir);
    *state = fixture;
    return 0;
}

int fixture_end(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->channel)
        fixture_close_channel(fixture);
    if (fixture->server)
        fixture_stop_serving(fixture, 0);
    settle(fixture);
    if (fixture->held)
        dv_server_call_finish(fixture->held, NULL);
    advance(fixture, 1);
    dv_loop_free(fixture->loop);
    dv_buf_fini(&fixture->complaints);
    dv_buf_fini(&fixture->states);
    lines_end(&fixture->log);
    (void)unlink(fixture->path); /* gone, as a rule */
    assert_int_equal(rmdir(fixture->dir), 0);
    free(fixture);
    return 0;
}

/* ---- calls ---- */

static void on_message(struct dv_call *call, dv_str message)
{
    struct probe *probe = DV_CONTAINER(call, struct probe, call);

    assert_int_equal(probe->n_done, 0);
    dv_buf_add(&probe->got, message);
    dv_buf_add_char(&probe->got, ';');
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct probe *probe = DV_CONTAINER(call, struct probe, call);

    probe->n_done++;
    assert_int_equal(probe->n_done, 1);
    if (err)
        probe->err = *err;
    if (probe->cancels)
        dv_call_cancel(&probe->cancels->call);
    if (probe->starts)
        probe_start(probe->starts, probe->fixture, TEST_ECHO, "next", 1000000);
    if (probe->closes_channel)
        fixture_close_channel(probe->fixture);
}

void probe_start(struct probe *probe, struct fixture *fixture, const char *method, const char *text,
                 uint64_t timeout_ms)
{
    probe->fixture = fixture;
    dv_buf_init(&probe->got, 64u << 20);
    probe->call.method = method;
    probe->call.message = on_message;
    probe->call.done = on_done;
    probe->call.deadline_ms =
        timeout_ms == DV_NO_DEADLINE ? DV_NO_DEADLINE : dv_loop_now_ms(fixture->loop) + timeout_ms;
    dv_call_start(fixture->channel, &probe->call, dv_h2_msg_copy(dv_str_from_c(text)));
    assert_int_equal(probe->n_done, 0); /* never before the start has returned */
}

void probe_fini(struct probe *probe)
{
    dv_buf_fini(&probe->got);
}

/* ---- waiting ---- */

struct wait {
    struct fixture *fixture;
    const struct probe *probe;
    enum dv_channel_state state;
    int number;
    const char *text;
};

static void wait_until(struct fixture *fixture, bool (*is_met)(void *ctx), struct wait *wait)
{
    wait->fixture = fixture;
    if (!dv_loop_run_until(fixture->loop, is_met, wait, PATIENCE_MS))
        fail_msg("waited in vain; complaints: %s; log: %s", dv_buf_c(&fixture->complaints),
                 dv_buf_c(&fixture->log));
}

static bool is_done(void *ctx)
{
    return ((struct wait *)ctx)->probe->n_done > 0;
}

void wait_done(struct fixture *fixture, struct probe *probe)
{
    wait_until(fixture, is_done, &(struct wait){.probe = probe});
}

static bool is_in_state(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_channel_state(wait->fixture->channel) == wait->state;
}

void wait_state(struct fixture *fixture, enum dv_channel_state state)
{
    wait_until(fixture, is_in_state, &(struct wait){.state = state});
}

static bool is_held(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->fixture->n_held >= wait->number;
}

void wait_held(struct fixture *fixture, int n_held)
{
    wait_until(fixture, is_held, &(struct wait){.number = n_held});
}

static bool is_cancelled(void *ctx)
{
    const struct wait *wait = ctx;

    return wait->fixture->n_cancelled >= wait->number;
}

void wait_cancelled(struct fixture *fixture, int n_cancelled)
{
    wait_until(fixture, is_cancelled, &(struct wait){.number = n_cancelled});
}

static bool has_complaint(void *ctx)
{
    const struct wait *wait = ctx;
    dv_str all = dv_buf_str(&wait->fixture->complaints);

    return dv_str_find(all, dv_str_from_c(wait->text)) < all.n;
}

void wait_complaint(struct fixture *fixture, const char *text)
{
    wait_until(fixture, has_complaint, &(struct wait){.text = text});
}

static bool has_connections(void *ctx)
{
    const struct wait *wait = ctx;

    return dv_server_n_connections(wait->fixture->server) == (size_t)wait->number;
}

void wait_connections(struct fixture *fixture, size_t n)
{
    wait_until(fixture, has_connections, &(struct wait){.number = (int)n});
}

void advance(struct fixture *fixture, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&fixture->clock, ms);
    settle(fixture);
}
