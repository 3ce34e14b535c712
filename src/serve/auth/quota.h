/* quota.h - how much nodes and drivers may keep in the API. Pure.
 *
 * Whoever holds the token of a node or a driver can write, and what is written stays in memory and
 * on the disk. So each has an account for each kind that it may create, with a limit on the number
 * and on the bytes of its objects; and each object has a limit of its own. Whose an object is can
 * be told from it: the node and driver of a slice, the node of a mirror pod, the author of an
 * Event. So the accounts are right after a restart. */
#ifndef DV_SERVE_QUOTA_H
#define DV_SERVE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_kind;
struct dv_object;
struct dv_quota;
struct dv_quota_account;

struct dv_quota *dv_quota_new(void);
void dv_quota_free(struct dv_quota *quota); /* NULL is fine */

/* Counts an object that was created (old is NULL), changed or deleted (now is NULL). Kinds without
 * accounts are not counted. */
void dv_quota_changed(struct dv_quota *quota, const struct dv_object *old,
                      const struct dv_object *now);

/* Whether an object belongs to that driver on that node, or with driver "" to that node itself. */
bool dv_quota_is_owner(const struct dv_kind *kind, const void *value, dv_str node, dv_str driver);

/* A write that a node or a driver is about to make. */
struct dv_quota_write {
    const struct dv_kind *kind;
    const struct dv_object *old; /* NULL: it is a creation */
    const void *value;           /* the struct of the kind */
    /* The node that the user is confined to; may be empty for a driver. */
    dv_str node;
    dv_str driver; /* empty: the user is a node */
};

/* What is reserved for a write until it is known whether it is stored; zeroed at first. */
struct dv_quota_hold {
    struct dv_quota_account *accounts[2]; /* NULL: there is none */
    size_t n;
    size_t n_bytes;
};

/* Whether the write fits; if so, it counts in `hold` until that is released. DV_RESOURCE_EXHAUSTED:
 * the text says which limit, how much of it is used, and what to do. */
DV_CHECKED bool dv_quota_take(struct dv_quota *quota, const struct dv_quota_write *write,
                              struct dv_quota_hold *hold, struct dv_err *err);
/* A second call does nothing. */
void dv_quota_release(struct dv_quota *quota, struct dv_quota_hold *hold);

#endif
