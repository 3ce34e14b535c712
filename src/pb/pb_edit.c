/* pb_edit.c - texts in a decoded message are replaced: what is secret, and ids that differ. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"

struct editing {
    bool (*edit)(void *ctx, const struct dv_pb_text *text, dv_str *replacement);
    void *ctx;
    struct dv_arena *arena;
};

static void edit_message(const struct editing *editing, ProtobufCMessage *message);

/* `at` is where the pointer to the text is. */
static void edit_string(const struct editing *editing, struct dv_pb_text *text, void *at)
{
    const char *value;
    dv_str replacement;

    memcpy(&value, at, sizeof(value));
    text->value = dv_str_from_c(value);
    if (!editing->edit(editing->ctx, text, &replacement))
        return;
    value = dv_str_to_c(replacement, editing->arena);
    memcpy(at, &value, sizeof(value));
}

static void edit_bytes(const struct editing *editing, struct dv_pb_text *text, void *at)
{
    ProtobufCBinaryData data;
    dv_str replacement;

    memcpy(&data, at, sizeof(data));
    text->value = (dv_str){(const char *)data.data, data.len};
    if (!editing->edit(editing->ctx, text, &replacement))
        return;
    data.len = replacement.n;
    data.data = dv_arena_alloc(editing->arena, replacement.n, 1);
    if (replacement.n > 0)
        memcpy(data.data, replacement.p, replacement.n);
    memcpy(at, &data, sizeof(data));
}

static void edit_value(const struct editing *editing, const ProtobufCFieldDescriptor *field,
                       const char *type, void *at)
{
    struct dv_pb_text text = {.message = type, .field = field->name};
    ProtobufCMessage *message;

    if (field->type == PROTOBUF_C_TYPE_STRING) {
        edit_string(editing, &text, at);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        edit_bytes(editing, &text, at);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        memcpy(&message, at, sizeof(message));
        if (message)
            edit_message(editing, message);
    }
}

static void edit_field(const struct editing *editing, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    const char *type = message->descriptor->name;
    size_t bytes =
        field->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
    void *at = (char *)message + field->offset;
    char *list;
    size_t n;

    if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_BYTES &&
        field->type != PROTOBUF_C_TYPE_MESSAGE)
        return;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        edit_value(editing, field, type, at);
        return;
    }
    memcpy(&n, (char *)message + field->quantifier_offset, sizeof(n));
    memcpy(&list, at, sizeof(list));
    for (size_t i = 0; i < n; i++)
        edit_value(editing, field, type, list + i * bytes);
}

/* A field that the type does not have: its data begins with a length. */
static void edit_unknown(const struct editing *editing, ProtobufCMessageUnknownField *unknown,
                         const char *type)
{
    dv_str raw = {(const char *)unknown->data, unknown->len};
    struct dv_pb_text text = {.message = type};
    struct dv_pb_reader reader;
    dv_str replacement;
    struct dv_err err;
    uint64_t length;
    size_t n_length = 1;

    if (unknown->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return;
    dv_pb_reader_init(&reader, raw);
    if (!dv_pb_read_packed(&reader, DV_PB_VARINT, &length, &err))
        return; /* the decoder has read it before */
    text.value = (dv_str){reader.at, (size_t)(reader.end - reader.at)};
    if (!editing->edit(editing->ctx, &text, &replacement))
        return;
    for (size_t rest = replacement.n >> 7; rest > 0; rest >>= 7)
        n_length++;
    unknown->len = n_length + replacement.n;
    unknown->data = dv_arena_alloc(editing->arena, unknown->len, 1);
    for (size_t i = 0; i < n_length; i++)
        unknown->data[i] =
            (uint8_t)((replacement.n >> (7 * i) & 0x7f) | (i + 1 < n_length ? 0x80u : 0u));
    if (replacement.n > 0)
        memcpy(unknown->data + n_length, replacement.p, replacement.n);
}

static void edit_message(const struct editing *editing, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;

    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        uint32_t choice;

        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            memcpy(&choice, (const char *)message + field->quantifier_offset, sizeof(choice));
            if (choice != field->id)
                continue;
        }
        edit_field(editing, message, field);
    }
    for (unsigned i = 0; i < message->n_unknown_fields; i++)
        edit_unknown(editing, &message->unknown_fields[i], descriptor->name);
}

void dv_pb_edit(ProtobufCMessage *message,
                bool (*edit)(void *ctx, const struct dv_pb_text *text, dv_str *replacement),
                void *ctx, struct dv_arena *arena)
{
    const struct editing editing = {edit, ctx, arena};

    edit_message(&editing, message);
}
