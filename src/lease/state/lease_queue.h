/* lease_queue.h - who gets devices next: requests that wait, by priority and then by arrival.
 *
 * A request wants numbers of devices of *pools*. Of a counted pool it is known how many are free
 * (the resource of a device plugin); of an asked pool only the allocator can tell (the devices of a
 * class), and is asked for one request at a time. Two asked pools that have a device in common are
 * rivals.
 *
 *     dv_lease_walk_begin -> dv_lease_walk_next -> one that may go -> dv_lease_walk_tell: did it?
 *                                 ^                                          |
 *                                 '------------------------------------------'
 *
 * A request that cannot go sets aside what it wants: of a counted pool that number, of an asked
 * pool all, with all of its rivals. A later one passes it only with what is left over, so that
 * nobody is delayed by those behind, and nobody waits for ever while devices come back. Pure. */
#ifndef DV_LEASE_QUEUE_H
#define DV_LEASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

struct dv_lease_pool {
    bool is_asked;
    uint64_t n_free; /* of a counted pool; set before a walk */
    /* private */
    uint64_t n_aside; /* in this walk, for those before */
    bool is_closed;   /* an asked pool that somebody before waits for */
    dv_str name;      /* in the same block */
    size_t n_refs;
    size_t n_users;    /* requests in the queue */
    uint64_t *members; /* of an asked pool, in ascending order */
    size_t n_members;
    DV_VEC(struct dv_lease_pool *) rivals;
};

struct dv_lease_want {
    struct dv_lease_pool *pool;
    uint64_t n;
};

/* A request, embedded in what waits. */
struct dv_lease_item {
    int32_t priority;
    uint64_t order;              /* of arrival; one that comes back keeps its own */
    struct dv_lease_want *wants; /* at least one */
    size_t n_wants;
    /* It may not go now, whatever is free (its user has as much as it may have): walks pass it
     * over, and nothing is set aside for it. */
    bool is_barred;
};

struct dv_lease_queue {
    DV_VEC(struct dv_lease_item *) items; /* the next one first */
    DV_VEC(struct dv_lease_pool *) pools;
};

void dv_lease_queue_fini(struct dv_lease_queue *queue); /* the items are their owners' */

/* The pool of that name and kind, made when it is new. The caller has a reference to it, for as
 * long as its request may be in the queue. */
struct dv_lease_pool *dv_lease_queue_pool(struct dv_lease_queue *queue, bool is_asked, dv_str name);
void dv_lease_pool_unref(struct dv_lease_queue *queue, struct dv_lease_pool *pool);
/* Tells the devices of an asked pool, by numbers that stand for them: each once, in any order. */
void dv_lease_pool_set_members(struct dv_lease_queue *queue, struct dv_lease_pool *pool,
                               const uint64_t *members, size_t n_members);
bool dv_lease_pool_has(const struct dv_lease_pool *pool, uint64_t member);

void dv_lease_queue_add(struct dv_lease_queue *queue, struct dv_lease_item *item);
void dv_lease_queue_remove(struct dv_lease_queue *queue, struct dv_lease_item *item);
/* Its place from 1; 0: it is not in the queue. */
size_t dv_lease_queue_place(const struct dv_lease_queue *queue, const struct dv_lease_item *item);

/* ---- a walk: nothing is added or removed meanwhile, except by dv_lease_walk_tell ---- */

struct dv_lease_walk {
    struct dv_lease_queue *queue;
    size_t at;
    /* Tells whether an item that is come to is barred; NULL: is_barred says so. */
    bool (*bars)(const struct dv_lease_item *item);
};

/* The pools' n_free must be right. */
void dv_lease_walk_begin(struct dv_lease_walk *walk, struct dv_lease_queue *queue);
/* The next request that may go, as far as numbers tell; NULL: no more. Each is to be told about
 * before the next is asked for. */
struct dv_lease_item *dv_lease_walk_next(struct dv_lease_walk *walk);
/* It goes: it has left the queue, and what it wants is not free any more. Or it waits on. */
void dv_lease_walk_tell(struct dv_lease_walk *walk, struct dv_lease_item *item, bool goes);

#endif
