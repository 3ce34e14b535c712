/* fuzz_merge.c - a merge decides what the specification's walk through the product of all lists
 * decides, candidate by candidate, whatever the order of the lists. */
#include "topology/topology.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

#define NODES_MAX 8u
#define LISTS_MAX 4u
#define HINTS_MAX 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

struct merge {
    struct dv_numa_node nodes[NODES_MAX];
    uint32_t distances[NODES_MAX][NODES_MAX];
    struct dv_numa_machine machine;
    struct dv_topology_config config;
    struct dv_numa_hint hints[LISTS_MAX][HINTS_MAX];
    struct dv_hint_list lists[LISTS_MAX];
    size_t n_lists;
};

/* -- From bytes to a merge ------------------------------------------------------------------ */

static unsigned next(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

/* Node i of eight has the id i * stride, so that there are gaps. */
static dv_numa_mask spread(unsigned bits, unsigned stride)
{
    dv_numa_mask mask = 0;

    for (unsigned i = 0; i < NODES_MAX; i++)
        if (bits >> i & 1)
            mask |= UINT64_C(1) << (i * stride);
    return mask;
}

static void read_machine(struct input *input, unsigned stride, struct merge *merge)
{
    unsigned bits = next(input);
    unsigned seed = next(input);
    size_t n = 0;

    for (unsigned i = 0; i < NODES_MAX; i++) {
        for (unsigned k = 0; k < NODES_MAX; k++)
            merge->distances[i][k] = 10 + (i * 7 + k * 13 + seed) % 5;
        if (bits >> i & 1)
            n++;
    }
    merge->machine = (struct dv_numa_machine){merge->nodes, 0, spread(bits, stride)};
    for (unsigned i = 0; i < NODES_MAX; i++)
        if (bits >> i & 1)
            merge->nodes[merge->machine.n_nodes++] =
                (struct dv_numa_node){i * stride, n, merge->distances[i]};
}

static void read_list(struct input *input, unsigned stride, struct merge *merge)
{
    struct dv_numa_hint *hints = merge->hints[merge->n_lists];
    unsigned head = next(input);
    size_t n = head % HINTS_MAX;

    for (size_t i = 0; i < n; i++) {
        unsigned flags = next(input);

        hints[i].is_preferred = flags & 1;
        hints[i].has_mask = (flags & 6) != 0;
        hints[i].mask = hints[i].has_mask ? spread(next(input), stride) : 0;
    }
    merge->lists[merge->n_lists++] = (struct dv_hint_list){hints, n, n == 0 && head >= 128};
}

static void read_merge(struct input *input, struct merge *merge)
{
    unsigned head = next(input);
    unsigned stride = 1 + (head >> 3) % 9;

    memset(merge, 0, sizeof(*merge));
    merge->config.policy = (enum dv_topology_policy)(head & 3);
    merge->config.prefers_closest = (head & 4) != 0;
    read_machine(input, stride, merge);
    while (input->size > 0 && merge->n_lists < LISTS_MAX)
        read_list(input, stride, merge);
}

/* -- The walk ------------------------------------------------------------------------------- */

struct walk {
    const struct merge *merge;
    bool is_single;
    struct dv_hint_list lists[LISTS_MAX]; /* flattened, and filtered by the policy */
    struct dv_numa_hint hints[LISTS_MAX][HINTS_MAX];
    unsigned wanted; /* B */
    bool has_best;
    struct dv_numa_hint best;
};

static unsigned count(dv_numa_mask mask)
{
    unsigned n = 0;

    for (; mask; mask &= mask - 1)
        n++;
    return n;
}

static double average(const struct merge *merge, dv_numa_mask mask)
{
    const struct dv_numa_machine *machine = &merge->machine;
    double sum = 0;

    for (size_t a = 0; a < machine->n_nodes; a++)
        for (size_t b = 0; b < machine->n_nodes; b++) {
            const struct dv_numa_node *from = &machine->nodes[a];
            uint32_t to = machine->nodes[b].id;

            if (mask >> from->id & mask >> to & 1)
                sum += from->distances[to < from->n_distances ? to : b];
        }
    return sum / (count(mask) * count(mask));
}

static bool is_fitter(const struct walk *walk, dv_numa_mask a, dv_numa_mask b)
{
    if (count(a) != count(b))
        return count(a) < count(b);
    if (walk->merge->config.prefers_closest && !walk->is_single) {
        double average_a = average(walk->merge, a);
        double average_b = average(walk->merge, b);

        if (average_a < average_b || average_b < average_a)
            return average_a < average_b;
    }
    return a < b;
}

/* Whether the candidate is better than the best so far: the reference's questions, in its order. */
static bool replaces(const struct walk *walk, const struct dv_numa_hint *candidate)
{
    unsigned c = count(walk->best.mask);
    unsigned d = count(candidate->mask);

    if (candidate->mask == 0)
        return false;
    if (!walk->has_best)
        return true;
    if (candidate->is_preferred != walk->best.is_preferred)
        return candidate->is_preferred;
    if (candidate->mask == walk->best.mask)
        return false;
    if (candidate->is_preferred || c > walk->wanted || (c == walk->wanted && d == walk->wanted))
        return is_fitter(walk, candidate->mask, walk->best.mask);
    if (c == walk->wanted || d > walk->wanted)
        return false;
    if (d == walk->wanted || d != c)
        return d > c;
    return is_fitter(walk, candidate->mask, walk->best.mask);
}

static void flatten(struct walk *walk, size_t at)
{
    const struct dv_hint_list *list = &walk->merge->lists[at];
    struct dv_numa_hint *hints = walk->hints[at];
    size_t n = 0;

    memcpy(hints, list->hints, list->n_hints * sizeof(*hints));
    if (list->n_hints == 0)
        hints[0] = (struct dv_numa_hint){.is_preferred = list->is_any};
    for (size_t i = 0; i < list->n_hints || i == 0; i++)
        if (!walk->is_single ||
            (hints[i].is_preferred && (!hints[i].has_mask || count(hints[i].mask) == 1)))
            hints[n++] = hints[i];
    walk->lists[at] = (struct dv_hint_list){hints, n, false};
}

static void find_wanted(struct walk *walk, size_t at)
{
    unsigned narrowest = UINT32_MAX;

    for (size_t i = 0; i < walk->lists[at].n_hints; i++)
        if (walk->hints[at][i].has_mask && count(walk->hints[at][i].mask) < narrowest)
            narrowest = count(walk->hints[at][i].mask);
    if (narrowest != UINT32_MAX && narrowest > walk->wanted)
        walk->wanted = narrowest;
}

/* `first` is the first mask so far, for telling whether all are equal. */
static void walk_from(struct walk *walk, size_t at, struct dv_numa_hint merged,
                      const struct dv_numa_hint *first)
{
    if (at == walk->merge->n_lists) {
        if (replaces(walk, &merged)) {
            walk->best = merged;
            walk->has_best = true;
        }
        return;
    }
    for (size_t i = 0; i < walk->lists[at].n_hints; i++) {
        const struct dv_numa_hint *hint = &walk->hints[at][i];
        struct dv_numa_hint next_merged = merged;
        const struct dv_numa_hint *next_first = first;

        next_merged.is_preferred &= hint->is_preferred;
        if (hint->has_mask) {
            next_merged.mask &= hint->mask;
            next_merged.is_preferred &= !first || first->mask == hint->mask;
            next_first = first ? first : hint;
        }
        walk_from(walk, at + 1, next_merged, next_first);
    }
}

static struct dv_topology_verdict verdict_of_walk(const struct merge *merge)
{
    enum dv_topology_policy policy = merge->config.policy;
    dv_numa_mask all = merge->machine.mask;
    struct walk walk = {.merge = merge, .is_single = policy == DV_TOPOLOGY_SINGLE_NUMA_NODE};

    if (policy == DV_TOPOLOGY_NONE)
        return (struct dv_topology_verdict){.is_admitted = true};
    for (size_t i = 0; i < merge->n_lists; i++) {
        flatten(&walk, i);
        find_wanted(&walk, i);
    }
    walk_from(&walk, 0, (struct dv_numa_hint){all, true, true}, NULL);
    if (!walk.has_best)
        walk.best = (struct dv_numa_hint){all, true, false};
    if (walk.is_single && walk.best.mask == all)
        walk.best = (struct dv_numa_hint){0, false, walk.best.is_preferred};
    return (struct dv_topology_verdict){walk.best, policy == DV_TOPOLOGY_BEST_EFFORT ||
                                                       walk.best.is_preferred};
}

/* ------------------------------------------------------------------------------------------- */

static void check(const struct merge *merge, const struct dv_topology_verdict *want)
{
    struct dv_topology_verdict got;
    struct dv_err err;
    bool is_ok = dv_topology_merge(&merge->config, &merge->machine, merge->lists, merge->n_lists,
                                   &got, &err);

    assert(is_ok);
    assert(got.affinity.mask == want->affinity.mask);
    assert(got.affinity.has_mask == want->affinity.has_mask);
    assert(got.affinity.is_preferred == want->affinity.is_preferred);
    assert(got.is_admitted == want->is_admitted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct dv_topology_verdict want;
    struct merge merge;

    read_merge(&input, &merge);
    want = verdict_of_walk(&merge);
    check(&merge, &want);
    for (size_t i = 0; i < merge.n_lists / 2; i++) {
        struct dv_hint_list list = merge.lists[i];

        merge.lists[i] = merge.lists[merge.n_lists - 1 - i];
        merge.lists[merge.n_lists - 1 - i] = list;
    }
    check(&merge, &want);
    return 0;
}
