/* auth_rules.h - what the files of auth.h share: one question about a user's rights, and the
 * functions that answer it. */
#ifndef DV_SERVE_AUTH_RULES_H
#define DV_SERVE_AUTH_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_allocated_device_status;
struct dv_api_resource_claim_status;
struct dv_api_user_info;
struct dv_arena;
struct dv_auth_change;
struct dv_auth_denial;
struct dv_auth_relations;
struct dv_auth_request;

enum {
    DV_MAY_GET = 1,
    DV_MAY_LIST = 2,
    DV_MAY_WATCH = 4,
    DV_MAY_CREATE = 8,
    DV_MAY_UPDATE = 16,
    DV_MAY_PATCH = 32,
    DV_MAY_DELETE = 64,
    DV_MAY_DELETE_COLLECTION = 128,
    DV_MAY_READ = DV_MAY_GET | DV_MAY_LIST | DV_MAY_WATCH,
    DV_MAY_CHANGE = DV_MAY_UPDATE | DV_MAY_PATCH,
    DV_MAY_MANY = DV_MAY_LIST | DV_MAY_WATCH | DV_MAY_DELETE_COLLECTION,
};

/* Adds a key that the user does not have yet, with a copy of the list in `arena`; keeps the texts.
 * Does nothing when there are no values. */
void dv_auth_add_extra(struct dv_api_user_info *user, dv_str key, const dv_str *values,
                       size_t n_values, struct dv_arena *arena);

/* Returns DV_MAY_GET for "get" and so on; 0 for other verbs. */
unsigned dv_auth_verb(dv_str name);

struct dv_auth_question {
    const struct dv_api_user_info *user;
    const struct dv_auth_request *request;
    const struct dv_auth_relations *relations; /* may be NULL: nothing is related */
    dv_str node;
    dv_str driver;
    unsigned verb;
    struct dv_arena *arena;
    dv_str *reason;
};

/* Sets the reason and returns false. */
bool dv_auth_refuse(const struct dv_auth_question *q, dv_str reason);
/* Whether the request is about that resource; its subresource is not looked at. */
bool dv_auth_is_about(const struct dv_auth_question *q, dv_str group, dv_str resource);
/* Whether the field selector only selects objects with this value. */
bool dv_auth_demands(const struct dv_auth_question *q, const char *label, dv_str value);

/* Decide what a node's program and a driver may ask for. */
DV_CHECKED bool dv_auth_decide_node(const struct dv_auth_question *q);
DV_CHECKED bool dv_auth_decide_driver(const struct dv_auth_question *q);

/* ---- writes ---- */

/* The API's own limit of a claim's status.devices. It is checked by rules here first, because lists
 * are compared entry by entry and the API checks it only later. */
#define DV_STATUS_DEVICES_MAX 128u

/* Finds the entry about the same device; NULL: there is none. */
const struct dv_api_allocated_device_status *
dv_auth_find_device(const struct dv_api_resource_claim_status *status,
                    const struct dv_api_allocated_device_status *like);

struct dv_auth_write {
    const struct dv_auth_request *request;
    const struct dv_auth_change *change;
    const struct dv_api_user_info *user;
    dv_str node;
    dv_str driver; /* empty: a node's own program */
    struct dv_arena *arena;
    struct dv_auth_denial *denial;
};

/* Sets the reason and returns false. */
bool dv_auth_deny(const struct dv_auth_write *write, const char *fmt, ...) DV_PRINTF(2, 3);
/* Whether the slice in the change may be in its pool. A pool is identified by driver and name
 * alone, so a slice from elsewhere makes it incomplete or old for the node that it belongs to. */
DV_CHECKED bool dv_auth_check_pool(const struct dv_auth_write *write);
DV_CHECKED bool dv_auth_check_node_write(const struct dv_auth_write *write);

#endif
