#include "resource/codec/value_blocks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"

/* The C library maps blocks of this size one by one (vitals.c), and unmaps them when they are
 * freed. */
#define REGION_BYTES ((size_t)256 * 1024)
/* A larger block has a region of its own, and under a sanitizer each. */
#define SHARED_BYTES_MAX (DV_IS_SANITIZED ? 0 : REGION_BYTES / 8)

struct dv_value_region {
    size_t size;
    size_t used;
    size_t n_blocks;
    _Alignas(max_align_t) char bytes[];
};

/* Stands before each block. */
union head {
    struct dv_value_region *region;
    max_align_t align;
};

static struct dv_value_region *new_region(size_t size)
{
    /* Not zeroed: only what is used of it becomes resident. */
    struct dv_value_region *region = dv_realloc(NULL, sizeof(*region) + size);

    *region = (struct dv_value_region){.size = size};
    return region;
}

static void *take_from(struct dv_value_region *region, size_t n)
{
    union head *head = (void *)(region->bytes + region->used);

    assert(n <= region->size - region->used);
    head->region = region;
    region->used += n;
    region->n_blocks++;
    return head + 1;
}

/* Makes the region the spare one, unless there is one. */
static void put_away(struct dv_value_blocks *blocks, struct dv_value_region *region)
{
    region->used = 0;
    if (blocks->spare || region->size != REGION_BYTES)
        free(region);
    else
        blocks->spare = region;
}

static void next_region(struct dv_value_blocks *blocks)
{
    /* One that is empty would have been begun anew: something is left in the old one. */
    blocks->filling = blocks->spare ? blocks->spare : new_region(REGION_BYTES);
    blocks->spare = NULL;
}

void *dv_value_take(struct dv_value_blocks *blocks, size_t n)
{
    size_t align = _Alignof(max_align_t);

    if (!dv_size_add(n, sizeof(union head) + align - 1, &n))
        abort();
    n &= ~(align - 1);
    blocks->n_blocks++;
    if (n > SHARED_BYTES_MAX)
        return take_from(new_region(n), n);
    if (!blocks->filling || n > blocks->filling->size - blocks->filling->used)
        next_region(blocks);
    return take_from(blocks->filling, n);
}

void dv_value_give(struct dv_value_blocks *blocks, void *block)
{
    struct dv_value_region *region = ((union head *)block - 1)->region;

    blocks->n_blocks--;
    if (--region->n_blocks == 0) {
        if (region == blocks->filling)
            region->used = 0;
        else
            put_away(blocks, region);
    }
    if (blocks->n_blocks > 0)
        return;
    free(blocks->filling);
    free(blocks->spare);
    blocks->filling = blocks->spare = NULL;
}
