/* plugin_view.c - makes the views of plugins, and tells the owner when they change. */
#include "base/list.h"
#include "base/map.h"
#include "plugin/plugin.h"
#include "plugin/plugins.h"

const char *dv_plugin_state_name(enum dv_plugin_state state)
{
    static const char *const names[] = {
        [DV_PLUGIN_SEEN] = "seen",
        [DV_PLUGIN_CONNECTING] = "connecting",
        [DV_PLUGIN_REGISTERING] = "registering",
        [DV_PLUGIN_REGISTERED] = "registered",
        [DV_PLUGIN_FAILING] = "failing",
        [DV_PLUGIN_GONE] = "gone",
    };

    return names[state];
}

static enum dv_plugin_state get_state(const struct dv_plugin_entry *entry)
{
    const struct dv_plugin_socket *socket = &entry->socket;

    if (!socket->desired)
        return DV_PLUGIN_GONE;
    if (socket->running == socket->desired)
        return dv_plugin_operation_is_registering(entry->operation) ? DV_PLUGIN_REGISTERING
                                                                    : DV_PLUGIN_CONNECTING;
    if (!socket->running && dv_plugin_is_actual(socket, socket->desired))
        return DV_PLUGIN_REGISTERED;
    return socket->backoff_ms > 0 ? DV_PLUGIN_FAILING : DV_PLUGIN_SEEN;
}

static void get_view(const struct dv_plugin_entry *entry, struct dv_plugin_view *view)
{
    *view = (struct dv_plugin_view){
        .info = &entry->info,
        .state = get_state(entry),
        .last_err = entry->last_err,
        .last_err_wall_ns = entry->last_err_wall_ns,
        .n_attempts = entry->n_attempts,
        .next_retry_ms =
            entry->socket.desired && dv_timer_is_set(&entry->timer) ? entry->timer.at_ms : 0,
        .seen_wall_ns = entry->socket.desired_wall_ns,
        .is_desired = entry->socket.desired != 0,
        .is_actual = entry->socket.actual != 0,
    };
}

static void on_tell(struct dv_task *task)
{
    struct dv_plugins *plugins = DV_CONTAINER(task, struct dv_plugins, tell_task);
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &plugins->to_tell);
    while ((link = dv_list_shift(&now)) != NULL) {
        struct dv_plugin_view view;

        get_view(DV_CONTAINER(link, struct dv_plugin_entry, to_tell), &view);
        /* The callback may close the plugins, and then the rest is not told. */
        if (!plugins->is_closing)
            plugins->changed(plugins->ctx, &view);
    }
}

void dv_plugin_tell_later(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;

    if (!plugins->changed || plugins->is_closing || dv_link_is_in(&entry->to_tell))
        return;
    dv_list_push(&plugins->to_tell, &entry->to_tell);
    dv_task_post(&plugins->tell_task, plugins->loop, on_tell);
}

bool dv_plugins_next(const struct dv_plugins *plugins, size_t *at, struct dv_plugin_view *view)
{
    const struct dv_map_entry *next = dv_map_next(&plugins->world.sockets, at);

    if (!next)
        return false;
    get_view(DV_CONTAINER(next->value, struct dv_plugin_entry, socket), view);
    return true;
}

struct dv_plugins_status dv_plugins_status(const struct dv_plugins *plugins)
{
    struct dv_plugins_status status = {
        .has_scanned = dv_plugin_watcher_has_scanned(plugins->watcher),
        .err = *dv_plugin_watcher_err(plugins->watcher),
    };
    struct dv_plugin_view view;

    for (size_t at = 0; dv_plugins_next(plugins, &at, &view);) {
        status.n_desired += view.is_desired ? 1 : 0;
        status.n_actual += view.is_actual ? 1 : 0;
    }
    return status;
}
