/* step_wait.c - an admission looks whether there is what the pod asks for, and waits while it is
 * not: for a plugin that has not come back, for devices that other pods hold. */
#include <stdio.h>

#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

void dv_admission_stop_waiting(struct dv_pod_admission *admission)
{
    dv_timer_cancel(&admission->priv.wait_timer);
    dv_task_cancel(&admission->priv.op.task);
    dv_link_remove(&admission->priv.link);
}

static bool may_wait(const struct dv_pod_admission *admission)
{
    const struct dv_pods *pods = admission->priv.op.pods;

    return !pods->options.is_strict && dv_loop_now_ms(pods->loop) < admission->priv.wait_until_ms;
}

static void say_awaited(struct dv_pod_admission *admission, const char *awaited)
{
    struct dv_pods *pods = admission->priv.op.pods;
    struct dv_pod *pod = dv_admission_shown(admission);

    dv_pod_set_state(pod, DV_POD_WAITING);
    if (dv_pod_set_awaited(pod, awaited))
        dv_log(DV_LOG_INFO, "pod: waits", DV_F_STR("pod", pod->full_name), DV_F_C("for", awaited),
               DV_F_U64("ms", admission->priv.wait_until_ms - dv_loop_now_ms(pods->loop)));
}

bool dv_admission_await_plugin(struct dv_pod_admission *admission)
{
    const struct dv_pod_operation *op = &admission->priv.op;
    char awaited[DV_POD_AWAITED_BYTES];
    struct dv_pod_need need;

    if (!may_wait(admission))
        return false;
    if (dv_pod_find_away(op->pod, &need))
        (void)snprintf(awaited, sizeof(awaited), "the plugin of %.*s", DV_FMT(need.resource));
    else if (admission->is_patient && dv_pod_find_unknown(op->pod, &need) &&
             dv_device_manager_is_removed(op->pods->options.devices, need.resource))
        (void)snprintf(awaited, sizeof(awaited),
                       "the plugin of %.*s, which has been gone for more than 5 minutes",
                       DV_FMT(need.resource));
    else
        return false;
    say_awaited(admission, awaited);
    return true;
}

/* Has the pod wait for devices that others hold. False: it need not, or may not. It gives back what
 * it got so far: two pods that each had half of what they need would wait for each other for
 * ever. */
static bool await_devices(struct dv_pod_admission *admission)
{
    const struct dv_pod *pod = admission->priv.op.pod;
    struct dv_device_state *state = dv_admission_devices(admission);
    char awaited[DV_POD_AWAITED_BYTES];
    struct dv_pod_shortage shortage;

    if (!admission->is_patient || !may_wait(admission) || admission->priv.old ||
        admission->priv.n_aside > 0 || !dv_pod_find_shortage(pod, &shortage) ||
        shortage.n_needed > shortage.n_listed)
        return false;
    dv_device_deactivate_pod(state, pod->spec.ref.uid);
    (void)dv_device_collect(state); /* how many went does not matter */
    (void)snprintf(awaited, sizeof(awaited), "%llu device%s of %.*s to be free",
                   (unsigned long long)shortage.n_needed, shortage.n_needed == 1 ? "" : "s",
                   DV_FMT(shortage.resource));
    say_awaited(admission, awaited);
    return true;
}

/* Refuses a pod that asks for a resource that no plugin ever offered, or whose plugin registered
 * and never listed: it can never have it. The reference lets such a pod start without the device.
 * False: the pod asks for no such resource. */
static bool refuse_unknown(struct dv_pod_admission *admission)
{
    const struct dv_pods *pods = admission->priv.op.pods;
    struct dv_pod_need need;
    char text[512];
    int n;

    if (pods->options.is_strict || !dv_pod_find_unknown(admission->priv.op.pod, &need))
        return false;
    n = snprintf(text, sizeof(text), "container %.*s asks for %.*s, %s", DV_FMT(need.container),
                 DV_FMT(need.resource),
                 dv_device_manager_is_removed(pods->options.devices, need.resource)
                     ? "whose plugin has been gone for more than 5 minutes"
                     : "which no plugin has offered on this node");
    (void)dv_admission_refuse(admission, DV_POD_UNKNOWN_RESOURCE,
                              (dv_str){text, dv_size_min((size_t)n, sizeof(text) - 1)}, false);
    return true;
}

enum dv_pod_outcome dv_admit_look(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    dv_admission_stop_waiting(admission);
    if (dv_admission_await_plugin(admission))
        return DV_STEP_ABSENT;
    if (refuse_unknown(admission))
        return DV_STEP_REFUSED;
    return await_devices(admission) ? DV_STEP_ABSENT : DV_STEP_DONE;
}

static void on_wait_over(struct dv_timer *timer)
{
    struct dv_pod_admission *admission =
        DV_CONTAINER(timer, struct dv_pod_admission, priv.wait_timer);

    /* the look finds that the time is over, and refuses */
    dv_pod_operation_go(&admission->priv.op, DV_STEP_DONE);
}

/* The pod waits until dv_pods_look runs, when devices have changed, or until its time is over. */
enum dv_pod_outcome dv_admit_wait(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    dv_list_push(&op->pods->waiting, &admission->priv.link);
    if (admission->priv.wait_until_ms != UINT64_MAX)
        dv_timer_start(&admission->priv.wait_timer, op->pods->loop, admission->priv.wait_until_ms,
                       on_wait_over);
    return DV_STEP_PENDING;
}

void dv_admit_cancel_wait(struct dv_pod_operation *op)
{
    dv_admission_stop_waiting(dv_admission_of(op));
    (void)dv_pod_operation_post(op, DV_STEP_FAILED);
}
