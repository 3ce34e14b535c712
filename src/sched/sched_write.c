/* sched_write.c - writes the status of claims. A claim has at most one write under way, which
 * does at once what all pods that wait for it want: a hundred pods that share a claim cost two
 * or three writes. A write names the version that it was made from, so that another's change in
 * between is a conflict, and then everything is derived again from the newest state. A write
 * whose answer was lost is repeated until there is an answer: otherwise a device could be
 * thought free that is not. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* ---- writers ---- */

static struct dv_sched_writer *new_writer(struct dv_sched_claim *claim)
{
    struct dv_sched_writer *writer = DV_ALLOC(struct dv_sched_writer);

    writer->claim = claim;
    dv_list_init(&writer->writing);
    return writer;
}

void dv_sched_writer_free(struct dv_sched_writer *writer)
{
    if (!writer)
        return;
    dv_arena_free(writer->arena);
    free(writer);
}

/* ---- ends ---- */

static void finish(struct dv_sched_pod_claim *use, const struct dv_err *err)
{
    dv_link_remove(&use->want);
    use->change = DV_SCHED_CHANGE_NONE;
    use->written(use, err);
}

static void fail(struct dv_sched_pod_claim *use, const char *what)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_ABORTED, "resourceclaim %.*s: %s", DV_FMT(use->claim->key), what);
    finish(use, &err);
}

/* Ends the changes that the last write was for: done, or with an error. */
static void finish_all(struct dv_sched_claim *claim, const struct dv_err *err)
{
    struct dv_link *link;

    while ((link = dv_list_first(&claim->writer->writing)))
        finish(DV_CONTAINER(link, struct dv_sched_pod_claim, want), err);
}

/* ---- what to write ---- */

/* The claim as it shall be. What does not change is shared with the stored object. */
struct draft {
    struct dv_api_resource_claim value;
    bool has_finalizer;
    bool is_changed;
    bool sets_finalizers; /* with the status, in one write */
};

static void free_devices(struct draft *draft)
{
    draft->value.status.allocation = NULL;
    draft->value.status.devices = NULL;
    draft->value.status.n_devices = 0;
    draft->is_changed = true;
}

static void remove_reservation(struct draft *draft, dv_str uid)
{
    struct dv_api_resource_claim_status *status = &draft->value.status;
    size_t n = 0;

    for (size_t i = 0; i < status->n_reserved_for; i++)
        if (!dv_str_eq(status->reserved_for[i].uid, uid))
            status->reserved_for[n++] = status->reserved_for[i];
    draft->is_changed |= n != status->n_reserved_for;
    status->n_reserved_for = n;
}

/* Sets the allocation that was decided on. Returns why that is no longer possible, or NULL. */
static const char *set_allocation(struct dv_sched_claim *claim,
                                  const struct dv_sched_pod_claim *use, struct draft *draft)
{
    struct dv_api_resource_claim_status *status = &draft->value.status;

    if (use->is_lost)
        return "got allocated elsewhere in the meantime";
    if (!status->allocation && claim->assumed_by != use)
        return "got deallocated elsewhere in the meantime";
    if (!status->allocation) {
        status->allocation = DV_NEW(claim->writer->arena, struct dv_api_allocation_result);
        *status->allocation = *claim->assumed;
        if (claim->sched->options.gates & DV_GATE_BINDING_CONDITIONS)
            status->allocation->allocation_timestamp = dv_sched_now(claim->sched);
        draft->is_changed = true;
    }
    return NULL;
}

static const char *reserve(struct dv_sched_claim *claim, struct dv_sched_pod_claim *use,
                           struct draft *draft)
{
    struct dv_api_resource_claim_status *status = &draft->value.status;
    const struct dv_api_pod *pod = dv_sched_pod_value(use->pod);
    const char *problem;

    if (draft->value.metadata.deletion_timestamp.is_set)
        return "got deleted in the meantime";
    problem = set_allocation(claim, use, draft);
    if (problem || dv_claim_is_reserved_for(&draft->value, pod->metadata.uid))
        return problem;
    if (status->n_reserved_for >= DV_CLAIM_RESERVED_MAX)
        return "is in use by as many pods as may use it";
    status->reserved_for[status->n_reserved_for++] =
        (struct dv_api_resource_claim_consumer_reference){
            .resource = DV_STR("pods"), .name = pod->metadata.name, .uid = pod->metadata.uid};
    draft->is_changed = true;
    return NULL;
}

static void unreserve(struct dv_sched_pod_claim *use, struct draft *draft)
{
    remove_reservation(draft, dv_sched_pod_value(use->pod)->metadata.uid);
    if (use->is_allocated && draft->value.status.n_reserved_for == 0 &&
        draft->value.status.allocation)
        /* We allocated it for this pod alone, and no other pod has reserved it since. */
        free_devices(draft);
}

static const char *deallocate(struct dv_sched_pod_claim *use, struct draft *draft)
{
    remove_reservation(draft, dv_sched_pod_value(use->pod)->metadata.uid);
    if (draft->value.status.n_reserved_for > 0 && use->change == DV_SCHED_CHANGE_DEALLOCATE)
        return "is used by other pods";
    if (draft->value.status.allocation)
        free_devices(draft);
    return NULL;
}

static const char *add_change(struct dv_sched_claim *claim, struct dv_sched_pod_claim *use,
                              struct draft *draft)
{
    switch (use->change) {
    case DV_SCHED_CHANGE_RESERVE:
        return reserve(claim, use, draft);
    case DV_SCHED_CHANGE_DROP:
        unreserve(use, draft);
        return NULL;
    case DV_SCHED_CHANGE_DEALLOCATE:
    case DV_SCHED_CHANGE_DELETE:
        return deallocate(use, draft);
    case DV_SCHED_CHANGE_NONE:
        break;
    }
    return NULL;
}

static void begin_draft(struct dv_sched_claim *claim, struct draft *draft)
{
    const struct dv_api_resource_claim *stored = dv_sched_claim_value(claim);
    size_t n = stored->status.n_reserved_for;
    size_t n_changes = 0;
    struct dv_link *link;

    *draft = (struct draft){
        .value = *stored,
        .has_finalizer = dv_meta_has_finalizer(&stored->metadata, DV_STR(DV_CLAIM_FINALIZER))};
    DV_LIST_EACH (&claim->wanted, link)
        n_changes++;
    draft->value.status.reserved_for = DV_NEW_ARRAY(
        claim->writer->arena, struct dv_api_resource_claim_consumer_reference, n + n_changes);
    if (n > 0)
        memcpy(draft->value.status.reserved_for, stored->status.reserved_for,
               n * sizeof(stored->status.reserved_for[0]));
}

/* Gathers all changes into one draft. Those that cannot be made end here, after the loop: their
 * callbacks may add new changes to the lists that it walks. */
static void gather(struct dv_sched_claim *claim, struct draft *draft)
{
    struct dv_list hopeless;
    struct dv_link *link;

    dv_list_init(&hopeless);
    dv_list_move_all(&claim->writer->writing, &claim->wanted);
    dv_list_move_all(&claim->wanted, &claim->writer->writing);
    begin_draft(claim, draft);
    while ((link = dv_list_shift(&claim->wanted))) {
        struct dv_sched_pod_claim *use = DV_CONTAINER(link, struct dv_sched_pod_claim, want);

        use->problem = add_change(claim, use, draft);
        dv_list_push(use->problem ? &hopeless : &claim->writer->writing, link);
    }
    while ((link = dv_list_first(&hopeless))) {
        struct dv_sched_pod_claim *use = DV_CONTAINER(link, struct dv_sched_pod_claim, want);

        fail(use, use->problem);
    }
}

/* ---- writing ---- */

static void on_answer(struct dv_request *request, const struct dv_api_status *failure);

static void start(struct dv_sched_claim *claim, enum dv_sched_claim_step step,
                  struct dv_request request)
{
    struct dv_object_names names = dv_object_names(claim->object);

    claim->step = step;
    claim->writer->request = request;
    claim->writer->request.kind = dv_kind(DV_KIND_CLAIM);
    claim->writer->request.namespace = names.namespace;
    claim->writer->request.name = names.name;
    claim->writer->request.done = on_answer;
    dv_sched_request(claim->sched, &claim->writer->request);
}

static void start_update(struct dv_sched_claim *claim, enum dv_sched_claim_step step,
                         const struct draft *draft)
{
    struct dv_api_resource_claim *value =
        DV_NEW(claim->writer->arena, struct dv_api_resource_claim);

    /* The draft shares texts with the stored object, which the view may drop before the answer
     * comes. */
    dv_message_copy(&dv_message_resource_claim, &draft->value, claim->writer->arena, value);
    start(claim, step,
          (struct dv_request){.verb = DV_VERB_UPDATE,
                              .subresource =
                                  step == DV_SCHED_CLAIM_WRITING ? DV_SUB_STATUS : DV_SUB_NONE,
                              .sets_finalizers = draft->sets_finalizers,
                              .value = value,
                              .gives_value = true});
    claim->writer->request.namespace = value->metadata.namespace;
    claim->writer->request.name = value->metadata.name;
}

static void set_finalizer(struct dv_sched_claim *claim, bool is_wanted, struct draft *draft)
{
    const struct dv_api_resource_claim *stored = dv_sched_claim_value(claim);
    struct dv_api_object_meta *meta = &draft->value.metadata;
    size_t n = 0;

    meta->finalizers =
        DV_NEW_ARRAY(claim->writer->arena, dv_str, stored->metadata.n_finalizers + 1);
    for (size_t i = 0; i < stored->metadata.n_finalizers; i++)
        if (!dv_str_eq(stored->metadata.finalizers[i], DV_STR(DV_CLAIM_FINALIZER)))
            meta->finalizers[n++] = stored->metadata.finalizers[i];
    if (is_wanted)
        meta->finalizers[n++] = DV_STR(DV_CLAIM_FINALIZER);
    meta->n_finalizers = n;
}

static void start_finalizer(struct dv_sched_claim *claim, bool is_wanted)
{
    struct draft draft = {.value = *dv_sched_claim_value(claim)};

    set_finalizer(claim, is_wanted, &draft);
    start_update(claim, DV_SCHED_CLAIM_MARKING, &draft);
}

static void start_delete(struct dv_sched_claim *claim)
{
    struct dv_object_names names = dv_object_names(claim->object);
    dv_str uid = dv_str_copy(names.uid, claim->writer->arena);
    dv_str namespace = dv_str_copy(names.namespace, claim->writer->arena);
    dv_str name = dv_str_copy(names.name, claim->writer->arena);

    claim->writer->preconditions = (struct dv_api_preconditions){.uid = uid};
    claim->writer->delete_options =
        (struct dv_api_delete_options){.preconditions = &claim->writer->preconditions};
    start(claim, DV_SCHED_CLAIM_DELETING,
          (struct dv_request){.verb = DV_VERB_DELETE,
                              .delete_options = &claim->writer->delete_options});
    claim->writer->request.namespace = namespace;
    claim->writer->request.name = name;
}

static void start_read(struct dv_sched_claim *claim)
{
    struct dv_object_names names = dv_object_names(claim->object);
    dv_str namespace = dv_str_copy(names.namespace, claim->writer->arena);
    dv_str name = dv_str_copy(names.name, claim->writer->arena);

    start(claim, DV_SCHED_CLAIM_READING, (struct dv_request){.verb = DV_VERB_GET});
    claim->writer->request.namespace = namespace;
    claim->writer->request.name = name;
}

static bool wants_deletion(const struct dv_sched_claim *claim)
{
    struct dv_link *link;

    DV_LIST_EACH (&claim->writer->writing, link) {
        if (DV_CONTAINER(link, struct dv_sched_pod_claim, want)->change == DV_SCHED_CHANGE_DELETE)
            return true;
    }
    return false;
}

/* Starts the next write towards what is wanted, judged by what is stored now: the finalizer comes
 * before the first allocation, or with it where one write can set both, and goes after the last, so
 * that no claim with devices can be deleted under way. False: nothing is left to write. */
static bool step(struct dv_sched_claim *claim)
{
    struct draft draft;

    dv_arena_free(claim->writer->arena);
    claim->writer->arena = dv_arena_new();
    claim->writer->based = claim->object->version;
    gather(claim, &draft);
    if (dv_list_is_empty(&claim->writer->writing))
        return false;
    draft.sets_finalizers = draft.is_changed && draft.value.status.allocation &&
                            !draft.has_finalizer && claim->sched->cluster->is_embedded;
    if (draft.sets_finalizers)
        set_finalizer(claim, true, &draft);
    if (draft.is_changed && draft.value.status.allocation && !draft.has_finalizer &&
        !draft.sets_finalizers) {
        start_finalizer(claim, true);
    } else if (draft.is_changed) {
        start_update(claim, DV_SCHED_CLAIM_WRITING, &draft);
    } else if (wants_deletion(claim) && draft.has_finalizer) {
        start_finalizer(claim, false);
    } else if (wants_deletion(claim)) {
        start_delete(claim);
    } else {
        finish_all(claim, NULL);
        return false;
    }
    return true;
}

/* Ends all changes of a claim that is gone: what was to be given back is, and what was to be
 * reserved cannot be. */
static void end_all(struct dv_sched_claim *claim)
{
    struct dv_link *link;

    dv_list_move_all(&claim->writer->writing, &claim->wanted);
    while ((link = dv_list_first(&claim->writer->writing))) {
        struct dv_sched_pod_claim *use = DV_CONTAINER(link, struct dv_sched_pod_claim, want);

        if (use->change == DV_SCHED_CHANGE_RESERVE)
            fail(use, "got deleted in the meantime");
        else
            finish(use, NULL);
    }
}

/* Writes until a request is under way or nothing is wanted any more. DV_SCHED_CLAIM_BUSY keeps
 * dv_sched_write from starting a second round when a callback adds a change meanwhile. */
static void go_on(struct dv_sched_claim *claim)
{
    claim->step = DV_SCHED_CLAIM_BUSY;
    if (!claim->writer)
        claim->writer = new_writer(claim);
    for (;;) {
        if (!claim->object || claim->sched->is_closing)
            end_all(claim);
        if (dv_list_is_empty(&claim->wanted) && dv_list_is_empty(&claim->writer->writing))
            break;
        if (claim->object && !claim->sched->is_closing && step(claim))
            return;
    }
    claim->step = DV_SCHED_CLAIM_IDLE;
    dv_sched_writer_free(claim->writer);
    claim->writer = NULL;
    dv_sched_claim_drop(claim);
}

/* ---- answers ---- */

static void on_pause_over(struct dv_timer *timer)
{
    go_on(DV_CONTAINER(timer, struct dv_sched_writer, pause)->claim);
}

static void pause_then_again(struct dv_sched_claim *claim)
{
    uint64_t ms = dv_sched_pause_ms(claim->writer->n_pauses++);

    claim->step = DV_SCHED_CLAIM_PAUSING;
    dv_timer_start(&claim->writer->pause, claim->sched->loop,
                   dv_loop_now_ms(claim->sched->loop) + ms, on_pause_over);
}

/* Takes over the object of an answer. An answer about an object that the view has already removed,
 * or replaced by another of the same name, must not bring it back. */
static bool learn(struct dv_sched_claim *claim, struct dv_object *object)
{
    if (!object || !claim->object ||
        !dv_str_eq(object->meta->uid, dv_object_names(claim->object).uid))
        return false;
    dv_sched_claim_learn(claim, object);
    return true;
}

static void refuse_all(struct dv_sched_claim *claim, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    (void)dv_wrap(&err, "resourceclaim %.*s", DV_FMT(claim->key));
    finish_all(claim, &err);
    go_on(claim);
}

static void on_success(struct dv_sched_claim *claim, enum dv_sched_claim_step done,
                       struct dv_object *object)
{
    bool is_known = learn(claim, object);

    claim->writer->n_pauses = 0;
    if (done == DV_SCHED_CLAIM_DELETING || !is_known)
        end_all(claim);
    else if (done == DV_SCHED_CLAIM_WRITING && !wants_deletion(claim))
        finish_all(claim, NULL);
    else if (done == DV_SCHED_CLAIM_READING && claim->object->version == claim->writer->based) {
        /* The version is the one that we wrote from, and yet it was a conflict: a server that is
         * behind itself. It is tried again after a pause. */
        pause_then_again(claim);
        return;
    }
    go_on(claim);
}

static void on_conflict(struct dv_sched_claim *claim)
{
    claim->sched->numbers.n_conflicts++;
    if (claim->object->version > claim->writer->based)
        go_on(claim); /* the view has shown the other's change already: no need to read the claim */
    else
        start_read(claim);
}

/* Whether the write was refused for good and surely did not happen. A timeout (408), too many
 * requests (429) and a cancellation (499) say neither. */
static bool is_refusal(const struct dv_api_status *failure)
{
    return failure->code >= 400 && failure->code < 500 && failure->code != 408 &&
           failure->code != 429 && failure->code != 499;
}

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_sched_claim *claim = DV_CONTAINER(request, struct dv_sched_writer, request)->claim;
    struct dv_sched *sched = claim->sched;
    enum dv_sched_claim_step done = claim->step;

    claim->step = DV_SCHED_CLAIM_BUSY;
    if (sched->is_closing || !claim->object || (failure && failure->code == 404)) {
        end_all(claim);
        go_on(claim);
    } else if (!failure) {
        on_success(claim, done, request->object);
    } else if (failure->code == 409) {
        on_conflict(claim);
    } else if (is_refusal(failure)) {
        refuse_all(claim, failure);
    } else {
        pause_then_again(claim);
    }
    dv_sched_request_done(sched);
}

/* ---- asking ---- */

void dv_sched_write(struct dv_sched_pod_claim *use)
{
    struct dv_sched_claim *claim = use->claim;

    dv_list_push(&claim->wanted, &use->want);
    if (claim->step == DV_SCHED_CLAIM_IDLE)
        go_on(claim);
}

void dv_sched_write_cancel(struct dv_sched_claim *claim)
{
    if (claim->step == DV_SCHED_CLAIM_PAUSING) {
        dv_timer_cancel(&claim->writer->pause);
        go_on(claim); /* ends all changes, because the scheduler is closing */
    } else if (claim->step != DV_SCHED_CLAIM_IDLE && claim->step != DV_SCHED_CLAIM_BUSY) {
        dv_request_cancel(claim->sched->cluster, &claim->writer->request);
    }
}
