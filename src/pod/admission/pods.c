#include "pod/pod.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/holdings.h"
#include "pod/admission/owner.h"
#include "pod/admission/pod_marks.h"
#include "pod/admission/pod_row.h"
#include "pod/admission/pods.h"
#include "pod/admission/runs.h"
#include "resource/resource.h"
#include "store/store.h"

static const char *const tables[] = {
    [DV_TABLE_DEVICES] = "devices", [DV_TABLE_PODS] = "pods",     [DV_TABLE_OBJECTS] = "objects",
    [DV_TABLE_META] = "meta",       [DV_TABLE_TOKENS] = "tokens", [DV_TABLE_CLAIMS] = "claims",
    [DV_TABLE_RUNS] = "runs",       [DV_TABLE_LEASES] = "leases",
};
const struct dv_store_schema dv_node_schema = {.tables = tables, .n_tables = DV_COUNT(tables)};

/* ---- pods ---- */

struct dv_pod *dv_pod_new(struct dv_pods *pods, struct dv_arena *arena,
                          const struct dv_pod_spec *spec)
{
    struct dv_pod *pod = DV_ALLOC(struct dv_pod);

    pod->pods = pods;
    pod->arena = arena;
    pod->spec = *spec;
    pod->full_name =
        dv_str_printf(arena, "%.*s/%.*s", DV_FMT(spec->ref.namespace), DV_FMT(spec->ref.name));
    pod->since_wall_ns = dv_clock_wall_ns(dv_loop_clock(pods->loop));
    dv_buf_init(&pod->row_text, DV_POD_ROW_BYTES_MAX);
    dv_buf_init(&pod->awaited, DV_POD_AWAITED_BYTES);
    return pod;
}

void dv_pod_free(struct dv_pod *pod)
{
    if (!pod)
        return;
    dv_owner_free(pod->owner);
    dv_buf_fini(&pod->awaited);
    dv_buf_fini(&pod->row_text);
    dv_object_unref(pod->object);
    dv_arena_free(pod->arena);
    free(pod);
}

void dv_pods_add(struct dv_pods *pods, struct dv_pod *pod)
{
    (void)dv_map_set(&pods->by_uid, pod->spec.ref.uid, pod);
    pod->older = dv_map_set(&pods->by_name, pod->full_name, pod);
    dv_pods_tell_changed(pods, pod->spec.ref.uid);
}

/* Takes the pod out of by_name; the next older pod of that name, if there is one, takes its
 * place. */
static void remove_name(struct dv_pods *pods, const struct dv_pod *pod)
{
    struct dv_pod *newer = dv_map_get(&pods->by_name, pod->full_name);

    if (newer != pod) {
        while (newer->older != pod)
            newer = newer->older;
        newer->older = pod->older;
    } else if (pod->older) {
        (void)dv_map_set(&pods->by_name, pod->older->full_name, pod->older); /* replaces it */
    } else {
        /* the value is `pod`, which the caller frees */
        (void)dv_map_remove(&pods->by_name, pod->full_name);
    }
}

void dv_pods_remove(struct dv_pods *pods, struct dv_pod *pod)
{
    (void)dv_map_remove(&pods->by_uid, pod->spec.ref.uid);
    remove_name(pods, pod);
    dv_pods_tell_changed(pods, pod->spec.ref.uid);
    dv_pod_free(pod);
}

struct dv_pod *dv_pods_get(const struct dv_pods *pods, const struct dv_pod_ref *ref)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    dv_str namespace = ref->namespace.n > 0 ? ref->namespace : DV_STR("default");

    if (ref->uid.n > 0)
        return dv_map_get(&pods->by_uid, ref->uid);
    arena = dv_arena_new();
    return dv_map_get(&pods->by_name,
                      dv_str_printf(arena, "%.*s/%.*s", DV_FMT(namespace), DV_FMT(ref->name)));
}

void dv_pods_renew(struct dv_pods *pods, struct dv_object *object)
{
    struct dv_pod *pod = dv_map_get(&pods->by_uid, object->meta->uid);

    if (!pod || pod->state != DV_POD_ADMITTED || !pod->object || pod->spec.object ||
        object->size_bytes > DV_POD_PRINTED_BYTES_MAX)
        return; /* something else needs the one that it has */
    dv_object_ref(object);
    dv_object_unref(pod->object);
    pod->object = object;
}

void dv_pods_fail_unknown(const struct dv_pod_ref *ref, struct dv_err *err)
{
    dv_str namespace = ref->namespace.n > 0 ? ref->namespace : DV_STR("default");

    if (ref->uid.n > 0)
        (void)dv_fail(err, DV_NOT_FOUND, "no pod with uid %.*s is admitted here", DV_FMT(ref->uid));
    else
        (void)dv_fail(err, DV_NOT_FOUND, "no pod %.*s/%.*s is admitted here", DV_FMT(namespace),
                      DV_FMT(ref->name));
}

void dv_pod_set_state(struct dv_pod *pod, enum dv_pod_state state)
{
    if (pod->state == state)
        return;
    pod->state = state;
    pod->since_wall_ns = dv_clock_wall_ns(dv_loop_clock(pod->pods->loop));
    if (state != DV_POD_WAITING)
        dv_buf_clear(&pod->awaited);
    dv_pods_tell_changed(pod->pods, pod->spec.ref.uid);
}

bool dv_pod_set_awaited(struct dv_pod *pod, const char *awaited)
{
    if (dv_str_eq(dv_buf_str(&pod->awaited), dv_str_from_c(awaited)))
        return false;
    dv_buf_clear(&pod->awaited);
    dv_buf_add_c(&pod->awaited, awaited);
    dv_pods_tell_changed(pod->pods, pod->spec.ref.uid);
    return true;
}

struct dv_device_request dv_pod_request(const struct dv_pod *pod, size_t i_container)
{
    const struct dv_pod_container *container = &pod->spec.containers[i_container];

    return (struct dv_device_request){
        .pod_uid = pod->spec.ref.uid,
        .container = container->name,
        .kind = container->kind,
        .limits = container->limits,
        .n_limits = container->n_limits,
    };
}

const char *dv_pod_state_name(enum dv_pod_state state)
{
    static const char *const names[] = {
        [DV_POD_WAITING] = "waiting",
        [DV_POD_ADMITTING] = "admitting",
        [DV_POD_ADMITTED] = "admitted",
        [DV_POD_RELEASING] = "releasing",
    };

    return names[state];
}

/* ---- what can be seen ---- */

static struct dv_pod_view view_of(const struct dv_pod *pod)
{
    bool waits_for_claims = pod->preparing && pod->preparing->awaited[0];

    return (struct dv_pod_view){
        .spec = &pod->spec,
        .state = waits_for_claims && pod->state == DV_POD_ADMITTING ? DV_POD_WAITING : pod->state,
        .awaited =
            waits_for_claims ? dv_str_from_c(pod->preparing->awaited) : dv_buf_str(&pod->awaited),
        .is_brief = waits_for_claims ? pod->preparing->is_brief
                                     : pod->state == DV_POD_ADMITTING && pod->awaited.n > 0,
        .since_wall_ns = pod->since_wall_ns,
        .was_admitted = pod->was_admitted,
        .may_run = pod->may_run,
        .has_ended = pod->has_ended,
        .is_owned = dv_owner_runs(pod->owner),
    };
}

uint64_t dv_pod_held_since_ms(const struct dv_pod_view *view)
{
    /* a pod of an older state has no such time */
    return view->spec->since_ms > 0 ? view->spec->since_ms : view->since_wall_ns / DV_NS_PER_MS;
}

bool dv_pods_next(const struct dv_pods *pods, size_t *at, struct dv_pod_view *view)
{
    const struct dv_map_entry *entry = dv_map_next(&pods->by_uid, at);

    if (!entry)
        return false;
    *view = view_of(entry->value);
    return true;
}

bool dv_pods_find(const struct dv_pods *pods, const struct dv_pod_ref *ref,
                  struct dv_pod_view *view)
{
    const struct dv_pod *pod = dv_pods_get(pods, ref);

    if (!pod)
        return false;
    *view = view_of(pod);
    return true;
}

size_t dv_pods_count(const struct dv_pods *pods)
{
    return pods->by_uid.n;
}

const struct dv_topology_counts *dv_pods_topology_counts(const struct dv_pods *pods)
{
    return &pods->counts;
}

bool dv_pods_has_policy(const struct dv_pods *pods)
{
    return pods->options.topology->policy != DV_TOPOLOGY_NONE;
}

static void on_changed(struct dv_task *task)
{
    struct dv_pods *pods = DV_CONTAINER(task, struct dv_pods, changed_task);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = pods->changed_arena;
    dv_str *uids = DV_NEW_ARRAY(arena, dv_str, pods->changed.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&pods->changed, &at)) != NULL;)
        uids[n++] = entry->key;
    dv_map_clear(&pods->changed);
    pods->changed_arena = NULL;
    pods->options.changed(pods->options.ctx, uids, n);
}

void dv_pods_tell_changed(struct dv_pods *pods, dv_str uid)
{
    if (!pods->options.changed || pods->is_closing || dv_map_get(&pods->changed, uid))
        return;
    if (!pods->changed_arena)
        pods->changed_arena = dv_arena_new();
    (void)dv_map_set(&pods->changed, dv_str_copy(uid, pods->changed_arena), pods);
    dv_task_post(&pods->changed_task, pods->loop, on_changed);
}

static void on_look(struct dv_task *task)
{
    dv_pods_look(DV_CONTAINER(task, struct dv_pods, look_task));
}

void dv_pods_look_again(struct dv_pods *pods)
{
    if (!dv_list_is_empty(&pods->waiting))
        dv_task_post(&pods->look_task, pods->loop, on_look);
}

/* ---- life ---- */

static void free_pods(struct dv_pods *pods)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&pods->by_uid, &at)) != NULL)
        dv_pod_free(entry->value);
    dv_holdings_free(pods->holdings);
    dv_pods_free_ended(pods);
    dv_runs_free_all(pods);
    dv_map_fini(&pods->changed);
    dv_arena_free(pods->changed_arena);
    dv_map_fini(&pods->by_uid);
    dv_map_fini(&pods->by_name);
    dv_pod_marks_close(pods->marks);
    free(pods);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_pods *pods = DV_CONTAINER(task, struct dv_pods, close_task);
    dv_closed_fn *closed = pods->closed;
    void *ctx = pods->closed_ctx;

    if (pods->n_under_way > 0)
        return;
    free_pods(pods);
    if (closed)
        closed(ctx);
}

static void check_closed(struct dv_pods *pods)
{
    if (pods->is_closing)
        dv_task_post(&pods->close_task, pods->loop, on_close_task);
}

void dv_pods_end_one(struct dv_pods *pods)
{
    assert(pods->n_under_way > 0);
    pods->n_under_way--;
    check_closed(pods);
}

void dv_pods_close(struct dv_pods *pods, dv_closed_fn *closed, void *ctx)
{
    assert(!pods->is_closing);
    pods->is_closing = true;
    pods->closed = closed;
    pods->closed_ctx = ctx;
    dv_task_cancel(&pods->changed_task);
    dv_task_cancel(&pods->look_task);
    dv_pods_cancel_waiting(pods);
    dv_pods_cancel_claims(pods);
    if (dv_timer_is_set(&pods->rewrite.timer))
        dv_pods_save_all(pods); /* one last attempt before the end */
    check_closed(pods);
}

/* Describes what the pod held, for the error about its unreadable row: " (it held ...)", or
 * nothing. */
static dv_str holdings_text(const struct dv_pods *pods, dv_str uid, struct dv_arena *arena)
{
    const struct dv_device_record *records;
    struct dv_claim **claims;
    size_t n_records = dv_device_records_of_pod(dv_device_manager_state(pods->options.devices), uid,
                                                arena, &records);
    size_t n_claims =
        dv_claim_of_pod(dv_claim_manager_state(pods->options.claims), uid, arena, &claims);
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n_records; i++)
        for (size_t k = 0; k < records[i].n_placed; k++)
            for (size_t m = 0; m < records[i].placed[k].n_ids; m++)
                text =
                    dv_str_printf(arena, "%.*s %.*s=%.*s", DV_FMT(text),
                                  DV_FMT(records[i].resource), DV_FMT(records[i].placed[k].ids[m]));
    for (size_t i = 0; i < n_claims; i++)
        text = dv_str_printf(arena, "%.*s claim %.*s/%.*s", DV_FMT(text),
                             DV_FMT(claims[i]->record.namespace), DV_FMT(claims[i]->record.name));
    return text.n > 0 ? dv_str_printf(arena, " (it held%.*s)", DV_FMT(text)) : text;
}

/* Loads one row. A pod that cannot be read is set aside by the store and holds nothing: its devices
 * are given back. */
static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    const dv_str ended = DV_STR(DV_POD_ENDED_PREFIX);
    struct dv_pods *pods = ctx;
    struct dv_arena *arena;
    struct dv_pod_spec spec;
    struct dv_pod *pod;
    dv_str text;

    /* A pod's uid may begin like the prefix, too, but the row of a pod is never empty. */
    if (dv_str_starts_with(row->key, ended) && dv_str_eq(row->value, DV_STR("{}"))) {
        dv_pods_note_ended(pods, dv_str_slice(row->key, ended.n, row->key.n));
        return true;
    }
    arena = dv_arena_new();
    text = dv_str_copy(row->value, arena);
    if (!dv_pod_row_parse(text, arena, &spec, err)) {
        (void)dv_wrap(err, "stored pod %.*s%.*s", DV_FMT(row->key),
                      DV_FMT(holdings_text(pods, row->key, arena)));
        dv_arena_free(arena);
        return false;
    }
    spec.ref.uid = dv_str_copy(row->key, arena);
    if (spec.object)
        spec.object->metadata.uid = spec.ref.uid;
    pod = dv_pod_new(pods, arena, &spec);
    pod->row = text;
    pod->state = DV_POD_ADMITTED;
    if (spec.since_ms > 0)
        pod->since_wall_ns = spec.since_ms * DV_NS_PER_MS;
    pod->was_admitted = true;
    /* without a mark it may be that a container was started, and the pod gets its grace period */
    pod->may_run = !dv_pod_marks_has(pods->marks, spec.ref.uid);
    dv_pods_add(pods, pod);
    dv_device_activate_pod(dv_device_manager_state(pods->options.devices), spec.ref.uid);
    pod->owner = dv_owner_watch(pod);
    return true;
}

static bool is_known(const void *ctx, dv_str uid)
{
    const struct dv_pods *pods = ctx;

    return dv_map_get(&pods->by_uid, uid) != NULL;
}

struct dv_pods *dv_pods_open(struct dv_loop *loop, const struct dv_pods_options *options,
                             struct dv_err *err)
{
    struct dv_pods *pods = DV_ALLOC(struct dv_pods);
    struct dv_device_state *state = dv_device_manager_state(options->devices);

    pods->loop = loop;
    pods->options = *options;
    dv_map_init(&pods->by_uid);
    dv_map_init(&pods->by_name);
    dv_map_init(&pods->ended);
    dv_map_init(&pods->changed);
    dv_map_init(&pods->runs);
    dv_list_init(&pods->waiting);
    dv_list_init(&pods->claim_ops);
    pods->marks = dv_pod_marks_open(options->marks_dir, options->boot_id);
    pods->holdings = dv_holdings_new(pods);
    if (!dv_store_load(options->store, DV_TABLE_PODS, load_row, pods, err) ||
        !dv_store_load(options->store, DV_TABLE_RUNS, dv_runs_load, pods, err)) {
        dv_task_cancel(&pods->changed_task);
        free_pods(pods);
        return NULL;
    }
    dv_pod_marks_sweep(pods->marks, is_known, pods);
    /* The store is the only source of pods: a device whose pod is not in it is free. */
    dv_device_set_sources_ready(state, true);
    (void)dv_device_collect(state); /* the number of pods that it collected is not needed */
    dv_holdings_rebuild(pods->holdings);
    return pods;
}

bool dv_pods_connect(struct dv_pods *pods, struct dv_cluster *cluster, struct dv_err *err)
{
    return dv_holdings_connect(pods->holdings, cluster, err);
}

void dv_pods_set_runtime(struct dv_pods *pods, bool has_runtime)
{
    pods->has_runtime = has_runtime;
}
