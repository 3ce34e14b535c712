/* device_operation.c - allocation and start of a container, step by step (9.1, 9.2, 9.5).
 *
 *     start:     for each limit: PreStartContainer
 *                    |  a device is not recorded, and the pod is active
 *                    v
 *     allocate:  for each limit: choose --> Allocate --> record
 *                                  |  ^
 *                                  v  |
 *                        GetPreferredAllocation
 */
#include "device/state/device_operation.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

/* What becomes of what was taken: in the reference. Otherwise it is given back always. */
enum aftermath {
    STAYS_TAKEN,
    FREES_ALL, /* what earlier failures left, too */
};

static const struct {
    const char *name;
    enum dv_code code;
    enum aftermath aftermath;
} failures[] = {
    [DV_DEVICE_FAIL_UNAVAILABLE] = {"unavailable",            DV_RESOURCE_EXHAUSTED,  STAYS_TAKEN},
    [DV_DEVICE_FAIL_UNREGISTERED] = {"unregistered",           DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_NO_HEALTHY_DEVICES] = {"no-healthy-devices",     DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY] = {"allocated-unhealthy",    DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_CHANGED_REQUEST] = {"changed-request",        DV_FAILED_PRECONDITION, STAYS_TAKEN},
    [DV_DEVICE_FAIL_ENDPOINT_STOPPED] = {"endpoint-stopped",       DV_UNAVAILABLE,         FREES_ALL  },
    [DV_DEVICE_FAIL_PLUGIN_ALLOCATE] = {"plugin-allocate-error",  DV_UNKNOWN,             FREES_ALL  },
    [DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE] = {"plugin-empty-response",  DV_INTERNAL,            STAYS_TAKEN},
    [DV_DEVICE_FAIL_PLUGIN_PREFERRED] = {"plugin-preferred-error", DV_UNKNOWN,             STAYS_TAKEN},
    [DV_DEVICE_FAIL_PLUGIN_PRESTART] = {"plugin-prestart-error",  DV_UNKNOWN,             STAYS_TAKEN},
    [DV_DEVICE_FAIL_NO_ENDPOINT] = {"no-endpoint",            DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_NOTHING_ALLOCATED] = {"nothing-allocated",      DV_FAILED_PRECONDITION, STAYS_TAKEN},
    [DV_DEVICE_FAIL_ALLOCATED_LESS] = {"allocated-less",         DV_INTERNAL,            STAYS_TAKEN},
    [DV_DEVICE_FAIL_UNKNOWN_PLUGIN] = {"unknown-plugin",         DV_UNAVAILABLE,         FREES_ALL  },
    [DV_DEVICE_FAIL_BAD_REQUEST] = {"bad-request",            DV_INVALID_ARGUMENT,    STAYS_TAKEN},
};

/* As Go prints them in the text of an error. */
static const char *const status_names[] = {
    "OK",       "Canceled",        "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",   "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",      "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated",
};

const char *dv_device_failure_name(enum dv_device_failure failure)
{
    return (size_t)failure < DV_COUNT(failures) ? failures[failure].name : "failure";
}

/* -- What an op holds on to ----------------------------------------------------------------- */

void dv_device_op_release_taken(struct dv_device_op *op, bool stays_taken)
{
    for (size_t i = 0; i < op->taken.n; i++) {
        struct dv_device *device = op->taken.v[i];

        device->n_reserved--;
        if (stays_taken && !dv_link_is_in(&device->in_leaked))
            dv_list_push(&op->state->leaked, &device->in_leaked);
        dv_device_refresh(device);
        dv_device_drop(device);
    }
    dv_vec_clear(&op->taken);
}

void dv_device_op_hold(struct dv_device_op *op, struct dv_device_resource *resource)
{
    op->resource = resource;
    resource->n_ops++;
}

void dv_device_op_release(struct dv_device_op *op)
{
    struct dv_device_resource *resource = op->resource;

    op->resource = NULL;
    if (!resource)
        return;
    resource->n_ops--;
    if (!op->state->opts.is_strict)
        resource->has_allocated = resource->n_records > 0 || resource->n_taken > 0;
    dv_device_resource_drop(resource);
}

static void set_step(struct dv_device_op *op, enum dv_device_step_kind kind)
{
    op->step = (struct dv_device_step){.kind = kind};
}

static void end_failed(struct dv_device_op *op, enum dv_device_failure failure)
{
    bool is_strict = op->state->opts.is_strict;
    bool stays_taken = is_strict && failures[failure].aftermath == STAYS_TAKEN;

    op->step.failure = failure;
    dv_device_op_release_taken(op, stays_taken);
    if (is_strict && !stays_taken)
        dv_device_rebuild_allocated(op->state);
    dv_device_op_release(op);
}

bool dv_device_op_fail(struct dv_device_op *op, enum dv_device_failure failure, const char *fmt,
                       ...)
{
    char text[4 * DV_ERR_MSG_BYTES]; /* dv_fail cuts it where a character ends */
    va_list args;

    set_step(op, DV_DEVICE_FAILED);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)dv_fail(&op->step.err, failures[failure].code, "%s", text);
    end_failed(op, failure);
    return false;
}

bool dv_device_op_fail_status(struct dv_device_op *op, enum dv_device_failure failure,
                              const char *before, const struct dv_err *status)
{
    const char *name = (size_t)status->code < DV_COUNT(status_names) ? status_names[status->code]
                                                                     : status_names[DV_UNKNOWN];

    set_step(op, DV_DEVICE_FAILED);
    (void)dv_fail(&op->step.err, status->code, "%srpc error: code = %s desc = %s", before, name,
                  status->msg);
    end_failed(op, failure);
    return false;
}

dv_str *dv_device_op_copy_ids(struct dv_device_op *op, struct dv_device *const *devices, size_t n)
{
    dv_str *ids = DV_NEW_ARRAY(op->scratch, dv_str, n);

    for (size_t i = 0; i < n; i++)
        ids[i] = dv_str_copy(devices[i]->id, op->scratch);
    return ids;
}

void dv_device_op_call(struct dv_device_op *op, enum dv_device_step_kind kind,
                       const struct dv_device_plugin *plugin, struct dv_device *const *devices,
                       size_t n)
{
    op->step = (struct dv_device_step){
        .kind = kind,
        .resource = dv_str_copy(op->resource->name, op->scratch),
        .socket = dv_str_copy(plugin->socket, op->scratch),
        .ids = dv_device_op_copy_ids(op, devices, n),
        .n_ids = n,
    };
}

bool dv_device_op_fail_stopped(struct dv_device_op *op, enum dv_device_failure failure,
                               const char *before)
{
    return dv_device_op_fail(op, failure, "%sendpoint %.*s has been stopped", before,
                             DV_FMT(op->resource->name));
}

bool dv_device_op_is_for_plugins(const struct dv_device_op *op, const struct dv_device_limit *limit)
{
    const struct dv_device_resource *resource = dv_device_resource_find(op->state, limit->resource);

    return !limit->is_claimed && resource && dv_device_resource_is_known(resource);
}

/* -- From limit to limit -------------------------------------------------------------------- */

static void begin_phase(struct dv_device_op *op, enum dv_device_phase phase)
{
    op->phase = phase;
    op->at = 0;
    if (phase == DV_DEVICE_ALLOCATING)
        dv_device_unlend_others(op->pod);
}

static bool handle_limit(struct dv_device_op *op)
{
    const struct dv_device_limit *limit = &op->request.limits[op->at];

    return op->phase == DV_DEVICE_ALLOCATING ? dv_device_allocate_limit(op, limit)
                                             : dv_device_pre_start_limit(op, limit);
}

void dv_device_op_go_on(struct dv_device_op *op)
{
    dv_arena_reset(op->scratch);
    for (;;) {
        for (; op->at < op->request.n_limits; op->at++)
            if (!handle_limit(op))
                return;
        if (op->phase == DV_DEVICE_ALLOCATING) {
            dv_device_hand_on(op);
        } else if (op->needs_allocation) {
            begin_phase(op, DV_DEVICE_ALLOCATING);
            continue;
        }
        set_step(op, DV_DEVICE_DONE);
        return;
    }
}

static int limit_cmp(const void *a, const void *b)
{
    const struct dv_device_limit *x = a;
    const struct dv_device_limit *y = b;

    return dv_str_cmp(x->resource, y->resource);
}

static bool copy_request(struct dv_device_op *op, const struct dv_device_request *request)
{
    size_t n = request->n_limits;
    struct dv_device_limit *limits = DV_NEW_ARRAY(op->arena, struct dv_device_limit, n);

    op->request = *request;
    op->request.pod_uid = op->pod->uid;
    op->request.container = dv_str_copy(request->container, op->arena);
    op->request.limits = limits;
    for (size_t i = 0; i < n; i++) {
        limits[i] = request->limits[i];
        limits[i].resource = dv_str_copy(limits[i].resource, op->arena);
    }
    qsort(limits, n, sizeof(limits[0]), limit_cmp);
    for (size_t i = 1; i < n; i++)
        if (dv_str_eq(limits[i - 1].resource, limits[i].resource))
            return dv_device_op_fail(op, DV_DEVICE_FAIL_BAD_REQUEST, "%.*s: two limits",
                                     DV_FMT(limits[i].resource));
    return true;
}

static struct dv_device_op *op_new(struct dv_device_state *state,
                                   const struct dv_device_request *request,
                                   enum dv_device_phase phase)
{
    struct dv_device_op *op = DV_ALLOC(struct dv_device_op);

    op->state = state;
    op->arena = dv_arena_new();
    op->scratch = dv_arena_new();
    op->pod = dv_device_pod_ensure(state, request->pod_uid);
    op->pod->n_ops++;
    if (copy_request(op, request)) {
        begin_phase(op, phase);
        dv_device_op_go_on(op);
    }
    return op;
}

struct dv_device_op *dv_device_allocate(struct dv_device_state *state,
                                        const struct dv_device_request *request)
{
    return op_new(state, request, DV_DEVICE_ALLOCATING);
}

struct dv_device_op *dv_device_start(struct dv_device_state *state,
                                     const struct dv_device_request *request)
{
    return op_new(state, request, DV_DEVICE_PRE_STARTING);
}

void dv_device_op_free(struct dv_device_op *op)
{
    if (!op)
        return;
    dv_device_op_release_taken(op, false);
    dv_device_op_release(op);
    op->pod->n_ops--;
    dv_device_pod_drop(op->pod);
    dv_vec_fini(&op->taken);
    dv_arena_free(op->scratch);
    dv_arena_free(op->arena);
    free(op);
}

void dv_device_op_freep(struct dv_device_op **op)
{
    dv_device_op_free(*op);
}

const struct dv_device_step *dv_device_op_step(const struct dv_device_op *op)
{
    return &op->step;
}

/* What is called in each step when its answer comes. */
static const struct {
    void (*answered)(struct dv_device_op *op, dv_str response);
    void (*refused)(struct dv_device_op *op, const struct dv_err *status);
} waits[] = {
    [DV_DEVICE_ASK_PREFERRED] = {dv_device_preferred_answered, dv_device_preferred_refused},
    [DV_DEVICE_ASK_ALLOCATE] = {dv_device_allocate_answered,  dv_device_allocate_refused },
    [DV_DEVICE_ASK_PRESTART] = {dv_device_pre_start_answered, dv_device_pre_start_refused},
};

void dv_device_op_answer(struct dv_device_op *op, dv_str response)
{
    static const struct dv_err too_long = {DV_RESOURCE_EXHAUSTED,
                                           "grpc: received message larger than max"};
    size_t kind = (size_t)op->step.kind;
    size_t max = op->step.kind == DV_DEVICE_ASK_PREFERRED ? DV_DEVICE_LIST_BYTES_MAX
                                                          : DV_DEVICE_RESPONSE_BYTES_MAX;

    assert(kind < DV_COUNT(waits)); /* there is nothing to answer */
    if (response.n > max)
        waits[kind].refused(op, &too_long);
    else
        waits[kind].answered(op, response);
}

void dv_device_op_refuse(struct dv_device_op *op, const struct dv_err *status)
{
    size_t kind = (size_t)op->step.kind;

    assert(kind < DV_COUNT(waits)); /* there is nothing to answer */
    waits[kind].refused(op, status);
}
