/* deployment_numbers.c - how many pods each ReplicaSet of a Deployment wants. A roll-out is one
 * step at a time: the newest grows as far as the surge lets it, else the others shrink as far as
 * enough pods work. When the Deployment's own number changes in the middle of one, all sets grow or
 * shrink by their shares. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/deployment.h"
#include "apps/plan/deployment_state.h"
#include "base/arena.h"
#include "base/num.h"
#include "resource/resource.h"

int64_t dv_deployment_number(const struct dv_api_object_meta *meta, dv_str annotation)
{
    const struct dv_str_entry *entry =
        dv_entry_find(meta->annotations, meta->n_annotations, annotation);
    uint64_t number;

    return entry && dv_str_to_u64(entry->value, &number) && number <= INT64_MAX ? (int64_t)number
                                                                                : 0;
}

static int64_t total(const struct dv_deployment_state *state)
{
    int64_t n = 0;

    for (size_t i = 0; i < state->sets.n; i++)
        n += state->sets.v[i].n;
    return n;
}

/* How many pods of a set work and stay: of a set that was shrunk a moment ago the status may still
 * count those that go. */
static int64_t available_of(const struct dv_deployment_set *set)
{
    int64_t n = set->set->status.available_replicas;

    return n < set->n_had ? n : set->n_had;
}

static int64_t available(const struct dv_deployment_state *state)
{
    int64_t n = 0;

    for (size_t i = 0; i < state->sets.n; i++)
        n += available_of(&state->sets.v[i]);
    return n;
}

/* Whether the statuses tell of the numbers that the sets want now. */
static bool are_observed(const struct dv_deployment_state *state)
{
    for (size_t i = 0; i < state->sets.n; i++)
        if (state->sets.v[i].set->status.observed_generation <
            state->sets.v[i].set->metadata.generation)
            return false;
    return true;
}

static bool is_rolling(const struct dv_deployment_state *state)
{
    return dv_str_eq(state->input->deployment->spec.strategy.type, DV_STR("RollingUpdate"));
}

/* ---- the Deployment's own number has changed ---- */

bool dv_deployment_is_rescaled(const struct dv_deployment_state *state)
{
    for (size_t i = 0; i < state->sets.n; i++) {
        const struct dv_api_object_meta *meta = &state->sets.v[i].set->metadata;

        if (state->sets.v[i].n > 0 &&
            dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_DESIRED_ANNOTATION)) &&
            dv_deployment_number(meta, DV_STR(DV_DESIRED_ANNOTATION)) != state->n_wanted)
            return true;
    }
    return false;
}

/* The one set that has pods, or the newest when none has; NULL: several have. */
static struct dv_deployment_set *only_one(struct dv_deployment_state *state)
{
    struct dv_deployment_set *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < state->sets.n; i++)
        if (state->sets.v[i].n > 0) {
            found = &state->sets.v[i];
            n++;
        }
    if (n == 0)
        return state->newest       ? state->newest
               : state->sets.n > 0 ? &state->sets.v[state->sets.n - 1]
                                   : NULL;
    return n == 1 ? found : NULL;
}

static bool is_saturated(const struct dv_deployment_state *state)
{
    const struct dv_deployment_set *newest = state->newest;

    return newest && newest->n == state->n_wanted &&
           dv_deployment_number(&newest->set->metadata, DV_STR(DV_DESIRED_ANNOTATION)) ==
               state->n_wanted &&
           newest->set->status.available_replicas == state->n_wanted;
}

/* What a set's share of the new number is more than it has. Who writes annotations chooses what it
 * had, and all numbers may be large: a sum in 64 bits could overflow. */
static int64_t share_of(const struct dv_deployment_state *state,
                        const struct dv_deployment_set *set)
{
    int64_t max = state->n_wanted + state->max_surge;
    int64_t had = dv_deployment_number(&set->set->metadata, DV_STR(DV_MAX_ANNOTATION));
    double share;

    if (state->n_wanted == 0)
        return -set->n;
    if (had == 0)
        had = state->input->deployment->status.replicas;
    if (had <= 0)
        return 0;
    share = round((double)set->n * (double)max / (double)had);
    return (int64_t)fmin(share, (double)max) - set->n;
}

/* The order in which shares are given: the largest first, of equal ones the newer when there is
 * more to give, and the older when there is less. */
static void sort_by_size(struct dv_deployment_set **sets, size_t n, bool is_growing)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0; j--) {
            bool is_before = sets[j]->n != sets[j - 1]->n ? sets[j]->n > sets[j - 1]->n
                                                          : is_growing && sets[j] > sets[j - 1];
            struct dv_deployment_set *swapped = sets[j];

            if (!is_before)
                break;
            sets[j] = sets[j - 1];
            sets[j - 1] = swapped;
        }
}

static void rescale_by_shares(struct dv_deployment_state *state)
{
    struct dv_deployment_set **active =
        DV_NEW_ARRAY(state->plan->arena, struct dv_deployment_set *, state->sets.n + 1);
    int64_t left = (state->n_wanted > 0 ? state->n_wanted + state->max_surge : 0) - total(state);
    bool is_growing = left > 0;
    size_t n = 0;

    for (size_t i = 0; i < state->sets.n; i++)
        if (state->sets.v[i].n > 0)
            active[n++] = &state->sets.v[i];
    sort_by_size(active, n, is_growing);
    for (size_t i = 0; i < n && left != 0; i++) {
        int64_t more = share_of(state, active[i]);

        more = is_growing ? (more < left ? more : left) : (more > left ? more : left);
        active[i]->n += more;
        left -= more;
    }
    if (n > 0)
        active[0]->n = active[0]->n + left > 0 ? active[0]->n + left : 0;
}

void dv_deployment_rescale(struct dv_deployment_state *state)
{
    struct dv_deployment_set *only = only_one(state);

    if (only) {
        only->n = state->n_wanted;
    } else if (is_saturated(state)) {
        for (size_t i = 0; i < state->sets.n; i++)
            if (&state->sets.v[i] != state->newest)
                state->sets.v[i].n = 0;
    } else if (is_rolling(state)) {
        rescale_by_shares(state);
    }
}

/* ---- one step of a roll-out ---- */

int64_t dv_deployment_first(const struct dv_deployment_state *state)
{
    int64_t room = state->n_wanted + state->max_surge - total(state);

    if (!is_rolling(state))
        return state->n_wanted;
    return room < 0 ? 0 : room < state->n_wanted ? room : state->n_wanted;
}

/* Shrinks sets other than the newest, the oldest first, by at most `n` in all. */
static void shrink(struct dv_deployment_state *state, int64_t n, bool only_unhealthy)
{
    for (size_t i = 0; i < state->sets.n && n > 0; i++) {
        struct dv_deployment_set *set = &state->sets.v[i];
        int64_t less = only_unhealthy ? set->n - available_of(set) : set->n;

        if (set == state->newest || less <= 0)
            continue;
        less = less < n ? less : n;
        set->n -= less;
        n -= less;
    }
}

void dv_deployment_roll(struct dv_deployment_state *state)
{
    struct dv_deployment_set *newest = state->newest;
    int64_t least = state->n_wanted - state->max_unavailable;
    int64_t n_max;

    if (newest->n > state->n_wanted) {
        newest->n = state->n_wanted;
        return;
    }
    if (newest->n < state->n_wanted) {
        int64_t room = state->n_wanted + state->max_surge - total(state);
        int64_t more = state->n_wanted - newest->n;

        newest->n += room < 0 ? 0 : room < more ? room : more;
        if (newest->n != newest->n_had)
            return;
    }
    n_max = total(state) - least - (newest->n - available_of(newest));
    if (n_max <= 0 || !are_observed(state))
        return;
    shrink(state, n_max, true);
    shrink(state, available(state) - least, false);
}

void dv_deployment_recreate(struct dv_deployment_state *state)
{
    for (size_t i = 0; i < state->sets.n; i++)
        if (&state->sets.v[i] != state->newest)
            state->sets.v[i].n = 0;
}

/* ---- actions ---- */

/* What a set shall want, and for which number of the Deployment. */
struct number {
    int64_t n;
    dv_str desired;
    dv_str max;
};

static bool set_number(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    const struct number *number = action->with;
    struct dv_api_replica_set *set = value;

    set->spec.replicas = &number->n;
    dv_entry_set(&set->metadata.annotations, &set->metadata.n_annotations,
                 DV_STR(DV_DESIRED_ANNOTATION), number->desired, arena);
    dv_entry_set(&set->metadata.annotations, &set->metadata.n_annotations,
                 DV_STR(DV_MAX_ANNOTATION), number->max, arena);
    return true;
}

static void plan_number(struct dv_deployment_state *state, const struct dv_deployment_set *set)
{
    struct dv_arena *arena = state->plan->arena;
    struct number *number = DV_NEW(arena, struct number);
    struct dv_action *action =
        dv_plan_change(state->plan, dv_kind(DV_KIND_REPLICA_SET), &set->set->metadata);

    number->n = set->n;
    number->desired = dv_str_printf(arena, "%lld", (long long)state->n_wanted);
    number->max = dv_str_printf(arena, "%" PRId64, state->n_wanted + state->max_surge);
    action->change = set_number;
    action->with = number;
    if (set->n == set->n_had)
        return;
    action->reason = DV_STR("ScalingReplicaSet");
    action->message = dv_str_printf(
        arena, "Scaled %s replica set %.*s from %lld to %lld", set->n > set->n_had ? "up" : "down",
        DV_FMT(set->set->metadata.name), (long long)set->n_had, (long long)set->n);
}

void dv_deployment_plan_numbers(struct dv_deployment_state *state)
{
    for (size_t i = 0; i < state->sets.n; i++) {
        const struct dv_deployment_set *set = &state->sets.v[i];
        bool is_stale = set->n > 0 &&
                        dv_deployment_number(&set->set->metadata, DV_STR(DV_DESIRED_ANNOTATION)) !=
                            state->n_wanted;

        if (set->n != set->n_had || is_stale)
            plan_number(state, set);
    }
}
