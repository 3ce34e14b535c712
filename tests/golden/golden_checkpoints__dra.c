/* golden_checkpoints__dra.c - replays the DRA manager's part of golden/checkpoints: state files are
 * written from their states and compared byte for byte, read again, taken into a state and written
 * from there; damaged ones get their verdicts, and what is loaded of them is compared.
 *
 *     golden_checkpoints__dra DIR      DIR holds these files */
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim.h"
#include "jsonl.h"
#include "json/json.h"

/* -- The corpus' JSON, in and out ----------------------------------------------------------- */

static dv_str text_of(const struct dv_json *object, const char *key)
{
    dv_str text = DV_STR("");
    struct dv_err err;

    if (!dv_json_as_str(dv_json_get(object, dv_str_from_c(key)), &text, &err))
        return DV_STR_NONE;
    return text.p ? text : DV_STR("");
}

static dv_str bytes_of(const struct jsonl_record *record, const char *key)
{
    dv_str bytes = DV_STR_NONE;

    if (!dv_json_get(record->json, dv_str_from_c(key)) ||
        !dv_base64_decode(jsonl_str(record, key), record->arena, &bytes))
        return DV_STR_NONE;
    return bytes;
}

static const dv_str *texts_of(const struct dv_json *array, struct dv_arena *arena, size_t *n)
{
    dv_str *texts = DV_NEW_ARRAY(arena, dv_str, dv_json_n(array));
    struct dv_err err;

    *n = 0;
    if (!dv_json_is(array, DV_JSON_ARRAY))
        return NULL;
    for (const struct dv_json *item = dv_json_first(array); item; item = dv_json_next(item))
        if (dv_json_as_str(item, &texts[*n], &err))
            (*n)++;
    return texts;
}

static int str_cmp(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

static struct dv_claim_driver driver_of(const struct dv_json *json, struct dv_arena *arena)
{
    const struct dv_json *list = dv_json_get(json, DV_STR("Devices"));
    struct dv_claim_device *devices = DV_NEW_ARRAY(arena, struct dv_claim_device, dv_json_n(list));
    struct dv_claim_driver driver = {.name = dv_json_key(json)};

    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        struct dv_claim_device *device = &devices[driver.n_devices++];

        device->pool = text_of(item, "PoolName");
        device->name = text_of(item, "DeviceName");
        device->share_id = text_of(item, "ShareID");
        device->requests =
            texts_of(dv_json_get(item, DV_STR("RequestNames")), arena, &device->n_requests);
        device->cdi_ids =
            texts_of(dv_json_get(item, DV_STR("CDIDeviceIDs")), arena, &device->n_cdi_ids);
    }
    driver.devices = dv_json_is(list, DV_JSON_ARRAY) ? devices : NULL;
    return driver;
}

static int driver_cmp(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_claim_driver *)a)->name,
                      ((const struct dv_claim_driver *)b)->name);
}

static struct dv_claim_record record_of(const struct dv_json *json, struct dv_arena *arena)
{
    const struct dv_json *pods = dv_json_get(json, DV_STR("PodUIDs"));
    const struct dv_json *drivers = dv_json_get(json, DV_STR("DriverState"));
    dv_str *uids = DV_NEW_ARRAY(arena, dv_str, dv_json_n(pods));
    struct dv_claim_driver *v = DV_NEW_ARRAY(arena, struct dv_claim_driver, dv_json_n(drivers));
    struct dv_claim_record record = {
        .uid = text_of(json, "ClaimUID"),
        .name = text_of(json, "ClaimName"),
        .namespace = text_of(json, "Namespace"),
    };

    for (const struct dv_json *item = dv_json_first(pods); item; item = dv_json_next(item))
        uids[record.n_pods++] = dv_json_key(item);
    for (const struct dv_json *item = dv_json_first(drivers); item; item = dv_json_next(item))
        v[record.n_drivers++] = driver_of(item, arena);
    qsort(uids, record.n_pods, sizeof(uids[0]), str_cmp);
    qsort(v, record.n_drivers, sizeof(v[0]), driver_cmp);
    record.pods = dv_json_is(pods, DV_JSON_OBJECT) ? uids : NULL;
    record.drivers = dv_json_is(drivers, DV_JSON_OBJECT) ? v : NULL;
    return record;
}

static struct dv_claim_checkpoint checkpoint_of(const struct dv_json *state, struct dv_arena *arena)
{
    const struct dv_json *list = dv_json_get(state, DV_STR("ClaimInfoStateList"));
    struct dv_claim_record *records = DV_NEW_ARRAY(arena, struct dv_claim_record, dv_json_n(list));
    struct dv_claim_checkpoint checkpoint = {0};

    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item))
        records[checkpoint.n_records++] = record_of(item, arena);
    checkpoint.records = dv_json_is(list, DV_JSON_ARRAY) ? records : NULL;
    return checkpoint;
}

/* What is loaded: by namespace and name, as the corpus has it. */
static const struct dv_json *loaded_json(const struct dv_claim_checkpoint *checkpoint,
                                         struct dv_arena *arena)
{
    struct dv_json *loaded = dv_json_new_object(arena);
    struct dv_buf text;
    struct dv_err err;
    const struct dv_json *data;

    dv_buf_init(&text, SIZE_MAX);
    dv_claim_checkpoint_text(checkpoint, &text);
    data = dv_json_parse(dv_str_copy(dv_buf_str(&text), arena), NULL, arena, &err);
    dv_buf_fini(&text);
    data = dv_json_get(data, DV_STR("ClaimInfoStateList"));
    for (const struct dv_json *item = dv_json_first(data); item; item = dv_json_next(item))
        dv_json_set(loaded,
                    dv_str_printf(arena, "%.*s/%.*s", DV_FMT(text_of(item, "Namespace")),
                                  DV_FMT(text_of(item, "ClaimName"))),
                    dv_json_copy(item, arena), arena);
    return loaded;
}

/* -- dra_manager_state ---------------------------------------------------------------------- */

static struct dv_map bases; /* id -> dv_str: the bytes of a file */
static struct dv_arena *bases_arena;

static void keep_base(const struct jsonl_record *record, dv_str file)
{
    dv_str *base = DV_NEW(bases_arena, dv_str);

    *base = dv_str_copy(file, bases_arena);
    (void)dv_map_set(&bases, dv_str_copy(jsonl_str(record, "id"), bases_arena), base);
}

static void compare_written(struct jsonl_record *record, const char *what,
                            const struct dv_claim_checkpoint *checkpoint, dv_str want)
{
    struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_claim_checkpoint_encode(checkpoint, &buf);
    jsonl_compare_str(record, what, dv_buf_str(&buf), want);
    dv_buf_fini(&buf);
}

/* Null where there should be an object is the one thing that a state does not keep. */
static bool keeps_all(const struct dv_claim_checkpoint *checkpoint)
{
    struct dv_map seen;
    bool keeps = checkpoint->records != NULL;

    dv_map_init(&seen);
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        const struct dv_claim_record *record = &checkpoint->records[i];

        keeps = keeps && record->pods && record->drivers &&
                !dv_map_set(&seen, record->name, &seen); /* of two one is kept */
    }
    dv_map_fini(&seen);
    return keeps;
}

static void compare_through_state(struct jsonl_record *record,
                                  const struct dv_claim_checkpoint *checkpoint, dv_str file)
{
    struct dv_claim_state *state = dv_claim_state_new(&(struct dv_claim_opts){0});
    struct dv_claim_checkpoint taken;

    (void)dv_claim_checkpoint_apply(state, checkpoint);
    dv_claim_checkpoint_take(state, record->arena, &taken);
    compare_written(record, "file written from a state", &taken, file);
    dv_claim_state_free(state);
}

static void replay_state(struct jsonl_record *record)
{
    struct dv_claim_checkpoint checkpoint =
        checkpoint_of(dv_json_get(record->json, DV_STR("state")), record->arena);
    dv_str file = bytes_of(record, "file_b64");
    struct dv_claim_checkpoint read;
    struct dv_err err = {0};

    compare_written(record, "file", &checkpoint, file);
    jsonl_compare_i64(record, "checksum", dv_claim_checkpoint_sum(jsonl_str(record, "data")),
                      jsonl_i64(record, "checksum"));
    jsonl_compare_i64(record, "verdict",
                      dv_claim_checkpoint_decode(file, record->arena, &read, &err),
                      DV_CLAIM_FILE_OK);
    if (record->has_failed)
        return;
    compare_written(record, "file written again", &read, file);
    if (keeps_all(&read))
        compare_through_state(record, &read, file);
    keep_base(record, file);
}

/* A verdict, and the class of an error, in the words of the corpus. */
static const struct {
    const char *verdict;
    const char *class;
} verdicts[] = {
    [DV_CLAIM_FILE_OK] = {"ok",      ""                 },
    [DV_CLAIM_FILE_CORRUPT] = {"corrupt", "checksum-mismatch"},
    [DV_CLAIM_FILE_JSON_SYNTAX] = {"error",   "json-syntax"      },
    [DV_CLAIM_FILE_JSON_TYPE] = {"error",   "json-type"        },
    [DV_CLAIM_FILE_OTHER] = {"error",   "other"            },
};

static void compare_verdict(struct jsonl_record *record, enum dv_claim_verdict verdict)
{
    jsonl_compare_str(record, "verdict", dv_str_from_c(verdicts[verdict].verdict),
                      jsonl_str(record, "verdict"));
    if (dv_json_get(record->json, DV_STR("errorClass")))
        jsonl_compare_str(record, "errorClass", dv_str_from_c(verdicts[verdict].class),
                          jsonl_str(record, "errorClass"));
}

static void compare_loaded(struct jsonl_record *record, const struct dv_json *got)
{
    const struct dv_json *want = dv_json_get(record->json, DV_STR("loaded"));
    struct dv_claim_checkpoint base;
    struct dv_err err;
    const dv_str *file;

    if (!want && jsonl_bool(record, "loadedSameAsBase")) {
        file = dv_map_get(&bases, jsonl_str(record, "base"));
        if (file &&
            dv_claim_checkpoint_decode(*file, record->arena, &base, &err) == DV_CLAIM_FILE_OK)
            want = loaded_json(&base, record->arena);
    }
    if (want)
        jsonl_compare_bool(record, "what is loaded", dv_json_eq(got, want), true);
}

static void replay_variant(struct jsonl_record *record)
{
    struct dv_claim_checkpoint read = {0};
    enum dv_claim_verdict verdict = DV_CLAIM_FILE_OK;
    struct dv_err err = {0};

    if (dv_json_get(record->json, DV_STR("file_b64")))
        verdict =
            dv_claim_checkpoint_decode(bytes_of(record, "file_b64"), record->arena, &read, &err);
    else /* there was none: a new one is made */
        compare_written(record, "new file", &read, bytes_of(record, "fileAfterStart_b64"));
    compare_verdict(record, verdict);
    if (verdict == DV_CLAIM_FILE_OK)
        compare_loaded(record, loaded_json(&read, record->arena));
}

/* -- dra_health_state ----------------------------------------------------------------------- */

static struct dv_claim_health_entry entry_of(struct jsonl_record *record,
                                             const struct dv_json *json)
{
    struct dv_claim_health_entry entry = {
        .key = dv_json_key(json),
        .pool = text_of(json, "PoolName"),
        .device = text_of(json, "DeviceName"),
        .health = text_of(json, "Health"),
        .message = text_of(json, "Message"),
    };
    struct dv_err err;

    jsonl_compare_bool(
        record, "time",
        dv_rfc3339_parse(text_of(json, "LastUpdated"), DV_RFC3339_STRICT, &entry.updated), true);
    if (!dv_json_as_i64(dv_json_get(json, DV_STR("HealthCheckTimeout")), &entry.timeout_ns, &err))
        jsonl_compare_bool(record, "timeout", false, true);
    return entry;
}

static int entry_cmp(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_claim_health_entry *)a)->key,
                      ((const struct dv_claim_health_entry *)b)->key);
}

static int health_cmp(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_claim_health_of_driver *)a)->driver,
                      ((const struct dv_claim_health_of_driver *)b)->driver);
}

static struct dv_claim_health_file health_of(struct jsonl_record *record,
                                             const struct dv_json *state)
{
    struct dv_claim_health_of_driver *drivers =
        DV_NEW_ARRAY(record->arena, struct dv_claim_health_of_driver, dv_json_n(state));
    struct dv_claim_health_file file = {.drivers = drivers};

    for (const struct dv_json *item = dv_json_first(state); item; item = dv_json_next(item)) {
        const struct dv_json *devices = dv_json_get(item, DV_STR("Devices"));
        struct dv_claim_health_entry *entries =
            DV_NEW_ARRAY(record->arena, struct dv_claim_health_entry, dv_json_n(devices));
        struct dv_claim_health_of_driver *driver = &drivers[file.n_drivers++];

        driver->driver = dv_json_key(item);
        for (const struct dv_json *one = dv_json_first(devices); one; one = dv_json_next(one))
            entries[driver->n_entries++] = entry_of(record, one);
        qsort(entries, driver->n_entries, sizeof(entries[0]), entry_cmp);
        driver->entries = dv_json_is(devices, DV_JSON_OBJECT) ? entries : NULL;
    }
    qsort(drivers, file.n_drivers, sizeof(drivers[0]), health_cmp);
    return file;
}

static dv_str health_text(const struct dv_claim_health_file *file, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, SIZE_MAX);
    dv_claim_health_encode(file, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static void replay_health(struct jsonl_record *record)
{
    struct dv_claim_health_file health =
        health_of(record, dv_json_get(record->json, DV_STR("state")));
    struct dv_claim_state *state = dv_claim_state_new(&(struct dv_claim_opts){0});
    dv_str file = bytes_of(record, "file_b64");
    struct dv_claim_health_file read;
    struct dv_err err = {0};

    jsonl_compare_str(record, "file", health_text(&health, record->arena), file);
    jsonl_compare_i64(record, "verdict",
                      dv_claim_health_file_decode(file, record->arena, &read, &err),
                      DV_CLAIM_FILE_OK);
    jsonl_compare_str(record, "file written again", health_text(&read, record->arena), file);
    (void)dv_claim_health_restore(state, &read);
    dv_claim_health_take(state, record->arena, &read);
    jsonl_compare_str(record, "file written from a state", health_text(&read, record->arena), file);
    dv_claim_state_free(state);
}

static void replay_health_variant(struct jsonl_record *record)
{
    const struct dv_json *want = dv_json_get(record->json, DV_STR("loaded"));
    struct dv_claim_health_file read;
    const struct dv_json *got;
    struct dv_err err = {0};

    compare_verdict(record, dv_claim_health_file_decode(bytes_of(record, "file_b64"), record->arena,
                                                        &read, &err));
    got = dv_json_parse(health_text(&read, record->arena), NULL, record->arena, &err);
    if (want)
        jsonl_compare_bool(record, "what is loaded", got && dv_json_eq(got, want), true);
}

static void replay_running(struct jsonl_record *record)
{
    if (dv_str_eq(jsonl_str(record, "file"), DV_STR("dra_manager_state")))
        replay_variant(record);
    else if (dv_str_eq(jsonl_str(record, "file"), DV_STR("dra_health_state")))
        replay_health_variant(record);
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"dra_manager.jsonl", {"checksum", "data", "state"}, {NULL}},          replay_state         },
        {{"*dra_manager*variants*", {NULL}, {NULL}},                            replay_variant       },
        {{"dra_health.jsonl", {"file_b64", "state"}, {"checksum"}},             replay_health        },
        {{"*dra_health*variants*", {NULL}, {NULL}},                             replay_health_variant},
        {{"from_a_running_kubelet.jsonl", {"file", "when", "verdict"}, {NULL}}, replay_running       },
    };
    int status;

    dv_map_init(&bases);
    bases_arena = dv_arena_new();
    status = jsonl_main(argc, argv, replays, DV_COUNT(replays));
    dv_map_fini(&bases);
    dv_arena_free(bases_arena);
    return status;
}
