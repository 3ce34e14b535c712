#include "base/slab.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"

/* A slab is aligned to its size, so that it is found from what lies in it. */
#define SLAB_BYTES 16384u
/* The C library maps regions of so many slabs one by one (vitals.c), and unmaps them when they are
 * freed. Only what is used of one becomes resident. */
#define REGION_SLABS 16u
#define ALL_FREE ((1u << REGION_SLABS) - 1)

struct region {
    struct dv_link link; /* in slabs->regions, while a slab of it is free */
    char *base;
    uint32_t free; /* a bit for each slab */
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

void dv_slabs_fini(struct dv_slabs *slabs)
{
    assert(slabs->n == 0); /* slabs without room are in no list */
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
    if (region->free == ALL_FREE) {
        dv_link_remove(&region->link);
        free(region->base);
        free(region);
    } else if (!dv_link_is_in(&region->link)) {
        dv_list_push(&slabs->regions, &region->link);
    }
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
