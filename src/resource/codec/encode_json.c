/* encode_json.c - a struct as JSON text, by its field table.
 *
 * The order is that of the table, and what is left out is what Go's encoding/json leaves out:
 * empty values, unless the field is always written; never what is a struct there. */
#include "resource/resource.h"

#include <assert.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "number/number.h"
#include "resource/codec/json_field.h"
#include "resource/codec/json_text.h"
#include "resource/codec/layout.h"
#include "resource/codec/pack_fields.h"

static void put_members(struct dv_buf *buf, const struct dv_message *message, const char *value);

/* The end of an object begins one that has members with a comma. */
static void put_name(struct dv_buf *buf, dv_str name)
{
    bool is_first = buf->n > 0 && buf->p[buf->n - 1] == '{';
    char *at = dv_buf_extend(buf, name.n + (is_first ? 3 : 4));

    if (!at)
        return;
    if (!is_first)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, name.p, name.n);
    at[name.n] = '"';
    at[name.n + 1] = ':';
}

static void put_object(struct dv_buf *buf, const struct dv_message *message, const char *value)
{
    dv_buf_add_char(buf, '{');
    put_members(buf, message, value);
    dv_buf_add_char(buf, '}');
}

static void put_time(struct dv_buf *buf, const struct dv_time *time, bool with_micros)
{
    if (!time->is_set) {
        dv_buf_add(buf, DV_STR("null"));
        return;
    }
    dv_buf_add_char(buf, '"');
    dv_api_time_print(*time, with_micros, buf);
    dv_buf_add_char(buf, '"');
}

static void put_quantity(struct dv_buf *buf, const struct dv_quantity *quantity)
{
    dv_buf_add_char(buf, '"');
    dv_quantity_print(quantity, buf);
    dv_buf_add_char(buf, '"');
}

static void put_bytes(struct dv_buf *buf, dv_str bytes)
{
    if (!bytes.p) {
        dv_buf_add(buf, DV_STR("null"));
        return;
    }
    dv_buf_add_char(buf, '"');
    dv_base64_encode(bytes, buf);
    dv_buf_add_char(buf, '"');
}

static void put_strs(struct dv_buf *buf, const struct dv_strs *strs)
{
    if (!strs->v) {
        dv_buf_add(buf, DV_STR("null"));
        return;
    }
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < strs->n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        dv_json_text_add_str(buf, strs->v[i]);
    }
    dv_buf_add_char(buf, ']');
}

static void put_int_or_str(struct dv_buf *buf, const struct dv_int_or_str *value)
{
    if (value->is_text)
        dv_json_text_add_str(buf, value->text);
    else
        dv_buf_add_i64(buf, value->number);
}

/* Prints what is packed into its place. What then is to be escaped, as hardly ever, is printed
 * again. */
static void put_packed(struct dv_buf *buf, dv_str member)
{
    size_t before = buf->n;
    struct dv_arena *scratch;

    if (dv_fields_add_text(member, buf))
        return;
    scratch = dv_arena_new();
    dv_buf_cut(buf, before);
    dv_json_text_add_raw(buf, dv_fields_text(member, scratch));
    dv_arena_free(scratch);
}

static void put_raw(struct dv_buf *buf, dv_str text)
{
    if (text.n == 0)
        dv_buf_add(buf, DV_STR("null"));
    else if (dv_fields_is_packed(text))
        put_packed(buf, text);
    else
        dv_json_text_add_raw(buf, text);
}

static void put_value(struct dv_buf *buf, const struct dv_field *field, const void *value)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
        dv_json_text_add_str(buf, *(const dv_str *)value);
        break;
    case DV_TYPE_BOOL:
        dv_buf_add(buf, *(const bool *)value ? DV_STR("true") : DV_STR("false"));
        break;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        dv_buf_add_i64(buf, *(const int64_t *)value);
        break;
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        put_time(buf, value, field->type == DV_TYPE_MICROTIME);
        break;
    case DV_TYPE_QUANTITY:
        put_quantity(buf, value);
        break;
    case DV_TYPE_BYTES:
        put_bytes(buf, *(const dv_str *)value);
        break;
    case DV_TYPE_RAW:
        put_raw(buf, *(const dv_str *)value);
        break;
    case DV_TYPE_INT_OR_STR:
        put_int_or_str(buf, value);
        break;
    case DV_TYPE_STRINGS:
        put_strs(buf, value);
        break;
    case DV_TYPE_MESSAGE:
        put_object(buf, field->message, value);
        break;
    }
}

static void put_items(struct dv_buf *buf, const struct dv_field *field, const char *home)
{
    struct dv_items items = dv_field_items(field, home);
    bool is_map = field->shape == DV_SHAPE_MAP;

    dv_buf_add_char(buf, is_map ? '{' : '[');
    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;

        if (i > 0)
            dv_buf_add_char(buf, ',');
        if (is_map) {
            dv_json_text_add_str(buf, *(const dv_str *)(const void *)item);
            dv_buf_add_char(buf, ':');
        }
        put_value(buf, field, item + items.value_offset);
    }
    dv_buf_add_char(buf, is_map ? '}' : ']');
}

/* ---- what is there ---- */

static enum dv_presence presence_of_items(const struct dv_field *field, const char *home)
{
    struct dv_items items = dv_field_items(field, home);

    if (items.n == 0 && !(field->flags & DV_FIELD_ALWAYS))
        return DV_ABSENT;
    return items.first ? DV_PRESENT : DV_NULL;
}

/* Go leaves a value out because it is empty; a struct never is. */
static enum dv_presence presence_of_one(const struct dv_field *field, const char *home)
{
    const void *value = dv_field_value(field, home);
    bool is_always = field->flags & DV_FIELD_ALWAYS;
    bool is_time = field->type == DV_TYPE_TIME || field->type == DV_TYPE_MICROTIME;
    bool is_zero;

    /* the struct behind the pointer is not there, but the field is always written */
    if (!value)
        return is_always ? DV_PRESENT : DV_ABSENT;
    is_zero = dv_value_is_zero(field, value);
    if (is_zero && (is_time || field->type == DV_TYPE_RAW))
        return !is_always && (field->flags & DV_FIELD_OMITZERO) ? DV_ABSENT : DV_NULL;
    if (is_zero && !is_always)
        return DV_ABSENT;
    return field->type == DV_TYPE_BYTES && !((const dv_str *)value)->p ? DV_NULL : DV_PRESENT;
}

static enum dv_presence presence_of_pointer(const struct dv_field *field, const char *home)
{
    const void *value = dv_field_value(field, home);

    if (value && !((field->flags & DV_FIELD_PLAIN) && dv_value_is_zero(field, value)))
        return DV_PRESENT;
    return field->flags & DV_FIELD_ALWAYS ? DV_NULL : DV_ABSENT;
}

static inline enum dv_presence presence_of(const struct dv_field *field, const char *home)
{
    switch ((enum dv_shape)field->shape) {
    case DV_SHAPE_ONE:
        return presence_of_one(field, home);
    case DV_SHAPE_POINTER:
        return presence_of_pointer(field, home);
    case DV_SHAPE_LIST:
    case DV_SHAPE_MAP:
        return presence_of_items(field, home);
    case DV_SHAPE_INLINE:
    case DV_SHAPE_VIEW:
        break;
    }
    return DV_PRESENT;
}

/* Puts what is there and not null. */
static inline void put_present(struct dv_buf *buf, const struct dv_field *field, const char *home)
{
    static const dv_str empty;
    const void *value;

    if (dv_is_container(field)) {
        put_items(buf, field, home);
        return;
    }
    value = dv_field_value(field, home);
    assert(value || field->type == DV_TYPE_STRING);
    put_value(buf, field, value ? value : &empty);
}

static inline void put_field(struct dv_buf *buf, const struct dv_field *field, const char *home)
{
    enum dv_presence presence = presence_of(field, home);

    if (presence == DV_ABSENT)
        return;
    put_name(buf, field->name);
    if (presence == DV_NULL)
        dv_buf_add(buf, DV_STR("null"));
    else
        put_present(buf, field, home);
}

enum dv_presence dv_field_presence(const struct dv_field *field, const char *home)
{
    return presence_of(field, home);
}

void dv_field_put_json(struct dv_buf *buf, const struct dv_field *field, const char *home)
{
    if (presence_of(field, home) == DV_NULL)
        dv_buf_add(buf, DV_STR("null"));
    else
        put_present(buf, field, home);
}

void dv_value_put_json(struct dv_buf *buf, const struct dv_field *field, const void *value)
{
    put_value(buf, field, value);
}

/* ---- members ---- */

static void put_unknown(struct dv_buf *buf, const dv_str *unknown)
{
    if (!unknown)
        return;
    if (buf->n > 0 && buf->p[buf->n - 1] != '{')
        dv_buf_add_char(buf, ',');
    dv_json_text_add_raw(buf, *unknown);
}

static void put_members(struct dv_buf *buf, const struct dv_message *message, const char *value)
{
    bool has_view = false;

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];
        const char *home = dv_field_home(field, value);

        if (dv_field_is_skipped(field, home))
            continue;
        switch ((enum dv_shape)field->shape) {
        case DV_SHAPE_ONE:
        case DV_SHAPE_POINTER:
        case DV_SHAPE_LIST:
        case DV_SHAPE_MAP:
            put_field(buf, field, home);
            break;
        case DV_SHAPE_INLINE:
            put_members(buf, field->message, home + field->offset);
            break;
        case DV_SHAPE_VIEW:
            has_view = true;
            put_name(buf, field->name);
            put_object(buf, field->message, value);
            break;
        }
    }
    if (!has_view) /* a view is the same struct, and has printed them already */
        put_unknown(buf, dv_unknown_of(message, value));
}

void dv_encode_json_text(const struct dv_message *message, const void *value,
                         const struct dv_api_version *version, dv_str kind, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '{');
    if (version) {
        put_name(buf, DV_STR("kind"));
        dv_json_text_add_str(buf, kind);
        put_name(buf, DV_STR("apiVersion"));
        dv_buf_add_char(buf, '"');
        dv_api_version_print(version, buf);
        dv_buf_add_char(buf, '"');
    }
    put_members(buf, message, value);
    dv_buf_add_char(buf, '}');
}
