/* allocate.c - the devices of a container: chosen, asked for, recorded (9.1, 9.2). */
#include "device/state/device_message.h"
#include "device/state/device_operation.h"

/* Asks the plugin for what was chosen. False: the op waits, or has failed. */
static bool call_allocate(struct dv_device_op *op)
{
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(op->resource);

    if (!plugin && op->resource->is_stopped)
        return dv_device_op_fail_stopped(op, DV_DEVICE_FAIL_ENDPOINT_STOPPED, "");
    if (!plugin)
        return dv_device_op_fail(op, DV_DEVICE_FAIL_UNKNOWN_PLUGIN, "unknown Device Plugin %.*s",
                                 DV_FMT(op->resource->name));
    dv_device_op_call(op, DV_DEVICE_ASK_ALLOCATE, plugin, op->taken.v, op->taken.n);
    return false;
}

/* True: done with this limit. */
bool dv_device_allocate_limit(struct dv_device_op *op, const struct dv_device_limit *limit)
{
    if (!dv_device_op_is_for_plugins(op, limit))
        return true;
    dv_device_op_hold(op, dv_device_resource_find(op->state, limit->resource));
    if (!op->has_collected)
        (void)dv_device_collect(op->state); /* their number is of no interest */
    op->has_collected = true;
    if (limit->amount < 0)
        return dv_device_op_fail(op, DV_DEVICE_FAIL_BAD_REQUEST, "%.*s: a limit of %lld",
                                 DV_FMT(limit->resource), (long long)limit->amount);
    switch (dv_device_choose(op, limit)) {
    case DV_DEVICE_CHOSE_NOTHING:
        dv_device_op_release(op);
        return true;
    case DV_DEVICE_CHOSEN:
        return call_allocate(op);
    case DV_DEVICE_CHOICE_ASKS:
    case DV_DEVICE_CHOICE_FAILED:
        break;
    }
    return false;
}

/* A device without nodes is held on no node; one with several, on each. */
static void record_taken(struct dv_device_op *op, dv_str response)
{
    static const int64_t no_node = DV_DEVICE_NO_NODE;
    DV_VEC(struct dv_device_placement) placements = {0};

    for (size_t i = 0; i < op->taken.n; i++) {
        struct dv_device *device = op->taken.v[i];
        bool has_nodes = device->nodes && device->nodes->n > 0;
        const int64_t *nodes = has_nodes ? device->nodes->v : &no_node;

        for (size_t k = 0; k < (has_nodes ? device->nodes->n : 1); k++)
            *dv_vec_add(&placements) =
                (struct dv_device_placement){.node = nodes[k], .device = device};
    }
    (void)dv_device_held_add(op->pod, op->request.container, op->resource, placements.v,
                             placements.n, response);
    dv_vec_fini(&placements);
}

/* Init containers lend all they hold; others keep theirs. */
void dv_device_hand_on(struct dv_device_op *op)
{
    struct dv_link *link;

    DV_LIST_EACH (&op->pod->held, link) {
        struct dv_device_held *held = DV_CONTAINER(link, struct dv_device_held, in_pod);

        if (!dv_str_eq(held->container, op->request.container))
            continue;
        held->is_lending = op->request.kind == DV_DEVICE_INIT;
        for (size_t i = 0; i < held->n_holdings; i++) {
            struct dv_device *device = held->holdings[i].device;

            if (op->request.kind == DV_DEVICE_INIT)
                dv_device_lend(op->pod, device);
            else if (device->lender == op->pod)
                dv_device_unlend(device);
        }
    }
}

/* -- The plugin's answers ------------------------------------------------------------------- */

#define PREFERRED_FAILED "device plugin GetPreferredAllocation rpc failed with err: "

/* A bad message fails the call, as it does in gRPC itself. */
static void fail_unread(struct dv_device_op *op, enum dv_device_failure failure, const char *before,
                        struct dv_err *err)
{
    err->code = DV_INTERNAL;
    (void)dv_wrap(err, "grpc: failed to unmarshal the received message");
    (void)dv_device_op_fail_status(op, failure, before, err);
}

void dv_device_preferred_answered(struct dv_device_op *op, dv_str response)
{
    const dv_str *ids = NULL;
    size_t n_ids = 0;
    struct dv_err err;

    if (!dv_device_preferred_decode(response, op->scratch, &ids, &n_ids, &err))
        fail_unread(op, DV_DEVICE_FAIL_PLUGIN_PREFERRED, PREFERRED_FAILED, &err);
    else if (dv_device_choose_preferred(op, ids, n_ids) == DV_DEVICE_CHOSEN)
        (void)call_allocate(op); /* its step says how it went */
}

void dv_device_preferred_refused(struct dv_device_op *op, const struct dv_err *status)
{
    (void)dv_device_op_fail_status(op, DV_DEVICE_FAIL_PLUGIN_PREFERRED, PREFERRED_FAILED, status);
}

void dv_device_allocate_answered(struct dv_device_op *op, dv_str response)
{
    struct dv_err err;
    bool has_one;
    dv_str first;

    if (!dv_device_first_response(response, &first, &has_one, &err) ||
        (has_one && !dv_device_response_check(first, &err))) {
        fail_unread(op, DV_DEVICE_FAIL_PLUGIN_ALLOCATE, "", &err);
    } else if (!has_one) {
        (void)dv_device_op_fail(op, DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE,
                                "no containers return in allocation response ");
    } else {
        record_taken(op, first);
        dv_device_op_release_taken(op, false); /* held from here on */
        dv_device_op_release(op);
        op->at++;
        dv_device_op_go_on(op);
    }
}

void dv_device_allocate_refused(struct dv_device_op *op, const struct dv_err *status)
{
    (void)dv_device_op_fail_status(op, DV_DEVICE_FAIL_PLUGIN_ALLOCATE, "", status);
}
