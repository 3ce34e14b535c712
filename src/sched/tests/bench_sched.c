/* bench_sched - pods scheduled through the embedded API, durable: pods a second and how long each
 * waited.
 *
 *     bench_sched [DIRECTORY [NAME]]     the default: /tmp, all of them
 *
 * Claims are made as the controller of templates makes them, one a pod, and given back as it would.
 * "burst": the pods are there when the scheduler starts; "flow": they are made meanwhile, which
 * costs the same process and the same disk three more writes a pod; "steady": each pod goes when it
 * is bound, on a cluster that is filled before. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "store/store.h"
#include "support/bench.h"
#include "support/store_files.h"
#include "json/json.h"

#define N_CLIENTS 128u
#define WAIT_MS 600000u

static const char *const tables[] = {"objects", "meta"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = 2};

enum mode {
    BURST,
    FLOW,
    STEADY,
};

struct shape {
    const char *name;
    enum mode mode;
    size_t n_pods;
    size_t n_nodes;
    size_t n_devices;    /* a node */
    size_t n_held;       /* of them, before */
    size_t n_sharing;    /* pods that use one claim; 0: each has its own */
    const char *request; /* the claim's spec.devices */
};

#define ONE "{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu\"}}]}"
#define CEL                                                                                        \
    "{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu\",\"selectors\":[{"   \
    "\"cel\":{\"expression\":\"device.attributes[\\\"gpu.example\\\"].model == \\\"m\\\" && "      \
    "device.capacity[\\\"gpu.example\\\"].memory.compareTo(quantity(\\\"40Gi\\\")) >= 0\"}}]}}]}"
#define MATCH                                                                                      \
    "{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu\",\"count\":2}}],"    \
    "\"constraints\":[{\"matchAttribute\":\"gpu.example/group\"}]}"

static const struct shape shapes[] = {
    {"template_2000pods_100nodes",   BURST,  2000,  100,  20, 0, 0,  ONE  },
    {"template_2000pods_200nodes",   BURST,  2000,  200,  10, 0, 0,  ONE  },
    {"template_5000pods_500nodes",   BURST,  5000,  500,  10, 0, 0,  ONE  },
    {"template_50000pods_5000nodes", BURST,  50000, 5000, 10, 0, 0,  ONE  },
    {"flow_5000pods_500nodes",       FLOW,   5000,  500,  10, 0, 0,  ONE  },
    {"steady_empty_500nodes",        STEADY, 4000,  500,  10, 0, 0,  ONE  },
    {"steady_half_500nodes",         STEADY, 4000,  500,  10, 5, 0,  ONE  },
    {"steady_full_500nodes",         STEADY, 4000,  500,  10, 9, 0,  ONE  },
    {"shared_5000pods_500nodes",     BURST,  5000,  500,  10, 0, 10, ONE  },
    {"cel_5000pods_500nodes",        BURST,  5000,  500,  10, 0, 0,  CEL  },
    {"match_2500pods_500nodes",      BURST,  2500,  500,  10, 0, 0,  MATCH},
};

struct bench;

/* Who makes objects, one after the other. */
struct client {
    struct bench *bench;
    struct dv_request request;
    struct dv_arena *arena;
    size_t pod;
    unsigned step;
    dv_str uid;
};

struct bench {
    const struct shape *shape;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_cluster *cluster;
    struct dv_sched *sched;
    struct dv_view *pods;
    char path[200];
    size_t n_made;
    size_t n_max;
    size_t n_busy;
    size_t n_bound;
    uint64_t *made_ns;
    uint64_t *bound_ns;
    struct client clients[N_CLIENTS];
};

/* ---- requests ---- */

static void step(struct client *client);

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct client *client = DV_CONTAINER(request, struct client, request);

    if (failure && failure->code != 404) {
        (void)fprintf(stderr, "request: %.*s\n", DV_FMT(failure->message));
        exit(1);
    }
    if (request->object)
        client->uid = dv_str_copy(request->object->meta->uid, client->arena);
    step(client);
}

static struct dv_json *parse(struct client *client, dv_str text)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, NULL, client->arena, &err);

    bench_must(doc != NULL, "json", &err);
    return doc;
}

static void start(struct client *client, enum dv_kind_id kind, struct dv_request request)
{
    client->request = request;
    client->request.kind = dv_kind(kind);
    if (client->request.kind->is_namespaced)
        client->request.namespace = DV_STR("default");
    client->request.done = on_answer;
    dv_request_start(client->bench->cluster, &client->request);
}

static void create(struct client *client, enum dv_kind_id kind, dv_str text)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    void *value = dv_arena_alloc(client->arena, message->size, message->align);
    struct dv_err err;

    bench_must(dv_decode_json(message, parse(client, text), DV_UNKNOWN_DROP, client->arena, value,
                              NULL, &err),
               "decode", &err);
    start(client, kind, (struct dv_request){.verb = DV_VERB_CREATE, .value = value});
}

static void patch(struct client *client, enum dv_kind_id kind, enum dv_subresource subresource,
                  dv_str name, dv_str text)
{
    start(client, kind,
          (struct dv_request){.verb = DV_VERB_PATCH,
                              .subresource = subresource,
                              .name = name,
                              .patch_type = DV_PATCH_MERGE,
                              .patch = parse(client, text)});
}

static void destroy(struct client *client, enum dv_kind_id kind, dv_str name)
{
    static const int64_t at_once = 0;
    static const struct dv_api_delete_options options = {.grace_period_seconds = &at_once};

    start(client, kind,
          (struct dv_request){.verb = DV_VERB_DELETE, .name = name, .delete_options = &options});
}

/* ---- nodes ---- */

static dv_str slice_text(struct client *client, size_t node)
{
    const struct shape *shape = client->bench->shape;
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, 1u << 20);
    dv_buf_printf(&buf,
                  "{\"metadata\":{\"name\":\"slice-%zu\"},\"spec\":{\"driver\":\"gpu.example\","
                  "\"nodeName\":\"node-%zu\",\"pool\":{\"name\":\"node-%zu\",\"generation\":1,"
                  "\"resourceSliceCount\":1},\"devices\":[",
                  node, node, node);
    for (size_t i = 0; i < shape->n_devices; i++)
        dv_buf_printf(&buf,
                      "%s{\"name\":\"gpu-%zu\",\"attributes\":{\"model\":{\"string\":\"m\"},"
                      "\"group\":{\"int\":%zu},\"uuid\":{\"string\":\"u-%zu-%zu\"}},\"capacity\":{"
                      "\"memory\":{\"value\":\"80Gi\"}}}",
                      i > 0 ? "," : "", i, i / 2, node, i);
    dv_buf_add_c(&buf, "]}}");
    text = dv_str_copy(dv_buf_str(&buf), client->arena);
    dv_buf_fini(&buf);
    return text;
}

/* A claim that holds devices of the node, as one that is in use by a pod elsewhere. */
static dv_str held_text(struct client *client, size_t node)
{
    const struct shape *shape = client->bench->shape;
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, 1u << 20);
    dv_buf_add_c(&buf, "{\"status\":{\"allocation\":{\"devices\":{\"results\":[");
    for (size_t i = 0; i < shape->n_held; i++)
        dv_buf_printf(&buf,
                      "%s{\"request\":\"gpu\",\"driver\":\"gpu.example\",\"pool\":\"node-%zu\","
                      "\"device\":\"gpu-%zu\"}",
                      i > 0 ? "," : "", node, i);
    dv_buf_add_c(&buf, "]}}}}");
    text = dv_str_copy(dv_buf_str(&buf), client->arena);
    dv_buf_fini(&buf);
    return text;
}

/* False when it is complete. */
static bool make_node(struct client *client)
{
    size_t i = client->pod;
    struct dv_arena *arena = client->arena;

    switch (client->step++) {
    case 0:
        create(client, DV_KIND_NODE,
               dv_str_printf(arena,
                             "{\"metadata\":{\"name\":\"node-%zu\"},\"status\":{\"allocatable\":{"
                             "\"cpu\":\"32\",\"memory\":\"256Gi\",\"pods\":\"110\"}}}",
                             i));
        return true;
    case 1:
        create(client, DV_KIND_SLICE, slice_text(client, i));
        return true;
    case 2:
        if (client->bench->shape->n_held == 0)
            return false;
        create(client, DV_KIND_CLAIM,
               dv_str_printf(arena,
                             "{\"metadata\":{\"name\":\"held-%zu\"},\"spec\":{\"devices\":{"
                             "\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":"
                             "\"gpu\",\"count\":%zu}}]}}}",
                             i, client->bench->shape->n_held));
        return true;
    case 3:
        patch(client, DV_KIND_CLAIM, DV_SUB_STATUS, dv_str_printf(arena, "held-%zu", i),
              held_text(client, i));
        return true;
    default:
        return false;
    }
}

/* ---- pods ---- */

static dv_str claim_text(struct client *client, size_t i)
{
    return dv_str_printf(client->arena,
                         "{\"metadata\":{\"name\":\"pod-%zu-gpu\",\"annotations\":{"
                         "\"resource.kubernetes.io/pod-claim-name\":\"gpu\"},\"ownerReferences\":[{"
                         "\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"pod-%zu\",\"uid\":"
                         "\"%.*s\",\"controller\":true}]},\"spec\":{\"devices\":%s}}",
                         i, i, DV_FMT(client->uid), client->bench->shape->request);
}

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"pod-%zu\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":" \
    "\"pause\",\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"500Mi\"},\"claims\":[{"  \
    "\"name\":\"gpu\"}]}}],\"resourceClaims\":[{\"name\":\"gpu\",%s}]}}"

static bool make_own(struct client *client)
{
    size_t i = client->pod;
    struct dv_arena *arena = client->arena;

    switch (client->step++) {
    case 0:
        create(client, DV_KIND_POD,
               dv_str_printf(arena, POD, i, "\"resourceClaimTemplateName\":\"gpu\""));
        return true;
    case 1:
        create(client, DV_KIND_CLAIM, claim_text(client, i));
        return true;
    case 2:
        client->bench->made_ns[i] = bench_now_ns();
        patch(client, DV_KIND_POD, DV_SUB_STATUS, dv_str_printf(arena, "pod-%zu", i),
              dv_str_printf(arena,
                            "{\"status\":{\"resourceClaimStatuses\":[{\"name\":\"gpu\","
                            "\"resourceClaimName\":\"pod-%zu-gpu\"}]}}",
                            i));
        return true;
    default:
        return false;
    }
}

static bool make_sharing(struct client *client)
{
    size_t i = client->pod;
    size_t claim = i / client->bench->shape->n_sharing;
    struct dv_arena *arena = client->arena;

    if (client->step == 0 && i % client->bench->shape->n_sharing != 0)
        client->step = 1;
    switch (client->step++) {
    case 0:
        create(client, DV_KIND_CLAIM,
               dv_str_printf(arena,
                             "{\"metadata\":{\"name\":\"claim-%zu\"},\"spec\":{\"devices\":%s}}",
                             claim, client->bench->shape->request));
        return true;
    case 1: {
        dv_str source = dv_str_printf(arena, "\"resourceClaimName\":\"claim-%zu\"", claim);

        client->bench->made_ns[i] = bench_now_ns();
        create(client, DV_KIND_POD, dv_str_printf(arena, POD, i, dv_str_to_c(source, arena)));
        return true;
    }
    default:
        return false;
    }
}

/* What the kubelet and the controller do when a pod is over. */
static bool end_pod(struct client *client)
{
    size_t i = client->pod;
    struct dv_arena *arena = client->arena;
    dv_str claim = dv_str_printf(arena, "pod-%zu-gpu", i);

    switch (client->step++) {
    case 10:
        destroy(client, DV_KIND_POD, dv_str_printf(arena, "pod-%zu", i));
        return true;
    case 11:
        patch(client, DV_KIND_CLAIM, DV_SUB_STATUS, claim,
              DV_STR("{\"status\":{\"allocation\":null,\"reservedFor\":null}}"));
        return true;
    case 12:
        patch(client, DV_KIND_CLAIM, DV_SUB_NONE, claim,
              DV_STR("{\"metadata\":{\"finalizers\":null}}"));
        return true;
    default:
        return false;
    }
}

/* ---- clients ---- */

static bool (*made_by(const struct bench *bench))(struct client *client)
{
    if (!bench->made_ns)
        return make_node;
    return bench->shape->n_sharing > 0 ? make_sharing : make_own;
}

static void next(struct client *client)
{
    struct bench *bench = client->bench;

    bench->n_busy--;
    if (bench->n_made == bench->n_max)
        return;
    bench->n_busy++;
    dv_arena_reset(client->arena);
    client->pod = bench->n_made++;
    client->step = 0;
    step(client);
}

static void step(struct client *client)
{
    struct bench *bench = client->bench;

    if (client->step >= 10 ? end_pod(client) : made_by(bench)(client))
        return;
    /* A steady one goes on when the pod is bound. */
    if (bench->shape->mode != STEADY || !bench->made_ns || client->step > 10)
        next(client);
    else
        client->step = bench->bound_ns[client->pod] ? 10 : 9;
    if (client->step == 10)
        step(client);
}

static bool is_idle(void *ctx)
{
    return ((const struct bench *)ctx)->n_busy == 0;
}

static void wait_for(struct bench *bench, bool (*is_met)(void *ctx), void *ctx)
{
    bench_must(dv_loop_run_until(bench->loop, is_met, ctx, WAIT_MS), "waiting", NULL);
}

static void start_clients(struct bench *bench, size_t n, size_t n_clients)
{
    bench->n_made = 0;
    bench->n_max = n;
    bench->n_busy = n_clients;
    for (size_t i = 0; i < n_clients; i++) {
        struct client *client = &bench->clients[i];

        client->bench = bench;
        if (!client->arena)
            client->arena = dv_arena_new();
        next(client);
    }
}

/* ---- what is seen ---- */

static void on_pod(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct bench *bench = ctx;
    const struct dv_api_pod *pod = now ? now->value : NULL;
    size_t i;

    (void)old;
    if (!pod || pod->spec.node_name.n == 0 ||
        !dv_str_to_size(dv_str_slice(pod->metadata.name, 4, pod->metadata.name.n), &i) ||
        bench->bound_ns[i])
        return;
    bench->bound_ns[i] = bench_now_ns();
    bench->n_bound++;
    for (size_t j = 0; bench->shape->mode == STEADY && j < N_CLIENTS; j++)
        if (bench->clients[j].pod == i && bench->clients[j].step == 9) {
            bench->clients[j].step = 10;
            step(&bench->clients[j]);
        }
}

static bool are_all_bound(void *ctx)
{
    const struct bench *bench = ctx;

    return bench->n_bound == bench->shape->n_pods && bench->n_busy == 0;
}

static void report(struct bench *bench, uint64_t begin_ns, uint64_t ns, uint64_t cpu,
                   uint64_t loop_cpu)
{
    size_t n = bench->shape->n_pods;
    size_t middle = n / 2;
    size_t slow = n * 99 / 100;
    struct dv_sched_numbers numbers;

    for (size_t i = 0; i < n; i++)
        bench->bound_ns[i] -= bench->made_ns[i] > begin_ns ? bench->made_ns[i] : begin_ns;
    qsort(bench->bound_ns, n, sizeof(bench->bound_ns[0]), bench_by_size);
    dv_sched_get_numbers(bench->sched, &numbers);
    printf("  %-30s %7.0f pods/s  p50 %7.1f ms  p99 %7.1f ms  cpu %5.1f us (loop %5.1f)  nodes "
           "%6.1f  allocator %5.2f  RSS %zu MiB\n",
           bench->shape->name, (double)n / ((double)ns / 1e9),
           (double)bench->bound_ns[middle] / 1e6, (double)bench->bound_ns[slow] / 1e6,
           (double)cpu / 1e3 / (double)n, (double)loop_cpu / 1e3 / (double)n,
           (double)numbers.n_node_visits / (double)n, (double)numbers.n_allocations / (double)n,
           bench_resident_kib() / 1024);
}

/* ---- a run ---- */

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)fprintf(stderr, "damaged: %s\n", set_aside);
    exit(1);
}

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static void open_all(struct bench *bench)
{
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    const struct dv_embedded_options how = {.table_objects = 0, .table_meta = 1};
    struct client *client = &bench->clients[0];
    struct dv_err err;

    bench->loop = dv_loop_new(dv_clock_real(), &err);
    bench_must(bench->loop != NULL, "loop", &err);
    bench->store = dv_store_open(bench->loop, dv_str_from_c(bench->path), &options, &err);
    bench_must(bench->store != NULL, "store", &err);
    bench->embedded = dv_embedded_open(bench->loop, bench->store, &how, &err);
    bench_must(bench->embedded != NULL, "embedded", &err);
    bench->cluster = dv_embedded_cluster(bench->embedded);
    client->bench = bench;
    client->arena = dv_arena_new();
    client->step = 100; /* no more than this */
    bench->n_busy = 1;
    create(client, DV_KIND_CLASS,
           DV_STR("{\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"selectors\":[{\"cel\":{"
                  "\"expression\":\"device.driver == \\\"gpu.example\\\"\"}}]}}"));
    wait_for(bench, is_idle, bench);
    start_clients(bench, bench->shape->n_nodes, N_CLIENTS);
    wait_for(bench, is_idle, bench);
}

static void close_all(struct bench *bench)
{
    bool is_closed = false;

    dv_sched_close(bench->sched, set_true, &is_closed);
    wait_for(bench, is_true, &is_closed);
    dv_view_close(bench->pods);
    is_closed = false;
    dv_embedded_close(bench->embedded, set_true, &is_closed);
    wait_for(bench, is_true, &is_closed);
    is_closed = false;
    dv_store_close(bench->store, set_true, &is_closed);
    wait_for(bench, is_true, &is_closed);
    dv_loop_free(bench->loop);
    for (size_t i = 0; i < N_CLIENTS; i++)
        dv_arena_free(bench->clients[i].arena);
    store_files_remove(bench->path);
    free(bench->made_ns);
    free(bench->bound_ns);
}

static void run(const struct shape *shape, const char *dir)
{
    static struct bench bench;
    struct dv_sched_options options = {0};
    struct dv_view_options seen = {.kind = dv_kind(DV_KIND_POD), .changed = on_pod, .ctx = &bench};
    struct dv_err err;
    uint64_t begin;
    uint64_t cpu;
    uint64_t loop_cpu;

    bench = (struct bench){.shape = shape};
    (void)snprintf(bench.path, sizeof(bench.path), "%s/bench-sched-%d", dir, (int)getpid());
    open_all(&bench);
    bench.made_ns = dv_alloc(shape->n_pods * sizeof(bench.made_ns[0]));
    bench.bound_ns = dv_alloc(shape->n_pods * sizeof(bench.bound_ns[0]));
    bench.pods = dv_view_open(bench.cluster, &seen, &err);
    bench_must(bench.pods != NULL, "view", &err);
    if (shape->mode == BURST) {
        start_clients(&bench, shape->n_pods, N_CLIENTS);
        wait_for(&bench, is_idle, &bench);
    }
    options.cluster = bench.cluster;
    begin = bench_now_ns();
    cpu = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    loop_cpu = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    bench.sched = dv_sched_open(bench.loop, &options, &err);
    bench_must(bench.sched != NULL, "sched", &err);
    if (shape->mode != BURST)
        start_clients(&bench, shape->n_pods, N_CLIENTS);
    wait_for(&bench, are_all_bound, &bench);
    report(&bench, begin, bench_now_ns() - begin, bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu,
           bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - loop_cpu);
    close_all(&bench);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "/tmp";

    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a report as it goes */
    printf("%s\n", dir);
    for (size_t i = 0; i < DV_COUNT(shapes); i++)
        if (argc < 3 || strstr(shapes[i].name, argv[2]))
            run(&shapes[i], dir);
    return 0;
}
