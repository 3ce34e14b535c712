/* simulate.c - opens an API with its controllers and scheduler, makes objects (sim_objects.c) by
 * several clients at a time, and measures how long pods wait. */
#include "cli/explain/simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "cli/explain/sim_objects.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "control/control.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "sched/sched.h"
#include "store/store.h"
#include "json/json.h"

#define STATUS_BYTES_MAX 65536u
#define NS_PER_S 1e9
#define NS_PER_MS 1e6

/* ---- the world ---- */

struct sim;

/* A client that makes objects, one after the other. */
struct client {
    struct sim *sim;
    struct dv_arena *arena;
    struct dv_request request;
};

struct sim {
    const struct dv_sim_options *options;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_control *control;
    struct dv_sched *sched;
    struct dv_cluster *cluster;
    struct dv_view *pods;
    struct dv_view *claims;
    struct dv_err err; /* code DV_OK: nothing went wrong */
    struct client *clients;
    /* Makes the i-th of n objects, called for each client in turn. */
    void (*make)(struct client *client, size_t i);
    size_t n_begun;
    size_t n_wanted;
    size_t n_busy;
    uint64_t *made_ns;
    uint64_t *took_ns; /* 0: not bound */
    size_t n_bound;
    int n_closing;
};

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static void begin_next(struct client *client);

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct client *client = DV_CONTAINER(request, struct client, request);
    struct sim *sim = client->sim;

    sim->n_busy--;
    if (failure && sim->err.code == DV_OK)
        (void)dv_fail(&sim->err, DV_INTERNAL, "%.*s", DV_FMT(failure->message));
    if (sim->err.code == DV_OK)
        begin_next(client);
}

static void begin_next(struct client *client)
{
    struct sim *sim = client->sim;

    if (sim->n_begun == sim->n_wanted)
        return;
    dv_arena_reset(client->arena);
    sim->n_busy++;
    sim->make(client, sim->n_begun++);
}

static bool is_made(void *ctx)
{
    const struct sim *sim = ctx;

    return sim->n_busy == 0 && (sim->n_begun == sim->n_wanted || sim->err.code != DV_OK);
}

static bool make_all(struct sim *sim, size_t n, void (*make)(struct client *client, size_t i),
                     struct dv_err *err)
{
    sim->make = make;
    sim->n_begun = 0;
    sim->n_wanted = n;
    for (size_t i = 0; i < sim->options->n_clients; i++)
        begin_next(&sim->clients[i]);
    if (!dv_loop_run_until(sim->loop, is_made, sim, sim->options->timeout_ms))
        return dv_fail(err, DV_DEADLINE_EXCEEDED, "objects were not made in time");
    *err = sim->err;
    return sim->err.code == DV_OK;
}

static void create(struct client *client, enum dv_kind_id id, dv_str text)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(client->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(text, NULL, client->arena, &err);

    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, client->arena, value, NULL, &err))
        client->sim->err = err; /* and the API says what is missing */
    client->request = (struct dv_request){
        .verb = DV_VERB_CREATE,
        .kind = kind,
        .namespace = kind->is_namespaced ? DV_STR("default") : DV_STR(""),
        .value = value,
        .done = on_answer,
    };
    dv_request_start(client->sim->cluster, &client->request);
}

/* ---- what is made ---- */

static void make_class(struct client *client, size_t i)
{
    if (i == 0)
        create(client, DV_KIND_CLASS, dv_sim_class());
    else
        create(client, DV_KIND_TEMPLATE,
               dv_sim_template(client->sim->options->shape, client->arena));
}

static void make_node(struct client *client, size_t i)
{
    create(client, DV_KIND_NODE, dv_sim_node(i, client->arena));
}

static void make_slice(struct client *client, size_t i)
{
    create(client, DV_KIND_SLICE, dv_sim_slice(client->sim->options->n_devices, i, client->arena));
}

static void make_shared(struct client *client, size_t i)
{
    create(client, DV_KIND_CLAIM, dv_sim_shared_claim(i, client->arena));
}

static void make_pod(struct client *client, size_t i)
{
    client->sim->made_ns[i] = now_ns();
    create(client, DV_KIND_POD, dv_sim_pod(client->sim->options->shape, i, client->arena));
}

static void remove_pod(struct client *client, size_t i)
{
    static const int64_t at_once = 0;
    static const struct dv_api_delete_options options = {.grace_period_seconds = &at_once};

    client->request = (struct dv_request){
        .verb = DV_VERB_DELETE,
        .kind = dv_kind(DV_KIND_POD),
        .namespace = DV_STR("default"),
        .name = dv_str_printf(client->arena, "pod-%zu", i),
        .delete_options = &options,
        .done = on_answer,
    };
    dv_request_start(client->sim->cluster, &client->request);
}

static void on_pod(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct sim *sim = ctx;
    const struct dv_api_pod *pod = now ? now->value : NULL;
    uint32_t i;

    if (!now && old && sim->options->counted)
        sim->options->counted(sim->options->ctx, sim->options->n_pods - dv_view_n(sim->pods),
                              sim->options->n_pods);
    if (!pod || pod->spec.node_name.n == 0 ||
        !dv_str_to_u32(dv_str_slice(now->meta->name, 4, now->meta->name.n), &i) ||
        i >= sim->options->n_pods || sim->took_ns[i] != 0)
        return;
    sim->took_ns[i] = now_ns() - sim->made_ns[i];
    sim->n_bound++;
    if (sim->options->counted)
        sim->options->counted(sim->options->ctx, sim->n_bound, sim->options->n_pods);
}

static void on_claim(void *ctx, struct dv_object *old, struct dv_object *now)
{
    (void)ctx;
    (void)old;
    (void)now; /* counted */
}

/* Whether all pods are bound, or nothing has happened for a while and the queue has only pods that
 * wait. */
static bool is_scheduled(void *ctx)
{
    const struct sim *sim = ctx;

    return sim->n_bound == sim->options->n_pods;
}

static bool is_clean(void *ctx)
{
    const struct sim *sim = ctx;

    return dv_view_n(sim->pods) == 0 &&
           (sim->options->shape == DV_SIM_SHARED || dv_view_n(sim->claims) == 0);
}

/* ---- life ---- */

static bool has_default(void *ctx)
{
    const struct sim *sim = ctx;

    return dv_embedded_get(sim->embedded, dv_kind(DV_KIND_NAMESPACE), DV_STR(""),
                           DV_STR("default")) != NULL;
}

static bool are_ready(void *ctx)
{
    const struct sim *sim = ctx;

    return dv_control_is_ready(sim->control) && dv_sched_is_synced(sim->sched) &&
           dv_view_is_synced(sim->pods) && dv_view_is_synced(sim->claims);
}

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)set_aside; /* writes fail, and that is told */
}

static bool open_world(struct sim *sim, dv_str path, struct dv_err *err)
{
    const struct dv_store_options store = {.schema = &dv_node_schema, .damaged = on_damaged};
    const struct dv_embedded_options embedded = {.table_objects = DV_TABLE_OBJECTS,
                                                 .table_meta = DV_TABLE_META};
    struct dv_view_options pods = {.kind = dv_kind(DV_KIND_POD), .changed = on_pod, .ctx = sim};
    struct dv_view_options claims = {
        .kind = dv_kind(DV_KIND_CLAIM), .changed = on_claim, .ctx = sim};

    sim->loop = dv_loop_new(dv_clock_real(), err);
    if (!sim->loop)
        return false;
    sim->store = dv_store_open(sim->loop, path, &store, err);
    if (!sim->store)
        return false;
    sim->embedded = dv_embedded_open(sim->loop, sim->store, &embedded, err);
    if (!sim->embedded)
        return false;
    sim->cluster = dv_embedded_cluster(sim->embedded);
    sim->pods = dv_view_open(sim->cluster, &pods, err);
    if (!sim->pods)
        return false;
    sim->claims = dv_view_open(sim->cluster, &claims, err);
    return sim->claims != NULL && (dv_loop_run_until(sim->loop, has_default, sim, 10000) ||
                                   dv_fail(err, DV_INTERNAL, "the API did not start"));
}

static bool open_actors(struct sim *sim, struct dv_err *err)
{
    const struct dv_control_options control = {.cluster = sim->cluster,
                                               .gates = dv_control_gates_default()};
    const struct dv_sched_options sched = {.cluster = sim->cluster};

    sim->control = dv_control_open(sim->loop, &control, err);
    if (!sim->control)
        return false;
    sim->sched = dv_sched_open(sim->loop, &sched, err);
    return sim->sched != NULL &&
           (dv_loop_run_until(sim->loop, are_ready, sim, sim->options->timeout_ms) ||
            dv_fail(err, DV_INTERNAL, "the scheduler did not start"));
}

static void on_closed(void *ctx)
{
    ((struct sim *)ctx)->n_closing--;
}

static bool is_closed(void *ctx)
{
    return ((struct sim *)ctx)->n_closing == 0;
}

#define CLOSE(part, function)                                                                      \
    do {                                                                                           \
        if (sim->part) {                                                                           \
            sim->n_closing++;                                                                      \
            (function)(sim->part, on_closed, sim);                                                 \
            (void)!dv_loop_run_until(sim->loop, is_closed, sim, 10000);                            \
        }                                                                                          \
    } while (0)

static void close_all(struct sim *sim)
{
    CLOSE(sched, dv_sched_close);
    CLOSE(control, dv_control_close);
    if (sim->pods)
        dv_view_close(sim->pods);
    if (sim->claims)
        dv_view_close(sim->claims);
    CLOSE(embedded, dv_embedded_close);
    CLOSE(store, dv_store_close);
    dv_loop_free(sim->loop);
    for (size_t i = 0; sim->clients && i < sim->options->n_clients; i++)
        dv_arena_free(sim->clients[i].arena);
    free(sim->clients);
    free(sim->made_ns);
    free(sim->took_ns);
}

/* ---- results ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static size_t resident_kib(struct dv_arena *arena)
{
    const dv_str key = DV_STR("VmRSS:");
    struct dv_err err;
    dv_str text;
    dv_str line;
    uint32_t kib = 0;

    if (!dv_file_read(DV_STR("/proc/self/status"), STATUS_BYTES_MAX, arena, &text, &err))
        return 0;
    while (dv_str_split(&text, '\n', &line))
        if (dv_str_starts_with(line, key)) {
            line = dv_str_trim(dv_str_slice(line, key.n, line.n));
            if (!dv_str_to_u32(dv_str_slice(line, 0, dv_str_find_char(line, ' ')), &kib))
                kib = 0;
        }
    return kib;
}

/* The message of one of the pods that are not bound. */
static dv_str why_pending(const struct sim *sim, struct dv_arena *arena)
{
    const struct dv_object *object;

    for (size_t at = 0; (object = dv_view_next(sim->pods, &at)) != NULL;) {
        const struct dv_api_pod *pod = object->value;

        for (size_t i = 0; pod->spec.node_name.n == 0 && i < pod->status.n_conditions; i++)
            if (pod->status.conditions[i].message.n > 0)
                return dv_str_copy(pod->status.conditions[i].message, arena);
    }
    return DV_STR("");
}

static void measure(struct sim *sim, uint64_t begun_ns, uint64_t ended_ns, struct dv_arena *arena,
                    struct dv_sim_result *result)
{
    static const double parts[] = {0.5, 0.9, 0.99, 0.999, 1};
    struct dv_store_stats stats;
    size_t n = 0;

    for (size_t i = 0; i < sim->options->n_pods; i++)
        if (sim->took_ns[i] > 0)
            sim->took_ns[n++] = sim->took_ns[i];
    if (n > 0)
        qsort(sim->took_ns, n, sizeof(sim->took_ns[0]), compare_u64);
    for (size_t i = 0; n > 0 && i < DV_COUNT(parts); i++)
        result->ms[i] = (double)sim->took_ns[(size_t)((double)(n - 1) * parts[i])] / NS_PER_MS;
    result->n_bound = sim->n_bound;
    result->n_pending = sim->options->n_pods - sim->n_bound;
    result->why = result->n_pending > 0 ? why_pending(sim, arena) : DV_STR("");
    result->seconds = (double)(ended_ns - begun_ns) / NS_PER_S;
    result->pods_per_second = (double)sim->n_bound / result->seconds;
    result->rss_kib = resident_kib(arena);
    dv_store_get_stats(sim->store, &stats);
    result->n_writes = stats.n_writes;
    result->n_commits = stats.n_commits;
}

static void tell(const struct sim *sim, const char *what)
{
    if (sim->options->told)
        sim->options->told(sim->options->ctx, what);
}

static bool make_world(struct sim *sim, struct dv_err *err)
{
    const struct dv_sim_options *options = sim->options;
    size_t n_shared = options->shape == DV_SIM_SHARED
                          ? (options->n_pods + DV_SIM_PODS_A_CLAIM - 1) / DV_SIM_PODS_A_CLAIM
                          : 0;

    tell(sim, "making nodes and slices");
    return make_all(sim, options->shape == DV_SIM_NONE ? 1 : 2, make_class, err) &&
           make_all(sim, options->n_nodes, make_node, err) &&
           make_all(sim, options->n_nodes * dv_sim_slices_a_node(options->n_devices), make_slice,
                    err) &&
           make_all(sim, n_shared, make_shared, err);
}

static bool run(struct sim *sim, struct dv_arena *arena, struct dv_sim_result *result,
                struct dv_err *err)
{
    uint64_t begun_ns;
    uint64_t ended_ns;

    if (!make_world(sim, err) || !open_actors(sim, err))
        return false;
    tell(sim, "making and scheduling pods");
    begun_ns = now_ns();
    if (!make_all(sim, sim->options->n_pods, make_pod, err))
        return false;
    /* Pods that do not fit are counted, and not waited for without end. */
    (void)!dv_loop_run_until(sim->loop, is_scheduled, sim, sim->options->timeout_ms);
    ended_ns = now_ns();
    measure(sim, begun_ns, ended_ns, arena, result);
    tell(sim, "removing pods");
    begun_ns = now_ns();
    if (!make_all(sim, sim->options->n_pods, remove_pod, err))
        return false;
    if (!dv_loop_run_until(sim->loop, is_clean, sim, sim->options->timeout_ms))
        return dv_fail(err, DV_INTERNAL, "%zu pods and %zu claims are left after all were deleted",
                       dv_view_n(sim->pods), dv_view_n(sim->claims));
    result->cleanup_seconds = (double)(now_ns() - begun_ns) / NS_PER_S;
    return true;
}

bool dv_simulate(const struct dv_sim_options *options, struct dv_arena *arena,
                 struct dv_sim_result *result, struct dv_err *err)
{
    static const char *const files[] = {"state.db", "state.db-wal", "state.db-shm", "state.db.lock",
                                        "state.db.mark"};
    struct sim sim = {.options = options};
    const char *dir = dv_str_to_c(options->dir, arena);
    dv_str pattern = dv_str_printf(arena, "%s/davit-simulate-XXXXXX", dir);
    char *made = DV_NEW_ARRAY(arena, char, pattern.n + 1);
    bool ok;

    memcpy(made, pattern.p, pattern.n);
    *result = (struct dv_sim_result){0};
    if (!mkdtemp(made))
        return dv_fail_errno(err, errno, "make a folder in %s", dir);
    sim.made_ns = dv_alloc(sizeof(*sim.made_ns) * (options->n_pods + 1));
    sim.took_ns = dv_alloc(sizeof(*sim.took_ns) * (options->n_pods + 1));
    sim.clients = dv_alloc(sizeof(*sim.clients) * options->n_clients);
    for (size_t i = 0; i < options->n_clients; i++)
        sim.clients[i] = (struct client){.sim = &sim, .arena = dv_arena_new()};
    ok = open_world(&sim, dv_str_printf(arena, "%s/state.db", made), err) &&
         run(&sim, arena, result, err);
    close_all(&sim);
    for (size_t i = 0; i < DV_COUNT(files); i++)
        (void)unlink(dv_str_to_c(dv_str_printf(arena, "%s/%s", made, files[i]), arena));
    (void)rmdir(made); /* what is left there is not ours */
    return ok;
}
