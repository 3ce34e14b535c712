/* volume_tokens.c - which tokens of its service account a pod's volumes want, and for how long. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "workload/volume.h"

/* The API's default; what it has admitted always says its own. */
#define LIFETIME_DEFAULT_S 3600
/* The reference's: a token is got anew in the last fifth of its life, and every day. */
#define LIFE_PER_CENT 80
#define AGE_MAX_S (INT64_C(24) * 3600)

typedef DV_VEC(struct dv_volume_token) token_list;

static void add(token_list *tokens, const struct dv_api_service_account_token_projection *wanted,
                struct dv_arena *arena)
{
    int64_t lifetime_s =
        wanted->expiration_seconds ? *wanted->expiration_seconds : LIFETIME_DEFAULT_S;

    for (size_t i = 0; i < tokens->n; i++)
        if (dv_str_eq(tokens->v[i].audience, wanted->audience) &&
            tokens->v[i].lifetime_s == lifetime_s)
            return;
    *dv_vec_add_in(tokens, arena) =
        (struct dv_volume_token){.audience = wanted->audience, .lifetime_s = lifetime_s};
}

struct dv_volume_token *dv_volume_tokens(const struct dv_api_pod *pod, struct dv_arena *arena,
                                         size_t *n_tokens)
{
    token_list tokens = {0};

    for (size_t i = 0; i < pod->spec.n_volumes; i++) {
        const struct dv_api_projected_volume_source *projected =
            pod->spec.volumes[i].volume_source.projected;

        for (size_t k = 0; projected && k < projected->n_sources; k++)
            if (projected->sources[k].service_account_token)
                add(&tokens, projected->sources[k].service_account_token, arena);
    }
    *n_tokens = tokens.n;
    return tokens.v;
}

int64_t dv_volume_token_due_s(int64_t issued_s, int64_t expires_s)
{
    int64_t life_s = expires_s > issued_s ? expires_s - issued_s : 0;
    int64_t due_s = life_s / 100 * LIFE_PER_CENT + life_s % 100 * LIFE_PER_CENT / 100;

    return issued_s + (due_s < AGE_MAX_S ? due_s : AGE_MAX_S);
}
