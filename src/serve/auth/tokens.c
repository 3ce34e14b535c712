/* tokens.c - the table of tokens, by hash, and its rows in the store.
 *
 * A row: the hash -> {"user": UserInfo, "created": seconds, "expires": seconds, "audiences"?}. */
#include "serve/tokens.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "rest/rest.h"
#include "serve/auth/signed_tokens.h"
#include "serve/auth/token_share.h"
#include "json/json.h"

/* An id is the first 12 of a hash's 64 digits, which tells a million tokens apart. */
#define ID_DIGITS 12u
#define ROW_BYTES_MAX (64u << 10)
/* One write deletes so many expired tokens: new ones are made more slowly than that. */
#define OVER_MAX 16u
#define MS_PER_S 1000u
/* How late it may be noticed that the clock was set past the end of a token. */
#define EXPIRY_LOOK_S 10

/* Room for the audiences of most tokens. */
#define AUDIENCE_BYTES 64u

struct entry {
    struct dv_token token;
    struct dv_list uses;    /* struct dv_token_use that go on with it */
    struct dv_link link;    /* in `creating` until it is in the table */
    struct dv_arena *arena; /* holds the entry's texts */
    bool is_fixed;
    bool is_ending; /* being revoked: no new use may begin, so that none outlives the answer */
};

struct dv_tokens {
    struct dv_loop *loop;
    struct dv_store *store; /* may be NULL */
    uint32_t table;
    struct dv_map by_hash;
    struct dv_list creating; /* struct entry that are not in the table yet */
    struct dv_signed_tokens *signed_tokens;
};

static int64_t now_s(const struct dv_tokens *tokens)
{
    return (int64_t)(dv_clock_wall_ns(dv_loop_clock(tokens->loop)) / DV_NS_PER_S);
}

/* ---- entries ---- */

static struct dv_strs copy_texts(const struct dv_strs *texts, struct dv_arena *arena)
{
    struct dv_strs copy = {DV_NEW_ARRAY(arena, dv_str, texts->n), texts->n};

    for (size_t i = 0; i < texts->n; i++)
        copy.v[i] = dv_str_copy(texts->v[i], arena);
    return copy;
}

/* How much an entry takes with its texts: every pod has a token. */
static size_t entry_bytes(dv_str hash, const struct dv_api_user_info *user)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *trial = dv_arena_new();
    struct dv_api_user_info copy;

    dv_message_copy(&dv_message_user_info, user, trial, &copy);
    return sizeof(struct entry) + hash.n + dv_arena_used_bytes(trial) + AUDIENCE_BYTES;
}

static struct entry *entry_new(dv_str hash, const struct dv_api_user_info *user)
{
    struct dv_arena *arena = dv_arena_new_sized(entry_bytes(hash, user));
    struct entry *entry = DV_NEW(arena, struct entry);

    entry->arena = arena;
    entry->token.hash = dv_str_copy(hash, arena);
    dv_list_init(&entry->uses);
    entry->token.id = dv_str_slice(entry->token.hash, 0, ID_DIGITS);
    dv_message_copy(&dv_message_user_info, user, arena, &entry->token.user);
    return entry;
}

static void entry_free(struct entry *entry)
{
    if (entry)
        dv_arena_free(entry->arena);
}

/* Ends everything that goes on with the token. */
static void end_uses(struct entry *entry)
{
    struct dv_link *link;

    while ((link = dv_list_first(&entry->uses)) != NULL) {
        struct dv_token_use *use = DV_CONTAINER(link, struct dv_token_use, link);

        dv_token_use_end(use);
        use->ended(use); /* comes last, because it may free what holds the use */
    }
}

static void forget(struct dv_tokens *tokens, struct entry *entry)
{
    (void)dv_map_remove(&tokens->by_hash, entry->token.hash); /* it is in the map */
    end_uses(entry);
    entry_free(entry);
}

static void table_set(struct dv_tokens *tokens, struct entry *entry)
{
    entry_free(dv_map_set(&tokens->by_hash, entry->token.hash, entry));
}

static struct entry *find_id(const struct dv_tokens *tokens, dv_str id)
{
    const struct dv_map_entry *at;
    size_t i = 0;

    while ((at = dv_map_next(&tokens->by_hash, &i)) != NULL) {
        struct entry *entry = at->value;

        if (dv_str_eq(entry->token.id, id))
            return entry;
    }
    return NULL;
}

/* ---- rows ---- */

static void print_row(const struct entry *entry, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "{\"user\":");
    dv_encode_json_text(&dv_message_user_info, &entry->token.user, NULL, DV_STR_NONE, buf);
    dv_buf_printf(buf, ",\"created\":%lld,\"expires\":%lld", (long long)entry->token.created_s,
                  (long long)entry->token.expires_s);
    dv_buf_add_c(buf, "}");
}

/* Loads the audiences. Rows of earlier versions have some: those of service accounts' tokens, when
 * these were not signed. */
static bool load_audiences(const struct dv_json *doc, struct dv_arena *arena,
                           struct dv_strs *audiences, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(doc, DV_STR("audiences"));

    *audiences = (struct dv_strs){0};
    if (!list)
        return true;
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    audiences->v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(list));
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        if (!dv_json_as_str(at, &audiences->v[audiences->n++], err))
            return false;
    return true;
}

static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_tokens *tokens = ctx;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_json *doc = dv_json_parse(row->value, NULL, scratch, err);
    struct dv_json *user = doc ? dv_json_require(doc, DV_STR("user"), err) : NULL;
    struct dv_json *created = user ? dv_json_require(doc, DV_STR("created"), err) : NULL;
    struct dv_json *expires = created ? dv_json_require(doc, DV_STR("expires"), err) : NULL;
    struct dv_api_user_info info = {0};
    struct dv_token times = {0};
    struct entry *entry;

    if (!expires ||
        !dv_decode_json(&dv_message_user_info, user, DV_UNKNOWN_DROP, scratch, &info, NULL, err) ||
        !dv_json_as_i64(created, &times.created_s, err) ||
        !dv_json_as_i64(expires, &times.expires_s, err) ||
        !load_audiences(doc, scratch, &times.audiences, err))
        return dv_wrap(err, "token %.*s", DV_FMT(dv_str_slice(row->key, 0, ID_DIGITS)));
    entry = entry_new(row->key, &info);
    entry->token.created_s = times.created_s;
    entry->token.expires_s = times.expires_s;
    entry->token.audiences = copy_texts(&times.audiences, entry->arena);
    table_set(tokens, entry);
    return true;
}

struct dv_tokens *dv_tokens_open(struct dv_loop *loop, struct dv_store *store, uint32_t table,
                                 struct dv_err *err)
{
    struct dv_tokens *tokens = DV_ALLOC(struct dv_tokens);

    tokens->loop = loop;
    tokens->store = store;
    tokens->table = table;
    dv_map_init(&tokens->by_hash);
    dv_list_init(&tokens->creating);
    tokens->signed_tokens = dv_signed_tokens_new(NULL, 0, err);
    if (!tokens->signed_tokens) {
        dv_tokens_close(tokens);
        return NULL;
    }
    if (store && !dv_store_load(store, table, load_row, tokens, err)) {
        dv_tokens_close(tokens);
        return NULL;
    }
    return tokens;
}

void dv_tokens_close(struct dv_tokens *tokens)
{
    const struct dv_map_entry *at;
    size_t i = 0;

    if (!tokens)
        return;
    while ((at = dv_map_next(&tokens->by_hash, &i)) != NULL) {
        assert(dv_list_is_empty(&((struct entry *)at->value)->uses));
        entry_free(at->value);
    }
    dv_map_fini(&tokens->by_hash);
    dv_signed_tokens_free(tokens->signed_tokens);
    free(tokens);
}

/* ---- looking ---- */

bool dv_token_has_expired(const struct dv_token *token, int64_t now_s)
{
    return token->expires_s && token->expires_s <= now_s;
}

static bool has_expired(const struct dv_tokens *tokens, const struct entry *entry)
{
    return dv_token_has_expired(&entry->token, now_s(tokens));
}

static bool is_valid(const struct dv_tokens *tokens, const struct entry *entry)
{
    return !entry->is_ending && !has_expired(tokens, entry);
}

const struct dv_token *dv_tokens_find(const struct dv_tokens *tokens, dv_str secret)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str hash = dv_rest_sha256_hex(secret, scratch);
    const struct entry *entry = dv_map_get(&tokens->by_hash, hash);
    struct dv_err ignored;

    if (!entry)
        return dv_signed_tokens_find(tokens->signed_tokens, secret, hash, now_s(tokens), &ignored);
    return secret.n && is_valid(tokens, entry) ? &entry->token : NULL;
}

dv_str dv_tokens_why_not(const struct dv_tokens *tokens, dv_str secret, struct dv_arena *arena)
{
    struct dv_err err;

    if (dv_signed_tokens_find(tokens->signed_tokens, secret, dv_rest_sha256_hex(secret, arena),
                              now_s(tokens), &err) ||
        err.code == DV_NOT_FOUND)
        return DV_STR_NONE;
    return dv_str_copy(dv_str_from_c(dv_err_text(&err)), arena);
}

bool dv_tokens_is_valid(const struct dv_tokens *tokens, dv_str hash)
{
    const struct entry *entry = dv_map_get(&tokens->by_hash, hash);

    return entry ? is_valid(tokens, entry)
                 : dv_signed_tokens_get(tokens->signed_tokens, hash, now_s(tokens)) != NULL;
}

/* ---- what goes on with them ---- */

static void on_expiry(struct dv_timer *timer);

/* Starts a timer for the token's end. That is in wall time, which may be set meanwhile, so the
 * timer looks again now and then. */
static void await_expiry(struct dv_token_use *use)
{
    const struct dv_tokens *tokens = use->tokens;
    int64_t left_s = use->expires_s - now_s(tokens);

    if (!use->expires_s)
        return;
    left_s = left_s < 0 ? 0 : left_s > EXPIRY_LOOK_S ? EXPIRY_LOOK_S : left_s;
    dv_timer_start(&use->timer, tokens->loop,
                   dv_loop_now_ms(tokens->loop) + (uint64_t)left_s * MS_PER_S, on_expiry);
}

static void on_expiry(struct dv_timer *timer)
{
    struct dv_token_use *use = DV_CONTAINER(timer, struct dv_token_use, timer);

    if (use->expires_s > now_s(use->tokens)) {
        await_expiry(use);
        return;
    }
    dv_token_use_end(use);
    use->ended(use);
}

bool dv_token_use_begin(struct dv_token_use *use, struct dv_tokens *tokens, dv_str hash)
{
    struct entry *entry = dv_map_get(&tokens->by_hash, hash);
    const struct dv_token *token = NULL;

    if (entry && is_valid(tokens, entry))
        token = &entry->token;
    else if (!entry)
        token = dv_signed_tokens_get(tokens->signed_tokens, hash, now_s(tokens));
    if (!token)
        return false;
    use->tokens = tokens;
    use->expires_s = token->expires_s;
    if (entry)
        dv_list_push(&entry->uses, &use->link);
    await_expiry(use);
    return true;
}

void dv_token_use_end(struct dv_token_use *use)
{
    dv_link_remove(&use->link);
    dv_timer_cancel(&use->timer);
}

/* ---- signed tokens ---- */

bool dv_tokens_set_keys(struct dv_tokens *tokens, const dv_str *pems, size_t n_pems,
                        struct dv_err *err)
{
    struct dv_signed_tokens *made = dv_signed_tokens_new(pems, n_pems, err);

    if (!made)
        return false;
    dv_signed_tokens_free(tokens->signed_tokens);
    tokens->signed_tokens = made;
    return true;
}

bool dv_tokens_sign(const struct dv_tokens *tokens, const struct dv_jwt_claims *claims,
                    struct dv_arena *arena, dv_str *text, struct dv_err *err)
{
    return dv_signed_tokens_sign(tokens->signed_tokens, claims, arena, text, err);
}

void dv_tokens_print_keys(const struct dv_tokens *tokens, struct dv_buf *buf)
{
    dv_signed_tokens_print_keys(tokens->signed_tokens, buf);
}

void dv_tokens_print_algorithms(const struct dv_tokens *tokens, struct dv_buf *buf)
{
    dv_signed_tokens_print_algorithms(tokens->signed_tokens, buf);
}

/* ---- all of them ---- */

const struct dv_token *dv_tokens_next(const struct dv_tokens *tokens, size_t *at)
{
    const struct dv_map_entry *entry = dv_map_next(&tokens->by_hash, at);

    return entry ? &((const struct entry *)entry->value)->token : NULL;
}

bool dv_tokens_add_fixed(struct dv_tokens *tokens, dv_str secret,
                         const struct dv_api_user_info *user, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str hash = dv_rest_sha256_hex(secret, scratch);
    struct entry *entry;

    if (!secret.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "token of user %.*s: empty",
                       DV_FMT(user->username));
    if (dv_map_get(&tokens->by_hash, hash))
        return dv_fail(err, DV_ALREADY_EXISTS, "token of user %.*s: already there",
                       DV_FMT(user->username));
    entry = entry_new(hash, user);
    entry->is_fixed = true;
    entry->token.created_s = now_s(tokens);
    table_set(tokens, entry);
    return true;
}

/* ---- making and revoking ---- */

static void create_done(struct dv_token_op *op, const struct dv_err *err)
{
    struct entry *entry = op->priv;

    dv_link_remove(&entry->link);
    if (err) {
        entry_free(entry);
    } else {
        table_set(op->tokens, entry);
        op->token = &entry->token;
    }
    op->done(op, err);
}

static void revoke_done(struct dv_token_op *op, const struct dv_err *err)
{
    struct entry *entry = find_id(op->tokens, op->id); /* it may have expired since */

    if (entry && err)
        /* It is still in the store, and would be valid again after a restart. */
        entry->is_ending = false;
    else if (entry)
        forget(op->tokens, entry);
    op->done(op, err);
}

static void on_create_written(struct dv_store_write *write, const struct dv_err *err)
{
    create_done(DV_CONTAINER(write, struct dv_token_op, write), err);
}

static void on_revoke_written(struct dv_store_write *write, const struct dv_err *err)
{
    revoke_done(DV_CONTAINER(write, struct dv_token_op, write), err);
}

static void on_create_task(struct dv_task *task)
{
    create_done(DV_CONTAINER(task, struct dv_token_op, task), NULL);
}

static void on_revoke_task(struct dv_task *task)
{
    revoke_done(DV_CONTAINER(task, struct dv_token_op, task), NULL);
}

static void on_not_found(struct dv_task *task)
{
    struct dv_token_op *op = DV_CONTAINER(task, struct dv_token_op, task);
    struct dv_err err;

    (void)dv_fail(&err, DV_NOT_FOUND, "no token has the id \"%.*s\"", DV_FMT(op->id));
    op->done(op, &err);
}

static void on_too_many(struct dv_task *task)
{
    struct dv_token_op *op = DV_CONTAINER(task, struct dv_token_op, task);

    op->is_over_quota = true;
    op->done(op, op->priv);
}

/* Tokens that have expired, up to as many as one write deletes. */
struct over {
    struct entry *v[OVER_MAX];
    size_t n;
};

/* Writes the new row, and deletes rows of expired tokens in the same write. */
static void write_created(struct dv_token_op *op, const struct entry *entry,
                          const struct over *over)
{
    struct dv_tokens *tokens = op->tokens;
    struct dv_store_change changes[OVER_MAX + 1];
    struct dv_buf row;

    dv_buf_init(&row, ROW_BYTES_MAX);
    print_row(entry, &row);
    changes[0] =
        (struct dv_store_change){DV_STORE_PUT, tokens->table, entry->token.hash, dv_buf_str(&row)};
    for (size_t i = 0; i < over->n; i++)
        changes[i + 1] =
            (struct dv_store_change){DV_STORE_DELETE, tokens->table, over->v[i]->token.hash, {0}};
    op->write.done = on_create_written;
    dv_store_write(tokens->store, &op->write, changes, over->n + 1);
    dv_buf_fini(&row);
}

static bool is_over(const struct dv_token_op *op, const struct entry *entry)
{
    return has_expired(op->tokens, entry) ||
           (op->is_bound_there && !op->is_bound_there(op->ctx, &entry->token.user));
}

/* Counts the tokens that exist and that are being made, but not those that have expired. */
static bool find_room(const struct dv_token_op *op, struct over *over, struct dv_err *err)
{
    const struct dv_map_entry *at;
    struct dv_link *link;
    size_t n = 0;
    size_t i = 0;

    while ((at = dv_map_next(&op->tokens->by_hash, &i)) != NULL) {
        struct entry *entry = at->value;

        if (!is_over(op, entry))
            n++;
        else if (over->n < OVER_MAX && !entry->is_ending)
            over->v[over->n++] = entry;
    }
    DV_LIST_EACH (&op->tokens->creating, link)
        n++;
    return dv_token_share_has_room(n, op->is_by_admin, err);
}

void dv_tokens_create(struct dv_tokens *tokens, struct dv_token_op *op)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct over over = {.n = 0};
    struct entry *entry;

    op->tokens = tokens;
    op->priv = DV_NEW(op->arena, struct dv_err);
    if (!find_room(op, &over, op->priv)) {
        dv_task_post(&op->task, tokens->loop, on_too_many);
        return;
    }
    op->secret = dv_rest_random_token(op->arena);
    entry = entry_new(dv_rest_sha256_hex(op->secret, scratch), &op->user);
    entry->token.created_s = now_s(tokens);
    entry->token.expires_s = op->lifetime_s ? entry->token.created_s + op->lifetime_s : 0;
    dv_list_push(&tokens->creating, &entry->link);
    op->priv = entry;
    if (tokens->store)
        write_created(op, entry, &over);
    else
        dv_task_post(&op->task, tokens->loop, on_create_task);
    for (size_t i = 0; i < over.n; i++)
        forget(tokens, over.v[i]);
}

void dv_tokens_revoke(struct dv_tokens *tokens, struct dv_token_op *op)
{
    struct entry *entry = find_id(tokens, op->id);

    op->tokens = tokens;
    if (entry)
        entry->is_ending = true;
    if (!entry) {
        dv_task_post(&op->task, tokens->loop, on_not_found);
    } else if (!tokens->store || entry->is_fixed) {
        dv_task_post(&op->task, tokens->loop, on_revoke_task);
    } else {
        op->write.done = on_revoke_written;
        dv_store_write(
            tokens->store, &op->write,
            &(struct dv_store_change){DV_STORE_DELETE, tokens->table, entry->token.hash, {0}}, 1);
    }
}
