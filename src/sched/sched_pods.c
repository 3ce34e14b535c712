/* sched_pods.c - the records of the pods that are ours to decide on, kept by the view of pods; and
 * what all pods, also those of others, take of their nodes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "sched/binding.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched.h"
#include "sched/sched_state.h"

/* A claim that is made from a template comes a moment after its pod. Only a pod that waits longer
 * than this says so, and only when no controller of ours is busy with it. */
#define GATED_SAY_MS 2000u
/* How long a pod that comes with a nomination waits before it sends others away. */
#define NOMINATED_MS 10000u
/* A pod with more claims is looked at in a turn of its own, and not for each of them that
 * changes. */
#define CLAIMS_PER_WAKE 64u

const struct dv_api_pod *dv_sched_pod_value(const struct dv_sched_pod *pod)
{
    return pod->object->value;
}

/* ---- which pods ---- */

static bool is_ours(const struct dv_sched *sched, const struct dv_api_pod *pod)
{
    dv_str name = pod->spec.scheduler_name;

    if (dv_str_eq(name, sched->name))
        return true;
    return !sched->options.is_second && (name.n == 0 || dv_str_eq(name, DV_STR(DV_SCHED_NAME)));
}

bool dv_sched_claim_name(const struct dv_map *statuses,
                         const struct dv_api_pod_resource_claim *entry, dv_str *name)
{
    const struct dv_api_pod_resource_claim_status *status;

    *name = entry->resource_claim_name;
    if (name->p)
        return true;
    status = dv_map_get(statuses, entry->name);
    if (status)
        *name = status->resource_claim_name;
    return status != NULL;
}

/* Whether claims of a pod that others have bound are not allocated. The reference leaves such a pod
 * waiting; here it gets devices on the node that it is on. */
static bool lacks_devices(struct dv_sched *sched, const struct dv_api_pod *pod)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};

    if (sched->options.is_strict)
        return false;
    dv_pod_index_claim_statuses(pod, &statuses);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_sched_claim *claim;
        dv_str name;

        if (!dv_sched_claim_name(&statuses, &pod->spec.resource_claims[i], &name))
            return true;
        if (name.n == 0)
            continue;
        claim = dv_map_get(&sched->claims, dv_sched_key(sched, pod->metadata.namespace, name));
        if (!claim || !claim->held_by)
            return true;
    }
    return false;
}

static bool is_wanted(struct dv_sched *sched, const struct dv_api_pod *pod)
{
    if (!is_ours(sched, pod) || dv_pod_is_terminal(pod) || pod->metadata.deletion_timestamp.is_set)
        return false;
    return pod->spec.node_name.n == 0 || lacks_devices(sched, pod);
}

/* ---- records ---- */

static struct dv_sched_pod *new_pod(struct dv_sched *sched, struct dv_object *object)
{
    const struct dv_api_pod *value = object->value;
    dv_str key = dv_sched_key(sched, object->meta->namespace, object->meta->name);
    struct dv_sched_pod *pod = dv_alloc(sizeof(*pod) + key.n);
    char *text = (char *)(pod + 1);

    memcpy(text, key.p, key.n);
    pod->sched = sched;
    pod->key = (dv_str){text, key.n};
    pod->object = dv_object_ref(object);
    pod->is_preset = value->spec.node_name.n > 0;
    pod->priority = value->spec.priority ? *value->spec.priority : 0;
    pod->order = sched->n_arrivals++;
    pod->seen_ns = dv_loop_now_ns(sched->loop);
    pod->state = DV_SCHED_POD_GATED;
    sched->n_pending[DV_SCHED_GATED]++;
    dv_map_set(&sched->pods, pod->key, pod);
    /* Victims were sent away for it before the scheduler was started: what they hold may be on its
     * way back. */
    if (value->status.nominated_node_name.n > 0 && !pod->is_preset) {
        dv_sched_nominate(pod, value->status.nominated_node_name);
        pod->releases_until_ms = dv_loop_now_ms(sched->loop) + NOMINATED_MS;
    }
    return pod;
}

static void drop_claims(struct dv_sched_pod *pod)
{
    for (size_t i = 0; i < pod->n_claims; i++) {
        dv_link_remove(&pod->claims[i].user);
        dv_sched_claim_drop(pod->claims[i].claim);
    }
    free(pod->claims);
    pod->claims = NULL;
    pod->n_claims = 0;
}

static void free_pod(struct dv_sched_pod *pod)
{
    dv_link_remove(&pod->wakes);
    drop_claims(pod);
    if (pod->extended.claim) {
        dv_link_remove(&pod->extended.user);
        dv_sched_claim_drop(pod->extended.claim);
    }
    dv_object_unref(pod->object);
    dv_object_unref(pod->assumed_as);
    dv_arena_free(pod->say_arena);
    free(pod->said);
    pod->sched->n_nominated -= dv_link_is_in(&pod->nominates);
    dv_link_remove(&pod->nominates);
    free(pod->nominated);
    free(pod);
}

void dv_sched_pod_release(struct dv_sched_pod *pod)
{
    if (pod->is_gone && !pod->binding && pod->n_writes == 0 && !pod->is_saying &&
        pod->n_evictions == 0)
        free_pod(pod);
}

void dv_sched_pod_forget(struct dv_sched_pod *pod)
{
    struct dv_sched *sched = pod->sched;

    if (pod->is_gone)
        return;
    pod->is_gone = true;
    dv_sched_unnominate(pod);
    dv_link_remove(&pod->wakes);
    dv_map_remove(&sched->pods, pod->key);
    dv_sched_unqueue(pod);
    dv_sched_crowd_leave(sched, pod);
    if (pod->state != DV_SCHED_POD_BINDING) {
        dv_sched_set_state(pod, DV_SCHED_POD_BOUND);
        dv_sched_pod_unassume(pod);
    }
    dv_sched_say_cancel(pod);
    if (pod->binding)
        dv_sched_binding_look(pod->binding);
    else
        dv_sched_pod_release(pod);
}

/* ---- claims ---- */

static bool is_owned(const struct dv_object *claim, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < claim->meta->n_owner_references; i++) {
        const struct dv_api_owner_reference *owner = &claim->meta->owner_references[i];

        if (owner->controller && *owner->controller && dv_str_eq(owner->uid, pod->metadata.uid))
            return true;
    }
    return false;
}

/* Adds a claim to those that the pod uses. One that several entries name is used once: found_mark
 * tells that it was met before. */
static const struct dv_sched_claim *add_claim(struct dv_sched_pod *pod, dv_str name)
{
    struct dv_sched_claim *claim =
        dv_sched_claim(pod->sched, dv_sched_pod_value(pod)->metadata.namespace, name);
    struct dv_sched_pod_claim *use;

    if (claim->found_mark == pod->sched->n_found)
        return claim;
    claim->found_mark = pod->sched->n_found;
    use = &pod->claims[pod->n_claims++];
    *use = (struct dv_sched_pod_claim){.pod = pod, .claim = claim};
    dv_list_push(&claim->users, &use->user);
    return claim;
}

/* False, with the reason in sched->why: the pod has to wait for this claim. */
static bool check_claim(struct dv_sched_pod *pod, const struct dv_api_pod_resource_claim *entry,
                        dv_str name, const struct dv_sched_claim *record)
{
    const struct dv_object *claim = record->object ? dv_object_unpack(record->object) : NULL;
    const struct dv_api_pod *value = dv_sched_pod_value(pod);
    struct dv_buf *why = &pod->sched->why;

    if (!claim)
        dv_buf_printf(why, "resourceclaim \"%.*s\" not found", DV_FMT(name));
    else if (claim->meta->deletion_timestamp.is_set)
        dv_buf_printf(why, "resourceclaim \"%.*s\" is being deleted", DV_FMT(name));
    else if (!entry->resource_claim_name.p && !is_owned(claim, value))
        dv_buf_printf(why, "resourceclaim \"%.*s\" was not created for pod \"%.*s\"", DV_FMT(name),
                      DV_FMT(pod->key));
    return why->n == 0;
}

static bool find_claims(struct dv_sched_pod *pod)
{
    const struct dv_api_pod *value = dv_sched_pod_value(pod);
    const struct dv_api_pod_spec *spec = &value->spec;
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    struct dv_buf *why = &pod->sched->why;
    bool is_ok = true;

    drop_claims(pod);
    pod->sched->n_found++;
    dv_buf_clear(why);
    if (spec->n_resource_claims == 0)
        return true;
    dv_pod_index_claim_statuses(value, &statuses);
    pod->claims = dv_alloc(spec->n_resource_claims * sizeof(pod->claims[0]));
    for (size_t i = 0; i < spec->n_resource_claims; i++) {
        const struct dv_api_pod_resource_claim *entry = &spec->resource_claims[i];
        dv_str name;

        if (!dv_sched_claim_name(&statuses, entry, &name)) {
            is_ok = false;
            if (why->n == 0)
                dv_buf_printf(why, "the resourceclaim for \"%.*s\" is not created yet",
                              DV_FMT(entry->name));
        } else if (name.n > 0) {
            const struct dv_sched_claim *claim = add_claim(pod, name);

            is_ok &= why->n > 0 || check_claim(pod, entry, name, claim);
        }
    }
    return is_ok && why->n == 0;
}

/* ---- queueing ---- */

static bool is_being_made(const struct dv_sched_pod *pod)
{
    const struct dv_sched_options *options = &pod->sched->options;
    const struct dv_api_object_meta *meta = pod->object->meta;

    return options->is_making_claims &&
           options->is_making_claims(options->ctx, meta->namespace, meta->name);
}

static void on_gated_long(struct dv_timer *timer)
{
    struct dv_sched_pod *pod = DV_CONTAINER(timer, struct dv_sched_pod, timer);
    struct dv_buf text;

    if (pod->is_preset || find_claims(pod))
        return;
    if (is_being_made(pod)) {
        dv_timer_start(&pod->timer, pod->sched->loop,
                       dv_loop_now_ms(pod->sched->loop) + GATED_SAY_MS, on_gated_long);
        return;
    }
    dv_buf_init(&text, 1024);
    dv_sched_summary(pod->sched->nodes.n, NULL, 0, dv_buf_str(&pod->sched->why), DV_STR_NONE,
                     &text);
    dv_sched_say(pod, "Unschedulable", dv_buf_str(&text));
    dv_buf_fini(&text);
}

static void gate(struct dv_sched_pod *pod, bool is_said)
{
    dv_sched_crowd_leave(pod->sched, pod);
    dv_sched_set_state(pod, DV_SCHED_POD_GATED);
    if (is_said && !pod->sched->options.is_strict)
        dv_timer_start(&pod->timer, pod->sched->loop,
                       dv_loop_now_ms(pod->sched->loop) + GATED_SAY_MS, on_gated_long);
}

/* Takes the pod out of the queue. False: what is under way for it goes on. */
static bool unqueue(struct dv_sched_pod *pod)
{
    if (pod->sched->n_unsynced > 0 || pod->binding || pod->n_writes > 0 ||
        pod->state == DV_SCHED_POD_BOUND)
        return false;
    dv_sched_unqueue(pod);
    if (pod->state == DV_SCHED_POD_ACTIVE)
        dv_sched_set_state(pod, DV_SCHED_POD_GATED);
    return true;
}

void dv_sched_pod_reconsider(struct dv_sched_pod *pod)
{
    if (!unqueue(pod))
        return;
    if (dv_sched_pod_value(pod)->spec.n_scheduling_gates > 0)
        gate(pod, false);
    else if (!find_claims(pod))
        gate(pod, true);
    else
        dv_sched_queue(pod);
}

void dv_sched_pod_woken(struct dv_sched_pod *pod)
{
    if (pod->binding)
        dv_sched_binding_look(pod->binding);
    else if (pod->is_preset && !is_wanted(pod->sched, dv_sched_pod_value(pod)))
        dv_sched_pod_forget(pod);
    else
        dv_sched_pod_reconsider(pod);
}

static void on_wake(struct dv_task *task)
{
    struct dv_sched *sched = DV_CONTAINER(task, struct dv_sched, wake);
    struct dv_list woken;
    struct dv_link *link;

    dv_list_init(&woken);
    dv_list_move_all(&woken, &sched->woken); /* those that are woken by this have to wait again */
    while ((link = dv_list_shift(&woken)) != NULL)
        dv_sched_pod_woken(DV_CONTAINER(link, struct dv_sched_pod, wakes));
}

static bool has_many_claims(const struct dv_sched_pod *pod)
{
    return dv_sched_pod_value(pod)->spec.n_resource_claims > CLAIMS_PER_WAKE;
}

static void wake_next_turn(struct dv_sched_pod *pod)
{
    if (!dv_link_is_in(&pod->wakes))
        dv_list_push(&pod->sched->woken, &pod->wakes);
    dv_task_post_next_turn(&pod->sched->wake, pod->sched->loop, on_wake);
}

void dv_sched_pod_woken_by_claim(struct dv_sched_pod *pod)
{
    if (has_many_claims(pod))
        wake_next_turn(pod);
    else
        dv_sched_pod_woken(pod);
}

/* Looks at a pod that is new or has changed. */
static void consider(struct dv_sched_pod *pod)
{
    if (!has_many_claims(pod))
        dv_sched_pod_reconsider(pod);
    else if (unqueue(pod))
        wake_next_turn(pod);
}

/* ---- room ---- */

void dv_sched_pod_assume(struct dv_sched_pod *pod, struct dv_sched_node *node)
{
    pod->assumed = node;
    pod->assumed_as = dv_object_ref(pod->object);
    dv_sched_node_take(pod->sched, node, &dv_sched_pod_value(pod)->spec);
    dv_sched_place(pod->sched, node, pod->object);
}

void dv_sched_pod_unassume(struct dv_sched_pod *pod)
{
    struct dv_sched_node *node = pod->assumed;
    struct dv_object *object = pod->assumed_as;

    if (!node)
        return;
    pod->assumed = NULL;
    pod->assumed_as = NULL;
    dv_sched_unplace(pod->sched, node, object);
    dv_sched_node_give_back(pod->sched, node, &((const struct dv_api_pod *)object->value)->spec);
    dv_object_unref(object);
}

static bool takes_room(const struct dv_object *object)
{
    const struct dv_api_pod *pod = object ? object->value : NULL;

    return pod && pod->spec.node_name.n > 0 && !dv_pod_is_terminal(pod);
}

static void give_back_room(struct dv_sched *sched, const struct dv_object *object)
{
    const struct dv_api_pod *pod = object->value;
    struct dv_sched_node *node = dv_sched_node(sched, pod->spec.node_name);

    dv_sched_node_give_back(sched, node, &pod->spec);
}

/* Whether the view now shows the pod where we have bound it. What the pod takes there is counted
 * since the decision, and must not be counted twice. */
static bool is_as_assumed(struct dv_sched_pod *pod, const struct dv_object *now)
{
    const struct dv_api_pod *value = now->value;

    if (!pod || !pod->assumed || !dv_str_eq(value->spec.node_name, pod->assumed->name))
        return false;
    pod->assumed = NULL;
    dv_object_unref(pod->assumed_as);
    pod->assumed_as = NULL;
    return true;
}

static void count_room(struct dv_sched *sched, struct dv_sched_pod *pod,
                       const struct dv_object *old, struct dv_object *now)
{
    bool was_on = takes_room(old);
    bool is_on = takes_room(now);

    if (is_on)
        dv_sched_place(
            sched, dv_sched_node(sched, ((const struct dv_api_pod *)now->value)->spec.node_name),
            now);
    else if (was_on)
        dv_sched_unplace(
            sched, dv_sched_node(sched, ((const struct dv_api_pod *)old->value)->spec.node_name),
            old);

    /* The generation changes with the spec: as long as it is the same, the pod takes the same room.
     * 0: a server that does not count generations of pods. */
    if (was_on && is_on && old->meta->generation == now->meta->generation &&
        now->meta->generation > 0)
        return;
    if (is_on && !(!was_on && is_as_assumed(pod, now))) {
        const struct dv_api_pod *value = now->value;

        dv_sched_node_take(sched, dv_sched_node(sched, value->spec.node_name), &value->spec);
    }
    if (was_on)
        give_back_room(sched, old);
    else if (is_on && pod)
        /* Another scheduler has bound it to another node than we had assumed. */
        dv_sched_pod_unassume(pod);
}

/* ---- the view ---- */

/* Whether the change could make a decision another one. Conditions cannot, and they change most
 * often: we write them ourselves. */
static bool means_something(const struct dv_object *old, const struct dv_object *now)
{
    const struct dv_api_pod *a = old->value;
    const struct dv_api_pod *b = now->value;
    struct dv_api_pod_status before = {
        .resource_claim_statuses = a->status.resource_claim_statuses,
        .n_resource_claim_statuses = a->status.n_resource_claim_statuses,
        .extended_resource_claim_status = a->status.extended_resource_claim_status};
    struct dv_api_pod_status after = {
        .resource_claim_statuses = b->status.resource_claim_statuses,
        .n_resource_claim_statuses = b->status.n_resource_claim_statuses,
        .extended_resource_claim_status = b->status.extended_resource_claim_status};

    return a->metadata.generation != b->metadata.generation || b->metadata.generation == 0 ||
           !dv_message_eq(&dv_message_pod_status, &before, &after) ||
           !dv_sched_are_labels_equal(&a->metadata, &b->metadata);
}

static void change_pod(struct dv_sched_pod *pod, struct dv_object *now)
{
    struct dv_object *old = pod->object;
    bool is_news = means_something(old, now);

    pod->object = dv_object_ref(now);
    if (pod->binding)
        dv_sched_binding_look(pod->binding);
    else if (!is_wanted(pod->sched, now->value))
        dv_sched_pod_forget(pod);
    else if (is_news)
        consider(pod);
    dv_object_unref(old);
}

void dv_sched_pod_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;
    struct dv_sched_pod *pod =
        dv_map_get(&sched->pods, dv_sched_key(sched, meta->namespace, meta->name));

    count_room(sched, pod, old, now);
    if (pod && (!now || !dv_str_eq(pod->object->meta->uid, meta->uid))) {
        dv_sched_pod_forget(pod);
        pod = NULL;
    }
    if (!now)
        return;
    if (pod)
        change_pod(pod, now);
    else if (is_wanted(sched, now->value))
        consider(new_pod(sched, now));
}

void dv_sched_pods_start(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->pods, &at));)
        dv_sched_pod_woken(entry->value); /* may remove this entry, which dv_map_next allows */
}

void dv_sched_pods_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->pods, &at));) {
        struct dv_sched_pod *pod = entry->value;

        dv_timer_cancel(&pod->timer);
        dv_link_remove(&pod->waits);
        free_pod(pod);
    }
    dv_map_fini(&sched->pods);
    dv_vec_fini(&sched->heap);
}
