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

uint64_t dv_sched_pause_ms(uint64_t n_pauses)
{
    uint64_t ms = dv_u64_min((uint64_t)PAUSE_MS << dv_u64_min(n_pauses, 10), PAUSE_MS_MAX);

    return dv_jitter(ms, JITTER_PER_MILLE);
}

static void on_pause_over(struct dv_timer *timer)
{
    dv_sched_binding_ask(DV_CONTAINER(timer, struct dv_sched_binding, timer));
}

static void pause_then_ask(struct dv_sched_binding *binding)
{
    uint64_t ms = dv_sched_pause_ms(binding->n_pauses++);

    dv_timer_start(&binding->timer, binding->sched->loop, dv_loop_now_ms(binding->sched->loop) + ms,
                   on_pause_over);
}

static void start_bind(struct dv_sched_binding *binding)
{
    binding->step = DV_SCHED_BINDING_BIND;
    binding->n_pauses = 0;
    dv_sched_binding_ask(binding);
}

static void on_created(struct dv_sched_binding *binding, const struct dv_object *object)
{
    binding->created_name = dv_str_copy(object->meta->name, binding->arena);
    dv_sched_extended_use(binding, binding->created_name);
    binding->step = DV_SCHED_BINDING_APPEAR;
    binding->n_pauses = 0;
    dv_sched_binding_look(binding);
}

/* The binding was refused with a conflict, and the pod was read to see who has bound it. It may
 * have been we: the answer to an earlier try was lost. */
static void on_checked(struct dv_sched_binding *binding, const struct dv_object *object)
{
    const struct dv_api_pod *now = object->value;

    if (!dv_str_eq(now->metadata.uid, binding->pod->object->meta->uid))
        dv_sched_binding_fail(binding, "the pod was replaced");
    else if (dv_str_eq(now->spec.node_name, binding->node))
        dv_sched_binding_end_well(binding);
    else if (now->spec.node_name.n > 0)
        dv_sched_binding_fail(binding, "another scheduler has bound the pod");
    else
        dv_sched_binding_undo(binding); /* nobody has: binding->err has the reason of the refusal */
}

static void on_success(struct dv_sched_binding *binding, const struct dv_object *object)
{
    switch (binding->step) {
    case DV_SCHED_BINDING_CREATE:
        if (binding->sched->metrics.claim_creates[1])
            dv_counter_add(binding->sched->metrics.claim_creates[1], 1);
        on_created(binding, object);
        break;
    case DV_SCHED_BINDING_RECORD:
        start_bind(binding);
        break;
    case DV_SCHED_BINDING_BIND:
        dv_sched_binding_end_well(binding);
        break;
    case DV_SCHED_BINDING_CHECK:
        on_checked(binding, object);
        break;
    case DV_SCHED_BINDING_APPEAR:
    case DV_SCHED_BINDING_RESERVE:
    case DV_SCHED_BINDING_SHOW:
    case DV_SCHED_BINDING_READY:
    case DV_SCHED_BINDING_UNDO:
        break; /* these steps wait, or write claims; they make no request here */
    }
}

static void on_failure(struct dv_sched_binding *binding, const struct dv_api_status *failure)
{
    /* A timeout (408), too many requests (429) and a cancellation (499) say nothing about whether
     * it happened. */
    bool is_refused = failure->code >= 400 && failure->code < 500 && failure->code != 408 &&
                      failure->code != 429 && failure->code != 499;

    if (binding->step == DV_SCHED_BINDING_CREATE && binding->sched->metrics.claim_creates[0])
        dv_counter_add(binding->sched->metrics.claim_creates[0], 1);
    if (binding->step != DV_SCHED_BINDING_CHECK)
        dv_status_to_err(failure, &binding->err);
    if (binding->step == DV_SCHED_BINDING_CREATE) {
        (void)dv_wrap(&binding->err, "creating the claim for extended resources");
        /* When only the answer was lost, the claim exists: it is then found by its annotation and
         * deleted before the next attempt (dv_sched_attempt_clear). */
        dv_sched_binding_undo(binding);
    } else if (!is_refused) {
        pause_then_ask(binding);
    } else if (binding->step == DV_SCHED_BINDING_BIND && failure->code == 409) {
        binding->step = DV_SCHED_BINDING_CHECK;
        dv_sched_binding_ask(binding);
    } else {
        dv_sched_binding_undo(binding);
    }
}

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_sched_binding *binding = DV_CONTAINER(request, struct dv_sched_binding, request);
    struct dv_sched *sched = binding->sched;

    binding->is_asking = false;
    if (sched->is_closing)
        dv_sched_binding_end_badly(binding);
    else if (failure)
        on_failure(binding, failure);
    else
        on_success(binding, request->object);
    dv_sched_request_done(sched);
}

static void fill_bind(struct dv_sched_binding *binding)
{
    struct dv_api_binding *value = DV_NEW(binding->arena, struct dv_api_binding);

    value->metadata.name = binding->request.name;
    value->metadata.namespace = binding->request.namespace;
    value->metadata.uid = dv_str_copy(binding->pod->object->meta->uid, binding->arena);
    value->target.kind = DV_STR("Node");
    value->target.name = binding->node;
    binding->request.verb = DV_VERB_CREATE;
    binding->request.subresource = DV_SUB_BINDING;
    binding->request.value = value;
}

/* Makes the request of the current step. */
void dv_sched_binding_ask(struct dv_sched_binding *binding)
{
    const struct dv_api_object_meta *meta = binding->pod->object->meta;

    if (dv_sched_binding_is_deleted(binding->pod)) {
        dv_sched_binding_fail(binding, "the pod is being deleted");
        return;
    }
    binding->request =
        (struct dv_request){.kind = dv_kind(DV_KIND_POD),
                            .namespace = dv_str_copy(meta->namespace, binding->arena),
                            .name = dv_str_copy(meta->name, binding->arena),
                            .done = on_answer};
    if (binding->step == DV_SCHED_BINDING_CREATE) {
        binding->request.kind = dv_kind(DV_KIND_CLAIM);
        binding->request.verb = DV_VERB_CREATE;
        binding->request.name = DV_STR_NONE;
        binding->request.value = binding->created;
    } else if (binding->step == DV_SCHED_BINDING_RECORD) {
        binding->request.verb = DV_VERB_PATCH;
        binding->request.subresource = DV_SUB_STATUS;
        binding->request.patch_type = DV_PATCH_STRATEGIC;
        binding->request.patch = dv_sched_extended_patch(binding);
    } else if (binding->step == DV_SCHED_BINDING_BIND) {
        fill_bind(binding);
    }
    binding->is_asking = true;
    dv_sched_request(binding->sched, &binding->request);
}
