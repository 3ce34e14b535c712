/* agent_inside.h - what the files of the agent share. */
#ifndef DV_POD_AGENT_INSIDE_H
#define DV_POD_AGENT_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent_step.h"
#include "pod/pod.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_object;
struct dv_view;

/* One write to the API at a time, and what it is made of. */
struct dv_agent_write {
    struct dv_request request;
    struct dv_arena *arena;
    bool is_running;
};

/* A pod that the API has, or had, on this node. */
struct dv_agent_pod {
    struct dv_agent *agent;
    dv_str uid;
    dv_str space;
    dv_str name;
    struct dv_object *object; /* NULL: it is not there */
    enum dv_agent_state state;
    enum dv_agent_state state_before; /* it is being released */
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    struct dv_agent_write write; /* of its status, or its removal */
    struct dv_timer timer;       /* of a pause, or a grace period */
    struct dv_task task;         /* to look at it */
    uint64_t pause_ms;
    uint64_t since_ns; /* wall clock: admitted */
    char *reason;      /* why it is refused, or not ready */
    char *message;
    char *written;   /* the status that was written last */
    bool is_dirty;   /* its status may have to be written */
    bool is_failing; /* its release */
    bool has_ended;
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
    struct dv_view *view; /* of the pods on this node */
    struct dv_map pods;   /* dv_agent_pod, by uid */
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
/* Starts a write; `done` gets it back. False: one runs already. */
bool dv_agent_write_begin(struct dv_agent_write *write);
void dv_agent_write_end(struct dv_agent_write *write);

/* agent_pod.c */
struct dv_agent_pod *dv_agent_pod_new(struct dv_agent *agent, dv_str uid, dv_str space,
                                      dv_str name);
void dv_agent_pod_free(struct dv_agent_pod *pod);
/* Soon, and not from here. */
void dv_agent_pod_look(struct dv_agent_pod *pod);
void dv_agent_pod_stop(struct dv_agent_pod *pod); /* the agent closes */
bool dv_agent_pod_is_idle(const struct dv_agent_pod *pod);

/* agent_status.c */
/* The status as a strategic merge patch; pure but for what it reads of the pod's parts. */
struct dv_json *dv_agent_status(const struct dv_agent_pod *pod, struct dv_arena *arena);
/* The pod as it is admitted: with our mark. */
dv_str dv_agent_pod_json(const struct dv_object *object, struct dv_arena *arena);

/* agent_node.c */
bool dv_agent_node_open(struct dv_agent *agent, struct dv_err *err);
void dv_agent_node_stop(struct dv_agent *agent);
bool dv_agent_node_is_idle(const struct dv_agent *agent);
void dv_agent_node_look(struct dv_agent *agent);

#endif
