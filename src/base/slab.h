/* slab.h - memory for small things that last, by the ten thousand.
 *
 * Things of one size lie side by side in slabs, without a header each. The C library would put them
 * between what a burst of requests needs for a moment, and they would keep the holes that it leaves
 * from being given back. For one thread. */
#ifndef DV_BASE_SLAB_H
#define DV_BASE_SLAB_H

#include <stddef.h>

#include "base/list.h"

/* Larger things are the C library's. */
#define DV_SLAB_BYTES_MAX 1024u
/* Sizes are rounded up to this, which is any type's alignment. */
#define DV_SLAB_STEP 16u

struct dv_slabs {
    struct dv_list free[DV_SLAB_BYTES_MAX / DV_SLAB_STEP]; /* by size: slabs with room */
    struct dv_list regions;                                /* that have slabs to give */
    size_t n;                                              /* of things in slabs */
};

void dv_slabs_init(struct dv_slabs *slabs);
/* All has been given back. */
void dv_slabs_fini(struct dv_slabs *slabs);

/* n zeroed bytes. */
void *dv_slab_alloc(struct dv_slabs *slabs, size_t n);
/* `n` is what was asked for. NULL is fine. */
void dv_slab_free(struct dv_slabs *slabs, void *p, size_t n);

#endif
