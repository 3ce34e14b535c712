/* offer_stream.c - asks drivers of 1.30 which devices they offer.
 *
 *     asking --message--> offering --the stream ends--> pause 1, 2, 4 .. 60 s --> asking
 *        '--- the driver does not have the method: never again
 *
 * A driver says with what it registers that it is from before 1.31, but not from when: those
 * of 1.28, 1.29 and 1.31 do not have the method, and the last of these publish their devices
 * themselves. */
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/manager/claim_manager_state.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"

#define METHOD "/v1alpha3.Node/NodeListAndWatchResources"
#define PAUSE_FIRST_MS 1000u
#define PAUSE_MAX_MS 60000u
#define PAUSE_JITTER_PER_MILLE 200u

/* Logs what cannot be used, when that has changed. */
static void tell_left_out(struct dv_instance *instance, const struct dv_claim_offer *offer)
{
    uint64_t hash = offer->n_left_out;

    for (size_t i = 0; i < offer->n_named; i++)
        hash = hash * 31 + dv_hash(offer->left_out[i]);
    if (hash == instance->offer_left_out)
        return;
    instance->offer_left_out = hash;
    for (size_t i = 0; i < offer->n_named; i++)
        dv_log(DV_LOG_WARN, "claim: a part of what the driver offers cannot be used",
               DV_F_STR("driver", instance->base.driver), DV_F_STR("left_out", offer->left_out[i]));
    if (offer->n_left_out > offer->n_named)
        dv_log(DV_LOG_WARN, "claim: more of what the driver offers cannot be used",
               DV_F_STR("driver", instance->base.driver),
               DV_F_U64("n", offer->n_left_out - offer->n_named));
}

static void on_offer(struct dv_call *call, dv_str message)
{
    struct dv_instance *instance = DV_CONTAINER(call, struct dv_instance, offer_call);
    struct dv_claim_manager *claims = instance->claims;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_offer offer;
    struct dv_err err;

    if (instance->is_closing)
        return;
    if (!dv_claim_offer_decode(message, arena, &offer, &err)) {
        dv_log(DV_LOG_ERROR, "claim: what a driver offers cannot be used; what it had told stays",
               DV_F_STR("driver", instance->base.driver), DV_F_CODE(&err), DV_F_ERR(&err));
        return;
    }
    instance->offer_pause_ms = PAUSE_FIRST_MS;
    instance->is_offering = true;
    tell_left_out(instance, &offer);
    claims->options.offered(claims->options.ctx, instance->base.driver, &offer);
}

/* Whether the driver tells its devices on some socket. */
static bool is_offering(const struct dv_claim_manager *claims, dv_str driver)
{
    struct dv_link *link;

    DV_LIST_EACH (&claims->instances, link) {
        const struct dv_instance *instance = DV_CONTAINER(link, struct dv_instance, link);

        if (instance->is_offering && dv_str_eq(instance->base.driver, driver))
            return true;
    }
    return false;
}

static void on_retry(struct dv_timer *timer)
{
    dv_instance_watch_offers(DV_CONTAINER(timer, struct dv_instance, offer_timer));
}

static void on_ended(struct dv_call *call, const struct dv_err *err)
{
    struct dv_instance *instance = DV_CONTAINER(call, struct dv_instance, offer_call);
    struct dv_claim_manager *claims = instance->claims;
    uint64_t pause_ms = dv_jitter(instance->offer_pause_ms, PAUSE_JITTER_PER_MILLE);

    dv_instance_stop_offers(instance);
    if (instance->is_closing)
        return;
    if (err && err->code == DV_UNIMPLEMENTED) {
        dv_log(DV_LOG_INFO,
               "claim: the driver has no method that offers devices: it publishes "
               "them itself, or an administrator does",
               DV_F_STR("driver", instance->base.driver));
        return;
    }
    dv_log(DV_LOG_INFO, "claim: the driver has stopped telling what it offers; asking again",
           DV_F_STR("driver", instance->base.driver),
           DV_F_C("code", dv_code_name(err ? err->code : DV_OK)),
           DV_F_C("error", err ? err->msg : ""), DV_F_U64("retry_ms", pause_ms));
    instance->offer_pause_ms = dv_u64_min(instance->offer_pause_ms * 2, PAUSE_MAX_MS);
    dv_timer_start(&instance->offer_timer, claims->loop, dv_loop_now_ms(claims->loop) + pause_ms,
                   on_retry);
}

void dv_instance_watch_offers(struct dv_instance *instance)
{
    if (!instance->claims->options.offered || instance->base.service != DV_DRA_V1ALPHA3)
        return;
    if (instance->offer_pause_ms == 0)
        instance->offer_pause_ms = PAUSE_FIRST_MS;
    instance->offer_call = (struct dv_call){
        .method = METHOD,
        .message = on_offer,
        .done = on_ended,
        .deadline_ms = DV_NO_DEADLINE,
        .is_stream = true,
        .waits_for_ready = true,
    };
    dv_call_start(instance->channel, &instance->offer_call, dv_h2_msg_new(0));
}

void dv_instance_stop_offers(struct dv_instance *instance)
{
    struct dv_claim_manager *claims = instance->claims;

    dv_timer_cancel(&instance->offer_timer);
    if (!instance->is_offering)
        return;
    instance->is_offering = false;
    if (!is_offering(claims, instance->base.driver))
        claims->options.offered(claims->options.ctx, instance->base.driver, NULL);
}
