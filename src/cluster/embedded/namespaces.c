/* namespaces.c - what the collector does for many objects at a time: it empties a namespace that is
 * being deleted, kind by kind, and then lets it go; and it sweeps Events that are old. */
#include "cluster/embedded/namespaces.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/collect.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/events.h"
#include "cluster/objects/collection.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* ---- namespaces ---- */

static bool has_content(struct dv_embedded *embedded, dv_str namespace)
{
    const struct dv_collection *collection;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++) {
        struct dv_collection_range range = dv_collection_range(collection, namespace);

        if (collection->kind->is_namespaced && dv_collection_range_next(&range))
            return true;
    }
    return false;
}

/* Whether something in the namespace is being written: a request that began before the namespace
 * was deleted may still create an object. This walks everything, but is asked only once, at the
 * end. */
static bool has_writers(struct dv_embedded *embedded, dv_str namespace)
{
    const struct dv_collection *collection;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++) {
        const struct dv_entry *entry;
        size_t at = 0;

        while ((entry = dv_names_next(&collection->names, &at)) != NULL)
            if (entry->operation && entry->n_namespace > 0 &&
                dv_str_eq(dv_entry_namespace(entry), namespace))
                return true;
    }
    return false;
}

/* ---- what is left, as the status tells it ---- */

/* While more objects than this are left their number is told once: each that goes would be another
 * write. */
#define TOLD_MAX 100u
#define TEXT_BYTES_MAX (16u * 1024u)
#define N_FINALIZERS_MAX 100u

/* A finalizer, and how many objects wait for it. */
struct held {
    dv_str finalizer;
    size_t n;
};

struct left {
    size_t n;
    struct dv_buf resources;            /* "pods. has 1 resource instances, ..." */
    struct held held[N_FINALIZERS_MAX]; /* by name */
    size_t n_held;
};

static void add_held(struct left *left, dv_str finalizer)
{
    size_t at = 0;

    while (at < left->n_held && dv_str_cmp(left->held[at].finalizer, finalizer) < 0)
        at++;
    if (at < left->n_held && dv_str_eq(left->held[at].finalizer, finalizer)) {
        left->held[at].n++;
        return;
    }
    if (left->n_held == N_FINALIZERS_MAX)
        return;
    memmove(&left->held[at + 1], &left->held[at], (left->n_held - at) * sizeof(left->held[0]));
    left->held[at] = (struct held){finalizer, 1};
    left->n_held++;
}

static void count_left(struct dv_embedded *embedded, dv_str namespace, struct left *left)
{
    const struct dv_collection *collection;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++) {
        struct dv_collection_range range = dv_collection_range(collection, namespace);
        const struct dv_entry *entry;
        size_t n = 0;

        if (!collection->kind->is_namespaced)
            continue;
        for (; (entry = dv_collection_range_next(&range)) != NULL; n++) {
            const struct dv_api_object_meta *meta = dv_entry_object(entry)->meta;

            for (size_t k = 0; k < meta->n_finalizers; k++)
                add_held(left, meta->finalizers[k]);
        }
        if (n > 0)
            dv_buf_printf(&left->resources, "%s%.*s.%.*s has %zu resource instances",
                          left->n > 0 ? ", " : "", DV_FMT(collection->kind->plural),
                          DV_FMT(collection->kind->versions[0].group), n);
        left->n += n;
    }
}

static dv_str held_text(const struct left *left, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < left->n_held; i++)
        dv_buf_printf(&buf, "%s%.*s in %zu resource instances", i > 0 ? ", " : "",
                      DV_FMT(left->held[i].finalizer), left->held[i].n);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* Sets a condition; the time of its transition stays while its status does. */
static void set_condition(struct dv_cluster_operation *operation,
                          struct dv_api_namespace_status *status, const char *type, bool is_true,
                          const char *reason, dv_str message)
{
    struct dv_api_namespace_condition *all =
        DV_NEW_ARRAY(operation->arena, struct dv_api_namespace_condition, status->n_conditions + 1);
    dv_str now = is_true ? DV_STR("True") : DV_STR("False");
    struct dv_time since = dv_cluster_operation_now(operation);
    size_t at = 0;

    if (status->n_conditions > 0)
        memcpy(all, status->conditions, status->n_conditions * sizeof(all[0]));
    while (at < status->n_conditions && !dv_str_eq(all[at].type, dv_str_from_c(type)))
        at++;
    if (at == status->n_conditions)
        status->n_conditions++;
    else if (dv_str_eq(all[at].status, now))
        since = all[at].last_transition_time;
    all[at].type = dv_str_from_c(type);
    all[at].status = now;
    all[at].last_transition_time = since;
    all[at].reason = dv_str_from_c(reason);
    all[at].message = message;
    status->conditions = all;
}

/* Sets the conditions of a namespace that is being deleted, by what is left in it. */
static void set_conditions(struct dv_cluster_operation *operation,
                           struct dv_api_namespace *namespace, const struct left *left)
{
    struct dv_api_namespace_status *status = &namespace->status;
    struct dv_arena *arena = operation->arena;

    set_condition(operation, status, "NamespaceDeletionDiscoveryFailure", false,
                  "ResourcesDiscovered", DV_STR("All resources successfully discovered"));
    set_condition(operation, status, "NamespaceDeletionGroupVersionParsingFailure", false,
                  "ParsedGroupVersions", DV_STR("All legacy kube types successfully parsed"));
    set_condition(operation, status, "NamespaceDeletionContentFailure", false, "ContentDeleted",
                  DV_STR("All content successfully deleted, may be waiting on finalization"));
    if (left->n > 0)
        set_condition(operation, status, "NamespaceContentRemaining", true, "SomeResourcesRemain",
                      dv_str_printf(arena, "Some resources are remaining: %.*s",
                                    DV_FMT(dv_buf_str(&left->resources))));
    else
        set_condition(operation, status, "NamespaceContentRemaining", false, "ContentRemoved",
                      DV_STR("All content successfully removed"));
    if (left->n_held > 0)
        set_condition(
            operation, status, "NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
            dv_str_printf(arena, "Some content in the namespace has finalizers remaining: %.*s",
                          DV_FMT(held_text(left, arena))));
    else
        set_condition(operation, status, "NamespaceFinalizersRemaining", false,
                      "ContentHasNoFinalizers",
                      DV_STR("All content-preserving finalizers finished"));
}

/* Whether it is the namespace that was looked at. */
static bool is_the_same(const struct dv_cluster_operation *operation)
{
    const struct dv_object *object = operation->entry->object;

    return object && dv_str_eq(object->meta->uid, operation->delete_options->preconditions->uid);
}

static bool run_tell(struct dv_cluster_operation *operation)
{
    struct left left = {0};
    struct dv_api_namespace *namespace;

    if (!is_the_same(operation))
        return dv_cluster_operation_answer(operation, NULL);
    namespace = dv_change_copy(operation);
    dv_buf_init(&left.resources, TEXT_BYTES_MAX);
    count_left(operation->embedded, namespace->metadata.name, &left);
    if (left.n <= TOLD_MAX || namespace->status.n_conditions == 0)
        set_conditions(operation, namespace, &left);
    dv_buf_fini(&left.resources);
    return dv_change_finish(operation, namespace);
}

/* ---- the end ---- */

static bool run_finalize(struct dv_cluster_operation *operation)
{
    const struct dv_object *object = operation->entry->object;
    struct dv_api_namespace *namespace;
    dv_str *left;
    size_t n = 0;

    if (!is_the_same(operation) || has_content(operation->embedded, object->meta->name))
        return dv_cluster_operation_answer(operation, NULL);
    namespace = dv_change_copy(operation);
    left = DV_NEW_ARRAY(operation->arena, dv_str, namespace->spec.n_finalizers);
    for (size_t i = 0; i < namespace->spec.n_finalizers; i++)
        if (!dv_str_eq(namespace->spec.finalizers[i], DV_STR("kubernetes")))
            left[n++] = namespace->spec.finalizers[i];
    namespace->spec.finalizers = left;
    namespace->spec.n_finalizers = n;
    if (namespace->status.n_conditions > 0)
        set_conditions(operation, namespace, &(const struct left){0});
    return dv_change_finish(operation, namespace);
}

/* Starts to delete the objects of one kind that are not being deleted yet, and counts them. Each
 * deletion that ends leads back here, also one that fails. True: an object is busy with something
 * else, and the namespace has to be looked at again. */
static bool empty_collection(struct dv_embedded *embedded, struct dv_collection *collection,
                             struct dv_entry *namespace, size_t *n_started)
{
    struct dv_collection_range range = dv_collection_range(collection, dv_entry_name(namespace));
    bool is_busy = false;
    struct dv_entry *entry;

    while (!is_busy && (entry = dv_collection_range_next(&range)) != NULL) {
        if (dv_entry_object(entry)->meta->deletion_timestamp.is_set)
            continue;
        is_busy = entry->operation || dv_collector_is_busy(embedded);
        if (!is_busy) {
            dv_collector_run(embedded, entry, dv_delete_run, namespace);
            (*n_started)++;
        }
    }
    return is_busy;
}

static bool has_pods(struct dv_embedded *embedded, dv_str namespace)
{
    struct dv_collection_range range =
        dv_collection_range(&embedded->collections[DV_KIND_POD], namespace);

    return dv_collection_range_next(&range) != NULL;
}

void dv_namespace_empty(struct dv_embedded *embedded, struct dv_entry *namespace)
{
    /* First the pods: what else is there they may need until they have ended. */
    bool is_pods = has_pods(embedded, dv_entry_name(namespace));
    struct dv_collection *collection;
    bool is_busy = false;
    size_t n_started = 0;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++)
        if (collection->kind->is_namespaced && (!is_pods || collection->kind->id == DV_KIND_POD))
            is_busy |= empty_collection(embedded, collection, namespace, &n_started);
    if (!is_busy && n_started == 0 && has_content(embedded, dv_entry_name(namespace)))
        dv_collector_run(embedded, namespace, run_tell, namespace);
    if (!is_busy && !has_content(embedded, dv_entry_name(namespace))) {
        is_busy = has_writers(embedded, dv_entry_name(namespace));
        if (!is_busy)
            dv_collector_run(embedded, namespace, run_finalize, namespace);
    }
    if (is_busy)
        dv_collector_queue(embedded, namespace, DV_COLLECT_OWNER);
}

/* Whether the namespace is being deleted and the time in which it keeps its content is over. */
static bool is_due(const struct dv_embedded *embedded, const struct dv_object *namespace)
{
    struct dv_time since = namespace->meta->deletion_timestamp;

    return since.is_set && dv_engine_now(embedded).seconds - since.seconds >=
                               (int64_t)(embedded->options.namespace_delay_ms / 1000);
}

void dv_namespace_look(struct dv_embedded *embedded, const struct dv_object *gone)
{
    const struct dv_kind *namespaces = dv_kind(DV_KIND_NAMESPACE);
    struct dv_entry *namespace;

    if (!gone->kind->is_namespaced)
        return;
    namespace = dv_collection_get(dv_engine_collection(embedded, namespaces), DV_STR_NONE,
                                  gone->meta->namespace);
    if (namespace && namespace->object && is_due(embedded, dv_entry_object(namespace)))
        dv_collector_queue(embedded, namespace, DV_COLLECT_SOON);
}

/* ---- events ---- */

/* How many Events are looked at before others on the loop have their turn. */
#define SWEEP_PORTION 500u
/* How often an Event is looked at in its life: with an hour to live, once a minute. */
#define SWEEPS_A_LIFE 60u
#define SWEEP_PAUSE_MS 20u

/* The time of an Event's last write. The times in managedFields tell it, and where these are not
 * kept (is_untracked) the Event's own times. Both survive a restart. */
static int64_t last_change_s(const struct dv_object *event)
{
    const struct dv_time *noted = &((const struct dv_api_event *)event->value)->last_timestamp;
    int64_t last = event->meta->creation_timestamp.seconds;

    if (noted->is_set && event->meta->n_managed_fields == 0 && noted->seconds > last)
        last = noted->seconds;

    for (size_t i = 0; i < event->meta->n_managed_fields; i++)
        if (event->meta->managed_fields[i].time.seconds > last)
            last = event->meta->managed_fields[i].time.seconds;
    return last;
}

static void remember(struct dv_collector *collector, const struct dv_entry *entry)
{
    dv_str key = dv_entry_key(entry);

    collector->sweep_after = dv_realloc(collector->sweep_after, key.n);
    collector->n_sweep_after = key.n;
    memcpy(collector->sweep_after, key.p, key.n);
}

static void sweep(struct dv_timer *timer)
{
    struct dv_embedded *embedded = DV_CONTAINER(timer, struct dv_embedded, collector.sweep);
    struct dv_collector *collector = &embedded->collector;
    struct dv_collection *collection = &embedded->collections[DV_KIND_EVENT];
    struct dv_collection_place place =
        dv_collection_find(collection, (dv_str){collector->sweep_after, collector->n_sweep_after});
    int64_t oldest_s =
        dv_engine_now(embedded).seconds - (int64_t)(embedded->options.event_ttl_ms / 1000);
    uint64_t pause_ms = dv_u64_max(embedded->options.event_ttl_ms / SWEEPS_A_LIFE, SWEEP_PAUSE_MS);
    struct dv_entry *entry = NULL;

    for (size_t i = 0; (entry = dv_collection_next(collection, &place)) != NULL; i++) {
        if (i == SWEEP_PORTION || dv_collector_is_busy(embedded))
            break;
        if (!entry->operation && last_change_s(dv_entry_object(entry)) <= oldest_s)
            dv_collector_run(embedded, entry, dv_delete_run, entry);
    }
    dv_events_bound(embedded); /* deletions that failed before are tried again */
    collector->n_sweep_after = 0;
    if (entry) {
        remember(collector, entry);
        pause_ms = SWEEP_PAUSE_MS;
    }
    dv_timer_start(timer, embedded->cluster.loop, dv_loop_now_ms(embedded->cluster.loop) + pause_ms,
                   sweep);
}

void dv_sweep_start(struct dv_embedded *embedded)
{
    dv_timer_start(&embedded->collector.sweep, embedded->cluster.loop,
                   dv_loop_now_ms(embedded->cluster.loop) + SWEEP_PAUSE_MS, sweep);
}
