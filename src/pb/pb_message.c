/* Generated structs are filled by their descriptors, on our own reader. protobuf-c's unpack is not
 * used on bytes from outside: a message that comes in parts makes it copy what it has for each part
 * (400 kB of input took 40 GB and 12 s), and it refuses groups and unexpected wire types, which Go
 * skips. Encoding is protobuf-c's. */
#include "pb/pb.h"

#include <assert.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

/* No protobuf implementation takes more. */
#define MESSAGE_BYTES_MAX INT32_MAX

/* How a type looks on the wire. */
static const enum dv_pb_wire wires[] = {
    [PROTOBUF_C_TYPE_INT32] = DV_PB_VARINT,     [PROTOBUF_C_TYPE_SINT32] = DV_PB_VARINT,
    [PROTOBUF_C_TYPE_SFIXED32] = DV_PB_FIXED32, [PROTOBUF_C_TYPE_INT64] = DV_PB_VARINT,
    [PROTOBUF_C_TYPE_SINT64] = DV_PB_VARINT,    [PROTOBUF_C_TYPE_SFIXED64] = DV_PB_FIXED64,
    [PROTOBUF_C_TYPE_UINT32] = DV_PB_VARINT,    [PROTOBUF_C_TYPE_FIXED32] = DV_PB_FIXED32,
    [PROTOBUF_C_TYPE_UINT64] = DV_PB_VARINT,    [PROTOBUF_C_TYPE_FIXED64] = DV_PB_FIXED64,
    [PROTOBUF_C_TYPE_FLOAT] = DV_PB_FIXED32,    [PROTOBUF_C_TYPE_DOUBLE] = DV_PB_FIXED64,
    [PROTOBUF_C_TYPE_BOOL] = DV_PB_VARINT,      [PROTOBUF_C_TYPE_ENUM] = DV_PB_VARINT,
    [PROTOBUF_C_TYPE_STRING] = DV_PB_BYTES,     [PROTOBUF_C_TYPE_BYTES] = DV_PB_BYTES,
    [PROTOBUF_C_TYPE_MESSAGE] = DV_PB_BYTES,
};

/* What one value takes in its struct, or in the array of a repeated field. */
static const size_t value_bytes[] = {
    [PROTOBUF_C_TYPE_INT32] = sizeof(int32_t),
    [PROTOBUF_C_TYPE_SINT32] = sizeof(int32_t),
    [PROTOBUF_C_TYPE_SFIXED32] = sizeof(int32_t),
    [PROTOBUF_C_TYPE_INT64] = sizeof(int64_t),
    [PROTOBUF_C_TYPE_SINT64] = sizeof(int64_t),
    [PROTOBUF_C_TYPE_SFIXED64] = sizeof(int64_t),
    [PROTOBUF_C_TYPE_UINT32] = sizeof(uint32_t),
    [PROTOBUF_C_TYPE_FIXED32] = sizeof(uint32_t),
    [PROTOBUF_C_TYPE_UINT64] = sizeof(uint64_t),
    [PROTOBUF_C_TYPE_FIXED64] = sizeof(uint64_t),
    [PROTOBUF_C_TYPE_FLOAT] = sizeof(float),
    [PROTOBUF_C_TYPE_DOUBLE] = sizeof(double),
    [PROTOBUF_C_TYPE_BOOL] = sizeof(protobuf_c_boolean),
    [PROTOBUF_C_TYPE_ENUM] = sizeof(int32_t),
    [PROTOBUF_C_TYPE_STRING] = sizeof(char *),
    [PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
    [PROTOBUF_C_TYPE_MESSAGE] = sizeof(ProtobufCMessage *),
};

struct decoding {
    struct dv_arena *arena;
    bool has_maps; /* seen so far */
};

/* Members are read and written as bytes: their types are the generated ones, unknown here. */
static void *member(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

static void *pointer_at(const void *at)
{
    void *p;

    memcpy(&p, at, sizeof(p));
    return p;
}

static void set_pointer(void *at, const void *p)
{
    memcpy(at, &p, sizeof(p));
}

static ProtobufCMessage *new_message(const ProtobufCMessageDescriptor *type, struct dv_arena *arena)
{
    ProtobufCMessage *message = dv_arena_alloc(arena, type->sizeof_message, _Alignof(uint64_t));

    protobuf_c_message_init(type, message);
    return message;
}

/* Room for one more after n elements. An array is full when n is a power of two, so it needs no
 * field for its size, and grows without limit at a price that is linear in the end. */
static void *grow(void *array, size_t n, size_t element_bytes, struct dv_arena *arena)
{
    void *grown;

    if ((n & (n - 1)) != 0)
        return array;
    grown = dv_arena_alloc_array(arena, n ? 2 * n : 1, element_bytes, _Alignof(uint64_t));
    if (n > 0)
        memcpy(grown, array, n * element_bytes);
    return grown;
}

static void store_number(ProtobufCType type, uint64_t value, void *at)
{
    uint32_t low = (uint32_t)value; /* what is beyond the type is cut off, as everywhere */
    protobuf_c_boolean truth = value != 0;

    if (type == PROTOBUF_C_TYPE_SINT64) /* 0, -1, 1, -2, ... */
        value = value >> 1 ^ (0 - (value & 1));
    else if (type == PROTOBUF_C_TYPE_SINT32)
        low = low >> 1 ^ (0 - (low & 1));

    if (type == PROTOBUF_C_TYPE_BOOL)
        memcpy(at, &truth, sizeof(truth));
    else if (value_bytes[type] == sizeof(low))
        memcpy(at, &low, sizeof(low));
    else
        memcpy(at, &value, sizeof(value));
}

static bool store_string(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                         void *at, struct dv_arena *arena, struct dv_err *err)
{
    dv_str s;

    if (!dv_pb_get_string(reader, field, &s, err))
        return false;
    if (memchr(s.p, '\0', s.n))
        return dv_fail(err, DV_INVALID_ARGUMENT, "byte %zu: a string with a zero byte",
                       (size_t)(s.p - reader->start));
    set_pointer(at, dv_str_to_c(s, arena));
    return true;
}

static void store_bytes(dv_str s, void *at, struct dv_arena *arena)
{
    ProtobufCBinaryData data = {.len = s.n};

    if (s.n > 0) {
        data.data = dv_arena_alloc(arena, s.n, 1);
        memcpy(data.data, s.p, s.n);
    }
    memcpy(at, &data, sizeof(data));
}

static bool decode_fields(struct dv_pb_reader *reader, ProtobufCMessage *message,
                          struct decoding *decoding, struct dv_err *err);

/* Into the message that is there, so that parts are merged. */
static bool store_message(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                          const ProtobufCMessageDescriptor *type, void *at,
                          struct decoding *decoding, struct dv_err *err)
{
    ProtobufCMessage *message = pointer_at(at);
    struct dv_pb_reader inner;

    if (!dv_pb_enter(reader, field, &inner, err))
        return false;
    if (!message) {
        message = new_message(type, decoding->arena);
        set_pointer(at, message);
    }
    return decode_fields(&inner, message, decoding, err);
}

static bool store_value(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                        const ProtobufCFieldDescriptor *to, void *at, struct decoding *decoding,
                        struct dv_err *err)
{
    if (to->type == PROTOBUF_C_TYPE_MESSAGE)
        return store_message(reader, field, to->descriptor, at, decoding, err);
    if (to->type == PROTOBUF_C_TYPE_STRING)
        return store_string(reader, field, at, decoding->arena, err);
    if (to->type == PROTOBUF_C_TYPE_BYTES)
        store_bytes(field->bytes, at, decoding->arena);
    else
        store_number(to->type, field->value, at);
    return true;
}

static bool store_single(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                         const ProtobufCFieldDescriptor *to, ProtobufCMessage *message,
                         struct decoding *decoding, struct dv_err *err)
{
    void *at = member(message, to->offset);
    void *presence = member(message, to->quantifier_offset);
    bool is_in_oneof = (to->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    const protobuf_c_boolean is_present = 1;
    uint32_t present_number;

    if (is_in_oneof) { /* another member of it may be there: the last one counts */
        memcpy(&present_number, presence, sizeof(present_number));
        if (present_number != to->id)
            memset(at, 0, value_bytes[to->type]);
    }
    if (!store_value(reader, field, to, at, decoding, err))
        return false;
    if (is_in_oneof)
        memcpy(presence, &to->id, sizeof(to->id));
    else if (to->quantifier_offset != 0)
        memcpy(presence, &is_present, sizeof(is_present));
    return true;
}

/* The next element of a repeated field, zeroed; it counts already. */
static void *add_element(ProtobufCMessage *message, const ProtobufCFieldDescriptor *to,
                         struct dv_arena *arena)
{
    size_t bytes = value_bytes[to->type];
    size_t *n = member(message, to->quantifier_offset);
    void *at = member(message, to->offset);
    char *array = grow(pointer_at(at), *n, bytes, arena);

    set_pointer(at, array);
    return array + bytes * (*n)++;
}

static bool store_packed(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                         const ProtobufCFieldDescriptor *to, ProtobufCMessage *message,
                         struct dv_arena *arena, struct dv_err *err)
{
    struct dv_pb_reader inner;
    uint64_t value;

    if (!dv_pb_enter(reader, field, &inner, err))
        return false;
    while (!dv_pb_is_at_end(&inner)) {
        if (!dv_pb_read_packed(&inner, wires[to->type], &value, err))
            return false;
        store_number(to->type, value, add_element(message, to, arena));
    }
    return true;
}

/* Kept for the encoder to write again. `raw` is the field from its tag to its end. */
static void store_unknown(uint32_t tag, dv_str raw, ProtobufCMessage *message,
                          struct dv_arena *arena)
{
    ProtobufCMessageUnknownField *unknown;
    size_t n_tag = 1;

    while (raw.p[n_tag - 1] & 0x80)
        n_tag++;
    message->unknown_fields =
        grow(message->unknown_fields, message->n_unknown_fields, sizeof(*unknown), arena);
    unknown = &message->unknown_fields[message->n_unknown_fields++];
    *unknown = (ProtobufCMessageUnknownField){
        .tag = tag >> 3,
        .wire_type = (ProtobufCWireType)(tag & 7),
        .len = raw.n - n_tag,
        .data = dv_arena_alloc(arena, raw.n - n_tag, 1),
    };
    memcpy(unknown->data, raw.p + n_tag, unknown->len);
}

/* NULL: unknown, by number or by wire type. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
                                                  uint32_t tag)
{
    const ProtobufCFieldDescriptor *to = protobuf_c_message_descriptor_get_field(type, tag >> 3);

    if (!to || wires[to->type] == (tag & 7))
        return to;
    return to->label == PROTOBUF_C_LABEL_REPEATED && (tag & 7) == DV_PB_BYTES ? to : NULL;
}

static bool store_field(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                        const ProtobufCFieldDescriptor *to, ProtobufCMessage *message,
                        struct decoding *decoding, struct dv_err *err)
{
    if (to->label != PROTOBUF_C_LABEL_REPEATED)
        return store_single(reader, field, to, message, decoding, err);
    if (wires[to->type] != (field->tag & 7))
        return store_packed(reader, field, to, message, decoding->arena, err);
    return store_value(reader, field, to, add_element(message, to, decoding->arena), decoding, err);
}

/* Gives an entry of a map what the sender left out. Unknown fields go: no map could hold them. */
static void complete_entry(ProtobufCMessage *entry, struct dv_arena *arena)
{
    entry->n_unknown_fields = 0;
    for (unsigned i = 0; i < entry->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &entry->descriptor->fields[i];
        void *presence = member(entry, field->quantifier_offset);
        void *at = member(entry, field->offset);
        uint32_t present_number;

        memcpy(&present_number, presence, sizeof(present_number));
        if (present_number != 0)
            continue;
        memcpy(presence, &field->id, sizeof(field->id));
        if (field->type == PROTOBUF_C_TYPE_STRING)
            set_pointer(at, "");
        else if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            set_pointer(at, new_message(field->descriptor, arena));
    }
}

static bool decode_fields(struct dv_pb_reader *reader, ProtobufCMessage *message,
                          struct decoding *decoding, struct dv_err *err)
{
    while (!dv_pb_is_at_end(reader)) {
        const char *from = reader->at;
        const ProtobufCFieldDescriptor *to;
        struct dv_pb_field field;

        if (!dv_pb_read(reader, &field, err))
            return false;
        to = find_field(message->descriptor, field.tag);
        if (!to)
            store_unknown(field.tag, (dv_str){from, (size_t)(reader->at - from)}, message,
                          decoding->arena);
        else if (!store_field(reader, &field, to, message, decoding, err))
            return dv_wrap(err, "%s", to->name);
    }
    if (dv_pb_is_map_entry(message->descriptor)) {
        complete_entry(message, decoding->arena);
        decoding->has_maps = true;
    }
    return true;
}

/* Keeps of several entries with one key the last. */
static void keep_last_entries(ProtobufCMessage **entries, size_t *n_entries)
{
    struct dv_map by_key;
    size_t n_kept = 0;

    dv_map_init(&by_key);
    for (size_t i = 0; i < *n_entries; i++) {
        const char *key = pointer_at(member(entries[i], entries[i]->descriptor->fields[0].offset));
        ProtobufCMessage **earlier = dv_map_set(&by_key, dv_str_from_c(key), &entries[i]);

        if (earlier)
            *earlier = NULL;
    }
    for (size_t i = 0; i < *n_entries; i++)
        if (entries[i])
            entries[n_kept++] = entries[i];
    *n_entries = n_kept;
    dv_map_fini(&by_key);
}

/* Once, over the whole message: after each of its parts it could take quadratic time. */
static void settle_maps(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        ProtobufCMessage *single = NULL;
        ProtobufCMessage **list = &single;
        size_t one = 1;
        size_t *n = &one;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            list = pointer_at(member(message, field->offset));
            n = member(message, field->quantifier_offset);
            if (*n > 1 && dv_pb_is_map_entry(field->descriptor))
                keep_last_entries(list, n);
        } else {
            single = pointer_at(member(message, field->offset));
        }
        for (size_t k = 0; k < *n; k++)
            if (list[k])
                settle_maps(list[k]);
    }
}

void *dv_pb_decode(const ProtobufCMessageDescriptor *type, dv_str bytes, struct dv_arena *arena,
                   struct dv_err *err)
{
    struct decoding decoding = {.arena = arena};
    ProtobufCMessage *message = new_message(type, arena);
    struct dv_pb_reader reader;

    if (bytes.n > MESSAGE_BYTES_MAX) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "%s: %zu bytes, more than a message can have",
                      type->name, bytes.n);
        return NULL;
    }
    dv_pb_reader_init(&reader, bytes);
    if (!decode_fields(&reader, message, &decoding, err)) {
        (void)dv_wrap(err, "%s", type->name);
        return NULL;
    }
    if (decoding.has_maps)
        settle_maps(message);
    return message;
}

size_t dv_pb_size(const ProtobufCMessage *message)
{
    return protobuf_c_message_get_packed_size(message);
}

void dv_pb_encode(const ProtobufCMessage *message, char *out, size_t size)
{
    size_t written = protobuf_c_message_pack(message, (uint8_t *)out);

    assert(written == size);
}

bool dv_pb_is_map_entry(const ProtobufCMessageDescriptor *type)
{
    return type->n_fields == 2 &&
           dv_str_ends_with(dv_str_from_c(type->short_name), DV_STR("Entry")) &&
           strcmp(type->fields[0].name, "key") == 0 && type->fields[0].id == 1 &&
           type->fields[0].type == PROTOBUF_C_TYPE_STRING &&
           strcmp(type->fields[1].name, "value") == 0 && type->fields[1].id == 2;
}

void *dv_pb_entry_new(const ProtobufCMessageDescriptor *type, const char *key, const void *value,
                      struct dv_arena *arena)
{
    const void *values[] = {key, value};
    ProtobufCMessage *entry = new_message(type, arena);

    assert(dv_pb_is_map_entry(type));
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];

        assert(value_bytes[field->type] == sizeof(void *) && wires[field->type] == DV_PB_BYTES);
        set_pointer(member(entry, field->offset), values[i]);
        memcpy(member(entry, field->quantifier_offset), &field->id, sizeof(field->id));
    }
    return entry;
}
