/* decode_pb.h - values that are messages on the wire, but no structs of the schema. */
#ifndef DV_RESOURCE_DECODE_PB_H
#define DV_RESOURCE_DECODE_PB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/codec/copy.h"

struct dv_arena;
struct dv_err;
struct dv_int_or_str;
struct dv_kind;
struct dv_pb_field;
struct dv_pb_reader;
struct dv_quantity;
struct dv_strs;
struct dv_time;

struct dv_pb_decoder {
    size_t bytes_left; /* of structs */
    /* The object's kind when it is a row of the store (object_row.h); NULL: it is a client's, whose
     * texts are checked. */
    const struct dv_kind *row_of;
    /* What was taken for structs and texts: what a copy of the value needs is no more. */
    struct dv_copy_size taken;
    size_t made_texts; /* of taken.texts: those that are not in the bytes that are decoded */
    struct dv_arena *arena;
    struct dv_err *err;
};

/* Decodes the protobuf of a row of the store; see dv_decode_row. `size` is enough for a copy, and
 * *made_texts for those of its texts that are not in `bytes`. */
DV_CHECKED bool dv_pb_decode_row(const struct dv_kind *kind, dv_str bytes, struct dv_arena *arena,
                                 void *value, struct dv_copy_size *size, size_t *made_texts,
                                 struct dv_err *err);

/* Zeroed memory for n structs of `size` bytes; NULL when that is more than any object needs. */
void *dv_pb_take(struct dv_pb_decoder *d, size_t n, size_t size);

/* Each of these reads what is left of a message, and replaces the value that was there. */
DV_CHECKED bool dv_pb_decode_time(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                                  bool is_micro, struct dv_time *time);
DV_CHECKED bool dv_pb_decode_quantity(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                                      struct dv_quantity *quantity);
DV_CHECKED bool dv_pb_decode_raw(struct dv_pb_decoder *d, struct dv_pb_reader reader, dv_str *text);
DV_CHECKED bool dv_pb_decode_int_or_str(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                                        struct dv_int_or_str *value);
DV_CHECKED bool dv_pb_decode_strs(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                                  struct dv_strs *strs);
/* Reads the bytes of one field; the pointer is never NULL, also when there are none. */
DV_CHECKED bool dv_pb_decode_string(struct dv_pb_decoder *d, const struct dv_pb_reader *reader,
                                    const struct dv_pb_field *part, dv_str *text);

#endif
