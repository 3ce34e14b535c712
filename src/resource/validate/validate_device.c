/* validate_device.c - devices of slices. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/device_checks.h"

#define PROPERTIES_MAX 32u
#define ATTRIBUTE_VALUES_MAX 48u
#define ATTRIBUTE_BYTES_MAX 64u
#define COUNTERS_MAX 32u
#define CONSUMPTIONS_MAX 2u
#define TAINTS_MAX 16u
/* The longest key in a path: a domain, a slash and an identifier. Longer ones are cut in the
 * middle. */
#define KEY_BYTES_MAX (63u + 1u + 32u)

static struct dv_field_path key_path(const struct dv_field_path *path, dv_str key,
                                     struct dv_arena *arena)
{
    const size_t kept = KEY_BYTES_MAX - 3;

    if (key.n > KEY_BYTES_MAX)
        key = dv_str_printf(arena, "%.*s...%.*s", (int)((kept + 1) / 2), key.p, (int)(kept / 2),
                            key.p + key.n - kept / 2);
    return dv_path_key(path, key);
}

static void check_string(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str value)
{
    if (value.n > ATTRIBUTE_BYTES_MAX)
        dv_too_long(problems, path, name, ATTRIBUTE_BYTES_MAX);
}

static void check_version(struct dv_problems *problems, const struct dv_field_path *path,
                          const char *name, dv_str value)
{
    if (!dv_version_is_well_formed(value))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "must be a string compatible with semver.org spec 2.0.0");
    check_string(problems, path, name, value);
}

static void check_texts(struct dv_problems *problems, const struct dv_field_path *up,
                        const char *name, const dv_str *texts, size_t n, dv_check_text *check)
{
    struct dv_field_path path = dv_path_name(up, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check(problems, &item, NULL, texts[i]);
    }
}

/* Checks that a list which is there has items. Returns 1 when it is there. */
static unsigned check_list(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, const void *items, size_t n)
{
    if (items && n == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name,
                       (struct dv_bad_value){.kind = BAD_JSON, .text = DV_STR("[]")},
                       "must not be empty if specified");
    return items != NULL;
}

static void check_attribute(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_device_attribute *attribute)
{
    unsigned n_values = (attribute->bool_ ? 1u : 0u) + (attribute->int_ ? 1u : 0u);

    if (attribute->string.p) {
        n_values++;
        check_string(problems, path, "string", attribute->string);
    }
    if (attribute->version.p) {
        n_values++;
        check_version(problems, path, "version", attribute->version);
    }
    n_values += check_list(problems, path, "ints", attribute->ints, attribute->n_ints);
    n_values += check_list(problems, path, "bools", attribute->bools, attribute->n_bools);
    n_values += check_list(problems, path, "strings", attribute->strings, attribute->n_strings);
    check_texts(problems, path, "strings", attribute->strings, attribute->n_strings, check_string);
    n_values += check_list(problems, path, "versions", attribute->versions, attribute->n_versions);
    check_texts(problems, path, "versions", attribute->versions, attribute->n_versions,
                check_version);
    if (n_values == 1)
        return;
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                   n_values == 0
                       ? dv_bad_str(DV_STR(""))
                       : dv_bad_message(&dv_message_device_attribute, attribute, problems->arena),
                   "exactly one value must be specified");
}

static size_t count_values(const struct dv_api_device_attribute *attribute)
{
    return (size_t)(attribute->bool_ != NULL) + (size_t)(attribute->int_ != NULL) +
           (size_t)(attribute->string.p != NULL) + (size_t)(attribute->version.p != NULL) +
           attribute->n_ints + attribute->n_bools + attribute->n_strings + attribute->n_versions;
}

static void check_attributes(struct dv_problems *problems, const struct dv_field_path *device_path,
                             const struct dv_api_device *device)
{
    struct dv_field_path path = dv_path_name(device_path, "attributes");
    size_t n_values = 0;

    for (size_t i = 0; i < device->n_attributes; i++) {
        const struct dv_api_device_attribute_entry *entry = &device->attributes[i];
        struct dv_field_path item = key_path(&path, entry->key, problems->arena);

        dv_check_qualified_name(problems, &path, NULL, entry->key);
        check_attribute(problems, &item, &entry->value);
        n_values += count_values(&entry->value);
    }
    if (n_values > ATTRIBUTE_VALUES_MAX)
        dv_problem_add(
            problems, DV_PROBLEM_INVALID, device_path, NULL, dv_bad_i64((int64_t)n_values),
            "the total number of attribute values must not exceed %u", ATTRIBUTE_VALUES_MAX);
}

static void check_capacity(struct dv_problems *problems, const struct dv_field_path *device_path,
                           const struct dv_api_device *device)
{
    struct dv_field_path path = dv_path_name(device_path, "capacity");
    bool is_shared = device->allow_multiple_allocations && *device->allow_multiple_allocations;

    for (size_t i = 0; i < device->n_capacity; i++) {
        const struct dv_api_device_capacity_entry *entry = &device->capacity[i];
        struct dv_field_path item = key_path(&path, entry->key, problems->arena);
        struct dv_field_path policy = dv_path_name(&item, "requestPolicy");

        dv_check_qualified_name(problems, &path, NULL, entry->key);
        if (!entry->value.request_policy)
            continue;
        if (is_shared)
            dv_check_request_policy(problems, &policy, &entry->value.value,
                                    entry->value.request_policy);
        else
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &policy, NULL, dv_bad_none(),
                           "allowMultipleAllocations must be true");
    }
}

static bool has_same_taints(const struct dv_api_device *a, const struct dv_api_device *b)
{
    if (a->n_taints != b->n_taints)
        return false;
    for (size_t i = 0; i < a->n_taints; i++)
        if (!dv_message_eq(&dv_message_device_taint, &a->taints[i], &b->taints[i]))
            return false;
    return true;
}

static void check_taints(struct dv_problems *problems, const struct dv_field_path *device_path,
                         const struct dv_api_device *device, const struct dv_api_device *old)
{
    struct dv_field_path path = dv_path_name(device_path, "taints");

    if (old && has_same_taints(device, old))
        return;
    if (device->n_taints > TAINTS_MAX) {
        dv_too_many(problems, &path, NULL, device->n_taints, TAINTS_MAX);
        return;
    }
    for (size_t i = 0; i < device->n_taints; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_device_taint(problems, &item, &device->taints[i], NULL);
    }
}

void dv_check_counters(struct dv_problems *problems, const struct dv_field_path *up,
                       const struct dv_api_counter_entry *counters, size_t n)
{
    struct dv_field_path path = dv_path_name(up, "counters");

    if (n == 0) {
        dv_required(problems, &path, NULL);
        return;
    }
    if (n > COUNTERS_MAX) {
        dv_too_many(problems, &path, NULL, n, COUNTERS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dv_check_dns_label(problems, &path, NULL, counters[i].key);
}

static void check_consumptions(struct dv_problems *problems,
                               const struct dv_field_path *device_path,
                               const struct dv_api_device *device)
{
    struct dv_field_path path = dv_path_name(device_path, "consumesCounters");
    size_t n = device->n_consumes_counters;

    if (n > CONSUMPTIONS_MAX) {
        dv_too_many(problems, &path, NULL, n, CONSUMPTIONS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_device_counter_consumption *one = &device->consumes_counters[i];
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_required(problems, &item, "counterSet", one->counter_set, dv_check_dns_label);
        dv_check_counters(problems, &item, one->counters, one->n_counters);
    }
    if (n > 0)
        dv_check_unique(problems, &path, NULL, &device->consumes_counters[0].counter_set, n,
                        sizeof(device->consumes_counters[0]));
}

#define ONE_SELECTION                                                                              \
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "                   \
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"

static void check_own_nodes(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_device *device)
{
    struct dv_field_path selector = dv_path_name(path, "nodeSelector");
    bool has_name = device->node_name.n > 0;
    bool is_everywhere = device->all_nodes && *device->all_nodes;
    size_t n_set = (size_t)has_name + (size_t)is_everywhere + (device->node_selector != NULL);
    const struct dv_set_field set[] = {
        {"nodeName",     has_name                     },
        {"nodeSelector", device->node_selector != NULL},
        {"allNodes",     is_everywhere                },
    };

    if (has_name)
        dv_check_dns_subdomain(problems, path, "nodeName", device->node_name);
    else if (device->node_name.p)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "nodeName",
                       dv_bad_str(device->node_name), "must not be empty");
    if (device->node_selector)
        dv_check_node_selector(problems, &selector, device->node_selector);
    if (device->all_nodes && !is_everywhere)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "allNodes", dv_bad_bool(false),
                       "must be either unset or set to true");
    if (n_set == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(), ONE_SELECTION);
    if (n_set > 1)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_set(set, DV_COUNT(set), problems->arena), ONE_SELECTION);
}

static void check_nodes(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_device *device, bool has_own_nodes)
{
    if (has_own_nodes)
        check_own_nodes(problems, path, device);
    else if (device->node_name.p || device->node_selector || device->all_nodes)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_null(),
                       "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                       "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
}

static bool has_capacity(const struct dv_api_device *device, dv_str key)
{
    for (size_t i = 0; i < device->n_capacity; i++)
        if (dv_str_eq(device->capacity[i].key, key))
            return true;
    return false;
}

static void check_mapping(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_node_allocatable_resource_mapping *mapping,
                          const struct dv_api_device *device)
{
    if (!mapping->capacity_key.p && !mapping->allocation_multiplier)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(),
                       "at least one of `capacityKey` or `allocationMultiplier` is required");
    if (mapping->capacity_key.p && mapping->capacity_key.n == 0)
        dv_required(problems, path, "capacityKey");
    else if (mapping->capacity_key.p && !has_capacity(device, mapping->capacity_key))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "capacityKey",
                       dv_bad_str(mapping->capacity_key),
                       "must be a key of the capacity of the device");
    if (mapping->allocation_multiplier && dv_quantity_sign(mapping->allocation_multiplier) <= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "allocationMultiplier",
                       dv_bad_quantity(mapping->allocation_multiplier, problems->arena),
                       "must be greater than zero");
}

static void check_mappings(struct dv_problems *problems, const struct dv_field_path *device_path,
                           const struct dv_api_device *device)
{
    struct dv_field_path path = dv_path_name(device_path, "nodeAllocatableResourceMappings");

    for (size_t i = 0; i < device->n_node_allocatable_resource_mappings; i++) {
        const struct dv_api_node_allocatable_resource_mapping_entry *entry =
            &device->node_allocatable_resource_mappings[i];
        struct dv_field_path item = key_path(&path, entry->key, problems->arena);

        if (!dv_is_native_resource_name(entry->key))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL, dv_bad_str(entry->key),
                           "must be the name of a resource of the node, not an extended resource");
        check_mapping(problems, &item, &entry->value, device);
    }
}

void dv_check_device(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_device *device, const struct dv_api_device *old,
                     bool has_own_nodes)
{
    size_t n_properties = device->n_attributes + device->n_capacity;

    dv_check_dns_label(problems, path, "name", device->name);
    if (n_properties > PROPERTIES_MAX)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_i64((int64_t)n_properties),
                       "the total number of attributes and capacities must not exceed %u",
                       PROPERTIES_MAX);
    check_attributes(problems, path, device);
    check_capacity(problems, path, device);
    check_taints(problems, path, device, old);
    check_consumptions(problems, path, device);
    check_nodes(problems, path, device, has_own_nodes);
    dv_check_binding(problems, path, device->binding_conditions, device->n_binding_conditions,
                     device->binding_failure_conditions, device->n_binding_failure_conditions);
    check_mappings(problems, path, device);
}
