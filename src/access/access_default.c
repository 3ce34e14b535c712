/* access_default.c - the roles and bindings that every cluster has, and what is done when a stored
 * one lacks something. The list is default_roles.jsonl, an object a line without what all of them
 * have. */
#include "access/access.h"

#include <assert.h>
#include <string.h>

#include "access/access_rule.h"
#include "access/default_roles.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

#define LABEL "kubernetes.io/bootstrapping"
#define LABEL_VALUE "rbac-defaults"
#define ANNOTATION "rbac.authorization.kubernetes.io/autoupdate"

/* ---- reading ---- */

static void read_default(dv_str line, struct dv_arena *arena, struct dv_access_default *out)
{
    const struct dv_json *doc;
    struct dv_err err;
    dv_str name;
    struct dv_api_object_meta *meta;
    bool is_good;

    doc = dv_json_parse(line, NULL, arena, &err);
    is_good = doc && dv_json_as_str(dv_json_get(doc, DV_STR("kind")), &name, &err);
    assert(is_good); /* it is our own text */
    out->kind = dv_kind_by_name(DV_STR(DV_RBAC_GROUP), DV_STR("v1"), name, NULL);
    assert(out->kind);
    out->value = dv_arena_alloc(arena, out->kind->versions->message->size,
                                out->kind->versions->message->align);
    is_good = dv_decode_json(out->kind->versions->message, doc, DV_UNKNOWN_DROP, arena, out->value,
                             NULL, &err);
    assert(is_good);
    meta = out->value;
    dv_entry_set(&meta->labels, &meta->n_labels, DV_STR(LABEL), DV_STR(LABEL_VALUE), arena);
    dv_entry_set(&meta->annotations, &meta->n_annotations, DV_STR(ANNOTATION), DV_STR("true"),
                 arena);
    dv_default(out->kind, out->kind->versions, out->value, (struct dv_time){0}, arena);
}

struct dv_access_default *dv_access_defaults(struct dv_arena *arena, size_t *n)
{
    dv_str rest = {(const char *)dv_default_roles, sizeof(dv_default_roles)};
    DV_VEC(struct dv_access_default) all = {0};
    dv_str line;

    while (dv_str_split(&rest, '\n', &line))
        if (line.n > 0)
            read_default(line, arena, dv_vec_add_in(&all, arena));
    *n = all.n;
    return all.v;
}

/* ---- repairing ---- */

/* Adds the entries that are missing; those that are there stay as they are. */
static bool add_entries(struct dv_str_entry **entries, size_t *n, const struct dv_str_entry *wanted,
                        size_t n_wanted, struct dv_arena *arena)
{
    bool is_changed = false;

    for (size_t i = 0; i < n_wanted; i++)
        if (!dv_entry_find(*entries, *n, wanted[i].key)) {
            dv_entry_set(entries, n, wanted[i].key, wanted[i].value, arena);
            is_changed = true;
        }
    return is_changed;
}

/* Makes a list of those in `wanted` that `has` has not, after all of `has`. */
static void *add_items(const struct dv_message *message, const void *has, size_t *n,
                       const void *wanted, size_t n_wanted, struct dv_arena *arena)
{
    size_t size = message->size;
    char *all = dv_arena_alloc(arena, (*n + n_wanted + 1) * size, message->align);
    size_t n_has = *n;

    if (n_has > 0)
        memcpy(all, has, n_has * size);
    for (size_t i = 0; i < n_wanted; i++) {
        const char *one = (const char *)wanted + i * size;
        bool is_there = false;

        for (size_t k = 0; k < n_has && !is_there; k++)
            is_there = dv_message_eq(message, (const char *)has + k * size, one);
        if (!is_there)
            memcpy(all + (*n)++ * size, one, size);
    }
    return all;
}

/* Whether one of the rules covers it. */
static bool is_covered(const struct dv_api_cluster_role *role, struct dv_access_question *question)
{
    for (size_t i = 0; i < role->n_rules; i++)
        if (dv_access_rule_covers(&role->rules[i], question))
            return true;
    return false;
}

static bool has_rule(const struct dv_api_cluster_role *role, const struct dv_api_policy_rule *rule)
{
    struct dv_access_question question;
    bool has_all = true;

    for (size_t v = 0; v < rule->n_verbs && has_all; v++) {
        for (size_t u = 0; u < rule->n_non_resource_urls && has_all; u++) {
            question = (struct dv_access_question){.verb = rule->verbs[v],
                                                   .path = rule->non_resource_urls[u]};
            has_all = is_covered(role, &question);
        }
        for (size_t g = 0; g < rule->n_api_groups; g++)
            for (size_t r = 0; r < rule->n_resources; r++)
                for (size_t k = 0; k < (rule->n_resource_names ? rule->n_resource_names : 1); k++) {
                    dv_access_ask_atom(rule->verbs[v], rule->api_groups[g], rule->resources[r],
                                       rule->n_resource_names ? &rule->resource_names[k] : NULL,
                                       &question);
                    has_all = has_all && is_covered(role, &question);
                }
    }
    return has_all;
}

/* Adds the rules that those that are there do not cover. */
static bool add_rules(struct dv_api_cluster_role *role, const struct dv_api_cluster_role *wanted,
                      struct dv_arena *arena)
{
    const struct dv_api_cluster_role old = *role;

    role->rules = DV_NEW_ARRAY(arena, struct dv_api_policy_rule, old.n_rules + wanted->n_rules);
    for (size_t i = 0; i < old.n_rules; i++)
        role->rules[i] = old.rules[i];
    for (size_t i = 0; i < wanted->n_rules; i++)
        if (!has_rule(&old, &wanted->rules[i]))
            role->rules[role->n_rules++] = wanted->rules[i];
    return role->n_rules > old.n_rules;
}

/* The rules of a role that is made of others are the controller's. */
static bool add_selectors(struct dv_api_cluster_role *role,
                          const struct dv_api_cluster_role *wanted, struct dv_arena *arena)
{
    struct dv_api_aggregation_rule *rule = DV_NEW(arena, struct dv_api_aggregation_rule);
    size_t n;

    if (role->aggregation_rule)
        *rule = *role->aggregation_rule;
    n = rule->n_cluster_role_selectors;
    rule->cluster_role_selectors =
        add_items(&dv_message_label_selector, rule->cluster_role_selectors,
                  &rule->n_cluster_role_selectors, wanted->aggregation_rule->cluster_role_selectors,
                  wanted->aggregation_rule->n_cluster_role_selectors, arena);
    role->aggregation_rule = rule;
    return rule->n_cluster_role_selectors > n;
}

static bool add_subjects(struct dv_api_role_binding *binding,
                         const struct dv_api_role_binding *wanted, struct dv_arena *arena)
{
    size_t n = binding->n_subjects;

    binding->subjects = add_items(&dv_message_subject, binding->subjects, &binding->n_subjects,
                                  wanted->subjects, wanted->n_subjects, arena);
    return binding->n_subjects > n;
}

enum dv_access_repair dv_access_repair(const struct dv_access_default *wanted, const void *stored,
                                       struct dv_arena *arena, void *merged)
{
    const struct dv_api_object_meta *from = wanted->value;
    struct dv_api_object_meta *meta = merged;
    const struct dv_str_entry *update;
    bool is_changed;

    memcpy(merged, stored, wanted->kind->versions->message->size);
    update = dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(ANNOTATION));
    if (update && dv_str_eq(update->value, DV_STR("false")))
        return DV_ACCESS_FINE;
    is_changed = add_entries(&meta->labels, &meta->n_labels, from->labels, from->n_labels, arena);
    is_changed |= add_entries(&meta->annotations, &meta->n_annotations, from->annotations,
                              from->n_annotations, arena);
    if (wanted->kind->id == DV_KIND_ROLE || wanted->kind->id == DV_KIND_CLUSTER_ROLE) {
        const struct dv_api_cluster_role *role = wanted->value;

        is_changed |= role->aggregation_rule ? add_selectors(merged, role, arena)
                                             : add_rules(merged, role, arena);
    } else {
        const struct dv_api_role_binding *binding = wanted->value;

        if (!dv_message_eq(&dv_message_role_ref, &binding->role_ref,
                           &((const struct dv_api_role_binding *)stored)->role_ref))
            return DV_ACCESS_OTHER;
        is_changed |= add_subjects(merged, binding, arena);
    }
    return is_changed ? DV_ACCESS_CHANGED : DV_ACCESS_FINE;
}
