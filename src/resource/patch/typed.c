/* typed.c - what kind of thing a JSON value is by the tables, and the steps to items of lists. */
#include "resource/patch/typed.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "resource/codec/json_field.h"
#include "resource/codec/layout.h"
#include "resource/custom/schema.h"
#include "resource/field.h"
#include "json/json.h"

#define STEP_BYTES_MAX (4u * 1024u * 1024u)

/* Keys that an item may leave out, because the API fills them in. */
static const struct {
    dv_str message;
    dv_str key;
    dv_str json;
} key_defaults[] = {
    {DV_STR_INIT("ContainerPort"), DV_STR_INIT("protocol"), DV_STR_INIT("\"TCP\"")},
    {DV_STR_INIT("ServicePort"),   DV_STR_INIT("protocol"), DV_STR_INIT("\"TCP\"")},
};

struct dv_typed dv_typed_root(const struct dv_message *message)
{
    return (struct dv_typed){.shape = DV_TYPED_STRUCT, .message = message};
}

struct dv_typed dv_typed_custom_root(const struct dv_message *message,
                                     const struct dv_structural *schema)
{
    return (struct dv_typed){.shape = DV_TYPED_STRUCT, .message = message, .schema = schema};
}

/* ---- by schemas ---- */

static enum dv_typed_shape object_shape(const struct dv_structural *schema)
{
    if (schema->is_atomic_map)
        return DV_TYPED_LEAF;
    if (schema->n_properties > 0)
        return DV_TYPED_STRUCT;
    return schema->more ? DV_TYPED_MAP : DV_TYPED_LEAF;
}

static struct dv_typed schema_type(const struct dv_structural *schema)
{
    struct dv_typed type = {.shape = DV_TYPED_LEAF, .schema = schema};

    if (schema->type == DV_SCHEMA_OBJECT)
        type.shape = object_shape(schema);
    else if (schema->type == DV_SCHEMA_ARRAY && schema->items && schema->list == DV_SCHEMA_LIST_MAP)
        type.shape = DV_TYPED_KEYED;
    else if (schema->type == DV_SCHEMA_ARRAY && schema->items && schema->list == DV_SCHEMA_LIST_SET)
        type.shape = DV_TYPED_SET;
    return type;
}

/* What the schema does not say is owned as a whole. */
static bool schema_member(const struct dv_structural *schema, dv_str key, struct dv_typed *member)
{
    const struct dv_structural *found = dv_schema_member(schema, key);

    *member = found ? schema_type(found) : (struct dv_typed){.shape = DV_TYPED_LEAF};
    return found || schema->keeps_unknown || schema->takes_any_more;
}

static bool is_type_meta(dv_str key)
{
    return dv_str_eq(key, DV_STR("apiVersion")) || dv_str_eq(key, DV_STR("kind"));
}

/* ---- by tables ---- */

/* The type of one value of the field, be it in a list, in a map or by itself. */
static struct dv_typed value_type(const struct dv_field *field)
{
    if (field->type != DV_TYPE_MESSAGE || field->message->is_atomic)
        return (struct dv_typed){.shape = DV_TYPED_LEAF, .field = field};
    return (struct dv_typed){.shape = DV_TYPED_STRUCT, .message = field->message};
}

struct dv_typed dv_typed_field(const struct dv_field *field)
{
    struct dv_typed type = {.shape = DV_TYPED_LEAF, .field = field};

    if (field->flags & DV_FIELD_ATOMIC)
        return type;
    switch ((enum dv_shape)field->shape) {
    case DV_SHAPE_LIST:
        if (field->n_keys > 0)
            type.shape = DV_TYPED_KEYED;
        else if (field->flags & DV_FIELD_SET)
            type.shape = DV_TYPED_SET;
        return type;
    case DV_SHAPE_MAP:
        type.shape = DV_TYPED_MAP;
        return type;
    case DV_SHAPE_ONE:
    case DV_SHAPE_POINTER:
    case DV_SHAPE_INLINE:
    case DV_SHAPE_VIEW:
        break;
    }
    return value_type(field);
}

bool dv_typed_member(const struct dv_typed *type, dv_str key, struct dv_typed *member)
{
    const struct dv_field *field;

    if (type->schema && !type->message)
        return schema_member(type->schema, key, member);
    if (type->shape == DV_TYPED_MAP) {
        *member = value_type(type->field);
        return true;
    }
    field = dv_message_field(type->message, key, NULL);
    if (!field)
        return type->schema && !is_type_meta(key) && schema_member(type->schema, key, member);
    *member = dv_typed_field(field);
    return true;
}

struct dv_typed dv_typed_item(const struct dv_typed *list)
{
    return list->schema ? schema_type(list->schema->items) : value_type(list->field);
}

static const dv_str *default_of(const struct dv_field *list, dv_str key)
{
    for (size_t i = 0; i < DV_COUNT(key_defaults); i++)
        if (list->message && dv_str_eq(key_defaults[i].message, list->message->name) &&
            dv_str_eq(key_defaults[i].key, key))
            return &key_defaults[i].json;
    return NULL;
}

/* The key after `last` in the order of names; NULL when there is none. */
static const dv_str *next_key(const struct dv_field *list, const dv_str *last)
{
    const dv_str *next = NULL;

    for (size_t i = 0; i < list->n_keys; i++)
        if ((!last || dv_str_cmp(list->keys[i], *last) > 0) &&
            (!next || dv_str_cmp(list->keys[i], *next) < 0))
            next = &list->keys[i];
    return next;
}

/* An item of a list: of a document, or of a struct. */
struct item {
    const struct dv_json *doc; /* NULL: it is of a struct */
    const char *value;
    struct dv_arena *arena;
};

/* Prints the value of a field as the text of a step: sorted, and with nothing escaped that need
 * not be. */
static void print_value(const struct dv_field *field, const void *value, struct dv_arena *arena,
                        struct dv_buf *buf)
{
    struct dv_json_style style = {.sort_keys = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const struct dv_json *doc;
    struct dv_err err;

    dv_buf_init(&text, STEP_BYTES_MAX);
    if (field->type == DV_TYPE_STRING) {
        dv_buf_add_json(buf, *(const dv_str *)value);
        return;
    }
    dv_value_put_json(&text, field, value);
    doc = dv_json_parse(dv_str_copy(dv_buf_str(&text), arena), NULL, arena, &err);
    if (doc)
        dv_json_print(doc, &style, buf);
}

/* Prints the value of a key, unless the item has none. */
static bool print_key(const struct dv_field *list, const struct item *item, dv_str key,
                      struct dv_buf *buf)
{
    struct dv_json_style style = {.sort_keys = true};
    const struct dv_json *doc = dv_json_get(item->doc, key);
    const struct dv_field *field;
    const char *home;
    size_t base = 0;

    if (item->doc) {
        if (doc && !dv_json_is(doc, DV_JSON_NULL))
            dv_json_print(doc, &style, buf);
        return doc && !dv_json_is(doc, DV_JSON_NULL);
    }
    field = dv_message_field(list->message, key, &base);
    home = field ? dv_field_home(field, item->value + base) : NULL;
    if (!field || dv_field_presence(field, home) != DV_PRESENT)
        return false;
    print_value(field, home ? dv_field_value(field, home) : &(const dv_str){0}, item->arena, buf);
    return true;
}

static bool print_keys(const struct dv_field *list, const struct item *item, struct dv_buf *buf)
{
    const dv_str *key = NULL;
    bool found = false;

    dv_buf_add_char(buf, '{');
    while ((key = next_key(list, key)) != NULL) {
        const dv_str *json = default_of(list, *key);
        size_t before = buf->n;

        if (found)
            dv_buf_add_char(buf, ',');
        dv_buf_add_json(buf, *key);
        dv_buf_add_char(buf, ':');
        if (print_key(list, item, *key, buf)) {
            found = true;
        } else if (json) {
            dv_buf_add(buf, *json);
            found = true;
        } else {
            dv_buf_cut(buf, before);
        }
    }
    dv_buf_add_char(buf, '}');
    return found;
}

bool dv_typed_step_of_value(const struct dv_typed *list, const char *value, struct dv_arena *arena,
                            char *kind, dv_str *text)
{
    const struct item item = {.value = value, .arena = arena};
    bool is_set = list->shape == DV_TYPED_SET;
    bool has_keys = true;
    struct dv_buf buf;

    dv_buf_init(&buf, STEP_BYTES_MAX);
    if (is_set)
        print_value(list->field, value, arena, &buf);
    else
        has_keys = print_keys(list->field, &item, &buf);
    if (has_keys) {
        *kind = is_set ? 'v' : 'k';
        *text = dv_str_copy(dv_buf_str(&buf), arena);
    }
    dv_buf_fini(&buf);
    return has_keys;
}

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

/* Prints the keys that a schema names; those that an item lacks have their defaults. */
static bool print_schema_keys(const struct dv_structural *list, const struct dv_json *item,
                              struct dv_arena *arena, struct dv_buf *buf)
{
    const struct dv_json_style style = {.sort_keys = true};
    dv_str *keys = DV_NEW_ARRAY(arena, dv_str, list->n_keys);
    bool found = false;

    memcpy(keys, list->keys, list->n_keys * sizeof(keys[0]));
    qsort(keys, list->n_keys, sizeof(keys[0]), by_name);
    dv_buf_add_char(buf, '{');
    for (size_t i = 0; i < list->n_keys; i++) {
        const struct dv_structural *key = dv_schema_property(list->items, keys[i]);
        const struct dv_json *value = dv_json_get(item, keys[i]);

        if (!value && key)
            value = key->default_value;
        if (!value)
            continue;
        dv_buf_add_c(buf, found ? "," : "");
        dv_buf_add_json(buf, keys[i]);
        dv_buf_add_char(buf, ':');
        dv_json_print(value, &style, buf);
        found = true;
    }
    dv_buf_add_char(buf, '}');
    return found;
}

bool dv_typed_step(const struct dv_typed *list, const struct dv_json *item, struct dv_arena *arena,
                   char *kind, dv_str *text)
{
    struct dv_json_style style = {.sort_keys = true};
    struct dv_buf buf;
    bool has_keys = true;

    dv_buf_init(&buf, STEP_BYTES_MAX);
    if (list->shape == DV_TYPED_SET)
        dv_json_print(item, &style, &buf);
    else if (list->schema)
        has_keys = dv_json_is(item, DV_JSON_OBJECT) && list->schema->n_keys > 0 &&
                   print_schema_keys(list->schema, item, arena, &buf);
    else
        has_keys = dv_json_is(item, DV_JSON_OBJECT) &&
                   print_keys(list->field, &(const struct item){.doc = item}, &buf);
    if (has_keys) {
        *kind = list->shape == DV_TYPED_SET ? 'v' : 'k';
        *text = dv_str_copy(dv_buf_str(&buf), arena);
    }
    dv_buf_fini(&buf);
    return has_keys;
}
