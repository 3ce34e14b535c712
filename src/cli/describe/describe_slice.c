/* describe_slice.c - slices, and what else there is about devices: classes and taint rules. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"

static dv_str numbers_text(const struct dv_describe *d, const int64_t *values, size_t n)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(d->arena, "%.*s%s%" PRId64, DV_FMT(text), i ? ", " : "", values[i]);
    return text;
}

static dv_str flags_text(const struct dv_describe *d, const bool *values, size_t n)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        text = dv_str_printf(d->arena, "%.*s%s%s", DV_FMT(text), i ? ", " : "",
                             values[i] ? "true" : "false");
    return text;
}

static dv_str attribute_text(const struct dv_describe *d,
                             const struct dv_api_device_attribute *attribute)
{
    if (attribute->int_)
        return numbers_text(d, attribute->int_, 1);
    if (attribute->bool_)
        return flags_text(d, attribute->bool_, 1);
    if (attribute->string.p)
        return attribute->string;
    if (attribute->version.p)
        return attribute->version;
    if (attribute->n_ints > 0)
        return numbers_text(d, attribute->ints, attribute->n_ints);
    if (attribute->n_bools > 0)
        return flags_text(d, attribute->bools, attribute->n_bools);
    if (attribute->n_strings > 0)
        return dv_describe_join(d, attribute->strings, attribute->n_strings);
    return dv_describe_join(d, attribute->versions, attribute->n_versions);
}

static void add_row(struct dv_table *table, const struct dv_describe *d, dv_str device,
                    const char *what, dv_str name, dv_str value)
{
    dv_table_add(table, dv_cli_plain(device, d->arena));
    dv_table_add(table, what);
    dv_table_add(table, dv_cli_plain(name, d->arena));
    dv_table_add(table, dv_cli_plain(value, d->arena));
}

static void add_counters(struct dv_table *table, const struct dv_describe *d,
                         const struct dv_api_device *device)
{
    for (size_t i = 0; i < device->n_consumes_counters; i++) {
        const struct dv_api_device_counter_consumption *set = &device->consumes_counters[i];

        for (size_t k = 0; k < set->n_counters; k++)
            add_row(table, d, device->name, "counter",
                    dv_str_printf(d->arena, "%.*s/%.*s", DV_FMT(set->counter_set),
                                  DV_FMT(set->counters[k].key)),
                    dv_describe_quantity(d, &set->counters[k].value.value));
    }
}

/* Adds one row for each thing that is known of a device, so that columns stay narrow. */
static void add_device(struct dv_table *table, const struct dv_describe *d,
                       const struct dv_api_device *device)
{
    size_t n_before = table->n_cells;

    for (size_t i = 0; i < device->n_attributes; i++)
        add_row(table, d, device->name, "attribute", device->attributes[i].key,
                attribute_text(d, &device->attributes[i].value));
    for (size_t i = 0; i < device->n_capacity; i++)
        add_row(table, d, device->name, "capacity", device->capacity[i].key,
                dv_describe_quantity(d, &device->capacity[i].value.value));
    add_counters(table, d, device);
    if (device->node_name.n)
        add_row(table, d, device->name, "node", device->node_name, DV_STR_NONE);
    if (device->all_nodes && *device->all_nodes)
        add_row(table, d, device->name, "node", DV_STR("all nodes"), DV_STR_NONE);
    if (device->allow_multiple_allocations && *device->allow_multiple_allocations)
        add_row(table, d, device->name, "shared", DV_STR("by several claims"), DV_STR_NONE);
    for (size_t i = 0; i < device->n_taints; i++)
        add_row(table, d, device->name, "taint", device->taints[i].key,
                dv_str_printf(d->arena, "%.*s:%.*s", DV_FMT(device->taints[i].value),
                              DV_FMT(device->taints[i].effect)));
    if (table->n_cells == n_before)
        add_row(table, d, device->name, "", DV_STR_NONE, DV_STR_NONE);
}

static void describe_counters(const struct dv_describe *d,
                              const struct dv_api_resource_slice_spec *spec)
{
    if (spec->n_shared_counters > 0)
        dv_describe_line(d, 0, "Shared counters", "%s", "");
    for (size_t i = 0; i < spec->n_shared_counters; i++) {
        const struct dv_api_counter_set *set = &spec->shared_counters[i];

        dv_describe_line(d, 1, dv_str_to_c(set->name, d->arena), "%s", "");
        for (size_t k = 0; k < set->n_counters; k++)
            dv_describe_text(d, 2, dv_str_to_c(set->counters[k].key, d->arena),
                             dv_describe_quantity(d, &set->counters[k].value.value));
    }
}

void dv_describe_slice(const struct dv_describe *d, const struct dv_api_resource_slice *slice)
{
    static const char *const headers[] = {"Device", "What", "Name", "Value"};
    const struct dv_api_resource_slice_spec *spec = &slice->spec;
    struct dv_table table;

    dv_describe_text(d, 0, "Driver", spec->driver);
    dv_describe_line(d, 0, "Pool", "%.*s, generation %" PRId64 ", %" PRId64 " slice%s",
                     DV_FMT(spec->pool.name), spec->pool.generation,
                     spec->pool.resource_slice_count,
                     spec->pool.resource_slice_count == 1 ? "" : "s");
    dv_describe_text(d, 0, "Node", spec->node_name);
    if (spec->all_nodes && *spec->all_nodes)
        dv_describe_line(d, 0, "Node", "all nodes");
    if (spec->node_selector)
        dv_describe_text(d, 0, "Nodes", dv_describe_node_selector(d, spec->node_selector));
    if (spec->per_device_node_selection && *spec->per_device_node_selection)
        dv_describe_line(d, 0, "Node", "each device says its own");
    describe_counters(d, spec);
    dv_describe_line(d, 0, "Devices", "%zu", spec->n_devices);
    if (spec->n_devices == 0)
        return;
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < spec->n_devices; i++)
        add_device(&table, d, &spec->devices[i]);
    dv_describe_table(d, 1, &table);
}

void dv_describe_class(const struct dv_describe *d, const struct dv_api_device_class *class)
{
    const struct dv_api_device_class_spec *spec = &class->spec;

    dv_describe_text(d, 0, "Extended resource", spec->extended_resource_name);
    if (spec->n_selectors == 0)
        dv_describe_line(d, 0, "Selector", "<none>: all devices");
    dv_describe_selectors(d, 0, spec->selectors, spec->n_selectors);
    for (size_t i = 0; i < spec->n_config; i++) {
        dv_describe_line(d, 0, "Config", "%s", "");
        dv_describe_configs(d, 1, DV_STR_NONE, NULL, 0,
                            spec->config[i].device_configuration.opaque);
    }
}

void dv_describe_taint_rule(const struct dv_describe *d,
                            const struct dv_api_device_taint_rule *rule)
{
    const struct dv_api_device_taint_selector *selector = rule->spec.device_selector;
    const struct dv_api_device_taint *taint = &rule->spec.taint;
    struct dv_describe_condition *conditions =
        DV_NEW_ARRAY(d->arena, struct dv_describe_condition, rule->status.n_conditions);

    dv_describe_line(d, 0, "Taint", "%.*s",
                     DV_FMT(dv_describe_taint(d, taint->key, taint->value, taint->effect)));
    if (taint->time_added.is_set)
        dv_describe_line(d, 0, "Since", "%s", dv_describe_age(d, taint->time_added));
    if (!selector)
        dv_describe_line(d, 0, "Devices", "none are selected");
    if (selector) {
        dv_describe_line(d, 0, "Devices", "%s", "");
        dv_describe_line(d, 1, "Driver", "%.*s",
                         DV_FMT(selector->driver.n ? selector->driver : DV_STR("any")));
        dv_describe_line(d, 1, "Pool", "%.*s",
                         DV_FMT(selector->pool.n ? selector->pool : DV_STR("any")));
        dv_describe_line(d, 1, "Device", "%.*s",
                         DV_FMT(selector->device.n ? selector->device : DV_STR("any")));
    }
    for (size_t i = 0; i < rule->status.n_conditions; i++) {
        const struct dv_api_condition *from = &rule->status.conditions[i];

        conditions[i] = (struct dv_describe_condition){from->type, from->status, from->reason,
                                                       from->message, from->last_transition_time};
    }
    dv_describe_conditions(d, 0, conditions, rule->status.n_conditions);
}
