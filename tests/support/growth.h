/* growth.h - whether what something costs grows as its input does, and not as its square. */
#ifndef DV_TESTS_GROWTH_H
#define DV_TESTS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define GROWTH_TIMES 4u
#define GROWTH_TRIES 8u

typedef void growth_run(void *ctx, size_t n);

static inline double growth_cpu_s(growth_run *run, void *ctx, size_t n)
{
    struct timespec from = {0};
    struct timespec to = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from); /* a clock that is always there */
    run(ctx, n);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Four times the input may cost ten times as much: caches are left behind on the way. A square
 * costs sixteen times. Processor time is noisy on a machine with other work, so one good try of
 * several is enough: no square ever looks like a line. */
static inline bool growth_is_linear(growth_run *run, void *ctx, size_t n)
{
    for (size_t i = 0; i < GROWTH_TRIES; i++) {
        double small_s = growth_cpu_s(run, ctx, n);
        double large_s = growth_cpu_s(run, ctx, GROWTH_TIMES * n);

        if (large_s < 10 * small_s)
            return true;
    }
    return false;
}

#endif
