/* growth.h - whether a driver uses up more the longer it works. */
#ifndef DV_VERIFY_GROWTH_H
#define DV_VERIFY_GROWTH_H

#include <stddef.h>

struct dv_child;
struct dv_trial;

/* What is done again and again, and what is looked at meanwhile. */
struct dv_growth {
    struct dv_trial *trial;
    struct dv_child *process; /* NULL: it was running */
    const char *what;         /* "its memory in KiB" */
    const char *of;           /* "allocations" */
    size_t (*measure)(const struct dv_growth *growth);
    size_t max; /* what may be added in a round without being growth */
    void (*cycle)(void *ctx);
    void *ctx;
};

/* Fails the trial when what is measured grows in every one of several rounds of 500 cycles: caches
 * and collectors of garbage take something once, leaks take it always. Slow drivers have fewer
 * cycles. */
void dv_growth_check(const struct dv_growth *growth);

/* For `measure`. */
size_t dv_growth_descriptors(const struct dv_growth *growth);
size_t dv_growth_memory_kib(const struct dv_growth *growth);
size_t dv_growth_files(const struct dv_growth *growth); /* in the trial's directories */

#endif
