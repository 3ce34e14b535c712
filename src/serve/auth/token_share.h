/* token_share.h - how many tokens there may be: of all, of a node's pods, of one pod. Pure.
 *
 * Whose a token is can be told from its user, so the shares are right after a restart. */
#ifndef DV_SERVE_TOKEN_SHARE_H
#define DV_SERVE_TOKEN_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_user_info;
struct dv_err;
struct dv_token_op;

/* What is counted for a token that is about to be made. */
struct dv_token_share {
    bool is_by_admin;
    dv_str node, pod, pod_uid; /* empty when no node asks */
    size_t n, n_node, n_pod;
};

/* Begins to count; the share points into `op`. */
void dv_token_share_begin(struct dv_token_share *share, const struct dv_token_op *op);
/* Counts a token that exists. */
void dv_token_share_add(struct dv_token_share *share, const struct dv_api_user_info *user);
/* Whether there is room for one more token. DV_RESOURCE_EXHAUSTED: the text says which share is
 * used up, how large it is, and what to do. */
DV_CHECKED bool dv_token_share_has_room(const struct dv_token_share *share, struct dv_err *err);

#endif
