/* daemon_update.c - one template of a DaemonSet gives way to the next. Without a surge the old pod
 * of a node goes, and the new one comes when the node has none; as many nodes may be without a pod
 * that works as the set allows. With a surge the new pod comes first, on as many nodes at a time as
 * the set allows, and the old one goes when the new one works. */
#include <stddef.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/daemon_state.h"
#include "apps/plan/pod_state.h"
#include "resource/resource.h"

/* The pod of the newest template and that of an older one. False: there are several of a kind,
 * which is put right first. */
static bool find_pods(const struct dv_daemon_state *state, const struct dv_daemon_place *place,
                      const struct dv_api_pod **newest, const struct dv_api_pod **older)
{
    *newest = *older = NULL;
    for (size_t i = 0; i < place->pods.n; i++) {
        const struct dv_api_pod *pod = place->pods.v[i];
        const struct dv_api_pod **found = dv_daemon_is_updated(state, pod) ? newest : older;

        if (pod->metadata.deletion_timestamp.is_set)
            continue;
        if (*found)
            return false;
        *found = pod;
    }
    return true;
}

static bool is_available(const struct dv_daemon_state *state, const struct dv_api_pod *pod)
{
    return dv_pod_is_available(pod, state->input->set->spec.min_ready_seconds, state->input->now);
}

/* Whether the place counts: a node that shall have a pod, or one that has some. */
static bool counts(const struct dv_daemon_place *place)
{
    return place->verdict.shall_run || place->pods.n > 0;
}

/* ---- the old pod goes first ---- */

static void replace(struct dv_daemon_state *state)
{
    DV_VEC(const struct dv_api_pod *) candidates = {0};
    int64_t n_unavailable = 0;

    for (size_t i = 0; i < state->places.n; i++) {
        const struct dv_api_pod *newest;
        const struct dv_api_pod *older;

        if (!counts(state->places.v[i]))
            continue;
        if (!find_pods(state, state->places.v[i], &newest, &older) ||
            (newest != NULL) == (older != NULL)) {
            n_unavailable++;
        } else if (newest) {
            n_unavailable += !is_available(state, newest);
        } else if (!is_available(state, older)) {
            n_unavailable++;
            dv_daemon_delete_pod(state, older); /* nothing is lost with it */
        } else {
            *dv_vec_add_in(&candidates, state->plan->arena) = older;
        }
    }
    for (size_t i = 0; i < candidates.n && n_unavailable < state->max_unavailable; i++) {
        dv_daemon_delete_pod(state, candidates.v[i]);
        n_unavailable++;
    }
}

/* ---- the new pod comes first ---- */

/* The nodes as they are while surging. */
struct surge {
    int64_t n_surging;
    int64_t n_available;
    DV_VEC(const struct dv_daemon_place *) candidates;
    DV_VEC(const struct dv_api_pod *) unwanted; /* they work, on nodes that shall have none */
};

static void look_at_surge(struct dv_daemon_state *state, struct surge *surge,
                          const struct dv_daemon_place *place)
{
    const struct dv_api_pod *newest;
    const struct dv_api_pod *older;

    if (!find_pods(state, place, &newest, &older)) {
        surge->n_surging++;
        return;
    }
    surge->n_available +=
        (older && is_available(state, older)) || (newest && is_available(state, newest));
    if (!older)
        return;
    if (newest && !is_available(state, newest))
        surge->n_surging++;
    else if (!newest && is_available(state, older) && place->verdict.shall_run)
        *dv_vec_add_in(&surge->candidates, state->plan->arena) = place;
    else if (!newest && is_available(state, older))
        *dv_vec_add_in(&surge->unwanted, state->plan->arena) = older;
    else if (!newest && place->verdict.shall_run)
        dv_daemon_create_pod(state, place->name); /* the old one is of no use */
    else
        dv_daemon_delete_pod(state, older);
}

static void surge_all(struct dv_daemon_state *state)
{
    struct surge surge = {0};
    int64_t n_spare;

    for (size_t i = 0; i < state->places.n; i++)
        if (counts(state->places.v[i]))
            look_at_surge(state, &surge, state->places.v[i]);
    /* Where the set moves to other nodes, the old ones stay until the new ones work. */
    n_spare = surge.n_available - state->n_desired;
    for (size_t i = 0; i < surge.unwanted.n && n_spare > 0; i++, n_spare--)
        dv_daemon_delete_pod(state, surge.unwanted.v[i]);
    for (size_t i = 0; i < surge.candidates.n && surge.n_surging < state->max_surge; i++) {
        dv_daemon_create_pod(state, surge.candidates.v[i]->name);
        surge.n_surging++;
    }
}

void dv_daemon_plan_update(struct dv_daemon_state *state)
{
    if (!dv_str_eq(state->input->set->spec.update_strategy.type, DV_STR("RollingUpdate")))
        return;
    if (state->max_surge > 0)
        surge_all(state);
    else
        replace(state);
}
