/* pb_read.c - reading protobuf field by field: packed lists, fields of any type, and texts. */
#include "pb/pb.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

/* Ends a group; never seen by a caller. */
#define END_GROUP 4u

/* The tenth byte of a varint holds the last of 64 bits. */
#define LAST_SHIFT 63u

static bool fail_at(const struct dv_pb_reader *reader, const char *at, const char *what,
                    struct dv_err *err)
{
    (void)dv_fail(err, DV_INVALID_ARGUMENT, "byte %zu: %s", (size_t)(at - reader->start), what);
    return false; /* in sight of the analyzers, for all that follows a failure here */
}

static bool read_varint(struct dv_pb_reader *reader, uint64_t *value, struct dv_err *err)
{
    const char *p = reader->at;
    uint64_t sum = 0;

    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte;

        if (p == reader->end)
            return fail_at(reader, reader->at, "a number is cut off", err);
        byte = (unsigned char)*p++;
        if (shift == LAST_SHIFT && byte > 1)
            return fail_at(reader, reader->at, "a number of more than 64 bits", err);
        sum |= (byte & 0x7f) << shift;
        if (byte <= 0x7f)
            break;
    }
    reader->at = p;
    *value = sum;
    return true;
}

static bool read_tag(struct dv_pb_reader *reader, uint32_t *tag, struct dv_err *err)
{
    const char *from = reader->at;
    uint64_t value;

    if (!read_varint(reader, &value, err))
        return false;
    if (value >> 3 == 0 || value >> 3 > DV_PB_NUMBER_MAX)
        return fail_at(reader, from, "a field number out of range", err);
    *tag = (uint32_t)value;
    return true;
}

static bool read_bytes(struct dv_pb_reader *reader, dv_str *bytes, struct dv_err *err)
{
    const char *from = reader->at;
    uint64_t n;

    if (!read_varint(reader, &n, err))
        return false;
    if (n > (size_t)(reader->end - reader->at))
        return fail_at(reader, from, "a field is longer than what contains it", err);
    *bytes = (dv_str){reader->at, (size_t)n};
    reader->at += n;
    return true;
}

static bool read_fixed(struct dv_pb_reader *reader, unsigned n_bytes, uint64_t *value,
                       struct dv_err *err)
{
    uint64_t sum = 0;

    if (n_bytes > (size_t)(reader->end - reader->at))
        return fail_at(reader, reader->at, "a fixed-size number is cut off", err);
    for (unsigned i = 0; i < n_bytes; i++)
        sum |= (uint64_t)(unsigned char)reader->at[i] << (8 * i);
    reader->at += n_bytes;
    *value = sum;
    return true;
}

/* What follows a tag that is not a group's. */
static bool read_value(struct dv_pb_reader *reader, uint32_t tag, struct dv_pb_field *field,
                       struct dv_err *err)
{
    *field = (struct dv_pb_field){.tag = tag};
    switch (tag & 7) {
    case DV_PB_VARINT:
        return read_varint(reader, &field->value, err);
    case DV_PB_FIXED64:
        return read_fixed(reader, 8, &field->value, err);
    case DV_PB_BYTES:
        return read_bytes(reader, &field->bytes, err);
    case DV_PB_FIXED32:
        return read_fixed(reader, 4, &field->value, err);
    case END_GROUP:
        return fail_at(reader, reader->at, "the end of a group that did not begin", err);
    default:
        return fail_at(reader, reader->at, "a wire type that does not exist", err);
    }
}

/* Skips to the end of the group `tag`, whose own tag has been read, and of those within it. */
static bool read_group(struct dv_pb_reader *reader, uint32_t tag, dv_str *body, struct dv_err *err)
{
    const char *from = reader->at;
    const char *before;
    uint32_t open[DV_PB_DEPTH_MAX];
    unsigned n_open = 0;
    struct dv_pb_field skipped;

    open[n_open++] = tag >> 3;
    do {
        before = reader->at;
        if (dv_pb_is_at_end(reader))
            return fail_at(reader, before, "a group is cut off", err);
        if (!read_tag(reader, &tag, err))
            return false;
        if ((tag & 7) == DV_PB_GROUP) {
            if (reader->depth + n_open + 1 >= DV_PB_DEPTH_MAX)
                return fail_at(reader, before, "nested too deep", err);
            open[n_open++] = tag >> 3;
        } else if ((tag & 7) == END_GROUP) {
            if (open[--n_open] != tag >> 3)
                return fail_at(reader, before, "the end of another group", err);
        } else if (!read_value(reader, tag, &skipped, err)) {
            return false;
        }
    } while (n_open > 0);
    *body = (dv_str){from, (size_t)(before - from)};
    return true;
}

bool dv_pb_read_packed(struct dv_pb_reader *reader, enum dv_pb_wire wire, uint64_t *value,
                       struct dv_err *err)
{
    if (wire == DV_PB_FIXED32)
        return read_fixed(reader, 4, value, err);
    if (wire == DV_PB_FIXED64)
        return read_fixed(reader, 8, value, err);
    assert(wire == DV_PB_VARINT);
    return read_varint(reader, value, err);
}

bool dv_pb_read_any(struct dv_pb_reader *reader, struct dv_pb_field *field, struct dv_err *err)
{
    uint32_t tag;

    if (!read_tag(reader, &tag, err))
        return false;
    if ((tag & 7) != DV_PB_GROUP)
        return read_value(reader, tag, field, err);
    if (reader->depth + 1 >= DV_PB_DEPTH_MAX)
        return fail_at(reader, reader->at, "nested too deep", err);
    *field = (struct dv_pb_field){.tag = tag};
    return read_group(reader, tag, &field->bytes, err);
}

/* Names are nearly always ASCII and short: whole words, the last two of which may overlap. */
static bool is_ascii(dv_str s)
{
    uint64_t bits = 0;
    uint64_t word;
    uint32_t half, last_half;

    if (s.n >= sizeof(word)) {
        for (size_t i = 0; i + sizeof(word) < s.n; i += sizeof(word)) {
            memcpy(&word, s.p + i, sizeof(word));
            bits |= word;
        }
        memcpy(&word, s.p + s.n - sizeof(word), sizeof(word));
        bits |= word;
    } else if (s.n >= sizeof(half)) {
        memcpy(&half, s.p, sizeof(half));
        memcpy(&last_half, s.p + s.n - sizeof(half), sizeof(half));
        bits = half | last_half;
    } else {
        for (size_t i = 0; i < s.n; i++)
            bits |= (unsigned char)s.p[i];
    }
    return (bits & UINT64_C(0x8080808080808080)) == 0;
}

bool dv_pb_get_string(const struct dv_pb_reader *reader, const struct dv_pb_field *field, dv_str *s,
                      struct dv_err *err)
{
    if (!is_ascii(field->bytes) && !dv_str_is_utf8(field->bytes))
        return fail_at(reader, field->bytes.p, "a string that is not UTF-8", err);
    *s = field->bytes;
    return true;
}

void dv_pb_fail_depth(const struct dv_pb_reader *reader, const char *at, struct dv_err *err)
{
    (void)fail_at(reader, at, "nested too deep", err);
}
