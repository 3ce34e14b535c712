/* bench.h - what benchmarks measure with. */
#ifndef DV_TESTS_BENCH_H
#define DV_TESTS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"

static inline uint64_t bench_now_ns(void)
{
    return dv_clock_now_ns(dv_clock_real());
}

/* CLOCK_PROCESS_CPUTIME_ID or CLOCK_THREAD_CPUTIME_ID. */
static inline uint64_t bench_cpu_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now); /* exists on every Linux */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Ends the program when something that is not measured did not work. `err` may be NULL. */
static inline void bench_must(bool is_ok, const char *what, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "%s: %s\n", what, err ? err->msg : "failed");
    exit(1);
}

/* A number of this process: the line that begins with `word` in a file under /proc/self. */
static inline uint64_t bench_proc(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char line[200];
    uint64_t n = 0;

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, word, strlen(word)) == 0)
            n = strtoull(line + strlen(word), NULL, 10);
    if (file)
        (void)fclose(file);
    return n;
}

static inline size_t bench_resident_kib(void)
{
    return (size_t)bench_proc("/proc/self/status", "VmRSS:");
}

/* For qsort, of uint64_t. */
static inline int bench_by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

#endif
