#include "serve/auth/token_share.h"

#include "base/err.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/tokens.h"

/* The limit of all tokens. A token takes a kilobyte in memory and in the store; every pod and
 * driver of a large node has a few. */
#define TOKENS_MAX 10000u
/* So many of them are reserved for administrators. */
#define TOKENS_RESERVED 1000u
/* The limit for the tokens of a node's pods: 110 pods with some volumes each, and each token is
 * renewed before the old one has expired. */
#define NODE_TOKENS_MAX 1000u
#define POD_TOKENS_MAX 100u
/* How much of a name is quoted: a message is cut at 256 bytes, and must still say what to do. */
#define TOLD_MAX 60u
#define CURE "wait until some expire, or have some revoked (davit token list, davit token revoke)"

static dv_str extra_of(const struct dv_api_user_info *user, const char *key)
{
    for (size_t i = 0; i < user->n_extra; i++)
        if (dv_str_eq(user->extra[i].key, dv_str_from_c(key)) && user->extra[i].value.n > 0)
            return user->extra[i].value.v[0];
    return DV_STR_NONE;
}

void dv_token_share_begin(struct dv_token_share *share, const struct dv_token_op *op)
{
    *share = (struct dv_token_share){.is_by_admin = op->is_by_admin};
    if (!op->is_by_node)
        return;
    share->node = extra_of(&op->user, DV_EXTRA_NODE);
    share->pod = extra_of(&op->user, DV_EXTRA_POD_NAME);
    share->pod_uid = extra_of(&op->user, DV_EXTRA_POD_UID);
}

void dv_token_share_add(struct dv_token_share *share, const struct dv_api_user_info *user)
{
    dv_str uid = share->node.n ? extra_of(user, DV_EXTRA_POD_UID) : DV_STR_NONE;

    share->n++;
    if (!uid.n || !dv_str_eq(extra_of(user, DV_EXTRA_NODE), share->node))
        return;
    share->n_node++;
    share->n_pod += dv_str_eq(uid, share->pod_uid);
}

bool dv_token_share_has_room(const struct dv_token_share *share, struct dv_err *err)
{
    size_t n_max = share->is_by_admin ? TOKENS_MAX : TOKENS_MAX - TOKENS_RESERVED;

    if (share->node.n && share->n_pod >= POD_TOKENS_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "quota: pod \"%.*s\" has %zu of %u tokens: " CURE,
                       DV_FMT(dv_str_slice(share->pod, 0, TOLD_MAX)), share->n_pod, POD_TOKENS_MAX);
    if (share->node.n && share->n_node >= NODE_TOKENS_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "quota: the pods of node \"%.*s\" have %zu of %u tokens: " CURE,
                       DV_FMT(dv_str_slice(share->node, 0, TOLD_MAX)), share->n_node,
                       NODE_TOKENS_MAX);
    return share->n < n_max ||
           dv_fail(err, DV_RESOURCE_EXHAUSTED, "quota: there are %zu of %zu tokens: " CURE,
                   share->n, n_max);
}
