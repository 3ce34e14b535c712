/* instance.c - one socket of a driver: its connection, and what it says about health. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "claim/manager/claim_manager_state.h"
#include "http2/http2.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "policy/policy.h"

#define HEALTH_RETRY_MS 5000u

/* ---- health ---- */

static void watch_health(struct dv_instance *instance);

static void tell_pods(struct dv_claim_manager *claims, const struct dv_claim_health_diff *diff)
{
    if (diff->n_pods > 0 && claims->options.pods_changed && !claims->is_closing)
        claims->options.pods_changed(claims->options.ctx, diff->pods, diff->n_pods);
}

static void on_health(struct dv_call *call, dv_str message)
{
    struct dv_instance *instance = DV_CONTAINER(call, struct dv_instance, health_call);
    struct dv_claim_manager *claims = instance->claims;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_device_health *devices;
    struct dv_claim_health_diff diff;
    struct dv_err err;
    size_t n_devices;

    if (instance->is_closing)
        return;
    if (!dv_claim_health_decode(message, arena, &devices, &n_devices, &err)) {
        dv_log(DV_LOG_ERROR, "claim: a driver's message about health makes no sense; ignored",
               DV_F_STR("driver", instance->base.driver), DV_F_ERR(&err));
        return;
    }
    dv_claim_health_apply(claims->state, instance->base.driver, devices, n_devices,
                          dv_clock_wall_ns(dv_loop_clock(claims->loop)), arena, &diff);
    if (diff.n_ignored > 0)
        dv_log(DV_LOG_ERROR, "claim: a driver tells of more devices than are kept; ignored",
               DV_F_STR("driver", instance->base.driver), DV_F_U64("n", diff.n_ignored));
    if (diff.n_changes == 0)
        return;
    dv_saver_later(&claims->saver);
    tell_pods(claims, &diff);
}

static void on_health_retry(struct dv_timer *timer)
{
    watch_health(DV_CONTAINER(timer, struct dv_instance, health_timer));
}

static void on_health_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_instance *instance = DV_CONTAINER(call, struct dv_instance, health_call);
    struct dv_claim_manager *claims = instance->claims;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_health_diff diff;
    bool is_final = err && err->code == DV_UNIMPLEMENTED;

    dv_claim_health_clear(claims->state, instance->base.driver, arena, &diff);
    dv_saver_later(&claims->saver);
    if (!claims->options.is_strict)
        tell_pods(claims, &diff);
    if (instance->is_closing)
        return;
    dv_log(is_final ? DV_LOG_WARN : DV_LOG_INFO,
           is_final ? "claim: the driver does not tell of health after all"
                    : "claim: the driver has stopped telling of health; asking again",
           DV_F_STR("driver", instance->base.driver),
           DV_F_C("code", dv_code_name(err ? err->code : DV_OK)),
           DV_F_C("error", err ? err->msg : ""));
    if (!is_final)
        dv_timer_start(&instance->health_timer, claims->loop,
                       dv_loop_now_ms(claims->loop) + HEALTH_RETRY_MS, on_health_retry);
}

static void watch_health(struct dv_instance *instance)
{
    instance->health_call = (struct dv_call){
        .method = dv_dra_health_method(instance->base.health),
        .message = on_health,
        .done = on_health_done,
        .deadline_ms = DV_NO_DEADLINE,
        .is_stream = true,
        .waits_for_ready = true,
    };
    dv_call_start(instance->channel, &instance->health_call, dv_h2_msg_new(0));
}

/* ---- the connection ---- */

static void on_channel(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_instance *instance = ctx;
    struct dv_claim_manager *claims = instance->claims;
    bool is_connected = state == DV_CHANNEL_READY;

    if (instance->is_closing || instance->base.is_connected == is_connected)
        return;
    instance->base.is_connected = is_connected;
    if (is_connected)
        instance->base.epoch = ++claims->epoch;
    dv_log(is_connected ? DV_LOG_INFO : DV_LOG_WARN,
           is_connected ? "claim: driver connected" : "claim: driver's connection is lost",
           DV_F_STR("driver", instance->base.driver), DV_F_STR("endpoint", instance->base.endpoint),
           DV_F_C("error", err ? err->msg : ""));
    dv_claim_manager_evaluate(claims, instance->base.driver);
    dv_claim_manager_tell_changed(claims);
    if (is_connected) {
        dv_claim_manager_wake(claims);
        dv_claim_manager_reconcile(claims);
    }
}

static bool may_serve(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    struct dv_instance *instance = ctx;
    struct dv_guard *guard = instance->claims->options.guard;

    return dv_guard_allows(guard, stream, DV_POLICY_CONNECT, instance->base.endpoint, err) &&
           dv_guard_allows(guard, stream, DV_POLICY_DRIVER, instance->base.driver, err);
}

static void on_channel_closed(void *ctx)
{
    struct dv_instance *instance = ctx;
    struct dv_claim_manager *claims = instance->claims;

    dv_link_remove(&instance->link);
    free(instance);
    dv_claim_manager_check_closed(claims);
}

struct dv_instance *dv_instance_open(struct dv_claim_manager *claims,
                                     const struct dv_plugin_info *info, enum dv_dra_service service,
                                     struct dv_err *err)
{
    struct dv_instance *instance =
        dv_alloc(sizeof(*instance) + info->name.n + info->endpoint.n + 1);
    struct dv_channel_options options = {
        .allows = may_serve,
        .changed = on_channel,
        .ctx = instance,
        .observer = claims->options.observer,
    };
    char *at = instance->text;

    instance->claims = claims;
    instance->base.driver = options.name = dv_str_put(info->name, &at);
    instance->base.endpoint = dv_str_put(info->endpoint, &at);
    instance->base.service = service;
    instance->base.health = dv_dra_choose_health(info->versions, info->n_versions);
    if (!dv_dra_add(claims->drivers, &instance->base, err)) {
        free(instance);
        return NULL;
    }
    instance->channel = dv_channel_open(claims->loop, instance->base.endpoint, &options, err);
    if (!instance->channel) {
        dv_dra_remove(claims->drivers, &instance->base);
        free(instance);
        return NULL;
    }
    dv_list_push(&claims->instances, &instance->link);
    if (instance->base.health != DV_DRA_HEALTH_NONE)
        watch_health(instance);
    dv_instance_watch_offers(instance);
    dv_log(DV_LOG_INFO, "claim: driver registered", DV_F_STR("driver", instance->base.driver),
           DV_F_STR("endpoint", instance->base.endpoint),
           DV_F_C("service", dv_dra_service_name(service)));
    dv_claim_manager_evaluate(claims, instance->base.driver);
    dv_claim_manager_tell_changed(claims);
    dv_claim_manager_wake(claims);
    return instance;
}

void dv_instance_close(struct dv_instance *instance)
{
    struct dv_claim_manager *claims = instance->claims;

    if (instance->is_closing)
        return;
    instance->is_closing = true;
    dv_timer_cancel(&instance->health_timer);
    dv_instance_stop_offers(instance);
    dv_dra_remove(claims->drivers, &instance->base);
    if (!claims->is_closing)
        dv_claim_manager_evaluate(claims, instance->base.driver);
    dv_claim_manager_tell_changed(claims);
    dv_channel_close(instance->channel, on_channel_closed, instance);
}
