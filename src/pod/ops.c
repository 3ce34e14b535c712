/* ops.c - the end of a pod, and the start of one of its containers. */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "device/device.h"
#include "device/manager.h"
#include "pod/pod.h"
#include "pod/pods.h"
#include "store/store.h"

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

    dv_pod_set_state(pod, DV_POD_RELEASING);
    dv_device_deactivate_pod(state, pod->spec.ref.uid);
    (void)dv_device_collect(state); /* at least this one */
    release->priv.change = (struct dv_store_change){
        .kind = DV_STORE_DELETE, .space = DV_SPACE_PODS, .key = pod->spec.ref.uid};
    release->priv.save.done = on_released;
    release->priv.save.extra = &release->priv.change;
    release->priv.save.n_extra = 1;
    dv_devices_save(pods->options.devices, &release->priv.save);
}

void dv_pods_release(struct dv_pods *pods, struct dv_pod_release *release,
                     const struct dv_pod_ref *ref)
{
    memset(&release->priv, 0, sizeof(release->priv));
    release->priv.pods = pods;
    release->priv.pod = dv_pods_get(pods, ref);
    pods->n_under_way++;
    if (release->priv.pod && release->priv.pod->state == DV_POD_ADMITTED && !pods->is_closing) {
        give_back(release);
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
    dv_str space = ref->space.n > 0 ? ref->space : DV_STR("default");

    if (ref->uid.n > 0)
        (void)dv_fail(err, DV_NOT_FOUND, "no pod with uid %.*s is admitted here", DV_FMT(ref->uid));
    else
        (void)dv_fail(err, DV_NOT_FOUND, "no pod %.*s/%.*s is admitted here", DV_FMT(space),
                      DV_FMT(ref->name));
}

void dv_pods_start_container(struct dv_pods *pods, struct dv_pod_start *start,
                             const struct dv_pod_ref *ref, dv_str container)
{
    const struct dv_pod *pod = dv_pods_get(pods, ref);
    struct dv_device_request request;
    size_t i_container;

    memset(&start->priv, 0, sizeof(start->priv));
    start->priv.pods = pods;
    pods->n_under_way++;
    if (!pod || pod->state != DV_POD_ADMITTED) {
        fail_unknown(ref, &start->priv.err);
    } else if (!find_container(pod, container, &i_container)) {
        (void)dv_fail(&start->priv.err, DV_NOT_FOUND, "pod %.*s has no container \"%.*s\"",
                      DV_FMT(pod->full_name), DV_FMT(container));
    } else {
        request = dv_pod_request(pod, i_container);
        start->priv.is_running = true;
        start->priv.run.done = on_start_run;
        dv_devices_start_container(pods->options.devices, &start->priv.run, &request);
        return;
    }
    dv_task_post(&start->priv.task, pods->loop, on_start_task);
}

void dv_pods_cancel_start(struct dv_pod_start *start)
{
    if (start->priv.is_running)
        dv_devices_cancel(&start->priv.run);
}
