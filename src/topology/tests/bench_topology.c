/* bench_topology.c - what a merge and the hints of a resource cost.
 *
 * Every list holds all sets of the nodes, as a provider does that could serve from anywhere. They
 * either agree (the single nodes are preferred) or not (each prefers another node, so that all
 * intersections count). "product" is what the reference walks. */
#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#define LISTS_MAX 8u
/* Each case runs until this long, several times, and its best run counts: the rest is other
 * programs. */
#define RUN_NS (20u * 1000u * 1000u)
#define RUNS 7

struct merge {
    struct dv_topology_config config;
    struct dv_numa_machine machine;
    struct dv_hint_list lists[LISTS_MAX];
    size_t n_lists;
};

struct devices {
    struct dv_numa_machine machine;
    struct dv_numa_group *groups;
    size_t n_groups;
    uint64_t requested;
};

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "bench_topology: %s\n", err->msg);
    exit(1);
}

static struct dv_numa_machine make_machine(unsigned n_nodes, struct dv_arena *arena)
{
    struct dv_numa_machine machine;
    struct dv_err err;
    dv_str row = DV_STR("10");

    must(
        dv_topology_machine_parse(dv_str_printf(arena, "0-%u", n_nodes - 1), arena, &machine, &err),
        &err);
    for (unsigned i = 1; i < n_nodes; i++)
        row = dv_str_printf(arena, "%.*s %u", DV_FMT(row), 10 + i);
    for (unsigned i = 0; i < n_nodes; i++)
        must(dv_topology_distances_parse(&machine.nodes[i], row, arena, &err), &err);
    return machine;
}

/* Prefers the single nodes; only one of them when `only` is a node. */
static struct dv_hint_list all_sets(unsigned n_nodes, int only, struct dv_arena *arena)
{
    size_t n = ((size_t)1 << n_nodes) - 1;
    struct dv_numa_hint *hints = DV_NEW_ARRAY(arena, struct dv_numa_hint, n);

    for (size_t i = 0; i < n; i++) {
        bool is_single = dv_topology_mask_count(i + 1) == 1;

        hints[i] =
            (struct dv_numa_hint){i + 1, true, is_single && (only < 0 || (i + 1) >> only == 1)};
    }
    return (struct dv_hint_list){hints, n, false};
}

static void run_merge(const void *ctx)
{
    const struct merge *merge = ctx;
    struct dv_topology_verdict verdict;
    struct dv_err err;

    must(dv_topology_merge(&merge->config, &merge->machine, merge->lists, merge->n_lists, &verdict,
                           &err),
         &err);
}

static void run_devices(const void *ctx)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct devices *devices = ctx;
    struct dv_hint_list list;
    struct dv_err err;

    must(dv_topology_device_hints(&devices->machine, devices->groups, devices->n_groups,
                                  devices->requested, arena, &list, &err),
         &err);
}

static double measure(void (*run)(const void *ctx), const void *ctx)
{
    struct dv_clock *clock = dv_clock_real();
    double best = 0;

    for (int i = 0; i < RUNS; i++) {
        uint64_t start = dv_clock_now_ns(clock);
        uint64_t took;
        unsigned n = 0;

        do {
            run(ctx);
            n++;
            took = dv_clock_now_ns(clock) - start;
        } while (took < RUN_NS);
        if (i == 0 || (double)took / n < best)
            best = (double)took / n;
    }
    return best;
}

static void bench_merge(unsigned n_nodes, size_t n_lists, bool agrees, bool prefers_closest)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct merge merge = {
        .config = {.policy = DV_TOPOLOGY_RESTRICTED, .prefers_closest = prefers_closest},
        .machine = make_machine(n_nodes, arena),
        .n_lists = n_lists,
    };
    double product = 1;

    for (size_t i = 0; i < n_lists; i++) {
        merge.lists[i] = all_sets(n_nodes, agrees ? -1 : (int)(i % n_nodes), arena);
        product *= (double)merge.lists[i].n_hints;
    }
    printf("merge %2u nodes %2zu lists  %-9s %-8s %12.2f us   product %8.2g\n", n_nodes, n_lists,
           agrees ? "agree" : "disagree", prefers_closest ? "closest" : "",
           measure(run_merge, &merge) / 1000, product);
}

static void bench_devices(unsigned n_nodes, size_t n_groups)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct devices devices = {
        .machine = make_machine(n_nodes, arena),
        .groups = DV_NEW_ARRAY(arena, struct dv_numa_group, n_groups),
        .n_groups = n_groups,
        .requested = 1,
    };

    for (size_t i = 0; i < n_groups; i++)
        devices.groups[i] = (struct dv_numa_group){
            {UINT64_C(1) << (i % n_nodes), DV_NUMA_NODES},
            1, 1, 0, 0
        };
    printf("hints %2u nodes %6zu groups of devices %12.2f us\n", n_nodes, n_groups,
           measure(run_devices, &devices) / 1000);
}

int main(void)
{
    static const unsigned nodes[] = {2, 4, 8};
    static const size_t lists[] = {1, 2, 4, 8};

    for (size_t i = 0; i < DV_COUNT(nodes); i++)
        for (size_t k = 0; k < DV_COUNT(lists); k++) {
            bench_merge(nodes[i], lists[k], true, false);
            bench_merge(nodes[i], lists[k], false, false);
        }
    bench_merge(8, 4, false, true);
    bench_merge(16, 4, false, false);
    for (size_t i = 0; i < DV_COUNT(nodes); i++) {
        bench_devices(nodes[i], nodes[i]);
        bench_devices(nodes[i], 10000);
    }
    bench_devices(16, 16);
    return 0;
}
