#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../measure.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "davit_peer.h"
#include "pb/pb.h"

/* How long running calls may go on after SIGTERM. */
#define GRACE_MS 1000u

struct server {
    struct dv_loop *loop;
    struct dv_server *server;
    struct dv_signal *signal;
    DavitTest__Counts counts;
    uint8_t *pattern; /* grows to the largest reply asked for */
    size_t n_pattern;
};

/* A Unary or Watch call that runs; in the call's own arena. */
struct running {
    struct server *server;
    struct dv_server_call *call;
    struct dv_timer timer;
    const DavitTest__Ask *ask;
    bool is_watch;
    bool
        waits_for_room; /* the client is slow: the next answer goes out when it has read this one */
    uint32_t n_sent;
};

static void end(struct running *run, const struct dv_err *err)
{
    dv_timer_cancel(&run->timer);
    run->server->counts.open--;
    dv_server_call_finish(run->call, err);
}

static void on_cancel(void *ctx, struct dv_server_call *call)
{
    struct running *run = ctx;

    (void)call;
    run->server->counts.cancelled++;
    end(run, NULL);
}

static struct dv_h2_msg *make_answer(struct running *run)
{
    struct server *server = run->server;
    const DavitTest__Ask *ask = run->ask;
    DavitTest__Answer answer = DAVIT_TEST__ANSWER__INIT;

    answer.index = run->n_sent;
    answer.had_deadline = dv_server_call_deadline_ms(run->call) != DV_NO_DEADLINE;
    answer.payload = ask->payload;
    if (ask->reply_bytes > 0) {
        if (ask->reply_bytes > server->n_pattern) {
            free(server->pattern);
            server->pattern = peer_pattern(ask->reply_bytes);
            server->n_pattern = ask->reply_bytes;
        }
        answer.payload = (ProtobufCBinaryData){ask->reply_bytes, server->pattern};
    }
    return peer_encode(&answer.base);
}

static void finish(struct running *run)
{
    struct dv_err err;

    if (run->ask->code == 0) {
        end(run, NULL);
        return;
    }
    (void)dv_fail(&err, (enum dv_code)run->ask->code, "%s", run->ask->message);
    end(run, &err);
}

static void on_timer(struct dv_timer *timer);

static void schedule(struct running *run)
{
    dv_timer_start(&run->timer, run->server->loop,
                   dv_loop_now_ms(run->server->loop) + run->ask->delay_ms, on_timer);
}

/* Everything that has been sent has gone out. */
static void on_room(void *ctx, struct dv_server_call *call)
{
    struct running *run = ctx;

    (void)call;
    if (!run->waits_for_room)
        return;
    run->waits_for_room = false;
    schedule(run);
}

static void answer_watch(struct running *run)
{
    struct dv_h2_msg *msg;
    struct dv_err err;
    bool is_sent;

    if (run->ask->count > 0 && run->n_sent == run->ask->count) {
        finish(run);
        return;
    }
    msg = make_answer(run);
    is_sent = dv_server_call_send(run->call, msg, &err);
    dv_h2_msg_unref(msg);
    if (!is_sent) {
        end(run, &err);
        return;
    }
    run->n_sent++;
    if (run->ask->count == 0 && run->ask->delay_ms == 0)
        return;                 /* one answer, then silence until it is cancelled */
    run->waits_for_room = true; /* the next one when this one is out */
}

static void on_timer(struct dv_timer *timer)
{
    struct running *run = DV_CONTAINER(timer, struct running, timer);
    struct dv_server_call *call = run->call;

    if (run->is_watch) {
        answer_watch(run);
    } else if (run->ask->code != 0) {
        finish(run);
    } else {
        struct dv_h2_msg *msg = make_answer(run);

        run->server->counts.open--;
        dv_server_call_reply(call, msg);
    }
}

static void begin(struct server *server, struct dv_server_call *call, dv_str request, bool is_watch)
{
    struct dv_arena *arena = dv_server_call_arena(call);
    struct dv_err err;
    const DavitTest__Ask *ask = dv_pb_decode(&davit_test__ask__descriptor, request, arena, &err);
    struct running *run;

    if (!ask) {
        dv_server_call_finish(call, &err);
        return;
    }
    server->counts.calls++;
    server->counts.open++;
    run = DV_NEW(arena, struct running);
    run->server = server;
    run->call = call;
    run->ask = ask;
    run->is_watch = is_watch;
    dv_server_call_on_cancel(call, on_cancel, run);
    if (is_watch)
        dv_server_call_on_drained(call, on_room, run);
    if (ask->delay_ms > 0)
        schedule(run);
    else
        on_timer(&run->timer);
}

static void handle_unary(void *ctx, struct dv_server_call *call, dv_str request)
{
    begin(ctx, call, request, false);
}

static void handle_watch(void *ctx, struct dv_server_call *call, dv_str request)
{
    begin(ctx, call, request, true);
}

static void handle_seen(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct server *server = ctx;

    (void)request;
    server->counts.cpu_us = measure_cpu_us();
    server->counts.rss_bytes = measure_rss_bytes();
    dv_server_call_reply(call, peer_encode(&server->counts.base));
}

static void on_complaint(void *ctx, const struct dv_peer *peer, const struct dv_err *err)
{
    (void)ctx;
    dv_log(DV_LOG_WARN, "peer: refused", DV_F_I64("pid", peer->pid), DV_F_CODE(err), DV_F_ERR(err));
}

static void on_server_closed(void *ctx)
{
    struct server *server = ctx;

    dv_loop_stop(server->loop);
}

static void on_term(void *ctx, int signum)
{
    struct server *server = ctx;

    (void)signum;
    dv_signal_close(server->signal, NULL, NULL);
    dv_server_close(server->server, GRACE_MS, on_server_closed, server);
}

int run_server(dv_str socket, int argc, char **argv)
{
    static const struct dv_method methods[] = {
        {METHOD_UNARY, handle_unary},
        {METHOD_WATCH, handle_watch},
        {METHOD_SEEN,  handle_seen },
    };
    struct server server = {.counts = DAVIT_TEST__COUNTS__INIT};
    const struct dv_service service = {methods, DV_COUNT(methods), &server};
    struct dv_server_options options = {
        .name = DV_STR("peer"),
        .mode = 0600,
        .services = &service,
        .n_services = 1,
        .message_bytes_max = MESSAGE_BYTES_MAX,
        .complaint = on_complaint,
    };
    struct dv_err err;

    (void)argc;
    (void)argv;
    server.loop = dv_loop_new(dv_clock_real(), &err);
    if (server.loop)
        server.server = dv_server_open(server.loop, socket, &options, &err);
    if (server.server)
        server.signal = dv_signal_open(server.loop, SIGTERM, on_term, &server, &err);
    if (!server.signal) {
        (void)fprintf(stderr, "davit-peer: %s\n", err.msg);
        return 1;
    }
    (void)puts("ready");
    (void)fflush(stdout); /* a reader that is gone does not concern the server */
    dv_loop_run(server.loop);
    dv_loop_free(server.loop);
    free(server.pattern);
    return 0;
}
