/* access_rule.h - one rule of a role against one question. */
#ifndef DV_ACCESS_RULE_H
#define DV_ACCESS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_access;
struct dv_access_request;
struct dv_api_policy_rule;
struct dv_api_user_info;
struct dv_object;

/* Group and resource in six forms: each as it is or "*", and "*" of the subresource. */
#define DV_ACCESS_CELLS_MAX 6u
/* The longest "resource/subresource" that a rule can be for: longer than any that is served. */
#define DV_ACCESS_RESOURCE_BYTES_MAX 255u

/* A request, or an atom of a rule that somebody wants to give: the same rules say whether they are
 * covered. Zeroed, then made by one of the two functions below. */
struct dv_access_question {
    dv_str verb;
    dv_str path; /* if not empty, only this and the verb count */
    dv_str group;
    dv_str resource;    /* with its subresource: "pods/log" */
    dv_str subresource; /* "log", which "*" before the slash matches too */
    bool has_subresource;
    bool is_too_long; /* no rule is looked for that names this resource, only for "*" */
    dv_str name;
    bool is_any_name; /* all names are meant: a rule with resourceNames does not cover that */
    /* The hashes under which a role's rules for it are found. */
    uint32_t cells[DV_ACCESS_CELLS_MAX];
    size_t n_cells; /* 0: it has to be compared with every rule */
    char buf[DV_ACCESS_RESOURCE_BYTES_MAX + 1];
};

/* Makes the question of a request; it points into itself, and must not be moved. */
void dv_access_ask(const struct dv_access_request *request, struct dv_access_question *question);
/* Makes the question of an atom: a rule with one verb, group and resource, and at most one name. */
void dv_access_ask_atom(dv_str verb, dv_str group, dv_str resource, const dv_str *name,
                        struct dv_access_question *question);
/* Hash of a group and a resource, "pods/log". */
uint32_t dv_access_cell(dv_str group, dv_str resource);

bool dv_access_rule_covers(const struct dv_api_policy_rule *rule,
                           const struct dv_access_question *question);
bool dv_access_has(const dv_str *texts, size_t n, dv_str text);

/* ---- the rules that a user has (access.c) ---- */

/* A role, compiled. */
struct dv_access_role {
    char *key;                /* "namespace/name"; "/name" of a ClusterRole */
    struct dv_object *object; /* a reference; NULL: it is not there */
    size_t n_grants;          /* that refer to it */
    struct dv_access_cell {
        uint32_t hash;
        uint32_t rule;
    } * cells; /* sorted; NULL: they would be too many, or there are few rules */
    size_t n_cells;
};

/* What a binding gives to one of its subjects. */
struct dv_access_grant {
    struct dv_access_role *role;
    struct dv_object *binding; /* borrowed from the index */
    size_t subject;
};

/* Calls `visit` for every grant of the user: cluster-wide first, then in the namespace if it is not
 * empty. Ends with the first one for which that returns false; returns it, or NULL. */
typedef bool dv_access_visit(void *ctx, const struct dv_access_grant *grant);
const struct dv_access_grant *dv_access_each(const struct dv_access *access,
                                             const struct dv_api_user_info *user, dv_str namespace,
                                             dv_access_visit *visit, void *ctx);
/* Returns the role that a binding in that namespace refers to; NULL: it is not there. */
const struct dv_access_role *dv_access_find_role(const struct dv_access *access, dv_str kind,
                                                 dv_str namespace, dv_str name);
/* Returns a grant whose role allows the request; NULL: there is none. */
const struct dv_access_grant *dv_access_find_grant(const struct dv_access *access,
                                                   const struct dv_api_user_info *user,
                                                   const struct dv_access_request *request);
/* Whether a rule that the user has there covers the question. */
bool dv_access_covers(const struct dv_access *access, const struct dv_api_user_info *user,
                      dv_str namespace, struct dv_access_question *question);

#endif
