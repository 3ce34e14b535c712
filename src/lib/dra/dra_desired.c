/* dra_desired.c - from a driver's pools to slices as they are wanted. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "davit/dra.h"
#include "lib/dra/dra_slices.h"
#include "number/number.h"
#include "resource/resource.h"
#include "json/json.h"

static bool read_json(const char *text, const struct dv_message *message, struct dv_arena *arena,
                      void *value, struct dv_err *err)
{
    const struct dv_json *doc =
        dv_json_parse(dv_str_copy(dv_str_from_c(text), arena), NULL, arena, err);

    return doc && dv_json_expect(doc, DV_JSON_OBJECT, err) &&
           dv_decode_json(message, doc, DV_UNKNOWN_KEEP, arena, value, NULL, err);
}

static bool copy_text(const char *text, const char *what, struct dv_arena *arena, dv_str *copy,
                      struct dv_err *err)
{
    if (!text || !dv_str_is_utf8(dv_str_from_c(text)))
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s is %s", what, text ? "not UTF-8" : "missing");
    *copy = dv_str_copy(dv_str_from_c(text), arena);
    return true;
}

static bool check_keys(const void *entries, size_t n, size_t size, const char *what,
                       struct dv_err *err)
{
    for (size_t i = 1; i < n; i++) {
        const dv_str *key = (const dv_str *)(const void *)((const char *)entries + i * size);
        const dv_str *before =
            (const dv_str *)(const void *)((const char *)entries + (i - 1) * size);

        if (dv_str_eq(*key, *before))
            return dv_fail(err, DV_INVALID_ARGUMENT, "%s \"%.*s\" is there twice", what,
                           DV_FMT(*key));
    }
    return true;
}

/* ---- attributes ---- */

static bool read_attribute(const struct davit_dra_attribute *from, struct dv_arena *arena,
                           struct dv_api_device_attribute_entry *entry, struct dv_err *err)
{
    int64_t *number = DV_NEW(arena, int64_t);
    bool *flag = DV_NEW(arena, bool);

    if (!copy_text(from->name, "an attribute's name", arena, &entry->key, err))
        return false;
    *number = from->number;
    *flag = from->number != 0;
    switch (from->type) {
    case DAVIT_DRA_INT:
        entry->value.int_ = number;
        return true;
    case DAVIT_DRA_BOOL:
        entry->value.bool_ = flag;
        return true;
    case DAVIT_DRA_STRING:
        return copy_text(from->text, from->name, arena, &entry->value.string, err);
    case DAVIT_DRA_VERSION:
        return copy_text(from->text, from->name, arena, &entry->value.version, err);
    }
    return dv_fail(err, DV_INVALID_ARGUMENT, "attribute %s: there is no type %d", from->name,
                   (int)from->type);
}

/* Reads the attributes. Those of `more` stay, unless they are given as attributes, too. */
static bool read_attributes(const struct davit_dra_device *from, struct dv_arena *arena,
                            struct dv_api_device *device, struct dv_err *err)
{
    size_t n = from->n_attributes;
    struct dv_api_device_attribute_entry *entries = DV_NEW_ARRAY(
        arena, struct dv_api_device_attribute_entry, from->n_attributes + device->n_attributes);

    if (n == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!read_attribute(&from->attributes[i], arena, &entries[i], err))
            return false;
    qsort(entries, n, sizeof(entries[0]), dv_str_compare);
    if (!check_keys(entries, n, sizeof(entries[0]), "attribute", err))
        return false;
    for (size_t i = 0; i < device->n_attributes; i++)
        if (!bsearch(&device->attributes[i], entries, from->n_attributes, sizeof(entries[0]),
                     dv_str_compare))
            entries[n++] = device->attributes[i];
    qsort(entries, n, sizeof(entries[0]), dv_str_compare);
    device->attributes = entries;
    device->n_attributes = n;
    return true;
}

/* ---- amounts ---- */

static bool read_amount(const struct davit_dra_amount *from, struct dv_arena *arena, dv_str *name,
                        struct dv_quantity *value, struct dv_err *err)
{
    if (!copy_text(from->name, "the name of an amount", arena, name, err))
        return false;
    return dv_quantity_parse(dv_str_from_c(from->value), arena, value, err) ||
           dv_wrap(err, "%s", from->name);
}

static bool read_capacity(const struct davit_dra_device *from, struct dv_arena *arena,
                          struct dv_api_device *device, struct dv_err *err)
{
    size_t n = from->n_capacity;
    struct dv_api_device_capacity_entry *entries = DV_NEW_ARRAY(
        arena, struct dv_api_device_capacity_entry, from->n_capacity + device->n_capacity);

    if (n == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (!read_amount(&from->capacity[i], arena, &entries[i].key, &entries[i].value.value, err))
            return false;
    qsort(entries, n, sizeof(entries[0]), dv_str_compare);
    if (!check_keys(entries, n, sizeof(entries[0]), "capacity", err))
        return false;
    for (size_t i = 0; i < device->n_capacity; i++)
        if (!bsearch(&device->capacity[i], entries, from->n_capacity, sizeof(entries[0]),
                     dv_str_compare))
            entries[n++] = device->capacity[i];
    qsort(entries, n, sizeof(entries[0]), dv_str_compare);
    device->capacity = entries;
    device->n_capacity = n;
    return true;
}

static bool read_counters(const struct davit_dra_counters *from, struct dv_arena *arena,
                          dv_str *set, struct dv_api_counter_entry **counters, size_t *n_counters,
                          struct dv_err *err)
{
    struct dv_api_counter_entry *entries =
        DV_NEW_ARRAY(arena, struct dv_api_counter_entry, from->n_counters);

    if (!copy_text(from->set, "the name of a counter set", arena, set, err))
        return false;
    for (size_t i = 0; i < from->n_counters; i++)
        if (!read_amount(&from->counters[i], arena, &entries[i].key, &entries[i].value.value, err))
            return dv_wrap(err, "counter set %s", from->set);
    qsort(entries, from->n_counters, sizeof(entries[0]), dv_str_compare);
    if (!check_keys(entries, from->n_counters, sizeof(entries[0]), "counter", err))
        return dv_wrap(err, "counter set %s", from->set);
    *counters = entries;
    *n_counters = from->n_counters;
    return true;
}

static bool read_consumption(const struct davit_dra_device *from, struct dv_arena *arena,
                             struct dv_api_device *device, struct dv_err *err)
{
    if (from->n_consumes == 0)
        return true;
    device->consumes_counters =
        DV_NEW_ARRAY(arena, struct dv_api_device_counter_consumption, from->n_consumes);
    device->n_consumes_counters = from->n_consumes;
    for (size_t i = 0; i < from->n_consumes; i++) {
        struct dv_api_device_counter_consumption *to = &device->consumes_counters[i];

        if (!read_counters(&from->consumes[i], arena, &to->counter_set, &to->counters,
                           &to->n_counters, err))
            return false;
    }
    return true;
}

static bool read_taints(const struct davit_dra_device *from, struct dv_arena *arena,
                        struct dv_api_device *device, struct dv_err *err)
{
    if (from->n_taints == 0)
        return true;
    device->taints = DV_NEW_ARRAY(arena, struct dv_api_device_taint, from->n_taints);
    device->n_taints = from->n_taints;
    for (size_t i = 0; i < from->n_taints; i++) {
        const struct davit_dra_taint *taint = &from->taints[i];
        struct dv_api_device_taint *to = &device->taints[i];

        if (!copy_text(taint->key, "a taint's key", arena, &to->key, err) ||
            !copy_text(taint->value ? taint->value : "", "a taint's value", arena, &to->value,
                       err) ||
            !copy_text(taint->effect, "a taint's effect", arena, &to->effect, err))
            return false;
        if (taint->added_s != 0)
            to->time_added = (struct dv_time){.seconds = taint->added_s, .is_set = true};
    }
    return true;
}

/* ---- devices and pools ---- */

static bool read_device(const struct davit_dra_device *from, struct dv_arena *arena,
                        struct dv_api_device *device, struct dv_err *err)
{
    static const bool yes = true;

    if (from->more && !read_json(from->more, &dv_message_device, arena, device, err))
        return dv_wrap(err, "more");
    if (!copy_text(from->name, "its name", arena, &device->name, err))
        return false;
    if (from->is_shareable)
        device->allow_multiple_allocations = &yes;
    return read_attributes(from, arena, device, err) && read_capacity(from, arena, device, err) &&
           read_consumption(from, arena, device, err) && read_taints(from, arena, device, err);
}

static bool check_consumption(const struct dv_api_device *device, const struct dv_map *sets,
                              struct dv_err *err)
{
    for (size_t i = 0; i < device->n_consumes_counters; i++) {
        const struct dv_api_device_counter_consumption *use = &device->consumes_counters[i];
        const struct dv_api_counter_set *set = dv_map_get(sets, use->counter_set);

        if (!set)
            return dv_fail(err, DV_INVALID_ARGUMENT, "there is no counter set \"%.*s\"",
                           DV_FMT(use->counter_set));
        for (size_t k = 0; k < use->n_counters; k++)
            if (set->n_counters == 0 || !bsearch(&use->counters[k], set->counters, set->n_counters,
                                                 sizeof(set->counters[0]), dv_str_compare))
                return dv_fail(err, DV_INVALID_ARGUMENT, "counter set %.*s has no counter \"%.*s\"",
                               DV_FMT(set->name), DV_FMT(use->counters[k].key));
    }
    return true;
}

struct reading {
    struct dv_api_device *devices;
    struct dv_api_counter_set *sets;
    struct dv_map set_names;
    struct dv_map device_names;
};

static bool read_sets(const struct davit_dra_pool *pool, struct dv_arena *arena,
                      struct reading *reading, struct dv_err *err)
{
    for (size_t i = 0; i < pool->n_counter_sets; i++) {
        struct dv_api_counter_set *set = &reading->sets[i];

        if (!read_counters(&pool->counter_sets[i], arena, &set->name, &set->counters,
                           &set->n_counters, err))
            return false;
        if (dv_map_set(&reading->set_names, set->name, set))
            return dv_fail(err, DV_INVALID_ARGUMENT, "counter set \"%.*s\" is there twice",
                           DV_FMT(set->name));
    }
    return true;
}

static bool read_devices(const struct davit_dra_pool *pool, struct dv_arena *arena,
                         struct reading *reading, struct dv_err *err)
{
    for (size_t i = 0; i < pool->n_devices; i++) {
        struct dv_api_device *device = &reading->devices[i];

        if (!read_device(&pool->devices[i], arena, device, err) ||
            !check_consumption(device, &reading->set_names, err))
            return dv_wrap(err, "device %s", pool->devices[i].name ? pool->devices[i].name : "?");
        if (dv_map_set(&reading->device_names, device->name, device))
            return dv_fail(err, DV_INVALID_ARGUMENT, "device \"%.*s\" is there twice",
                           DV_FMT(device->name));
    }
    return true;
}

static bool read_place(const struct davit_dra_pool *pool, dv_str node, struct dv_arena *arena,
                       struct dv_lib_desired *desired, struct dv_err *err)
{
    switch (pool->place) {
    case DAVIT_DRA_THIS_NODE:
        if (node.n == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "it is of this node, which has no name");
        desired->node_name = dv_str_copy(node, arena);
        return true;
    case DAVIT_DRA_ALL_NODES:
        desired->is_for_all_nodes = true;
        return true;
    case DAVIT_DRA_PER_DEVICE:
        desired->is_per_device = true;
        return true;
    case DAVIT_DRA_SOME_NODES:
        desired->node_selector = DV_NEW(arena, struct dv_api_node_selector);
        if (!pool->node_selector)
            return dv_fail(err, DV_INVALID_ARGUMENT, "it has no node_selector");
        return read_json(pool->node_selector, &dv_message_node_selector, arena,
                         desired->node_selector, err) ||
               dv_wrap(err, "node_selector");
    }
    return dv_fail(err, DV_INVALID_ARGUMENT, "there is no place %d", (int)pool->place);
}

bool dv_lib_desired_make(const struct davit_dra_pool *pool, dv_str driver, dv_str node,
                         struct dv_arena *arena, struct dv_lib_desired *desired, struct dv_err *err)
{
    struct reading reading = {
        .devices = DV_NEW_ARRAY(arena, struct dv_api_device, pool->n_devices),
        .sets = DV_NEW_ARRAY(arena, struct dv_api_counter_set, pool->n_counter_sets),
    };
    struct dv_lib_desired made = {
        .driver = dv_str_copy(driver, arena),
        .generation = pool->generation,
    };
    bool is_good;

    if (!copy_text(pool->name, "a pool's name", arena, &made.pool, err))
        return false;
    dv_map_init(&reading.set_names);
    dv_map_init(&reading.device_names);
    is_good = read_place(pool, node, arena, &made, err) && read_sets(pool, arena, &reading, err) &&
              read_devices(pool, arena, &reading, err);
    dv_map_fini(&reading.set_names);
    dv_map_fini(&reading.device_names);
    if (!is_good)
        return dv_wrap(err, "pool %s", pool->name);
    dv_lib_slices_split(reading.devices, pool->n_devices, reading.sets, pool->n_counter_sets, arena,
                        &made.slices, &made.n_slices);
    *desired = made;
    return true;
}
