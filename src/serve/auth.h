/* auth.h - who may do what with the API. Pure.
 *
 * A user is what a token or a certificate says: a name, groups, and what else is known. Four kinds
 * of them exist, told apart by their groups:
 *
 *     system:masters   all
 *     system:nodes     "system:node:N": what the node program of node N needs, as the reference's
 *                      node authorizer has it
 *     davit:drivers    a driver on one node: its own slices of that node, the status of claims that
 *                      are allocated to it there. A driver that was broken into must not reach
 *                      beyond its node.
 *     all others       may look at what the API offers, and ask who they are
 *
 * What depends on the content of a write is asked by dv_auth_check_write, just before it. */
#ifndef DV_SERVE_AUTH_H
#define DV_SERVE_AUTH_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_user_info;
struct dv_arena;
struct dv_object;

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
#define DV_EXTRA_DRIVER "davit.dev/driver"

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
struct dv_api_user_info dv_auth_driver(dv_str driver, dv_str node, struct dv_arena *arena);
struct dv_api_user_info dv_auth_anonymous(struct dv_arena *arena);

/* What is asked for: a verb on a resource, or on a path. */
struct dv_auth_request {
    dv_str verb; /* "get", "deletecollection"; for paths the method in lower case */
    dv_str path; /* not empty: it is no resource */
    dv_str group;
    dv_str resource;
    dv_str subresource;
    dv_str space;
    dv_str name; /* with a path: the node that it is about, if it is about one */
    dv_str field_selector;
};

/* Whether an object has to do with a node: a pod that runs there, a claim, secret, config map or
 * service account of such a pod, a slice of the node. */
struct dv_auth_relations {
    bool (*is_of_node)(void *ctx, dv_str node, const struct dv_auth_request *request);
    void *ctx;
};

/* *reason, in `arena`, is what follows the refusal; may be empty. */
DV_CHECKED bool dv_auth_decide(const struct dv_api_user_info *user,
                               const struct dv_auth_request *request,
                               const struct dv_auth_relations *relations, struct dv_arena *arena,
                               dv_str *reason);

/* Whether a user may change `old` (NULL: nothing is there) to `value` (NULL: it goes): what
 * dv_auth_decide cannot know. `node` is the node that the user is confined to, NULL when there is
 * none. */
DV_CHECKED bool dv_auth_check_write(const struct dv_api_user_info *user,
                                    const struct dv_auth_request *request,
                                    const struct dv_object *old, const void *value,
                                    const struct dv_object *node, struct dv_arena *arena,
                                    dv_str *reason);

/* "nodes \"x\" is forbidden: User \"u\" cannot get resource ...": the reference's sentence, without
 * what comes before "User". */
dv_str dv_auth_refusal(const struct dv_api_user_info *user, const struct dv_auth_request *request,
                       dv_str reason, struct dv_arena *arena);

#endif
