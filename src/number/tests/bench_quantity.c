/* bench_quantity.c - what reading, printing, comparing and adding quantities costs. */
#include "number/number.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* Each is measured this often, and its best run counts: the rest is other programs. */
#define RUNS 15
#define CALLS 10000
#define PRINT_BYTES_MAX 1000u

struct work {
    dv_str text;
    struct dv_quantity quantity;
    struct dv_quantity other;
    struct dv_arena *arena;
    struct dv_buf buf;
    int64_t sum; /* so that nothing is optimized away */
};

static void run_parse(struct work *work)
{
    struct dv_err err;

    if (dv_quantity_parse(work->text, work->arena, &work->quantity, &err))
        work->sum += work->quantity.value;
}

static void run_print(struct work *work)
{
    dv_buf_clear(&work->buf);
    dv_quantity_print(&work->quantity, &work->buf);
    work->sum += (int64_t)work->buf.n;
}

static void run_cmp(struct work *work)
{
    work->sum += dv_quantity_cmp(&work->quantity, &work->other);
}

static void run_add(struct work *work)
{
    work->sum += dv_quantity_add(&work->quantity, &work->other, work->arena).scale;
}

static void run_whole(struct work *work)
{
    int64_t value;

    if (dv_quantity_to_i64_ceil(&work->quantity, &value))
        work->sum += value;
}

static double measure(void (*run)(struct work *work), struct work *work)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < RUNS; i++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        uint64_t took;

        for (int k = 0; k < CALLS; k++)
            run(work);
        took = dv_clock_now_ns(dv_clock_real()) - start;
        best = took < best ? took : best;
        dv_arena_reset(work->arena);
    }
    return (double)best / CALLS;
}

static bool bench(const char *text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *kept = dv_arena_new();
    struct work work = {.text = dv_str_from_c(text), .arena = arena};
    struct dv_err err;
    double parse_ns = measure(run_parse, &work);

    if (!dv_quantity_parse(work.text, kept, &work.quantity, &err) ||
        !dv_quantity_parse(DV_STR("1500m"), kept, &work.other, &err)) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return false;
    }
    dv_buf_init(&work.buf, PRINT_BYTES_MAX);
    printf("%-32s %8.1f %8.1f %8.1f %8.1f %8.1f\n", text, parse_ns, measure(run_print, &work),
           measure(run_cmp, &work), measure(run_add, &work), measure(run_whole, &work));
    dv_buf_fini(&work.buf);
    return true;
}

int main(void)
{
    static const char *const texts[] = {
        "4", "100m", "80Gi", "1.5Gi", "100Ti", "1e9", "1e1000", "123456789012345678901234567890"};

    printf("%-32s %8s %8s %8s %8s %8s   ns each\n", "", "parse", "print", "cmp", "add", "whole");
    for (size_t i = 0; i < DV_COUNT(texts); i++)
        if (!bench(texts[i]))
            return 1;
    return 0;
}
