/* decode_json.c - a JSON document into a struct, by its field table.
 *
 * What is accepted follows Go's encoding/json as the API servers use it: names count with their
 * case, null leaves a field as it is, integers have no fraction. */
#include "resource/resource.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "number/number.h"
#include "resource/codec/layout.h"
#include "resource/codec/notes.h"
#include "json/json.h"

/* "T15:04:05.000000": Go wants exactly so many digits of a time in microseconds. */
#define MICRO_DIGITS 6u
/* A document has at most 64 MiB, and printing makes at most six bytes of one (\u0000). */
#define RAW_BYTES_MAX (6u * DV_DECODE_BYTES_MAX)

struct decoder {
    enum dv_unknown unknown;
    struct dv_decode_notes *notes;
    size_t bytes_left; /* of structs */
    struct dv_arena *arena;
    struct dv_err *err;
};

static bool decode_object(struct decoder *d, const struct dv_message *message, char *value,
                          const struct dv_json *node, bool is_root);

/* Zeroed memory for n structs of `size` bytes; NULL when the document asks for more than any object
 * needs: "[{},{},..." has structs that are far larger than its text. */
static void *take(struct decoder *d, const struct dv_json *node, size_t n, size_t size)
{
    if (n > d->bytes_left / size) {
        (void)dv_json_fail(node, d->err, "more than %u bytes of objects", DV_DECODE_BYTES_MAX);
        d->err->code = DV_RESOURCE_EXHAUSTED;
        return NULL;
    }
    d->bytes_left -= n * size;
    return dv_arena_alloc_array(d->arena, n, size, _Alignof(int64_t));
}

/* -- Values --------------------------------------------------------------------------------- */

static bool wrap_value(const struct dv_json *node, struct dv_err *err)
{
    struct dv_err cause = *err;

    return dv_json_fail(node, err, "%s", cause.msg);
}

static bool decode_string(struct decoder *d, const struct dv_json *node, dv_str *text)
{
    if (!dv_json_as_str(node, text, d->err))
        return false;
    if (!text->p)
        text->p = "";
    return true;
}

static bool decode_int(struct decoder *d, const struct dv_json *node, bool is_32, int64_t *value)
{
    if (!dv_json_as_i64(node, value, d->err)) {
        d->err->code = DV_INVALID_ARGUMENT;
        return false;
    }
    if (is_32 && *value != (int32_t)*value)
        return dv_json_fail(node, d->err, "%lld does not fit 32 bits", (long long)*value);
    return true;
}

static bool has_micros(dv_str text)
{
    size_t dot = dv_str_find_char(text, '.');
    size_t n = 0;

    while (dot + 1 + n < text.n && text.p[dot + 1 + n] >= '0' && text.p[dot + 1 + n] <= '9')
        n++;
    return n == MICRO_DIGITS;
}

static bool decode_time(struct decoder *d, const struct dv_json *node, bool is_micro,
                        struct dv_time *time)
{
    dv_str text;

    if (!dv_json_as_str(node, &text, d->err))
        return false;
    if (!dv_api_time_parse(text, time, d->err))
        return wrap_value(node, d->err);
    if (is_micro && !has_micros(text))
        return dv_json_fail(node, d->err, "\"%.*s\" is no time like 2006-01-02T15:04:05.000000Z",
                            DV_FMT(text));
    *time = dv_api_time_round(*time, is_micro);
    return true;
}

static bool decode_quantity(struct decoder *d, const struct dv_json *node,
                            struct dv_quantity *quantity)
{
    dv_str text = DV_STR_NONE;

    if (dv_json_is(node, DV_JSON_NUMBER))
        text = dv_json_number_text(node);
    else if (!dv_json_is(node, DV_JSON_STRING))
        return dv_json_fail(node, d->err, "expected a quantity, got %s",
                            dv_json_kind_name(dv_json_kind(node)));
    else if (!dv_json_as_str(node, &text, d->err))
        return false;
    return dv_quantity_parse_json(text, d->arena, quantity, d->err) || wrap_value(node, d->err);
}

static bool decode_bytes(struct decoder *d, const struct dv_json *node, dv_str *bytes)
{
    dv_str text;

    if (!dv_json_as_str(node, &text, d->err))
        return false;
    return dv_base64_decode(text, d->arena, bytes) || dv_json_fail(node, d->err, "expected base64");
}

static bool decode_raw(struct decoder *d, const struct dv_json *node, dv_str *text)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, RAW_BYTES_MAX);
    *text = dv_json_source(node);
    if (text->p)
        return true;
    dv_json_print(node, NULL, &buf);
    *text = dv_str_copy(dv_buf_str(&buf), d->arena);
    return dv_buf_check(&buf, "a field that is kept as text", d->err);
}

static bool decode_int_or_str(struct decoder *d, const struct dv_json *node,
                              struct dv_int_or_str *value)
{
    value->is_text = dv_json_is(node, DV_JSON_STRING);
    return value->is_text ? decode_string(d, node, &value->text)
                          : decode_int(d, node, true, &value->number);
}

static bool decode_strs(struct decoder *d, const struct dv_json *node, struct dv_strs *strs)
{
    if (!dv_json_expect(node, DV_JSON_ARRAY, d->err))
        return false;
    strs->v = take(d, node, dv_json_n(node), sizeof(dv_str));
    if (!strs->v)
        return false;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        if (!dv_json_is(item, DV_JSON_NULL) && !decode_string(d, item, &strs->v[strs->n]))
            return false;
        strs->n++;
    }
    return true;
}

/* Decodes one value that is not null into `at`, which is zeroed. */
static bool decode_value(struct decoder *d, const struct dv_field *field,
                         const struct dv_json *node, void *at)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
        return decode_string(d, node, at);
    case DV_TYPE_BOOL:
        return dv_json_as_bool(node, at, d->err);
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return decode_int(d, node, field->type == DV_TYPE_INT32, at);
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return decode_time(d, node, field->type == DV_TYPE_MICROTIME, at);
    case DV_TYPE_QUANTITY:
        return decode_quantity(d, node, at);
    case DV_TYPE_BYTES:
        return decode_bytes(d, node, at);
    case DV_TYPE_RAW:
        return decode_raw(d, node, at);
    case DV_TYPE_INT_OR_STR:
        return decode_int_or_str(d, node, at);
    case DV_TYPE_STRINGS:
        return decode_strs(d, node, at);
    case DV_TYPE_MESSAGE:
        break;
    }
    return decode_object(d, field->message, at, node, false);
}

/* -- Fields --------------------------------------------------------------------------------- */

/* Decodes items or entries; null among them is the zero value. */
static bool decode_items(struct decoder *d, const struct dv_field *field,
                         const struct dv_json *node, char *home)
{
    bool is_map = field->shape == DV_SHAPE_MAP;
    struct dv_items items = dv_field_items(field, NULL);
    char *at;

    if (!dv_json_expect(node, is_map ? DV_JSON_OBJECT : DV_JSON_ARRAY, d->err))
        return false;
    items.n = dv_json_n(node);
    items.first = take(d, node, items.n, items.size);
    if (!items.first)
        return false;
    at = items.first;
    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child)) {
        if (is_map) {
            *(dv_str *)(void *)at = dv_json_key(child);
            dv_note_repeated(d->notes, child, d->arena);
        }
        if (!dv_json_is(child, DV_JSON_NULL) &&
            !decode_value(d, field, child, at + items.value_offset))
            return false;
        at += items.size;
    }
    if (is_map)
        items.n = dv_sort_entries(items, d->arena);
    dv_store_pointer(home + field->offset, items.first);
    *(size_t *)(void *)(home + field->n_offset) = items.n;
    return true;
}

static bool decode_pointer(struct decoder *d, const struct dv_field *field,
                           const struct dv_json *node, char *home)
{
    void *value;

    if (dv_is_own_pointer(field)) {
        dv_str *text = (dv_str *)(void *)(home + field->offset);

        if (!decode_value(d, field, node, text))
            return false;
        if ((field->flags & DV_FIELD_PLAIN) && dv_value_is_zero(field, text))
            *text = DV_STR_NONE;
        return true;
    }
    value = take(d, node, 1, dv_value_size(field));
    if (!value || !decode_value(d, field, node, value))
        return false;
    if (!(field->flags & DV_FIELD_PLAIN) || !dv_value_is_zero(field, value))
        dv_store_pointer(home + field->offset, value);
    return true;
}

static bool decode_in_home(struct decoder *d, const struct dv_field *field,
                           const struct dv_json *node, char *home)
{
    switch ((enum dv_shape)field->shape) {
    case DV_SHAPE_LIST:
    case DV_SHAPE_MAP:
        return decode_items(d, field, node, home);
    case DV_SHAPE_POINTER:
        return decode_pointer(d, field, node, home);
    case DV_SHAPE_VIEW:
        return decode_object(d, field->message, home, node, false);
    case DV_SHAPE_ONE:
    case DV_SHAPE_INLINE:
        break;
    }
    return decode_value(d, field, node, home + field->offset);
}

/* Decodes into the struct behind a pointer, which is made when the first of its fields is not
 * empty. */
static bool decode_into(struct decoder *d, const struct dv_field *field, const struct dv_json *node,
                        char *value)
{
    char *home = value + field->into->offset;
    char *made = dv_load_pointer(home);

    if (!made)
        made = take(d, node, 1, field->into->size);
    if (!made || !decode_in_home(d, field, node, made))
        return false;
    if (dv_field_is_set(field, made))
        dv_store_pointer(home, made);
    return true;
}

/* -- Objects -------------------------------------------------------------------------------- */

static bool is_type_meta(const struct dv_json *member)
{
    return dv_str_eq(dv_json_key(member), DV_STR("apiVersion")) ||
           dv_str_eq(dv_json_key(member), DV_STR("kind"));
}

/* Handles a member that the table does not have. */
static bool look_at_unknown(struct decoder *d, const struct dv_message *message,
                            const struct dv_json *object, const struct dv_json *member,
                            bool is_root)
{
    const char *advice;
    dv_str text;

    if (is_root && is_type_meta(member))
        return dv_json_is(member, DV_JSON_NULL) || dv_json_as_str(member, &text, d->err);
    if (is_root && d->unknown == DV_UNKNOWN_BODY)
        return true;
    advice = dv_removed_advice(message, object, dv_json_key(member));
    if (advice)
        return dv_json_fail(member, d->err, "%s", advice);
    dv_note_unknown(d->notes, member, d->arena);
    return true;
}

/* Keeps all members that the table does not have, as text. */
static bool keep_unknown(struct decoder *d, const struct dv_message *message, char *value,
                         const struct dv_json *node, bool is_root)
{
    const dv_str *unknown = dv_unknown_of(message, value);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str *text;

    dv_buf_init(&buf, RAW_BYTES_MAX);
    if (unknown) /* a view of the same struct has kept some before */
        dv_buf_add(&buf, *unknown);
    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child)) {
        if ((is_root && is_type_meta(child)) || dv_message_field(message, dv_json_key(child), NULL))
            continue;
        if (buf.n > 0)
            dv_buf_add_char(&buf, ',');
        dv_buf_add_json(&buf, dv_json_key(child));
        dv_buf_add_char(&buf, ':');
        dv_json_print(child, NULL, &buf);
    }
    if (buf.n == 0)
        return true;
    text = DV_NEW(d->arena, dv_str);
    *text = dv_str_copy(dv_buf_str(&buf), d->arena);
    dv_store_pointer(value + message->unknown_offset, text);
    return dv_buf_check(&buf, "unknown fields", d->err);
}

/* Finds the field of that name. Members usually come in the order of the table, so the search
 * begins at `*next`, behind the last one. */
static const struct dv_field *find_field(const struct dv_message *message, dv_str name,
                                         size_t *next, size_t *base)
{
    const struct dv_field *field;

    for (size_t i = *next; i < message->n_fields && i < *next + 2; i++) {
        field = &message->fields[i];
        if (field->shape != DV_SHAPE_INLINE && dv_str_eq(field->name, name)) {
            *next = i + 1;
            return field;
        }
    }
    *base = 0;
    field = dv_message_field(message, name, base);
    if (field >= message->fields && field < message->fields + message->n_fields)
        *next = (size_t)(field - message->fields) + 1;
    return field;
}

static bool decode_object(struct decoder *d, const struct dv_message *message, char *value,
                          const struct dv_json *node, bool is_root)
{
    bool has_unknown = false;
    size_t next = 0;

    if (!dv_json_expect(node, DV_JSON_OBJECT, d->err))
        return false;
    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child)) {
        size_t base = 0;
        const struct dv_field *field = find_field(message, dv_json_key(child), &next, &base);

        dv_note_repeated(d->notes, child, d->arena);
        if (!field) {
            if (!look_at_unknown(d, message, node, child, is_root))
                return false;
            has_unknown = true;
        } else if (!dv_json_is(child, DV_JSON_NULL)) {
            if (!(field->into ? decode_into(d, field, child, value + base)
                              : decode_in_home(d, field, child, value + base)))
                return false;
        }
    }
    if (has_unknown &&
        (d->unknown == DV_UNKNOWN_KEEP || (d->unknown == DV_UNKNOWN_BODY && is_root)))
        return keep_unknown(d, message, value, node, is_root);
    return true;
}

bool dv_decode_json(const struct dv_message *message, const struct dv_json *doc,
                    enum dv_unknown unknown, struct dv_arena *arena, void *value,
                    struct dv_decode_notes *notes, struct dv_err *err)
{
    struct decoder d = {
        .unknown = unknown,
        .notes = notes,
        .bytes_left = DV_DECODE_BYTES_MAX,
        .arena = arena,
        .err = err,
    };

    return decode_object(&d, message, value, doc, true);
}
