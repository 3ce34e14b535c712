/* device_plugins.c - plugins connect and disconnect; what is known of their resources. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/state/device_state.h"
#include "pb/pb.h"

bool dv_device_plugin_options_decode(dv_str bytes, struct dv_device_plugin_options *options,
                                     struct dv_err *err)
{
    struct dv_device_plugin_options read = {0};
    struct dv_pb_reader reader;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return dv_wrap(err, "device plugin options");
        if (field.tag == DV_PB_TAG(1, DV_PB_VARINT))
            read.needs_pre_start = field.value != 0;
        else if (field.tag == DV_PB_TAG(2, DV_PB_VARINT))
            read.has_preference = field.value != 0;
    }
    *options = read;
    return true;
}

/* -- Connections ---------------------------------------------------------------------------- */

static struct dv_device_plugin *find_plugin(const struct dv_device_resource *resource,
                                            dv_str socket)
{
    struct dv_link *link;

    DV_LIST_EACH (&resource->plugins, link) {
        struct dv_device_plugin *plugin = DV_CONTAINER(link, struct dv_device_plugin, in_resource);

        if (dv_str_eq(plugin->socket, socket))
            return plugin;
    }
    return NULL;
}

static bool check_connect(const struct dv_device_state *state, dv_str name, dv_str socket,
                          struct dv_err *err)
{
    const struct dv_device_resource *resource = dv_device_resource_find(state, name);

    if (!dv_device_name_check(name, err))
        return false;
    if (!resource && state->resources.n >= DV_DEVICE_RESOURCES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%.*s: more than %u resources", DV_FMT(name),
                       DV_DEVICE_RESOURCES_MAX);
    if (resource && find_plugin(resource, socket))
        return dv_fail(err, DV_ALREADY_EXISTS, "device plugin already connected: %.*s",
                       DV_FMT(socket));
    if (resource && resource->n_plugins >= DV_DEVICE_PLUGINS_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%.*s: more than %u plugins", DV_FMT(name),
                       DV_DEVICE_PLUGINS_MAX);
    return true;
}

bool dv_device_connect(struct dv_device_state *state, dv_str name, dv_str socket,
                       const struct dv_device_plugin_options *options, struct dv_err *err)
{
    struct dv_device_resource *resource;
    struct dv_device_plugin *plugin;

    if (!check_connect(state, name, socket, err))
        return false;
    resource = dv_device_resource_ensure(state, name);
    plugin = dv_alloc(sizeof(*plugin) + socket.n);
    memcpy(plugin + 1, socket.p ? socket.p : "", socket.n);
    plugin->socket = (dv_str){(const char *)(plugin + 1), socket.n};
    plugin->options = *options;
    dv_list_push(&resource->plugins, &plugin->in_resource);
    resource->n_plugins++;
    resource->epoch = ++state->epoch;
    resource->is_stopped = resource->is_listed = false;
    resource->has_options = true;
    resource->options = *options;
    return true;
}

bool dv_device_disconnect(struct dv_device_state *state, dv_str name, dv_str socket,
                          uint64_t now_ns)
{
    struct dv_device_resource *resource = dv_device_resource_find(state, name);
    struct dv_device_plugin *plugin = resource ? find_plugin(resource, socket) : NULL;

    if (!plugin)
        return false;
    dv_link_remove(&plugin->in_resource);
    free(plugin);
    resource->n_plugins--;
    plugin = dv_device_resource_plugin(resource);
    if (plugin) {
        resource->options = plugin->options;
        return false;
    }
    resource->is_stopped = true;
    resource->stopped_ns = now_ns;
    resource->has_unhealthy = true; /* and `has_healthy` stays as it is */
    if (resource->sets == DV_DEVICE_SETS_LIVE)
        resource->sets = DV_DEVICE_SETS_DOWN;
    return true;
}

void dv_device_resource_restore(struct dv_device_state *state, dv_str name, uint64_t now_ns)
{
    struct dv_device_resource *resource = dv_device_resource_ensure(state, name);

    resource->has_healthy = resource->has_unhealthy = true;
    resource->sets = DV_DEVICE_SETS_EMPTY;
    resource->is_stopped = true;
    resource->stopped_ns = now_ns;
    resource->has_options = false;
}

/* -- What is known -------------------------------------------------------------------------- */

static void describe(const struct dv_device_resource *resource,
                     struct dv_device_resource_info *info)
{
    const struct dv_device_plugin *plugin = dv_device_resource_plugin(resource);
    bool is_live = resource->sets == DV_DEVICE_SETS_LIVE;

    *info = (struct dv_device_resource_info){
        .name = resource->name,
        .plugin = DV_DEVICE_NO_PLUGIN,
        .socket = plugin ? plugin->socket : DV_STR_NONE,
        .is_known = dv_device_resource_is_known(resource),
        .n_plugins = resource->n_plugins,
        .epoch = resource->n_plugins > 0 ? resource->epoch : 0,
        .n_devices = resource->n_listed,
        .n_healthy = dv_device_resource_n_healthy(resource),
        .n_free = is_live ? resource->n_free : 0,
        .n_allocated = resource->n_taken,
    };
    if (resource->has_options)
        info->options = resource->options;
    if (plugin) {
        info->plugin = resource->is_listed ? DV_DEVICE_SERVING : DV_DEVICE_NOT_LISTED;
    } else if (resource->is_stopped) {
        info->plugin = DV_DEVICE_STOPPED;
        info->stopped_ns = resource->stopped_ns;
        info->is_awaited = !resource->has_options;
    }
}

bool dv_device_find(const struct dv_device_state *state, dv_str name,
                    struct dv_device_resource_info *info)
{
    const struct dv_device_resource *resource = dv_device_resource_find(state, name);

    if (resource)
        describe(resource, info);
    return resource != NULL;
}

size_t dv_device_resources(const struct dv_device_state *state, struct dv_arena *arena,
                           const struct dv_device_resource_info **infos)
{
    struct dv_device_resource **resources;
    size_t n = dv_device_resources_sorted(state, arena, &resources);
    struct dv_device_resource_info *v = DV_NEW_ARRAY(arena, struct dv_device_resource_info, n);

    for (size_t i = 0; i < n; i++)
        describe(resources[i], &v[i]);
    *infos = v;
    return n;
}
