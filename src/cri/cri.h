/* cri.h - the container runtime (containerd, CRI-O) on the loop: calls, abilities, and a view.
 *
 * A dv_cri keeps one channel to the runtime's socket. Whenever it is connected anew it asks again
 * for everything that may have changed with the runtime: its version, what it can do, whether it
 * is ready, and which sandboxes and containers it has. It never gives up: a runtime that is absent,
 * hangs or restarts is a state that can be asked for, and nothing else.
 *
 *     open -> connected -> Version -> Status (verbose) -> RuntimeConfig -> usable
 *     usable: Status every 5 s; the view is kept current; lost: from the beginning again
 *
 * The messages are those of "proto/cri_v1.pb-c.h". */
#ifndef DV_CRI_H
#define DV_CRI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct CriV1__ContainerStatus;
struct CriV1__PodSandboxStatus;
struct ProtobufCMessage;
struct dv_arena;
struct dv_buf;

/* ---- the runtime ---- */

struct dv_cri;

struct dv_cri_options {
    dv_str path; /* the runtime's socket, as a path */
    /* What dv_cri_runtime, dv_cri_check_runtime, dv_cri_check_network or dv_cri_view_is_complete
     * say has changed. May be NULL. */
    void (*state_changed)(void *ctx);
    /* What dv_cri_view_pod says about this pod has changed, or a look that dv_cri_view_relist asked
     * for has ended. `uid` is borrowed for the call. May be NULL. */
    void (*pod_changed)(void *ctx, dv_str uid);
    void *ctx;
};

/* Begins to connect. Copies `options`. DV_INVALID_ARGUMENT: the path is no socket address. */
struct dv_cri *dv_cri_open(struct dv_loop *loop, const struct dv_cri_options *options,
                           struct dv_err *err);
/* Running calls end with DV_CANCELLED before `closed` runs, which may be NULL. */
void dv_cri_close(struct dv_cri *cri, dv_closed_fn *closed, void *ctx);

/* Finds the socket of a runtime at its usual places, containerd's first; empty when there is none
 * now. The text is constant. */
dv_str dv_cri_find(void);

/* What one of the runtime's handlers (runtime classes) can do. */
struct dv_cri_handler {
    dv_str name; /* empty: the default one */
    bool has_recursive_read_only;
    bool has_user_namespaces;
};

/* What the runtime is and can do. */
struct dv_cri_runtime {
    dv_str name;    /* "containerd": the scheme of container ids */
    dv_str version; /* "1.6.20~ds1" */
    /* Whether CDI_devices of a container's config are applied. Where not they are dropped without a
     * word, so a container with such names must not be handed to it. */
    bool has_cdi;
    const dv_str *cdi_dirs; /* where it looks for specs; none when it does not say */
    size_t n_cdi_dirs;
    dv_str sandbox_image; /* of every pod's sandbox; empty: it does not say */
    bool knows_cgroup_driver;
    bool is_systemd_cgroups; /* otherwise cgroupfs */
    const struct dv_cri_handler *handlers;
    size_t n_handlers;
    bool has_supplemental_groups_policy;
    bool has_image_volumes; /* mounts images; where not it does not know the field */
    /* Whether those who read its events take them from each other. */
    bool has_shared_events;
};

/* What is known of the runtime; NULL until it has answered for the first time. Borrowed until the
 * caller returns to the loop. Stays while the connection is lost. */
const struct dv_cri_runtime *dv_cri_runtime(const struct dv_cri *cri);
/* Whether pods can be synced now: the runtime answered Version as it should, and said within the
 * last 30 s that it is ready. The message is one for the node's condition. DV_FAILED_PRECONDITION:
 * it speaks another version of CRI, or says that it is not ready. DV_UNAVAILABLE: it is not there,
 * or does not answer. */
DV_CHECKED bool dv_cri_check_runtime(const struct dv_cri *cri, struct dv_err *err);
/* Whether the network of pods is ready; pods with hostNetwork do not need it. */
DV_CHECKED bool dv_cri_check_network(const struct dv_cri *cri, struct dv_err *err);
/* Whether calls can reach the runtime at this moment. */
bool dv_cri_is_connected(const struct dv_cri *cri);

/* ---- calls ---- */

enum dv_cri_method {
    DV_CRI_VERSION,
    DV_CRI_STATUS,
    DV_CRI_RUNTIME_CONFIG,
    DV_CRI_UPDATE_RUNTIME_CONFIG,
    DV_CRI_RUN_POD_SANDBOX,
    DV_CRI_STOP_POD_SANDBOX,
    DV_CRI_REMOVE_POD_SANDBOX,
    DV_CRI_POD_SANDBOX_STATUS,
    DV_CRI_LIST_POD_SANDBOX,
    DV_CRI_CREATE_CONTAINER,
    DV_CRI_START_CONTAINER,
    DV_CRI_STOP_CONTAINER,
    DV_CRI_REMOVE_CONTAINER,
    DV_CRI_LIST_CONTAINERS,
    DV_CRI_CONTAINER_STATUS,
    DV_CRI_UPDATE_CONTAINER_RESOURCES,
    DV_CRI_UPDATE_POD_SANDBOX_RESOURCES,
    DV_CRI_REOPEN_CONTAINER_LOG,
    DV_CRI_LIST_CONTAINER_STATS,
    DV_CRI_LIST_POD_SANDBOX_STATS, /* containerd has it since 1.7 */
    DV_CRI_EXEC_SYNC,
    DV_CRI_EXEC,
    DV_CRI_ATTACH,
    DV_CRI_PORT_FORWARD,
    DV_CRI_LIST_IMAGES,
    DV_CRI_IMAGE_STATUS,
    DV_CRI_PULL_IMAGE,
    DV_CRI_REMOVE_IMAGE,
    DV_CRI_IMAGE_FS_INFO,
};

/* "RunPodSandbox" */
const char *dv_cri_method_name(enum dv_cri_method method);

/* One call. It is embedded in what waits for it, zeroed, then filled in, and lent until `done` has
 * run.
 *
 * Each method has its own time limit: 2 min, statistics 10 s, RunPodSandbox 4 min, StopContainer
 * its grace period and 2 min, ExecSync its timeout and 2 min (none with timeout 0), PullImage none.
 *
 * What an answer must have is checked before it is handed out: the message and metadata of a
 * status, a state that CRI has, the id of what was made. DV_INTERNAL: the answer is not a message
 * of this method, or lacks such a thing.
 *
 * To stop or remove what the runtime does not have (DV_NOT_FOUND) is a success: it is gone.
 * ImageStatus answers without `image` when there is no such image. */
struct dv_cri_call {
    enum dv_cri_method method;
    struct dv_arena *arena; /* where the answer goes; NULL: it is lent to `done` alone */
    /* The answer is a dv_str with the message's bytes, which dv_cri_decode reads: for long ones, so
     * that a worker may do that. */
    bool is_left_encoded;
    /* The call has ended; runs exactly once. `answer` is the method's response, NULL when `err` is
     * not. The text of an error of the runtime is as it came. */
    void (*done)(struct dv_cri_call *call, const void *answer, const struct dv_err *err);
    struct {
        struct dv_call call;
        struct dv_arena *own_arena;
        const void *answer;
        struct dv_err err; /* what is wrong with the answer; code DV_OK: nothing */
    } priv;
};

/* Starts the call. `request` is the method's request message; nothing of it is kept. While the
 * runtime cannot be reached the call fails with DV_UNAVAILABLE. */
void dv_cri_call_start(struct dv_cri *cri, struct dv_cri_call *call,
                       const struct ProtobufCMessage *request);
/* Decodes and checks an answer that was left encoded, into `arena`; NULL: `err` is set. Any thread
 * may. */
const void *dv_cri_decode(enum dv_cri_method method, dv_str bytes, struct dv_arena *arena,
                          struct dv_err *err);
/* Cancels the call: `done` still runs, with DV_CANCELLED. Does nothing once `done` has run. */
void dv_cri_call_cancel(struct dv_cri_call *call);

/* Adds `text` with `name` wherever it has `id`. Texts of the runtime have ids, which differ each
 * time: events would not be counted as the same. */
void dv_cri_print_text(dv_str text, dv_str id, dv_str name, struct dv_buf *buf);

/* ---- the view: what sandboxes and containers there are ---- */

/* The label that says whose a sandbox or container is; what is without it is not in the view. */
#define DV_CRI_LABEL_POD_UID "io.kubernetes.pod.uid"

/* All that the runtime has of one pod, seen at one time. Lists are newest first (by attempt of
 * sandboxes and by time of creation), and hold what has ended too, until it is removed. What nobody
 * looks at is left out: labels, the annotations of sandboxes and images, resources, and of mounts
 * all but their paths. */
struct dv_cri_pod {
    dv_str uid;
    const struct CriV1__PodSandboxStatus *const *sandboxes;
    size_t n_sandboxes;
    const struct CriV1__ContainerStatus *const *containers;
    size_t n_containers;
};

/* What the runtime has of this pod; NULL: nothing, if dv_cri_view_taken_ns is not 0. Borrowed until
 * the caller returns to the loop. */
const struct dv_cri_pod *dv_cri_view_pod(const struct dv_cri *cri, dv_str uid);
/* The pods of the view, one after the other; NULL at the end. Start with *at 0. */
const struct dv_cri_pod *dv_cri_view_next(const struct dv_cri *cri, size_t *at);
/* Whether there was a complete listing since the start, and every pod in it was looked at, which
 * may have failed for single pods (dv_cri_view_taken_ns). */
bool dv_cri_view_is_complete(const struct dv_cri *cri);
/* When what is known about the pod was asked for, on the loop's clock; what was done before that
 * time shows in the view. That a pod is not in the view is known since then, too. 0: nothing is
 * known of the pod yet, because there was no listing, because it was listed and its look has not
 * ended, or because the runtime fails when it is asked for this pod: it may have containers. */
uint64_t dv_cri_view_taken_ns(const struct dv_cri *cri, dv_str uid);
/* Looks at this pod now, rather than at the next listing: for who has just done something to it.
 * pod_changed runs when that is done, also when nothing is new; while the runtime fails, it is
 * tried again every second. Asking again before the look has begun changes nothing. */
void dv_cri_view_relist(struct dv_cri *cri, dv_str uid);

#endif
