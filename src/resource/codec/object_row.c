/* object_row.c - objects as rows of the store: small, and decoded straight into structs.
 *
 *     0x01 | resourceVersion, 8 bytes | protobuf
 *
 * The protobuf has the API's numbers, so that a later table reads what an earlier one wrote. Other
 * than the API's it leaves out what is zero, it keeps members that the table lacks, and it packs
 * FieldsV1. The version has a place of its own: it is known last. Rows of the first layout are
 * JSON, and begin with a brace. */
#include "resource/resource.h"

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "pb/pb.h"
#include "resource/codec/copy.h"
#include "resource/codec/decode_pb.h"
#include "resource/codec/encode_pb.h"
#include "resource/codec/layout.h"
#include "resource/codec/object_row.h"
#include "resource/codec/pack_fields.h"
#include "json/json.h"

#define FORMAT '\x01'
#define HEAD_BYTES (1 + sizeof(uint64_t))

/* A row that is being made. */
struct row {
    struct dv_buf *buf;
    const struct dv_message *message; /* of the whole object */
    const void *version;              /* the text that is in the head */
};

static void put_members(const struct row *row, const struct dv_message *message, const char *value);

static void put_time(struct dv_buf *buf, uint32_t number, const struct dv_time *time)
{
    size_t mark = dv_pb_begin(buf, number);

    if (time->is_set) {
        dv_pb_add_number(buf, 1, (uint64_t)time->seconds);
        if (time->nanos != 0)
            dv_pb_add_number(buf, 2, (uint64_t)(int64_t)time->nanos);
    }
    dv_pb_end(buf, mark);
}

static void put_raw(const struct row *row, uint32_t number, dv_str text)
{
    size_t mark = dv_pb_begin(row->buf, number);
    size_t packed;

    if (dv_fields_is_packed(text)) {
        dv_pb_add_bytes(row->buf, DV_ROW_PACKED, dv_fields_packed(text));
        dv_pb_end(row->buf, mark);
        return;
    }
    packed = dv_pb_begin(row->buf, DV_ROW_PACKED);
    if (dv_fields_pack(row->message, text, row->buf)) {
        dv_pb_end(row->buf, packed);
    } else {
        dv_buf_cut(row->buf, mark);
        if (text.n > 0)
            dv_pb_add_bytes(row->buf, DV_ROW_RAW, text);
    }
    dv_pb_end(row->buf, mark);
}

static void put_int_or_str(struct dv_buf *buf, uint32_t number, const struct dv_int_or_str *value)
{
    size_t mark = dv_pb_begin(buf, number);

    if (value->is_text) {
        dv_pb_add_number(buf, 1, 1);
        dv_pb_add_bytes(buf, 3, value->text);
    } else {
        dv_pb_add_number(buf, 2, (uint64_t)value->number);
    }
    dv_pb_end(buf, mark);
}

static void put_strs(struct dv_buf *buf, uint32_t number, const struct dv_strs *strs)
{
    size_t mark = dv_pb_begin(buf, number);

    dv_pb_add_texts(buf, 1, strs->v, strs->n);
    dv_pb_end(buf, mark);
}

static void put_message(const struct row *row, uint32_t number, const struct dv_message *message,
                        const char *value)
{
    size_t mark = dv_pb_begin(row->buf, number);

    put_members(row, message, value);
    dv_pb_end(row->buf, mark);
}

static void put_value(const struct row *row, const struct dv_field *field, uint32_t number,
                      const void *value)
{
    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
    case DV_TYPE_BYTES:
        dv_pb_add_bytes(row->buf, number, *(const dv_str *)value);
        break;
    case DV_TYPE_BOOL:
        dv_pb_add_number(row->buf, number, *(const bool *)value);
        break;
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        dv_pb_add_number(row->buf, number, (uint64_t) * (const int64_t *)value);
        break;
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        put_time(row->buf, number, value);
        break;
    case DV_TYPE_QUANTITY:
        dv_encode_pb_quantity(row->buf, number, value);
        break;
    case DV_TYPE_RAW:
        put_raw(row, number, *(const dv_str *)value);
        break;
    case DV_TYPE_INT_OR_STR:
        put_int_or_str(row->buf, number, value);
        break;
    case DV_TYPE_STRINGS:
        put_strs(row->buf, number, value);
        break;
    case DV_TYPE_MESSAGE:
        put_message(row, number, field->message, value);
        break;
    }
}

/* Whether there is nothing to write. Bytes can be there and empty, also where texts cannot. */
static bool is_unset(const struct dv_field *field, const void *value)
{
    return field->type == DV_TYPE_BYTES ? !((const dv_str *)value)->p
                                        : dv_value_is_zero(field, value);
}

static void put_items(const struct row *row, const struct dv_field *field, const char *value)
{
    struct dv_items items = dv_field_items(field, value);

    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;
        size_t mark;

        if (field->shape == DV_SHAPE_LIST) {
            put_value(row, field, field->number, item);
            continue;
        }
        mark = dv_pb_begin(row->buf, field->number);
        dv_pb_add_bytes(row->buf, 1, *(const dv_str *)(const void *)item);
        if (field->type != DV_TYPE_BYTES || !is_unset(field, item + items.value_offset))
            put_value(row, field, 2, item + items.value_offset);
        dv_pb_end(row->buf, mark);
    }
}

/* Puts a struct that is part of its parent, unless nothing in it is set. */
static void put_part(const struct row *row, const struct dv_field *field, const char *value)
{
    size_t before = row->buf->n;
    size_t mark = dv_pb_begin(row->buf, field->number);

    put_members(row, field->message, value);
    if (row->buf->n == mark)
        dv_buf_cut(row->buf, before);
    else
        dv_pb_end(row->buf, mark);
}

static void put_field(const struct row *row, const struct dv_field *field, const char *value)
{
    const void *at;

    if (dv_is_container(field)) {
        put_items(row, field, value);
        return;
    }
    at = dv_field_value(field, value);
    if (!at || at == row->version)
        return;
    if (field->shape != DV_SHAPE_POINTER && field->type == DV_TYPE_MESSAGE)
        put_part(row, field, at);
    else if ((field->shape == DV_SHAPE_POINTER && !(field->flags & DV_FIELD_PLAIN)) ||
             !is_unset(field, at))
        put_value(row, field, field->number, at);
}

static void put_members(const struct row *row, const struct dv_message *message, const char *value)
{
    const dv_str *unknown = dv_unknown_of(message, value);

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        assert(!field->into && field->shape != DV_SHAPE_VIEW); /* it is the newest table */
        if (!dv_is_nothing(field, value))
            put_field(row, field, value);
    }
    if (unknown)
        dv_pb_add_bytes(row->buf, DV_ROW_UNKNOWN, *unknown);
}

static void put_version(char *head, uint64_t version)
{
    version = htole64(version);
    memcpy(head + 1, &version, sizeof(version));
}

void dv_encode_row(const struct dv_object *object, struct dv_buf *buf)
{
    const struct dv_message *message = object->kind->versions[0].message;
    const struct row row = {buf, message, &object->meta->resource_version};
    char *head = dv_buf_extend(buf, HEAD_BYTES);

    if (!head)
        return;
    head[0] = FORMAT;
    put_version(head, object->version);
    put_members(&row, message, object->value);
}

void dv_row_set_version(struct dv_buf *row, uint64_t version)
{
    assert(row->n >= HEAD_BYTES && row->p[0] == FORMAT);
    put_version(row->p, version);
}

static bool decode_json_row(const struct dv_kind *kind, dv_str row, struct dv_arena *arena,
                            void *value, struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(row, NULL, arena, err);
    struct dv_api_object_meta *meta = value;

    if (!doc ||
        !dv_decode_json(kind->versions[0].message, doc, DV_UNKNOWN_KEEP, arena, value, NULL, err))
        return false;
    dv_managed_fields_pack(kind, meta->managed_fields, meta->n_managed_fields, arena);
    return true;
}

bool dv_row_decode(const struct dv_kind *kind, dv_str row, struct dv_arena *arena, void *value,
                   struct dv_copy_size *size, size_t *made_texts, struct dv_err *err)
{
    struct dv_api_object_meta *meta = value;

    if (!dv_pb_decode_row(kind, dv_row_body(row), arena, value, size, made_texts, err))
        return false;
    meta->resource_version =
        dv_u64_print(dv_row_version(row), dv_arena_alloc_raw(arena, DV_U64_DIGITS, 1));
    size->texts += meta->resource_version.n;
    *made_texts += meta->resource_version.n;
    return true;
}

bool dv_row_is_json(dv_str row)
{
    return row.n < HEAD_BYTES || row.p[0] != FORMAT;
}

dv_str dv_row_body(dv_str row)
{
    return dv_str_slice(row, HEAD_BYTES, row.n);
}

bool dv_row_find(dv_str bytes, uint32_t number, dv_str *found)
{
    struct dv_pb_reader reader;
    struct dv_pb_field part;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &part, &err)) {
        if (part.tag != DV_PB_TAG(number, DV_PB_BYTES))
            continue;
        *found = part.bytes;
        return true;
    }
    return false;
}

uint64_t dv_row_version(dv_str row)
{
    uint64_t version;

    memcpy(&version, row.p + 1, sizeof(version));
    return le64toh(version);
}

bool dv_decode_row(const struct dv_kind *kind, dv_str row, struct dv_arena *arena, void *value,
                   struct dv_err *err)
{
    struct dv_copy_size unused;
    size_t made_texts;

    return dv_row_is_json(row) ? decode_json_row(kind, row, arena, value, err)
                               : dv_row_decode(kind, row, arena, value, &unused, &made_texts, err);
}

struct dv_object *dv_object_from_row(const struct dv_kind *kind, dv_str row,
                                     struct dv_arena *scratch, struct dv_err *err)
{
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(scratch, message->size, message->align);
    struct dv_copy_size size;
    size_t made_texts;

    if (dv_row_is_json(row))
        return decode_json_row(kind, row, scratch, value, err) ? dv_object_new(kind, value) : NULL;
    return dv_row_decode(kind, row, scratch, value, &size, &made_texts, err)
               ? dv_object_new_sized(kind, value, size)
               : NULL;
}
