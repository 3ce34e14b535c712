/* claim_pods.c - what pods say about their claims: which they are, whether the pod may have
 * them. */
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "claim/state/claim_state.h"
#include "resource/references.h"
#include "resource/resource.h"

#define GROUP_API_GROUP "scheduling.k8s.io"

/* -- Names of claims ------------------------------------------------------------------------ */

bool dv_claim_resolve(const struct dv_api_pod *pod, const struct dv_api_pod_resource_claim *entry,
                      const struct dv_map *statuses, struct dv_claim_ref *ref, struct dv_err *err)
{
    const struct dv_api_pod_resource_claim_status *status;

    *ref = (struct dv_claim_ref){.pod_claim = entry->name};
    if (entry->resource_claim_name.p) {
        ref->name = entry->resource_claim_name;
        return true;
    }
    if (!entry->resource_claim_template_name.p)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "pod \"%.*s/%.*s\", spec.resourceClaim \"%.*s\": none of the supported "
                       "fields are set",
                       DV_FMT(pod->metadata.namespace), DV_FMT(pod->metadata.name),
                       DV_FMT(entry->name));
    status = dv_map_get(statuses, entry->name);
    if (!status)
        return dv_fail(err, DV_UNAVAILABLE, "pod \"%.*s/%.*s\": ResourceClaim not created yet",
                       DV_FMT(pod->metadata.namespace), DV_FMT(pod->metadata.name));
    ref->name = status->resource_claim_name;
    ref->needs_owner = true;
    return true;
}

dv_str dv_claim_extended(const struct dv_api_pod *pod)
{
    const struct dv_api_pod_extended_resource_claim_status *status =
        pod->status.extended_resource_claim_status;

    return status ? status->resource_claim_name : DV_STR_NONE;
}

bool dv_claim_refs(const struct dv_api_pod *pod, struct dv_arena *arena, struct dv_claim_ref **refs,
                   size_t *n_refs, struct dv_err *err)
{
    struct dv_claim_ref *v =
        DV_NEW_ARRAY(arena, struct dv_claim_ref, pod->spec.n_resource_claims + 1);
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    size_t n = 0;

    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        if (!dv_claim_resolve(pod, &pod->spec.resource_claims[i], &statuses, &v[n], err))
            return false;
        n += v[n].name.n > 0;
    }
    if (dv_claim_extended(pod).n > 0)
        v[n++] = (struct dv_claim_ref){.name = dv_claim_extended(pod)};
    *refs = v;
    *n_refs = n;
    return true;
}

/* -- Whether the pod may use it ------------------------------------------------------------- */

static const struct dv_api_owner_reference *
controller_of(const struct dv_api_resource_claim *object)
{
    for (size_t i = 0; i < object->metadata.n_owner_references; i++) {
        const struct dv_api_owner_reference *owner = &object->metadata.owner_references[i];

        if (owner->controller && *owner->controller)
            return owner;
    }
    return NULL;
}

static dv_str group_of(const struct dv_api_pod *pod)
{
    return pod->spec.scheduling_group ? pod->spec.scheduling_group->pod_group_name : DV_STR_NONE;
}

static bool is_owner(const struct dv_api_pod *pod, const struct dv_api_resource_claim *object,
                     bool takes_groups)
{
    const struct dv_api_owner_reference *owner = controller_of(object);
    dv_str group;
    dv_str version;

    if (!owner || !dv_str_eq(pod->metadata.namespace, object->metadata.namespace))
        return false;
    if (dv_str_eq(owner->uid, pod->metadata.uid))
        return true;
    dv_api_version_split(owner->api_version, &group, &version);
    return takes_groups && group_of(pod).n > 0 && dv_str_eq(owner->kind, DV_STR("PodGroup")) &&
           dv_str_eq(group, DV_STR(GROUP_API_GROUP)) && dv_str_eq(owner->name, group_of(pod));
}

static bool is_reserved(const struct dv_api_pod *pod, const struct dv_api_resource_claim *object,
                        bool takes_groups)
{
    for (size_t i = 0; i < object->status.n_reserved_for; i++) {
        const struct dv_api_resource_claim_consumer_reference *user =
            &object->status.reserved_for[i];

        if (dv_str_eq(user->uid, pod->metadata.uid))
            return true;
        if (takes_groups && group_of(pod).n > 0 &&
            dv_str_eq(user->api_group, DV_STR(GROUP_API_GROUP)) &&
            dv_str_eq(user->resource, DV_STR("podgroups")) && dv_str_eq(user->name, group_of(pod)))
            return true;
    }
    return false;
}

bool dv_claim_check(const struct dv_api_pod *pod, const struct dv_claim_ref *ref,
                    const struct dv_api_resource_claim *object, bool takes_groups,
                    struct dv_err *err)
{
    const struct dv_api_object_meta *meta = &object->metadata;

    if (ref->needs_owner && !is_owner(pod, object, takes_groups))
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "ResourceClaim %.*s/%.*s was not created for Pod %.*s/%.*s (Pod is not "
                       "owner)",
                       DV_FMT(meta->namespace), DV_FMT(meta->name), DV_FMT(pod->metadata.namespace),
                       DV_FMT(pod->metadata.name));
    if (!is_reserved(pod, object, takes_groups))
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "pod %.*s (%.*s) is not allowed to use ResourceClaim %.*s (%.*s)",
                       DV_FMT(pod->metadata.name), DV_FMT(pod->metadata.uid), DV_FMT(meta->name),
                       DV_FMT(meta->uid));
    if (!object->status.allocation)
        return dv_fail(err, DV_UNAVAILABLE, "ResourceClaim %.*s: not allocated",
                       DV_FMT(meta->name));
    return true;
}
