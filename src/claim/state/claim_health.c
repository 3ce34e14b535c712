/* claim_health.c - what drivers say about the health of their devices. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/row.h"
#include "base/visible.h"
#include "claim/state/claim_state.h"
#include "pb/pb.h"

#define CUT_MARK "..."

/* -- Messages ------------------------------------------------------------------------------- */

const char *dv_claim_health_name(enum dv_claim_health health)
{
    static const char *const names[] = {
        [DV_CLAIM_UNKNOWN] = "Unknown",
        [DV_CLAIM_HEALTHY] = "Healthy",
        [DV_CLAIM_UNHEALTHY] = "Unhealthy",
    };

    return names[health];
}

/* The end of the last whole UTF-8 character at or before `n`. */
static size_t char_end(dv_str text, size_t n)
{
    n = dv_size_min(n, text.n);
    while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static dv_str cut_text(dv_str text, struct dv_arena *arena)
{
    size_t n_kept = DV_CLAIM_HEALTH_TEXT_MAX - (sizeof(CUT_MARK) - 1);

    /* a longer text is cut below, before escapes are made of it */
    if (text.n <= DV_CLAIM_HEALTH_TEXT_MAX)
        text = dv_str_visible(text, arena);
    if (text.n <= DV_CLAIM_HEALTH_TEXT_MAX)
        return text;
    text = dv_str_visible(dv_str_slice(text, 0, char_end(text, n_kept)), arena);
    n_kept = char_end(text, n_kept);
    return dv_str_printf(arena, "%.*s" CUT_MARK, DV_FMT(dv_str_slice(text, 0, n_kept)));
}

static bool read_identifier(struct dv_pb_reader *reader, struct dv_claim_device_health *device,
                            struct dv_err *err)
{
    struct dv_pb_field field;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            !dv_pb_get_string(reader, &field, &device->pool, err))
            return false;
        if (field.tag == DV_PB_TAG(2, DV_PB_BYTES) &&
            !dv_pb_get_string(reader, &field, &device->device, err))
            return false;
    }
    return true;
}

static uint64_t timeout_of(uint64_t wire)
{
    int64_t seconds = (int64_t)wire;

    if (seconds <= 0)
        return DV_CLAIM_HEALTH_TIMEOUT_NS;
    if ((uint64_t)seconds > INT64_MAX / DV_NS_PER_S)
        return INT64_MAX;
    return (uint64_t)seconds * DV_NS_PER_S;
}

static bool read_device(struct dv_pb_reader *reader, struct dv_arena *arena,
                        struct dv_claim_device_health *device, struct dv_err *err)
{
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    *device = (struct dv_claim_device_health){.timeout_ns = DV_CLAIM_HEALTH_TIMEOUT_NS};
    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        switch (field.tag) {
        case DV_PB_TAG(1, DV_PB_BYTES):
            if (!dv_pb_enter(reader, &field, &inner, err) || !read_identifier(&inner, device, err))
                return dv_wrap(err, "device");
            break;
        case DV_PB_TAG(2, DV_PB_VARINT):
            device->health = field.value == DV_CLAIM_HEALTHY || field.value == DV_CLAIM_UNHEALTHY
                                 ? (enum dv_claim_health)field.value
                                 : DV_CLAIM_UNKNOWN;
            break;
        case DV_PB_TAG(4, DV_PB_VARINT):
            device->timeout_ns = timeout_of(field.value);
            break;
        case DV_PB_TAG(5, DV_PB_BYTES):
            if (!dv_pb_get_string(reader, &field, &device->message, err))
                return dv_wrap(err, "message");
            device->message = cut_text(device->message, arena);
            break;
        default: /* field 3 is when the driver looked; we count from when it told */
            break;
        }
    }
    if (!dv_str_is_visible(device->pool) || !dv_str_is_visible(device->device))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "device \"%.*s\" of pool \"%.*s\": a character cannot be seen",
                       DV_FMT(device->device), DV_FMT(device->pool));
    return true;
}

bool dv_claim_health_decode(dv_str message, struct dv_arena *arena,
                            struct dv_claim_device_health **devices, size_t *n_devices,
                            struct dv_err *err)
{
    DV_VEC(struct dv_claim_device_health) v = {0};
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, message);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(1, DV_PB_BYTES) &&
            (!dv_pb_enter(&reader, &field, &inner, err) ||
             !read_device(&inner, arena, dv_vec_add_in(&v, arena), err)))
            return dv_wrap(err, "devices[%zu]", v.n - 1);
    }
    *devices = v.v;
    *n_devices = v.n;
    return true;
}

/* -- The cache ------------------------------------------------------------------------------ */

static enum dv_claim_health health_of(dv_str text)
{
    for (enum dv_claim_health h = DV_CLAIM_HEALTHY; h <= DV_CLAIM_UNHEALTHY; h++)
        if (dv_str_eq(text, dv_str_from_c(dv_claim_health_name(h))))
            return h;
    return DV_CLAIM_UNKNOWN;
}

static struct dv_claim_health_driver *make_driver(struct dv_claim_state *state, dv_str name)
{
    struct dv_claim_health_driver *driver = dv_alloc(sizeof(*driver) + name.n + 1);
    char *text = driver->text;

    driver->name = dv_str_put(name, &text);
    driver->has_devices = true;
    dv_map_init(&driver->cells);
    (void)dv_map_set(&state->health, driver->name, driver);
    return driver;
}

struct dv_claim_health_driver *dv_claim_health_driver_add(struct dv_claim_state *state, dv_str name)
{
    struct dv_claim_health_driver *driver = dv_map_get(&state->health, name);

    return driver ? driver : make_driver(state, name);
}

static void free_cell(struct dv_claim_health_cell *cell)
{
    if (!cell)
        return;
    dv_link_remove(&cell->in_dirty);
    free(cell);
}

static void free_driver(struct dv_claim_health_driver *driver)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&driver->cells, &at)) != NULL;)
        free_cell(entry->value);
    dv_map_fini(&driver->cells);
    free(driver);
}

void dv_claim_health_fini(struct dv_claim_state *state)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&state->health, &at)) != NULL;)
        free_driver(entry->value);
}

void dv_claim_health_set(struct dv_claim_state *state, struct dv_claim_health_driver *driver,
                         const struct dv_claim_health_entry *from)
{
    size_t n_text = from->key.n + from->pool.n + from->device.n + from->health.n + from->message.n;
    struct dv_claim_health_cell *cell = dv_alloc(sizeof(*cell) + n_text + 1);
    char *at = cell->text;

    cell->driver = driver;
    cell->entry = *from;
    cell->entry.key = dv_str_put(from->key, &at);
    cell->entry.pool = dv_str_put(from->pool, &at);
    cell->entry.device = dv_str_put(from->device, &at);
    cell->entry.health = dv_str_put(from->health, &at);
    cell->entry.message = dv_str_put(from->message, &at);
    cell->is_seen = true;
    free_cell(dv_map_set(&driver->cells, cell->entry.key, cell));
    dv_list_push(&state->dirty_health, &cell->in_dirty);
}

static struct dv_rfc3339 time_of(uint64_t wall_ns)
{
    return (struct dv_rfc3339){.seconds = (int64_t)(wall_ns / DV_NS_PER_S),
                               .nanos = (int32_t)(wall_ns % DV_NS_PER_S)};
}

/* Whether the entry is too old. One from the future is too: after a clock was set back it would
 * never expire. */
static bool is_expired(const struct dv_claim_health_entry *entry, uint64_t now_ns)
{
    struct dv_rfc3339 now = time_of(now_ns);
    int64_t timeout_ns =
        entry->timeout_ns > 0 ? entry->timeout_ns : (int64_t)DV_CLAIM_HEALTH_TIMEOUT_NS;
    int64_t nanos = (int64_t)now.nanos - (int64_t)entry->updated.nanos;
    int64_t seconds;

    /* A file or a row may have any time, so the difference can overflow. */
    if (__builtin_sub_overflow(now.seconds, entry->updated.seconds, &seconds))
        return entry->updated.seconds < 0;
    if (seconds > INT64_MAX / (int64_t)DV_NS_PER_S - 1)
        return true;
    if (seconds < INT64_MIN / (int64_t)DV_NS_PER_S + UINT32_MAX / (int64_t)DV_NS_PER_S + 1)
        return false;
    return seconds * (int64_t)DV_NS_PER_S + nanos > timeout_ns;
}

static dv_str key_of(dv_str pool, dv_str device, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(pool), DV_FMT(device));
}

enum dv_claim_health dv_claim_health_get(const struct dv_claim_state *state, dv_str driver,
                                         dv_str pool, dv_str device, uint64_t now_wall_ns,
                                         dv_str *message)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_claim_health_driver *known = dv_map_get(&state->health, driver);
    const struct dv_claim_health_cell *cell =
        known ? dv_map_get(&known->cells, key_of(pool, device, arena)) : NULL;

    if (message)
        *message = DV_STR_NONE;
    if (!cell || is_expired(&cell->entry, now_wall_ns))
        return DV_CLAIM_UNKNOWN;
    if (message)
        *message = cell->entry.message;
    return health_of(cell->entry.health);
}

/* -- Changes -------------------------------------------------------------------------------- */

/* The devices of a driver whose health has changed; an empty list means all. */
struct changed {
    dv_str driver;
    struct dv_map keys;
    struct dv_arena *arena;
};

static bool has_changed(const struct changed *changed, const struct dv_claim *claim)
{
    size_t i = dv_claim_driver_index(&claim->record, changed->driver);

    if (i == claim->record.n_drivers)
        return false;
    for (size_t k = 0; k < claim->record.drivers[i].n_devices; k++) {
        const struct dv_claim_device *device = &claim->record.drivers[i].devices[k];

        if (dv_map_get(&changed->keys, key_of(device->pool, device->name, changed->arena)))
            return true;
    }
    return false;
}

/* Finds the pods that hold changed devices, each once. */
static void find_pods(const struct dv_claim_state *state, const struct changed *changed,
                      struct dv_claim_health_diff *diff)
{
    DV_VEC(dv_str) pods = {0};
    const struct dv_claim *claim;
    struct dv_map seen;

    dv_map_init(&seen);
    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;) {
        if (!has_changed(changed, claim))
            continue;
        for (size_t i = 0; i < claim->record.n_pods; i++)
            if (!dv_map_set(&seen, claim->record.pods[i], &seen))
                *dv_vec_add_in(&pods, changed->arena) = claim->record.pods[i];
    }
    dv_map_fini(&seen);
    diff->pods = pods.v;
    diff->n_pods = pods.n;
}

static void apply_one(struct dv_claim_state *state, struct dv_claim_health_driver *driver,
                      const struct dv_claim_device_health *device, uint64_t now_ns,
                      struct changed *changed, struct dv_claim_health_diff *diff)
{
    dv_str key = key_of(device->pool, device->device, changed->arena);
    struct dv_claim_health_cell *cell = dv_map_get(&driver->cells, key);
    struct dv_claim_health_entry entry = {
        .key = key,
        .pool = device->pool,
        .device = device->device,
        .health = dv_str_from_c(dv_claim_health_name(device->health)),
        .updated = time_of(now_ns),
        .timeout_ns = (int64_t)dv_u64_min(device->timeout_ns, INT64_MAX),
        .message = device->message,
    };

    if (cell && dv_str_eq(cell->entry.health, entry.health) &&
        dv_str_eq(cell->entry.message, entry.message) &&
        cell->entry.timeout_ns == entry.timeout_ns) {
        cell->entry.updated = entry.updated;
        cell->is_seen = true;
        return;
    }
    if (key.n > DV_CLAIM_HEALTH_NAME_MAX ||
        (!cell && driver->cells.n >= DV_CLAIM_HEALTH_DEVICES_MAX)) {
        diff->n_ignored++;
        return;
    }
    dv_claim_health_set(state, driver, &entry);
    diff->n_changes++;
    (void)dv_map_set(&changed->keys, key, changed);
}

static void remove_cell(struct dv_claim_state *state, struct dv_claim_health_driver *driver,
                        struct dv_claim_health_cell *cell)
{
    struct dv_claim_gone *gone = dv_vec_add(&state->gone);

    dv_buf_init(&gone->key, DV_ROW_BYTES_MAX);
    dv_claim_health_key_encode(driver->name, cell->entry.key, &gone->key);
    (void)dv_map_remove(&driver->cells, cell->entry.key);
    free_cell(cell);
}

/* Forgets the devices that the driver has not named for too long. */
static void drop_expired(struct dv_claim_state *state, struct dv_claim_health_driver *driver,
                         uint64_t now_ns, struct changed *changed,
                         struct dv_claim_health_diff *diff)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&driver->cells, &at)) != NULL;) {
        struct dv_claim_health_cell *cell = entry->value;

        if (cell->is_seen || !is_expired(&cell->entry, now_ns))
            continue;
        if (health_of(cell->entry.health) != DV_CLAIM_UNKNOWN) {
            diff->n_changes++;
            (void)dv_map_set(&changed->keys, dv_str_copy(cell->entry.key, changed->arena), changed);
        }
        remove_cell(state, driver, cell);
    }
}

void dv_claim_health_apply(struct dv_claim_state *state, dv_str name,
                           const struct dv_claim_device_health *devices, size_t n_devices,
                           uint64_t now_wall_ns, struct dv_arena *arena,
                           struct dv_claim_health_diff *diff)
{
    struct dv_claim_health_driver *driver = dv_claim_health_driver_add(state, name);
    struct changed changed = {.driver = name, .arena = arena};
    const struct dv_map_entry *entry;

    *diff = (struct dv_claim_health_diff){0};
    dv_map_init(&changed.keys);
    driver->has_devices = true;
    for (size_t at = 0; (entry = dv_map_next(&driver->cells, &at)) != NULL;)
        ((struct dv_claim_health_cell *)entry->value)->is_seen = false;
    for (size_t i = 0; i < n_devices; i++)
        apply_one(state, driver, &devices[i], now_wall_ns, &changed, diff);
    drop_expired(state, driver, now_wall_ns, &changed, diff);
    if (diff->n_changes > 0)
        find_pods(state, &changed, diff);
    dv_map_fini(&changed.keys);
}

void dv_claim_health_clear(struct dv_claim_state *state, dv_str name, struct dv_arena *arena,
                           struct dv_claim_health_diff *diff)
{
    struct dv_claim_health_driver *driver = dv_map_get(&state->health, name);
    struct changed changed = {.driver = name, .arena = arena};
    const struct dv_map_entry *entry;
    struct dv_claim_gone *gone;

    *diff = (struct dv_claim_health_diff){0};
    if (!driver)
        return;
    dv_map_init(&changed.keys);
    for (size_t at = 0; (entry = dv_map_next(&driver->cells, &at)) != NULL;) {
        const struct dv_claim_health_cell *cell = entry->value;

        if (health_of(cell->entry.health) == DV_CLAIM_UNKNOWN)
            continue;
        diff->n_changes++;
        (void)dv_map_set(&changed.keys, cell->entry.key, &changed);
    }
    if (diff->n_changes > 0)
        find_pods(state, &changed, diff);
    dv_map_fini(&changed.keys);
    gone = dv_vec_add(&state->gone);
    gone->is_prefix = true;
    dv_buf_init(&gone->key, DV_ROW_BYTES_MAX);
    dv_claim_health_key_encode(driver->name, DV_STR_NONE, &gone->key);
    (void)dv_map_remove(&state->health, driver->name);
    free_driver(driver);
}
