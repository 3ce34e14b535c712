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

/* The next step for a pod of which the runtime has nothing, and where there is none. */
static enum dv_agent_step next_alone(const struct dv_agent_facts *facts)
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
    case DV_AGENT_ENDING:
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

/* The next step for a pod that the runner was given. Its containers end first, whoever wants that;
 * then it is released, and it is removed from the API when nothing of it is left here and the API
 * has been told how it ended. */
static enum dv_agent_step next_given(const struct dv_agent_facts *facts)
{
    if (facts->state == DV_AGENT_ADMITTED || facts->state == DV_AGENT_ENDING)
        return facts->runtime == DV_RUNNER_STOPPED ? DV_AGENT_RELEASE : DV_AGENT_WAIT;
    if (facts->state != DV_AGENT_RELEASED)
        return DV_AGENT_WAIT;
    if (!facts->is_there)
        return facts->is_settled ? DV_AGENT_FORGET : DV_AGENT_WAIT;
    if (facts->is_deleting && facts->is_terminal && facts->runtime == DV_RUNNER_FINISHED)
        return facts->is_writing ? DV_AGENT_WAIT : DV_AGENT_REMOVE;
    return DV_AGENT_WAIT;
}

/* Whether the runner is to have the pod: it was admitted and nobody else runs it, or containers of
 * it are left that have to be looked after before it can go. */
static bool is_to_give(const struct dv_agent_facts *facts)
{
    bool is_left_over = facts->runtime == DV_RUNNER_LEFT_OVER;

    if (!facts->is_there)
        return false;
    if (facts->state == DV_AGENT_ADMITTED)
        return is_left_over || (!facts->is_running && !facts->has_ended);
    if (facts->state == DV_AGENT_ENDING)
        return is_left_over;
    if (facts->state == DV_AGENT_RELEASED)
        return is_left_over && (facts->is_deleting || !facts->is_terminal);
    return is_left_over && facts->is_deleting && facts->state != DV_AGENT_ADMITTING &&
           facts->state != DV_AGENT_RELEASING;
}

enum dv_agent_step dv_agent_next(const struct dv_agent_facts *facts)
{
    enum dv_agent_step step;

    if (!facts->has_runner)
        return next_alone(facts);
    if (facts->runtime >= DV_RUNNER_RUNNING)
        return next_given(facts);
    if (is_to_give(facts))
        return DV_AGENT_GIVE;
    step = next_alone(facts);
    if (facts->runtime == DV_RUNNER_UNKNOWN || step == DV_AGENT_ADMIT || step == DV_AGENT_CANCEL)
        return step;
    return DV_AGENT_WAIT; /* until it is known what runs, or the runner has ended that */
}
