/* describe_node.c - a node, for davit describe. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"

/* Both amounts of a resource stand beside each other: the difference is what is kept back. */
static void describe_amounts(const struct dv_describe *d, const struct dv_api_node_status *status)
{
    static const char *const headers[] = {"Resource", "Capacity", "Allocatable"};
    struct dv_table table;

    if (status->n_capacity == 0)
        return;
    dv_describe_line(d, 0, "Resources", "%s", "");
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < status->n_capacity; i++) {
        const struct dv_quantity_entry *entry = &status->capacity[i];
        dv_str allocatable = DV_STR("");

        for (size_t k = 0; k < status->n_allocatable; k++)
            if (dv_str_eq(status->allocatable[k].key, entry->key))
                allocatable = dv_describe_quantity(d, &status->allocatable[k].value);
        dv_table_add(&table, dv_str_to_c(entry->key, d->arena));
        dv_table_add(&table, dv_str_to_c(dv_describe_quantity(d, &entry->value), d->arena));
        dv_table_add(&table, dv_str_to_c(allocatable, d->arena));
    }
    dv_describe_table(d, 1, &table);
}

static void describe_conditions(const struct dv_describe *d,
                                const struct dv_api_node_status *status)
{
    struct dv_describe_condition *conditions =
        DV_NEW_ARRAY(d->arena, struct dv_describe_condition, status->n_conditions);

    for (size_t i = 0; i < status->n_conditions; i++) {
        const struct dv_api_node_condition *from = &status->conditions[i];

        conditions[i] = (struct dv_describe_condition){from->type, from->status, from->reason,
                                                       from->message, from->last_transition_time};
    }
    dv_describe_conditions(d, 0, conditions, status->n_conditions);
}

void dv_describe_node(const struct dv_describe *d, const struct dv_api_node *node)
{
    const struct dv_api_node_system_info *info = &node->status.node_info;
    dv_str taints = DV_STR("<none>");

    for (size_t i = 0; i < node->spec.n_taints; i++) {
        const struct dv_api_taint *taint = &node->spec.taints[i];

        taints = dv_str_printf(
            d->arena, "%.*s%s%.*s", i ? dv_str_fmt_len(taints) : 0, taints.p, i ? "\n" : "",
            DV_FMT(dv_describe_taint(d, taint->key, taint->value, taint->effect)));
    }
    dv_describe_line(d, 0, "Taints", "%.*s", DV_FMT(taints));
    dv_describe_line(d, 0, "Unschedulable", "%s", node->spec.unschedulable ? "true" : "false");
    for (size_t i = 0; i < node->status.n_addresses; i++)
        dv_describe_text(d, 0, dv_str_to_c(node->status.addresses[i].type, d->arena),
                         node->status.addresses[i].address);
    dv_describe_text(d, 0, "Kernel", info->kernel_version);
    dv_describe_text(d, 0, "OS image", info->os_image);
    dv_describe_text(d, 0, "Architecture", info->architecture);
    dv_describe_text(d, 0, "Agent", info->kubelet_version);
    dv_describe_text(d, 0, "Runtime", info->container_runtime_version);
    describe_amounts(d, &node->status);
    describe_conditions(d, &node->status);
}
