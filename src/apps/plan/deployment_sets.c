/* deployment_sets.c - the ReplicaSets of a Deployment: one for each template that it has had, with
 * a number that says which came when. Going back to an old template gives its set the highest. */
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/deployment.h"
#include "apps/plan/deployment_state.h"
#include "base/arena.h"
#include "base/str.h"
#include "resource/resource.h"

/* The longest list of former numbers. */
#define HISTORY_BYTES_MAX 2000u
#define NAME_BYTES_MAX 253u

/* Annotations of a Deployment that its sets do not get. */
static bool is_own(dv_str annotation)
{
    return dv_str_eq(annotation, DV_STR("kubectl.kubernetes.io/last-applied-configuration")) ||
           dv_str_eq(annotation, DV_STR(DV_REVISION_ANNOTATION)) ||
           dv_str_eq(annotation, DV_STR(DV_HISTORY_ANNOTATION)) ||
           dv_str_eq(annotation, DV_STR(DV_DESIRED_ANNOTATION)) ||
           dv_str_eq(annotation, DV_STR(DV_MAX_ANNOTATION));
}

static void copy_annotations(const struct dv_api_object_meta *from, struct dv_api_object_meta *to,
                             struct dv_arena *arena)
{
    for (size_t i = 0; i < from->n_annotations; i++)
        if (!is_own(from->annotations[i].key))
            dv_entry_set(&to->annotations, &to->n_annotations, from->annotations[i].key,
                         from->annotations[i].value, arena);
}

static void set_annotation(struct dv_api_object_meta *meta, const char *key, int64_t number,
                           struct dv_arena *arena)
{
    dv_entry_set(&meta->annotations, &meta->n_annotations, dv_str_from_c(key),
                 dv_str_printf(arena, "%lld", (long long)number), arena);
}

/* The highest number of sets of other templates, and one more. */
static int64_t next_revision(const struct dv_deployment_state *state)
{
    int64_t max = 0;

    for (size_t i = 0; i < state->sets.n; i++) {
        int64_t number = &state->sets.v[i] == state->newest
                             ? 0
                             : dv_deployment_number(&state->sets.v[i].set->metadata,
                                                    DV_STR(DV_REVISION_ANNOTATION));

        max = number > max ? number : max;
    }
    return max + 1;
}

/* Gives a template and a selector the hash, so that pods of several templates are told apart. */
static void add_hash(struct dv_api_replica_set *set, dv_str hash, struct dv_arena *arena)
{
    struct dv_api_label_selector *selector = DV_NEW(arena, struct dv_api_label_selector);
    dv_str key = DV_STR(DV_TEMPLATE_HASH_LABEL);

    *selector = *set->spec.selector;
    dv_entry_set(&selector->match_labels, &selector->n_match_labels, key, hash, arena);
    set->spec.selector = selector;
    dv_entry_set(&set->spec.template.metadata.labels, &set->spec.template.metadata.n_labels, key,
                 hash, arena);
    set->metadata.labels = set->spec.template.metadata.labels;
    set->metadata.n_labels = set->spec.template.metadata.n_labels;
}

void dv_deployment_plan_newest(struct dv_deployment_state *state)
{
    const struct dv_api_deployment *deployment = state->input->deployment;
    struct dv_arena *arena = state->plan->arena;
    struct dv_api_replica_set *set = DV_NEW(arena, struct dv_api_replica_set);
    dv_str hash =
        dv_template_hash(&deployment->spec.template, deployment->status.collision_count, arena);
    int64_t *n = DV_NEW(arena, int64_t);
    struct dv_action *action;

    *n = dv_deployment_first(state);
    set->metadata.name =
        dv_template_name(deployment->metadata.name, NAME_BYTES_MAX - 1 - hash.n, hash, arena);
    set->metadata.namespace = deployment->metadata.namespace;
    set->spec.replicas = n;
    set->spec.min_ready_seconds = deployment->spec.min_ready_seconds;
    set->spec.selector = deployment->spec.selector;
    set->spec.template = deployment->spec.template;
    add_hash(set, hash, arena);
    copy_annotations(&deployment->metadata, &set->metadata, arena);
    set_annotation(&set->metadata, DV_REVISION_ANNOTATION, next_revision(state), arena);
    set_annotation(&set->metadata, DV_DESIRED_ANNOTATION, state->n_wanted, arena);
    set_annotation(&set->metadata, DV_MAX_ANNOTATION, state->n_wanted + state->max_surge, arena);
    dv_plan_own(state->owner, &set->metadata, arena);
    action = dv_plan_create(state->plan, dv_kind(DV_KIND_REPLICA_SET), set);
    if (*n > 0) {
        action->reason = DV_STR("ScalingReplicaSet");
        action->message = dv_str_printf(arena, "Scaled up replica set %.*s from 0 to %lld",
                                        DV_FMT(set->metadata.name), (long long)*n);
    }
    dv_deployment_plan_created(state, set->metadata.name);
}

/* ---- numbers ---- */

/* Adds a former number to the list, whose oldest ones go when it is too long. */
static dv_str add_to_history(dv_str history, int64_t revision, struct dv_arena *arena)
{
    dv_str list = history.n > 0
                      ? dv_str_printf(arena, "%.*s,%lld", DV_FMT(history), (long long)revision)
                      : dv_str_printf(arena, "%lld", (long long)revision);

    while (list.n > HISTORY_BYTES_MAX)
        list = dv_str_slice(list, dv_str_find_char(list, ',') + 1, list.n);
    return list;
}

static bool set_revision(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    const struct dv_deployment_state *state = action->with;
    const struct dv_api_deployment *deployment = state->input->deployment;
    struct dv_api_replica_set *set = value;
    int64_t revision = next_revision(state);
    int64_t had = dv_deployment_number(&set->metadata, DV_STR(DV_REVISION_ANNOTATION));
    const struct dv_str_entry *history = dv_entry_find(
        set->metadata.annotations, set->metadata.n_annotations, DV_STR(DV_HISTORY_ANNOTATION));

    copy_annotations(&deployment->metadata, &set->metadata, arena);
    set->spec.min_ready_seconds = deployment->spec.min_ready_seconds;
    if (had >= revision)
        return true;
    set_annotation(&set->metadata, DV_REVISION_ANNOTATION, revision, arena);
    if (had > 0)
        dv_entry_set(&set->metadata.annotations, &set->metadata.n_annotations,
                     DV_STR(DV_HISTORY_ANNOTATION),
                     add_to_history(history ? history->value : DV_STR_NONE, had, arena), arena);
    return true;
}

static bool copy_revision(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    struct dv_api_deployment *deployment = value;

    set_annotation(&deployment->metadata, DV_REVISION_ANNOTATION, *(const int64_t *)action->with,
                   arena);
    return true;
}

static bool is_annotated(const struct dv_api_deployment *deployment,
                         const struct dv_api_object_meta *set)
{
    for (size_t i = 0; i < deployment->metadata.n_annotations; i++) {
        const struct dv_str_entry *entry = &deployment->metadata.annotations[i];
        const struct dv_str_entry *copy =
            dv_entry_find(set->annotations, set->n_annotations, entry->key);

        if (!is_own(entry->key) && !(copy && dv_str_eq(copy->value, entry->value)))
            return false;
    }
    return true;
}

void dv_deployment_plan_revision(struct dv_deployment_state *state)
{
    const struct dv_api_deployment *deployment = state->input->deployment;
    const struct dv_api_replica_set *set = state->newest->set;
    int64_t *revision = DV_NEW(state->plan->arena, int64_t);
    struct dv_deployment_state *kept;
    struct dv_action *action;

    *revision = dv_deployment_number(&set->metadata, DV_STR(DV_REVISION_ANNOTATION));
    if (*revision < next_revision(state) || !is_annotated(deployment, &set->metadata) ||
        set->spec.min_ready_seconds != deployment->spec.min_ready_seconds) {
        kept = DV_NEW(state->plan->arena, struct dv_deployment_state);
        *kept = *state;
        action = dv_plan_change(state->plan, dv_kind(DV_KIND_REPLICA_SET), &set->metadata);
        action->change = set_revision;
        action->with = kept;
    } else if (dv_deployment_number(&deployment->metadata, DV_STR(DV_REVISION_ANNOTATION)) !=
               *revision) {
        action = dv_plan_change(state->plan, state->owner->kind, &deployment->metadata);
        action->change = copy_revision;
        action->with = revision;
    }
}

/* ---- old ones ---- */

static int compare(const void *a, const void *b)
{
    const struct dv_deployment_set *x = *(const struct dv_deployment_set *const *)a;
    const struct dv_deployment_set *y = *(const struct dv_deployment_set *const *)b;
    int64_t of_x = dv_deployment_number(&x->set->metadata, DV_STR(DV_REVISION_ANNOTATION));
    int64_t of_y = dv_deployment_number(&y->set->metadata, DV_STR(DV_REVISION_ANNOTATION));

    return of_x < of_y ? -1 : of_x > of_y;
}

void dv_deployment_plan_history(struct dv_deployment_state *state)
{
    const int64_t *limit = state->input->deployment->spec.revision_history_limit;
    size_t n_kept = limit && *limit >= 0 ? (size_t)*limit : 0;
    const struct dv_deployment_set **old =
        DV_NEW_ARRAY(state->plan->arena, const struct dv_deployment_set *, state->sets.n + 1);
    size_t n = 0;

    if (!dv_deployment_is_complete(state))
        return;
    for (size_t i = 0; i < state->sets.n; i++)
        if (&state->sets.v[i] != state->newest &&
            !state->sets.v[i].set->metadata.deletion_timestamp.is_set)
            old[n++] = &state->sets.v[i];
    if (n > 1)
        qsort(old, n, sizeof(old[0]), compare);
    for (size_t i = 0; i + n_kept < n; i++) {
        const struct dv_api_replica_set *set = old[i]->set;

        if (old[i]->n == 0 && set->status.replicas == 0 &&
            set->metadata.generation <= set->status.observed_generation)
            (void)dv_plan_delete(state->plan, dv_kind(DV_KIND_REPLICA_SET), &set->metadata);
    }
}
