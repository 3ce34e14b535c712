/* kube_bound.c - tokens of service accounts are valid as long as the account exists that they were
 * made for, and what they are bound to. UIDs are compared, because an object of the same name that
 * was made later is another one. What is being deleted still counts for a while after its end is
 * due, as in the reference.
 *
 * A signed token says itself what it is bound to. Of a random one, which earlier versions made, the
 * user does: it has the account's name and UID and, bound to a pod, the pod's. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/jwt.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"

#define PREFIX DV_USER_ACCOUNT_PREFIX
/* How long an object whose deletion is due still counts. */
#define GRACE_S 60

static dv_str extra_of(const struct dv_api_user_info *user, dv_str key)
{
    for (size_t i = 0; i < user->n_extra; i++)
        if (dv_str_eq(user->extra[i].key, key) && user->extra[i].value.n > 0)
            return user->extra[i].value.v[0];
    return DV_STR_NONE;
}

static bool is_there(const struct dv_kube *kube, enum dv_kind_id kind, dv_str namespace,
                     dv_str name, dv_str uid)
{
    const struct dv_object *object =
        dv_embedded_get(kube->options.embedded, dv_kind(kind), namespace, name);

    if (!object || (uid.n && !dv_str_eq(object->meta->uid, uid)))
        return false;
    return !object->meta->deletion_timestamp.is_set ||
           object->meta->deletion_timestamp.seconds + GRACE_S >= dv_kube_now(kube).seconds;
}

/* Whether the service account and the pod that a random token was made for still exist; true for
 * all other users. `ctx` is the API. */
static bool is_bound_there(const void *ctx, const struct dv_api_user_info *user)
{
    const struct dv_kube *kube = ctx;
    dv_str name = user->username;
    dv_str pod = extra_of(user, DV_STR(DV_EXTRA_POD_NAME));
    dv_str namespace;

    if (!dv_str_starts_with(name, DV_STR(PREFIX)))
        return true;
    name = dv_str_slice(name, sizeof(PREFIX) - 1, name.n);
    if (!dv_str_split(&name, ':', &namespace) ||
        !is_there(kube, DV_KIND_SERVICE_ACCOUNT, namespace, name, user->uid))
        return false;
    return !pod.n ||
           is_there(kube, DV_KIND_POD, namespace, pod, extra_of(user, DV_STR(DV_EXTRA_POD_UID)));
}

bool dv_kube_is_token_bound_there(const struct dv_kube *kube, const struct dv_token *token)
{
    const struct dv_jwt_claims *claims = token->claims;
    dv_str namespace;

    if (!claims)
        return is_bound_there(kube, &token->user);
    namespace = claims->namespace;
    if (!is_there(kube, DV_KIND_SERVICE_ACCOUNT, namespace, claims->account.name,
                  claims->account.uid))
        return false;
    if (claims->secret.name.n)
        return is_there(kube, DV_KIND_SECRET, namespace, claims->secret.name, claims->secret.uid);
    if (claims->pod.name.n) /* the pod's node may be gone */
        return is_there(kube, DV_KIND_POD, namespace, claims->pod.name, claims->pod.uid);
    return !claims->node.name.n ||
           is_there(kube, DV_KIND_NODE, DV_STR_NONE, claims->node.name, claims->node.uid);
}

/* ---- audiences ---- */

struct dv_strs dv_kube_audiences(const struct dv_kube *kube)
{
    static dv_str issuer = DV_STR_INIT(DV_TOKEN_ISSUER);

    return kube->options.audiences.n > 0 ? kube->options.audiences : (struct dv_strs){&issuer, 1};
}

bool dv_kube_is_among(const struct dv_strs *texts, dv_str text)
{
    for (size_t i = 0; i < texts->n; i++)
        if (dv_str_eq(texts->v[i], text))
            return true;
    return false;
}

struct dv_strs dv_kube_shared_audiences(const struct dv_kube *kube, const struct dv_token *token,
                                        struct dv_strs asked, struct dv_arena *arena)
{
    struct dv_strs own = dv_kube_audiences(kube);
    struct dv_strs has = token->audiences.n > 0 ? token->audiences : own;
    struct dv_strs shared = {DV_NEW_ARRAY(arena, dv_str, asked.n > 0 ? asked.n : own.n), 0};

    if (asked.n == 0)
        asked = own;
    for (size_t i = 0; i < asked.n; i++)
        if (dv_kube_is_among(&has, asked.v[i]))
            shared.v[shared.n++] = asked.v[i];
    return shared;
}

/* ---- tokens that are stored ---- */

void dv_kube_make_token(struct dv_kube *kube, struct dv_arena *arena, struct dv_token_op *op)
{
    op->arena = arena;
    op->is_bound_there = is_bound_there;
    op->ctx = kube;
    dv_tokens_create(kube->options.tokens, op);
}
