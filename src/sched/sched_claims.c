/* sched_claims.c - claims as they are, or as they are about to be, and the devices that they hold.
 *
 * A claim's record is there while the claim is, or while a pod waits for it. Its newest state comes
 * from the view or from the answer to a write; what the view tells later and is older changes
 * nothing. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "sched/sched_state.h"

const struct dv_api_resource_claim *dv_sched_claim_value(const struct dv_sched_claim *claim)
{
    return claim->object ? dv_object_unpack(claim->object)->value : NULL;
}

/* ---- devices that are held alone ---- */

static void add_taken(struct dv_sched_claim *claim,
                      const struct dv_api_device_request_allocation_result *result)
{
    struct dv_sched *sched = claim->sched;
    size_t n = result->driver.n + result->pool.n + result->device.n + 2;
    struct dv_sched_taken *taken = dv_slab_alloc(&sched->memory, sizeof(*taken) + n);
    char *text = (char *)(taken + 1);
    char *at = text;
    struct dv_sched_taken *first;

    /* Only the pool may have slashes in its name, so the three parts cannot be mistaken for
     * others. */
    (void)dv_str_put(result->driver, &at);
    (void)dv_str_put(DV_STR("/"), &at);
    (void)dv_str_put(result->pool, &at);
    (void)dv_str_put(DV_STR("/"), &at);
    (void)dv_str_put(result->device, &at);
    taken->key = (dv_str){text, n};
    taken->claim = claim;
    taken->next_of_claim = claim->taken;
    claim->taken = taken;
    first = dv_map_get(&sched->taken, taken->key);
    if (!first) {
        dv_map_set(&sched->taken, taken->key, taken);
        return;
    }
    taken->rival = first->rival;
    first->rival = taken;
}

static void free_taken(struct dv_sched *sched, struct dv_sched_taken *taken)
{
    dv_slab_free(&sched->memory, taken, sizeof(*taken) + taken->key.n);
}

static void remove_taken(struct dv_sched *sched, struct dv_sched_taken *taken)
{
    struct dv_sched_taken *first = dv_map_get(&sched->taken, taken->key);
    struct dv_sched_taken **place = &first;

    if (first == taken) {
        if (taken->rival)
            dv_map_set(&sched->taken, taken->rival->key, taken->rival);
        else
            dv_map_remove(&sched->taken, taken->key);
        return;
    }
    while (*place != taken)
        place = &(*place)->rival;
    *place = taken->rival;
}

bool dv_sched_claim_is_rivalled(const struct dv_sched_claim *claim)
{
    const struct dv_sched *sched = claim->sched;

    for (const struct dv_sched_taken *mine = claim->taken; mine; mine = mine->next_of_claim)
        for (const struct dv_sched_taken *other = dv_map_get(&sched->taken, mine->key); other;
             other = other->rival)
            if (other->claim != claim && other->claim->held_by &&
                other->claim->held_since < claim->held_since)
                return true;
    return false;
}

/* ---- holding ---- */

static void hold(struct dv_sched_claim *claim, const struct dv_api_allocation_result *allocation)
{
    dv_inventory_hold(claim->sched->inventory, allocation, claim->key);
    for (size_t i = 0; i < allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &allocation->devices.results[i];

        /* Admin access and shares of a device are given to several claims at a time by design: for
         * them a second holder is no conflict. */
        if (!(result->admin_access && *result->admin_access) && result->share_id.n == 0)
            add_taken(claim, result);
    }
}

static void release(struct dv_sched_claim *claim, const struct dv_api_allocation_result *allocation)
{
    struct dv_sched *sched = claim->sched;

    while (claim->taken) {
        struct dv_sched_taken *taken = claim->taken;

        claim->taken = taken->next_of_claim;
        remove_taken(sched, taken);
        free_taken(sched, taken);
    }
    dv_inventory_release(sched->inventory, allocation);
    for (size_t i = 0; i < allocation->devices.n_results; i++)
        dv_sched_pool_improved(sched, allocation->devices.results[i].driver,
                               allocation->devices.results[i].pool);
}

static const struct dv_api_allocation_result *allocation_of(struct dv_object *object)
{
    const struct dv_api_resource_claim *claim = object ? dv_object_unpack(object)->value : NULL;

    return claim ? claim->status.allocation : NULL;
}

static bool are_devices_equal(const struct dv_api_allocation_result *a,
                              const struct dv_api_allocation_result *b)
{
    return dv_message_eq(&dv_message_device_allocation_result, &a->devices, &b->devices);
}

static void unassume(struct dv_sched_claim *claim)
{
    const struct dv_api_allocation_result *allocation = claim->assumed;

    claim->assumed = NULL;
    claim->assumed_by = NULL;
    claim->sched->n_in_flight--;
    release(claim, allocation);
}

/* An allocation has appeared in a claim for which we had decided on one. When it has our devices,
 * the decision is now a fact; when it has others, another scheduler was first and the pod has lost
 * the claim. */
static void settle_assumed(struct dv_sched_claim *claim, const struct dv_api_allocation_result *now)
{
    struct dv_sched_pod_claim *use = claim->assumed_by;

    if (!claim->assumed || !now)
        return;
    if (!are_devices_equal(claim->assumed, now)) {
        use->is_lost = true;
        unassume(claim); /* its users are told when the view shows the other's allocation */
        return;
    }
    use->is_allocated = true;
    claim->assumed = NULL;
    claim->assumed_by = NULL;
    claim->sched->n_in_flight--;
    claim->held_by = dv_object_keep(claim->object);
    claim->held_since = claim->object->version;
}

static void hold_again(struct dv_sched_claim *claim)
{
    const struct dv_api_allocation_result *now = allocation_of(claim->object);
    const struct dv_api_allocation_result *old = allocation_of(claim->held_by);

    settle_assumed(claim, now);
    if (old && now && are_devices_equal(old, now)) {
        dv_object_unkeep(claim->held_by);
        claim->held_by = dv_object_keep(claim->object);
        return;
    }
    if (old) {
        struct dv_object *held_by = claim->held_by;

        claim->held_by = NULL;
        release(claim, old);
        dv_object_unkeep(held_by);
    }
    if (now && !claim->held_by) {
        claim->held_by = dv_object_keep(claim->object);
        claim->held_since = claim->object->version;
        hold(claim, now);
    }
}

void dv_sched_claim_assume(struct dv_sched_pod_claim *use,
                           const struct dv_api_allocation_result *allocation)
{
    struct dv_sched_claim *claim = use->claim;

    use->is_lost = false;
    claim->assumed = allocation;
    claim->assumed_by = use;
    claim->sched->n_in_flight++;
    hold(claim, allocation);
}

/* Wakes each user once. A pod that looks again leaves the list and may come back at its end, so the
 * list is walked by its length at the beginning and not until it is empty. */
static void tell_users(struct dv_sched_claim *claim)
{
    size_t n = 0;
    struct dv_link *link;

    DV_LIST_EACH (&claim->users, link)
        n++;
    for (; n > 0 && (link = dv_list_shift(&claim->users)); n--) {
        dv_list_push(&claim->users, link);
        dv_sched_pod_woken_by_claim(DV_CONTAINER(link, struct dv_sched_pod_claim, user)->pod);
    }
}

void dv_sched_claim_unassume(struct dv_sched_claim *claim)
{
    if (!claim->assumed)
        return;
    unassume(claim);
    /* Pods that share the claim wait until it is allocated (sched_check.c). When nothing of the
     * decision was written, no change of the claim would tell them that it is not. */
    if (!claim->sched->is_closing)
        tell_users(claim);
}

/* ---- records ---- */

struct dv_sched_claim *dv_sched_claim(struct dv_sched *sched, dv_str namespace, dv_str name)
{
    dv_str key = dv_sched_key(sched, namespace, name);
    struct dv_sched_claim *claim = dv_map_get(&sched->claims, key);
    char *text;

    if (claim)
        return claim;
    claim = dv_slab_alloc(&sched->memory, sizeof(*claim) + key.n);
    text = (char *)(claim + 1);
    memcpy(text, key.p, key.n);
    claim->sched = sched;
    claim->key = (dv_str){text, key.n};
    dv_list_init(&claim->users);
    dv_list_init(&claim->wanted);
    dv_map_set(&sched->claims, claim->key, claim);
    return claim;
}

static void free_claim(struct dv_sched_claim *claim)
{
    dv_object_unkeep(claim->object);
    dv_object_unkeep(claim->held_by);
    dv_sched_writer_free(claim->writer);
    free(claim->extended_text);
    while (claim->taken) {
        struct dv_sched_taken *taken = claim->taken;

        claim->taken = taken->next_of_claim;
        free_taken(claim->sched, taken);
    }
    dv_slab_free(&claim->sched->memory, claim, sizeof(*claim) + claim->key.n);
}

void dv_sched_claim_drop(struct dv_sched_claim *claim)
{
    if (claim->sched->is_closing || claim->is_told || claim->object || claim->assumed ||
        claim->step != DV_SCHED_CLAIM_IDLE || !dv_list_is_empty(&claim->users) ||
        !dv_list_is_empty(&claim->wanted))
        return;
    dv_map_remove(&claim->sched->claims, claim->key);
    free_claim(claim);
}

void dv_sched_claims_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->claims, &at));)
        free_claim(entry->value);
    dv_map_fini(&sched->claims);
    dv_map_fini(&sched->taken);
    dv_map_fini(&sched->extended);
}

/* ---- claims for extended resources ---- */

static dv_str extended_for(const struct dv_object *object)
{
    const struct dv_api_object_meta *meta = object->meta;
    const struct dv_str_entry *mark =
        dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_CLAIM_EXTENDED_ANNOTATION));

    if (!mark || !dv_str_eq(mark->value, DV_STR("true")))
        return DV_STR_NONE;
    for (size_t i = 0; i < meta->n_owner_references; i++) {
        const struct dv_api_owner_reference *owner = &meta->owner_references[i];

        if (owner->controller && *owner->controller && dv_str_eq(owner->kind, DV_STR("Pod")))
            return owner->uid;
    }
    return DV_STR_NONE;
}

/* Wakes the pod that owned the claim: it waits until a claim which an earlier attempt left over is
 * gone (dv_sched_attempt_clear). */
static void wake_owner(struct dv_sched_claim *claim, const struct dv_object *object)
{
    const struct dv_api_object_meta *meta = object->meta;
    struct dv_sched *sched = claim->sched;

    for (size_t i = 0; i < meta->n_owner_references; i++) {
        struct dv_sched_pod *pod = dv_map_get(
            &sched->pods, dv_sched_key(sched, meta->namespace, meta->owner_references[i].name));

        if (pod)
            dv_sched_pod_woken(pod);
    }
}

static void unindex_extended(struct dv_sched_claim *claim)
{
    struct dv_sched *sched = claim->sched;
    struct dv_sched_claim *first = dv_map_get(&sched->extended, claim->extended_for);
    struct dv_sched_claim **place = &first;

    while (*place != claim)
        place = &(*place)->next_extended;
    *place = claim->next_extended;
    claim->next_extended = NULL;
    if (first)
        dv_map_set(&sched->extended, first->extended_for, first);
    else
        dv_map_remove(&sched->extended, claim->extended_for);
    free(claim->extended_text);
    claim->extended_text = NULL;
}

static void index_extended(struct dv_sched_claim *claim)
{
    struct dv_sched *sched = claim->sched;
    dv_str uid;

    if (claim->extended_for.n > 0)
        unindex_extended(claim);
    uid = claim->object ? extended_for(dv_object_unpack(claim->object)) : DV_STR_NONE;
    claim->extended_for = DV_STR_NONE;
    if (uid.n > 0) {
        claim->extended_text = dv_alloc(uid.n);
        memcpy(claim->extended_text, uid.p, uid.n);
        claim->extended_for = (dv_str){claim->extended_text, uid.n};
        claim->next_extended = dv_map_get(&sched->extended, claim->extended_for);
        dv_map_set(&sched->extended, claim->extended_for, claim);
    }
}

/* ---- what is told ---- */

void dv_sched_claim_learn(struct dv_sched_claim *claim, struct dv_object *object)
{
    struct dv_object *old = claim->object;

    /* The answer to our own write often comes before the view tells it: the view is then behind
     * what is known. */
    if (old && object->version <= old->version)
        return;
    claim->object = dv_object_keep(object);
    index_extended(claim);
    dv_object_unkeep(old);
    hold_again(claim);
}

/* Whether pods that use the claim should look at it again. A finalizer that comes or goes is mostly
 * our own doing and decides nothing. */
static bool means_something(const struct dv_object *old, const struct dv_object *now)
{
    const struct dv_api_resource_claim *before = old ? old->value : NULL;
    const struct dv_api_resource_claim *after = now ? now->value : NULL;

    if (!before || !after)
        return true;
    return before->metadata.deletion_timestamp.is_set !=
               after->metadata.deletion_timestamp.is_set ||
           !dv_str_eq(before->metadata.uid, after->metadata.uid) ||
           !dv_message_eq(&dv_message_resource_claim_status, &before->status, &after->status);
}

static void forget(struct dv_sched_claim *claim, const struct dv_object *old)
{
    struct dv_object *object = claim->object;

    if (!object || !dv_str_eq(dv_object_names(object).uid, old->meta->uid))
        return;
    claim->object = NULL;
    index_extended(claim);
    hold_again(claim);
    dv_object_unkeep(object);
}

void dv_sched_claim_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;
    struct dv_sched_claim *claim = dv_sched_claim(sched, meta->namespace, meta->name);
    bool is_news = means_something(old, now);
    bool was_extended = claim->extended_for.n > 0;

    claim->is_told = true;
    claim->shown = (now ? now : old)->version;
    /* When the API went back to a backup, what it has now counts, not what was newer before. */
    if (!now || (old && now->version <= old->version))
        forget(claim, old);
    if (now)
        dv_sched_claim_learn(claim, now);
    if (sched->n_unsynced == 0) {
        if (was_extended && !now)
            wake_owner(claim, old);
        if (is_news)
            tell_users(claim);
    }
    claim->is_told = false;
    dv_sched_claim_drop(claim);
}
