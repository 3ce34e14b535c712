/* claim_sync.c - the sync of a claim whose users may be gone. In this order: reservations of pods
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

struct claim_sync {
    struct dv_control_sync sync;
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

static void judge(struct claim_sync *claim_sync);
static void remove_garbage(struct claim_sync *claim_sync);

size_t dv_control_claim_sync_bytes(void)
{
    return sizeof(struct claim_sync);
}

static struct claim_sync *claim_sync_of(struct dv_control_sync *sync)
{
    return DV_CONTAINER(sync, struct claim_sync, sync);
}

static const struct dv_api_resource_claim *claim_of(const struct claim_sync *claim_sync)
{
    return claim_sync->sync.object->value;
}

static void finish(struct claim_sync *claim_sync)
{
    claim_sync->owes_finalizer = false;
    if (claim_sync->is_waiting) {
        dv_control_sync_finish_after(&claim_sync->sync, LEFTOVER_MS);
        return;
    }
    claim_sync->leftover_version = 0;
    dv_control_sync_finish(&claim_sync->sync);
}

/* ---- writes ---- */

/* Takes over the answer to a write: the sync goes on with the claim as it is now. False: the write
 * failed, and the sync has ended. */
static bool go_on(struct claim_sync *claim_sync, const char *what,
                  const struct dv_api_status *failure)
{
    struct dv_control_sync *sync = &claim_sync->sync;
    struct dv_object *object = sync->request.object;

    if (failure && failure->code != 404) {
        dv_control_sync_fail(sync, what, failure);
        return false;
    }
    if (failure || sync->request.is_removed || !object) {
        finish(claim_sync);
        return false;
    }
    dv_object_unref(sync->object);
    sync->object = dv_object_ref(object);
    return true;
}

static void prepare_write(struct claim_sync *claim_sync, enum dv_subresource subresource,
                          const struct dv_api_resource_claim *claim)
{
    struct dv_control_sync *sync = &claim_sync->sync;

    sync->request = (struct dv_request){.verb = DV_VERB_UPDATE,
                                        .subresource = subresource,
                                        .kind = dv_kind(DV_KIND_CLAIM),
                                        .namespace = claim->metadata.namespace,
                                        .name = claim->metadata.name,
                                        .field_manager = DV_STR(DV_CONTROL_CLAIMS_MANAGER),
                                        .value = claim};
}

static void on_released(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct claim_sync *claim_sync = claim_sync_of(sync);

    if (!go_on(claim_sync, "remove the claim's finalizer", failure))
        return;
    claim_sync->owes_finalizer = false;
    remove_garbage(claim_sync);
}

static void remove_finalizer(struct claim_sync *claim_sync)
{
    const struct dv_api_resource_claim *claim = claim_of(claim_sync);

    if (!claim_sync->release.removes_finalizer || claim->status.allocation ||
        !dv_meta_has_finalizer(&claim->metadata, DV_STR(DV_CLAIM_FINALIZER))) {
        remove_garbage(claim_sync);
        return;
    }
    prepare_write(claim_sync, DV_SUB_NONE,
                  dv_control_without_finalizer(claim, claim_sync->sync.arena));
    dv_control_sync_ask(&claim_sync->sync, on_released);
}

static void on_status_written(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct claim_sync *claim_sync = claim_sync_of(sync);

    /* Set even when it is not known whether the write had its effect: the next run sees that in the
     * claim. */
    claim_sync->owes_finalizer = claim_sync->release.removes_finalizer;
    if (go_on(claim_sync, "write the claim's status", failure))
        remove_finalizer(claim_sync);
}

static void on_deleted(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (failure && failure->code != 404)
        dv_control_sync_fail(sync, "delete a generated claim", failure);
    else
        finish(claim_sync_of(sync));
}

static void remove_garbage(struct claim_sync *claim_sync)
{
    struct dv_control_sync *sync = &claim_sync->sync;
    const struct dv_api_resource_claim *claim = claim_of(claim_sync);
    struct dv_api_delete_options *options;
    dv_str name;
    dv_str uid;

    if (!claim_sync->release.is_unused || !dv_control_owner_pod(&claim->metadata, &name, &uid) ||
        !dv_control_is_garbage(
            claim, uid, dv_control_get_pod(sync->control, claim->metadata.namespace, name))) {
        finish(claim_sync);
        return;
    }
    options = DV_NEW(sync->arena, struct dv_api_delete_options);
    options->preconditions = DV_NEW(sync->arena, struct dv_api_preconditions);
    options->preconditions->uid = claim->metadata.uid;
    sync->request = (struct dv_request){.verb = DV_VERB_DELETE,
                                        .kind = dv_kind(DV_KIND_CLAIM),
                                        .namespace = claim->metadata.namespace,
                                        .name = claim->metadata.name,
                                        .delete_options = options};
    dv_control_sync_ask(sync, on_deleted);
}

/* ---- decisions ---- */

/* Decides about a finalizer without an allocation. It may be one that we have yet to remove; or
 * that of a scheduler that is just about to allocate; or one that a crash left. The last two look
 * the same, so the claim is given some time. True: wait. */
static bool is_to_wait(struct claim_sync *claim_sync)
{
    struct dv_control *control = claim_sync->sync.control;
    uint64_t now_ms = dv_loop_now_ms(control->loop);
    uint64_t version = claim_sync->sync.object->version;

    if (!claim_sync->release.is_leftover)
        return false;
    if (claim_sync->owes_finalizer) {
        claim_sync->release.removes_finalizer = true;
        return false;
    }
    if (control->options.is_strict)
        return false;
    if (claim_sync->leftover_version != version) {
        claim_sync->leftover_version = version;
        claim_sync->leftover_ms = now_ms;
    }
    claim_sync->release.removes_finalizer = now_ms - claim_sync->leftover_ms >= LEFTOVER_MS;
    return !claim_sync->release.removes_finalizer;
}

/* Writes the status, and the finalizers with it where one write can: a claim without an allocation
 * needs ours no more. A claim that is being deleted would be gone with them, and nobody who watches
 * would see it without its allocation; the reference's scheduler, for one, looks for free devices
 * only then. */
static void write_status(struct claim_sync *claim_sync)
{
    struct dv_control_sync *sync = &claim_sync->sync;
    const struct dv_release *release = &claim_sync->release;
    const struct dv_api_resource_claim *claim = release->status;
    bool sets_finalizers = sync->control->options.cluster->is_embedded &&
                           release->removes_finalizer && !claim->status.allocation &&
                           !claim->metadata.deletion_timestamp.is_set;

    if (sets_finalizers)
        claim = dv_control_without_finalizer(claim, sync->arena);
    prepare_write(claim_sync, DV_SUB_STATUS, claim);
    sync->request.sets_finalizers = sets_finalizers;
    dv_control_sync_ask(sync, on_status_written);
}

static void decide(struct claim_sync *claim_sync)
{
    struct dv_control_sync *sync = &claim_sync->sync;
    struct dv_release *release = &claim_sync->release;

    dv_control_plan_release(claim_of(claim_sync), claim_sync->stays, sync->arena, release);
    claim_sync->is_waiting = is_to_wait(claim_sync);
    if (release->status)
        write_status(claim_sync);
    else
        remove_finalizer(claim_sync);
}

/* Whether devices are still prepared for a pod that the API has forgotten: then its reservation
 * stays, or another pod could get devices that are in use. Nobody tells when that ends, so the
 * claim is looked at again after a while. */
static bool is_held(struct claim_sync *claim_sync)
{
    struct dv_control *control = claim_sync->sync.control;
    const struct dv_api_resource_claim *claim = claim_of(claim_sync);
    const struct dv_api_resource_claim_consumer_reference *consumer =
        &claim->status.reserved_for[claim_sync->at];

    if (!control->options.is_held || !dv_control_is_pod(consumer) ||
        !control->options.is_held(control->options.ctx, consumer->uid))
        return false;
    dv_queue_add_after(&control->queues[DV_CONTROL_CLAIM_QUEUE], claim->metadata.namespace,
                       claim->metadata.name, HELD_LOOK_MS);
    return true;
}

static void on_pod(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct claim_sync *claim_sync = claim_sync_of(sync);
    size_t at = claim_sync->at;

    if (failure && failure->code != 404) {
        dv_control_sync_fail(sync, "look for a pod that a claim is reserved for", failure);
        return;
    }
    claim_sync->stays[at] =
        (!failure && dv_control_judge_consumer(&claim_of(claim_sync)->status.reserved_for[at],
                                               sync->request.object->value) == DV_CONSUMER_STAYS) ||
        is_held(claim_sync);
    claim_sync->at++;
    judge(claim_sync);
}

static void ask_for_pod(struct claim_sync *claim_sync, dv_str name)
{
    struct dv_control_sync *sync = &claim_sync->sync;

    sync->request = (struct dv_request){.verb = DV_VERB_GET,
                                        .kind = dv_kind(DV_KIND_POD),
                                        .namespace = claim_of(claim_sync)->metadata.namespace,
                                        .name = name};
    dv_control_sync_ask(sync, on_pod);
}

/* Finds out which of the pods that the claim is reserved for are still there. The view may be
 * behind, so a pod that it does not show is asked for from the server before its reservation is
 * removed. */
static void judge(struct claim_sync *claim_sync)
{
    const struct dv_api_resource_claim *claim = claim_of(claim_sync);
    const struct dv_control *control = claim_sync->sync.control;

    for (; claim_sync->at < claim->status.n_reserved_for; claim_sync->at++) {
        const struct dv_api_resource_claim_consumer_reference *consumer =
            &claim->status.reserved_for[claim_sync->at];
        enum dv_consumer verdict = dv_control_judge_consumer(
            consumer, dv_control_get_pod(control, claim->metadata.namespace, consumer->name));

        if (dv_control_is_pod(consumer) && dv_recent_has(&control->gone, consumer->uid))
            verdict = DV_CONSUMER_GONE;
        if (verdict == DV_CONSUMER_UNKNOWN) {
            ask_for_pod(claim_sync, consumer->name);
            return;
        }
        claim_sync->stays[claim_sync->at] = verdict == DV_CONSUMER_STAYS || is_held(claim_sync);
    }
    decide(claim_sync);
}

void dv_control_claim_sync_run(struct dv_queue_item *item)
{
    struct claim_sync *claim_sync = DV_CONTAINER(item, struct claim_sync, sync.item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_CLAIM_QUEUE]);
    struct dv_object *object =
        dv_control_get(control, DV_CONTROL_CLAIMS, item->namespace, item->name);

    if (!object) {
        dv_queue_finish(item);
        return;
    }
    dv_control_sync_begin(&claim_sync->sync, control, object);
    claim_sync->at = 0;
    claim_sync->is_waiting = false;
    claim_sync->stays =
        DV_NEW_ARRAY(claim_sync->sync.arena, bool, claim_of(claim_sync)->status.n_reserved_for);
    judge(claim_sync);
}
