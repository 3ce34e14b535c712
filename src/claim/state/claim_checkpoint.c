/* claim_checkpoint.c - the kubelet's dra_manager_state: read, written, taken from a state and put
 * into one. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "claim/state/claim_file.h"
#include "claim/state/claim_state.h"
#include "json/json.h"

/* The length of a checkpoint without claims. */
#define EMPTY_BYTES_MAX 1024u
/* The length of namespace and name together. The API allows 63 and 253 bytes, and a key of the
 * store has room for this. */
#define CLAIM_NAME_MAX 512u

static const struct dv_json_style go_style = {.escape_html = true};

/* -- Writing -------------------------------------------------------------------------------- */

static void set(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

static struct dv_json *text_or_null(dv_str text, struct dv_arena *arena)
{
    return text.p ? dv_json_new_str(text, arena) : dv_json_new_null(arena);
}

static struct dv_json *device_to_json(const struct dv_claim_device *device, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    set(object, "PoolName", dv_json_new_str(device->pool, arena), arena);
    set(object, "DeviceName", dv_json_new_str(device->name, arena), arena);
    set(object, "ShareID", text_or_null(device->share_id, arena), arena);
    set(object, "RequestNames",
        dv_json_new_strs_or_null(device->requests, device->n_requests, arena), arena);
    set(object, "CDIDeviceIDs", dv_json_new_strs_or_null(device->cdi_ids, device->n_cdi_ids, arena),
        arena);
    return object;
}

static struct dv_json *driver_to_json(const struct dv_claim_driver *driver, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *devices = driver->devices ? dv_json_new_array(arena) : dv_json_new_null(arena);

    for (size_t i = 0; driver->devices && i < driver->n_devices; i++)
        dv_json_append(devices, device_to_json(&driver->devices[i], arena));
    set(object, "Devices", devices, arena);
    return object;
}

static struct dv_json *record_to_json(const struct dv_claim_record *record, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *pods = record->pods ? dv_json_new_object(arena) : dv_json_new_null(arena);
    struct dv_json *drivers = record->drivers ? dv_json_new_object(arena) : dv_json_new_null(arena);

    for (size_t i = 0; record->pods && i < record->n_pods; i++)
        dv_json_set(pods, record->pods[i], dv_json_new_object(arena), arena);
    for (size_t i = 0; record->drivers && i < record->n_drivers; i++)
        dv_json_set(drivers, record->drivers[i].name, driver_to_json(&record->drivers[i], arena),
                    arena);
    set(object, "ClaimUID", dv_json_new_str(record->uid, arena), arena);
    set(object, "ClaimName", dv_json_new_str(record->name, arena), arena);
    set(object, "Namespace", dv_json_new_str(record->namespace, arena), arena);
    set(object, "PodUIDs", pods, arena);
    set(object, "DriverState", drivers, arena);
    return object;
}

void dv_claim_checkpoint_text(const struct dv_claim_checkpoint *checkpoint, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *list = checkpoint->records ? dv_json_new_array(arena) : dv_json_new_null(arena);

    for (size_t i = 0; checkpoint->records && i < checkpoint->n_records; i++)
        dv_json_append(list, record_to_json(&checkpoint->records[i], arena));
    set(object, "kind", dv_json_new_str(DV_STR("DRACheckpoint"), arena), arena);
    set(object, "apiVersion", dv_json_new_str(DV_STR("checkpoint.dra.kubelet.k8s.io/v1"), arena),
        arena);
    set(object, "ClaimInfoStateList", list, arena);
    dv_json_print(object, &go_style, buf);
}

/* CRC-32 as in zip, bit by bit without a table: the file is read once and written on demand. */
uint32_t dv_claim_checkpoint_sum(dv_str text)
{
    uint32_t sum = UINT32_MAX;

    for (size_t i = 0; i < text.n; i++) {
        sum ^= (unsigned char)text.p[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (UINT32_C(0xedb88320) & (UINT32_C(0) - (sum & 1)));
    }
    return ~sum;
}

void dv_claim_checkpoint_encode(const struct dv_claim_checkpoint *checkpoint, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_json *file = dv_json_new_object(arena);

    dv_buf_init(&text, buf->max);
    dv_claim_checkpoint_text(checkpoint, &text);
    buf->is_over |= text.is_over; /* the caller who asked for the file sees that it is incomplete */
    set(file, "Data", dv_json_new_str(dv_buf_str(&text), arena), arena);
    set(file, "Checksum", dv_json_new_u64(dv_claim_checkpoint_sum(dv_buf_str(&text)), arena),
        arena);
    dv_json_print(file, &go_style, buf);
}

/* -- Reading -------------------------------------------------------------------------------- */

/* Go decodes onto what is there. When a list comes again, under a key in another case, its elements
 * are changed and not made anew. */
struct texts {
    DV_VEC(dv_str) v;
    bool is_there;
};

struct device {
    struct dv_claim_device device;
    struct texts requests;
    struct texts cdi_ids;
};

struct driver {
    dv_str name;
    DV_VEC(struct device) devices;
    size_t n_devices; /* elements of an earlier, longer list may be behind these */
    bool has_devices;
};

struct claim {
    struct dv_claim_record record;
    DV_VEC(dv_str) pods;
    DV_VEC(struct driver) drivers;
    bool has_pods;
    bool has_drivers;
};

struct list {
    DV_VEC(struct claim) claims;
    size_t n_claims;
    bool is_there;
};

static void read_texts(struct dv_claim_file *file, const struct dv_json *node, struct texts *texts)
{
    size_t n = 0;

    if (!dv_claim_file_array(file, node)) {
        *texts = (struct texts){0};
        return;
    }
    texts->is_there = true;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        if (n == texts->v.n)
            *dv_vec_add_in(&texts->v, file->arena) = DV_STR("");
        /* null leaves the element as it is */
        (void)dv_claim_file_text(file, item, &texts->v.v[n++]);
    }
    texts->v.n = n;
}

static void read_device(struct dv_claim_file *file, const struct dv_json *node,
                        struct device *device)
{
    if (!dv_claim_file_object(file, node))
        return;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        dv_str key = dv_json_key(item);

        if (dv_json_is_go_field(key, "PoolName"))
            (void)dv_claim_file_text(file, item, &device->device.pool);
        else if (dv_json_is_go_field(key, "DeviceName"))
            (void)dv_claim_file_text(file, item, &device->device.name);
        else if (dv_json_is_go_field(key, "RequestNames"))
            read_texts(file, item, &device->requests);
        else if (dv_json_is_go_field(key, "CDIDeviceIDs"))
            read_texts(file, item, &device->cdi_ids);
        else if (dv_json_is_go_field(key, "ShareID") &&
                 !dv_claim_file_text(file, item, &device->device.share_id))
            device->device.share_id = DV_STR_NONE;
    }
}

static void read_devices(struct dv_claim_file *file, const struct dv_json *node,
                         struct driver *driver)
{
    size_t n = 0;

    driver->has_devices = dv_claim_file_array(file, node);
    for (const struct dv_json *item = driver->has_devices ? dv_json_first(node) : NULL; item;
         item = dv_json_next(item)) {
        if (n == driver->devices.n)
            (void)dv_vec_add_in(&driver->devices, file->arena); /* it is filled next */
        read_device(file, item, &driver->devices.v[n++]);
    }
    driver->n_devices = n;
}

static struct driver *driver_of(struct dv_claim_file *file, struct claim *claim, dv_str name)
{
    for (size_t i = 0; i < claim->drivers.n; i++)
        if (dv_str_eq(claim->drivers.v[i].name, name))
            return &claim->drivers.v[i];
    return dv_vec_add_in(&claim->drivers, file->arena);
}

static void read_drivers(struct dv_claim_file *file, const struct dv_json *node,
                         struct claim *claim)
{
    if (!dv_claim_file_object(file, node)) {
        claim->has_drivers = false;
        dv_vec_clear(&claim->drivers);
        return;
    }
    claim->has_drivers = true;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        struct driver driver = {.name = dv_json_key(item)}; /* Go makes the values of a map anew */

        if (dv_claim_file_object(file, item))
            for (const struct dv_json *part = dv_json_first(item); part; part = dv_json_next(part))
                if (dv_json_is_go_field(dv_json_key(part), "Devices"))
                    read_devices(file, part, &driver);
        *driver_of(file, claim, driver.name) = driver;
    }
}

static bool has_text(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text))
            return true;
    return false;
}

static void read_pods(struct dv_claim_file *file, const struct dv_json *node, struct claim *claim)
{
    if (!dv_claim_file_object(file, node)) {
        claim->has_pods = false;
        dv_vec_clear(&claim->pods);
        return;
    }
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        (void)dv_claim_file_object(file, item);
        if (!claim->has_pods || !has_text(claim->pods.v, claim->pods.n, dv_json_key(item)))
            *dv_vec_add_in(&claim->pods, file->arena) = dv_json_key(item);
    }
    claim->has_pods = true;
}

static void read_claim(struct dv_claim_file *file, const struct dv_json *node, struct claim *claim)
{
    if (!dv_claim_file_object(file, node))
        return;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        dv_str key = dv_json_key(item);

        if (dv_json_is_go_field(key, "ClaimUID"))
            (void)dv_claim_file_text(file, item, &claim->record.uid);
        else if (dv_json_is_go_field(key, "ClaimName"))
            (void)dv_claim_file_text(file, item, &claim->record.name);
        else if (dv_json_is_go_field(key, "Namespace"))
            (void)dv_claim_file_text(file, item, &claim->record.namespace);
        else if (dv_json_is_go_field(key, "PodUIDs"))
            read_pods(file, item, claim);
        else if (dv_json_is_go_field(key, "DriverState"))
            read_drivers(file, item, claim);
    }
}

static void read_list(struct dv_claim_file *file, const struct dv_json *node, struct list *list)
{
    size_t n = 0;

    list->is_there = dv_claim_file_array(file, node);
    for (const struct dv_json *item = list->is_there ? dv_json_first(node) : NULL; item;
         item = dv_json_next(item)) {
        if (n == list->claims.n)
            (void)dv_vec_add_in(&list->claims, file->arena); /* it is filled next */
        read_claim(file, item, &list->claims.v[n++]);
    }
    list->n_claims = n;
}

static void read_data(struct dv_claim_file *file, const struct dv_json *node, struct list *list)
{
    dv_str ignored;

    if (!dv_claim_file_object(file, node))
        return;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        dv_str key = dv_json_key(item);

        if (dv_json_is_go_field(key, "kind") || dv_json_is_go_field(key, "apiVersion"))
            (void)dv_claim_file_text(file, item, &ignored);
        else if (dv_json_is_go_field(key, "ClaimInfoStateList"))
            read_list(file, item, list);
    }
}

/* -- The outcome of reading ----------------------------------------------------------------- */

/* The list for the record: Go tells an empty list from null, so this is never NULL. */
static const dv_str *take_texts(struct dv_claim_file *file, const struct texts *texts)
{
    if (!texts->is_there)
        return NULL;
    return texts->v.v ? texts->v.v : DV_NEW_ARRAY(file->arena, dv_str, 0);
}

static struct dv_claim_driver take_driver(struct dv_claim_file *file, const struct driver *from)
{
    struct dv_claim_device *devices =
        DV_NEW_ARRAY(file->arena, struct dv_claim_device, from->n_devices);

    for (size_t i = 0; i < from->n_devices; i++) {
        const struct device *device = &from->devices.v[i];

        devices[i] = device->device;
        devices[i].requests = take_texts(file, &device->requests);
        devices[i].n_requests = device->requests.is_there ? device->requests.v.n : 0;
        devices[i].cdi_ids = take_texts(file, &device->cdi_ids);
        devices[i].n_cdi_ids = device->cdi_ids.is_there ? device->cdi_ids.v.n : 0;
    }
    return (struct dv_claim_driver){
        .name = from->name,
        .devices = from->has_devices ? devices : NULL,
        .n_devices = from->n_devices,
    };
}

static struct dv_claim_record take_record(struct dv_claim_file *file, struct claim *claim)
{
    struct dv_claim_record record = claim->record;
    struct dv_claim_driver *drivers =
        DV_NEW_ARRAY(file->arena, struct dv_claim_driver, claim->drivers.n);

    for (size_t i = 0; i < claim->drivers.n; i++)
        drivers[i] = take_driver(file, &claim->drivers.v[i]);
    if (claim->drivers.n > 0)
        qsort(drivers, claim->drivers.n, sizeof(drivers[0]), dv_str_compare);
    if (claim->pods.n > 0)
        qsort(claim->pods.v, claim->pods.n, sizeof(claim->pods.v[0]), dv_str_compare);
    record.drivers = claim->has_drivers ? drivers : NULL;
    record.n_drivers = claim->drivers.n;
    if (claim->has_pods)
        record.pods = claim->pods.v ? claim->pods.v : DV_NEW_ARRAY(file->arena, dv_str, 0);
    record.n_pods = claim->pods.n;
    record.phase = DV_CLAIM_PREPARING;
    return record;
}

static enum dv_claim_verdict decode_data(struct dv_claim_file *file, dv_str data,
                                         struct dv_claim_checkpoint *checkpoint)
{
    const struct dv_json *node = dv_claim_file_parse(file, data);
    struct list list = {0};
    struct dv_claim_record *records;

    if (node)
        read_data(file, node, &list);
    if (file->verdict != DV_CLAIM_FILE_OK)
        return file->verdict;
    records = DV_NEW_ARRAY(file->arena, struct dv_claim_record, list.n_claims);
    for (size_t i = 0; i < list.n_claims; i++)
        records[i] = take_record(file, &list.claims.v[i]);
    *checkpoint = (struct dv_claim_checkpoint){
        .records = list.is_there ? records : NULL,
        .n_records = list.n_claims,
    };
    return DV_CLAIM_FILE_OK;
}

enum dv_claim_verdict dv_claim_checkpoint_decode(dv_str bytes, struct dv_arena *arena,
                                                 struct dv_claim_checkpoint *checkpoint,
                                                 struct dv_err *err)
{
    static const struct dv_claim_checkpoint nothing = {0};
    struct dv_claim_file file = {.arena = arena, .err = err};
    const struct dv_json *node = dv_claim_file_parse(&file, bytes);
    DV_CLEANUP(dv_buf_fini) struct dv_buf empty;
    uint32_t sum;
    dv_str data;

    dv_buf_init(&empty, EMPTY_BYTES_MAX);
    dv_claim_checkpoint_text(&nothing, &empty);
    /* members that the file does not have are as in a new file */
    data = dv_str_copy(dv_buf_str(&empty), arena);
    sum = dv_claim_checkpoint_sum(data);
    if (node && dv_claim_file_object(&file, node))
        for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
            if (dv_json_is_go_field(dv_json_key(item), "Data"))
                (void)dv_claim_file_text(&file, item, &data);
            else if (dv_json_is_go_field(dv_json_key(item), "Checksum"))
                (void)dv_claim_file_u32(&file, item, &sum);
        }
    if (file.verdict != DV_CLAIM_FILE_OK)
        return file.verdict;
    if (dv_claim_checkpoint_sum(data) != sum) {
        (void)dv_fail(err, DV_DATA_LOSS, "checkpoint is corrupted");
        return DV_CLAIM_FILE_CORRUPT;
    }
    return decode_data(&file, data, checkpoint);
}

/* -- From a state, and into one ------------------------------------------------------------- */

void dv_claim_checkpoint_take(const struct dv_claim_state *state, struct dv_arena *arena,
                              struct dv_claim_checkpoint *checkpoint)
{
    struct dv_claim_record *records = DV_NEW_ARRAY(arena, struct dv_claim_record, state->claims.n);
    const struct dv_claim *claim;
    size_t n = 0;

    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;) {
        records[n] = claim->record;
        if (!records[n].pods)
            records[n].pods = DV_NEW_ARRAY(arena, dv_str, 0);
        n++;
    }
    *checkpoint = (struct dv_claim_checkpoint){.records = records, .n_records = n};
}

/* Finds the last record of each claim, which is the one that counts. */
static void find_last(const struct dv_claim_checkpoint *checkpoint, struct dv_arena *arena,
                      struct dv_map *last)
{
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        const struct dv_claim_record *record = &checkpoint->records[i];
        const struct dv_claim_record **place = DV_NEW(arena, const struct dv_claim_record *);
        dv_str key =
            dv_str_printf(arena, "%.*s/%.*s", DV_FMT(record->namespace), DV_FMT(record->name));

        *place = record;
        (void)dv_map_set(last, key, place);
    }
}

size_t dv_claim_checkpoint_apply(struct dv_claim_state *state,
                                 const struct dv_claim_checkpoint *checkpoint)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_map_entry *entry;
    struct dv_map last;
    size_t n_before = state->claims.n;

    dv_map_init(&last);
    find_last(checkpoint, arena, &last);
    for (size_t at = 0; (entry = dv_map_next(&last, &at)) != NULL;) {
        const struct dv_claim_record *record = *(const struct dv_claim_record **)entry->value;

        if (entry->key.n <= CLAIM_NAME_MAX &&
            !dv_claim_find(state, record->namespace, record->name))
            (void)dv_claim_restore(state, record);
    }
    dv_map_fini(&last);
    return state->claims.n - n_before;
}
