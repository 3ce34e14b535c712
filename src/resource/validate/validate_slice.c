/* validate_slice.c - what drivers publish. */
#include "resource/validate/validate_kinds.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/device_checks.h"

#define DEVICES_MAX 128u
#define RICH_DEVICES_MAX 64u /* when one of them has what takes more room */
#define COUNTER_SETS_MAX 8u

#define ONE_SELECTION                                                                              \
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

static void check_pool(struct dv_problems *problems, const struct dv_api_resource_pool *pool)
{
    struct dv_field_path path = dv_path_name(&spec_path, "pool");

    dv_check_pool_name(problems, &path, "name", pool->name);
    if (pool->resource_slice_count <= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "resourceSliceCount",
                       dv_bad_i64(pool->resource_slice_count), "must be greater than zero");
    if (pool->generation < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "generation",
                       dv_bad_i64(pool->generation), "must be greater than or equal to zero");
}

static void check_fixed(struct dv_problems *problems, const struct dv_api_resource_slice_spec *spec,
                        const struct dv_api_resource_slice_spec *old)
{
    struct dv_field_path pool = dv_path_name(&spec_path, "pool");
    bool has_name = spec->node_name.p != NULL;

    if (!dv_str_eq(spec->pool.name, old->pool.name))
        dv_immutable(problems, &pool, "name", dv_bad_str(spec->pool.name));
    if (!dv_str_eq(spec->driver, old->driver))
        dv_immutable(problems, &spec_path, "driver", dv_bad_str(spec->driver));
    if (has_name != (old->node_name.p != NULL) ||
        (has_name && !dv_str_eq(spec->node_name, old->node_name)))
        dv_immutable(problems, &spec_path, "nodeName",
                     has_name ? dv_bad_str(spec->node_name) : dv_bad_null());
}

static void check_flag(struct dv_problems *problems, const char *name, const bool *flag)
{
    if (flag && !*flag)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, name, dv_bad_bool(false),
                       "must be either unset or set to true");
}

static void check_selector(struct dv_problems *problems,
                           const struct dv_api_node_selector *selector)
{
    struct dv_field_path path = dv_path_name(&spec_path, "nodeSelector");

    dv_check_node_selector(problems, &path, selector);
    if (selector->n_node_selector_terms != 1)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "nodeSelectorTerms",
                       dv_bad_messages(&dv_message_node_selector_term,
                                       selector->node_selector_terms,
                                       selector->n_node_selector_terms, problems->arena),
                       "must have exactly one node selector term");
}

static void check_selection(struct dv_problems *problems,
                            const struct dv_api_resource_slice_spec *spec)
{
    const struct dv_set_field set[] = {
        {"nodeName",               spec->node_name.n > 0                    },
        {"nodeSelector",           spec->node_selector != NULL              },
        {"allNodes",               spec->all_nodes && *spec->all_nodes      },
        {"perDeviceNodeSelection",
         spec->per_device_node_selection && *spec->per_device_node_selection},
    };
    size_t n_set = 0;

    for (size_t i = 0; i < DV_COUNT(set); i++)
        n_set += set[i].is_set;
    if (spec->node_name.n > 0)
        dv_check_dns_subdomain(problems, &spec_path, "nodeName", spec->node_name);
    else if (spec->node_name.p)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "nodeName",
                       dv_bad_str(spec->node_name),
                       "must be either unset or set to a non-empty string");
    if (spec->node_selector)
        check_selector(problems, spec->node_selector);
    check_flag(problems, "allNodes", spec->all_nodes);
    check_flag(problems, "perDeviceNodeSelection", spec->per_device_node_selection);
    if (n_set == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &spec_path, NULL, dv_bad_none(),
                       ONE_SELECTION);
    if (n_set > 1)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, NULL,
                       dv_bad_set(set, DV_COUNT(set), problems->arena),
                       ONE_SELECTION ", but multiple fields are set");
}

static bool has_list_attribute(const struct dv_api_device *device)
{
    for (size_t i = 0; i < device->n_attributes; i++) {
        const struct dv_api_device_attribute *attribute = &device->attributes[i].value;

        if (attribute->ints || attribute->bools || attribute->strings || attribute->versions)
            return true;
    }
    return false;
}

static size_t devices_max(const struct dv_api_resource_slice_spec *spec)
{
    assert(spec->devices || spec->n_devices == 0);
    for (size_t i = 0; i < spec->n_devices; i++)
        if (spec->devices[i].n_taints > 0 || spec->devices[i].n_consumes_counters > 0 ||
            has_list_attribute(&spec->devices[i]))
            return RICH_DEVICES_MAX;
    return DEVICES_MAX;
}

static void check_devices(struct dv_problems *problems,
                          const struct dv_api_resource_slice_spec *spec,
                          const struct dv_api_resource_slice_spec *old)
{
    struct dv_field_path path = dv_path_name(&spec_path, "devices");
    bool has_own_nodes = spec->per_device_node_selection && *spec->per_device_node_selection;
    size_t max = devices_max(spec);
    struct dv_map stored;

    if (spec->n_devices > max) {
        dv_too_many(problems, &path, NULL, spec->n_devices, max);
        return;
    }
    dv_map_init(&stored);
    /* from the end, so that of two with one name the first counts */
    for (size_t i = old ? old->n_devices : 0; i > 0; i--)
        (void)dv_map_set(&stored, old->devices[i - 1].name, &old->devices[i - 1]);
    for (size_t i = 0; i < spec->n_devices; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_device(problems, &item, &spec->devices[i],
                        old ? dv_map_get(&stored, spec->devices[i].name) : NULL, has_own_nodes);
    }
    dv_map_fini(&stored);
    if (spec->n_devices > 0)
        dv_check_unique(problems, &path, NULL, &spec->devices[0].name, spec->n_devices,
                        sizeof(spec->devices[0]));
}

static void check_counter_sets(struct dv_problems *problems,
                               const struct dv_api_resource_slice_spec *spec)
{
    struct dv_field_path path = dv_path_name(&spec_path, "sharedCounters");
    size_t n = spec->n_shared_counters;

    assert(spec->shared_counters || n == 0);
    if (n > COUNTER_SETS_MAX) {
        dv_too_many(problems, &path, NULL, n, COUNTER_SETS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_counter_set *set = &spec->shared_counters[i];
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_required(problems, &item, "name", set->name, dv_check_dns_label);
        dv_check_counters(problems, &item, set->counters, set->n_counters);
    }
    if (n > 0)
        dv_check_unique(problems, &path, NULL, &spec->shared_counters[0].name, n,
                        sizeof(spec->shared_counters[0]));
}

void dv_validate_slice(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_resource_slice *slice = what->value;
    const struct dv_api_resource_slice *old = what->old;

    if (old)
        dv_check_kind_meta_update(problems, &slice->metadata, &old->metadata);
    else
        dv_check_meta(problems, &slice->metadata, &rules);
    dv_check_driver_name(problems, &spec_path, "driver", slice->spec.driver);
    check_pool(problems, &slice->spec.pool);
    if (old)
        check_fixed(problems, &slice->spec, &old->spec);
    check_selection(problems, &slice->spec);
    if (slice->spec.shared_counters && slice->spec.devices)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, NULL, dv_bad_str(DV_STR("")),
                       "only one of `sharedCounters` or `devices` is allowed");
    check_devices(problems, &slice->spec, old ? &old->spec : NULL);
    check_counter_sets(problems, &slice->spec);
}
