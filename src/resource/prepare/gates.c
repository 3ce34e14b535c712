#include "resource/prepare/gates.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/codec/layout.h"
#include "resource/prepare.h"
#include "resource/resource.h"

/* One walk for both questions: whether a feature is used, and what of it to clear. `drops` says
 * which; a walk that only asks changes nothing. */
struct walk {
    bool drops;
    bool is_used;
};

/* Visits the members of a list, by its pointer and count. */
static void list(struct walk *walk, void *items, size_t *n)
{
    if (!dv_load_pointer(items))
        return;
    walk->is_used |= *n > 0;
    if (walk->drops) {
        dv_store_pointer(items, NULL);
        *n = 0;
    }
}

static void pointer(struct walk *walk, void *at)
{
    if (!dv_load_pointer(at))
        return;
    walk->is_used = true;
    if (walk->drops)
        dv_store_pointer(at, NULL);
}

static void text(struct walk *walk, dv_str *s)
{
    if (!s->p)
        return;
    walk->is_used = true;
    if (walk->drops)
        *s = DV_STR_NONE;
}

/* -- Slices --------------------------------------------------------------------------------- */

static void device_taints(struct walk *walk, struct dv_api_device *device)
{
    list(walk, &device->taints, &device->n_taints);
}

static void device_partitions(struct walk *walk, struct dv_api_device *device)
{
    list(walk, &device->consumes_counters, &device->n_consumes_counters);
    text(walk, &device->node_name);
    pointer(walk, &device->node_selector);
    pointer(walk, &device->all_nodes);
}

static void device_binding(struct walk *walk, struct dv_api_device *device)
{
    pointer(walk, &device->binds_to_node);
    list(walk, &device->binding_conditions, &device->n_binding_conditions);
    list(walk, &device->binding_failure_conditions, &device->n_binding_failure_conditions);
}

static void device_sharing(struct walk *walk, struct dv_api_device *device)
{
    pointer(walk, &device->allow_multiple_allocations);
    for (size_t i = 0; i < device->n_capacity; i++)
        pointer(walk, &device->capacity[i].value.request_policy);
}

static void device_lists(struct walk *walk, struct dv_api_device *device)
{
    for (size_t i = 0; i < device->n_attributes; i++) {
        struct dv_api_device_attribute *attribute = &device->attributes[i].value;

        list(walk, &attribute->ints, &attribute->n_ints);
        list(walk, &attribute->bools, &attribute->n_bools);
        list(walk, &attribute->strings, &attribute->n_strings);
        list(walk, &attribute->versions, &attribute->n_versions);
    }
}

static void device_mappings(struct walk *walk, struct dv_api_device *device)
{
    list(walk, &device->node_allocatable_resource_mappings,
         &device->n_node_allocatable_resource_mappings);
}

static void each_device(struct walk *walk, struct dv_api_resource_slice *slice,
                        void (*look)(struct walk *walk, struct dv_api_device *device))
{
    for (size_t i = 0; i < slice->spec.n_devices; i++)
        look(walk, &slice->spec.devices[i]);
}

static void slice_taints(struct walk *walk, void *value)
{
    each_device(walk, value, device_taints);
}

static void slice_partitions(struct walk *walk, void *value)
{
    struct dv_api_resource_slice *slice = value;

    list(walk, &slice->spec.shared_counters, &slice->spec.n_shared_counters);
    pointer(walk, &slice->spec.per_device_node_selection);
    each_device(walk, slice, device_partitions);
}

static void slice_binding(struct walk *walk, void *value)
{
    each_device(walk, value, device_binding);
}

static void slice_sharing(struct walk *walk, void *value)
{
    each_device(walk, value, device_sharing);
}

static void slice_lists(struct walk *walk, void *value)
{
    each_device(walk, value, device_lists);
}

static void slice_mappings(struct walk *walk, void *value)
{
    each_device(walk, value, device_mappings);
}

/* -- Claims --------------------------------------------------------------------------------- */

static void spec_alternatives(struct walk *walk, struct dv_api_resource_claim_spec *spec)
{
    for (size_t i = 0; i < spec->devices.n_requests; i++)
        list(walk, &spec->devices.requests[i].first_available,
             &spec->devices.requests[i].n_first_available);
}

static void spec_tolerations(struct walk *walk, struct dv_api_resource_claim_spec *spec)
{
    for (size_t i = 0; i < spec->devices.n_requests; i++) {
        struct dv_api_device_request *request = &spec->devices.requests[i];

        if (request->exactly)
            list(walk, &request->exactly->tolerations, &request->exactly->n_tolerations);
        for (size_t j = 0; j < request->n_first_available; j++)
            list(walk, &request->first_available[j].tolerations,
                 &request->first_available[j].n_tolerations);
    }
}

static void spec_sharing(struct walk *walk, struct dv_api_resource_claim_spec *spec)
{
    for (size_t i = 0; i < spec->devices.n_constraints; i++)
        text(walk, &spec->devices.constraints[i].distinct_attribute);
    for (size_t i = 0; i < spec->devices.n_requests; i++) {
        struct dv_api_device_request *request = &spec->devices.requests[i];

        if (request->exactly)
            pointer(walk, &request->exactly->capacity);
        for (size_t j = 0; j < request->n_first_available; j++)
            pointer(walk, &request->first_available[j].capacity);
    }
}

static void each_result(struct walk *walk, struct dv_api_resource_claim *claim,
                        void (*look)(struct walk *walk,
                                     struct dv_api_device_request_allocation_result *result))
{
    struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        look(walk, &allocation->devices.results[i]);
}

static void result_tolerations(struct walk *walk,
                               struct dv_api_device_request_allocation_result *result)
{
    list(walk, &result->tolerations, &result->n_tolerations);
}

static void result_binding(struct walk *walk,
                           struct dv_api_device_request_allocation_result *result)
{
    list(walk, &result->binding_conditions, &result->n_binding_conditions);
    list(walk, &result->binding_failure_conditions, &result->n_binding_failure_conditions);
}

static void result_sharing(struct walk *walk,
                           struct dv_api_device_request_allocation_result *result)
{
    text(walk, &result->share_id);
    list(walk, &result->consumed_capacity, &result->n_consumed_capacity);
}

static void claim_alternatives(struct walk *walk, void *value)
{
    spec_alternatives(walk, &((struct dv_api_resource_claim *)value)->spec);
}

static void claim_tolerations(struct walk *walk, void *value)
{
    spec_tolerations(walk, &((struct dv_api_resource_claim *)value)->spec);
    each_result(walk, value, result_tolerations);
}

static void claim_binding(struct walk *walk, void *value)
{
    each_result(walk, value, result_binding);
}

static void claim_sharing(struct walk *walk, void *value)
{
    struct dv_api_resource_claim *claim = value;

    spec_sharing(walk, &claim->spec);
    each_result(walk, claim, result_sharing);
    for (size_t i = 0; i < claim->status.n_devices; i++)
        text(walk, &claim->status.devices[i].share_id);
}

static void claim_devices(struct walk *walk, void *value)
{
    struct dv_api_resource_claim *claim = value;

    list(walk, &claim->status.devices, &claim->status.n_devices);
}

static void template_alternatives(struct walk *walk, void *value)
{
    spec_alternatives(walk, &((struct dv_api_resource_claim_template *)value)->spec.spec);
}

static void template_tolerations(struct walk *walk, void *value)
{
    spec_tolerations(walk, &((struct dv_api_resource_claim_template *)value)->spec.spec);
}

static void template_sharing(struct walk *walk, void *value)
{
    spec_sharing(walk, &((struct dv_api_resource_claim_template *)value)->spec.spec);
}

/* -- Others --------------------------------------------------------------------------------- */

static void class_resource(struct walk *walk, void *value)
{
    text(walk, &((struct dv_api_device_class *)value)->spec.extended_resource_name);
}

static void lease_election(struct walk *walk, void *value)
{
    struct dv_api_lease *lease = value;

    text(walk, &lease->spec.strategy);
    text(walk, &lease->spec.preferred_holder);
}

static const struct {
    enum dv_kind_id kind;
    unsigned gates; /* all of them are needed */
    void (*look)(struct walk *walk, void *value);
} features[] = {
    {DV_KIND_SLICE,    DV_GATE_DEVICE_TAINTS,                              slice_taints         },
    {DV_KIND_SLICE,    DV_GATE_PARTITIONABLE_DEVICES,                      slice_partitions     },
    {DV_KIND_SLICE,    DV_GATE_BINDING_CONDITIONS | DV_GATE_DEVICE_STATUS, slice_binding        },
    {DV_KIND_SLICE,    DV_GATE_CONSUMABLE_CAPACITY,                        slice_sharing        },
    {DV_KIND_SLICE,    DV_GATE_LIST_ATTRIBUTES,                            slice_lists          },
    {DV_KIND_SLICE,    DV_GATE_NODE_ALLOCATABLE,                           slice_mappings       },
    {DV_KIND_CLAIM,    DV_GATE_PRIORITIZED_LIST,                           claim_alternatives   },
    {DV_KIND_CLAIM,    DV_GATE_DEVICE_TAINTS,                              claim_tolerations    },
    {DV_KIND_CLAIM,    DV_GATE_BINDING_CONDITIONS | DV_GATE_DEVICE_STATUS, claim_binding        },
    {DV_KIND_CLAIM,    DV_GATE_CONSUMABLE_CAPACITY,                        claim_sharing        },
    {DV_KIND_CLAIM,    DV_GATE_DEVICE_STATUS,                              claim_devices        },
    {DV_KIND_TEMPLATE, DV_GATE_PRIORITIZED_LIST,                           template_alternatives},
    {DV_KIND_TEMPLATE, DV_GATE_DEVICE_TAINTS,                              template_tolerations },
    {DV_KIND_TEMPLATE, DV_GATE_CONSUMABLE_CAPACITY,                        template_sharing     },
    {DV_KIND_CLASS,    DV_GATE_EXTENDED_RESOURCE,                          class_resource       },
    {DV_KIND_LEASE,    DV_GATE_COORDINATED_ELECTION,                       lease_election       },
};

void dv_gates_drop(const struct dv_kind *kind, unsigned gates, void *old, void *value)
{
    for (size_t i = 0; i < DV_COUNT(features); i++) {
        struct walk asking = {0};
        struct walk dropping = {.drops = true};

        if (features[i].kind != kind->id || (gates & features[i].gates) == features[i].gates)
            continue;
        if (old)
            features[i].look(&asking, old);
        if (!asking.is_used)
            features[i].look(&dropping, value);
    }
}
