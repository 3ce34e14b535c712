/* claim_codec.c - the state as keys and values of a store.
 *
 *     key    'c' namespace name            a claim (base/key.h)
 *            'h' driver pool/device    the health of a device
 *     value  version, then protobuf, with the fields below */
#include "claim/state/claim_state.h"

#include "base/arena.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/key.h"
#include "base/row.h"
#include "pb/pb.h"

#define KIND_CLAIM 'c'
#define KIND_HEALTH 'h'
#define VERSION '\x01'
/* The years 0 to 9999, and a day more on both sides for offsets. */
#define HEALTH_SECONDS_MIN (DV_RFC3339_SECONDS_MIN - DV_DAY_SECONDS)
#define HEALTH_SECONDS_MAX (DV_RFC3339_SECONDS_MAX + DV_DAY_SECONDS)
#define NS_PER_S 1000000000
#define DAY_MINUTES (24 * 60)

enum {
    CLAIM_UID = 1,
    CLAIM_PHASE = 2,
    CLAIM_BOOT = 3,
    CLAIM_POD = 4,
    CLAIM_DRIVER = 5,
    DRIVER_NAME = 1,
    DRIVER_DEVICE = 2,
    DRIVER_HAS_DEVICES = 3, /* the list is there, perhaps empty; without this it is null */
    DRIVER_HANDLE = 4,
    DEVICE_POOL = 1,
    DEVICE_NAME = 2,
    DEVICE_SHARE = 3,
    DEVICE_REQUEST = 4,
    DEVICE_CDI = 5,
    DEVICE_HAS_REQUESTS = 6,
    DEVICE_HAS_CDI = 7,
    HEALTH_POOL = 1,
    HEALTH_DEVICE = 2,
    HEALTH_HEALTH = 3,
    HEALTH_SECONDS = 4,
    HEALTH_NANOS = 5,
    HEALTH_OFFSET = 6,
    HEALTH_TIMEOUT = 7,
    HEALTH_MESSAGE = 8,
};

/* -- Encoding ------------------------------------------------------------------------------- */

void dv_claim_key_encode(dv_str namespace, dv_str name, struct dv_buf *key)
{
    dv_buf_add_char(key, KIND_CLAIM);
    dv_key_add(key, namespace);
    dv_key_add(key, name);
}

/* The key of a device's health. Without a device it is the prefix of all keys of the driver. */
void dv_claim_health_key_encode(dv_str driver, dv_str device, struct dv_buf *key)
{
    dv_buf_add_char(key, KIND_HEALTH);
    dv_key_add(key, driver);
    if (device.p)
        dv_key_add(key, device);
}

static void add_device(struct dv_buf *buf, const struct dv_claim_device *device)
{
    size_t mark = dv_pb_begin(buf, DRIVER_DEVICE);

    dv_pb_add_bytes(buf, DEVICE_POOL, device->pool);
    dv_pb_add_bytes(buf, DEVICE_NAME, device->name);
    if (device->share_id.p)
        dv_pb_add_bytes(buf, DEVICE_SHARE, device->share_id);
    dv_pb_add_texts(buf, DEVICE_REQUEST, device->requests, device->n_requests);
    dv_pb_add_texts(buf, DEVICE_CDI, device->cdi_ids, device->n_cdi_ids);
    if (device->requests)
        dv_pb_add_number(buf, DEVICE_HAS_REQUESTS, 1);
    if (device->cdi_ids)
        dv_pb_add_number(buf, DEVICE_HAS_CDI, 1);
    dv_pb_end(buf, mark);
}

static void add_driver(struct dv_buf *buf, const struct dv_claim_driver *driver)
{
    size_t mark = dv_pb_begin(buf, CLAIM_DRIVER);

    dv_pb_add_bytes(buf, DRIVER_NAME, driver->name);
    for (size_t i = 0; i < driver->n_devices; i++)
        add_device(buf, &driver->devices[i]);
    if (driver->devices)
        dv_pb_add_number(buf, DRIVER_HAS_DEVICES, 1);
    if (driver->handle.n > 0)
        dv_pb_add_bytes(buf, DRIVER_HANDLE, driver->handle);
    dv_pb_end(buf, mark);
}

void dv_claim_record_encode(const struct dv_claim_record *record, struct dv_buf *key,
                            struct dv_buf *value)
{
    enum dv_claim_phase phase = record->phase;

    if (phase == DV_CLAIM_WANTED)
        phase = DV_CLAIM_PREPARING; /* it is PREPARING once this row is on the disk */
    dv_claim_key_encode(record->namespace, record->name, key);
    dv_buf_add_char(value, VERSION);
    dv_pb_add_bytes(value, CLAIM_UID, record->uid);
    dv_pb_add_number(value, CLAIM_PHASE, phase);
    dv_pb_add_bytes(value, CLAIM_BOOT, record->boot_id);
    dv_pb_add_texts(value, CLAIM_POD, record->pods, record->n_pods);
    for (size_t i = 0; i < record->n_drivers; i++)
        add_driver(value, &record->drivers[i]);
}

static void encode_health(const struct dv_claim_health_cell *cell, struct dv_buf *key,
                          struct dv_buf *value)
{
    const struct dv_claim_health_entry *entry = &cell->entry;

    dv_claim_health_key_encode(cell->driver->name, entry->key, key);
    dv_buf_add_char(value, VERSION);
    dv_pb_add_bytes(value, HEALTH_POOL, entry->pool);
    dv_pb_add_bytes(value, HEALTH_DEVICE, entry->device);
    dv_pb_add_bytes(value, HEALTH_HEALTH, entry->health);
    dv_pb_add_number(value, HEALTH_SECONDS, (uint64_t)entry->updated.seconds);
    dv_pb_add_number(value, HEALTH_NANOS, (uint64_t)entry->updated.nanos);
    dv_pb_add_number(value, HEALTH_OFFSET, (uint64_t)(int64_t)entry->updated.offset_minutes);
    dv_pb_add_number(value, HEALTH_TIMEOUT, (uint64_t)entry->timeout_ns);
    dv_pb_add_bytes(value, HEALTH_MESSAGE, entry->message);
}

/* -- Decoding ------------------------------------------------------------------------------- */

static bool fail_damaged(struct dv_err *err, const char *what)
{
    return dv_fail(err, DV_DATA_LOSS, "saved claim: %s", what);
}

/* Takes one text off the front of the key. */
static bool take_text(dv_str *key, struct dv_arena *arena, dv_str *text, struct dv_err *err)
{
    return dv_key_take(key, arena, text) || fail_damaged(err, "the key is cut off");
}

static bool take_two(dv_str key, struct dv_arena *arena, dv_str *first, dv_str *second,
                     struct dv_err *err)
{
    key = dv_str_slice(key, 1, key.n);
    if (!take_text(&key, arena, first, err) || !take_text(&key, arena, second, err))
        return false;
    return key.n == 0 || fail_damaged(err, "the key goes on after its end");
}

static bool check_version(dv_str *value, struct dv_err *err)
{
    if (value->n == 0)
        return fail_damaged(err, "the value is empty");
    if (value->p[0] != VERSION)
        return dv_fail(err, DV_UNIMPLEMENTED, "saved claim: of version %u, known is %u",
                       (unsigned char)value->p[0], (unsigned)VERSION);
    *value = dv_str_slice(*value, 1, value->n);
    return true;
}

/* The text as one that is present, even if empty. */
static dv_str present(dv_str text)
{
    return text.p ? text : DV_STR("");
}

static bool read_device(struct dv_pb_reader *reader, struct dv_arena *arena,
                        struct dv_claim_device *device, struct dv_err *err)
{
    DV_VEC(dv_str) requests = {0};
    DV_VEC(dv_str) cdi_ids = {0};
    struct dv_pb_field field;
    bool has_requests = false;
    bool has_cdi_ids = false;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        switch (field.tag) {
        case DV_PB_TAG(DEVICE_POOL, DV_PB_BYTES):
            device->pool = field.bytes;
            break;
        case DV_PB_TAG(DEVICE_NAME, DV_PB_BYTES):
            device->name = field.bytes;
            break;
        case DV_PB_TAG(DEVICE_SHARE, DV_PB_BYTES):
            device->share_id = present(field.bytes);
            break;
        case DV_PB_TAG(DEVICE_REQUEST, DV_PB_BYTES):
            *dv_vec_add_in(&requests, arena) = field.bytes;
            break;
        case DV_PB_TAG(DEVICE_CDI, DV_PB_BYTES):
            *dv_vec_add_in(&cdi_ids, arena) = field.bytes;
            break;
        case DV_PB_TAG(DEVICE_HAS_REQUESTS, DV_PB_VARINT):
            has_requests = true;
            break;
        case DV_PB_TAG(DEVICE_HAS_CDI, DV_PB_VARINT):
            has_cdi_ids = true;
            break;
        default:
            break;
        }
    }
    device->n_requests = requests.n;
    device->requests =
        requests.n == 0 && has_requests ? DV_NEW_ARRAY(arena, dv_str, 0) : requests.v;
    device->n_cdi_ids = cdi_ids.n;
    device->cdi_ids = cdi_ids.n == 0 && has_cdi_ids ? DV_NEW_ARRAY(arena, dv_str, 0) : cdi_ids.v;
    return true;
}

static bool read_driver(struct dv_pb_reader *reader, struct dv_arena *arena,
                        struct dv_claim_driver *driver, struct dv_err *err)
{
    DV_VEC(struct dv_claim_device) devices = {0};
    struct dv_pb_reader inner;
    struct dv_pb_field field;
    bool has_devices = false;

    while (!dv_pb_is_at_end(reader)) {
        if (!dv_pb_read(reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(DRIVER_NAME, DV_PB_BYTES))
            driver->name = field.bytes;
        else if (field.tag == DV_PB_TAG(DRIVER_HANDLE, DV_PB_BYTES))
            driver->handle = field.bytes;
        else if (field.tag == DV_PB_TAG(DRIVER_HAS_DEVICES, DV_PB_VARINT))
            has_devices = true;
        else if (field.tag == DV_PB_TAG(DRIVER_DEVICE, DV_PB_BYTES) &&
                 (!dv_pb_enter(reader, &field, &inner, err) ||
                  !read_device(&inner, arena, dv_vec_add_in(&devices, arena), err)))
            return false;
    }
    driver->n_devices = devices.n;
    driver->devices =
        devices.n == 0 && has_devices ? DV_NEW_ARRAY(arena, struct dv_claim_device, 0) : devices.v;
    return true;
}

static bool read_phase(uint64_t value, enum dv_claim_phase *phase, struct dv_err *err)
{
    if (value != DV_CLAIM_PREPARING && value != DV_CLAIM_PREPARED && value != DV_CLAIM_UNPREPARING)
        return fail_damaged(err, "in a phase that there is not");
    *phase = (enum dv_claim_phase)value;
    return true;
}

static bool read_value(dv_str value, struct dv_arena *arena, struct dv_claim_record *record,
                       struct dv_err *err)
{
    DV_VEC(dv_str) pods = {0};
    DV_VEC(struct dv_claim_driver) drivers = {0};
    struct dv_pb_reader reader;
    struct dv_pb_reader inner;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, value);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag == DV_PB_TAG(CLAIM_UID, DV_PB_BYTES))
            record->uid = field.bytes;
        else if (field.tag == DV_PB_TAG(CLAIM_BOOT, DV_PB_BYTES))
            record->boot_id = field.bytes;
        else if (field.tag == DV_PB_TAG(CLAIM_POD, DV_PB_BYTES))
            *dv_vec_add_in(&pods, arena) = field.bytes;
        else if ((field.tag == DV_PB_TAG(CLAIM_PHASE, DV_PB_VARINT) &&
                  !read_phase(field.value, &record->phase, err)) ||
                 (field.tag == DV_PB_TAG(CLAIM_DRIVER, DV_PB_BYTES) &&
                  (!dv_pb_enter(&reader, &field, &inner, err) ||
                   !read_driver(&inner, arena, dv_vec_add_in(&drivers, arena), err))))
            return false;
    }
    record->pods = pods.v;
    record->n_pods = pods.n;
    record->drivers = drivers.v;
    record->n_drivers = drivers.n;
    return true;
}

bool dv_claim_record_decode(dv_str key, dv_str value, struct dv_arena *arena,
                            struct dv_claim_record *record, struct dv_err *err)
{
    struct dv_claim_record read = {.phase = DV_CLAIM_PREPARING};

    if (key.n == 0 || key.p[0] != KIND_CLAIM)
        return fail_damaged(err, "of another kind");
    if (!take_two(key, arena, &read.namespace, &read.name, err) || !check_version(&value, err))
        return false;
    if (!read_value(value, arena, &read, err)) {
        err->code = DV_DATA_LOSS;
        return dv_wrap(err, "saved claim %.*s/%.*s", DV_FMT(read.namespace), DV_FMT(read.name));
    }
    *record = read;
    return true;
}

static void read_health_field(const struct dv_pb_field *field, struct dv_claim_health_entry *entry)
{
    switch (field->tag) {
    case DV_PB_TAG(HEALTH_POOL, DV_PB_BYTES):
        entry->pool = field->bytes;
        break;
    case DV_PB_TAG(HEALTH_DEVICE, DV_PB_BYTES):
        entry->device = field->bytes;
        break;
    case DV_PB_TAG(HEALTH_HEALTH, DV_PB_BYTES):
        entry->health = field->bytes;
        break;
    case DV_PB_TAG(HEALTH_SECONDS, DV_PB_VARINT):
        entry->updated.seconds = (int64_t)field->value;
        break;
    case DV_PB_TAG(HEALTH_NANOS, DV_PB_VARINT):
        entry->updated.nanos = (int32_t)field->value;
        break;
    case DV_PB_TAG(HEALTH_OFFSET, DV_PB_VARINT):
        entry->updated.offset_minutes = (int32_t)(int64_t)field->value;
        break;
    case DV_PB_TAG(HEALTH_TIMEOUT, DV_PB_VARINT):
        entry->timeout_ns = (int64_t)field->value;
        break;
    case DV_PB_TAG(HEALTH_MESSAGE, DV_PB_BYTES):
        entry->message = field->bytes;
        break;
    default:
        break;
    }
}

/* Whether a file of the kubelet can have this time: its year has four digits, at any offset. */
static bool is_time(const struct dv_rfc3339 *time)
{
    return time->seconds >= HEALTH_SECONDS_MIN && time->seconds <= HEALTH_SECONDS_MAX &&
           time->nanos >= 0 && time->nanos < NS_PER_S && time->offset_minutes > -DAY_MINUTES &&
           time->offset_minutes < DAY_MINUTES;
}

static bool load_health(struct dv_claim_state *state, dv_str key, dv_str value,
                        struct dv_arena *arena, struct dv_err *err)
{
    struct dv_claim_health_entry entry = {0};
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    dv_str driver = DV_STR_NONE;

    if (!take_two(key, arena, &driver, &entry.key, err) || !check_version(&value, err))
        return false;
    dv_pb_reader_init(&reader, value);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err)) {
            err->code = DV_DATA_LOSS;
            return dv_wrap(err, "saved health of %.*s", DV_FMT(driver));
        }
        read_health_field(&field, &entry);
    }
    if (!is_time(&entry.updated))
        return dv_fail(err, DV_DATA_LOSS, "saved health of %.*s: %lld s is no time", DV_FMT(driver),
                       (long long)entry.updated.seconds);
    dv_claim_health_set(state, dv_claim_health_driver_add(state, driver), &entry);
    return true;
}

bool dv_claim_load(struct dv_claim_state *state, dv_str key, dv_str value, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_record record;

    if (key.n > 0 && key.p[0] == KIND_HEALTH) {
        if (!load_health(state, key, value, arena, err))
            return false;
    } else {
        if (!dv_claim_record_decode(key, value, arena, &record, err))
            return false;
        (void)dv_claim_restore(state, &record);
    }
    while (dv_list_shift(&state->dirty) || dv_list_shift(&state->dirty_health))
        continue; /* it is written from the state as it is */
    return true;
}

/* -- What changed --------------------------------------------------------------------------- */

size_t dv_claim_take_changes(struct dv_claim_state *state, struct dv_arena *arena,
                             const struct dv_row_change **taken)
{
    struct dv_row_changes changes;
    struct dv_link *link;

    dv_row_changes_init(&changes, arena);
    /* deletions come first, as a new record may have the same key */
    for (size_t i = 0; i < state->gone.n; i++) {
        dv_row_changes_remove(&changes, dv_buf_str(&state->gone.v[i].key),
                              state->gone.v[i].is_prefix);
        dv_buf_fini(&state->gone.v[i].key);
    }
    dv_vec_clear(&state->gone);
    while ((link = dv_list_shift(&state->dirty)) != NULL) {
        const struct dv_claim_entry *entry = DV_CONTAINER(link, struct dv_claim_entry, in_dirty);

        dv_claim_record_encode(&entry->claim.record, &changes.key, &changes.value);
        dv_row_changes_add(&changes);
    }
    while ((link = dv_list_shift(&state->dirty_health)) != NULL) {
        encode_health(DV_CONTAINER(link, struct dv_claim_health_cell, in_dirty), &changes.key,
                      &changes.value);
        dv_row_changes_add(&changes);
    }
    return dv_row_changes_take(&changes, taken);
}

void dv_claim_rewrite(struct dv_claim_state *state)
{
    const struct dv_map_entry *entry;
    const struct dv_map_entry *inner;

    for (size_t at = 0; (entry = dv_map_next(&state->claims, &at)) != NULL;)
        dv_claim_mark_dirty(state, entry->value);
    for (size_t at = 0; (entry = dv_map_next(&state->health, &at)) != NULL;) {
        const struct dv_claim_health_driver *driver = entry->value;

        for (size_t k = 0; (inner = dv_map_next(&driver->cells, &k)) != NULL;) {
            struct dv_claim_health_cell *cell = inner->value;

            if (!dv_link_is_in(&cell->in_dirty))
                dv_list_push(&state->dirty_health, &cell->in_dirty);
        }
    }
}
