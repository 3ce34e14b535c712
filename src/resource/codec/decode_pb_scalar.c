/* decode_pb_scalar.c - decodes single values from protobuf: texts, times, quantities and the like,
 * for decode_pb.c. */
#include "resource/codec/decode_pb.h"

#include "base/arena.h"
#include "base/err.h"
#include "number/number.h"
#include "pb/pb.h"
#include "resource/codec/object_row.h"
#include "resource/codec/pack_fields.h"
#include "resource/resource.h"
#include "json/json.h"

#define ALIGN 8u

void *dv_pb_take(struct dv_pb_decoder *d, size_t n, size_t size)
{
    if (n > d->bytes_left / size) {
        (void)dv_fail(d->err, DV_RESOURCE_EXHAUSTED, "more than %u bytes of objects",
                      DV_DECODE_BYTES_MAX);
        return NULL;
    }
    d->bytes_left -= n * size;
    d->taken.structs += dv_copy_struct_bytes(n * size);
    return dv_arena_alloc_array(d->arena, n, size, ALIGN);
}

bool dv_pb_decode_string(struct dv_pb_decoder *d, const struct dv_pb_reader *reader,
                         const struct dv_pb_field *part, dv_str *text)
{
    /* A row that was written has to be read whatever its texts are: the printers replace what is no
     * UTF-8. */
    if (d->row_of)
        *text = part->bytes;
    else if (!dv_pb_get_string(reader, part, text, d->err))
        return false;
    if (text->n == 0)
        text->p = "";
    d->taken.texts += text->n;
    return true;
}

bool dv_pb_decode_time(struct dv_pb_decoder *d, struct dv_pb_reader reader, bool is_micro,
                       struct dv_time *time)
{
    struct dv_pb_field part;

    *time = (struct dv_time){.is_set = !dv_pb_is_at_end(&reader)};
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        if (part.tag == DV_PB_TAG(1, DV_PB_VARINT))
            time->seconds = (int64_t)part.value;
        else if (part.tag == DV_PB_TAG(2, DV_PB_VARINT))
            time->nanos = (int32_t)(uint32_t)part.value;
    }
    if (!dv_api_time_is_in_range(*time) || time->nanos < 0 || time->nanos > 999999999)
        return dv_fail(d->err, DV_INVALID_ARGUMENT, "a time out of range: %lld s and %d ns",
                       (long long)time->seconds, time->nanos);
    *time = dv_api_time_round(*time, is_micro);
    return true;
}

bool dv_pb_decode_quantity(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                           struct dv_quantity *quantity)
{
    struct dv_pb_field part;
    dv_str text;

    *quantity = (struct dv_quantity){0};
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        if (part.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            (!dv_pb_decode_string(d, &reader, &part, &text) ||
             !dv_quantity_parse(text, d->arena, quantity, d->err)))
            return false;
    }
    d->taken.structs += dv_copy_struct_bytes(dv_quantity_room(quantity));
    return true;
}

/* Refuses a raw text that is not JSON: it could not be printed as JSON again. */
static bool check_json(struct dv_pb_decoder *d, dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    return text.n == 0 || dv_json_parse(text, NULL, scratch, d->err);
}

bool dv_pb_decode_raw(struct dv_pb_decoder *d, struct dv_pb_reader reader, dv_str *text)
{
    struct dv_pb_field part;

    *text = DV_STR("");
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        if (d->row_of && part.tag == DV_PB_TAG(DV_ROW_PACKED, DV_PB_BYTES)) {
            if (!dv_fields_check(d->row_of->versions[0].message, part.bytes, d->err))
                return false;
            *text = dv_fields_member(d->row_of, part.bytes, d->arena);
            d->taken.texts += text->n;
            d->made_texts += text->n;
            return true;
        }
        if (part.tag == DV_PB_TAG(DV_ROW_RAW, DV_PB_BYTES))
            *text = part.bytes;
    }
    d->taken.texts += text->n;
    return check_json(d, *text);
}

bool dv_pb_decode_int_or_str(struct dv_pb_decoder *d, struct dv_pb_reader reader,
                             struct dv_int_or_str *value)
{
    struct dv_pb_field part;

    *value = (struct dv_int_or_str){0};
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        if (part.tag == DV_PB_TAG(1, DV_PB_VARINT))
            value->is_text = part.value == 1;
        else if (part.tag == DV_PB_TAG(2, DV_PB_VARINT))
            value->number = (int32_t)(uint32_t)part.value;
        else if (part.tag == DV_PB_TAG(3, DV_PB_BYTES) &&
                 !dv_pb_decode_string(d, &reader, &part, &value->text))
            return false;
    }
    return true;
}

bool dv_pb_decode_strs(struct dv_pb_decoder *d, struct dv_pb_reader reader, struct dv_strs *strs)
{
    struct dv_pb_reader counting = reader;
    struct dv_pb_field part;
    size_t n = 0;

    while (!dv_pb_is_at_end(&counting)) {
        if (!dv_pb_read(&counting, &part, d->err))
            return false;
        n += part.tag == DV_PB_TAG(1, DV_PB_BYTES);
    }
    *strs = (struct dv_strs){.v = dv_pb_take(d, n, sizeof(dv_str))};
    if (!strs->v)
        return false;
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &part, d->err))
            return false;
        if (part.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            !dv_pb_decode_string(d, &reader, &part, &strs->v[strs->n++]))
            return false;
    }
    return true;
}
