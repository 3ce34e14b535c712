/* bench_cdidir.c - what a claim's own spec file costs, by how many others there are.
 *
 * A driver writes a file for each claim that it prepares, all of one kind: a device with two nodes,
 * a variable and a mount. Each round writes one more (moved into its place, as drivers do), asks
 * for its name, asks again, and removes it. Memory is that of the process. */
#include <ftw.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "loop/loop.h"

#define ROUNDS 400u
#define KNOWN_AT_ONCE 50u

#define TEXT                                                                                       \
    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"gpu.vendor.com/claim\",\"devices\":[{\"name\":\"%u\","   \
    "\"containerEdits\":{\"env\":[\"GPU=%u\"],\"deviceNodes\":[{\"path\":\"/dev/gpu%u\"},"         \
    "{\"path\":\"/dev/gpuctl\"}],\"mounts\":[{\"hostPath\":\"/var/lib/gpu/%u\",\"containerPath\":" \
    "\"/gpu\",\"options\":[\"ro\",\"bind\"]}]}}]}\n"

struct bench {
    struct dv_loop *loop;
    struct dv_cdi_dirs *dirs;
    struct dv_arena *arena;
    char root[32];
};

static void must(bool is_ok, const char *what)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "bench_cdidir: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

static const char *path_of(struct bench *bench, unsigned number, const char *suffix)
{
    return dv_str_to_c(
        dv_str_printf(bench->arena, "%s/claim-%08x%s", bench->root, number * 2654435761u, suffix),
        bench->arena);
}

static void write_file(struct bench *bench, unsigned number)
{
    const char *made = path_of(bench, number, ".tmp");
    FILE *file = fopen(made, "we");

    must(file != NULL, made);
    must(fprintf(file, TEXT, number, number, number % 8, number) > 0, made);
    must(fclose(file) == 0, made);
    must(rename(made, path_of(bench, number, ".json")) == 0, made);
}

static bool resolve(struct bench *bench, unsigned number)
{
    dv_str name = dv_str_printf(bench->arena, "gpu.vendor.com/claim=%u", number);
    struct dv_cdi_edits edits;
    struct dv_err err;

    return dv_cdi_dirs_resolve(bench->dirs, &name, 1, bench->arena, &edits, &err);
}

static bool has_turned(void *ctx)
{
    bool *has_run = ctx;
    bool is_met = *has_run;

    *has_run = true;
    return is_met;
}

/* What was replaced is given back at the end of it. */
static void turn(struct bench *bench)
{
    bool has_run = false;

    must(dv_loop_run_until(bench->loop, has_turned, &has_run, 1000), "the loop stands");
    dv_arena_reset(bench->arena);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median in microseconds: the rest is other programs. */
static double median_us(double *samples_ns)
{
    qsort(samples_ns, ROUNDS, sizeof(samples_ns[0]), by_value);
    return samples_ns[ROUNDS / 2] / 1000;
}

static double bench_new(struct bench *bench, unsigned n_files)
{
    double samples[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun;

        write_file(bench, n_files + i);
        begun = now_ns();
        must(resolve(bench, n_files + i), "a new file is not found");
        samples[i] = (double)(now_ns() - begun);
        turn(bench);
    }
    return median_us(samples);
}

static double bench_known(struct bench *bench, unsigned n_files)
{
    double samples[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun = now_ns();

        for (unsigned k = 0; k < KNOWN_AT_ONCE; k++)
            must(resolve(bench, (i * 7919u + k) % n_files), "a known file is not found");
        samples[i] = (double)(now_ns() - begun) / KNOWN_AT_ONCE;
        dv_arena_reset(bench->arena);
    }
    return median_us(samples);
}

/* Time stands still, so that none but the first one looks at everything. */
static double bench_absent(struct bench *bench, unsigned n_files, bool removes)
{
    double samples[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begun;

        if (removes)
            must(unlink(path_of(bench, n_files + i, ".json")) == 0, "unlink");
        begun = now_ns();
        must(!resolve(bench, UINT32_MAX), "what no file has is found");
        samples[i] = (double)(now_ns() - begun);
        turn(bench);
        must(!removes || !resolve(bench, n_files + i), "a removed file is found");
    }
    return median_us(samples);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about;
    (void)type;
    (void)walk;
    return remove(path);
}

static void run(unsigned n_files)
{
    struct dv_cdi_dirs_options options = {0};
    struct dv_clock_virtual clock;
    struct bench bench = {.arena = dv_arena_new(), .root = "/tmp/bench-cdidir-XXXXXX"};
    struct dv_err err;
    size_t n_bytes;
    dv_str dir;
    double costs_us[4];

    must(mkdtemp(bench.root) != NULL, "mkdtemp");
    for (unsigned i = 0; i < n_files; i++) {
        write_file(&bench, i);
        dv_arena_reset(bench.arena);
    }
    dv_clock_virtual_init(&clock);
    bench.loop = dv_loop_new(&clock.clock, &err);
    must(bench.loop != NULL, "loop");
    dir = dv_str_from_c(bench.root);
    n_bytes = mallinfo2().uordblks;
    bench.dirs = dv_cdi_dirs_open(bench.loop, &dir, 1, &options, &err);
    must(bench.dirs != NULL, "open");
    n_bytes = mallinfo2().uordblks - n_bytes;
    must(!resolve(&bench, UINT32_MAX), "what no file has is found");
    costs_us[0] = bench_new(&bench, n_files);
    costs_us[1] = bench_known(&bench, n_files);
    costs_us[2] = bench_absent(&bench, n_files, false);
    costs_us[3] = bench_absent(&bench, n_files, true);
    printf("%6u files: new and resolved %6.1f us, known %6.2f us, absent %6.1f us, removed and "
           "absent %6.1f us; %5.2f KB a file\n",
           n_files, costs_us[0], costs_us[1], costs_us[2], costs_us[3],
           (double)n_bytes / 1024 / n_files);
    dv_cdi_dirs_close(bench.dirs, NULL, NULL);
    dv_loop_free(bench.loop);
    (void)nftw(bench.root, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* in /tmp, should it fail */
    dv_arena_free(bench.arena);
}

int main(void)
{
    static const unsigned counts[] = {10, 1000, 10000};

    for (size_t i = 0; i < DV_COUNT(counts); i++)
        run(counts[i]);
    return 0;
}
