/* print_json.c - a message as JSON text: for people, scripts and pages. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "pb/pb.h"

/* As many digits as bring the same value back. */
#define FLOAT_DIGITS 9
#define DOUBLE_DIGITS 17

static void print_bytes(const ProtobufCBinaryData *bytes, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '"');
    dv_base64_encode((dv_str){(const char *)bytes->data, bytes->len}, buf);
    dv_buf_add_char(buf, '"');
}

/* JSON has no numbers for what is not finite: these are strings, as in protobuf's own mapping. */
static void print_real(double value, int digits, struct dv_buf *buf)
{
    if (isnan(value))
        dv_buf_add_c(buf, "\"NaN\"");
    else if (isinf(value))
        dv_buf_add_c(buf, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        dv_buf_printf(buf, "%.*g", digits, value);
}

static void print_enum(const ProtobufCFieldDescriptor *field, int32_t value, struct dv_buf *buf)
{
    const ProtobufCEnumValue *known =
        protobuf_c_enum_descriptor_get_value(field->descriptor, value);

    if (known)
        dv_buf_add_json(buf, dv_str_from_c(known->name));
    else
        dv_buf_add_i64(buf, value);
}

/* `value` is where it is in the struct, or in the array. Returns the bytes it has there. */
static size_t print_value(const ProtobufCFieldDescriptor *field, const void *value,
                          struct dv_buf *buf)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        dv_buf_add_c(buf, *(const protobuf_c_boolean *)value ? "true" : "false");
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
        dv_buf_add_json(buf, dv_str_from_c(*(const char *const *)value));
        return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES:
        print_bytes(value, buf);
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE:
        dv_pb_print_json(*(const ProtobufCMessage *const *)value, buf);
        return sizeof(ProtobufCMessage *);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        dv_buf_add_u64(buf, *(const uint32_t *)value);
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        dv_buf_add_u64(buf, *(const uint64_t *)value);
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        dv_buf_add_i64(buf, *(const int32_t *)value);
        return sizeof(int32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        dv_buf_add_i64(buf, *(const int64_t *)value);
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_FLOAT:
        print_real((double)*(const float *)value, FLOAT_DIGITS, buf);
        return sizeof(float);
    case PROTOBUF_C_TYPE_DOUBLE:
        print_real(*(const double *)value, DOUBLE_DIGITS, buf);
        return sizeof(double);
    case PROTOBUF_C_TYPE_ENUM:
        print_enum(field, *(const int32_t *)value, buf);
        return sizeof(int32_t);
    }
    return 0;
}

static void print_list(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message,
                       struct dv_buf *buf)
{
    size_t n;
    const char *at;

    memcpy(&n, (const char *)message + field->quantifier_offset, sizeof(n));
    memcpy(&at, (const char *)message + field->offset, sizeof(at));
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        at += print_value(field, at, buf);
    }
    dv_buf_add_char(buf, ']');
}

/* A message that is not there, and what is optional and absent. */
static bool is_absent(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *start = (const char *)message;
    const void *pointer;
    uint32_t choice;

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return false;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        memcpy(&choice, start + field->quantifier_offset, sizeof(choice));
        return choice != field->id;
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    memcpy(&pointer, start + field->offset, sizeof(pointer));
    return pointer == NULL;
}

void dv_pb_print_json(const ProtobufCMessage *message, struct dv_buf *buf)
{
    bool is_first = true;

    dv_buf_add_char(buf, '{');
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

        if (is_absent(field, message))
            continue;
        if (!is_first)
            dv_buf_add_char(buf, ',');
        is_first = false;
        dv_buf_printf(buf, "\"%s\":", field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            print_list(field, message, buf);
        else
            (void)print_value(field, (const char *)message + field->offset, buf); /* alone */
    }
    dv_buf_add_char(buf, '}');
}
