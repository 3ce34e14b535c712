/* access.h - who may do what by roles and bindings (RBAC), as the reference decides it. Pure.
 *
 * An index holds the roles and bindings that there are, kept current change by change. A decision
 * looks up the bindings of the user and of each of its groups, cluster-wide and in the namespace of
 * the request, and in each role only the rules for that resource. Nothing is denied by a rule: what
 * no rule allows is refused. */
#ifndef DV_ACCESS_H
#define DV_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_access;
struct dv_api_cluster_role;
struct dv_api_policy_rule;
struct dv_api_user_info;
struct dv_arena;
struct dv_kind;
struct dv_object;

/* What a user asks to be allowed: a verb on a resource, or on a path. */
struct dv_access_request {
    dv_str verb; /* "get", "bind"; for paths the method in lower case */
    dv_str group;
    dv_str resource;
    dv_str subresource;
    dv_str name;
    dv_str namespace;
    dv_str path; /* not empty: it is asked for this, and not for a resource */
};

struct dv_access *dv_access_new(void);
void dv_access_free(struct dv_access *access); /* NULL is fine */
/* A Role, ClusterRole, RoleBinding or ClusterRoleBinding came (`old` is NULL), changed, or went
 * (`now` is NULL). Keeps a reference to `now`. */
void dv_access_changed(struct dv_access *access, const struct dv_object *old,
                       struct dv_object *now);

/* Whether a rule allows that to the user; its groups are taken as they are. Takes no memory. */
bool dv_access_allows(const struct dv_access *access, const struct dv_api_user_info *user,
                      const struct dv_access_request *request);
/* Returns why, in `arena`: `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User
 * "u"`, or the roles that bindings of the user name and that are not there. Empty when there is
 * nothing to be said. */
dv_str dv_access_reason(const struct dv_access *access, const struct dv_api_user_info *user,
                        const struct dv_access_request *request, struct dv_arena *arena);
/* Returns all rules that the user has in the namespace (empty: cluster-wide only), in `arena`; what
 * they refer to is borrowed until the next change. */
struct dv_api_policy_rule *dv_access_rules(const struct dv_access *access,
                                           const struct dv_api_user_info *user, dv_str namespace,
                                           struct dv_arena *arena, size_t *n);

/* ---- who may give rights ---- */

/* A write of a role or a binding that is about to happen. */
struct dv_access_write {
    const struct dv_kind *kind;
    dv_str namespace;
    dv_str name;       /* in the request's path; empty: a creation */
    const void *old;   /* NULL: there is none */
    const void *value; /* with its defaults */
};

struct dv_access_denial {
    dv_str reason;       /* what follows "is forbidden: " */
    dv_str missing_role; /* not empty: the binding's role is not there, which is answered by 404 */
};

/* Whether the user may make that write: nobody may give rights that it does not have itself, unless
 * it may `escalate` the role or `bind` it. False: *denial, in `arena`, says why. */
DV_CHECKED bool dv_access_check_write(const struct dv_access *access,
                                      const struct dv_api_user_info *user,
                                      const struct dv_access_write *write, struct dv_arena *arena,
                                      struct dv_access_denial *denial);

/* ---- roles that are made of others ---- */

/* Returns the rules that a ClusterRole with an aggregationRule shall have, in `arena`: those of the
 * roles that its selectors select, each once. `roles` are all ClusterRoles, in any order; the rules
 * refer to them. No rules: it keeps those that others have given it. */
struct dv_api_policy_rule *dv_access_aggregate(const struct dv_api_cluster_role *role,
                                               const struct dv_api_cluster_role *const *roles,
                                               size_t n_roles, struct dv_arena *arena, size_t *n);

/* ---- the roles and bindings that always exist ---- */

struct dv_access_default {
    const struct dv_kind *kind;
    void *value; /* of that kind */
};

/* Reads them into `arena`. */
struct dv_access_default *dv_access_defaults(struct dv_arena *arena, size_t *n);
/* What has to be done to a stored object so that it is at least what the default says: rules,
 * subjects, labels and annotations are added, and never removed. */
enum dv_access_repair {
    DV_ACCESS_FINE,    /* nothing; also when its annotation says that it is somebody else's */
    DV_ACCESS_CHANGED, /* *merged is to be written */
    DV_ACCESS_OTHER,   /* a binding to another role: it is to be removed, and made anew */
};
/* `merged` is a struct of the kind; it refers to both, and to `arena`. */
enum dv_access_repair dv_access_repair(const struct dv_access_default *wanted, const void *stored,
                                       struct dv_arena *arena, void *merged);

#endif
