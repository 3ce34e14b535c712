/* runner.h - makes the containers of pods run, on a container runtime (module cri).
 *
 *     agent: the object, admitted --> runner --> life (workload/life.h): what to do next
 *                                       |
 *          status, "release it" <-------+--> sandboxes, images, containers, volumes, probes
 *
 * What is decided about a pod is its life's business; here it is done. One runner pod is there for
 * each pod that the agent has given, and for each that only the runtime knows any more: those are
 * ended. The agent owns the admission, the release and what the API is told.
 *
 * Without a runtime the runner is not active, and nobody's containers are started by it. With
 * "auto" it looks for the socket of one from time to time. */
#ifndef DV_POD_RUNNER_H
#define DV_POD_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"

struct dv_api_pod_status;
struct dv_cdi_dirs;
struct dv_claim_manager;
struct dv_cluster;
struct dv_cri;
struct dv_device_manager;
struct dv_err;
struct dv_object;
struct dv_pods;
struct dv_recorder;
struct dv_runner;
struct dv_strs;

/* When images that nobody uses are removed, see runner/image_gc.h. */
struct dv_image_policy {
    unsigned high_percent; /* of the disk that they are on; 0 or 100: they are never removed */
    unsigned low_percent;
    uint64_t min_age_ns;
};

struct dv_runner_options {
    struct dv_cluster *cluster; /* these outlive the runner */
    struct dv_pods *pods;
    struct dv_device_manager *devices;
    struct dv_claim_manager *claims;
    struct dv_recorder *recorder;
    struct dv_cdi_dirs *cdi; /* NULL: there are no specs */
    dv_str cri;              /* "auto", "none" or "unix:///PATH"; kept, like all texts */
    /* A file that remembers the socket which "auto" has found: after a restart that runtime is
     * waited for, because it may have containers of pods. Empty: nothing is remembered. */
    dv_str memory_file;
    dv_str node_name;
    dv_str root_dir; /* "/var/lib/kubelet" */
    dv_str log_dir;  /* "/var/log/pods" */
    /* "/sys/fs/cgroup"; empty: pods have no cgroups of their own. What is above kubepods in it: ""
     * or "/davit". */
    dv_str cgroup_dir;
    dv_str cgroup_root;
    struct dv_image_policy images;
    uint64_t n_cpus;
    uint64_t memory_bytes;
    uint64_t storage_bytes; /* for what containers write; 0: not known */
};

/* DV_INVALID_ARGUMENT: `cri` is no address of a socket. */
struct dv_runner *dv_runner_open(struct dv_loop *loop, const struct dv_runner_options *options,
                                 struct dv_err *err);
/* What is under way is given up; containers stay as they are. `closed` may be NULL. */
void dv_runner_close(struct dv_runner *runner, dv_closed_fn *closed, void *ctx);

/* Who is told of changes. None of these runs from within a function of this header. */
struct dv_runner_listener {
    /* The pod's status has changed, or what dv_runner_state says about it. */
    void (*pod_changed)(void *ctx, dv_str uid);
    /* The runtime came or went, or it is ready or not ready any more. */
    void (*runtime_changed)(void *ctx);
    /* Whether somebody wants this pod that the runner was not given: it is not ended then. */
    bool (*is_wanted)(void *ctx, dv_str uid);
    void *ctx;
};
/* There is one listener; NULL: none any more. Copied. */
void dv_runner_listen(struct dv_runner *runner, const struct dv_runner_listener *listener);

/* ---- the runtime ---- */

/* Whether there is a runtime, be it ready or not: pods are to be given to the runner. */
bool dv_runner_is_active(const struct dv_runner *runner);
/* Whether pods can be synced now. The message is one for the node's condition. */
DV_CHECKED bool dv_runner_check(const struct dv_runner *runner, struct dv_err *err);
/* The runtime; NULL when there is none. */
struct dv_cri *dv_runner_cri(const struct dv_runner *runner);
/* The addresses of this machine, the main one first. */
const struct dv_strs *dv_runner_host_ips(const struct dv_runner *runner);

dv_str dv_runner_log_dir(const struct dv_runner *runner); /* "/var/log/pods" */

/* Says where pods of this node reach the API, for their variables KUBERNETES_SERVICE_HOST and the
 * like: an address without its port, or one that stands for all ("", "0.0.0.0", "::"), which is
 * the node's main one then. Before this is said, pods have no such variables. */
void dv_runner_set_api(struct dv_runner *runner, dv_str address, uint16_t port);

/* ---- pods ---- */

/* Gives a pod that was admitted, or tells of its new object. */
void dv_runner_set_pod(struct dv_runner *runner, struct dv_object *object, bool is_static);
/* The pod's object, or its file, is not there any more: it is ended. Of one that was not given,
 * what the runtime still has is removed. */
void dv_runner_set_vanished(struct dv_runner *runner, dv_str uid);
/* The pod is to be ended by the node: its status says why. */
void dv_runner_evict(struct dv_runner *runner, dv_str uid, dv_str reason, dv_str message);
/* To be called when the release that the pod has waited for is done. */
void dv_runner_set_released(struct dv_runner *runner, dv_str uid);
/* Something about the pod has changed that the runner cannot see: the health of its devices. */
void dv_runner_look(struct dv_runner *runner, dv_str uid);
/* All pods that anybody wants here have been given, or are waited for (is_wanted): from now on what
 * the runtime has besides is ended and removed. */
void dv_runner_settle(struct dv_runner *runner);

enum dv_runner_state {
    DV_RUNNER_UNKNOWN,   /* neither given nor in the runtime */
    DV_RUNNER_UNSEEN,    /* it is not known yet whether the runtime has something of it */
    DV_RUNNER_LEFT_OVER, /* the runtime has something of it, and it was not given */
    DV_RUNNER_RUNNING,   /* it was given: its containers may run */
    DV_RUNNER_STOPPED,   /* its containers have ended for good: it waits for the release */
    DV_RUNNER_RELEASED,
    DV_RUNNER_FINISHED, /* nothing of it is left on this node but its logs */
};
enum dv_runner_state dv_runner_state(const struct dv_runner *runner, dv_str uid);

/* What a pod that was given does, in a word for people. */
struct dv_runner_doing {
    const char *word; /* "starting", "pulling", "running", "ending", "ended"; NULL: not given */
    dv_str image;     /* that is pulled, or waited for; borrowed until the next turn */
    dv_str why;       /* why it could not be pulled; empty: it was not tried yet. As `image` */
};
struct dv_runner_doing dv_runner_doing(const struct dv_runner *runner, dv_str uid);

/* The status that the API should have; NULL: the runner has none to tell. Borrowed until the next
 * turn. */
const struct dv_api_pod_status *dv_runner_status(const struct dv_runner *runner, dv_str uid);

#endif
