/* device_list.c - a ListAndWatch answer becomes the list of a resource, as a difference.
 *
 * The bytes are read once. Each device is looked up where the last list had it, then by its id;
 * what is new or differs is remembered in the device itself (next_*) and in a list of changes. Only
 * when all has been read is anything changed, so that a bad list changes nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/visible.h"
#include "device/state/device_state.h"
#include "pb/pb.h"
#include "topology/topology.h"

/* A device can have as many nodes as Linux. */
#define NODES_MAX DV_NUMA_NODES_MAX

/* After this many devices in a row that are not where the last list had them, the rest are searched
 * by id at once: each look at the old place costs as much as a search. */
#define ELSEWHERE_MAX 16u

/* A device as the list has it. */
struct entry {
    dv_str id;
    struct dv_device *device; /* where the last list had it; NULL: it has to be looked for */
    bool is_healthy;
    size_t n_nodes;
    int64_t nodes[NODES_MAX + 1]; /* as a key of dv_device_nodes: has_topology comes first */
};

struct reading {
    struct dv_device_resource *resource;
    struct dv_arena *arena;
    struct dv_device_order in_order; /* what was read, duplicates too */
    size_t at;                       /* where the last list probably has the next one */
    unsigned n_elsewhere;            /* in a row that were not there */
    /* how many of the devices that were listed before are in this list */
    size_t n_seen;
    size_t n_duplicates;
    dv_str duplicate;
    bool is_plain; /* there is nothing but devices, each with a tag of one byte */
    DV_VEC(struct dv_device *) changing; /* those that are new or differ */
    struct entry entry;
};

/* -- Reading -------------------------------------------------------------------------------- */

static bool read_node(struct dv_pb_reader *reader, int64_t *node, struct dv_err *err)
{
    struct dv_pb_field field;

    *node = 0;
    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_VARINT))
            *node = (int64_t)field.value;
    }
    return true;
}

static bool read_topology(struct dv_pb_reader *reader, struct entry *entry, struct dv_err *err)
{
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    entry->nodes[0] = 1;
    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (entry->n_nodes == NODES_MAX)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "more than %u nodes", NODES_MAX);
        if (!dv_pb_enter(reader, &field, &inner, err) ||
            !read_node(&inner, &entry->nodes[++entry->n_nodes], err))
            return false;
    }
    return true;
}

static bool read_field(struct dv_pb_reader *reader, const struct dv_pb_field *field,
                       struct entry *entry, struct dv_err *err)
{
    struct dv_pb_reader inner;
    dv_str health;

    switch (field->tag) {
    case DV_PB_TAG(1, DV_PB_BYTES):
        if (!dv_pb_get_string(reader, field, &entry->id, err))
            return dv_wrap(err, "id");
        return true;
    case DV_PB_TAG(2, DV_PB_BYTES):
        if (!dv_pb_get_string(reader, field, &health, err))
            return dv_wrap(err, "health");
        entry->is_healthy = dv_str_eq(health, DV_STR("Healthy"));
        return true;
    case DV_PB_TAG(3, DV_PB_BYTES):
        if (!dv_pb_enter(reader, field, &inner, err) || !read_topology(&inner, entry, err))
            return dv_wrap(err, "topology");
        return true;
    default:
        return true; /* unknown */
    }
}

static bool read_entry(struct dv_pb_reader *reader, struct entry *entry, struct dv_err *err)
{
    struct dv_pb_field field;

    entry->id = DV_STR_NONE;
    entry->device = NULL;
    entry->is_healthy = false;
    entry->n_nodes = 0;
    entry->nodes[0] = 0;
    while (!dv_pb_is_at_end(reader))
        if (!dv_pb_read(reader, &field, err) || !read_field(reader, &field, entry, err))
            return false;
    if (entry->id.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "the id is empty");
    if (entry->id.n > DV_DEVICE_ID_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "an id of %zu bytes, where %u are allowed",
                       entry->id.n, DV_DEVICE_ID_BYTES_MAX);
    /* people read ids and choose by them, so control characters are refused */
    if (!dv_str_is_visible(entry->id))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the id \"%.*s\" has a character that cannot be seen", DV_FMT(entry->id));
    return true;
}

/* What nearly all plugins send: devices, and of each the id, then the health, then the nodes if
 * there are any. */
#define DEVICE_TAG DV_PB_TAG(1, DV_PB_BYTES)
#define ID_TAG DV_PB_TAG(1, DV_PB_BYTES)
#define ONE_BYTE_MAX 0x7fu
static const dv_str healthy = DV_STR_INIT("\x12\x07Healthy");

/* Reads an entry that begins as one of the healthy device that comes next in the last list: what is
 * the same as then needs no checks. False: it is another one, or has another form, and nothing was
 * read. */
static bool read_same(struct reading *reading, dv_str bytes)
{
    const struct dv_device_order *last = &reading->resource->in_order;
    struct entry *entry = &reading->entry;
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err unused;
    struct dv_device *device;
    size_t n_id;

    if (reading->n_elsewhere >= ELSEWHERE_MAX || reading->at >= last->n)
        return false;
    device = last->v[reading->at];
    n_id = device->id.n;
    if (n_id > ONE_BYTE_MAX || bytes.n < 2 + n_id + healthy.n || bytes.p[0] != ID_TAG ||
        (size_t)bytes.p[1] != n_id || memcmp(bytes.p + 2, device->id.p, n_id) != 0 ||
        memcmp(bytes.p + 2 + n_id, healthy.p, healthy.n) != 0)
        return false;
    entry->id = device->id;
    entry->device = device;
    entry->is_healthy = true;
    entry->n_nodes = 0;
    entry->nodes[0] = 0;
    dv_pb_reader_init(&reader, dv_str_slice(bytes, 2 + n_id + healthy.n, bytes.n));
    while (!dv_pb_is_at_end(&reader))
        if (!dv_pb_read(&reader, &field, &unused) || field.tag != DV_PB_TAG(3, DV_PB_BYTES) ||
            !read_field(&reader, &field, entry, &unused))
            return false;
    return true;
}

/* Finds the device, first behind the one before it in the last list, unless that has failed for a
 * while: some plugins send each list in another order. */
static struct dv_device *find_device(struct reading *reading, dv_str id)
{
    const struct dv_device_order *last = &reading->resource->in_order;
    struct dv_device *device;

    if (reading->entry.device) {
        reading->n_elsewhere = 0;
        reading->at++;
        return reading->entry.device;
    }
    if (reading->n_elsewhere < ELSEWHERE_MAX && reading->at < last->n &&
        dv_str_eq(last->v[reading->at]->id, id)) {
        reading->n_elsewhere = 0;
        return last->v[reading->at++];
    }
    device = dv_device_ensure(reading->resource, id);
    reading->n_elsewhere++;
    if (device->is_listed)
        reading->at = device->position + 1;
    return device;
}

static struct dv_device_nodes *find_nodes(const struct reading *reading,
                                          const struct dv_device *device)
{
    const struct entry *entry = &reading->entry;
    dv_str key = {(const char *)entry->nodes, (1 + entry->n_nodes) * sizeof(entry->nodes[0])};

    if (device->nodes && dv_str_eq(device->nodes->key, key))
        return device->nodes;
    return dv_device_nodes_ensure(reading->resource, key);
}

/* Notes in the device what the entry says about it, without changing what counts. */
static void note_next(struct reading *reading, struct dv_device *device)
{
    device->next_healthy = reading->entry.is_healthy;
    device->next_nodes = find_nodes(reading, device);
    if (!device->is_changing && (!device->is_listed || device->next_nodes != device->nodes ||
                                 device->next_healthy != device->is_healthy)) {
        device->is_changing = true;
        *dv_vec_add(&reading->changing) = device;
    }
}

static void note_entry(struct reading *reading)
{
    struct dv_device_resource *resource = reading->resource;
    struct dv_device *device = find_device(reading, reading->entry.id);

    if (device->generation == resource->generation) {
        if (reading->n_duplicates++ == 0)
            reading->duplicate = device->id;
    } else {
        device->generation = resource->generation;
        device->is_changing = false;
        reading->n_seen += device->is_listed;
    }
    note_next(reading, device);
    *dv_vec_add(&reading->in_order) = device;
}

/* Reads the entry in `field`, a field of a list. */
static bool read_device(struct reading *reading, struct dv_pb_reader *list,
                        const struct dv_pb_field *field, struct dv_err *err)
{
    struct dv_pb_reader inner;

    return read_same(reading, field->bytes) ||
           (dv_pb_enter(list, field, &inner, err) && read_entry(&inner, &reading->entry, err));
}

static bool read_list(struct reading *reading, dv_str bytes, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;

    if (bytes.n > DV_DEVICE_LIST_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%zu bytes, where %u are allowed", bytes.n,
                       DV_DEVICE_LIST_BYTES_MAX);
    dv_pb_reader_init(&reader, bytes);
    reading->is_plain = true;
    while (!dv_pb_is_at_end(&reader)) {
        if (*reader.at != DEVICE_TAG)
            reading->is_plain = false;
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DEVICE_TAG)
            continue;
        if (reading->in_order.n == DV_DEVICE_LIST_MAX)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "more than %u devices", DV_DEVICE_LIST_MAX);
        if (!read_device(reading, &reader, &field, err))
            return dv_wrap(err, "device %zu", reading->in_order.n);
        note_entry(reading);
    }
    return true;
}

/* Reads entries that stand where the last list had `n` devices from place `first` on. False: they
 * are not those. */
static bool read_again(struct reading *reading, dv_str entries, size_t first, size_t n)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err unused;
    size_t i;

    dv_pb_reader_init(&reader, entries);
    for (i = 0; i < n && !dv_pb_is_at_end(&reader); i++) {
        struct dv_device *device = reading->resource->in_order.v[first + i];

        reading->at = first + i;
        if (*reader.at != DEVICE_TAG || !dv_pb_read(&reader, &field, &unused) ||
            !read_device(reading, &reader, &field, &unused) ||
            !dv_str_eq(reading->entry.id, device->id))
            return false;
        note_next(reading, device);
    }
    return i == n && dv_pb_is_at_end(&reader);
}

/* -- Changing ------------------------------------------------------------------------------- */

/* Changes a device: what is told of it, and the counts that depend on it. */
static void change_device(struct dv_device *device, struct dv_device_change *change)
{
    struct dv_device_resource *resource = device->resource;
    bool was_listed = device->is_listed;

    assert(device->next_nodes); /* note_entry set it for every device in the list */
    *change = (struct dv_device_change){
        .id = device->id,
        .is_healthy = device->next_healthy,
        .is_held = !dv_list_is_empty(&device->holders),
    };
    if (!was_listed)
        change->what |= DV_DEVICE_ADDED;
    else if (device->next_healthy != device->is_healthy)
        change->what |= DV_DEVICE_FLIPPED;
    if (was_listed && device->next_nodes != device->nodes)
        change->what |= DV_DEVICE_MOVED;
    if (was_listed) {
        resource->n_listed--;
        resource->n_healthy -= device->is_healthy;
    }
    if (change->what & (DV_DEVICE_ADDED | DV_DEVICE_MOVED)) {
        device->rank = DV_DEVICE_NO_RANK; /* its bit is cleared when all are ranked anew */
        device->is_free = false;
    }
    device->is_listed = true;
    device->is_healthy = device->next_healthy;
    if (device->nodes)
        device->nodes->n_users--;
    device->nodes = device->next_nodes;
    device->nodes->n_users++;
    resource->n_listed++;
    resource->n_healthy += device->is_healthy;
}

/* Takes the device out of the list. It is dropped later, because its rank is still looked at. */
static void remove_device(struct dv_device *device, struct dv_arena *arena,
                          struct dv_device_change *change)
{
    struct dv_device_resource *resource = device->resource;

    *change = (struct dv_device_change){
        .id = dv_str_copy(device->id, arena),
        .what = DV_DEVICE_REMOVED,
        .is_healthy = device->is_healthy,
        .is_held = !dv_list_is_empty(&device->holders),
    };
    resource->n_listed--;
    resource->n_healthy -= device->is_healthy;
    device->is_listed = device->is_free = false;
    device->rank = DV_DEVICE_NO_RANK;
}

struct changes {
    struct dv_device_change *v;
    size_t n;
    struct dv_device **fresh;
    size_t n_fresh;
    struct dv_device **removed;
    size_t n_removed;
};

static void change_devices(struct reading *reading, struct changes *changes)
{
    for (size_t i = 0; i < reading->changing.n; i++) {
        struct dv_device *device = reading->changing.v[i];
        struct dv_device_change *change = &changes->v[changes->n];

        device->is_changing = false;
        change_device(device, change);
        if (change->what == 0)
            /* a duplicate said otherwise before, and the last one says the same as the last list */
            continue;
        changes->n++;
        if (change->what & (DV_DEVICE_ADDED | DV_DEVICE_MOVED))
            changes->fresh[changes->n_fresh++] = device;
        else
            dv_device_refresh(device);
    }
}

static void remove_devices(struct reading *reading, struct changes *changes)
{
    const struct dv_device_resource *resource = reading->resource;
    size_t n_removed = changes->n_removed;

    changes->n_removed = 0;
    for (size_t i = 0; i < resource->ranked.n && changes->n_removed < n_removed; i++) {
        struct dv_device *device = resource->ranked.v[i];

        if (device->generation == resource->generation)
            continue;
        remove_device(device, reading->arena, &changes->v[changes->n++]);
        changes->removed[changes->n_removed++] = device;
    }
}

/* -- All together --------------------------------------------------------------------------- */

static void find_told(const struct dv_device_resource *resource, const struct changes *changes,
                      struct dv_arena *arena, struct dv_device_diff *diff)
{
    struct dv_device_told told = {0};

    for (size_t i = 0; i < changes->n; i++) {
        const struct dv_device_change *change = &changes->v[i];

        if (!(change->what & (DV_DEVICE_ADDED | DV_DEVICE_FLIPPED)))
            continue;
        if (resource->state->opts.is_strict)
            dv_device_tell_first_holder(&told, resource->state, change->id, arena);
        else if (change->is_held)
            dv_device_tell_holders(&told, dv_map_get(&resource->devices, change->id), arena);
    }
    dv_device_told_end(&told, diff);
}

/* Keeps the order for the next list. Positions are set only now: until then they are those of the
 * last one. */
static void remember_order(struct reading *reading)
{
    struct dv_device_resource *resource = reading->resource;
    struct dv_device_order last = resource->in_order;

    for (size_t i = 0; i < reading->in_order.n; i++)
        if (reading->in_order.v[i]->position != i)
            reading->in_order.v[i]->position = (uint32_t)i;
    resource->in_order = reading->in_order;
    reading->in_order = last;
}

static void commit(struct reading *reading, struct dv_device_diff *diff)
{
    struct dv_device_resource *resource = reading->resource;
    struct dv_arena *arena = reading->arena;
    size_t n_removed = resource->n_listed - reading->n_seen;
    size_t n_changes = reading->changing.n + n_removed;
    struct changes changes = {
        .v = DV_NEW_ARRAY(arena, struct dv_device_change, n_changes),
        .fresh = dv_alloc(reading->changing.n * sizeof(struct dv_device *)),
        .removed = dv_alloc(n_removed * sizeof(struct dv_device *)),
        .n_removed = n_removed,
    };

    change_devices(reading, &changes);
    remove_devices(reading, &changes);
    if (changes.n_fresh > 0 || changes.n_removed > 0)
        dv_device_rank(resource, changes.fresh, changes.n_fresh);
    *diff = (struct dv_device_diff){
        .changes = changes.v,
        .n_changes = changes.n,
        .is_back = resource->sets != DV_DEVICE_SETS_LIVE,
        .n_duplicates = reading->n_duplicates,
        .duplicate = reading->duplicate,
    };
    find_told(resource, &changes, arena, diff);
    for (size_t i = 0; i < changes.n_removed; i++)
        dv_device_drop(changes.removed[i]);
    free(changes.fresh);
    free(changes.removed);
    resource->is_listed = true;
    resource->has_healthy = resource->has_unhealthy = true;
    resource->sets = DV_DEVICE_SETS_LIVE;
}

/* Undoes the reading of a list that is refused. */
static void forget(struct reading *reading)
{
    for (size_t i = 0; i < reading->changing.n; i++) {
        reading->changing.v[i]->is_changing = false;
        dv_device_drop(reading->changing.v[i]); /* stays when it was known before */
    }
    dv_device_nodes_prune(reading->resource);
}

bool dv_device_list_change(struct dv_device_resource *resource, dv_str entries, size_t first,
                           size_t n, struct dv_arena *arena, struct dv_device_diff *diff)
{
    struct reading reading = {
        .resource = resource, .arena = arena, .n_seen = resource->n_listed /* all others are */};
    bool is_good = read_again(&reading, entries, first, n);

    if (is_good)
        commit(&reading, diff);
    else
        forget(&reading);
    dv_vec_fini(&reading.changing);
    return is_good;
}

/* Keeps the list as bytes, where the next one can be compared with it. */
static void remember_text(const struct reading *reading, dv_str bytes)
{
    if (reading->is_plain && reading->n_duplicates == 0)
        dv_device_text_set(&reading->resource->text, bytes);
    else
        dv_device_text_fini(&reading->resource->text);
}

bool dv_device_apply_list(struct dv_device_state *state, dv_str resource_name, dv_str bytes,
                          struct dv_arena *arena, struct dv_device_diff *diff, struct dv_err *err)
{
    struct dv_device_resource *resource;
    struct reading reading;
    bool is_good;

    if (dv_device_apply_same(state, resource_name, bytes, arena, diff))
        return true;
    resource = dv_device_resource_ensure(state, resource_name);
    reading = (struct reading){.resource = resource, .arena = arena, .in_order = resource->spare};
    dv_vec_clear(&reading.in_order);
    resource->spare = (struct dv_device_order){0}; /* the reading has its memory now */
    resource->generation++;
    state->n_lists++;
    is_good = read_list(&reading, bytes, err);
    if (is_good) {
        commit(&reading, diff);
        remember_order(&reading);
        remember_text(&reading, bytes);
        resource->spare = reading.in_order;
        resource->list_number = state->n_lists;
    } else {
        (void)dv_wrap(err, "device list of %.*s", DV_FMT(resource_name));
        dv_vec_fini(&reading.in_order);
        forget(&reading);
        dv_device_resource_drop(resource);
    }
    dv_vec_fini(&reading.changing);
    return is_good;
}
