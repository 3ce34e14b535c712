#include "cri/cri_list.h"

#include <stddef.h>

#include "base/ascii.h"
#include "base/err.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "pb/pb.h"

/* The numbers of the fields that count, of PodSandbox, Container and PodSandboxStatus. */
struct shape {
    uint32_t state;
    uint32_t labels;
};

static const struct shape shapes[] = {
    [DV_CRI_SANDBOX] = {.state = 3, .labels = 5},
    [DV_CRI_CONTAINER] = {.state = 6, .labels = 8},
};
static const struct shape sandbox_status = {.state = 3, .labels = 7};

/* The longest uid of a pod: those of the API have 36 characters, those of static pods 32; labels
 * may have 63. */
#define UID_BYTES_MAX 63u

#define ID DV_PB_TAG(1, DV_PB_BYTES)

/* An entry of the labels: takes the pod's uid from it, when that is what it has. */
static bool read_label(struct dv_pb_reader *reader, dv_str *uid, struct dv_err *err)
{
    dv_str key = DV_STR("");
    dv_str value = DV_STR("");
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES))
            key = field.bytes;
        else if (field.tag == DV_PB_TAG(2, DV_PB_BYTES) &&
                 !dv_pb_get_string(reader, &field, &value, err))
            return false;
    }
    if (dv_str_eq(key, DV_STR(DV_CRI_LABEL_POD_UID)))
        *uid = value;
    return true;
}

/* What is listed of one sandbox or container, or said of a sandbox in an event. */
static bool read_thing(struct dv_pb_reader *reader, const struct shape *shape,
                       struct dv_cri_listed *listed, struct dv_err *err)
{
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == ID) {
            if (!dv_pb_get_string(reader, &field, &listed->id, err))
                return dv_wrap(err, "id");
        } else if (field.tag == DV_PB_TAG(shape->state, DV_PB_VARINT)) {
            listed->state = (int64_t)field.value;
        } else if (field.tag == DV_PB_TAG(shape->labels, DV_PB_BYTES)) {
            if (!dv_pb_enter(reader, &field, &inner, err) || !read_label(&inner, &listed->uid, err))
                return dv_wrap(err, "labels");
        }
    }
    return true;
}

/* A pod's uid names files and directories, so what cannot be one is nobody's. */
static bool is_uid(dv_str uid)
{
    if (uid.n == 0 || uid.n > UID_BYTES_MAX || uid.p[0] == '.')
        return false;
    for (size_t i = 0; i < uid.n; i++)
        if (!dv_is_alphanumeric(uid.p[i]) && uid.p[i] != '-' && uid.p[i] != '_' && uid.p[i] != '.')
            return false;
    return true;
}

static bool read_list(enum dv_cri_kind kind, struct dv_pb_reader *reader, struct dv_arena *arena,
                      struct dv_cri_list *list, struct dv_err *err)
{
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        struct dv_cri_listed listed = {.kind = kind};

        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (!dv_pb_enter(reader, &field, &inner, err) ||
            !read_thing(&inner, &shapes[kind], &listed, err))
            return false;
        if (listed.id.n == 0 || !is_uid(listed.uid))
            continue;
        listed.id = dv_str_copy(listed.id, arena);
        listed.uid = dv_str_copy(listed.uid, arena);
        *dv_vec_add_in(list, arena) = listed;
    }
    return true;
}

bool dv_cri_list_read(enum dv_cri_kind kind, dv_str message, struct dv_arena *arena,
                      struct dv_cri_list *list, struct dv_err *err)
{
    struct dv_pb_reader reader;

    dv_pb_reader_init(&reader, message);
    if (read_list(kind, &reader, arena, list, err))
        return true;
    err->code = DV_INTERNAL; /* the runtime's fault, not that of who asked */
    return dv_wrap(err, kind == DV_CRI_SANDBOX ? "ListPodSandbox" : "ListContainers");
}

bool dv_cri_event_read(dv_str message, dv_str *uid, dv_str *id, struct dv_err *err)
{
    struct dv_cri_listed sandbox = {.kind = DV_CRI_SANDBOX};
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;
    dv_str container = DV_STR("");

    dv_pb_reader_init(&reader, message);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return dv_wrap(err, "event");
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES)) {
            if (!dv_pb_get_string(&reader, &field, &container, err))
                return dv_wrap(err, "event: container");
        } else if (field.tag == DV_PB_TAG(4, DV_PB_BYTES)) {
            if (!dv_pb_enter(&reader, &field, &inner, err) ||
                !read_thing(&inner, &sandbox_status, &sandbox, err))
                return dv_wrap(err, "event: sandbox");
        }
    }
    *uid = is_uid(sandbox.uid) ? sandbox.uid : DV_STR("");
    *id = container;
    return true;
}
