/* device_codec.c - the state as keys and values of a store.
 *
 *     key    'a' pod container resource   what a container holds of a resource (base/key.h)
 *            'r' resource                 one that is known, though its plugin may be away
 *     value  version, then protobuf: 1 {1 node, 2 id...}..., 2 response; nothing for a resource */
#include "device/state/device_codec.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/key.h"
#include "base/row.h"
#include "device/state/device_message.h"
#include "device/state/device_state.h"
#include "pb/pb.h"

#define KIND_HELD 'a'
#define KIND_RESOURCE 'r'
#define VERSION '\x01'

enum {
    VALUE_PLACED = 1,
    VALUE_RESPONSE = 2,
    PLACED_NODE = 1,
    PLACED_ID = 2,
};

/* -- Encoding ------------------------------------------------------------------------------- */

static void add_held_key(struct dv_buf *buf, dv_str pod_uid, dv_str container, dv_str resource)
{
    dv_buf_add_char(buf, KIND_HELD);
    dv_key_add(buf, pod_uid);
    dv_key_add(buf, container);
    dv_key_add(buf, resource);
}

static void add_resource_key(struct dv_buf *buf, dv_str resource)
{
    dv_buf_add_char(buf, KIND_RESOURCE);
    dv_key_add(buf, resource);
}

void dv_device_record_encode(const struct dv_device_record *record, struct dv_buf *key,
                             struct dv_buf *value)
{
    add_held_key(key, record->pod_uid, record->container, record->resource);
    dv_buf_add_char(value, VERSION);
    for (size_t i = 0; i < record->n_placed; i++) {
        const struct dv_device_placed *placed = &record->placed[i];
        size_t mark = dv_pb_begin(value, VALUE_PLACED);

        dv_pb_add_number(value, PLACED_NODE, (uint64_t)placed->node);
        for (size_t k = 0; k < placed->n_ids; k++)
            dv_pb_add_bytes(value, PLACED_ID, placed->ids[k]);
        dv_pb_end(value, mark);
    }
    dv_pb_add_bytes(value, VALUE_RESPONSE, record->response);
}

void dv_device_held_store_key(const struct dv_device_held *held, struct dv_buf *key)
{
    add_held_key(key, held->pod->uid, held->container, held->resource->name);
}

/* -- Decoding ------------------------------------------------------------------------------- */

static bool fail_damaged(struct dv_err *err, const char *what)
{
    return dv_fail(err, DV_DATA_LOSS, "saved device record: %s", what);
}

/* Takes one text off the front of the key. */
static bool take_text(dv_str *key, struct dv_arena *arena, dv_str *text, struct dv_err *err)
{
    return dv_key_take(key, arena, text) || fail_damaged(err, "the key is cut off");
}

static bool check_value(dv_str *value, struct dv_err *err)
{
    if (value->n == 0)
        return fail_damaged(err, "the value is empty");
    if (value->p[0] != VERSION)
        return dv_fail(err, DV_UNIMPLEMENTED, "saved device record: of version %u, known is %u",
                       (unsigned char)value->p[0], (unsigned)VERSION);
    *value = dv_str_slice(*value, 1, value->n);
    return true;
}

static bool read_placed(struct dv_pb_reader *reader, struct dv_arena *arena,
                        struct dv_device_placed *placed, struct dv_err *err)
{
    DV_VEC(dv_str) ids = {0};
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(PLACED_NODE, DV_PB_VARINT))
            placed->node = (int64_t)field.value;
        else if (field.tag == DV_PB_TAG(PLACED_ID, DV_PB_BYTES))
            *dv_vec_add_in(&ids, arena) = field.bytes;
    }
    placed->ids = ids.v;
    placed->n_ids = ids.n;
    return true;
}

static bool read_value(dv_str value, struct dv_arena *arena, struct dv_device_record *record,
                       struct dv_err *err)
{
    DV_VEC(struct dv_device_placed) placed = {0};
    struct dv_pb_reader reader, inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, value);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(VALUE_PLACED, DV_PB_BYTES)) {
            if (!dv_pb_enter(&reader, &field, &inner, err) ||
                !read_placed(&inner, arena, dv_vec_add_in(&placed, arena), err))
                return false;
        } else if (field.tag == DV_PB_TAG(VALUE_RESPONSE, DV_PB_BYTES)) {
            record->response = field.bytes;
        }
    }
    record->placed = placed.v;
    record->n_placed = placed.n;
    return true;
}

bool dv_device_record_decode(dv_str key, dv_str value, struct dv_arena *arena,
                             struct dv_device_record *record, struct dv_err *err)
{
    struct dv_device_record read = {0};

    if (key.n == 0 || key.p[0] != KIND_HELD)
        return fail_damaged(err, "of another kind");
    key = dv_str_slice(key, 1, key.n);
    if (!take_text(&key, arena, &read.pod_uid, err) ||
        !take_text(&key, arena, &read.container, err) ||
        !take_text(&key, arena, &read.resource, err))
        return false;
    if (key.n > 0)
        return fail_damaged(err, "the key goes on after its end");
    if (!check_value(&value, err))
        return false;
    if (!read_value(value, arena, &read, err) || !dv_device_response_check(read.response, err)) {
        err->code = DV_DATA_LOSS;
        return dv_wrap(err, "saved device record of pod %.*s", DV_FMT(read.pod_uid));
    }
    *record = read;
    return true;
}

static bool load_resource(struct dv_device_state *state, dv_str key, dv_str value, uint64_t now_ns,
                          struct dv_arena *arena, struct dv_err *err)
{
    dv_str name = DV_STR_NONE;

    key = dv_str_slice(key, 1, key.n);
    if (!take_text(&key, arena, &name, err))
        return false;
    if (key.n > 0)
        return fail_damaged(err, "the key goes on after its end");
    if (!check_value(&value, err))
        return false;
    dv_device_resource_restore(state, name, now_ns);
    dv_device_resource_find(state, name)->is_saved = true;
    return true;
}

bool dv_device_load(struct dv_device_state *state, dv_str key, dv_str value, uint64_t now_ns,
                    struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_record record;
    struct dv_device_held *held;

    if (key.n > 0 && key.p[0] == KIND_RESOURCE)
        return load_resource(state, key, value, now_ns, arena, err);
    if (!dv_device_record_decode(key, value, arena, &record, err))
        return false;
    held = dv_device_held_restore(state, &record);
    held->is_saved = true;
    dv_link_remove(&held->in_dirty);
    return true;
}

/* -- What changed --------------------------------------------------------------------------- */

static void write_gone(struct dv_device_state *state, struct dv_row_changes *changes)
{
    for (size_t i = 0; i < state->gone.n; i++) {
        dv_row_changes_remove(changes, dv_buf_str(&state->gone.v[i]), false);
        dv_buf_fini(&state->gone.v[i]);
    }
    dv_vec_clear(&state->gone);
}

static void write_resources(struct dv_device_state *state, struct dv_row_changes *changes)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;) {
        struct dv_device_resource *resource = entry->value;

        if (resource->has_healthy == resource->is_saved)
            continue;
        add_resource_key(&changes->key, resource->name);
        if (resource->has_healthy)
            dv_buf_add_char(&changes->value, VERSION);
        dv_row_changes_add(changes);
        resource->is_saved = resource->has_healthy;
        dv_device_resource_drop(resource);
    }
}

static void write_dirty(struct dv_device_state *state, struct dv_row_changes *changes)
{
    struct dv_arena *scratch = dv_arena_new();
    struct dv_link *link;

    while ((link = dv_list_shift(&state->dirty)) != NULL) {
        struct dv_device_held *held = DV_CONTAINER(link, struct dv_device_held, in_dirty);
        struct dv_device_record record;

        dv_device_held_describe(held, scratch, &record);
        dv_device_record_encode(&record, &changes->key, &changes->value);
        dv_row_changes_add(changes);
        held->is_saved = true;
        dv_arena_reset(scratch);
    }
    dv_arena_free(scratch);
}

size_t dv_device_take_changes(struct dv_device_state *state, struct dv_arena *arena,
                              const struct dv_row_change **taken)
{
    struct dv_row_changes changes;

    dv_row_changes_init(&changes, arena);
    write_gone(state, &changes); /* deletions come first, as a new record may have the same key */
    write_resources(state, &changes);
    write_dirty(state, &changes);
    return dv_row_changes_take(&changes, taken);
}
