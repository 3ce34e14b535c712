/* collect.c - the collector: deletes objects whose owners are gone, ends foreground and orphaning
 * deletions, and empties namespaces (namespaces.c). A change that leaves something to do puts
 * entries into a queue (dv_collector_look); they are looked at in portions, and what is to be done
 * is done by operations like any other, with the uid as a precondition. */
#include "cluster/embedded/collect.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/events.h"
#include "cluster/embedded/foreground.h"
#include "cluster/embedded/namespaces.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/object_owners.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

/* How many entries are looked at in one turn, and how many operations of the collector are under
 * way together. It shares commits with everybody, and must not crowd them out. */
#define PORTION 64u
#define N_RUNNING_MAX 128u

/* ---- queues ---- */

static uint64_t delay_of(const struct dv_embedded *embedded, enum dv_collector_delay delay)
{
    switch (delay) {
    case DV_COLLECT_SOON:
        return 0;
    case DV_COLLECT_NAMESPACE:
        return embedded->options.namespace_delay_ms;
    case DV_COLLECT_OWNER:
    case DV_N_COLLECT_DELAYS:
        break;
    }
    return embedded->options.owner_delay_ms;
}

static void collect(struct dv_embedded *embedded);

static void on_task(struct dv_task *task)
{
    collect(DV_CONTAINER(task, struct dv_embedded, collector.task));
}

static void on_timer(struct dv_timer *timer)
{
    collect(DV_CONTAINER(timer, struct dv_embedded, collector.timer));
}

/* Sets the timer for the first entry that is due. */
static void arm(struct dv_embedded *embedded)
{
    struct dv_collector *collector = &embedded->collector;
    uint64_t first_ms = UINT64_MAX;

    for (size_t i = 0; i < DV_N_COLLECT_DELAYS; i++) {
        struct dv_link *link = dv_list_first(&collector->queues[i]);

        if (link)
            first_ms = dv_u64_min(first_ms, DV_CONTAINER(link, struct dv_due, link)->at_ms);
    }
    if (embedded->is_closing || first_ms == UINT64_MAX || dv_collector_is_busy(embedded))
        /* As many operations as may be are under way: each that ends arms the timer again. */
        return;
    if (first_ms <= dv_loop_now_ms(embedded->cluster.loop))
        dv_task_post(&collector->task, embedded->cluster.loop, on_task);
    else
        dv_timer_start(&collector->timer, embedded->cluster.loop, first_ms, on_timer);
}

void dv_collector_queue(struct dv_embedded *embedded, struct dv_entry *entry,
                        enum dv_collector_delay delay)
{
    if (entry->due) {
        if (delay != DV_COLLECT_SOON)
            return;
        /* It is due sooner than it was to be, and moves to another queue. */
        dv_link_remove(&entry->due->link);
    } else {
        entry->due = DV_ALLOC(struct dv_due);
        entry->due->entry = entry;
    }
    entry->due->at_ms = dv_loop_now_ms(embedded->cluster.loop) + delay_of(embedded, delay);
    dv_list_push(&embedded->collector.queues[delay], &entry->due->link);
    arm(embedded);
}

bool dv_collector_is_busy(const struct dv_embedded *embedded)
{
    return embedded->collector.n_running >= N_RUNNING_MAX;
}

/* ---- operations ---- */

/* An operation of the collector has ended. What failed is looked at again later. */
static void on_done(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;
    const struct dv_collected *subject = operation->ctx;

    embedded->collector.n_running--;
    if (operation->failure && operation->failure->code >= 500) {
        struct dv_entry *entry = dv_collection_get(dv_engine_collection(embedded, subject->kind),
                                                   subject->namespace, subject->name);

        if (entry && entry->object)
            dv_collector_queue(embedded, entry, DV_COLLECT_OWNER);
    }
    arm(embedded);
}

void dv_collector_run(struct dv_embedded *embedded, struct dv_entry *entry,
                      bool (*run)(struct dv_cluster_operation *operation), struct dv_entry *subject)
{
    struct dv_cluster_operation *operation = dv_cluster_operation_new(embedded, NULL);
    struct dv_collected *collected = DV_NEW(operation->arena, struct dv_collected);
    struct dv_api_delete_options *options = DV_NEW(operation->arena, struct dv_api_delete_options);

    /* The precondition names the object that was looked at: another one may take its name
     * meanwhile. */
    options->preconditions = DV_NEW(operation->arena, struct dv_api_preconditions);
    options->preconditions->uid = dv_str_copy(dv_object_names(entry->object).uid, operation->arena);
    collected->kind = subject->collection->kind;
    collected->namespace = dv_str_copy(dv_entry_namespace(subject), operation->arena);
    collected->name = dv_str_copy(dv_entry_name(subject), operation->arena);
    collected->uid = dv_str_copy(dv_object_names(subject->object).uid, operation->arena);
    operation->delete_options = options;
    operation->ctx = collected;
    operation->done = on_done;
    embedded->collector.n_running++;
    dv_cluster_operation_start(operation, entry->collection->kind, dv_entry_namespace(entry),
                               dv_entry_name(entry), run);
}

/* Whether the object that the operation was made for is still there. */
static bool is_still_there(const struct dv_cluster_operation *operation)
{
    return operation->entry->object && dv_str_eq(operation->entry->object->meta->uid,
                                                 operation->delete_options->preconditions->uid);
}

/* ---- owners ---- */

enum ownership {
    OWNER_SOLID,   /* the owner is there, or cannot be known */
    OWNER_ABSENT,  /* the owner is gone */
    OWNER_WAITING, /* the owner is being deleted in the foreground, and waits for this object */
};

static enum ownership look_at_owner(const struct dv_embedded *embedded,
                                    const struct dv_object *object,
                                    const struct dv_api_owner_reference *reference)
{
    const struct dv_entry *entry = dv_object_owners_find(&embedded->owners, reference->uid);
    const struct dv_object *owner = entry ? dv_entry_object(entry) : NULL;
    const struct dv_kind *kind;
    dv_str group;
    dv_str version;

    dv_api_version_split(reference->api_version, &group, &version);
    kind = dv_engine_kind_by_name(embedded, group, version, reference->kind);
    if (!kind)
        return OWNER_SOLID; /* a kind that is not served here: somebody else looks after it */
    if (!owner || owner->kind != kind || !dv_str_eq(owner->meta->name, reference->name) ||
        (kind->is_namespaced && !dv_str_eq(owner->meta->namespace, object->meta->namespace)))
        return OWNER_ABSENT;
    if (reference->block_owner_deletion && *reference->block_owner_deletion &&
        dv_foreground_is(owner))
        return OWNER_WAITING;
    return OWNER_SOLID;
}

static void count_owners(const struct dv_embedded *embedded, const struct dv_object *object,
                         size_t n[3])
{
    n[OWNER_SOLID] = n[OWNER_ABSENT] = n[OWNER_WAITING] = 0;
    for (size_t i = 0; i < object->meta->n_owner_references; i++)
        n[look_at_owner(embedded, object, &object->meta->owner_references[i])]++;
}

/* Removes owner references from `meta`: the one to `uid_out`, or when that is empty all whose owner
 * is absent or waits for its dependents. The garbage collector of Kubernetes does the same. */
static void keep_references(struct dv_cluster_operation *operation, struct dv_api_object_meta *meta,
                            dv_str uid_out)
{
    struct dv_api_owner_reference *left =
        DV_NEW_ARRAY(operation->arena, struct dv_api_owner_reference, meta->n_owner_references);
    size_t n = 0;

    for (size_t i = 0; i < meta->n_owner_references; i++) {
        const struct dv_api_owner_reference *reference = &meta->owner_references[i];
        bool is_out = uid_out.n > 0 ? dv_str_eq(reference->uid, uid_out)
                                    : look_at_owner(operation->embedded, operation->entry->object,
                                                    reference) != OWNER_SOLID;

        if (!is_out)
            left[n++] = *reference;
    }
    meta->owner_references = n > 0 ? left : NULL;
    meta->n_owner_references = n;
}

/* Runs with the name held: deletes the object when all its owners are gone, or only removes the
 * references to those that are, when another owner is left. */
static bool run_collect(struct dv_cluster_operation *operation)
{
    struct dv_object *object = operation->entry->object;
    struct dv_api_delete_options *options;
    size_t n[3];
    void *value;

    if (!is_still_there(operation) || object->meta->deletion_timestamp.is_set)
        return dv_cluster_operation_answer(operation, NULL);
    count_owners(operation->embedded, object, n);
    if (n[OWNER_ABSENT] + n[OWNER_WAITING] == 0)
        return dv_cluster_operation_answer(operation, NULL);
    if (n[OWNER_SOLID] > 0) {
        value = dv_change_copy(operation);
        keep_references(operation, dv_meta_of(value), DV_STR_NONE);
        return dv_change_finish(operation, value);
    }
    options = DV_NEW(operation->arena, struct dv_api_delete_options);
    if (n[OWNER_WAITING] > 0 &&
        dv_object_owners_get(&operation->embedded->owners, object->meta->uid))
        /* An owner waits for this object, so its own dependents go first. */
        options->propagation_policy = DV_STR("Foreground");
    operation->delete_options = options;
    return dv_delete_run(operation);
}

/* Runs with the name held: removes the reference to an owner that is deleted without its dependents
 * (orphaning). */
static bool run_orphan(struct dv_cluster_operation *operation)
{
    const struct dv_collected *owner = operation->ctx;
    void *value;

    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    value = dv_change_copy(operation);
    keep_references(operation, dv_meta_of(value), owner->uid);
    return dv_change_finish(operation, value);
}

/* Runs with the name held: removes the finalizer of an object that waited for its dependents, of
 * which none is left. */
static bool run_release(struct dv_cluster_operation *operation)
{
    void *value;
    bool is_changed = false;

    if (!is_still_there(operation))
        return dv_cluster_operation_answer(operation, NULL);
    value = dv_change_copy(operation);
    if (!dv_foreground_is_blocked(&operation->embedded->owners, operation->entry->object))
        is_changed |=
            dv_meta_remove_finalizer(operation, dv_meta_of(value), DV_STR(DV_FINALIZER_FOREGROUND));
    if (!dv_object_owners_get(&operation->embedded->owners, operation->entry->object->meta->uid))
        is_changed |=
            dv_meta_remove_finalizer(operation, dv_meta_of(value), DV_STR(DV_FINALIZER_ORPHAN));
    return is_changed ? dv_change_finish(operation, value)
                      : dv_cluster_operation_answer(operation, NULL);
}

/* ---- looking ---- */

static void look_at_foreground(struct dv_embedded *embedded, struct dv_entry *entry)
{
    const struct dv_object *object = dv_entry_object(entry);
    const struct dv_object_owner *owner =
        dv_object_owners_get(&embedded->owners, object->meta->uid);
    struct dv_link *link;

    if (!dv_foreground_is_blocked(&embedded->owners, object)) {
        dv_collector_run(embedded, entry, run_release, entry);
        return;
    }
    DV_LIST_EACH (&owner->dependents, link) {
        struct dv_dependence *dependence = DV_CONTAINER(link, struct dv_dependence, link);

        if (dependence->is_blocking)
            dv_collector_queue(embedded, dependence->entry, DV_COLLECT_SOON);
    }
}

/* Frees the dependents of an orphaning deletion, a portion at a time: each of them that has been
 * written leads back here. */
static void look_at_orphans(struct dv_embedded *embedded, struct dv_entry *entry)
{
    const struct dv_object_owner *owner =
        dv_object_owners_get(&embedded->owners, dv_object_names(entry->object).uid);
    struct dv_link *link;
    size_t n = 0;

    if (!owner) {
        dv_collector_run(embedded, entry, run_release, entry);
        return;
    }
    DV_LIST_EACH (&owner->dependents, link) {
        struct dv_entry *dependent = DV_CONTAINER(link, struct dv_dependence, link)->entry;

        if (n++ == PORTION)
            break;
        if (!dependent
                 ->operation) /* one that is being written now leads back here when it has been */
            dv_collector_run(embedded, dependent, run_orphan, entry);
    }
}

static void look_at(struct dv_embedded *embedded, struct dv_entry *entry)
{
    const struct dv_object *object = dv_entry_object(entry);
    const struct dv_api_object_meta *meta;
    size_t n[3];

    if (!object)
        return;
    meta = object->meta;
    if (!meta->deletion_timestamp.is_set) {
        count_owners(embedded, object, n);
        if (n[OWNER_ABSENT] + n[OWNER_WAITING] > 0)
            dv_collector_run(embedded, entry, run_collect, entry);
    } else if (dv_foreground_is(object)) {
        look_at_foreground(embedded, entry);
    } else if (dv_meta_has_finalizer(meta, DV_STR(DV_FINALIZER_ORPHAN))) {
        look_at_orphans(embedded, entry);
    } else if (entry->collection->kind->id == DV_KIND_NAMESPACE) {
        dv_namespace_empty(embedded, entry);
    }
}

static void collect(struct dv_embedded *embedded)
{
    struct dv_collector *collector = &embedded->collector;
    uint64_t now_ms = dv_loop_now_ms(embedded->cluster.loop);
    size_t n = 0;

    for (size_t i = 0; i < DV_N_COLLECT_DELAYS; i++) {
        struct dv_link *link;

        while (n < PORTION && collector->n_running < N_RUNNING_MAX &&
               (link = dv_list_first(&collector->queues[i])) != NULL) {
            struct dv_due *due = DV_CONTAINER(link, struct dv_due, link);
            struct dv_entry *entry = due->entry;

            if (due->at_ms > now_ms)
                break;
            dv_entry_forget_due(entry);
            look_at(embedded, entry);
            n++;
        }
    }
    arm(embedded);
}

/* ---- changes ---- */

/* Has the owners of an object looked at that is gone or has changed its references: they may have
 * waited for it. */
static void wake_owners(struct dv_embedded *embedded, const struct dv_object *old)
{
    for (size_t i = 0; i < old->meta->n_owner_references; i++) {
        struct dv_entry *owner =
            dv_object_owners_find(&embedded->owners, old->meta->owner_references[i].uid);

        if (owner && dv_entry_object(owner)->meta->deletion_timestamp.is_set)
            dv_collector_queue(embedded, owner, DV_COLLECT_SOON);
    }
}

static void wake_dependents(struct dv_embedded *embedded, const struct dv_object *gone)
{
    const struct dv_object_owner *owner = dv_object_owners_get(&embedded->owners, gone->meta->uid);
    struct dv_link *link;

    if (!owner)
        return;
    DV_LIST_EACH (&owner->dependents, link)
        dv_collector_queue(embedded, DV_CONTAINER(link, struct dv_dependence, link)->entry,
                           DV_COLLECT_SOON);
}

/* Whether the object waits for something that the collector does. */
static bool is_concerned(const struct dv_embedded *embedded, const struct dv_object *object)
{
    const struct dv_api_object_meta *meta = object->meta;
    size_t n[3];

    if (meta->deletion_timestamp.is_set)
        return object->kind->id == DV_KIND_NAMESPACE ||
               dv_meta_has_finalizer(meta, DV_STR(DV_FINALIZER_FOREGROUND)) ||
               dv_meta_has_finalizer(meta, DV_STR(DV_FINALIZER_ORPHAN));
    if (meta->n_owner_references == 0)
        return false;
    count_owners(embedded, object, n);
    return n[OWNER_ABSENT] + n[OWNER_WAITING] > 0;
}

void dv_collector_look(struct dv_embedded *embedded, struct dv_entry *entry,
                       const struct dv_object *old, const struct dv_object *now)
{
    if (old && old->meta->n_owner_references > 0)
        wake_owners(embedded, old);
    if (old && !now) {
        wake_dependents(embedded, old);
        dv_namespace_look(embedded, old);
    }
    if (now && is_concerned(embedded, now))
        dv_collector_queue(embedded, entry,
                           now->kind->id == DV_KIND_NAMESPACE ? DV_COLLECT_NAMESPACE
                                                              : DV_COLLECT_OWNER);
}

/* ---- life ---- */

void dv_collector_init(struct dv_embedded *embedded)
{
    for (size_t i = 0; i < DV_N_COLLECT_DELAYS; i++)
        dv_list_init(&embedded->collector.queues[i]);
}

void dv_collector_loaded(struct dv_embedded *embedded, struct dv_entry *entry,
                         const struct dv_api_object_meta *meta)
{
    enum dv_collector_delay delay =
        entry->collection->kind->id == DV_KIND_NAMESPACE ? DV_COLLECT_NAMESPACE : DV_COLLECT_OWNER;

    if (meta->deletion_timestamp.is_set || meta->n_owner_references > 0)
        dv_collector_queue(embedded, entry, delay);
}

void dv_collector_start(struct dv_embedded *embedded)
{
    dv_events_start(embedded);
    dv_sweep_start(embedded);
}

void dv_collector_stop(struct dv_embedded *embedded)
{
    dv_timer_cancel(&embedded->collector.timer);
    dv_timer_cancel(&embedded->collector.sweep);
    dv_task_cancel(&embedded->collector.bound);
    dv_task_cancel(&embedded->collector.task);
}

void dv_collector_fini(struct dv_embedded *embedded)
{
    dv_collector_stop(embedded);
    free(embedded->collector.sweep_after);
}
