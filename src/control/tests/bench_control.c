/* bench_control.c - the controllers over the embedded API in memory: claims for pods, the clean-up
 * after them, and whether that costs more when there are more of them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "control/control.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/embedded_count.h"
#include "support/store_files.h"

#define WAIT_MS 300000u
/* Requests of the benchmark under way at a time. */
#define N_ASKED_MAX 64u

static const char *const table_names[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.tables = table_names, .n_tables = 2};

struct asked;

struct bench {
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_control *control;
    size_t n_pods;
    size_t n_asked;
    size_t n_running;
    uint64_t n_claims_wanted;
    void (*fill)(struct asked *asked); /* makes the next request */
};

struct asked {
    struct bench *bench;
    struct dv_request request;
    struct dv_api_pod pod;
    struct dv_api_container container;
    struct dv_api_pod_resource_claim entry;
    struct dv_api_delete_options options;
    char name[32];
};

static void die(const char *what, const struct dv_err *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->msg);
    exit(1);
}

static void run_until(struct bench *bench, bool (*is_met)(void *ctx))
{
    if (!dv_loop_run_until(bench->loop, is_met, bench, WAIT_MS)) {
        (void)fprintf(stderr, "it takes too long\n");
        exit(1);
    }
}

/* ---- requests ---- */

static void ask_more(struct bench *bench);

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asked *asked = DV_CONTAINER(request, struct asked, request);

    if (failure) {
        (void)fprintf(stderr, "%.*s\n", DV_FMT(failure->message));
        exit(1);
    }
    asked->bench->n_running--;
    ask_more(asked->bench);
    free(asked);
}

static void ask_more(struct bench *bench)
{
    while (bench->n_asked < bench->n_pods && bench->n_running < N_ASKED_MAX) {
        struct asked *asked = DV_ALLOC(struct asked);

        asked->bench = bench;
        (void)snprintf(asked->name, sizeof(asked->name), "p%zu", bench->n_asked++);
        asked->request = (struct dv_request){.kind = dv_kind(DV_KIND_POD),
                                             .namespace = DV_STR("default"),
                                             .name = dv_str_from_c(asked->name),
                                             .done = on_done};
        bench->n_running++;
        bench->fill(asked);
        dv_request_start(dv_embedded_cluster(bench->embedded), &asked->request);
    }
}

static void fill_create(struct asked *asked)
{
    asked->entry = (struct dv_api_pod_resource_claim){.name = DV_STR("e"),
                                                      .resource_claim_template_name = DV_STR("t")};
    asked->container = (struct dv_api_container){.name = DV_STR("c"), .image = DV_STR("pause")};
    asked->pod.metadata.name = dv_str_from_c(asked->name);
    asked->pod.spec = (struct dv_api_pod_spec){.containers = &asked->container,
                                               .n_containers = 1,
                                               .resource_claims = &asked->entry,
                                               .n_resource_claims = 1};
    asked->request.verb = DV_VERB_CREATE;
    asked->request.name = DV_STR_NONE;
    asked->request.value = &asked->pod;
}

static void fill_delete(struct asked *asked)
{
    asked->request.verb = DV_VERB_DELETE;
    asked->request.delete_options = &asked->options;
}

/* ---- phases ---- */

static bool has_all_claims(void *ctx)
{
    const struct bench *bench = ctx;
    struct dv_control_stats stats;

    dv_control_get_stats(bench->control, &stats);
    return bench->n_running == 0 && bench->n_asked == bench->n_pods &&
           embedded_count(bench->embedded, dv_kind(DV_KIND_CLAIM)) == bench->n_claims_wanted &&
           stats.n_running + stats.n_waiting == 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* it is there on Linux */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void measure(struct bench *bench, const char *what, void (*fill)(struct asked *asked),
                    uint64_t n_claims_wanted)
{
    uint64_t from_ns = cpu_ns(); /* others may be at work on this machine */
    uint64_t ns;

    bench->n_asked = 0;
    bench->n_claims_wanted = n_claims_wanted;
    bench->fill = fill;
    ask_more(bench);
    run_until(bench, has_all_claims);
    ns = cpu_ns() - from_ns;
    (void)printf("%-28s %7zu pods: %6.1f us of CPU a pod\n", what, bench->n_pods,
                 (double)ns / 1e3 / (double)bench->n_pods);
}

static void make_template(struct bench *bench)
{
    struct dv_api_exact_device_request exact = {.device_class_name = DV_STR("gpu")};
    struct dv_api_device_request request = {.name = DV_STR("r"), .exactly = &exact};
    struct dv_api_resource_claim_template template = {
        .metadata.name = DV_STR("t"), .spec.spec.devices = {.requests = &request, .n_requests = 1}
    };
    struct asked *asked = DV_ALLOC(struct asked);

    asked->bench = bench;
    asked->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                         .kind = dv_kind(DV_KIND_TEMPLATE),
                                         .namespace = DV_STR("default"),
                                         .value = &template,
                                         .done = on_done};
    bench->n_running = 1;
    bench->n_asked = bench->n_pods; /* only this one */
    bench->n_claims_wanted = 0;
    dv_request_start(dv_embedded_cluster(bench->embedded), &asked->request);
    run_until(bench, has_all_claims);
}

static void set_true(void *ctx)
{
    *(size_t *)ctx = 0;
}

static bool is_closed(void *ctx)
{
    return ((const struct bench *)ctx)->n_running == 0;
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "the store was damaged: %s\n", set_aside);
    exit(1);
}

static void run(size_t n_pods)
{
    struct bench bench = {.n_pods = n_pods};
    const struct dv_store_options store = {.schema = &schema, .damaged = on_damaged};
    struct dv_control_options options = {.gates = dv_control_gates_default()};
    char path[64];
    struct dv_err err;

    bench.loop = dv_loop_new(dv_clock_real(), &err);
    if (!bench.loop)
        die("loop", &err);
    (void)snprintf(path, sizeof(path), "/dev/shm/bench-control-%d", (int)getpid());
    bench.store = dv_store_open(bench.loop, dv_str_from_c(path), &store, &err);
    if (!bench.store)
        die("store", &err);
    bench.embedded =
        dv_embedded_open(bench.loop, bench.store,
                         &(struct dv_embedded_options){.table_objects = 0, .table_meta = 1}, &err);
    if (!bench.embedded)
        die("API", &err);
    options.cluster = dv_embedded_cluster(bench.embedded);
    bench.control = dv_control_open(bench.loop, &options, &err);
    if (!bench.control)
        die("control", &err);
    make_template(&bench);
    measure(&bench, "a claim is generated", fill_create, n_pods);
    measure(&bench, "pod and claim go", fill_delete, 0);
    bench.n_running = 1;
    dv_control_close(bench.control, set_true, &bench.n_running);
    run_until(&bench, is_closed);
    bench.n_running = 1;
    dv_embedded_close(bench.embedded, set_true, &bench.n_running);
    run_until(&bench, is_closed);
    bench.n_running = 1;
    dv_store_close(bench.store, set_true, &bench.n_running);
    run_until(&bench, is_closed);
    store_files_remove(path);
    dv_loop_free(bench.loop);
}

int main(void)
{
    static const size_t sizes[] = {1000, 10000, 50000};

    for (size_t i = 0; i < DV_COUNT(sizes); i++)
        run(sizes[i]);
    return 0;
}
