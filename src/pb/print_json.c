/* print_json.c - a message as JSON text: for people, scripts and pages. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
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

/* What is printed, and where. */
struct print {
    struct dv_buf *buf;
    bool is_sent; /* only what was sent, and all of that */
};

static void print_message(const struct print *print, const ProtobufCMessage *message);

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
static size_t print_value(const struct print *print, const ProtobufCFieldDescriptor *field,
                          const void *value)
{
    struct dv_buf *buf = print->buf;

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
        print_message(print, *(const ProtobufCMessage *const *)value);
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

/* "key":value of an entry. */
static void print_entry(const struct print *print, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;

    (void)print_value(print, &fields[0], (const char *)entry + fields[0].offset);
    dv_buf_add_char(print->buf, ':');
    (void)print_value(print, &fields[1], (const char *)entry + fields[1].offset);
}

static void print_list(const struct print *print, const ProtobufCFieldDescriptor *field,
                       const ProtobufCMessage *message)
{
    bool is_map = print->is_sent && field->type == PROTOBUF_C_TYPE_MESSAGE &&
                  dv_pb_is_map_entry(field->descriptor);
    struct dv_buf *buf = print->buf;
    size_t n;
    const char *at;

    memcpy(&n, (const char *)message + field->quantifier_offset, sizeof(n));
    memcpy(&at, (const char *)message + field->offset, sizeof(at));
    dv_buf_add_char(buf, is_map ? '{' : '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        if (is_map)
            print_entry(print, ((const ProtobufCMessage *const *)(const void *)at)[i]);
        else
            at += print_value(print, field, at);
    }
    dv_buf_add_char(buf, is_map ? '}' : ']');
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

/* Whether a field that has no presence is zero or empty: then it was not sent. */
static bool is_zero(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *at = (const char *)message + field->offset;
    ProtobufCBinaryData bytes;
    const char *text;
    uint64_t number = 0;
    size_t n;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy(&n, (const char *)message + field->quantifier_offset, sizeof(n));
        return n == 0;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return false;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        memcpy(&text, at, sizeof(text));
        return text == NULL || text[0] == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, at, sizeof(bytes));
        return bytes.len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return false; /* it is there */
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&number, at, sizeof(number));
        return number == 0;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        memcpy(&number, at, sizeof(uint32_t));
        return number == 0;
    }
    return false;
}

/* A field that the type does not have, by its number and what is on the wire. */
static void print_unknown(const ProtobufCMessageUnknownField *unknown, struct dv_buf *buf)
{
    dv_str raw = {(const char *)unknown->data, unknown->len};
    struct dv_pb_reader reader;
    struct dv_err err;
    uint64_t value;

    dv_buf_printf(buf, "{\"field\":%u,", unknown->tag);
    dv_pb_reader_init(&reader, raw);
    switch (unknown->wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if (dv_pb_read_packed(&reader, DV_PB_VARINT, &value, &err))
            dv_buf_printf(buf, "\"varint\":%llu}", (unsigned long long)value);
        return;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        if (dv_pb_read_packed(&reader, DV_PB_FIXED64, &value, &err))
            dv_buf_printf(buf, "\"fixed64\":%llu}", (unsigned long long)value);
        return;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        if (dv_pb_read_packed(&reader, DV_PB_FIXED32, &value, &err))
            dv_buf_printf(buf, "\"fixed32\":%llu}", (unsigned long long)value);
        return;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!dv_pb_read_packed(&reader, DV_PB_VARINT, &value, &err)) /* the length */
            return;
        dv_buf_add_c(buf, "\"bytes\":\"");
        dv_base64_encode((dv_str){reader.at, (size_t)(reader.end - reader.at)}, buf);
        dv_buf_add_c(buf, "\"}");
        return;
    default:
        dv_buf_add_c(buf, "\"group\":\"");
        dv_base64_encode(raw, buf);
        dv_buf_add_c(buf, "\"}");
    }
}

static void print_unknowns(const ProtobufCMessage *message, bool is_first, struct dv_buf *buf)
{
    dv_buf_add_c(buf, is_first ? "\"[unknown]\":[" : ",\"[unknown]\":[");
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ',');
        print_unknown(&message->unknown_fields[i], buf);
    }
    dv_buf_add_char(buf, ']');
}

static void print_message(const struct print *print, const ProtobufCMessage *message)
{
    struct dv_buf *buf = print->buf;
    bool is_first = true;

    dv_buf_add_char(buf, '{');
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

        if (is_absent(field, message) || (print->is_sent && is_zero(field, message)))
            continue;
        if (!is_first)
            dv_buf_add_char(buf, ',');
        is_first = false;
        dv_buf_printf(buf, "\"%s\":", field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            print_list(print, field, message);
        else
            (void)print_value(print, field, (const char *)message + field->offset); /* alone */
    }
    if (print->is_sent && message->n_unknown_fields > 0)
        print_unknowns(message, is_first, buf);
    dv_buf_add_char(buf, '}');
}

void dv_pb_print_json(const ProtobufCMessage *message, struct dv_buf *buf)
{
    const struct print print = {.buf = buf};

    print_message(&print, message);
}

void dv_pb_print_sent(const ProtobufCMessage *message, struct dv_buf *buf)
{
    const struct print print = {.buf = buf, .is_sent = true};

    print_message(&print, message);
}
