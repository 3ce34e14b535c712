/* agent_step.c - decides what is to be done next about a pod of the API. Pure, so that every
 * combination of facts can be tested. */
#include "pod/agent/agent_step.h"

/* Whether nobody wants any more what the pod holds. */
static bool is_over(const struct dv_agent_facts *facts)
{
    if (facts->is_running && !facts->has_ended)
        /* nothing is taken away from a process that uses it, whatever the API says */
        return false;
    if (!facts->is_there)
        /* before all pods of the API were seen, this one may still show up */
        return facts->is_settled;
    return facts->is_terminal || facts->has_ended ||
           (facts->is_deleting && (facts->is_due || !facts->may_run));
}

/* What follows for a pod that holds nothing. */
static enum dv_agent_step after_release(const struct dv_agent_facts *facts)
{
    if (!facts->is_there)
        return DV_AGENT_FORGET;
    if (facts->is_deleting)
        return facts->is_writing ? DV_AGENT_WAIT : DV_AGENT_REMOVE;
    if (facts->has_ended && !facts->is_terminal)
        return facts->is_writing ? DV_AGENT_WAIT : DV_AGENT_FINISH;
    return DV_AGENT_WAIT; /* a pod that has ended stays in the API until somebody deletes it */
}

enum dv_agent_step dv_agent_next(const struct dv_agent_facts *facts)
{
    bool is_unwanted = is_over(facts) || (facts->is_there && facts->is_deleting);

    switch (facts->state) {
    case DV_AGENT_NEW:
    case DV_AGENT_REFUSED: /* it holds nothing */
        if (is_unwanted)
            return after_release(facts);
        return facts->is_there && !facts->is_behind && facts->state == DV_AGENT_NEW ? DV_AGENT_ADMIT
                                                                                    : DV_AGENT_WAIT;
    case DV_AGENT_ADMITTING:
        return is_unwanted ? DV_AGENT_CANCEL : DV_AGENT_WAIT;
    case DV_AGENT_PAUSING: /* drivers may have prepared some of its claims */
        if (is_unwanted)
            return DV_AGENT_RELEASE;
        return facts->is_there && facts->is_time ? DV_AGENT_ADMIT : DV_AGENT_WAIT;
    case DV_AGENT_ADMITTED:
        if (is_over(facts))
            return DV_AGENT_RELEASE;
        /* after the grace period it waits for a process that is still there */
        return is_unwanted && !facts->is_due ? DV_AGENT_GRACE : DV_AGENT_WAIT;
    case DV_AGENT_RELEASING:
        return DV_AGENT_WAIT;
    case DV_AGENT_RELEASED:
        return after_release(facts);
    }
    return DV_AGENT_WAIT;
}
