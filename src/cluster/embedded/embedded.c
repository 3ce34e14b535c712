/* embedded.c - opens and closes the embedded API: loads what is stored, makes the namespaces that
 * always exist, and holds requests back until these are there. Closing ends views and watchers, and
 * waits for the operations that are under way. */
#include "cluster/embedded.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/collect.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/history.h"
#include "cluster/objects/object_owners.h"
#include "loop/loop.h"
#include "resource/custom.h"
#include "resource/object_pool.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "store/store.h"

#define N_HISTORY_MAX 10000u
/* How many Events are kept. The reference has no limit but the disk's; here an event takes a
 * kilobyte or two of memory. */
#define N_EVENTS_MAX 50000u
#define EVENTS_BYTES_MAX (64u * 1024u * 1024u)
#define WORKER_BYTES ((size_t)32 * 1024)
#define EVENT_TTL_MS (UINT64_C(60) * 60u * 1000u)
#define SPACE_DELAY_MS 5000u
#define OWNER_DELAY_MS 1000u
#define GATES (DV_GATES_DEFAULT | DV_GATE_LIST_ATTRIBUTES | DV_GATE_NODE_ALLOCATABLE)
/* The pause before the namespaces that always exist are tried again. */
#define START_AGAIN_MS 1000u

static const struct dv_cluster_engine engine = {
    .view_open = dv_embedded_view_open,
    .view_close = dv_embedded_view_close,
    .request_start = dv_embedded_request_start,
    .request_cancel = dv_embedded_request_cancel,
    .review_start = dv_embedded_review_start,
    .review_cancel = dv_embedded_review_cancel,
};

/* ---- loading ---- */

struct loading {
    struct dv_embedded *embedded;
    struct dv_arena *arena; /* for one row at a time */
};

static const struct dv_kind *kind_of_key(const struct dv_embedded *embedded, dv_str key,
                                         dv_str *rest)
{
    const dv_str custom = DV_STR(DV_CUSTOM_KEY);
    size_t n = dv_str_find_char(key, '/');

    *rest = dv_str_slice(key, n + 1, key.n);
    if (dv_str_starts_with(key, custom)) {
        const struct dv_custom_kind *made =
            dv_custom_kinds_by_key(&embedded->customs, dv_str_slice(key, custom.n, n));

        return made ? &made->kind : NULL;
    }
    for (size_t i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)i);

        if (dv_str_eq(kind->name, dv_str_slice(key, 0, n)))
            return kind;
    }
    return NULL;
}

/* Raises the counter to the version of what is loaded: it goes on from the largest one. */
static bool check_version(uint64_t version, struct dv_err *err)
{
    if (version == 0 || version > INT64_MAX)
        return dv_fail(err, DV_DATA_LOSS, "its resourceVersion is no number from 1 to %lld",
                       (long long)INT64_MAX);
    return true;
}

/* Puts a loaded object into its place. Takes the reference (dv_object_keep). */
static bool place_object(struct loading *loading, dv_str key, struct dv_object *object,
                         struct dv_err *err)
{
    struct dv_embedded *embedded = loading->embedded;
    struct dv_entry *entry = dv_collection_take(dv_engine_collection(embedded, object->kind),
                                                object->meta->namespace, object->meta->name);

    if (!entry || entry->object || !dv_str_eq(dv_engine_key(entry, loading->arena), key)) {
        if (entry && !entry->object)
            dv_collection_drop(entry);
        return dv_fail(err, DV_DATA_LOSS, "the row is not of the object in it");
    }
    (void)dv_collection_set(entry, object); /* looked up above: there was none */
    dv_object_owners_change(&embedded->owners, entry, NULL, object);
    dv_collector_loaded(embedded, entry, object->meta);
    embedded->version = dv_u64_max(embedded->version, object->version);
    return true;
}

static bool load_object(struct loading *loading, const struct dv_kind *kind,
                        const struct dv_store_row *row, struct dv_err *err)
{
    bool is_packed = dv_engine_is_packed(kind);
    struct dv_object *object =
        is_packed
            ? dv_object_pool_load(loading->embedded->pool, kind, row->value, loading->arena, err)
            : dv_object_from_row(kind, row->value, loading->arena, err);
    bool is_placed;
    bool is_good;

    if (!object)
        return false;
    is_placed = check_version(object->version, err) && place_object(loading, row->key, object, err);
    /* What is refused now is the collection's already. */
    is_good = is_placed && (dv_definitions_loaded(loading->embedded, object) ||
                            dv_fail(err, DV_RESOURCE_EXHAUSTED, "more than %u definitions",
                                    DV_CUSTOM_KINDS_MAX));
    if (is_packed)
        dv_object_forget_value(object);
    if (!is_placed)
        dv_object_unkeep(object);
    return is_good;
}

static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct loading *loading = ctx;
    dv_str rest;
    const struct dv_kind *kind = kind_of_key(loading->embedded, row->key, &rest);

    dv_arena_reset(loading->arena);
    if (!kind)
        return dv_fail(err, DV_FAILED_PRECONDITION, "stored object %.*s: of an unknown kind",
                       DV_FMT(row->key));
    return load_object(loading, kind, row, err) ||
           dv_wrap(err, "stored object %.*s", DV_FMT(row->key));
}

static bool load_meta(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct loading *loading = ctx;
    uint64_t version;

    if (!dv_str_eq(row->key, DV_STR(DV_ENGINE_VERSION_KEY)))
        return true; /* a row of a newer davit, which is kept for it */
    if (!dv_str_to_u64(row->value, &version) || version > INT64_MAX)
        return dv_fail(err, DV_DATA_LOSS, "stored version \"%.*s\": not a number up to %lld",
                       DV_FMT(row->value), (long long)INT64_MAX);
    loading->embedded->version = dv_u64_max(loading->embedded->version, version);
    return true;
}

static void clear(struct dv_embedded *embedded)
{
    dv_object_owners_fini(&embedded->owners);
    for (size_t i = 0; i < DV_N_KINDS; i++)
        dv_collection_fini(&embedded->collections[i]);
    dv_custom_kinds_fini(&embedded->customs);
    dv_slabs_fini(&embedded->entries);
}

static void set_up(struct dv_embedded *embedded)
{
    dv_object_owners_init(&embedded->owners);
    dv_slabs_init(&embedded->entries);
    dv_custom_kinds_init(&embedded->customs, &embedded->entries);
    for (size_t i = 0; i < DV_N_KINDS; i++)
        dv_collection_init(&embedded->collections[i], dv_kind((enum dv_kind_id)i),
                           &embedded->entries);
    /* Begins at 1 for an empty store: a list of version 0 would mean "any version". */
    embedded->version = 1;
}

static bool load(struct dv_embedded *embedded, struct dv_err *err)
{
    struct loading loading = {.embedded = embedded, .arena = dv_arena_new()};
    bool is_ok =
        dv_store_load(embedded->store, embedded->options.table_objects, load_row, &loading, err) &&
        dv_store_load(embedded->store, embedded->options.table_meta, load_meta, &loading, err);

    dv_arena_free(loading.arena);
    return is_ok;
}

/* ---- what always exists ---- */

static const struct {
    dv_str name;
    enum dv_kind_id kind;
    dv_str description; /* of a class of priorities */
} builtins[DV_N_BUILTINS] = {
    {DV_STR_INIT("default"),                 DV_KIND_NAMESPACE,      {0}                         },
    {DV_STR_INIT("kube-system"),             DV_KIND_NAMESPACE,      {0}                         },
    {DV_STR_INIT("kube-public"),             DV_KIND_NAMESPACE,      {0}                         },
    {DV_STR_INIT("kube-node-lease"),         DV_KIND_NAMESPACE,      {0}                         },
    {DV_STR_INIT("system-node-critical"),    DV_KIND_PRIORITY_CLASS,
     DV_STR_INIT("Used for system critical pods that must not be moved from their current node.")},
    {DV_STR_INIT("system-cluster-critical"), DV_KIND_PRIORITY_CLASS,
     DV_STR_INIT("Used for system critical pods that must run in the cluster, but can be moved to "
                 "another node if necessary.")                                                   },
};

static void make_builtins(struct dv_embedded *embedded);

static void on_start_again(struct dv_timer *timer)
{
    make_builtins(DV_CONTAINER(timer, struct dv_embedded, start_again));
}

static void get_ready(struct dv_embedded *embedded)
{
    if (embedded->is_ready)
        return;
    embedded->is_ready = true;
    dv_engine_release_held(embedded);
}

static void on_builtin(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_embedded *embedded = request->ctx;

    embedded->n_starting--;
    if (failure && failure->code != 409 && !embedded->is_closing) {
        dv_engine_report_retry("cannot make what always exists", failure);
        dv_timer_start(&embedded->start_again, embedded->cluster.loop,
                       dv_loop_now_ms(embedded->cluster.loop) + START_AGAIN_MS, on_start_again);
    }
    if (embedded->n_starting == 0)
        get_ready(embedded);
}

static void fill_builtin(struct dv_builtin *builtin, size_t i)
{
    int64_t value;

    memset(&builtin->value, 0, sizeof(builtin->value));
    if (builtins[i].kind == DV_KIND_NAMESPACE)
        builtin->value.namespace.metadata.name = builtins[i].name;
    else if (dv_system_priority(builtins[i].name, &value))
        builtin->value.priority =
            (struct dv_api_priority_class){.metadata.name = builtins[i].name,
                                           .value = value,
                                           .description = builtins[i].description};
}

static void make_builtins(struct dv_embedded *embedded)
{
    for (size_t i = 0; i < DV_N_BUILTINS; i++) {
        struct dv_builtin *builtin = &embedded->builtins[i];
        const struct dv_kind *kind = dv_kind(builtins[i].kind);

        if (builtin->request.priv ||
            dv_embedded_get(embedded, kind, DV_STR_NONE, builtins[i].name) ||
            (builtins[i].kind == DV_KIND_PRIORITY_CLASS && !embedded->options.has_accounts))
            continue;
        fill_builtin(builtin, i);
        builtin->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                               .kind = kind,
                                               .value = &builtin->value,
                                               .ctx = embedded,
                                               .done = on_builtin};
        embedded->n_starting++;
        dv_create_start(dv_cluster_operation_new(embedded, &builtin->request));
    }
    if (embedded->n_starting == 0)
        get_ready(embedded);
}

/* ---- life ---- */

static void fill_in(struct dv_embedded_options *options)
{
    if (options->gates == 0)
        options->gates = GATES;
    if (options->n_history_max == 0)
        options->n_history_max = N_HISTORY_MAX;
    if (options->worker_bytes == 0)
        options->worker_bytes = WORKER_BYTES;
    if (options->event_ttl_ms == 0)
        options->event_ttl_ms = EVENT_TTL_MS;
    if (options->n_events_max == 0)
        options->n_events_max = N_EVENTS_MAX;
    if (options->events_bytes_max == 0)
        options->events_bytes_max = EVENTS_BYTES_MAX;
    if (options->namespace_delay_ms == 0)
        options->namespace_delay_ms = SPACE_DELAY_MS;
    if (options->owner_delay_ms == 0)
        options->owner_delay_ms = OWNER_DELAY_MS;
}

struct dv_embedded *dv_embedded_open(struct dv_loop *loop, struct dv_store *store,
                                     const struct dv_embedded_options *options, struct dv_err *err)
{
    struct dv_embedded *embedded = DV_ALLOC(struct dv_embedded);
    struct dv_collection *collection;
    bool is_loaded;

    embedded->cluster = (struct dv_cluster){.engine = &engine, .loop = loop, .is_embedded = true};
    embedded->store = store;
    embedded->options = *options;
    fill_in(&embedded->options);
    dv_list_init(&embedded->answers);
    dv_list_init(&embedded->held);
    dv_list_init(&embedded->events);
    dv_collector_init(embedded);
    dv_quotas_init(embedded);
    embedded->pool = dv_object_pool_new(dv_engine_pool_grown, embedded);
    set_up(embedded);
    is_loaded = load(embedded, err);
    if (!is_loaded && err->code == DV_DATA_LOSS && dv_store_set_aside(store)) {
        /* The store was found damaged while it was read, and is empty now: so is memory. */
        clear(embedded);
        dv_collector_stop(embedded);
        dv_collector_init(embedded);
        set_up(embedded);
        is_loaded = load(embedded, err);
    }
    if (!is_loaded) {
        dv_collector_stop(embedded);
        clear(embedded);
        dv_object_pool_free(embedded->pool);
        free(embedded);
        return NULL;
    }
    embedded->last_version = embedded->version;
    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++)
        dv_history_init(&collection->history, embedded->options.n_history_max, embedded->version);
    dv_definitions_start(embedded);
    dv_collector_start(embedded);
    dv_quotas_start(embedded);
    make_builtins(embedded);
    return embedded;
}

void dv_engine_close_when_idle(struct dv_embedded *embedded)
{
    dv_closed_fn *closed = embedded->closed;
    void *ctx = embedded->closed_ctx;

    if (!embedded->is_closing || embedded->n_ops > 0)
        return;
    dv_task_cancel(&embedded->tell);
    dv_task_cancel(&embedded->idle);
    dv_task_cancel(&embedded->watch);
    dv_timer_cancel(&embedded->age); /* the last operations may have set it */
    dv_timer_cancel(&embedded->pack_idle);
    dv_task_cancel(&embedded->pack);
    dv_collector_fini(embedded);
    dv_quotas_fini(embedded);
    clear(embedded);
    dv_object_pool_free(embedded->pool);
    free(embedded->rewrite.after);
    dv_buf_fini(&embedded->row);
    free(embedded);
    if (closed)
        closed(ctx);
}

static void on_idle(struct dv_task *task)
{
    dv_engine_close_when_idle(DV_CONTAINER(task, struct dv_embedded, idle));
}

void dv_embedded_close(struct dv_embedded *embedded, dv_closed_fn *closed, void *ctx)
{
    embedded->closed = closed;
    embedded->closed_ctx = ctx;
    embedded->is_closing = true;
    dv_collector_stop(embedded);
    dv_definitions_stop(embedded);
    dv_timer_cancel(&embedded->start_again);
    dv_timer_cancel(&embedded->rewrite.timer);
    dv_watchers_end(embedded);
    dv_views_end(embedded);
    get_ready(embedded); /* requests that were held back are started now, and end with a failure */
    dv_task_post(&embedded->idle, embedded->cluster.loop, on_idle);
}

struct dv_cluster *dv_embedded_cluster(struct dv_embedded *embedded)
{
    return &embedded->cluster;
}

/* ---- reading ---- */

const struct dv_custom_set *dv_embedded_customs(const struct dv_embedded *embedded)
{
    return &embedded->customs.served;
}

uint64_t dv_embedded_version(const struct dv_embedded *embedded)
{
    return embedded->version;
}

struct dv_object *dv_embedded_get(const struct dv_embedded *embedded, const struct dv_kind *kind,
                                  dv_str namespace, dv_str name)
{
    const struct dv_collection *collection = dv_kind_is_custom(kind)
                                                 ? &dv_custom_kind_of(kind)->collection
                                                 : &embedded->collections[kind->id];
    const struct dv_entry *entry = dv_collection_get(collection, namespace, name);

    return entry ? dv_entry_object(entry) : NULL;
}
