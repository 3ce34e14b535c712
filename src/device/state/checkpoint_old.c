/* checkpoint_old.c - the forms that kubelet_internal_checkpoint had before 1.20:
 *
 *     1.8           {"Entries":[{PodUID, ContainerName, ResourceName, DeviceID}]}
 *     1.9           {"Entries":[{PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp}]}
 *     1.9, 1.10     {"PodDeviceEntries":[the same],"RegisteredDevices":{name: ids}}
 *     1.11 to 1.19  {"Data":{the same},"Checksum":n}
 *
 * 1.8 has an entry for each device; DeviceIDs is a list. Only the last has a checksum. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"
#include "json/json.h"

struct form {
    const char *name;
    const char *entries;
    bool has_data;      /* the lists are in the member Data, and there is a checksum */
    bool is_one_device; /* an entry has one device, and several entries are one record */
};

static const struct form forms[] = {
    {"Kubernetes 1.11 to 1.19", "PodDeviceEntries", true,  false},
    {"Kubernetes 1.9 and 1.10", "PodDeviceEntries", false, false},
    {"Kubernetes 1.9",          "Entries",          false, false},
    {"Kubernetes 1.8",          "Entries",          false, true },
};

static const struct dv_json *part(const struct dv_json *object, const char *key)
{
    return dv_json_get(object, dv_str_from_c(key));
}

/* Whether the first entry, if there is one, is of this form. */
static bool has_form(const struct dv_json *file, const struct form *form)
{
    const struct dv_json *data = form->has_data ? part(file, "Data") : file;
    const struct dv_json *first = dv_json_first(part(data, form->entries));

    if (!part(data, form->entries))
        return false;
    if (!first)
        return !form->has_data; /* without entries, the form of today is the same */
    if (form->is_one_device)
        return part(first, "DeviceID") != NULL;
    return dv_json_is(part(first, "DeviceIDs"), DV_JSON_ARRAY);
}

/* -- Values --------------------------------------------------------------------------------- */

/* What is absent or null is empty. */
static bool read_text(const struct dv_json *entry, const char *key, dv_str *text,
                      struct dv_err *err)
{
    const struct dv_json *node = part(entry, key);

    return !node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_str(node, text, err);
}

static bool read_ids(const struct dv_json *list, struct dv_arena *arena, const dv_str **ids,
                     size_t *n_ids, struct dv_err *err)
{
    dv_str *v;
    size_t n = 0;

    *ids = NULL;
    *n_ids = 0;
    if (!list || dv_json_is(list, DV_JSON_NULL))
        return true;
    if (!dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(list));
    for (const struct dv_json *id = dv_json_first(list); id; id = dv_json_next(id))
        if (!dv_json_as_str(id, &v[n++], err))
            return false;
    *ids = v;
    *n_ids = n;
    return true;
}

static bool read_response(const struct dv_json *entry, struct dv_arena *arena, dv_str *response,
                          struct dv_err *err)
{
    const struct dv_json *node = part(entry, "AllocResp");
    dv_str text;

    if (!node || dv_json_is(node, DV_JSON_NULL))
        return true;
    if (!dv_json_as_str(node, &text, err))
        return false;
    return dv_base64_decode(text, arena, response) || dv_json_fail(node, err, "not base64");
}

static bool read_names(const struct dv_json *entry, struct dv_device_record *record,
                       struct dv_err *err)
{
    return dv_json_expect(entry, DV_JSON_OBJECT, err) &&
           read_text(entry, "PodUID", &record->pod_uid, err) &&
           read_text(entry, "ContainerName", &record->container, err) &&
           read_text(entry, "ResourceName", &record->resource, err);
}

/* -- Records -------------------------------------------------------------------------------- */

typedef DV_VEC(struct dv_device_record) record_vec;

static bool add_entry(const struct dv_json *entry, struct dv_arena *arena, record_vec *records,
                      struct dv_err *err)
{
    struct dv_device_record *record = dv_vec_add_in(records, arena);
    struct dv_device_placed *placed = DV_NEW(arena, struct dv_device_placed);

    if (!read_names(entry, record, err) ||
        !read_ids(part(entry, "DeviceIDs"), arena, &placed->ids, &placed->n_ids, err) ||
        !read_response(entry, arena, &record->response, err))
        return false;
    record->placed = placed->ids ? placed : NULL;
    record->n_placed = placed->ids ? 1 : 0;
    return true;
}

static struct dv_device_record *find_record(const record_vec *records,
                                            const struct dv_device_record *names)
{
    for (size_t i = 0; i < records->n; i++)
        if (dv_str_eq(records->v[i].pod_uid, names->pod_uid) &&
            dv_str_eq(records->v[i].container, names->container) &&
            dv_str_eq(records->v[i].resource, names->resource))
            return &records->v[i];
    return NULL;
}

/* Adds the one device of an entry to the record of its container and resource. */
static bool add_device(const struct dv_json *entry, struct dv_arena *arena, record_vec *records,
                       struct dv_err *err)
{
    struct dv_device_record names = {0};
    struct dv_device_record *record;
    struct dv_device_placed *placed = DV_NEW(arena, struct dv_device_placed);
    dv_str *ids;

    if (!read_names(entry, &names, err))
        return false;
    record = find_record(records, &names);
    if (!record) {
        record = dv_vec_add_in(records, arena);
        *record = names;
    }
    placed->n_ids = (record->placed ? record->placed->n_ids : 0) + 1;
    ids = DV_NEW_ARRAY(arena, dv_str, placed->n_ids);
    for (size_t i = 0; i + 1 < placed->n_ids; i++)
        ids[i] = record->placed->ids[i];
    placed->ids = ids;
    record->placed = placed;
    record->n_placed = 1;
    return read_text(entry, "DeviceID", &ids[placed->n_ids - 1], err);
}

static bool read_registered(const struct dv_json *object, struct dv_arena *arena,
                            struct dv_device_checkpoint *checkpoint, struct dv_err *err)
{
    struct dv_device_registered *registered;
    size_t n = 0;

    if (!object || dv_json_is(object, DV_JSON_NULL))
        return true;
    if (!dv_json_expect(object, DV_JSON_OBJECT, err))
        return false;
    registered = DV_NEW_ARRAY(arena, struct dv_device_registered, dv_json_n(object));
    for (const struct dv_json *list = dv_json_first(object); list; list = dv_json_next(list)) {
        registered[n].resource = dv_json_key(list);
        if (!read_ids(list, arena, &registered[n].ids, &registered[n].n_ids, err))
            return false;
        n++;
    }
    if (n > 0)
        qsort(registered, n, sizeof(registered[0]), dv_str_compare);
    checkpoint->registered = registered;
    checkpoint->n_registered = n;
    return true;
}

static bool read_lists(const struct dv_json *data, const struct form *form, struct dv_arena *arena,
                       struct dv_device_checkpoint *checkpoint, struct dv_err *err)
{
    const struct dv_json *entries = part(data, form->entries);
    record_vec records = {0};

    *checkpoint = (struct dv_device_checkpoint){.is_flat = true};
    for (const struct dv_json *entry = dv_json_first(entries); entry; entry = dv_json_next(entry))
        if (!(form->is_one_device ? add_device : add_entry)(entry, arena, &records, err))
            return false;
    checkpoint->records = records.v;
    checkpoint->n_records = records.n;
    return read_registered(part(data, "RegisteredDevices"), arena, checkpoint, err);
}

static bool check_sum(const struct dv_json *file, const struct dv_device_checkpoint *checkpoint,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(file, DV_STR("Checksum"), err);
    uint64_t sum;

    if (!node || !dv_json_as_u64(node, &sum, err))
        return false;
    return sum == dv_device_checkpoint_sum(checkpoint) ||
           dv_fail(err, DV_DATA_LOSS, "checkpoint is corrupted");
}

bool dv_device_checkpoint_decode_old(dv_str bytes, struct dv_arena *arena,
                                     struct dv_device_checkpoint *checkpoint, const char **form,
                                     struct dv_err *err)
{
    static const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    const struct dv_json *file = dv_json_parse(bytes, &opts, arena, err);
    struct dv_device_checkpoint read;

    *form = NULL;
    for (size_t i = 0; file && i < DV_COUNT(forms); i++) {
        if (!has_form(file, &forms[i]))
            continue;
        *form = forms[i].name;
        if (!read_lists(forms[i].has_data ? part(file, "Data") : file, &forms[i], arena, &read,
                        err) ||
            (forms[i].has_data && !check_sum(file, &read, err)))
            return false;
        *checkpoint = read;
        return true;
    }
    return file ? dv_fail(err, DV_INVALID_ARGUMENT, "no form of an older release") : false;
}
