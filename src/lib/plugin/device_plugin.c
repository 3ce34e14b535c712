#include "lib/plugin/device_plugin.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "http2/http2.h"
#include "lib/common/driver.h"
#include "lib/common/lib_call.h"
#include "lib/common/lib_name.h"
#include "lib/plugin/plugin_devices.h"

/* The largest message that a kubelet receives: the default of gRPC in Go. */
#define AGENT_BYTES_MAX (4u << 20)

/* ---- what the driver and the log are told ---- */

static void tell(struct dv_lib_way *way, enum davit_event_kind kind, const struct dv_err *err,
                 uint64_t retry_ms)
{
    const struct davit_device_plugin_options *options = &way->plugin->options;
    struct davit_event event = {
        .kind = kind,
        .through = way->through,
        .socket = way->path.p, /* made with a NUL */
        .retry_ms = retry_ms,
    };

    if (err)
        (void)dv_lib_fail(&event.error, err);
    if (options->event)
        options->event(options->ctx, &event); /* last: the callee may close the plugin */
}

static void on_serving(void *ctx)
{
    struct dv_lib_way *way = ctx;
    struct davit_device_plugin *plugin = way->plugin;

    dv_log(DV_LOG_INFO, "driver: serving", DV_F_STR("resource", plugin->resource),
           DV_F_STR("socket", way->path));
    if (way->through == DAVIT_REGISTER_CLASSIC)
        dv_lib_classic_set_serving(&plugin->classic, true);
    tell(way, DAVIT_SERVING, NULL, 0);
}

static void on_failed(void *ctx, const struct dv_err *err, uint64_t retry_ms)
{
    struct dv_lib_way *way = ctx;

    dv_log(DV_LOG_WARN, "driver: failed; trying again", DV_F_STR("resource", way->plugin->resource),
           DV_F_STR("socket", way->path), DV_F_ERR(err), DV_F_U64("retry_ms", retry_ms));
    tell(way, DAVIT_PROBLEM, err, retry_ms);
}

static void on_registered(void *ctx)
{
    struct dv_lib_way *way = ctx;

    dv_log(DV_LOG_INFO, "driver: registered", DV_F_STR("resource", way->plugin->resource),
           DV_F_STR("socket", way->path));
    tell(way, DAVIT_REGISTERED, NULL, 0);
}

static void on_refused(void *ctx, const struct dv_err *err)
{
    struct dv_lib_way *way = ctx;

    dv_log(DV_LOG_WARN, "driver: not registered; the agent tries again",
           DV_F_STR("resource", way->plugin->resource), DV_F_STR("socket", way->path),
           DV_F_ERR(err));
    tell(way, DAVIT_PROBLEM, err, 0);
}

static void on_lost(void *ctx, const struct dv_err *err)
{
    struct dv_lib_way *way = ctx;

    dv_log(DV_LOG_INFO, "driver: registering again", DV_F_STR("resource", way->plugin->resource),
           DV_F_STR("socket", way->path), DV_F_ERR(err));
    tell(way, DAVIT_LOST, err, 0);
}

/* Our socket file has vanished: streams and registrations on it do not count any more. */
static void on_socket_lost(void *ctx, const struct dv_err *err)
{
    struct dv_lib_way *way = ctx;

    dv_lib_streams_end(&way->streams, err);
    if (way->through == DAVIT_REGISTER_CLASSIC)
        dv_lib_classic_set_serving(&way->plugin->classic, false);
    on_lost(way, err);
}

static void on_watched(void *ctx)
{
    struct dv_lib_way *way = ctx;

    if (way->through == DAVIT_REGISTER_CLASSIC)
        dv_lib_classic_watched(&way->plugin->classic);
    else
        dv_lib_registry_watched(&way->plugin->registry);
}

static void on_dir_changed(void *ctx, dv_str name)
{
    struct dv_lib_way *way = ctx;

    dv_lib_socket_check(&way->socket, name);
    if (way->through == DAVIT_REGISTER_CLASSIC && !way->plugin->rpcs.is_closing)
        dv_lib_classic_check(&way->plugin->classic, name);
}

/* ---- opening ---- */

static void open_way(struct dv_lib_way *way, dv_str dir, size_t n_services)
{
    struct davit_device_plugin *plugin = way->plugin;
    struct dv_lib_socket_options options = {
        .path = way->path,
        .services = way->services,
        .n_services = n_services,
        .serving = on_serving,
        .lost = on_socket_lost,
        .failed = on_failed,
        .ctx = way,
    };

    way->services[0] = (struct dv_service){dv_lib_device_methods, dv_lib_n_device_methods, way};
    way->services[1] =
        (struct dv_service){dv_lib_registry_methods, dv_lib_n_registry_methods, &plugin->registry};
    dv_lib_streams_init(&way->streams, on_watched, way);
    dv_lib_dir_open(&way->dir, &plugin->parts, dir, on_dir_changed, way);
    dv_lib_socket_open(&way->socket, &plugin->parts, &options);
}

static bool open_classic(struct davit_device_plugin *plugin, struct dv_err *err)
{
    const struct davit_device_plugin_options *from = &plugin->options;
    struct dv_lib_way *way = &plugin->classic_way;
    dv_str dir = dv_str_from_c(from->socket_dir);
    struct dv_lib_classic_options options = {
        .resource = plugin->resource,
        .needs_prestart = from->prestart != NULL,
        .has_preference = from->prefer != NULL,
        .streams = &way->streams,
        .registered = on_registered,
        .failed = on_failed,
        .lost = on_lost,
        .ctx = way,
    };

    if (!dv_lib_socket_path(dir, dv_str_from_c(from->socket_name), plugin->resource, plugin->arena,
                            &way->path, err) ||
        !dv_lib_agent_path(dir, plugin->arena, &options.agent_path, err))
        return false;
    options.endpoint = dv_lib_file_name(way->path);
    way->through = DAVIT_REGISTER_CLASSIC;
    dv_lib_classic_open(&plugin->classic, &plugin->parts, &options);
    open_way(way, dir, 1);
    return true;
}

static bool open_watcher(struct davit_device_plugin *plugin, struct dv_err *err)
{
    static const char *const versions[] = {"v1beta1"};
    const struct davit_device_plugin_options *from = &plugin->options;
    struct dv_lib_way *way = &plugin->watcher_way;
    dv_str dir = dv_str_from_c(from->registry_dir);
    struct dv_lib_registry_options options = {
        .type = DV_STR("DevicePlugin"),
        .name = plugin->resource,
        .versions = versions,
        .n_versions = DV_COUNT(versions),
        .socket = &way->socket,
        .streams = &way->streams,
        .registered = on_registered,
        .refused = on_refused,
        .lost = on_lost,
        .ctx = way,
    };

    if (!dv_lib_registry_path(dir, dv_str_from_c(from->socket_name), plugin->resource,
                              plugin->arena, &way->path, err))
        return false;
    way->through = DAVIT_REGISTER_WATCHER;
    dv_lib_registry_open(&plugin->registry, &plugin->parts, &options);
    open_way(way, dir, 2);
    return true;
}

static const char *copy_text(const char *text, const char *otherwise, struct dv_arena *arena)
{
    return dv_str_to_c(dv_str_from_c(text ? text : otherwise), arena);
}

static void copy_options(struct davit_device_plugin *plugin,
                         const struct davit_device_plugin_options *from)
{
    struct davit_device_plugin_options *options = &plugin->options;

    *options = *from;
    options->resource = copy_text(from->resource, "", plugin->arena);
    options->socket_dir = copy_text(from->socket_dir, DAVIT_DEVICE_PLUGINS_DIR, plugin->arena);
    options->socket_name = copy_text(from->socket_name, "", plugin->arena);
    options->registry_dir =
        copy_text(from->registry_dir, DAVIT_PLUGINS_REGISTRY_DIR, plugin->arena);
    if (options->register_through == 0)
        options->register_through = DAVIT_REGISTER_CLASSIC;
    plugin->resource = dv_str_from_c(options->resource);
}

static bool check_options(const struct davit_device_plugin *plugin, struct dv_err *err)
{
    unsigned known = DAVIT_REGISTER_CLASSIC | DAVIT_REGISTER_WATCHER;

    if (!dv_lib_resource_check(plugin->resource, err))
        return false;
    if (plugin->options.register_through & ~known)
        return dv_fail(err, DV_INVALID_ARGUMENT, "register_through: no such way in 0x%x",
                       plugin->options.register_through);
    if (!plugin->options.allocate)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a device plugin needs an allocate callback");
    return true;
}

static void free_plugin(struct dv_lib_parts *parts)
{
    struct davit_device_plugin *plugin = DV_CONTAINER(parts, struct davit_device_plugin, parts);

    dv_lib_streams_fini(&plugin->classic_way.streams);
    dv_lib_streams_fini(&plugin->watcher_way.streams);
    dv_h2_msg_unref(plugin->list);
    dv_lib_devices_free(plugin->devices);
    dv_link_remove(&plugin->link);
    dv_arena_free(plugin->arena);
    free(plugin);
}

struct davit_device_plugin *
davit_device_plugin_open(struct davit_driver *driver,
                         const struct davit_device_plugin_options *options,
                         struct davit_error *error)
{
    struct davit_device_plugin *plugin = DV_ALLOC(struct davit_device_plugin);
    struct dv_err err;
    bool is_good;

    plugin->driver = driver;
    plugin->arena = dv_arena_new();
    plugin->classic_way.plugin = plugin->watcher_way.plugin = plugin;
    dv_list_push(&driver->plugins, &plugin->link);
    dv_lib_rpcs_init(&plugin->rpcs);
    dv_lib_parts_init(&plugin->parts, driver->loop, free_plugin);
    copy_options(plugin, options);
    is_good = check_options(plugin, &err);
    if (is_good && plugin->options.register_through & DAVIT_REGISTER_CLASSIC)
        is_good = open_classic(plugin, &err);
    if (is_good && plugin->options.register_through & DAVIT_REGISTER_WATCHER)
        is_good = open_watcher(plugin, &err);
    if (is_good)
        return plugin;
    davit_device_plugin_close(plugin);
    (void)dv_lib_fail(error, &err);
    return NULL;
}

/* ---- closing ---- */

static void close_way(struct dv_lib_way *way)
{
    struct dv_err err;

    if (way->through == 0)
        return;
    (void)dv_fail(&err, DV_UNAVAILABLE, "the device plugin is closing");
    dv_lib_streams_end(&way->streams, &err);
    dv_lib_dir_close(&way->dir);
    dv_lib_socket_close(&way->socket);
}

void davit_device_plugin_close(struct davit_device_plugin *plugin)
{
    if (!plugin || plugin->rpcs.is_closing)
        return;
    dv_task_cancel(&plugin->push_task);
    dv_lib_rpcs_close(&plugin->rpcs, "the device plugin");
    dv_lib_classic_close(&plugin->classic);
    dv_lib_registry_close(&plugin->registry);
    close_way(&plugin->classic_way);
    close_way(&plugin->watcher_way);
    dv_lib_part_closed(&plugin->parts);
}

/* ---- devices ---- */

static void push(struct davit_device_plugin *plugin)
{
    struct dv_h2_msg *list = dv_lib_devices_encode(plugin->devices);
    size_t n = dv_h2_msg_size(list);

    if (plugin->list && dv_h2_msg_size(plugin->list) == n &&
        memcmp(dv_h2_msg_data(plugin->list), dv_h2_msg_data(list), n) == 0) {
        dv_h2_msg_unref(list); /* nothing that differs */
        return;
    }
    if (n > AGENT_BYTES_MAX)
        dv_log(DV_LOG_WARN, "driver: the list of devices is longer than a kubelet takes",
               DV_F_STR("resource", plugin->resource), DV_F_U64("bytes", n),
               DV_F_U64("max", AGENT_BYTES_MAX));
    dv_h2_msg_unref(plugin->list);
    plugin->list = list;
    if (plugin->classic_way.through)
        dv_lib_streams_push(&plugin->classic_way.streams, list);
    if (plugin->watcher_way.through)
        dv_lib_streams_push(&plugin->watcher_way.streams, list);
}

static void on_push(struct dv_task *task)
{
    push(DV_CONTAINER(task, struct davit_device_plugin, push_task));
}

bool davit_device_plugin_set_devices(struct davit_device_plugin *plugin,
                                     const struct davit_device *devices, size_t n_devices,
                                     struct davit_error *error)
{
    struct dv_err err;
    struct dv_lib_devices *made = dv_lib_devices_new(devices, n_devices, &err);

    if (!made)
        return dv_lib_fail(error, &err);
    dv_lib_devices_free(plugin->devices);
    plugin->devices = made;
    dv_task_post(&plugin->push_task, plugin->driver->loop, on_push);
    return true;
}

bool davit_device_plugin_set_health(struct davit_device_plugin *plugin, const char *id,
                                    bool is_healthy, struct davit_error *error)
{
    struct dv_err err;

    if (!plugin->devices)
        (void)dv_fail(&err, DV_NOT_FOUND, "no device \"%s\": no list was set yet", id ? id : "");
    else if (dv_lib_devices_set_health(plugin->devices, dv_str_from_c(id), is_healthy, &err)) {
        dv_task_post(&plugin->push_task, plugin->driver->loop, on_push);
        return true;
    }
    return dv_lib_fail(error, &err);
}
