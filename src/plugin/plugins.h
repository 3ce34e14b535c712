/* plugins.h - the insides of struct dv_plugins, which plugins.c, reconcile.c and view.c share. */
#ifndef DV_PLUGIN_PLUGINS_H
#define DV_PLUGIN_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "plugin/operation.h"
#include "plugin/plugin.h"
#include "plugin/state.h"
#include "plugin/watcher.h"

struct dv_arena;

struct dv_plugin_entry {
    struct dv_plugin_socket socket;
    struct dv_plugins *plugins;
    struct dv_plugin_operation *operation; /* NULL: none runs */
    struct dv_plugin_operation_owner owner;
    bool is_retry;         /* the operation is one of a plugin that failed before */
    struct dv_timer timer; /* when to decide again */
    struct dv_link to_decide;
    struct dv_link in_queue;
    struct dv_link to_tell;
    struct dv_arena *arena; /* of info */
    struct dv_plugin_info info;
    struct dv_err last_err;
    uint64_t last_err_wall_ns;
    uint64_t n_attempts;
    char path_text[];
};

struct dv_plugins {
    struct dv_loop *loop;
    struct dv_plugin_watcher *watcher; /* NULL: closed */
    struct dv_plugin_watcher_owner watcher_owner;
    struct dv_plugin_world world;
    struct dv_plugin_rules rules;
    void (*changed)(void *ctx, const struct dv_plugin_view *view);
    void *ctx;
    struct dv_list to_decide; /* entries that something happened to */
    struct dv_list newcomers; /* wait for their turn */
    struct dv_list retries;   /* likewise, after those */
    struct dv_list to_tell;   /* entries whose change has not been told */
    struct dv_task decide_task;
    struct dv_task tell_task;
    struct dv_task close_task;
    size_t n_running;
    size_t n_retrying; /* of those */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    struct dv_arena *arena; /* of rules */
};

/* reconcile.c: the watcher's news become desires, decisions operations, their ends what is. */
bool dv_plugin_on_found(struct dv_plugin_watcher_owner *owner, dv_str path);
void dv_plugin_on_lost(struct dv_plugin_watcher_owner *owner, dv_str path);
void dv_plugin_entry_free(struct dv_plugin_entry *entry);

/* view.c */
void dv_plugin_tell_later(struct dv_plugin_entry *entry);

/* plugins.c */
void dv_plugin_check_closed(struct dv_plugins *plugins);

#endif
