/* bench_ledger.c - what a question, a holding and its release cost, by how many hold something; and
 * the identities of a CDI name, by how many others its kind has.
 *
 * A pod holds one device with a PCI address, a node, a path, and a control node that all share. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"

#define IDENTITIES 4u
#define ROUNDS 20000u
/* The best of some runs counts: the rest is other programs. */
#define RUNS 7u
#define DEVICES 8u

static double elapsed_ns(uint64_t start, unsigned n)
{
    return (double)(dv_clock_now_ns(dv_clock_real()) - start) / n;
}

static void make_identities(unsigned number, struct dv_arena *arena, struct dv_identity *identities)
{
    identities[0] = (struct dv_identity){
        DV_IDENTITY_PCI, dv_str_printf(arena, "%04x:%02x:00.0", number >> 8, number & 0xff)};
    identities[1] =
        (struct dv_identity){DV_IDENTITY_NODE, dv_str_printf(arena, "char 240:%u", number)};
    identities[2] =
        (struct dv_identity){DV_IDENTITY_PATH, dv_str_printf(arena, "/dev/gpu%u", number)};
    identities[3] = (struct dv_identity){DV_IDENTITY_PATH, DV_STR("/dev/gpuctl")};
}

static struct dv_ledger_holder make_holder(unsigned number, enum dv_ledger_giver_kind giver_kind,
                                           struct dv_arena *arena)
{
    dv_str *device = DV_NEW(arena, dv_str);

    *device = dv_str_printf(arena, "gpu%u", number);
    return (struct dv_ledger_holder){
        .pod_uid = dv_str_printf(arena, "3f2c1e0c-0000-4000-8000-%012x", number),
        .namespace = DV_STR("space"),
        .name = dv_str_printf(arena, "pod-%u", number),
        .giver_kind = giver_kind,
        .giver =
            giver_kind == DV_LEDGER_PLUGIN ? DV_STR("vendor.com/gpu") : DV_STR("gpu.vendor.com"),
        .devices = device,
        .n_devices = 1,
    };
}

static void bench_ledger(unsigned n_held)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_ledger_freep) struct dv_ledger *ledger = dv_ledger_new();
    struct dv_identity identities[IDENTITIES];
    struct dv_ledger_holder holder;
    struct dv_ledger_conflict conflict;
    unsigned n_free = 0;
    uint64_t start;
    double free_ns;
    double hold_ns;

    for (unsigned i = 0; i < n_held; i++) {
        holder = make_holder(i, DV_LEDGER_PLUGIN, arena);
        make_identities(i, arena, identities);
        dv_ledger_hold(ledger, &holder, identities, IDENTITIES);
        (void)dv_ledger_learn(ledger, holder.pod_uid, IDENTITIES); /* is true */
    }
    holder = make_holder(n_held, DV_LEDGER_DRIVER, arena);
    make_identities(n_held, arena, identities);
    start = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < ROUNDS; i++)
        n_free += dv_ledger_check(ledger, &holder, identities, IDENTITIES, &conflict);
    free_ns = elapsed_ns(start, ROUNDS);
    start = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < ROUNDS; i++) {
        dv_ledger_hold(ledger, &holder, identities, IDENTITIES);
        (void)dv_ledger_learn(ledger, holder.pod_uid, IDENTITIES); /* is true */
        dv_ledger_release(ledger, holder.pod_uid);
    }
    hold_ns = elapsed_ns(start, ROUNDS);
    if (n_free != ROUNDS) {
        (void)fprintf(stderr, "bench_ledger: a free device is refused\n");
        exit(1);
    }
    printf("%6u pods: check %6.0f ns, hold and release %6.0f ns\n", n_held, free_ns, hold_ns);
}

/* A driver's file for one claim, on one of a few devices. */
static void add_spec(struct dv_cdi_index *index, unsigned number, struct dv_arena *arena)
{
    struct dv_cdi_file file = {
        .path = dv_str_printf(arena, "/var/run/cdi/claim-%08x.json", number * 2654435761u),
        .text = dv_str_printf(arena,
                              "{\"cdiVersion\":\"0.6.0\",\"kind\":\"vendor.com/gpu\",\"devices\":["
                              "{\"name\":\"%u\",\"containerEdits\":{\"deviceNodes\":["
                              "{\"path\":\"/dev/gpu%u\"},{\"path\":\"/dev/gpuctl\"}]}}]}",
                              number, number % DEVICES),
    };
    struct dv_cdi_spec *spec = dv_cdi_spec_new(&file);

    dv_cdi_index_add(index, spec);
    dv_cdi_spec_unref(spec);
}

static double time_identities(const struct dv_cdi_index *index, struct dv_arena *arena)
{
    uint64_t start = dv_clock_now_ns(dv_clock_real());
    dv_str name = DV_STR("vendor.com/gpu=7");

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct dv_identities set = {0};

        dv_identities_add_cdi_names(&set, index, &name, 1, NULL, arena);
        if (set.n != 1) {
            (void)fprintf(stderr, "bench_ledger: %zu identities\n", set.n);
            exit(1);
        }
        dv_arena_reset(arena);
    }
    return elapsed_ns(start, ROUNDS);
}

static void bench_cdi_name(unsigned n_names)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(NULL, 0);
    double best_ns = 0;

    for (unsigned i = 0; i < n_names; i++)
        add_spec(index, i, arena);
    for (unsigned i = 0; i < RUNS; i++) {
        double took_ns = time_identities(index, arena);

        best_ns = i == 0 || took_ns < best_ns ? took_ns : best_ns;
    }
    printf("%6u names of a kind: identities of one %8.2f us\n", n_names, best_ns / 1000);
}

int main(void)
{
    static const unsigned counts[] = {10, 1000, 100000};
    static const unsigned names[] = {10, 1000, 10000};

    for (size_t i = 0; i < DV_COUNT(counts); i++)
        bench_ledger(counts[i]);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        bench_cdi_name(names[i]);
    return 0;
}
