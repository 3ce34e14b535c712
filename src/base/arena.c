#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/list.h"
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

/* ---- slabs ---- */

/* A slab is aligned to its size, so that it is found from what lies in it. */
#define SLAB_BYTES 16384u
/* The C library maps regions of so many slabs one by one (vitals.c), and unmaps them when they are
 * freed. Only what is used of one becomes resident. */
#define REGION_SLABS 16u
#define ALL_FREE ((1u << REGION_SLABS) - 1)
/* An empty region of which no more slabs were ever used is kept: where a single thing comes and
 * goes, mapping one each time would cost more than all else. */
#define KEPT_SLABS 2u

struct region {
    struct dv_link link; /* in slabs->regions, while a slab of it is free */
    char *base;
    uint32_t free;      /* a bit for each slab */
    uint32_t n_touched; /* slabs, from the first */
};

struct slab {
    struct dv_link link; /* in slabs->free, while it has room */
    struct region *region;
    uint32_t n_used;
    uint16_t first;   /* the first place that was given back, counted from 1; 0: there is none */
    uint16_t n_fresh; /* how many places, from the first, were ever taken */
    _Alignas(DV_SLAB_STEP) char bytes[];
};

_Static_assert(_Alignof(max_align_t) <= DV_SLAB_STEP, "things are aligned for any type");

/* Which list a size is in. */
static size_t class_of(size_t n)
{
    return n > 0 ? (n - 1) / DV_SLAB_STEP : 0;
}

static size_t thing_bytes(size_t class)
{
    return (class + 1) * DV_SLAB_STEP;
}

static size_t n_places(size_t class)
{
    return (SLAB_BYTES - sizeof(struct slab)) / thing_bytes(class);
}

static void *place(struct slab *slab, size_t class, size_t i)
{
    return slab->bytes + i * thing_bytes(class);
}

void dv_slabs_init(struct dv_slabs *slabs)
{
    slabs->n = 0;
    dv_list_init(&slabs->regions);
    for (size_t i = 0; i < DV_COUNT(slabs->free); i++)
        dv_list_init(&slabs->free[i]);
}

static void free_region(struct region *region)
{
    dv_link_remove(&region->link);
    free(region->base);
    free(region);
}

void dv_slabs_fini(struct dv_slabs *slabs)
{
    struct dv_link *link;

    assert(slabs->n == 0); /* so that all regions are in the list */
    while ((link = dv_list_first(&slabs->regions)) != NULL)
        free_region(DV_CONTAINER(link, struct region, link));
}

static struct region *new_region(struct dv_slabs *slabs)
{
    struct region *region = DV_ALLOC(struct region);
    void *base;

    if (posix_memalign(&base, SLAB_BYTES, (size_t)REGION_SLABS * SLAB_BYTES) != 0)
        abort();
    region->base = base;
    region->free = ALL_FREE;
    dv_list_push(&slabs->regions, &region->link);
    return region;
}

static struct slab *new_slab(struct dv_slabs *slabs, size_t class)
{
    struct dv_link *link = dv_list_first(&slabs->regions);
    struct region *region = link ? DV_CONTAINER(link, struct region, link) : new_region(slabs);
    unsigned at = (unsigned)__builtin_ctz(region->free);
    struct slab *slab = (void *)(region->base + (size_t)at * SLAB_BYTES);

    region->free &= ~(1u << at);
    if (region->n_touched <= at)
        region->n_touched = at + 1;
    if (region->free == 0)
        dv_link_remove(&region->link);
    *slab = (struct slab){.region = region};
    dv_list_push(&slabs->free[class], &slab->link);
    return slab;
}

static void give_slab(struct dv_slabs *slabs, struct slab *slab)
{
    struct region *region = slab->region;

    dv_link_remove(&slab->link);
    region->free |= 1u << ((size_t)((char *)slab - region->base) / SLAB_BYTES);
    if (region->free == ALL_FREE && region->n_touched > KEPT_SLABS)
        free_region(region);
    else if (!dv_link_is_in(&region->link))
        dv_list_push(&slabs->regions, &region->link);
}

static void *take_place(struct slab *slab, size_t class)
{
    void *thing;

    slab->n_used++;
    if (slab->first == 0)
        return place(slab, class, slab->n_fresh++);
    thing = place(slab, class, slab->first - 1u);
    memcpy(&slab->first, thing, sizeof(slab->first)); /* see dv_slab_free */
    return thing;
}

void *dv_slab_alloc(struct dv_slabs *slabs, size_t n)
{
    size_t class = class_of(n);
    struct dv_link *link;
    struct slab *slab;
    void *thing;

    if (n > DV_SLAB_BYTES_MAX || DV_IS_SANITIZED)
        return dv_alloc(n);
    link = dv_list_first(&slabs->free[class]);
    slab = link ? DV_CONTAINER(link, struct slab, link) : new_slab(slabs, class);
    thing = take_place(slab, class);
    if (slab->n_used == n_places(class))
        dv_link_remove(&slab->link);
    slabs->n++;
    return memset(thing, 0, n);
}

void dv_slab_free(struct dv_slabs *slabs, void *p, size_t n)
{
    size_t class = class_of(n);
    struct slab *slab;

    if (n > DV_SLAB_BYTES_MAX || DV_IS_SANITIZED || !p) {
        free(p);
        return;
    }
    slab = (struct slab *)((uintptr_t)p & ~(uintptr_t)(SLAB_BYTES - 1));
    slabs->n--;
    if (--slab->n_used == 0) {
        give_slab(slabs, slab);
        return;
    }
    if (!dv_link_is_in(&slab->link))
        dv_list_push(&slabs->free[class], &slab->link);
    memcpy(p, &slab->first, sizeof(slab->first));
    slab->first = (uint16_t)(((size_t)((char *)p - slab->bytes)) / thing_bytes(class) + 1);
}
