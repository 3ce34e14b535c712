/* device_operation.c - allocation and start of a container, step by step.
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

/* What the reference does with the devices that were taken, when a choice has failed. Unless strict
 * they are always given back. */
enum aftermath {
    STAYS_TAKEN,
    FREES_ALL, /* gives back what earlier failures left taken, too */
};

static const struct {
    enum dv_code code;
    enum aftermath aftermath;
} failures[] = {
    [DV_DEVICE_FAIL_UNAVAILABLE] = {DV_RESOURCE_EXHAUSTED,  STAYS_TAKEN},
    [DV_DEVICE_FAIL_UNREGISTERED] = {DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_NO_HEALTHY_DEVICES] = {DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY] = {DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_CHANGED_REQUEST] = {DV_FAILED_PRECONDITION, STAYS_TAKEN},
    [DV_DEVICE_FAIL_ENDPOINT_STOPPED] = {DV_UNAVAILABLE,         FREES_ALL  },
    [DV_DEVICE_FAIL_PLUGIN_ALLOCATE] = {DV_UNKNOWN,             FREES_ALL  },
    [DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE] = {DV_INTERNAL,            STAYS_TAKEN},
    [DV_DEVICE_FAIL_PLUGIN_PREFERRED] = {DV_UNKNOWN,             STAYS_TAKEN},
    [DV_DEVICE_FAIL_PLUGIN_PRESTART] = {DV_UNKNOWN,             STAYS_TAKEN},
    [DV_DEVICE_FAIL_NO_ENDPOINT] = {DV_UNAVAILABLE,         STAYS_TAKEN},
    [DV_DEVICE_FAIL_NOTHING_ALLOCATED] = {DV_FAILED_PRECONDITION, STAYS_TAKEN},
    [DV_DEVICE_FAIL_ALLOCATED_LESS] = {DV_INTERNAL,            STAYS_TAKEN},
    [DV_DEVICE_FAIL_UNKNOWN_PLUGIN] = {DV_UNAVAILABLE,         FREES_ALL  },
    [DV_DEVICE_FAIL_BAD_REQUEST] = {DV_INVALID_ARGUMENT,    STAYS_TAKEN},
};

/* ---- what an operation holds on to ---- */

void dv_device_operation_release_taken(struct dv_device_operation *operation, bool stays_taken)
{
    for (size_t i = 0; i < operation->taken.n; i++) {
        struct dv_device *device = operation->taken.v[i];

        device->n_reserved--;
        if (stays_taken && !dv_link_is_in(&device->in_leaked))
            dv_list_push(&operation->state->leaked, &device->in_leaked);
        dv_device_refresh(device);
        dv_device_drop(device);
    }
    dv_vec_clear(&operation->taken);
}

void dv_device_operation_use_resource(struct dv_device_operation *operation,
                                      struct dv_device_resource *resource)
{
    operation->resource = resource;
    resource->n_operations++;
}

void dv_device_operation_leave_resource(struct dv_device_operation *operation)
{
    struct dv_device_resource *resource = operation->resource;

    operation->resource = NULL;
    if (!resource)
        return;
    resource->n_operations--;
    if (!operation->state->opts.is_strict)
        resource->has_allocated = resource->n_records > 0 || resource->n_taken > 0;
    dv_device_resource_drop(resource);
}

static void set_step(struct dv_device_operation *operation, enum dv_device_step_kind kind)
{
    operation->step = (struct dv_device_step){.kind = kind};
}

static void end_failed(struct dv_device_operation *operation, enum dv_device_failure failure)
{
    bool is_strict = operation->state->opts.is_strict;
    bool stays_taken = is_strict && failures[failure].aftermath == STAYS_TAKEN;

    operation->step.failure = failure;
    dv_device_operation_release_taken(operation, stays_taken);
    if (is_strict && !stays_taken)
        dv_device_rebuild_allocated(operation->state);
    dv_device_operation_leave_resource(operation);
}

bool dv_device_operation_fail(struct dv_device_operation *operation, enum dv_device_failure failure,
                              const char *fmt, ...)
{
    char text[4 * DV_ERR_MSG_BYTES]; /* dv_fail cuts it where a character ends */
    va_list args;

    set_step(operation, DV_DEVICE_FAILED);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)dv_fail(&operation->step.err, failures[failure].code, "%s", text);
    end_failed(operation, failure);
    return false;
}

bool dv_device_operation_fail_status(struct dv_device_operation *operation,
                                     enum dv_device_failure failure, const char *before,
                                     const struct dv_err *status)
{
    set_step(operation, DV_DEVICE_FAILED);
    (void)dv_fail(&operation->step.err, status->code, "%srpc error: code = %s desc = %s", before,
                  dv_code_go_name(status->code), status->msg);
    end_failed(operation, failure);
    return false;
}

dv_str *dv_device_operation_copy_ids(struct dv_device_operation *operation,
                                     struct dv_device *const *devices, size_t n)
{
    dv_str *ids = DV_NEW_ARRAY(operation->scratch, dv_str, n);

    for (size_t i = 0; i < n; i++)
        ids[i] = dv_str_copy(devices[i]->id, operation->scratch);
    return ids;
}

void dv_device_operation_call(struct dv_device_operation *operation, enum dv_device_step_kind kind,
                              const struct dv_device_plugin *plugin,
                              struct dv_device *const *devices, size_t n)
{
    operation->step = (struct dv_device_step){
        .kind = kind,
        .resource = dv_str_copy(operation->resource->name, operation->scratch),
        .socket = dv_str_copy(plugin->socket, operation->scratch),
        .ids = dv_device_operation_copy_ids(operation, devices, n),
        .n_ids = n,
    };
}

bool dv_device_operation_fail_stopped(struct dv_device_operation *operation,
                                      enum dv_device_failure failure, const char *before)
{
    return dv_device_operation_fail(operation, failure, "%sendpoint %.*s has been stopped", before,
                                    DV_FMT(operation->resource->name));
}

bool dv_device_operation_is_for_plugins(const struct dv_device_operation *operation,
                                        const struct dv_device_limit *limit)
{
    const struct dv_device_resource *resource =
        dv_device_resource_find(operation->state, limit->resource);

    return !limit->is_claimed && resource && dv_device_resource_is_known(resource);
}

/* -- From limit to limit -------------------------------------------------------------------- */

static void begin_phase(struct dv_device_operation *operation, enum dv_device_phase phase)
{
    operation->phase = phase;
    operation->at = 0;
    if (phase == DV_DEVICE_ALLOCATING)
        dv_device_unlend_others(operation->pod);
}

static bool handle_limit(struct dv_device_operation *operation)
{
    const struct dv_device_limit *limit = &operation->request.limits[operation->at];

    return operation->phase == DV_DEVICE_ALLOCATING ? dv_device_allocate_limit(operation, limit)
                                                    : dv_device_pre_start_limit(operation, limit);
}

void dv_device_operation_go_on(struct dv_device_operation *operation)
{
    dv_arena_reset(operation->scratch);
    for (;;) {
        for (; operation->at < operation->request.n_limits; operation->at++)
            if (!handle_limit(operation))
                return;
        if (operation->phase == DV_DEVICE_ALLOCATING) {
            dv_device_hand_on(operation);
        } else if (operation->needs_allocation) {
            begin_phase(operation, DV_DEVICE_ALLOCATING);
            continue;
        }
        set_step(operation, DV_DEVICE_DONE);
        return;
    }
}

static int limit_cmp(const void *a, const void *b)
{
    const struct dv_device_limit *x = a;
    const struct dv_device_limit *y = b;

    return dv_str_cmp(x->resource, y->resource);
}

static bool copy_request(struct dv_device_operation *operation,
                         const struct dv_device_request *request)
{
    size_t n = request->n_limits;
    struct dv_device_limit *limits = DV_NEW_ARRAY(operation->arena, struct dv_device_limit, n);

    operation->request = *request;
    operation->request.pod_uid = operation->pod->uid;
    operation->request.container = dv_str_copy(request->container, operation->arena);
    operation->request.limits = limits;
    for (size_t i = 0; i < n; i++) {
        limits[i] = request->limits[i];
        limits[i].resource = dv_str_copy(limits[i].resource, operation->arena);
    }
    qsort(limits, n, sizeof(limits[0]), limit_cmp);
    for (size_t i = 1; i < n; i++)
        if (dv_str_eq(limits[i - 1].resource, limits[i].resource))
            return dv_device_operation_fail(operation, DV_DEVICE_FAIL_BAD_REQUEST,
                                            "%.*s: two limits", DV_FMT(limits[i].resource));
    return true;
}

static struct dv_device_operation *operation_new(struct dv_device_state *state,
                                                 const struct dv_device_request *request,
                                                 enum dv_device_phase phase)
{
    struct dv_device_operation *operation = DV_ALLOC(struct dv_device_operation);

    operation->state = state;
    operation->arena = dv_arena_new();
    operation->scratch = dv_arena_new();
    operation->pod = dv_device_pod_ensure(state, request->pod_uid);
    operation->pod->n_operations++;
    if (copy_request(operation, request)) {
        begin_phase(operation, phase);
        dv_device_operation_go_on(operation);
    }
    return operation;
}

struct dv_device_operation *dv_device_allocate(struct dv_device_state *state,
                                               const struct dv_device_request *request)
{
    return operation_new(state, request, DV_DEVICE_ALLOCATING);
}

struct dv_device_operation *dv_device_start(struct dv_device_state *state,
                                            const struct dv_device_request *request)
{
    return operation_new(state, request, DV_DEVICE_PRE_STARTING);
}

void dv_device_operation_free(struct dv_device_operation *operation)
{
    if (!operation)
        return;
    dv_device_operation_release_taken(operation, false);
    dv_device_operation_leave_resource(operation);
    operation->pod->n_operations--;
    dv_device_pod_drop(operation->pod);
    dv_vec_fini(&operation->taken);
    dv_arena_free(operation->scratch);
    dv_arena_free(operation->arena);
    free(operation);
}

const struct dv_device_step *dv_device_operation_step(const struct dv_device_operation *operation)
{
    return &operation->step;
}

/* The functions that are called, by step, when its answer comes. */
static const struct {
    void (*answered)(struct dv_device_operation *operation, dv_str response);
    void (*refused)(struct dv_device_operation *operation, const struct dv_err *status);
} waits[] = {
    [DV_DEVICE_ASK_PREFERRED] = {dv_device_preferred_answered, dv_device_preferred_refused},
    [DV_DEVICE_ASK_ALLOCATE] = {dv_device_allocate_answered,  dv_device_allocate_refused },
    [DV_DEVICE_ASK_PRESTART] = {dv_device_pre_start_answered, dv_device_pre_start_refused},
};

void dv_device_operation_answer(struct dv_device_operation *operation, dv_str response)
{
    static const struct dv_err too_long = {.code = DV_RESOURCE_EXHAUSTED,
                                           .msg = "grpc: received message larger than max"};
    size_t kind = (size_t)operation->step.kind;
    size_t max = operation->step.kind == DV_DEVICE_ASK_PREFERRED ? DV_DEVICE_LIST_BYTES_MAX
                                                                 : DV_DEVICE_RESPONSE_BYTES_MAX;

    assert(kind < DV_COUNT(waits)); /* other steps have nothing to answer */
    if (response.n > max)
        waits[kind].refused(operation, &too_long);
    else
        waits[kind].answered(operation, response);
}

void dv_device_operation_refuse(struct dv_device_operation *operation, const struct dv_err *status)
{
    size_t kind = (size_t)operation->step.kind;

    assert(kind < DV_COUNT(waits)); /* other steps have nothing to answer */
    waits[kind].refused(operation, status);
}
