/* bench_cdi.c - what an index of many specs costs, and a name in it.
 *
 * A spec has ten devices with two device nodes, a mount, a variable and a hook each, as vendors
 * write them. "index" is over specs that are read already: what a change of one file costs beside
 * reading that one. */
#include "cdi/cdi.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

#define SPECS_MAX 10000u
#define DEVICES 10u
#define SPEC_BYTES_MAX 65536u
/* The best of some runs counts: the rest is other programs. */
#define RUNS 7
#define RESOLVES 100000u

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "bench_cdi: %s\n", err->msg);
    exit(1);
}

static void print_spec(unsigned number, struct dv_buf *buf)
{
    dv_buf_printf(buf, "{\"cdiVersion\":\"0.6.0\",\"kind\":\"vendor%u.com/gpu\",\"devices\":[",
                  number);
    for (unsigned i = 0; i < DEVICES; i++)
        dv_buf_printf(buf,
                      "%s{\"name\":\"%u\",\"containerEdits\":{\"env\":[\"GPU=%u\"],"
                      "\"deviceNodes\":[{\"path\":\"/dev/gpu%u\",\"type\":\"c\",\"major\":195,"
                      "\"minor\":%u},{\"path\":\"/dev/gpuctl\",\"permissions\":\"rw\"}],"
                      "\"mounts\":[{\"hostPath\":\"/usr/lib/libgpu.so\",\"containerPath\":"
                      "\"/usr/lib/libgpu.so\",\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}],"
                      "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/hook\","
                      "\"args\":[\"hook\",\"--device\",\"%u\"]}]}}",
                      i ? "," : "", i, i, i, i, i);
    dv_buf_add_c(buf, "]}");
}

static struct dv_cdi_spec *read_spec(unsigned number, struct dv_buf *buf)
{
    struct dv_cdi_file file = {.path = DV_STR("/etc/cdi/vendor.json"), .priority = number % 2};
    struct dv_cdi_spec *spec;

    dv_buf_clear(buf);
    print_spec(number, buf);
    file.text = dv_buf_str(buf);
    spec = dv_cdi_spec_new(&file);
    assert(spec->n_problems == 0);
    return spec;
}

static double best_of(double best, uint64_t start, int run)
{
    double took = (double)(dv_clock_now_ns(dv_clock_real()) - start);

    return run == 0 || took < best ? took : best;
}

static double bench_read(unsigned n_specs, struct dv_cdi_spec **specs)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    double best = 0;

    dv_buf_init(&buf, SPEC_BYTES_MAX);
    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());

        for (unsigned i = 0; i < n_specs; i++) {
            dv_cdi_spec_unref(specs[i]);
            specs[i] = read_spec(i, &buf);
        }
        best = best_of(best, start, run);
    }
    return best;
}

static double bench_index(unsigned n_specs, struct dv_cdi_spec **specs)
{
    double best = 0;

    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());

        dv_cdi_index_free(dv_cdi_index_new(specs, n_specs));
        best = best_of(best, start, run);
    }
    return best;
}

/* Of `n_names` devices of different specs at a time. */
static double bench_resolve(const struct dv_cdi_index *index, struct dv_cdi_spec *const *specs,
                            unsigned n_specs, size_t n_names)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cdi_edits edits;
    struct dv_err err;
    dv_str names[8];
    double best = 0;

    for (int run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());

        for (unsigned i = 0; i < RESOLVES; i++) {
            for (size_t k = 0; k < n_names; k++)
                names[k] = specs[(i * 7919u + k) % n_specs]->devices[i % DEVICES].full_name;
            must(dv_cdi_resolve(index, names, n_names, arena, &edits, &err), &err);
            dv_arena_reset(arena);
        }
        best = best_of(best, start, run);
    }
    return best / RESOLVES;
}

int main(void)
{
    static struct dv_cdi_spec *specs[SPECS_MAX];
    static const unsigned counts[] = {10, 1000, SPECS_MAX};

    for (size_t i = 0; i < DV_COUNT(counts); i++) {
        unsigned n = counts[i];
        double read_ns = bench_read(n, specs);
        DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = dv_cdi_index_new(specs, n);

        printf("%6u specs x %u devices: read %8.2f us a spec, index %9.3f ms, resolve 1 name %6.0f "
               "ns, 8 names %6.0f ns\n",
               n, DEVICES, read_ns / n / 1000, bench_index(n, specs) / 1e6,
               bench_resolve(index, specs, n, 1), bench_resolve(index, specs, n, 8));
    }
    for (size_t i = 0; i < SPECS_MAX; i++)
        dv_cdi_spec_unref(specs[i]);
    return 0;
}
