/* tolerate.c - which taints of a node a pod tolerates. Nearly always each pair is compared; a pod
 * and a node with thousands of them, which the API allows, are matched by a map instead, so that
 * they cannot hold up the loop. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"
#include "sched/fit.h"

/* Up to so many pairs of a taint and a toleration are compared one by one; with more, the
 * tolerations are put into a map first. */
#define N_PAIRS_MAX 4096u
/* What each taint and toleration in the map costs, in the allocator's units. */
#define COST_INDEXED 15u
#define KEY_BYTES_MAX (4u << 20) /* more than a request to the API may have */

static bool is_exists(const struct dv_api_toleration *toleration)
{
    return dv_str_eq(toleration->operator, DV_STR("Exists"));
}

static bool is_equal(const struct dv_api_toleration *toleration)
{
    return toleration->operator.n == 0 || dv_str_eq(toleration->operator, DV_STR("Equal"));
}

bool dv_sched_tolerates(const struct dv_api_pod_spec *pod, const struct dv_api_taint *taint)
{
    for (size_t i = 0; i < pod->n_tolerations; i++)
        if (dv_toleration_matches(&pod->tolerations[i], taint))
            return true;
    return false;
}

/* ---- many ---- */

/* Tolerations by what they tolerate: key, effect and, unless every value is tolerated, value. */
struct tolerations {
    struct dv_map map;
    struct dv_arena *arena;
    struct dv_buf key;
};

/* The key of the map. Zero bytes divide its parts, because none of the texts has one. `value` is
 * NULL for a toleration of every value. */
static dv_str key_of(struct tolerations *all, dv_str key, dv_str effect, const dv_str *value)
{
    dv_buf_clear(&all->key);
    dv_buf_add(&all->key, key);
    dv_buf_add_char(&all->key, '\0');
    dv_buf_add(&all->key, effect);
    dv_buf_add_char(&all->key, '\0');
    if (value) {
        dv_buf_add_char(&all->key, '=');
        dv_buf_add(&all->key, *value);
    }
    return dv_buf_str(&all->key);
}

static void index_all(struct tolerations *all, const struct dv_api_pod_spec *pod)
{
    all->arena = dv_arena_new();
    dv_map_init(&all->map);
    dv_buf_init(&all->key, KEY_BYTES_MAX);
    for (size_t i = 0; i < pod->n_tolerations; i++) {
        struct dv_api_toleration *toleration = &pod->tolerations[i];
        bool is_any = is_exists(toleration);

        if (is_any || is_equal(toleration))
            dv_map_set(&all->map,
                       dv_str_copy(key_of(all, toleration->key, toleration->effect,
                                          is_any ? NULL : &toleration->value),
                                   all->arena),
                       toleration);
    }
}

static bool has_one(struct tolerations *all, const struct dv_api_taint *taint)
{
    /* A toleration without a key or effect tolerates every one of them. */
    const dv_str keys[] = {taint->key, DV_STR_NONE};
    const dv_str effects[] = {taint->effect, DV_STR_NONE};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            if (dv_map_get(&all->map, key_of(all, keys[i], effects[j], NULL)) ||
                dv_map_get(&all->map, key_of(all, keys[i], effects[j], &taint->value)))
                return true;
    return false;
}

static void drop_index(struct tolerations *all)
{
    dv_map_fini(&all->map);
    dv_buf_fini(&all->key);
    dv_arena_free(all->arena);
}

static bool is_many(size_t n_tolerations, size_t n_taints)
{
    return n_taints > 1 && n_tolerations > N_PAIRS_MAX / n_taints;
}

uint64_t dv_sched_tolerating_cost(size_t n_tolerations, size_t n_taints)
{
    if (is_many(n_tolerations, n_taints))
        return (n_tolerations + n_taints) * COST_INDEXED;
    return n_taints * (1 + n_tolerations);
}

size_t dv_sched_untolerated(const struct dv_api_pod_spec *pod, const struct dv_api_node *node,
                            bool is_rather_not, const struct dv_api_taint **first)
{
    bool is_indexed = is_many(pod->n_tolerations, node->spec.n_taints);
    struct tolerations all = {0};
    size_t n = 0;

    if (is_indexed)
        index_all(&all, pod);
    for (size_t i = 0; i < node->spec.n_taints && (is_rather_not || n == 0); i++) {
        const struct dv_api_taint *taint = &node->spec.taints[i];

        if (dv_str_eq(taint->effect, DV_STR("PreferNoSchedule")) != is_rather_not ||
            (is_indexed ? has_one(&all, taint) : dv_sched_tolerates(pod, taint)))
            continue;
        if (n++ == 0 && first)
            *first = taint;
    }
    if (is_indexed)
        drop_index(&all);
    return n;
}
