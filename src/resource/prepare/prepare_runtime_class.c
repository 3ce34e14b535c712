/* prepare_runtime_class.c - what a pod gets from its RuntimeClass: the work of the reference's
 * admission plugin RuntimeClass. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/prepare.h"
#include "resource/resource.h"

/* Far more tolerations than pods have. Of more than these none is left out: each is held against
 * every other, and what is covered by another does no harm. */
#define COMPARED_MAX 128u

/* ---- overhead ---- */

static bool is_same_overhead(const struct dv_api_pod_spec *spec,
                             const struct dv_api_overhead *overhead)
{
    if (spec->n_overhead != overhead->n_pod_fixed)
        return false;
    for (size_t i = 0; i < spec->n_overhead; i++) /* both are sorted */
        if (!dv_str_eq(spec->overhead[i].key, overhead->pod_fixed[i].key) ||
            dv_quantity_cmp(&spec->overhead[i].value, &overhead->pod_fixed[i].value) != 0)
            return false;
    return true;
}

const char *dv_pod_overhead_fault(const struct dv_api_pod *pod,
                                  const struct dv_api_runtime_class *class)
{
    if (class && class->overhead)
        return is_same_overhead(&pod->spec, class->overhead)
                   ? NULL
                   : "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
    return pod->spec.overhead ? "pod rejected: Pod Overhead set without corresponding RuntimeClass "
                                "defined Overhead"
                              : NULL;
}

/* ---- scheduling ---- */

static const char *merge_selector(struct dv_api_pod_spec *spec,
                                  const struct dv_api_scheduling *scheduling,
                                  struct dv_arena *arena)
{
    size_t n_all = spec->n_node_selector + scheduling->n_node_selector;
    struct dv_str_entry *all = DV_NEW_ARRAY(arena, struct dv_str_entry, n_all);
    size_t from = 0;
    size_t n = 0;

    for (size_t i = 0; i < scheduling->n_node_selector; i++) {
        const struct dv_str_entry *entry = &scheduling->node_selector[i];

        while (from < spec->n_node_selector &&
               dv_str_cmp(spec->node_selector[from].key, entry->key) < 0)
            all[n++] = spec->node_selector[from++];
        if (from < spec->n_node_selector && dv_str_eq(spec->node_selector[from].key, entry->key)) {
            dv_str value = spec->node_selector[from++].value;

            if (!dv_str_eq(value, entry->value))
                return dv_str_printf(arena,
                                     "conflict: runtimeClass.scheduling.nodeSelector[%.*s] = %.*s; "
                                     "pod.spec.nodeSelector[%.*s] = %.*s",
                                     DV_FMT(entry->key), DV_FMT(entry->value), DV_FMT(entry->key),
                                     DV_FMT(value))
                    .p;
        }
        all[n++] =
            (struct dv_str_entry){dv_str_copy(entry->key, arena), dv_str_copy(entry->value, arena)};
    }
    while (from < spec->n_node_selector)
        all[n++] = spec->node_selector[from++];
    spec->node_selector = n > 0 ? all : spec->node_selector;
    spec->n_node_selector = n;
    return NULL;
}

static bool is_same(const struct dv_api_toleration *a, const struct dv_api_toleration *b)
{
    return dv_message_eq(&dv_message_toleration, a, b);
}

/* Whether `all` lasts as long as `one`: without seconds it is for ever. */
static bool lasts(const struct dv_api_toleration *all, const struct dv_api_toleration *one)
{
    return !dv_str_eq(all->effect, DV_STR("NoExecute")) || !all->toleration_seconds ||
           (one->toleration_seconds && *one->toleration_seconds <= *all->toleration_seconds);
}

/* Whether `all` tolerates every taint that `one` does, as the reference tells: an operator that is
 * left out is Equal, but only of the larger one. */
static bool covers(const struct dv_api_toleration *all, const struct dv_api_toleration *one)
{
    bool is_exists = dv_str_eq(all->operator, DV_STR("Exists"));

    if (!dv_str_eq(all->key, one->key) && (all->key.n > 0 || !is_exists))
        return false;
    if (is_same(all, one))
        return true;
    if (all->effect.n > 0 && !dv_str_eq(all->effect, one->effect))
        return false;
    if (!lasts(all, one))
        return false;
    if (all->operator.n == 0 || dv_str_eq(all->operator, DV_STR("Equal")))
        return dv_str_eq(one->operator, DV_STR("Equal")) && dv_str_eq(one->value, all->value);
    return is_exists;
}

/* Whether the toleration at `i` is left out: one that is kept covers it, or a later one that is not
 * the same. */
static bool is_covered(const struct dv_api_toleration *all, size_t n_all, size_t i,
                       const struct dv_api_toleration *kept, size_t n_kept)
{
    for (size_t k = 0; k < n_kept; k++)
        if (covers(&kept[k], &all[i]))
            return true;
    for (size_t k = i + 1; k < n_all; k++)
        if (covers(&all[k], &all[i]) && !is_same(&all[k], &all[i]))
            return true;
    return false;
}

static void merge_tolerations(struct dv_api_pod_spec *spec,
                              const struct dv_api_scheduling *scheduling, struct dv_arena *arena)
{
    size_t n_all = spec->n_tolerations + scheduling->n_tolerations;
    struct dv_api_toleration *all = DV_NEW_ARRAY(arena, struct dv_api_toleration, n_all);
    struct dv_api_toleration *kept = DV_NEW_ARRAY(arena, struct dv_api_toleration, n_all);
    size_t n_kept = 0;

    if (spec->n_tolerations > 0)
        memcpy(all, spec->tolerations, spec->n_tolerations * sizeof(all[0]));
    for (size_t i = 0; i < scheduling->n_tolerations; i++)
        dv_message_copy(&dv_message_toleration, &scheduling->tolerations[i], arena,
                        &all[spec->n_tolerations + i]);
    for (size_t i = 0; i < n_all; i++)
        if (n_all > COMPARED_MAX || !is_covered(all, n_all, i, kept, n_kept))
            kept[n_kept++] = all[i];
    spec->tolerations = n_kept > 0 ? kept : NULL;
    spec->n_tolerations = n_kept;
}

/* ---- the class ---- */

const char *dv_pod_add_runtime_class(struct dv_api_pod *pod,
                                     const struct dv_api_runtime_class *class,
                                     struct dv_arena *arena)
{
    struct dv_api_pod_spec *spec = &pod->spec;
    const char *fault;

    if (class->overhead) {
        struct dv_api_overhead overhead = {0};

        if (spec->overhead && (fault = dv_pod_overhead_fault(pod, class)))
            return fault;
        dv_message_copy(&dv_message_overhead, class->overhead, arena, &overhead);
        spec->overhead = overhead.pod_fixed;
        spec->n_overhead = overhead.n_pod_fixed;
    }
    if (!class->scheduling)
        return NULL;
    fault = merge_selector(spec, class->scheduling, arena);
    if (!fault)
        merge_tolerations(spec, class->scheduling, arena);
    return fault;
}
