/* claim_register.c - DRA drivers come and go through the plugin watcher. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "claim/manager/claim_manager_state.h"
#include "plugin/plugin.h"
#include "resource/validate.h"

/* What a driver says of itself has at most 32 KiB, and a refusal quotes it. */
#define TEXT_BYTES_MAX (64u * 1024u)

static bool choose(const struct dv_claim_manager *claims, const struct dv_plugin_info *info,
                   struct dv_buf *text, enum dv_dra_service *service, struct dv_err *err)
{
    return dv_dra_choose_service(info->name, info->endpoint, info->versions, info->n_versions,
                                 claims->options.is_strict, service, text, err);
}

static bool validate(void *ctx, const struct dv_plugin_info *info, struct dv_buf *text,
                     struct dv_err *err)
{
    const struct dv_claim_manager *claims = ctx;
    enum dv_dra_service service;

    if (info->name.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "DRA driver name is empty");
    /* ResourceSlices and claims allow only such names, so no claim could ever name another
     * driver. */
    if (!claims->options.is_strict && !dv_is_driver_name(info->name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "DRA driver name \"%.*s\" is not a DNS subdomain of at most 63 characters",
                       DV_FMT(info->name));
    return choose(claims, info, text, &service, err);
}

/* The end of a registration, told in the same turn but not from within `start`. */
struct answer {
    struct dv_task task;
    struct dv_plugin_registration *registration;
    struct dv_err err; /* code DV_OK: it went well */
};

static void on_answer(struct dv_task *task)
{
    struct answer *answer = DV_CONTAINER(task, struct answer, task);
    struct dv_plugin_registration *registration = answer->registration;
    struct dv_err err = answer->err;

    free(answer);
    registration->done(registration, err.code == DV_OK ? NULL : &err);
}

static bool open_instance(struct dv_claim_manager *claims, const struct dv_plugin_info *info,
                          struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    enum dv_dra_service service;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    if (claims->is_closing)
        return dv_fail(err, DV_CANCELLED, "davitd is stopping");
    return choose(claims, info, &text, &service, err) &&
           dv_instance_open(claims, info, service, err) != NULL;
}

static void start(void *ctx, struct dv_plugin_registration *registration)
{
    struct dv_claim_manager *claims = ctx;
    struct answer *answer = DV_ALLOC(struct answer);

    answer->registration = registration;
    if (open_instance(claims, registration->info, &answer->err))
        (void)dv_succeed(&answer->err);
    dv_task_post(&answer->task, claims->loop, on_answer);
}

/* Nothing is to be cancelled: the answer is posted already. */
static void cancel(void *ctx, struct dv_plugin_registration *registration)
{
    (void)ctx;
    (void)registration;
}

static void deregister(void *ctx, const struct dv_plugin_info *info)
{
    struct dv_claim_manager *claims = ctx;
    struct dv_dra_instance *instance = dv_dra_find(claims->drivers, info->name, info->endpoint);

    if (instance)
        dv_instance_close(DV_CONTAINER(instance, struct dv_instance, base));
}

struct dv_plugin_handler dv_claim_manager_handler(struct dv_claim_manager *claims)
{
    return (struct dv_plugin_handler){
        .type = DV_STR("DRAPlugin"),
        .ctx = claims,
        .validate = validate,
        .start = start,
        .cancel = cancel,
        .deregister = deregister,
    };
}
