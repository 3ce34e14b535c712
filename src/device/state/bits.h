/* clang-format off */
/* bits.h - a set of small numbers that finds its next member in a few steps, however sparse it is.
 *
 *     level 2   ....X...    a bit says: this word of the level below has a member
 *     level 1   ..X.....
 *     level 0   ..X.....X   the members
 */
/* clang-format on */
#ifndef DV_DEVICE_BITS_H
#define DV_DEVICE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64^4 numbers, more than a list may have devices. */
#define DV_DEVICE_BITS_LEVELS 4

struct dv_device_bits {
    uint64_t *words; /* of all levels, the lowest first */
    uint64_t *levels[DV_DEVICE_BITS_LEVELS];
    size_t n_bits[DV_DEVICE_BITS_LEVELS]; /* of each level; members are below the first */
};

void dv_device_bits_init(struct dv_device_bits *bits, size_t n); /* empty */
void dv_device_bits_fini(struct dv_device_bits *bits);           /* a zeroed one is fine */

void dv_device_bits_set(struct dv_device_bits *bits, size_t i, bool is_in);
/* The first member from `i` on; SIZE_MAX when there is none. */
size_t dv_device_bits_next(const struct dv_device_bits *bits, size_t i);

#endif
