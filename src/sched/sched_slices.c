/* sched_slices.c - feeds the allocator's inventory: slices, with the taints that rules add to their
 * devices, and classes. A change wakes the pods that it may help. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/cluster.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/placed.h"
#include "sched/sched_state.h"

/* What it costs to put a slice and each of its devices into the inventory, in the allocator's
 * units. */
#define COST_SLICE 200u
#define COST_DEVICE 60u

/* ---- pools ---- */

static struct dv_sched_pool *pool_of(struct dv_sched *sched,
                                     const struct dv_api_resource_slice_spec *spec)
{
    /* A driver's name has no slash, so it can stand where a namespace does. */
    dv_str key = dv_sched_key(sched, spec->driver, spec->pool.name);
    struct dv_sched_pool *pool = dv_map_get(&sched->pools, key);
    char *text;

    if (pool)
        return pool;
    pool = dv_alloc(sizeof(*pool) + key.n + spec->node_name.n);
    text = (char *)(pool + 1);
    memcpy(text, key.p, key.n);
    if (spec->node_name.n > 0)
        memcpy(text + key.n, spec->node_name.p, spec->node_name.n);
    pool->key = (dv_str){text, key.n};
    pool->node = (dv_str){text + key.n, spec->node_name.n};
    dv_map_set(&sched->pools, pool->key, pool);
    return pool;
}

static void improve_pool(struct dv_sched *sched, const struct dv_sched_pool *pool)
{
    struct dv_sched_node *node =
        pool->n_wide == 0 ? dv_map_get(&sched->nodes_by_name, pool->node) : NULL;

    dv_sched_tell_devices(sched);
    if (node)
        dv_sched_node_improved(sched, node);
    else if (pool->n_wide > 0)
        dv_sched_requests_improved(sched);
}

void dv_sched_pool_improved(struct dv_sched *sched, dv_str driver, dv_str name)
{
    const struct dv_sched_pool *pool = dv_map_get(&sched->pools, dv_sched_key(sched, driver, name));

    if (pool)
        improve_pool(sched, pool);
    if (!dv_list_is_empty(&sched->nominated))
        dv_sched_wake_nominated(sched, NULL);
}

/* ---- taint rules ---- */

static int by_name(const void *a, const void *b)
{
    const struct dv_api_device_taint_rule *const *x = a;
    const struct dv_api_device_taint_rule *const *y = b;

    return dv_str_cmp((*x)->metadata.name, (*y)->metadata.name);
}

struct rules {
    DV_VEC(const struct dv_api_device_taint_rule *) all;
};

/* Gathers the rules that may select a device of the slice. They are sorted by name, so that the
 * taints of a device do not depend on the order in which rules were told. */
static void gather_rules(const struct dv_sched *sched,
                         const struct dv_api_resource_slice_spec *spec, struct rules *rules)
{
    const struct dv_view *view = sched->views[DV_SCHED_VIEW_RULES];
    const struct dv_object *object;

    for (size_t at = 0; view && (object = dv_view_next(view, &at));) {
        const struct dv_api_device_taint_rule *rule = object->value;

        if (dv_taint_rule_selects(rule, spec->driver, spec->pool.name, DV_STR_NONE))
            *dv_vec_add(&rules->all) = rule;
    }
    if (rules->all.n > 1)
        qsort(rules->all.v, rules->all.n, sizeof(rules->all.v[0]), by_name);
}

static void taint_device(struct dv_api_device *device,
                         const struct dv_api_resource_slice_spec *spec, const struct rules *rules,
                         struct dv_arena *arena)
{
    size_t n = device->n_taints;
    struct dv_api_device_taint *taints =
        DV_NEW_ARRAY(arena, struct dv_api_device_taint, n + rules->all.n);

    if (n > 0)
        memcpy(taints, device->taints, n * sizeof(taints[0]));
    for (size_t i = 0; i < rules->all.n; i++) {
        const struct dv_api_device_taint_rule *rule = rules->all.v[i];

        if (dv_taint_rule_selects(rule, spec->driver, spec->pool.name, device->name))
            taints[n++] = rule->spec.taint;
    }
    device->taints = taints;
    device->n_taints = n;
}

/* Returns the slice as the allocator shall see it, with the taints of rules; a reference for the
 * caller. Without a rule that is the published object itself, and no copy is made. */
static struct dv_object *with_rules(const struct dv_sched *sched, struct dv_object *object)
{
    const struct dv_api_resource_slice *slice = dv_object_unpack(object)->value;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_api_resource_slice copy = *slice;
    struct rules rules = {0};
    struct dv_object *tainted;

    gather_rules(sched, &slice->spec, &rules);
    if (rules.all.n == 0)
        return dv_object_ref(object);
    arena = dv_arena_new();
    copy.spec.devices = DV_NEW_ARRAY(arena, struct dv_api_device, copy.spec.n_devices);
    for (size_t i = 0; i < copy.spec.n_devices; i++) {
        copy.spec.devices[i] = slice->spec.devices[i];
        taint_device(&copy.spec.devices[i], &slice->spec, &rules, arena);
    }
    tainted = dv_object_new(object->kind, &copy);
    dv_vec_fini(&rules.all);
    return tainted;
}

/* ---- slices ---- */

static bool is_wide(const struct dv_api_resource_slice_spec *spec, const struct dv_sched_pool *pool)
{
    return spec->node_name.n == 0 || spec->n_shared_counters > 0 ||
           !dv_str_eq(spec->node_name, pool->node);
}

/* Until the next turn of the loop. */
static const struct dv_api_resource_slice *value_of(const struct dv_sched_slice *slice)
{
    return dv_object_unpack(slice->object)->value;
}

static dv_str name_of(const struct dv_sched_slice *slice)
{
    return dv_object_names(slice->object).name;
}

static void put_slice(struct dv_sched *sched, struct dv_sched_slice *slice)
{
    struct dv_object *object = with_rules(sched, slice->object);

    slice->place = dv_inventory_add_slice(sched->inventory, object);
    sched->n_slice_changes++;
    dv_object_unref(object);
}

static void remove_slice(struct dv_sched *sched, struct dv_sched_slice *slice)
{
    struct dv_sched_pool *pool = slice->pool;

    dv_map_remove(&sched->slices, name_of(slice));
    dv_inventory_remove_slice(sched->inventory, slice->place);
    /* A slice of an old generation that goes may be what kept the pool from being complete. */
    improve_pool(sched, pool);
    pool->n_wide -= slice->is_wide;
    if (--pool->n_slices == 0) {
        dv_map_remove(&sched->pools, pool->key);
        free(pool);
    }
    dv_object_unkeep(slice->object);
    free(slice);
}

static void add_slice(struct dv_sched *sched, struct dv_object *object)
{
    const struct dv_api_resource_slice *value = object->value;
    struct dv_sched_slice *slice = DV_ALLOC(struct dv_sched_slice);

    slice->object = dv_object_keep(object);
    slice->pool = pool_of(sched, &value->spec);
    slice->is_wide = is_wide(&value->spec, slice->pool);
    slice->pool->n_slices++;
    slice->pool->n_wide += slice->is_wide;
    put_slice(sched, slice);
    dv_map_set(&sched->slices, name_of(slice), slice);
    improve_pool(sched, slice->pool);
}

/* ---- changes ---- */

/* Finds the change of that slice that is still to be made, or makes one: several changes of one
 * slice become one. */
static struct dv_sched_slice_change *change_of(struct dv_sched *sched, dv_str name)
{
    struct dv_sched_slice_change *change = dv_map_get(&sched->slice_changes_by_name, name);
    char *text;

    if (change)
        return change;
    change = dv_alloc(sizeof(*change) + name.n);
    text = (char *)(change + 1);
    memcpy(text, name.p, name.n);
    change->name = (dv_str){text, name.n};
    dv_map_set(&sched->slice_changes_by_name, change->name, change);
    dv_list_push(&sched->slice_changes, &change->link);
    return change;
}

static void free_change(struct dv_sched *sched, struct dv_sched_slice_change *change)
{
    dv_map_remove(&sched->slice_changes_by_name, change->name);
    dv_link_remove(&change->link);
    dv_object_unkeep(change->now);
    free(change);
}

static void make_change(struct dv_sched *sched, const struct dv_sched_slice_change *change)
{
    struct dv_sched_slice *slice = dv_map_get(&sched->slices, change->name);
    struct dv_object *now = change->now ? dv_object_unpack(change->now) : NULL;

    if (slice && now && !change->is_retainted &&
        dv_message_eq(&dv_message_resource_slice_spec, &value_of(slice)->spec,
                      &((const struct dv_api_resource_slice *)now->value)->spec))
        return; /* only its metadata has changed, which no decision looks at */
    if (slice)
        remove_slice(sched, slice);
    if (now)
        add_slice(sched, now);
}

bool dv_sched_slices_are_behind(const struct dv_sched *sched)
{
    return !dv_list_is_empty(&sched->slice_changes);
}

void dv_sched_slices_catch_up(struct dv_sched *sched)
{
    while (dv_sched_slices_are_behind(sched) && dv_sched_has_budget(sched)) {
        struct dv_sched_slice_change *change =
            DV_CONTAINER(dv_list_first(&sched->slice_changes), struct dv_sched_slice_change, link);
        const struct dv_api_resource_slice *value =
            change->now ? dv_object_unpack(change->now)->value : NULL;

        dv_sched_spend(sched, COST_SLICE + (value ? value->spec.n_devices * COST_DEVICE : 0));
        make_change(sched, change);
        free_change(sched, change);
    }
}

void dv_sched_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;
    struct dv_sched_slice_change *change = change_of(sched, (now ? now : old)->meta->name);

    dv_object_unkeep(change->now);
    change->now = now ? dv_object_keep(now) : NULL;
    dv_sched_turn(sched);
}

static bool selects_pool(const struct dv_api_device_taint_rule *rule,
                         const struct dv_sched_pool *pool)
{
    size_t slash = dv_str_find_char(pool->key, '/'); /* a driver's name has none */

    return dv_taint_rule_selects(rule, dv_str_slice(pool->key, 0, slash),
                                 dv_str_slice(pool->key, slash + 1, pool->key.n), DV_STR_NONE);
}

/* Has the slices that a rule selects, or selected until now, put into the inventory again with
 * other taints. */
static void retaint(struct dv_sched *sched, const struct dv_object *object)
{
    const struct dv_api_device_taint_rule *rule = object->value;
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->slices, &at));) {
        const struct dv_sched_slice *slice = entry->value;
        dv_str name = name_of(slice);
        struct dv_sched_slice_change *change;

        if (!selects_pool(rule, slice->pool))
            continue;
        change = dv_map_get(&sched->slice_changes_by_name, name);
        /* When a change is pending, its object is newer than the slice that is known. */
        if (!change) {
            change = change_of(sched, name);
            change->now = dv_object_keep(slice->object);
        }
        change->is_retainted = true;
    }
    dv_sched_turn(sched);
}

void dv_sched_rule_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;

    if (old && now &&
        dv_message_eq(&dv_message_device_taint_rule_spec,
                      &((const struct dv_api_device_taint_rule *)old->value)->spec,
                      &((const struct dv_api_device_taint_rule *)now->value)->spec))
        return;
    if (old)
        retaint(sched, old);
    if (now)
        retaint(sched, now);
}

/* ---- classes ---- */

void dv_sched_wait_for_class(struct dv_sched_pod *pod, dv_str name)
{
    struct dv_sched *sched = pod->sched;
    struct dv_sched_class_wait *wait = dv_map_get(&sched->class_waits, name);
    char *text;

    if (!wait) {
        wait = dv_alloc(sizeof(*wait) + name.n + 1);
        text = (char *)(wait + 1);
        if (name.n > 0)
            memcpy(text, name.p, name.n);
        wait->name = (dv_str){text, name.n};
        dv_list_init(&wait->pods);
        dv_map_set(&sched->class_waits, wait->name, wait);
    }
    dv_list_push(&wait->pods, &pod->waits);
    pod->class_wait = wait;
}

void dv_sched_leave_class(struct dv_sched_pod *pod)
{
    struct dv_sched_class_wait *wait = pod->class_wait;

    if (!wait)
        return;
    pod->class_wait = NULL;
    dv_link_remove(&pod->waits);
    if (!dv_list_is_empty(&wait->pods))
        return;
    dv_map_remove(&pod->sched->class_waits, wait->name);
    free(wait);
}

static void wake_waiting(struct dv_sched *sched, dv_str name)
{
    const struct dv_sched_class_wait *wait;

    /* Looked up anew each time: the last pod to leave frees the record of the class. */
    while ((wait = dv_map_get(&sched->class_waits, name))) {
        struct dv_sched_pod *pod =
            DV_CONTAINER(dv_list_first(&wait->pods), struct dv_sched_pod, waits);

        dv_sched_leave_class(pod);
        dv_sched_pod_woken(pod);
    }
}

static bool may_serve(const struct dv_sched *sched, const struct dv_sched_crowd *crowd,
                      const struct dv_api_device_class *class)
{
    for (size_t i = 0; i < crowd->resources.n; i++) {
        dv_str resource = sched->resources.names.v[crowd->resources.v[i]]->name;

        if (dv_str_eq(resource, class->spec.extended_resource_name) ||
            (dv_str_starts_with(resource, DV_STR(DV_ALLOC_EXTENDED_PREFIX)) &&
             dv_str_ends_with(resource, class->metadata.name)))
            return true;
    }
    return false;
}

static void improve_crowds(struct dv_sched *sched, const struct dv_object *object)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->crowds, &at));) {
        struct dv_sched_crowd *crowd = entry->value;

        if (dv_map_get(&crowd->classes, object->meta->name) ||
            may_serve(sched, crowd, object->value))
            dv_sched_crowd_improved(sched, crowd);
    }
}

void dv_sched_class_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_sched *sched = ctx;

    sched->shape++;
    if (!now) {
        dv_inventory_remove_class(sched->inventory, old->meta->name);
        /* Another class may serve the same extended resource, and now comes to bear. */
        improve_crowds(sched, old);
        return;
    }
    dv_inventory_set_class(sched->inventory, now);
    wake_waiting(sched, now->meta->name);
    improve_crowds(sched, now);
    if (old)
        improve_crowds(sched, old);
    dv_sched_tell_devices(sched); /* it may have more of them */
}

/* ---- the end ---- */

void dv_sched_slices_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->slices, &at));) {
        struct dv_sched_slice *slice = entry->value;

        dv_object_unkeep(slice->object);
        free(slice);
    }
    for (size_t at = 0; (entry = dv_map_next(&sched->pools, &at));)
        free(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&sched->class_waits, &at));)
        free(entry->value);
    while (dv_sched_slices_are_behind(sched))
        free_change(sched, DV_CONTAINER(dv_list_first(&sched->slice_changes),
                                        struct dv_sched_slice_change, link));
    dv_map_fini(&sched->slice_changes_by_name);
    dv_map_fini(&sched->slices);
    dv_map_fini(&sched->pools);
    dv_map_fini(&sched->class_waits);
}
