/* kube_auth.c - finds out who makes a request, and whether that user may. */
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "cluster/embedded.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "rest/rest.h"
#include "serve/auth/credentials.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"

/* ---- authentication ---- */

static bool is_by_certificate(struct dv_kube_call *call, bool *is_bad)
{
    struct dv_err err;

    if (dv_credentials_certificate(call->rest, &call->user, &err))
        return true;
    *is_bad = err.code == DV_UNAUTHENTICATED;
    return false;
}

static bool is_anonymous_fine(const struct dv_kube_call *call)
{
    switch (call->kube->options.anonymous) {
    case DV_ANONYMOUS_ON:
        return true;
    case DV_ANONYMOUS_OFF:
        return false;
    case DV_ANONYMOUS_HEALTH:
        return call->route.what == DV_ROUTE_VERSION_INFO || call->route.what == DV_ROUTE_HEALTH;
    }
    return false;
}

static bool unauthorized(struct dv_kube_call *call)
{
    dv_rest_call_disown(call->rest);
    dv_kube_reply_status(call, dv_status_unauthorized(call->arena));
    return false;
}

static bool vouch(const struct dv_kube_call *call, struct dv_err *err)
{
    dv_str node, driver;
    bool is_admin = dv_auth_scope(&call->user, &node, &driver) == DV_SCOPE_ADMIN;

    return dv_rest_call_vouch(call->rest, call->user.username, is_admin, err);
}

/* The connection belongs to the user from now on, and takes one of its places. */
static bool take_place(struct dv_kube_call *call)
{
    struct dv_err err;

    if (vouch(call, &err))
        return true;
    dv_rest_call_add_field(call->rest, DV_STR("Connection"), DV_STR("close"));
    dv_kube_reply_status(call, dv_status_too_many_requests(1, call->arena, "%s", err.msg));
    return false;
}

static bool is_authentic(const struct dv_kube_call *call)
{
    return !call->token_hash.n || dv_tokens_is_valid(call->kube->options.tokens, call->token_hash);
}

bool dv_kube_is_request_authentic(struct dv_request *request)
{
    return is_authentic(request->ctx);
}

/* The token of that secret if it is for this API and what it is bound to exists; NULL otherwise. */
static const struct dv_token *find_good_token(const struct dv_kube *kube, dv_str secret,
                                              struct dv_arena *arena)
{
    const struct dv_token *token = dv_tokens_find(kube->options.tokens, secret);

    return token && dv_kube_shared_audiences(kube, token, (struct dv_strs){0}, arena).n > 0 &&
                   dv_kube_is_token_bound_there(kube, token)
               ? token
               : NULL;
}

/* A bearer token counts before a certificate, and one that is not valid is refused even when there
 * is a good certificate. */
bool dv_kube_authenticate(struct dv_kube_call *call)
{
    const struct dv_token *token;
    dv_str secret;
    bool is_bad = false;

    if (dv_credentials_bearer(call->request, &secret)) {
        token = find_good_token(call->kube, secret, call->arena);
        if (!token)
            return unauthorized(call);
        dv_message_copy(&dv_message_user_info, &token->user, call->arena, &call->user);
        call->token_hash = dv_str_copy(token->hash, call->arena);
        return take_place(call) && dv_kube_impersonate(call);
    }
    if (is_by_certificate(call, &is_bad))
        return take_place(call) && dv_kube_impersonate(call);
    if (is_bad || !is_anonymous_fine(call))
        return unauthorized(call);
    call->user = dv_auth_anonymous(call->arena);
    return dv_kube_impersonate(call);
}

/* Finds out whose the connection is when the header has come. What is wrong is answered when the
 * request is complete. */
void dv_kube_greet(struct dv_kube *kube, struct dv_rest_call *rest,
                   const struct dv_rest_request *request)
{
    struct dv_kube_call call = {
        .kube = kube, .rest = rest, .request = request, .arena = dv_rest_call_arena(rest)};
    const struct dv_token *token = NULL;
    struct dv_err err;
    dv_str secret;
    bool is_bad;

    if (dv_credentials_bearer(request, &secret))
        token = find_good_token(kube, secret, call.arena);
    if (token)
        call.user = token->user;
    if ((!token && !is_by_certificate(&call, &is_bad)) || !vouch(&call, &err))
        dv_rest_call_disown(rest);
}

/* ---- authorization ---- */

struct dv_api_status *dv_kube_forbidden(const struct dv_kube_call *call,
                                        const struct dv_auth_request *asked, dv_str reason)
{
    dv_str text = dv_auth_refusal(&call->user, asked, reason, call->arena);
    struct dv_api_status *status;
    struct dv_api_status_details *details = DV_NEW(call->arena, struct dv_api_status_details);

    if (asked->path.n) {
        status =
            dv_status_new(403, DV_STR("Forbidden"), call->arena, "forbidden: %.*s", DV_FMT(text));
    } else {
        dv_str what = asked->group.n ? dv_str_printf(call->arena, "%.*s.%.*s",
                                                     DV_FMT(asked->resource), DV_FMT(asked->group))
                                     : asked->resource;

        details->name = asked->name;
        details->group = asked->group;
        details->kind = asked->resource;
        if (asked->name.n)
            what = dv_str_printf(call->arena, "%.*s \"%.*s\"", DV_FMT(what), DV_FMT(asked->name));
        status = dv_status_new(403, DV_STR("Forbidden"), call->arena, "%.*s is forbidden: %.*s",
                               DV_FMT(what), DV_FMT(text));
    }
    status->details = details;
    return status;
}

bool dv_kube_authorize(struct dv_kube_call *call)
{
    struct dv_auth_relations relations = dv_kube_relations(call->kube);
    dv_str reason;

    if (dv_auth_decide(&call->user, &call->auth, &relations, call->arena, &reason))
        return true;
    dv_kube_reply_status(call, dv_kube_forbidden(call, &call->auth, reason));
    return false;
}

/* Looks up what the engine knows of the pool of a slice that is written; the node's own pool is not
 * shared. */
static void look_at_pool(const struct dv_kube_call *call, dv_str node,
                         struct dv_auth_change *change)
{
    const struct dv_api_resource_slice *slice = change->value;
    dv_str pool_owner;

    if (!slice || !dv_str_eq(call->auth.resource, DV_STR("resourceslices")))
        return;
    pool_owner = dv_auth_pool_owner(slice->spec.pool.name);
    if (node.n && dv_str_eq(pool_owner, node))
        return;
    dv_kube_look_at_pool(call->kube, node, slice, change);
    change->is_pool_of_node = dv_embedded_get(call->kube->options.embedded, dv_kind(DV_KIND_NODE),
                                              DV_STR_NONE, pool_owner) != NULL;
}

static bool may(void *ctx, const struct dv_auth_request *request, dv_str *reason)
{
    const struct dv_kube_call *call = ctx;
    struct dv_auth_relations relations = dv_kube_relations(call->kube);

    return dv_auth_decide(&call->user, request, &relations, call->arena, reason);
}

/* Whether this user may make this change: API admission, which has nothing to do with the admission
 * of a pod on the node. A refusal is told to the engine as a problem, so that nothing is written;
 * the client gets the answer that is kept in the call. */
void dv_kube_admit(struct dv_request *request, const struct dv_object *old, const void *value,
                   struct dv_problems *problems)
{
    struct dv_kube_call *call = request->ctx;
    struct dv_auth_change change = {.old = old, .value = value};
    dv_str node, driver;
    enum dv_auth_scope scope = dv_auth_scope(&call->user, &node, &driver);

    if (!is_authentic(call)) {
        call->is_revoked = true;
        *dv_vec_add_in(problems, problems->arena) = (struct dv_problem){
            DV_PROBLEM_FORBIDDEN, DV_STR_NONE, DV_STR("the token was revoked meanwhile")};
        return;
    }
    if (scope == DV_SCOPE_NONE && !dv_kube_admit_by_roles(call, old, value))
        *dv_vec_add_in(problems, problems->arena) =
            (struct dv_problem){DV_PROBLEM_FORBIDDEN, DV_STR_NONE, call->denial.reason};
    if (scope == DV_SCOPE_NONE)
        dv_auth_check_claim(&call->user, &call->auth, &change, &(struct dv_auth_rights){may, call},
                            problems);
    if (scope != DV_SCOPE_NODE && scope != DV_SCOPE_DRIVER)
        return;
    if (node.n)
        change.node =
            dv_embedded_get(call->kube->options.embedded, dv_kind(DV_KIND_NODE), DV_STR_NONE, node);
    look_at_pool(call, node, &change);
    if (dv_auth_check_write(&call->user, &call->auth, &change, call->arena, &call->denial) &&
        dv_kube_admit_quota(call, old, value, node, driver))
        return;
    *dv_vec_add_in(problems, problems->arena) =
        (struct dv_problem){DV_PROBLEM_FORBIDDEN, DV_STR_NONE,
                            call->over_quota.n ? call->over_quota : call->denial.reason};
}
