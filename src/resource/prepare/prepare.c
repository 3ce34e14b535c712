/* prepare.c - what a server does to an object before it validates it: sets what only it may set,
 * and keeps what this endpoint may not change. */
#include "resource/prepare.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "resource/prepare/gates.h"
#include "resource/prepare/prepare_apps.h"
#include "resource/resource.h"

#define KUBERNETES DV_STR("kubernetes")

static struct dv_api_object_meta *meta_of(const struct dv_kind *kind, void *value)
{
    const struct dv_field *field =
        dv_message_field(kind->versions[0].message, DV_STR("metadata"), NULL);

    return (struct dv_api_object_meta *)(void *)((char *)value + field->offset);
}

/* -- Create --------------------------------------------------------------------------------- */

/* Gives a pod that may not be scheduled yet the condition that says so. */
static void mark_gated(struct dv_api_pod *pod, const struct dv_prepare *how)
{
    struct dv_api_pod_condition *condition;

    if (pod->spec.n_scheduling_gates == 0)
        return;
    condition = DV_NEW(how->arena, struct dv_api_pod_condition);
    *condition = (struct dv_api_pod_condition){
        .type = DV_STR("PodScheduled"),
        .status = DV_STR("False"),
        .reason = DV_STR("SchedulingGated"),
        .message = DV_STR("Scheduling is blocked due to non-empty scheduling gates"),
    };
    pod->status.conditions = condition;
    pod->status.n_conditions = 1;
}

static void create_pod(void *value, const struct dv_prepare *how)
{
    struct dv_api_pod *pod = value;

    pod->status = (struct dv_api_pod_status){
        .phase = DV_STR("Pending"),
        .qos_class = dv_pod_qos_class(pod, how->arena),
    };
    mark_gated(pod, how);
}

static void create_namespace(void *value, const struct dv_prepare *how)
{
    struct dv_api_namespace *namespace = value;
    size_t n = namespace->spec.n_finalizers;
    dv_str *finalizers;

    namespace->status = (struct dv_api_namespace_status){.phase = DV_STR("Active")};
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(namespace->spec.finalizers[i], KUBERNETES))
            return;
    finalizers = DV_NEW_ARRAY(how->arena, dv_str, n + 1);
    for (size_t i = 0; i < n; i++)
        finalizers[i] = namespace->spec.finalizers[i];
    finalizers[n] = KUBERNETES;
    namespace->spec.finalizers = finalizers;
    namespace->spec.n_finalizers = n + 1;
}

static void create_claim(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_resource_claim *)value)->status = (struct dv_api_resource_claim_status){0};
}

static void create_taint_rule(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_device_taint_rule *)value)->status =
        (struct dv_api_device_taint_rule_status){0};
}

/* Its generation never changes: nothing of it may. */
static void create_priority_class(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_priority_class *)value)->metadata.generation = 1;
}

static void create_quota(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_resource_quota *)value)->status = (struct dv_api_resource_quota_status){0};
}

static void create_service(void *value, const struct dv_prepare *how)
{
    dv_service_prepare_create(value, how->arena);
}

static void create_endpoint_slice(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_endpoint_slice *)value)->metadata.generation = 1;
}

/* Notes that objects are stored in the version that the definition says, as long as nobody who has
 * rewritten all of them takes it out. */
static void add_stored_version(struct dv_api_custom_resource_definition *definition,
                               struct dv_arena *arena)
{
    struct dv_api_custom_resource_definition_status *status = &definition->status;
    dv_str *all = DV_NEW_ARRAY(arena, dv_str, status->n_stored_versions + 1);
    dv_str stored = DV_STR_NONE;

    for (size_t i = 0; i < definition->spec.n_versions; i++)
        if (definition->spec.versions[i].storage)
            stored = definition->spec.versions[i].name;
    for (size_t i = 0; i < status->n_stored_versions; i++) {
        if (dv_str_eq(status->stored_versions[i], stored))
            return;
        all[i] = status->stored_versions[i];
    }
    all[status->n_stored_versions++] = stored;
    status->stored_versions = all;
}

static void create_policy(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_validating_admission_policy *)value)->status =
        (struct dv_api_validating_admission_policy_status){0};
}

static void create_budget(void *value, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_pod_disruption_budget *)value)->status =
        (struct dv_api_pod_disruption_budget_status){0};
}

static void create_definition(void *value, const struct dv_prepare *how)
{
    struct dv_api_custom_resource_definition *definition = value;

    definition->status = (struct dv_api_custom_resource_definition_status){0};
    add_stored_version(definition, how->arena);
}

/* A node keeps its status: a kubelet registers with it. */
static void (*const creates[DV_N_KINDS])(void *value, const struct dv_prepare *how) = {
    [DV_KIND_POD] = create_pod,
    [DV_KIND_NAMESPACE] = create_namespace,
    [DV_KIND_CLAIM] = create_claim,
    [DV_KIND_TAINT_RULE] = create_taint_rule,
    [DV_KIND_PRIORITY_CLASS] = create_priority_class,
    [DV_KIND_RESOURCE_QUOTA] = create_quota,
    [DV_KIND_DAEMON_SET] = dv_create_daemon_set,
    [DV_KIND_SERVICE] = create_service,
    [DV_KIND_ENDPOINT_SLICE] = create_endpoint_slice,
    [DV_KIND_VALIDATING_POLICY] = create_policy,
    [DV_KIND_DEPLOYMENT] = dv_create_deployment,
    [DV_KIND_REPLICA_SET] = dv_create_replica_set,
    [DV_KIND_JOB] = dv_create_job,
    [DV_KIND_DISRUPTION_BUDGET] = create_budget,
    [DV_KIND_CUSTOM_DEFINITION] = create_definition,
};

void dv_prepare_create(const struct dv_kind *kind, void *value, const struct dv_prepare *how)
{
    struct dv_api_object_meta *meta = meta_of(kind, value);

    (void)dv_dedup_owners(meta, how->arena); /* the caller that warns has called it before */
    meta->self_link = DV_STR_NONE;
    meta->deletion_timestamp = (struct dv_time){0};
    meta->deletion_grace_period_seconds = NULL;
    if (kind->has_generation)
        meta->generation = 1;
    if (kind->id < DV_N_KINDS && creates[kind->id])
        creates[kind->id](value, how);
    dv_gates_drop(kind, how->gates, NULL, value);
}

/* -- Update --------------------------------------------------------------------------------- */

static void keep_meta(struct dv_api_object_meta *meta, const struct dv_api_object_meta *old)
{
    meta->self_link = DV_STR_NONE;
    meta->generation = old->generation;
    if (meta->uid.n == 0)
        meta->uid = old->uid;
    if (!meta->creation_timestamp.is_set)
        meta->creation_timestamp = old->creation_timestamp;
    if (old->deletion_timestamp.is_set)
        meta->deletion_timestamp = old->deletion_timestamp;
    if (!meta->deletion_grace_period_seconds)
        meta->deletion_grace_period_seconds = old->deletion_grace_period_seconds;
}

/* Keeps the old metadata, for kinds of which the status subresource changes nothing but the
 * status. */
static void keep_meta_for_status(struct dv_api_object_meta *meta,
                                 const struct dv_api_object_meta *old)
{
    meta->deletion_timestamp = old->deletion_timestamp;
    meta->labels = old->labels;
    meta->n_labels = old->n_labels;
    meta->annotations = old->annotations;
    meta->n_annotations = old->n_annotations;
    meta->finalizers = old->finalizers;
    meta->n_finalizers = old->n_finalizers;
    meta->owner_references = old->owner_references;
    meta->n_owner_references = old->n_owner_references;
}

static bool is_same_device(const struct dv_api_allocated_device_status *device,
                           const struct dv_api_device_request_allocation_result *result)
{
    return dv_str_eq(device->driver, result->driver) && dv_str_eq(device->pool, result->pool) &&
           dv_str_eq(device->device, result->device) &&
           dv_str_eq(device->share_id, result->share_id);
}

static bool is_allocated(const struct dv_api_resource_claim *claim,
                         const struct dv_api_allocated_device_status *device)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        if (is_same_device(device, &allocation->devices.results[i]))
            return true;
    return false;
}

/* A client that clears the allocation need not know of the devices' status: that of a device which
 * is no longer allocated is dropped too. */
static void drop_deallocated(struct dv_api_resource_claim *claim,
                             const struct dv_api_resource_claim *old, const struct dv_prepare *how)
{
    struct dv_api_allocated_device_status *devices;
    size_t n = 0;

    if (!old->status.allocation || claim->status.n_devices == 0)
        return;
    devices =
        DV_NEW_ARRAY(how->arena, struct dv_api_allocated_device_status, claim->status.n_devices);
    for (size_t i = 0; i < claim->status.n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &claim->status.devices[i];

        if (!is_allocated(old, device) || is_allocated(claim, device))
            devices[n++] = *device;
    }
    claim->status.devices = devices;
    claim->status.n_devices = n;
}

static bool is_same_time(struct dv_time a, struct dv_time b)
{
    return a.is_set == b.is_set && a.seconds == b.seconds;
}

/* A taint with a new effect begins now, unless the client says since when. */
static void update_taint(struct dv_api_device_taint *taint, const struct dv_api_device_taint *old,
                         const struct dv_prepare *how)
{
    if (!dv_str_eq(taint->effect, old->effect) && is_same_time(taint->time_added, old->time_added))
        taint->time_added = (struct dv_time){.seconds = how->now.seconds, .is_set = true};
}

/* Whether nothing has changed but metadata. */
static bool is_same_beside_meta(const struct dv_kind *kind, const void *value, const void *old,
                                struct dv_arena *arena)
{
    const struct dv_message *message = kind->versions[0].message;
    void *other = dv_arena_alloc_raw(arena, message->size, message->align);

    memcpy(other, old, message->size);
    *(struct dv_api_object_meta *)other = *(const struct dv_api_object_meta *)value;
    return dv_message_eq(message, value, other);
}

/* The spec of a kind whose generation counts; webhook configurations are nothing else. */
static bool is_same_spec(const struct dv_kind *kind, const void *value, const void *old,
                         struct dv_arena *arena)
{
    const struct dv_field *field =
        dv_message_field(kind->versions[0].message, DV_STR("spec"), NULL);

    if (!field)
        return is_same_beside_meta(kind, value, old, arena);
    return dv_message_eq(field->message, (const char *)value + field->offset,
                         (const char *)old + field->offset);
}

static void update_pod(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_pod *)value)->status = ((const struct dv_api_pod *)old)->status;
}

static void update_pod_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_pod *pod = value;
    const struct dv_api_pod *old_pod = old;

    (void)how;
    pod->spec = old_pod->spec;
    pod->status.qos_class = old_pod->status.qos_class;
    pod->metadata.owner_references = old_pod->metadata.owner_references;
    pod->metadata.n_owner_references = old_pod->metadata.n_owner_references;
}

static void update_node(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_node *)value)->status = ((const struct dv_api_node *)old)->status;
}

static void update_node_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_node *)value)->spec = ((const struct dv_api_node *)old)->spec;
}

static void update_namespace_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_namespace *)value)->spec = ((const struct dv_api_namespace *)old)->spec;
}

static void update_namespace(void *value, const void *old, const struct dv_prepare *how)
{
    /* only the subresource `finalize` changes finalizers */
    update_namespace_status(value, old, how);
    ((struct dv_api_namespace *)value)->status = ((const struct dv_api_namespace *)old)->status;
}

static void update_claim(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_resource_claim *)value)->status =
        ((const struct dv_api_resource_claim *)old)->status;
}

static void update_claim_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_resource_claim *claim = value;
    const struct dv_api_resource_claim *old_claim = old;

    claim->spec = old_claim->spec;
    keep_meta_for_status(&claim->metadata, &old_claim->metadata);
    drop_deallocated(claim, old_claim, how);
}

static void update_taint_rule(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_device_taint_rule *rule = value;
    const struct dv_api_device_taint_rule *old_rule = old;

    rule->status = old_rule->status;
    update_taint(&rule->spec.taint, &old_rule->spec.taint, how);
}

static void update_taint_rule_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_device_taint_rule *rule = value;
    const struct dv_api_device_taint_rule *old_rule = old;

    (void)how;
    rule->spec = old_rule->spec;
    keep_meta_for_status(&rule->metadata, &old_rule->metadata);
}

static void update_quota(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_resource_quota *)value)->status =
        ((const struct dv_api_resource_quota *)old)->status;
}

static void update_quota_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_resource_quota *)value)->spec =
        ((const struct dv_api_resource_quota *)old)->spec;
}

static void update_service(void *value, const void *old, const struct dv_prepare *how)
{
    dv_service_prepare_update(value, old, how->arena);
}

static void update_service_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_service *)value)->spec = ((const struct dv_api_service *)old)->spec;
}

/* Counts changes of all but the metadata: a slice of endpoints has no spec. */
static void update_endpoint_slice(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_endpoint_slice *slice = value;
    struct dv_api_endpoint_slice old_copy = *(const struct dv_api_endpoint_slice *)old;

    (void)how;
    old_copy.metadata = slice->metadata;
    if (!dv_message_eq(&dv_message_endpoint_slice, slice, &old_copy))
        slice->metadata.generation++;
}

static void update_policy(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_validating_admission_policy *)value)->status =
        ((const struct dv_api_validating_admission_policy *)old)->status;
}

static void update_policy_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_validating_admission_policy *policy = value;
    const struct dv_api_validating_admission_policy *old_policy = old;

    (void)how;
    policy->spec = old_policy->spec;
    keep_meta_for_status(&policy->metadata, &old_policy->metadata);
}

static void update_budget(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_pod_disruption_budget *)value)->status =
        ((const struct dv_api_pod_disruption_budget *)old)->status;
}

static void update_budget_status(void *value, const void *old, const struct dv_prepare *how)
{
    (void)how;
    ((struct dv_api_pod_disruption_budget *)value)->spec =
        ((const struct dv_api_pod_disruption_budget *)old)->spec;
}

static void update_definition(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_custom_resource_definition *definition = value;

    definition->status = ((const struct dv_api_custom_resource_definition *)old)->status;
    add_stored_version(definition, how->arena);
}

static void update_definition_status(void *value, const void *old, const struct dv_prepare *how)
{
    struct dv_api_custom_resource_definition *definition = value;
    const struct dv_api_custom_resource_definition *old_definition = old;

    (void)how;
    definition->spec = old_definition->spec;
    keep_meta_for_status(&definition->metadata, &old_definition->metadata);
}

/* What an update of the object keeps of the old one, and what one of its status keeps. */
static const struct {
    void (*main)(void *value, const void *old, const struct dv_prepare *how);
    void (*status)(void *value, const void *old, const struct dv_prepare *how);
} updates[DV_N_KINDS] = {
    [DV_KIND_POD] = {update_pod,            update_pod_status           },
    [DV_KIND_NODE] = {update_node,           update_node_status          },
    [DV_KIND_NAMESPACE] = {update_namespace,      update_namespace_status     },
    [DV_KIND_CLAIM] = {update_claim,          update_claim_status         },
    [DV_KIND_TAINT_RULE] = {update_taint_rule,     update_taint_rule_status    },
    [DV_KIND_RESOURCE_QUOTA] = {update_quota,          update_quota_status         },
    [DV_KIND_DAEMON_SET] = {dv_update_daemon_set,  dv_update_daemon_set_status },
    [DV_KIND_SERVICE] = {update_service,        update_service_status       },
    [DV_KIND_ENDPOINT_SLICE] = {update_endpoint_slice, NULL                        },
    [DV_KIND_VALIDATING_POLICY] = {update_policy,         update_policy_status        },
    [DV_KIND_DEPLOYMENT] = {dv_update_deployment,  dv_update_deployment_status },
    [DV_KIND_REPLICA_SET] = {dv_update_replica_set, dv_update_replica_set_status},
    [DV_KIND_JOB] = {dv_update_job,         dv_update_job_status        },
    [DV_KIND_DISRUPTION_BUDGET] = {update_budget,         update_budget_status        },
    [DV_KIND_CUSTOM_DEFINITION] = {update_definition,     update_definition_status    },
};

void dv_prepare_update(const struct dv_kind *kind, enum dv_operation operation, void *value,
                       const void *old, const struct dv_prepare *how)
{
    /* A copy of the struct alone: the walk of gates writes to what it looks at. */
    void *old_again = dv_arena_alloc(how->arena, kind->versions[0].message->size, 8);

    memcpy(old_again, old, kind->versions[0].message->size);
    /* the caller that warns has called it before */
    (void)dv_dedup_owners(meta_of(kind, value), how->arena);
    keep_meta(meta_of(kind, value), meta_of(kind, old_again));
    if (kind->id < DV_N_KINDS && updates[kind->id].main && operation != DV_UPDATE_STATUS)
        updates[kind->id].main(value, old, how);
    if (kind->id < DV_N_KINDS && updates[kind->id].status && operation == DV_UPDATE_STATUS)
        updates[kind->id].status(value, old, how);
    dv_gates_drop(kind, how->gates, old_again, value);
    if (kind->has_generation && !is_same_spec(kind, value, old, how->arena) &&
        meta_of(kind, value)->generation < INT64_MAX)
        meta_of(kind, value)->generation++;
}
