/* object_pool.h - objects that are kept by the thousand, most of which nobody looks at.
 *
 * An object in a pool has its row (dv_encode_row) for as long as it lives, and its value only while
 * it is used: a row takes a quarter of the memory. While it is packed, `value` and `meta` are NULL.
 * A reference by dv_object_ref keeps it unpacked, so that who has one need not know of pools; who
 * keeps many objects keeps them with dv_object_keep, and unpacks one before a look at it.
 *
 * All of it is for one thread, but dv_object_read, dv_object_row and dv_object_names, which any
 * thread may call: rows do not change. */
#ifndef DV_RESOURCE_OBJECT_POOL_H
#define DV_RESOURCE_OBJECT_POOL_H

#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_kind;
struct dv_object;
struct dv_object_pool;

/* `grown` (may be NULL) is called when there is one more object that could be packed. */
struct dv_object_pool *dv_object_pool_new(void (*grown)(void *ctx), void *ctx);
/* Objects that are left stay valid, and are not packed any more. */
void dv_object_pool_free(struct dv_object_pool *pool); /* NULL is fine */
/* How many objects are unpacked without anyone who has a reference by dv_object_ref. */
size_t dv_object_pool_n_idle(const struct dv_object_pool *pool);
/* Packs idle objects, the least recently used first, until n_left are left. What was unpacked since
 * the last call stays: somebody may still look at it. */
void dv_object_pool_pack(struct dv_object_pool *pool, size_t n_left);

/* A new object in the pool, unpacked; `row` is that of the value, and is copied. The reference is
 * one of dv_object_ref. */
struct dv_object *dv_object_pool_add(struct dv_object_pool *pool, const struct dv_kind *kind,
                                     const void *value, dv_str row);
/* A new object in the pool from its row, which is checked and copied. Its value is in `scratch`,
 * with texts that live as long as the object, and is there until dv_object_forget_value. The
 * reference is one of dv_object_keep. */
struct dv_object *dv_object_pool_load(struct dv_object_pool *pool, const struct dv_kind *kind,
                                      dv_str row, struct dv_arena *scratch, struct dv_err *err);
void dv_object_forget_value(struct dv_object *object);

/* Takes a reference with which the object may be packed, and drops such a one (NULL is fine). */
struct dv_object *dv_object_keep(struct dv_object *object);
void dv_object_unkeep(struct dv_object *object);
/* Unpacks the object, if it is packed; returns it. The value is there until the next turn of the
 * loop. */
struct dv_object *dv_object_unpack(struct dv_object *object);

/* The object with its value, whether it is packed or not, for a thread that has no reference by
 * dv_object_ref: one in a pool is decoded into `whole`; its structs are in `arena`, its texts
 * in the row. */
const struct dv_object *dv_object_read(const struct dv_object *object, struct dv_arena *arena,
                                       struct dv_object *whole);

/* The row of an object in a pool; empty for others. */
dv_str dv_object_row(const struct dv_object *object);
/* The memory that an object takes while nobody uses it. */
size_t dv_object_kept_bytes(const struct dv_object *object);
/* The name and namespace of an object, and its uid, packed or not. They live as long as the
 * object. */
struct dv_object_names {
    dv_str namespace;
    dv_str name;
    dv_str uid;
};
struct dv_object_names dv_object_names(const struct dv_object *object);

#endif
