/* kube_bound.c - tokens of service accounts are valid as long as the account and the pod exist that
 * they were made for. Such a user has the account's name and UID and, bound to a pod, the pod's
 * (kube_token_request.c). The UIDs are compared, because an account or a pod of the same name that
 * was made later is another one. */
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/kube/kube_call.h"
#include "serve/tokens.h"

#define PREFIX "system:serviceaccount:"

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

    return object && (!uid.n || dv_str_eq(object->meta->uid, uid));
}

bool dv_kube_is_bound_there(const struct dv_kube *kube, const struct dv_api_user_info *user)
{
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

static bool is_bound_there(const void *ctx, const struct dv_api_user_info *user)
{
    return dv_kube_is_bound_there(ctx, user);
}

void dv_kube_make_token(struct dv_kube *kube, struct dv_arena *arena, struct dv_token_op *op)
{
    op->arena = arena;
    op->is_bound_there = is_bound_there;
    op->ctx = kube;
    dv_tokens_create(kube->options.tokens, op);
}
