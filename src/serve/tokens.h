/* tokens.h - bearer tokens: who shows one is its user.
 *
 * A token is 256 random bits. It is told once, when it is made; kept, in memory and in the store,
 * is its SHA-256, so that who reads the file cannot use it. */
#ifndef DV_SERVE_TOKENS_H
#define DV_SERVE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"

struct dv_arena;
struct dv_err;
struct dv_tokens;

struct dv_token {
    dv_str id;   /* the first digits of the hash: what it is listed and revoked by */
    dv_str hash; /* what it is kept under */
    struct dv_api_user_info user;
    struct dv_strs audiences; /* whom it is for; empty: this API */
    int64_t created_s;        /* wall time */
    int64_t expires_s;        /* 0: never */
};

/* Loads what is stored. Blocks: for start-up, before anything is written. With a NULL store tokens
 * live as long as the process. The store outlives it. */
struct dv_tokens *dv_tokens_open(struct dv_loop *loop, struct dv_store *store, uint32_t table,
                                 struct dv_err *err);
/* No creation or revocation may be under way. NULL is fine. */
void dv_tokens_close(struct dv_tokens *tokens);

/* The token, if it is known and still valid; NULL otherwise. Borrowed until the next turn. */
const struct dv_token *dv_tokens_find(const struct dv_tokens *tokens, dv_str secret);
/* Whether the token with that hash is there and valid now. */
bool dv_tokens_is_valid(const struct dv_tokens *tokens, dv_str hash);

/* Who a token without audiences is for: this API. */
#define DV_TOKEN_AUDIENCE "https://kubernetes.default.svc"
/* Whether the token is for that audience. */
bool dv_token_is_for(const struct dv_token *token, dv_str audience);

/* Something that goes on as long as a token is valid (a watch), embedded in it: zeroed, then
 * `ended` is set. */
struct dv_token_use {
    void (*ended)(struct dv_token_use *use); /* it was revoked or has expired; the use is over */
    const struct dv_tokens *tokens;
    struct dv_link link; /* among the token's uses */
    struct dv_timer timer;
    const struct dv_token *token;
};

/* False: the token is not valid any more, and nothing was begun. */
DV_CHECKED bool dv_token_use_begin(struct dv_token_use *use, struct dv_tokens *tokens, dv_str hash);
void dv_token_use_end(struct dv_token_use *use); /* twice is fine, and when it was never begun */

size_t dv_tokens_n(const struct dv_tokens *tokens);
/* The next token at or after *at, which is moved past it; NULL at the end. Start with 0. */
const struct dv_token *dv_tokens_next(const struct dv_tokens *tokens, size_t *at);

/* Adds a token whose text the caller knows (a file with tokens, tests); it is not stored.
 * DV_INVALID_ARGUMENT: an empty text. DV_ALREADY_EXISTS: it is there. */
DV_CHECKED bool dv_tokens_add_fixed(struct dv_tokens *tokens, dv_str secret,
                                    const struct dv_api_user_info *user, struct dv_err *err);

/* Making or revoking one, embedded in what waits for it: zeroed, filled in, lent with all it points
 * to until `done` has run. */
struct dv_token_op {
    struct dv_api_user_info user; /* create: copied */
    struct dv_strs audiences;     /* create: copied */
    int64_t lifetime_s;           /* create: 0: for ever */
    bool is_by_admin;             /* create: some places are for administrators */
    bool is_by_node;              /* create: for a pod, which has a share, as its node has */
    /* create: whether what the user's token is bound to is still there; one that is not so is over,
     * and makes room. NULL: all are. */
    bool (*is_bound_there)(const void *ctx, const struct dv_api_user_info *user);
    const void *ctx;
    dv_str id; /* revoke: its id */
    /* err: NULL when it is durable. DV_NOT_FOUND: no such token to revoke. DV_RESOURCE_EXHAUSTED:
     * there are too many to make another. */
    void (*done)(struct dv_token_op *op, const struct dv_err *err);

    struct dv_arena *arena;       /* create: takes the secret */
    dv_str secret;                /* create: the token itself, told this once */
    const struct dv_token *token; /* create: what is known of it; borrowed */
    bool is_over_quota;           /* create: it failed because there are too many */

    struct dv_tokens *tokens;
    struct dv_store_write write;
    struct dv_task task;
    void *priv;
};

void dv_tokens_create(struct dv_tokens *tokens, struct dv_token_op *op);
void dv_tokens_revoke(struct dv_tokens *tokens, struct dv_token_op *op);

#endif
