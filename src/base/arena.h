/* arena.h - memory that is given back all at once; and, at the end, small things that last.
 *
 * An arena parameter is a lifetime: what a function puts there lives until its owner frees the
 * arena. Memory comes zeroed. Running out of memory aborts. */
#ifndef DV_BASE_ARENA_H
#define DV_BASE_ARENA_H

#include <stddef.h>

#include "base/list.h"

struct dv_arena;

struct dv_arena *dv_arena_new(void);
/* With room for n bytes from the start: for what is copied once and then kept for long. */
struct dv_arena *dv_arena_new_sized(size_t n);
void dv_arena_free(struct dv_arena *arena);   /* NULL is fine */
void dv_arena_freep(struct dv_arena **arena); /* for DV_CLEANUP */
/* Frees everything in the arena, and keeps one block for the next use. */
void dv_arena_reset(struct dv_arena *arena);
/* The memory that the arena has from the system, overhead included. */
size_t dv_arena_size_bytes(const struct dv_arena *arena);
/* What dv_arena_new_sized needs so that the same allocations fit. */
size_t dv_arena_used_bytes(const struct dv_arena *arena);

/* Allocates zeroed memory; `align` is a power of two. n == 0 gives a valid pointer to nothing. */
void *dv_arena_alloc(struct dv_arena *arena, size_t n, size_t align)
    __attribute__((returns_nonnull, malloc, alloc_size(2)));
/* Allocates memory that is not zeroed, for callers that overwrite it at once. */
void *dv_arena_alloc_raw(struct dv_arena *arena, size_t n, size_t align)
    __attribute__((returns_nonnull, malloc, alloc_size(2)));
/* Allocates n elements of `size` bytes; aborts when the product overflows. */
void *dv_arena_alloc_array(struct dv_arena *arena, size_t n, size_t size, size_t align)
    __attribute__((returns_nonnull, malloc));

#define DV_NEW(arena, type) ((type *)dv_arena_alloc((arena), sizeof(type), _Alignof(type)))
#define DV_NEW_ARRAY(arena, type, n)                                                               \
    ((type *)dv_arena_alloc_array((arena), (n), sizeof(type), _Alignof(type)))

/* Allocate zeroed memory on the heap, and abort when it is exhausted; to be freed with free(). */
void *dv_alloc(size_t n) __attribute__((returns_nonnull, malloc, alloc_size(1)));
void *dv_realloc(void *p, size_t n)
    __attribute__((returns_nonnull)); /* the new part is not zeroed */
#define DV_ALLOC(type) ((type *)dv_alloc(sizeof(type)))

/* ---- slabs ---- */

/* Memory for small things that last, by the ten thousand. Things of one size lie side by side in
 * slabs, without a header each. The C library would put them between what a burst of requests needs
 * for a moment, and they would keep the holes that it leaves from being given back. For one
 * thread. */

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
