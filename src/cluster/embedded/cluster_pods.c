/* cluster_pods.c - the subresources of pods: a Binding gives a pod its node, an Eviction deletes it
 * with the reason in its status, as far as its PodDisruptionBudget lets it. */
#include "cluster/embedded/cluster_pods.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/change.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/delete.h"
#include "cluster/embedded/engine.h"
#include "cluster/embedded/update.h"
#include "cluster/objects/collection.h"
#include "resource/disruption.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/status.h"

/* Sets the condition of that type. Its time of transition changes only when its status does. */
static void set_condition(struct dv_cluster_operation *operation, struct dv_api_pod *pod,
                          const struct dv_api_pod_condition *wanted)
{
    struct dv_api_pod_status *status = &pod->status;
    struct dv_api_pod_condition *all =
        DV_NEW_ARRAY(operation->arena, struct dv_api_pod_condition, status->n_conditions + 1);
    struct dv_time since = dv_cluster_operation_now(operation);
    size_t at = 0;

    if (status->n_conditions > 0)
        memcpy(all, status->conditions, status->n_conditions * sizeof(all[0]));
    while (at < status->n_conditions && !dv_str_eq(all[at].type, wanted->type))
        at++;
    if (at < status->n_conditions && dv_str_eq(all[at].status, wanted->status))
        since = all[at].last_transition_time;
    if (at == status->n_conditions)
        status->n_conditions++;
    all[at] = *wanted;
    all[at].last_transition_time = since;
    status->conditions = all;
}

/* ---- binding ---- */

/* Adds the entries of `from` to a map that is sorted by key; they replace those with the same
 * key. */
static void merge(struct dv_cluster_operation *operation, struct dv_str_entry **into,
                  size_t *n_into, const struct dv_str_entry *from, size_t n_from)
{
    struct dv_str_entry *all =
        DV_NEW_ARRAY(operation->arena, struct dv_str_entry, *n_into + n_from);
    size_t i = 0;
    size_t j = 0;
    size_t n = 0;

    if (n_from == 0)
        return;
    while (i < *n_into || j < n_from) {
        int order = i == *n_into ? 1 : j == n_from ? -1 : dv_str_cmp((*into)[i].key, from[j].key);

        all[n++] = order < 0 ? (*into)[i] : from[j];
        i += order <= 0;
        j += order >= 0;
    }
    *into = all;
    *n_into = n;
}

/* Returns why the pod cannot be bound now; NULL: it can. */
static const struct dv_api_status *refuse_binding(struct dv_cluster_operation *operation,
                                                  const struct dv_api_pod *pod)
{
    struct dv_status_about about = dv_change_about(operation);
    dv_str name = pod->metadata.name;

    about.what = DV_STR("pods/binding");
    if (pod->metadata.deletion_timestamp.is_set)
        return dv_status_conflict(&about, operation->arena,
                                  "pod %.*s is being deleted, cannot be assigned to a host",
                                  DV_FMT(name));
    if (pod->spec.node_name.n > 0)
        return dv_status_conflict(&about, operation->arena,
                                  "pod %.*s is already assigned to node \"%.*s\"", DV_FMT(name),
                                  DV_FMT(pod->spec.node_name));
    if (pod->spec.n_scheduling_gates > 0)
        return dv_status_conflict(&about, operation->arena,
                                  "pod %.*s has non-empty .spec.schedulingGates", DV_FMT(name));
    return NULL;
}

static const struct dv_api_status *check_target(struct dv_cluster_operation *operation,
                                                const struct dv_api_binding *binding)
{
    dv_str kind = binding->target.kind;

    /* The reference answers these with a plain error and not with 422 Invalid. */
    if (kind.n > 0 && !dv_str_eq(kind, DV_STR("Node")))
        return dv_status_new(500, DV_STR_NONE, operation->arena,
                             "target.kind: Unsupported value: \"%.*s\": supported values: "
                             "\"Node\", \"<empty>\"",
                             DV_FMT(kind));
    if (binding->target.name.n == 0)
        return dv_status_new(500, DV_STR_NONE, operation->arena, "target.name: Required value");
    return NULL;
}

bool dv_cluster_pod_bind(struct dv_cluster_operation *operation)
{
    const struct dv_api_binding *binding = operation->request->value;
    const struct dv_api_object_meta *meta = &binding->metadata;
    struct dv_status_about about = dv_change_about(operation);
    const struct dv_api_status *failure;
    struct dv_api_pod *pod;

    if (meta->name.n > 0 && !dv_str_eq(meta->name, about.name))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena,
                                             "name in URL does not match name in Binding object"));
    failure = check_target(operation, binding);
    if (failure)
        return dv_cluster_operation_fail(operation, failure);
    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    if (!dv_update_check_uid(operation, meta->uid) ||
        !dv_update_check_version(operation, meta->resource_version))
        return false;
    pod = dv_change_copy(operation);
    failure = refuse_binding(operation, pod);
    if (failure)
        return dv_cluster_operation_fail(operation, failure);
    pod->spec.node_name = binding->target.name;
    pod->status.nominated_node_name = DV_STR_NONE; /* it has its place */
    merge(operation, &pod->metadata.annotations, &pod->metadata.n_annotations, meta->annotations,
          meta->n_annotations);
    merge(operation, &pod->metadata.labels, &pod->metadata.n_labels, meta->labels, meta->n_labels);
    set_condition(
        operation, pod,
        &(struct dv_api_pod_condition){.type = DV_STR("PodScheduled"), .status = DV_STR("True")});
    return dv_change_admit_then(operation, pod, dv_change_finish);
}

/* ---- budgets ---- */

struct owners {
    const struct dv_embedded *embedded;
    dv_str namespace;
};

static const void *find_owner(void *ctx, enum dv_kind_id kind, dv_str name)
{
    const struct owners *owners = ctx;
    const struct dv_object *object =
        dv_embedded_get(owners->embedded, dv_kind(kind), owners->namespace, name);

    return object ? object->value : NULL;
}

/* The budget that is about the pod. `n` is how many there are. */
static const struct dv_api_pod_disruption_budget *
find_budget(const struct dv_cluster_operation *operation, const struct dv_api_pod *pod, size_t *n)
{
    const struct dv_api_pod_disruption_budget *found = NULL;
    struct dv_collection_range range = dv_collection_range(
        &operation->embedded->collections[DV_KIND_DISRUPTION_BUDGET], pod->metadata.namespace);
    const struct dv_entry *entry;

    *n = 0;
    while ((entry = dv_collection_range_next(&range)) != NULL) {
        struct dv_disruption disruption;

        dv_disruption_begin(&disruption, dv_entry_object(entry)->value, operation->arena);
        if (!dv_disruption_selects(&disruption, &pod->metadata))
            continue;
        found = disruption.budget;
        (*n)++;
    }
    return found;
}

/* Counts the pods of the budget; those that are being evicted count as gone. */
static void count(const struct dv_cluster_operation *operation,
                  const struct dv_api_pod_disruption_budget *budget,
                  struct dv_api_pod_disruption_budget_status *status)
{
    struct owners owners = {operation->embedded, budget->metadata.namespace};
    struct dv_collection_range range = dv_collection_range(
        &operation->embedded->collections[DV_KIND_POD], budget->metadata.namespace);
    const struct dv_entry *entry;
    struct dv_disruption disruption;

    dv_disruption_begin(&disruption, budget, operation->arena);
    disruption.find = find_owner;
    disruption.ctx = &owners;
    while ((entry = dv_collection_range_next(&range)) != NULL) {
        bool is_going = entry->operation && entry->operation->is_evicted;
        struct dv_api_pod pod;

        /* Most pods are idle and packed; only those of the budget are unpacked. */
        if (!entry->object || !disruption.selector ||
            !dv_object_is_selected(entry->object, disruption.selector, NULL))
            continue;
        pod = *(const struct dv_api_pod *)dv_entry_object(entry)->value;
        if (is_going)
            pod.metadata.deletion_timestamp = dv_cluster_operation_now(operation);
        dv_disruption_add(&disruption, &pod);
    }
    dv_disruption_end(&disruption, dv_cluster_operation_now(operation), operation->arena, status);
}

static bool is_allowed(const struct dv_api_pod_disruption_budget *budget,
                       const struct dv_api_pod *pod,
                       const struct dv_api_pod_disruption_budget_status *status)
{
    if (status->disruptions_allowed > 0)
        return true;
    if (dv_pod_is_ready(pod, NULL))
        return false;
    if (dv_str_eq(budget->spec.unhealthy_pod_eviction_policy, DV_STR("AlwaysAllow")))
        return true;
    return status->current_healthy >= status->desired_healthy && status->desired_healthy > 0;
}

static const struct dv_api_status *
violation(const struct dv_api_pod_disruption_budget *budget,
          const struct dv_api_pod_disruption_budget_status *status, struct dv_arena *arena)
{
    struct dv_api_status *failure = dv_status_too_many_requests(
        0, arena, "Cannot evict pod as it would violate the pod's disruption budget.");

    dv_status_add_cause(failure, DV_STR("DisruptionBudget"),
                        dv_str_printf(arena,
                                      "The disruption budget %.*s needs %" PRId64
                                      " healthy pods and has %" PRId64 " currently",
                                      DV_FMT(budget->metadata.name), status->desired_healthy,
                                      status->current_healthy),
                        DV_STR_NONE, arena);
    return failure;
}

/* Why a budget does not let the pod be evicted now; NULL: it does, or there is none. What its
 * status says may be a moment old, so its pods are counted anew when it would allow it: evictions
 * at once do not get past it together. */
static const struct dv_api_status *refuse_eviction(struct dv_cluster_operation *operation,
                                                   const struct dv_api_pod *pod)
{
    const struct dv_api_pod_disruption_budget *budget;
    struct dv_api_pod_disruption_budget_status status;
    size_t n;

    /* Whoever does not run, or is to end, disturbs nobody by going. */
    if (dv_pod_is_terminal(pod) || dv_str_eq(pod->status.phase, DV_STR("Pending")) ||
        pod->metadata.deletion_timestamp.is_set)
        return NULL;
    budget = find_budget(operation, pod, &n);
    if (!budget)
        return NULL;
    if (n > 1)
        return dv_status_new(500, DV_STR_NONE, operation->arena,
                             "This pod has more than one PodDisruptionBudget, which the eviction "
                             "subresource does not support.");
    status = budget->status;
    if (status.observed_generation != budget->metadata.generation ||
        is_allowed(budget, pod, &status))
        count(operation, budget, &status);
    return is_allowed(budget, pod, &status) ? NULL : violation(budget, &status, operation->arena);
}

/* ---- eviction ---- */

static bool evict_judged(struct dv_cluster_operation *operation, void *pod)
{
    const struct dv_api_status *failure = refuse_eviction(operation, pod);

    if (failure)
        return dv_cluster_operation_fail(operation, failure);
    operation->is_evicted = !operation->is_dry_run;
    return dv_delete_value(operation, pod);
}

static bool evict_mutated(struct dv_cluster_operation *operation, void *pod)
{
    return dv_change_judge_then(operation, pod, evict_judged);
}

bool dv_cluster_pod_evict(struct dv_cluster_operation *operation)
{
    const struct dv_api_eviction *eviction = operation->request->value;
    struct dv_status_about about = dv_change_about(operation);
    struct dv_api_pod *pod;

    if (!dv_str_eq(eviction->metadata.name, about.name))
        return dv_cluster_operation_fail(
            operation, dv_status_bad_request(operation->arena,
                                             "name in URL does not match name in Eviction object"));
    operation->delete_options = eviction->delete_options;
    if (!dv_change_admit(operation, NULL))
        return false;
    if (!operation->entry->object)
        return dv_cluster_operation_fail(operation, dv_status_not_found(&about, operation->arena));
    if (!dv_delete_check_preconditions(operation))
        return false;
    pod = dv_change_copy(operation);
    if (!pod->metadata.deletion_timestamp.is_set)
        set_condition(operation, pod,
                      &(struct dv_api_pod_condition){.type = DV_STR("DisruptionTarget"),
                                                     .status = DV_STR("True"),
                                                     .reason = DV_STR("EvictionByEvictionAPI"),
                                                     .message = DV_STR("Eviction API: evicting")});
    return dv_change_mutate_then(operation, pod, evict_mutated);
}
