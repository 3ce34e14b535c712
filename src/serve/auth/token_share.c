#include "serve/auth/token_share.h"

#include "base/err.h"

/* The limit of all tokens. A token takes a kilobyte in memory and in the store; every driver of a
 * large node has a few. Tokens of service accounts are not stored, and not counted. */
#define TOKENS_MAX 10000u
/* So many of them are reserved for administrators. */
#define TOKENS_RESERVED 1000u

bool dv_token_share_has_room(size_t n, bool is_by_admin, struct dv_err *err)
{
    size_t n_max = is_by_admin ? TOKENS_MAX : TOKENS_MAX - TOKENS_RESERVED;

    return n < n_max ||
           dv_fail(err, DV_RESOURCE_EXHAUSTED,
                   "quota: there are %zu of %zu tokens: wait until some expire, or have some "
                   "revoked (davit token list, davit token revoke)",
                   n, n_max);
}
