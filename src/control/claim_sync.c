/* claim_sync.c - the job for a claim whose users may be gone. In this order: reservations of pods
 * that are gone are removed, the allocation when nobody is left, then the finalizer, and at last
 * the claim itself when it was generated for a pod that is over. What is to be done is decided by
 * release.c; each write is answered before the next begins, because it is made from the version
 * before. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/release.h"
#include "control/uses.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* A scheduler adds the finalizer before it writes the allocation. Within this time it has done so,
 * and a finalizer without an allocation is one that a crash left. */
#define LEFTOVER_MS 30000u

/* How often a claim is looked at that is reserved for a pod which the API does not have, but whose
 * devices are still prepared. */
#define HELD_LOOK_MS 5000u

struct claim_job {
    struct dv_job job;
    bool *stays; /* for each reservation, whether it stays */
    size_t at;   /* the reservation that is being looked at */
    struct dv_release release;
    bool is_waiting; /* a finalizer without an allocation may have to go, but not yet */
    /* The following are kept from run to run. */
    bool owes_finalizer; /* we removed the allocation, and have yet to remove the finalizer */
    /* The version in which the finalizer had no allocation; 0: none had. */
    uint64_t leftover_version;
    uint64_t leftover_ms; /* since when that is so */
};

static void judge(struct claim_job *claim_job);
static void remove_garbage(struct claim_job *claim_job);

size_t dv_claim_job_bytes(void)
{
    return sizeof(struct claim_job);
}

static struct claim_job *claim_job_of(struct dv_job *job)
{
    return DV_CONTAINER(job, struct claim_job, job);
}

static const struct dv_api_resource_claim *claim_of(const struct claim_job *claim_job)
{
    return claim_job->job.object->value;
}

static void finish(struct claim_job *claim_job)
{
    claim_job->owes_finalizer = false;
    if (claim_job->is_waiting) {
        dv_job_finish_after(&claim_job->job, LEFTOVER_MS);
        return;
    }
    claim_job->leftover_version = 0;
    dv_job_finish(&claim_job->job);
}

/* ---- writes ---- */

/* Takes over the answer to a write: the job goes on with the claim as it is now. False: the write
 * failed, and the job has ended. */
static bool go_on(struct claim_job *claim_job, const char *what,
                  const struct dv_api_status *failure)
{
    struct dv_job *job = &claim_job->job;
    struct dv_object *object = job->request.object;

    if (failure && failure->code != 404) {
        dv_job_fail(job, what, failure);
        return false;
    }
    if (failure || job->request.is_removed || !object) {
        finish(claim_job);
        return false;
    }
    dv_object_unref(job->object);
    job->object = dv_object_ref(object);
    return true;
}

static void prepare_write(struct claim_job *claim_job, enum dv_subresource subresource,
                          const struct dv_api_resource_claim *claim)
{
    struct dv_job *job = &claim_job->job;

    job->request = (struct dv_request){.verb = DV_VERB_UPDATE,
                                       .subresource = subresource,
                                       .kind = dv_kind(DV_KIND_CLAIM),
                                       .namespace = claim->metadata.namespace,
                                       .name = claim->metadata.name,
                                       .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                       .value = claim};
}

static void on_released(struct dv_job *job, const struct dv_api_status *failure)
{
    struct claim_job *claim_job = claim_job_of(job);

    if (!go_on(claim_job, "remove the claim's finalizer", failure))
        return;
    claim_job->owes_finalizer = false;
    remove_garbage(claim_job);
}

static void remove_finalizer(struct claim_job *claim_job)
{
    const struct dv_api_resource_claim *claim = claim_of(claim_job);

    if (!claim_job->release.removes_finalizer || claim->status.allocation ||
        !dv_meta_has_finalizer(&claim->metadata, DV_STR(DV_CLAIM_FINALIZER))) {
        remove_garbage(claim_job);
        return;
    }
    prepare_write(claim_job, DV_SUB_NONE,
                  dv_control_without_finalizer(claim, claim_job->job.arena));
    dv_job_ask(&claim_job->job, on_released);
}

static void on_status_written(struct dv_job *job, const struct dv_api_status *failure)
{
    struct claim_job *claim_job = claim_job_of(job);

    /* Set even when it is not known whether the write had its effect: the next run sees that in the
     * claim. */
    claim_job->owes_finalizer = claim_job->release.removes_finalizer;
    if (go_on(claim_job, "write the claim's status", failure))
        remove_finalizer(claim_job);
}

static void on_deleted(struct dv_job *job, const struct dv_api_status *failure)
{
    if (failure && failure->code != 404)
        dv_job_fail(job, "delete a generated claim", failure);
    else
        finish(claim_job_of(job));
}

static void remove_garbage(struct claim_job *claim_job)
{
    struct dv_job *job = &claim_job->job;
    const struct dv_api_resource_claim *claim = claim_of(claim_job);
    struct dv_api_delete_options *options;
    dv_str name;
    dv_str uid;

    if (!claim_job->release.is_unused || !dv_control_owner_pod(&claim->metadata, &name, &uid) ||
        !dv_control_is_garbage(claim, uid,
                               dv_control_get_pod(job->control, claim->metadata.namespace, name))) {
        finish(claim_job);
        return;
    }
    options = DV_NEW(job->arena, struct dv_api_delete_options);
    options->preconditions = DV_NEW(job->arena, struct dv_api_preconditions);
    options->preconditions->uid = claim->metadata.uid;
    job->request = (struct dv_request){.verb = DV_VERB_DELETE,
                                       .kind = dv_kind(DV_KIND_CLAIM),
                                       .namespace = claim->metadata.namespace,
                                       .name = claim->metadata.name,
                                       .delete_options = options};
    dv_job_ask(job, on_deleted);
}

/* ---- decisions ---- */

/* Decides about a finalizer without an allocation. It may be one that we have yet to remove; or
 * that of a scheduler that is just about to allocate; or one that a crash left. The last two look
 * the same, so the claim is given some time. True: wait. */
static bool is_to_wait(struct claim_job *claim_job)
{
    struct dv_control *control = claim_job->job.control;
    uint64_t now_ms = dv_loop_now_ms(control->loop);
    uint64_t version = claim_job->job.object->version;

    if (!claim_job->release.is_leftover)
        return false;
    if (claim_job->owes_finalizer) {
        claim_job->release.removes_finalizer = true;
        return false;
    }
    if (control->options.is_strict)
        return false;
    if (claim_job->leftover_version != version) {
        claim_job->leftover_version = version;
        claim_job->leftover_ms = now_ms;
    }
    claim_job->release.removes_finalizer = now_ms - claim_job->leftover_ms >= LEFTOVER_MS;
    return !claim_job->release.removes_finalizer;
}

/* Writes the status, and the finalizers with it where one write can: a claim without an allocation
 * needs ours no more. A claim that is being deleted would be gone with them, and nobody who watches
 * would see it without its allocation; the reference's scheduler, for one, looks for free devices
 * only then. */
static void write_status(struct claim_job *claim_job)
{
    struct dv_job *job = &claim_job->job;
    const struct dv_release *release = &claim_job->release;
    const struct dv_api_resource_claim *claim = release->status;
    bool sets_finalizers = job->control->options.cluster->is_embedded &&
                           release->removes_finalizer && !claim->status.allocation &&
                           !claim->metadata.deletion_timestamp.is_set;

    if (sets_finalizers)
        claim = dv_control_without_finalizer(claim, job->arena);
    prepare_write(claim_job, DV_SUB_STATUS, claim);
    job->request.sets_finalizers = sets_finalizers;
    dv_job_ask(job, on_status_written);
}

static void decide(struct claim_job *claim_job)
{
    struct dv_job *job = &claim_job->job;
    struct dv_release *release = &claim_job->release;

    dv_control_plan_release(claim_of(claim_job), claim_job->stays, job->arena, release);
    claim_job->is_waiting = is_to_wait(claim_job);
    if (release->status)
        write_status(claim_job);
    else
        remove_finalizer(claim_job);
}

/* Whether devices are still prepared for a pod that the API has forgotten: then its reservation
 * stays, or another pod could get devices that are in use. Nobody tells when that ends, so the
 * claim is looked at again after a while. */
static bool is_held(struct claim_job *claim_job)
{
    struct dv_control *control = claim_job->job.control;
    const struct dv_api_resource_claim *claim = claim_of(claim_job);
    const struct dv_api_resource_claim_consumer_reference *consumer =
        &claim->status.reserved_for[claim_job->at];

    if (!control->options.is_held || !dv_control_is_pod(consumer) ||
        !control->options.is_held(control->options.ctx, consumer->uid))
        return false;
    dv_queue_add_after(&control->queues[DV_CONTROL_CLAIM_QUEUE], claim->metadata.namespace,
                       claim->metadata.name, HELD_LOOK_MS);
    return true;
}

static void on_pod(struct dv_job *job, const struct dv_api_status *failure)
{
    struct claim_job *claim_job = claim_job_of(job);
    size_t at = claim_job->at;

    if (failure && failure->code != 404) {
        dv_job_fail(job, "look for a pod that a claim is reserved for", failure);
        return;
    }
    claim_job->stays[at] =
        (!failure && dv_control_judge_consumer(&claim_of(claim_job)->status.reserved_for[at],
                                               job->request.object->value) == DV_CONSUMER_STAYS) ||
        is_held(claim_job);
    claim_job->at++;
    judge(claim_job);
}

static void ask_for_pod(struct claim_job *claim_job, dv_str name)
{
    struct dv_job *job = &claim_job->job;

    job->request = (struct dv_request){.verb = DV_VERB_GET,
                                       .kind = dv_kind(DV_KIND_POD),
                                       .namespace = claim_of(claim_job)->metadata.namespace,
                                       .name = name};
    dv_job_ask(job, on_pod);
}

/* Finds out which of the pods that the claim is reserved for are still there. The view may be
 * behind, so a pod that it does not show is asked for from the server before its reservation is
 * removed. */
static void judge(struct claim_job *claim_job)
{
    const struct dv_api_resource_claim *claim = claim_of(claim_job);
    const struct dv_control *control = claim_job->job.control;

    for (; claim_job->at < claim->status.n_reserved_for; claim_job->at++) {
        const struct dv_api_resource_claim_consumer_reference *consumer =
            &claim->status.reserved_for[claim_job->at];
        enum dv_consumer verdict = dv_control_judge_consumer(
            consumer, dv_control_get_pod(control, claim->metadata.namespace, consumer->name));

        if (dv_control_is_pod(consumer) && dv_recent_has(&control->gone, consumer->uid))
            verdict = DV_CONSUMER_GONE;
        if (verdict == DV_CONSUMER_UNKNOWN) {
            ask_for_pod(claim_job, consumer->name);
            return;
        }
        claim_job->stays[claim_job->at] = verdict == DV_CONSUMER_STAYS || is_held(claim_job);
    }
    decide(claim_job);
}

void dv_claim_job_run(struct dv_queue_item *item)
{
    struct claim_job *claim_job = DV_CONTAINER(item, struct claim_job, job.item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_CLAIM_QUEUE]);
    struct dv_object *object =
        dv_control_get(control, DV_CONTROL_CLAIMS, item->namespace, item->name);

    if (!object) {
        dv_queue_finish(item);
        return;
    }
    dv_job_begin(&claim_job->job, control, object);
    claim_job->at = 0;
    claim_job->is_waiting = false;
    claim_job->stays =
        DV_NEW_ARRAY(claim_job->job.arena, bool, claim_of(claim_job)->status.n_reserved_for);
    judge(claim_job);
}
