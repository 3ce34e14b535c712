/* auth.h - who may do what with the API. Pure.
 *
 * A user is what a token or a certificate says: a name, groups, and what else is known. Five kinds
 * of them exist, told apart by their groups; the first four are davit's own, and no role widens
 * what they may:
 *
 *     system:masters   all
 *     system:nodes     "system:node:N": what the node program of node N needs, as the reference's
 *                      node authorizer and NodeRestriction have it
 *     davit:drivers    a driver on one node, or of devices without a node: its own slices, the
 *                      claims that are allocated to it there and their status, its own events. A
 *                      driver that was broken into must not reach beyond its node.
 *     davit:node-proxies  "davit:node-proxy:N": the API itself, as a client of node N's own API:
 *                      may have what that serves (nodes/proxy), and nothing of this API
 *     all others       service accounts, and whoever a certificate names: what roles and bindings
 *                      say (access.h), and version and health; no role lets them make tokens of
 *                      davit's own kinds
 *
 * What depends on the content of a write is asked by dv_auth_check_write, just before it. */
#ifndef DV_SERVE_AUTH_H
#define DV_SERVE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_access;
struct dv_api_resource_claim;
struct dv_api_token_request_spec;
struct dv_api_user_info;
struct dv_arena;
struct dv_err;
struct dv_object;
struct dv_problems;
struct dv_strs;

#define DV_GROUP_ADMINS "system:masters"
#define DV_GROUP_NODES "system:nodes"
#define DV_GROUP_DRIVERS "davit:drivers"
#define DV_GROUP_NODE_PROXIES "davit:node-proxies"
#define DV_GROUP_AUTHENTICATED "system:authenticated"
#define DV_GROUP_UNAUTHENTICATED "system:unauthenticated"
#define DV_USER_ANONYMOUS "system:anonymous"
#define DV_USER_NODE_PREFIX "system:node:"
#define DV_USER_DRIVER_PREFIX "davit:driver:"
#define DV_USER_NODE_PROXY_PREFIX "davit:node-proxy:"
#define DV_USER_ACCOUNT_PREFIX "system:serviceaccount:"
/* Keys of a user's `extra`. */
#define DV_EXTRA_NODE "authentication.kubernetes.io/node-name"
#define DV_EXTRA_NODE_UID "authentication.kubernetes.io/node-uid"
#define DV_EXTRA_POD_NAME "authentication.kubernetes.io/pod-name"
#define DV_EXTRA_POD_UID "authentication.kubernetes.io/pod-uid"
#define DV_EXTRA_CREDENTIAL "authentication.kubernetes.io/credential-id"
#define DV_EXTRA_DRIVER "davit.dev/driver"
#define DV_EXTRA_ALL_NODES "davit.dev/all-nodes" /* "true": a driver whose devices have no node */
/* Names of the pools that a driver's token is for. */
#define DV_EXTRA_POOLS "davit.dev/pools"
#define DV_EXTRA_ALSO "davit.dev/also" /* what a driver's token may read in addition */

enum dv_auth_scope {
    DV_SCOPE_NONE,
    DV_SCOPE_ADMIN,
    DV_SCOPE_NODE,
    DV_SCOPE_DRIVER,
};

/* Returns the scope of a user; *node and *driver are set to those it is confined to, empty
 * otherwise. A user in the groups of nodes or drivers that does not name its node or driver has
 * DV_SCOPE_NONE. */
enum dv_auth_scope dv_auth_scope(const struct dv_api_user_info *user, dv_str *node, dv_str *driver);

/* Make the users that davit makes tokens for; texts are borrowed, the rest is in `arena`. */
struct dv_api_user_info dv_auth_admin(dv_str name, struct dv_arena *arena);
struct dv_api_user_info dv_auth_node(dv_str node, struct dv_arena *arena);
/* Makes the user that the API itself is to the node's own API. */
struct dv_api_user_info dv_auth_node_proxy(dv_str node, struct dv_arena *arena);
/* Makes a driver's user. An empty node stands for a driver whose devices belong to no node, as
 * those in a network. */
struct dv_api_user_info dv_auth_driver(dv_str driver, dv_str node, struct dv_arena *arena);
struct dv_api_user_info dv_auth_anonymous(struct dv_arena *arena);

/* One thing that a driver's token may read beyond what every driver's token may. */
struct dv_auth_also {
    dv_str group;
    dv_str resource;
    dv_str subresource;
    unsigned verbs; /* bits DV_MAY_GET and so on */
};

/* Parses "pods: get,list,watch" or "events.events.k8s.io: list": a resource that is served, with
 * its group after a dot and "/status" where wanted. Only reading can be granted, and never of
 * secrets: DV_INVALID_ARGUMENT. Keeps `text`. */
DV_CHECKED bool dv_auth_also_parse(dv_str text, struct dv_auth_also *also, struct dv_err *err);
/* Adds such texts to the user's extra, in `arena`, and keeps them. DV_INVALID_ARGUMENT:
 * dv_auth_also_parse refuses one. */
DV_CHECKED bool dv_auth_widen(struct dv_api_user_info *user, const dv_str *also, size_t n_also,
                              struct dv_arena *arena, struct dv_err *err);
/* Adds pools to a driver's user, in `arena`, in which it may make slices. A driver with a node may
 * use them besides those that are named after the node; a driver without one may use only these (an
 * empty list: any). Keeps the texts. DV_INVALID_ARGUMENT: one is no pool's name, or they are too
 * many. */
DV_CHECKED bool dv_auth_give_pools(struct dv_api_user_info *user, const dv_str *pools,
                                   size_t n_pools, struct dv_arena *arena, struct dv_err *err);
/* Returns the name of the node that a pool is named after: "n1" for "n1" and for "n1/gpus". Such a
 * node need not exist. */
dv_str dv_auth_pool_owner(dv_str pool);
/* Returns the values of one of the keys above in the user's extra, borrowed; empty if it has
 * none. */
struct dv_strs dv_auth_extra(const struct dv_api_user_info *user, dv_str key);

/* What a user asks to be allowed: a verb on a resource, or on a path. */
struct dv_auth_request {
    dv_str verb; /* "get", "deletecollection"; for paths the method in lower case */
    dv_str path; /* if not empty, the request is for a path, not for a resource */
    dv_str group;
    dv_str resource;
    dv_str subresource;
    dv_str namespace;
    dv_str name; /* with a path: the node that the path is about, if any */
    dv_str field_selector;
};

/* Whether an object is related to a node: a pod that runs there, a
 * claim, secret, config map or service account that such a pod uses (mirror pods do not count), or
 * a slice of the node. */
struct dv_auth_relations {
    bool (*is_of_node)(void *ctx, dv_str node, const struct dv_auth_request *request);
    /* Whether a slice, or an allocated claim, belongs to the driver on that node (empty: on none).
     * True also when there is no such object, so that the answer is 404, not 403. */
    bool (*is_of_driver)(void *ctx, dv_str node, dv_str driver,
                         const struct dv_auth_request *request);
    void *ctx;
    const struct dv_access *access; /* the roles and bindings that there are; NULL: none */
};

/* Decides whether the user may do that. *reason, in `arena`, is what follows the refusal; it may be
 * empty. */
DV_CHECKED bool dv_auth_decide(const struct dv_api_user_info *user,
                               const struct dv_auth_request *request,
                               const struct dv_auth_relations *relations, struct dv_arena *arena,
                               dv_str *reason);

/* Returns which binding allows that, in `arena`; empty for users whose rights are not by roles. */
dv_str dv_auth_allowed_by(const struct dv_api_user_info *user,
                          const struct dv_auth_request *request,
                          const struct dv_auth_relations *relations, struct dv_arena *arena);
/* Whether the rights of the user are those that roles and bindings give it. */
bool dv_auth_is_by_roles(const struct dv_api_user_info *user);

/* A write that is about to happen. */
struct dv_auth_change {
    const struct dv_object *old; /* NULL: it is a creation */
    const void *value;           /* what is wanted; NULL: it is a deletion */
    /* The Node that the user is confined to; NULL: it does not exist. */
    const struct dv_object *node;
    /* For a slice. `rival` is a slice of the same driver in a pool of the same name that does not
     * belong to the user's node; NULL: there is none. `is_pool_shared`: the pool's slices belong to
     * several nodes, and none to the node that it is named after. `is_pool_of_node`: the pool is
     * named after another node, which exists. */
    const struct dv_object *rival;
    bool is_pool_shared;
    bool is_pool_of_node;
};

/* Why a write is refused. */
struct dv_auth_denial {
    dv_str reason;
    /* "node": the write is about a node that does not exist, which is answered by 404. */
    dv_str missing;
    dv_str missing_group;
    dv_str missing_name;
};

/* Whether a user may make that change; this checks what dv_auth_decide cannot know. For nodes it is
 * the reference's NodeRestriction. False: *denial, in `arena`, says why. */
DV_CHECKED bool dv_auth_check_write(const struct dv_api_user_info *user,
                                    const struct dv_auth_request *request,
                                    const struct dv_auth_change *change, struct dv_arena *arena,
                                    struct dv_auth_denial *denial);

/* Who knows what a user may do: dv_auth_decide with what it needs, or a test's table. */
struct dv_auth_rights {
    bool (*may)(void *ctx, const struct dv_auth_request *request, dv_str *reason);
    void *ctx;
};

/* Adds what a user who is neither a node nor a driver of ours may not change in a claim's status,
 * as the reference does: the allocation and reservations without the right to bind claims, entries
 * of status.devices without the right to speak for their drivers. Adds nothing to any other
 * change. */
void dv_auth_check_claim(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                         const struct dv_auth_change *change, const struct dv_auth_rights *rights,
                         struct dv_problems *problems);

/* Whether a user may have a token for a service account, bound to `pod` (NULL: there is no such
 * pod). A node may have one only for its own pods. */
DV_CHECKED bool dv_auth_check_token(const struct dv_api_user_info *user,
                                    const struct dv_api_token_request_spec *wanted,
                                    const struct dv_object *pod, struct dv_arena *arena,
                                    struct dv_auth_denial *denial);

/* Whether a claim is allocated to the driver on that node (empty: anywhere). `node` may be NULL. */
bool dv_auth_is_claim_of(const struct dv_api_resource_claim *claim, dv_str driver, dv_str node_name,
                         const struct dv_object *node);

/* Whether the user is in the group. */
bool dv_auth_is_in(const struct dv_api_user_info *user, dv_str group);
/* Returns who writes an event, as the annotation DV_ANNOTATION_AUTHOR has it; empty for users who
 * may write everything. */
dv_str dv_auth_author(const struct dv_api_user_info *user, struct dv_arena *arena);
#define DV_ANNOTATION_AUTHOR "davit.dev/written-by"

/* Prints the reference's sentence, "nodes \"x\" is forbidden: User \"u\" cannot get resource ...",
 * without what comes before "User". */
dv_str dv_auth_refusal(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                       dv_str reason, struct dv_arena *arena);

#endif
