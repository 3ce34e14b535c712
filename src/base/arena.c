#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

/* The first block is small, so that an arena for a tiny request costs little; later ones double up
 * to the larger size. */
#define FIRST_BLOCK_BYTES 1024u
#define BLOCK_BYTES_MAX (64u * 1024u)

struct block {
    struct block *next; /* older */
    size_t size;        /* of data */
    _Alignas(max_align_t) char data[];
};

struct dv_arena {
    struct block *block; /* the one being filled */
    size_t used;         /* of its data */
    size_t filled;       /* of the older ones, with what alignment may have cost in one block */
    size_t size_bytes;
};

void *dv_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        abort();
    return p;
}

void *dv_realloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        abort();
    return p;
}

struct dv_arena *dv_arena_new(void)
{
    struct dv_arena *arena = DV_ALLOC(struct dv_arena);

    arena->size_bytes = sizeof(*arena);
    return arena;
}

static void free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
}

void dv_arena_free(struct dv_arena *arena)
{
    if (!arena)
        return;
    free_blocks(arena->block);
    free(arena);
}

void dv_arena_freep(struct dv_arena **arena)
{
    dv_arena_free(*arena);
}

void dv_arena_reset(struct dv_arena *arena)
{
    struct block *keep = arena->block;

    if (!keep)
        return;
    free_blocks(keep->next);
    keep->next = NULL;
    if (keep->size > BLOCK_BYTES_MAX) { /* the memory of one large request is not kept */
        free(keep);
        arena->block = NULL;
        arena->size_bytes = sizeof(*arena);
        arena->used = arena->filled = 0;
        return;
    }
    arena->used = arena->filled = 0;
    arena->size_bytes = sizeof(*arena) + sizeof(*keep) + keep->size;
}

size_t dv_arena_size_bytes(const struct dv_arena *arena)
{
    return arena->size_bytes;
}

size_t dv_arena_used_bytes(const struct dv_arena *arena)
{
    return arena->filled + arena->used;
}

static void add_block(struct dv_arena *arena, size_t size)
{
    struct block *block;
    size_t total;

    if (!dv_size_add(size, sizeof(*block), &total))
        abort();
    block = dv_realloc(NULL, total); /* zeroed as it is handed out */
    block->size = size;
    block->next = arena->block;
    if (arena->block)
        arena->filled += arena->used + _Alignof(max_align_t);
    arena->block = block;
    arena->used = 0;
    arena->size_bytes += total;
}

struct dv_arena *dv_arena_new_sized(size_t n)
{
    struct dv_arena *arena = dv_arena_new();

    add_block(arena, n);
    return arena;
}

/* The size of the next block, which has room for n bytes. */
static size_t next_size(const struct dv_arena *arena, size_t n)
{
    size_t size = arena->block ? arena->block->size * 2 : FIRST_BLOCK_BYTES;

    size = dv_size_max(size, FIRST_BLOCK_BYTES);
    return dv_size_max(dv_size_min(size, BLOCK_BYTES_MAX), n);
}

void *dv_arena_alloc_raw(struct dv_arena *arena, size_t n, size_t align)
{
    size_t at = (arena->used + align - 1) & ~(align - 1);

    if (!arena->block || at > arena->block->size || n > arena->block->size - at) {
        add_block(arena, next_size(arena, n));
        at = 0;
    }
    arena->used = at + n;
    return arena->block->data + at;
}

void *dv_arena_alloc(struct dv_arena *arena, size_t n, size_t align)
{
    return memset(dv_arena_alloc_raw(arena, n, align), 0, n);
}

void *dv_arena_alloc_array(struct dv_arena *arena, size_t n, size_t size, size_t align)
{
    size_t total;

    if (!dv_size_mul(n, size, &total))
        abort();
    return dv_arena_alloc(arena, total, align);
}
