/* server.c - the service on one completion queue. The C API has no timers, so the wait for the
 * next event ends when the earliest of our own is due. */
#include "ccore_peer.h"

#include "measure.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Calls that may arrive in one turn without waiting for the next. */
#define N_PENDING 16
#define STOP_GRACE_NS 1000000000u

enum method { UNARY, WATCH, SEEN, N_METHODS, UNKNOWN = N_METHODS };

static const char *const paths[N_METHODS] = {
    [UNARY] = "/davit.test.Peer/Unary",
    [WATCH] = "/davit.test.Peer/Watch",
    [SEEN] = "/davit.test.Peer/Seen",
};

struct server {
    grpc_server *grpc;
    grpc_completion_queue *cq;
    void *methods[N_METHODS];
    struct call *timers; /* doubly linked ring, earliest first */
    uint64_t stop_at_ns; /* when the calls that are still open get cancelled; 0: not stopping */
    bool is_stopped;
    struct tag on_stopped;
    uint64_t n_calls, n_cancelled, n_open;
};

struct call {
    struct server *server;
    enum method method;
    grpc_call *grpc;
    grpc_call_details details; /* of an unknown method */
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_byte_buffer *request;
    Davit__Test__Ask *ask;
    uint32_t index;
    bool is_open;                /* counted as such */
    bool has_started;            /* initial metadata was sent */
    bool has_finished;           /* status was sent */
    bool is_sending, is_closing; /* operations in flight */
    int was_cancelled;
    struct tag on_new, on_sent, on_closed;
    uint64_t due_ns; /* 0: no timer */
    struct call *next, *prev;
};

static void request_call(struct server *server, enum method method);
static void step(struct call *call);

/* ---------------------------------------------------------------------------------------- timers
 */

static void timer_stop(struct call *call)
{
    struct server *server = call->server;

    if (!call->due_ns)
        return;
    call->due_ns = 0;
    call->next->prev = call->prev;
    call->prev->next = call->next;
    if (server->timers == call)
        server->timers = call->next == call ? NULL : call->next;
}

/* From the latest backwards: delays are mostly alike, so the place is mostly the end. */
static void timer_start(struct call *call, uint32_t ms)
{
    struct server *server = call->server;
    struct call *after;

    call->due_ns = measure_now_ns() + (uint64_t)ms * 1000000u;
    if (!server->timers) {
        server->timers = call->next = call->prev = call;
        return;
    }
    after = server->timers->prev;
    while (after->due_ns > call->due_ns && after != server->timers)
        after = after->prev;
    if (after->due_ns > call->due_ns) { /* earlier than all */
        after = after->prev;
        server->timers = call;
    }
    call->prev = after;
    call->next = after->next;
    call->prev->next = call->next->prev = call;
}

static void run_timers(struct server *server)
{
    uint64_t now = measure_now_ns();

    while (server->timers && server->timers->due_ns <= now) {
        struct call *call = server->timers;

        timer_stop(call);
        step(call);
    }
    if (server->stop_at_ns && server->stop_at_ns <= now)
        grpc_server_cancel_all_calls(server->grpc);
}

/* ----------------------------------------------------------------------------------------- calls
 */

static void call_ended(struct call *call)
{
    if (call->is_open)
        call->server->n_open--;
    call->is_open = false;
}

static void free_if_done(struct call *call)
{
    if (call->is_sending || call->is_closing)
        return;
    timer_stop(call);
    call_ended(call);
    if (call->ask)
        davit__test__ask__free_unpacked(call->ask, NULL);
    if (call->grpc)
        grpc_call_unref(call->grpc);
    grpc_byte_buffer_destroy(call->request);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    free(call);
}

/* What goes out in one batch; the parts that have gone out before are left away. */
struct output {
    const ProtobufCMessage *message; /* NULL: none */
    bool has_status;
    uint32_t code;
    const char *text;
};

static void send_output(struct call *call, const struct output *output)
{
    grpc_op ops[4] = {0};
    size_t n_ops = 0;
    grpc_byte_buffer *message = output->message ? encode(output->message) : NULL;
    grpc_slice text = grpc_slice_from_copied_string(output->text ? output->text : "");

    if (!call->has_started)
        ops[n_ops++].op = GRPC_OP_SEND_INITIAL_METADATA;
    if (message) {
        ops[n_ops].op = GRPC_OP_SEND_MESSAGE;
        ops[n_ops++].data.send_message.send_message = message;
    }
    if (output->has_status) {
        ops[n_ops].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
        ops[n_ops].data.send_status_from_server.status = (grpc_status_code)output->code;
        ops[n_ops++].data.send_status_from_server.status_details = &text;
        call_ended(call);
    }
    if (output->has_status && !call->is_closing) { /* one event for all: cheaper */
        ops[n_ops].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
        ops[n_ops++].data.recv_close_on_server.cancelled = &call->was_cancelled;
    }
    call->has_started = true;
    call->has_finished = output->has_status;
    call->is_sending = true;
    if (grpc_call_start_batch(call->grpc, ops, n_ops, &call->on_sent, NULL) != GRPC_CALL_OK)
        abort(); /* a mistake of ours: batches that do not fit together */
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(text);
}

static void send_status(struct call *call, uint32_t code, const char *text)
{
    send_output(call, &(struct output){.has_status = true, .code = code, .text = text});
}

static void send_answer(struct call *call)
{
    Davit__Test__Answer answer = DAVIT__TEST__ANSWER__INIT;
    const Davit__Test__Ask *ask = call->ask;

    answer.payload = ask->payload;
    if (ask->reply_bytes > 0)
        answer.payload =
            (ProtobufCBinaryData){.len = ask->reply_bytes, .data = pattern(ask->reply_bytes)};
    answer.index = call->index++;
    answer.had_deadline =
        gpr_time_cmp(call->deadline, gpr_inf_future(call->deadline.clock_type)) != 0;
    send_output(call, &(struct output){&answer.base, call->method == UNARY, 0, NULL});
}

static void send_counts(struct call *call)
{
    const struct server *server = call->server;
    Davit__Test__Counts counts = DAVIT__TEST__COUNTS__INIT;

    counts.calls = server->n_calls;
    counts.cancelled = server->n_cancelled;
    counts.open = server->n_open;
    counts.cpu_us = measure_cpu_us();
    counts.rss_bytes = measure_rss_bytes();
    send_output(call, &(struct output){&counts.base, true, 0, NULL});
}

/* The delay is over: the next answer, or the end. */
static void step(struct call *call)
{
    const Davit__Test__Ask *ask = call->ask;

    if (call->method == UNARY && ask->code == 0)
        send_answer(call);
    else if (call->method == WATCH && (ask->count == 0 || call->index < ask->count))
        send_answer(call);
    else
        send_status(call, ask->code, ask->message);
}

static void on_sent(struct tag *tag, bool ok)
{
    struct call *call = FROM_TAG(tag, struct call, on_sent);
    const Davit__Test__Ask *ask = call->ask;

    call->is_sending = false;
    if (!ok || call->was_cancelled || call->has_finished) {
        free_if_done(call);
        return;
    }
    if (ask->count == 0 && ask->delay_ms == 0)
        return; /* silent until cancelled */
    if (ask->delay_ms > 0 && (ask->count == 0 || call->index < ask->count))
        timer_start(call, ask->delay_ms);
    else
        step(call);
}

static void on_closed(struct tag *tag, bool ok)
{
    struct call *call = FROM_TAG(tag, struct call, on_closed);

    (void)ok; /* this operation always succeeds */
    call->is_closing = false;
    if (call->was_cancelled && !call->has_finished) {
        call->server->n_cancelled++;
        timer_stop(call);
        call_ended(call);
    }
    free_if_done(call);
}

/* Learns of a cancellation while the call runs. */
static void watch_close(struct call *call)
{
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};

    op.data.recv_close_on_server.cancelled = &call->was_cancelled;
    call->is_closing = true;
    if (grpc_call_start_batch(call->grpc, &op, 1, &call->on_closed, NULL) != GRPC_CALL_OK)
        abort();
}

static void begin(struct call *call)
{
    struct server *server = call->server;

    if (call->method == UNKNOWN) {
        send_status(call, GRPC_STATUS_UNIMPLEMENTED, "unknown method");
        return;
    }
    if (call->method == SEEN) {
        send_counts(call);
        return;
    }
    server->n_calls++;
    server->n_open++;
    call->is_open = true;
    call->ask = (Davit__Test__Ask *)decode(&davit__test__ask__descriptor, call->request);
    if (!call->ask) {
        send_status(call, GRPC_STATUS_INTERNAL, "not an Ask");
        return;
    }
    if (call->ask->delay_ms > 0 || call->method == WATCH)
        watch_close(call);
    if (call->ask->delay_ms > 0)
        timer_start(call, call->ask->delay_ms);
    else
        step(call);
}

static void on_new(struct tag *tag, bool ok)
{
    struct call *call = FROM_TAG(tag, struct call, on_new);
    struct server *server = call->server;

    if (!ok) { /* SIGTERM */
        if (!server->stop_at_ns)
            server->stop_at_ns = measure_now_ns() + STOP_GRACE_NS;
        free_if_done(call);
        return;
    }
    request_call(server, call->method);
    begin(call);
}

static void request_call(struct server *server, enum method method)
{
    struct call *call = calloc(1, sizeof *call);
    grpc_call_error result;

    if (!call)
        abort();
    call->server = server;
    call->method = method;
    call->on_new.done = on_new;
    call->on_sent.done = on_sent;
    call->on_closed.done = on_closed;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    if (method == UNKNOWN)
        result = grpc_server_request_call(server->grpc, &call->grpc, &call->details,
                                          &call->metadata, server->cq, server->cq, &call->on_new);
    else
        result = grpc_server_request_registered_call(
            server->grpc, server->methods[method], &call->grpc, &call->deadline, &call->metadata,
            &call->request, server->cq, server->cq, &call->on_new);
    if (result != GRPC_CALL_OK)
        abort();
}

/* ---------------------------------------------------------------------------------------- server
 */

static void on_stopped(struct tag *tag, bool ok)
{
    (void)ok;
    FROM_TAG(tag, struct server, on_stopped)->is_stopped = true;
}

/* SIGTERM cannot interrupt the queue's wait, so a thread waits for it. */
static void *wait_for_stop(void *arg)
{
    struct server *server = arg;
    sigset_t stop;
    int number;

    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigwait(&stop, &number);
    grpc_server_shutdown_and_notify(server->grpc, server->cq, &server->on_stopped);
    return NULL;
}

static gpr_timespec next_wait(const struct server *server)
{
    uint64_t at = server->stop_at_ns;
    uint64_t now = measure_now_ns();

    if (server->timers && (!at || server->timers->due_ns < at))
        at = server->timers->due_ns;
    if (!at)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_nanos(at > now ? (int64_t)(at - now) : 0, GPR_TIMESPAN));
}

static void run_queue(struct server *server)
{
    while (!server->is_stopped) {
        grpc_event event = grpc_completion_queue_next(server->cq, next_wait(server), NULL);

        if (event.type == GRPC_OP_COMPLETE) {
            struct tag *tag = event.tag;

            tag->done(tag, event.success);
        }
        if (server->timers || server->stop_at_ns)
            run_timers(server);
    }
}

static bool start_server(struct server *server, const char *path)
{
    grpc_arg limit = {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH};
    grpc_channel_args args = {1, &limit};
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    char address[128];
    bool is_bound;

    limit.value.integer = MESSAGE_BYTES_MAX;
    server->cq = grpc_completion_queue_create_for_next(NULL);
    server->grpc = grpc_server_create(&args, NULL);
    grpc_server_register_completion_queue(server->grpc, server->cq, NULL);
    for (enum method method = 0; method < N_METHODS; method++)
        server->methods[method] = grpc_server_register_method(
            server->grpc, paths[method], NULL, GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    (void)unlink(path); /* stale from an earlier run; gone is what we want */
    (void)snprintf(address, sizeof address, "unix:%s", path);
    is_bound = grpc_server_add_http2_port(server->grpc, address, credentials) != 0;
    grpc_server_credentials_release(credentials);
    if (!is_bound)
        return false;
    grpc_server_start(server->grpc);
    for (enum method method = 0; method <= UNKNOWN; method++)
        for (int i = 0; i < N_PENDING; i++)
            request_call(server, method);
    return true;
}

int run_server(const char *path)
{
    struct server server = {.on_stopped.done = on_stopped};
    pthread_t stopper;

    if (!start_server(&server, path)) {
        (void)fprintf(stderr, "ccore-peer: cannot listen on %s\n", path);
        return 1;
    }
    if (pthread_create(&stopper, NULL, wait_for_stop, &server) != 0)
        abort();
    (void)puts("ready");
    (void)fflush(stdout);
    run_queue(&server);

    (void)pthread_join(stopper, NULL);
    grpc_completion_queue_shutdown(server.cq);
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(server.cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct tag *tag = event.tag;

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            break;
        tag->done(tag, event.success);
    }
    grpc_server_destroy(server.grpc);
    grpc_completion_queue_destroy(server.cq);
    return 0;
}
