/* How fast WebSocket and SPDY are: megabytes a second from one session to another, and what a small
 * frame costs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "support/bench.h"
#include "upgrade/spdy.h"
#include "upgrade/websocket.h"

#define TOTAL_BYTES (512u << 20)
#define SMALL_FRAMES 2000000u

static char zeros[32768];

static void print(const char *what, uint64_t start_ns, size_t n_frames, size_t n_bytes)
{
    double ns = (double)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns);

    (void)printf("%-28s %6.0f MB/s %8.0f ns a frame of %zu bytes\n", what,
                 (double)n_frames * (double)n_bytes * 1e3 / ns, ns / (double)n_frames, n_bytes);
}

/* ---- WebSocket ---- */

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    (void)handler;
    (void)part;
}

static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    (void)handler;
    (void)code;
    (void)reason;
}

static void any_mask(void *ctx, uint8_t mask[4])
{
    (void)ctx;
    memset(mask, 0x5a, 4);
}

static void measure_websocket(const char *what, bool is_client, size_t n_frames, size_t n_bytes)
{
    struct dv_ws_handler handler = {.message = on_message, .closed = on_closed};
    struct dv_ws_options options = {.random = any_mask};
    struct dv_ws *from;
    struct dv_ws *to;
    struct dv_err err;
    uint64_t start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    dv_str bytes;

    options.is_client = is_client;
    from = dv_ws_new(&options, &handler);
    options.is_client = !is_client;
    to = dv_ws_new(&options, &handler);
    for (size_t i = 0; i < n_frames; i++) {
        bench_must(dv_ws_send(from, false, (dv_str){zeros, n_bytes}, &err), what, &err);
        while (i % 4 == 3 && dv_ws_pull(from, &bytes))
            bench_must(dv_ws_receive(to, bytes, &err), what, &err);
    }
    print(what, start, n_frames, n_bytes);
    dv_ws_free(from);
    dv_ws_free(to);
}

/* ---- SPDY ---- */

static void on_opened(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                      const struct dv_spdy_field *fields, size_t n_fields)
{
    (void)handler;
    (void)fields;
    (void)n_fields;
    dv_spdy_reply(stream);
}

static void on_data(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream, dv_str bytes)
{
    (void)handler;
    (void)stream;
    (void)bytes;
}

static void on_finished(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream)
{
    (void)handler;
    dv_spdy_finish(stream);
}

static void on_ended(struct dv_spdy_handler *handler, struct dv_spdy_stream *stream,
                     const struct dv_err *err)
{
    (void)handler;
    (void)stream;
    (void)err;
}

struct pair {
    struct dv_spdy_handler handler;
    struct dv_spdy *client;
    struct dv_spdy *server;
};

static void carry(struct dv_spdy *from, struct dv_spdy *to)
{
    struct dv_err err;
    dv_str bytes;

    while (dv_spdy_pull(from, &bytes))
        bench_must(dv_spdy_receive(to, bytes, &err), "SPDY", &err);
}

static void pair_init(struct pair *pair)
{
    struct dv_spdy_options options = {.is_client = true};

    pair->handler = (struct dv_spdy_handler){
        .opened = on_opened, .data = on_data, .finished = on_finished, .ended = on_ended};
    pair->client = dv_spdy_new(&options, &pair->handler);
    options.is_client = false;
    pair->server = dv_spdy_new(&options, &pair->handler);
}

static void pair_fini(struct pair *pair)
{
    struct dv_err gone = {.code = DV_CANCELLED, .msg = "the end"};

    dv_spdy_lose(pair->client, &gone);
    dv_spdy_lose(pair->server, &gone);
    dv_spdy_free(pair->client);
    dv_spdy_free(pair->server);
}

static void measure_spdy(const char *what, size_t n_frames, size_t n_bytes)
{
    uint64_t start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct dv_spdy_stream *stream;
    struct pair pair;
    struct dv_err err;

    pair_init(&pair);
    stream = dv_spdy_open(pair.client, NULL, 0, NULL, &err);
    bench_must(stream, what, &err);
    for (size_t i = 0; i < n_frames; i++) {
        bench_must(dv_spdy_send(stream, (dv_str){zeros, n_bytes}) == n_bytes, what, NULL);
        if (i % 4 == 3)
            carry(pair.client, pair.server);
    }
    print(what, start, n_frames, n_bytes);
    pair_fini(&pair);
}

/* Opened, accepted, and finished by both sides: six frames. */
static void measure_streams(size_t n)
{
    static const struct dv_spdy_field fields[] = {
        {DV_STR_INIT("streamtype"), DV_STR_INIT("data")},
        {DV_STR_INIT("port"),       DV_STR_INIT("8080")},
        {DV_STR_INIT("requestid"),  DV_STR_INIT("1234")},
    };
    uint64_t start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct pair pair;
    struct dv_err err;

    pair_init(&pair);
    for (size_t i = 0; i < n; i++) {
        struct dv_spdy_stream *stream =
            dv_spdy_open(pair.client, fields, DV_COUNT(fields), NULL, &err);

        bench_must(stream, "SPDY", &err);
        dv_spdy_finish(stream);
        carry(pair.client, pair.server);
        carry(pair.server, pair.client);
    }
    (void)printf("%-28s %8.0f ns a stream\n", "SPDY streams",
                 (double)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / (double)n);
    pair_fini(&pair);
}

int main(void)
{
    measure_websocket("WebSocket, server to client", false, TOTAL_BYTES / 32768, 32768);
    measure_websocket("WebSocket, client to server", true, TOTAL_BYTES / 32768, 32768);
    measure_websocket("WebSocket, small", true, SMALL_FRAMES, 16);
    measure_spdy("SPDY", TOTAL_BYTES / 32768, 32768);
    measure_spdy("SPDY, small", SMALL_FRAMES, 16);
    measure_streams(200000);
    return 0;
}
