/* encode_pb.c - a struct as protobuf, by its field table: byte for byte what the reference writes.
 *
 * Fields in the order of their numbers; what may be absent only when it is there, all else always;
 * maps in the order of their keys. */
#include "resource/resource.h"

#include "base/buf.h"
#include "number/number.h"
#include "pb/pb.h"
#include "resource/codec/encode_pb.h"
#include "resource/codec/layout.h"
#include "resource/codec/pack_fields.h"

static void put_members(struct dv_buf *buf, const struct dv_message *message, const char *value);

/* Zeros, for the fields of a struct that is not there. */
static const union {
    dv_str text;
    int64_t number;
    bool is_true;
} zero;

static void put_time(struct dv_buf *buf, uint32_t number, const struct dv_time *time)
{
    size_t mark = dv_pb_begin(buf, number);

    if (time->is_set) {
        dv_pb_add_number(buf, 1, (uint64_t)time->seconds);
        dv_pb_add_number(buf, 2, (uint64_t)(int64_t)time->nanos);
    }
    dv_pb_end(buf, mark);
}

void dv_encode_pb_quantity(struct dv_buf *buf, uint32_t number, const struct dv_quantity *quantity)
{
    size_t mark = dv_pb_begin(buf, number);
    size_t text = dv_pb_begin(buf, 1);

    dv_quantity_print(quantity, buf);
    dv_pb_end(buf, text);
    dv_pb_end(buf, mark);
}

static void put_raw(struct dv_buf *buf, uint32_t number, dv_str text)
{
    size_t mark = dv_pb_begin(buf, number);

    if (text.n > 0) {
        size_t raw = dv_pb_begin(buf, 1);

        (void)dv_fields_add_text(text, buf); /* protobuf escapes nothing */
        dv_pb_end(buf, raw);
    }
    dv_pb_end(buf, mark);
}

static void put_int_or_str(struct dv_buf *buf, uint32_t number, const struct dv_int_or_str *value)
{
    size_t mark = dv_pb_begin(buf, number);

    dv_pb_add_number(buf, 1, value->is_text);
    dv_pb_add_number(buf, 2, (uint64_t)value->number);
    dv_pb_add_bytes(buf, 3, value->text);
    dv_pb_end(buf, mark);
}

static void put_strs(struct dv_buf *buf, uint32_t number, const struct dv_strs *strs)
{
    size_t mark = dv_pb_begin(buf, number);

    for (size_t i = 0; i < strs->n; i++)
        dv_pb_add_bytes(buf, 1, strs->v[i]);
    dv_pb_end(buf, mark);
}

static void put_message(struct dv_buf *buf, uint32_t number, const struct dv_message *message,
                        const char *value)
{
    size_t mark = dv_pb_begin(buf, number);

    put_members(buf, message, value);
    dv_pb_end(buf, mark);
}

static void put_value(struct dv_buf *buf, const struct dv_field *field, uint32_t number,
                      const void *value)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
        dv_pb_add_bytes(buf, number, *(const dv_str *)value);
        break;
    case DV_TYPE_BOOL:
        dv_pb_add_number(buf, number, *(const bool *)value);
        break;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        dv_pb_add_number(buf, number, (uint64_t) * (const int64_t *)value);
        break;
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        put_time(buf, number, value);
        break;
    case DV_TYPE_QUANTITY:
        dv_encode_pb_quantity(buf, number, value);
        break;
    case DV_TYPE_RAW:
        put_raw(buf, number, *(const dv_str *)value);
        break;
    case DV_TYPE_INT_OR_STR:
        put_int_or_str(buf, number, value);
        break;
    case DV_TYPE_STRINGS:
        put_strs(buf, number, value);
        break;
    case DV_TYPE_MESSAGE:
        put_message(buf, number, field->message, value);
        break;
    }
}

static void put_items(struct dv_buf *buf, const struct dv_field *field, const char *home)
{
    struct dv_items items = dv_field_items(field, home);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;
        size_t mark;

        if (field->shape == DV_SHAPE_LIST) {
            put_value(buf, field, field->number, item);
            continue;
        }
        mark = dv_pb_begin(buf, field->number);
        dv_pb_add_bytes(buf, 1, *(const dv_str *)(const void *)item);
        put_value(buf, field, 2, item + items.value_offset);
        dv_pb_end(buf, mark);
    }
}

static void put_field(struct dv_buf *buf, const struct dv_field *field, const char *value)
{
    const char *home = dv_field_home(field, value);
    const void *at;

    if (dv_is_container(field)) {
        put_items(buf, field, home);
        return;
    }
    if (field->shape == DV_SHAPE_VIEW) {
        put_message(buf, field->number, field->message, value);
        return;
    }
    at = dv_field_value(field, home);
    if (!at && (field->shape != DV_SHAPE_POINTER || (field->flags & DV_FIELD_PLAIN)))
        at = &zero; /* such a field is a text, a number or a boolean, so the zeros are enough */
    if (at)
        put_value(buf, field, field->number, at);
}

static void put_members(struct dv_buf *buf, const struct dv_message *message, const char *value)
{
    for (size_t i = 0; i < message->n_fields; i++)
        put_field(buf, &message->fields[message->numbers[i]], value);
}

void dv_encode_pb(const struct dv_message *message, const void *value, struct dv_buf *buf)
{
    put_members(buf, message, value);
}
