/* checkpoint_json.c - what a state holds after it was loaded from a checkpoint, as the corpus has
 * it. Responses are decoded by the generated type, not by the module under test. */
#include "checkpoint_json.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "pb/pb.h"
#include "json/json.h"

static int str_cmp(const void *a, const void *b)
{
    const dv_str *x = a;
    const dv_str *y = b;

    return dv_str_cmp(*x, *y);
}

static struct dv_json *sorted_ids(const dv_str *ids, size_t n, struct dv_arena *arena)
{
    dv_str *sorted = DV_NEW_ARRAY(arena, dv_str, n);
    struct dv_json *array = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++)
        sorted[i] = ids[i];
    qsort(sorted, n, sizeof(sorted[0]), str_cmp);
    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(sorted[i], arena));
    return array;
}

static void set(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

/* The parts of a response, and the fields of their messages, by number. */
static const struct {
    const char *name;
    const char *fields[3];
    bool is_map;
} parts[] = {
    {NULL,          {NULL},                                         false},
    {"envs",        {"key", "value"},                               true },
    {"mounts",      {"container_path", "host_path", "read_only"},   false},
    {"devices",     {"container_path", "host_path", "permissions"}, false},
    {"annotations", {"key", "value"},                               true },
    {"cdi_devices", {"name"},                                       false},
};

/* A message of one part. What is empty is left out, as in the corpus. */
static struct dv_json *item_to_json(size_t part, dv_str bytes, struct dv_arena *arena)
{
    struct dv_json *item = dv_json_new_object(arena);
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &err)) {
        size_t number = field.tag >> 3;
        const char *name = number <= 3 ? parts[part].fields[number - 1] : NULL;

        if (name && field.bytes.n > 0)
            set(item, name, dv_json_new_str(field.bytes, arena), arena);
        else if (name && field.value != 0)
            set(item, name, dv_json_new_bool(true, arena), arena);
    }
    return item;
}

static dv_str member(const struct dv_json *object, const char *key)
{
    dv_str text = DV_STR("");
    struct dv_err err;
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    return node && dv_json_as_str(node, &text, &err) ? text : DV_STR("");
}

/* Not through the module under test: that drops what is there twice. */
static struct dv_json *response_to_json(dv_str bytes, struct dv_arena *arena)
{
    struct dv_json *response = dv_json_new_object(arena);
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &err)) {
        size_t part = field.tag >> 3;
        struct dv_json *list;
        struct dv_json *item;

        if (part >= DV_COUNT(parts))
            continue;
        item = item_to_json(part, field.bytes, arena);
        list = dv_json_get(response, dv_str_from_c(parts[part].name));
        if (!list) {
            list = parts[part].is_map ? dv_json_new_object(arena) : dv_json_new_array(arena);
            set(response, parts[part].name, list, arena);
        }
        if (parts[part].is_map)
            dv_json_set(list, member(item, "key"), dv_json_new_str(member(item, "value"), arena),
                        arena);
        else
            dv_json_append(list, item);
    }
    return response;
}

static struct dv_json *entry_to_json(const struct dv_device_record *entry, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *placed = dv_json_new_object(arena);

    for (size_t i = 0; i < entry->n_placed; i++)
        dv_json_set(placed, dv_str_printf(arena, "%lld", (long long)entry->placed[i].node),
                    sorted_ids(entry->placed[i].ids, entry->placed[i].n_ids, arena), arena);
    set(object, "pod", dv_json_new_str(entry->pod_uid, arena), arena);
    set(object, "container", dv_json_new_str(entry->container, arena), arena);
    set(object, "resource", dv_json_new_str(entry->resource, arena), arena);
    set(object, "deviceIDs", placed, arena);
    set(object, "resp", response_to_json(entry->response, arena), arena);
    return object;
}

static int entry_cmp(const void *a, const void *b)
{
    const struct dv_device_record *x = a;
    const struct dv_device_record *y = b;
    int order = dv_str_cmp(x->pod_uid, y->pod_uid);

    order = order != 0 ? order : dv_str_cmp(x->container, y->container);
    return order != 0 ? order : dv_str_cmp(x->resource, y->resource);
}

/* Each id of a resource once, whoever holds it. */
static struct dv_json *allocated_to_json(const struct dv_device_checkpoint *held,
                                         struct dv_arena *arena)
{
    struct dv_json *allocated = dv_json_new_object(arena);

    for (size_t i = 0; i < held->n_records; i++) {
        DV_VEC(dv_str) ids = {0};
        DV_VEC(dv_str) unique = {0};

        if (dv_json_get(allocated, held->records[i].resource))
            continue;
        for (size_t k = i; k < held->n_records; k++)
            for (size_t m = 0; m < held->records[k].n_placed &&
                               dv_str_eq(held->records[k].resource, held->records[i].resource);
                 m++)
                for (size_t d = 0; d < held->records[k].placed[m].n_ids; d++)
                    *dv_vec_add_in(&ids, arena) = held->records[k].placed[m].ids[d];
        if (ids.n > 0)
            qsort(ids.v, ids.n, sizeof(ids.v[0]), str_cmp);
        for (size_t k = 0; k < ids.n; k++)
            if (k == 0 || !dv_str_eq(ids.v[k - 1], ids.v[k]))
                *dv_vec_add_in(&unique, arena) = ids.v[k];
        dv_json_set(allocated, held->records[i].resource, sorted_ids(unique.v, unique.n, arena),
                    arena);
    }
    return allocated;
}

struct dv_json *loaded_to_json(const struct dv_device_checkpoint *checkpoint,
                               struct dv_arena *arena)
{
    DV_CLEANUP(dv_device_state_freep)
    struct dv_device_state *state = dv_device_state_new(NULL);
    struct dv_json *loaded = dv_json_new_object(arena);
    struct dv_json *entries = dv_json_new_array(arena);
    struct dv_json *registered = dv_json_new_array(arena);
    struct dv_device_checkpoint held;
    struct dv_device_record *records;
    size_t n_left_out;

    dv_device_checkpoint_load(state, checkpoint, 1, &n_left_out);
    dv_device_checkpoint_take(state, arena, &held);
    records = DV_NEW_ARRAY(arena, struct dv_device_record, held.n_records);
    for (size_t i = 0; i < held.n_records; i++)
        records[i] = held.records[i];
    qsort(records, held.n_records, sizeof(records[0]), entry_cmp);
    for (size_t i = 0; i < held.n_records; i++)
        dv_json_append(entries, entry_to_json(&records[i], arena));
    for (size_t i = 0; i < held.n_registered; i++)
        dv_json_append(registered, dv_json_new_str(held.registered[i].resource, arena));
    set(loaded, "allocated", allocated_to_json(&held, arena), arena);
    set(loaded, "podDevices", entries, arena);
    set(loaded, "registered", registered, arena);
    return dv_json_copy(loaded, arena); /* its text outlives the state */
}
