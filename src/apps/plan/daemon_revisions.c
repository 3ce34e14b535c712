/* daemon_revisions.c - the templates that a DaemonSet has had, as ControllerRevisions: each has a
 * number, and the one that is wanted the highest. Going back to an old template raises its
 * number. */
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/daemon_state.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (16u * 1024u * 1024u)
/* So much of the set's name is in that of a revision, as in the reference: the hash needs room. */
#define PREFIX_BYTES_MAX 223u

dv_str dv_daemon_revision_data(const struct dv_api_daemon_set *set, struct dv_arena *arena)
{
    static const struct dv_json_style style = {.sort_keys = true, .escape_html = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *template = dv_encode_json(&dv_message_pod_template_spec, &set->spec.template,
                                              NULL, DV_STR_NONE, arena);
    struct dv_json *spec = dv_json_new_object(arena);
    struct dv_json *patch = dv_json_new_object(arena);

    dv_json_set(template, DV_STR("$patch"), dv_json_new_str(DV_STR("replace"), arena), arena);
    dv_json_set(spec, DV_STR("template"), template, arena);
    dv_json_set(patch, DV_STR("spec"), spec, arena);
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_json_print(patch, &style, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* Whether the data sets the template that the set has, in other words: what an older server left
 * out is filled in. */
static bool sets_template(const struct dv_api_daemon_set *set, dv_str data, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_DAEMON_SET);
    struct dv_api_daemon_set *had = DV_NEW(arena, struct dv_api_daemon_set);
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(data, NULL, arena, &err);
    const struct dv_json *template =
        dv_json_get(dv_json_get(doc, DV_STR("spec")), DV_STR("template"));

    if (!template || !dv_decode_json(&dv_message_pod_template_spec, template, DV_UNKNOWN_DROP,
                                     arena, &had->spec.template, NULL, &err))
        return false;
    dv_default(kind, &kind->versions[0], had, (struct dv_time){0}, arena);
    return dv_message_eq(&dv_message_pod_template_spec, &had->spec.template, &set->spec.template);
}

static dv_str hash_of(const struct dv_api_controller_revision *revision)
{
    const struct dv_str_entry *label = dv_entry_find(
        revision->metadata.labels, revision->metadata.n_labels, DV_STR(DV_REVISION_HASH_LABEL));

    return label ? label->value : DV_STR_NONE;
}

/* The newest revision of the template; `max` gets the highest number of all. */
static const struct dv_api_controller_revision *find_revision(const struct dv_daemon_state *state,
                                                              dv_str data, int64_t *max)
{
    const struct dv_daemon_input *input = state->input;
    const struct dv_api_controller_revision *found = NULL;

    *max = 0;
    for (size_t i = 0; i < input->n_revisions; i++) {
        const struct dv_api_controller_revision *revision = input->revisions[i];

        if (!dv_daemon_is_own(state, &revision->metadata))
            continue;
        *max = revision->revision > *max ? revision->revision : *max;
        if ((!found || found->revision < revision->revision) &&
            (dv_str_eq(revision->data, data) ||
             sets_template(input->set, revision->data, state->plan->arena)))
            found = revision;
    }
    return found;
}

/* Anybody may write any number into a revision. Where there is none above, several have the same.
 */
static int64_t number_after(int64_t number)
{
    return number < INT64_MAX ? number + 1 : INT64_MAX;
}

static void create_revision(struct dv_daemon_state *state, dv_str data, int64_t number)
{
    const struct dv_api_daemon_set *set = state->input->set;
    struct dv_arena *arena = state->plan->arena;
    struct dv_api_controller_revision *revision = DV_NEW(arena, struct dv_api_controller_revision);
    dv_str hash = dv_template_hash(&set->spec.template, set->status.collision_count, arena);
    struct dv_api_object_meta *meta = &revision->metadata;

    meta->name = dv_template_name(set->metadata.name, PREFIX_BYTES_MAX, hash, arena);
    meta->namespace = set->metadata.namespace;
    meta->labels = set->spec.template.metadata.labels;
    meta->n_labels = set->spec.template.metadata.n_labels;
    dv_entry_set(&meta->labels, &meta->n_labels, DV_STR(DV_REVISION_HASH_LABEL), hash, arena);
    meta->annotations = set->metadata.annotations;
    meta->n_annotations = set->metadata.n_annotations;
    dv_plan_own(state->owner, meta, arena);
    revision->data = data;
    revision->revision = number;
    if (dv_daemon_is_own(state, meta))
        (void)dv_plan_create(state->plan, dv_kind(DV_KIND_CONTROLLER_REVISION), revision);
}

static bool set_number(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    struct dv_api_controller_revision *revision = value;

    (void)arena;
    revision->revision = *(const int64_t *)action->with;
    return true;
}

void dv_daemon_plan_revision(struct dv_daemon_state *state)
{
    struct dv_arena *arena = state->plan->arena;
    dv_str data = dv_daemon_revision_data(state->input->set, arena);
    int64_t *number = DV_NEW(arena, int64_t);
    struct dv_action *action;

    state->revision = find_revision(state, data, number);
    if (!state->revision) {
        create_revision(state, data, number_after(*number));
        return;
    }
    state->hash = hash_of(state->revision);
    if (state->revision->revision == *number)
        return;
    *number = number_after(*number);
    action = dv_plan_change(state->plan, dv_kind(DV_KIND_CONTROLLER_REVISION),
                            &state->revision->metadata);
    action->change = set_number;
    action->with = number;
}

/* ---- old ones ---- */

static bool is_used(const struct dv_daemon_state *state,
                    const struct dv_api_controller_revision *revision)
{
    dv_str hash = hash_of(revision);

    for (size_t i = 0; i < state->input->n_pods; i++) {
        const struct dv_api_object_meta *meta = &state->input->pods[i]->metadata;
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, DV_STR(DV_REVISION_HASH_LABEL));

        if (label && dv_str_eq(label->value, hash))
            return true;
    }
    return false;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = (*(const struct dv_api_controller_revision *const *)a)->revision;
    int64_t y = (*(const struct dv_api_controller_revision *const *)b)->revision;

    return x < y ? -1 : x > y;
}

void dv_daemon_plan_history(struct dv_daemon_state *state)
{
    const struct dv_daemon_input *input = state->input;
    const int64_t *limit = input->set->spec.revision_history_limit;
    const struct dv_api_controller_revision **old = DV_NEW_ARRAY(
        state->plan->arena, const struct dv_api_controller_revision *, input->n_revisions + 1);
    size_t n_kept = limit && *limit >= 0 ? (size_t)*limit : 0;
    size_t n = 0;

    for (size_t i = 0; i < input->n_revisions; i++)
        if (input->revisions[i] != state->revision &&
            dv_daemon_is_own(state, &input->revisions[i]->metadata) &&
            !input->revisions[i]->metadata.deletion_timestamp.is_set)
            old[n++] = input->revisions[i];
    if (n > 1)
        qsort(old, n, sizeof(old[0]), compare_numbers);
    for (size_t i = 0, n_left = n; i < n && n_left > n_kept; i++) {
        if (is_used(state, old[i]))
            continue;
        (void)dv_plan_delete(state->plan, dv_kind(DV_KIND_CONTROLLER_REVISION), &old[i]->metadata);
        n_left--;
    }
}
