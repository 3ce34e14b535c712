/* step_print.c - the row of a pod that came typed is printed before anybody is asked for something:
 * what is too long to be stored ends here. */
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "loop/loop.h"
#include "pod/admission/admission.h"
#include "pod/admission/pod_row.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"
#include "resource/resource.h"

static void print(struct dv_pod *pod)
{
    dv_pod_row_print_object(&pod->spec, pod->object, &pod->row_text);
}

static enum dv_pod_outcome take_row(struct dv_pod_operation *op)
{
    struct dv_err err;

    if (!dv_buf_check(&op->pod->row_text, "pod", &err))
        return dv_pod_operation_fail(op, &err);
    op->pod->row = dv_buf_str(&op->pod->row_text);
    return DV_STEP_DONE;
}

static struct dv_pod_operation *op_of(struct dv_work *work)
{
    return &DV_CONTAINER(work, struct dv_pod_admission, priv.printing)->priv.op;
}

/* Prints the row on a worker. Until that is through the pod belongs to it: no other operation on a
 * pod begins while it is being admitted. */
static void run_print(struct dv_work *work)
{
    print(op_of(work)->pod);
}

static enum dv_pod_outcome end_print(struct dv_pod_operation *op)
{
    struct dv_err err;

    if (op->err.code != DV_OK)
        return DV_STEP_FAILED; /* the admission was given up meanwhile */
    if (!op->pods->is_closing)
        return take_row(op);
    /* those that wait have been given up already: it must not be one of them */
    (void)dv_fail(&err, DV_CANCELLED, "davitd is stopping");
    return dv_pod_operation_fail(op, &err);
}

static void on_printed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_pod_operation *op = op_of(work);

    (void)err; /* only who gives the admission up cancels the job */
    dv_pod_operation_go(op, end_print(op));
}

enum dv_pod_outcome dv_admit_print(struct dv_pod_operation *op)
{
    struct dv_pod_admission *admission = dv_admission_of(op);

    if (!op->pod->object)
        return DV_STEP_DONE; /* it came as text */
    if (op->pod->object->size_bytes <= DV_POD_PRINTED_BYTES_MAX) {
        print(op->pod);
        return take_row(op);
    }
    admission->priv.printing = (struct dv_work){.run = run_print, .done = on_printed};
    dv_work_start(&admission->priv.printing, op->pods->loop);
    return DV_STEP_PENDING;
}

void dv_admit_cancel_print(struct dv_pod_operation *op)
{
    dv_work_cancel(&dv_admission_of(op)->priv.printing);
}
