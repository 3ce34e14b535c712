/* step_save.c - a pod goes to the disk, or from it, in one transaction with its devices. */
#include "base/buf.h"
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

/* Gives the devices back. In memory they are free for others at once; on the disk when the save is
 * written. */
enum dv_pod_outcome dv_release_give_back(struct dv_pod_operation *op)
{
    struct dv_pod_release *release = dv_release_of(op);
    struct dv_pod *pod = op->pod;
    struct dv_device_state *state = dv_device_manager_state(op->pods->options.devices);

    dv_device_deactivate_pod(state, pod->spec.ref.uid);
    (void)dv_device_collect(state); /* how many went does not matter */
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
