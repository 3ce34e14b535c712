/* kube_token_request.c - tokens for service accounts: POST .../serviceaccounts/NAME/token.
 *
 * They are signed and stored nowhere: a dry run gives one like any other request. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "serve/auth.h"
#include "serve/auth/jwt.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"
#include "serve/wire/kube_body.h"

#define AUTHN "authentication.k8s.io"
/* The limits of a token's audiences, and of their bytes together: they are sent with each
 * request. */
#define AUDIENCES_MAX 32u
#define AUDIENCES_BYTES_MAX 4096u
/* The reference's default and limits. */
#define TOKEN_S_DEFAULT 3600
#define TOKEN_S_MIN 600
#define TOKEN_S_MAX (INT64_C(1) << 32)
/* A pod's token for the API that is asked for with this lifetime, which is that of volumes which
 * were not asked for, lives a year, so that clients which never read the file again go on. */
#define EXTENDED_FROM_S 3607
#define EXTENDED_S (INT64_C(365) * 24 * 3600)

/* A token that is being made, for a client or for this process. */
struct making {
    struct dv_kube *kube;
    dv_str namespace; /* and name: the account's */
    dv_str name;
    struct dv_api_token_request *request;
    struct dv_arena *arena;
    struct dv_jwt_claims claims;
    int64_t lifetime_s;
};

static const struct dv_body_kind token_kind = {DV_STR_INIT("TokenRequest"), DV_STR_INIT(AUTHN),
                                               DV_STR_INIT("v1"), &dv_message_token_request};

/* ---- checks: each returns why the token is refused, or NULL ---- */

static const struct dv_api_status *invalid(const struct making *making, dv_str name, dv_str field,
                                           dv_str detail)
{
    struct dv_problems problems = {.arena = making->arena};

    *dv_vec_add_in(&problems, making->arena) =
        (struct dv_problem){DV_PROBLEM_INVALID, field, detail};
    return dv_status_invalid(
        &(struct dv_status_about){.what = token_kind.kind, .group = token_kind.group, .name = name},
        &problems, making->arena);
}

static const struct dv_api_status *check_place(const struct making *making, dv_str in_body,
                                               dv_str in_path, const char *what)
{
    if (!in_body.n || dv_str_eq(in_body, in_path))
        return NULL;
    return invalid(making, making->name, dv_str_printf(making->arena, "metadata.%s", what),
                   dv_str_printf(making->arena,
                                 "Invalid value: \"%.*s\": must match the service account %s if "
                                 "specified",
                                 DV_FMT(in_body), what));
}

static const struct dv_api_status *check_audiences(const struct making *making)
{
    const struct dv_api_token_request_spec *spec = &making->request->spec;
    size_t n_bytes = 0;

    for (size_t i = 0; i < spec->n_audiences; i++)
        n_bytes += spec->audiences[i].n;
    if (spec->n_audiences <= AUDIENCES_MAX && n_bytes <= AUDIENCES_BYTES_MAX)
        return NULL;
    return invalid(making, DV_STR_NONE, DV_STR("spec.audiences"),
                   dv_str_printf(making->arena,
                                 "Too many: %zu of %zu bytes: a token has up to %u of %u bytes",
                                 spec->n_audiences, n_bytes, AUDIENCES_MAX, AUDIENCES_BYTES_MAX));
}

static const struct dv_api_status *check_lifetime(const struct making *making)
{
    if (making->lifetime_s >= TOKEN_S_MIN && making->lifetime_s <= TOKEN_S_MAX)
        return NULL;
    return invalid(making, DV_STR_NONE, DV_STR("spec.expirationSeconds"),
                   dv_str_printf(making->arena,
                                 "Invalid value: %lld: may not specify a duration %s",
                                 (long long)making->lifetime_s,
                                 making->lifetime_s < TOKEN_S_MIN ? "less than 10 minutes"
                                                                  : "larger than 2^32 seconds"));
}

/* Checks what is asked for, and fills in what is not. */
static const struct dv_api_status *check_request(struct making *making)
{
    struct dv_api_token_request *request = making->request;
    struct dv_strs audiences = dv_kube_audiences(making->kube);
    const struct dv_api_status *failure;

    making->lifetime_s =
        request->spec.expiration_seconds ? *request->spec.expiration_seconds : TOKEN_S_DEFAULT;
    failure = check_lifetime(making);
    if (!failure)
        failure = check_audiences(making);
    if (failure)
        return failure;
    if (request->spec.n_audiences == 0) {
        request->spec.audiences = audiences.v;
        request->spec.n_audiences = audiences.n;
    }
    request->spec.expiration_seconds = &making->lifetime_s;
    return NULL;
}

static const struct dv_api_status *find_account(struct making *making)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_SERVICE_ACCOUNT);
    struct dv_status_about about = {.kind = kind, .name = making->name};
    struct dv_api_object_meta *meta = &making->request->metadata;
    const struct dv_object *account;
    const struct dv_api_status *failure = check_place(making, meta->name, making->name, "name");

    if (!failure)
        failure = check_place(making, meta->namespace, making->namespace, "namespace");
    if (failure)
        return failure;
    account =
        dv_embedded_get(making->kube->options.embedded, kind, making->namespace, making->name);
    if (!account)
        return dv_status_not_found(&about, making->arena);
    if (meta->uid.n && !dv_str_eq(meta->uid, account->meta->uid))
        return dv_status_conflict(&about, making->arena,
                                  "the UID in the token request (%.*s) does not match the UID of "
                                  "the service account (%.*s)",
                                  DV_FMT(meta->uid), DV_FMT(account->meta->uid));
    meta->name = making->name;
    meta->namespace = making->namespace;
    meta->uid = account->meta->uid;
    meta->creation_timestamp = dv_kube_now(making->kube);
    making->claims.account = (struct dv_jwt_object){making->name, account->meta->uid};
    return NULL;
}

/* ---- what the token is bound to ---- */

/* Parts an API version: "v1" has no group. */
static void split_version(dv_str api_version, dv_str *group, dv_str *version)
{
    size_t slash = dv_str_find_char(api_version, '/');

    *group = slash < api_version.n ? dv_str_slice(api_version, 0, slash) : DV_STR_NONE;
    *version =
        slash < api_version.n ? dv_str_slice(api_version, slash + 1, api_version.n) : api_version;
}

static const struct dv_object *find_object(const struct making *making, enum dv_kind_id kind,
                                           dv_str name)
{
    return dv_embedded_get(making->kube->options.embedded, dv_kind(kind),
                           kind == DV_KIND_NODE ? DV_STR_NONE : making->namespace, name);
}

/* The pod that the token is to be bound to; NULL: to none, or there is no such pod. */
static const struct dv_object *find_pod(const struct making *making)
{
    const struct dv_api_bound_object_reference *bound = making->request->spec.bound_object_ref;

    if (!bound || !dv_str_eq(bound->kind, DV_STR("Pod")))
        return NULL;
    return find_object(making, DV_KIND_POD, bound->name);
}

/* Binds to a pod, and to the node that it is on; that may be missing. */
static const struct dv_api_status *bind_pod(struct making *making, const struct dv_object *object)
{
    const struct dv_api_pod *pod = object->value;
    const struct dv_object *node;

    if (!dv_str_eq(pod->spec.service_account_name, making->name))
        return dv_status_bad_request(making->arena,
                                     "cannot bind token for serviceaccount \"%.*s\" to pod running "
                                     "with different serviceaccount name.",
                                     DV_FMT(making->name));
    making->claims.pod = (struct dv_jwt_object){object->meta->name, object->meta->uid};
    if (!pod->spec.node_name.n)
        return NULL;
    node = find_object(making, DV_KIND_NODE, pod->spec.node_name);
    making->claims.node =
        (struct dv_jwt_object){pod->spec.node_name, node ? node->meta->uid : DV_STR_NONE};
    return NULL;
}

static const struct dv_api_status *bind_to(struct making *making, enum dv_kind_id kind,
                                           const struct dv_api_bound_object_reference *bound)
{
    struct dv_status_about about = {.kind = dv_kind(kind), .name = bound->name};
    const struct dv_object *object = find_object(making, kind, bound->name);
    const struct dv_api_status *failure = NULL;

    if (!bound->name.n)
        return dv_status_bad_request(making->arena, "Name parameter required.");
    if (!object)
        return dv_status_not_found(&about, making->arena);
    if (kind == DV_KIND_POD)
        failure = bind_pod(making, object);
    else if (kind == DV_KIND_SECRET)
        making->claims.secret = (struct dv_jwt_object){object->meta->name, object->meta->uid};
    else
        making->claims.node = (struct dv_jwt_object){object->meta->name, object->meta->uid};
    about.what = bound->kind;
    if (!failure && bound->uid.n && !dv_str_eq(bound->uid, object->meta->uid))
        failure = dv_status_conflict(&about, making->arena,
                                     "the UID in the bound object reference (%.*s) does not match "
                                     "the UID in record. The object might have been deleted and "
                                     "then recreated",
                                     DV_FMT(bound->uid));
    return failure;
}

static const struct dv_api_status *bind(struct making *making)
{
    static const struct {
        dv_str name;
        enum dv_kind_id kind;
    } kinds[] = {
        {DV_STR_INIT("Pod"),    DV_KIND_POD   },
        {DV_STR_INIT("Secret"), DV_KIND_SECRET},
        {DV_STR_INIT("Node"),   DV_KIND_NODE  },
    };
    const struct dv_api_bound_object_reference *bound = making->request->spec.bound_object_ref;
    dv_str group, version;

    if (!bound)
        return NULL;
    split_version(bound->api_version, &group, &version);
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (!group.n && dv_str_eq(bound->kind, kinds[i].name))
            return bind_to(making, kinds[i].kind, bound);
    return dv_status_bad_request(making->arena,
                                 "cannot bind token to object of type %.*s/%.*s, Kind=%.*s",
                                 DV_FMT(group), DV_FMT(version), DV_FMT(bound->kind));
}

/* ---- making it ---- */

static bool is_for_api_alone(const struct making *making)
{
    const struct dv_api_token_request_spec *spec = &making->request->spec;
    struct dv_strs own = dv_kube_audiences(making->kube);

    for (size_t i = 0; i < spec->n_audiences; i++)
        if (!dv_kube_is_among(&own, spec->audiences[i]))
            return false;
    return true;
}

static const struct dv_api_status *sign(struct making *making)
{
    struct dv_api_token_request *request = making->request;
    struct dv_jwt_claims *claims = &making->claims;
    char *id = dv_arena_alloc_raw(making->arena, DV_UUID_BYTES, 1);
    int64_t now_s = dv_kube_now(making->kube).seconds;
    bool is_extended =
        claims->pod.name.n && making->lifetime_s == EXTENDED_FROM_S && is_for_api_alone(making);
    struct dv_err err;

    claims->issuer = DV_STR(DV_TOKEN_ISSUER);
    claims->subject = dv_str_printf(making->arena, DV_USER_ACCOUNT_PREFIX "%.*s:%.*s",
                                    DV_FMT(making->namespace), DV_FMT(making->name));
    claims->namespace = making->namespace;
    claims->audiences = (struct dv_strs){request->spec.audiences, request->spec.n_audiences};
    claims->issued_s = claims->not_before_s = now_s;
    claims->expires_s = now_s + (is_extended ? EXTENDED_S : making->lifetime_s);
    claims->warn_after_s = is_extended ? now_s + making->lifetime_s : 0;
    claims->id = dv_random_uuid(id);
    request->status = (struct dv_api_token_request_status){0};
    if (!dv_tokens_sign(making->kube->options.tokens, claims, making->arena, &request->status.token,
                        &err))
        return dv_status_from_err(&err, making->arena);
    request->status.expiration_timestamp =
        (struct dv_time){.seconds = now_s + making->lifetime_s, .is_set = true};
    return NULL;
}

/* ---- for a client ---- */

void dv_kube_request_token(struct dv_kube_call *call)
{
    struct making making = {.kube = call->kube,
                            .namespace = call->route.namespace,
                            .name = call->route.name,
                            .arena = call->arena};
    const struct dv_api_status *failure;
    void *value;

    if (!dv_kube_read_review(call, &token_kind, &value))
        return;
    making.request = value;
    failure = find_account(&making);
    if (!failure && !dv_auth_check_token(&call->user, &making.request->spec, find_pod(&making),
                                         call->arena, &call->denial)) {
        dv_kube_reply_denial(call);
        return;
    }
    if (!failure)
        failure = check_request(&making);
    if (!failure)
        failure = bind(&making);
    if (!failure)
        failure = sign(&making);
    if (failure)
        dv_kube_reply_status(call, failure);
    else
        dv_kube_reply_review(call, &token_kind, making.request);
}

/* ---- for this process: the node's own pods ---- */

void dv_kube_make_own_token(void *ctx, struct dv_embedded_token *token)
{
    struct making *making = DV_NEW(token->arena, struct making);
    const struct dv_api_status *failure;

    *making = (struct making){.kube = ctx,
                              .namespace = token->namespace,
                              .name = token->name,
                              .request = token->request,
                              .arena = token->arena};
    failure = find_account(making);
    if (!failure)
        failure = check_request(making);
    if (!failure)
        failure = bind(making);
    if (!failure)
        failure = sign(making);
    dv_embedded_token_made(token, failure);
}
