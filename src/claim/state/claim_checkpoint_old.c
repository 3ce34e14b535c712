/* claim_checkpoint_old.c - the forms that dra_manager_state had from 1.27 to 1.30:
 *
 *     {"version":"v1","entries":[{DriverName, ClassName, ClaimUID, ClaimName, Namespace, PodUIDs,
 *                                 ResourceHandles (from 1.28), CDIDevices}],"checksum":n}
 *
 * A claim was one driver's then, and what the driver had prepared were CDI names for the whole
 * claim: no pools, devices or requests. The checksum is over the content as Go prints it, with its
 * types; 1.28 and 1.30 print handles differently and write them alike, so either may match. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/state/claim_state.h"
#include "pb/pb.h"
#include "json/json.h"

/* A bound for the text that is hashed; the file is shorter. */
#define TEXT_BYTES_MAX (1024u * 1024u * 1024u)

#define NAME_127 "Kubernetes 1.27"
#define NAME_128 "Kubernetes 1.28 to 1.30"

static const struct dv_json *part(const struct dv_json *object, const char *key)
{
    return dv_json_get(object, dv_str_from_c(key));
}

static dv_str text_of(const struct dv_json *object, const char *key)
{
    const struct dv_json *node = part(object, key);
    struct dv_err other;
    dv_str text;

    return node && dv_json_as_str(node, &text, &other) ? text : DV_STR("");
}

static bool is_null(const struct dv_json *node)
{
    return !node || dv_json_is(node, DV_JSON_NULL);
}

/* -- The checksum --------------------------------------------------------------------------- */

/* How handles are printed. */
enum handles {
    HANDLES_ABSENT,     /* 1.27 */
    HANDLES_PLAIN,      /* 1.28, 1.29 */
    HANDLES_STRUCTURED, /* 1.30, where a claim has no structured one */
};

static int compare_members(const void *a, const void *b)
{
    return dv_str_cmp(dv_json_key(*(const struct dv_json *const *)a),
                      dv_json_key(*(const struct dv_json *const *)b));
}

/* The members of an object by their names, as Go walks a map when it prints. */
static const struct dv_json **sorted_members(const struct dv_json *object, struct dv_arena *arena,
                                             size_t *n_members)
{
    const struct dv_json **members = DV_NEW_ARRAY(arena, const struct dv_json *, dv_json_n(object));
    size_t n = 0;

    for (const struct dv_json *next = dv_json_first(object); next; next = dv_json_next(next))
        members[n++] = next;
    if (n > 0)
        qsort(members, n, sizeof(members[0]), compare_members);
    *n_members = n;
    return members;
}

static void add_field(struct dv_buf *buf, const char *label, const struct dv_json *entry,
                      const char *key)
{
    dv_buf_add_c(buf, label);
    dv_buf_add(buf, text_of(entry, key));
}

static void add_list(struct dv_buf *buf, const struct dv_json *list)
{
    struct dv_err err;
    dv_str text;

    if (is_null(list)) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_char(buf, '[');
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        if (item != dv_json_first(list))
            dv_buf_add_char(buf, ' ');
        if (dv_json_as_str(item, &text, &err))
            dv_buf_add(buf, text);
    }
    dv_buf_add_char(buf, ']');
}

/* Prints a map: of lists, or of nothing, as a set is one. */
static void add_map(struct dv_buf *buf, const struct dv_json *object, bool is_set,
                    struct dv_arena *arena)
{
    const struct dv_json **members;
    size_t n;

    if (is_null(object)) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    members = sorted_members(object, arena, &n);
    dv_buf_add_c(buf, "map[");
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i > 0 ? " " : "");
        dv_buf_add(buf, dv_json_key(members[i]));
        dv_buf_add_char(buf, ':');
        if (is_set)
            dv_buf_add_c(buf, "{}");
        else
            add_list(buf, members[i]);
    }
    dv_buf_add_char(buf, ']');
}

static void add_handles(struct dv_buf *buf, const struct dv_json *list, enum handles handles)
{
    dv_buf_add_c(buf, " ResourceHandles:([]v1alpha2.ResourceHandle)");
    if (is_null(list)) {
        dv_buf_add_c(buf, "<nil>");
        return;
    }
    dv_buf_add_char(buf, '[');
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        add_field(buf,
                  item == dv_json_first(list) ? "{DriverName:(string)" : " {DriverName:(string)",
                  item, "driverName");
        add_field(buf, " Data:(string)", item, "data");
        if (handles == HANDLES_STRUCTURED)
            dv_buf_add_c(buf, " StructuredData:(*v1alpha2.StructuredResourceHandle)<nil>");
        dv_buf_add_char(buf, '}');
    }
    dv_buf_add_char(buf, ']');
}

static void add_entry(struct dv_buf *buf, const struct dv_json *entry, enum handles handles,
                      struct dv_arena *arena)
{
    add_field(buf, "{DriverName:(string)", entry, "DriverName");
    add_field(buf, " ClassName:(string)", entry, "ClassName");
    add_field(buf, " ClaimUID:(types.UID)", entry, "ClaimUID");
    add_field(buf, " ClaimName:(string)", entry, "ClaimName");
    add_field(buf, " Namespace:(string)", entry, "Namespace");
    dv_buf_add_c(buf, " PodUIDs:(sets.Set[string])");
    add_map(buf, part(entry, "PodUIDs"), true, arena);
    if (handles != HANDLES_ABSENT)
        add_handles(buf, part(entry, "ResourceHandles"), handles);
    dv_buf_add_c(buf, " CDIDevices:(map[string][]string)");
    add_map(buf, part(entry, "CDIDevices"), false, arena);
    dv_buf_add_char(buf, '}');
}

static uint32_t sum_of(const struct dv_json *file, enum handles handles, struct dv_arena *arena)
{
    const struct dv_json *entries = part(file, "entries");
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    add_field(&text, "(*state.DRAManagerCheckpoint){Version:(string)", file, "version");
    dv_buf_add_c(&text, " Entries:(state.ClaimInfoStateList)");
    dv_buf_add_c(&text, is_null(entries) ? "<nil>" : "[");
    for (const struct dv_json *entry = dv_json_first(entries); entry; entry = dv_json_next(entry)) {
        dv_buf_add_c(&text, entry == dv_json_first(entries) ? "" : " ");
        add_entry(&text, entry, handles, arena);
    }
    dv_buf_add_c(&text, is_null(entries) ? "" : "]");
    dv_buf_add_c(&text, " Checksum:(checksum.Checksum)0}");
    return dv_fnv1a(dv_buf_str(&text));
}

static bool check_sum(const struct dv_json *file, bool has_handles, struct dv_arena *arena,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(file, DV_STR("checksum"), err);
    uint64_t sum;

    if (!node || !dv_json_as_u64(node, &sum, err))
        return false;
    for (enum handles i = has_handles ? HANDLES_PLAIN : HANDLES_ABSENT;
         i <= (has_handles ? HANDLES_STRUCTURED : HANDLES_ABSENT); i++)
        if (sum_of(file, i, arena) == sum)
            return true;
    return dv_fail(err, DV_DATA_LOSS, "checkpoint is corrupted");
}

/* -- Records -------------------------------------------------------------------------------- */

static bool read_texts(const struct dv_json *list, struct dv_arena *arena, const dv_str **texts,
                       size_t *n_texts, struct dv_err *err)
{
    dv_str *v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(list));
    size_t n = 0;

    if (!is_null(list) && !dv_json_expect(list, DV_JSON_ARRAY, err))
        return false;
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item))
        if (!dv_json_as_str(item, &v[n++], err))
            return false;
    *texts = v;
    *n_texts = n;
    return true;
}

/* Takes what one driver has prepared as one device, which is for all requests. */
static bool read_driver(const struct dv_json *list, struct dv_arena *arena,
                        struct dv_claim_driver *driver, struct dv_err *err)
{
    struct dv_claim_device *device = DV_NEW(arena, struct dv_claim_device);

    device->pool = device->name = DV_STR("");
    if (!read_texts(list, arena, &device->cdi_ids, &device->n_cdi_ids, err))
        return false;
    driver->devices = device;
    driver->n_devices = device->n_cdi_ids > 0 ? 1 : 0;
    return true;
}

/* The driver's handle, encoded as requests have it; one without a driver's name is the claim's own
 * driver's. */
static dv_str handle_of(const struct dv_json *entry, dv_str driver, struct dv_arena *arena)
{
    const struct dv_json *handles = part(entry, "ResourceHandles");
    dv_str handle = DV_STR_NONE;

    for (const struct dv_json *item = dv_json_first(handles); item; item = dv_json_next(item)) {
        dv_str name = text_of(item, "driverName");
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        if (!dv_str_eq(name.n > 0 ? name : text_of(entry, "DriverName"), driver) ||
            text_of(item, "data").n == 0)
            continue;
        dv_pb_add_bytes(&buf, DV_CLAIM_HANDLE_FIELD, text_of(item, "data"));
        handle = dv_str_copy(dv_buf_str(&buf), arena);
    }
    return handle;
}

/* Makes a driver of each that has prepared something, and of the claim's own when it has not. */
static bool read_drivers(const struct dv_json *entry, struct dv_arena *arena,
                         struct dv_claim_record *record, struct dv_err *err)
{
    const struct dv_json *prepared = part(entry, "CDIDevices");
    dv_str own = text_of(entry, "DriverName");
    struct dv_claim_driver *drivers;
    const struct dv_json **members;
    size_t n;

    if (!is_null(prepared) && !dv_json_expect(prepared, DV_JSON_OBJECT, err))
        return false;
    members = sorted_members(prepared, arena, &n);
    drivers = DV_NEW_ARRAY(arena, struct dv_claim_driver, n + 1);
    for (size_t i = 0; i < n; i++) {
        drivers[i].name = dv_json_key(members[i]);
        if (!read_driver(members[i], arena, &drivers[i], err))
            return false;
    }
    if (n == 0 && own.n > 0)
        drivers[n++].name = own;
    for (size_t i = 0; i < n; i++)
        drivers[i].handle = handle_of(entry, drivers[i].name, arena);
    record->drivers = drivers;
    record->n_drivers = n;
    return true;
}

static bool read_record(const struct dv_json *entry, struct dv_arena *arena,
                        struct dv_claim_record *record, struct dv_err *err)
{
    const struct dv_json *pods = part(entry, "PodUIDs");
    const struct dv_json **members;
    dv_str *uids;

    if (!dv_json_expect(entry, DV_JSON_OBJECT, err) ||
        (!is_null(pods) && !dv_json_expect(pods, DV_JSON_OBJECT, err)))
        return false;
    members = sorted_members(pods, arena, &record->n_pods);
    uids = DV_NEW_ARRAY(arena, dv_str, record->n_pods);
    for (size_t i = 0; i < record->n_pods; i++)
        uids[i] = dv_json_key(members[i]);
    record->pods = uids;
    record->uid = text_of(entry, "ClaimUID");
    record->name = text_of(entry, "ClaimName");
    record->namespace = text_of(entry, "Namespace");
    record->phase = DV_CLAIM_PREPARING;
    return read_drivers(entry, arena, record, err);
}

static bool read_records(const struct dv_json *entries, struct dv_arena *arena,
                         struct dv_claim_checkpoint *checkpoint, struct dv_err *err)
{
    struct dv_claim_record *records =
        DV_NEW_ARRAY(arena, struct dv_claim_record, dv_json_n(entries));
    size_t n = 0;

    for (const struct dv_json *entry = dv_json_first(entries); entry; entry = dv_json_next(entry))
        if (!read_record(entry, arena, &records[n++], err))
            return false;
    *checkpoint = (struct dv_claim_checkpoint){.records = records, .n_records = n};
    return true;
}

/* Whether a handle has a member that the checksum cannot be computed with. */
static bool has_structured(const struct dv_json *entries, bool *has_handles)
{
    bool found = false;

    *has_handles = false;
    for (const struct dv_json *entry = dv_json_first(entries); entry; entry = dv_json_next(entry)) {
        const struct dv_json *handles = part(entry, "ResourceHandles");

        *has_handles |= handles != NULL;
        for (const struct dv_json *item = dv_json_first(handles); item; item = dv_json_next(item))
            found |= !is_null(part(item, "structuredData"));
    }
    return found;
}

bool dv_claim_checkpoint_decode_old(dv_str bytes, struct dv_arena *arena,
                                    struct dv_claim_checkpoint *checkpoint,
                                    struct dv_claim_old_form *form, struct dv_err *err)
{
    static const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    const struct dv_json *file = dv_json_parse(bytes, &opts, arena, err);
    const struct dv_json *entries = part(file, "entries");
    bool has_handles;

    *form = (struct dv_claim_old_form){0};
    if (!file)
        return false;
    if (!part(file, "version"))
        return dv_fail(err, DV_INVALID_ARGUMENT, "no form of an older release");
    form->is_unchecked = has_structured(entries, &has_handles);
    form->name = has_handles ? NAME_128 : NAME_127;
    if (!dv_str_eq(text_of(file, "version"), DV_STR("v1")))
        return dv_fail(err, DV_UNIMPLEMENTED, "of version \"%.*s\", which no release has written",
                       DV_FMT(text_of(file, "version")));
    if (!is_null(entries) && !dv_json_expect(entries, DV_JSON_ARRAY, err))
        return false;
    return (form->is_unchecked || check_sum(file, has_handles, arena, err)) &&
           read_records(entries, arena, checkpoint, err);
}
