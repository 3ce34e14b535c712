#include "device/state/device_message.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "device/device.h"
#include "pb/pb.h"

bool dv_device_first_response(dv_str response, dv_str *first, bool *has_one, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;

    *has_one = false;
    dv_pb_reader_init(&reader, response);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES) || *has_one)
            continue;
        *first = field.bytes;
        *has_one = true;
    }
    return true;
}

bool dv_device_preferred_decode(dv_str response, struct dv_arena *arena, const dv_str **ids,
                                size_t *n_ids, struct dv_err *err)
{
    DV_VEC(dv_str) v = {0};
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    bool has_one;
    dv_str first = DV_STR_NONE;

    if (!dv_device_first_response(response, &first, &has_one, err))
        return false;
    dv_pb_reader_init(&reader, first);
    while (!dv_pb_is_at_end(&reader)) {
        dv_str id;

        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (!dv_pb_get_string(&reader, &field, &id, err))
            return false;
        *dv_vec_add_in(&v, arena) = id;
    }
    *ids = v.v;
    *n_ids = v.n;
    return true;
}

void dv_device_step_encode(const struct dv_device_step *step, struct dv_buf *buf)
{
    size_t mark;

    switch (step->kind) {
    case DV_DEVICE_ASK_PREFERRED:
        mark = dv_pb_begin(buf, 1);
        dv_pb_add_texts(buf, 1, step->ids, step->n_ids);
        dv_pb_add_texts(buf, 2, step->must_include, step->n_must_include);
        dv_pb_add_number(buf, 3, (uint64_t)step->size);
        dv_pb_end(buf, mark);
        break;
    case DV_DEVICE_ASK_ALLOCATE:
        mark = dv_pb_begin(buf, 1);
        dv_pb_add_texts(buf, 1, step->ids, step->n_ids);
        dv_pb_end(buf, mark);
        break;
    case DV_DEVICE_ASK_PRESTART:
        dv_pb_add_texts(buf, 1, step->ids, step->n_ids);
        break;
    case DV_DEVICE_DONE:
    case DV_DEVICE_FAILED:
        break;
    }
}
