/* namespaces.c - what the collector does for many objects at a time: it empties a namespace that is
 * being deleted, kind by kind, and then lets it go; and it sweeps Events that are old. */
#include "cluster/embedded/namespaces.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
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
#include "cluster/shared/cluster_names.h"
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

static bool run_finalize(struct dv_cluster_operation *operation)
{
    const struct dv_object *object = operation->entry->object;
    struct dv_api_namespace *namespace;
    dv_str *left;
    size_t n = 0;

    if (!object || !dv_str_eq(object->meta->uid, operation->delete_options->preconditions->uid) ||
        has_content(operation->embedded, object->meta->name))
        return dv_cluster_operation_answer(operation, NULL);
    namespace = dv_change_copy(operation);
    left = DV_NEW_ARRAY(operation->arena, dv_str, namespace->spec.n_finalizers);
    for (size_t i = 0; i < namespace->spec.n_finalizers; i++)
        if (!dv_str_eq(namespace->spec.finalizers[i], DV_STR("kubernetes")))
            left[n++] = namespace->spec.finalizers[i];
    namespace->spec.finalizers = left;
    namespace->spec.n_finalizers = n;
    return dv_change_finish(operation, namespace);
}

/* Starts to delete the objects of one kind that are not being deleted yet. Each deletion that ends
 * leads back here, also one that fails. True: an object is busy with something else, and the
 * namespace has to be looked at again. */
static bool empty_collection(struct dv_embedded *embedded, struct dv_collection *collection,
                             struct dv_entry *namespace)
{
    struct dv_collection_range range = dv_collection_range(collection, dv_entry_name(namespace));
    bool is_busy = false;
    struct dv_entry *entry;

    while (!is_busy && (entry = dv_collection_range_next(&range)) != NULL) {
        if (dv_entry_object(entry)->meta->deletion_timestamp.is_set)
            continue;
        is_busy = entry->operation || dv_collector_is_busy(embedded);
        if (!is_busy)
            dv_collector_run(embedded, entry, dv_delete_run, namespace);
    }
    return is_busy;
}

void dv_namespace_empty(struct dv_embedded *embedded, struct dv_entry *namespace)
{
    struct dv_collection *collection;
    bool is_busy = false;

    for (size_t i = 0; (collection = dv_engine_collection_at(embedded, i)) != NULL; i++)
        if (collection->kind->is_namespaced)
            is_busy |= empty_collection(embedded, collection, namespace);
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
