/* health_file.c - the kubelet's dra_health_state. It has no checksum, and what was read of it
 * before an error counts. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/state/claim_file.h"
#include "claim/state/claim_state.h"
#include "json/json.h"

/* -- Writing -------------------------------------------------------------------------------- */

static void set(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), value, arena);
}

static struct dv_json *entry_to_json(const struct dv_claim_health_entry *entry,
                                     struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    char time[DV_RFC3339_BYTES];
    size_t n_time = dv_rfc3339_print(entry->updated, DV_RFC3339_TRIMMED, time);

    set(object, "PoolName", dv_json_new_str(entry->pool, arena), arena);
    set(object, "DeviceName", dv_json_new_str(entry->device, arena), arena);
    set(object, "Health", dv_json_new_str(entry->health, arena), arena);
    set(object, "LastUpdated", dv_json_new_str((dv_str){time, n_time}, arena), arena);
    set(object, "HealthCheckTimeout", dv_json_new_i64(entry->timeout_ns, arena), arena);
    set(object, "Message", dv_json_new_str(entry->message, arena), arena);
    return object;
}

void dv_claim_health_encode(const struct dv_claim_health_file *file, struct dv_buf *buf)
{
    static const struct dv_json_style style = {.escape_html = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json *drivers = file->drivers ? dv_json_new_object(arena) : dv_json_new_null(arena);

    for (size_t i = 0; file->drivers && i < file->n_drivers; i++) {
        const struct dv_claim_health_of_driver *from = &file->drivers[i];
        struct dv_json *driver = dv_json_new_object(arena);
        struct dv_json *devices =
            from->entries ? dv_json_new_object(arena) : dv_json_new_null(arena);

        for (size_t k = 0; from->entries && k < from->n_entries; k++)
            dv_json_set(devices, from->entries[k].key, entry_to_json(&from->entries[k], arena),
                        arena);
        set(driver, "Devices", devices, arena);
        dv_json_set(drivers, from->driver, driver, arena);
    }
    dv_json_print(drivers, &style, buf);
}

/* -- Reading -------------------------------------------------------------------------------- */

struct driver {
    dv_str name;
    DV_VEC(struct dv_claim_health_entry) entries;
    bool has_entries;
};

/* Reads a time. False: it is none, and Go reads nothing that comes after it. */
static bool read_time(struct dv_claim_file *file, const struct dv_json *node,
                      struct dv_rfc3339 *time)
{
    struct dv_err err;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NULL))
        return true;
    if (dv_json_as_str(node, &text, &err) && dv_rfc3339_parse(text, DV_RFC3339_STRICT, time))
        return true;
    file->verdict = DV_CLAIM_FILE_OTHER;
    return dv_json_fail(node, file->err, "not a time");
}

static bool read_entry(struct dv_claim_file *file, const struct dv_json *node,
                       struct dv_claim_health_entry *entry)
{
    if (!dv_claim_file_object(file, node))
        return true;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        dv_str key = dv_json_key(item);

        if (dv_json_is_go_field(key, "PoolName"))
            (void)dv_claim_file_text(file, item, &entry->pool);
        else if (dv_json_is_go_field(key, "DeviceName"))
            (void)dv_claim_file_text(file, item, &entry->device);
        else if (dv_json_is_go_field(key, "Health"))
            (void)dv_claim_file_text(file, item, &entry->health);
        else if (dv_json_is_go_field(key, "HealthCheckTimeout"))
            (void)dv_claim_file_i64(file, item, &entry->timeout_ns);
        else if (dv_json_is_go_field(key, "Message"))
            (void)dv_claim_file_text(file, item, &entry->message);
        else if (dv_json_is_go_field(key, "LastUpdated") && !read_time(file, item, &entry->updated))
            return false;
    }
    return true;
}

static struct dv_claim_health_entry *entry_of(struct dv_claim_file *file, struct driver *driver,
                                              dv_str key)
{
    for (size_t i = 0; i < driver->entries.n; i++)
        if (dv_str_eq(driver->entries.v[i].key, key))
            return &driver->entries.v[i];
    return dv_vec_add_in(&driver->entries, file->arena);
}

static bool read_entries(struct dv_claim_file *file, const struct dv_json *node,
                         struct driver *driver)
{
    /* The driver has entries already only when its key came before in another case. */
    bool is_again = driver->entries.n > 0;

    if (!dv_claim_file_object(file, node)) {
        if (dv_json_is(node, DV_JSON_NULL)) {
            driver->has_entries = false;
            dv_vec_clear(&driver->entries);
        }
        return true;
    }
    driver->has_entries = true;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
        struct dv_claim_health_entry entry = {
            .key = dv_json_key(item), .updated = {.seconds = -62135596800}}; /* the year 1 */

        if (!read_entry(file, item, &entry))
            return false;
        *(is_again ? entry_of(file, driver, entry.key)
                   : dv_vec_add_in(&driver->entries, file->arena)) = entry;
    }
    return true;
}

static bool read_driver(struct dv_claim_file *file, const struct dv_json *node,
                        struct driver *driver)
{
    driver->name = dv_json_key(node);
    if (!dv_claim_file_object(file, node))
        return true;
    for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item))
        if (dv_json_is_go_field(dv_json_key(item), "Devices") && !read_entries(file, item, driver))
            return false;
    return true;
}

static struct dv_claim_health_of_driver take_driver(struct dv_claim_file *file,
                                                    struct driver *driver)
{
    struct dv_claim_health_of_driver taken = {.driver = driver->name,
                                              .n_entries = driver->entries.n};

    if (driver->entries.n > 0)
        qsort(driver->entries.v, driver->entries.n, sizeof(driver->entries.v[0]), dv_str_compare);
    if (driver->has_entries)
        taken.entries = driver->entries.v
                            ? driver->entries.v
                            : DV_NEW_ARRAY(file->arena, struct dv_claim_health_entry, 0);
    return taken;
}

enum dv_claim_verdict dv_claim_health_file_decode(dv_str bytes, struct dv_arena *arena,
                                                  struct dv_claim_health_file *result,
                                                  struct dv_err *err)
{
    struct dv_claim_file file = {.arena = arena, .err = err};
    const struct dv_json *node = dv_claim_file_parse(&file, bytes);
    DV_VEC(struct dv_claim_health_of_driver) drivers = {0};

    if (node && dv_claim_file_object(&file, node))
        for (const struct dv_json *item = dv_json_first(node); item; item = dv_json_next(item)) {
            struct driver driver = {0};

            if (!read_driver(&file, item, &driver))
                break; /* the entry is left out with all that follow, as Go stops here */
            *dv_vec_add_in(&drivers, arena) = take_driver(&file, &driver);
        }
    if (drivers.n > 0)
        qsort(drivers.v, drivers.n, sizeof(drivers.v[0]), dv_str_compare);
    if (!drivers.v && !dv_json_is(node, DV_JSON_NULL))
        drivers.v = DV_NEW_ARRAY(arena, struct dv_claim_health_of_driver, 0);
    *result = (struct dv_claim_health_file){drivers.v, drivers.n};
    return file.verdict;
}

/* -- The state and the file ------------------------------------------------------------------ */

static struct dv_claim_health_of_driver describe_driver(const struct dv_claim_health_driver *driver,
                                                        struct dv_arena *arena)
{
    struct dv_claim_health_entry *entries =
        DV_NEW_ARRAY(arena, struct dv_claim_health_entry, driver->cells.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&driver->cells, &at)) != NULL;)
        entries[n++] = ((const struct dv_claim_health_cell *)entry->value)->entry;
    if (n > 0)
        qsort(entries, n, sizeof(entries[0]), dv_str_compare);
    return (struct dv_claim_health_of_driver){
        .driver = driver->name,
        .entries = driver->has_devices ? entries : NULL,
        .n_entries = n,
    };
}

void dv_claim_health_take(const struct dv_claim_state *state, struct dv_arena *arena,
                          struct dv_claim_health_file *file)
{
    struct dv_claim_health_of_driver *drivers =
        DV_NEW_ARRAY(arena, struct dv_claim_health_of_driver, state->health.n);
    const struct dv_map_entry *entry;
    size_t n = 0;

    for (size_t at = 0; (entry = dv_map_next(&state->health, &at)) != NULL;)
        drivers[n++] = describe_driver(entry->value, arena);
    if (n > 0)
        qsort(drivers, n, sizeof(drivers[0]), dv_str_compare);
    *file = (struct dv_claim_health_file){drivers, n};
}

/* Whether the entry fits the limits of the store. What drivers tell is cut to fit, but a file may
 * have anything. */
static bool fits_store(const struct dv_claim_health_driver *driver,
                       const struct dv_claim_health_entry *entry)
{
    return driver->cells.n < DV_CLAIM_HEALTH_DEVICES_MAX &&
           driver->name.n <= DV_CLAIM_HEALTH_NAME_MAX / 2 &&
           entry->key.n <= DV_CLAIM_HEALTH_NAME_MAX && entry->pool.n <= DV_CLAIM_HEALTH_NAME_MAX &&
           entry->device.n <= DV_CLAIM_HEALTH_NAME_MAX &&
           entry->health.n <= DV_CLAIM_HEALTH_TEXT_MAX &&
           entry->message.n <= DV_CLAIM_HEALTH_TEXT_MAX;
}

size_t dv_claim_health_restore(struct dv_claim_state *state,
                               const struct dv_claim_health_file *file)
{
    size_t n = 0;

    for (size_t i = 0; i < file->n_drivers; i++) {
        const struct dv_claim_health_of_driver *from = &file->drivers[i];
        struct dv_claim_health_driver *driver = dv_claim_health_driver_add(state, from->driver);

        driver->has_devices = from->entries != NULL;
        for (size_t k = 0; from->entries && k < from->n_entries; k++) {
            if (!fits_store(driver, &from->entries[k]))
                continue;
            dv_claim_health_set(state, driver, &from->entries[k]);
            n++;
        }
    }
    return n;
}
