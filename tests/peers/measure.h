/* measure.h - clocks, counters and percentiles of the benchmark programs in C. */
#ifndef PEERS_MEASURE_H
#define PEERS_MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t measure_now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* User and system time of this process. */
static inline uint64_t measure_cpu_us(void)
{
    struct rusage ru;

    (void)getrusage(RUSAGE_SELF, &ru); /* cannot fail */
    return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

/* Resident memory of this process; 0 when /proc does not say. */
static inline uint64_t measure_rss_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "re");

    if (!statm)
        return 0;
    if (fscanf(statm, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    (void)fclose(statm); /* only read from */
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline int measure_compare_u64(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static inline void measure_sort(uint64_t *times_ns, size_t n)
{
    qsort(times_ns, n, sizeof *times_ns, measure_compare_u64);
}

/* Of sorted times; the median is per_mille 500. */
static inline double measure_percentile_us(const uint64_t *sorted_ns, size_t n, size_t per_mille)
{
    size_t at = n == 0 ? 0 : (n - 1) * per_mille / 1000;

    return n == 0 ? 0 : (double)sorted_ns[at] / 1000;
}

#endif
