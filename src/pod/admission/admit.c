/* admit.c - the admission of a pod, step by step:
 *
 *     begin --> look --> [wait for plugins --> look again] --> each container: align, allocate
 *                 |                                                 |
 *                 '--> refused <----------------------------------- '--> prepare claims
 *                           ^--------------------------------------------'--> save --> admitted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/holdings.h"
#include "pod/admission/owner.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "topology/topology.h"

#define REASON_ALLOCATE "UnexpectedAdmissionError"

/* Of what is waited for: a resource's name, and some words. */
#define AWAITED_BYTES_MAX 512u

static void next_container(struct dv_pod_admission *admission);

/* ---- the end ---- */

static struct dv_device_state *state_of(struct dv_pod_admission *admission)
{
    return dv_devices_state(admission->priv.pods->options.devices);
}

/* What the others see of it: the pod as it was, if it was. */
static struct dv_pod *shown(struct dv_pod_admission *admission)
{
    return admission->priv.old ? admission->priv.old : admission->priv.pod;
}

void dv_admission_stop_waiting(struct dv_pod_admission *admission)
{
    dv_timer_cancel(&admission->priv.wait_timer);
    dv_task_cancel(&admission->priv.task);
    dv_link_remove(&admission->priv.link);
}

/* What it got for containers that it did not have before. */
static void give_back_new(struct dv_pod_admission *admission)
{
    const struct dv_pod *old = admission->priv.old;
    struct dv_device_request *requests =
        DV_NEW_ARRAY(admission->priv.pod->arena, struct dv_device_request, old->spec.n_containers);

    for (size_t i = 0; i < old->spec.n_containers; i++)
        requests[i] = dv_pod_request(old, i);
    dv_devices_trim_pod(admission->priv.pods->options.devices, old->spec.ref.uid, requests,
                        old->spec.n_containers);
}

/* It is as if it had not been asked for. */
static void undo(struct dv_pod_admission *admission)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = admission->priv.pod;

    if (!pod)
        return;
    dv_device_end_admission(state_of(admission), pod->spec.ref.uid);
    if (admission->priv.old) { /* keeps what it held */
        give_back_new(admission);
        dv_holdings_refresh(pods->holdings, admission->priv.old);
        dv_pod_set_state(admission->priv.old, DV_POD_ADMITTED);
        dv_pod_free(pod);
    } else {
        dv_device_deactivate_pod(state_of(admission), pod->spec.ref.uid);
        (void)dv_device_collect(state_of(admission)); /* at least this one */
        dv_holdings_give_back(pods->holdings, pod);
        if (pod->spec.object && pods->options.claims)
            dv_claims_reconcile(pods->options.claims); /* nobody wants them now */
        dv_pods_remove(pods, pod);
        dv_pods_look_again(pods); /* its devices are free for others */
    }
    admission->priv.pod = NULL;
}

static void count(struct dv_pod_admission *admission, enum dv_topology_event event)
{
    struct dv_pods *pods = admission->priv.pods;

    dv_topology_count(pods->options.topology, event, &pods->counts);
}

static void tell_ended(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict)
{
    const struct dv_pods *pods = admission->priv.pods;
    uint64_t now_ns = dv_loop_now_ns(pods->loop);
    struct dv_pod_times times = {.all_ns = now_ns - admission->priv.start_ns};

    if (!admission->priv.is_asked || !pods->options.ended)
        return;
    if (admission->priv.look_ns > 0)
        times.allocation_ns = now_ns - admission->priv.look_ns;
    pods->options.ended(pods->options.ctx, verdict, &times);
}

void dv_admission_end(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                      const struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.pods;

    tell_ended(admission, verdict);
    dv_admission_stop_waiting(admission);
    dv_admission_let_go(admission);
    free((char *)(uintptr_t)admission->priv.json.p);
    admission->priv.json = DV_STR("");
    dv_pods_end_one(pods);
    admission->done(admission, verdict, err); /* last: it may free the admission */
}

void dv_admission_fail(struct dv_pod_admission *admission, const struct dv_err *err)
{
    struct dv_err own = *err;

    undo(admission);
    dv_admission_end(admission, NULL, &own);
}

static void refuse_with(struct dv_pod_admission *admission, const char *reason, dv_str message,
                        bool may_come)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_pod_ref *ref = &admission->priv.pod->spec.ref;
    struct dv_pod_verdict verdict = {
        .reason = reason,
        .may_come = may_come,
        .was_asked = admission->priv.was_asked || admission->priv.claims.op.has_asked,
        .rival = strcmp(reason, DV_POD_DEVICE_IN_USE) == 0 && admission->priv.rival
                     ? dv_str_copy(admission->priv.rival->pod_uid, arena)
                     : DV_STR(""),
        .message = dv_str_copy(message, arena),
        .ref = {dv_str_copy(ref->uid, arena), dv_str_copy(ref->namespace, arena),
                dv_str_copy(ref->name, arena)},
    };

    dv_log(DV_LOG_WARN, "pod: refused", DV_F_STR("pod", admission->priv.pod->full_name),
           DV_F_STR("uid", ref->uid), DV_F_C("reason", reason), DV_F_STR("message", message));
    undo(admission);
    dv_admission_end(admission, &verdict, NULL);
}

static void refuse(struct dv_pod_admission *admission, const char *reason, dv_str message)
{
    refuse_with(admission, reason, message, false);
}

void dv_admission_refuse_for_now(struct dv_pod_admission *admission, const char *reason,
                                 const struct dv_err *err)
{
    count(admission, DV_TOPOLOGY_FAILED);
    refuse_with(admission, reason, dv_str_from_c(err->msg), true);
}

/* Whether other devices, another answer of the plugin, or the end of another pod would help. */
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

/* More than its plugin lists in all: no other pod's end would help. */
static bool is_too_much(const struct dv_pod *pod)
{
    struct dv_pod_shortage shortage;

    return dv_pod_find_shortage(pod, &shortage) && shortage.n_listed > 0 &&
           shortage.n_needed > shortage.n_listed;
}

static bool may_come(const struct dv_pod_admission *admission)
{
    const struct dv_device_run *run = &admission->priv.run;

    return !admission->priv.pods->options.is_strict && run->has_failure &&
           can_get_better(run->failure) && !is_too_much(admission->priv.pod);
}

static void refuse_allocation(struct dv_pod_admission *admission, const struct dv_err *err)
{
    char text[DV_ERR_MSG_BYTES + 64];
    int n =
        snprintf(text, sizeof(text), "Allocate failed due to %s, which is unexpected", err->msg);

    if (admission->priv.n_aside > 0) { /* what is left is too little: others have the rest */
        dv_admission_refuse_for_now(admission, DV_POD_DEVICE_IN_USE, &admission->priv.aside_err);
        return;
    }
    count(admission, DV_TOPOLOGY_FAILED);
    refuse_with(admission, REASON_ALLOCATE, (dv_str){text, (size_t)n}, may_come(admission));
}

/* ---- success ---- */

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_pod_admission *admission = DV_CONTAINER(save, struct dv_pod_admission, priv.save);
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = admission->priv.pod;
    struct dv_pod_verdict verdict = {.is_admitted = true, .reason = ""};

    if (err) {
        count(admission, DV_TOPOLOGY_FAILED);
        dv_admission_fail(admission, err);
        return;
    }
    if (admission->priv.old) {
        dv_pods_remove(pods, admission->priv.old);
        dv_pods_add(pods, pod);
    }
    pod->was_admitted = true;
    pod->owner = dv_owner_watch(pod);
    dv_pod_set_state(pod, DV_POD_ADMITTED);
    dv_log(DV_LOG_INFO, "pod: admitted", DV_F_STR("pod", pod->full_name),
           DV_F_STR("uid", pod->spec.ref.uid));
    verdict.ref = pod->spec.ref;
    dv_admission_end(admission, &verdict, NULL);
}

void dv_admission_save(struct dv_pod_admission *admission)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = admission->priv.pod;

    admission->priv.change = (struct dv_store_change){
        .kind = DV_STORE_PUT,
        .table = DV_TABLE_PODS,
        .key = pod->spec.ref.uid,
        .value = pod->json,
    };
    admission->priv.save.done = on_saved;
    admission->priv.save.extra = &admission->priv.change;
    admission->priv.save.n_extra = 1;
    dv_devices_save(pods->options.devices, &admission->priv.save);
}

/* ---- waiting ---- */

static void on_wait_over(struct dv_timer *timer)
{
    struct dv_pod_admission *admission =
        DV_CONTAINER(timer, struct dv_pod_admission, priv.wait_timer);

    dv_admission_look(admission); /* and sees that the time is over */
}

static bool may_wait(const struct dv_pod_admission *admission)
{
    const struct dv_pods *pods = admission->priv.pods;

    return !pods->options.is_strict && dv_loop_now_ms(pods->loop) < admission->priv.wait_until_ms;
}

/* It is looked at again when devices change. */
static void wait_for(struct dv_pod_admission *admission, const char *awaited)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = shown(admission);

    dv_pod_set_state(pod, DV_POD_WAITING);
    if (!dv_str_eq(pod->awaited, dv_str_from_c(awaited))) {
        pod->awaited = dv_str_copy(dv_str_from_c(awaited), pod->arena);
        dv_log(DV_LOG_INFO, "pod: waits", DV_F_STR("pod", pod->full_name),
               DV_F_STR("for", pod->awaited),
               DV_F_U64("ms", admission->priv.wait_until_ms - dv_loop_now_ms(pods->loop)));
        dv_pods_tell_changed(pods);
    }
    dv_list_push(&pods->waiting, &admission->priv.link);
    if (admission->priv.wait_until_ms != UINT64_MAX)
        dv_timer_start(&admission->priv.wait_timer, pods->loop, admission->priv.wait_until_ms,
                       on_wait_over);
}

/* True: it waits for a plugin that is not there. */
static bool wait_for_plugin(struct dv_pod_admission *admission)
{
    const struct dv_pods *pods = admission->priv.pods;
    char awaited[AWAITED_BYTES_MAX];
    struct dv_pod_need need;

    if (!may_wait(admission))
        return false;
    if (dv_pod_find_away(admission->priv.pod, &need))
        (void)snprintf(awaited, sizeof(awaited), "the plugin of %.*s", DV_FMT(need.resource));
    else if (admission->is_patient && dv_pod_find_unknown(admission->priv.pod, &need) &&
             dv_devices_is_removed(pods->options.devices, need.resource))
        (void)snprintf(awaited, sizeof(awaited),
                       "the plugin of %.*s, which has been gone for more than 5 minutes",
                       DV_FMT(need.resource));
    else
        return false;
    wait_for(admission, awaited);
    return true;
}

/* True: it waits for devices that others hold, and holds none itself: two that had half of what
 * they need each would wait for ever. */
static bool wait_for_devices(struct dv_pod_admission *admission)
{
    char awaited[AWAITED_BYTES_MAX];
    struct dv_pod_shortage shortage;

    if (!admission->is_patient || !may_wait(admission) || admission->priv.old ||
        admission->priv.n_aside > 0 || !dv_pod_find_shortage(admission->priv.pod, &shortage) ||
        shortage.n_needed > shortage.n_listed)
        return false;
    dv_device_deactivate_pod(state_of(admission), admission->priv.pod->spec.ref.uid);
    (void)dv_device_collect(state_of(admission)); /* at least this one */
    (void)snprintf(awaited, sizeof(awaited), "%llu device%s of %.*s to be free",
                   (unsigned long long)shortage.n_needed, shortage.n_needed == 1 ? "" : "s",
                   DV_FMT(shortage.resource));
    wait_for(admission, awaited);
    return true;
}

void dv_pods_look(struct dv_pods *pods)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, &pods->waiting); /* some go back to it */
    while ((link = dv_list_shift(&all)) != NULL)
        dv_admission_look(DV_CONTAINER(link, struct dv_pod_admission, priv.link));
}

/* ---- alignment ---- */

/* Takes what was found out about alignment; false when the admission is over. */
static bool take_affinity(struct dv_pod_admission *admission, bool is_known,
                          const struct dv_topology_verdict *verdict, const struct dv_err *err)
{
    if (!is_known) {
        refuse_allocation(admission, err);
        return false;
    }
    if (!verdict->is_admitted) {
        count(admission, DV_TOPOLOGY_REJECTED);
        refuse_with(admission, DV_TOPOLOGY_REJECTED_REASON, DV_STR(DV_TOPOLOGY_REJECTED_MESSAGE),
                    !admission->priv.pods->options.is_strict &&
                        dv_pod_has_rivals(admission->priv.pod));
        return false;
    }
    admission->priv.affinity = verdict->affinity;
    return true;
}

/* Of the whole pod in pod scope, of the next container in container scope. */
static bool align(struct dv_pod_admission *admission, enum dv_topology_scope scope)
{
    struct dv_topology_verdict verdict;
    struct dv_err err;
    bool is_known;

    if (admission->priv.pods->options.topology->scope != scope)
        return true;
    is_known = scope == DV_TOPOLOGY_SCOPE_POD
                   ? dv_pod_align(admission->priv.pod, &verdict, &err)
                   : dv_pod_align_container(admission->priv.pod, admission->priv.i_container,
                                            &verdict, &err);
    return take_affinity(admission, is_known, &verdict, &err);
}

/* ---- allocation ---- */

/* Each once, also when the pod had to wait in between and all began again. */
static void count_container(struct dv_pod_admission *admission)
{
    if (admission->priv.pods->options.topology->scope == DV_TOPOLOGY_SCOPE_POD ||
        admission->priv.i_container <= admission->priv.n_counted)
        return;
    admission->priv.n_counted = admission->priv.i_container;
    count(admission, DV_TOPOLOGY_ALLOCATED);
}

static void on_run(struct dv_device_run *run, const struct dv_err *err)
{
    struct dv_pod_admission *admission = DV_CONTAINER(run, struct dv_pod_admission, priv.run);

    admission->priv.is_running = false;
    admission->priv.was_asked |= run->has_asked;
    dv_timer_cancel(&admission->priv.wait_timer);
    shown(admission)->awaited = DV_STR("");
    if (admission->priv.err.code != DV_OK) { /* given up meanwhile */
        dv_admission_fail(admission, &admission->priv.err);
    } else if (err && !run->has_failure) {
        count(admission, DV_TOPOLOGY_FAILED);
        dv_admission_fail(admission, err);
    } else if (err && run->is_vetoed) {
        dv_device_end_admission(state_of(admission), admission->priv.pod->spec.ref.uid);
        dv_admission_evade(admission);
    } else if (err) {
        dv_device_end_admission(state_of(admission), admission->priv.pod->spec.ref.uid);
        if (!wait_for_plugin(admission)) /* it may have died while it was asked */
            refuse_allocation(admission, err);
    } else {
        admission->priv.i_container++;
        count_container(admission);
        next_container(admission);
    }
}

/* Its plugin takes long to answer: whom it waits for is said. */
static void on_slow(struct dv_timer *timer)
{
    struct dv_pod_admission *admission =
        DV_CONTAINER(timer, struct dv_pod_admission, priv.wait_timer);
    struct dv_pods *pods = admission->priv.pods;
    struct dv_pod *pod = shown(admission);
    char since[DV_TIME_BYTES];
    struct dv_device_call call;

    if (!dv_device_run_call(&admission->priv.run, &call))
        return;
    dv_time_print(dv_clock_wall_ns(dv_loop_clock(pods->loop)) -
                      (dv_loop_now_ns(pods->loop) - call.since_ns),
                  since);
    pod->awaited = dv_str_printf(pod->arena, "the plugin of %.*s to answer %s since %s",
                                 DV_FMT(call.resource), call.method, since);
    dv_pods_tell_changed(pods);
}

static bool may_allocate(struct dv_device_run *run, dv_str resource, const dv_str *ids,
                         size_t n_ids, struct dv_err *err)
{
    return dv_admission_reserve(DV_CONTAINER(run, struct dv_pod_admission, priv.run), resource, ids,
                                n_ids, err);
}

static void next_container(struct dv_pod_admission *admission)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_device_request request;

    if (admission->priv.i_container == admission->priv.pod->spec.n_containers) {
        if (pods->options.topology->scope == DV_TOPOLOGY_SCOPE_POD)
            count(admission, DV_TOPOLOGY_ALLOCATED);
        dv_device_end_admission(state_of(admission), admission->priv.pod->spec.ref.uid);
        dv_admission_prepare(admission);
        return;
    }
    if (!align(admission, DV_TOPOLOGY_SCOPE_CONTAINER))
        return;
    request = dv_pod_request(admission->priv.pod, admission->priv.i_container);
    request.affinity = admission->priv.affinity;
    admission->priv.is_running = true;
    admission->priv.run.done = on_run;
    admission->priv.run.leaves_saving = true;
    admission->priv.run.may_allocate = may_allocate;
    dv_timer_start(&admission->priv.wait_timer, pods->loop,
                   dv_loop_now_ms(pods->loop) + DV_CLAIM_SLOW_MS, on_slow);
    dv_devices_allocate(pods->options.devices, &admission->priv.run, &request);
}

/* What nobody ever offered can never be had, nor what a plugin registered and never listed; the
 * reference lets such a pod start without it. */
static bool refuse_unknown(struct dv_pod_admission *admission)
{
    const struct dv_pods *pods = admission->priv.pods;
    struct dv_pod_need need;
    char text[512];
    int n;

    if (pods->options.is_strict || !dv_pod_find_unknown(admission->priv.pod, &need))
        return false;
    n = snprintf(text, sizeof(text), "container %.*s asks for %.*s, %s", DV_FMT(need.container),
                 DV_FMT(need.resource),
                 dv_devices_is_removed(pods->options.devices, need.resource)
                     ? "whose plugin has been gone for more than 5 minutes"
                     : "which no plugin has offered on this node");
    refuse(admission, DV_POD_UNKNOWN_RESOURCE,
           (dv_str){text, dv_size_min((size_t)n, sizeof(text) - 1)});
    return true;
}

void dv_admission_look(struct dv_pod_admission *admission)
{
    dv_admission_stop_waiting(admission);
    if (wait_for_plugin(admission) || refuse_unknown(admission) || wait_for_devices(admission))
        return;
    admission->priv.look_ns = dv_loop_now_ns(admission->priv.pods->loop);
    dv_pod_set_state(shown(admission), DV_POD_ADMITTING);
    dv_device_activate_pod(state_of(admission), admission->priv.pod->spec.ref.uid);
    dv_device_begin_admission(state_of(admission), admission->priv.pod->spec.ref.uid);
    admission->priv.i_container = 0;
    admission->priv.affinity = (struct dv_numa_hint){0};
    if (align(admission, DV_TOPOLOGY_SCOPE_POD))
        next_container(admission);
}
