/* pb.h - protobuf: messages as the structs generated from proto/, and bytes field by field.
 *
 * dv_pb_decode and dv_pb_encode handle a whole message of a generated type. A dv_pb_reader goes
 * through received bytes field by field and leaves strings where they are: for long lists, and for
 * what has no generated type. dv_pb_add_* write field by field.
 *
 * What Go's protobuf accepts is accepted: unknown fields of every wire type, known ones with
 * another wire type (they count as unknown), tags and lengths in more bytes than they need. What it
 * refuses is refused, and so is what nests deeper than DV_PB_DEPTH_MAX: DV_INVALID_ARGUMENT, with
 * the byte where it is. */
#ifndef DV_PB_H
#define DV_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct dv_arena;
struct dv_buf;
struct dv_err;

/* How deep messages and groups may nest: the limit of the C++ and Java decoders. The deepest of our
 * own messages is 7. */
#define DV_PB_DEPTH_MAX 100u

/* --- Whole messages ---
 *
 * Decoding takes at most 128 bytes of the arena for each byte of input, and 4096 once. The worst is
 * a list of empty messages, two bytes each: their structs have about 100, the list 32.
 *
 * In C a field that is `optional` in a proto3 file has has_<name>_case, which is not 0 when the
 * field is present; set it too when you set the field. */

/* The message in `bytes` as the struct of `type`, in `arena`; keeps nothing of `bytes`. A map has
 * each key once, from the last of its entries, and every entry has a key and a value. A string with
 * a zero byte is refused, although it is valid UTF-8: a C string would end there unnoticed. */
void *dv_pb_decode(const struct ProtobufCMessageDescriptor *type, dv_str bytes,
                   struct dv_arena *arena, struct dv_err *err);

/* Bytes that dv_pb_encode will write. */
size_t dv_pb_size(const struct ProtobufCMessage *message);
/* Writes the message into `out`, in the order of field numbers; `size` is its dv_pb_size. */
void dv_pb_encode(const struct ProtobufCMessage *message, char *out, size_t size);

/* The message as JSON on one line, with the names of the .proto: fields that are zero or empty too,
 * messages and optional fields where they are present. Numbers are numbers, bytes are base64. */
void dv_pb_print_json(const struct ProtobufCMessage *message, struct dv_buf *buf);

/* The message as JSON, but only what was sent: no fields that are zero or empty, maps as objects,
 * and what the .proto does not have as "[unknown]": [{"field": 7, "varint": 5}, ...]. */
void dv_pb_print_sent(const struct ProtobufCMessage *message, struct dv_buf *buf);

/* A text or bytes in a message that was decoded, for dv_pb_edit. */
struct dv_pb_text {
    const char *message; /* the name of the type that it is in: "v1.Claim", "v1.Claim.EnvsEntry" */
    const char *field;   /* its name; NULL: the type has none with this number */
    dv_str value;
};
/* Gives each text and bytes in the message to `edit`; where that returns true, `*replacement` takes
 * its place, and has to live as long as the message. Keys of maps are edited too, as "key". */
void dv_pb_edit(struct ProtobufCMessage *message,
                bool (*edit)(void *ctx, const struct dv_pb_text *text, dv_str *replacement),
                void *ctx, struct dv_arena *arena);

/* Whether this is the type of the entries of a map: `repeated XEntry x` with `key` and `value`. */
bool dv_pb_is_map_entry(const struct ProtobufCMessageDescriptor *type);
/* A new entry for a map; `value` is a C string or a message, as `type` says. Keeps both, which are
 * not NULL. */
void *dv_pb_entry_new(const struct ProtobufCMessageDescriptor *type, const char *key,
                      const void *value, struct dv_arena *arena);

/* --- Reading in place ---
 *
 *     dv_pb_reader_init(&reader, bytes);
 *     while (!dv_pb_is_at_end(&reader)) {
 *         if (!dv_pb_read(&reader, &field, err))
 *             return false;
 *         switch (field.tag) {
 *         case DV_PB_TAG(1, DV_PB_BYTES):
 *             if (!dv_pb_get_string(&reader, &field, &device->id, err))
 *                 return dv_wrap(err, "device id");
 *             break;
 *         case DV_PB_TAG(3, DV_PB_BYTES):
 *             if (!dv_pb_enter(&reader, &field, &topology, err) ||
 *                 !read_topology(&topology, device, err))
 *                 return dv_wrap(err, "topology");
 *             break;
 *         default: an unknown field, already skipped
 *             break;
 *         }
 *     }
 *
 * A scalar that comes twice: the last one counts. A message that comes twice: both, merged. A list
 * of numbers comes one by one (DV_PB_VARINT) or packed (DV_PB_BYTES, then dv_pb_enter and
 * dv_pb_read_packed until the end), whatever the .proto says. */

enum dv_pb_wire {
    DV_PB_VARINT = 0,
    DV_PB_FIXED64 = 1,
    DV_PB_BYTES = 2, /* strings, bytes, messages, packed lists */
    DV_PB_GROUP = 3,
    DV_PB_FIXED32 = 5,
};

#define DV_PB_NUMBER_MAX ((1u << 29) - 1)
#define DV_PB_TAG(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

struct dv_pb_reader {
    const char *at;
    const char *end;
    const char *start; /* of the outermost message: errors count from there */
    unsigned depth;
};

struct dv_pb_field {
    uint32_t tag;   /* DV_PB_TAG(number, wire) */
    uint64_t value; /* DV_PB_VARINT, DV_PB_FIXED32, DV_PB_FIXED64; else 0 */
    dv_str bytes;   /* DV_PB_BYTES; DV_PB_GROUP: what is between its tags; else empty */
};

static inline void dv_pb_reader_init(struct dv_pb_reader *reader, dv_str bytes)
{
    const char *p = bytes.p ? bytes.p : "";

    *reader = (struct dv_pb_reader){.at = p, .end = p + bytes.n, .start = p};
}

static inline bool dv_pb_is_at_end(const struct dv_pb_reader *reader)
{
    return reader->at == reader->end;
}

/* For dv_pb_read: every form of a field. */
DV_CHECKED bool dv_pb_read_any(struct dv_pb_reader *reader, struct dv_pb_field *field,
                               struct dv_err *err);

/* The next field; there must be one. After a failure the reader is not used again. */
DV_CHECKED static inline bool dv_pb_read(struct dv_pb_reader *reader, struct dv_pb_field *field,
                                         struct dv_err *err)
{
    const unsigned char *p = (const unsigned char *)reader->at;
    size_t left = (size_t)(reader->end - reader->at);

    /* Nearly all there is in a long list: bytes, with a tag and a length of one byte each. */
    if (left >= 2 && (p[0] & 0x87) == DV_PB_BYTES && p[0] > DV_PB_BYTES && p[1] <= 0x7f &&
        p[1] <= left - 2) {
        *field = (struct dv_pb_field){
            .tag = p[0], .bytes = {reader->at + 2, p[1]}
        };
        reader->at += 2 + p[1];
        return true;
    }
    return dv_pb_read_any(reader, field, err);
}

/* The next number of a packed list; `wire` is what such a number has by itself. */
DV_CHECKED bool dv_pb_read_packed(struct dv_pb_reader *reader, enum dv_pb_wire wire,
                                  uint64_t *value, struct dv_err *err);

/* The field's bytes, which must be UTF-8; zero bytes are left to the caller. `reader` is where the
 * field came from. */
DV_CHECKED bool dv_pb_get_string(const struct dv_pb_reader *reader, const struct dv_pb_field *field,
                                 dv_str *s, struct dv_err *err);

/* For dv_pb_enter: sets the error. */
void dv_pb_fail_depth(const struct dv_pb_reader *reader, const char *at, struct dv_err *err);

/* Begins to read the field's bytes as a message of their own. Refused past DV_PB_DEPTH_MAX. */
DV_CHECKED static inline bool dv_pb_enter(const struct dv_pb_reader *reader,
                                          const struct dv_pb_field *field,
                                          struct dv_pb_reader *inner, struct dv_err *err)
{
    if (reader->depth + 1 >= DV_PB_DEPTH_MAX) {
        dv_pb_fail_depth(reader, field->bytes.p, err);
        return false;
    }
    *inner = (struct dv_pb_reader){
        .at = field->bytes.p,
        .end = field->bytes.p + field->bytes.n,
        .start = reader->start,
        .depth = reader->depth + 1,
    };
    return true;
}

/* --- Writing ---
 *
 * Ask dv_buf_check once at the end. Nothing is left out for being zero or empty: where proto3 wants
 * that, the caller does it. */

void dv_pb_add_varint(struct dv_buf *buf, uint64_t value); /* bare, for packed lists */
/* int32, int64 and enum go through int64_t first, so that a negative one has its ten bytes. */
void dv_pb_add_number(struct dv_buf *buf, uint32_t number, uint64_t value);
void dv_pb_add_bytes(struct dv_buf *buf, uint32_t number, dv_str bytes);
void dv_pb_add_texts(struct dv_buf *buf, uint32_t number, const dv_str *texts, size_t n);
/* A field made of what is added between the two; `mark` is what begin returned. They nest. */
size_t dv_pb_begin(struct dv_buf *buf, uint32_t number);
void dv_pb_end(struct dv_buf *buf, size_t mark);

#endif
