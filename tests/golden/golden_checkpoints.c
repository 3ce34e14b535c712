/* golden_checkpoints.c - replays golden/checkpoints: state files of the kubelet are written from
 * their states and compared byte for byte, read again, and loaded; damaged ones get their verdicts.
 *
 *     golden_checkpoints DIR      DIR holds these files
 *
 * Those of the device manager; golden_checkpoints__dra.c has the others. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "checkpoint_json.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_checkpoint.h"
#include "files.h"
#include "json/json.h"

#define DEVICE_FILE "kubelet_internal_checkpoint"

struct replay {
    unsigned n_passed;
    unsigned n_failed;
    struct dv_arena *arena; /* for what is kept between lines */
    struct dv_map bases;    /* id -> dv_str of a file's bytes */
};

/* One line of a file. */
struct record {
    const char *file;
    unsigned line;
    const struct dv_json *json;
    struct dv_arena *arena;
    struct replay *replay;
};

/* -- Reading -------------------------------------------------------------------------------- */

/* Ends the program when the record is not what the corpus' README says. */
static void must(const struct record *record, bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s:%u: %s\n", record->file, record->line, err->msg);
    exit(2);
}

static dv_str text_of(const struct record *record, const struct dv_json *object, const char *key)
{
    struct dv_err err;
    const struct dv_json *node = dv_json_require(object, dv_str_from_c(key), &err);
    dv_str text = DV_STR_NONE;

    must(record, node && dv_json_as_str(node, &text, &err), &err);
    return text;
}

/* NULL for null, as a checkpoint has it; never for "". */
static dv_str bytes_of(const struct record *record, const struct dv_json *object, const char *key)
{
    struct dv_err err = {.code = DV_INVALID_ARGUMENT, .msg = "not base64"};
    dv_str bytes;

    if (dv_json_is(dv_json_get(object, dv_str_from_c(key)), DV_JSON_NULL))
        return DV_STR_NONE;
    must(record, dv_base64_decode(text_of(record, object, key), record->arena, &bytes), &err);
    return bytes;
}

static void check(const struct record *record, const char *what, bool is_right)
{
    if (is_right) {
        record->replay->n_passed++;
        return;
    }
    record->replay->n_failed++;
    printf("%s:%u: %s\n", record->file, record->line, what);
}

/* -- A state, from its JSON ----------------------------------------------------------------- */

static const dv_str *ids_of(const struct record *record, const struct dv_json *array, size_t *n)
{
    dv_str *ids = DV_NEW_ARRAY(record->arena, dv_str, dv_json_n(array));
    struct dv_err err;

    *n = 0;
    if (dv_json_is(array, DV_JSON_NULL))
        return NULL;
    for (const struct dv_json *id = dv_json_first(array); id; id = dv_json_next(id))
        must(record, dv_json_as_str(id, &ids[(*n)++], &err), &err);
    return ids;
}

static int placed_cmp(const void *a, const void *b)
{
    const struct dv_device_placed *x = a;
    const struct dv_device_placed *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

static void read_placed(const struct record *record, const struct dv_json *object,
                        struct dv_device_record *entry)
{
    struct dv_device_placed *placed =
        DV_NEW_ARRAY(record->arena, struct dv_device_placed, dv_json_n(object));
    struct dv_err err = {.code = DV_INVALID_ARGUMENT, .msg = "a node that is no number"};

    if (dv_json_is(object, DV_JSON_NULL))
        return;
    for (const struct dv_json *node = dv_json_first(object); node; node = dv_json_next(node)) {
        struct dv_device_placed *one = &placed[entry->n_placed++];

        must(record, dv_str_to_i64(dv_json_key(node), &one->node), &err);
        one->ids = ids_of(record, node, &one->n_ids);
    }
    qsort(placed, entry->n_placed, sizeof(placed[0]), placed_cmp);
    entry->placed = placed;
}

static void read_records(const struct record *record, const struct dv_json *array,
                         struct dv_device_checkpoint *checkpoint)
{
    struct dv_device_record *entries =
        DV_NEW_ARRAY(record->arena, struct dv_device_record, dv_json_n(array));

    if (dv_json_is(array, DV_JSON_NULL))
        return;
    for (const struct dv_json *from = dv_json_first(array); from; from = dv_json_next(from)) {
        struct dv_device_record *entry = &entries[checkpoint->n_records++];

        entry->pod_uid = text_of(record, from, "PodUID");
        entry->container = text_of(record, from, "ContainerName");
        entry->resource = text_of(record, from, "ResourceName");
        entry->response = bytes_of(record, from, "AllocResp");
        read_placed(record, dv_json_get(from, DV_STR("DeviceIDs")), entry);
    }
    checkpoint->records = entries;
}

static int registered_cmp(const void *a, const void *b)
{
    const struct dv_device_registered *x = a;
    const struct dv_device_registered *y = b;

    return dv_str_cmp(x->resource, y->resource);
}

static void read_registered(const struct record *record, const struct dv_json *object,
                            struct dv_device_checkpoint *checkpoint)
{
    struct dv_device_registered *registered =
        DV_NEW_ARRAY(record->arena, struct dv_device_registered, dv_json_n(object));

    if (dv_json_is(object, DV_JSON_NULL))
        return;
    for (const struct dv_json *from = dv_json_first(object); from; from = dv_json_next(from)) {
        struct dv_device_registered *one = &registered[checkpoint->n_registered++];

        one->resource = dv_json_key(from);
        one->ids = ids_of(record, from, &one->n_ids);
    }
    qsort(registered, checkpoint->n_registered, sizeof(registered[0]), registered_cmp);
    checkpoint->registered = registered;
}

/* -- Replaying ------------------------------------------------------------------------------ */

static bool encodes_to(const struct dv_device_checkpoint *checkpoint, dv_str file)
{
    struct dv_buf buf;
    bool is_same;

    dv_buf_init(&buf, SIZE_MAX);
    dv_device_checkpoint_encode(checkpoint, &buf);
    is_same = dv_str_eq(dv_buf_str(&buf), file);
    dv_buf_fini(&buf);
    return is_same;
}

static void check_sum(const struct record *record, const struct dv_device_checkpoint *checkpoint)
{
    const struct dv_json *text = dv_json_get(record->json, DV_STR("hashInput"));
    uint64_t checksum;
    struct dv_buf buf;
    struct dv_err err;

    must(record, dv_json_as_u64(dv_json_get(record->json, DV_STR("checksum")), &checksum, &err),
         &err);
    check(record, "another checksum", dv_device_checkpoint_sum(checkpoint) == checksum);
    if (!text)
        return;
    dv_buf_init(&buf, SIZE_MAX);
    dv_device_checkpoint_text(checkpoint, &buf);
    check(record, "another text is hashed",
          dv_str_eq(dv_buf_str(&buf), text_of(record, record->json, "hashInput")));
    dv_buf_fini(&buf);
}

static void replay_state(const struct record *record)
{
    const struct dv_json *state = dv_json_get(record->json, DV_STR("state"));
    const struct dv_json *wanted = dv_json_get(record->json, DV_STR("loaded"));
    dv_str file = bytes_of(record, record->json, "file_b64");
    struct dv_device_checkpoint checkpoint = {0};
    struct dv_device_checkpoint read;
    struct dv_arena *kept = record->replay->arena;
    dv_str *base = DV_NEW(kept, dv_str);
    struct dv_err err;

    read_records(record, dv_json_get(state, DV_STR("PodDeviceEntries")), &checkpoint);
    read_registered(record, dv_json_get(state, DV_STR("RegisteredDevices")), &checkpoint);
    check(record, "another file is written", encodes_to(&checkpoint, file));
    check_sum(record, &checkpoint);
    if (dv_device_checkpoint_decode(file, record->arena, &read, &err) != DV_DEVICE_CHECKPOINT_OK) {
        check(record, err.msg, false);
        return;
    }
    check(record, "what was read is written differently", encodes_to(&read, file));
    if (wanted)
        check(record, "something else is loaded",
              dv_json_eq(loaded_to_json(&read, record->arena), wanted));
    *base = dv_str_copy(file, kept);
    (void)dv_map_set(&record->replay->bases, dv_str_copy(text_of(record, record->json, "id"), kept),
                     base);
}

/* A verdict, and the class of an error, in the words of the corpus. */
static const struct {
    const char *verdict;
    const char *class;
} verdicts[] = {
    [DV_DEVICE_CHECKPOINT_OK] = {"ok",      ""                 },
    [DV_DEVICE_CHECKPOINT_CORRUPT] = {"corrupt", "checksum-mismatch"},
    [DV_DEVICE_CHECKPOINT_JSON_SYNTAX] = {"error",   "json-syntax"      },
    [DV_DEVICE_CHECKPOINT_JSON_TYPE] = {"error",   "json-type"        },
    [DV_DEVICE_CHECKPOINT_BASE64] = {"error",   "base64"           },
};

static void check_loaded(const struct record *record, const struct dv_device_checkpoint *read)
{
    const struct dv_json *wanted = dv_json_get(record->json, DV_STR("loaded"));
    const dv_str *base;
    struct dv_device_checkpoint base_read;
    struct dv_err err;

    if (!wanted && dv_json_get(record->json, DV_STR("loadedSameAsBase"))) {
        base = dv_map_get(&record->replay->bases, text_of(record, record->json, "base"));
        if (base && dv_device_checkpoint_decode(*base, record->arena, &base_read, &err) ==
                        DV_DEVICE_CHECKPOINT_OK)
            wanted = loaded_to_json(&base_read, record->arena);
    }
    if (wanted)
        check(record, "something else is loaded",
              dv_json_eq(loaded_to_json(read, record->arena), wanted));
}

static void replay_variant(const struct record *record)
{
    dv_str file = bytes_of(record, record->json, "file_b64");
    const struct dv_json *class = dv_json_get(record->json, DV_STR("errorClass"));
    struct dv_device_checkpoint read;
    struct dv_err err = {.code = DV_OK, .msg = "ok"};
    enum dv_device_verdict verdict = dv_device_checkpoint_decode(file, record->arena, &read, &err);
    bool is_right = dv_str_eq(text_of(record, record->json, "verdict"),
                              dv_str_from_c(verdicts[verdict].verdict));

    if (class)
        is_right = is_right && dv_str_eq(text_of(record, record->json, "errorClass"),
                                         dv_str_from_c(verdicts[verdict].class));
    check(record, err.msg, is_right);
    if (is_right && verdict == DV_DEVICE_CHECKPOINT_OK)
        check_loaded(record, &read);
}

static void replay_running(const struct record *record)
{
    if (dv_str_eq(text_of(record, record->json, "file"), DV_STR(DEVICE_FILE)))
        replay_variant(record);
}

/* ------------------------------------------------------------------------------------------- */

static const struct golden_kind kinds[] = {
    {"device_manager.jsonl",         {"checksum", "file_b64", "state"}, {"data"}},
    {"*device_manager*variants*",    {NULL},                            {NULL}  },
    {"from_a_running_kubelet.jsonl", {"file", "when", "verdict"},       {NULL}  },
};

static void (*const replays[])(const struct record *record) = {
    replay_state,
    replay_variant,
    replay_running,
};

static void replay_line(size_t kind, const char *file, unsigned line, dv_str text,
                        struct replay *replay)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct record record = {file, line, NULL, arena, replay};
    struct dv_err err;

    record.json = dv_json_parse(text, NULL, arena, &err);
    must(&record, record.json != NULL, &err);
    replays[kind](&record);
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++)
        replay_line(kind, name, line, (dv_str){text, (size_t)n}, ctx);
    free(text);
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_checkpoints DIR\n");
        return 2;
    }
    replay.arena = dv_arena_new();
    n_lost = golden_files(argv[1], kinds, DV_COUNT(kinds), replay_file, &replay);
    replay.n_failed += n_lost;
    dv_map_fini(&replay.bases);
    dv_arena_free(replay.arena);
    printf("%u passed, %u failed\n", replay.n_passed, replay.n_failed);
    return replay.n_failed > 0;
}
