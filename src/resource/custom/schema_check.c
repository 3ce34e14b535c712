/* schema_check.c - what is wrong with a value by its schema, in the reference's words.
 *
 * On an update a problem does not count when the part that it is in has not changed: objects that
 * were valid when they were written stay writable when their schema becomes stricter. Whether a
 * part has changed is only looked at when it has a problem. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cel/cel_pattern.h"
#include "resource/custom/schema.h"
#include "resource/validate/checks.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1u << 20)
/* So many steps of matching a pattern take as long as one part of a value. */
#define STEPS_OF_PATTERN 10u

/* A value at its place, beside what was there before. */
struct value {
    const struct dv_structural *schema;
    const struct dv_json *node;
    const struct dv_json *old; /* NULL: nothing that it could be compared with */
    const struct dv_field_path *path;
    uint64_t *steps_left;
};

static void check_value(const struct value *value, struct dv_problems *problems);

static dv_str text_of(const struct dv_json *node)
{
    struct dv_err err;
    dv_str text = DV_STR_NONE;

    return dv_json_is(node, DV_JSON_STRING) && dv_json_as_str(node, &text, &err) ? text
                                                                                 : DV_STR_NONE;
}

static struct dv_bad_value shown(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (dv_json_is(node, DV_JSON_STRING))
        return dv_bad_str(text_of(node));
    dv_json_print(node, &(const struct dv_json_style){.sort_keys = true}, &buf);
    return (struct dv_bad_value){.kind = BAD_JSON, .text = dv_str_copy(dv_buf_str(&buf), arena)};
}

/* The path as a text, which the messages about values name a second time. */
static dv_str path_text(const struct dv_field_path *path, struct dv_arena *arena)
{
    struct dv_problems one = {.arena = arena};

    dv_required(&one, path, NULL);
    return one.n > 0 ? one.v[0].field : DV_STR_NONE;
}

/* Adds "spec.x in body " and what follows, the first part of which is `what`. */
static void add_in_body(const struct value *value, struct dv_bad_value bad, dv_str what,
                        struct dv_problems *problems)
{
    if (dv_problems_are_full(problems))
        return;
    dv_problem_add(problems, DV_PROBLEM_INVALID, value->path, NULL, bad, "%.*s in body %.*s",
                   DV_FMT(path_text(value->path, problems->arena)), DV_FMT(what));
}

static void spend(const struct value *value, uint64_t steps)
{
    *value->steps_left -= dv_u64_min(steps, *value->steps_left);
}

/* ---- types ---- */

/* A number without a fraction is an integer, however it is written. */
static bool is_integer(const struct dv_json *node, struct dv_arena *arena)
{
    struct dv_err err;
    int64_t number;
    double value;

    if (dv_json_as_i64(node, &number, &err))
        return true;
    value = strtod(dv_str_printf(arena, "%.*s", DV_FMT(dv_json_number_text(node))).p, NULL);
    return isfinite(value) && trunc(value) == value;
}

static bool has_type(const struct dv_structural *schema, const struct dv_json *node,
                     struct dv_arena *arena)
{
    switch ((enum dv_schema_type)schema->type) {
    case DV_SCHEMA_OBJECT:
        return dv_json_is(node, DV_JSON_OBJECT);
    case DV_SCHEMA_ARRAY:
        return dv_json_is(node, DV_JSON_ARRAY);
    case DV_SCHEMA_STRING:
        return dv_json_is(node, DV_JSON_STRING);
    case DV_SCHEMA_INTEGER:
        return dv_json_is(node, DV_JSON_NUMBER) && is_integer(node, arena);
    case DV_SCHEMA_NUMBER:
        return dv_json_is(node, DV_JSON_NUMBER);
    case DV_SCHEMA_BOOLEAN:
        return dv_json_is(node, DV_JSON_BOOL);
    case DV_SCHEMA_ANY:
        break;
    }
    return !schema->is_int_or_string || dv_json_is(node, DV_JSON_STRING) ||
           (dv_json_is(node, DV_JSON_NUMBER) && is_integer(node, arena));
}

static const char *type_of(const struct dv_json *node, struct dv_arena *arena)
{
    switch (dv_json_kind(node)) {
    case DV_JSON_NULL:
        return "null";
    case DV_JSON_BOOL:
        return "boolean";
    case DV_JSON_NUMBER:
        return is_integer(node, arena) ? "integer" : "number";
    case DV_JSON_STRING:
        return "string";
    case DV_JSON_ARRAY:
        return "array";
    case DV_JSON_OBJECT:
        break;
    }
    return "object";
}

static bool check_type(const struct value *value, struct dv_problems *problems)
{
    const char *found;
    const char *wanted;

    if (dv_json_is(value->node, DV_JSON_NULL) && value->schema->is_nullable)
        return false; /* nothing else is said of null */
    if (has_type(value->schema, value->node, problems->arena))
        return true;
    found = type_of(value->node, problems->arena);
    wanted = value->schema->is_int_or_string
                 ? "integer,string"
                 : dv_schema_type_name((enum dv_schema_type)value->schema->type);
    add_in_body(value, dv_bad_str(dv_str_from_c(found)),
                dv_str_printf(problems->arena, "must be of type %s: \"%s\"", wanted, found),
                problems);
    return false;
}

/* ---- scalars ---- */

static void check_enumeration(const struct value *value, const struct dv_schema_checks *checks,
                              struct dv_problems *problems)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!checks->enumeration)
        return;
    spend(value, dv_json_n(checks->enumeration) / STEPS_OF_PATTERN);
    for (const struct dv_json *item = dv_json_first(checks->enumeration); item;
         item = dv_json_next(item)) {
        if (dv_json_eq(item, value->node))
            return;
        dv_buf_add_c(&buf, buf.n > 0 ? ", " : "");
        if (dv_json_is(item, DV_JSON_STRING))
            dv_json_print(item, NULL, &buf);
        else
            dv_buf_printf(&buf, "\"%.*s\"", DV_FMT(shown(item, problems->arena).text));
    }
    dv_problem_add(problems, DV_PROBLEM_NOT_SUPPORTED, value->path, NULL,
                   shown(value->node, problems->arena), "supported values: %.*s",
                   DV_FMT(dv_buf_str(&buf)));
}

/* Adds that the number is beyond a bound. */
static void refuse_bound(const struct value *value, const struct dv_schema_bound *bound,
                         const char *than, struct dv_problems *problems)
{
    add_in_body(value, shown(value->node, problems->arena),
                dv_str_printf(problems->arena, "should be %s than %s%.*s", than,
                              bound->is_exclusive ? "" : "or equal to ", DV_FMT(bound->text)),
                problems);
}

static void check_number(const struct value *value, const struct dv_schema_checks *checks,
                         struct dv_problems *problems)
{
    double number = strtod(
        dv_str_printf(problems->arena, "%.*s", DV_FMT(dv_json_number_text(value->node))).p, NULL);
    const struct dv_schema_bound *min = &checks->minimum;
    const struct dv_schema_bound *max = &checks->maximum;
    const struct dv_schema_bound *unit = &checks->multiple_of;

    if (min->is_set && (number < min->value || (min->is_exclusive && number <= min->value)))
        refuse_bound(value, min, "greater", problems);
    if (max->is_set && (number > max->value || (max->is_exclusive && number >= max->value)))
        refuse_bound(value, max, "less", problems);
    if (unit->is_set && unit->value > 0 &&
        fabs(number / unit->value - round(number / unit->value)) > 1e-9)
        add_in_body(
            value, shown(value->node, problems->arena),
            dv_str_printf(problems->arena, "should be a multiple of %.*s", DV_FMT(unit->text)),
            problems);
}

static int64_t n_characters(dv_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return n;
}

static void check_pattern(const struct value *value, const struct dv_schema_checks *checks,
                          dv_str text, struct dv_problems *problems)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    enum dv_cel_pattern_result result;
    uint64_t steps;

    if (!checks->regex)
        return;
    scratch = dv_arena_new();
    result = dv_cel_pattern_find(checks->regex, text, scratch, &steps);
    spend(value, steps / STEPS_OF_PATTERN);
    switch (result) {
    case DV_CEL_PATTERN_MATCHES:
        break;
    case DV_CEL_PATTERN_DIFFERS:
        add_in_body(value, dv_bad_str(text),
                    dv_str_printf(problems->arena, "should match '%.*s'", DV_FMT(checks->pattern)),
                    problems);
        break;
    case DV_CEL_PATTERN_TOO_COSTLY:
        add_in_body(value, dv_bad_str(text),
                    dv_str_printf(problems->arena, "takes too long to be matched with '%.*s'",
                                  DV_FMT(checks->pattern)),
                    problems);
        break;
    }
}

static bool has_format(dv_str format, dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    return dv_cel_has_format(format, text, scratch);
}

static void check_text(const struct value *value, const struct dv_schema_checks *checks,
                       struct dv_problems *problems)
{
    dv_str text = text_of(value->node);
    const struct dv_schema_range *length = &checks->length;

    if (length->max >= 0 && n_characters(text) > length->max)
        dv_too_long(problems, value->path, NULL, (size_t)length->max);
    if (length->min > 0 && n_characters(text) < length->min)
        add_in_body(value, dv_bad_str(text),
                    dv_str_printf(problems->arena, "should be at least %lld chars long",
                                  (long long)length->min),
                    problems);
    check_pattern(value, checks, text, problems);
    if (checks->format.n > 0 && !has_format(checks->format, text))
        add_in_body(value, dv_bad_str(text),
                    dv_str_printf(problems->arena, "must be of type %.*s: \"%.*s\"",
                                  DV_FMT(checks->format), DV_FMT(text)),
                    problems);
}

/* ---- objects and lists ---- */

static void check_n(const struct value *value, const struct dv_schema_range *range,
                    const char *what, struct dv_problems *problems)
{
    size_t n = dv_json_n(value->node);

    if (range->max >= 0 && n > (size_t)range->max)
        dv_too_many(problems, value->path, NULL, n, (size_t)range->max);
    if (range->min > 0 && n < (size_t)range->min)
        add_in_body(value, dv_bad_i64((int64_t)n),
                    dv_str_printf(problems->arena, "should have at least %lld %s",
                                  (long long)range->min, what),
                    problems);
}

static void check_object(const struct value *value, struct dv_problems *problems)
{
    const struct dv_structural *schema = value->schema;
    const struct dv_schema_checks *checks = schema->checks;

    if (checks)
        check_n(value, &checks->properties, "properties", problems);
    for (size_t i = 0; checks && i < checks->n_required; i++) {
        struct dv_field_path at = {
            .up = value->path, .kind = PATH_TEXT, .key = checks->required[i]};

        if (!dv_json_get(value->node, checks->required[i]))
            dv_required(problems, &at, NULL);
    }
    for (const struct dv_json *child = dv_json_first(value->node);
         child && !dv_problems_are_full(problems); child = dv_json_next(child)) {
        dv_str name = dv_json_key(child);
        const struct dv_structural *member = dv_schema_member(schema, name);
        struct dv_field_path at = {.up = value->path, .kind = PATH_TEXT, .key = name};

        if (member)
            check_value(&(const struct value){member, child, dv_json_get(value->old, name), &at,
                                              value->steps_left},
                        problems);
    }
}

/* The keys of an item as a document, or for a set the item itself. */
static const struct dv_json *identity(const struct dv_structural *list, const struct dv_json *item,
                                      struct dv_arena *arena)
{
    struct dv_json *keys;

    if (list->list == DV_SCHEMA_LIST_SET)
        return item;
    keys = dv_json_new_object(arena);
    for (size_t i = 0; i < list->n_keys; i++) {
        const struct dv_json *key = dv_json_get(item, list->keys[i]);

        if (key)
            dv_json_set(keys, list->keys[i], dv_json_copy(key, arena), arena);
    }
    return keys;
}

static void check_duplicates(const struct value *value, struct dv_problems *problems)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_map_fini) struct dv_map seen;
    size_t i = 0;

    dv_map_init(&seen);
    for (const struct dv_json *item = dv_json_first(value->node); item;
         item = dv_json_next(item), i++) {
        struct dv_bad_value shape = shown(identity(value->schema, item, scratch), scratch);
        dv_str key = shape.kind == BAD_STRING ? dv_str_printf(scratch, "\"%.*s", DV_FMT(shape.text))
                                              : shape.text;
        struct dv_field_path at = dv_path_index(value->path, i);

        if (dv_map_get(&seen, key))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &at, NULL, shape, "%s", "");
        else
            dv_map_set(&seen, key, &seen);
    }
}

bool dv_schema_is_same_item(const struct dv_structural *list, const struct dv_json *a,
                            const struct dv_json *b)
{
    for (size_t i = 0; i < list->n_keys; i++) {
        const struct dv_json *x = dv_json_get(a, list->keys[i]);
        const struct dv_json *y = dv_json_get(b, list->keys[i]);

        if ((x || y) && (!x || !y || !dv_json_eq(x, y)))
            return false;
    }
    return true;
}

/* The item that this one was before. Only lists with keys tell; of a list that has changed nothing
 * else does. */
static const struct dv_json *old_item(const struct value *list, const struct dv_json *item)
{
    if (list->schema->list != DV_SCHEMA_LIST_MAP || !dv_json_is(list->old, DV_JSON_ARRAY))
        return NULL;
    for (const struct dv_json *old = dv_json_first(list->old); old; old = dv_json_next(old)) {
        spend(list, 1);
        if (dv_schema_is_same_item(list->schema, old, item))
            return old;
    }
    return NULL;
}

static void check_item(const struct value *list, const struct dv_json *item, size_t i,
                       struct dv_problems *problems)
{
    struct dv_field_path at = dv_path_index(list->path, i);
    struct value value = {list->schema->items, item, NULL, &at, list->steps_left};
    size_t n = problems->n;

    check_value(&value, problems);
    if (problems->n == n)
        return;
    value.old = old_item(list, item); /* it is looked for only now, because that takes long */
    if (!value.old)
        return;
    problems->n = n;
    check_value(&value, problems);
}

static void check_array(const struct value *value, struct dv_problems *problems)
{
    const struct dv_structural *schema = value->schema;
    size_t i = 0;

    if (schema->checks)
        check_n(value, &schema->checks->items, "items", problems);
    if (schema->list != DV_SCHEMA_LIST_ATOMIC)
        check_duplicates(value, problems);
    if (!schema->items)
        return;
    for (const struct dv_json *item = dv_json_first(value->node);
         item && !dv_problems_are_full(problems); item = dv_json_next(item))
        check_item(value, item, i++, problems);
}

/* ---- junctors ---- */

static bool fits(const struct value *value, const struct dv_structural *schema,
                 struct dv_arena *scratch)
{
    struct dv_problems problems = {.arena = scratch};
    const struct value part = {schema, value->node, NULL, value->path, value->steps_left};

    check_value(&part, &problems);
    return problems.n == 0;
}

static size_t n_fitting(const struct value *value, const struct dv_structural *const *schemas,
                        size_t n, struct dv_arena *scratch)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += fits(value, schemas[i], scratch);
    return found;
}

static void refuse_junctor(const struct value *value, const char *what,
                           struct dv_problems *problems)
{
    if (!dv_problems_are_full(problems))
        dv_problem_add(problems, DV_PROBLEM_INVALID, value->path, NULL, dv_bad_str(DV_STR("")),
                       "\"%.*s\" %s", DV_FMT(path_text(value->path, problems->arena)), what);
}

static void check_junctors(const struct value *value, const struct dv_schema_checks *checks,
                           struct dv_problems *problems)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    size_t before = problems->n;
    size_t n;

    for (size_t i = 0; i < checks->n_all_of; i++) {
        const struct value part = {checks->all_of[i], value->node, NULL, value->path,
                                   value->steps_left};

        check_value(&part, problems);
    }
    if (problems->n > before)
        refuse_junctor(value, "must validate all the schemas (allOf)", problems);
    if (checks->n_any_of > 0 && n_fitting(value, checks->any_of, checks->n_any_of, scratch) == 0)
        refuse_junctor(value, "must validate at least one schema (anyOf)", problems);
    n = n_fitting(value, checks->one_of, checks->n_one_of, scratch);
    if (checks->n_one_of > 0 && n != 1)
        refuse_junctor(value,
                       n == 0 ? "must validate one and only one schema (oneOf). Found none valid"
                              : "must validate one and only one schema (oneOf). Found more than "
                                "one valid",
                       problems);
    if (checks->not_of && fits(value, checks->not_of, scratch))
        refuse_junctor(value, "must not validate the schema (not)", problems);
}

static bool has_junctors(const struct dv_schema_checks *checks)
{
    return checks->n_all_of > 0 || checks->n_any_of > 0 || checks->n_one_of > 0 || checks->not_of;
}

/* ---- values ---- */

static void check_parts(const struct value *value, struct dv_problems *problems)
{
    const struct dv_schema_checks *checks = value->schema->checks;

    if (!check_type(value, problems))
        return;
    if (dv_json_is(value->node, DV_JSON_OBJECT))
        check_object(value, problems);
    else if (dv_json_is(value->node, DV_JSON_ARRAY))
        check_array(value, problems);
    if (!checks)
        return;
    if (dv_json_is(value->node, DV_JSON_NUMBER))
        check_number(value, checks, problems);
    else if (dv_json_is(value->node, DV_JSON_STRING))
        check_text(value, checks, problems);
    check_enumeration(value, checks, problems);
    if (has_junctors(checks))
        check_junctors(value, checks, problems);
}

static void check_value(const struct value *value, struct dv_problems *problems)
{
    size_t n = problems->n;
    size_t n_bytes = problems->n_bytes;

    if (*value->steps_left == 0)
        return;
    spend(value, 1);
    check_parts(value, problems);
    if (problems->n == n || !value->old || !dv_json_eq(value->node, value->old))
        return;
    problems->n = n;
    problems->n_bytes = n_bytes;
}

void dv_schema_check(const struct dv_structural *schema, const struct dv_json *value,
                     const struct dv_json *old, const struct dv_field_path *path,
                     uint64_t steps_max, struct dv_problems *problems)
{
    check_value(&(const struct value){schema, value, old, path, &steps_max}, problems);
    if (steps_max == 0)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, NULL, dv_bad_none(),
                       "it takes too long to be validated by its schema");
}
