/* state_import.c - a node moves from a kubelet to davit: its files are read into an empty state. */
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/row.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "cli/cli.h"
#include "cli/commands/state_place.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "json/json.h"

struct write {
    struct dv_store_write write;
    struct dv_err err; /* code DV_OK: it is on the disk */
    bool is_done;
};

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    struct write *self = DV_CONTAINER(write, struct write, write);

    if (err)
        self->err = *err;
    self->is_done = true;
}

static bool is_done(void *ctx)
{
    return ((struct write *)ctx)->is_done;
}

struct changes {
    struct dv_store_change *v;
    size_t n;
    size_t size;
};

static size_t n_ids(const struct dv_device_record *record)
{
    size_t n = 0;

    for (size_t i = 0; i < record->n_placed; i++)
        n += record->placed[i].n_ids;
    return n;
}

/* The kubelet's file knows uids only. The pod gets its names when it is admitted. */
static dv_str placeholder(const struct dv_device_checkpoint *checkpoint, dv_str uid,
                          struct dv_arena *arena)
{
    struct dv_json *pod = dv_json_new_object(arena);
    struct dv_json *metadata = dv_json_new_object(arena);
    struct dv_json *annotations = dv_json_new_object(arena);
    struct dv_json *spec = dv_json_new_object(arena);
    struct dv_json *containers = dv_json_new_array(arena);
    struct dv_buf buf;
    dv_str text;

    dv_json_set(annotations, DV_STR(DV_POD_IMPORTED), dv_json_new_str(DV_STR("true"), arena),
                arena);
    dv_json_set(metadata, DV_STR("name"), dv_json_new_str(uid, arena), arena);
    dv_json_set(metadata, DV_STR("annotations"), annotations, arena);
    dv_json_set(pod, DV_STR("metadata"), metadata, arena);
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        const struct dv_device_record *record = &checkpoint->records[i];
        struct dv_json *container = NULL;
        struct dv_json *limits;

        if (!dv_str_eq(record->pod_uid, uid))
            continue;
        for (struct dv_json *known = dv_json_first(containers); known;
             known = dv_json_next(known)) {
            dv_str name;
            struct dv_err err;

            if (dv_json_as_str(dv_json_get(known, DV_STR("name")), &name, &err) &&
                dv_str_eq(name, record->container))
                container = known;
        }
        if (!container) {
            struct dv_json *resources = dv_json_new_object(arena);

            container = dv_json_new_object(arena);
            dv_json_set(container, DV_STR("name"), dv_json_new_str(record->container, arena),
                        arena);
            dv_json_set(resources, DV_STR("limits"), dv_json_new_object(arena), arena);
            dv_json_set(container, DV_STR("resources"), resources, arena);
            dv_json_append(containers, container);
        }
        limits = dv_json_get(dv_json_get(container, DV_STR("resources")), DV_STR("limits"));
        dv_json_set(limits, record->resource, dv_json_new_u64(n_ids(record), arena), arena);
    }
    dv_json_set(spec, DV_STR("containers"), containers, arena);
    dv_json_set(pod, DV_STR("spec"), spec, arena);
    dv_buf_init(&buf, DV_STATE_FILE_BYTES_MAX);
    dv_json_print(pod, NULL, &buf);
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* Pods that only have claims: one container, of which nothing is known. */
static dv_str claim_placeholder(dv_str uid, struct dv_arena *arena)
{
    dv_str text;
    struct dv_buf buf;

    dv_buf_init(&buf, DV_STATE_FILE_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"metadata\":{\"name\":");
    dv_buf_add_json(&buf, uid);
    dv_buf_add_c(&buf, ",\"annotations\":{\"" DV_POD_IMPORTED "\":\"true\"}},"
                       "\"spec\":{\"containers\":[{\"name\":\"imported\"}]}}");
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static bool is_added(const struct changes *changes, dv_str uid)
{
    for (size_t i = 0; i < changes->n; i++)
        if (changes->v[i].table == DV_TABLE_PODS && dv_str_eq(changes->v[i].key, uid))
            return true;
    return false;
}

/* Reads the file in the form of today or in an older one, which is named; what it cannot be is
 * judged by the form that it has. */
static bool decode_claims(dv_str text, const char *path, struct dv_arena *arena,
                          struct dv_claim_checkpoint *checkpoint, struct dv_err *err)
{
    struct dv_claim_old_form form;
    struct dv_err old_err;

    if (dv_claim_checkpoint_decode(text, arena, checkpoint, err) == DV_CLAIM_FILE_OK)
        return true;
    if (dv_claim_checkpoint_decode_old(text, arena, checkpoint, &form, &old_err)) {
        (void)printf("%s is in the form of %s%s\n", path, form.name,
                     form.is_unchecked ? "; its checksum cannot be checked" : "");
        return true;
    }
    if (form.name) {
        *err = old_err;
        return dv_wrap(err, "%s, in the form of %s", path, form.name);
    }
    return dv_wrap(err, "%s", path);
}

/* Absent: the node had no DRA. */
static bool import_claims(struct dv_state_place *place, const char *path, struct changes *changes,
                          struct dv_err *err)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_claim_checkpoint checkpoint;
    dv_str *uids;
    size_t n_new;
    size_t n;
    dv_str text;

    if (!dv_file_read(dv_str_from_c(path), DV_STATE_FILE_BYTES_MAX, arena, &text, err))
        return err->code == DV_NOT_FOUND;
    if (!decode_claims(text, path, arena, &checkpoint, err))
        return false;
    n_new = dv_claim_checkpoint_apply(place->claims, &checkpoint);
    n = dv_claim_pods(place->claims, arena, &uids);
    for (size_t i = 0; i < n; i++)
        if (!is_added(changes, uids[i]))
            *dv_vec_add_in(changes, arena) = (struct dv_store_change){
                DV_STORE_PUT, DV_TABLE_PODS, uids[i], claim_placeholder(uids[i], arena)};
    (void)printf("%zu claims read from %s\n", n_new, path);
    if (n_new < checkpoint.n_records)
        (void)printf("%zu left out: no object can have their names\n",
                     checkpoint.n_records - n_new);
    return true;
}

/* Absent: no driver told of health. As with the kubelet, a file that cannot be read keeps nobody
 * from starting: drivers tell again. */
static void import_health(struct dv_state_place *place, const char *path)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_claim_health_file file;
    struct dv_err err;
    dv_str text;

    if (!dv_file_read(dv_str_from_c(path), DV_STATE_FILE_BYTES_MAX, arena, &text, &err)) {
        if (err.code != DV_NOT_FOUND)
            (void)fprintf(stderr, "davit: %s; the health of devices is left out\n", err.msg);
        return;
    }
    if (dv_claim_health_file_decode(text, arena, &file, &err) != DV_CLAIM_FILE_OK)
        (void)fprintf(stderr, "davit: %s: %s; what could be read of it is used\n", path,
                      dv_cli_plain(dv_str_from_c(err.msg), arena));
    (void)printf("%zu devices' health read from %s\n",
                 dv_claim_health_restore(place->claims, &file), path);
}

static void add_pods(struct changes *changes, const struct dv_device_checkpoint *checkpoint,
                     struct dv_arena *arena)
{
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        dv_str uid = checkpoint->records[i].pod_uid;
        size_t first = 0;

        while (!dv_str_eq(checkpoint->records[first].pod_uid, uid))
            first++;
        if (first == i)
            *dv_vec_add_in(changes, arena) = (struct dv_store_change){
                DV_STORE_PUT, DV_TABLE_PODS, uid, placeholder(checkpoint, uid, arena)};
    }
}

static bool save(struct dv_state_place *place, const struct changes *changes, struct dv_err *err)
{
    struct write write = {.write = {.done = on_written}};

    dv_store_write(place->store, &write.write, changes->v, changes->n);
    if (!dv_loop_run_until(place->loop, is_done, &write, 600000))
        return dv_fail(err, DV_DEADLINE_EXCEEDED, "the disk did not answer within 10 minutes");
    *err = write.err;
    return write.err.code == DV_OK;
}

/* Reads the file in the form of today or in an older one, which is named. */
static bool decode_devices(dv_str text, const char *path, struct dv_arena *arena,
                           struct dv_device_checkpoint *checkpoint, struct dv_err *err)
{
    struct dv_err old_err;
    const char *form;
    size_t n_bare = 0;

    if (dv_device_checkpoint_decode(text, arena, checkpoint, err) == DV_DEVICE_CHECKPOINT_OK)
        return true;
    if (!dv_device_checkpoint_decode_old(text, arena, checkpoint, &form, &old_err)) {
        if (!form)
            return dv_wrap(err, "%s", path);
        *err = old_err;
        return dv_wrap(err, "%s, in the form of %s", path, form);
    }
    (void)printf("%s is in the form of %s\n", path, form);
    for (size_t i = 0; i < checkpoint->n_records; i++)
        n_bare += checkpoint->records[i].response.p ? 0 : 1;
    if (n_bare > 0)
        (void)printf("%zu have no answer of their plugin: a container that starts anew gets no "
                     "devices by it\n",
                     n_bare);
    return true;
}

/* Absent: the node had no device plugins. */
static bool import_devices(struct dv_state_place *place, const char *path, struct changes *changes,
                           struct dv_err *err)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_device_checkpoint checkpoint;
    const struct dv_row_change *writes;
    size_t n_left_out = 0;
    size_t n_writes;
    dv_str text;

    if (!dv_file_read(dv_str_from_c(path), DV_STATE_FILE_BYTES_MAX, arena, &text, err))
        return err->code == DV_NOT_FOUND;
    if (!decode_devices(text, path, arena, &checkpoint, err))
        return false;
    dv_device_checkpoint_load(place->state, &checkpoint, dv_loop_now_ns(place->loop), &n_left_out);
    n_writes = dv_device_take_changes(place->state, arena, &writes);
    for (size_t i = 0; i < n_writes; i++)
        *dv_vec_add_in(changes, arena) = dv_store_change_of(DV_TABLE_DEVICES, &writes[i]);
    add_pods(changes, &checkpoint, arena);
    (void)printf("%zu allocations read from %s\n", checkpoint.n_records - n_left_out, path);
    if (n_left_out > 0)
        (void)printf("%zu left out: their answer of the plugin cannot be read\n", n_left_out);
    return true;
}

/* An import of nothing is a mistake: the directory is not a kubelet's, or not the right one. */
static bool check_files(const struct dv_state_paths *paths, struct dv_err *err)
{
    return access(paths->devices, F_OK) == 0 || access(paths->claims, F_OK) == 0 ||
           dv_fail(err, DV_NOT_FOUND, "there is neither %s nor %s", paths->devices, paths->claims);
}

bool dv_state_import(struct dv_state_place *place, const struct dv_state_paths *paths,
                     struct dv_err *err)
{
    struct dv_arena *arena = place->cli->arena;
    const struct dv_row_change *writes;
    struct changes changes = {0};
    size_t n_writes;

    if (place->n_pods > 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%.*s has %zu pods already; import is for a state that is empty",
                       DV_FMT(place->cli->state_dir), place->n_pods);
    if (!check_files(paths, err) || !import_devices(place, paths->devices, &changes, err) ||
        !import_claims(place, paths->claims, &changes, err))
        return false;
    import_health(place, paths->health);
    n_writes = dv_claim_take_changes(place->claims, arena, &writes);
    for (size_t i = 0; i < n_writes; i++)
        *dv_vec_add_in(&changes, arena) = dv_store_change_of(DV_TABLE_CLAIMS, &writes[i]);
    return changes.n == 0 || save(place, &changes, err);
}
