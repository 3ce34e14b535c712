/* sched_nodes.c - the records of nodes: what each has, what of it is taken by pods, and when it
 * last got better for somebody. A record exists also for a node that is not there as long as pods
 * are on it: the node may come back, and they still take its room. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/affinity.h"
#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched_state.h"

struct dv_sched_node *dv_sched_node(struct dv_sched *sched, dv_str name)
{
    struct dv_sched_node *node = dv_map_get(&sched->nodes_by_name, name);
    char *text;

    if (node)
        return node;
    node = dv_alloc(sizeof(*node) + name.n);
    text = (char *)(node + 1);
    if (name.n > 0)
        memcpy(text, name.p, name.n);
    node->name = (dv_str){text, name.n};
    dv_map_set(&sched->nodes_by_name, node->name, node);
    return node;
}

static void free_node(struct dv_sched_node *node)
{
    dv_object_unref(node->object);
    dv_sched_room_fini(&node->room);
    dv_affinity_node_fini(&node->near);
    free(node);
}

static void drop_node(struct dv_sched *sched, struct dv_sched_node *node)
{
    if (node->object || node->n_pods > 0)
        return;
    dv_map_remove(&sched->nodes_by_name, node->name);
    free_node(node);
}

/* ---- what gets better ---- */

/* Whether a pod of the crowd might fit on the node, devices aside. They are alike, so the first
 * stands for all. */
static bool may_fit(struct dv_sched *sched, const struct dv_sched_crowd *crowd,
                    const struct dv_sched_node *node)
{
    const struct dv_sched_pod *pod =
        DV_CONTAINER(dv_list_first(&crowd->waiting), struct dv_sched_pod, waits);
    const struct dv_api_pod_spec *spec = &dv_sched_pod_value(pod)->spec;

    if (pod->is_preset)
        return dv_str_eq(spec->node_name, node->name);
    if (dv_affinity_is_pinned_elsewhere(spec, node->name))
        return false;
    dv_buf_clear(&sched->why);
    dv_sched_amounts_read(&sched->amounts, &sched->resources, spec);
    for (size_t i = 0; i < sched->amounts.all.n; i++)
        sched->amounts.all.v[i].is_served = pod->is_extended;
    return dv_sched_fits(spec, &sched->amounts, &sched->resources, node->object, &node->room,
                         &sched->why);
}

void dv_sched_node_improved(struct dv_sched *sched, struct dv_sched_node *node)
{
    struct dv_link *next;

    node->improved = ++sched->tick;
    if (!node->object || sched->n_unsynced > 0)
        return;
    dv_sched_wake_nominated(sched, node);
    for (struct dv_link *link = sched->crowds_waiting.head.next;
         link != &sched->crowds_waiting.head; link = next) {
        struct dv_sched_crowd *crowd = DV_CONTAINER(link, struct dv_sched_crowd, waits);

        next = link->next; /* waking the last pod of a crowd takes the crowd out of the list */
        if (may_fit(sched, crowd, node))
            dv_sched_crowd_wake(sched, crowd);
    }
}

void dv_sched_node_take(struct dv_sched *sched, struct dv_sched_node *node,
                        const struct dv_api_pod_spec *pod)
{
    dv_sched_amounts_read(&sched->amounts, &sched->resources, pod);
    dv_sched_room_take(&node->room, &sched->amounts);
    node->version++;
    node->n_pods++;
}

void dv_sched_node_give_back(struct dv_sched *sched, struct dv_sched_node *node,
                             const struct dv_api_pod_spec *pod)
{
    dv_sched_amounts_read(&sched->amounts, &sched->resources, pod);
    dv_sched_room_give_back(&node->room, &sched->amounts);
    node->version++;
    node->n_pods--;
    dv_sched_node_improved(sched, node);
    drop_node(sched, node);
}

/* ---- the view ---- */

static bool are_facts_equal(const struct dv_api_node *old, const struct dv_api_node *now)
{
    struct dv_api_node a = {.spec = old->spec,
                            .status.allocatable = old->status.allocatable,
                            .status.n_allocatable = old->status.n_allocatable};
    struct dv_api_node b = {.spec = now->spec,
                            .status.allocatable = now->status.allocatable,
                            .status.n_allocatable = now->status.n_allocatable};

    a.metadata.labels = old->metadata.labels;
    a.metadata.n_labels = old->metadata.n_labels;
    b.metadata.labels = now->metadata.labels;
    b.metadata.n_labels = now->metadata.n_labels;
    return dv_message_eq(&dv_message_node, &a, &b);
}

static bool are_labels_equal(const struct dv_api_node *old, const struct dv_api_node *now)
{
    const struct dv_api_node a = {
        .metadata = {.labels = old->metadata.labels, .n_labels = old->metadata.n_labels}
    };
    const struct dv_api_node b = {
        .metadata = {.labels = now->metadata.labels, .n_labels = now->metadata.n_labels}
    };

    return dv_message_eq(&dv_message_node, &a, &b);
}

static void take_out(struct dv_sched *sched, struct dv_sched_node *node)
{
    struct dv_sched_node *moved = sched->nodes.v[sched->nodes.n - 1];

    sched->shape++;
    dv_affinity_leave(sched->affinity, &node->near);
    dv_sched_relations_changed(sched);
    dv_vec_remove_swap(&sched->nodes, node->place);
    moved->place = node->place;
    /* What crowds remember by place is about the node that was there. */
    moved->improved = ++sched->tick;
    dv_object_unref(node->object);
    node->object = NULL;
    dv_inventory_forget_node(sched->inventory, node->name);
    drop_node(sched, node);
}

void dv_sched_node_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;
    struct dv_sched_node *node = dv_sched_node(sched, (now ? now : old)->meta->name);

    if (!now) {
        if (node->object)
            take_out(sched, node);
        return;
    }
    node->version++;
    if (!node->object) {
        sched->shape++;
        node->place = sched->nodes.n;
        *dv_vec_add(&sched->nodes) = node;
    } else if (are_facts_equal(node->object->value, now->value)) {
        node->near.value = now->value;
        dv_object_unref(node->object);
        node->object = dv_object_ref(now);
        return; /* only a heartbeat or a condition has changed: nothing that decides */
    } else {
        /* Which slices are for the node depends on its labels; not on a plugin's devices, which may
         * come and go many times a second. */
        if (!are_labels_equal(node->object->value, now->value))
            dv_inventory_forget_node(sched->inventory, node->name);
        dv_affinity_leave(sched->affinity, &node->near);
        dv_object_unref(node->object);
    }
    node->object = dv_object_ref(now);
    dv_affinity_enter(sched->affinity, &node->near, now->value);
    dv_sched_relations_changed(sched);
    dv_sched_room_read(&node->room, &sched->resources, now->value);
    dv_sched_node_improved(sched, node);
}

void dv_sched_nodes_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t i = 0; i < sched->nodes.n; i++)
        dv_affinity_leave(sched->affinity, &sched->nodes.v[i]->near);
    for (size_t at = 0; (entry = dv_map_next(&sched->nodes_by_name, &at));)
        free_node(entry->value);
    dv_map_fini(&sched->nodes_by_name);
    dv_vec_fini(&sched->nodes);
}
