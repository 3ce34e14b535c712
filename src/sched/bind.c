/* bind.c - a decision becomes true: claims are reserved, then the pod is bound; or all is undone.
 *
 *     [CREATE -> APPEAR] -> RESERVE -> SHOW -> READY -> [RECORD] -> BIND -----------> done
 *            |                |         |       |          |         |                 ^
 *            |                |         |       |          |         '-409-> CHECK ----'
 *            |                |         |       |          |         |         |
 *            '----------------'---------'-------'----------'---------'---------'-> UNDO
 *
 * CREATE, APPEAR and RECORD are for pods whose extended resources are served by classes. In SHOW
 * the view has yet to tell our own writes: by then it has told of any other scheduler that was
 * first to give away the same device. In READY devices are waited for that say when they are. When
 * the API refuses the binding with a conflict, CHECK reads the pod: perhaps we have bound it, and
 * only the answer to that was lost. After UNDO the pod is decided on again later. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "sched/binding.h"
#include "sched/fit.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* How long the view may take to show what was written. A view that is behind for longer is broken,
 * and the devices are better given to others. */
#define SHOW_MS 120000u

/* ---- the end ---- */

static void end(struct dv_sched_binding *binding)
{
    struct dv_sched_pod *pod = binding->pod;
    struct dv_sched *sched = binding->sched;

    dv_timer_cancel(&binding->timer);
    dv_link_remove(&binding->link);
    pod->binding = NULL;
    sched->n_binding--;
    dv_arena_free(binding->arena); /* the operation itself is in this arena */
}

void dv_sched_binding_end_well(struct dv_sched_binding *binding)
{
    struct dv_sched_pod *pod = binding->pod;
    struct dv_sched *sched = binding->sched;
    uint64_t now = dv_loop_now_ns(sched->loop);

    dv_sched_count_attempt(sched, DV_SCHED_SCHEDULED, now - binding->begin_ns);
    if (sched->metrics.pod_seconds)
        dv_histogram_observe_ns(sched->metrics.pod_seconds, now - pod->seen_ns);
    if (!pod->is_preset)
        dv_sched_say_event(pod, "Normal", "Scheduled", "Binding",
                           dv_str_concat((const dv_str[]){DV_STR("Successfully assigned "),
                                                          pod->key, DV_STR(" to "), binding->node},
                                         4, binding->arena));
    end(binding);
    dv_sched_says_look(sched);
    dv_sched_set_state(pod, DV_SCHED_POD_BOUND);
    if (pod->is_gone)
        dv_sched_pod_unassume(pod);
    if (pod->is_gone)
        dv_sched_pod_release(pod);
    else if (pod->is_preset || dv_sched_pod_value(pod)->spec.node_name.n > 0)
        dv_sched_pod_forget(pod);
    dv_sched_turn(sched);
}

bool dv_sched_binding_is_deleted(const struct dv_sched_pod *pod)
{
    return pod->is_gone || dv_sched_pod_value(pod)->metadata.deletion_timestamp.is_set;
}

/* Another scheduler has bound the pod. Claims that we reserved for it stay reserved: the pod is
 * going to use them wherever it runs. */
static bool is_overtaken(const struct dv_sched_pod *pod)
{
    return !pod->is_preset && dv_sched_pod_value(pod)->spec.node_name.n > 0;
}

void dv_sched_binding_end_badly(struct dv_sched_binding *binding)
{
    struct dv_sched_pod *pod = binding->pod;
    struct dv_sched *sched = binding->sched;
    /* Nobody needs to be told about a pod that is gone or that another scheduler has placed. */
    bool is_told = !dv_sched_binding_is_deleted(pod) && !is_overtaken(pod) && !sched->is_closing;
    struct dv_err err = binding->err;

    if (!sched->is_closing)
        dv_sched_count_attempt(sched, DV_SCHED_ERROR,
                               dv_loop_now_ns(sched->loop) - binding->begin_ns);
    if (is_told)
        dv_log(DV_LOG_INFO, "sched: a pod was not bound; it is tried again",
               DV_F_STR("pod", pod->key), DV_F_ERR(&err));
    end(binding);
    pod->n_attempts++;
    pod->backoff_until_ms = dv_loop_now_ms(sched->loop) + dv_sched_backoff_ms(pod->n_attempts);
    dv_sched_set_state(pod, DV_SCHED_POD_WAITING);
    dv_sched_pod_unassume(pod);
    if (pod->is_gone) {
        dv_sched_set_state(pod, DV_SCHED_POD_BOUND);
        dv_sched_pod_release(pod);
    } else if (is_overtaken(pod) || dv_sched_binding_is_deleted(pod)) {
        dv_sched_pod_forget(pod);
    } else if (!sched->is_closing) {
        dv_sched_say(pod, "SchedulerError", dv_str_from_c(err.msg));
        dv_sched_pod_reconsider(pod);
    }
    dv_sched_turn(sched);
}

/* ---- undoing ---- */

void dv_sched_binding_fail(struct dv_sched_binding *binding, const char *what)
{
    (void)dv_fail(&binding->err, DV_ABORTED, "%s", what);
    dv_sched_binding_undo(binding);
}

static void on_undone(struct dv_sched_pod_claim *use, const struct dv_err *err)
{
    struct dv_sched_binding *binding = use->pod->binding;

    use->is_reserved = false;
    use->is_allocated = false;
    /* The claim stays reserved for a pod that does not use it. That is no leak: the controller of
     * claims removes reservations of pods that are gone. */
    if (err)
        dv_log(DV_LOG_WARN, "sched: a reservation was not given back",
               DV_F_STR("pod", use->pod->key), DV_F_ERR(err));
    if (--binding->n_pending == 0)
        dv_sched_binding_end_badly(binding);
}

static void undo_claim(struct dv_sched_binding *binding, struct dv_sched_pod_claim *use,
                       enum dv_sched_claim_change change)
{
    binding->n_pending++;
    use->change = change;
    use->written = on_undone;
    dv_sched_write(use);
}

/* Whether the pod's status names the claim that we made for its extended resources. If so, the
 * kubelet relies on the claim, and it must not be deleted. */
static bool is_recorded(const struct dv_sched_binding *binding)
{
    const struct dv_api_pod_extended_resource_claim_status *status =
        dv_sched_pod_value(binding->pod)->status.extended_resource_claim_status;

    return status && dv_str_eq(status->resource_claim_name, binding->created_name);
}

void dv_sched_binding_undo(struct dv_sched_binding *binding)
{
    struct dv_sched_pod *pod = binding->pod;
    bool is_kept = is_overtaken(pod) && !pod->is_gone;

    binding->step = DV_SCHED_BINDING_UNDO;
    /* One more than there are writes, so that the answer of a write which ends at once does not end
     * the step before the others were started. */
    binding->n_pending = 1;
    dv_timer_cancel(&binding->timer);
    for (size_t i = 0; i < pod->n_claims; i++) {
        struct dv_sched_pod_claim *use = &pod->claims[i];

        if (use->claim->assumed_by == use)
            dv_sched_claim_unassume(use->claim);
        if ((use->is_reserved || use->is_allocated) && !is_kept && !binding->sched->is_closing)
            undo_claim(binding, use, DV_SCHED_CHANGE_DROP);
    }
    if (pod->extended.claim) {
        if (pod->extended.claim->assumed_by == &pod->extended)
            dv_sched_claim_unassume(pod->extended.claim);
        if (binding->created_name.n > 0 && !(is_kept && is_recorded(binding)) &&
            !binding->sched->is_closing)
            undo_claim(binding, &pod->extended, DV_SCHED_CHANGE_DELETE);
    }
    if (--binding->n_pending == 0)
        dv_sched_binding_end_badly(binding);
}

/* ---- waiting ---- */

static struct dv_sched_pod_claim *next_use(const struct dv_sched_binding *binding, size_t *at)
{
    struct dv_sched_pod *pod = binding->pod;

    while (*at <= pod->n_claims) {
        struct dv_sched_pod_claim *use = *at < pod->n_claims ? &pod->claims[*at] : &pod->extended;

        ++*at;
        if (use->claim && (use != &pod->extended || binding->created_name.n > 0))
            return use;
    }
    return NULL;
}

static void count_conditions(const struct dv_sched_binding *binding, const char *status)
{
    uint64_t ns = dv_loop_now_ns(binding->sched->loop) - binding->ready_ns;
    const struct dv_sched_pod_claim *use;

    if (!binding->is_ready_said)
        return;
    for (size_t at = 0; (use = next_use(binding, &at));) {
        const struct dv_api_resource_claim *claim = dv_sched_claim_value(use->claim);
        const struct dv_api_allocation_result *allocation = claim ? claim->status.allocation : NULL;

        for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
            if (allocation->devices.results[i].n_binding_conditions > 0)
                dv_sched_count_conditions(binding->sched, allocation->devices.results[i].driver,
                                          status, ns);
    }
}

static void on_too_late(struct dv_timer *timer)
{
    struct dv_sched_binding *binding = DV_CONTAINER(timer, struct dv_sched_binding, timer);

    count_conditions(binding, "timeout");
    if (binding->step == DV_SCHED_BINDING_READY)
        dv_sched_binding_fail(binding,
                              "device binding timeout: its devices did not get ready in time");
    else
        dv_sched_binding_fail(binding, "what was written did not show in time");
}

static void wait_until(struct dv_sched_binding *binding, uint64_t ms)
{
    if (!dv_timer_is_set(&binding->timer))
        dv_timer_start(&binding->timer, binding->sched->loop,
                       dv_loop_now_ms(binding->sched->loop) + ms, on_too_late);
}

static void look_for_shown(struct dv_sched_binding *binding)
{
    const struct dv_sched_pod_claim *use;

    for (size_t at = 0; (use = next_use(binding, &at));) {
        if (!use->is_allocated)
            continue;
        /* Two schedulers may both have given away one device, each with a write to another claim,
         * and the API does not notice. The view tells changes in order: once it has shown our
         * write, it has shown every earlier one, so that a rival that was first is known by now. */
        if (use->claim->shown < use->claim->held_since) {
            wait_until(binding, SHOW_MS);
            return;
        }
        if (dv_sched_claim_is_rivalled(use->claim)) {
            binding->sched->numbers.n_conflicts++;
            dv_sched_binding_fail(binding,
                                  "another scheduler was first to give away one of the devices");
            return;
        }
    }
    dv_timer_cancel(&binding->timer);
    binding->step = DV_SCHED_BINDING_READY;
    binding->ready_ns = dv_loop_now_ns(binding->sched->loop);
    dv_sched_binding_look(binding);
}

/* How much of the binding timeout is left. It counts from the time in the claim, so that a
 * scheduler that was restarted does not begin anew; a time in the future means that the machine's
 * clock was set back. */
static uint64_t left_ms(const struct dv_sched_binding *binding,
                        const struct dv_api_resource_claim *claim)
{
    uint64_t all = binding->sched->options.binding_timeout_ms;
    struct dv_time since = claim->status.allocation->allocation_timestamp;
    int64_t passed_s = dv_sched_now(binding->sched).seconds - since.seconds;

    if (!since.is_set || passed_s <= 0)
        return all;
    return (uint64_t)passed_s * 1000 >= all ? 0 : all - (uint64_t)passed_s * 1000;
}

static void start_last(struct dv_sched_binding *binding)
{
    dv_timer_cancel(&binding->timer);
    binding->n_pauses = 0;
    if (binding->pod->is_preset) {
        dv_sched_binding_end_well(binding);
        return;
    }
    if (!dv_sched_say_nothing(binding->pod))
        /* A request that says "not scheduled" is under way. Binding now could put the pod's
         * condition back afterwards, so its answer is waited for: it calls dv_sched_binding_look.
         */
        return;
    if (!binding->pod->assumed || !binding->pod->assumed->object) {
        dv_sched_binding_fail(binding, "its node is gone");
        return;
    }
    binding->step = binding->created ? DV_SCHED_BINDING_RECORD : DV_SCHED_BINDING_BIND;
    dv_sched_binding_ask(binding);
}

static void look_for_ready(struct dv_sched_binding *binding)
{
    bool is_ready = true;
    uint64_t ms = UINT64_MAX;
    const struct dv_sched_pod_claim *use;

    for (size_t at = 0; (use = next_use(binding, &at));) {
        const struct dv_api_resource_claim *claim = dv_sched_claim_value(use->claim);

        if (!claim || !claim->status.allocation) {
            dv_sched_binding_fail(binding, "a claim got deallocated elsewhere in the meantime");
            return;
        }
        if (!(binding->sched->options.gates & DV_GATE_BINDING_CONDITIONS) ||
            dv_sched_conditions_hold(claim))
            continue;
        if (dv_sched_conditions_have_failed(claim, &binding->err)) {
            count_conditions(binding, "failure");
            dv_sched_binding_undo(binding);
            return;
        }
        is_ready = false;
        ms = dv_u64_min(ms, left_ms(binding, claim));
    }
    if (is_ready) {
        count_conditions(binding, "success");
        start_last(binding);
        return;
    }
    wait_until(binding, ms);
    if (!binding->is_ready_said)
        dv_sched_say_event(binding->pod, "Normal", "BindingConditionsPending", "Binding",
                           DV_STR("Waiting for the binding conditions of its devices"));
    binding->is_ready_said = true;
}

/* ---- reserving ---- */

static void on_reserved(struct dv_sched_pod_claim *use, const struct dv_err *err)
{
    struct dv_sched_binding *binding = use->pod->binding;

    if (!err)
        use->is_reserved = true;
    else if (binding->err.code == DV_OK)
        binding->err = *err;
    if (--binding->n_pending > 0)
        return;
    if (binding->sched->is_closing)
        dv_sched_binding_end_badly(binding);
    else if (binding->err.code != DV_OK)
        dv_sched_binding_undo(binding);
    else {
        binding->step = DV_SCHED_BINDING_SHOW;
        dv_sched_binding_look(binding);
    }
}

static void reserve_claim(struct dv_sched_binding *binding, struct dv_sched_pod_claim *use)
{
    binding->n_pending++;
    use->change = DV_SCHED_CHANGE_RESERVE;
    use->written = on_reserved;
    dv_sched_write(use);
}

static bool needs_reserving(const struct dv_sched_binding *binding,
                            const struct dv_sched_pod_claim *use)
{
    const struct dv_api_resource_claim *claim = dv_sched_claim_value(use->claim);

    if (!claim || use->claim->assumed_by == use)
        return true;
    return !binding->pod->is_preset &&
           !dv_claim_is_reserved_for(claim, binding->pod->object->meta->uid);
}

static void start_reserving(struct dv_sched_binding *binding)
{
    struct dv_sched_pod_claim *use;

    binding->step = DV_SCHED_BINDING_RESERVE;
    /* One more than there are writes, so that the answer of a write which ends at once does not end
     * the step before the others were started. */
    binding->n_pending = 1;
    for (size_t at = 0; (use = next_use(binding, &at));)
        if (needs_reserving(binding, use))
            reserve_claim(binding, use);
    if (--binding->n_pending > 0)
        return;
    if (binding->err.code != DV_OK) {
        dv_sched_binding_undo(binding);
        return;
    }
    binding->step = DV_SCHED_BINDING_SHOW;
    dv_sched_binding_look(binding);
}

static void look_for_created(struct dv_sched_binding *binding)
{
    if (!binding->pod->extended.claim->object) {
        wait_until(binding, SHOW_MS);
        return;
    }
    dv_timer_cancel(&binding->timer);
    start_reserving(binding);
}

void dv_sched_binding_look(struct dv_sched_binding *binding)
{
    bool is_over = dv_sched_binding_is_deleted(binding->pod) || is_overtaken(binding->pod);

    if (binding->step != DV_SCHED_BINDING_APPEAR && binding->step != DV_SCHED_BINDING_SHOW &&
        binding->step != DV_SCHED_BINDING_READY)
        return; /* an answer that is on its way goes on with it */
    if (is_over)
        dv_sched_binding_fail(binding, "the pod is no longer to be scheduled");
    else if (binding->step == DV_SCHED_BINDING_APPEAR)
        look_for_created(binding);
    else if (binding->step == DV_SCHED_BINDING_SHOW)
        look_for_shown(binding);
    else
        look_for_ready(binding);
}

/* ---- the beginning ---- */

const struct dv_api_allocation_result *
dv_sched_binding_copy(struct dv_sched_binding *binding,
                      const struct dv_api_allocation_result *allocation)
{
    struct dv_api_allocation_result *copy = DV_NEW(binding->arena, struct dv_api_allocation_result);

    dv_message_copy(&dv_message_allocation_result, allocation, binding->arena, copy);
    return copy;
}

void dv_sched_bind(struct dv_sched_pod *pod, const struct dv_sched_decision *decision)
{
    struct dv_sched *sched = pod->sched;
    struct dv_arena *arena = dv_arena_new();
    struct dv_sched_binding *binding = DV_NEW(arena, struct dv_sched_binding);

    binding->sched = sched;
    binding->pod = pod;
    binding->arena = arena;
    binding->begin_ns = dv_loop_now_ns(sched->loop);
    binding->node = dv_str_copy(decision->node->name, arena);
    pod->binding = binding;
    dv_list_push(&sched->bindings, &binding->link);
    sched->n_binding++;
    dv_sched_set_state(pod, DV_SCHED_POD_BINDING);
    if (!pod->is_preset)
        dv_sched_pod_assume(pod, decision->node);
    for (size_t i = 0; i < pod->n_claims; i++) {
        pod->claims[i].is_reserved = false;
        pod->claims[i].is_allocated = false;
    }
    for (size_t i = 0; i < decision->n_claims; i++)
        dv_sched_claim_assume(decision->claims[i],
                              dv_sched_binding_copy(binding, &decision->allocations[i]));
    if (decision->n_requests == 0) {
        start_reserving(binding);
        return;
    }
    dv_sched_extended_draft(binding, decision);
    /* The claim has no name before the API has made it, but its devices have to be held from now
     * on: they are, under a name that no claim can have. */
    dv_sched_extended_use(
        binding, dv_str_printf(arena, "<extended-resources>/%.*s", DV_FMT(pod->object->meta->uid)));
    binding->step = DV_SCHED_BINDING_CREATE;
    dv_sched_binding_ask(binding);
}

void dv_sched_binds_cancel(struct dv_sched *sched)
{
    struct dv_link *next;

    for (struct dv_link *link = sched->bindings.head.next; link != &sched->bindings.head;
         link = next) {
        struct dv_sched_binding *binding = DV_CONTAINER(link, struct dv_sched_binding, link);

        next = link->next;
        /* Writes of claims that are under way were cancelled by dv_sched_write_cancel; their
         * answers end those operations. */
        if (binding->is_asking)
            dv_request_cancel(sched->cluster, &binding->request);
        else if (binding->n_pending == 0)
            dv_sched_binding_end_badly(binding);
    }
}
