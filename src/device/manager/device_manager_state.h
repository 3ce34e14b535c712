/* device_manager_state.h - what the files of this module's loop part share. */
#ifndef DV_DEVICE_MANAGER_STATE_H
#define DV_DEVICE_MANAGER_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "store/store_saver.h"

struct dv_arena;
struct dv_endpoint;

struct dv_device_manager {
    struct dv_loop *loop;
    struct dv_device_manager_options options;
    struct dv_device_state *state;
    struct dv_server *server;
    dv_str plugin_dir; /* <kubelet-dir>/device-plugins; ends with a NUL */
    int dir_lock;      /* that directory, locked; -1: not yet */
    struct dv_list endpoints;
    struct dv_list runs;
    size_t n_list_jobs; /* that are not at their end */
    struct dv_saver saver;
    struct dv_task changed_task;
    struct dv_task close_task;
    struct dv_map counts; /* registration counts by resource */
    struct dv_timer grace_timer;
    struct dv_map removed; /* names of resources whose plugins have not come back; on the heap */
    bool is_closing;
    bool is_serving;
    dv_closed_fn *closed;
    void *closed_ctx;
    char text[]; /* of kubelet_dir and plugin_dir */
};

/* device_manager.c */
void dv_device_manager_tell_changed(struct dv_device_manager *devices);
/* To be called whenever something ends that a closing manager waits for. */
void dv_device_manager_check_closed(struct dv_device_manager *devices);

/* grace.c */
/* To be called after anything that may have begun a grace period: sets the timer for its end. */
void dv_device_manager_watch_grace(struct dv_device_manager *devices);
void dv_device_manager_forget_removed(struct dv_device_manager *devices);

/* stale_sockets.c */
/* Removes the sockets of plugins that an earlier davitd or kubelet left in the plugin directory. To
 * be called only before dv_device_manager_serve. DV_ALREADY_EXISTS: another agent works on the
 * directory; nothing is removed. */
DV_CHECKED bool dv_device_manager_clean(struct dv_device_manager *devices, struct dv_err *err);

/* device_register.c */
DV_CHECKED bool dv_device_manager_serve(struct dv_device_manager *devices, struct dv_err *err);

/* ---- list_job.c: a long list, which is read on a worker ---- */

struct dv_list_job;
/* Called when the job is over and gone. `diff`: the list counts, and this is what it changed.
 * `err`: it was refused. Neither: a later list, of another plugin, was faster. */
typedef void dv_list_job_fn(void *ctx, const struct dv_device_diff *diff, const struct dv_err *err);
/* Starts to read a list on a worker; copies `message`. */
struct dv_list_job *dv_list_job_start(struct dv_device_manager *devices, dv_str resource,
                                      dv_str message, dv_list_job_fn *done, void *ctx);
/* Has `done` not run any more, and the list change nothing; the manager waits for the worker. */
void dv_list_job_forget(struct dv_list_job *job);

/* ---- device_endpoint.c and its _list.c and _call.c: one plugin that is connected ---- */

/* The versions of the device plugin protocol. */
enum dv_endpoint_version {
    DV_ENDPOINT_V1BETA1,
    DV_ENDPOINT_V1ALPHA2, /* Kubernetes 1.9 */
    DV_ENDPOINT_V0_1,     /* Kubernetes 1.8 */
};

struct dv_endpoint_open {
    dv_str resource;
    dv_str socket; /* absolute */
    pid_t caller;  /* of Register; 0: the watcher, which has a bound of its own */
    enum dv_endpoint_version version;
    /* Called when the plugin serves (err NULL), or does not and its endpoint is gone. Once, and
     * never from within dv_endpoint_open. */
    void (*registered)(void *ctx, const struct dv_err *err);
    void *ctx;
};

/* Connects to the plugin, asks for its options, begins to watch its list. DV_RESOURCE_EXHAUSTED:
 * too many endpoints of the caller wait for their plugins already. */
struct dv_endpoint *dv_endpoint_open(struct dv_device_manager *devices,
                                     const struct dv_endpoint_open *open, struct dv_err *err);
/* Ends the endpoint for this reason; `registered` runs if it has not. */
void dv_endpoint_stop(struct dv_endpoint *endpoint, const char *reason);
/* Has `registered` not run any more. */
void dv_endpoint_forget(struct dv_endpoint *endpoint);
/* Like dv_endpoint_stop, for the endpoint of this link in the manager's list. */
void dv_endpoint_stop_link(struct dv_link *link, const char *reason);
/* Describes what the endpoint of the link was asked and has not answered; false: nothing. */
bool dv_endpoint_link_call(struct dv_link *link, struct dv_device_call *call);
/* The endpoint that serves the resource on the socket; NULL: there is none. */
struct dv_endpoint *dv_endpoint_find(struct dv_device_manager *devices, dv_str resource,
                                     dv_str socket);
/* Makes the call that the step asks for, with the caller's message and method filled in;
 * dv_endpoint_convert brings the answer into v1beta1's form. */
void dv_endpoint_call(struct dv_endpoint *endpoint, const struct dv_device_step *step,
                      struct dv_call *call);
/* Converts an answer of an old version into v1beta1's form. An answer of v1beta1 stays as it is. */
DV_CHECKED bool dv_endpoint_convert(const struct dv_endpoint *endpoint,
                                    enum dv_device_step_kind kind, struct dv_buf *answer,
                                    struct dv_err *err);

#endif
