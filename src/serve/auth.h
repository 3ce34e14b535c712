/* auth.h - who may do what with the API. Pure.
 *
 * A user is what a token or a certificate says: a name, groups, and what else is known. Four kinds
 * of them exist, told apart by their groups:
 *
 *     system:masters   all
 *     system:nodes     "system:node:N": what the node program of node N needs, as the reference's
 *                      node authorizer and NodeRestriction have it
 *     davit:drivers    a driver on one node, or of devices without a node: its own slices, the
 *                      claims that are allocated to it there and their status, its own events. A
 *                      driver that was broken into must not reach beyond its node.
 *     all others       may look at what the API offers, and ask who they are
 *
 * What depends on the content of a write is asked by dv_auth_check_write, just before it. */
#ifndef DV_SERVE_AUTH_H
#define DV_SERVE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_resource_claim;
struct dv_api_token_request_spec;
struct dv_api_user_info;
struct dv_arena;
struct dv_err;
struct dv_object;
struct dv_strs;

#define DV_GROUP_ADMINS "system:masters"
#define DV_GROUP_NODES "system:nodes"
#define DV_GROUP_DRIVERS "davit:drivers"
#define DV_GROUP_AUTHENTICATED "system:authenticated"
#define DV_GROUP_UNAUTHENTICATED "system:unauthenticated"
#define DV_USER_ANONYMOUS "system:anonymous"
#define DV_USER_NODE_PREFIX "system:node:"
#define DV_USER_DRIVER_PREFIX "davit:driver:"
/* Keys of a user's `extra`. */
#define DV_EXTRA_NODE "authentication.kubernetes.io/node-name"
#define DV_EXTRA_POD_NAME "authentication.kubernetes.io/pod-name"
#define DV_EXTRA_POD_UID "authentication.kubernetes.io/pod-uid"
#define DV_EXTRA_DRIVER "davit.dev/driver"
#define DV_EXTRA_ALL_NODES "davit.dev/all-nodes" /* "true": a driver whose devices have no node */
#define DV_EXTRA_POOLS "davit.dev/pools"         /* that a driver's token is for, by name */
#define DV_EXTRA_ALSO "davit.dev/also"           /* what a driver's token was widened by */

enum dv_auth_scope {
    DV_SCOPE_NONE,
    DV_SCOPE_ADMIN,
    DV_SCOPE_NODE,
    DV_SCOPE_DRIVER,
};

/* The scope of a user; *node and *driver are those it is confined to, empty otherwise. A user of
 * nodes or drivers who does not say which has DV_SCOPE_NONE. */
enum dv_auth_scope dv_auth_scope(const struct dv_api_user_info *user, dv_str *node, dv_str *driver);

/* The users that davit makes tokens for; texts are borrowed, the rest is in `arena`. */
struct dv_api_user_info dv_auth_admin(dv_str name, struct dv_arena *arena);
struct dv_api_user_info dv_auth_node(dv_str node, struct dv_arena *arena);
/* An empty node: a driver of devices that no node has, as those in a network. */
struct dv_api_user_info dv_auth_driver(dv_str driver, dv_str node, struct dv_arena *arena);
struct dv_api_user_info dv_auth_anonymous(struct dv_arena *arena);

/* One thing that a driver's token may read beyond what all of them may. */
struct dv_auth_also {
    dv_str group;
    dv_str resource;
    dv_str subresource;
    unsigned verbs; /* DV_MAY_GET and so on */
};

/* "pods: get,list,watch", "events.events.k8s.io: list": a resource that is served, with its group
 * behind a dot and "/status" where wanted. Only reading can be given, and never of secrets:
 * DV_INVALID_ARGUMENT. Keeps `text`. */
DV_CHECKED bool dv_auth_also_parse(dv_str text, struct dv_auth_also *also, struct dv_err *err);
/* Adds them to the user's extra, in `arena`; keeps the texts. DV_INVALID_ARGUMENT as above. */
DV_CHECKED bool dv_auth_widen(struct dv_api_user_info *user, const dv_str *also, size_t n_also,
                              struct dv_arena *arena, struct dv_err *err);
/* Adds pools to a driver's user, in `arena`, that it may make slices in: with a node besides those
 * that are named after the node, without one only those (an empty list: any). Keeps the texts.
 * DV_INVALID_ARGUMENT: one is no pool's name, or they are too many. */
DV_CHECKED bool dv_auth_give_pools(struct dv_api_user_info *user, const dv_str *pools,
                                   size_t n_pools, struct dv_arena *arena, struct dv_err *err);
/* The name of the node that a pool is named after: "n1" of "n1" and of "n1/gpus". There need be no
 * such node. */
dv_str dv_auth_pool_owner(dv_str pool);
/* The values that the user's extra has under one of the keys above, borrowed; none without it. */
struct dv_strs dv_auth_extra(const struct dv_api_user_info *user, dv_str key);

/* What is asked for: a verb on a resource, or on a path. */
struct dv_auth_request {
    dv_str verb; /* "get", "deletecollection"; for paths the method in lower case */
    dv_str path; /* not empty: it is no resource */
    dv_str group;
    dv_str resource;
    dv_str subresource;
    dv_str namespace;
    dv_str name; /* with a path: the node that it is about, if it is about one */
    dv_str field_selector;
};

/* Whether an object has to do with a node: a pod that runs there, a claim, secret, config map or
 * service account of such a pod (but not of a mirror pod), a slice of the node. */
struct dv_auth_relations {
    bool (*is_of_node)(void *ctx, dv_str node, const struct dv_auth_request *request);
    /* Whether a slice, or the claim that is allocated, is of the driver on that node (empty: on
     * none). Also when there is no such object, so that the answer is that it is not found. */
    bool (*is_of_driver)(void *ctx, dv_str node, dv_str driver,
                         const struct dv_auth_request *request);
    void *ctx;
};

/* *reason, in `arena`, is what follows the refusal; may be empty. */
DV_CHECKED bool dv_auth_decide(const struct dv_api_user_info *user,
                               const struct dv_auth_request *request,
                               const struct dv_auth_relations *relations, struct dv_arena *arena,
                               dv_str *reason);

/* A write that is about to happen. */
struct dv_auth_change {
    const struct dv_object *old;  /* NULL: nothing is there */
    const void *value;            /* what is wanted; NULL: it goes */
    const struct dv_object *node; /* the Node that the user is confined to; NULL: there is none */
    /* Of a slice: one of the same driver whose pool has that name, and that is not of the user's
     * node; NULL when there is none. Whether the pool's slices are not all of one node, and none of
     * the one that it is named after. And whether it is named after another node, which exists. */
    const struct dv_object *rival;
    bool is_pool_shared;
    bool is_pool_of_node;
};

/* Why a write is refused. */
struct dv_auth_denial {
    dv_str reason;
    dv_str missing; /* "node": the write is about one that does not exist, which is 404 */
    dv_str missing_name;
};

/* Whether a user may make that change: what dv_auth_decide cannot know. For nodes this is the
 * reference's NodeRestriction. False: *denial, in `arena`, says why. */
DV_CHECKED bool dv_auth_check_write(const struct dv_api_user_info *user,
                                    const struct dv_auth_request *request,
                                    const struct dv_auth_change *change, struct dv_arena *arena,
                                    struct dv_auth_denial *denial);

/* Whether a user may have that token for a service account, bound to `pod` (NULL: there is no such
 * pod): a node only for what its own pods ask for. */
DV_CHECKED bool dv_auth_check_token(const struct dv_api_user_info *user,
                                    const struct dv_api_token_request_spec *wanted,
                                    const struct dv_object *pod, struct dv_arena *arena,
                                    struct dv_auth_denial *denial);

/* Whether a claim is allocated to the driver, on that node (empty: anywhere). `node` may be NULL.
 */
bool dv_auth_is_claim_of(const struct dv_api_resource_claim *claim, dv_str driver, dv_str node_name,
                         const struct dv_object *node);

/* Whether the user is in the group. */
bool dv_auth_is_in(const struct dv_api_user_info *user, dv_str group);
/* Who writes an event, as its annotation DV_ANNOTATION_AUTHOR says; empty for users who may write
 * all. */
dv_str dv_auth_author(const struct dv_api_user_info *user, struct dv_arena *arena);
#define DV_ANNOTATION_AUTHOR "davit.dev/written-by"

/* "nodes \"x\" is forbidden: User \"u\" cannot get resource ...": the reference's sentence, without
 * what comes before "User". */
dv_str dv_auth_refusal(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                       dv_str reason, struct dv_arena *arena);

#endif
