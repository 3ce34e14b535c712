/* ops.c - the end of a pod, and the start of one of its containers. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/holdings.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "store/store.h"
#include "store/store_saver.h"

/* ---- release ---- */

static void end_release(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    dv_pods_end_one(release->priv.pods);
    release->done(release, was_known, err);
}

static void on_released(struct dv_save *save, const struct dv_err *err)
{
    struct dv_pod_release *release = DV_CONTAINER(save, struct dv_pod_release, priv.save);
    struct dv_pod *pod = release->priv.pod;
    struct dv_err failed;

    if (err) { /* it is still there after a restart, so it is still there now; try again */
        failed = *err;
        (void)dv_wrap(&failed, "release pod %.*s", DV_FMT(pod->full_name));
        dv_pod_set_state(pod, DV_POD_ADMITTED);
        end_release(release, true, &failed);
        return;
    }
    dv_log(DV_LOG_INFO, "pod: released", DV_F_STR("pod", pod->full_name),
           DV_F_STR("uid", pod->spec.ref.uid));
    dv_holdings_give_back(release->priv.pods->holdings, pod);
    if (pod->spec.is_from_api)
        dv_pods_note_ended(release->priv.pods, pod->spec.ref.uid);
    dv_pods_remove(release->priv.pods, pod);
    dv_pods_look_again(release->priv.pods);
    end_release(release, true, NULL);
}

static void on_release_task(struct dv_task *task)
{
    struct dv_pod_release *release = DV_CONTAINER(task, struct dv_pod_release, priv.task);
    struct dv_err err = release->priv.err;

    end_release(release, false, err.code == DV_OK ? NULL : &err);
}

/* The devices are free at once, and for others; on the disk they are with the save. */
static void give_back(struct dv_pod_release *release)
{
    struct dv_pods *pods = release->priv.pods;
    struct dv_pod *pod = release->priv.pod;
    struct dv_device_state *state = dv_devices_state(pods->options.devices);

    dv_device_deactivate_pod(state, pod->spec.ref.uid);
    (void)dv_device_collect(state); /* at least this one */
    release->priv.changes[0] = (struct dv_store_change){
        .kind = DV_STORE_DELETE, .table = DV_TABLE_PODS, .key = pod->spec.ref.uid};
    release->priv.save.done = on_released;
    release->priv.save.extra = release->priv.changes;
    release->priv.save.n_extra = 1;
    if (pod->spec.is_from_api) {
        dv_str key =
            dv_str_printf(pod->arena, DV_POD_ENDED_PREFIX "%.*s", DV_FMT(pod->spec.ref.uid));

        release->priv.changes[1] = (struct dv_store_change){
            .kind = DV_STORE_PUT, .table = DV_TABLE_PODS, .key = key, .value = DV_STR("{}")};
        release->priv.save.n_extra = 2;
    }
    dv_devices_save(pods->options.devices, &release->priv.save);
}

static void on_unprepared(struct dv_claim_operation *op, const struct dv_err *err)
{
    struct dv_pod_release *release = DV_CONTAINER(op, struct dv_pod_release, priv.claims.op);
    struct dv_pod *pod = release->priv.pod;
    struct dv_err failed;

    dv_pod_claims_end(&release->priv.claims);
    if (!pod) {
        end_release(release, false, err);
        return;
    }
    pod->preparing = NULL;
    if (!err) {
        give_back(release);
        return;
    }
    failed = *err;
    (void)dv_wrap(&failed, "release pod %.*s", DV_FMT(pod->full_name));
    dv_log(DV_LOG_WARN, "pod: not released yet", DV_F_STR("pod", pod->full_name), DV_F_ERR(err));
    dv_pod_set_state(pod, DV_POD_ADMITTED);
    end_release(release, true, &failed);
}

static bool has_claims(const struct dv_pods *pods, dv_str uid)
{
    return pods->options.claims && dv_claim_pod_has_any(dv_claims_state(pods->options.claims), uid);
}

/* Its claims first, as the reference: what a driver has prepared is in use until it says
 * otherwise. */
static void unprepare(struct dv_pod_release *release, dv_str uid)
{
    struct dv_pods *pods = release->priv.pods;

    release->priv.claims.op = (struct dv_claim_operation){.done = on_unprepared};
    if (release->priv.pod)
        release->priv.pod->preparing = &release->priv.claims.op;
    dv_pod_claims_begin(pods, &release->priv.claims);
    dv_claims_unprepare(pods->options.claims, &release->priv.claims.op, uid);
}

static void begin_release(struct dv_pod_release *release)
{
    struct dv_pod *pod = release->priv.pod;

    dv_pod_set_state(pod, DV_POD_RELEASING);
    if (has_claims(release->priv.pods, pod->spec.ref.uid))
        unprepare(release, pod->spec.ref.uid);
    else
        give_back(release);
}

void dv_pods_release(struct dv_pods *pods, struct dv_pod_release *release,
                     const struct dv_pod_ref *ref)
{
    memset(&release->priv, 0, sizeof(release->priv));
    release->priv.pods = pods;
    release->priv.pod = dv_pods_get(pods, ref);
    pods->n_under_way++;
    if (release->priv.pod && release->priv.pod->state == DV_POD_ADMITTED && !pods->is_closing) {
        begin_release(release);
        return;
    }
    if (!release->priv.pod && !pods->is_closing && has_claims(pods, ref->uid)) {
        unprepare(release, ref->uid);
        return;
    }
    if (release->priv.pod)
        (void)dv_fail(&release->priv.err, DV_ABORTED, "pod %.*s is being %s; try again",
                      DV_FMT(release->priv.pod->full_name),
                      release->priv.pod->state == DV_POD_RELEASING ? "released" : "admitted");
    dv_task_post(&release->priv.task, pods->loop, on_release_task);
}

/* ---- start of a container ---- */

static void end_start(struct dv_pod_start *start, const struct dv_err *err)
{
    dv_pods_end_one(start->priv.pods);
    start->done(start, err);
}

static void on_start_run(struct dv_device_run *run, const struct dv_err *err)
{
    struct dv_pod_start *start = DV_CONTAINER(run, struct dv_pod_start, priv.run);

    start->priv.is_running = false;
    end_start(start, err);
}

static void on_start_task(struct dv_task *task)
{
    struct dv_pod_start *start = DV_CONTAINER(task, struct dv_pod_start, priv.task);
    struct dv_err err = start->priv.err;

    end_start(start, &err);
}

static void run_start(struct dv_pod_start *start)
{
    struct dv_device_request request = dv_pod_request(start->priv.pod, start->priv.i_container);

    start->priv.pod = NULL;
    start->priv.is_running = true;
    start->priv.run.done = on_start_run;
    dv_devices_start_container(start->priv.pods->options.devices, &start->priv.run, &request);
}

/* After a boot drivers have prepared its claims anew: the specs must be there, too. */
static void check_start(struct dv_pod_start *start)
{
    struct dv_pods *pods = start->priv.pods;

    if (!dv_holdings_resolve(pods->holdings, start->priv.pod, &start->priv.err))
        dv_task_post(&start->priv.task, pods->loop, on_start_task);
    else
        run_start(start);
}

static void on_start_prepared(struct dv_claim_operation *op, const struct dv_err *err)
{
    struct dv_pod_start *start = DV_CONTAINER(op, struct dv_pod_start, priv.claims.op);

    start->priv.pod->preparing = NULL;
    dv_pod_claims_end(&start->priv.claims);
    dv_pod_set_state(start->priv.pod, DV_POD_ADMITTED);
    if (err)
        end_start(start, err);
    else
        check_start(start);
}

/* All claims that the pod uses are prepared, as they are unless the machine was started anew. The
 * reference does not ask (6). */
static bool are_claims_ready(const struct dv_pods *pods, const struct dv_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_claim_ref *refs;
    struct dv_err err;
    size_t n_refs;

    if (!pod->spec.object || !pods->options.claims || pods->options.is_strict)
        return true;
    arena = dv_arena_new();
    if (!dv_claim_refs(pod->spec.object, arena, &refs, &n_refs, &err))
        return false;
    for (size_t i = 0; i < n_refs; i++) {
        const struct dv_claim *claim = dv_claim_find(dv_claims_state(pods->options.claims),
                                                     pod->spec.ref.namespace, refs[i].name);

        if (!claim || claim->record.phase != DV_CLAIM_PREPARED ||
            !dv_claim_is_attached(claim, pod->spec.ref.uid))
            return false;
    }
    return true;
}

/* Meanwhile it is being admitted again: nobody releases it under us. */
static void prepare_start(struct dv_pod_start *start)
{
    struct dv_pods *pods = start->priv.pods;
    struct dv_pod *pod = start->priv.pod;

    dv_pod_set_state(pod, DV_POD_ADMITTING);
    start->priv.claims.op =
        (struct dv_claim_operation){.done = on_start_prepared, .wait_ms = pods->options.wait_ms};
    pod->preparing = &start->priv.claims.op;
    dv_pod_claims_begin(pods, &start->priv.claims);
    dv_claims_prepare(pods->options.claims, &start->priv.claims.op, pod->spec.object);
}

static bool find_container(const struct dv_pod *pod, dv_str name, size_t *i_container)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++) {
        if (dv_str_eq(pod->spec.containers[i].name, name)) {
            *i_container = i;
            return true;
        }
    }
    return false;
}

static void fail_unknown(const struct dv_pod_ref *ref, struct dv_err *err)
{
    dv_str namespace = ref->namespace.n > 0 ? ref->namespace : DV_STR("default");

    if (ref->uid.n > 0)
        (void)dv_fail(err, DV_NOT_FOUND, "no pod with uid %.*s is admitted here", DV_FMT(ref->uid));
    else
        (void)dv_fail(err, DV_NOT_FOUND, "no pod %.*s/%.*s is admitted here", DV_FMT(namespace),
                      DV_FMT(ref->name));
}

void dv_pods_start_container(struct dv_pods *pods, struct dv_pod_start *start,
                             const struct dv_pod_ref *ref, dv_str container)
{
    struct dv_pod *pod = dv_pods_get(pods, ref);

    memset(&start->priv, 0, sizeof(start->priv));
    start->priv.pods = pods;
    pods->n_under_way++;
    if (!pod || pod->state != DV_POD_ADMITTED) {
        fail_unknown(ref, &start->priv.err);
    } else if (!find_container(pod, container, &start->priv.i_container)) {
        (void)dv_fail(&start->priv.err, DV_NOT_FOUND, "pod %.*s has no container \"%.*s\"",
                      DV_FMT(pod->full_name), DV_FMT(container));
    } else {
        start->priv.pod = pod;
        pod->may_run = true;
        if (are_claims_ready(pods, pod))
            check_start(start);
        else
            prepare_start(start);
        return;
    }
    dv_task_post(&start->priv.task, pods->loop, on_start_task);
}

void dv_pods_cancel_start(struct dv_pod_start *start)
{
    if (start->priv.is_running)
        dv_devices_cancel(&start->priv.run);
    else if (start->priv.claims.is_running)
        dv_claims_cancel(&start->priv.claims.op);
}
