/* bench_api.c - the embedded API through davitd: HTTPS on loopback, every write on the disk.
 *
 *     bench_api [DAVITD] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/remote.h"
#include "daemon/tests/bench_node.h"
#include "loop/loop.h"
#include "peers/measure.h"
#include "rest/rest.h"

#define CLAIMS "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
#define WATCHED "/apis/resource.k8s.io/v1/namespaces/kube-public/resourceclaims"
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define LANES_MAX 64u
#define WATCHERS 100u
#define EVENTS 1000u

struct bench {
    struct dv_loop *loop;
    struct node *node;
    struct dv_rest_client *client;
    size_t n_left; /* to be started */
    size_t n_open; /* under way */
    size_t n_made; /* names so far */
    const char *method;
    void (*body)(struct bench *bench, size_t number, char *text, size_t size);
    const char *target;
};

/* One client: the next request when the last is answered. */
struct lane {
    struct dv_rest_fetch fetch;
    struct dv_rest_field field;
    struct bench *bench;
    char body[4096];
};

static void claim(struct bench *bench, size_t number, char *text, size_t size)
{
    (void)bench;
    (void)snprintf(text, size,
                   "{\"metadata\":{\"name\":\"claim-%06zu\"},\"spec\":{\"devices\":{\"requests\":[{"
                   "\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.example.com\"}}]}}}",
                   number);
}

static void slice(struct bench *bench, size_t number, char *text, size_t size)
{
    (void)bench;
    (void)snprintf(text, size,
                   "{\"metadata\":{\"name\":\"slice-%06zu\"},\"spec\":{\"driver\":"
                   "\"gpu.example.com\",\"nodeName\":\"node-%zu\",\"pool\":{\"name\":\"node-%zu\","
                   "\"generation\":1,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu-0\","
                   "\"attributes\":{\"model\":{\"string\":\"A9\"},\"numa\":{\"int\":0}},"
                   "\"capacity\":{\"memory\":{\"value\":\"40Gi\"}}}]}}",
                   number, number, number);
}

static void next(struct lane *lane);

static void on_answer(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    struct lane *lane = DV_CONTAINER(fetch, struct lane, fetch);

    if (err)
        die("request", err);
    if (fetch->status >= 300) {
        (void)fprintf(stderr, "bench: %u %.*s\n", fetch->status, DV_FMT(fetch->answer));
        exit(1);
    }
    lane->bench->n_open--;
    next(lane);
}

static void next(struct lane *lane)
{
    struct bench *bench = lane->bench;

    if (bench->n_left == 0)
        return;
    bench->n_left--;
    bench->n_open++;
    lane->field = (struct dv_rest_field){DV_STR("Content-Type"), DV_STR("application/json")};
    lane->fetch = (struct dv_rest_fetch){
        .method = dv_str_from_c(bench->method),
        .target = dv_str_from_c(bench->target),
        .fields = &lane->field,
        .n_fields = 1,
        .deadline_ms = dv_loop_now_ms(bench->loop) + WAIT_MS,
        .body_bytes_max = 64u << 20,
        .done = on_answer,
    };
    if (bench->body) {
        bench->body(bench, bench->n_made++, lane->body, sizeof(lane->body));
        lane->fetch.body = dv_str_from_c(lane->body);
    }
    dv_rest_fetch_start(bench->client, &lane->fetch);
}

static bool is_done(void *ctx)
{
    const struct bench *bench = ctx;

    return bench->n_left == 0 && bench->n_open == 0;
}

/* n requests by so many clients; the seconds that they took. */
static double drive(struct bench *bench, size_t n_lanes, size_t n)
{
    static struct lane lanes[LANES_MAX];
    uint64_t start_ns = measure_now_ns();

    bench->n_left = n;
    for (size_t i = 0; i < n_lanes; i++) {
        lanes[i].bench = bench;
        next(&lanes[i]);
    }
    if (!dv_loop_run_until(bench->loop, is_done, bench, WAIT_MS))
        die("requests", NULL);
    return (double)(measure_now_ns() - start_ns) / 1e9;
}

static void rate(struct bench *bench, const char *what, size_t n_lanes, size_t n)
{
    uint64_t cpu_us = node_cpu_us(bench->node);
    double seconds = drive(bench, n_lanes, n);

    (void)printf("%-34s %8zu %12.0f %14.1f\n", what, n_lanes, (double)n / seconds,
                 (double)(node_cpu_us(bench->node) - cpu_us) / (double)n);
}

/* ---- watches ---- */

struct watcher {
    struct dv_rest_fetch fetch;
    struct watching *watching;
    size_t n_events;
};

struct watching {
    struct watcher watchers[WATCHERS];
    size_t n_events; /* of all */
    size_t n_late;
    uint64_t *late_ns; /* after the answer to the write; 0: before it */
    uint64_t answered_ns[EVENTS];
    uint64_t seen_ns[WATCHERS][EVENTS];
    size_t n_open;
};

static void on_part(struct dv_rest_fetch *fetch, dv_str part)
{
    struct watcher *watcher = DV_CONTAINER(fetch, struct watcher, fetch);
    struct watching *watching = watcher->watching;
    size_t index = (size_t)(watcher - watching->watchers);

    for (size_t i = 0; i < part.n; i++) {
        if (part.p[i] != '\n')
            continue;
        if (watcher->n_events < EVENTS)
            watching->seen_ns[index][watcher->n_events] = measure_now_ns();
        watcher->n_events++;
        watching->n_events++;
    }
}

static void on_watch_end(struct dv_rest_fetch *fetch, const struct dv_err *err)
{
    (void)err; /* cancelled */
    DV_CONTAINER(fetch, struct watcher, fetch)->watching->n_open--;
}

static bool have_all(void *ctx)
{
    return ((struct watching *)ctx)->n_events >= (size_t)WATCHERS * EVENTS;
}

static bool are_closed(void *ctx)
{
    return ((struct watching *)ctx)->n_open == 0;
}

static void report(struct watching *watching)
{
    size_t n = 0;

    watching->late_ns = calloc((size_t)WATCHERS * EVENTS, sizeof(uint64_t));
    for (size_t i = 0; i < WATCHERS; i++)
        for (size_t j = 0; j < EVENTS; j++) {
            uint64_t seen = watching->seen_ns[i][j];
            uint64_t answered = watching->answered_ns[j];

            watching->late_ns[n++] = seen > answered ? seen - answered : 0;
        }
    measure_sort(watching->late_ns, n);
    (void)printf("\n%u watchers x %u events: seen p50 %.2f ms, p99 %.2f ms after the answer to the "
                 "write\n",
                 WATCHERS, EVENTS, measure_percentile_us(watching->late_ns, n, 500) / 1000,
                 measure_percentile_us(watching->late_ns, n, 990) / 1000);
    free(watching->late_ns);
}

/* In a namespace that has no claims yet. */
static void bench_watches(struct bench *bench)
{
    static struct watching watching;

    for (size_t i = 0; i < WATCHERS; i++) {
        watching.watchers[i] = (struct watcher){
            .watching = &watching,
            .fetch = {.method = DV_STR("GET"),
                      .target = DV_STR(WATCHED "?watch=true"),
                      .idle_ms = WAIT_MS,
                      .on_body = on_part,
                      .done = on_watch_end}
        };
        dv_rest_fetch_start(bench->client, &watching.watchers[i].fetch);
        watching.n_open++;
    }
    bench->method = "POST";
    bench->target = WATCHED;
    bench->body = claim;
    for (size_t i = 0; i < EVENTS; i++) {
        (void)drive(bench, 1, 1);
        watching.answered_ns[i] = measure_now_ns();
    }
    if (!dv_loop_run_until(bench->loop, have_all, &watching, WAIT_MS))
        die("events", NULL);
    report(&watching);
    for (size_t i = 0; i < WATCHERS; i++)
        dv_rest_fetch_cancel(&watching.watchers[i].fetch);
    if (!dv_loop_run_until(bench->loop, are_closed, &watching, WAIT_MS))
        die("watches", NULL);
}

/* ---- the whole ---- */

static void open_client(struct bench *bench, struct dv_arena *arena)
{
    dv_str path = dv_str_printf(arena, "%s/s/admin.kubeconfig", bench->node->dir);
    struct dv_kubeconfig config;
    struct dv_rest_client_options options = {.connections_max = WATCHERS + LANES_MAX};
    struct dv_err err;

    if (!dv_kubeconfig_load(path, DV_STR_NONE, arena, &config, &err))
        die("kubeconfig", &err);
    options.base_url = config.server;
    options.ca = config.ca;
    bench->client = dv_rest_client_open(bench->loop, &options, &err);
    if (!bench->client)
        die("client", &err);
    dv_rest_client_set_token(bench->client, config.token);
}

static void on_client_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void bench_objects(struct bench *bench)
{
    double empty = node_rss_mb(bench->node);

    (void)printf("%-34s %8s %12s %14s\n", "", "clients", "a second", "davitd, CPU us");
    bench->method = "POST";
    bench->target = CLAIMS;
    bench->body = claim;
    rate(bench, "create claims, durable", 1, 500);
    rate(bench, "create claims, durable", LANES_MAX, 500);
    (void)printf("resident %.1f MB empty, %.1f MB with 1,000 claims\n", empty,
                 node_rss_mb(bench->node));
    rate(bench, "create claims, durable", LANES_MAX, 10000);
    bench->method = "GET";
    bench->target = CLAIMS "/claim-000500";
    bench->body = NULL;
    rate(bench, "get a claim", 1, 2000);
    rate(bench, "get a claim", LANES_MAX, 20000);
    bench->method = "POST";
    bench->target = SLICES;
    bench->body = slice;
    bench->n_made = 0;
    rate(bench, "create slices, durable", LANES_MAX, 5000);
    bench->method = "GET";
    bench->body = NULL;
    rate(bench, "list 5,000 slices", 1, 20);
}

int main(int argc, char **argv)
{
    char davitd[4096];
    char dir[64] = "/tmp/dv-bench-XXXXXX";
    const char *slash = strrchr(argv[0], '/');
    struct dv_arena *arena = dv_arena_new();
    struct bench bench = {0};
    struct node node;
    struct dv_err err;
    bool is_closed = false;

    /* Beside this program, unless it is named. */
    if (argc > 1)
        (void)snprintf(davitd, sizeof(davitd), "%s", argv[1]);
    else
        (void)snprintf(davitd, sizeof(davitd), "%.*s/davitd", (int)(slash ? slash - argv[0] : 1),
                       slash ? argv[0] : ".");
    if (!mkdtemp(dir))
        die("make a directory", NULL);
    bench.loop = dv_loop_new(dv_clock_real(), &err);
    if (!bench.loop)
        die("start", &err);
    bench.node = &node;
    node_start(&node, bench.loop, dir, davitd, "127.0.0.1:0");
    open_client(&bench, arena);
    bench_objects(&bench);
    bench_watches(&bench);
    (void)printf("resident %.1f MB with 11,000 claims and 5,000 slices\n", node_rss_mb(&node));
    dv_rest_client_close(bench.client, on_client_closed, &is_closed);
    if (!dv_loop_run_until(bench.loop, is_set, &is_closed, WAIT_MS))
        die("close", NULL);
    node_stop(&node);
    node_start(&node, bench.loop, dir, davitd, "127.0.0.1:0");
    (void)printf("started again with all of them in %.0f ms\n", (double)node.ready_us / 1000);
    node_stop(&node);
    remove_tree(dir);
    dv_loop_free(bench.loop);
    dv_arena_free(arena);
    return 0;
}
