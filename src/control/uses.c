/* uses.c - which claims a pod uses, as its spec and status say it, and which pod a claim is for.
 * Pure; all controllers ask here. */
#include "control/uses.h"

#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/references.h"
#include "resource/resource.h"

bool dv_control_pod_is_done(const struct dv_api_pod *pod)
{
    return dv_pod_is_terminal(pod) ||
           (pod->metadata.deletion_timestamp.is_set && pod->spec.node_name.n == 0);
}

enum dv_use dv_control_use(const struct dv_map *statuses,
                           const struct dv_api_pod_resource_claim *entry, dv_str *claim)
{
    const struct dv_api_pod_resource_claim_status *status;

    if (entry->resource_claim_name.p) {
        *claim = entry->resource_claim_name;
        return DV_USE_NAMED;
    }
    if (!entry->resource_claim_template_name.p)
        /* An entry that names neither a claim nor a template is refused by every server. */
        return DV_USE_NOTHING;
    status = dv_map_get(statuses, entry->name);
    if (!status)
        return DV_USE_NOT_YET;
    if (!status->resource_claim_name.p)
        return DV_USE_NOTHING;
    *claim = status->resource_claim_name;
    return DV_USE_GENERATED;
}

bool dv_control_owner_pod(const struct dv_api_object_meta *claim, dv_str *name, dv_str *uid)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(claim);

    if (!owner || !dv_str_eq(owner->kind, DV_STR("Pod")) ||
        !dv_str_eq(owner->api_version, DV_STR("v1")))
        return false;
    *name = owner->name;
    *uid = owner->uid;
    return true;
}

bool dv_control_is_owned_by(const struct dv_api_object_meta *claim, dv_str uid)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(claim);

    return owner && dv_str_eq(owner->uid, uid);
}

dv_str dv_control_entry_of(const struct dv_api_object_meta *claim)
{
    const struct dv_str_entry *entry =
        dv_entry_find(claim->annotations, claim->n_annotations, DV_STR(DV_CLAIM_ENTRY_ANNOTATION));

    return entry ? entry->value : DV_STR_NONE;
}

enum dv_claim_source dv_control_source_of(const struct dv_api_object_meta *claim)
{
    const struct dv_str_entry *extended = dv_entry_find(claim->annotations, claim->n_annotations,
                                                        DV_STR(DV_CLAIM_EXTENDED_ANNOTATION));

    if (extended && dv_str_eq(extended->value, DV_STR("true")))
        return DV_CLAIM_EXTENDED;
    return dv_control_entry_of(claim).n > 0 ? DV_CLAIM_TEMPLATE : DV_CLAIM_PLAIN;
}

bool dv_control_wants_admin(const struct dv_api_device_claim *devices)
{
    for (size_t i = 0; devices && i < devices->n_requests; i++) {
        const struct dv_api_exact_device_request *exact = devices->requests[i].exactly;

        if (exact && exact->admin_access && *exact->admin_access)
            return true; /* only a request without alternatives can ask for admin access */
    }
    return false;
}

bool dv_control_wants_list(const struct dv_api_device_claim *devices)
{
    for (size_t i = 0; devices && i < devices->n_requests; i++)
        if (devices->requests[i].n_first_available > 0)
            return true;
    return false;
}

bool dv_control_is_pod(const struct dv_api_resource_claim_consumer_reference *consumer)
{
    return consumer->api_group.n == 0 && dv_str_eq(consumer->resource, DV_STR("pods"));
}

bool dv_control_is_to_reserve(const struct dv_api_pod *pod,
                              const struct dv_api_resource_claim *claim)
{
    return pod->spec.node_name.n > 0 && claim->status.allocation &&
           !claim->metadata.deletion_timestamp.is_set &&
           claim->status.n_reserved_for < DV_CLAIM_RESERVED_MAX &&
           !dv_claim_is_reserved_for(claim, pod->metadata.uid);
}

bool dv_control_needs_work(const struct dv_api_pod *pod, const struct dv_control_lookup *lookup)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

    if (pod->metadata.deletion_timestamp.is_set || dv_control_pod_is_done(pod))
        return false;
    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_resource_claim *claim;
        dv_str name = DV_STR_NONE;
        enum dv_use use = dv_control_use(&statuses, &pod->spec.resource_claims[i], &name);

        if (use == DV_USE_NOTHING)
            continue;
        if (use == DV_USE_NOT_YET)
            return true;
        claim = lookup->claim(lookup->ctx, pod->metadata.namespace, name);
        if (use == DV_USE_GENERATED &&
            (!claim || !dv_control_is_owned_by(&claim->metadata, pod->metadata.uid)))
            return true;
        if (claim && dv_control_is_to_reserve(pod, claim))
            return true;
    }
    return false;
}
