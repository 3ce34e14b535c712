/* device_manager.h - device plugins on the loop: they register, list their devices, are asked to
 * allocate; and what they and the pods have is on the disk before anyone is told.
 *
 * The decisions are device.h's; here are sockets, calls, timers and the store. */
#ifndef DV_DEVICE_MANAGER_H
#define DV_DEVICE_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "device/device.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "plugin/plugin.h"
#include "store/store_saver.h"

struct dv_arena;
struct dv_device_manager;

struct dv_device_manager_options {
    dv_str kubelet_dir;     /* device-plugins in it is made if it is not there */
    struct dv_store *store; /* kept; outlives the manager */
    uint32_t table;         /* of the store, for this module alone */
    struct dv_guard *guard; /* of peers; NULL: all may; outlives the manager */
    /* Sees the calls to plugins and from them; may be NULL; outlives the manager. */
    struct dv_grpc_observer *observer;
    bool is_strict; /* does as the reference does, quirks included */
    /* Called when the devices of a resource, its plugin, or what is free has changed: at most once
     * a turn, and never from within a function of this header. May be NULL. */
    void (*changed)(void *ctx);
    /* Called when the health of devices that these pods hold has changed. May be NULL. */
    void (*pods_changed)(void *ctx, const dv_str *pod_uids, size_t n_pod_uids);
    /* Called when a call of Allocate has ended, well or not. May be NULL. */
    void (*allocated)(void *ctx, dv_str resource, uint64_t ns);
    /* Called when kubelet.sock was removed: err is NULL when it has been made anew, and otherwise
     * says why plugins cannot register. May be NULL. */
    void (*socket_remade)(void *ctx, const struct dv_err *err);
    void *ctx;
};

/* Loads what the store has, removes stale sockets, and serves Registration on
 * device-plugins/kubelet.sock. Blocks, so it is for the start of the daemon. DV_ALREADY_EXISTS:
 * another agent answers there. Pods are inactive and sources not ready until the caller says so on
 * the state. */
struct dv_device_manager *dv_device_manager_open(struct dv_loop *loop,
                                                 const struct dv_device_manager_options *options,
                                                 struct dv_err *err);
/* To be called when the policy has changed: plugins that may not serve any more are stopped. */
void dv_device_manager_judge_again(struct dv_device_manager *devices);
/* Ends runs with DV_CANCELLED before `closed` runs, which may be NULL. */
void dv_device_manager_close(struct dv_device_manager *devices, dv_closed_fn *closed, void *ctx);

/* The state that is decided on. A caller who changes it (pods become active or not) saves it. */
struct dv_device_state *dv_device_manager_state(struct dv_device_manager *devices);
/* For device plugins that register through the plugin watcher. */
struct dv_plugin_handler dv_device_manager_handler(struct dv_device_manager *devices);

/* Calls save->done when all that has changed is on the disk. */
void dv_device_manager_save(struct dv_device_manager *devices, struct dv_save *save);

/* One allocation, or one start of a container, embedded in the caller's struct: zeroed, with `done`
 * set. It is lent to this module until `done` has run. */
struct dv_device_run {
    /* err: NULL when the run is done and on the disk. Where has_failure is set, `failure` tells
     * what kind of error it is; other errors are the store's and the daemon's own. */
    void (*done)(struct dv_device_run *run, const struct dv_err *err);
    bool has_failure;
    enum dv_device_failure failure;
    bool has_asked; /* a plugin was called */
    /* Called before each call of Allocate: whether the container may have these devices. May be
     * NULL. If not, the run fails with that error, and is vetoed. */
    bool (*may_allocate)(struct dv_device_run *run, dv_str resource, const dv_str *ids,
                         size_t n_ids, struct dv_err *err);
    bool is_vetoed;
    /* The run ends when it is decided; the caller saves, perhaps for several runs at once, before
     * anyone is told. */
    bool leaves_saving;
    struct {
        struct dv_device_manager *devices;
        struct dv_device_operation *operation;
        struct dv_call call; /* to the plugin that the operation asks */
        struct dv_buf answer;
        struct dv_link link;
        struct dv_task task;
        struct dv_save save;
        struct dv_err end; /* code DV_OK: nothing has gone wrong */
        uint64_t asked_ns; /* when the call began */
        bool is_calling;
        bool is_saving;
        bool has_allocated; /* a plugin was asked to allocate: there may be something to write */
    } priv;
};

void dv_device_manager_allocate(struct dv_device_manager *devices, struct dv_device_run *run,
                                const struct dv_device_request *request);
void dv_device_manager_start_container(struct dv_device_manager *devices, struct dv_device_run *run,
                                       const struct dv_device_request *request);
/* Gives the run up; `done` still runs, with DV_CANCELLED or with the end that was reached before.
 * What has been allocated until then stays recorded for the pod. */
void dv_device_manager_cancel(struct dv_device_run *run);

/* Gives back the devices of the pod's containers that none of these containers asks for. */
void dv_device_manager_trim_pod(struct dv_device_manager *devices, dv_str pod_uid,
                                const struct dv_device_request *containers, size_t n_containers);
/* Tells that the store has lost what it had: with the next save all of it is written again. */
void dv_device_manager_save_all(struct dv_device_manager *devices);
/* Why what has changed could not be written; NULL: all is written. Writing is tried again by
 * itself. */
const struct dv_err *dv_device_manager_store_error(const struct dv_device_manager *devices);

/* ---- what can be seen ---- */

/* A call to a plugin that has not been answered, a first list among them; all members are
 * borrowed. */
struct dv_device_call {
    dv_str resource;
    dv_str socket;
    const char *method; /* "Allocate" */
    dv_str pod_uid;     /* empty: for none */
    dv_str container;
    uint64_t since_ns; /* on the loop's clock */
};
void dv_device_manager_each_call(const struct dv_device_manager *devices,
                                 void (*see)(void *ctx, const struct dv_device_call *call),
                                 void *ctx);
/* Describes the call that this run waits for; false: there is none. */
bool dv_device_run_call(const struct dv_device_run *run, struct dv_device_call *call);

/* What the node reports now. A resource is removed when its plugins have been away for longer than
 * the grace period, by a timer or here, whichever is first; its name is in `removed` until it is
 * reported again. What containers hold of it they keep. Text of those that are left belongs to the
 * state until it next changes. */
void dv_device_manager_capacity(struct dv_device_manager *devices, struct dv_arena *arena,
                                struct dv_device_capacities *capacities);
/* Whether the resource was removed and has not come back. */
bool dv_device_manager_is_removed(const struct dv_device_manager *devices, dv_str resource);

struct dv_device_holder {
    dv_str pod_uid;
    dv_str container;
};

struct dv_device_view {
    dv_str id;
    bool is_healthy; /* false too while no plugin is there */
    const int64_t *nodes;
    size_t n_nodes;
    /* several, when init containers lend the device to later ones */
    const struct dv_device_holder *holders;
    size_t n_holders;
};

/* The devices of a resource, listed or held, by id in natural order. Text belongs to the state
 * until it next changes. */
size_t dv_device_views(const struct dv_device_state *state, dv_str resource, struct dv_arena *arena,
                       const struct dv_device_view **views);

/* Registrations by Register so far, for kubelet_device_plugin_registration_total: the next resource
 * at or after *at; false at the end. Start with 0. */
bool dv_device_manager_next_count(const struct dv_device_manager *devices, size_t *at,
                                  dv_str *resource, uint64_t *n_registrations);

#endif
