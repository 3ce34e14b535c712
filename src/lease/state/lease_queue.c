#include "lease/state/lease_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* ---- pools ---- */

struct dv_lease_pool *dv_lease_queue_pool(struct dv_lease_queue *queue, bool is_asked, dv_str name)
{
    struct dv_lease_pool *pool;
    char *text;

    for (size_t i = 0; i < queue->pools.n; i++) {
        pool = queue->pools.v[i];
        if (pool->is_asked == is_asked && dv_str_eq(pool->name, name)) {
            pool->n_refs++;
            return pool;
        }
    }
    pool = dv_alloc(sizeof(*pool) + name.n);
    text = (char *)(pool + 1);
    pool->name = dv_str_put(name, &text);
    pool->is_asked = is_asked;
    pool->n_refs = 1;
    *dv_vec_add(&queue->pools) = pool;
    return pool;
}

static void free_pool(struct dv_lease_pool *pool)
{
    dv_vec_fini(&pool->rivals);
    free(pool->members);
    free(pool);
}

static void forget_rival(struct dv_lease_pool *pool, const struct dv_lease_pool *rival)
{
    for (size_t i = pool->rivals.n; i-- > 0;)
        if (pool->rivals.v[i] == rival)
            dv_vec_remove_swap(&pool->rivals, i);
}

static void leave_rivals(struct dv_lease_pool *pool)
{
    for (size_t i = 0; i < pool->rivals.n; i++)
        forget_rival(pool->rivals.v[i], pool);
    dv_vec_clear(&pool->rivals);
}

void dv_lease_pool_unref(struct dv_lease_queue *queue, struct dv_lease_pool *pool)
{
    assert(pool->n_refs > 0);
    if (--pool->n_refs > 0)
        return;
    assert(pool->n_users == 0);
    leave_rivals(pool);
    for (size_t i = queue->pools.n; i-- > 0;)
        if (queue->pools.v[i] == pool)
            dv_vec_remove_swap(&queue->pools, i);
    free_pool(pool);
}

static int compare_members(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

/* Whether a device is in both; both are in ascending order. */
static bool are_rivals(const struct dv_lease_pool *a, const struct dv_lease_pool *b)
{
    for (size_t i = 0, k = 0; i < a->n_members && k < b->n_members;) {
        if (a->members[i] == b->members[k])
            return true;
        if (a->members[i] < b->members[k])
            i++;
        else
            k++;
    }
    return false;
}

void dv_lease_pool_set_members(struct dv_lease_queue *queue, struct dv_lease_pool *pool,
                               const uint64_t *members, size_t n_members)
{
    leave_rivals(pool);
    free(pool->members);
    pool->members = dv_alloc(sizeof(*members) * (n_members + 1)); /* never of no bytes */
    pool->n_members = n_members;
    for (size_t i = 0; i < n_members; i++)
        pool->members[i] = members[i];
    qsort(pool->members, n_members, sizeof(*members), compare_members);
    for (size_t i = 0; i < queue->pools.n; i++) {
        struct dv_lease_pool *other = queue->pools.v[i];

        if (other == pool || !are_rivals(pool, other))
            continue;
        *dv_vec_add(&pool->rivals) = other;
        *dv_vec_add(&other->rivals) = pool;
    }
}

bool dv_lease_pool_has(const struct dv_lease_pool *pool, uint64_t member)
{
    return pool->n_members > 0 && bsearch(&member, pool->members, pool->n_members, sizeof(member),
                                          compare_members) != NULL;
}

void dv_lease_queue_fini(struct dv_lease_queue *queue)
{
    for (size_t i = 0; i < queue->pools.n; i++)
        free_pool(queue->pools.v[i]);
    dv_vec_fini(&queue->pools);
    dv_vec_fini(&queue->items);
}

/* ---- order ---- */

static bool is_before(const struct dv_lease_item *a, const struct dv_lease_item *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

/* The first place whose request is not before this one. */
static size_t place_of(const struct dv_lease_queue *queue, const struct dv_lease_item *item)
{
    size_t from = 0;
    size_t to = queue->items.n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (is_before(queue->items.v[middle], item))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void dv_lease_queue_add(struct dv_lease_queue *queue, struct dv_lease_item *item)
{
    size_t place = place_of(queue, item);

    (void)dv_vec_add(&queue->items);
    memmove(&queue->items.v[place + 1], &queue->items.v[place],
            (queue->items.n - 1 - place) * sizeof(struct dv_lease_item *));
    queue->items.v[place] = item;
    for (size_t i = 0; i < item->n_wants; i++)
        item->wants[i].pool->n_users++;
}

size_t dv_lease_queue_place(const struct dv_lease_queue *queue, const struct dv_lease_item *item)
{
    size_t place = place_of(queue, item);

    return place < queue->items.n && queue->items.v[place] == item ? place + 1 : 0;
}

void dv_lease_queue_remove(struct dv_lease_queue *queue, struct dv_lease_item *item)
{
    size_t place = dv_lease_queue_place(queue, item);

    if (place == 0)
        return;
    dv_vec_remove(&queue->items, place - 1);
    for (size_t i = 0; i < item->n_wants; i++)
        item->wants[i].pool->n_users--;
}

/* ---- a walk ---- */

void dv_lease_walk_begin(struct dv_lease_walk *walk, struct dv_lease_queue *queue)
{
    *walk = (struct dv_lease_walk){.queue = queue};
    for (size_t i = 0; i < queue->pools.n; i++) {
        queue->pools.v[i]->n_aside = 0;
        queue->pools.v[i]->is_closed = false;
    }
}

static bool has_left(const struct dv_lease_pool *pool, uint64_t n)
{
    if (pool->is_asked)
        return !pool->is_closed;
    return pool->n_free >= pool->n_aside && pool->n_free - pool->n_aside >= n;
}

static void set_aside(struct dv_lease_item *item)
{
    for (size_t i = 0; i < item->n_wants; i++) {
        struct dv_lease_pool *pool = item->wants[i].pool;

        pool->is_closed = true;
        for (size_t k = 0; k < pool->rivals.n; k++)
            pool->rivals.v[k]->is_closed = true;
        /* Beyond what is free there is nothing to set aside; this keeps the sum from overflowing.
         */
        if (pool->n_aside <= pool->n_free)
            pool->n_aside +=
                item->wants[i].n < pool->n_free + 1 ? item->wants[i].n : pool->n_free + 1;
    }
}

static bool fits(const struct dv_lease_item *item)
{
    for (size_t i = 0; i < item->n_wants; i++)
        if (!has_left(item->wants[i].pool, item->wants[i].n))
            return false;
    return true;
}

/* Whether nobody further on can go: a long queue is not walked to its end for that. */
static bool is_all_gone(const struct dv_lease_queue *queue)
{
    for (size_t i = 0; i < queue->pools.n; i++)
        if (queue->pools.v[i]->n_users > 0 && has_left(queue->pools.v[i], 1))
            return false;
    return true;
}

struct dv_lease_item *dv_lease_walk_next(struct dv_lease_walk *walk)
{
    for (; walk->at < walk->queue->items.n && !is_all_gone(walk->queue); walk->at++) {
        struct dv_lease_item *item = walk->queue->items.v[walk->at];

        if (walk->bars)
            item->is_barred = walk->bars(item);
        if (item->is_barred)
            continue;
        if (fits(item))
            return item;
        set_aside(item);
    }
    return NULL;
}

void dv_lease_walk_tell(struct dv_lease_walk *walk, struct dv_lease_item *item, bool goes)
{
    assert(walk->at < walk->queue->items.n && walk->queue->items.v[walk->at] == item);
    if (!goes) {
        set_aside(item);
        walk->at++;
        return;
    }
    for (size_t i = 0; i < item->n_wants; i++)
        if (!item->wants[i].pool->is_asked)
            item->wants[i].pool->n_free -= item->wants[i].n;
    dv_lease_queue_remove(walk->queue, item);
}
