/* bench_remote.c - the engine over an API server: requests a second, how long a view takes to begin
 * with many objects, events a second, memory an object.
 *
 * The server is a process of its own that has its answers ready: what is measured is our side. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "rest/rest.h"

#define SECONDS 1u
#define PARALLEL_MAX 64u
#define N_SLICES 5000u
#define N_MAPS 50000u
#define N_EVENTS 100000u
#define PAGE_OBJECTS 500u
#define PAGE_BYTES_MAX (64u << 20)
#define BURST 200u
#define PATIENCE_MS 120000u
#define SETTLE_MS 100u

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench_remote: %s: %s\n", what, why);
    exit(1);
}

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) != 0)
        die("the process's clock", strerror(errno));
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what the server has ---- */

static void print_map(struct dv_buf *buf, size_t i, size_t version)
{
    dv_buf_printf(buf,
                  "{\"metadata\":{\"name\":\"map-%zu\",\"namespace\":\"default\",\"uid\":"
                  "\"00000000-0000-4000-8000-%012zu\",\"resourceVersion\":\"%zu\","
                  "\"creationTimestamp\":\"2024-01-01T00:00:00Z\",\"labels\":{\"app\":\"bench\"}},"
                  "\"data\":{\"key\":\"value %zu\"}}",
                  i, i, version, version);
}

static void print_slice(struct dv_buf *buf, size_t i, size_t version)
{
    dv_buf_printf(buf,
                  "{\"metadata\":{\"name\":\"slice-%zu\",\"uid\":\"00000000-0000-4000-8000-%012zu\""
                  ",\"resourceVersion\":\"%zu\",\"generation\":1,\"creationTimestamp\":"
                  "\"2024-01-01T00:00:00Z\"},\"spec\":{\"driver\":\"gpu.example.com\",\"pool\":{"
                  "\"name\":\"node-%zu\",\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":"
                  "\"node-%zu\",\"devices\":[",
                  i, i, version, i, i);
    for (int device = 0; device < 8; device++)
        dv_buf_printf(buf,
                      "%s{\"name\":\"gpu-%d\",\"attributes\":{\"model\":{\"string\":\"a100\"},"
                      "\"index\":{\"int\":%d},\"driverVersion\":{\"version\":\"1.2.3\"}},"
                      "\"capacity\":{\"memory\":{\"value\":\"40Gi\"}}}",
                      device ? "," : "", device, device);
    dv_buf_add_c(buf, "]}}");
}

static void print_page(struct dv_buf *buf, bool is_slices, size_t from)
{
    size_t n = is_slices ? N_SLICES : N_MAPS;
    size_t to = dv_size_min(from + PAGE_OBJECTS, n);

    dv_buf_printf(buf, "{\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":\"%u\",\"continue\":\"",
                  is_slices ? "ResourceSliceList" : "ConfigMapList", N_MAPS);
    if (to < n)
        dv_buf_printf(buf, "%zu", to);
    dv_buf_add_c(buf, "\"},\"items\":[");
    for (size_t i = from; i < to; i++) {
        if (i > from)
            dv_buf_add_char(buf, ',');
        if (is_slices)
            print_slice(buf, i, i + 1);
        else
            print_map(buf, i, i + 1);
    }
    dv_buf_add_c(buf, "]}");
}

/* ---- the server ---- */

struct flow {
    struct dv_rest_stream stream;
    size_t n_sent;
    bool has_events;
};

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    (void)err;
    free(DV_CONTAINER(stream, struct flow, stream));
}

static void on_room(struct dv_rest_stream *stream)
{
    struct flow *flow = DV_CONTAINER(stream, struct flow, stream);
    struct dv_buf buf;
    struct dv_err err;

    if (!flow->has_events || flow->n_sent == N_EVENTS)
        return;
    dv_buf_init(&buf, PAGE_BYTES_MAX);
    for (size_t i = 0; i < BURST && flow->n_sent < N_EVENTS; i++) {
        dv_buf_add_c(&buf, "{\"type\":\"MODIFIED\",\"object\":");
        print_map(&buf, flow->n_sent % N_MAPS, N_MAPS + 1 + flow->n_sent);
        dv_buf_add_c(&buf, "}\n");
        flow->n_sent++;
    }
    if (!dv_rest_stream_send(stream, dv_buf_str(&buf), &err))
        die("sending events", err.msg);
    dv_buf_fini(&buf);
}

static void handle(void *ctx, struct dv_rest_call *call, const struct dv_rest_request *request)
{
    struct dv_arena *arena = dv_rest_call_arena(call);
    bool is_slices = dv_str_ends_with(request->path, DV_STR("/resourceslices"));
    struct dv_buf buf;
    size_t from = 0;
    dv_str text;

    (void)ctx;
    if (dv_rest_query_get(request->query, DV_STR("watch"), arena, &text)) {
        struct flow *flow = DV_ALLOC(struct flow);

        flow->stream = (struct dv_rest_stream){.room = on_room, .ended = on_ended};
        flow->has_events = !is_slices;
        dv_rest_stream_start(&flow->stream, call, 200);
        on_room(&flow->stream);
        return;
    }
    if (dv_rest_query_get(request->query, DV_STR("continue"), arena, &text) &&
        !dv_str_to_size(text, &from))
        die("the next page", "no such token");
    dv_buf_init(&buf, PAGE_BYTES_MAX);
    if (is_slices || dv_str_ends_with(request->path, DV_STR("/configmaps")))
        print_page(&buf, is_slices, from);
    else
        print_map(&buf, 7, 7);
    dv_rest_call_reply_buf(call, 200, &buf);
    dv_buf_fini(&buf);
}

static void serve(const struct dv_rest_tls *tls, int out)
{
    struct dv_rest_server_options options = {.name = DV_STR("api"), .tls = tls, .handle = handle};
    struct dv_rest_server *server;
    struct dv_err err;
    struct dv_loop *loop = dv_loop_new(dv_clock_real(), &err);
    uint16_t port;

    server = loop ? dv_rest_server_open(loop, DV_STR("127.0.0.1:0"), &options, &err) : NULL;
    if (!server)
        die("the server", err.msg);
    port = dv_rest_server_port(server);
    if (write(out, &port, sizeof(port)) != sizeof(port))
        die("the server's port", strerror(errno));
    dv_loop_run(loop); /* until it is killed */
}

static pid_t start_server(const struct dv_rest_tls *tls, uint16_t *port)
{
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0)
        die("pipe", strerror(errno));
    pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid == 0) {
        serve(tls, fds[1]);
        exit(0);
    }
    if (read(fds[0], port, sizeof(*port)) != sizeof(*port))
        die("the server's port", "it has not started");
    (void)close(fds[0]);
    (void)close(fds[1]);
    return pid;
}

/* ---- requests ---- */

struct race {
    struct dv_cluster *cluster;
    uint64_t end_ns;
    size_t n_done;
    size_t n_running;
    struct dv_request requests[PARALLEL_MAX];
};

static void on_got(struct dv_request *request, const struct dv_api_status *failure)
{
    struct race *race = request->ctx;

    if (failure)
        die("a request", "it failed");
    race->n_done++;
    if (now_ns() < race->end_ns)
        dv_request_start(race->cluster, request);
    else
        race->n_running--;
}

static bool is_over(void *ctx)
{
    return ((const struct race *)ctx)->n_running == 0;
}

static void measure_requests(struct dv_loop *loop, struct dv_cluster *cluster, const char *what,
                             size_t n)
{
    struct race *race = DV_ALLOC(struct race);
    uint64_t start_ns = now_ns();
    uint64_t start_cpu_ns = cpu_ns();

    race->cluster = cluster;
    race->end_ns = start_ns + SECONDS * UINT64_C(1000000000);
    race->n_running = n;
    for (size_t i = 0; i < n; i++) {
        race->requests[i] = (struct dv_request){.verb = DV_VERB_GET,
                                                .kind = dv_kind(DV_KIND_CONFIG_MAP),
                                                .namespace = DV_STR("default"),
                                                .name = DV_STR("map-7"),
                                                .done = on_got,
                                                .ctx = race};
        dv_request_start(cluster, &race->requests[i]);
    }
    if (!dv_loop_run_until(loop, is_over, race, PATIENCE_MS))
        die(what, "not in time");
    (void)printf("%s, %2zu at once: %8.0f/s, %5.1f us of CPU each\n", what, n,
                 (double)race->n_done * 1e9 / (double)(now_ns() - start_ns),
                 (double)(cpu_ns() - start_cpu_ns) / 1e3 / (double)race->n_done);
    free(race);
}

/* ---- views ---- */

struct sight {
    struct dv_view *view;
    uint64_t synced_ns;
    size_t n_changes; /* since then */
    uint64_t last_ns; /* of those */
};

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct sight *sight = ctx;

    (void)old;
    (void)now;
    if (sight->synced_ns && ++sight->n_changes == N_EVENTS)
        sight->last_ns = now_ns();
}

static void on_synced(void *ctx)
{
    ((struct sight *)ctx)->synced_ns = now_ns();
}

static bool is_synced(void *ctx)
{
    return ((const struct sight *)ctx)->synced_ns > 0;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static bool has_all_events(void *ctx)
{
    return ((const struct sight *)ctx)->last_ns > 0;
}

static void measure_view(struct dv_loop *loop, struct dv_cluster *cluster, const char *what,
                         enum dv_kind_id kind, bool has_events)
{
    struct sight sight = {0};
    struct dv_view_options options = {
        .kind = dv_kind(kind), .changed = on_changed, .synced = on_synced, .ctx = &sight};
    size_t before_bytes = mallinfo2().uordblks;
    uint64_t start_ns = now_ns();
    struct dv_err err;
    size_t n;

    sight.view = dv_view_open(cluster, &options, &err);
    if (!sight.view || !dv_loop_run_until(loop, is_synced, &sight, PATIENCE_MS))
        die(what, "not in time");
    n = dv_view_n(sight.view);
    (void)printf("%s: view of %zu objects begins in %.1f ms, %zu bytes each\n", what, n,
                 (double)(now_ns() - start_ns) / 1e6, (mallinfo2().uordblks - before_bytes) / n);
    if (has_events) {
        if (!dv_loop_run_until(loop, has_all_events, &sight, PATIENCE_MS))
            die(what, "not all events in time");
        (void)printf("%s: %.0f events/s\n", what,
                     N_EVENTS * 1e9 / (double)(sight.last_ns - sight.synced_ns));
    }
    dv_view_close(sight.view);
    if (dv_loop_run_until(loop, never, NULL, SETTLE_MS)) /* its memory goes with its fetch */
        die(what, "never is now");
}

/* ---- all of it ---- */

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void measure(const char *what, const struct dv_rest_tls *tls, struct dv_kubeconfig config)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_remote_options options = {0};
    struct dv_remote *remote;
    struct dv_loop *loop;
    struct dv_err err;
    bool is_closed = false;
    uint16_t port = 0;
    pid_t pid = start_server(tls, &port);

    config.server = dv_str_printf(arena, "%s://127.0.0.1:%u", tls ? "https" : "http", port);
    loop = dv_loop_new(dv_clock_real(), &err);
    remote = loop ? dv_remote_open(loop, &config, &options, &err) : NULL;
    if (!remote)
        die(what, err.msg);
    measure_requests(loop, dv_remote_cluster(remote), what, 1);
    measure_requests(loop, dv_remote_cluster(remote), what, PARALLEL_MAX);
    measure_view(loop, dv_remote_cluster(remote), what, DV_KIND_SLICE, false);
    measure_view(loop, dv_remote_cluster(remote), what, DV_KIND_CONFIG_MAP, true);
    dv_remote_close(remote, on_closed, &is_closed);
    if (!dv_loop_run_until(loop, is_true, &is_closed, PATIENCE_MS))
        die(what, "it does not close");
    dv_loop_free(loop);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int main(void)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str host = DV_STR("127.0.0.1");
    struct dv_rest_cert_request request = {
        .name = DV_STR("bench"), .now_ns = dv_clock_wall_ns(dv_clock_real()), .valid_days = 1};
    struct dv_kubeconfig config = {.token = DV_STR("token")};
    struct dv_rest_cert ca;
    struct dv_rest_cert cert;
    struct dv_err err;

    measure("plain", NULL, config);
    if (!dv_rest_cert_make_ca(&request, arena, &ca, &err))
        die("certificates", err.msg);
    request.hosts = &host;
    request.n_hosts = 1;
    if (!dv_rest_cert_make_server(&ca, &request, arena, &cert, &err))
        die("certificates", err.msg);
    config.ca = ca.cert;
    measure("TLS", &(struct dv_rest_tls){.cert = cert.cert, .key = cert.key}, config);
    return 0;
}
