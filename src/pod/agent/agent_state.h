/* agent_state.h - what the files of the agent share. */
#ifndef DV_POD_AGENT_STATE_H
#define DV_POD_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_pause.h"
#include "pod/agent/agent_pressure.h"
#include "pod/agent/agent_step.h"
#include "resource/resource.h"

struct dv_agent_admitting;
struct dv_agent_misfit;
struct dv_agent_releasing;
struct dv_arena;
struct dv_device_capacities;
struct dv_err;
struct dv_object;
struct dv_outside;
struct dv_static_pods;
struct dv_view;

/* A write to the API, one at a time, and the memory that its request is made of. */
struct dv_agent_write {
    struct dv_request request;
    struct dv_arena *arena;
    bool is_running;
};

/* The reason of events, and of a pod that could not give back what it holds. */
#define DV_AGENT_FAILED_UNPREPARE "FailedUnprepareDynamicResources"

/* A pod that the API, or a file, has on this node, or had. Where it comes from is known here only:
 * all others look at `object`. */
struct dv_agent_pod {
    struct dv_agent *agent;
    dv_str uid;
    dv_str namespace;
    dv_str name;
    struct dv_object *object; /* NULL: nobody wants it here, or not any more */
    struct dv_object *file;   /* static pods: as its file says, without what its mirror adds */
    bool is_static;
    enum dv_agent_state state;
    enum dv_agent_state state_before;     /* the state before a release began */
    struct dv_agent_admitting *admitting; /* NULL unless it is being admitted */
    struct dv_agent_releasing *releasing; /* NULL unless it is being released */
    struct dv_agent_write write;          /* of its status, or its removal */
    struct dv_timer timer;                /* of a pause, or a grace period */
    struct dv_timer write_timer;          /* until it ends nothing is written */
    struct dv_task task;                  /* to look at it */
    struct dv_link waiting;               /* in the agent's list; see dv_agent_pod_is_waiting */
    struct dv_agent_pause pause;          /* of its admission, or of its release */
    struct dv_agent_pause write_pause;
    uint64_t epoch;      /* sum of the epochs of its plugins and drivers when it failed last */
    uint64_t since_ns;   /* wall clock: when it was admitted */
    uint64_t refused_ns; /* wall clock: when it was first refused; 0: it was not, or was admitted */
    bool is_behind_rival; /* the last admission failed because another pod has its device */
    char *rival;  /* uid of the pod that holds its device; NULL: it fails for another reason */
    char *reason; /* why it is refused, or not ready */
    char *message;
    char *awaited;    /* what it was last said to wait for */
    char *kept;       /* why its release has failed; NULL: it has not */
    uint64_t kept_ns; /* wall clock: when it failed first */
    uint64_t written; /* hash of the status that was written last; 0: none was */
    bool is_dirty;    /* its status may have to be written */
    bool was_asked;   /* plugins or drivers were, before `reason` was given */
    bool has_ended;
    bool is_owned;         /* what its annotations name as its owner was seen at work */
    bool is_running;       /* a process of it that somebody told about was there at the last look */
    uint64_t told_version; /* of what was told about its containers, at the last look */
    char text[];
};

/* The Node object, and its lease. */
struct dv_agent_node {
    struct dv_view *view;
    struct dv_agent_write write;
    struct dv_agent_write lease;
    struct dv_timer lease_timer;
    struct dv_timer retry;
    uint64_t retry_ms;
    uint64_t lease_retry_ms;
    uint64_t written; /* a hash of the status that was written last; 0: none */
    struct dv_timer heartbeat;
    struct dv_work reading; /* of memory and disk, by a worker, which fills the readings */
    struct dv_pressure_readings readings;
    struct dv_pressure pressure;
    bool is_reading;
    bool is_dirty;
    bool has_lease;
    bool is_lease_owned; /* by the Node, in the last write */
    uint16_t port;       /* of this node's own API; 0: it has none */
    char *api_key;       /* of its certificate; NULL: there is none */
};

/* A pod in the API that stands for a static pod, or would; by its name, since the uid is the API's.
 */
struct dv_agent_mirror {
    struct dv_agent *agent;
    dv_str namespace;
    dv_str name;
    struct dv_object *object; /* NULL: the API has none */
    struct dv_agent_write write;
    struct dv_timer timer; /* of a pause */
    struct dv_task task;   /* to look at it */
    struct dv_agent_pause pause;
    char text[];
};

struct dv_agent {
    struct dv_loop *loop;
    struct dv_agent_options options;
    struct dv_view *view;          /* of the pods on this node */
    struct dv_static_pods *folder; /* NULL: there is none, or it is closed */
    struct dv_map mirrors;         /* dv_agent_mirror, by "namespace/name" */
    bool has_api_pods;             /* all pods of the API have been seen */
    bool has_file_pods;            /* the folder has been read */
    struct dv_view *claims;        /* NULL: they are not watched */
    struct dv_map pods;            /* dv_agent_pod, by uid */
    struct dv_agent_node node;
    struct dv_list waiting;     /* dv_agent_pod, for something; or not any more */
    struct dv_outside *outside; /* what is held and no pod of the API accounts for */
    struct dv_task claims_task;
    struct dv_task close_task;
    bool is_synced; /* the pods of both are known */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* agent.c */
/* Whether there is a container runtime: pods are given to the runner then. */
bool dv_agent_has_runner(const struct dv_agent *agent);
/* The addresses of this machine; NULL: not known. */
const struct dv_strs *dv_agent_host_ips(const struct dv_agent *agent);
/* Whether the runner has the pod. */
bool dv_agent_is_given(const struct dv_agent_pod *pod);
void dv_agent_check_closed(struct dv_agent *agent);
/* Goes on when the pods of the API and those of files are known. */
void dv_agent_settle(struct dv_agent *agent);
/* Begins a write: the caller fills the request, and its `done` calls dv_agent_write_end. False: one
 * is under way already. */
bool dv_agent_write_begin(struct dv_agent_write *write);
void dv_agent_write_end(struct dv_agent_write *write);

/* What the pod is now; NULL: nobody wants it here any more. */
void dv_agent_pod_set_object(struct dv_agent_pod *pod, struct dv_object *object);

/* agent_mirror.c: static pods, and the mirrors of them in the API */
void dv_agent_folder_open(struct dv_agent *agent);
void dv_agent_mirrors_stop(struct dv_agent *agent); /* the agent closes */
bool dv_agent_mirrors_are_idle(const struct dv_agent *agent);
void dv_agent_mirrors_free(struct dv_agent *agent);
/* Looks at all of them: the Node has come, or all pods are known. */
void dv_agent_mirrors_look(struct dv_agent *agent);
/* Tells that the API has this mirror, or (NULL) not any more. */
void dv_agent_mirror_changed(struct dv_agent *agent, struct dv_object *old, struct dv_object *now);
/* Tells that the static pod is forgotten: its mirror goes, and its successor may start. */
void dv_agent_mirror_forget(struct dv_agent *agent, const struct dv_agent_pod *gone);
/* The object of the API that shows the pod's status: itself, or its mirror; NULL: there is none. */
const struct dv_object *dv_agent_pod_shown(const struct dv_agent_pod *pod);
/* Whether a static pod of the same name is still here that was there before. */
bool dv_agent_pod_is_behind(const struct dv_agent_pod *pod);

/* agent_pod.c */
struct dv_agent_pod *dv_agent_pod_new(struct dv_agent *agent, dv_str uid, dv_str namespace,
                                      dv_str name);
void dv_agent_pod_free(struct dv_agent_pod *pod);
/* Decides in a task of its own what is next for the pod: the caller may be in the middle of a
 * change. */
void dv_agent_pod_look(struct dv_agent_pod *pod);
void dv_agent_pod_stop(struct dv_agent_pod *pod); /* the agent closes */
bool dv_agent_pod_is_idle(const struct dv_agent_pod *pod);
/* Tells that something may help the pod: a pause ends as early as it may. */
void dv_agent_pod_wake(struct dv_agent_pod *pod);
/* Whether its admission is under way or pauses, or its release has failed: the pod is in the
 * agent's list then. One that waits no more is taken out when the list is walked. */
bool dv_agent_pod_is_waiting(const struct dv_agent_pod *pod);
/* Says in an event what the pod waits for, when that is something new. */
void dv_agent_pod_note_wait(struct dv_agent_pod *pod);

/* agent_write.c */
/* Writes the pod's status when it may have changed and nothing keeps that back. */
void dv_agent_pod_write(struct dv_agent_pod *pod);
/* Removes the pod from the API for good. */
void dv_agent_pod_remove(struct dv_agent_pod *pod);

/* agent_wake.c: finds out what may help a pod that has failed */
/* The sum over all plugins and drivers that the pod needs. It changes when any of them comes, comes
 * back or goes. */
uint64_t dv_agent_pod_epoch(const struct dv_agent_pod *pod);
/* Wakes the pod when something has happened that may help it; or each that pauses. */
void dv_agent_pod_check(struct dv_agent_pod *pod);
void dv_agent_waiting_check(struct dv_agent *agent);
/* Whether the pod asks for something else than before. */
bool dv_agent_pod_differs(const struct dv_object *old, const struct dv_object *now);
/* Whether the Node object lists all resources that the pod asks for, so that they were offered here
 * once. */
bool dv_agent_pod_was_possible(const struct dv_agent_pod *pod);
DV_CHECKED bool dv_agent_claims_open(struct dv_agent *agent, struct dv_err *err);

/* agent_room.c */
/* Whether there is room for the pod; otherwise why not, in `arena`. */
bool dv_agent_pod_fits(const struct dv_agent_pod *pod, struct dv_arena *arena,
                       struct dv_agent_misfit *misfit);

/* agent_status.c */
/* The pod's status as a strategic merge patch, made from the pod and what it holds; NULL when there
 * is nothing to write. */
struct dv_json *dv_agent_status(const struct dv_agent_pod *pod, struct dv_arena *arena);
/* Makes a list of a strategic merge patch replace the one that the API has: addresses would be
 * merged with old ones, or those of one type with each other. Does nothing where there is no such
 * list. */
void dv_agent_replace_list(struct dv_json *status, dv_str name, struct dv_arena *arena);

/* agent_outside.c */
/* Whether a scheduler knows that the pod is here and runs. */
bool dv_agent_pod_is_accounted_for(const struct dv_agent_pod *pod);
/* Tells that the pod may hold something else than before, or be the API's or not any more; or that
 * all pods may. Until all pods of the API are known nothing is noted. */
void dv_agent_note_holder(struct dv_agent *agent, dv_str uid);
void dv_agent_note_holders(struct dv_agent *agent);
/* Subtracts from the allocatable numbers what is held outside the API; the new numbers are in
 * `arena`. */
void dv_agent_subtract_outside(struct dv_agent *agent, struct dv_arena *arena,
                               struct dv_device_capacities *capacities);

/* agent_node.c */
const struct dv_api_node *dv_agent_node_of(const struct dv_agent *agent); /* NULL: not known */
struct dv_time dv_agent_now(const struct dv_agent *agent);
bool dv_agent_node_open(struct dv_agent *agent, struct dv_err *err);
void dv_agent_node_stop(struct dv_agent *agent);
bool dv_agent_node_is_idle(const struct dv_agent *agent);
/* Looks at once whether the Node object has to be created or its status written, and does so. */
void dv_agent_node_look(struct dv_agent *agent);
/* The lease is renewed again: while it was not, others may have marked this node as lost. */
void dv_agent_node_correct(struct dv_agent *agent);
/* agent_node_status.c */
/* What the node tells of itself, but for the time at which it does; in `arena` and in the agent. */
void dv_agent_node_status(struct dv_agent *agent, struct dv_arena *arena,
                          struct dv_api_node_status *status);
/* Makes a patch of it, for the API of another process. */
struct dv_json *dv_agent_node_patch(const struct dv_agent *agent,
                                    const struct dv_api_node_status *status,
                                    struct dv_arena *arena);
/* agent_lease.c */
void dv_agent_lease_renew(struct dv_agent *agent);

#endif
