/* step_allocate.c - devices for a pod, container by container: allocated when it is admitted, and
 * their plugins asked once more when a container starts. */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "topology/topology.h"

static void count(struct dv_pod_admission *admission, enum dv_topology_event event)
{
    struct dv_pods *pods = admission->priv.op.pods;

    dv_topology_count(pods->options.topology, event, &pods->counts);
}

/* ---- refusals ---- */

/* Whether the pod could be admitted later: with other devices, another answer of the plugin, or
 * after the end of another pod. */
static bool can_get_better(enum dv_device_failure failure)
{
    switch (failure) {
    case DV_DEVICE_FAIL_UNAVAILABLE:
    case DV_DEVICE_FAIL_UNREGISTERED:
    case DV_DEVICE_FAIL_NO_HEALTHY_DEVICES:
    case DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY:
    case DV_DEVICE_FAIL_ENDPOINT_STOPPED:
    case DV_DEVICE_FAIL_PLUGIN_ALLOCATE:
    case DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE:
    case DV_DEVICE_FAIL_PLUGIN_PREFERRED:
    case DV_DEVICE_FAIL_PLUGIN_PRESTART:
    case DV_DEVICE_FAIL_NO_ENDPOINT:
    case DV_DEVICE_FAIL_ALLOCATED_LESS:
    case DV_DEVICE_FAIL_UNKNOWN_PLUGIN:
        return true;
    case DV_DEVICE_FAIL_CHANGED_REQUEST:
    case DV_DEVICE_FAIL_NOTHING_ALLOCATED:
    case DV_DEVICE_FAIL_BAD_REQUEST:
        return false;
    }
    return false;
}

/* Whether the pod asks for more devices than their plugin lists in all, so that no other pod's end
 * would help. */
static bool is_too_much(const struct dv_pod *pod)
{
    struct dv_pod_shortage shortage;

    return dv_pod_find_shortage(pod, &shortage) && shortage.n_listed > 0 &&
           shortage.n_needed > shortage.n_listed;
}

static bool may_come(const struct dv_pod_admission *admission)
{
    const struct dv_device_run *run = &admission->priv.run;

    return !admission->priv.op.pods->options.is_strict && run->has_failure &&
           can_get_better(run->failure) && !is_too_much(admission->priv.op.pod);
}

enum dv_pod_outcome dv_admission_refuse_allocation(struct dv_pod_admission *admission,
                                                   const struct dv_err *err)
{
    char text[DV_ERR_MSG_BYTES + 64];
    int n =
        snprintf(text, sizeof(text), "Allocate failed due to %s, which is unexpected", err->msg);

    /* too few are left because other pods have those that were kept back: that is the reason to
     * give */
    if (admission->priv.n_aside > 0)
        return dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE,
                                           &admission->priv.aside_err);
    count(admission, DV_TOPOLOGY_FAILED);
    return dv_admission_refuse(admission, DV_POD_UNEXPECTED, (dv_str){text, (size_t)n},
                               may_come(admission));
}

/* ---- admission ---- */

enum dv_pod_outcome dv_admit_begin(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_device_state *state = dv_admission_devices(admission);

    admission->priv.look_ns = dv_loop_now_ns(op->pods->loop);
    dv_pod_set_state(dv_admission_shown(admission), DV_POD_ADMITTING);
    dv_device_activate_pod(state, op->pod->spec.ref.uid);
    dv_device_begin_admission(state, op->pod->spec.ref.uid);
    admission->priv.i_container = 0;
    admission->priv.affinity = (struct dv_numa_hint){0};
    return DV_STEP_DONE;
}

enum dv_pod_outcome dv_admit_next(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    if (admission->priv.i_container < op->pod->spec.n_containers)
        return DV_STEP_MORE;
    if (op->pods->options.topology->scope == DV_TOPOLOGY_SCOPE_POD)
        count(admission, DV_TOPOLOGY_ALLOCATED);
    dv_device_end_admission(dv_admission_devices(admission), op->pod->spec.ref.uid);
    return DV_STEP_DONE;
}

/* Counts each container once in the metrics, also when the pod had to wait and its allocation began
 * again. */
static void count_container(struct dv_pod_admission *admission)
{
    if (admission->priv.op.pods->options.topology->scope == DV_TOPOLOGY_SCOPE_POD ||
        admission->priv.i_container <= admission->priv.n_counted)
        return;
    admission->priv.n_counted = admission->priv.i_container;
    count(admission, DV_TOPOLOGY_ALLOCATED);
}

static enum dv_pod_outcome take_allocated(struct dv_pod_admission *admission,
                                          const struct dv_err *err)
{
    struct dv_pod_operation *op = &admission->priv.op;

    if (op->err.code != DV_OK) /* the admission was given up while the plugin was asked */
        return DV_STEP_FAILED;
    if (!err) {
        admission->priv.i_container++;
        count_container(admission);
        return DV_STEP_DONE;
    }
    if (!admission->priv.run.has_failure) {
        count(admission, DV_TOPOLOGY_FAILED);
        return dv_pod_operation_fail(op, err);
    }
    dv_device_end_admission(dv_admission_devices(admission), op->pod->spec.ref.uid);
    if (admission->priv.run.is_vetoed)
        return DV_STEP_IN_USE;
    if (dv_admission_await_plugin(admission)) /* the plugin may have died while it was asked */
        return DV_STEP_ABSENT;
    return dv_admission_refuse_allocation(admission, err);
}

static void on_allocated(struct dv_device_run *run, const struct dv_err *err)
{
    struct dv_pod_admission *admission = DV_CONTAINER(run, struct dv_pod_admission, priv.run);

    admission->priv.was_asked |= run->has_asked;
    dv_timer_cancel(&admission->priv.wait_timer);
    (void)dv_pod_set_awaited(dv_admission_shown(admission), "");
    dv_pod_operation_go(&admission->priv.op, take_allocated(admission, err));
}

/* Says whom the pod waits for, when its plugin takes long to answer. */
static void on_slow(struct dv_timer *timer)
{
    struct dv_pod_admission *admission =
        DV_CONTAINER(timer, struct dv_pod_admission, priv.wait_timer);
    struct dv_pods *pods = admission->priv.op.pods;
    char awaited[DV_POD_AWAITED_BYTES];
    char since[DV_TIME_BYTES];
    struct dv_device_call call;

    if (!dv_device_run_call(&admission->priv.run, &call))
        return;
    dv_time_print(dv_clock_wall_ns(dv_loop_clock(pods->loop)) -
                      (dv_loop_now_ns(pods->loop) - call.since_ns),
                  since);
    (void)snprintf(awaited, sizeof(awaited), "the plugin of %.*s to answer %s since %s",
                   DV_FMT(call.resource), call.method, since);
    (void)dv_pod_set_awaited(dv_admission_shown(admission), awaited);
}

static bool may_allocate(struct dv_device_run *run, dv_str resource, const dv_str *ids,
                         size_t n_ids, struct dv_err *err)
{
    return dv_admission_reserve(DV_CONTAINER(run, struct dv_pod_admission, priv.run), resource, ids,
                                n_ids, err);
}

/* Nothing is saved here: step_save.c writes all containers at once, with the pod. */
enum dv_pod_outcome dv_admit_allocate(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);
    struct dv_device_request request = dv_pod_request(op->pod, admission->priv.i_container);

    request.affinity = admission->priv.affinity;
    admission->priv.run.done = on_allocated;
    admission->priv.run.leaves_saving = true;
    admission->priv.run.may_allocate = may_allocate;
    dv_timer_start(&admission->priv.wait_timer, op->pods->loop,
                   dv_loop_now_ms(op->pods->loop) + DV_CLAIM_SLOW_MS, on_slow);
    dv_device_manager_allocate(op->pods->options.devices, &admission->priv.run, &request);
    return DV_STEP_PENDING;
}

void dv_admit_cancel_allocate(struct dv_pod_operation *op)
{
    dv_device_manager_cancel(&dv_admission_of(op)->priv.run);
}

/* ---- start of a container ---- */

static void on_started(struct dv_device_run *run, const struct dv_err *err)
{
    struct dv_pod_operation *op = &DV_CONTAINER(run, struct dv_pod_start, priv.run)->priv.op;

    dv_pod_operation_go(op, err ? dv_pod_operation_fail(op, err) : DV_STEP_DONE);
}

/* Whether all plugins of the container have come since davitd started. */
static bool are_plugins_back(const struct dv_pods *pods, const struct dv_device_request *request,
                             struct dv_err *err)
{
    const struct dv_device_state *state = dv_device_manager_state(pods->options.devices);

    for (size_t i = 0; i < request->n_limits; i++) {
        struct dv_device_resource_info info;

        if (request->limits[i].amount > 0 &&
            dv_device_find(state, request->limits[i].resource, &info) && info.is_awaited)
            return dv_fail(err, DV_UNAVAILABLE,
                           "the device plugin for %.*s has not registered since davitd started",
                           DV_FMT(info.name));
    }
    return true;
}

enum dv_pod_outcome dv_start_find_plugins(struct dv_pod_operation *op)
{
    const struct dv_pod_start *start = dv_start_of(op);
    struct dv_device_request request = dv_pod_request(op->pod, start->priv.i_container);

    return !start->needs_plugins || are_plugins_back(op->pods, &request, &op->err)
               ? DV_STEP_DONE
               : dv_pod_operation_post(op, DV_STEP_FAILED);
}

enum dv_pod_outcome dv_start_ask_plugins(struct dv_pod_operation *op)
{
    struct dv_pod_start *start = dv_start_of(op);
    struct dv_device_request request = dv_pod_request(op->pod, start->priv.i_container);

    op->pod = NULL; /* the start does not need the pod from here on, and somebody may release it */
    start->priv.run.done = on_started;
    dv_device_manager_start_container(op->pods->options.devices, &start->priv.run, &request);
    return DV_STEP_PENDING;
}

void dv_start_cancel_asking(struct dv_pod_operation *op)
{
    dv_device_manager_cancel(&dv_start_of(op)->priv.run);
}
