/* schema_read.c - compiles schemas, and refuses those that are not structural: where it could not
 * be told from the schema alone what an object may have. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom/schema.h"
#include "resource/custom/schema_read.h"
#include "resource/validate/checks.h"
#include "json/json.h"

static struct dv_structural *read_schema(struct dv_schema_reader *reader,
                                         const struct dv_schema_part *part);

static const char *const type_names[] = {
    [DV_SCHEMA_ANY] = "",           [DV_SCHEMA_OBJECT] = "object",   [DV_SCHEMA_ARRAY] = "array",
    [DV_SCHEMA_STRING] = "string",  [DV_SCHEMA_INTEGER] = "integer", [DV_SCHEMA_NUMBER] = "number",
    [DV_SCHEMA_BOOLEAN] = "boolean"};

const char *dv_schema_type_name(enum dv_schema_type type)
{
    return type_names[type];
}

const struct dv_structural *dv_schema_property(const struct dv_structural *schema, dv_str name)
{
    size_t from = 0;
    size_t to = schema->n_properties;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = dv_str_cmp(schema->properties[middle].name, name);

        if (order == 0)
            return schema->properties[middle].schema;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

const struct dv_structural *dv_schema_member(const struct dv_structural *schema, dv_str name)
{
    const struct dv_structural *found = dv_schema_property(schema, name);

    return found ? found : schema->more;
}

static const struct dv_json *member(const struct dv_json *doc, const char *name)
{
    const struct dv_json *node = dv_json_get(doc, dv_str_from_c(name));

    return dv_json_is(node, DV_JSON_NULL) ? NULL : node;
}

struct dv_bad_value dv_schema_shown(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 65536);
    dv_json_print(node, NULL, &buf);
    return (struct dv_bad_value){.kind = BAD_JSON, .text = dv_str_copy(dv_buf_str(&buf), arena)};
}

/* ---- parts ---- */

static bool is_map_list(const struct dv_json *doc)
{
    const struct dv_json *type = dv_json_get(doc, DV_STR("x-kubernetes-list-type"));
    struct dv_err err;
    dv_str text;

    return type && dv_json_as_str(type, &text, &err) && dv_str_eq(text, DV_STR("map"));
}

/* Reads a schema that is part of another one, at the child `name` (and [key]) of its path. */
static struct dv_structural *read_part(struct dv_schema_reader *reader,
                                       const struct dv_schema_part *up, const struct dv_json *doc,
                                       const struct dv_field_path *path, enum dv_schema_place place)
{
    const struct dv_schema_part part = {
        .doc = doc,
        .path = path,
        .place = up->place == DV_SCHEMA_JUNCTOR ? DV_SCHEMA_JUNCTOR : place,
        .depth = up->depth + 1,
        .is_uncorrelated =
            up->is_uncorrelated || (place == DV_SCHEMA_ITEM && !is_map_list(up->doc)),
    };

    return read_schema(reader, &part);
}

static int by_name(const void *a, const void *b)
{
    const struct dv_schema_property *x = a;
    const struct dv_schema_property *y = b;

    return dv_str_cmp(x->name, y->name);
}

static void read_properties(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                            struct dv_structural *schema)
{
    const struct dv_json *node = member(part->doc, "properties");
    struct dv_field_path path = dv_path_name(part->path, "properties");
    struct dv_schema_property *properties;
    size_t n = 0;

    if (!node)
        return;
    if (!dv_json_is(node, DV_JSON_OBJECT)) {
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "properties",
                       dv_schema_shown(node, reader->arena), "must be an object");
        return;
    }
    properties = DV_NEW_ARRAY(reader->arena, struct dv_schema_property, dv_json_n(node));
    for (const struct dv_json *child = dv_json_first(node); child && !reader->is_over;
         child = dv_json_next(child)) {
        struct dv_field_path at = dv_path_key(&path, dv_json_key(child));

        properties[n].name = dv_json_key(child);
        properties[n].schema = read_part(reader, part, child, &at, DV_SCHEMA_PROPERTY);
        n += properties[n].schema != NULL;
    }
    if (n > 0)
        qsort(properties, n, sizeof(properties[0]), by_name);
    schema->properties = properties;
    schema->n_properties = n;
}

static void read_more(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                      struct dv_structural *schema)
{
    const struct dv_json *node = member(part->doc, "additionalProperties");
    struct dv_field_path path = dv_path_name(part->path, "additionalProperties");
    struct dv_err err;
    bool takes_any = false;

    if (!node)
        return;
    if (part->place == DV_SCHEMA_ROOT)
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "additionalProperties",
                       dv_bad_none(), "must not be used at the root");
    else if (part->place == DV_SCHEMA_JUNCTOR)
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "additionalProperties",
                       dv_bad_none(), "must be undefined to be structural");
    if (schema->n_properties > 0)
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "additionalProperties",
                       dv_bad_none(), "additionalProperties and properties are mutual exclusive");
    if (dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &takes_any, &err))
        schema->takes_any_more = takes_any;
    else
        schema->more = read_part(reader, part, node, &path, DV_SCHEMA_MORE);
}

static void read_items(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                       struct dv_structural *schema)
{
    const struct dv_json *node = member(part->doc, "items");
    struct dv_field_path path = dv_path_name(part->path, "items");

    if (dv_json_is(node, DV_JSON_ARRAY))
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "items", dv_bad_none(),
                       "items must be a schema object and not an array");
    else if (node)
        schema->items = read_part(reader, part, node, &path, DV_SCHEMA_ITEM);
    else if (schema->type == DV_SCHEMA_ARRAY && part->place != DV_SCHEMA_JUNCTOR)
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, part->path, "items", dv_bad_none(),
                       "must be specified");
}

static void check_junctor(struct dv_schema_reader *reader, const struct dv_structural *junctor,
                          const struct dv_structural *outside, const struct dv_field_path *path);

static void check_junctors(struct dv_schema_reader *reader,
                           const struct dv_structural *const *junctors, size_t n,
                           const struct dv_structural *outside, const struct dv_field_path *up,
                           const char *name)
{
    struct dv_field_path path = dv_path_name(up, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path at = dv_path_index(&path, i);

        check_junctor(reader, junctors[i], outside, &at);
    }
}

/* Types are said outside; of int-or-string the two may be said once more. */
static void check_junctor_type(struct dv_schema_reader *reader, const struct dv_structural *junctor,
                               const struct dv_structural *outside,
                               const struct dv_field_path *path)
{
    bool is_one_of_two = junctor->type == DV_SCHEMA_INTEGER || junctor->type == DV_SCHEMA_STRING;

    if (junctor->type != DV_SCHEMA_ANY && !(outside->is_int_or_string && is_one_of_two))
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, path, "type", dv_bad_none(),
                       "must be empty to be structural");
}

/* Adds what is wrong with a junctor beside the schema that it restricts: a type, and a problem for
 * each property that only the junctor names, because nothing says what it is. */
static void check_junctor(struct dv_schema_reader *reader, const struct dv_structural *junctor,
                          const struct dv_structural *outside, const struct dv_field_path *path)
{
    const struct dv_schema_checks *checks = junctor->checks;
    struct dv_field_path properties = dv_path_name(path, "properties");
    struct dv_field_path not_path = dv_path_name(path, "not");

    check_junctor_type(reader, junctor, outside, path);
    if (checks) {
        check_junctors(reader, checks->all_of, checks->n_all_of, outside, path, "allOf");
        check_junctors(reader, checks->any_of, checks->n_any_of, outside, path, "anyOf");
        check_junctors(reader, checks->one_of, checks->n_one_of, outside, path, "oneOf");
        if (checks->not_of)
            check_junctor(reader, checks->not_of, outside, &not_path);
    }

    for (size_t i = 0; i < junctor->n_properties; i++) {
        const struct dv_schema_property *property = &junctor->properties[i];
        const struct dv_structural *known = dv_schema_property(outside, property->name);
        struct dv_field_path at = dv_path_key(&properties, property->name);

        if (!known)
            dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, &at, NULL, dv_bad_none(),
                           "it is not defined outside of this, where the structure is");
        else
            check_junctor(reader, property->schema, known, &at);
    }
    if (junctor->items && outside->items) {
        struct dv_field_path at = dv_path_name(path, "items");

        check_junctor(reader, junctor->items, outside->items, &at);
    }
}

static const struct dv_structural *const *read_junctors(struct dv_schema_reader *reader,
                                                        const struct dv_schema_part *part,
                                                        const struct dv_structural *outside,
                                                        const char *name, size_t *n)
{
    const struct dv_json *node = member(part->doc, name);
    struct dv_field_path path = dv_path_name(part->path, name);
    const struct dv_structural **found;
    size_t i = 0;

    *n = 0;
    if (!node)
        return NULL;
    if (!dv_json_is(node, DV_JSON_ARRAY)) {
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, name,
                       dv_schema_shown(node, reader->arena), "must be a list");
        return NULL;
    }
    found = DV_NEW_ARRAY(reader->arena, const struct dv_structural *, dv_json_n(node));
    for (const struct dv_json *item = dv_json_first(node); item && !reader->is_over;
         item = dv_json_next(item), i++) {
        struct dv_field_path at = dv_path_index(&path, i);

        found[*n] = read_part(reader, part, item, &at, DV_SCHEMA_JUNCTOR);
        if (!found[*n])
            continue;
        if (part->place != DV_SCHEMA_JUNCTOR)
            check_junctor(reader, found[*n], outside, &at);
        (*n)++;
    }
    return found;
}

static void read_all_junctors(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                              const struct dv_structural *schema, struct dv_schema_checks *checks)
{
    const struct dv_json *node = member(part->doc, "not");
    struct dv_field_path path = dv_path_name(part->path, "not");

    if (!checks)
        return;
    checks->all_of = read_junctors(reader, part, schema, "allOf", &checks->n_all_of);
    checks->any_of = read_junctors(reader, part, schema, "anyOf", &checks->n_any_of);
    checks->one_of = read_junctors(reader, part, schema, "oneOf", &checks->n_one_of);
    if (!node)
        return;
    checks->not_of = read_part(reader, part, node, &path, DV_SCHEMA_JUNCTOR);
    if (checks->not_of && part->place != DV_SCHEMA_JUNCTOR)
        check_junctor(reader, checks->not_of, schema, &path);
}

/* ---- rules ---- */

static void check_forbidden(struct dv_schema_reader *reader, const struct dv_schema_part *part)
{
    static const struct {
        const char *name;
        const char *why;
    } forbidden[] = {
        {"$ref",              "$ref is not supported"             },
        {"definitions",       "definitions is not supported"      },
        {"dependencies",      "dependencies is not supported"     },
        {"patternProperties", "patternProperties is not supported"},
        {"additionalItems",   "additionalItems is not supported"  },
        {"id",                "id is not supported"               },
        {"$schema",           "$schema is not supported"          },
    };

    for (size_t i = 0; i < DV_COUNT(forbidden); i++)
        if (member(part->doc, forbidden[i].name))
            dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, forbidden[i].name,
                           dv_bad_none(), "%s", forbidden[i].why);
    if (dv_schema_read_flag(reader, part->doc, part->path, "uniqueItems"))
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, "uniqueItems",
                       dv_bad_none(),
                       "uniqueItems cannot be set to true since the runtime complexity becomes "
                       "quadratic");
}

static void check_junctor_members(struct dv_schema_reader *reader,
                                  const struct dv_schema_part *part)
{
    static const char *const names[] = {"description",
                                        "default",
                                        "nullable",
                                        "x-kubernetes-preserve-unknown-fields",
                                        "x-kubernetes-embedded-resource",
                                        "x-kubernetes-int-or-string",
                                        "x-kubernetes-list-type",
                                        "x-kubernetes-list-map-keys",
                                        "x-kubernetes-map-type",
                                        "x-kubernetes-validations"};

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (member(part->doc, names[i]))
            dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, part->path, names[i],
                           dv_bad_none(), "must be undefined to be structural");
}

static void read_type(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                      struct dv_structural *schema)
{
    static const dv_str supported[] = {DV_STR_INIT("array"),   DV_STR_INIT("boolean"),
                                       DV_STR_INIT("integer"), DV_STR_INIT("number"),
                                       DV_STR_INIT("object"),  DV_STR_INIT("string")};
    dv_str text = DV_STR_NONE;

    (void)dv_schema_read_text(reader, part->doc, part->path, "type", &text);
    for (size_t i = DV_SCHEMA_OBJECT; i < DV_COUNT(type_names); i++)
        if (dv_str_eq(text, dv_str_from_c(type_names[i])))
            schema->type = (uint8_t)i;
    if (text.n > 0 && schema->type == DV_SCHEMA_ANY)
        dv_not_supported(reader->problems, part->path, "type", text, supported,
                         DV_COUNT(supported));
    if (text.n > 0 && schema->is_int_or_string)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "type", dv_bad_str(text),
                       "must be empty if x-kubernetes-int-or-string is true");
    if (part->place == DV_SCHEMA_ROOT && text.n > 0 && schema->type != DV_SCHEMA_OBJECT)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "type", dv_bad_str(text),
                       "must be object at the root");
    if (text.n == 0 && part->place == DV_SCHEMA_ROOT)
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, part->path, "type", dv_bad_none(),
                       "must not be empty at the root");
    else if (text.n == 0 && part->place != DV_SCHEMA_JUNCTOR && !schema->is_int_or_string &&
             !schema->keeps_unknown)
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, part->path, "type", dv_bad_none(),
                       "must not be empty for specified %s",
                       part->place == DV_SCHEMA_ITEM ? "array items" : "object fields");
}

static void read_flags(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                       struct dv_structural *schema)
{
    const char *keeps = "x-kubernetes-preserve-unknown-fields";
    dv_str map_type = DV_STR_NONE;

    schema->is_nullable = dv_schema_read_flag(reader, part->doc, part->path, "nullable");
    schema->is_int_or_string =
        dv_schema_read_flag(reader, part->doc, part->path, "x-kubernetes-int-or-string");
    schema->is_embedded =
        dv_schema_read_flag(reader, part->doc, part->path, "x-kubernetes-embedded-resource");
    schema->keeps_unknown = dv_schema_read_flag(reader, part->doc, part->path, keeps);
    if (member(part->doc, keeps) && !schema->keeps_unknown)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, keeps, dv_bad_bool(false),
                       "must be true or undefined");
    if (!dv_schema_read_text(reader, part->doc, part->path, "x-kubernetes-map-type", &map_type))
        return;
    schema->is_atomic_map = dv_str_eq(map_type, DV_STR("atomic"));
    if (!schema->is_atomic_map && !dv_str_eq(map_type, DV_STR("granular"))) {
        static const dv_str supported[] = {DV_STR_INIT("atomic"), DV_STR_INIT("granular")};

        dv_not_supported(reader->problems, part->path, "x-kubernetes-map-type", map_type, supported,
                         DV_COUNT(supported));
    }
}

/* An object of the API inside of another one has to be told apart from one that lost everything. */
static void check_embedded(struct dv_schema_reader *reader, const struct dv_schema_part *part,
                           const struct dv_structural *schema)
{
    if (!schema->is_embedded)
        return;
    if (schema->type != DV_SCHEMA_OBJECT)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, "type",
                       dv_bad_str(dv_str_from_c(dv_schema_type_name(schema->type))),
                       "must be object if x-kubernetes-embedded-resource is true");
    if (schema->n_properties == 0 && !schema->keeps_unknown)
        dv_problem_add(reader->problems, DV_PROBLEM_REQUIRED, part->path, "properties",
                       dv_bad_none(),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
}

/* ---- the whole ---- */

static bool fail_size(struct dv_schema_reader *reader, const struct dv_field_path *path,
                      const char *what, size_t max)
{
    if (!reader->is_over)
        dv_problem_add(reader->problems, DV_PROBLEM_TOO_LONG, path, NULL, dv_bad_none(),
                       "may not have more than %zu %s", max, what);
    reader->is_over = true;
    return false;
}

static bool has_room(struct dv_schema_reader *reader, const struct dv_schema_part *part)
{
    if (part->depth > DV_SCHEMA_DEPTH_MAX)
        return fail_size(reader, part->path, "schemas inside of each other", DV_SCHEMA_DEPTH_MAX);
    if (++reader->n_nodes > DV_SCHEMA_NODES_MAX)
        return fail_size(reader, part->path, "schemas in it", DV_SCHEMA_NODES_MAX);
    return !reader->is_over;
}

static bool has_rules_below(const struct dv_structural *schema)
{
    if ((schema->checks && schema->checks->n_rules > 0) ||
        (schema->more && schema->more->has_rules) || (schema->items && schema->items->has_rules))
        return true;
    for (size_t i = 0; i < schema->n_properties; i++)
        if (schema->properties[i].schema->has_rules)
            return true;
    return false;
}

static struct dv_structural *read_schema(struct dv_schema_reader *reader,
                                         const struct dv_schema_part *part)
{
    struct dv_structural *schema;
    struct dv_schema_checks *checks;

    if (!has_room(reader, part))
        return NULL;
    if (!dv_json_is(part->doc, DV_JSON_OBJECT)) {
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, part->path, NULL,
                       dv_schema_shown(part->doc, reader->arena),
                       "must be a schema, which is an object");
        return NULL;
    }
    schema = DV_NEW(reader->arena, struct dv_structural);
    if (part->place == DV_SCHEMA_JUNCTOR)
        check_junctor_members(reader, part);
    else
        read_flags(reader, part, schema);
    check_forbidden(reader, part);
    read_type(reader, part, schema);
    read_properties(reader, part, schema);
    read_more(reader, part, schema);
    read_items(reader, part, schema);
    checks = dv_schema_read_checks(reader, part->doc, part->path);
    schema->checks = checks;
    read_all_junctors(reader, part, schema, checks);
    if (part->place != DV_SCHEMA_JUNCTOR) {
        check_embedded(reader, part, schema);
        dv_schema_read_list_type(reader, part, schema);
        dv_schema_read_default(reader, part, schema);
        if (checks)
            dv_schema_read_rules(reader, part->doc, part->path, !part->is_uncorrelated, checks);
    }
    schema->has_rules = has_rules_below(schema);
    return schema;
}

/* The metadata of an object is the API's: a schema may only say more of its names. */
static void check_root_metadata(struct dv_schema_reader *reader, const struct dv_structural *root,
                                const struct dv_field_path *path)
{
    const struct dv_structural *metadata = dv_schema_property(root, DV_STR("metadata"));
    struct dv_field_path properties = dv_path_name(path, "properties");
    struct dv_field_path at = dv_path_key(&properties, DV_STR("metadata"));
    bool is_fine = true;

    for (size_t i = 0; metadata && i < metadata->n_properties; i++)
        is_fine = is_fine && (dv_str_eq(metadata->properties[i].name, DV_STR("name")) ||
                              dv_str_eq(metadata->properties[i].name, DV_STR("generateName")));
    if (metadata && (!is_fine || metadata->keeps_unknown || metadata->more))
        dv_problem_add(reader->problems, DV_PROBLEM_FORBIDDEN, &at, NULL, dv_bad_none(),
                       "must not specify anything other than name and generateName, but metadata "
                       "is implicitly specified");
}

const struct dv_structural *dv_schema_new(const struct dv_json *doc,
                                          const struct dv_field_path *path, struct dv_arena *arena,
                                          struct dv_problems *problems)
{
    struct dv_schema_reader reader = {.arena = arena, .problems = problems};
    const struct dv_schema_part part = {.doc = doc, .path = path, .place = DV_SCHEMA_ROOT};
    size_t n_problems = problems->n;
    struct dv_structural *schema = read_schema(&reader, &part);

    if (schema)
        check_root_metadata(&reader, schema, path);
    return problems->n == n_problems ? schema : NULL;
}
