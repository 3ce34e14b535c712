/* schema_limits.c - reads what a schema says of values: bounds, lengths, patterns, enumerations. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel_pattern.h"
#include "resource/custom/schema.h"
#include "resource/custom/schema_read.h"
#include "resource/validate/checks.h"
#include "json/json.h"

static void refuse(struct dv_schema_reader *reader, const struct dv_field_path *path,
                   const char *name, const struct dv_json *node, const char *wanted)
{
    dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, name,
                   dv_bad_str(dv_str_from_c(dv_json_go_name(dv_json_kind(node)))), "must be %s",
                   wanted);
}

/* The member, unless it is absent or null. */
static const struct dv_json *member(const struct dv_json *doc, const char *name)
{
    const struct dv_json *node = dv_json_get(doc, dv_str_from_c(name));

    return dv_json_is(node, DV_JSON_NULL) ? NULL : node;
}

bool dv_schema_read_text(struct dv_schema_reader *reader, const struct dv_json *doc,
                         const struct dv_field_path *path, const char *name, dv_str *text)
{
    const struct dv_json *node = member(doc, name);
    struct dv_err err;

    if (!node)
        return false;
    if (dv_json_as_str(node, text, &err))
        return true;
    refuse(reader, path, name, node, "a string");
    return false;
}

bool dv_schema_read_flag(struct dv_schema_reader *reader, const struct dv_json *doc,
                         const struct dv_field_path *path, const char *name)
{
    const struct dv_json *node = member(doc, name);
    struct dv_err err;
    bool is_set = false;

    if (node && !dv_json_as_bool(node, &is_set, &err))
        refuse(reader, path, name, node, "a boolean");
    return is_set;
}

const dv_str *dv_schema_read_texts(struct dv_schema_reader *reader, const struct dv_json *doc,
                                   const struct dv_field_path *path, const char *name, size_t *n)
{
    const struct dv_json *node = member(doc, name);
    dv_str *texts;
    size_t i = 0;
    struct dv_err err;

    *n = 0;
    if (!node)
        return NULL;
    if (!dv_json_is(node, DV_JSON_ARRAY)) {
        refuse(reader, path, name, node, "a list of strings");
        return NULL;
    }
    texts = DV_NEW_ARRAY(reader->arena, dv_str, dv_json_n(node));
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        if (!dv_json_as_str(item, &texts[i++], &err)) {
            refuse(reader, path, name, item, "a list of strings");
            return NULL;
        }
    }
    *n = i;
    return texts;
}

static void read_bound(struct dv_schema_reader *reader, const struct dv_json *doc,
                       const struct dv_field_path *path, const char *name,
                       struct dv_schema_bound *bound)
{
    const struct dv_json *node = member(doc, name);

    if (!node)
        return;
    if (!dv_json_is(node, DV_JSON_NUMBER)) {
        refuse(reader, path, name, node, "a number");
        return;
    }
    bound->text = dv_json_number_text(node);
    bound->value = strtod(dv_str_printf(reader->arena, "%.*s", DV_FMT(bound->text)).p, NULL);
    bound->is_set = true;
}

static int64_t read_length(struct dv_schema_reader *reader, const struct dv_json *doc,
                           const struct dv_field_path *path, const char *name)
{
    const struct dv_json *node = member(doc, name);
    int64_t value = -1;
    struct dv_err err;

    if (!node)
        return -1;
    if (!dv_json_as_i64(node, &value, &err)) {
        refuse(reader, path, name, node, "an integer");
        return -1;
    }
    if (value < 0)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, name, dv_bad_i64(value),
                       "must be greater than or equal to 0");
    return value;
}

static struct dv_schema_range read_range(struct dv_schema_reader *reader, const struct dv_json *doc,
                                         const struct dv_field_path *path, const char *min,
                                         const char *max)
{
    return (struct dv_schema_range){read_length(reader, doc, path, min),
                                    read_length(reader, doc, path, max)};
}

static void read_pattern(struct dv_schema_reader *reader, const struct dv_json *doc,
                         const struct dv_field_path *path, struct dv_schema_checks *checks)
{
    dv_str why;

    if (!dv_schema_read_text(reader, doc, path, "pattern", &checks->pattern) ||
        checks->pattern.n == 0)
        return;
    checks->regex = dv_cel_pattern_new(checks->pattern, reader->arena, &why);
    if (!checks->regex)
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, "pattern",
                       dv_bad_str(checks->pattern),
                       "must be a valid regular expression, but isn't: "
                       "%.*s",
                       DV_FMT(why));
}

static void read_enumeration(struct dv_schema_reader *reader, const struct dv_json *doc,
                             const struct dv_field_path *path, struct dv_schema_checks *checks)
{
    const struct dv_json *node = member(doc, "enum");

    if (!node)
        return;
    if (dv_json_is(node, DV_JSON_ARRAY) && dv_json_n(node) > 0)
        checks->enumeration = node;
    else
        refuse(reader, path, "enum", node, "a list with at least one value");
}

/* Whether one of the members is there, so that schemas without checks take no memory for them. */
static bool has_any(const struct dv_json *doc)
{
    static const char *const names[] = {"minimum",
                                        "maximum",
                                        "exclusiveMinimum",
                                        "exclusiveMaximum",
                                        "multipleOf",
                                        "minLength",
                                        "maxLength",
                                        "minItems",
                                        "maxItems",
                                        "minProperties",
                                        "maxProperties",
                                        "pattern",
                                        "format",
                                        "enum",
                                        "required",
                                        "allOf",
                                        "anyOf",
                                        "oneOf",
                                        "not",
                                        "x-kubernetes-validations"};

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (member(doc, names[i]))
            return true;
    return false;
}

struct dv_schema_checks *dv_schema_read_checks(struct dv_schema_reader *reader,
                                               const struct dv_json *doc,
                                               const struct dv_field_path *path)
{
    struct dv_schema_checks *checks;

    if (!has_any(doc))
        return NULL;
    checks = DV_NEW(reader->arena, struct dv_schema_checks);
    read_bound(reader, doc, path, "minimum", &checks->minimum);
    read_bound(reader, doc, path, "maximum", &checks->maximum);
    read_bound(reader, doc, path, "multipleOf", &checks->multiple_of);
    if (checks->multiple_of.is_set && !(checks->multiple_of.value > 0))
        dv_problem_add(reader->problems, DV_PROBLEM_INVALID, path, "multipleOf",
                       (struct dv_bad_value){.kind = BAD_JSON, .text = checks->multiple_of.text},
                       "must be greater than 0");
    checks->minimum.is_exclusive = dv_schema_read_flag(reader, doc, path, "exclusiveMinimum");
    checks->maximum.is_exclusive = dv_schema_read_flag(reader, doc, path, "exclusiveMaximum");
    checks->length = read_range(reader, doc, path, "minLength", "maxLength");
    checks->items = read_range(reader, doc, path, "minItems", "maxItems");
    checks->properties = read_range(reader, doc, path, "minProperties", "maxProperties");
    read_pattern(reader, doc, path, checks);
    (void)dv_schema_read_text(reader, doc, path, "format", &checks->format);
    read_enumeration(reader, doc, path, checks);
    checks->required = dv_schema_read_texts(reader, doc, path, "required", &checks->n_required);
    return checks;
}
