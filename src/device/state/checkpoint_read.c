/* checkpoint_read.c - kubelet_internal_checkpoint is read as Go's encoding/json reads it.
 *
 * Go decodes onto a value that is there: what an earlier field of the same name has set stays
 * unless it is overwritten. Maps gain keys; a list is filled from its start, element onto element,
 * even onto those that a shorter list in between had cut off. The checksum is over the outcome. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"
#include "device/state/json_cut.h"
#include "json/json.h"

struct ids {
    dv_str *v; /* NULL: null */
    size_t n;
};

struct bytes {
    char *v; /* NULL: null */
    size_t n;
    size_t n_known; /* bytes that a longer list has left behind */
    size_t size;
};

struct numbered_ids {
    int64_t node;
    size_t order; /* of two entries for a node the later one counts */
    struct ids ids;
};

struct named_ids {
    dv_str name;
    size_t order;
    struct ids ids;
};

struct entry {
    dv_str pod_uid;
    dv_str container;
    dv_str resource;
    bool has_placed;
    DV_VEC(struct numbered_ids) placed;
    struct bytes response;
};

struct reading {
    struct dv_arena *arena;
    struct dv_err *err;
    enum dv_device_verdict verdict;
    uint64_t checksum;
    bool has_entries;
    size_t n_entries;
    DV_VEC(struct entry) entries; /* some may be beyond n_entries: see above */
    bool has_registered;
    DV_VEC(struct named_ids) registered;
};

/* -- Pieces --------------------------------------------------------------------------------- */

static bool fail_type(struct reading *r, const char *what, const char *wanted, dv_str value)
{
    r->verdict = DV_DEVICE_CHECKPOINT_JSON_TYPE;
    return dv_fail(r->err, DV_INVALID_ARGUMENT, "%s: expected %s, got %.*s", what, wanted,
                   DV_FMT(dv_str_slice(value, 0, 40)));
}

static bool is_null(dv_str value)
{
    return dv_str_eq(value, DV_STR("null"));
}

static bool is_object(dv_str value)
{
    return dv_str_starts_with(value, DV_STR("{"));
}

static bool is_array(dv_str value)
{
    return dv_str_starts_with(value, DV_STR("["));
}

static bool is_string(dv_str value)
{
    return dv_str_starts_with(value, DV_STR("\""));
}

/* The text that a quoted string stands for. */
static dv_str unquote(struct reading *r, dv_str quoted)
{
    static const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    dv_str inside = dv_str_slice(quoted, 1, quoted.n - 1);
    struct dv_json *node;
    struct dv_err err;
    dv_str text;

    if (dv_str_find_char(inside, '\\') == inside.n && dv_str_is_utf8(inside))
        return inside;
    node = dv_json_parse(quoted, &opts, r->arena, &err);
    /* cannot fail: the whole document was parsed before */
    return node && dv_json_as_str(node, &text, &err) ? text : DV_STR_NONE;
}

/* -- Values --------------------------------------------------------------------------------- */

static bool read_text(struct reading *r, const char *what, dv_str value, dv_str *text)
{
    if (is_null(value))
        return true;
    if (!is_string(value))
        return fail_type(r, what, "a string", value);
    *text = unquote(r, value);
    return true;
}

static bool read_u64(struct reading *r, const char *what, dv_str value, uint64_t max,
                     uint64_t *number)
{
    uint64_t read;

    if (is_null(value))
        return true;
    if (!dv_str_to_u64(value, &read) || read > max)
        return fail_type(r, what, "a number without sign and fraction", value);
    *number = read;
    return true;
}

/* Reads a list of ids. It is always a new list, as Go makes the values of a map anew. */
static bool read_ids(struct reading *r, const char *what, dv_str value, struct ids *ids)
{
    DV_VEC(dv_str) v = {0};
    struct dv_device_cut cut;
    dv_str element;

    *ids = (struct ids){0};
    if (is_null(value))
        return true;
    if (!is_array(value))
        return fail_type(r, what, "a list", value);
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_element(&cut, &element)) {
        dv_str *id = dv_vec_add_in(&v, r->arena);

        if (!read_text(r, what, element, id))
            return false;
    }
    *ids = (struct ids){v.v ? v.v : DV_NEW_ARRAY(r->arena, dv_str, 0), v.n};
    return true;
}

static bool read_byte_list(struct reading *r, dv_str value, struct bytes *bytes)
{
    struct dv_device_cut cut;
    dv_str element;

    bytes->n = 0;
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_element(&cut, &element)) {
        uint64_t number = bytes->n < bytes->n_known ? (unsigned char)bytes->v[bytes->n] : 0;

        if (!read_u64(r, "AllocResp", element, UINT8_MAX, &number))
            return false;
        if (bytes->n >= bytes->size)
            bytes->v = dv_vec_grow(bytes->v, bytes->n, &bytes->size, 1, r->arena);
        bytes->v[bytes->n++] = (char)number;
        bytes->n_known = bytes->n_known > bytes->n ? bytes->n_known : bytes->n;
    }
    /* one byte, never read, as the pointer of an empty list must not be NULL, which is null */
    if (bytes->n == 0)
        *bytes = (struct bytes){.v = dv_arena_alloc(r->arena, 1, 1)};
    return true;
}

static bool read_bytes(struct reading *r, dv_str value, struct bytes *bytes)
{
    dv_str decoded;

    if (is_null(value)) {
        *bytes = (struct bytes){0};
        return true;
    }
    if (is_array(value))
        return read_byte_list(r, value, bytes);
    if (!is_string(value))
        return fail_type(r, "AllocResp", "a string", value);
    if (!dv_base64_decode(unquote(r, value), r->arena, &decoded)) {
        r->verdict = DV_DEVICE_CHECKPOINT_BASE64;
        return dv_fail(r->err, DV_INVALID_ARGUMENT, "AllocResp: not base64");
    }
    *bytes = (struct bytes){.n = decoded.n, .n_known = decoded.n, .size = decoded.n};
    bytes->v = dv_arena_alloc(r->arena, decoded.n, 1);
    memcpy(bytes->v, decoded.p, decoded.n);
    return true;
}

/* Reads a number as Go's ParseInt does: with a sign of either kind, and leading zeros. */
static bool read_node(struct reading *r, dv_str key, int64_t *node)
{
    bool has_plus = dv_str_starts_with(key, DV_STR("+"));
    dv_str digits = dv_str_slice(key, has_plus ? 1 : 0, key.n);

    if ((has_plus && dv_str_starts_with(digits, DV_STR("-"))) || !dv_str_to_i64(digits, node))
        return fail_type(r, "DeviceIDs", "a number for its key", key);
    return true;
}

static bool read_placed(struct reading *r, dv_str value, struct entry *entry)
{
    struct dv_device_cut cut;
    dv_str key, member;

    if (is_null(value)) {
        entry->has_placed = false;
        dv_vec_clear(&entry->placed);
        return true;
    }
    if (!is_object(value))
        return fail_type(r, "DeviceIDs", "an object", value);
    entry->has_placed = true;
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_member(&cut, &key, &member)) {
        struct numbered_ids *placed = dv_vec_add_in(&entry->placed, r->arena);

        placed->order = entry->placed.n;
        if (!read_ids(r, "DeviceIDs", member, &placed->ids) ||
            !read_node(r, unquote(r, key), &placed->node))
            return false;
    }
    return true;
}

/* -- Fields --------------------------------------------------------------------------------- */

/* Reads one member of an object into `ctx`; false: the file is refused. */
typedef bool read_member(struct reading *r, dv_str key, dv_str member, void *ctx);

/* Reads an object; null counts as one without members. */
static bool read_object(struct reading *r, const char *what, dv_str value, read_member *read,
                        void *ctx)
{
    struct dv_device_cut cut;
    dv_str key, member;

    if (is_null(value))
        return true;
    if (!is_object(value))
        return fail_type(r, what, "an object", value);
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_member(&cut, &key, &member))
        if (!read(r, unquote(r, key), member, ctx))
            return false;
    return true;
}

static bool read_entry_member(struct reading *r, dv_str key, dv_str member, void *ctx)
{
    struct entry *entry = ctx;

    if (dv_json_is_go_field(key, "PodUID"))
        return read_text(r, "PodUID", member, &entry->pod_uid);
    if (dv_json_is_go_field(key, "ContainerName"))
        return read_text(r, "ContainerName", member, &entry->container);
    if (dv_json_is_go_field(key, "ResourceName"))
        return read_text(r, "ResourceName", member, &entry->resource);
    if (dv_json_is_go_field(key, "DeviceIDs"))
        return read_placed(r, member, entry);
    if (dv_json_is_go_field(key, "AllocResp"))
        return read_bytes(r, member, &entry->response);
    return true;
}

static bool read_entries(struct reading *r, dv_str value)
{
    struct dv_device_cut cut;
    dv_str element;

    r->n_entries = 0;
    r->has_entries = !is_null(value);
    if (!r->has_entries) {
        dv_vec_clear(&r->entries);
        return true;
    }
    if (!is_array(value))
        return fail_type(r, "PodDeviceEntries", "a list", value);
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_element(&cut, &element)) {
        if (r->n_entries == r->entries.n)
            (void)dv_vec_add_in(&r->entries, r->arena); /* it is filled next */
        if (!read_object(r, "PodDeviceEntries", element, read_entry_member,
                         &r->entries.v[r->n_entries++]))
            return false;
    }
    if (r->n_entries == 0)
        dv_vec_clear(&r->entries);
    return true;
}

static bool read_registered(struct reading *r, dv_str value)
{
    struct dv_device_cut cut;
    dv_str key, member;

    r->has_registered = !is_null(value);
    if (!r->has_registered) {
        dv_vec_clear(&r->registered);
        return true;
    }
    if (!is_object(value))
        return fail_type(r, "RegisteredDevices", "an object", value);
    dv_device_cut_init(&cut, value);
    while (dv_device_cut_member(&cut, &key, &member)) {
        struct named_ids *registered = dv_vec_add_in(&r->registered, r->arena);

        registered->name = unquote(r, key);
        registered->order = r->registered.n;
        if (!read_ids(r, "RegisteredDevices", member, &registered->ids))
            return false;
    }
    return true;
}

static bool read_data_member(struct reading *r, dv_str key, dv_str member, void *ctx)
{
    (void)ctx;
    if (dv_json_is_go_field(key, "PodDeviceEntries"))
        return read_entries(r, member);
    if (dv_json_is_go_field(key, "RegisteredDevices"))
        return read_registered(r, member);
    return true;
}

static bool read_file_member(struct reading *r, dv_str key, dv_str member, void *ctx)
{
    (void)ctx;
    if (dv_json_is_go_field(key, "Data"))
        return read_object(r, "Data", member, read_data_member, NULL);
    if (dv_json_is_go_field(key, "Checksum"))
        return read_u64(r, "Checksum", member, UINT64_MAX, &r->checksum);
    return true;
}

/* -- The outcome ---------------------------------------------------------------------------- */

static int numbered_cmp(const void *a, const void *b)
{
    const struct numbered_ids *x = a;
    const struct numbered_ids *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int named_cmp(const void *a, const void *b)
{
    const struct named_ids *x = a;
    const struct named_ids *y = b;
    int order = dv_str_cmp(x->name, y->name);

    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static void take_placed(struct reading *r, struct entry *entry, struct dv_device_record *record)
{
    struct dv_device_placed *placed =
        DV_NEW_ARRAY(r->arena, struct dv_device_placed, entry->placed.n);
    size_t n = 0;

    if (!entry->has_placed)
        return;
    if (entry->placed.n > 0)
        qsort(entry->placed.v, entry->placed.n, sizeof(entry->placed.v[0]), numbered_cmp);
    for (size_t i = 0; i < entry->placed.n; i++) {
        const struct numbered_ids *from = &entry->placed.v[i];

        if (n > 0 && placed[n - 1].node == from->node)
            n--; /* the later one counts */
        placed[n++] = (struct dv_device_placed){from->node, from->ids.v, from->ids.n};
    }
    record->placed = placed;
    record->n_placed = n;
}

static void take_records(struct reading *r, struct dv_device_checkpoint *checkpoint)
{
    struct dv_device_record *records =
        DV_NEW_ARRAY(r->arena, struct dv_device_record, r->n_entries);

    if (!r->has_entries)
        return;
    for (size_t i = 0; i < r->n_entries; i++) {
        struct entry *entry = &r->entries.v[i];

        records[i].pod_uid = entry->pod_uid;
        records[i].container = entry->container;
        records[i].resource = entry->resource;
        records[i].response = (dv_str){entry->response.v, entry->response.n};
        take_placed(r, entry, &records[i]);
    }
    checkpoint->records = records;
    checkpoint->n_records = r->n_entries;
}

static void take_registered(struct reading *r, struct dv_device_checkpoint *checkpoint)
{
    struct dv_device_registered *registered =
        DV_NEW_ARRAY(r->arena, struct dv_device_registered, r->registered.n);
    size_t n = 0;

    if (!r->has_registered)
        return;
    if (r->registered.n > 0)
        qsort(r->registered.v, r->registered.n, sizeof(r->registered.v[0]), named_cmp);
    for (size_t i = 0; i < r->registered.n; i++) {
        const struct named_ids *from = &r->registered.v[i];

        if (n > 0 && dv_str_eq(registered[n - 1].resource, from->name))
            n--; /* the later one counts */
        registered[n++] = (struct dv_device_registered){from->name, from->ids.v, from->ids.n};
    }
    checkpoint->registered = registered;
    checkpoint->n_registered = n;
}

enum dv_device_verdict dv_device_checkpoint_read(dv_str bytes, struct dv_arena *arena,
                                                 struct dv_device_checkpoint *checkpoint,
                                                 uint64_t *checksum, struct dv_err *err)
{
    static const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    struct reading r = {.arena = arena, .err = err, .has_entries = true, .has_registered = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *tree = dv_arena_new();

    if (!dv_json_parse(bytes, &opts, tree, err))
        return DV_DEVICE_CHECKPOINT_JSON_SYNTAX;
    if (!read_object(&r, "checkpoint", dv_str_trim(bytes), read_file_member, NULL))
        return r.verdict;
    *checkpoint = (struct dv_device_checkpoint){0};
    take_records(&r, checkpoint);
    take_registered(&r, checkpoint);
    *checksum = r.checksum;
    return DV_DEVICE_CHECKPOINT_OK;
}

enum dv_device_verdict dv_device_checkpoint_decode(dv_str bytes, struct dv_arena *arena,
                                                   struct dv_device_checkpoint *checkpoint,
                                                   struct dv_err *err)
{
    struct dv_device_checkpoint read;
    uint64_t checksum;
    enum dv_device_verdict verdict = dv_device_checkpoint_read(bytes, arena, &read, &checksum, err);

    if (verdict != DV_DEVICE_CHECKPOINT_OK)
        return verdict;
    if (checksum != dv_device_checkpoint_sum(&read)) {
        (void)dv_fail(err, DV_DATA_LOSS, "checkpoint is corrupted");
        return DV_DEVICE_CHECKPOINT_CORRUPT;
    }
    *checkpoint = read;
    return DV_DEVICE_CHECKPOINT_OK;
}
