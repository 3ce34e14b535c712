/* device_endpoint.c - one plugin's life with us: connect, ask for options, watch its list, end.
 *
 *     CONNECTING --ready--> ASKING --options--> LISTING --stream ends--> CLOSING
 *          |  10 s             |  fails                                     ^
 *          '-------------------'--------------------------------------------'
 *
 * The list is watched once: a plugin whose stream ends has to register again. */
#include "device/manager/device_endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "plugin/guard.h"
#include "policy/policy.h"

/* How long a plugin has to accept a connection; it should serve before it registers. */
#define CONNECT_TIMEOUT_MS 10000u
/* The reference has no timeout of its own here; a plugin that takes longer hangs. */
#define OPTIONS_TIMEOUT_MS 10000u

/* How many endpoints of one process that calls Register may wait: there cannot be more
 * resources. */
#define CALLER_WAITING_MAX DV_DEVICE_RESOURCES_MAX

/* Tells whoever waits for the registration. */
static void tell_registered(struct dv_endpoint *endpoint, const struct dv_err *err)
{
    void (*registered)(void *ctx, const struct dv_err *err) = endpoint->registered;

    endpoint->registered = NULL;
    if (registered)
        registered(endpoint->registered_ctx, err);
}

void dv_endpoint_forget(struct dv_endpoint *endpoint)
{
    endpoint->registered = NULL;
}

static void on_channel_closed(void *ctx)
{
    struct dv_endpoint *endpoint = ctx;
    struct dv_device_manager *devices = endpoint->devices;

    dv_link_remove(&endpoint->link);
    dv_arena_free(endpoint->arena);
    dv_buf_fini(&endpoint->newest);
    free(endpoint);
    dv_device_manager_check_closed(devices);
}

void dv_endpoint_finish(struct dv_endpoint *endpoint, const struct dv_err *err)
{
    struct dv_device_manager *devices = endpoint->devices;
    bool was_listing = endpoint->state == DV_ENDPOINT_LISTING;

    if (endpoint->state == DV_ENDPOINT_CLOSING)
        return;
    endpoint->state = DV_ENDPOINT_CLOSING;
    dv_timer_cancel(&endpoint->connect_timer);
    dv_task_cancel(&endpoint->refused_task);
    dv_endpoint_stop_reading(endpoint);
    if (was_listing) {
        bool was_last = dv_device_disconnect(devices->state, endpoint->resource, endpoint->socket,
                                             dv_loop_now_ns(devices->loop));

        dv_log(DV_LOG_WARN,
               was_last ? "device: plugin is gone; its devices count as unhealthy"
                        : "device: plugin is gone; another one serves its resource",
               DV_F_STR("resource", endpoint->resource), DV_F_STR("socket", endpoint->socket),
               DV_F_ERR(err));
        dv_device_manager_watch_grace(devices);
        dv_saver_later(&devices->saver);
        dv_device_manager_tell_changed(devices);
    }
    dv_channel_close(endpoint->channel, on_channel_closed, endpoint);
    tell_registered(endpoint, err);
}

void dv_endpoint_stop(struct dv_endpoint *endpoint, const char *reason)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "%s", reason);
    dv_endpoint_finish(endpoint, &err);
}

void dv_endpoint_stop_link(struct dv_link *link, const char *reason)
{
    dv_endpoint_stop(DV_CONTAINER(link, struct dv_endpoint, link), reason);
}

/* ---- registration ---- */

/* One socket is one plugin: a plugin that registers again on the same socket replaces the endpoint
 * that was there. */
static void take_over(struct dv_endpoint *endpoint)
{
    struct dv_endpoint *old =
        dv_endpoint_find(endpoint->devices, endpoint->resource, endpoint->socket);

    if (old)
        dv_endpoint_stop(old, "the plugin has registered again");
}

static void serve(struct dv_endpoint *endpoint)
{
    struct dv_device_manager *devices = endpoint->devices;
    struct dv_err err;

    take_over(endpoint);
    if (!dv_device_connect(devices->state, endpoint->resource, endpoint->socket, &endpoint->options,
                           &err)) {
        dv_endpoint_finish(endpoint, &err);
        return;
    }
    endpoint->state = DV_ENDPOINT_LISTING;
    dv_log(DV_LOG_INFO, "device: plugin registered", DV_F_STR("resource", endpoint->resource),
           DV_F_STR("socket", endpoint->socket),
           DV_F_BOOL("pre_start", endpoint->options.needs_pre_start),
           DV_F_BOOL("preferred", endpoint->options.has_preference));
    dv_endpoint_watch_list(endpoint);
    dv_saver_later(&devices->saver);
    dv_device_manager_tell_changed(devices);
    tell_registered(endpoint, NULL); /* last: the callee may close all of this */
}

static void on_options(struct dv_call *call, dv_str message)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, options_call);

    if (dv_device_plugin_options_decode(message, &endpoint->options, &endpoint->options_err))
        (void)dv_succeed(&endpoint->options_err);
}

static void on_options_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, options_call);
    struct dv_err reason;

    if (endpoint->state != DV_ENDPOINT_ASKING)
        return;
    if (!err && endpoint->options_err.code == DV_OK) {
        serve(endpoint);
        return;
    }
    reason = err ? *err : endpoint->options_err;
    (void)dv_wrap(&reason, "failed to get device plugin options");
    dv_endpoint_finish(endpoint, &reason);
}

static void ask_options(struct dv_endpoint *endpoint)
{
    endpoint->state = DV_ENDPOINT_ASKING;
    endpoint->asked_ns = dv_loop_now_ns(endpoint->devices->loop);
    endpoint->options_call = (struct dv_call){
        .method = "/v1beta1.DevicePlugin/GetDevicePluginOptions",
        .message = on_options,
        .done = on_options_done,
        .deadline_ms = dv_loop_now_ms(endpoint->devices->loop) + OPTIONS_TIMEOUT_MS,
    };
    dv_call_start(endpoint->channel, &endpoint->options_call, dv_h2_msg_new(0));
}

static void on_channel(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;

    if (endpoint->state != DV_ENDPOINT_CONNECTING)
        return;
    if (err)
        endpoint->connect_err = *err;
    if (state != DV_CHANNEL_READY)
        return;
    dv_timer_cancel(&endpoint->connect_timer);
    if (endpoint->version == DV_ENDPOINT_V1BETA1)
        ask_options(endpoint);
    else
        serve(endpoint); /* the old versions of the protocol have no options */
}

/* Ends the endpoint when its socket refuses connections: waiting for the timeout would not help. */
static void on_refused(struct dv_task *task)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(task, struct dv_endpoint, refused_task);

    dv_endpoint_finish(endpoint, &endpoint->connect_err);
}

static bool judge(const struct dv_endpoint *endpoint, struct dv_err *err)
{
    struct dv_guard *guard = endpoint->devices->options.guard;

    return dv_guard_judge(guard, endpoint->peer, DV_POLICY_CONNECT, endpoint->socket, err) &&
           dv_guard_judge(guard, endpoint->peer, DV_POLICY_RESOURCE, endpoint->resource, err);
}

static bool may_serve(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;

    dv_arena_reset(endpoint->arena);
    endpoint->peer = dv_guard_identify(endpoint->devices->options.guard, stream, endpoint->arena);
    if (judge(endpoint, err))
        return true;
    endpoint->connect_err = *err;
    dv_task_post(&endpoint->refused_task, endpoint->devices->loop, on_refused);
    return false;
}

void dv_device_manager_judge_again(struct dv_device_manager *devices)
{
    struct dv_link *link = devices->endpoints.head.next;
    struct dv_err err;

    while (link != &devices->endpoints.head) {
        struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        link = link->next; /* the end of an endpoint takes its link out of the list */
        if (endpoint->state != DV_ENDPOINT_CLOSING && !judge(endpoint, &err))
            dv_endpoint_finish(endpoint, &err);
    }
}

static void on_connect_timeout(struct dv_timer *timer)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(timer, struct dv_endpoint, connect_timer);
    struct dv_err err = endpoint->connect_err;

    if (err.code == DV_OK)
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED, "no answer on %.*s within 10 s",
                      DV_FMT(endpoint->socket));
    (void)dv_wrap(&err, "failed to dial device plugin");
    dv_endpoint_finish(endpoint, &err);
}

/* Limits the endpoints that wait for one caller: each has a connection open for as long as its
 * plugin is silent. */
static bool check_caller(const struct dv_device_manager *devices, pid_t caller, struct dv_err *err)
{
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&devices->endpoints, link) {
        const struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        n += endpoint->caller == caller && endpoint->state < DV_ENDPOINT_LISTING;
    }
    return caller == 0 || n < CALLER_WAITING_MAX ||
           dv_fail(err, DV_RESOURCE_EXHAUSTED,
                   "%zu registrations of process %d wait for their plugins to answer; try again "
                   "when one has",
                   n, (int)caller);
}

struct dv_endpoint *dv_endpoint_open(struct dv_device_manager *devices,
                                     const struct dv_endpoint_open *open, struct dv_err *err)
{
    struct dv_endpoint *endpoint;
    struct dv_channel_options options = {
        .name = open->resource,
        .message_bytes_max = DV_DEVICE_LIST_BYTES_MAX,
        .allows = may_serve,
        .changed = on_channel,
        .observer = devices->options.observer,
    };

    if (!check_caller(devices, open->caller, err))
        return NULL;
    endpoint = dv_alloc(sizeof(*endpoint) + open->resource.n + open->socket.n);
    options.ctx = endpoint;
    endpoint->caller = open->caller;
    memcpy(endpoint->text, open->resource.p, open->resource.n);
    memcpy(endpoint->text + open->resource.n, open->socket.p, open->socket.n);
    endpoint->devices = devices;
    endpoint->resource = (dv_str){endpoint->text, open->resource.n};
    endpoint->socket = (dv_str){endpoint->text + open->resource.n, open->socket.n};
    endpoint->version = open->version;
    endpoint->arena = dv_arena_new();
    dv_buf_init(&endpoint->newest, DV_DEVICE_LIST_BYTES_MAX);
    endpoint->channel = dv_channel_open(devices->loop, open->socket, &options, err);
    if (!endpoint->channel) {
        dv_arena_free(endpoint->arena);
        free(endpoint);
        return NULL;
    }
    endpoint->registered = open->registered;
    endpoint->registered_ctx = open->ctx;
    dv_list_push(&devices->endpoints, &endpoint->link);
    dv_timer_start(&endpoint->connect_timer, devices->loop,
                   dv_loop_now_ms(devices->loop) + CONNECT_TIMEOUT_MS, on_connect_timeout);
    return endpoint;
}

struct dv_endpoint *dv_endpoint_find(struct dv_device_manager *devices, dv_str resource,
                                     dv_str socket)
{
    struct dv_link *link;

    DV_LIST_EACH (&devices->endpoints, link) {
        struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        if (endpoint->state == DV_ENDPOINT_LISTING && dv_str_eq(endpoint->socket, socket) &&
            dv_str_eq(endpoint->resource, resource))
            return endpoint;
    }
    return NULL;
}

bool dv_endpoint_link_call(struct dv_link *link, struct dv_device_call *call)
{
    const struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);
    bool is_asked = endpoint->state == DV_ENDPOINT_ASKING;

    if (!is_asked && (endpoint->state != DV_ENDPOINT_LISTING || endpoint->has_listed))
        return false;
    *call = (struct dv_device_call){
        .resource = endpoint->resource,
        .socket = endpoint->socket,
        .method = is_asked ? "GetDevicePluginOptions" : "ListAndWatch",
        .since_ns = endpoint->asked_ns,
    };
    return true;
}
