/* bench_ledger.c - what a question, a holding and its release cost, by how many hold something; and
 * the identities of a CDI name, by how many devices its kind has.
 *
 * A pod holds one device with a PCI address, a node, a path, and a control node that all share. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "pod/identity.h"
#include "pod/ledger.h"

#define IDENTITIES 4u
#define ROUNDS 20000u
#define SPEC_BYTES_MAX (4u * 1024u * 1024u)

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

static struct dv_ledger_holder make_holder(unsigned number, enum dv_ledger_way way,
                                           struct dv_arena *arena)
{
    dv_str *device = DV_NEW(arena, dv_str);

    *device = dv_str_printf(arena, "gpu%u", number);
    return (struct dv_ledger_holder){
        .pod_uid = dv_str_printf(arena, "3f2c1e0c-0000-4000-8000-%012x", number),
        .space = DV_STR("space"),
        .name = dv_str_printf(arena, "pod-%u", number),
        .way = way,
        .giver = way == DV_LEDGER_PLUGIN ? DV_STR("vendor.com/gpu") : DV_STR("gpu.vendor.com"),
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
        dv_ledger_release(ledger, holder.pod_uid);
    }
    hold_ns = elapsed_ns(start, ROUNDS);
    if (n_free != ROUNDS) {
        (void)fprintf(stderr, "bench_ledger: a free device is refused\n");
        exit(1);
    }
    printf("%6u pods: check %6.0f ns, hold and release %6.0f ns\n", n_held, free_ns, hold_ns);
}

static struct dv_cdi_spec *make_spec(unsigned n_devices, struct dv_buf *buf)
{
    struct dv_cdi_file file = {.path = DV_STR("/etc/cdi/vendor.json")};

    dv_buf_add_c(buf, "{\"cdiVersion\":\"0.6.0\",\"kind\":\"vendor.com/gpu\",\"devices\":[");
    for (unsigned i = 0; i < n_devices; i++)
        dv_buf_printf(buf,
                      "%s{\"name\":\"%u\",\"containerEdits\":{\"deviceNodes\":["
                      "{\"path\":\"/dev/gpu%u\"},{\"path\":\"/dev/gpuctl\"}]}}",
                      i > 0 ? "," : "", i, i);
    dv_buf_add_c(buf, "]}");
    file.text = dv_buf_str(buf);
    return dv_cdi_spec_new(&file);
}

static void bench_cdi_name(unsigned n_devices)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    DV_CLEANUP(dv_cdi_spec_unrefp) struct dv_cdi_spec *spec = NULL;
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = NULL;
    dv_str name = DV_STR("vendor.com/gpu=7");
    unsigned n_rounds = ROUNDS / n_devices + 1;
    uint64_t start;

    dv_buf_init(&buf, SPEC_BYTES_MAX);
    spec = make_spec(n_devices, &buf);
    index = dv_cdi_index_new(&spec, 1);
    start = dv_clock_now_ns(dv_clock_real());
    for (unsigned i = 0; i < n_rounds; i++) {
        struct dv_identities set = {0};

        dv_identities_add_cdi_names(&set, index, &name, 1, NULL, arena);
        if (set.n != 1) {
            (void)fprintf(stderr, "bench_ledger: %zu identities\n", set.n);
            exit(1);
        }
        dv_arena_reset(arena);
    }
    printf("%6u devices of a kind: identities of a name %8.1f us\n", n_devices,
           elapsed_ns(start, n_rounds) / 1000);
}

int main(void)
{
    static const unsigned counts[] = {10, 1000, 100000};
    static const unsigned kinds[] = {8, 100, 10000};

    for (size_t i = 0; i < DV_COUNT(counts); i++)
        bench_ledger(counts[i]);
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        bench_cdi_name(kinds[i]);
    return 0;
}
