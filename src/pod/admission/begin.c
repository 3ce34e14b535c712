/* begin.c - an admission begins: is it a pod, and is nothing else under way for it? And it can be
 * given up. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/admission/owner.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "topology/topology.h"

/* Fills priv.pod and priv.old; DV_ABORTED: something is under way for it. */
static bool open_pod(struct dv_pod_admission *admission, struct dv_err *err)
{
    struct dv_pods *pods = admission->priv.pods;
    struct dv_arena *arena = dv_arena_new();
    struct dv_pod_spec spec;
    struct dv_pod *old;
    char uid[DV_UUID_BYTES];
    dv_str json;

    if (!dv_pod_spec_parse(admission->priv.json, arena, &spec, err) ||
        !dv_owner_settle(&spec, admission->priv.json, arena, &json, err) ||
        (json.p != admission->priv.json.p && !dv_pod_spec_parse(json, arena, &spec, err))) {
        dv_arena_free(arena);
        return false;
    }
    old = dv_pods_get(pods, &spec.ref);
    if (old && old->state != DV_POD_ADMITTED) {
        (void)dv_fail(err, DV_ABORTED, "pod %.*s is %s already", DV_FMT(old->full_name),
                      dv_pod_state_name(old->state));
    } else if (old && !old->spec.is_imported &&
               (!dv_str_eq(old->spec.ref.name, spec.ref.name) ||
                !dv_str_eq(old->spec.ref.namespace, spec.ref.namespace))) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "uid %.*s is that of pod %.*s",
                      DV_FMT(spec.ref.uid), DV_FMT(old->full_name));
    } else {
        if (spec.ref.uid.n == 0)
            spec.ref.uid = old ? dv_str_copy(old->spec.ref.uid, arena)
                               : dv_str_copy(dv_random_uuid(uid), arena);
        if (spec.object)
            spec.object->metadata.uid = spec.ref.uid;
        admission->priv.old = old;
        admission->priv.pod = dv_pod_new(pods, arena, &spec, json);
        admission->priv.pod->state = DV_POD_ADMITTING;
        if (!old)
            dv_pods_add(pods, admission->priv.pod);
        return true;
    }
    dv_arena_free(arena);
    return false;
}

static void on_begin(struct dv_task *task)
{
    struct dv_pod_admission *admission = DV_CONTAINER(task, struct dv_pod_admission, priv.task);
    struct dv_err err = admission->priv.err;

    if (err.code != DV_OK || !open_pod(admission, &err)) {
        dv_admission_end(admission, NULL, &err);
        return;
    }
    admission->priv.is_asked = true;
    dv_topology_count(admission->priv.pods->options.topology, DV_TOPOLOGY_ASKED,
                      &admission->priv.pods->counts);
    dv_admission_look(admission);
}

void dv_pods_admit(struct dv_pods *pods, struct dv_pod_admission *admission, dv_str json,
                   uint64_t wait_ms)
{
    char *copy = dv_alloc(json.n);

    assert(admission->done);
    memset(&admission->priv, 0, sizeof(admission->priv));
    if (json.n > 0)
        memcpy(copy, json.p, json.n);
    admission->priv.pods = pods;
    admission->priv.json = (dv_str){copy, json.n};
    admission->priv.wait_until_ms = dv_u64_add_clamped(
        dv_loop_now_ms(pods->loop), wait_ms == UINT64_MAX ? pods->options.wait_ms : wait_ms);
    admission->priv.start_ns = dv_loop_now_ns(pods->loop);
    pods->n_under_way++;
    if (pods->is_closing)
        (void)dv_fail(&admission->priv.err, DV_CANCELLED, "davitd is stopping");
    dv_task_post(&admission->priv.task, pods->loop, on_begin);
}

static void on_cancelled(struct dv_task *task)
{
    struct dv_pod_admission *admission = DV_CONTAINER(task, struct dv_pod_admission, priv.task);

    dv_admission_fail(admission, &admission->priv.err);
}

static void cancel(struct dv_pod_admission *admission, const char *text)
{
    if (admission->priv.err.code != DV_OK || dv_link_is_in(&admission->priv.save.link))
        return; /* over already, or as good as: what is being written is not taken back */
    (void)dv_fail(&admission->priv.err, DV_CANCELLED, "%s", text);
    if (admission->priv.is_running) {
        dv_devices_cancel(&admission->priv.run);
    } else if (admission->priv.claims.is_running) {
        dv_claims_cancel(&admission->priv.claims.op);
    } else if (admission->priv.pod) {
        dv_admission_stop_waiting(admission);
        dv_task_post(&admission->priv.task, admission->priv.pods->loop, on_cancelled);
    } /* else it has not begun: on_begin sees it */
}

void dv_pods_cancel(struct dv_pod_admission *admission)
{
    cancel(admission, "the admission was cancelled");
}

void dv_pods_cancel_waiting(struct dv_pods *pods)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, &pods->waiting);
    while ((link = dv_list_shift(&all)) != NULL)
        cancel(DV_CONTAINER(link, struct dv_pod_admission, priv.link), "davitd is stopping");
}
