#include "pb_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"
#include "pb/pb.h"

#define BASE64_BYTES_MAX (64u * 1024u * 1024u)

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

static const void *pointer_at(const void *at)
{
    const void *p;

    memcpy(&p, at, sizeof(p));
    return p;
}

static uint32_t u32_at(const void *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64_at(const void *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static json_t *base64(const ProtobufCBinaryData *data)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct dv_buf text;
    json_t *json;

    dv_buf_init(&text, BASE64_BYTES_MAX);
    for (size_t i = 0; i < data->len; i += 3) {
        size_t n = data->len - i < 3 ? data->len - i : 3;
        uint32_t bits = 0;

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? data->data[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            dv_buf_add_char(&text, k <= n ? letters[bits >> (18 - 6 * k) & 63] : '=');
    }
    json = json_string(dv_buf_c(&text));
    dv_buf_fini(&text);
    return json;
}

static json_t *enum_name(const ProtobufCEnumDescriptor *type, int32_t number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);

    return value ? json_string(value->name) : json_integer(number);
}

static json_t *number_text(uint64_t value, bool is_signed)
{
    char text[32];

    if (is_signed)
        (void)snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
    else
        (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return json_string(text);
}

static json_t *real(const ProtobufCFieldDescriptor *field, const void *at)
{
    float small;
    double large;

    memcpy(&small, at, sizeof(small));
    if (field->type == PROTOBUF_C_TYPE_FLOAT)
        return json_real((double)small);
    memcpy(&large, at, sizeof(large));
    return json_real(large);
}

static json_t *value_to_json(const ProtobufCFieldDescriptor *field, const void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer((int32_t)u32_at(at));
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(u32_at(at));
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return number_text(u64_at(at), true);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return number_text(u64_at(at), false);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return real(field, at);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(u32_at(at) != 0);
    case PROTOBUF_C_TYPE_ENUM:
        return enum_name(field->descriptor, (int32_t)u32_at(at));
    case PROTOBUF_C_TYPE_STRING:
        return json_string(pointer_at(at));
    case PROTOBUF_C_TYPE_BYTES:
        return base64(at);
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    }
    return pb_to_json(pointer_at(at));
}

static size_t element_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return sizeof(uint32_t);
}

static json_t *map_to_json(const ProtobufCMessage *const *entries, size_t n)
{
    json_t *object = json_object();

    for (size_t i = 0; i < n; i++) {
        const ProtobufCFieldDescriptor *fields = entries[i]->descriptor->fields;

        (void)json_object_set_new(object, pointer_at(member(entries[i], fields[0].offset)),
                                  value_to_json(&fields[1], member(entries[i], fields[1].offset)));
    }
    return object;
}

static json_t *list_to_json(const ProtobufCFieldDescriptor *field, const char *array, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list,
                                    value_to_json(field, array + i * element_bytes(field->type)));
    return list;
}

static bool is_single_present(const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field)
{
    const void *at = member(message, field->offset);
    const void *presence = member(message, field->quantifier_offset);
    const char zero[sizeof(ProtobufCBinaryData)] = {0};

    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0)
        return u32_at(presence) == field->id;
    if (field->quantifier_offset != 0)
        return u32_at(presence) != 0;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *s = pointer_at(at);

        return s && (field->label == PROTOBUF_C_LABEL_OPTIONAL || *s != '\0');
    }
    return memcmp(at, zero, element_bytes(field->type)) != 0;
}

json_t *pb_to_json(const ProtobufCMessage *message)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const void *at = member(message, field->offset);
        size_t n;
        json_t *value;

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, member(message, field->quantifier_offset), sizeof(n));
            if (n == 0)
                continue;
            value = field->type == PROTOBUF_C_TYPE_MESSAGE && dv_pb_is_map_entry(field->descriptor)
                        ? map_to_json(pointer_at(at), n)
                        : list_to_json(field, pointer_at(at), n);
        } else if (is_single_present(message, field)) {
            value = value_to_json(field, at);
        } else {
            continue;
        }
        (void)json_object_set_new(object, field->name, value);
    }
    return object;
}

static void free_text(char **text)
{
    free(*text);
}

static bool fail_different(const json_t *got, const json_t *want, struct dv_err *err)
{
    DV_CLEANUP(free_text) char *got_text = got ? json_dumps(got, JSON_ENCODE_ANY) : NULL;
    DV_CLEANUP(free_text) char *want_text = want ? json_dumps(want, JSON_ENCODE_ANY) : NULL;

    return dv_fail(err, DV_FAILED_PRECONDITION, "got %.60s, want %.60s",
                   got_text ? got_text : "nothing", want_text ? want_text : "nothing");
}

static bool compare_objects(json_t *got, json_t *want, struct dv_err *err)
{
    json_t *both[] = {got, want};

    for (size_t side = 0; side < DV_COUNT(both); side++) {
        void *at = json_object_iter(both[side]);

        for (; at; at = json_object_iter_next(both[side], at)) {
            const char *key = json_object_iter_key(at);

            if (!json_compare(json_object_get(got, key), json_object_get(want, key), err))
                return dv_wrap(err, "%s", key);
        }
    }
    return true;
}

bool json_compare(json_t *got, json_t *want, struct dv_err *err)
{
    if (got && want && json_equal(got, want))
        return true;
    if (json_is_object(got) && json_is_object(want))
        return compare_objects(got, want, err);
    if (!json_is_array(got) || !json_is_array(want) ||
        json_array_size(got) != json_array_size(want))
        return fail_different(got, want, err);
    for (size_t i = 0; i < json_array_size(got); i++)
        if (!json_compare(json_array_get(got, i), json_array_get(want, i), err))
            return dv_wrap(err, "[%zu]", i);
    return true;
}
