/* bench_alloc.c - what a claim costs on a node that is tried, and how that grows.
 *
 * The floor is what no allocator can do without: finding the node by its name, and an arena for the
 * result. Each line is the best of several runs; the rest is other programs. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/resource.h"

#define LINE_BYTES_MAX (256u << 20)
#define RUN_NS (20u * 1000u * 1000u)
#define RUNS 7
#define DEVICES 10u

struct bench {
    struct world world;
    struct dv_inventory *inventory;
    struct dv_arena *names; /* of nodes */
    struct dv_arena *arena; /* of one call */
    size_t n_nodes;
    struct dv_alloc_node *nodes;
    size_t next;
    struct dv_map map; /* of the floor */
    enum dv_alloc_outcome outcome;
};

/* ---- clusters ---- */

struct shape {
    unsigned n_nodes;
    unsigned n_devices; /* a node */
    unsigned n_values;  /* of the attribute "group" */
    unsigned n_held;    /* of the devices of each node */
    bool are_alike;     /* devices do not differ but in their names */
    const char *claim;  /* the members of its spec.devices */
};

static void put_slice(struct dv_buf *buf, const struct shape *shape, unsigned node)
{
    dv_buf_printf(buf,
                  "%s{\"metadata\":{\"name\":\"slice-%05u\"},\"spec\":{\"driver\":\"gpu.example."
                  "com\",\"pool\":{\"name\":\"node-%05u\",\"generation\":1,\"resourceSliceCount\":"
                  "1},\"nodeName\":\"node-%05u\",\"devices\":[",
                  node ? "," : "", node, node, node);
    for (unsigned i = 0; i < shape->n_devices; i++)
        dv_buf_printf(buf,
                      "%s{\"name\":\"gpu-%u\",\"attributes\":{\"uuid\":{\"string\":\"GPU-%u\"},"
                      "\"model\":{\"string\":\"LATEST-GPU-MODEL\"},\"driverVersion\":{\"version\":"
                      "\"1.2.3\"},\"group\":{\"int\":%u},\"kind\":{\"string\":\"k%u\"}},"
                      "\"capacity\":{\"memory\":{\"value\":\"80Gi\"}}}",
                      i ? "," : "", i, shape->are_alike ? 0 : i, i % shape->n_values, i % 5);
    dv_buf_add_c(buf, "]}}");
}

static void put_held(struct dv_buf *buf, const struct shape *shape)
{
    const char *comma = "";

    for (unsigned i = 0; i < shape->n_nodes; i++)
        for (unsigned j = 0; j < shape->n_held; j++) {
            dv_buf_printf(buf,
                          "%s{\"driver\":\"gpu.example.com\",\"pool\":\"node-%05u\",\"device\":"
                          "\"gpu-%u\"}",
                          comma, i, j);
            comma = ",";
        }
}

static void bench_open(struct bench *bench, const struct shape *shape)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"deviceClasses\":[{\"metadata\":{\"name\":\"plain\"},\"spec\":{}},"
                       "{\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"selectors\":[{\"cel\":{"
                       "\"expression\":\"device.driver == 'gpu.example.com'\"}}]}}],"
                       "\"resourceSlices\":[");
    for (unsigned i = 0; i < shape->n_nodes; i++)
        put_slice(&buf, shape, i);
    dv_buf_printf(&buf,
                  "],\"claims\":[{\"metadata\":{\"namespace\":\"default\",\"name\":\"claim\"},"
                  "\"spec\":{\"devices\":{%s}}}],\"state\":{\"allocatedDevices\":[",
                  shape->claim);
    put_held(&buf, shape);
    dv_buf_add_c(&buf, "]}}");
    *bench =
        (struct bench){.n_nodes = shape->n_nodes, .arena = dv_arena_new(), .names = dv_arena_new()};
    if (buf.is_over || !world_open(&bench->world, dv_buf_str(&buf))) {
        (void)fprintf(stderr, "bench_alloc: the cluster cannot be read\n");
        exit(1);
    }
    bench->nodes = DV_NEW_ARRAY(bench->names, struct dv_alloc_node, shape->n_nodes);
    dv_map_init(&bench->map);
    for (unsigned i = 0; i < shape->n_nodes; i++) {
        bench->nodes[i].name = dv_str_printf(bench->names, "node-%05u", i);
        dv_map_set(&bench->map, bench->nodes[i].name, &bench->nodes[i]);
    }
    bench->inventory = world_inventory(&bench->world);
}

static void bench_close(struct bench *bench)
{
    dv_inventory_free(bench->inventory);
    dv_map_fini(&bench->map);
    world_close(&bench->world);
    dv_arena_free(bench->arena);
    dv_arena_free(bench->names);
}

/* ---- what is measured ---- */

static void allocate(struct bench *bench, const struct dv_alloc_node *node,
                     struct dv_alloc_result *result)
{
    struct dv_alloc_options options = {0};
    struct dv_err err;

    dv_allocate(bench->inventory, node, bench->world.claims.v, bench->world.claims.n, &options,
                bench->arena, result, &err);
    bench->outcome = result->outcome;
}

static const struct dv_alloc_node *next_node(struct bench *bench)
{
    if (bench->next >= bench->n_nodes)
        bench->next = 0;
    return &bench->nodes[bench->next++];
}

/* The claim on the next node. */
static void try_node(struct bench *bench)
{
    struct dv_alloc_result result;

    allocate(bench, next_node(bench), &result);
    dv_arena_reset(bench->arena);
}

/* The same with the allocation held and released. */
static void take_and_release(struct bench *bench)
{
    struct dv_alloc_result result;

    allocate(bench, next_node(bench), &result);
    for (size_t i = 0; result.outcome == DV_ALLOC_DONE && i < bench->world.claims.n; i++) {
        dv_inventory_hold(bench->inventory, &result.allocations[i], DV_STR("default/claim"));
        dv_inventory_release(bench->inventory, &result.allocations[i]);
    }
    dv_arena_reset(bench->arena);
}

/* What is known of the node is found out anew. */
static void try_unknown_node(struct bench *bench)
{
    const struct dv_alloc_node *node = next_node(bench);
    struct dv_alloc_result result;

    dv_inventory_forget_node(bench->inventory, node->name);
    allocate(bench, node, &result);
    dv_arena_reset(bench->arena);
}

static void explain_node(struct bench *bench)
{
    struct dv_explanation explanation;

    dv_alloc_explain(bench->inventory, next_node(bench), bench->world.claims.v,
                     bench->world.claims.n, &(struct dv_alloc_options){0}, bench->arena,
                     &explanation);
    bench->outcome = explanation.outcome;
    dv_arena_reset(bench->arena);
}

static void do_nothing(struct bench *bench)
{
    if (dv_map_get(&bench->map, next_node(bench)->name))
        (void)dv_arena_alloc(bench->arena, 512, 8);
    dv_arena_reset(bench->arena);
}

static double measure(struct bench *bench, void (*run)(struct bench *bench))
{
    struct dv_clock *clock = dv_clock_real();
    double best = 0;

    for (size_t i = 0; i < bench->n_nodes; i++)
        run(bench);
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = dv_clock_now_ns(clock);
        uint64_t took;
        unsigned n = 0;

        do {
            for (int j = 0; j < 16; j++)
                run(bench);
            n += 16;
            took = dv_clock_now_ns(clock) - start;
        } while (took < RUN_NS);
        if (i == 0 || (double)took / n < best)
            best = (double)took / n;
    }
    return best;
}

static const char *outcome_name(enum dv_alloc_outcome outcome)
{
    static const char *const names[] = {"allocated", "none", "failed", "node failed", "gave up"};

    return names[outcome];
}

static void report(const char *what, const struct shape *shape, void (*run)(struct bench *bench))
{
    struct bench bench;
    double ns;

    bench_open(&bench, shape);
    ns = measure(&bench, run);
    printf("%-46s %9.2f us %10.0f claims/s   %s\n", what, ns / 1e3, 1e9 / ns,
           run == do_nothing ? "" : outcome_name(bench.outcome));
    bench_close(&bench);
}

/* ---- growth ---- */

static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

static void report_growth(const struct shape *shape)
{
    struct bench bench;
    size_t before;
    double ns;
    double unknown_ns;

    bench_open(&bench, shape);
    dv_inventory_free(bench.inventory);
    before = heap_bytes();
    bench.inventory = world_inventory(&bench.world);
    ns = measure(&bench, try_node);
    printf("  %5u nodes  %8.2f us a node", shape->n_nodes, ns / 1e3);
    printf("  %8.1f KiB, %5.0f bytes a device", (double)(heap_bytes() - before) / 1024,
           (double)(heap_bytes() - before) / (shape->n_nodes * shape->n_devices));
    unknown_ns = measure(&bench, try_unknown_node);
    printf("  %8.2f us when it is new\n", unknown_ns / 1e3);
    bench_close(&bench);
}

/* ---- */

#define ONE "\"deviceClassName\":\"plain\",\"allocationMode\":\"ExactCount\",\"count\":1"
#define CLAIM_ONE "\"requests\":[{\"name\":\"r\",\"exactly\":{" ONE "}}]"
#define CLAIM_SELECTED                                                                             \
    "\"requests\":[{\"name\":\"r\",\"exactly\":{\"deviceClassName\":\"gpu\",\"allocationMode\":"   \
    "\"ExactCount\",\"count\":1,\"selectors\":[{\"cel\":{\"expression\":\"device.attributes['gpu." \
    "example.com'].model == 'LATEST-GPU-MODEL' && device.capacity['gpu.example.com'].memory."      \
    "compareTo(quantity('40Gi')) >= 0\"}}]}}]"
#define MATCH ",\"constraints\":[{\"matchAttribute\":\"gpu.example.com/group\"}]"
#define DISTINCT ",\"constraints\":[{\"distinctAttribute\":\"gpu.example.com/group\"}]"

/* N wanted, N - 1 there: as one request or as N, alike or of five kinds. */
static void report_infeasible(unsigned n, bool is_one, const char *constraint, bool by_value)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct shape shape = {
        .n_nodes = 4,
        .n_devices = by_value ? 2 * (n - 1) : n - 1,
        .n_values = by_value ? 2 : 1,
    };
    char what[80];

    dv_buf_init(&buf, LINE_BYTES_MAX);
    dv_buf_add_c(&buf, "\"requests\":[");
    for (unsigned i = 0; i < (is_one ? 1 : n); i++)
        dv_buf_printf(&buf,
                      "%s{\"name\":\"r%u\",\"exactly\":{\"deviceClassName\":\"plain\","
                      "\"allocationMode\":\"ExactCount\",\"count\":%u}}",
                      i ? "," : "", i, is_one ? n : 1);
    dv_buf_printf(&buf, "]%s", constraint);
    if (dv_str_eq(dv_str_from_c(constraint), DV_STR(DISTINCT)) && !is_one) {
        shape.n_devices = 2 * n; /* enough of them, but not of values */
        shape.n_values = n - 1;
    }
    shape.claim = dv_buf_c(&buf);
    (void)snprintf(what, sizeof(what), "%2u wanted%s, %2u there%s%s", n,
                   is_one ? "" : " one by one", n - 1, by_value ? " of each value" : "",
                   constraint[0] == 0                                    ? ""
                   : dv_str_eq(dv_str_from_c(constraint), DV_STR(MATCH)) ? ", match"
                                                                         : ", distinct");
    report(what, &shape, try_node);
}

int main(void)
{
    static const unsigned counts[] = {8, 16, 32};
    static const unsigned sizes[] = {10, 100, 500, 1000, 5000};
    struct shape shape = {500, DEVICES, 2, 0, false, CLAIM_ONE};

    report("floor: node by name, arena", &shape, do_nothing);
    report("one device, empty", &shape, try_node);
    shape.n_held = 5;
    report("one device, half", &shape, try_node);
    shape.n_held = 10;
    report("one device, full", &shape, try_node);
    shape = (struct shape){500, DEVICES, 2, 5, false, CLAIM_SELECTED};
    report("one device, two selectors, half", &shape, try_node);
    report("the same, on a node that is new", &shape, try_unknown_node);
    report("the same, held and released", &shape, take_and_release);
    shape.n_held = 10;
    report("why not, two selectors, full", &shape, explain_node);
    shape = (struct shape){
        500,
        DEVICES,
        2,
        0,
        false,
        "\"requests\":[{\"name\":\"a\",\"exactly\":{" ONE "}},{\"name\":\"b\",\"exactly\":{" ONE
        "}},{\"name\":\"c\",\"exactly\":{" ONE "}},{\"name\":\"d\",\"exactly\":{" ONE
        "}},{\"name\":\"e\",\"exactly\":{" ONE "}}]" MATCH};
    report("five requests, match", &shape, try_node);
    shape.n_values = 3;
    report("five requests, match, not enough of a value", &shape, try_node);
    for (size_t i = 0; i < DV_COUNT(counts); i++) {
        report_infeasible(counts[i], true, "", false);
        report_infeasible(counts[i], true, MATCH, false);
        report_infeasible(counts[i], true, MATCH, true);
        report_infeasible(counts[i], true, DISTINCT, false);
        report_infeasible(counts[i], false, MATCH, true);
        report_infeasible(counts[i], false, DISTINCT, false);
    }
    printf("growth, one device, empty\n");
    for (size_t i = 0; i < DV_COUNT(sizes); i++) {
        shape = (struct shape){sizes[i], DEVICES, 2, 0, false, CLAIM_ONE};
        report_growth(&shape);
    }
    return 0;
}
