/* apply_check.c - whether a configuration fits the tables. Apply is stricter than the decoder: a
 * field that nobody knows could never be owned. */
#include "resource/patch/typed.h"

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "resource/codec/notes.h"
#include "resource/field.h"
#include "json/json.h"

/* The path is cut here: the message of an error has room for less. */
#define PATH_BYTES_MAX 4096u
#define ERRORS_BYTES_MAX 65536u

struct check {
    const struct dv_typed *schema_root; /* of a custom object; NULL: it is none */
    struct dv_arena *arena;
    struct dv_buf path;   /* of what is looked at: .spec.containers[name="a"] */
    struct dv_buf errors; /* each on a line of its own */
    size_t n_errors;
};

static void check_value(struct check *check, const struct dv_field *field,
                        const struct dv_json *node);

static void complain(struct check *check, const char *what)
{
    dv_buf_printf(&check->errors, "%s%.*s: %s", check->n_errors ? "\n  " : "",
                  DV_FMT(dv_buf_str(&check->path)), what);
    check->n_errors++;
}

/* `advice` may be NULL: the reference has none for old fields. */
static void complain_unknown(struct check *check, const char *advice)
{
    complain(check, dv_str_to_c(dv_str_printf(check->arena, "field not declared in schema%s%s",
                                              advice ? ": it " : "", advice ? advice : ""),
                                check->arena));
}

/* Adds "expected string, got &value.valueUnstructured{Value:7}": the reference prints its Go
 * struct. */
static void complain_type(struct check *check, const char *expected, const struct dv_json *node)
{
    struct dv_buf buf;

    dv_buf_init(&buf, DV_ERR_MSG_BYTES);
    dv_buf_printf(&buf, "expected %s, got ", expected);
    if (dv_json_kind(node) < DV_JSON_ARRAY) {
        dv_buf_add_c(&buf, "&value.valueUnstructured{Value:");
        dv_json_print(node, NULL, &buf);
    } else {
        dv_buf_add_c(&buf, "&{");
        dv_json_print(node, NULL, &buf);
    }
    dv_buf_add_char(&buf, '}');
    complain(check, dv_buf_c(&buf));
    dv_buf_fini(&buf);
}

static void step_back(struct check *check, size_t n)
{
    check->path.n = n;
    check->path.is_over = false;
}

static void check_scalar(struct check *check, const struct dv_field *field,
                         const struct dv_json *node)
{
    enum dv_json_kind expected;
    const char *name;

    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
    case DV_TYPE_BYTES:
        expected = DV_JSON_STRING;
        name = "string";
        break;
    case DV_TYPE_BOOL:
        expected = DV_JSON_BOOL;
        name = "boolean";
        break;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        expected = DV_JSON_NUMBER;
        name = "numeric (int or float)";
        break;
    case DV_TYPE_QUANTITY:
    case DV_TYPE_INT_OR_STR:
    case DV_TYPE_RAW:
    case DV_TYPE_STRINGS:
    case DV_TYPE_MESSAGE:
    default:
        return; /* the field has no type here; the decoder will report it */
    }
    if (!dv_json_is(node, expected))
        complain_type(check, name, node);
}

static void check_schema(struct check *check, const struct dv_typed *type,
                         const struct dv_json *node);

/* Checks a member of which the path is set. What type a value has is checked later, when all of the
 * object is; here it is enough that somebody can own it.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void check_schema_member(struct check *check, const struct dv_typed *type,
                                const struct dv_json *value)
{
    struct dv_typed member;

    if (dv_typed_member(type, dv_json_key(value), &member))
        check_schema(check, &member, value);
    else
        complain_unknown(check, NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_schema(struct check *check, const struct dv_typed *type,
                         const struct dv_json *node)
{
    bool is_list = dv_typed_is_list(type) && dv_json_is(node, DV_JSON_ARRAY);
    size_t n = check->path.n;

    if (type->shape == DV_TYPED_LEAF || (!is_list && !dv_json_is(node, DV_JSON_OBJECT)))
        return;
    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child)) {
        struct dv_typed item;

        if (is_list) {
            item = dv_typed_item(type);
            check_schema(check, &item, child);
            continue;
        }
        dv_buf_printf(&check->path, ".%.*s", DV_FMT(dv_json_key(child)));
        check_schema_member(check, type, child);
        step_back(check, n);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_message(struct check *check, const struct dv_message *message,
                          const struct dv_json *node, bool is_root)
{
    if (!dv_json_is(node, DV_JSON_OBJECT)) {
        complain_type(check, "map", node);
        return;
    }
    for (const struct dv_json *value = dv_json_first(node); value; value = dv_json_next(value)) {
        dv_str key = dv_json_key(value);
        const struct dv_field *field = dv_message_field(message, key, NULL);
        size_t n = check->path.n;

        if (is_root && (dv_str_eq(key, DV_STR("apiVersion")) || dv_str_eq(key, DV_STR("kind"))))
            continue;
        dv_buf_printf(&check->path, ".%.*s", DV_FMT(key));
        if (field)
            check_value(check, field, value);
        else if (is_root && check->schema_root)
            check_schema_member(check, check->schema_root, value);
        else
            complain_unknown(check, dv_removed_advice(message, node, key));
        step_back(check, n);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_one(struct check *check, const struct dv_field *field, const struct dv_json *node)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return;
    if (field->type == DV_TYPE_MESSAGE)
        check_message(check, field->message, node, false);
    else
        check_scalar(check, field, node);
}

/* Why an item of a list has no step; NULL when it has one. */
static const char *why_no_step(const struct dv_typed *list, const struct dv_json *item)
{
    if (list->shape == DV_TYPED_SET) {
        if (dv_json_is(item, DV_JSON_NULL))
            return "associative list without keys has an element that's an explicit null";
        if (dv_json_is(item, DV_JSON_OBJECT))
            return "associative list without keys has an element that's a map type";
        if (dv_json_is(item, DV_JSON_ARRAY))
            return "not supported: associative list with lists as elements";
        return NULL;
    }
    if (dv_json_is(item, DV_JSON_NULL))
        return "associative list with keys may not have a null element";
    if (!dv_json_is(item, DV_JSON_OBJECT))
        return "associative list with keys may not have non-map elements";
    return NULL;
}

static void complain_keys(struct check *check, const struct dv_field *field, size_t i)
{
    struct dv_buf buf;

    dv_buf_init(&buf, DV_ERR_MSG_BYTES);
    dv_buf_printf(&buf,
                  "element %zu: associative list with keys has an element that omits all key "
                  "fields [",
                  i);
    for (size_t j = 0; j < field->n_keys; j++)
        dv_buf_printf(&buf, "%s\"%.*s\"", j ? " " : "", DV_FMT(field->keys[j]));
    dv_buf_add_c(&buf, "] (and doesn't have default values for any key fields)");
    complain(check, dv_buf_c(&buf));
    dv_buf_fini(&buf);
}

/* Adds the step to an item to the path, as people read it. */
static void add_step(struct check *check, char kind, dv_str text)
{
    struct dv_err ignored;
    const struct dv_json *keys;
    char before = '[';

    if (kind == 'v') {
        dv_buf_printf(&check->path, "[=%.*s]", DV_FMT(text));
        return;
    }
    keys = dv_json_parse(text, NULL, check->arena, &ignored);
    for (const struct dv_json *key = dv_json_first(keys); key; key = dv_json_next(key)) {
        dv_buf_printf(&check->path, "%c%.*s=", before, DV_FMT(dv_json_key(key)));
        dv_json_print(key, NULL, &check->path);
        before = ',';
    }
    dv_buf_add_char(&check->path, ']');
}

static void complain_twice(struct check *check, char kind, dv_str text)
{
    size_t n = check->path.n;
    dv_str step;

    add_step(check, kind, text);
    step = dv_str_printf(check->arena, "duplicate entries for key %.*s",
                         DV_FMT(dv_str_slice(dv_buf_str(&check->path), n, check->path.n)));
    step_back(check, n);
    complain(check, dv_str_to_c(step, check->arena));
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_items(struct check *check, const struct dv_typed *type,
                        const struct dv_json *list)
{
    struct dv_map seen;
    size_t i = 0;

    dv_map_init(&seen);
    for (struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item), i++) {
        const char *why = why_no_step(type, item);
        size_t n = check->path.n;
        dv_str text;
        char kind;

        if (why) {
            complain(check, dv_str_printf(check->arena, "element %zu: %s%c", i, why, 0).p);
            continue;
        }
        if (!dv_typed_step(type, item, check->arena, &kind, &text)) {
            complain_keys(check, type->field, i);
            continue;
        }
        if (dv_map_set(&seen, text, item))
            complain_twice(check, kind, text);
        add_step(check, kind, text);
        check_one(check, type->field, item);
        step_back(check, n);
    }
    dv_map_fini(&seen);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_list(struct check *check, const struct dv_field *field,
                       const struct dv_json *list)
{
    struct dv_typed type = {.shape = DV_TYPED_LEAF, .field = field};
    size_t i = 0;

    if (!dv_json_is(list, DV_JSON_ARRAY)) {
        complain_type(check, "list", list);
        return;
    }
    if (!(field->flags & DV_FIELD_ATOMIC) && field->n_keys > 0)
        type.shape = DV_TYPED_KEYED;
    else if (!(field->flags & DV_FIELD_ATOMIC) && (field->flags & DV_FIELD_SET))
        type.shape = DV_TYPED_SET;
    if (type.shape != DV_TYPED_LEAF) {
        check_items(check, &type, list);
        return;
    }
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item), i++) {
        size_t n = check->path.n;

        dv_buf_printf(&check->path, "[%zu]", i);
        check_one(check, field, item);
        step_back(check, n);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_map(struct check *check, const struct dv_field *field, const struct dv_json *map)
{
    if (!dv_json_is(map, DV_JSON_OBJECT)) {
        complain_type(check, "map", map);
        return;
    }
    for (const struct dv_json *value = dv_json_first(map); value; value = dv_json_next(value)) {
        size_t n = check->path.n;

        dv_buf_printf(&check->path, ".%.*s", DV_FMT(dv_json_key(value)));
        check_one(check, field, value);
        step_back(check, n);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void check_value(struct check *check, const struct dv_field *field,
                        const struct dv_json *node)
{
    if (dv_json_is(node, DV_JSON_NULL))
        return;
    if (field->shape == DV_SHAPE_LIST)
        check_list(check, field, node);
    else if (field->shape == DV_SHAPE_MAP)
        check_map(check, field, node);
    else
        check_one(check, field, node);
}

static dv_str text_at(const struct dv_json *object, dv_str key, dv_str fallback)
{
    const struct dv_json *node = dv_json_get(object, key);
    struct dv_err ignored;
    dv_str text;

    return node && dv_json_as_str(node, &text, &ignored) ? text : fallback;
}

bool dv_typed_check(const struct dv_typed *root, const struct dv_json *config,
                    struct dv_arena *arena, struct dv_err *err)
{
    struct check check = {.arena = arena};
    const struct dv_json *meta = dv_json_get(config, DV_STR("metadata"));
    dv_str version = text_at(config, DV_STR("apiVersion"), DV_STR(""));
    bool has_group = dv_str_find_char(version, '/') < version.n;

    dv_buf_init(&check.path, PATH_BYTES_MAX);
    dv_buf_init(&check.errors, ERRORS_BYTES_MAX);
    check.schema_root = root->schema ? root : NULL;
    check_message(&check, root->message, config, true);
    if (check.n_errors > 0)
        (void)dv_fail_in(err, arena, DV_INTERNAL,
                         "failed to create typed patch object (%.*s/%.*s; %s%.*s, Kind=%.*s): %s%s",
                         DV_FMT(text_at(meta, DV_STR("namespace"), DV_STR(""))),
                         DV_FMT(text_at(meta, DV_STR("name"), DV_STR(""))), has_group ? "" : "/",
                         DV_FMT(version), DV_FMT(text_at(config, DV_STR("kind"), DV_STR(""))),
                         check.n_errors > 1 ? "errors:\n  " : "", dv_buf_c(&check.errors));
    dv_buf_fini(&check.path);
    dv_buf_fini(&check.errors);
    return check.n_errors == 0;
}
