/* value_blocks.h - memory for values that are there for a moment, by the thousand.
 *
 * They lie one behind the other in large regions, and a region is given back when nothing is left
 * in it. The C library would put them between what lasts, and what lasts into the holes that they
 * leave, so that a burst would never be over in its heap. For one thread. */
#ifndef DV_RESOURCE_VALUE_BLOCKS_H
#define DV_RESOURCE_VALUE_BLOCKS_H

#include <stddef.h>

struct dv_value_region;

/* All zeros: there is none yet. */
struct dv_value_blocks {
    struct dv_value_region *filling; /* NULL: there is none */
    struct dv_value_region *spare;   /* an empty one; NULL: there is none */
    size_t n_blocks;
};

/* A block that is aligned for any type; its content is undefined. */
void *dv_value_take(struct dv_value_blocks *blocks, size_t n);
/* Gives the block back; with the last one all memory is given back. */
void dv_value_give(struct dv_value_blocks *blocks, void *block);

#endif
