/* sched_ask.c - the requests of bind.c that are not about a claim's status: the binding itself, and
 * for extended resources the creation of the claim and its record in the pod's status. A request
 * whose answer was lost is made again until there is an answer; each of them may be made twice. */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "sched/binding.h"
#include "sched/sched_state.h"

#define PAUSE_MS 100u
#define PAUSE_MS_MAX 10000u
#define JITTER_PER_MILLE 200u

static void on_pause_over(struct dv_timer *timer)
{
    dv_sched_op_ask(DV_CONTAINER(timer, struct op, timer));
}

static void pause_then_ask(struct op *op)
{
    uint64_t ms = dv_u64_min((uint64_t)PAUSE_MS << dv_u64_min(op->n_pauses, 10), PAUSE_MS_MAX);

    op->n_pauses++;
    dv_timer_start(&op->timer, op->sched->loop,
                   dv_loop_now_ms(op->sched->loop) + dv_jitter(ms, JITTER_PER_MILLE),
                   on_pause_over);
}

static void start_bind(struct op *op)
{
    op->step = OP_BIND;
    op->n_pauses = 0;
    dv_sched_op_ask(op);
}

static void on_created(struct op *op, const struct dv_object *object)
{
    op->created_name = dv_str_copy(object->meta->name, op->arena);
    dv_sched_extended_use(op, op->created_name);
    op->step = OP_APPEAR;
    op->n_pauses = 0;
    dv_sched_op_look(op);
}

/* The binding was refused with a conflict, and the pod was read to see who has bound it. It may
 * have been we: the answer to an earlier try was lost. */
static void on_checked(struct op *op, const struct dv_object *object)
{
    const struct dv_api_pod *now = object->value;

    if (!dv_str_eq(now->metadata.uid, op->pod->object->meta->uid))
        dv_sched_op_fail(op, "the pod was replaced");
    else if (dv_str_eq(now->spec.node_name, op->node))
        dv_sched_op_end_well(op);
    else if (now->spec.node_name.n > 0)
        dv_sched_op_fail(op, "another scheduler has bound the pod");
    else
        dv_sched_op_undo(op); /* nobody has: op->err has the reason of the refusal */
}

static void on_success(struct op *op, const struct dv_object *object)
{
    switch (op->step) {
    case OP_CREATE:
        if (op->sched->metrics.claim_creates[1])
            dv_counter_add(op->sched->metrics.claim_creates[1], 1);
        on_created(op, object);
        break;
    case OP_RECORD:
        start_bind(op);
        break;
    case OP_BIND:
        dv_sched_op_end_well(op);
        break;
    case OP_CHECK:
        on_checked(op, object);
        break;
    case OP_APPEAR:
    case OP_RESERVE:
    case OP_SHOW:
    case OP_READY:
    case OP_UNDO:
        break; /* these steps wait, or write claims; they make no request here */
    }
}

static void on_failure(struct op *op, const struct dv_api_status *failure)
{
    /* A timeout (408), too many requests (429) and a cancellation (499) say nothing about whether
     * it happened. */
    bool is_refused = failure->code >= 400 && failure->code < 500 && failure->code != 408 &&
                      failure->code != 429 && failure->code != 499;

    if (op->step == OP_CREATE && op->sched->metrics.claim_creates[0])
        dv_counter_add(op->sched->metrics.claim_creates[0], 1);
    if (op->step != OP_CHECK)
        dv_status_to_err(failure, &op->err);
    if (op->step == OP_CREATE) {
        (void)dv_wrap(&op->err, "creating the claim for extended resources");
        /* When only the answer was lost, the claim exists: it is then found by its annotation and
         * deleted before the next attempt (dv_sched_attempt_clear). */
        dv_sched_op_undo(op);
    } else if (!is_refused) {
        pause_then_ask(op);
    } else if (op->step == OP_BIND && failure->code == 409) {
        op->step = OP_CHECK;
        dv_sched_op_ask(op);
    } else {
        dv_sched_op_undo(op);
    }
}

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct op *op = DV_CONTAINER(request, struct op, request);
    struct dv_sched *sched = op->sched;

    op->is_asking = false;
    if (sched->is_closing)
        dv_sched_op_end_badly(op);
    else if (failure)
        on_failure(op, failure);
    else
        on_success(op, request->object);
    dv_sched_request_done(sched);
}

static void fill_bind(struct op *op)
{
    struct dv_api_binding *binding = DV_NEW(op->arena, struct dv_api_binding);

    binding->metadata.name = op->request.name;
    binding->metadata.namespace = op->request.namespace;
    binding->metadata.uid = dv_str_copy(op->pod->object->meta->uid, op->arena);
    binding->target.kind = DV_STR("Node");
    binding->target.name = op->node;
    op->request.verb = DV_VERB_CREATE;
    op->request.subresource = DV_SUB_BINDING;
    op->request.value = binding;
}

/* Makes the request of the current step. */
void dv_sched_op_ask(struct op *op)
{
    const struct dv_api_object_meta *meta = op->pod->object->meta;

    if (dv_sched_op_is_deleted(op->pod)) {
        dv_sched_op_fail(op, "the pod is being deleted");
        return;
    }
    op->request = (struct dv_request){.kind = dv_kind(DV_KIND_POD),
                                      .namespace = dv_str_copy(meta->namespace, op->arena),
                                      .name = dv_str_copy(meta->name, op->arena),
                                      .done = on_answer};
    if (op->step == OP_CREATE) {
        op->request.kind = dv_kind(DV_KIND_CLAIM);
        op->request.verb = DV_VERB_CREATE;
        op->request.name = DV_STR_NONE;
        op->request.value = op->created;
    } else if (op->step == OP_RECORD) {
        op->request.verb = DV_VERB_PATCH;
        op->request.subresource = DV_SUB_STATUS;
        op->request.patch_type = DV_PATCH_STRATEGIC;
        op->request.patch = dv_sched_extended_patch(op);
    } else if (op->step == OP_BIND) {
        fill_bind(op);
    }
    op->is_asking = true;
    dv_sched_request(op->sched, &op->request);
}
