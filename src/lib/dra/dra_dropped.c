/* dra_dropped.c - what an API server did not keep of a slice: fields of features that are off. */
#include "base/buf.h"
#include "lib/dra/dra_slices.h"
#include "resource/resource.h"

struct missing {
    bool taints;
    bool partitions;
    bool binding;
    bool shares;
    bool lists;
    bool mappings;
};

static void look_at_attributes(const struct dv_api_device *sent, const struct dv_api_device *stored,
                               struct missing *missing)
{
    missing->lists |= stored->n_attributes < sent->n_attributes;
    for (size_t i = 0; i < sent->n_attributes && i < stored->n_attributes; i++) {
        const struct dv_api_device_attribute *a = &sent->attributes[i].value;
        const struct dv_api_device_attribute *b = &stored->attributes[i].value;

        missing->lists |= a->n_ints > b->n_ints || a->n_bools > b->n_bools ||
                          a->n_strings > b->n_strings || a->n_versions > b->n_versions;
    }
}

static void look_at_device(const struct dv_api_device *sent, const struct dv_api_device *stored,
                           struct missing *missing)
{
    missing->taints |= stored->n_taints < sent->n_taints;
    missing->partitions |= stored->n_consumes_counters < sent->n_consumes_counters ||
                           (sent->node_name.n > 0 && stored->node_name.n == 0) ||
                           (sent->node_selector && !stored->node_selector) ||
                           (sent->all_nodes && !stored->all_nodes);
    missing->binding |= (sent->binds_to_node && !stored->binds_to_node) ||
                        stored->n_binding_conditions < sent->n_binding_conditions ||
                        stored->n_binding_failure_conditions < sent->n_binding_failure_conditions;
    missing->shares |= sent->allow_multiple_allocations && !stored->allow_multiple_allocations;
    for (size_t i = 0; i < sent->n_capacity && i < stored->n_capacity; i++)
        missing->shares |=
            sent->capacity[i].value.request_policy && !stored->capacity[i].value.request_policy;
    missing->mappings |=
        stored->n_node_allocatable_resource_mappings < sent->n_node_allocatable_resource_mappings;
    look_at_attributes(sent, stored, missing);
}

static void add_feature(bool is_missing, const char *feature, struct dv_buf *features)
{
    if (!is_missing)
        return;
    if (features->n > 0)
        dv_buf_add_c(features, ", ");
    dv_buf_add_c(features, feature);
}

bool dv_lib_slice_differs(const struct dv_api_resource_slice_spec *sent,
                          const struct dv_api_resource_slice_spec *stored, struct dv_buf *features)
{
    struct missing missing = {0};

    if (dv_message_eq(&dv_message_resource_slice_spec, sent, stored))
        return false;
    missing.partitions = stored->n_shared_counters < sent->n_shared_counters ||
                         (sent->per_device_node_selection && !stored->per_device_node_selection);
    for (size_t i = 0; i < sent->n_devices; i++) {
        const struct dv_api_device *device = dv_lib_slice_device(stored, sent->devices[i].name, i);

        if (device)
            look_at_device(&sent->devices[i], device, &missing);
    }
    add_feature(missing.taints, "DRADeviceTaints", features);
    add_feature(missing.partitions, "DRAPartitionableDevices", features);
    add_feature(missing.binding, "DRADeviceBindingConditions", features);
    add_feature(missing.shares, "DRAConsumableCapacity", features);
    add_feature(missing.lists, "DRAListTypeAttributes", features);
    add_feature(missing.mappings, "DRANodeAllocatableResources", features);
    return true;
}
