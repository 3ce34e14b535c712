/* validate_claim_status.c - what may be told about a claim: its allocation, its users, its devices.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/claim_checks.h"

#define RESULTS_MAX 32u
#define CONFIGS_MAX 64u
#define CONDITIONS_MAX 8u
#define DATA_BYTES_MAX 10240u
#define INTERFACE_BYTES_MAX 256u
#define HARDWARE_BYTES_MAX 128u
#define IPS_MAX 16u

static const struct dv_field_path status_path = {.kind = PATH_NAME, .name = "status"};

/* What tells one share of a device from all others. */
struct device_id {
    dv_str driver;
    dv_str pool;
    dv_str device;
    dv_str share_id;
};

/* The id as a text, with NUL between the parts: no valid part contains one, and others name no
 * device. */
static dv_str id_key(const struct device_id *id, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s%c%.*s%c%.*s%c%.*s", DV_FMT(id->driver), 0, DV_FMT(id->pool),
                         0, DV_FMT(id->device), 0, DV_FMT(id->share_id));
}

static struct dv_bad_value bad_id(const struct device_id *id, struct dv_arena *arena)
{
    const struct dv_bad_member members[] = {
        {"Driver",  id->driver  },
        {"Pool",    id->pool    },
        {"Device",  id->device  },
        {"ShareID", id->share_id},
    };

    return dv_bad_object(members, DV_COUNT(members), arena);
}

static void check_reference(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_resource_claim_consumer_reference *reference)
{
    if (reference->resource.n == 0)
        dv_required(problems, path, "resource");
    if (reference->name.n == 0)
        dv_required(problems, path, "name");
    if (reference->uid.n == 0)
        dv_required(problems, path, "uid");
}

static void check_reserved_for(struct dv_problems *problems,
                               const struct dv_api_resource_claim_status *status)
{
    struct dv_field_path path = dv_path_name(&status_path, "reservedFor");

    if (status->n_reserved_for > DV_CLAIM_RESERVED_MAX) {
        dv_too_many(problems, &path, NULL, status->n_reserved_for, DV_CLAIM_RESERVED_MAX);
        return;
    }
    for (size_t i = 0; i < status->n_reserved_for; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_reference(problems, &item, &status->reserved_for[i]);
    }
    if (status->n_reserved_for > 0)
        dv_check_unique(problems, &path, NULL, &status->reserved_for[0].uid, status->n_reserved_for,
                        sizeof(status->reserved_for[0]));
}

static bool is_reserved_for(const struct dv_api_resource_claim_status *status,
                            const struct dv_api_resource_claim_consumer_reference *reference)
{
    for (size_t i = 0; i < status->n_reserved_for; i++)
        if (dv_message_eq(&dv_message_resource_claim_consumer_reference, &status->reserved_for[i],
                          reference))
            return true;
    return false;
}

/* Users may leave a claim that is being deleted, but none may join it. */
static void check_joining(struct dv_problems *problems,
                          const struct dv_api_resource_claim_status *status,
                          const struct dv_api_resource_claim_status *old, bool is_deleted)
{
    if (status->n_reserved_for == 0)
        return;
    if (!status->allocation) {
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &status_path, "reservedFor", dv_bad_none(),
                       "may not be specified when `allocated` is not set");
        return;
    }
    if (status->n_reserved_for > DV_CLAIM_RESERVED_MAX)
        return; /* the problem was reported before */
    for (size_t i = 0; is_deleted && i < status->n_reserved_for; i++)
        if (!is_reserved_for(old, &status->reserved_for[i])) {
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &status_path, "reservedFor",
                           dv_bad_none(),
                           "new entries may not be added while `deallocationRequested` or "
                           "`deletionTimestamp` are set");
            return;
        }
}

/* -- Device status -------------------------------------------------------------------------- */

static void check_network(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_network_device_data *data)
{
    struct dv_field_path path = dv_path_name(up, "networkData");
    struct dv_field_path ips = dv_path_name(&path, "ips");

    if (data->interface_name.n > INTERFACE_BYTES_MAX)
        dv_too_long(problems, &path, "interfaceName", INTERFACE_BYTES_MAX);
    if (data->hardware_address.n > HARDWARE_BYTES_MAX)
        dv_too_long(problems, &path, "hardwareAddress", HARDWARE_BYTES_MAX);
    if (data->n_ips > IPS_MAX) {
        dv_too_many(problems, &ips, NULL, data->n_ips, IPS_MAX);
        return;
    }
    for (size_t i = 0; i < data->n_ips; i++) {
        struct dv_field_path item = dv_path_index(&ips, i);

        dv_check_interface_address(problems, &item, NULL, data->ips[i]);
    }
    dv_check_unique(problems, &ips, NULL, data->ips, data->n_ips, sizeof(data->ips[0]));
}

static void check_device(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_allocated_device_status *device,
                         const struct device_id *id, bool is_allocated)
{
    struct dv_field_path conditions = dv_path_name(path, "conditions");

    dv_check_driver_name(problems, path, "driver", device->driver);
    dv_check_pool_name(problems, path, "pool", device->pool);
    dv_check_dns_label(problems, path, "device", device->device);
    if (device->share_id.p)
        dv_check_uuid(problems, path, "shareID", device->share_id);
    if (!is_allocated)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, bad_id(id, problems->arena),
                       "must be an allocated device in the claim");
    if (device->n_conditions > CONDITIONS_MAX)
        dv_too_many(problems, &conditions, NULL, device->n_conditions, CONDITIONS_MAX);
    dv_check_conditions(problems, &conditions, device->conditions, device->n_conditions);
    if (device->data.n > 0)
        dv_check_raw_object(problems, path, "data", device->data, DATA_BYTES_MAX, false);
    if (device->network_data)
        check_network(problems, path, device->network_data);
}

static void check_devices(struct dv_problems *problems,
                          const struct dv_api_resource_claim_status *status)
{
    struct dv_field_path path = dv_path_name(&status_path, "devices");
    struct dv_arena *arena = problems->arena;
    struct dv_map allocated;
    struct dv_map seen;
    bool *is_repeated = DV_NEW_ARRAY(arena, bool, status->n_devices);
    struct device_id *ids = DV_NEW_ARRAY(arena, struct device_id, status->n_devices);

    dv_map_init(&allocated);
    dv_map_init(&seen);
    for (size_t i = 0; status->allocation && i < status->allocation->devices.n_results; i++) {
        struct dv_api_device_request_allocation_result *result =
            &status->allocation->devices.results[i];
        const struct device_id id = {result->driver, result->pool, result->device,
                                     result->share_id};

        (void)dv_map_set(&allocated, id_key(&id, arena), result);
    }
    for (size_t i = 0; i < status->n_devices; i++) {
        const struct dv_api_allocated_device_status *device = &status->devices[i];
        struct dv_field_path item = dv_path_index(&path, i);
        dv_str key;

        ids[i] = (struct device_id){device->driver, device->pool, device->device, device->share_id};
        key = id_key(&ids[i], arena);
        check_device(problems, &item, device, &ids[i], dv_map_get(&allocated, key) != NULL);
        is_repeated[i] = dv_map_set(&seen, key, &ids[i]) != NULL;
    }
    for (size_t i = 0; i < status->n_devices; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        if (is_repeated[i])
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL, bad_id(&ids[i], arena),
                           "%s", "");
    }
    dv_map_fini(&seen);
    dv_map_fini(&allocated);
}

/* -- Allocation ----------------------------------------------------------------------------- */

static void check_result(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_device_request_allocation_result *result,
                         const struct dv_api_device_claim *claim)
{
    dv_check_request_reference(problems, path, "request", result->request, claim);
    dv_check_driver_name(problems, path, "driver", result->driver);
    dv_check_pool_name(problems, path, "pool", result->pool);
    dv_check_dns_label(problems, path, "device", result->device);
    dv_check_binding(problems, path, result->binding_conditions, result->n_binding_conditions,
                     result->binding_failure_conditions, result->n_binding_failure_conditions);
    if (result->share_id.p)
        dv_check_uuid(problems, path, "shareID", result->share_id);
}

static void check_results(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_device_allocation_result *devices,
                          const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(up, "results");

    if (devices->n_results > RESULTS_MAX) {
        dv_too_many(problems, &path, NULL, devices->n_results, RESULTS_MAX);
        return;
    }
    for (size_t i = 0; i < devices->n_results; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_result(problems, &item, &devices->results[i], claim);
    }
}

static void check_config(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_device_allocation_configuration *config,
                         const struct dv_api_device_claim *claim)
{
    static const dv_str sources[] = {DV_STR_INIT("FromClaim"), DV_STR_INIT("FromClass")};

    if (config->source.n == 0)
        dv_required(problems, path, "source");
    else
        dv_check_one_of(problems, path, "source", config->source, sources, DV_COUNT(sources));
    dv_check_request_references(problems, path, config->requests, config->n_requests, claim);
    dv_check_configuration(problems, path, &config->device_configuration, false);
}

static void check_configs(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_device_allocation_result *devices,
                          const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(up, "config");

    if (devices->n_config > CONFIGS_MAX) {
        dv_too_many(problems, &path, NULL, devices->n_config, CONFIGS_MAX);
        return;
    }
    for (size_t i = 0; i < devices->n_config; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_config(problems, &item, &devices->config[i], claim);
    }
}

static void check_allocation(struct dv_problems *problems,
                             const struct dv_api_allocation_result *allocation,
                             const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(&status_path, "allocation");
    struct dv_field_path devices = dv_path_name(&path, "devices");
    struct dv_field_path selector = dv_path_name(&path, "nodeSelector");

    check_results(problems, &devices, &allocation->devices, claim);
    check_configs(problems, &devices, &allocation->devices, claim);
    if (allocation->node_selector)
        dv_check_node_selector(problems, &selector, allocation->node_selector);
}

void dv_check_claim_status(struct dv_problems *problems, const struct dv_api_resource_claim *claim,
                           const struct dv_api_resource_claim *old)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    check_reserved_for(problems, &claim->status);
    if (claim->status.n_devices > 0)
        check_devices(problems, &claim->status);
    check_joining(problems, &claim->status, &old->status,
                  claim->metadata.deletion_timestamp.is_set);
    if (!allocation)
        return;
    if (!old->status.allocation)
        check_allocation(problems, allocation, &claim->spec.devices);
    else if (!dv_message_eq(&dv_message_allocation_result, allocation, old->status.allocation))
        dv_immutable(problems, &status_path, "allocation",
                     dv_bad_message(&dv_message_allocation_result, allocation, problems->arena));
}
