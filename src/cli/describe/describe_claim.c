/* describe_claim.c - describes claims and templates, in kubectl's layout. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/describe/describe.h"
#include "resource/resource.h"

static void describe_tolerations(const struct dv_describe *d, unsigned level,
                                 const struct dv_api_device_toleration *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_any = dv_str_eq(list[i].operator, DV_STR("Exists"));

        dv_describe_line(d, level, "Toleration", "%.*s%s%.*s%s%.*s",
                         DV_FMT(list[i].key.n ? list[i].key : DV_STR("any taint")),
                         is_any ? "" : "=", DV_FMT(is_any ? DV_STR("") : list[i].value),
                         list[i].effect.n ? ":" : "", DV_FMT(list[i].effect));
    }
}

static void describe_exact(const struct dv_describe *d, unsigned level,
                           const struct dv_api_exact_device_request *exactly)
{
    bool is_all = dv_str_eq(exactly->allocation_mode, DV_STR("All"));

    dv_describe_text(d, level, "Class", exactly->device_class_name);
    if (is_all)
        dv_describe_line(d, level, "Devices", "all that match");
    else
        dv_describe_line(d, level, "Devices", "%" PRId64, exactly->count ? exactly->count : 1);
    if (exactly->admin_access && *exactly->admin_access)
        dv_describe_line(d, level, "Admin access", "true");
    dv_describe_selectors(d, level, exactly->selectors, exactly->n_selectors);
    describe_tolerations(d, level, exactly->tolerations, exactly->n_tolerations);
    if (exactly->capacity)
        dv_describe_quantities(d, level, "Capacity", exactly->capacity->requests,
                               exactly->capacity->n_requests);
}

static void describe_request(const struct dv_describe *d, unsigned level,
                             const struct dv_api_device_request *request)
{
    const struct dv_api_exact_device_request *exactly = request->exactly;

    dv_describe_line(d, level, dv_str_to_c(request->name, d->arena), "%s",
                     request->n_first_available > 0 ? "the first of these that is available" : "");
    if (exactly)
        describe_exact(d, level + 1, exactly);
    for (size_t i = 0; i < request->n_first_available; i++) {
        const struct dv_api_device_sub_request *sub = &request->first_available[i];
        const struct dv_api_exact_device_request alternative = dv_alternative_as_request(sub);

        dv_describe_line(d, level + 1, dv_str_to_c(sub->name, d->arena), "%s", "");
        describe_exact(d, level + 2, &alternative);
    }
}

static void describe_spec(const struct dv_describe *d,
                          const struct dv_api_resource_claim_spec *spec)
{
    const struct dv_api_device_claim *devices = &spec->devices;

    dv_describe_line(d, 0, "Requests", "%s", devices->n_requests ? "" : "<none>");
    for (size_t i = 0; i < devices->n_requests; i++)
        describe_request(d, 1, &devices->requests[i]);
    if (devices->n_constraints > 0)
        dv_describe_line(d, 0, "Constraints", "%s", "");
    for (size_t i = 0; i < devices->n_constraints; i++) {
        const struct dv_api_device_constraint *constraint = &devices->constraints[i];
        dv_str requests = dv_describe_join(d, constraint->requests, constraint->n_requests);

        dv_describe_line(d, 1, constraint->match_attribute.n ? "Same" : "Distinct", "%.*s of %.*s",
                         DV_FMT(constraint->match_attribute.n ? constraint->match_attribute
                                                              : constraint->distinct_attribute),
                         DV_FMT(requests.n ? requests : DV_STR("all requests")));
    }
    if (devices->n_config > 0)
        dv_describe_line(d, 0, "Config", "%s", "");
    for (size_t i = 0; i < devices->n_config; i++)
        dv_describe_configs(d, 1, DV_STR_NONE, devices->config[i].requests,
                            devices->config[i].n_requests,
                            devices->config[i].device_configuration.opaque);
}

static dv_str consumed(const struct dv_describe *d,
                       const struct dv_api_device_request_allocation_result *result)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < result->n_consumed_capacity; i++)
        text = dv_str_printf(d->arena, "%.*s%s%.*s=%.*s", DV_FMT(text), i ? ", " : "",
                             DV_FMT(result->consumed_capacity[i].key),
                             DV_FMT(dv_describe_quantity(d, &result->consumed_capacity[i].value)));
    return text;
}

static void describe_allocation(const struct dv_describe *d,
                                const struct dv_api_allocation_result *allocation)
{
    static const char *const headers[] = {"Request", "Driver", "Pool", "Device", "Consumes"};
    const struct dv_api_device_allocation_result *devices = &allocation->devices;
    struct dv_table table;

    dv_describe_line(d, 0, "Allocation", "%s", "");
    if (allocation->node_selector)
        dv_describe_text(d, 1, "Nodes", dv_describe_node_selector(d, allocation->node_selector));
    if (allocation->allocation_timestamp.is_set)
        dv_describe_line(d, 1, "Since", "%s", dv_describe_age(d, allocation->allocation_timestamp));
    dv_table_init(&table, d->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < devices->n_results; i++) {
        const struct dv_api_device_request_allocation_result *result = &devices->results[i];
        bool is_admin = result->admin_access && *result->admin_access;

        dv_table_add(&table, dv_cli_plain(result->request, d->arena));
        dv_table_add(&table, dv_cli_plain(result->driver, d->arena));
        dv_table_add(&table, dv_cli_plain(result->pool, d->arena));
        dv_table_add(
            &table,
            dv_str_to_c(dv_str_printf(d->arena, "%.*s%s%.*s%s", DV_FMT(result->device),
                                      result->share_id.n ? " share " : "", DV_FMT(result->share_id),
                                      is_admin ? " (admin access)" : ""),
                        d->arena));
        dv_table_add(&table, dv_cli_plain(consumed(d, result), d->arena));
    }
    if (devices->n_results > 0)
        dv_describe_table(d, 1, &table);
    for (size_t i = 0; i < devices->n_config; i++) {
        dv_describe_line(d, 1, "Config", "%s", "");
        dv_describe_configs(d, 2, devices->config[i].source, devices->config[i].requests,
                            devices->config[i].n_requests,
                            devices->config[i].device_configuration.opaque);
    }
}

/* Describes what a driver says of a device that it has given out. */
static void describe_device(const struct dv_describe *d,
                            const struct dv_api_allocated_device_status *device)
{
    const struct dv_api_network_device_data *network = device->network_data;
    struct dv_describe_condition *conditions =
        DV_NEW_ARRAY(d->arena, struct dv_describe_condition, device->n_conditions);

    dv_describe_line(d, 1,
                     dv_str_to_c(dv_str_printf(d->arena, "%.*s/%.*s/%.*s", DV_FMT(device->driver),
                                               DV_FMT(device->pool), DV_FMT(device->device)),
                                 d->arena),
                     "%s", "");
    dv_describe_text(d, 2, "Share", device->share_id);
    if (network) {
        dv_describe_text(d, 2, "Interface", network->interface_name);
        dv_describe_text(d, 2, "Addresses", dv_describe_join(d, network->ips, network->n_ips));
        dv_describe_text(d, 2, "Hardware address", network->hardware_address);
    }
    dv_describe_text(d, 2, "Data", device->data);
    for (size_t i = 0; i < device->n_conditions; i++) {
        const struct dv_api_condition *from = &device->conditions[i];

        conditions[i] = (struct dv_describe_condition){from->type, from->status, from->reason,
                                                       from->message, from->last_transition_time};
    }
    dv_describe_conditions(d, 2, conditions, device->n_conditions);
}

static const char *state_text(const struct dv_api_resource_claim *claim)
{
    bool is_going = claim->metadata.deletion_timestamp.is_set;

    if (!claim->status.allocation)
        return is_going ? "pending, being deleted" : "pending";
    if (claim->status.n_reserved_for > 0)
        return is_going ? "allocated, reserved, being deleted" : "allocated, reserved";
    return is_going ? "allocated, being deleted" : "allocated";
}

void dv_describe_claim(const struct dv_describe *d, const struct dv_api_resource_claim *claim)
{
    const struct dv_api_resource_claim_status *status = &claim->status;

    dv_describe_line(d, 0, "State", "%s", state_text(claim));
    describe_spec(d, &claim->spec);
    if (status->allocation)
        describe_allocation(d, status->allocation);
    if (status->n_reserved_for > 0)
        dv_describe_line(d, 0, "Reserved for", "%s", "");
    for (size_t i = 0; i < status->n_reserved_for; i++)
        dv_describe_line(d, 1, dv_str_to_c(status->reserved_for[i].resource, d->arena),
                         "%.*s, uid %.*s", DV_FMT(status->reserved_for[i].name),
                         DV_FMT(status->reserved_for[i].uid));
    if (status->n_devices > 0)
        dv_describe_line(d, 0, "Devices", "%s", "");
    for (size_t i = 0; i < status->n_devices; i++)
        describe_device(d, &status->devices[i]);
}

void dv_describe_template(const struct dv_describe *d,
                          const struct dv_api_resource_claim_template *template)
{
    const struct dv_api_object_meta *meta = &template->spec.metadata;

    if (meta->n_labels > 0)
        dv_describe_entries(d, 0, "Claim labels", meta->labels, meta->n_labels);
    if (meta->n_annotations > 0)
        dv_describe_entries(d, 0, "Claim annotations", meta->annotations, meta->n_annotations);
    describe_spec(d, &template->spec.spec);
}
