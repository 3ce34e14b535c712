/* bench_claim.c - prepare and unprepare a claim with 10, 1,000 and 10,000 others stored: latency,
 * processor time, and pods a second when many are under way. A driver on the same loop, a real
 * store on the disk, an API that answers from memory.
 *
 *     bench_claim [DIR]      where the store is; /tmp unless told */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "plugin/plugin.h"
#include "resource/resource.h"
#include "store/store.h"

#define DRIVER "gpu.example.com"
#define PATIENCE_MS 600000u
#define N_ROUNDS 300
#define N_AT_ONCE 256u

struct bench {
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_cluster cluster;
    struct dv_claim_manager *claims;
    struct dv_server *server;
    struct dv_arena *arena;
    struct dv_object **objects; /* claim i for pod i */
    size_t n_objects;
    struct dv_plugin_registration registration;
    bool is_registered;
    int n_closed;
    char dir[128];
};

static void must(bool ok, const struct dv_err *err)
{
    if (ok)
        return;
    (void)fprintf(stderr, "bench_claim: %s\n", err->msg);
    exit(1);
}

/* ---- the driver: a device for every claim ---- */

static void handle(struct dv_server_call *call, dv_str request, bool is_prepare)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;
    struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, SIZE_MAX);
    dv_pb_reader_init(&reader, request);
    while (!dv_pb_is_at_end(&reader)) {
        size_t entry = dv_pb_begin(&buf, 1);
        size_t value;
        size_t device;

        must(dv_pb_read(&reader, &field, &err) && dv_pb_enter(&reader, &field, &inner, &err), &err);
        while (!dv_pb_is_at_end(&inner)) {
            must(dv_pb_read(&inner, &field, &err), &err);
            if (field.tag == DV_PB_TAG(2, DV_PB_BYTES))
                dv_pb_add_bytes(&buf, 1, field.bytes);
        }
        value = dv_pb_begin(&buf, 2);
        if (is_prepare) {
            device = dv_pb_begin(&buf, 1);
            dv_pb_add_bytes(&buf, 1, DV_STR("gpu"));
            dv_pb_add_bytes(&buf, 2, DV_STR("node-1"));
            dv_pb_add_bytes(&buf, 3, DV_STR("gpu-0"));
            dv_pb_add_bytes(&buf, 4, DV_STR("vendor.example/gpu=0"));
            dv_pb_end(&buf, device);
        }
        dv_pb_end(&buf, value);
        dv_pb_end(&buf, entry);
    }
    dv_server_call_reply(call, dv_h2_msg_copy(dv_buf_str(&buf)));
    dv_buf_fini(&buf);
}

static void handle_prepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    (void)ctx;
    handle(call, request, true);
}

static void handle_unprepare(void *ctx, struct dv_server_call *call, dv_str request)
{
    (void)ctx;
    handle(call, request, false);
}

static void on_registered(struct dv_plugin_registration *registration, const struct dv_err *err)
{
    must(err == NULL, err);
    DV_CONTAINER(registration, struct bench, registration)->is_registered = true;
}

static bool is_serving(void *ctx)
{
    const struct bench *bench = ctx;

    return bench->is_registered &&
           dv_dra_is_usable(dv_claim_manager_drivers(bench->claims), DV_STR(DRIVER));
}

static void start_driver(struct bench *bench)
{
    static const struct dv_method methods[] = {
        {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",   handle_prepare  },
        {"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", handle_unprepare},
    };
    const struct dv_service service = {methods, DV_COUNT(methods), bench};
    struct dv_server_options options = {
        .name = DV_STR("driver"), .mode = 0600, .services = &service, .n_services = 1};
    const dv_str version = DV_STR("v1.DRAPlugin");
    struct dv_plugin_info info = {
        .name = DV_STR(DRIVER),
        .endpoint = dv_str_printf(bench->arena, "%s/dra.sock", bench->dir),
        .versions = &version,
        .n_versions = 1,
    };
    struct dv_plugin_handler handler = dv_claim_manager_handler(bench->claims);
    struct dv_err err = {.code = DV_DEADLINE_EXCEEDED, .msg = "the driver does not connect"};

    bench->server = dv_server_open(bench->loop, info.endpoint, &options, &err);
    must(bench->server != NULL, &err);
    bench->registration = (struct dv_plugin_registration){.done = on_registered, .info = &info};
    handler.start(handler.ctx, &bench->registration);
    must(dv_loop_run_until(bench->loop, is_serving, bench, PATIENCE_MS), &err);
}

/* ---- the API ---- */

struct asked {
    struct dv_task task;
    struct dv_request *request;
    struct bench *bench;
};

static void on_asked(struct dv_task *task)
{
    struct asked *asked = DV_CONTAINER(task, struct asked, task);
    struct dv_request *request = asked->request;
    const struct bench *bench = asked->bench;

    free(asked);
    if (request->verb == DV_VERB_GET) /* "c-<number>" */
        request->object = bench->objects[strtoul(request->name.p + 2, NULL, 10)];
    request->done(request, NULL);
}

static void request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct asked *asked = DV_ALLOC(struct asked);

    asked->bench = DV_CONTAINER(cluster, struct bench, cluster);
    asked->request = request;
    dv_task_post(&asked->task, cluster->loop, on_asked);
}

static void request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    (void)cluster;
    (void)request; /* is answered anyway */
}

/* ---- pods ---- */

struct pod {
    struct dv_claim_operation operation;
    struct dv_api_pod pod;
    struct dv_api_pod_resource_claim claim;
    bool is_done;
};

static void make_objects(struct bench *bench, size_t n)
{
    bench->objects = DV_NEW_ARRAY(bench->arena, struct dv_object *, n);
    bench->n_objects = n;
    for (size_t i = 0; i < n; i++) {
        struct dv_api_resource_claim_consumer_reference user = {
            .resource = DV_STR("pods"),
            .uid = dv_str_printf(bench->arena, "pod-%zu", i),
        };
        struct dv_api_device_request_allocation_result result = {.driver = DV_STR(DRIVER)};
        struct dv_api_allocation_result allocation = {
            .devices = {.results = &result, .n_results = 1}
        };
        struct dv_api_resource_claim claim = {
            .metadata = {.namespace = DV_STR("ns"),
                         .name = dv_str_printf(bench->arena,           "c-%zu", i),
                         .uid = dv_str_printf(bench->arena, "uid-%zu", i)},
            .status = {.reserved_for = &user, .n_reserved_for = 1, .allocation = &allocation     },
        };

        bench->objects[i] = dv_object_new(dv_kind(DV_KIND_CLAIM), &claim);
    }
}

static void on_done(struct dv_claim_operation *operation, const struct dv_err *err)
{
    must(err == NULL, err);
    DV_CONTAINER(operation, struct pod, operation)->is_done = true;
}

static void start_pod(struct bench *bench, struct pod *pod, size_t i, bool is_prepare)
{
    const struct dv_api_object_meta *claim = bench->objects[i]->meta;
    dv_str uid =
        ((struct dv_api_resource_claim *)bench->objects[i]->value)->status.reserved_for->uid;

    memset(pod, 0, sizeof(*pod));
    pod->operation.done = on_done;
    pod->claim =
        (struct dv_api_pod_resource_claim){.name = DV_STR("c"), .resource_claim_name = claim->name};
    pod->pod.metadata.namespace = DV_STR("ns");
    pod->pod.metadata.uid = uid;
    pod->pod.spec.resource_claims = &pod->claim;
    pod->pod.spec.n_resource_claims = 1;
    if (is_prepare)
        dv_claim_manager_prepare(bench->claims, &pod->operation, &pod->pod);
    else
        dv_claim_manager_unprepare(bench->claims, &pod->operation, uid);
}

static bool is_done(void *ctx)
{
    return ((const struct pod *)ctx)->is_done;
}

static void run_pod(struct bench *bench, size_t i, bool is_prepare)
{
    struct pod pod;
    struct dv_err err = {.code = DV_DEADLINE_EXCEEDED, .msg = "an operation does not end"};

    start_pod(bench, &pod, i, is_prepare);
    must(dv_loop_run_until(bench->loop, is_done, &pod, PATIENCE_MS), &err);
}

/* Always N_AT_ONCE under way, from `from` to `to`. */
static void run_many(struct bench *bench, size_t from, size_t to, bool is_prepare)
{
    struct pod *pods = dv_alloc(N_AT_ONCE * sizeof(*pods));
    struct dv_err err = {.code = DV_DEADLINE_EXCEEDED, .msg = "an operation does not end"};

    for (size_t i = from; i < to + N_AT_ONCE; i++) {
        struct pod *pod = &pods[i % N_AT_ONCE];

        if (i >= from + N_AT_ONCE && i - N_AT_ONCE < to)
            must(dv_loop_run_until(bench->loop, is_done, pod, PATIENCE_MS), &err);
        if (i < to)
            start_pod(bench, pod, i, is_prepare);
    }
    free(pods);
}

/* ---- measuring ---- */

static double now_us(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time); /* always there */
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file)
        (void)fclose(file); /* was only read */
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int double_cmp(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One pod after the other. */
static void measure_alone(struct bench *bench, size_t n_stored)
{
    static double times[2][N_ROUNDS];
    double cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);

    for (int i = 0; i < N_ROUNDS; i++)
        for (int kind = 0; kind < 2; kind++) {
            double start = now_us(CLOCK_MONOTONIC);

            run_pod(bench, n_stored, kind == 0);
            times[kind][i] = now_us(CLOCK_MONOTONIC) - start;
        }
    cpu = (now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu) / N_ROUNDS;
    for (int kind = 0; kind < 2; kind++)
        qsort(times[kind], N_ROUNDS, sizeof(double), double_cmp);
    printf("%6zu stored   prepare %7.0f us   unprepare %7.0f us   (medians)   both %5.0f us of "
           "processor   %5ld KB resident\n",
           n_stored, times[0][N_ROUNDS / 2], times[1][N_ROUNDS / 2], cpu, resident_kb());
}

static void measure_many(struct bench *bench, size_t n_stored, size_t n)
{
    double start = now_us(CLOCK_MONOTONIC);

    run_many(bench, n_stored, n_stored + n, true);
    run_many(bench, n_stored, n_stored + n, false);
    printf("%6zu stored   %zu pods at once: %.0f pods/s (prepare and unprepare)\n", n_stored,
           (size_t)N_AT_ONCE, (double)n / ((now_us(CLOCK_MONOTONIC) - start) / 1e6));
}

static void on_closed(void *ctx)
{
    ((struct bench *)ctx)->n_closed++;
}

static bool are_closed(void *ctx)
{
    return ((const struct bench *)ctx)->n_closed == 2;
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "bench_claim: the store is damaged: %s\n", set_aside);
    exit(1);
}

static void open_all(struct bench *bench, const char *parent)
{
    static const char *const tables[] = {"claims"};
    static const struct dv_store_schema schema = {.tables = tables, .n_tables = 1};
    static const struct dv_cluster_engine engine = {.request_start = request_start,
                                                    .request_cancel = request_cancel};
    struct dv_store_options store_options = {.schema = &schema, .damaged = on_damaged};
    struct dv_claim_manager_options options = {.node_name = DV_STR("node-1"),
                                               .boot_id = DV_STR("boot")};
    struct dv_err err;

    (void)snprintf(bench->dir, sizeof(bench->dir), "%s/bench-claim-XXXXXX", parent);
    (void)dv_fail(&err, DV_UNKNOWN, "cannot make a directory in %s", parent);
    must(mkdtemp(bench->dir) != NULL, &err);
    bench->arena = dv_arena_new();
    bench->loop = dv_loop_new(dv_clock_real(), &err);
    must(bench->loop != NULL, &err);
    bench->store = dv_store_open(
        bench->loop, dv_str_printf(bench->arena, "%s/state.db", bench->dir), &store_options, &err);
    must(bench->store != NULL, &err);
    bench->cluster = (struct dv_cluster){.engine = &engine, .loop = bench->loop};
    options.store = bench->store;
    options.cluster = &bench->cluster;
    bench->claims = dv_claim_manager_open(bench->loop, &options, &err);
    must(bench->claims != NULL, &err);
}

static void close_all(struct bench *bench)
{
    struct dv_err err = {.code = DV_DEADLINE_EXCEEDED, .msg = "it does not close"};
    char command[256];

    dv_claim_manager_close(bench->claims, on_closed, bench);
    dv_server_close(bench->server, 0, on_closed, bench);
    must(dv_loop_run_until(bench->loop, are_closed, bench, PATIENCE_MS), &err);
    dv_store_close(bench->store, NULL, NULL);
    dv_loop_free(bench->loop);
    for (size_t i = 0; i < bench->n_objects; i++)
        dv_object_unref(bench->objects[i]);
    dv_arena_free(bench->arena);
    (void)snprintf(command, sizeof(command), "rm -r '%s'", bench->dir);
    if (system(command) != 0) /* our own directory, from mkdtemp */
        (void)fprintf(stderr, "bench_claim: %s is left\n", bench->dir);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {10, 1000, 10000};
    struct bench bench = {0};
    size_t n_stored = 0;

    open_all(&bench, argc > 1 ? argv[1] : "/tmp");
    make_objects(&bench, sizes[DV_COUNT(sizes) - 1] + 4000);
    start_driver(&bench);
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        run_many(&bench, n_stored, sizes[i], true);
        n_stored = sizes[i];
        measure_alone(&bench, n_stored);
        measure_many(&bench, n_stored, 3000);
    }
    close_all(&bench);
    return 0;
}
