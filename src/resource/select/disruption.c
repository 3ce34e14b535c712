#include "resource/disruption.h"

#include <string.h>

#include "base/arena.h"
#include "resource/select.h"

#define ALLOWED DV_STR("DisruptionAllowed")

void dv_disruption_begin(struct dv_disruption *disruption,
                         const struct dv_api_pod_disruption_budget *budget, struct dv_arena *arena)
{
    *disruption = (struct dv_disruption){.budget = budget};
    if (budget->spec.selector)
        disruption->selector = dv_label_selector_of(budget->spec.selector, arena);
    dv_map_init(&disruption->owners);
}

bool dv_disruption_selects(const struct dv_disruption *disruption,
                           const struct dv_api_object_meta *pod)
{
    return disruption->selector &&
           dv_label_selector_matches(disruption->selector, pod->labels, pod->n_labels);
}

/* Counts what the owner wants, once. Owners that keep no number of pods want none. */
static void add_owner(struct dv_disruption *disruption, const struct dv_api_owner_reference *owner)
{
    const struct dv_api_replica_set *set =
        dv_str_eq(owner->kind, DV_STR("ReplicaSet"))
            ? disruption->find(disruption->ctx, DV_KIND_REPLICA_SET, owner->name)
            : NULL;
    const struct dv_api_deployment *deployment = NULL;
    const int64_t *n_wanted;
    dv_str uid = owner->uid;

    if (!set || !dv_str_eq(set->metadata.uid, owner->uid))
        return;
    n_wanted = set->spec.replicas;
    owner = dv_controller_of(&set->metadata);
    if (owner && dv_str_eq(owner->kind, DV_STR("Deployment")))
        deployment = disruption->find(disruption->ctx, DV_KIND_DEPLOYMENT, owner->name);
    if (deployment && dv_str_eq(deployment->metadata.uid, owner->uid)) {
        n_wanted = deployment->spec.replicas;
        uid = owner->uid;
    }
    if (dv_map_get(&disruption->owners, uid))
        return;
    (void)dv_map_set(&disruption->owners, uid, disruption);
    disruption->n_wanted += n_wanted ? *n_wanted : 1;
}

void dv_disruption_add(struct dv_disruption *disruption, const struct dv_api_pod *pod)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(&pod->metadata);

    if (!dv_disruption_selects(disruption, &pod->metadata))
        return;
    disruption->n_pods++;
    disruption->n_healthy += !pod->metadata.deletion_timestamp.is_set && dv_pod_is_ready(pod, NULL);
    if (owner)
        add_owner(disruption, owner);
}

/* How many pods there should be, and how many of them have to work. */
static void set_wanted(const struct dv_disruption *disruption,
                       struct dv_api_pod_disruption_budget_status *status)
{
    const struct dv_api_pod_disruption_budget_spec *spec = &disruption->budget->spec;

    if (spec->max_unavailable) {
        status->expected_pods = disruption->n_wanted;
        status->desired_healthy =
            status->expected_pods - dv_scaled(spec->max_unavailable, status->expected_pods, true);
    } else if (spec->min_available && spec->min_available->is_text) {
        status->expected_pods = disruption->n_wanted;
        status->desired_healthy = dv_scaled(spec->min_available, status->expected_pods, true);
    } else if (spec->min_available) {
        status->expected_pods = disruption->n_pods;
        status->desired_healthy = spec->min_available->number;
    }
    if (status->desired_healthy < 0)
        status->desired_healthy = 0;
}

/* Sets the condition; the time of its transition stays while its status does. */
static void set_condition(const struct dv_disruption *disruption, struct dv_time now,
                          struct dv_arena *arena,
                          struct dv_api_pod_disruption_budget_status *status)
{
    const struct dv_api_pod_disruption_budget_status *had = &disruption->budget->status;
    struct dv_api_condition *all =
        DV_NEW_ARRAY(arena, struct dv_api_condition, had->n_conditions + 1);
    bool is_allowed = status->disruptions_allowed > 0;
    struct dv_api_condition wanted = {.type = ALLOWED,
                                      .status = is_allowed ? DV_STR("True") : DV_STR("False"),
                                      .observed_generation = status->observed_generation,
                                      .last_transition_time = now,
                                      .reason = is_allowed ? DV_STR("SufficientPods")
                                                           : DV_STR("InsufficientPods")};
    size_t at = 0;

    if (had->n_conditions > 0)
        memcpy(all, had->conditions, had->n_conditions * sizeof(all[0]));
    while (at < had->n_conditions && !dv_str_eq(all[at].type, ALLOWED))
        at++;
    if (at < had->n_conditions && dv_str_eq(all[at].status, wanted.status))
        wanted.last_transition_time = all[at].last_transition_time;
    all[at] = wanted;
    status->conditions = all;
    status->n_conditions = at < had->n_conditions ? had->n_conditions : at + 1;
}

void dv_disruption_end(struct dv_disruption *disruption, struct dv_time now, struct dv_arena *arena,
                       struct dv_api_pod_disruption_budget_status *status)
{
    int64_t n_allowed;

    *status = (struct dv_api_pod_disruption_budget_status){
        .observed_generation = disruption->budget->metadata.generation,
        .current_healthy = disruption->n_healthy};
    set_wanted(disruption, status);
    n_allowed = status->current_healthy - status->desired_healthy;
    status->disruptions_allowed = status->expected_pods > 0 && n_allowed > 0 ? n_allowed : 0;
    set_condition(disruption, now, arena, status);
    dv_map_fini(&disruption->owners);
}
