/* kube_token_request.c - tokens for service accounts: POST .../serviceaccounts/NAME/token. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"
#include "serve/wire/kube_body.h"

#define AUTHN "authentication.k8s.io"
/* The limits of a token's audiences, and of their bytes together: they are stored with it. */
#define AUDIENCES_MAX 32u
#define AUDIENCES_BYTES_MAX 4096u
/* The reference's default and limits. */
#define TOKEN_S_DEFAULT 3600
#define TOKEN_S_MIN 600
#define TOKEN_S_MAX (INT64_C(1) << 32)

/* A token that is being made, for a client or for this process. */
struct making {
    struct dv_kube *kube;
    dv_str namespace; /* and name: the account's */
    dv_str name;
    struct dv_api_token_request *request;
    struct dv_arena *arena;
    int64_t lifetime_s;
    struct dv_token_op op;
};

static const struct dv_body_kind token_kind = {DV_STR_INIT("TokenRequest"), DV_STR_INIT(AUTHN),
                                               DV_STR_INIT("v1"), &dv_message_token_request};

static void add_extra(struct dv_api_user_info *user, const char *key, dv_str value,
                      struct dv_arena *arena)
{
    dv_str *values = DV_NEW(arena, dv_str);

    *values = value;
    user->extra[user->n_extra++] = (struct dv_strs_entry){
        dv_str_from_c(key), {values, 1}
    };
}

/* ---- checks: each returns why the token is refused, or NULL ---- */

static const struct dv_api_status *check_bound(const struct making *making,
                                               const struct dv_api_bound_object_reference *bound,
                                               const struct dv_object *object)
{
    struct dv_status_about about = {.kind = dv_kind(DV_KIND_POD), .name = bound->name};
    const struct dv_api_pod *pod;

    if (!object)
        return dv_status_not_found(&about, making->arena);
    about.what = DV_STR("Pod");
    if (bound->uid.n && !dv_str_eq(bound->uid, object->meta->uid))
        return dv_status_conflict(&about, making->arena,
                                  "the UID in the bound object reference (%.*s) does not match the "
                                  "UID in record. The object might have been deleted and then "
                                  "recreated",
                                  DV_FMT(bound->uid));
    pod = object->value;
    if (!dv_str_eq(pod->spec.service_account_name, making->name))
        return dv_status_bad_request(making->arena,
                                     "cannot bind token for serviceaccount \"%.*s\" to pod running "
                                     "with different serviceaccount name.",
                                     DV_FMT(making->name));
    return NULL;
}

static const struct dv_api_status *check_audiences(const struct making *making)
{
    const struct dv_api_token_request_spec *spec = &making->request->spec;
    size_t n_bytes = 0;

    for (size_t i = 0; i < spec->n_audiences; i++)
        n_bytes += spec->audiences[i].n;
    if (spec->n_audiences <= AUDIENCES_MAX && n_bytes <= AUDIENCES_BYTES_MAX)
        return NULL;
    return dv_status_new(422, DV_STR("Invalid"), making->arena,
                         "TokenRequest." AUTHN " \"\" is invalid: spec.audiences: Too many: %zu of "
                         "%zu bytes: up to %u of %u bytes are kept",
                         spec->n_audiences, n_bytes, AUDIENCES_MAX, AUDIENCES_BYTES_MAX);
}

static const struct dv_api_status *check_lifetime(const struct making *making)
{
    if (making->lifetime_s >= TOKEN_S_MIN && making->lifetime_s <= TOKEN_S_MAX)
        return NULL;
    return dv_status_new(422, DV_STR("Invalid"), making->arena,
                         "TokenRequest." AUTHN " \"\" is invalid: spec.expirationSeconds: Invalid "
                         "value: %lld: may not specify a duration %s",
                         (long long)making->lifetime_s,
                         making->lifetime_s < TOKEN_S_MIN ? "less than 10 minutes"
                                                          : "larger than 2^32 seconds");
}

/* The account, and what is asked for. */
static const struct dv_api_status *prepare(struct making *making)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SERVICE_ACCOUNT);
    struct dv_status_about about = {.kind = kind, .name = making->name};
    struct dv_api_token_request *request = making->request;
    const struct dv_object *account =
        dv_embedded_get(making->kube->options.embedded, kind, making->namespace, making->name);
    const struct dv_api_status *failure;

    if (!account)
        return dv_status_not_found(&about, making->arena);
    making->lifetime_s =
        request->spec.expiration_seconds ? *request->spec.expiration_seconds : TOKEN_S_DEFAULT;
    failure = check_lifetime(making);
    if (!failure)
        failure = check_audiences(making);
    if (failure)
        return failure;
    making->op.audiences = (struct dv_strs){request->spec.audiences, request->spec.n_audiences};
    making->op.lifetime_s = making->lifetime_s;
    making->op.user.uid = account->meta->uid;
    request->metadata.name = making->name;
    request->metadata.namespace = making->namespace;
    request->metadata.uid = account->meta->uid;
    request->metadata.creation_timestamp = dv_kube_now(making->kube);
    request->spec.expiration_seconds = &making->lifetime_s;
    return NULL;
}

/* The pod that the token is to be bound to; NULL: to none, or there is no such pod. */
static const struct dv_object *find_pod(const struct making *making)
{
    const struct dv_api_bound_object_reference *bound = making->request->spec.bound_object_ref;

    if (!bound || !dv_str_eq(bound->kind, DV_STR("Pod")))
        return NULL;
    return dv_embedded_get(making->kube->options.embedded, dv_kind(DV_KIND_POD), making->namespace,
                           bound->name);
}

/* Makes the token's user; a token for a pod also names the pod and its node. */
static const struct dv_api_status *make_user(struct making *making)
{
    const struct dv_api_bound_object_reference *bound = making->request->spec.bound_object_ref;
    struct dv_api_user_info *user = &making->op.user;
    const struct dv_api_status *failure;
    const struct dv_object *object;
    const struct dv_api_pod *pod;

    user->username = dv_str_printf(making->arena, "system:serviceaccount:%.*s:%.*s",
                                   DV_FMT(making->namespace), DV_FMT(making->name));
    user->n_groups = 3;
    user->groups = DV_NEW_ARRAY(making->arena, dv_str, user->n_groups);
    user->groups[0] = DV_STR("system:serviceaccounts");
    user->groups[1] =
        dv_str_printf(making->arena, "system:serviceaccounts:%.*s", DV_FMT(making->namespace));
    user->groups[2] = DV_STR(DV_GROUP_AUTHENTICATED);
    if (!bound)
        return NULL;
    if (!dv_str_eq(bound->kind, DV_STR("Pod"))) /* of others it would not be seen when they end */
        return dv_status_bad_request(making->arena,
                                     "cannot bind token to object of type /%.*s, Kind=%.*s",
                                     DV_FMT(bound->api_version), DV_FMT(bound->kind));
    object = find_pod(making);
    failure = check_bound(making, bound, object);
    if (failure)
        return failure;
    pod = object->value;
    user->extra = DV_NEW_ARRAY(making->arena, struct dv_strs_entry, 3);
    if (pod->spec.node_name.n)
        add_extra(user, DV_EXTRA_NODE, pod->spec.node_name, making->arena);
    add_extra(user, DV_EXTRA_POD_NAME, object->meta->name, making->arena);
    add_extra(user, DV_EXTRA_POD_UID, object->meta->uid, making->arena);
    return NULL;
}

static void set_status(struct making *making)
{
    making->request->status.token = making->op.secret;
    making->request->status.expiration_timestamp =
        (struct dv_time){.seconds = making->op.token->expires_s, .is_set = true};
}

/* ---- for a client ---- */

struct client_making {
    struct making making;
    struct dv_kube_call *call;
};

static void on_client_token(struct dv_token_op *op, const struct dv_err *err)
{
    struct client_making *client = DV_CONTAINER(op, struct client_making, making.op);

    if (err) {
        dv_kube_reply_token_error(client->call, op, err);
        return;
    }
    set_status(&client->making);
    dv_kube_reply_review(client->call, &token_kind, client->making.request);
}

void dv_kube_request_token(struct dv_kube_call *call)
{
    struct client_making *client = DV_NEW(call->arena, struct client_making);
    struct making *making = &client->making;
    const struct dv_api_status *failure;
    dv_str node, driver;
    void *value;

    if (!dv_kube_read_review(call, &token_kind, &value))
        return;
    client->call = call;
    *making = (struct making){.kube = call->kube,
                              .namespace = call->route.namespace,
                              .name = call->route.name,
                              .request = value,
                              .arena = call->arena};
    failure = prepare(making);
    if (!failure && !dv_auth_check_token(&call->user, &making->request->spec, find_pod(making),
                                         call->arena, &call->denial)) {
        dv_kube_reply_denial(call);
        return;
    }
    if (!failure)
        failure = make_user(making);
    if (failure) {
        dv_kube_reply_status(call, failure);
        return;
    }
    making->op.done = on_client_token;
    making->op.is_by_node = dv_auth_scope(&call->user, &node, &driver) == DV_SCOPE_NODE;
    dv_kube_make_token(call->kube, call->arena, &making->op);
}

/* ---- for this process: the node's own pods ---- */

struct own_making {
    struct making making;
    struct dv_embedded_token *token;
};

static void on_own_token(struct dv_token_op *op, const struct dv_err *err)
{
    struct own_making *own = DV_CONTAINER(op, struct own_making, making.op);
    struct dv_kube *kube = own->making.kube;

    if (!err)
        set_status(&own->making);
    dv_embedded_token_made(own->token, err ? dv_status_from_err(err, own->token->arena) : NULL);
    dv_kube_release(kube);
}

void dv_kube_make_own_token(void *ctx, struct dv_embedded_token *token)
{
    struct own_making *own = DV_NEW(token->arena, struct own_making);
    const struct dv_api_status *failure;

    own->token = token;
    own->making = (struct making){.kube = ctx,
                                  .namespace = token->namespace,
                                  .name = token->name,
                                  .request = token->request,
                                  .arena = token->arena};
    failure = prepare(&own->making);
    if (!failure)
        failure = make_user(&own->making);
    if (failure) {
        dv_embedded_token_made(token, failure);
        return;
    }
    own->making.kube->n_calls++; /* it is open until the token is made */
    own->making.op.done = on_own_token;
    own->making.op.is_by_node = true;
    dv_kube_make_token(own->making.kube, token->arena, &own->making.op);
}
