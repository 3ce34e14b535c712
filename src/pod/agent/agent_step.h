/* agent_step.h - what is to be done next about a pod of the API. Pure. */
#ifndef DV_POD_AGENT_STEP_H
#define DV_POD_AGENT_STEP_H

#include <stdbool.h>

/* What the node has made of a pod so far. */
enum dv_agent_state {
    DV_AGENT_NEW,
    DV_AGENT_ADMITTING,
    DV_AGENT_PAUSING, /* it was not ready; it is tried again */
    DV_AGENT_ADMITTED,
    DV_AGENT_REFUSED,
    DV_AGENT_RELEASING,
    DV_AGENT_RELEASED,
};

struct dv_agent_facts {
    enum dv_agent_state state;
    bool is_there;    /* in the API, with this uid */
    bool is_deleting; /* there, and to be gone */
    bool is_terminal; /* Succeeded or Failed */
    bool is_due;      /* deleting, and its time is over */
    bool may_run;     /* somebody has asked how to start its containers, or may have */
    bool has_ended;   /* somebody told that it has ended */
    bool is_writing;  /* its status, or its removal, is on the way to the API */
    bool is_time;     /* to try again */
    bool is_settled;  /* all pods of the API have been seen */
};

enum dv_agent_step {
    DV_AGENT_WAIT,    /* for what is under way, or for a change */
    DV_AGENT_ADMIT,   /* it wants its devices */
    DV_AGENT_CANCEL,  /* its admission: nobody wants it any more */
    DV_AGENT_GRACE,   /* it is given time to end, until it is due */
    DV_AGENT_RELEASE, /* what it holds */
    DV_AGENT_REMOVE,  /* it, from the API */
    DV_AGENT_FINISH,  /* it is told to have succeeded */
    DV_AGENT_FORGET,  /* it */
};
enum dv_agent_step dv_agent_next(const struct dv_agent_facts *facts);

#endif
