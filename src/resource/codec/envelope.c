/* envelope.c - the frame around objects in protobuf. */
#include "resource/resource.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"

static const dv_str magic = DV_STR_INIT("k8s\0");

static bool decode_type(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                        struct dv_pb_envelope *envelope, struct dv_err *err)
{
    struct dv_pb_reader inner;

    if (!dv_pb_enter(reader, field, &inner, err))
        return false;
    while (!dv_pb_is_at_end(&inner)) {
        struct dv_pb_field part;

        if (!dv_pb_read(&inner, &part, err))
            return false;
        if (part.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            !dv_pb_get_string(&inner, &part, &envelope->api_version, err))
            return false;
        if (part.tag == DV_PB_TAG(2, DV_PB_BYTES) &&
            !dv_pb_get_string(&inner, &part, &envelope->kind, err))
            return false;
    }
    return true;
}

static bool decode_unknown(dv_str body, struct dv_pb_envelope *envelope, struct dv_err *err)
{
    struct dv_pb_reader reader;

    dv_pb_reader_init(&reader, dv_str_slice(body, magic.n, body.n));
    while (!dv_pb_is_at_end(&reader)) {
        struct dv_pb_field field;

        if (!dv_pb_read(&reader, &field, err))
            return false;
        switch (field.tag) {
        case DV_PB_TAG(1, DV_PB_BYTES):
            if (!decode_type(&reader, &field, envelope, err))
                return false;
            break;
        case DV_PB_TAG(2, DV_PB_BYTES):
            envelope->object = field.bytes;
            break;
        case DV_PB_TAG(3, DV_PB_BYTES):
            if (field.bytes.n > 0)
                return dv_fail(err, DV_UNIMPLEMENTED, "an object encoded as \"%.*s\"",
                               DV_FMT(field.bytes));
            break;
        default:
            break;
        }
    }
    return true;
}

bool dv_pb_envelope_decode(dv_str body, struct dv_pb_envelope *envelope, struct dv_err *err)
{
    struct dv_pb_envelope read = {0};

    if (!dv_str_starts_with(body, magic))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "a protobuf body that does not begin with the mark of Kubernetes");
    if (!decode_unknown(body, &read, err))
        return dv_wrap(err, "protobuf body");
    *envelope = read;
    return true;
}

void dv_pb_envelope_begin(dv_str api_version, dv_str kind, struct dv_buf *buf)
{
    size_t mark;

    dv_buf_add(buf, magic);
    mark = dv_pb_begin(buf, 1);
    dv_pb_add_bytes(buf, 1, api_version);
    dv_pb_add_bytes(buf, 2, kind);
    dv_pb_end(buf, mark);
}

void dv_pb_envelope_add_length(size_t n_object, struct dv_buf *buf)
{
    dv_pb_add_varint(buf, DV_PB_TAG(2, DV_PB_BYTES));
    dv_pb_add_varint(buf, n_object);
}

void dv_pb_envelope_end(struct dv_buf *buf)
{
    dv_pb_add_bytes(buf, 3, DV_STR_NONE);
    dv_pb_add_bytes(buf, 4, DV_STR_NONE);
}

void dv_pb_envelope_encode(const struct dv_pb_envelope *envelope, struct dv_buf *buf)
{
    dv_pb_envelope_begin(envelope->api_version, envelope->kind, buf);
    dv_pb_envelope_add_length(envelope->object.n, buf);
    dv_buf_add(buf, envelope->object);
    dv_pb_envelope_end(buf);
}
