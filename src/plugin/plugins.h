/* plugins.h - struct dv_plugins, which plugins.c, reconcile.c, turns.c and plugin_view.c share. */
#ifndef DV_PLUGIN_PLUGINS_H
#define DV_PLUGIN_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "plugin/operation.h"
#include "plugin/plugin.h"
#include "plugin/plugin_state.h"
#include "plugin/watcher.h"

struct dv_arena;

/* In place of a process: nobody has looked who listens; nobody listens, or the kernel does not tell
 * who. */
#define DV_PLUGIN_LISTENER_UNKNOWN ((pid_t)-1)
#define DV_PLUGIN_LISTENER_NONE ((pid_t)0)

struct dv_plugin_entry {
    struct dv_plugin_socket socket;
    struct dv_plugins *plugins;
    struct dv_plugin_operation *operation; /* NULL: none runs */
    struct dv_plugin_operation_owner owner;
    struct dv_link in_running;
    uint64_t start_ms;     /* when the operation began */
    pid_t listener;        /* DV_PLUGIN_LISTENER_*, or who it was when the socket was last seen */
    bool has_given_way;    /* the operation was told to make room for others */
    bool is_retry;         /* the operation is for a plugin that failed before */
    struct dv_timer timer; /* when to decide again */
    struct dv_link to_decide;
    struct dv_link in_queue;
    struct dv_link to_tell;
    struct dv_arena *arena; /* holds info */
    struct dv_plugin_info info;
    struct dv_err last_err;
    uint64_t last_err_wall_ns;
    uint64_t n_attempts;
    char path_text[];
};

struct dv_plugins {
    struct dv_loop *loop;
    struct dv_plugin_watcher *watcher; /* NULL: it is closed */
    struct dv_plugin_watcher_owner watcher_owner;
    struct dv_plugin_world world;
    struct dv_plugin_rules rules;
    void (*changed)(void *ctx, const struct dv_plugin_view *view);
    void *ctx;
    struct dv_list to_decide; /* entries for which a decision is due */
    struct dv_list newcomers; /* entries that wait for their turn the first time */
    struct dv_list retries;   /* entries that wait for their turn after a failure */
    struct dv_list parked;    /* entries that wait because their listener has its share */
    struct dv_list running;   /* entries with an operation, the oldest first */
    struct dv_timer turn_timer;
    bool takes_oldest;      /* take the oldest of a queue next, not the newest */
    struct dv_list to_tell; /* entries whose change has not been told yet */
    struct dv_task decide_task;
    struct dv_task tell_task;
    struct dv_task close_task;
    size_t n_running;
    size_t n_retrying; /* how many of them retry */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    struct dv_arena *arena; /* holds rules */
};

/* reconcile.c: turns the watcher's news into desires, decisions into operations, and their ends
 * into what is registered. */
bool dv_plugin_on_found(struct dv_plugin_watcher_owner *owner, dv_str path);
void dv_plugin_on_lost(struct dv_plugin_watcher_owner *owner, dv_str path);
void dv_plugin_entry_free(struct dv_plugin_entry *entry);
/* Checks in the loop's next turn whether there is room for more. */
void dv_plugin_decide_soon(struct dv_plugins *plugins);

/* turns.c: decides whose turn it is. */
/* Puts the entry, which is to be registered, into its queue; does nothing when it is in one. */
void dv_plugin_queue(struct dv_plugin_entry *entry);
/* Calls `start` for as many entries as there is room for; operations that take long make room for
 * entries that wait. */
void dv_plugin_take_turns(struct dv_plugins *plugins, void (*start)(struct dv_plugin_entry *entry));
/* An operation of the entry has ended, so another one of its listener may follow. */
void dv_plugin_end_turn(struct dv_plugin_entry *entry);

/* plugin_view.c */
void dv_plugin_tell_later(struct dv_plugin_entry *entry);

/* plugins.c */
void dv_plugin_check_closed(struct dv_plugins *plugins);

#endif
