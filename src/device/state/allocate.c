/* allocate.c - the devices of a container: chosen, asked for, recorded. */
#include "base/err.h"
#include "device/state/device_message.h"
#include "device/state/device_operation.h"

/* Asks the plugin for the devices that were chosen. False: the operation waits, or has failed. */
static bool call_allocate(struct dv_device_operation *operation)
{
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(operation->resource);

    if (!plugin && operation->resource->is_stopped)
        return dv_device_operation_fail_stopped(operation, DV_DEVICE_FAIL_ENDPOINT_STOPPED, "");
    if (!plugin)
        return dv_device_operation_fail(operation, DV_DEVICE_FAIL_UNKNOWN_PLUGIN,
                                        "unknown Device Plugin %.*s",
                                        DV_FMT(operation->resource->name));
    dv_device_operation_call(operation, DV_DEVICE_ASK_ALLOCATE, plugin, operation->taken.v,
                             operation->taken.n);
    return false;
}

/* Handles one limit. True: it is done with. */
bool dv_device_allocate_limit(struct dv_device_operation *operation,
                              const struct dv_device_limit *limit)
{
    if (!dv_device_operation_is_for_plugins(operation, limit))
        return true;
    dv_device_operation_use_resource(operation,
                                     dv_device_resource_find(operation->state, limit->resource));
    if (!operation->has_collected)
        /* the number of pods that it collected is not needed */
        (void)dv_device_collect(operation->state);
    operation->has_collected = true;
    if (limit->amount < 0)
        return dv_device_operation_fail(operation, DV_DEVICE_FAIL_BAD_REQUEST,
                                        "%.*s: a limit of %lld", DV_FMT(limit->resource),
                                        (long long)limit->amount);
    switch (dv_device_choose(operation, limit)) {
    case DV_DEVICE_CHOSE_NOTHING:
        dv_device_operation_leave_resource(operation);
        return true;
    case DV_DEVICE_CHOSEN:
        return call_allocate(operation);
    case DV_DEVICE_CHOICE_ASKS:
    case DV_DEVICE_CHOICE_FAILED:
        break;
    }
    return false;
}

/* Records the devices that were taken. One without nodes is held on no node; one with several, on
 * each. */
static void record_taken(struct dv_device_operation *operation, dv_str response)
{
    static const int64_t no_node = DV_DEVICE_NO_NODE;
    DV_VEC(struct dv_device_placement) placements = {0};

    for (size_t i = 0; i < operation->taken.n; i++) {
        struct dv_device *device = operation->taken.v[i];
        bool has_nodes = device->nodes && device->nodes->n > 0;
        const int64_t *nodes = has_nodes ? device->nodes->v : &no_node;

        for (size_t k = 0; k < (has_nodes ? device->nodes->n : 1); k++)
            *dv_vec_add(&placements) =
                (struct dv_device_placement){.node = nodes[k], .device = device};
    }
    (void)dv_device_held_add(operation->pod, operation->request.container, operation->resource,
                             placements.v, placements.n, response);
    dv_vec_fini(&placements);
}

/* An init container lends all that it holds to later containers; others keep theirs. */
void dv_device_hand_on(struct dv_device_operation *operation)
{
    struct dv_link *link;

    DV_LIST_EACH (&operation->pod->held, link) {
        struct dv_device_held *held = DV_CONTAINER(link, struct dv_device_held, in_pod);

        if (!dv_str_eq(held->container, operation->request.container))
            continue;
        held->is_lending = operation->request.kind == DV_DEVICE_INIT;
        for (size_t i = 0; i < held->n_holdings; i++) {
            struct dv_device *device = held->holdings[i].device;

            if (operation->request.kind == DV_DEVICE_INIT)
                dv_device_lend(operation->pod, device);
            else if (device->lender == operation->pod)
                dv_device_unlend(device);
        }
    }
}

/* -- The plugin's answers ------------------------------------------------------------------- */

#define PREFERRED_FAILED "device plugin GetPreferredAllocation rpc failed with err: "

/* A response that cannot be decoded fails the call, as it does in gRPC itself. */
static void fail_unread(struct dv_device_operation *operation, enum dv_device_failure failure,
                        const char *before, struct dv_err *err)
{
    err->code = DV_INTERNAL;
    (void)dv_wrap(err, "grpc: failed to unmarshal the received message");
    (void)dv_device_operation_fail_status(operation, failure, before, err);
}

void dv_device_preferred_answered(struct dv_device_operation *operation, dv_str response)
{
    const dv_str *ids = NULL;
    size_t n_ids = 0;
    struct dv_err err;

    if (!dv_device_preferred_decode(response, operation->scratch, &ids, &n_ids, &err))
        fail_unread(operation, DV_DEVICE_FAIL_PLUGIN_PREFERRED, PREFERRED_FAILED, &err);
    else if (dv_device_choose_preferred(operation, ids, n_ids) == DV_DEVICE_CHOSEN)
        (void)call_allocate(operation); /* its step tells how it went */
}

void dv_device_preferred_refused(struct dv_device_operation *operation, const struct dv_err *status)
{
    (void)dv_device_operation_fail_status(operation, DV_DEVICE_FAIL_PLUGIN_PREFERRED,
                                          PREFERRED_FAILED, status);
}

void dv_device_allocate_answered(struct dv_device_operation *operation, dv_str response)
{
    struct dv_err err;
    bool has_one;
    dv_str first;

    if (!dv_device_first_response(response, &first, &has_one, &err) ||
        (has_one && !dv_device_response_check(first, &err))) {
        fail_unread(operation, DV_DEVICE_FAIL_PLUGIN_ALLOCATE, "", &err);
    } else if (!has_one) {
        (void)dv_device_operation_fail(operation, DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE,
                                       "no containers return in allocation response ");
    } else {
        record_taken(operation, first);
        /* the record holds them from here on */
        dv_device_operation_release_taken(operation, false);
        dv_device_operation_leave_resource(operation);
        operation->at++;
        dv_device_operation_go_on(operation);
    }
}

void dv_device_allocate_refused(struct dv_device_operation *operation, const struct dv_err *status)
{
    (void)dv_device_operation_fail_status(operation, DV_DEVICE_FAIL_PLUGIN_ALLOCATE, "", status);
}
