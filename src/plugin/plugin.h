/* plugin.h - plugins that show up as sockets under <kubelet-dir>/plugins_registry: found, asked who
 * they are, handed to the handler for their type, told what came of it, taken back when they go.
 *
 *     watcher --> desired --> what differs? --> one operation a socket -----------> actual
 *     (inotify,               (at every         connect, GetInfo, validate,
 *      scans)                  change)          register, NotifyRegistrationStatus
 *
 * All is in memory: after a restart the scan finds every socket, and every plugin is registered
 * again. A plugin that fails is tried again for ever, with growing pauses, and holds up no other.
 *
 * Where this differs from the kubelet on purpose (docs/differences.md):
 *   - Changes are acted upon when they happen, not once a second. What is gone is deregistered
 *     before anything is registered, and one socket is registered once in a second at most.
 *   - A socket that is renamed away counts as removed; so does one whose directory is moved, and
 *     one that another kind of file takes the place of.
 *   - The same socket seen twice is one sighting, not a reason to register again.
 *   - An operation whose socket goes away is given up at once; that does not count as a failure.
 *   - Lost inotify events lead to a new scan; a registry directory that vanishes is made again.
 *   - At most DV_PLUGIN_OPERATIONS_MAX registrations run at a time; newcomers go first, one
 *     listening process has a share of them, and who is slow makes room for who waits (turns.c).
 *   - PluginInfo is held to limits, and an endpoint must lie inside the kubelet's directory: no
 *     "..", no symlink that leads out. `--strict` (accepts_any_endpoint) takes every endpoint that
 *     a socket address can hold, wherever it is, as the kubelet does. */
#ifndef DV_PLUGIN_H
#define DV_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_buf;
struct dv_grpc_observer;
struct dv_guard;
struct dv_plugins;
struct dv_policy_peer;

/* What a plugin says about itself. */
struct dv_plugin_info {
    dv_str socket;   /* where it was asked */
    dv_str type;     /* "DevicePlugin", "DRAPlugin" */
    dv_str name;     /* name of the resource or the driver; may be empty */
    dv_str endpoint; /* socket of its service, which need not be there yet; never empty */
    const dv_str *versions;
    size_t n_versions;
    const struct dv_policy_peer *peer; /* who listens on the socket; NULL: nobody looked */
};

/* ---- handlers: what a type of plugin is registered with ---- */

/* One registration; it is lent to the handler until it has called `done`. */
struct dv_plugin_registration {
    /* The handler calls this exactly once, never from within `start`. err is NULL on success;
     * otherwise its text goes to the plugin. */
    void (*done)(struct dv_plugin_registration *registration, const struct dv_err *err);
    const struct dv_plugin_info *info; /* lives until `done` */
    uint64_t deadline_ms;              /* on the loop's clock; `cancel` is called then */
    void *priv;                        /* for the handler's own use */
};

/* For one socket the calls come in this order and never overlap:
 *
 *     (validate [start])* validate start --> done: ok --> deregister --> from the beginning
 *
 * A failed `start` is followed by no `deregister`; a good one is, when the socket goes away or is
 * replaced, or when the plugin cannot be told. Two sockets may give the same name or endpoint. */
struct dv_plugin_handler {
    dv_str type;
    void *ctx;
    /* Checks the info without any effect. The error's text goes to the plugin; a text that is too
     * long for an error goes into `text` as well, which is sent instead. */
    bool (*validate)(void *ctx, const struct dv_plugin_info *info, struct dv_buf *text,
                     struct dv_err *err);
    /* Starts to register; the plugin may be registered already and have come back. */
    void (*start)(void *ctx, struct dv_plugin_registration *registration);
    /* The socket is gone, or the deadline has come: `done` must still run, soon. A second cancel,
     * and one that comes shortly before `done`, must do no harm. */
    void (*cancel)(void *ctx, struct dv_plugin_registration *registration);
    /* Takes back what was registered with this info. The plugin counts as gone when this returns;
     * closing its connection may take longer. */
    void (*deregister)(void *ctx, const struct dv_plugin_info *info);
};

/* ---- what can be seen ---- */

enum dv_plugin_state {
    DV_PLUGIN_SEEN,        /* waits for its turn */
    DV_PLUGIN_CONNECTING,  /* until its info is known and found good */
    DV_PLUGIN_REGISTERING, /* the handler is at work, or the plugin is being told */
    DV_PLUGIN_REGISTERED,
    DV_PLUGIN_FAILING, /* the last attempt failed; the next one comes at next_retry_ms */
    DV_PLUGIN_GONE,    /* the socket was removed; it is listed for a while */
};
const char *dv_plugin_state_name(enum dv_plugin_state state); /* "seen" */

/* What can be seen of one socket; borrowed until the loop's next turn. */
struct dv_plugin_view {
    const struct dv_plugin_info *info; /* all empty but `socket` until the plugin has told */
    enum dv_plugin_state state;
    struct dv_err last_err; /* DV_OK: there was none so far */
    uint64_t last_err_wall_ns;
    uint64_t n_attempts;    /* since it was seen */
    uint64_t next_retry_ms; /* on the loop's clock; 0: none is due */
    uint64_t seen_wall_ns;
    bool is_desired; /* counts in plugin_manager_total_plugins{state="desired_state_of_world"} */
    bool is_actual;  /* counts in {state="actual_state_of_world"} */
};

/* Sets `view` to the next socket at or after *at, and moves *at past it; false at the end. Start
 * with 0. */
bool dv_plugins_next(const struct dv_plugins *plugins, size_t *at, struct dv_plugin_view *view);

struct dv_plugins_status {
    size_t n_desired;
    size_t n_actual;
    bool has_scanned;  /* every socket that was there at the start has been seen */
    struct dv_err err; /* why the directory cannot be watched completely; DV_OK: it is */
};
struct dv_plugins_status dv_plugins_status(const struct dv_plugins *plugins);

/* ---- the whole ---- */

/* The limit of registrations at a time. Each holds a connection or two, for ten seconds at worst,
 * when a plugin accepts and is silent. It is far more than the plugins of any node, and an eighth
 * of the file descriptors that a process has by default. */
#define DV_PLUGIN_OPERATIONS_MAX 128u

/* The rules that every registration is checked by. */
struct dv_plugin_rules {
    const struct dv_plugin_handler *handlers;
    size_t n_handlers;
    const dv_str *endpoint_roots; /* where endpoints may be; none: kubelet_dir */
    size_t n_endpoint_roots;
    bool accepts_any_endpoint; /* --strict: an endpoint may be anywhere, as with the kubelet */
    /* Judges sockets and names; NULL: all are allowed; outlives the plugins. */
    struct dv_guard *guard;
    struct dv_grpc_observer *observer; /* of calls to plugins; may be NULL; outlives the plugins */
};

struct dv_plugins_options {
    dv_str kubelet_dir; /* absolute; plugins_registry in it is made if it is not there */
    struct dv_plugin_rules rules;
    /* A socket's view has changed. Never called from within a function of this header. May be
     * NULL. */
    void (*changed)(void *ctx, const struct dv_plugin_view *view);
    void *ctx;
};

/* Begins to watch. `options` and the handlers are copied. A directory that cannot be made or
 * watched is no failure: it is tried again, and the status says why. */
struct dv_plugins *dv_plugins_open(struct dv_loop *loop, const struct dv_plugins_options *options,
                                   struct dv_err *err);
/* The policy has changed: a plugin that is registered and not allowed any more is registered anew,
 * which is refused. */
void dv_plugins_judge_again(struct dv_plugins *plugins);
/* Cancels the registrations that are under way. Nothing is deregistered: the handlers close for
 * themselves, and must live until `closed` runs, which may be NULL. */
void dv_plugins_close(struct dv_plugins *plugins, dv_closed_fn *closed, void *ctx);

#endif
