/* sched_extended.c - the claim that a pod gets for its extended resources, where classes serve
 * them. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "sched/binding.h"
#include "sched/sched_state.h"
#include "json/json.h"

/* The claim for the pod's extended resources has this name from now on: the devices that were
 * decided on are held in its name, and no longer in that of the claim before. */
void dv_sched_extended_use(struct dv_sched_binding *binding, dv_str name)
{
    struct dv_sched_pod *pod = binding->pod;
    struct dv_sched_claim *old = pod->extended.claim;

    dv_link_remove(&pod->extended.user);
    if (old) {
        dv_sched_claim_unassume(old);
        dv_sched_claim_drop(old);
    }
    pod->extended = (struct dv_sched_pod_claim){
        .pod = pod,
        .claim = dv_sched_claim(binding->sched, dv_sched_pod_value(pod)->metadata.namespace, name)};
    dv_list_push(&pod->extended.claim->users, &pod->extended.user);
    dv_sched_claim_assume(&pod->extended, binding->created_allocation);
}

/* Drafts the claim that the pod needs on this node for its extended resources. The decision's arena
 * does not live long enough: all is copied. */
void dv_sched_extended_draft(struct dv_sched_binding *binding,
                             const struct dv_sched_decision *decision)
{
    static const bool yes = true;
    const struct dv_api_object_meta *pod = binding->pod->object->meta;
    struct dv_api_resource_claim draft = {0};
    struct dv_str_entry annotation = {DV_STR(DV_CLAIM_EXTENDED_ANNOTATION), DV_STR("true")};
    dv_str finalizer = DV_STR(DV_CLAIM_FINALIZER);
    struct dv_api_owner_reference owner = {.api_version = DV_STR("v1"),
                                           .kind = DV_STR("Pod"),
                                           .name = pod->name,
                                           .uid = pod->uid,
                                           .controller = &yes};

    draft.metadata.generate_name =
        dv_str_printf(binding->arena, "%.*s-extended-resources-", DV_FMT(pod->name));
    draft.metadata.namespace = pod->namespace;
    draft.metadata.annotations = &annotation;
    draft.metadata.n_annotations = 1;
    draft.metadata.owner_references = &owner;
    draft.metadata.n_owner_references = 1;
    /* The finalizer comes with the first write of an allocation: giving it now saves that
     * request. */
    draft.metadata.finalizers = &finalizer;
    draft.metadata.n_finalizers = 1;
    draft.spec.devices.requests = decision->requests;
    draft.spec.devices.n_requests = decision->n_requests;
    binding->created = DV_NEW(binding->arena, struct dv_api_resource_claim);
    dv_message_copy(&dv_message_resource_claim, &draft, binding->arena, binding->created);
    binding->created_allocation =
        dv_sched_binding_copy(binding, &decision->allocations[decision->n_claims]);
    binding->mappings = DV_NEW_ARRAY(
        binding->arena, struct dv_api_container_extended_resource_request, decision->n_mappings);
    binding->n_mappings = decision->n_mappings;
    for (size_t i = 0; i < decision->n_mappings; i++)
        dv_message_copy(&dv_message_container_extended_resource_request, &decision->mappings[i],
                        binding->arena, &binding->mappings[i]);
}

/* {"status":{"extendedResourceClaimStatus":...}} */
const struct dv_json *dv_sched_extended_patch(const struct dv_sched_binding *binding)
{
    const struct dv_api_pod_extended_resource_claim_status value = {
        .resource_claim_name = binding->created_name,
        .request_mappings = binding->mappings,
        .n_request_mappings = binding->n_mappings};
    struct dv_json *doc = dv_json_new_object(binding->arena);
    struct dv_json *status = dv_json_new_object(binding->arena);

    dv_json_set(
        status, DV_STR("extendedResourceClaimStatus"),
        dv_encode_patch(&dv_message_pod_extended_resource_claim_status, &value, binding->arena),
        binding->arena);
    dv_json_set(doc, DV_STR("status"), status, binding->arena);
    return doc;
}
