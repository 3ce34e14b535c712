/* test_peer.c - a server for clients on other stacks: tests/e2e/test_rest.py.
 *
 *     test_rest_peer serve     prints "port N" and "ready", and serves until SIGTERM
 *
 * Without an argument it opens and closes, as a unit test. What it serves:
 *
 *     /echo            the body, and the request's X-Echo field
 *     /late?ms=N       an answer after that time
 *     /ticks?n=N       N lines, one every 5 ms
 *     /blocks?n=N      N blocks of 10,000 bytes, as fast as they are read
 *     /metrics         how often the others were asked for */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rest/rest.h"

#define TICK_MS 5u
#define PAGE_BYTES_MAX (1u << 20)

struct peer {
    struct dv_loop *loop;
    struct dv_rest_server *server;
    struct dv_metrics *metrics;
    struct dv_family *calls;
    struct dv_signal *signal;
};

/* An answer that takes its time. */
struct job {
    struct peer *peer;
    struct dv_rest_call *call;
    struct dv_rest_stream stream;
    struct dv_timer timer;
    uint64_t n_left;
};

static uint64_t argument(struct dv_rest_call *call, const struct dv_rest_request *request,
                         dv_str name)
{
    uint64_t number = 0;
    dv_str text;

    if (!dv_rest_query_get(request->query, name, dv_rest_call_arena(call), &text) ||
        !dv_str_to_u64(text, &number))
        return 0;
    return number;
}

/* ---- handlers ---- */

static void handle_echo(struct peer *peer, struct dv_rest_call *call,
                        const struct dv_rest_request *request)
{
    (void)peer;
    dv_rest_call_add_field(call, DV_STR("X-Echo"),
                           dv_rest_request_field(request, DV_STR("x-echo")));
    dv_rest_call_reply(call, 200, request->body);
}

static void on_late(struct dv_timer *timer)
{
    struct job *job = DV_CONTAINER(timer, struct job, timer);

    dv_rest_call_reply(job->call, 200, DV_STR("late"));
    free(job);
}

static void handle_late(struct peer *peer, struct dv_rest_call *call,
                        const struct dv_rest_request *request)
{
    struct job *job = DV_ALLOC(struct job);

    job->call = call;
    dv_timer_start(&job->timer, peer->loop,
                   dv_loop_now_ms(peer->loop) + argument(call, request, DV_STR("ms")), on_late);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct job *job = DV_CONTAINER(stream, struct job, stream);

    (void)err;
    dv_timer_cancel(&job->timer);
    free(job);
}

static void on_tick(struct dv_timer *timer)
{
    struct job *job = DV_CONTAINER(timer, struct job, timer);
    char line[32];
    struct dv_err err;

    (void)snprintf(line, sizeof(line), "tick %u\n", (unsigned)job->n_left);
    if (job->n_left == 0) {
        dv_rest_stream_finish(&job->stream);
        return;
    }
    job->n_left--;
    if (!dv_rest_stream_send(&job->stream, dv_str_from_c(line), &err))
        dv_rest_stream_cancel(&job->stream);
    dv_timer_start(timer, job->peer->loop, dv_loop_now_ms(job->peer->loop) + TICK_MS, on_tick);
}

static void handle_ticks(struct peer *peer, struct dv_rest_call *call,
                         const struct dv_rest_request *request)
{
    struct job *job = DV_ALLOC(struct job);

    job->peer = peer;
    job->stream.ended = on_ended;
    job->n_left = argument(call, request, DV_STR("n"));
    dv_rest_stream_start(&job->stream, call, 200);
    dv_timer_start(&job->timer, peer->loop, dv_loop_now_ms(peer->loop), on_tick);
}

static void on_room(struct dv_rest_stream *stream)
{
    static char block[10000];
    struct job *job = DV_CONTAINER(stream, struct job, stream);
    struct dv_err err;

    memset(block, 'b', sizeof(block));
    if (job->n_left == 0)
        dv_rest_stream_finish(stream);
    else if (!dv_rest_stream_send(stream, (dv_str){block, sizeof(block)}, &err))
        dv_rest_stream_cancel(stream);
    else
        job->n_left--;
}

static void handle_blocks(struct peer *peer, struct dv_rest_call *call,
                          const struct dv_rest_request *request)
{
    struct job *job = DV_ALLOC(struct job);

    job->peer = peer;
    job->stream.room = on_room;
    job->stream.ended = on_ended;
    job->n_left = argument(call, request, DV_STR("n"));
    dv_rest_stream_start(&job->stream, call, 200);
    on_room(&job->stream);
}

static void handle_metrics(struct peer *peer, struct dv_rest_call *call,
                           const struct dv_rest_request *request)
{
    struct dv_buf page;
    struct dv_err err;

    (void)request;
    dv_buf_init(&page, PAGE_BYTES_MAX);
    if (!dv_metrics_print(peer->metrics, &page, &err))
        (void)fprintf(stderr, "%s\n", err.msg);
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR(DV_METRICS_CONTENT_TYPE));
    dv_rest_call_reply_buf(call, 200, &page);
}

static const struct {
    dv_str path;
    void (*handle)(struct peer *peer, struct dv_rest_call *call,
                   const struct dv_rest_request *request);
} routes[] = {
    {DV_STR_INIT("/echo"),    handle_echo   },
    {DV_STR_INIT("/late"),    handle_late   },
    {DV_STR_INIT("/ticks"),   handle_ticks  },
    {DV_STR_INIT("/blocks"),  handle_blocks },
    {DV_STR_INIT("/metrics"), handle_metrics},
};

static void on_request(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct peer *peer = ctx;

    for (size_t i = 0; i < DV_COUNT(routes); i++) {
        if (!dv_str_eq(request->path, routes[i].path))
            continue;
        dv_counter_add(dv_family_counter(peer->calls, &request->path), 1);
        routes[i].handle(peer, call, request);
        return;
    }
    dv_rest_call_reply(call, 404, DV_STR("no such path\n"));
}

static void on_complaint(void *ctx, dv_str client, const struct dv_err *err)
{
    (void)ctx;
    (void)fprintf(stderr, "%.*s: %s\n", DV_FMT(client), err->msg);
}

/* ---- life ---- */

static void on_closed(void *ctx)
{
    struct peer *peer = ctx;

    dv_loop_stop(peer->loop);
}

static void on_term(void *ctx, int signum)
{
    struct peer *peer = ctx;

    (void)signum;
    dv_signal_close(peer->signal, NULL, NULL);
    dv_rest_server_close(peer->server, 100, on_closed, peer);
}

int main(int argc, char **argv)
{
    static const char *const labels[] = {"path"};
    const struct dv_family_spec calls = {
        .name = "peer_calls_total", .help = "Calls served.", .labels = labels, .n_labels = 1};
    struct peer peer = {0};
    struct dv_rest_server_options options = {
        .name = DV_STR("peer"), .handle = on_request, .complaint = on_complaint, .ctx = &peer};
    struct dv_err err;

    peer.loop = dv_loop_new(dv_clock_real(), &err);
    if (!peer.loop)
        return 1;
    peer.metrics = dv_metrics_new();
    peer.calls = dv_metrics_add_counter(peer.metrics, &calls);
    peer.signal = dv_signal_open(peer.loop, SIGTERM, on_term, &peer, &err);
    peer.server = dv_rest_server_open(peer.loop, DV_STR("127.0.0.1:0"), &options, &err);
    if (!peer.signal || !peer.server) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    (void)printf("port %u\nready\n", dv_rest_server_port(peer.server));
    (void)fflush(stdout);
    if (argc < 2 || strcmp(argv[1], "serve") != 0)
        (void)raise(SIGTERM); /* arrives on the loop */
    dv_loop_run(peer.loop);
    dv_loop_free(peer.loop);
    dv_metrics_free(peer.metrics);
    return 0;
}
