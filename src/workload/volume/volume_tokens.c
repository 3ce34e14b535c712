/* volume_tokens.c - which tokens of its service account a pod's volumes want, and for how long. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

static int compare(const struct dv_volume_token *token, dv_str audience, int64_t lifetime_s)
{
    int order = dv_str_cmp(token->audience, audience);

    return order != 0 ? order : (token->lifetime_s > lifetime_s) - (token->lifetime_s < lifetime_s);
}

static int compare_tokens(const void *a, const void *b)
{
    const struct dv_volume_token *other = b;

    return compare(a, other->audience, other->lifetime_s);
}

static int64_t lifetime_of(const struct dv_api_service_account_token_projection *wanted)
{
    return wanted->expiration_seconds ? *wanted->expiration_seconds : LIFETIME_DEFAULT_S;
}

/* Sorts them, so that they are found without a walk, and leaves each there once. */
static void settle(token_list *tokens)
{
    size_t n = 0;

    if (tokens->n > 0)
        qsort(tokens->v, tokens->n, sizeof(tokens->v[0]), compare_tokens);
    for (size_t i = 0; i < tokens->n; i++)
        if (n == 0 || compare_tokens(&tokens->v[n - 1], &tokens->v[i]) != 0)
            tokens->v[n++] = tokens->v[i];
    tokens->n = n;
}

const struct dv_volume_token *
dv_volume_token_find(const struct dv_volume_token *tokens, size_t n_tokens,
                     const struct dv_api_service_account_token_projection *wanted)
{
    int64_t lifetime_s = lifetime_of(wanted);
    size_t first = 0;
    size_t end = n_tokens;

    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (compare(&tokens[middle], wanted->audience, lifetime_s) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == n_tokens || compare(&tokens[first], wanted->audience, lifetime_s) != 0)
        return NULL;
    return &tokens[first];
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
                *dv_vec_add_in(&tokens, arena) = (struct dv_volume_token){
                    .audience = projected->sources[k].service_account_token->audience,
                    .lifetime_s = lifetime_of(projected->sources[k].service_account_token),
                };
    }
    settle(&tokens);
    *n_tokens = tokens.n;
    return tokens.v;
}

int64_t dv_volume_token_due_s(int64_t issued_s, int64_t expires_s)
{
    int64_t life_s = expires_s > issued_s ? expires_s - issued_s : 0;
    int64_t due_s = life_s / 100 * LIFE_PER_CENT + life_s % 100 * LIFE_PER_CENT / 100;

    return issued_s + (due_s < AGE_MAX_S ? due_s : AGE_MAX_S);
}
