/* plugins.c - opens the plugins with their rules, and closes them when all operations have
 * ended. */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "plugin/plugin.h"
#include "plugin/plugins.h"

static void copy_rules(struct dv_plugins *plugins, const struct dv_plugins_options *options)
{
    const struct dv_plugin_rules *rules = &options->rules;
    size_t n_roots = rules->n_endpoint_roots;
    const dv_str *roots = n_roots > 0 ? rules->endpoint_roots : &options->kubelet_dir;
    struct dv_plugin_handler *handlers =
        DV_NEW_ARRAY(plugins->arena, struct dv_plugin_handler, rules->n_handlers);
    dv_str *copies;

    n_roots = n_roots > 0 ? n_roots : 1;
    copies = DV_NEW_ARRAY(plugins->arena, dv_str, n_roots);
    for (size_t i = 0; i < n_roots; i++)
        copies[i] = dv_str_copy(roots[i], plugins->arena);
    for (size_t i = 0; i < rules->n_handlers; i++) {
        handlers[i] = rules->handlers[i];
        handlers[i].type = dv_str_copy(handlers[i].type, plugins->arena);
    }
    plugins->rules = *rules;
    plugins->rules.handlers = handlers;
    plugins->rules.endpoint_roots = copies;
    plugins->rules.n_endpoint_roots = n_roots;
}

static bool check_dir(dv_str dir, struct dv_err *err)
{
    if (!dv_str_starts_with(dir, DV_STR("/")) || dv_str_find_char(dir, '\0') < dir.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "kubelet directory \"%.*s\" is not an absolute path", DV_FMT(dir));
    return true;
}

struct dv_plugins *dv_plugins_open(struct dv_loop *loop, const struct dv_plugins_options *options,
                                   struct dv_err *err)
{
    dv_str dir = options->kubelet_dir;
    struct dv_plugins *plugins;

    if (!check_dir(dir, err))
        return NULL;
    /* The registry is appended with a slash of its own, and paths are compared as texts. */
    while (dv_str_ends_with(dir, DV_STR("/")))
        dir.n--;
    plugins = DV_ALLOC(struct dv_plugins);
    plugins->loop = loop;
    plugins->arena = dv_arena_new();
    plugins->changed = options->changed;
    plugins->ctx = options->ctx;
    plugins->watcher_owner =
        (struct dv_plugin_watcher_owner){dv_plugin_on_found, dv_plugin_on_lost};
    copy_rules(plugins, options);
    dv_plugin_world_init(&plugins->world);
    dv_list_init(&plugins->to_decide);
    dv_list_init(&plugins->newcomers);
    dv_list_init(&plugins->retries);
    dv_list_init(&plugins->parked);
    dv_list_init(&plugins->running);
    dv_list_init(&plugins->to_tell);
    plugins->watcher = dv_plugin_watcher_open(
        loop, dv_str_printf(plugins->arena, "%.*s/plugins_registry", DV_FMT(dir)),
        &plugins->watcher_owner, err);
    if (plugins->watcher)
        return plugins;
    dv_arena_free(plugins->arena);
    free(plugins);
    return NULL;
}

/* Frees the plugins once nothing is left that could call back: the watcher, and every operation. It
 * is a task, because the last of them ends within its own callback. */
static void on_close(struct dv_task *task)
{
    struct dv_plugins *plugins = DV_CONTAINER(task, struct dv_plugins, close_task);
    dv_closed_fn *closed = plugins->closed;
    void *ctx = plugins->closed_ctx;
    const struct dv_map_entry *entry;

    if (plugins->watcher || plugins->n_running > 0)
        return;
    for (size_t at = 0; (entry = dv_map_next(&plugins->world.sockets, &at)) != NULL;)
        dv_plugin_entry_free(DV_CONTAINER(entry->value, struct dv_plugin_entry, socket));
    dv_plugin_world_fini(&plugins->world);
    dv_arena_free(plugins->arena);
    free(plugins);
    if (closed)
        closed(ctx);
}

void dv_plugin_check_closed(struct dv_plugins *plugins)
{
    dv_task_post(&plugins->close_task, plugins->loop, on_close);
}

static void on_watcher_closed(void *ctx)
{
    struct dv_plugins *plugins = ctx;

    plugins->watcher = NULL;
    dv_plugin_check_closed(plugins);
}

void dv_plugins_close(struct dv_plugins *plugins, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    assert(!plugins->is_closing);
    plugins->is_closing = true;
    plugins->closed = closed;
    plugins->closed_ctx = ctx;
    /* Nothing may be started or told from here on; only cancelled operations still end. */
    dv_task_cancel(&plugins->decide_task);
    dv_task_cancel(&plugins->tell_task);
    dv_timer_cancel(&plugins->turn_timer);
    for (size_t at = 0; (entry = dv_map_next(&plugins->world.sockets, &at)) != NULL;) {
        struct dv_plugin_entry *one = DV_CONTAINER(entry->value, struct dv_plugin_entry, socket);

        dv_timer_cancel(&one->timer);
        if (one->operation)
            dv_plugin_operation_cancel(one->operation);
    }
    dv_plugin_watcher_close(plugins->watcher, on_watcher_closed, plugins);
}
