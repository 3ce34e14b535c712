/* plugins.h - the insides of struct dv_plugins, which plugins.c, reconcile.c and plugin_view.c
 * share. */
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

/* Nobody has looked; nobody answers, or the kernel does not tell. */
#define DV_PLUGIN_LISTENER_UNKNOWN ((pid_t)-1)
#define DV_PLUGIN_LISTENER_NONE ((pid_t)0)

struct dv_plugin_entry {
    struct dv_plugin_socket socket;
    struct dv_plugins *plugins;
    struct dv_plugin_operation *operation; /* NULL: none runs */
    struct dv_plugin_operation_owner owner;
    struct dv_link in_running;
    uint64_t start_ms;     /* of the operation */
    pid_t listener;        /* DV_PLUGIN_LISTENER_*, or who it was when the socket was last seen */
    bool has_given_way;    /* the operation was told to */
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
    struct dv_list parked;    /* likewise, while their listener has its share */
    struct dv_list running;   /* entries with an operation, the oldest first */
    struct dv_timer turn_timer;
    bool takes_oldest;      /* the next of a queue: its oldest, or its newest */
    struct dv_list to_tell; /* entries whose change has not been told */
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
/* Looks again whether there is room, in the loop's next turn. */
void dv_plugin_decide_soon(struct dv_plugins *plugins);

/* turns.c: whose turn it is. */
/* Puts the entry, which is to be registered, into its queue; nothing when it is in one. */
void dv_plugin_queue(struct dv_plugin_entry *entry);
/* Starts what there is room for, by `start`; those that take long make room for those that wait. */
void dv_plugin_take_turns(struct dv_plugins *plugins, void (*start)(struct dv_plugin_entry *entry));
/* An operation of the entry has ended: another one of its listener may follow. */
void dv_plugin_end_turn(struct dv_plugin_entry *entry);

/* plugin_view.c */
void dv_plugin_tell_later(struct dv_plugin_entry *entry);

/* plugins.c */
void dv_plugin_check_closed(struct dv_plugins *plugins);

#endif
