/* What a request costs a server's session, and how fast a long answer goes out. The client is
 * nghttp2's own encoder; its bytes are made before the clock runs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "http2/http2_server.h"
#include "support/bench.h"

#define N_REQUESTS 500000u
#define BATCH 50u
#define ANSWER_BYTES 300u
#define LONG_BYTES (512u << 20)

static const char zeros[65536];

struct bench {
    struct dv_h2_server_handler handler;
    struct dv_h2_server *server;
    size_t left; /* bytes of a long answer; 0: answers are short */
};

static void on_request(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                       const struct dv_h2_http_request *request)
{
    (void)handler;
    (void)stream;
    (void)request;
}

static void on_complete(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    static const struct dv_h2_field fields[] = {
        {DV_STR_INIT("content-type"), DV_STR_INIT("application/json")},
        {DV_STR_INIT("audit-id"),     DV_STR_INIT("0123456789")      },
    };
    struct bench *bench = DV_CONTAINER(handler, struct bench, handler);
    struct dv_h2_answer answer = {.status = 200, .fields = fields, .n_fields = DV_COUNT(fields)};

    answer.has_more = bench->left > 0;
    if (!answer.has_more)
        answer.body.bytes = (dv_str){zeros, ANSWER_BYTES};
    dv_h2_stream_answer(stream, &answer);
}

static void on_drained(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream)
{
    struct bench *bench = DV_CONTAINER(handler, struct bench, handler);
    struct dv_h2_bytes piece = {
        {zeros, sizeof(zeros)},
        NULL, NULL
    };
    struct dv_err err;

    if (bench->left == 0) {
        dv_h2_stream_finish(stream);
        return;
    }
    bench->left -= sizeof(zeros);
    bench_must(dv_h2_stream_send(stream, &piece, &err), "send", &err);
}

static void on_ended(struct dv_h2_server_handler *handler, struct dv_h2_stream *stream,
                     const struct dv_err *err)
{
    (void)handler;
    (void)stream;
    bench_must(!err, "ended", err);
}

static void add_head(struct dv_buf *out, size_t n, uint8_t type, uint8_t flags, uint32_t id)
{
    const char head[] = {(char)(n >> 16),  (char)(n >> 8),  (char)n,
                         (char)type,       (char)flags,     (char)(id >> 24),
                         (char)(id >> 16), (char)(id >> 8), (char)id};

    dv_buf_add(out, (dv_str){head, sizeof(head)});
}

static nghttp2_nv field(const char *name, const char *value)
{
    /* nghttp2 does not write to these texts. */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static void add_request(nghttp2_hd_deflater *deflater, uint32_t id, struct dv_buf *out)
{
    const nghttp2_nv fields[] = {
        field(":method", "GET"),
        field(":scheme", "https"),
        field(":authority", "localhost:6443"),
        field(":path", "/api/v1/namespaces/default/pods/pod-with-a-name"),
        field("user-agent", "kubectl/v1.32.4 (linux/amd64) kubernetes/59526cd"),
        field("accept", "application/json"),
        field("authorization", "Bearer 0123456789012345678901234567890123456789012"),
    };
    uint8_t block[1024];
    ssize_t n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), fields, DV_COUNT(fields));

    bench_must(n > 0, "deflate", NULL);
    add_head(out, (size_t)n, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
             id);
    dv_buf_add(out, (dv_str){(const char *)block, (size_t)n});
}

static void add_window(struct dv_buf *out, uint32_t id, uint32_t n)
{
    const char bytes[] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    add_head(out, 4, NGHTTP2_WINDOW_UPDATE, 0, id);
    dv_buf_add(out, (dv_str){bytes, sizeof(bytes)});
}

static size_t pull_all(struct bench *bench)
{
    size_t n = 0;
    dv_str bytes;

    while (dv_h2_server_pull(bench->server, &bytes))
        n += bytes.n;
    return n;
}

static void begin(struct bench *bench, struct dv_buf *bytes)
{
    static const struct dv_h2_server_options options;
    struct dv_err err;

    bench->handler = (struct dv_h2_server_handler){
        .request = on_request, .complete = on_complete, .drained = on_drained, .ended = on_ended};
    bench->server = dv_h2_server_new(&options, &bench->handler);
    dv_buf_init(bytes, 1u << 20);
    dv_buf_add_c(bytes, NGHTTP2_CLIENT_MAGIC);
    add_head(bytes, 0, NGHTTP2_SETTINGS, 0, 0);
    bench_must(dv_h2_server_receive(bench->server, dv_buf_str(bytes), 0, &err), "begin", &err);
    (void)pull_all(bench);
}

static void end(struct bench *bench, struct dv_buf *bytes)
{
    dv_h2_server_free(bench->server);
    dv_buf_fini(bytes);
}

static void measure_requests(void)
{
    nghttp2_hd_deflater *deflater;
    struct bench bench = {0};
    struct dv_buf bytes;
    struct dv_err err;
    uint64_t ns = 0;
    uint32_t id = 1;

    begin(&bench, &bytes);
    bench_must(nghttp2_hd_deflate_new(&deflater, 4096) == 0, "deflater", NULL);
    for (size_t i = 0; i < N_REQUESTS; i += BATCH) {
        uint64_t start;

        dv_buf_clear(&bytes);
        for (size_t k = 0; k < BATCH; k++, id += 2)
            add_request(deflater, id, &bytes);
        add_window(&bytes, 0, BATCH * ANSWER_BYTES);
        start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
        bench_must(dv_h2_server_receive(bench.server, dv_buf_str(&bytes), i, &err), "get", &err);
        (void)pull_all(&bench);
        ns += bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    (void)printf("%-20s %6.0f ns each, %.0f a second\n", "GET", (double)ns / N_REQUESTS,
                 N_REQUESTS * 1e9 / (double)ns);
    nghttp2_hd_deflate_del(deflater);
    end(&bench, &bytes);
}

static void measure_long(void)
{
    nghttp2_hd_deflater *deflater;
    struct bench bench = {.left = LONG_BYTES};
    struct dv_buf bytes;
    struct dv_err err;
    uint64_t start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    size_t n;

    begin(&bench, &bytes);
    bench_must(nghttp2_hd_deflate_new(&deflater, 4096) == 0, "deflater", NULL);
    dv_buf_clear(&bytes);
    add_window(&bytes, 0, 0x7fff0000 - 65535);
    add_request(deflater, 1, &bytes);
    add_window(&bytes, 1, 0x7fff0000 - 65535);
    bench_must(dv_h2_server_receive(bench.server, dv_buf_str(&bytes), 0, &err), "list", &err);
    n = pull_all(&bench);
    (void)printf("%-20s %6.0f MB/s\n", "a long answer",
                 (double)n * 1e3 / (double)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start));
    nghttp2_hd_deflate_del(deflater);
    end(&bench, &bytes);
}

int main(void)
{
    measure_requests();
    measure_long();
    return 0;
}
