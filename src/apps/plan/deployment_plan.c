/* deployment_plan.c - what is to be done next for a Deployment: the first of these that is not so
 * is planned, and the others when it is done. Its ReplicaSets are its own, they want the numbers
 * that they shall want, the newest template has a set, old sets are gone, the status says all that.
 */
#include "apps/plan/deployment.h"

#include <stdint.h>
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/deployment_state.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"

static int compare_ages(const void *a, const void *b)
{
    const struct dv_api_object_meta *x = &((const struct dv_deployment_set *)a)->set->metadata;
    const struct dv_api_object_meta *y = &((const struct dv_deployment_set *)b)->set->metadata;
    int64_t age = x->creation_timestamp.seconds - y->creation_timestamp.seconds;

    return age != 0 ? (age < 0 ? -1 : 1) : dv_str_cmp(x->name, y->name);
}

/* Whether the set is for the template that is wanted: the hash apart, which sets have more. */
static bool has_template(const struct dv_api_replica_set *set,
                         const struct dv_api_deployment *deployment, struct dv_arena *arena)
{
    struct dv_api_pod_template_spec template = set->spec.template;
    struct dv_api_pod_template_spec wanted = deployment->spec.template;
    struct dv_api_object_meta *all[] = {&template.metadata, &wanted.metadata};

    for (size_t i = 0; i < DV_COUNT(all); i++) {
        struct dv_str_entry *left = DV_NEW_ARRAY(arena, struct dv_str_entry, all[i]->n_labels + 1);
        size_t n = 0;

        for (size_t j = 0; j < all[i]->n_labels; j++)
            if (!dv_str_eq(all[i]->labels[j].key, DV_STR(DV_TEMPLATE_HASH_LABEL)))
                left[n++] = all[i]->labels[j];
        all[i]->labels = left;
        all[i]->n_labels = n;
    }
    return dv_message_eq(&dv_message_pod_template_spec, &template, &wanted);
}

static void find_sets(struct dv_deployment_state *state)
{
    const struct dv_deployment_input *input = state->input;

    for (size_t i = 0; i < input->n_sets; i++) {
        const struct dv_api_replica_set *set = input->sets[i];
        int64_t n = set->spec.replicas ? *set->spec.replicas : 1;

        if (dv_plan_ownership(state->owner, &set->metadata) == DV_OWNER_HAS)
            *dv_vec_add_in(&state->sets, state->plan->arena) = (struct dv_deployment_set){
                .set = set, .n_had = n, .n = n, .has_pods = input->have_pods[i]};
    }
    if (state->sets.n > 1)
        qsort(state->sets.v, state->sets.n, sizeof(state->sets.v[0]), compare_ages);
    for (size_t i = 0; !state->newest && i < state->sets.n; i++)
        if (has_template(state->sets.v[i].set, input->deployment, state->plan->arena))
            state->newest = &state->sets.v[i];
}

static void set_limits(struct dv_deployment_state *state)
{
    const struct dv_api_deployment_spec *spec = &state->input->deployment->spec;
    const struct dv_api_rolling_update_deployment *update = spec->strategy.rolling_update;

    state->n_wanted = spec->replicas ? *spec->replicas : 1;
    if (!update || !dv_str_eq(spec->strategy.type, DV_STR("RollingUpdate")))
        return;
    state->max_surge = dv_scaled(update->max_surge, state->n_wanted, true);
    state->max_unavailable = dv_scaled(update->max_unavailable, state->n_wanted, false);
    if (state->max_surge > INT32_MAX - state->n_wanted)
        state->max_surge = INT32_MAX - state->n_wanted; /* a set can want no more */
    if (state->max_surge == 0 && state->max_unavailable == 0)
        state->max_unavailable = 1;
    if (state->max_unavailable > state->n_wanted)
        state->max_unavailable = state->n_wanted;
}

static void plan_roll(struct dv_deployment_state *state)
{
    if (!state->newest) {
        dv_deployment_plan_newest(state);
        return;
    }
    dv_deployment_plan_revision(state);
    if (state->plan->actions.n > 0)
        return;
    dv_deployment_roll(state);
    dv_deployment_plan_numbers(state);
}

static bool has_old_pods(const struct dv_deployment_state *state)
{
    for (size_t i = 0; i < state->sets.n; i++)
        if (&state->sets.v[i] != state->newest && state->sets.v[i].has_pods)
            return true;
    return false;
}

/* Lets go of all old pods before the first new one comes. */
static void plan_recreate(struct dv_deployment_state *state)
{
    if (state->newest) {
        dv_deployment_plan_revision(state);
        if (state->plan->actions.n > 0)
            return;
    }
    dv_deployment_recreate(state);
    dv_deployment_plan_numbers(state);
    if (state->plan->actions.n > 0 || has_old_pods(state))
        return;
    if (!state->newest) {
        dv_deployment_plan_newest(state);
        return;
    }
    state->newest->n = state->n_wanted;
    dv_deployment_plan_numbers(state);
}

static void plan_sets(struct dv_deployment_state *state)
{
    const struct dv_api_deployment_spec *spec = &state->input->deployment->spec;

    if (spec->paused || dv_deployment_is_rescaled(state)) {
        dv_deployment_rescale(state);
        dv_deployment_plan_numbers(state);
    } else if (dv_str_eq(spec->strategy.type, DV_STR("Recreate"))) {
        plan_recreate(state);
    } else {
        plan_roll(state);
    }
}

void dv_deployment_plan(const struct dv_deployment_input *input, struct dv_plan *plan)
{
    const struct dv_api_deployment *deployment = input->deployment;
    struct dv_deployment_state state = {.input = input, .plan = plan};

    if (deployment->metadata.deletion_timestamp.is_set)
        return; /* what it owns is the collector's */
    state.owner = dv_plan_owner_of(DV_KIND_DEPLOYMENT, &deployment->metadata,
                                   deployment->spec.selector, plan->arena);
    set_limits(&state);
    find_sets(&state);
    if (!input->has_failed) {
        for (size_t i = 0; i < input->n_sets; i++)
            dv_plan_adopt_or_release(plan, state.owner, dv_kind(DV_KIND_REPLICA_SET),
                                     &input->sets[i]->metadata);
        if (plan->actions.n == 0)
            plan_sets(&state);
        if (plan->actions.n == 0 && !deployment->spec.paused)
            dv_deployment_plan_history(&state);
    }
    if (plan->actions.n == 0)
        dv_deployment_plan_status(&state);
}
