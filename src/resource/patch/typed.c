/* typed.c - what kind of thing a JSON value is by the tables, and the steps to items of lists. */
#include "resource/patch/typed.h"

#include <stddef.h>

#include "base/buf.h"
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
};

struct dv_typed dv_typed_root(const struct dv_message *message)
{
    return (struct dv_typed){.shape = DV_TYPED_STRUCT, .message = message};
}

/* The type of one value of the field, be it in a list, in a map or by itself. */
static struct dv_typed value_type(const struct dv_field *field)
{
    if (field->type != DV_TYPE_MESSAGE || field->message->is_atomic)
        return (struct dv_typed){.shape = DV_TYPED_LEAF, .field = field};
    return (struct dv_typed){.shape = DV_TYPED_STRUCT, .message = field->message};
}

static struct dv_typed field_type(const struct dv_field *field)
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

    if (type->shape == DV_TYPED_MAP) {
        *member = value_type(type->field);
        return true;
    }
    field = dv_message_field(type->message, key, NULL);
    if (!field)
        return false;
    *member = field_type(field);
    return true;
}

struct dv_typed dv_typed_item(const struct dv_typed *list)
{
    return value_type(list->field);
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

static bool print_keys(const struct dv_field *list, const struct dv_json *item, struct dv_buf *buf)
{
    struct dv_json_style style = {.sort_keys = true};
    const dv_str *key = NULL;
    bool found = false;

    dv_buf_add_char(buf, '{');
    while ((key = next_key(list, key)) != NULL) {
        const struct dv_json *value = dv_json_get(item, *key);
        const dv_str *json = default_of(list, *key);
        bool is_given = value && !dv_json_is(value, DV_JSON_NULL);

        if (!is_given && !json)
            continue;
        if (found)
            dv_buf_add_char(buf, ',');
        found = true;
        dv_buf_add_json(buf, *key);
        dv_buf_add_char(buf, ':');
        if (is_given)
            dv_json_print(value, &style, buf);
        else
            dv_buf_add(buf, *json);
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
    else
        has_keys = dv_json_is(item, DV_JSON_OBJECT) && print_keys(list->field, item, &buf);
    if (has_keys) {
        *kind = list->shape == DV_TYPED_SET ? 'v' : 'k';
        *text = dv_str_copy(dv_buf_str(&buf), arena);
    }
    dv_buf_fini(&buf);
    return has_keys;
}
