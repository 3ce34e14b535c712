#include "verify/kit/kubelet_side.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "plugin/plugin.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* What the kubelet gives a server that closes. */
#define CLOSE_GRACE_MS 0u

/* ---- registrations ---- */

/* Whether it is the driver that the trial is about: the one that was named, or any. */
static bool is_ours(const struct dv_trial *trial, dv_str name)
{
    dv_str wanted =
        trial->facts.name[0] ? dv_str_from_c(trial->facts.name) : trial->options->driver;

    return wanted.n == 0 || dv_str_eq(name, wanted);
}

static struct dv_registration *add(struct dv_kubelet_side *kubelet, dv_str name)
{
    struct dv_arena *arena = kubelet->trial->arena;
    struct dv_registration *made = DV_NEW(arena, struct dv_registration);

    made->name = dv_str_copy(name, arena);
    *dv_vec_add_in(&kubelet->seen, arena) = made;
    return made;
}

size_t dv_kubelet_n_seen(const struct dv_trial *trial)
{
    size_t n = 0;

    for (size_t i = 0; trial->kubelet && i < trial->kubelet->seen.n; i++)
        n += is_ours(trial, trial->kubelet->seen.v[i]->name);
    return n;
}

static const struct dv_registration *newest(const struct dv_trial *trial)
{
    for (size_t i = trial->kubelet ? trial->kubelet->seen.n : 0; i > 0; i--)
        if (is_ours(trial, trial->kubelet->seen.v[i - 1]->name))
            return trial->kubelet->seen.v[i - 1];
    return NULL;
}

struct expecting {
    const struct dv_trial *trial;
    size_t n;
};

static bool is_registered(void *ctx)
{
    const struct expecting *expecting = ctx;

    return dv_kubelet_n_seen(expecting->trial) > expecting->n;
}

const struct dv_registration *dv_kubelet_try(struct dv_trial *trial, size_t n, uint64_t timeout_ms)
{
    struct expecting expecting = {trial, n};

    return dv_trial_wait_ms(trial, is_registered, &expecting, timeout_ms, "its registration")
               ? newest(trial)
               : NULL;
}

const struct dv_registration *dv_kubelet_await(struct dv_trial *trial, size_t n, const char *what)
{
    const struct dv_registration *found = dv_kubelet_try(trial, n, trial->wait_ms);

    if (!found && trial->options->attach.n > 0 && !trial->test)
        dv_trial_fail(trial,
                      "no driver has registered within %llu ms: one that runs already has a socket "
                      "in %.*s, or registers by %.*s/kubelet.sock",
                      (unsigned long long)trial->wait_ms, DV_FMT(trial->paths.registry),
                      DV_FMT(trial->paths.device_plugins));
    if (!found)
        dv_trial_fail(trial, "the driver did not register within %llu ms %s",
                      (unsigned long long)trial->wait_ms, what);
    return found;
}

/* ---- kubelet.sock ---- */

static void refuse(struct dv_kubelet_side *kubelet, struct dv_server_call *call, const char *why)
{
    struct dv_err err;

    kubelet->n_refused++;
    (void)dv_fail(&err, DV_UNKNOWN, "%s", why);
    dv_server_call_finish(call, &err);
}

static void on_held_cancelled(void *ctx, struct dv_server_call *call)
{
    struct dv_kubelet_side *kubelet = ctx;

    if (kubelet->held == call)
        kubelet->held = NULL;
    dv_server_call_finish(call, NULL);
}

void dv_kubelet_let_go(struct dv_trial *trial)
{
    struct dv_server_call *held = trial->kubelet->held;

    trial->kubelet->held = NULL;
    if (held)
        dv_server_call_reply(held, dv_h2_msg_new(0));
}

static void handle_register(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_kubelet_side *kubelet = ctx;
    struct dv_trial *trial = kubelet->trial;
    struct dv_registration *made;
    DpV1beta1__RegisterRequest *told;
    struct dv_err err;

    told = dv_pb_decode(&dp_v1beta1__register_request__descriptor, request, trial->arena, &err);
    if (!told) {
        refuse(kubelet, call, err.msg);
        return;
    }
    if (trial->manners.refuses) {
        refuse(kubelet, call, "this kubelet does not want it now");
        return;
    }
    made = add(kubelet, dv_str_from_c(told->resource_name));
    made->told = dv_str_from_c(told->endpoint);
    made->endpoint =
        dv_str_printf(trial->arena, "%.*s/%s", DV_FMT(trial->paths.device_plugins), told->endpoint);
    made->versions = DV_NEW(trial->arena, dv_str);
    *(dv_str *)(uintptr_t)made->versions = dv_str_from_c(told->version);
    made->n_versions = 1;
    made->has_options = told->options != NULL;
    made->wants_prestart = told->options && told->options->pre_start_required;
    made->has_prefer = told->options && told->options->get_preferred_allocation_available;
    if (trial->manners.holds && !kubelet->held) {
        kubelet->n_held++;
        kubelet->held = call;
        dv_server_call_on_cancel(call, on_held_cancelled, kubelet);
        return;
    }
    dv_server_call_reply(call, dv_h2_msg_new(0));
}

/* ---- plugins_registry ---- */

static bool validate(void *ctx, const struct dv_plugin_info *info, struct dv_buf *text,
                     struct dv_err *err)
{
    struct dv_kubelet_side *kubelet = ctx;
    enum dv_dra_service service;

    (void)text;
    if (kubelet->trial->manners.refuses) {
        kubelet->n_refused++;
        return dv_fail(err, DV_FAILED_PRECONDITION, "this kubelet does not want it now");
    }
    if (dv_str_eq(info->type, DV_STR("DRAPlugin")) &&
        !dv_skew_choose(kubelet->trial->release, info->versions, info->n_versions, &service)) {
        kubelet->n_refused++;
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "none of the versions that the driver lists is one of Kubernetes %.*s",
                       DV_FMT(kubelet->trial->release->name));
    }
    return true;
}

static void note(struct dv_kubelet_side *kubelet, const struct dv_plugin_info *info)
{
    struct dv_arena *arena = kubelet->trial->arena;
    struct dv_registration *made = add(kubelet, info->name);
    dv_str *versions = DV_NEW_ARRAY(arena, dv_str, info->n_versions);

    for (size_t i = 0; i < info->n_versions; i++)
        versions[i] = dv_str_copy(info->versions[i], arena);
    made->versions = versions;
    made->n_versions = info->n_versions;
    made->endpoint = dv_str_copy(info->endpoint, arena);
    made->told = made->endpoint;
    made->socket = dv_str_copy(info->socket, arena);
    (void)dv_skew_choose(kubelet->trial->release, versions, info->n_versions, &made->service);
}

static void on_step(struct dv_task *task)
{
    struct dv_kubelet_step *step = DV_CONTAINER(task, struct dv_kubelet_step, task);
    struct dv_plugin_registration *registration = step->registration;

    step->registration = NULL;
    note(step->kubelet, registration->info);
    registration->done(registration, NULL);
}

static void start(void *ctx, struct dv_plugin_registration *registration)
{
    struct dv_kubelet_side *kubelet = ctx;

    for (size_t i = 0; i < DV_COUNT(kubelet->steps); i++)
        if (!kubelet->steps[i].registration) {
            kubelet->steps[i].kubelet = kubelet;
            kubelet->steps[i].registration = registration;
            dv_task_post(&kubelet->steps[i].task, kubelet->trial->loop, on_step);
            return;
        }
    dv_trial_fail(kubelet->trial, "the driver registers on more than %zu sockets at once",
                  DV_COUNT(kubelet->steps));
}

/* A step ends in the same turn: there is nothing to cut short. */
static void cancel(void *ctx, struct dv_plugin_registration *registration)
{
    (void)ctx;
    (void)registration;
}

static void deregister(void *ctx, const struct dv_plugin_info *info)
{
    struct dv_kubelet_side *kubelet = ctx;

    for (size_t i = 0; i < kubelet->seen.n; i++)
        if (dv_str_eq(kubelet->seen.v[i]->socket, info->socket))
            kubelet->seen.v[i]->is_gone = true;
}

/* ---- life ---- */

static dv_str kubelet_socket(const struct dv_trial *trial)
{
    return dv_str_printf(trial->arena, "%.*s/kubelet.sock", DV_FMT(trial->paths.device_plugins));
}

static bool open_server(struct dv_kubelet_side *kubelet, struct dv_err *err)
{
    static const struct dv_method methods[] = {
        {"/v1beta1.Registration/Register", handle_register},
    };
    struct dv_trial *trial = kubelet->trial;
    const struct dv_service service = {methods, DV_COUNT(methods), kubelet};
    const struct dv_server_options options = {.name = DV_STR("kubelet"),
                                              .mode = 0666,
                                              .services = &service,
                                              .n_services = 1,
                                              .observer = &trial->observer};

    kubelet->server = dv_server_open(trial->loop, kubelet_socket(trial), &options, err);
    return kubelet->server != NULL;
}

/* Cases about kubelet.sock count what comes there: a plugin that has both ways is seen by one. */
static bool is_about_classic(const struct dv_trial *trial)
{
    return trial->test && (trial->test->needs & DV_NEEDS_CLASSIC);
}

static bool open_watcher(struct dv_kubelet_side *kubelet, struct dv_err *err)
{
    struct dv_plugin_handler handlers[] = {
        {.type = DV_STR("DevicePlugin"),
         .ctx = kubelet,
         .validate = validate,
         .start = start,
         .cancel = cancel,
         .deregister = deregister},
        {.type = DV_STR("DRAPlugin"),
         .ctx = kubelet,
         .validate = validate,
         .start = start,
         .cancel = cancel,
         .deregister = deregister},
    };
    const struct dv_plugins_options options = {
        .kubelet_dir = kubelet->trial->paths.kubelet,
        .rules = {.handlers = handlers,
                  .n_handlers = DV_COUNT(handlers),
                  .accepts_any_endpoint = true,
                  .observer = &kubelet->trial->observer},
    };

    if (is_about_classic(kubelet->trial))
        return true;
    kubelet->plugins = dv_plugins_open(kubelet->trial->loop, &options, err);
    return kubelet->plugins != NULL;
}

void dv_kubelet_open(struct dv_trial *trial)
{
    struct dv_kubelet_side *kubelet = DV_NEW(trial->arena, struct dv_kubelet_side);
    struct dv_err err;

    kubelet->trial = trial;
    trial->kubelet = kubelet;
    kubelet->opened_ms = dv_trial_now_ms(trial);
    if (!open_server(kubelet, &err))
        dv_trial_break(trial, "cannot serve as a kubelet: %s", err.msg);
    if (trial->options->attach.n > 0)
        trial->own_socket = kubelet_socket(trial);
    if (!open_watcher(kubelet, &err))
        dv_trial_break(trial, "cannot serve as a kubelet: %s", err.msg);
}

/* As when it ends: its socket is removed, connections are closed. */
static void close_kubelet(struct dv_trial *trial)
{
    struct dv_kubelet_side *kubelet = trial->kubelet;
    /* In the arena: should the wait end early, the callback may still come. */
    bool *is_closed = DV_NEW_ARRAY(trial->arena, bool, 2);

    trial->kubelet = NULL;
    dv_server_close(kubelet->server, CLOSE_GRACE_MS, dv_flag_set, &is_closed[0]);
    (void)dv_trial_wait_flag(trial, &is_closed[0], "the end of the kubelet's server");
    if (!kubelet->plugins)
        return;
    dv_plugins_close(kubelet->plugins, dv_flag_set, &is_closed[1]);
    (void)dv_trial_wait_flag(trial, &is_closed[1], "the end of the kubelet's watcher");
}

void dv_kubelet_restart(struct dv_trial *trial)
{
    close_kubelet(trial);
    dv_trial_empty(trial, trial->paths.device_plugins);
    dv_kubelet_open(trial);
}
