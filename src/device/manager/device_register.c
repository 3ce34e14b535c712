/* device_register.c - how device plugins come: they call Register on our socket, or the watcher
 * finds them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/visible.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "device/manager/device_manager_state.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "plugin/plugin_endpoint.h"
#include "policy/policy.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

/* The reference's mode: 0777 less what the directory's mode forbids. */
#define SOCKET_MODE 0777
/* A registration is a few names: more than this is none. */
#define REGISTER_BYTES_MAX (64u * 1024u)

struct count {
    uint64_t n;
    char resource[];
};

static void count_registration(struct dv_device_manager *devices, dv_str resource)
{
    struct count *count = dv_map_get(&devices->counts, resource);

    if (!count) {
        if (devices->counts.n >= DV_DEVICE_RESOURCES_MAX)
            return; /* plugins choose the names, so their number is limited */
        count = dv_alloc(sizeof(*count) + resource.n);
        memcpy(count->resource, resource.p, resource.n);
        (void)dv_map_set(&devices->counts, (dv_str){count->resource, resource.n}, count);
    }
    count->n++;
}

bool dv_device_manager_next_count(const struct dv_device_manager *devices, size_t *at,
                                  dv_str *resource, uint64_t *n_registrations)
{
    const struct dv_map_entry *entry = dv_map_next(&devices->counts, at);

    if (!entry)
        return false;
    *resource = entry->key;
    *n_registrations = ((const struct count *)entry->value)->n;
    return true;
}

/* ---- Register on kubelet.sock ---- */

/* A call of Register that waits for its plugin to be connected. */
struct waiting {
    struct dv_server_call *call;
    dv_str resource; /* in the call's arena: the endpoint is gone when a dial has failed */
    struct dv_endpoint *endpoint;
};

/* The path of an endpoint, which is a file in our directory: it must not lead out of it by "..", by
 * a link, or by its length. */
static bool endpoint_path(struct dv_device_manager *devices, dv_str endpoint,
                          struct dv_arena *arena, dv_str *path, struct dv_err *err)
{
    if (!dv_str_is_visible(endpoint))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "endpoint \"%.*s\" has a character that cannot be seen", DV_FMT(endpoint));
    *path = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(devices->plugin_dir), DV_FMT(endpoint));
    if (!dv_socket_path_check(*path, err))
        return dv_wrap(err, "endpoint");
    if (devices->options.is_strict)
        return true;
    if (endpoint.n == 0 || dv_str_find_char(endpoint, '/') < endpoint.n ||
        dv_str_eq(endpoint, DV_STR("..")) || dv_str_eq(endpoint, DV_STR(".")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "endpoint \"%.*s\" is not the name of a socket in %.*s", DV_FMT(endpoint),
                       DV_FMT(devices->plugin_dir));
    /* It need not be there yet: connecting reports that, and tries again for a while. */
    return dv_plugin_endpoint_check(*path, &devices->plugin_dir, 1, err);
}

/* The reference's errors here have no code of their own, and clients match on the text. */
static void refuse(struct dv_server_call *call, dv_str resource, const struct dv_err *err)
{
    struct dv_err unknown = *err;

    dv_log(DV_LOG_WARN, "device: registration refused", DV_F_REQUEST(dv_server_call_id(call)),
           DV_F_STR("resource", resource), DV_F_I64("pid", dv_server_call_peer(call).pid),
           DV_F_ERR(err));
    unknown.code = DV_UNKNOWN;
    dv_server_call_finish(call, &unknown);
}

static void on_registered(void *ctx, const struct dv_err *err)
{
    struct waiting *waiting = ctx;

    waiting->endpoint = NULL;
    if (err)
        refuse(waiting->call, waiting->resource, err);
    else
        dv_server_call_reply(waiting->call, dv_h2_msg_new(0));
}

/* The plugin gave up its call of Register, so its endpoint, if not connected yet, is given
 * up too. */
static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct waiting *waiting = ctx;

    if (waiting->endpoint) {
        dv_endpoint_forget(waiting->endpoint);
        dv_endpoint_stop(waiting->endpoint, "the plugin gave up");
    }
    dv_server_call_finish(call, NULL);
}

static bool check_version(dv_str version, bool is_old, enum dv_endpoint_version *which,
                          struct dv_err *err)
{
    static const struct {
        dv_str version;
        bool is_old;
        enum dv_endpoint_version which;
    } versions[] = {
        {DV_STR_INIT("v1beta1"),  false, DV_ENDPOINT_V1BETA1 },
        {DV_STR_INIT("v1alpha2"), true,  DV_ENDPOINT_V1ALPHA2},
        {DV_STR_INIT("0.1"),      true,  DV_ENDPOINT_V0_1    },
    };

    for (size_t i = 0; i < DV_COUNT(versions); i++) {
        if (versions[i].is_old == is_old && dv_str_eq(versions[i].version, version)) {
            *which = versions[i].which;
            return true;
        }
    }
    return dv_fail(err, DV_UNKNOWN,
                   "requested API version \"%.*s\" is not supported by kubelet. Supported version "
                   "is [\"v1beta1\"]",
                   DV_FMT(version));
}

static void handle_register(struct dv_device_manager *devices, struct dv_server_call *call,
                            dv_str bytes, bool is_old)
{
    struct dv_arena *arena = dv_server_call_arena(call);
    /* The old request only lacks the options, which are not read here: they are asked for later. */
    const DpV1beta1__RegisterRequest *request;
    struct dv_endpoint_open open = {.registered = on_registered};
    struct waiting *waiting = DV_NEW(arena, struct waiting);
    struct dv_err err;
    dv_str path;

    request = dv_pb_decode(&dp_v1beta1__register_request__descriptor, bytes, arena, &err);
    if (!request) {
        refuse(call, DV_STR(""), &err);
        return;
    }
    open.resource = dv_str_from_c(request->resource_name);
    count_registration(devices, open.resource);
    if (!check_version(dv_str_from_c(request->version), is_old, &open.version, &err) ||
        !dv_device_name_check(open.resource, &err) ||
        !endpoint_path(devices, dv_str_from_c(request->endpoint), arena, &path, &err)) {
        refuse(call, open.resource, &err);
        return;
    }
    open.socket = path;
    open.ctx = waiting;
    open.caller = dv_server_call_peer(call).pid;
    waiting->call = call;
    waiting->resource = open.resource;
    waiting->endpoint = dv_endpoint_open(devices, &open, &err);
    if (!waiting->endpoint) {
        refuse(call, open.resource, &err);
        return;
    }
    dv_server_call_on_cancel(call, on_cancelled, waiting);
}

static void handle_v1beta1(void *ctx, struct dv_server_call *call, dv_str request)
{
    handle_register(ctx, call, request, false);
}

static void handle_v1alpha(void *ctx, struct dv_server_call *call, dv_str request)
{
    handle_register(ctx, call, request, true);
}

static void on_complaint(void *ctx, const struct dv_peer *peer, const struct dv_err *err)
{
    (void)ctx;
    dv_log(DV_LOG_WARN, "device: bad peer on kubelet.sock", DV_F_I64("pid", peer->pid),
           DV_F_U64("uid", peer->uid), DV_F_CODE(err), DV_F_ERR(err));
}

static void on_remade(void *ctx, const struct dv_err *err)
{
    const struct dv_device_manager *devices = ctx;

    if (!err)
        dv_log(DV_LOG_WARN, "device: kubelet.sock was removed, and has been made anew",
               DV_F_STR("dir", devices->plugin_dir));
    if (devices->options.socket_remade)
        devices->options.socket_remade(devices->options.ctx, err);
}

static bool may_call(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    struct dv_device_manager *devices = ctx;

    return dv_guard_allows(devices->options.guard, stream, DV_POLICY_CALL, DV_STR("kubelet.sock"),
                           err);
}

bool dv_device_manager_serve(struct dv_device_manager *devices, struct dv_err *err)
{
    static const struct dv_method methods[] = {
        {"/v1beta1.Registration/Register",      handle_v1beta1},
        {"/deviceplugin.Registration/Register", handle_v1alpha},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_service service = {methods, DV_COUNT(methods), devices};
    struct dv_server_options options = {
        .name = DV_STR("device-plugins"),
        .mode = SOCKET_MODE,
        .services = &service,
        .n_services = 1,
        .message_bytes_max = REGISTER_BYTES_MAX,
        .allows = may_call,
        .complaint = on_complaint,
        .remade = on_remade,
        .ctx = devices,
        .observer = devices->options.observer,
    };
    dv_str path = dv_str_printf(arena, "%.*s/kubelet.sock", DV_FMT(devices->plugin_dir));

    devices->server = dv_server_open(devices->loop, path, &options, err);
    devices->is_serving = devices->server != NULL;
    return devices->is_serving;
}

/* ---- through the watcher ---- */

static bool validate(void *ctx, const struct dv_plugin_info *info, struct dv_buf *text,
                     struct dv_err *err)
{
    bool has_version = false;

    (void)ctx;
    for (size_t i = 0; i < info->n_versions; i++)
        has_version |= dv_str_eq(info->versions[i], DV_STR("v1beta1"));
    if (!has_version) {
        dv_buf_add_c(text, "manager version, v1beta1, is not among plugin supported versions [");
        for (size_t i = 0; i < info->n_versions; i++) {
            dv_buf_add_c(text, i > 0 ? " " : "");
            dv_buf_add(text, info->versions[i]);
        }
        dv_buf_add_char(text, ']');
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s", dv_buf_c(text));
    }
    if (!dv_device_name_check(info->name, err))
        return dv_wrap(err, "invalid name of device plugin socket");
    return true;
}

static void on_watched(void *ctx, const struct dv_err *err)
{
    struct dv_plugin_registration *registration = ctx;

    registration->priv = NULL;
    registration->done(registration, err);
}

static void fail_later(struct dv_device_manager *devices,
                       struct dv_plugin_registration *registration, const struct dv_err *err);

static void start(void *ctx, struct dv_plugin_registration *registration)
{
    struct dv_device_manager *devices = ctx;
    struct dv_endpoint_open open = {
        .resource = registration->info->name,
        .socket = registration->info->endpoint,
        .version = DV_ENDPOINT_V1BETA1,
        .registered = on_watched,
        .ctx = registration,
    };
    struct dv_err err;

    registration->priv = dv_endpoint_open(devices, &open, &err);
    if (!registration->priv)
        fail_later(devices, registration, &err);
}

/* A registration that failed at once, told in the next turn: not from within its start. */
struct failed {
    struct dv_task task;
    struct dv_plugin_registration *registration;
    struct dv_err err;
};

static void on_failed(struct dv_task *task)
{
    struct failed *failed = DV_CONTAINER(task, struct failed, task);
    struct dv_plugin_registration *registration = failed->registration;
    struct dv_err err = failed->err;

    free(failed);
    registration->done(registration, &err);
}

static void fail_later(struct dv_device_manager *devices,
                       struct dv_plugin_registration *registration, const struct dv_err *err)
{
    struct failed *failed = DV_ALLOC(struct failed);

    failed->registration = registration;
    failed->err = *err;
    dv_task_post(&failed->task, devices->loop, on_failed);
}

static void cancel(void *ctx, struct dv_plugin_registration *registration)
{
    (void)ctx;
    if (registration->priv)
        dv_endpoint_stop(registration->priv, "the plugin's socket is gone");
}

static void deregister(void *ctx, const struct dv_plugin_info *info)
{
    struct dv_device_manager *devices = ctx;
    struct dv_endpoint *endpoint = dv_endpoint_find(devices, info->name, info->endpoint);

    if (endpoint)
        dv_endpoint_stop(endpoint, "the plugin's socket is gone");
}

struct dv_plugin_handler dv_device_manager_handler(struct dv_device_manager *devices)
{
    return (struct dv_plugin_handler){
        .type = DV_STR("DevicePlugin"),
        .ctx = devices,
        .validate = validate,
        .start = start,
        .cancel = cancel,
        .deregister = deregister,
    };
}
