/* use_ring.h - how many devices were held during the last hour, by resource and by pool: samples in
 * memory, which a restart forgets. Pure. */
#ifndef DV_SERVE_USE_RING_H
#define DV_SERVE_USE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_use_ring;

/* A sample every ten seconds: a line of an hour is then as fine as a page can draw it. */
#define DV_USE_STEP_MS 10000u
#define DV_USE_SAMPLES 360u
/* The limit of resources and pools; further ones have no past. */
#define DV_USES_MAX 256u

/* What is counted: a plugin's resource, or a driver's pool. */
struct dv_use_key {
    dv_str resource;
    dv_str driver;
    dv_str pool;
};

struct dv_past_use {
    struct dv_use_key key;
    const uint32_t *held; /* the oldest first */
    size_t n;
};

struct dv_use_ring *dv_use_ring_new(void);
void dv_use_ring_free(struct dv_use_ring *ring); /* NULL is fine */

/* Begins a sample, in which nothing is held yet. What was held in none of the last samples is
 * forgotten, unless it is added again. */
void dv_use_ring_begin(struct dv_use_ring *ring);
/* Adds to what is held in the present sample; 0 makes the key known. The key is copied. */
void dv_use_ring_add(struct dv_use_ring *ring, const struct dv_use_key *key, uint64_t n);

/* Returns the number of uses, by resource, driver and pool; all in `arena`. */
size_t dv_use_ring_list(const struct dv_use_ring *ring, struct dv_arena *arena,
                        struct dv_past_use **uses);

#endif
