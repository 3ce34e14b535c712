/* definition_names.c - decides which names a definition gets, and what its conditions are.
 *
 *     created -> NamesAccepted True, Established False (Installing)
 *             -> Established True, once it can be served
 *     another definition of the group has a name -> NamesAccepted False, until that one gives it up
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"

typedef struct dv_api_custom_resource_definition definition_t;
typedef struct dv_api_custom_resource_definition_names names_t;
typedef struct dv_api_custom_resource_definition_condition condition_t;

#define ACCEPTED_TEXT "the initial names have been accepted"

/* ---- conditions ---- */

static const condition_t *
find_condition(const struct dv_api_custom_resource_definition_status *status, dv_str type)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, type))
            return &status->conditions[i];
    return NULL;
}

bool dv_custom_is_true(const definition_t *definition, dv_str type)
{
    const condition_t *condition = find_condition(&definition->status, type);

    return condition && dv_str_eq(condition->status, DV_STR("True"));
}

bool dv_custom_set_condition(struct dv_api_custom_resource_definition_status *status,
                             const condition_t *condition, struct dv_time now,
                             struct dv_arena *arena)
{
    const condition_t *old = find_condition(status, condition->type);
    condition_t *all = DV_NEW_ARRAY(arena, condition_t, status->n_conditions + 1);
    size_t at = old ? (size_t)(old - status->conditions) : status->n_conditions;

    if (old && dv_str_eq(old->status, condition->status) &&
        dv_str_eq(old->reason, condition->reason) && dv_str_eq(old->message, condition->message))
        return false;
    if (status->n_conditions > 0)
        memcpy(all, status->conditions, status->n_conditions * sizeof(all[0]));
    all[at] = *condition;
    all[at].last_transition_time =
        old && dv_str_eq(old->status, condition->status) ? old->last_transition_time : now;
    status->conditions = all;
    status->n_conditions += old == NULL;
    return true;
}

/* ---- names ---- */

/* What the other definitions of the group have. */
struct rivals {
    const definition_t *definition;
    const definition_t *const *others;
    size_t n;
};

static bool has_resource(const names_t *names, dv_str name)
{
    if (dv_str_eq(names->plural, name) || dv_str_eq(names->singular, name))
        return true;
    for (size_t i = 0; i < names->n_short_names; i++)
        if (dv_str_eq(names->short_names[i], name))
            return true;
    return false;
}

static bool has_kind(const names_t *names, dv_str name)
{
    return dv_str_eq(names->kind, name) || dv_str_eq(names->list_kind, name);
}

static bool is_taken(const struct rivals *rivals, dv_str name, bool is_kind)
{
    for (size_t i = 0; i < rivals->n; i++) {
        const definition_t *other = rivals->others[i];
        const names_t *names = &other->status.accepted_names;

        if (dv_str_eq(other->metadata.name, rivals->definition->metadata.name) ||
            !dv_str_eq(other->spec.group, rivals->definition->spec.group))
            continue;
        if (name.n > 0 && (is_kind ? has_kind(names, name) : has_resource(names, name)))
            return true;
    }
    return false;
}

static condition_t refused(dv_str reason, dv_str name, struct dv_arena *arena)
{
    return (condition_t){
        .type = DV_STR("NamesAccepted"),
        .status = DV_STR("False"),
        .reason = reason,
        .message = dv_str_printf(arena, "\"%.*s\" is already in use", DV_FMT(name)),
    };
}

/* Accepts the names that are wanted as far as nobody else has them; returns the condition that
 * tells. */
static condition_t accept_names(const struct rivals *rivals, names_t *accepted,
                                struct dv_arena *arena)
{
    const names_t *wanted = &rivals->definition->spec.names;
    condition_t condition = {.type = DV_STR("NamesAccepted"),
                             .status = DV_STR("True"),
                             .reason = DV_STR("NoConflicts"),
                             .message = DV_STR("no conflicts found")};
    const struct {
        dv_str name;
        dv_str *accepted;
        bool is_kind;
        dv_str reason;
    } single[] = {
        {wanted->plural,    &accepted->plural,    false, DV_STR_INIT("PluralConflict")  },
        {wanted->singular,  &accepted->singular,  false, DV_STR_INIT("SingularConflict")},
        {wanted->kind,      &accepted->kind,      true,  DV_STR_INIT("KindConflict")    },
        {wanted->list_kind, &accepted->list_kind, true,  DV_STR_INIT("ListKindConflict")},
    };
    bool has_short_names = true;

    for (size_t i = 0; i < wanted->n_short_names; i++)
        if (is_taken(rivals, wanted->short_names[i], false)) {
            condition = refused(DV_STR("ShortNamesConflict"), wanted->short_names[i], arena);
            has_short_names = false;
        }
    if (has_short_names) {
        accepted->short_names = wanted->short_names;
        accepted->n_short_names = wanted->n_short_names;
    }
    for (size_t i = 0; i < DV_COUNT(single); i++) {
        if (is_taken(rivals, single[i].name, single[i].is_kind))
            condition = refused(single[i].reason, single[i].name, arena);
        else
            *single[i].accepted = single[i].name;
    }
    accepted->categories = wanted->categories;
    accepted->n_categories = wanted->n_categories;
    return condition;
}

/* Whether objects are served, which a conflict that comes later does not change. */
static condition_t establish(const definition_t *definition, bool is_accepted, bool is_ready)
{
    condition_t condition = {.type = DV_STR("Established"), .status = DV_STR("False")};

    if (!is_accepted) {
        condition.reason = DV_STR("NotAccepted");
        condition.message = DV_STR("not all names are accepted");
    } else if (find_condition(&definition->status, DV_STR("Established")) && is_ready &&
               dv_custom_is_true(definition, DV_STR("NamesAccepted"))) {
        condition.status = DV_STR("True");
        condition.reason = DV_STR("InitialNamesAccepted");
        condition.message = DV_STR(ACCEPTED_TEXT);
    } else {
        condition.reason = DV_STR("Installing");
        condition.message = DV_STR(ACCEPTED_TEXT);
    }
    return condition;
}

bool dv_custom_next_status(const definition_t *definition, const definition_t *const *others,
                           size_t n_others, bool is_ready, struct dv_time now,
                           struct dv_arena *arena,
                           struct dv_api_custom_resource_definition_status *status)
{
    const struct rivals rivals = {definition, others, n_others};
    bool was_established = dv_custom_is_true(definition, DV_STR("Established"));
    condition_t accepted;
    condition_t established;
    bool has_changed;

    *status = definition->status;
    accepted = accept_names(&rivals, &status->accepted_names, arena);
    established = establish(definition, dv_str_eq(accepted.status, DV_STR("True")), is_ready);
    has_changed = !dv_message_eq(&dv_message_custom_resource_definition_names,
                                 &status->accepted_names, &definition->status.accepted_names);
    has_changed |= dv_custom_set_condition(status, &accepted, now, arena);
    if (!was_established)
        has_changed |= dv_custom_set_condition(status, &established, now, arena);
    return has_changed;
}
