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

struct token_call {
    struct dv_kube_call *call;
    struct dv_api_token_request *request;
    int64_t lifetime_s;
    struct dv_token_op op;
};

static const struct dv_body_kind token_kind = {DV_STR_INIT("TokenRequest"), DV_STR_INIT(AUTHN),
                                               DV_STR_INIT("v1"), &dv_message_token_request};

static void on_token(struct dv_token_op *op, const struct dv_err *err)
{
    struct token_call *token = DV_CONTAINER(op, struct token_call, op);
    struct dv_kube_call *call = token->call;

    if (err) {
        dv_kube_reply_token_error(call, op, err);
        return;
    }
    token->request->status.token = op->secret;
    token->request->status.expiration_timestamp =
        (struct dv_time){.seconds = op->token->expires_s, .is_set = true};
    dv_kube_reply_review(call, &token_kind, token->request);
}

static void add_extra(struct dv_api_user_info *user, const char *key, dv_str value,
                      struct dv_arena *arena)
{
    dv_str *values = DV_NEW(arena, dv_str);

    *values = value;
    user->extra[user->n_extra++] = (struct dv_strs_entry){
        dv_str_from_c(key), {values, 1}
    };
}

static bool fail(struct dv_kube_call *call, const struct dv_api_status *status)
{
    dv_kube_reply_status(call, status);
    return false;
}

static bool is_bound_right(struct dv_kube_call *call,
                           const struct dv_api_bound_object_reference *bound,
                           const struct dv_object *object)
{
    struct dv_status_about about = {.kind = dv_kind(DV_KIND_POD), .name = bound->name};
    const struct dv_api_pod *pod;

    if (!object)
        return fail(call, dv_status_not_found(&about, call->arena));
    about.what = DV_STR("Pod");
    if (bound->uid.n && !dv_str_eq(bound->uid, object->meta->uid))
        return fail(call, dv_status_conflict(&about, call->arena,
                                             "the UID in the bound object reference (%.*s) does "
                                             "not match the UID in record. The object might have "
                                             "been deleted and then recreated",
                                             DV_FMT(bound->uid)));
    pod = object->value;
    if (!dv_str_eq(pod->spec.service_account_name, call->route.name))
        return fail(call, dv_status_bad_request(call->arena,
                                                "cannot bind token for serviceaccount \"%.*s\" to "
                                                "pod running with different serviceaccount name.",
                                                DV_FMT(call->route.name)));
    return true;
}

/* Makes the token's user; a token for a pod also names the pod and its node. */
static bool make_user(struct dv_kube_call *call, const struct dv_api_token_request *request,
                      struct dv_api_user_info *user)
{
    const struct dv_route *route = &call->route;
    const struct dv_api_bound_object_reference *bound = request->spec.bound_object_ref;
    bool is_for_pod = bound && dv_str_eq(bound->kind, DV_STR("Pod"));
    const struct dv_object *object =
        is_for_pod ? dv_embedded_get(call->kube->options.embedded, dv_kind(DV_KIND_POD),
                                     route->namespace, bound->name)
                   : NULL;
    const struct dv_api_pod *pod;

    user->username = dv_str_printf(call->arena, "system:serviceaccount:%.*s:%.*s",
                                   DV_FMT(route->namespace), DV_FMT(route->name));
    user->n_groups = 3;
    user->groups = DV_NEW_ARRAY(call->arena, dv_str, user->n_groups);
    user->groups[0] = DV_STR("system:serviceaccounts");
    user->groups[1] =
        dv_str_printf(call->arena, "system:serviceaccounts:%.*s", DV_FMT(route->namespace));
    user->groups[2] = DV_STR(DV_GROUP_AUTHENTICATED);
    if (!dv_auth_check_token(&call->user, &request->spec, object, call->arena, &call->denial)) {
        dv_kube_reply_denial(call);
        return false;
    }
    if (!bound)
        return true;
    if (!is_for_pod) /* a binding to anything else would not be watched, and would end nothing */
        return fail(call, dv_status_bad_request(call->arena,
                                                "cannot bind token to object of type /%.*s, "
                                                "Kind=%.*s",
                                                DV_FMT(bound->api_version), DV_FMT(bound->kind)));
    if (!is_bound_right(call, bound, object))
        return false;
    pod = object->value;
    user->extra = DV_NEW_ARRAY(call->arena, struct dv_strs_entry, 3);
    if (pod->spec.node_name.n)
        add_extra(user, DV_EXTRA_NODE, pod->spec.node_name, call->arena);
    add_extra(user, DV_EXTRA_POD_NAME, object->meta->name, call->arena);
    add_extra(user, DV_EXTRA_POD_UID, object->meta->uid, call->arena);
    return true;
}

static bool check_audiences(struct dv_kube_call *call, const struct dv_api_token_request_spec *spec)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < spec->n_audiences; i++)
        n_bytes += spec->audiences[i].n;
    if (spec->n_audiences <= AUDIENCES_MAX && n_bytes <= AUDIENCES_BYTES_MAX)
        return true;
    return fail(call,
                dv_status_new(422, DV_STR("Invalid"), call->arena,
                              "TokenRequest." AUTHN " \"\" is invalid: spec.audiences: "
                              "Too many: %zu of %zu bytes: up to %u of %u bytes are kept",
                              spec->n_audiences, n_bytes, AUDIENCES_MAX, AUDIENCES_BYTES_MAX));
}

void dv_kube_request_token(struct dv_kube_call *call)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SERVICE_ACCOUNT);
    struct dv_status_about about = {.kind = kind, .name = call->route.name};
    struct token_call *token = DV_NEW(call->arena, struct token_call);
    void *value;
    int64_t lifetime_s = TOKEN_S_DEFAULT;
    const struct dv_object *account;
    dv_str node, driver;

    if (!dv_kube_read_review(call, &token_kind, &value))
        return;
    token->call = call;
    token->request = value;
    account =
        dv_embedded_get(call->kube->options.embedded, kind, call->route.namespace, about.name);
    if (!account) {
        dv_kube_reply_status(call, dv_status_not_found(&about, call->arena));
        return;
    }
    if (token->request->spec.expiration_seconds)
        lifetime_s = *token->request->spec.expiration_seconds;
    if (lifetime_s < TOKEN_S_MIN || lifetime_s > TOKEN_S_MAX) {
        dv_kube_reply_status(
            call, dv_status_new(422, DV_STR("Invalid"), call->arena,
                                "TokenRequest." AUTHN " \"\" is invalid: spec.expirationSeconds: "
                                "Invalid value: %lld: may not specify a duration %s",
                                (long long)lifetime_s,
                                lifetime_s < TOKEN_S_MIN ? "less than 10 minutes"
                                                         : "larger than 2^32 seconds"));
        return;
    }
    if (!check_audiences(call, &token->request->spec) ||
        !make_user(call, token->request, &token->op.user))
        return;
    token->op.audiences =
        (struct dv_strs){token->request->spec.audiences, token->request->spec.n_audiences};
    token->op.user.uid = account->meta->uid;
    token->lifetime_s = lifetime_s;
    token->request->metadata.uid = account->meta->uid;
    token->request->metadata.creation_timestamp = dv_kube_now(call->kube);
    token->request->spec.expiration_seconds = &token->lifetime_s;
    token->request->metadata.name = call->route.name;
    token->request->metadata.namespace = call->route.namespace;
    token->op.lifetime_s = lifetime_s;
    token->op.done = on_token;
    token->op.is_by_node = dv_auth_scope(&call->user, &node, &driver) == DV_SCOPE_NODE;
    dv_kube_make_token(call, &token->op);
}
