/* node_auth.h - who a client of the node's own API is, and whether it may do what it asks. The API
 * server is asked (TokenReview, SubjectAccessReview), and its answers are remembered: 2 minutes
 * whose a token is, 5 minutes that a user may, 30 seconds that it may not.
 *
 *     start -> [token: remembered?] -> [asked] -> for each right: remembered? -> [asked] -> done
 *
 * Clients that wait for the same answer share one question. The number of questions is bounded;
 * tokens that nobody has seen before have their own share of it, so that those who guess tokens
 * keep nobody out but each other. */
#ifndef DV_SERVE_NODE_AUTH_H
#define DV_SERVE_NODE_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_cluster;
struct dv_node_auth;
struct dv_node_route;

enum dv_node_verdict {
    DV_NODE_MAY,
    DV_NODE_IS_NOBODY,   /* 401: the token is not valid, or that could not be found out */
    DV_NODE_MAY_NOT,     /* 403 */
    DV_NODE_NOT_DECIDED, /* 500: whether the user may could not be found out */
    DV_NODE_IS_BUSY,     /* 503: too many wait already */
};

/* One check, embedded in what waits for it; zeroed, filled in, and lent until `done` has run. */
struct dv_node_check {
    dv_str token;                      /* empty: the user is known already */
    struct dv_api_user_info user;      /* known before, or that of the token, in `arena` */
    const struct dv_node_route *route; /* what the client asks for */
    struct dv_arena *arena;
    void (*done)(struct dv_node_check *check, enum dv_node_verdict verdict);

    struct dv_node_auth *auth;
    struct dv_link link;  /* among those that wait for the same answer, or are told next */
    size_t i_subresource; /* the right that is being looked at */
    bool is_known;        /* the user is */
    enum dv_node_verdict verdict;
};

/* Makes what decides on the clients of this node. `cluster` and `node_name` must outlive it. */
struct dv_node_auth *dv_node_auth_new(struct dv_loop *loop, struct dv_cluster *cluster,
                                      dv_str node_name);
/* Gives up the questions that are under way; checks that wait end with DV_NODE_NOT_DECIDED.
 * `closed` runs after the last `done`; may be NULL. */
void dv_node_auth_close(struct dv_node_auth *auth, dv_closed_fn *closed, void *ctx);

/* Starts a check. `done` runs once, never before this has returned. */
void dv_node_auth_start(struct dv_node_auth *auth, struct dv_node_check *check);

#endif
