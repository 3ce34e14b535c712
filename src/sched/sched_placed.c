/* sched_placed.c - the pods on nodes: those that the view shows there, and those that were decided
 * on. They are what others want near or apart (affinity), and what a pod of higher priority may
 * take the place of. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "affinity/affinity.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "sched/crowd.h"
#include "sched/placed.h"
#include "sched/sched_state.h"

/* ---- who waits for others ---- */

/* Wakes a pod of each crowd that waits because of other pods, when those have changed. */
static void on_relate(struct dv_task *task)
{
    struct dv_sched *sched = DV_CONTAINER(task, struct dv_sched, relate);
    struct dv_link *next;

    for (struct dv_link *link = sched->crowds_waiting.head.next;
         link != &sched->crowds_waiting.head; link = next) {
        struct dv_sched_crowd *crowd = DV_CONTAINER(link, struct dv_sched_crowd, waits);

        next = link->next; /* waking the last pod of a crowd takes the crowd out of the list */
        if (crowd->wants && dv_affinity_changed(crowd->wants) != crowd->wants_seen)
            dv_sched_crowd_improved(sched, crowd);
    }
}

void dv_sched_relations_changed(struct dv_sched *sched)
{
    if (sched->n_wanting > 0 && sched->n_unsynced == 0 && !sched->is_closing)
        dv_task_post_next_turn(&sched->relate, sched->loop, on_relate);
}

void dv_sched_namespace_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;

    dv_affinity_set_namespace(sched->affinity, meta->name, meta->labels, meta->n_labels,
                              now != NULL);
    dv_sched_relations_changed(sched);
}

/* ---- records ---- */

static struct dv_sched_placed *new_placed(struct dv_sched *sched, dv_str key)
{
    struct dv_sched_placed *placed = dv_slab_alloc(&sched->memory, sizeof(*placed) + key.n);
    char *at = placed->text;

    placed->key = dv_str_put(key, &at);
    dv_map_set(&sched->placed, placed->key, placed);
    return placed;
}

static void free_placed(struct dv_sched *sched, struct dv_sched_placed *placed)
{
    dv_slab_free(&sched->memory, placed, sizeof(*placed) + placed->key.n);
}

static void count_priority(struct dv_sched *sched, int64_t priority, bool is_more)
{
    size_t at = 0;

    sched->n_placings++;
    while (at < sched->priorities.n && sched->priorities.v[at].priority < priority)
        at++;
    if (at == sched->priorities.n || sched->priorities.v[at].priority != priority) {
        (void)dv_vec_add(&sched->priorities);
        memmove(&sched->priorities.v[at + 1], &sched->priorities.v[at],
                (sched->priorities.n - 1 - at) * sizeof(sched->priorities.v[0]));
        sched->priorities.v[at] = (struct dv_sched_priority){.priority = priority};
    }
    if (is_more)
        sched->priorities.v[at].n_pods++;
    else if (--sched->priorities.v[at].n_pods == 0)
        dv_vec_remove(&sched->priorities, at);
}

static void put(struct dv_sched *sched, struct dv_sched_placed *placed, struct dv_sched_node *node,
                struct dv_object *object)
{
    const struct dv_api_pod *value = object->value;

    placed->node = node;
    placed->object = dv_object_keep(object);
    placed->priority = value->spec.priority ? *value->spec.priority : 0;
    count_priority(sched, placed->priority, true);
    dv_affinity_add(sched->affinity, &node->near, &placed->pod, object);
}

static void take_away(struct dv_sched *sched, struct dv_sched_placed *placed)
{
    count_priority(sched, placed->priority, false);
    dv_affinity_remove(sched->affinity, &placed->pod);
    dv_object_unkeep(placed->object);
    placed->object = NULL;
}

bool dv_sched_are_labels_equal(const struct dv_api_object_meta *a,
                               const struct dv_api_object_meta *b)
{
    if (a->n_labels != b->n_labels)
        return false;
    for (size_t i = 0; i < a->n_labels; i++)
        if (!dv_str_eq(a->labels[i].key, b->labels[i].key) ||
            !dv_str_eq(a->labels[i].value, b->labels[i].value))
            return false;
    return true;
}

/* Whether others can see a difference between the two. */
static bool is_alike(const struct dv_sched_placed *placed, const struct dv_object *now)
{
    const struct dv_api_object_meta *old = dv_object_unpack(placed->object)->meta;
    const struct dv_api_object_meta *meta = now->meta;

    return placed->pod.is_terminating == meta->deletion_timestamp.is_set &&
           dv_sched_are_labels_equal(old, meta) && dv_str_eq(old->uid, meta->uid);
}

void dv_sched_place(struct dv_sched *sched, struct dv_sched_node *node, struct dv_object *object)
{
    dv_str key = dv_sched_key(sched, object->meta->namespace, object->meta->name);
    struct dv_sched_placed *placed = dv_map_get(&sched->placed, key);

    if (placed && placed->node == node && is_alike(placed, object)) {
        struct dv_object *old = placed->object;

        placed->object = dv_object_keep(object);
        placed->pod.object = object;
        dv_object_unkeep(old);
        return;
    }
    if (placed)
        take_away(sched, placed);
    else
        placed = new_placed(sched, key);
    put(sched, placed, node, object);
    dv_sched_relations_changed(sched);
}

void dv_sched_unplace(struct dv_sched *sched, const struct dv_sched_node *node,
                      const struct dv_object *object)
{
    dv_str key = dv_sched_key(sched, object->meta->namespace, object->meta->name);
    struct dv_sched_placed *placed = dv_map_get(&sched->placed, key);

    if (!placed || placed->node != node)
        return; /* it was shown on another node meanwhile */
    take_away(sched, placed);
    dv_map_remove(&sched->placed, placed->key);
    free_placed(sched, placed);
    dv_sched_relations_changed(sched);
    dv_sched_victim_is_gone(sched, node);
}

void dv_sched_placed_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->placed, &at));) {
        struct dv_sched_placed *placed = entry->value;

        take_away(sched, placed);
        free_placed(sched, placed);
    }
    dv_map_fini(&sched->placed);
    dv_vec_fini(&sched->priorities);
}
