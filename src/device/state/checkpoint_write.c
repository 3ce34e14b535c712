/* checkpoint_write.c - kubelet_internal_checkpoint: its bytes and its checksum. */
#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"
#include "json/json.h"

/* -- The checksum --------------------------------------------------------------------------- */

static void add_ids(struct dv_buf *buf, const dv_str *ids, size_t n)
{
    if (!ids) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ' ');
        dv_buf_add(buf, ids[i]);
    }
    dv_buf_add_char(buf, ']');
}

static void add_placed(struct dv_buf *buf, const struct dv_device_record *record)
{
    if (!record->placed) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_c(buf, "map[");
    for (size_t i = 0; i < record->n_placed; i++) { /* sorted by number */
        if (i > 0)
            dv_buf_add_char(buf, ' ');
        dv_buf_add_i64(buf, record->placed[i].node);
        dv_buf_add_char(buf, ':');
        add_ids(buf, record->placed[i].ids, record->placed[i].n_ids);
    }
    dv_buf_add_char(buf, ']');
}

static void add_bytes(struct dv_buf *buf, dv_str bytes)
{
    if (!bytes.p) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_char(buf, '[');
    for (size_t i = 0; i < bytes.n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, ' ');
        dv_buf_add_u64(buf, (unsigned char)bytes.p[i]);
    }
    dv_buf_add_char(buf, ']');
}

/* The ids of a record of the flat form, which are under one node here. */
static void add_flat(struct dv_buf *buf, const struct dv_device_record *record)
{
    add_ids(buf, record->placed ? record->placed[0].ids : NULL,
            record->placed ? record->placed[0].n_ids : 0);
}

static void add_record(struct dv_buf *buf, const struct dv_device_record *record, bool is_flat)
{
    dv_buf_add_c(buf, "{PodUID:(string)");
    dv_buf_add(buf, record->pod_uid);
    dv_buf_add_c(buf, " ContainerName:(string)");
    dv_buf_add(buf, record->container);
    dv_buf_add_c(buf, " ResourceName:(string)");
    dv_buf_add(buf, record->resource);
    dv_buf_add_c(buf, is_flat ? " DeviceIDs:([]string)" : " DeviceIDs:(checkpoint.DevicesPerNUMA)");
    (is_flat ? add_flat : add_placed)(buf, record);
    dv_buf_add_c(buf, " AllocResp:([]uint8)");
    add_bytes(buf, record->response);
    dv_buf_add_char(buf, '}');
}

static void add_registered(struct dv_buf *buf, const struct dv_device_checkpoint *checkpoint)
{
    if (!checkpoint->registered) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_c(buf, "map[");
    for (size_t i = 0; i < checkpoint->n_registered; i++) { /* sorted by name */
        if (i > 0)
            dv_buf_add_char(buf, ' ');
        dv_buf_add(buf, checkpoint->registered[i].resource);
        dv_buf_add_char(buf, ':');
        add_ids(buf, checkpoint->registered[i].ids, checkpoint->registered[i].n_ids);
    }
    dv_buf_add_char(buf, ']');
}

void dv_device_checkpoint_text(const struct dv_device_checkpoint *checkpoint, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "(checkpoint.checkpointData){"
                      "PodDeviceEntries:([]checkpoint.PodDevicesEntry)");
    if (!checkpoint->records) {
        dv_buf_add_c(buf, "<nil>");
    } else {
        dv_buf_add_char(buf, '[');
        for (size_t i = 0; i < checkpoint->n_records; i++) {
            if (i > 0)
                dv_buf_add_char(buf, ' ');
            add_record(buf, &checkpoint->records[i], checkpoint->is_flat);
        }
        dv_buf_add_char(buf, ']');
    }
    dv_buf_add_c(buf, " RegisteredDevices:(map[string][]string)");
    add_registered(buf, checkpoint);
    dv_buf_add_char(buf, '}');
}

/* A bound for the text of a node's state; its file is shorter. */
#define TEXT_BYTES_MAX (1024u * 1024u * 1024u)

uint32_t dv_device_checkpoint_sum(const struct dv_device_checkpoint *checkpoint)
{
    struct dv_buf buf;
    uint32_t sum;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_device_checkpoint_text(checkpoint, &buf);
    assert(!buf.is_over); /* the checksum of a part would be wrong */
    sum = dv_fnv1a(dv_buf_str(&buf));
    dv_buf_fini(&buf);
    return sum;
}

/* -- The file ------------------------------------------------------------------------------- */

struct keyed {
    dv_str key;
    struct dv_json *value;
};

static int keyed_cmp(const void *a, const void *b)
{
    const struct keyed *x = a;
    const struct keyed *y = b;

    return dv_str_cmp(x->key, y->key);
}

/* Go sorts keys as texts, so "10" comes before "2". */
static struct dv_json *keyed_to_json(struct keyed *members, size_t n, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    qsort(members, n, sizeof(members[0]), keyed_cmp);
    for (size_t i = 0; i < n; i++)
        dv_json_set(object, members[i].key, members[i].value, arena);
    return object;
}

static struct dv_json *placed_to_json(const struct dv_device_record *record, struct dv_arena *arena)
{
    struct keyed *members = DV_NEW_ARRAY(arena, struct keyed, record->n_placed);

    if (!record->placed)
        return dv_json_new_null(arena);
    for (size_t i = 0; i < record->n_placed; i++) {
        const struct dv_device_placed *placed = &record->placed[i];

        members[i].key = dv_str_printf(arena, "%lld", (long long)placed->node);
        members[i].value = dv_json_new_strs_or_null(placed->ids, placed->n_ids, arena);
    }
    return keyed_to_json(members, record->n_placed, arena);
}

static struct dv_json *record_to_json(const struct dv_device_record *record, struct dv_arena *arena)
{
    struct dv_json *entry = dv_json_new_object(arena);
    DV_CLEANUP(dv_buf_fini) struct dv_buf response;

    dv_buf_init(&response, record->response.n * 2 + 4); /* base64 makes 4 bytes of 3 */
    dv_base64_encode(record->response, &response);
    dv_json_set(entry, DV_STR("PodUID"), dv_json_new_str(record->pod_uid, arena), arena);
    dv_json_set(entry, DV_STR("ContainerName"), dv_json_new_str(record->container, arena), arena);
    dv_json_set(entry, DV_STR("ResourceName"), dv_json_new_str(record->resource, arena), arena);
    dv_json_set(entry, DV_STR("DeviceIDs"), placed_to_json(record, arena), arena);
    dv_json_set(entry, DV_STR("AllocResp"),
                record->response.p ? dv_json_new_str(dv_buf_str(&response), arena)
                                   : dv_json_new_null(arena),
                arena);
    return entry;
}

static struct dv_json *records_to_json(const struct dv_device_checkpoint *checkpoint,
                                       struct dv_arena *arena)
{
    struct dv_json *array;

    if (!checkpoint->records)
        return dv_json_new_null(arena);
    array = dv_json_new_array(arena);
    for (size_t i = 0; i < checkpoint->n_records; i++)
        dv_json_append(array, record_to_json(&checkpoint->records[i], arena));
    return array;
}

static struct dv_json *registered_to_json(const struct dv_device_checkpoint *checkpoint,
                                          struct dv_arena *arena)
{
    struct keyed *members = DV_NEW_ARRAY(arena, struct keyed, checkpoint->n_registered);

    if (!checkpoint->registered)
        return dv_json_new_null(arena);
    for (size_t i = 0; i < checkpoint->n_registered; i++) {
        const struct dv_device_registered *registered = &checkpoint->registered[i];

        members[i].key = registered->resource;
        members[i].value = dv_json_new_strs_or_null(registered->ids, registered->n_ids, arena);
    }
    return keyed_to_json(members, checkpoint->n_registered, arena);
}

void dv_device_checkpoint_encode(const struct dv_device_checkpoint *checkpoint, struct dv_buf *buf)
{
    static const struct dv_json_style style = {.escape_html = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *file = dv_json_new_object(arena);
    struct dv_json *data = dv_json_new_object(arena);

    dv_json_set(data, DV_STR("PodDeviceEntries"), records_to_json(checkpoint, arena), arena);
    dv_json_set(data, DV_STR("RegisteredDevices"), registered_to_json(checkpoint, arena), arena);
    dv_json_set(file, DV_STR("Data"), data, arena);
    dv_json_set(file, DV_STR("Checksum"),
                dv_json_new_u64(dv_device_checkpoint_sum(checkpoint), arena), arena);
    dv_json_print(file, &style, buf);
}
