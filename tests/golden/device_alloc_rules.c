#include "device_alloc_rules.h"

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device_alloc_choice.h"
#include "device_alloc_world.h"
#include "json/json.h"

/* -- Sets of texts, as objects -------------------------------------------------------------- */

bool set_has(const struct dv_json *set, dv_str text)
{
    return dv_json_get(set, text) != NULL;
}

void set_add(struct dv_json *set, dv_str text, struct dv_arena *arena)
{
    dv_json_set(set, text, dv_json_new_null(arena), arena);
}

void set_add_all(struct dv_json *set, const struct dv_json *list, struct dv_arena *arena)
{
    struct dv_err err;
    dv_str text;

    for (struct dv_json *one = list ? dv_json_first(list) : NULL; one; one = dv_json_next(one))
        if (dv_json_as_str(one, &text, &err))
            set_add(set, text, arena);
}

/* The ids of an entry of `held`, whatever their nodes. */
struct dv_json *set_of_entry(const struct dv_json *entry, struct dv_arena *arena)
{
    struct dv_json *set = dv_json_new_object(arena);

    for (struct dv_json *node = entry ? dv_json_first(entry) : NULL; node;
         node = dv_json_next(node))
        set_add_all(set, node, arena);
    return set;
}

static bool set_shares(const struct dv_json *a, const struct dv_json *b)
{
    for (struct dv_json *one = dv_json_first(a); one; one = dv_json_next(one))
        if (set_has(b, dv_json_key(one)))
            return true;
    return false;
}

/* -- Entries of `held` ---------------------------------------------------------------------- */

/* "pod|container|resource". */
struct entry {
    dv_str pod;
    dv_str container;
    dv_str resource;
};

static struct entry entry_of(const struct dv_json *held)
{
    dv_str rest = dv_json_key(held);
    struct entry entry = {0};

    (void)(dv_str_split(&rest, '|', &entry.pod) && dv_str_split(&rest, '|', &entry.container));
    entry.resource = rest;
    return entry;
}

/* Its place in the order of admission, and its kind; SIZE_MAX when the pod is not known. */
static size_t place_of(const struct rules *rules, const struct entry *entry, dv_str *kind)
{
    const struct dv_json *pod = dv_json_get(rules->pods, entry->pod);
    const struct dv_json *list = dv_json_get(pod, DV_STR("containers"));
    size_t place = 0;

    for (struct dv_json *one = list ? dv_json_first(list) : NULL; one; one = dv_json_next(one)) {
        bool is_regular = dv_str_eq(text_of(one, "kind"), DV_STR("regular"));

        if (dv_str_eq(text_of(one, "name"), entry->container)) {
            *kind = text_of(one, "kind");
            return is_regular ? place + 1000 : place; /* after all init containers */
        }
        place++;
    }
    return SIZE_MAX;
}

/* Rule 2: only what a plain init container holds is held by a later one of its pod, too. */
static bool may_share(const struct rules *rules, const struct entry *a, const struct entry *b)
{
    dv_str kind_a = DV_STR("");
    dv_str kind_b = DV_STR("");
    size_t place_a = place_of(rules, a, &kind_a);
    size_t place_b = place_of(rules, b, &kind_b);

    if (!dv_str_eq(a->pod, b->pod))
        return false;
    return dv_str_eq(place_a < place_b ? kind_a : kind_b, DV_STR("init"));
}

static bool check_sharing(const struct rules *rules, const struct dv_json *held, struct dv_err *err)
{
    for (struct dv_json *one = dv_json_first(held); one; one = dv_json_next(one)) {
        struct entry a = entry_of(one);
        struct dv_json *ids = set_of_entry(one, rules->arena);

        for (struct dv_json *two = dv_json_next(one); two; two = dv_json_next(two)) {
            struct entry b = entry_of(two);

            if (dv_str_eq(a.resource, b.resource) && !may_share(rules, &a, &b) &&
                set_shares(ids, set_of_entry(two, rules->arena)))
                return dv_fail(err, DV_FAILED_PRECONDITION, "rule 2: %.*s and %.*s share a device",
                               DV_FMT(dv_json_key(one)), DV_FMT(dv_json_key(two)));
        }
    }
    return true;
}

/* -- Lists ---------------------------------------------------------------------------------- */

static bool is_healthy(const struct dv_json *device)
{
    struct dv_err err;
    bool value = false;

    return device && dv_json_as_bool(dv_json_get(device, DV_STR("healthy")), &value, &err) && value;
}

/* Who holds an id, of whatever resource; adds them to `pods`. */
static void find_holders(const struct rules *rules, dv_str id, struct dv_json *pods)
{
    for (struct dv_json *one = dv_json_first(rules->held); one; one = dv_json_next(one))
        if (set_has(set_of_entry(one, rules->arena), id))
            set_add(pods, entry_of(one).pod, rules->arena);
}

/* Of each changed id one holder is told, and nobody else. */
static bool check_told(const struct rules *rules, const struct dv_json *old,
                       const struct dv_json *devices, const struct dv_json *told,
                       struct dv_err *err)
{
    struct dv_json *all = dv_json_new_object(rules->arena);
    struct dv_json *told_set = dv_json_new_object(rules->arena);

    set_add_all(told_set, told, rules->arena);
    for (struct dv_json *one = dv_json_first(devices); one; one = dv_json_next(one)) {
        const struct dv_json *before = old ? dv_json_get(old, text_of(one, "id")) : NULL;
        struct dv_json *holders = dv_json_new_object(rules->arena);

        if (before && is_healthy(before) == is_healthy(one))
            continue;
        find_holders(rules, text_of(one, "id"), holders);
        find_holders(rules, text_of(one, "id"), all);
        if (dv_json_n(holders) > 0 && !set_shares(holders, told_set))
            return dv_fail(err, DV_FAILED_PRECONDITION, "no holder of %.*s is told",
                           DV_FMT(text_of(one, "id")));
    }
    for (struct dv_json *one = dv_json_first(told_set); one; one = dv_json_next(one))
        if (!set_has(all, dv_json_key(one)))
            return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s is told, but holds nothing changed",
                           DV_FMT(dv_json_key(one)));
    return true;
}

static bool check_list(struct rules *rules, const struct dv_json *op, const struct dv_json *outcome,
                       struct dv_err *err)
{
    const struct dv_json *devices = dv_json_get(op, DV_STR("devices"));
    const struct dv_json *told =
        dv_json_get(dv_json_get(outcome, DV_STR("result")), DV_STR("podsToUpdate"));
    dv_str resource = text_of(op, "resource");
    struct dv_json *list = dv_json_new_object(rules->arena);
    bool is_right = check_told(rules, dv_json_get(rules->lists, resource), devices, told, err);

    for (struct dv_json *one = dv_json_first(devices); one; one = dv_json_next(one))
        dv_json_set(list, text_of(one, "id"), dv_json_copy(one, rules->arena), rules->arena);
    dv_json_set(rules->lists, resource, list, rules->arena);
    return is_right;
}

/* -- Restarts and the state file ------------------------------------------------------------ */

/* After a restart that is held which was in the file. */
static bool check_restart(struct rules *rules, const struct dv_json *outcome, struct dv_err *err)
{
    struct dv_json *held = dv_json_get(outcome, DV_STR("held"));
    const struct dv_json *file = dv_json_get(outcome, DV_STR("checkpoint"));
    struct dv_json *entries = dv_json_get(file ? file : rules->file, DV_STR("entries"));

    rules->lists = dv_json_new_object(rules->arena);
    rules->leaked = dv_json_new_object(rules->arena);
    if (held && !dv_json_eq(held, entries ? entries : dv_json_new_object(rules->arena)))
        return dv_fail(err, DV_FAILED_PRECONDITION, "rule 7: held is not what the file had");
    return true;
}

static bool may_write(dv_str op)
{
    static const char *const writers[] = {"list", "admit", "start", "capacity", "restart"};

    for (size_t i = 0; i < DV_COUNT(writers); i++)
        if (dv_str_eq(op, dv_str_from_c(writers[i])))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------- */

struct rules *rules_new(struct dv_arena *arena)
{
    struct rules *rules = DV_NEW(arena, struct rules);

    rules->arena = arena;
    rules->lists = dv_json_new_object(arena);
    rules->pods = dv_json_new_object(arena);
    rules->held = dv_json_new_object(arena);
    rules->leaked = dv_json_new_object(arena);
    rules->file = dv_json_new_null(arena);
    return rules;
}

static bool check_op(struct rules *rules, dv_str name, const struct dv_json *op,
                     const struct dv_json *outcome, struct dv_err *err)
{
    const struct dv_json *pod = dv_json_get(op, DV_STR("pod"));

    if (pod)
        dv_json_set(rules->pods, text_of(pod, "uid"), dv_json_copy(pod, rules->arena),
                    rules->arena);
    if (dv_str_eq(name, DV_STR("list")))
        return check_list(rules, op, outcome, err);
    if (dv_str_eq(name, DV_STR("restart")))
        return check_restart(rules, outcome, err);
    if (dv_str_eq(name, DV_STR("admit")))
        return rules_check_admission(rules, pod, outcome, err);
    return true;
}

bool rules_check(struct rules *rules, const struct dv_json *op, const struct dv_json *outcome,
                 struct dv_err *err)
{
    struct dv_json *held = dv_json_get(outcome, DV_STR("held"));
    struct dv_json *file = dv_json_get(outcome, DV_STR("checkpoint"));
    dv_str name = text_of(op, "op");
    bool is_first = rules->n_steps++ == 0;

    if (file && !is_first && !may_write(name))
        return dv_fail(err, DV_FAILED_PRECONDITION, "rule 7: the file is written");
    if (held && dv_str_eq(name, DV_STR("admit")))
        rules_drop_gone(rules, op, held);
    if (!check_op(rules, name, op, outcome, err))
        return false;
    if (held && !check_sharing(rules, held, err))
        return false;
    if (held)
        rules->held = dv_json_copy(held, rules->arena);
    if (file)
        rules->file = dv_json_copy(file, rules->arena);
    return true;
}
