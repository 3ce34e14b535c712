/* decode_pb.c - protobuf into a struct, by its field table.
 *
 * Fields may come in any order, messages in parts that are merged, scalars several times: the last
 * one counts. Each message is read twice: first to count the items of its lists, which then get
 * their memory at once. */
#include "resource/resource.h"

#include <assert.h>

#include "base/err.h"
#include "pb/pb.h"
#include "resource/codec/decode_pb.h"
#include "resource/codec/layout.h"
#include "resource/codec/object_row.h"

/* The numbers of lists are below this: dv_message has a bit for each. */
#define LIST_NUMBERS 64u

static bool decode_message(struct dv_pb_decoder *d, const struct dv_message *message,
                           struct dv_pb_reader reader, char *value);

/* -- Values --------------------------------------------------------------------------------- */

static enum dv_pb_wire wire_of(const struct dv_field *field)
{
    return field->type == DV_TYPE_BOOL || field->type == DV_TYPE_INT32 ||
                   field->type == DV_TYPE_INT64
               ? DV_PB_VARINT
               : DV_PB_BYTES;
}

static void decode_number(const struct dv_field *field, uint64_t number, void *at)
{
    if (field->type == DV_TYPE_BOOL)
        *(bool *)at = number != 0;
    else if (field->type == DV_TYPE_INT32)
        *(int64_t *)at = (int32_t)(uint32_t)number;
    else
        *(int64_t *)at = (int64_t)number;
}

/* Decodes one value of the field's own wire type. A message is merged into the one that is
 * there. */
static bool decode_value(struct dv_pb_decoder *d, const struct dv_field *field,
                         const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                         void *at)
{
    struct dv_pb_reader inner;

    if (wire_of(field) == DV_PB_VARINT) {
        decode_number(field, part->value, at);
        return true;
    }
    if (field->type == DV_TYPE_STRING)
        return dv_pb_decode_string(d, reader, part, at);
    if (field->type == DV_TYPE_BYTES) {
        *(dv_str *)at = (dv_str){part->bytes.n > 0 ? part->bytes.p : "", part->bytes.n};
        d->taken.texts += part->bytes.n;
        return true;
    }
    if (!dv_pb_enter(reader, part, &inner, d->err))
        return false;
    switch ((enum dv_type)field->type) {
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return dv_pb_decode_time(d, inner, field->type == DV_TYPE_MICROTIME, at);
    case DV_TYPE_QUANTITY:
        return dv_pb_decode_quantity(d, inner, at);
    case DV_TYPE_RAW:
        return dv_pb_decode_raw(d, inner, at);
    case DV_TYPE_INT_OR_STR:
        return dv_pb_decode_int_or_str(d, inner, at);
    case DV_TYPE_STRINGS:
        return dv_pb_decode_strs(d, inner, at);
    case DV_TYPE_STRING:
    case DV_TYPE_BOOL:
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
    case DV_TYPE_BYTES:
    case DV_TYPE_MESSAGE:
        break;
    }
    return decode_message(d, field->message, inner, at);
}

/* -- Lists and maps ------------------------------------------------------------------------- */

static size_t *count_of(const struct dv_field *field, char *home)
{
    return (size_t *)(void *)(home + field->n_offset);
}

static char *next_item(const struct dv_field *field, char *home)
{
    struct dv_items items = dv_field_items(field, home);

    (*count_of(field, home))++;
    return items.first + items.n * items.size;
}

static bool decode_packed(struct dv_pb_decoder *d, const struct dv_field *field,
                          const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                          char *home)
{
    struct dv_pb_reader inner;
    uint64_t number;

    if (!dv_pb_enter(reader, part, &inner, d->err))
        return false;
    while (!dv_pb_is_at_end(&inner)) {
        if (!dv_pb_read_packed(&inner, DV_PB_VARINT, &number, d->err))
            return false;
        decode_number(field, number, next_item(field, home));
    }
    return true;
}

static bool decode_entry(struct dv_pb_decoder *d, const struct dv_field *field,
                         const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                         char *entry)
{
    size_t value_offset;
    struct dv_pb_reader inner;
    struct dv_pb_field side;

    (void)dv_entry_size(field, &value_offset);
    if (!dv_pb_enter(reader, part, &inner, d->err))
        return false;
    while (!dv_pb_is_at_end(&inner)) {
        if (!dv_pb_read(&inner, &side, d->err))
            return false;
        if (side.tag == DV_PB_TAG(1, DV_PB_BYTES)) {
            if (!dv_pb_decode_string(d, &inner, &side, (dv_str *)(void *)entry))
                return false;
        } else if (side.tag == DV_PB_TAG(2, wire_of(field))) {
            if (!decode_value(d, field, &inner, &side, entry + value_offset))
                return false;
        }
    }
    return true;
}

/* -- Messages ------------------------------------------------------------------------------- */

/* The field that a part belongs to; NULL when it is unknown, or has another wire type. */
static const struct dv_field *field_of(const struct dv_message *message,
                                       const struct dv_pb_field *part, bool *is_packed)
{
    const struct dv_field *field = dv_message_field_numbered(message, part->tag >> 3);
    enum dv_pb_wire wire = (enum dv_pb_wire)(part->tag & 7);

    if (!field)
        return NULL;
    *is_packed =
        field->shape == DV_SHAPE_LIST && wire_of(field) == DV_PB_VARINT && wire == DV_PB_BYTES;
    if (*is_packed)
        return field;
    return wire == (field->shape == DV_SHAPE_MAP ? DV_PB_BYTES : wire_of(field)) ? field : NULL;
}

/* Counts the numbers in a packed list: each byte without the continuation bit ends one. */
static size_t count_packed(dv_str bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes.n; i++)
        n += ((unsigned char)bytes.p[i] & 0x80) == 0;
    return n;
}

/* The struct that has the field's member; it is made when it is not there yet. */
static char *home_of(struct dv_pb_decoder *d, const struct dv_field *field, char *value)
{
    char *home;

    if (!field->into)
        return value;
    home = dv_load_pointer(value + field->into->offset);
    if (!home) {
        home = dv_pb_take(d, 1, field->into->size);
        dv_store_pointer(value + field->into->offset, home);
    }
    return home;
}

/* Makes room for the items of one list, behind those that an earlier part of the message had. */
static bool reserve(struct dv_pb_decoder *d, const struct dv_field *field, size_t n, char *value)
{
    char *home = home_of(d, field, value);
    struct dv_items items;
    char *grown;

    if (!home)
        return false;
    items = dv_field_items(field, home);
    grown = dv_pb_take(d, items.n + n, items.size);
    if (!grown)
        return false;
    if (items.n > 0)
        memcpy(grown, items.first, items.n * items.size);
    dv_store_pointer(home + field->offset, grown);
    return true;
}

/* Makes room for all lists of a message: it is read once before, only to count. */
static bool reserve_lists(struct dv_pb_decoder *d, const struct dv_message *message,
                          struct dv_pb_reader reader, char *value)
{
    uint32_t counts[LIST_NUMBERS];
    uint64_t counted = 0; /* a bit for each number that has a count */

    while (!dv_pb_is_at_end(&reader)) {
        struct dv_pb_field part;
        uint32_t number;
        bool is_packed;

        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        number = part.tag >> 3;
        if (number >= LIST_NUMBERS || !(message->lists >> number & 1) ||
            !field_of(message, &part, &is_packed))
            continue;
        if (!(counted >> number & 1))
            counts[number] = 0;
        counted |= UINT64_C(1) << number;
        counts[number] += is_packed ? (uint32_t)count_packed(part.bytes) : 1;
    }
    for (uint32_t number = 0; number < LIST_NUMBERS && counted >> number; number++)
        if ((counted >> number & 1) &&
            !reserve(d, dv_message_field_numbered(message, number), counts[number], value))
            return false;
    return true;
}

static bool decode_pointer(struct dv_pb_decoder *d, const struct dv_field *field,
                           const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                           char *home)
{
    char *at = home + field->offset;
    void *value = at;

    if (!dv_is_own_pointer(field)) {
        value = dv_load_pointer(at);
        if (!value)
            value = dv_pb_take(d, 1, dv_value_size(field));
        if (!value)
            return false;
    }
    if (!decode_value(d, field, reader, part, value))
        return false;
    if ((field->flags & DV_FIELD_PLAIN) && dv_value_is_zero(field, value)) {
        if (field->type == DV_TYPE_STRING)
            *(dv_str *)value = DV_STR_NONE;
        else
            dv_store_pointer(at, NULL);
    } else if (!dv_is_own_pointer(field)) {
        dv_store_pointer(at, value);
    }
    return true;
}

static bool decode_in_home(struct dv_pb_decoder *d, const struct dv_field *field,
                           const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                           bool is_packed, char *home)
{
    struct dv_pb_reader inner;

    switch ((enum dv_shape)field->shape) {
    case DV_SHAPE_LIST:
        return is_packed ? decode_packed(d, field, reader, part, home)
                         : decode_value(d, field, reader, part, next_item(field, home));
    case DV_SHAPE_MAP:
        return decode_entry(d, field, reader, part, next_item(field, home));
    case DV_SHAPE_POINTER:
        return decode_pointer(d, field, reader, part, home);
    case DV_SHAPE_VIEW:
        return dv_pb_enter(reader, part, &inner, d->err) &&
               decode_message(d, field->message, inner, home);
    case DV_SHAPE_ONE:
    case DV_SHAPE_INLINE:
        break;
    }
    return decode_value(d, field, reader, part, home + field->offset);
}

/* Decodes into the struct behind a pointer, which is made when the first of its fields is not
 * empty. */
static bool decode_field(struct dv_pb_decoder *d, const struct dv_field *field,
                         const struct dv_pb_reader *reader, const struct dv_pb_field *part,
                         bool is_packed, char *value)
{
    char *made;

    if (!field->into)
        return decode_in_home(d, field, reader, part, is_packed, value) ||
               dv_wrap(d->err, "%.*s", DV_FMT(field->name));
    made = dv_load_pointer(value + field->into->offset);
    if (!made)
        made = dv_pb_take(d, 1, field->into->size);
    if (!made)
        return false;
    if (!decode_in_home(d, field, reader, part, is_packed, made))
        return dv_wrap(d->err, "%.*s", DV_FMT(field->name));
    if (dv_field_is_set(field, made))
        dv_store_pointer(value + field->into->offset, made);
    return true;
}

/* Drops a struct behind a pointer whose fields are all empty in the end: a scalar may come twice,
 * the second time empty. */
static void drop_empty_home(const struct dv_message *message, char *value)
{
    const struct dv_field_into *into = NULL;

    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];
        const char *home = dv_field_home(field, value);

        if (!field->into)
            continue;
        if (!home || dv_field_is_set(field, home))
            return;
        into = field->into;
    }
    if (into)
        dv_store_pointer(value + into->offset, NULL);
}

static void sort_maps(struct dv_pb_decoder *d, const struct dv_message *message, char *value)
{
    for (size_t i = 0; i < message->n_fields; i++) {
        const struct dv_field *field = &message->fields[i];

        if (field->shape != DV_SHAPE_MAP)
            continue;
        assert(!field->into);
        *count_of(field, value) = dv_sort_entries(dv_field_items(field, value), d->arena);
    }
}

static bool keep_unknown(struct dv_pb_decoder *d, const struct dv_message *message, dv_str text,
                         char *value)
{
    dv_str *unknown = dv_pb_take(d, 1, sizeof(*unknown));

    if (!unknown)
        return false;
    *unknown = text;
    d->taken.texts += text.n;
    dv_store_pointer(value + message->unknown_offset, unknown);
    return true;
}

static bool decode_message(struct dv_pb_decoder *d, const struct dv_message *message,
                           struct dv_pb_reader reader, char *value)
{
    if (message->lists && !reserve_lists(d, message, reader, value))
        return false;
    while (!dv_pb_is_at_end(&reader)) {
        struct dv_pb_field part;
        const struct dv_field *field;
        bool is_packed = false;

        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        field = field_of(message, &part, &is_packed);
        if (field && !decode_field(d, field, &reader, &part, is_packed, value))
            return false;
        if (d->row_of && part.tag == DV_PB_TAG(DV_ROW_UNKNOWN, DV_PB_BYTES) &&
            !keep_unknown(d, message, part.bytes, value))
            return false;
    }
    if (message->has_maps)
        sort_maps(d, message, value);
    if (message->has_into)
        drop_empty_home(message, value);
    return true;
}

bool dv_pb_decode_row(const struct dv_kind *kind, dv_str bytes, struct dv_arena *arena, void *value,
                      struct dv_copy_size *size, size_t *made_texts, struct dv_err *err)
{
    const struct dv_message *message = kind->versions[0].message;
    struct dv_pb_decoder d = {.bytes_left = DV_DECODE_BYTES_MAX,
                              .row_of = kind,
                              .taken.mode = DV_COPY_STORED,
                              .arena = arena,
                              .err = err};
    struct dv_pb_reader reader;

    dv_pb_reader_init(&reader, bytes);
    if (!decode_message(&d, message, reader, value))
        return dv_wrap(err, "%.*s in a row", DV_FMT(message->name));
    *size = d.taken;
    *made_texts = d.made_texts;
    return true;
}

bool dv_decode_pb(const struct dv_message *message, dv_str bytes, struct dv_arena *arena,
                  void *value, struct dv_err *err)
{
    struct dv_pb_decoder d = {.bytes_left = DV_DECODE_BYTES_MAX, .arena = arena, .err = err};
    struct dv_pb_reader reader;

    dv_pb_reader_init(&reader, bytes);
    return decode_message(&d, message, reader, value) ||
           dv_wrap(err, "%.*s in protobuf", DV_FMT(message->name));
}
