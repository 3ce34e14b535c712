#include "serve/auth/credentials.h"

#include <string.h>

#include "base/arena.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/auth.h"

bool dv_credentials_bearer(const struct dv_rest_request *request, dv_str *token)
{
    dv_str field = dv_str_trim(dv_rest_request_field(request, DV_STR("Authorization")));
    size_t at = dv_str_find_char(field, ' ');

    if (!dv_str_eq_nocase(dv_str_slice(field, 0, at), DV_STR("bearer")))
        return false;
    *token = dv_str_trim(dv_str_slice(field, at, field.n));
    return token->n > 0;
}

bool dv_credentials_certificate(struct dv_rest_call *call, struct dv_api_user_info *user,
                                struct dv_err *err)
{
    struct dv_rest_identity identity = {0};

    if (!dv_rest_call_identity(call, &identity, err))
        return false;
    *user = (struct dv_api_user_info){
        .username = identity.name,
        .groups = DV_NEW_ARRAY(dv_rest_call_arena(call), dv_str, identity.n_groups + 1)};
    if (identity.n_groups > 0)
        memcpy(user->groups, identity.groups, identity.n_groups * sizeof(user->groups[0]));
    user->groups[identity.n_groups] = DV_STR(DV_GROUP_AUTHENTICATED);
    user->n_groups = identity.n_groups + 1;
    return true;
}
