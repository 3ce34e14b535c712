/* step_save.c - a pod goes to the disk, or from it, in one transaction with its devices; and the
 * disk learns that its containers may run. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/admission.h"
#include "pod/admission/pod_row.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "topology/topology.h"

/* A row that is quickly printed again is not kept; of a long one the object is not, unless claims
 * need it. */
static void drop_row_or_object(struct dv_pod *pod)
{
    if (!pod->object)
        return;
    if (pod->object->size_bytes <= DV_POD_PRINTED_BYTES_MAX) {
        pod->row = DV_STR_NONE;
        dv_buf_fini(&pod->row_text);
        dv_buf_init(&pod->row_text, DV_POD_ROW_BYTES_MAX);
    } else if (!pod->spec.object) {
        dv_object_unref(pod->object);
        pod->object = NULL;
    }
}

static void on_admission_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_pod_operation *op = &DV_CONTAINER(save, struct dv_pod_admission, priv.save)->priv.op;

    if (err)
        dv_topology_count(op->pods->options.topology, DV_TOPOLOGY_FAILED, &op->pods->counts);
    else
        drop_row_or_object(op->pod);
    dv_pod_operation_go(op, err ? dv_pod_operation_fail(op, err) : DV_STEP_DONE);
}

enum dv_pod_outcome dv_admit_save(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    if (admission->priv.old && admission->priv.old->spec.may_run && !op->pod->spec.may_run) {
        /* somebody has asked since the row was printed */
        op->pod->spec.may_run = true;
        op->pod->row = dv_pod_row_of(op->pod, op->pod->arena);
    }
    admission->priv.change = (struct dv_store_change){
        .kind = DV_STORE_PUT,
        .table = DV_TABLE_PODS,
        .key = op->pod->spec.ref.uid,
        .value = op->pod->row,
    };
    admission->priv.save.done = on_admission_saved;
    admission->priv.save.extra = &admission->priv.change;
    admission->priv.save.n_extra = 1;
    dv_device_manager_save(op->pods->options.devices, &admission->priv.save);
    return DV_STEP_PENDING;
}

static void on_release_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_pod_operation *op = &DV_CONTAINER(save, struct dv_pod_release, priv.save)->priv.op;

    dv_pod_operation_go(op, err ? dv_pod_operation_fail(op, err) : DV_STEP_DONE);
}

/* In memory the devices are free for others at once; on the disk they become free when the save is
 * written. */
enum dv_pod_outcome dv_release_give_back(struct dv_pod_operation *op)
{
    struct dv_pod_release *release = dv_release_of(op);
    struct dv_pod *pod = op->pod;
    struct dv_device_state *state = dv_device_manager_state(op->pods->options.devices);

    dv_device_deactivate_pod(state, pod->spec.ref.uid);
    (void)dv_device_collect(state); /* at least this one */
    release->priv.changes[0] = (struct dv_store_change){
        .kind = DV_STORE_DELETE, .table = DV_TABLE_PODS, .key = pod->spec.ref.uid};
    release->priv.save.done = on_release_saved;
    release->priv.save.extra = release->priv.changes;
    release->priv.save.n_extra = 2;
    if (!dv_pod_origin_is_agents(pod->spec.origin)) {
        release->priv.changes[1] = (struct dv_store_change){
            .kind = DV_STORE_DELETE, .table = DV_TABLE_RUNS, .key = pod->spec.ref.uid};
    } else {
        dv_str key =
            dv_str_printf(pod->arena, DV_POD_ENDED_PREFIX "%.*s", DV_FMT(pod->spec.ref.uid));

        release->priv.changes[1] = (struct dv_store_change){
            .kind = DV_STORE_PUT, .table = DV_TABLE_PODS, .key = key, .value = DV_STR("{}")};
    }
    dv_device_manager_save(op->pods->options.devices, &release->priv.save);
    return DV_STEP_PENDING;
}

/* ---- start of a container ---- */

static void on_noted(struct dv_store_write *write, const struct dv_err *err)
{
    struct dv_pod_start *start = DV_CONTAINER(write, struct dv_pod_start, priv.write);
    struct dv_pod_operation *op = &start->priv.op;
    struct dv_pod *pod = dv_pods_get(op->pods, &start->priv.known_ref);

    /* Meanwhile the pod may have been released, or admitted anew: it is looked for again. */
    start->priv.ref = &start->priv.known_ref;
    start->priv.container = start->priv.known_container;
    if (pod && !err)
        pod->is_start_noted = pod->spec.may_run;
    dv_pod_operation_go(op, err ? dv_pod_operation_fail(op, err) : DV_STEP_DONE);
}

/* Who gets the options of a container may start it at once. So that is on the disk first: a pod
 * that may run has its grace period also after a restart, and one that cannot ends at once. */
enum dv_pod_outcome dv_start_note(struct dv_pod_operation *op)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_pod_start *start = dv_start_of(op);
    const struct dv_pod *pod = op->pod;
    struct dv_store_change change = {
        .kind = DV_STORE_PUT,
        .table = DV_TABLE_PODS,
        .key = pod->spec.ref.uid,
        .value = dv_pod_row_of(pod, arena),
    };

    if (!start->priv.arena)
        start->priv.arena = dv_arena_new();
    start->priv.known_container = dv_str_copy(start->priv.container, start->priv.arena);
    start->priv.known_ref =
        (struct dv_pod_ref){.uid = dv_str_copy(pod->spec.ref.uid, start->priv.arena)};
    op->pod = NULL;
    start->priv.write.done = on_noted;
    dv_store_write(op->pods->options.store, &start->priv.write, &change, 1);
    return DV_STEP_PENDING;
}
