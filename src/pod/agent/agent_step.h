/* agent_step.h - what is to be done next about a pod of the API. Pure. */
#ifndef DV_POD_AGENT_STEP_H
#define DV_POD_AGENT_STEP_H

#include <stdbool.h>

#include "pod/runner.h"

/* What the node has made of a pod so far. */
enum dv_agent_state {
    DV_AGENT_NEW,
    DV_AGENT_ADMITTING,
    DV_AGENT_PAUSING, /* its admission has failed and is tried again later */
    DV_AGENT_ADMITTED,
    DV_AGENT_ENDING, /* given to the runner without an admission: only to end */
    DV_AGENT_REFUSED,
    DV_AGENT_RELEASING,
    DV_AGENT_RELEASED,
};

struct dv_agent_facts {
    enum dv_agent_state state;
    bool is_there;                /* the API has a pod of this uid */
    bool is_deleting;             /* the API has it, with a deletionTimestamp */
    bool is_terminal;             /* its phase is Succeeded or Failed */
    bool is_due;                  /* its deletion's grace period is over */
    bool may_run;                 /* somebody has asked how to start its containers, or may have */
    bool has_ended;               /* somebody told that it has ended */
    bool is_running;              /* a process of it that somebody told about is still there */
    bool is_writing;              /* its status, or its removal, is on the way to the API */
    bool is_time;                 /* its pause is over */
    bool is_settled;              /* all pods of the API have been seen, and those of files */
    bool is_behind;               /* another pod is in its place, which has to go first */
    bool has_runner;              /* there is a container runtime */
    enum dv_runner_state runtime; /* what it has of the pod */
};

enum dv_agent_step {
    DV_AGENT_WAIT,    /* nothing is to be done until an operation ends or something changes */
    DV_AGENT_ADMIT,   /* admit it */
    DV_AGENT_CANCEL,  /* cancel its admission: nobody wants it any more */
    DV_AGENT_GIVE,    /* give it to the runner, which starts or ends its containers */
    DV_AGENT_GRACE,   /* give it time to end, until its deletion is due */
    DV_AGENT_RELEASE, /* release what it holds */
    DV_AGENT_REMOVE,  /* remove it from the API */
    DV_AGENT_FINISH,  /* tell the API that it has succeeded */
    DV_AGENT_FORGET,  /* forget it: neither the API nor the node has it */
};
enum dv_agent_step dv_agent_next(const struct dv_agent_facts *facts);

#endif
