/* The reader against protobuf-c's scanner, which sees every field of a message without fields as an
 * unknown one; against the writer; and its fast path against the general one. */
#include <assert.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    size_t n_fields;
    bool has_group; /* protobuf-c refuses all of them */
};

static bool is_same(const struct dv_pb_field *a, const struct dv_pb_field *b)
{
    return a->tag == b->tag && a->value == b->value && dv_str_eq(a->bytes, b->bytes);
}

static void write_fixed(struct dv_buf *out, const struct dv_pb_field *field, size_t n_bytes)
{
    dv_pb_add_varint(out, field->tag);
    for (size_t i = 0; i < n_bytes; i++)
        dv_buf_add_char(out, (char)(field->value >> (8 * i)));
}

static void write_again(struct dv_buf *out, const struct dv_pb_field *field)
{
    switch (field->tag & 7) {
    case DV_PB_VARINT:
        dv_pb_add_number(out, field->tag >> 3, field->value);
        break;
    case DV_PB_BYTES:
        dv_pb_add_bytes(out, field->tag >> 3, field->bytes);
        break;
    case DV_PB_FIXED32:
        write_fixed(out, field, 4);
        break;
    case DV_PB_FIXED64:
        write_fixed(out, field, 8);
        break;
    default: /* a group, which we do not write */
        break;
    }
}

/* Reads to the end, and writes all but groups to `out`. */
static bool walk(dv_str bytes, struct seen *seen, struct dv_buf *out, struct dv_err *err)
{
    struct dv_pb_reader reader;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader)) {
        struct dv_pb_reader general = reader;
        struct dv_pb_field field, same;
        bool is_read = dv_pb_read_any(&general, &same, err);
        dv_str s;

        assert(dv_pb_read(&reader, &field, err) == is_read);
        if (!is_read)
            return false;
        assert(is_same(&field, &same) && reader.at == general.at);
        if ((field.tag & 7) == DV_PB_BYTES)
            assert(dv_pb_get_string(&reader, &field, &s, err) == dv_str_is_utf8(field.bytes));
        seen->has_group |= (field.tag & 7) == DV_PB_GROUP;
        seen->n_fields++;
        write_again(out, &field);
    }
    return true;
}

static bool is_known_to_be_stricter(const struct dv_err *err)
{
    return strstr(err->msg, "of more than 64 bits") || strstr(err->msg, "number out of range");
}

/* protobuf-c, on what we read and wrote again: the same fields. */
static void compare(dv_str bytes, size_t n_fields)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(&dp_v1beta1__empty__descriptor, NULL,
                                                          bytes.n, (const uint8_t *)bytes.p);
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    assert(message && message->n_unknown_fields == n_fields);
    dv_pb_reader_init(&reader, bytes);
    for (size_t i = 0; i < n_fields; i++) {
        const ProtobufCMessageUnknownField *unknown = &message->unknown_fields[i];
        bool is_read = dv_pb_read(&reader, &field, &err);

        assert(is_read && unknown->tag == field.tag >> 3);
        assert((unsigned)unknown->wire_type == (field.tag & 7));
        assert(memcmp(unknown->data, reader.at - unknown->len, unknown->len) == 0);
    }
    assert(dv_pb_is_at_end(&reader));
    protobuf_c_message_free_unpacked(message, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str bytes = {(const char *)data, size};
    struct seen seen = {0};
    struct seen seen_again = {0};
    struct dv_buf out, out_again;
    struct dv_err err;

    dv_buf_init(&out, SIZE_MAX / 2);
    dv_buf_init(&out_again, SIZE_MAX / 2);
    if (walk(bytes, &seen, &out, &err)) {
        assert(out.n <= size);
        if (!seen.has_group) {
            assert(walk(dv_buf_str(&out), &seen_again, &out_again, &err));
            assert(dv_str_eq(dv_buf_str(&out), dv_buf_str(&out_again)));
            compare(dv_buf_str(&out), seen.n_fields);
        }
    } else if (!is_known_to_be_stricter(&err)) {
        assert(!protobuf_c_message_unpack(&dp_v1beta1__empty__descriptor, NULL, size, data));
    }
    dv_buf_fini(&out);
    dv_buf_fini(&out_again);
    return 0;
}
