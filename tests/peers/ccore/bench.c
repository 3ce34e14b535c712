/* bench.c - the benchmark client on one completion queue. */
#include "ccore_peer.h"

#include "measure.h"

#include <getopt.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 64u

struct bench {
    const char *path;
    const char *mode;
    size_t n_calls;
    size_t n_connections;
    uint32_t request_bytes;
    uint32_t reply_bytes;
    grpc_completion_queue *cq;
};

struct conn {
    struct bench *bench;
    grpc_channel *channel;
    void *unary, *watch, *seen; /* registered methods */
};

/* A call under way. */
struct call {
    struct tag on_done;
    struct conn *conn;
    grpc_call *grpc;
    grpc_byte_buffer *reply;
    grpc_metadata_array headers, trailers;
    grpc_status_code status;
    grpc_slice details;
    uint64_t started_ns;
    struct run *run; /* NULL: not one of a run */
    bool is_done;
};

/* Unary calls, some of them in flight together. */
struct run {
    size_t n_started, n_done, n_calls;
    uint64_t *times;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "ccore-peer: bench: %s\n", what);
    exit(1);
}

static void next_event(struct bench *bench)
{
    grpc_event event =
        grpc_completion_queue_next(bench->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    struct tag *tag = event.tag;

    if (event.type != GRPC_OP_COMPLETE)
        die("the queue ended");
    tag->done(tag, event.success);
}

/* A channel of its own connection: without the argument, equal channels share one. */
static struct conn connect_to(struct bench *bench)
{
    grpc_arg options[] = {
        {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH},
        {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL },
    };
    grpc_channel_args args = {2, options};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    struct conn conn = {.bench = bench};
    char target[128];

    options[0].value.integer = MESSAGE_BYTES_MAX;
    options[1].value.integer = 1;
    (void)snprintf(target, sizeof target, "unix:%s", bench->path);
    conn.channel = grpc_channel_create(target, credentials, &args);
    grpc_channel_credentials_release(credentials);
    conn.unary = grpc_channel_register_call(conn.channel, "/davit.test.Peer/Unary", NULL, NULL);
    conn.watch = grpc_channel_register_call(conn.channel, "/davit.test.Peer/Watch", NULL, NULL);
    conn.seen = grpc_channel_register_call(conn.channel, "/davit.test.Peer/Seen", NULL, NULL);
    return conn;
}

/* Starts everything but the reading of messages; a unary call reads its one in the same batch. */
static void start_call(struct call *call, void *method, const ProtobufCMessage *ask, bool is_unary)
{
    grpc_byte_buffer *request = encode(ask);
    grpc_op ops[6] = {0};

    grpc_metadata_array_init(&call->headers);
    grpc_metadata_array_init(&call->trailers);
    call->reply = NULL;
    call->is_done = false;
    call->started_ns = measure_now_ns();
    call->grpc = grpc_channel_create_registered_call(
        call->conn->channel, NULL, GRPC_PROPAGATE_DEFAULTS, call->conn->bench->cq, method,
        gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = request;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[3].data.recv_status_on_client.trailing_metadata = &call->trailers;
    ops[3].data.recv_status_on_client.status = &call->status;
    ops[3].data.recv_status_on_client.status_details = &call->details;
    ops[4].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[4].data.recv_initial_metadata.recv_initial_metadata = &call->headers;
    ops[5].op = GRPC_OP_RECV_MESSAGE;
    ops[5].data.recv_message.recv_message = &call->reply;
    if (grpc_call_start_batch(call->grpc, ops, is_unary ? 6 : 5, &call->on_done, NULL) !=
        GRPC_CALL_OK)
        die("cannot start a call");
    grpc_byte_buffer_destroy(request);
}

static void end_call(struct call *call)
{
    if (call->status != GRPC_STATUS_OK)
        die("a call failed");
    grpc_metadata_array_destroy(&call->headers);
    grpc_metadata_array_destroy(&call->trailers);
    grpc_slice_unref(call->details);
    grpc_byte_buffer_destroy(call->reply);
    grpc_call_unref(call->grpc);
}

static void on_call_done(struct tag *tag, bool ok)
{
    (void)ok; /* the status tells */
    FROM_TAG(tag, struct call, on_done)->is_done = true;
}

static Davit__Test__Counts ask_seen(struct conn *conn)
{
    struct call call = {.on_done.done = on_call_done, .conn = conn};
    Davit__Test__Empty empty = DAVIT__TEST__EMPTY__INIT;
    Davit__Test__Counts counts, *reply;

    start_call(&call, conn->seen, &empty.base, true);
    while (!call.is_done)
        next_event(conn->bench);
    reply = (Davit__Test__Counts *)decode(&davit__test__counts__descriptor, call.reply);
    if (!reply)
        die("Seen has no answer");
    counts = *reply; /* plain numbers */
    davit__test__counts__free_unpacked(reply, NULL);
    end_call(&call);
    return counts;
}

/* ---------------------------------------------------------------------------------- unary calls */

static void start_unary(struct call *call)
{
    const struct bench *bench = call->conn->bench;
    Davit__Test__Ask ask = DAVIT__TEST__ASK__INIT;

    ask.payload =
        (ProtobufCBinaryData){.len = bench->request_bytes, .data = pattern(bench->request_bytes)};
    ask.reply_bytes = bench->reply_bytes;
    call->run->n_started++;
    start_call(call, call->conn->unary, &ask.base, true);
}

static void on_unary_done(struct tag *tag, bool ok)
{
    struct call *call = FROM_TAG(tag, struct call, on_done);
    struct run *run = call->run;
    Davit__Test__Answer *answer =
        (Davit__Test__Answer *)decode(&davit__test__answer__descriptor, call->reply);

    (void)ok; /* the status tells */
    if (!answer || answer->payload.len != call->conn->bench->reply_bytes)
        die("a call has the wrong answer");
    davit__test__answer__free_unpacked(answer, NULL);
    end_call(call);
    run->times[run->n_done++] = measure_now_ns() - call->started_ns;
    if (run->n_started < run->n_calls)
        start_unary(call);
}

static void run_calls(struct conn *conn, size_t window, size_t n_calls, uint64_t *times)
{
    struct run run = {.n_calls = n_calls, .times = times};
    struct call calls[IN_FLIGHT];

    for (size_t i = 0; i < window && i < n_calls; i++) {
        calls[i] = (struct call){.on_done.done = on_unary_done, .conn = conn, .run = &run};
        start_unary(&calls[i]);
    }
    while (run.n_done < n_calls)
        next_event(conn->bench);
}

static uint64_t *new_times(size_t n)
{
    uint64_t *times = calloc(n, sizeof *times);

    if (!times)
        abort();
    return times;
}

static void bench_unary(struct bench *bench, size_t window)
{
    struct conn conn = connect_to(bench);
    size_t n_warm = bench->n_calls / 10 + 200;
    uint64_t *times = new_times(bench->n_calls + n_warm);
    Davit__Test__Counts before, after;
    uint64_t cpu_us, took_ns;

    run_calls(&conn, window, n_warm, times);
    before = ask_seen(&conn);
    cpu_us = measure_cpu_us();
    took_ns = measure_now_ns();
    run_calls(&conn, window, bench->n_calls, times);
    took_ns = measure_now_ns() - took_ns;
    cpu_us = measure_cpu_us() - cpu_us;
    after = ask_seen(&conn);
    measure_sort(times, bench->n_calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"calls_per_s\": %.0f, "
                 "\"client_cpu_us_per_call\": %.3f, \"server_cpu_us_per_call\": %.3f}\n",
                 measure_percentile_us(times, bench->n_calls, 500),
                 measure_percentile_us(times, bench->n_calls, 990),
                 (double)bench->n_calls * 1e9 / (double)took_ns,
                 (double)cpu_us / (double)bench->n_calls,
                 (double)(after.cpu_us - before.cpu_us) / (double)bench->n_calls);
    free(times);
    grpc_channel_destroy(conn.channel);
}

/* --------------------------------------------------------------------------------------- streams
 */

static void run_stream(struct conn *conn, size_t n_messages)
{
    struct call call = {.on_done.done = on_call_done, .conn = conn};
    Davit__Test__Ask ask = DAVIT__TEST__ASK__INIT;

    ask.count = (uint32_t)n_messages;
    ask.reply_bytes = conn->bench->reply_bytes;
    start_call(&call, conn->watch, &ask.base, false);
    for (size_t n = 0;; n++) {
        struct call message = {.on_done.done = on_call_done};
        grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
        Davit__Test__Answer *answer;

        op.data.recv_message.recv_message = &message.reply;
        if (grpc_call_start_batch(call.grpc, &op, 1, &message.on_done, NULL) != GRPC_CALL_OK)
            die("cannot read a stream");
        while (!message.is_done)
            next_event(conn->bench);
        if (!message.reply && n == n_messages)
            break;
        answer = (Davit__Test__Answer *)decode(&davit__test__answer__descriptor, message.reply);
        if (!answer || answer->payload.len != ask.reply_bytes)
            die("a stream has the wrong answer");
        davit__test__answer__free_unpacked(answer, NULL);
        grpc_byte_buffer_destroy(message.reply);
    }
    while (!call.is_done)
        next_event(conn->bench);
    end_call(&call);
}

static void bench_stream(struct bench *bench)
{
    struct conn conn = connect_to(bench);
    Davit__Test__Counts before, after;
    uint64_t cpu_us, took_ns;

    run_stream(&conn, bench->n_calls / 10 + 5);
    before = ask_seen(&conn);
    cpu_us = measure_cpu_us();
    took_ns = measure_now_ns();
    run_stream(&conn, bench->n_calls);
    took_ns = measure_now_ns() - took_ns;
    cpu_us = measure_cpu_us() - cpu_us;
    after = ask_seen(&conn);
    (void)printf("{\"ms_per_message\": %.4f, \"client_cpu_us_per_message\": %.2f, "
                 "\"server_cpu_us_per_message\": %.2f}\n",
                 (double)took_ns / 1e6 / (double)bench->n_calls,
                 (double)cpu_us / (double)bench->n_calls,
                 (double)(after.cpu_us - before.cpu_us) / (double)bench->n_calls);
    grpc_channel_destroy(conn.channel);
}

/* ----------------------------------------------------------------------------------- connections
 */

static void bench_connect(struct bench *bench)
{
    size_t n_warm = bench->n_calls / 10 + 20;
    uint64_t *times = new_times(n_warm + bench->n_calls);

    for (size_t i = 0; i < n_warm + bench->n_calls; i++) {
        uint64_t started = measure_now_ns();
        struct conn conn = connect_to(bench);
        uint64_t ignored;

        run_calls(&conn, 1, 1, &ignored);
        grpc_channel_destroy(conn.channel);
        times[i] = measure_now_ns() - started;
    }
    measure_sort(times + n_warm, bench->n_calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n",
                 measure_percentile_us(times + n_warm, bench->n_calls, 500),
                 measure_percentile_us(times + n_warm, bench->n_calls, 990));
    free(times);
}

static void bench_idle(struct bench *bench)
{
    struct conn *conns = calloc(bench->n_connections, sizeof *conns);
    Davit__Test__Counts counts;
    uint64_t ignored;

    if (!conns)
        abort();
    for (size_t i = 0; i < bench->n_connections; i++) {
        conns[i] = connect_to(bench);
        run_calls(&conns[i], 1, 1, &ignored);
    }
    counts = ask_seen(&conns[0]);
    (void)printf("{\"client_rss_bytes\": %llu, \"server_rss_bytes\": %llu}\n",
                 (unsigned long long)measure_rss_bytes(), (unsigned long long)counts.rss_bytes);
    for (size_t i = 0; i < bench->n_connections; i++)
        grpc_channel_destroy(conns[i].channel);
    free(conns);
}

static bool run_mode(struct bench *bench)
{
    if (strcmp(bench->mode, "seq") == 0)
        bench_unary(bench, 1);
    else if (strcmp(bench->mode, "inflight") == 0)
        bench_unary(bench, IN_FLIGHT);
    else if (strcmp(bench->mode, "stream500k") == 0)
        bench_stream(bench);
    else if (strcmp(bench->mode, "connect") == 0)
        bench_connect(bench);
    else if (strcmp(bench->mode, "idle") == 0)
        bench_idle(bench);
    else
        return false;
    return true;
}

int run_bench(const char *path, int argc, char **argv)
{
    static const struct option options[] = {
        {"mode",         required_argument, NULL, 'm'},
        {"calls",        required_argument, NULL, 'n'},
        {"size-request", required_argument, NULL, 'q'},
        {"size-reply",   required_argument, NULL, 'r'},
        {"connections",  required_argument, NULL, 'c'},
        {NULL,           0,                 NULL, 0  },
    };
    struct bench bench = {path, "seq", 1000, 1, 339, 0, NULL};
    int option;
    bool is_known;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        unsigned long number = option == 'm' || option == '?' ? 0 : strtoul(optarg, NULL, 10);

        if (option == 'm')
            bench.mode = optarg;
        else if (option == 'n')
            bench.n_calls = number;
        else if (option == 'q')
            bench.request_bytes = (uint32_t)number;
        else if (option == 'r')
            bench.reply_bytes = (uint32_t)number;
        else if (option == 'c')
            bench.n_connections = number;
        else
            return usage();
    }
    if (bench.n_calls == 0 || bench.n_connections == 0)
        return usage();
    if (bench.reply_bytes == 0)
        bench.reply_bytes = strcmp(bench.mode, "stream500k") == 0 ? 500000 : 1603;
    bench.cq = grpc_completion_queue_create_for_next(NULL);
    is_known = run_mode(&bench);
    grpc_completion_queue_shutdown(bench.cq);
    while (grpc_completion_queue_next(bench.cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(bench.cq);
    return is_known ? 0 : usage();
}
