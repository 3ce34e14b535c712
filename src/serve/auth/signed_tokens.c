#include "serve/auth/signed_tokens.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "resource/resource.h"
#include "rest/signing_key.h"
#include "serve/auth.h"
#include "serve/auth/jwt.h"
#include "serve/tokens.h"

/* So many verified tokens are remembered, of a kilobyte or two each; of more, the ones that were
 * not used for longest are verified again. */
#define REMEMBERED_MAX 2048u
/* Clocks of clients and server may differ by this much, as in the reference. */
#define LEEWAY_S 60
/* More keys than anybody rotates. */
#define KEYS_MAX 32u
#define EXTRA_MAX 5u

struct entry {
    struct dv_token token;
    struct dv_link link; /* in `by_use` */
    struct dv_arena *arena;
};

struct dv_signed_tokens {
    struct dv_signing_key *keys[KEYS_MAX]; /* the first one signs */
    size_t n_keys;
    struct dv_map by_hash;
    struct dv_list by_use; /* the one that was used last is the last */
    size_t n_entries;
};

/* ---- life ---- */

static bool add_key(struct dv_signed_tokens *tokens, dv_str pem, struct dv_err *err)
{
    struct dv_signing_key *key;

    if (tokens->n_keys == KEYS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "more than %u keys for tokens: remove those whose tokens have expired",
                       KEYS_MAX);
    key = dv_signing_key_new(pem, err);
    if (!key)
        return false;
    if (tokens->n_keys == 0 && !dv_signing_key_can_sign(key)) {
        dv_signing_key_free(key);
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "key for tokens: the first one signs, and must be a private key");
    }
    tokens->keys[tokens->n_keys++] = key;
    return true;
}

static bool make_key(struct dv_signed_tokens *tokens, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str pem;

    return dv_signing_key_make(scratch, &pem, err) && add_key(tokens, pem, err);
}

struct dv_signed_tokens *dv_signed_tokens_new(const dv_str *pems, size_t n_pems, struct dv_err *err)
{
    struct dv_signed_tokens *tokens = DV_ALLOC(struct dv_signed_tokens);
    bool is_good = n_pems > 0 || make_key(tokens, err);

    dv_map_init(&tokens->by_hash);
    dv_list_init(&tokens->by_use);
    for (size_t i = 0; i < n_pems && is_good; i++)
        is_good = add_key(tokens, pems[i], err);
    if (is_good)
        return tokens;
    dv_signed_tokens_free(tokens);
    return NULL;
}

static void forget(struct dv_signed_tokens *tokens, struct entry *entry)
{
    (void)dv_map_remove(&tokens->by_hash, entry->token.hash); /* it is there */
    dv_link_remove(&entry->link);
    tokens->n_entries--;
    dv_arena_free(entry->arena);
}

static void forget_first(struct dv_signed_tokens *tokens)
{
    forget(tokens, DV_CONTAINER(dv_list_first(&tokens->by_use), struct entry, link));
}

void dv_signed_tokens_free(struct dv_signed_tokens *tokens)
{
    if (!tokens)
        return;
    while (tokens->n_entries > 0)
        forget_first(tokens);
    dv_map_fini(&tokens->by_hash);
    for (size_t i = 0; i < tokens->n_keys; i++)
        dv_signing_key_free(tokens->keys[i]);
    free(tokens);
}

/* ---- signing ---- */

bool dv_signed_tokens_sign(const struct dv_signed_tokens *tokens,
                           const struct dv_jwt_claims *claims, struct dv_arena *arena, dv_str *text,
                           struct dv_err *err)
{
    const struct dv_signing_key *key = tokens->keys[0];
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str signature;

    dv_buf_init(&buf, DV_JWT_BYTES_MAX);
    dv_jwt_print(dv_signing_key_algorithm(key), dv_signing_key_id(key), claims, &buf);
    if (!dv_signing_key_sign(key, dv_buf_str(&buf), arena, &signature, err))
        return false;
    dv_buf_add_char(&buf, '.');
    dv_base64url_encode(signature, &buf);
    if (buf.is_over)
        return dv_fail(err, DV_INVALID_ARGUMENT, "the token would have more than %u bytes",
                       DV_JWT_BYTES_MAX);
    *text = dv_str_copy(dv_buf_str(&buf), arena);
    return true;
}

/* ---- verifying ---- */

/* Whether one of the keys has signed it. The algorithm is the key's: what a token says of it can
 * only exclude keys. */
static bool is_signed(const struct dv_signed_tokens *tokens, const struct dv_jwt *jwt)
{
    for (size_t i = 0; i < tokens->n_keys; i++) {
        const struct dv_signing_key *key = tokens->keys[i];

        if (dv_str_eq(jwt->algorithm, dv_signing_key_algorithm(key)) &&
            (!jwt->key_id.n || dv_str_eq(jwt->key_id, dv_signing_key_id(key))) &&
            dv_signing_key_verify(key, jwt->signed_text, jwt->signature))
            return true;
    }
    return false;
}

/* Checks when the token is good, and that it names its account in both ways alike. The texts are
 * the reference's. */
static bool check_claims(const struct dv_jwt_claims *claims, int64_t now_s, struct dv_arena *arena,
                         struct dv_err *err)
{
    dv_str subject = dv_str_printf(arena, DV_USER_ACCOUNT_PREFIX "%.*s:%.*s",
                                   DV_FMT(claims->namespace), DV_FMT(claims->account.name));

    if (claims->expires_s <= 0 || claims->expires_s + LEEWAY_S < now_s)
        return dv_fail(err, DV_UNAUTHENTICATED, "service account token has expired");
    if (claims->not_before_s - LEEWAY_S > now_s || claims->issued_s - LEEWAY_S > now_s)
        return dv_fail(err, DV_UNAUTHENTICATED, "service account token is not valid yet");
    if (!claims->account.name.n || !claims->account.uid.n || !claims->namespace.n ||
        !dv_str_eq(claims->subject, subject))
        return dv_fail(err, DV_UNAUTHENTICATED,
                       "service account token claims could not be validated due to unexpected "
                       "validation error");
    return true;
}

static void add_extra(struct dv_api_user_info *user, const char *key, dv_str value,
                      struct dv_arena *arena)
{
    dv_str *values = DV_NEW(arena, dv_str);

    if (!value.n)
        return;
    *values = value;
    user->extra[user->n_extra++] = (struct dv_strs_entry){
        dv_str_from_c(key), {values, 1}
    };
}

/* Makes the user that a token stands for; its texts are those of the claims. */
static void make_user(const struct dv_jwt_claims *claims, struct dv_arena *arena,
                      struct dv_api_user_info *user)
{
    *user = (struct dv_api_user_info){.username = claims->subject, .uid = claims->account.uid};
    user->n_groups = 3;
    user->groups = DV_NEW_ARRAY(arena, dv_str, user->n_groups);
    user->groups[0] = DV_STR("system:serviceaccounts");
    user->groups[1] =
        dv_str_printf(arena, "system:serviceaccounts:%.*s", DV_FMT(claims->namespace));
    user->groups[2] = DV_STR(DV_GROUP_AUTHENTICATED);
    user->extra = DV_NEW_ARRAY(arena, struct dv_strs_entry, EXTRA_MAX);
    if (claims->id.n)
        add_extra(user, DV_EXTRA_CREDENTIAL, dv_str_printf(arena, "JTI=%.*s", DV_FMT(claims->id)),
                  arena);
    add_extra(user, DV_EXTRA_NODE, claims->node.name, arena);
    add_extra(user, DV_EXTRA_NODE_UID, claims->node.uid, arena);
    add_extra(user, DV_EXTRA_POD_NAME, claims->pod.name, arena);
    add_extra(user, DV_EXTRA_POD_UID, claims->pod.uid, arena);
}

static const struct dv_token *remember(struct dv_signed_tokens *tokens, dv_str hash,
                                       const struct dv_jwt_claims *claims)
{
    struct dv_arena *arena = dv_arena_new();
    struct entry *entry = DV_NEW(arena, struct entry);
    const struct dv_jwt_claims *copy = dv_jwt_copy_claims(claims, arena);

    entry->arena = arena;
    entry->token = (struct dv_token){
        .hash = dv_str_copy(hash, arena),
        .audiences = copy->audiences,
        .created_s = copy->issued_s,
        .expires_s = copy->expires_s + LEEWAY_S + 1, /* in its last second it is good */
        .claims = copy,
    };
    make_user(copy, arena, &entry->token.user);
    if (tokens->n_entries == REMEMBERED_MAX)
        forget_first(tokens);
    (void)dv_map_set(&tokens->by_hash, entry->token.hash, entry); /* it was not there */
    dv_list_push(&tokens->by_use, &entry->link);
    tokens->n_entries++;
    return &entry->token;
}

const struct dv_token *dv_signed_tokens_get(const struct dv_signed_tokens *tokens, dv_str hash,
                                            int64_t now_s)
{
    const struct entry *entry = dv_map_get(&tokens->by_hash, hash);

    return entry && !dv_token_has_expired(&entry->token, now_s) ? &entry->token : NULL;
}

const struct dv_token *dv_signed_tokens_find(struct dv_signed_tokens *tokens, dv_str text,
                                             dv_str hash, int64_t now_s, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct entry *known = dv_map_get(&tokens->by_hash, hash);
    struct dv_jwt jwt;

    if (known && !dv_token_has_expired(&known->token, now_s)) {
        dv_link_remove(&known->link);
        dv_list_push(&tokens->by_use, &known->link);
        return &known->token;
    }
    if (known)
        forget(tokens, known);
    scratch = dv_arena_new();
    if (!dv_jwt_read(text, scratch, &jwt, err) ||
        !dv_str_eq(jwt.claims.issuer, DV_STR(DV_TOKEN_ISSUER))) {
        (void)dv_fail(err, DV_NOT_FOUND, "it is no token of this issuer");
        return NULL;
    }
    if (!is_signed(tokens, &jwt)) {
        /* What clients of the reference look for is its library's text. */
        (void)dv_fail(err, DV_UNAUTHENTICATED, "go-jose/go-jose: error in cryptographic primitive");
        return NULL;
    }
    return check_claims(&jwt.claims, now_s, scratch, err) ? remember(tokens, hash, &jwt.claims)
                                                          : NULL;
}

/* ---- the keys ---- */

void dv_signed_tokens_print_keys(const struct dv_signed_tokens *tokens, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"keys\":[");
    for (size_t i = 0; i < tokens->n_keys; i++) {
        dv_buf_add_c(buf, i > 0 ? "," : "");
        dv_signing_key_print(tokens->keys[i], buf);
    }
    dv_buf_add_c(buf, "]}");
}

void dv_signed_tokens_print_algorithms(const struct dv_signed_tokens *tokens, struct dv_buf *buf)
{
    static const dv_str algorithms[] = {DV_STR_INIT("ES256"), DV_STR_INIT("RS256")};
    const char *before = "[";

    for (size_t i = 0; i < DV_COUNT(algorithms); i++)
        for (size_t k = 0; k < tokens->n_keys; k++)
            if (dv_str_eq(algorithms[i], dv_signing_key_algorithm(tokens->keys[k]))) {
                dv_buf_printf(buf, "%s\"%.*s\"", before, DV_FMT(algorithms[i]));
                before = ",";
                break;
            }
    dv_buf_add_char(buf, ']');
}
