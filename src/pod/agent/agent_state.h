/* agent_state.h - what the files of the agent share. */
#ifndef DV_POD_AGENT_STATE_H
#define DV_POD_AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_pause.h"
#include "pod/agent/agent_step.h"
#include "pod/pod.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_device_capacities;
struct dv_err;
struct dv_object;
struct dv_view;

/* A write to the API, one at a time, and the memory that its request is made of. */
struct dv_agent_write {
    struct dv_request request;
    struct dv_arena *arena;
    bool is_running;
};

/* A pod that the API has, or had, on this node. */
struct dv_agent_pod {
    struct dv_agent *agent;
    dv_str uid;
    dv_str namespace;
    dv_str name;
    struct dv_object *object; /* NULL: the API does not have it, or not any more */
    enum dv_agent_state state;
    enum dv_agent_state state_before; /* the state before a release began */
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    struct dv_agent_write write; /* of its status, or its removal */
    struct dv_timer timer;       /* of a pause, or a grace period */
    struct dv_timer write_timer; /* until it ends nothing is written */
    struct dv_task task;         /* to look at it */
    struct dv_agent_pause pause; /* of its admission, or of its release */
    struct dv_agent_pause write_pause;
    uint64_t epoch;    /* sum of the epochs of its plugins and drivers when it failed last */
    uint64_t since_ns; /* wall clock: when it was admitted */
    char *rival;       /* uid of the pod that holds its device; NULL: it fails for another reason */
    char *reason;      /* why it is refused, or not ready */
    char *message;
    char *awaited;   /* what it was last said to wait for */
    char *written;   /* the status that was written last */
    bool is_dirty;   /* its status may have to be written */
    bool is_failing; /* its release has failed */
    bool was_asked;  /* plugins or drivers were, before `reason` was given */
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
    char *written; /* the status that was written last */
    bool is_dirty;
    bool has_lease;
};

struct dv_agent {
    struct dv_loop *loop;
    struct dv_agent_options options;
    struct dv_view *view;   /* of the pods on this node */
    struct dv_view *claims; /* NULL: they are not watched */
    struct dv_map pods;     /* dv_agent_pod, by uid */
    struct dv_agent_node node;
    struct dv_task pods_task;
    struct dv_task close_task;
    bool is_synced;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* agent.c */
void dv_agent_check_closed(struct dv_agent *agent);
/* Begins a write: the caller fills the request, and its `done` calls dv_agent_write_end. False: one
 * is under way already. */
bool dv_agent_write_begin(struct dv_agent_write *write);
void dv_agent_write_end(struct dv_agent_write *write);

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
/* Says in an event what the pod waits for, when that is something new. */
void dv_agent_pod_note_wait(struct dv_agent_pod *pod);

/* agent_wake.c: finds out what may help a pod that has failed */
/* The sum over all plugins and drivers that the pod needs. It changes when any of them comes, comes
 * back or goes. */
uint64_t dv_agent_pod_epoch(const struct dv_agent_pod *pod);
/* Wakes the pod when something has happened that may help it. */
void dv_agent_pod_check(struct dv_agent_pod *pod);
/* Whether the pod asks for something else than before. */
bool dv_agent_pod_differs(const struct dv_object *old, const struct dv_object *now);
/* Whether the Node object lists all resources that the pod asks for, so that they were offered here
 * once. */
bool dv_agent_pod_was_possible(const struct dv_agent_pod *pod);
DV_CHECKED bool dv_agent_claims_open(struct dv_agent *agent, struct dv_err *err);

/* agent_status.c */
/* The pod's status as a strategic merge patch, made from the pod and what it holds; NULL when there
 * is nothing to write. */
struct dv_json *dv_agent_status(const struct dv_agent_pod *pod, struct dv_arena *arena);

/* agent_outside.c */
/* Subtracts from the allocatable numbers what is held outside the API; the new numbers are in
 * `arena`. */
void dv_agent_subtract_outside(const struct dv_agent *agent, struct dv_arena *arena,
                               struct dv_device_capacities *capacities);

/* agent_node.c */
bool dv_agent_node_open(struct dv_agent *agent, struct dv_err *err);
void dv_agent_node_stop(struct dv_agent *agent);
bool dv_agent_node_is_idle(const struct dv_agent *agent);
/* Looks at once whether the Node object has to be created or its status written, and does so. */
void dv_agent_node_look(struct dv_agent *agent);

#endif
