/* evict.c - judges claims by the taints of their devices, and pods by their claims: who has to go,
 * and when. Changes only mark what they may concern; judging follows in portions, so that a rule
 * that selects ten thousand claims does not hold up the loop. The flow is drawn in evictor.h. */
#include "control/evict.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "control/control_index.h"
#include "control/controllers.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "control/uses.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/references.h"
#include "resource/resource.h"

/* How many pods that were evicted are remembered, as in the reference. */
#define EVICTED_MAX 500u
/* How many judgements are made in one turn of the loop: about a millisecond. */
#define JUDGED_PER_TURN 256u

struct dirty_pod {
    struct dv_link link;
    dv_str key;
};

static void on_task(struct dv_task *task);

/* ---- life ---- */

struct dv_evictor *dv_evictor_new(struct dv_control *control)
{
    struct dv_evictor *evictor = DV_ALLOC(struct dv_evictor);

    evictor->control = control;
    dv_map_init(&evictor->claims);
    dv_slabs_init(&evictor->memory);
    dv_list_init(&evictor->dirty_claims);
    dv_map_init(&evictor->dirty_pods);
    dv_list_init(&evictor->dirty_order);
    dv_map_init(&evictor->doomed);
    dv_map_init(&evictor->rules);
    dv_map_init(&evictor->rule_uids);
    dv_map_init(&evictor->pools);
    dv_map_init(&evictor->slices);
    dv_index_init(&evictor->claims_by_pool);
    dv_index_init(&evictor->rules_by_word);
    dv_index_init(&evictor->doomed_by_rule);
    dv_recent_init(&evictor->evicted, EVICTED_MAX);
    return evictor;
}

const struct dv_api_resource_claim *dv_used_claim_value(const struct dv_used_claim *used)
{
    return dv_object_unpack(used->object)->value;
}

static void free_claim(struct dv_evictor *evictor, struct dv_used_claim *claim)
{
    dv_link_remove(&claim->dirty);
    dv_object_unkeep(claim->object);
    dv_arena_free(claim->arena);
    dv_slab_free(&evictor->memory, claim, sizeof(*claim) + claim->key.n);
}

void dv_evictor_free(struct dv_evictor *evictor)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    if (!evictor)
        return;
    dv_task_cancel(&evictor->task);
    while ((entry = dv_map_next(&evictor->claims, &at)) != NULL)
        free_claim(evictor, entry->value);
    for (at = 0; (entry = dv_map_next(&evictor->doomed, &at)) != NULL;)
        dv_doom_free(entry->value);
    for (at = 0; (entry = dv_map_next(&evictor->dirty_pods, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&evictor->claims);
    dv_slabs_fini(&evictor->memory);
    dv_map_fini(&evictor->doomed);
    dv_map_fini(&evictor->dirty_pods);
    dv_rules_fini(evictor);
    dv_pools_fini(evictor);
    dv_index_fini(&evictor->claims_by_pool);
    dv_index_fini(&evictor->rules_by_word);
    dv_index_fini(&evictor->doomed_by_rule);
    dv_recent_fini(&evictor->evicted);
    free(evictor);
}

bool dv_evictor_is_judging(const struct dv_evictor *evictor)
{
    return !dv_list_is_empty(&evictor->dirty_claims) || evictor->dirty_pods.n > 0;
}

static void wake(struct dv_evictor *evictor)
{
    if (evictor->is_started && dv_evictor_is_judging(evictor))
        dv_task_post(&evictor->task, evictor->control->loop, on_task);
}

void dv_evictor_start(struct dv_evictor *evictor)
{
    evictor->is_started = true;
    wake(evictor);
}

size_t dv_evictor_n_pending(const struct dv_evictor *evictor)
{
    return evictor->doomed.n;
}

/* ---- marking ---- */

static void mark_claim(struct dv_evictor *evictor, struct dv_used_claim *claim)
{
    if (!dv_link_is_in(&claim->dirty))
        dv_list_push(&evictor->dirty_claims, &claim->dirty);
    wake(evictor);
}

void dv_evictor_each_claim(const struct dv_evictor *evictor,
                           const struct dv_api_device_taint_selector *selector,
                           void (*each)(void *ctx, struct dv_used_claim *claim), void *ctx)
{
    const struct dv_map_entry *entry;
    const struct dv_list *refs;
    struct dv_link *link;
    size_t at = 0;

    if (!selector)
        return;
    if (!selector->pool.p) {
        while ((entry = dv_map_next(&evictor->claims, &at)) != NULL)
            each(ctx, entry->value);
        return;
    }
    refs = dv_index_find(&evictor->claims_by_pool, selector->pool);
    if (!refs)
        return;
    DV_LIST_EACH (refs, link)
        each(ctx, dv_map_get(&evictor->claims, dv_index_thing(link)));
}

static void mark_found(void *ctx, struct dv_used_claim *claim)
{
    mark_claim(ctx, claim);
}

void dv_evictor_mark_claims(struct dv_evictor *evictor,
                            const struct dv_api_device_taint_selector *selector)
{
    dv_evictor_each_claim(evictor, selector, mark_found, evictor);
}

static void mark_pod(struct dv_evictor *evictor, dv_str key)
{
    struct dirty_pod *dirty;

    if (dv_map_get(&evictor->dirty_pods, key))
        return;
    dirty = dv_alloc(sizeof(*dirty) + key.n);
    memcpy(dirty + 1, key.p, key.n);
    dirty->key = (dv_str){(const char *)(dirty + 1), key.n};
    dv_list_push(&evictor->dirty_order, &dirty->link);
    (void)dv_map_set(&evictor->dirty_pods, dirty->key, dirty); /* looked up above: there was none */
    wake(evictor);
}

static void mark_pods_of(struct dv_evictor *evictor, dv_str claim_key)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_list *refs = dv_index_find(
        &evictor->control->pods, dv_str_printf(scratch, "claim %.*s", DV_FMT(claim_key)));
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link)
        mark_pod(evictor, dv_index_thing(link));
}

/* ---- changes ---- */

static bool has_same_statuses(const struct dv_api_pod_status *a, const struct dv_api_pod_status *b)
{
    if (a->n_resource_claim_statuses != b->n_resource_claim_statuses)
        return false;
    for (size_t i = 0; i < a->n_resource_claim_statuses; i++)
        if (!dv_message_eq(&dv_message_pod_resource_claim_status, &a->resource_claim_statuses[i],
                           &b->resource_claim_statuses[i]))
            return false;
    return true;
}

void dv_evictor_pod_changed(struct dv_evictor *evictor, dv_str key, const struct dv_api_pod *old,
                            const struct dv_api_pod *now)
{
    if (old && now && dv_str_eq(old->metadata.uid, now->metadata.uid) &&
        dv_str_eq(old->spec.node_name, now->spec.node_name) &&
        old->metadata.deletion_timestamp.is_set == now->metadata.deletion_timestamp.is_set &&
        has_same_statuses(&old->status, &now->status))
        return;
    mark_pod(evictor, key);
}

static void index_claim(struct dv_evictor *evictor, const struct dv_used_claim *used)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_resource_claim *claim = dv_used_claim_value(used);
    const struct dv_api_device_allocation_result *devices = &claim->status.allocation->devices;
    dv_str *pools = DV_NEW_ARRAY(scratch, dv_str, devices->n_results);

    for (size_t i = 0; i < devices->n_results; i++)
        pools[i] = devices->results[i].pool;
    dv_index_set(&evictor->claims_by_pool, used->key, pools, devices->n_results);
}

static void forget_claim(struct dv_evictor *evictor, struct dv_used_claim *used)
{
    if (used->eviction.is_set)
        mark_pods_of(evictor, used->key);
    dv_index_set(&evictor->claims_by_pool, used->key, NULL, 0);
    (void)dv_map_remove(&evictor->claims, used->key);
    free_claim(evictor, used);
}

static struct dv_used_claim *new_claim(struct dv_evictor *evictor, dv_str key)
{
    struct dv_used_claim *used = dv_slab_alloc(&evictor->memory, sizeof(*used) + key.n);

    memcpy(used + 1, key.p, key.n);
    used->key = (dv_str){(const char *)(used + 1), key.n};
    (void)dv_map_set(&evictor->claims, used->key, used); /* looked up above: there was none */
    return used;
}

/* Whether two versions of a claim hold the same devices for the same pods: then nothing has to be
 * judged. */
static bool is_same_use(struct dv_object *a, const struct dv_object *b)
{
    const struct dv_api_resource_claim *x = dv_object_unpack(a)->value;
    const struct dv_api_resource_claim *y = b->value;

    if (!dv_str_eq(a->meta->uid, b->meta->uid) ||
        x->status.n_reserved_for != y->status.n_reserved_for ||
        !dv_message_eq(&dv_message_allocation_result, x->status.allocation, y->status.allocation))
        return false;
    for (size_t i = 0; i < x->status.n_reserved_for; i++)
        if (!dv_str_eq(x->status.reserved_for[i].uid, y->status.reserved_for[i].uid))
            return false;
    return true;
}

void dv_evictor_claim_changed(struct dv_evictor *evictor, dv_str key, struct dv_object *now)
{
    struct dv_used_claim *used = dv_map_get(&evictor->claims, key);
    const struct dv_api_resource_claim *claim = now ? now->value : NULL;
    struct dv_object *old;

    if (!claim || !claim->status.allocation) {
        if (used)
            forget_claim(evictor, used);
        return;
    }
    if (!used)
        used = new_claim(evictor, key);
    old = used->object;
    used->object = dv_object_keep(now);
    if (!old || !is_same_use(old, now)) {
        used->is_changed = true;
        index_claim(evictor, used);
        mark_claim(evictor, used);
    }
    dv_object_unkeep(old);
}

/* ---- judging ---- */

static void copy_eviction(struct dv_used_claim *used, const struct dv_eviction *eviction)
{
    dv_arena_free(used->arena);
    used->arena = NULL;
    used->eviction = *eviction;
    if (eviction->n_rules == 0)
        return;
    used->arena = dv_arena_new();
    used->eviction.rules = DV_NEW_ARRAY(used->arena, dv_str, eviction->n_rules);
    for (size_t i = 0; i < eviction->n_rules; i++)
        used->eviction.rules[i] = dv_str_copy(eviction->rules[i], used->arena);
}

static void judge_claim(struct dv_evictor *evictor, struct dv_used_claim *used)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_resource_claim *claim = dv_used_claim_value(used);
    const struct dv_api_device_allocation_result *devices = &claim->status.allocation->devices;
    struct dv_eviction eviction = {0};
    bool matters = used->eviction.is_set;

    for (size_t i = 0; i < devices->n_results; i++) {
        dv_pools_apply(evictor, &devices->results[i], scratch, &eviction);
        dv_rules_apply(evictor, &devices->results[i], scratch, &eviction);
    }
    matters = (matters || eviction.is_set) &&
              (used->is_changed || !dv_eviction_eq(&used->eviction, &eviction));
    used->is_changed = false;
    copy_eviction(used, &eviction);
    if (matters)
        mark_pods_of(evictor, used->key);
}

/* Whether the pod has to go with the claim, which an entry of it uses in this way. */
static bool goes_with(const struct dv_api_pod *pod, const struct dv_used_claim *used,
                      enum dv_use use)
{
    const struct dv_api_resource_claim *claim = dv_used_claim_value(used);

    return pod->spec.node_name.n > 0 && !pod->metadata.deletion_timestamp.is_set &&
           dv_claim_is_reserved_for(claim, pod->metadata.uid) &&
           (use == DV_USE_NAMED || (use == DV_USE_GENERATED &&
                                    dv_control_is_owned_by(&claim->metadata, pod->metadata.uid)));
}

bool dv_evictor_is_user(const struct dv_api_pod *pod, const struct dv_used_claim *used)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        dv_str name = DV_STR_NONE;
        enum dv_use use = dv_control_use(&statuses, &pod->spec.resource_claims[i], &name);

        if (dv_str_eq(name, dv_object_names(used->object).name) && goes_with(pod, used, use))
            return true;
    }
    return false;
}

static void judge_pod(struct dv_evictor *evictor, dv_str key)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    struct dv_eviction eviction = {0};
    const struct dv_api_pod *pod;
    dv_str namespace;
    dv_str name;

    dv_control_split(key, &namespace, &name);
    pod = dv_control_get_pod(evictor->control, namespace, name);
    if (pod)
        dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; pod && i < pod->spec.n_resource_claims; i++) {
        const struct dv_used_claim *used;
        /* An entry without a claim leaves an empty name, under which there is no claim. */
        dv_str claim = DV_STR_NONE;
        enum dv_use use = dv_control_use(&statuses, &pod->spec.resource_claims[i], &claim);

        used =
            dv_map_get(&evictor->claims,
                       dv_str_concat((const dv_str[]){namespace, DV_STR("/"), claim}, 3, scratch));
        if (used && goes_with(pod, used, use))
            dv_eviction_merge(&eviction, &used->eviction, scratch);
    }
    if (pod && dv_recent_has(&evictor->evicted, pod->metadata.uid))
        eviction.is_set = false;
    dv_doom_set(evictor, key, pod, &eviction);
}

/* Makes the next judgement. Claims come first, because a pod is judged by the results of its
 * claims. False: nothing is left to judge. */
static bool judge_next(struct dv_evictor *evictor)
{
    struct dv_link *link = dv_list_shift(&evictor->dirty_claims);
    struct dirty_pod *dirty;

    if (link) {
        judge_claim(evictor, DV_CONTAINER(link, struct dv_used_claim, dirty));
        return true;
    }
    link = dv_list_shift(&evictor->dirty_order);
    if (!link)
        return false;
    dirty = DV_CONTAINER(link, struct dirty_pod, link);
    (void)dv_map_remove(&evictor->dirty_pods, dirty->key);
    judge_pod(evictor, dirty->key);
    free(dirty);
    return true;
}

static void on_task(struct dv_task *task)
{
    struct dv_evictor *evictor = DV_CONTAINER(task, struct dv_evictor, task);
    size_t n = 0;

    while (n++ < JUDGED_PER_TURN && judge_next(evictor))
        ;
    wake(evictor);
    if (!dv_evictor_is_judging(evictor))
        dv_rules_judged(evictor);
}
