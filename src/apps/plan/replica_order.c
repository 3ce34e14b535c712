/* replica_order.c - which pods of too many go first: those of which least is lost. */
#include <stdint.h>
#include <stdlib.h>

#include "apps/plan/pod_state.h"
#include "apps/plan/replica_set.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

#define COST_ANNOTATION DV_STR("controller.kubernetes.io/pod-deletion-cost")

/* A pod with what it is compared by; each number is smaller for what goes first. */
struct ranked {
    const struct dv_api_pod *pod;
    int64_t keys[8];
};

static int64_t phase_of(const struct dv_api_pod *pod)
{
    if (dv_str_eq(pod->status.phase, DV_STR("Running")))
        return 2;
    return dv_str_eq(pod->status.phase, DV_STR("Unknown")) ? 1 : 0;
}

static int64_t cost_of(const struct dv_api_pod *pod)
{
    const struct dv_str_entry *entry =
        dv_entry_find(pod->metadata.annotations, pod->metadata.n_annotations, COST_ANNOTATION);
    bool is_negative = entry && entry->value.n > 1 && entry->value.p[0] == '-';
    uint64_t cost;

    if (!entry || !dv_str_to_u64(dv_str_slice(entry->value, is_negative, entry->value.n), &cost) ||
        cost > INT32_MAX)
        return 0;
    return is_negative ? -(int64_t)cost : (int64_t)cost;
}

/* Counts a pod on its node; the numbers are int64_t in the arena. An empty name is that of pods on
 * no node. */
static void count_crowd(struct dv_map *crowds, const struct dv_api_pod *pod, struct dv_arena *arena)
{
    int64_t *n = dv_map_get(crowds, pod->spec.node_name);

    if (!n) {
        n = DV_NEW(arena, int64_t);
        (void)dv_map_set(crowds, pod->spec.node_name, n);
    }
    ++*n;
}

/* How many pods of its kind are on the pod's node: where there are many, one is missed least. */
static int64_t crowd_of(const struct dv_map *crowds, const struct dv_api_pod *pod)
{
    const int64_t *n = dv_map_get(crowds, pod->spec.node_name);

    return n ? *n : 0;
}

/* Ages count by powers of two, so that of pods of about the same age not always the newest goes. */
static int64_t age_rank(struct dv_time since, struct dv_time now)
{
    int64_t seconds = since.is_set ? now.seconds - since.seconds : 0;
    int64_t rank = 0;

    for (; seconds > 0; seconds /= 2)
        rank++;
    return rank;
}

static int64_t restarts_of(const struct dv_api_pod *pod)
{
    int64_t most = 0;

    for (size_t i = 0; i < pod->status.n_container_statuses; i++)
        if (pod->status.container_statuses[i].restart_count > most)
            most = pod->status.container_statuses[i].restart_count;
    return most;
}

static struct ranked rank(const struct dv_replica_input *input, const struct dv_map *crowds,
                          const struct dv_api_pod *pod)
{
    struct dv_time since = {0};
    bool is_ready = dv_pod_is_ready(pod, &since);

    return (struct ranked){
        .pod = pod,
        .keys = {pod->spec.node_name.n > 0, phase_of(pod), is_ready, cost_of(pod),
                 -crowd_of(crowds, pod), is_ready ? age_rank(since, input->now) : 0,
                 -restarts_of(pod), age_rank(pod->metadata.creation_timestamp, input->now)},
    };
}

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;

    for (size_t i = 0; i < DV_COUNT(x->keys); i++)
        if (x->keys[i] != y->keys[i])
            return x->keys[i] < y->keys[i] ? -1 : 1;
    return dv_str_cmp(x->pod->metadata.uid, y->pod->metadata.uid);
}

void dv_replica_sort(const struct dv_replica_input *input, const struct dv_api_pod **pods, size_t n,
                     struct dv_arena *arena)
{
    struct ranked *all = DV_NEW_ARRAY(arena, struct ranked, n + 1);
    DV_CLEANUP(dv_map_fini) struct dv_map crowds = {0};

    for (size_t i = 0; i < n; i++)
        count_crowd(&crowds, pods[i], arena);
    for (size_t i = 0; i < input->n_siblings; i++)
        if (dv_pod_is_active(input->siblings[i]))
            count_crowd(&crowds, input->siblings[i], arena);
    for (size_t i = 0; i < n; i++)
        all[i] = rank(input, &crowds, pods[i]);
    if (n > 1)
        qsort(all, n, sizeof(all[0]), compare);
    for (size_t i = 0; i < n; i++)
        pods[i] = all[i].pod;
}
