/* claim_saver.c - the state's changes as rows of the store. */
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "claim/manager/claims.h"
#include "store/store.h"
#include "store/store_saver.h"

static size_t take(void *ctx, struct dv_arena *arena, struct dv_store_change **changes)
{
    struct dv_claims *claims = ctx;
    const struct dv_claim_write *writes;
    size_t n = dv_claim_take_writes(claims->state, arena, &writes);

    *changes = DV_NEW_ARRAY(arena, struct dv_store_change, n);
    for (size_t i = 0; i < n; i++)
        (*changes)[i] = (struct dv_store_change){
            .kind = writes[i].value.n > 0 ? DV_STORE_PUT
                    : writes[i].is_prefix ? DV_STORE_DELETE_PREFIX
                                          : DV_STORE_DELETE,
            .space = claims->options.space,
            .key = writes[i].key,
            .value = writes[i].value,
        };
    return n;
}

static void told(void *ctx, const struct dv_err *err, uint64_t retry_ms)
{
    (void)ctx;
    if (err)
        dv_log(DV_LOG_ERROR, "claim: cannot save; trying again", DV_F_CODE(err), DV_F_ERR(err),
               DV_F_U64("retry_ms", retry_ms));
    else
        dv_log(DV_LOG_INFO, "claim: the state is saved again");
}

static void rested(void *ctx)
{
    dv_claims_check_closed(ctx);
}

void dv_claims_init_saver(struct dv_claims *claims)
{
    struct dv_saver_options options = {
        .loop = claims->loop,
        .store = claims->options.store,
        .what = "claims",
        .take = take,
        .told = told,
        .rested = rested,
        .ctx = claims,
    };

    dv_saver_init(&claims->saver, &options);
}

void dv_claims_save_later(struct dv_claims *claims)
{
    dv_saver_later(&claims->saver);
}

void dv_claims_save(struct dv_claims *claims, struct dv_save *save)
{
    dv_saver_start(&claims->saver, save);
}

void dv_claims_save_all(struct dv_claims *claims)
{
    dv_claim_rewrite(claims->state);
    dv_claims_save_later(claims);
}

const struct dv_err *dv_claims_store_error(const struct dv_claims *claims)
{
    return dv_saver_error(&claims->saver);
}
