/* delete.c - the verb DELETE. An object goes at once, or it is marked as deleted and goes later: a
 * pod when its grace period has passed and its node has deleted it again, others when their last
 * finalizer has been removed. */
#include "cluster/embedded/delete.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/history.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"

/* ---- options ---- */

static const struct dv_api_delete_options *options_of(const struct dv_cluster_operation *operation)
{
    static const struct dv_api_delete_options none;

    return operation->delete_options ? operation->delete_options : &none;
}

struct dv_api_status *dv_delete_check_options(const struct dv_api_delete_options *options,
                                              struct dv_arena *arena)
{
    const struct dv_status_about about = {.what = DV_STR("DeleteOptions"),
                                          .group = DV_STR("meta.k8s.io")};
    struct dv_problems problems = {.arena = arena};

    if (options)
        dv_validate_delete_options(options, &problems);
    return problems.n > 0 ? dv_status_invalid(&about, &problems, arena) : NULL;
}

bool dv_delete_check_preconditions(struct dv_cluster_operation *operation)
{
    const struct dv_api_preconditions *wanted = options_of(operation)->preconditions;
    const struct dv_api_object_meta *meta = operation->entry->object->meta;
    struct dv_status_about about = dv_change_about(operation);

    /* The reference's message names the kind here, and not the resource. */
    about.what = about.kind->name;
    if (wanted && wanted->uid.p && !dv_str_eq(wanted->uid, meta->uid))
        return dv_cluster_operation_fail(
            operation,
            dv_status_conflict(&about, operation->arena,
                               "the UID in the precondition (%.*s) does not match the UID in "
                               "record (%.*s). The object might have been deleted and then "
                               "recreated",
                               DV_FMT(wanted->uid), DV_FMT(meta->uid)));
    if (wanted && wanted->resource_version.p &&
        !dv_str_eq(wanted->resource_version, meta->resource_version))
        return dv_cluster_operation_fail(
            operation,
            dv_status_conflict(&about, operation->arena,
                               "the ResourceVersion in the precondition (%.*s) does not match "
                               "the ResourceVersion in record (%.*s). The object might have "
                               "been modified",
                               DV_FMT(wanted->resource_version), DV_FMT(meta->resource_version)));
    return true;
}

/* ---- dependents ---- */

static bool says_what_becomes(const struct dv_api_delete_options *options)
{
    return options->orphan_dependents || options->propagation_policy.p;
}

/* Whether the pods of a deleted Job stay, because nobody has said what becomes of them: so it was
 * before there was a choice. What the API deletes by itself goes with all that it owns. */
static bool is_orphaned_by_default(const struct dv_cluster_operation *operation)
{
    const struct dv_cluster_operation *asked = operation->parent ? operation->parent : operation;

    return operation->entry->collection->kind->id == DV_KIND_JOB && asked->request;
}

void dv_delete_warn(struct dv_cluster_operation *operation)
{
    if (operation->request->kind->id == DV_KIND_JOB && !says_what_becomes(options_of(operation)))
        dv_change_warn(operation,
                       DV_STR("child pods are preserved by default when jobs are deleted; set "
                              "propagationPolicy=Background to remove them or set "
                              "propagationPolicy=Orphan to suppress this warning"));
}

/* Sets the finalizers that say what becomes of the dependents: by what this request asks for,
 * otherwise by what an earlier one did, otherwise by the kind. */
static void set_finalizers(struct dv_cluster_operation *operation, struct dv_api_object_meta *meta)
{
    const struct dv_api_delete_options *options = options_of(operation);
    bool was_orphan = dv_meta_has_finalizer(meta, DV_STR(DV_FINALIZER_ORPHAN));
    bool was_foreground = dv_meta_has_finalizer(meta, DV_STR(DV_FINALIZER_FOREGROUND));
    bool is_orphan = was_orphan;
    bool is_foreground = was_foreground;
    dv_str *all;

    if (options->orphan_dependents) {
        is_orphan = *options->orphan_dependents;
        is_foreground = false;
    } else if (options->propagation_policy.p) {
        is_orphan = dv_str_eq(options->propagation_policy, DV_STR("Orphan"));
        is_foreground = dv_str_eq(options->propagation_policy, DV_STR("Foreground"));
    } else if (!was_orphan && !was_foreground) {
        is_orphan = is_orphaned_by_default(operation);
    }
    if (is_orphan == was_orphan && is_foreground == was_foreground)
        return;
    /* It may not have been there. */
    (void)dv_meta_remove_finalizer(operation, meta, DV_STR(DV_FINALIZER_ORPHAN));
    (void)dv_meta_remove_finalizer(operation, meta, DV_STR(DV_FINALIZER_FOREGROUND));
    all = DV_NEW_ARRAY(operation->arena, dv_str, meta->n_finalizers + 1);
    if (meta->n_finalizers > 0)
        memcpy(all, meta->finalizers, meta->n_finalizers * sizeof(all[0]));
    if (is_orphan || is_foreground)
        all[meta->n_finalizers++] =
            is_orphan ? DV_STR(DV_FINALIZER_ORPHAN) : DV_STR(DV_FINALIZER_FOREGROUND);
    meta->finalizers = all;
}

/* ---- grace ---- */

static const int64_t *new_number(struct dv_cluster_operation *operation, int64_t value)
{
    int64_t *number = DV_NEW(operation->arena, int64_t);

    *number = value;
    return number;
}

static void count_generation(struct dv_api_object_meta *meta)
{
    if (meta->generation > 0 && meta->generation < INT64_MAX)
        meta->generation++;
}

/* Marks an object that has no grace period as deleted from now on. */
static void mark_deleted(struct dv_cluster_operation *operation, struct dv_api_object_meta *meta)
{
    struct dv_time now = dv_engine_now(operation->embedded);

    if (!meta->deletion_grace_period_seconds)
        count_generation(meta);
    if (!meta->deletion_timestamp.is_set || meta->deletion_timestamp.seconds > now.seconds)
        meta->deletion_timestamp = now;
    meta->deletion_grace_period_seconds = new_number(operation, 0);
}

/* A negative grace period counts as one second, as in the reference. */
static int64_t positive(int64_t grace)
{
    return grace < 0 ? 1 : grace;
}

static int64_t grace_of(const struct dv_cluster_operation *operation, const struct dv_api_pod *pod)
{
    const struct dv_api_delete_options *options = options_of(operation);
    int64_t grace = 0;

    if (pod->spec.node_name.n == 0 || dv_pod_is_terminal(pod))
        return 0;
    if (options->grace_period_seconds)
        grace = *options->grace_period_seconds;
    else if (pod->spec.termination_grace_period_seconds)
        grace = *pod->spec.termination_grace_period_seconds;
    return positive(grace);
}

/* Shortens the grace period of a pod that is being deleted already; it can only become shorter.
 * False: there is nothing to do. */
static bool shorten_grace(struct dv_cluster_operation *operation, struct dv_api_object_meta *meta)
{
    const int64_t *asked = options_of(operation)->grace_period_seconds;
    int64_t wanted = asked ? positive(*asked) : 0;
    int64_t had = *meta->deletion_grace_period_seconds;

    if (!asked || wanted >= had)
        return false;
    meta->deletion_timestamp = dv_api_time_add(meta->deletion_timestamp, wanted - had);
    meta->deletion_grace_period_seconds = new_number(operation, wanted);
    return true;
}

enum grace {
    GRACE_NONE,    /* the object has no grace period */
    GRACE_PENDING, /* it is being deleted, and nothing is to be done now */
    GRACE_SET,
};

static enum grace set_grace(struct dv_cluster_operation *operation, struct dv_api_pod *pod)
{
    struct dv_api_object_meta *meta = &pod->metadata;
    struct dv_time now = dv_engine_now(operation->embedded);

    if (meta->deletion_timestamp.is_set) {
        if (!meta->deletion_grace_period_seconds)
            return GRACE_NONE;
        return shorten_grace(operation, meta) ? GRACE_SET : GRACE_PENDING;
    }
    /* The end of the grace period is cut to the last time that can be written, and the period with
     * it: their difference must stay the time of the deletion, from which a shorter period is
     * counted. */
    meta->deletion_timestamp = dv_api_time_add(now, grace_of(operation, pod));
    meta->deletion_grace_period_seconds =
        new_number(operation, meta->deletion_timestamp.seconds - now.seconds);
    count_generation(meta);
    return GRACE_SET;
}

/* ---- ends ---- */

/* Removes the object. One with a grace period is first changed to `value`, with none of the period
 * left, so that watchers see the reason before the end. */
static bool remove_object(struct dv_cluster_operation *operation, void *value)
{
    struct dv_object *old = operation->entry->object;
    const struct dv_object *last = old;

    if (operation->is_dry_run) {
        operation->is_removed = true;
        operation->object = value ? dv_object_new(old->kind, value) : dv_object_ref(old);
        return dv_cluster_operation_answer(operation, NULL);
    }
    if (value)
        last = dv_cluster_operation_put(operation, value);
    operation->object = dv_object_with_version(last, dv_cluster_operation_remove(operation));
    return dv_cluster_operation_write(operation);
}

static bool delete_pod(struct dv_cluster_operation *operation, struct dv_api_pod *pod)
{
    enum grace grace = set_grace(operation, pod);

    if (grace == GRACE_PENDING)
        return dv_cluster_operation_answer(operation, operation->entry->object);
    set_finalizers(operation, &pod->metadata);
    if (pod->metadata.n_finalizers > 0) {
        if (grace == GRACE_NONE)
            mark_deleted(operation, &pod->metadata);
        return dv_change_finish(operation, pod);
    }
    if (grace == GRACE_SET && *pod->metadata.deletion_grace_period_seconds > 0)
        return dv_change_finish(operation, pod);
    return remove_object(operation, grace == GRACE_SET ? pod : NULL);
}

static bool is_immortal(dv_str namespace)
{
    return dv_str_eq(namespace, DV_STR("default")) || dv_str_eq(namespace, DV_STR("kube-system")) ||
           dv_str_eq(namespace, DV_STR("kube-public"));
}

static bool delete_namespace(struct dv_cluster_operation *operation,
                             struct dv_api_namespace *namespace)
{
    if (!namespace->metadata.deletion_timestamp.is_set) {
        set_finalizers(operation, &namespace->metadata);
        namespace->metadata.deletion_timestamp = dv_engine_now(operation->embedded);
        namespace->status.phase = DV_STR("Terminating");
    }
    if (namespace->spec.n_finalizers > 0 || namespace->metadata.n_finalizers > 0)
        return dv_change_finish(operation, namespace);
    return remove_object(operation, NULL);
}

/* A definition goes after its objects. */
static void add_finalizer(struct dv_cluster_operation *operation, struct dv_api_object_meta *meta,
                          dv_str finalizer)
{
    dv_str *all = DV_NEW_ARRAY(operation->arena, dv_str, meta->n_finalizers + 1);

    if (dv_meta_has_finalizer(meta, finalizer))
        return;
    if (meta->n_finalizers > 0)
        memcpy(all, meta->finalizers, meta->n_finalizers * sizeof(all[0]));
    all[meta->n_finalizers++] = finalizer;
    meta->finalizers = all;
}

bool dv_delete_value(struct dv_cluster_operation *operation, void *value)
{
    const struct dv_kind *kind = operation->entry->collection->kind;
    struct dv_api_object_meta *meta = dv_meta_of(value);

    if (kind->id == DV_KIND_POD)
        return delete_pod(operation, value);
    if (kind->id == DV_KIND_NAMESPACE)
        return delete_namespace(operation, value);
    set_finalizers(operation, meta);
    if (kind->id == DV_KIND_CUSTOM_DEFINITION && !meta->deletion_timestamp.is_set)
        add_finalizer(operation, meta, DV_STR(DV_CUSTOM_FINALIZER));
    if (meta->n_finalizers == 0)
        return remove_object(operation, NULL);
    mark_deleted(operation, meta);
    return dv_change_finish(operation, value);
}

static bool delete_judged(struct dv_cluster_operation *operation, void *value)
{
    (void)value;
    return dv_delete_value(operation, dv_change_copy(operation));
}

/* There is nothing in a deletion that could have been changed. */
static bool delete_mutated(struct dv_cluster_operation *operation, void *value)
{
    return dv_change_judge_then(operation, value, delete_judged);
}

bool dv_delete_run(struct dv_cluster_operation *operation)
{
    struct dv_status_about about = dv_change_about(operation);

    if (about.kind->id == DV_KIND_NAMESPACE && is_immortal(about.name))
        return dv_cluster_operation_fail(
            operation,
            dv_status_forbidden(&about, operation->arena, "this namespace may not be deleted"));
    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    /* Admission is asked first, so that whoever may not delete the object learns nothing about
     * it. */
    if (!dv_change_admit(operation, NULL) || !dv_delete_check_preconditions(operation))
        return false;
    return dv_change_mutate_then(operation, NULL, delete_mutated);
}
