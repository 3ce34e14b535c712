/* kube_tokens.c - davit's own part of the API: tokens, for those who may do everything.
 *
 *     GET    /davit/v1/tokens       {"tokens": [{"id", "user", "node"?, "allNodes"?, "pools"?,
 *                                                "also"?, "created", "expires"?}, ...]}
 *     POST   /davit/v1/tokens       {"driver"?, "node"?, "allNodes"?, "pools"?, "also"?,
 *                                    "admin"?, "lifetimeSeconds"?}
 *                                   -> 201, the same with "token", which is told this once
 *     DELETE /davit/v1/tokens/ID    -> {}
 *
 * A token for a driver names the node, too, and reaches no further; or it says that the driver's
 * devices have none. `pools` are those that it may make besides the node's, or all that it may make
 * without a node; `also` is what it may read besides: "pods: get,list,watch". */
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/name.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "rest/rest.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"
#include "json/json.h"

#define ANSWER_BYTES_MAX (16u << 20)
/* The client is told to wait this long: somebody has to revoke a token first. */
#define RETRY_S 60
/* Ten years: a longer lifetime is meant to be for ever, and that is written as 0. */
#define LIFETIME_S_MAX (INT64_C(10) * 365 * 24 * 3600)

/* The limit of an admin's name; a node's name has the same. */
#define NAME_BYTES_MAX 253u

struct token_call {
    struct dv_kube_call *call;
    struct dv_token_op op;
};

static void reply_json(struct dv_kube_call *call, unsigned code, const struct dv_json *doc)
{
    struct dv_buf body;

    dv_buf_init(&body, ANSWER_BYTES_MAX);
    dv_json_print(doc, NULL, &body);
    dv_kube_reply(call, code, &body);
    dv_buf_fini(&body);
}

static void set_time(struct dv_json *object, const char *key, int64_t seconds,
                     struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, 64);
    dv_api_time_print((struct dv_time){.seconds = seconds, .is_set = true}, false, &text);
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(dv_buf_str(&text), arena), arena);
}

static void set_list(struct dv_json *object, const char *key, struct dv_strs texts,
                     struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < texts.n; i++)
        dv_json_append(list, dv_json_new_str(texts.v[i], arena));
    if (texts.n > 0)
        dv_json_set(object, dv_str_from_c(key), list, arena);
}

/* Adds how far a driver's token reaches. */
static void describe_scope(struct dv_json *object, const struct dv_api_user_info *user,
                           struct dv_arena *arena)
{
    dv_str node, driver;

    if (dv_auth_scope(user, &node, &driver) != DV_SCOPE_DRIVER)
        return;
    if (node.n)
        dv_json_set(object, DV_STR("node"), dv_json_new_str(node, arena), arena);
    else
        dv_json_set(object, DV_STR("allNodes"), dv_json_new_bool(true, arena), arena);
    set_list(object, "pools", dv_auth_extra(user, DV_STR(DV_EXTRA_POOLS)), arena);
    set_list(object, "also", dv_auth_extra(user, DV_STR(DV_EXTRA_ALSO)), arena);
}

static struct dv_json *describe(const struct dv_token *token, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    dv_json_set(object, DV_STR("id"), dv_json_new_str(token->id, arena), arena);
    dv_json_set(object, DV_STR("user"), dv_json_new_str(token->user.username, arena), arena);
    describe_scope(object, &token->user, arena);
    set_time(object, "created", token->created_s, arena);
    if (token->expires_s)
        set_time(object, "expires", token->expires_s, arena);
    return object;
}

static void list(struct dv_kube_call *call)
{
    struct dv_json *answer = dv_json_new_object(call->arena);
    struct dv_json *tokens = dv_json_new_array(call->arena);
    const struct dv_token *token;
    size_t at = 0;

    while ((token = dv_tokens_next(call->kube->options.tokens, &at)))
        dv_json_append(tokens, describe(token, call->arena));
    dv_json_set(answer, DV_STR("tokens"), tokens, call->arena);
    reply_json(call, 200, answer);
}

/* ---- making one ---- */

static void reply_error(struct dv_kube_call *call, const struct dv_token_op *op,
                        const struct dv_err *err)
{
    const dv_str resource = DV_STR_INIT("tokens");

    if (op->is_over_quota && call->kube->quota_refusals)
        dv_counter_add(dv_family_counter(call->kube->quota_refusals, &resource), 1);
    dv_kube_reply_status(call, op->is_over_quota ? dv_status_too_many_requests(
                                                       RETRY_S, call->arena, "%s", dv_err_text(err))
                                                 : dv_status_from_err(err, call->arena));
}

static void on_created(struct dv_token_op *op, const struct dv_err *err)
{
    struct dv_kube_call *call = DV_CONTAINER(op, struct token_call, op)->call;
    struct dv_json *answer;

    if (err) {
        reply_error(call, op, err);
        return;
    }
    answer = describe(op->token, call->arena);
    dv_json_set(answer, DV_STR("token"), dv_json_new_str(op->secret, call->arena), call->arena);
    reply_json(call, 201, answer);
}

static bool read_text(const struct dv_json *doc, const char *key, dv_str *text, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(doc, dv_str_from_c(key));

    return !node || dv_json_as_str(node, text, err);
}

/* Reads whom the token is for. */
static bool read_user(const struct dv_json *doc, struct dv_arena *arena,
                      struct dv_api_user_info *user, struct dv_err *err)
{
    const struct dv_json *admin = dv_json_get(doc, DV_STR("admin"));
    const struct dv_json *anywhere = dv_json_get(doc, DV_STR("allNodes"));
    bool is_anywhere = false;
    dv_str driver = {0};
    dv_str node = {0};
    dv_str name = {0};

    if (!read_text(doc, "driver", &driver, err) || !read_text(doc, "node", &node, err) ||
        (admin && !dv_json_as_str(admin, &name, err)) ||
        (anywhere && !dv_json_as_bool(anywhere, &is_anywhere, err)))
        return false;
    if (name.n > NAME_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "admin: a name has up to %u bytes, not %zu",
                       NAME_BYTES_MAX, name.n);
    if (admin && !driver.n && !node.n && !is_anywhere && name.n) {
        *user = dv_auth_admin(name, arena);
        return true;
    }
    if (admin || (is_anywhere ? node.n || !driver.n : !node.n))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "a token is for a driver on a node (\"driver\" and \"node\"), for one of "
                       "devices without a node (\"driver\" and \"allNodes\": true), for a node "
                       "(\"node\") or for an administrator (\"admin\": a name)");
    if (node.n && !dv_is_dns_subdomain(node))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not the name of a node",
                       DV_FMT(node));
    if (driver.n && !dv_is_driver_name(driver))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not the name of a driver",
                       DV_FMT(driver));
    *user = driver.n ? dv_auth_driver(driver, node, arena) : dv_auth_node(node, arena);
    return true;
}

typedef bool give_fn(struct dv_api_user_info *user, const dv_str *texts, size_t n_texts,
                     struct dv_arena *arena, struct dv_err *err);

/* Reads a list of texts and adds them to the user, which must be a driver. */
static bool read_list(const struct dv_json *doc, const char *key, give_fn *give,
                      struct dv_arena *arena, struct dv_api_user_info *user, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(doc, dv_str_from_c(key));
    DV_VEC(dv_str) texts = {0};
    dv_str node, driver;

    if (!list)
        return true;
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return dv_wrap(err, "%s", key);
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        if (!dv_json_as_str(at, dv_vec_add_in(&texts, arena), err))
            return dv_wrap(err, "%s", key);
    if (texts.n > 0 && dv_auth_scope(user, &node, &driver) != DV_SCOPE_DRIVER)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s: only a driver's token can be given some",
                       key);
    return give(user, texts.v, texts.n, arena, err) || dv_wrap(err, "%s", key);
}

static bool read_token_request(const struct dv_kube_call *call, struct dv_token_op *op,
                               struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(call->request->body, NULL, call->arena, err);
    const struct dv_json *lifetime;

    if (!doc || !dv_json_expect(doc, DV_JSON_OBJECT, err) ||
        !read_user(doc, call->arena, &op->user, err) ||
        !read_list(doc, "pools", dv_auth_give_pools, call->arena, &op->user, err) ||
        !read_list(doc, "also", dv_auth_widen, call->arena, &op->user, err))
        return false;
    lifetime = dv_json_get(doc, DV_STR("lifetimeSeconds"));
    if (!lifetime)
        return true;
    if (!dv_json_as_i64(lifetime, &op->lifetime_s, err))
        return false;
    if (op->lifetime_s < 0 || op->lifetime_s > LIFETIME_S_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "lifetimeSeconds is from 0 (for ever) to %lld",
                       (long long)LIFETIME_S_MAX);
    return true;
}

static void create(struct dv_kube_call *call)
{
    struct token_call *token = DV_NEW(call->arena, struct token_call);
    struct dv_err err;

    token->call = call;
    token->op.done = on_created;
    token->op.is_by_admin = true; /* nobody else may make tokens here */
    if (read_token_request(call, &token->op, &err))
        dv_kube_make_token(call->kube, call->arena, &token->op);
    else
        dv_kube_reply_status(call, dv_status_bad_request(call->arena, "%s", dv_err_text(&err)));
}

/* ---- taking one back ---- */

static void on_revoked(struct dv_token_op *op, const struct dv_err *err)
{
    struct dv_kube_call *call = DV_CONTAINER(op, struct token_call, op)->call;

    if (err)
        dv_kube_reply_status(call, dv_status_from_err(err, call->arena));
    else
        reply_json(call, 200, dv_json_new_object(call->arena));
}

static void revoke(struct dv_kube_call *call)
{
    struct token_call *token = DV_NEW(call->arena, struct token_call);

    token->call = call;
    token->op.id = call->route.name;
    token->op.done = on_revoked;
    dv_tokens_revoke(call->kube->options.tokens, &token->op);
}

void dv_kube_serve_tokens(struct dv_kube_call *call)
{
    dv_str method = call->request->method;

    if (dv_str_eq(method, DV_STR("GET")) && !call->route.name.n)
        list(call);
    else if (dv_str_eq(method, DV_STR("POST")) && !call->route.name.n)
        create(call);
    else if (dv_str_eq(method, DV_STR("DELETE")) && call->route.name.n)
        revoke(call);
    else
        dv_kube_reply_status(call, dv_status_method_not_allowed(call->arena));
}
