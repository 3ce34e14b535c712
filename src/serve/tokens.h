/* tokens.h - bearer tokens: a client that shows one is its user. There are two kinds.
 *
 * A token of davit's own is 256 random bits. It is told once, when it is made. Only its SHA-256 is
 * kept, in memory and in the store, so that whoever reads the file cannot use the token.
 *
 * A token of a service account is signed, and says itself whose it is and for how long
 * (serve/auth/jwt.h). It is not stored. */
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
struct dv_buf;
struct dv_err;
struct dv_jwt_claims;
struct dv_tokens;

struct dv_token {
    dv_str id;   /* the first digits of the hash, by which it is listed and revoked */
    dv_str hash; /* its key in the table */
    struct dv_api_user_info user;
    struct dv_strs audiences; /* whom it is for; empty: this API */
    int64_t created_s;        /* wall time */
    int64_t expires_s;        /* the first second in which it is not good; 0: never */
    /* What a signed token says; NULL: it is one of davit's own. */
    const struct dv_jwt_claims *claims;
};

bool dv_token_has_expired(const struct dv_token *token, int64_t now_s);

/* Loads the stored tokens. Blocks: for start-up, before anything is written. With a NULL store
 * tokens live as long as the process. The store must outlive this. */
struct dv_tokens *dv_tokens_open(struct dv_loop *loop, struct dv_store *store, uint32_t table,
                                 struct dv_err *err);
/* Frees the tokens. No creation or revocation may be under way. NULL is fine. */
void dv_tokens_close(struct dv_tokens *tokens);

/* Returns the token if it is known and valid, borrowed until the next call that looks for one or
 * changes them; NULL otherwise. */
const struct dv_token *dv_tokens_find(const struct dv_tokens *tokens, dv_str secret);
/* Whether the token with that hash is there and valid now. */
bool dv_tokens_is_valid(const struct dv_tokens *tokens, dv_str hash);

/* Returns why a text is no token, in the arena; empty when there is nothing to say but that. */
dv_str dv_tokens_why_not(const struct dv_tokens *tokens, dv_str secret, struct dv_arena *arena);

/* ---- signed tokens ---- */

/* Who signs tokens. Unless told otherwise, tokens are also for this audience. */
#define DV_TOKEN_ISSUER "https://kubernetes.default.svc"

/* Sets the keys of signed tokens, PEM texts: the first one signs, the others still verify. Before
 * that, and without any, it is a key that lives as long as the process. DV_INVALID_ARGUMENT: one
 * cannot be used, and nothing has changed. */
DV_CHECKED bool dv_tokens_set_keys(struct dv_tokens *tokens, const dv_str *pems, size_t n_pems,
                                   struct dv_err *err);
/* Makes a signed token that says what the claims say, in the arena. */
DV_CHECKED bool dv_tokens_sign(const struct dv_tokens *tokens, const struct dv_jwt_claims *claims,
                               struct dv_arena *arena, dv_str *text, struct dv_err *err);
/* Print the public keys as a JSON Web Key Set, and the names of their algorithms as a JSON list. */
void dv_tokens_print_keys(const struct dv_tokens *tokens, struct dv_buf *buf);
void dv_tokens_print_algorithms(const struct dv_tokens *tokens, struct dv_buf *buf);

/* ---- uses ---- */

/* Something that goes on as long as a token is valid (a watch). It is embedded there, zeroed, then
 * `ended` is set. */
struct dv_token_use {
    /* The token was revoked or has expired; the use is over. */
    void (*ended)(struct dv_token_use *use);
    const struct dv_tokens *tokens;
    struct dv_link link; /* among the token's uses, if the token can be revoked */
    struct dv_timer timer;
    int64_t expires_s; /* 0: never */
};

/* Begins a use. False: the token is not valid any more, and nothing was begun. */
DV_CHECKED bool dv_token_use_begin(struct dv_token_use *use, struct dv_tokens *tokens, dv_str hash);
/* Does nothing the second time, or when the use was never begun. */
void dv_token_use_end(struct dv_token_use *use);

/* Returns the next token at or after *at, and moves *at past it; NULL at the end. Start with 0. */
const struct dv_token *dv_tokens_next(const struct dv_tokens *tokens, size_t *at);

/* Adds a token whose text the caller knows (a file with tokens, tests); it is not stored.
 * DV_INVALID_ARGUMENT: an empty text. DV_ALREADY_EXISTS: it is there. */
DV_CHECKED bool dv_tokens_add_fixed(struct dv_tokens *tokens, dv_str secret,
                                    const struct dv_api_user_info *user, struct dv_err *err);

/* A creation or a revocation. It is embedded in what waits for it, zeroed, filled in, and lent with
 * all it points to until `done` has run. */
struct dv_token_op {
    struct dv_api_user_info user; /* create: copied */
    int64_t lifetime_s;           /* create: 0: for ever */
    bool is_by_admin;             /* create: it may use the places for administrators */
    /* create: whether the account and pod that a user's token is bound to still exist. A token for
     * which they do not is over, and makes room. NULL: all exist. */
    bool (*is_bound_there)(const void *ctx, const struct dv_api_user_info *user);
    const void *ctx;
    dv_str id; /* revoke: the token's id */
    /* The operation has ended; err is NULL when it is durable. DV_NOT_FOUND: there is no such token
     * to revoke. DV_RESOURCE_EXHAUSTED: there are too many to make another. */
    void (*done)(struct dv_token_op *op, const struct dv_err *err);

    struct dv_arena *arena;       /* create: holds the secret */
    dv_str secret;                /* create: the token itself, told this once */
    const struct dv_token *token; /* create: the token's description; borrowed */
    bool is_over_quota;           /* create: it failed because there are too many */

    struct dv_tokens *tokens;
    struct dv_store_write write;
    struct dv_task task;
    void *priv;
};

void dv_tokens_create(struct dv_tokens *tokens, struct dv_token_op *op);
void dv_tokens_revoke(struct dv_tokens *tokens, struct dv_token_op *op);

#endif
