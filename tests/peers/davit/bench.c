#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../measure.h"
#include "base/arena.h"
#include "base/num.h"
#include "davit_peer.h"

#define IN_FLIGHT 64u

struct bench {
    dv_str socket;
    uint64_t calls;
    uint64_t size_request;
    uint64_t size_reply;
    uint64_t connections;
    DavitTest__Ask ask;
};

static void fail(const char *what, const struct dv_err *err)
{
    (void)fprintf(stderr, "davit-peer: bench: %s: %s\n", what, err->msg);
    exit(1);
}

/* What a stretch of work costs on both sides. */
struct cost {
    uint64_t client_us;
    uint64_t server_us;
    uint64_t start_ns;
    uint64_t end_ns;
};

static uint64_t server_cpu_us(struct client *client)
{
    DavitTest__Counts counts;
    struct dv_err err;

    if (!peer_seen(client, &counts, &err))
        fail("seen", &err);
    return counts.cpu_us;
}

static void cost_start(struct cost *cost, struct client *client)
{
    cost->server_us = server_cpu_us(client);
    cost->client_us = measure_cpu_us();
    cost->start_ns = measure_now_ns();
}

static void cost_end(struct cost *cost, struct client *client)
{
    cost->end_ns = measure_now_ns();
    cost->client_us = measure_cpu_us() - cost->client_us;
    cost->server_us = server_cpu_us(client) - cost->server_us;
}

/* Calls that follow each other, several such rows at once. */
struct rows {
    const struct bench *bench;
    struct client *client;
    uint64_t n_wanted;
    uint64_t n_started;
    uint64_t n_done;
    uint64_t *times_ns;
};

static void next_call(struct peer_call *call);

static void start_row(struct peer_call *call)
{
    struct rows *rows = call->ctx;

    rows->n_started++;
    memset(call, 0, sizeof(*call));
    call->ctx = rows;
    call->then = next_call;
    peer_start(call, rows->client, METHOD_UNARY, &rows->bench->ask.base, CALL_TIMEOUT_MS);
}

static void next_call(struct peer_call *call)
{
    struct rows *rows = call->ctx;

    if (call->err.code != DV_OK)
        fail("call", &call->err);
    rows->times_ns[rows->n_done++] = call->end_ns - call->start_ns;
    if (rows->n_started < rows->n_wanted)
        start_row(call);
}

static bool rows_done(void *ctx)
{
    const struct rows *rows = ctx;

    return rows->n_done == rows->n_wanted;
}

static void run_rows(const struct bench *bench, struct client *client, size_t n_rows, uint64_t n,
                     uint64_t *times_ns)
{
    struct rows rows = {bench, client, n, 0, 0, times_ns};
    struct peer_call calls[IN_FLIGHT];

    for (size_t i = 0; i < n_rows && rows.n_started < n; i++) {
        calls[i].ctx = &rows;
        start_row(&calls[i]);
    }
    if (!dv_loop_run_until(client->loop, rows_done, &rows, 600000))
        exit(1);
}

static void run_unary(const struct bench *bench, size_t n_rows)
{
    struct client *client = client_open(bench->socket);
    uint64_t n_warm = bench->calls / 10 + 200;
    uint64_t *times = dv_alloc((size_t)(bench->calls + n_warm) * sizeof(times[0]));
    struct cost cost;
    double n = (double)bench->calls;

    run_rows(bench, client, n_rows, n_warm, times);
    cost_start(&cost, client);
    run_rows(bench, client, n_rows, bench->calls, times);
    cost_end(&cost, client);
    measure_sort(times, bench->calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f, \"calls_per_s\": %.0f, "
                 "\"client_cpu_us_per_call\": %.2f, \"server_cpu_us_per_call\": %.2f}\n",
                 measure_percentile_us(times, bench->calls, 500),
                 measure_percentile_us(times, bench->calls, 990),
                 n * 1e9 / (double)(cost.end_ns - cost.start_ns), (double)cost.client_us / n,
                 (double)cost.server_us / n);
    free(times);
    client_close(client);
}

static void run_watch(const struct bench *bench, struct client *client, uint64_t n)
{
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    struct peer_call call;

    ask.count = (uint32_t)n;
    ask.reply_bytes = (uint32_t)bench->size_reply;
    call = (struct peer_call){0};
    peer_start(&call, client, METHOD_WATCH, &ask.base, DV_NO_DEADLINE);
    peer_wait(&call);
    if (call.err.code != DV_OK || call.n_messages != n)
        fail("stream", &call.err);
}

static void run_stream(const struct bench *bench)
{
    struct client *client = client_open(bench->socket);
    double n = (double)bench->calls;
    struct cost cost;

    run_watch(bench, client, bench->calls / 10 + 5);
    cost_start(&cost, client);
    run_watch(bench, client, bench->calls);
    cost_end(&cost, client);
    (void)printf("{\"ms_per_message\": %.4f, \"client_cpu_us_per_message\": %.2f, "
                 "\"server_cpu_us_per_message\": %.2f}\n",
                 (double)(cost.end_ns - cost.start_ns) / 1e6 / n, (double)cost.client_us / n,
                 (double)cost.server_us / n);
    client_close(client);
}

static void call_once(const struct bench *bench, struct client *client)
{
    struct peer_call call;

    if (!peer_run(client, METHOD_UNARY, &bench->ask, CALL_TIMEOUT_MS, &call))
        fail("call", &call.err);
}

static bool channel_is_closed(void *ctx)
{
    return *(bool *)ctx;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

/* A fresh connection and its first call. */
static void connect_once(const struct bench *bench, struct dv_loop *loop)
{
    struct dv_channel_options options = {.name = DV_STR("peer")};
    struct client client = {.loop = loop};
    bool is_closed = false;
    struct dv_err err;

    client.channel = dv_channel_open(loop, bench->socket, &options, &err);
    if (!client.channel)
        fail("open", &err);
    call_once(bench, &client);
    dv_channel_close(client.channel, on_closed, &is_closed);
    if (!dv_loop_run_until(loop, channel_is_closed, &is_closed, CALL_TIMEOUT_MS))
        exit(1);
}

static void run_connect(const struct bench *bench)
{
    struct client *first = client_open(bench->socket); /* its loop serves them all */
    uint64_t *times = dv_alloc((size_t)bench->calls * sizeof(times[0]));

    for (uint64_t i = 0; i < bench->calls / 10 + 20; i++)
        connect_once(bench, first->loop);
    for (uint64_t i = 0; i < bench->calls; i++) {
        uint64_t start_ns = measure_now_ns();

        connect_once(bench, first->loop);
        times[i] = measure_now_ns() - start_ns;
    }
    measure_sort(times, bench->calls);
    (void)printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n",
                 measure_percentile_us(times, bench->calls, 500),
                 measure_percentile_us(times, bench->calls, 990));
    free(times);
    client_close(first);
}

/* Connections that have made one call each and now do nothing. */
static void run_idle(const struct bench *bench)
{
    struct dv_channel_options options = {.name = DV_STR("peer")};
    struct client *clients = dv_alloc((size_t)bench->connections * sizeof(clients[0]));
    struct client *first = client_open(bench->socket);
    DavitTest__Counts counts;
    struct dv_err err;

    for (uint64_t i = 0; i < bench->connections; i++) {
        clients[i] = *first;
        if (i > 0)
            clients[i].channel = dv_channel_open(first->loop, bench->socket, &options, &err);
        if (!clients[i].channel)
            fail("open", &err);
        call_once(bench, &clients[i]);
    }
    if (!peer_seen(first, &counts, &err))
        fail("seen", &err);
    (void)printf("{\"client_rss_bytes\": %llu, \"server_rss_bytes\": %llu}\n",
                 (unsigned long long)measure_rss_bytes(), (unsigned long long)counts.rss_bytes);
    for (uint64_t i = 1; i < bench->connections; i++)
        dv_channel_close(clients[i].channel, NULL, NULL);
    free(clients);
    client_close(first);
}

static bool parse(int argc, char **argv, struct bench *bench, const char **mode)
{
    for (int i = 0; i + 1 < argc; i += 2) {
        uint64_t *number = NULL;

        if (strcmp(argv[i], "--mode") == 0)
            *mode = argv[i + 1];
        else if (strcmp(argv[i], "--calls") == 0)
            number = &bench->calls;
        else if (strcmp(argv[i], "--size-request") == 0)
            number = &bench->size_request;
        else if (strcmp(argv[i], "--size-reply") == 0)
            number = &bench->size_reply;
        else if (strcmp(argv[i], "--connections") == 0)
            number = &bench->connections;
        else
            return false;
        if (number && !dv_str_to_u64(dv_str_from_c(argv[i + 1]), number))
            return false;
    }
    return argc % 2 == 0 && bench->calls > 0 && bench->connections > 0;
}

int run_bench(dv_str socket, int argc, char **argv)
{
    struct bench bench = {.socket = socket, .calls = 1000, .size_request = 339, .connections = 1};
    DavitTest__Ask ask = DAVIT_TEST__ASK__INIT;
    const char *mode = "seq";

    if (!parse(argc, argv, &bench, &mode)) {
        (void)fprintf(stderr, "davit-peer: bad arguments of bench\n");
        return 2;
    }
    if (bench.size_reply == 0)
        bench.size_reply = strcmp(mode, "stream500k") == 0 ? 500000 : 1603;
    ask.payload = (ProtobufCBinaryData){bench.size_request, peer_pattern(bench.size_request)};
    ask.reply_bytes = (uint32_t)bench.size_reply;
    bench.ask = ask;
    if (strcmp(mode, "seq") == 0)
        run_unary(&bench, 1);
    else if (strcmp(mode, "inflight") == 0)
        run_unary(&bench, IN_FLIGHT);
    else if (strcmp(mode, "stream500k") == 0)
        run_stream(&bench);
    else if (strcmp(mode, "connect") == 0)
        run_connect(&bench);
    else if (strcmp(mode, "idle") == 0)
        run_idle(&bench);
    else
        return 2;
    free(ask.payload.data);
    return 0;
}
