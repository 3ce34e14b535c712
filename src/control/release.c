/* release.c - decides what becomes of a claim when pods that it is reserved for are gone. The
 * allocation goes with the last reservation, and the finalizer after it: while the finalizer is
 * there, the claim cannot vanish with devices that are in use. Used by claim_sync.c. */
#include "control/release.h"

#include <stddef.h>

#include "base/arena.h"
#include "control/uses.h"
#include "resource/resource.h"

enum dv_consumer
dv_control_judge_consumer(const struct dv_api_resource_claim_consumer_reference *consumer,
                          const struct dv_api_pod *pod)
{
    if (!dv_control_is_pod(consumer))
        return DV_CONSUMER_STAYS;
    if (!pod)
        return DV_CONSUMER_UNKNOWN;
    if (!dv_str_eq(pod->metadata.uid, consumer->uid) || dv_control_pod_is_done(pod))
        return DV_CONSUMER_GONE;
    return DV_CONSUMER_STAYS;
}

static struct dv_api_resource_claim *keep(const struct dv_api_resource_claim *claim,
                                          const bool *stays, size_t n_stay, struct dv_arena *arena)
{
    struct dv_api_resource_claim *copy = DV_NEW(arena, struct dv_api_resource_claim);
    struct dv_api_resource_claim_consumer_reference *left =
        DV_NEW_ARRAY(arena, struct dv_api_resource_claim_consumer_reference, n_stay);
    size_t n = 0;

    *copy = *claim;
    for (size_t i = 0; i < claim->status.n_reserved_for; i++)
        if (stays[i])
            left[n++] = claim->status.reserved_for[i];
    copy->status.reserved_for = n > 0 ? left : NULL;
    copy->status.n_reserved_for = n;
    return copy;
}

void dv_control_plan_release(const struct dv_api_resource_claim *claim, const bool *stays,
                             struct dv_arena *arena, struct dv_release *release)
{
    bool has_finalizer = dv_meta_has_finalizer(&claim->metadata, DV_STR(DV_CLAIM_FINALIZER));
    bool is_deleting = claim->metadata.deletion_timestamp.is_set;
    size_t n = claim->status.n_reserved_for;
    size_t n_stay = 0;

    for (size_t i = 0; i < n; i++)
        n_stay += stays[i];
    *release = (struct dv_release){.is_unused = n_stay == 0};
    if (n_stay < n) {
        release->status = keep(claim, stays, n_stay, arena);
        release->removes_finalizer = has_finalizer;
        if (n_stay == 0 && has_finalizer)
            release->status->status.allocation = NULL;
        return;
    }
    if (!has_finalizer || n > 0)
        return;
    if (is_deleting) {
        release->removes_finalizer = true;
        if (claim->status.allocation) {
            release->status = keep(claim, stays, 0, arena);
            release->status->status.allocation = NULL;
        }
    } else {
        release->is_leftover = !claim->status.allocation;
    }
}

struct dv_api_resource_claim *
dv_control_without_finalizer(const struct dv_api_resource_claim *claim, struct dv_arena *arena)
{
    struct dv_api_resource_claim *copy = DV_NEW(arena, struct dv_api_resource_claim);
    dv_str *left = DV_NEW_ARRAY(arena, dv_str, claim->metadata.n_finalizers);
    size_t n = 0;

    *copy = *claim;
    for (size_t i = 0; i < claim->metadata.n_finalizers; i++)
        if (!dv_str_eq(claim->metadata.finalizers[i], DV_STR(DV_CLAIM_FINALIZER)))
            left[n++] = claim->metadata.finalizers[i];
    copy->metadata.finalizers = n > 0 ? left : NULL;
    copy->metadata.n_finalizers = n;
    return copy;
}

bool dv_control_is_garbage(const struct dv_api_resource_claim *claim, dv_str owner_uid,
                           const struct dv_api_pod *pod)
{
    return !claim->metadata.deletion_timestamp.is_set && pod &&
           (!dv_str_eq(pod->metadata.uid, owner_uid) || dv_control_pod_is_done(pod));
}
