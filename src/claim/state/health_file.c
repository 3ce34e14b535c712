/* health_file.c - the kubelet's dra_health_state (10.4). It has no checksum, and what was read of
 * it before an error counts. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "claim/state/claim_file.h"
#include "json/json.h"

/* -- Times ---------------------------------------------------------------------------------- */

#define DAY_SECONDS 86400
#define ERA_DAYS 146097 /* 400 years */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* Years begin in March here, so that the odd day is their last. */
static int64_t days_from_civil(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = floor_div(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468; /* from 0000-03-01 to 1970-01-01 */
}

static void civil_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = floor_div(z, ERA_DAYS);
    int64_t doe = z - era * ERA_DAYS;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *day = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = yoe + era * 400 + (*month <= 2);
}

/* Takes n digits and the character behind them, unless that is 0. */
static bool take_number(dv_str *rest, size_t n, char end, int max, int *number)
{
    int value = 0;

    if (rest->n < n + (end != 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9')
            return false;
        value = value * 10 + (rest->p[i] - '0');
    }
    if (value > max || (end && rest->p[n] != end))
        return false;
    *rest = dv_str_slice(*rest, n + (end != 0), rest->n);
    *number = value;
    return true;
}

static bool take_fraction(dv_str *rest, uint32_t *nanos)
{
    uint32_t unit = 100000000;
    size_t n = 1;

    *nanos = 0;
    if (rest->n == 0 || rest->p[0] != '.')
        return true;
    for (; n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9'; n++) {
        *nanos += (uint32_t)(rest->p[n] - '0') * unit;
        unit /= 10; /* what is finer is cut off */
    }
    *rest = dv_str_slice(*rest, n, rest->n);
    return n > 1;
}

static bool take_offset(dv_str rest, int32_t *minutes)
{
    bool is_west;
    int hour;
    int minute;

    *minutes = 0;
    if (dv_str_eq(rest, DV_STR("Z")))
        return true;
    if (rest.n == 0 || (rest.p[0] != '+' && rest.p[0] != '-'))
        return false;
    is_west = rest.p[0] == '-';
    rest = dv_str_slice(rest, 1, rest.n);
    if (!take_number(&rest, 2, ':', 23, &hour) || !take_number(&rest, 2, 0, 59, &minute) ||
        rest.n > 0)
        return false;
    *minutes = (hour * 60 + minute) * (is_west ? -1 : 1);
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && is_leap ? 29 : days[month - 1];
}

bool dv_claim_time_parse(dv_str text, struct dv_claim_time *time)
{
    struct dv_claim_time read = {0};
    int year;
    int month;
    int day;
    int hour;
    int minute;
    int second;

    if (!take_number(&text, 4, '-', 9999, &year) || !take_number(&text, 2, '-', 12, &month) ||
        !take_number(&text, 2, 'T', 31, &day) || !take_number(&text, 2, ':', 23, &hour) ||
        !take_number(&text, 2, ':', 59, &minute) || !take_number(&text, 2, 0, 59, &second) ||
        month == 0 || day == 0 || day > days_in(year, month) ||
        !take_fraction(&text, &read.nanos) || !take_offset(text, &read.offset_minutes))
        return false;
    read.seconds = days_from_civil(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 +
                   second - read.offset_minutes * 60;
    *time = read;
    return true;
}

void dv_claim_time_print(struct dv_claim_time time, struct dv_buf *buf)
{
    int64_t local = time.seconds + (int64_t)time.offset_minutes * 60;
    int64_t days = floor_div(local, DAY_SECONDS);
    int second = (int)(local - days * DAY_SECONDS);
    uint32_t nanos = time.nanos;
    int offset = abs(time.offset_minutes);
    int n_digits = 9;
    int64_t year;
    int month;
    int day;

    civil_from_days(days, &year, &month, &day);
    dv_buf_printf(buf, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)year, month, day,
                  second / 3600, second / 60 % 60, second % 60);
    if (nanos > 0) {
        for (; nanos % 10 == 0; nanos /= 10)
            n_digits--;
        dv_buf_printf(buf, ".%0*u", n_digits, nanos);
    }
    if (time.offset_minutes == 0)
        dv_buf_add_char(buf, 'Z');
    else
        dv_buf_printf(buf, "%c%02d:%02d", time.offset_minutes < 0 ? '-' : '+', offset / 60,
                      offset % 60);
}

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
    DV_CLEANUP(dv_buf_fini) struct dv_buf time;

    dv_buf_init(&time, 64);
    dv_claim_time_print(entry->updated, &time);
    set(object, "PoolName", dv_json_new_str(entry->pool, arena), arena);
    set(object, "DeviceName", dv_json_new_str(entry->device, arena), arena);
    set(object, "Health", dv_json_new_str(entry->health, arena), arena);
    set(object, "LastUpdated", dv_json_new_str(dv_buf_str(&time), arena), arena);
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

/* False: no time, and nothing that comes after it is read. */
static bool read_time(struct dv_claim_file *file, const struct dv_json *node,
                      struct dv_claim_time *time)
{
    struct dv_err err;
    dv_str text;

    if (dv_json_is(node, DV_JSON_NULL))
        return true;
    if (dv_json_as_str(node, &text, &err) && dv_claim_time_parse(text, time))
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

        if (dv_claim_is_field(key, "PoolName"))
            (void)dv_claim_file_text(file, item, &entry->pool);
        else if (dv_claim_is_field(key, "DeviceName"))
            (void)dv_claim_file_text(file, item, &entry->device);
        else if (dv_claim_is_field(key, "Health"))
            (void)dv_claim_file_text(file, item, &entry->health);
        else if (dv_claim_is_field(key, "HealthCheckTimeout"))
            (void)dv_claim_file_i64(file, item, &entry->timeout_ns);
        else if (dv_claim_is_field(key, "Message"))
            (void)dv_claim_file_text(file, item, &entry->message);
        else if (dv_claim_is_field(key, "LastUpdated") && !read_time(file, item, &entry->updated))
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
    /* An object has each key once; only a second one, in another case, can have them again. */
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
        if (dv_claim_is_field(dv_json_key(item), "Devices") && !read_entries(file, item, driver))
            return false;
    return true;
}

static int entry_cmp(const void *a, const void *b)
{
    const struct dv_claim_health_entry *x = a;
    const struct dv_claim_health_entry *y = b;

    return dv_str_cmp(x->key, y->key);
}

static int driver_cmp(const void *a, const void *b)
{
    const struct dv_claim_health_of_driver *x = a;
    const struct dv_claim_health_of_driver *y = b;

    return dv_str_cmp(x->driver, y->driver);
}

static struct dv_claim_health_of_driver take_driver(struct dv_claim_file *file,
                                                    struct driver *driver)
{
    struct dv_claim_health_of_driver taken = {.driver = driver->name,
                                              .n_entries = driver->entries.n};

    if (driver->entries.n > 0)
        qsort(driver->entries.v, driver->entries.n, sizeof(driver->entries.v[0]), entry_cmp);
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
                break; /* it is left out, with all behind it */
            *dv_vec_add_in(&drivers, arena) = take_driver(&file, &driver);
        }
    if (drivers.n > 0)
        qsort(drivers.v, drivers.n, sizeof(drivers.v[0]), driver_cmp);
    if (!drivers.v && !dv_json_is(node, DV_JSON_NULL))
        drivers.v = DV_NEW_ARRAY(arena, struct dv_claim_health_of_driver, 0);
    *result = (struct dv_claim_health_file){drivers.v, drivers.n};
    return file.verdict;
}
