/* cmd_state.c - a node moves from a kubelet to davit and back, by the kubelet's own state files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/row.h"
#include "base/str.h"
#include "base/vec.h"
#include "claim/claim.h"
#include "cli/cli.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "json/json.h"

#define CHECKPOINT "device-plugins/kubelet_internal_checkpoint"
#define CLAIMS "dra_manager_state"
#define HEALTH "dra_health_state"
#define CHECKPOINT_BYTES_MAX (256u << 20)

/* The kubelet's files. */
struct paths {
    const char *devices;
    const char *claims;
    const char *health;
};

/* The state, opened as the daemon opens it. */
struct place {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_device_state *state;
    struct dv_claim_state *claims;
    size_t n_pods; /* that the store has */
    size_t n_rows; /* that could be used, of all */
};

static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct place *place = ctx;

    place->n_rows++;
    return dv_device_load(place->state, row->key, row->value, dv_loop_now_ns(place->loop), err);
}

static bool load_claim(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct place *place = ctx;

    place->n_rows++;
    return dv_claim_load(place->claims, row->key, row->value, err);
}

static bool count_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    (void)row;
    (void)err;
    ((struct place *)ctx)->n_pods++;
    ((struct place *)ctx)->n_rows++;
    return true;
}

/* Names the parts that could not be used and were left where they are: an export of the rest is
 * better than none. */
static void name_asides(const struct place *place)
{
    const struct dv_store_aside *asides;
    size_t n = dv_store_asides(place->store, &asides);

    for (size_t i = 0; i < n; i++)
        if (asides[i].is_new)
            (void)fprintf(stderr, "davit: %s: the row %s cannot be used, and is left out: %s\n",
                          asides[i].table, dv_cli_plain(asides[i].key, place->cli->arena),
                          dv_cli_plain(asides[i].why, place->cli->arena));
}

/* Nothing is to be done when the store is found damaged: the next write fails, and that error is
 * printed. */
static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)set_aside;
}

/* Exports what can be read of a damaged state. But an export must not write an empty state because
 * nothing could be read. */
static bool check_damage(const struct place *place, const char *path, struct dv_err *err)
{
    const char *set_aside = dv_store_set_aside(place->store);

    if (!set_aside)
        return true;
    if (place->n_rows == 0)
        return dv_fail(err, DV_DATA_LOSS, "%s was damaged, and is set aside as %s", path,
                       set_aside);
    (void)fprintf(stderr,
                  "davit: %s was damaged, and is set aside as %s; what could be read of it is "
                  "used\n",
                  path, set_aside);
    return true;
}

static bool open_place(struct place *place, bool is_export, struct dv_err *err)
{
    struct dv_store_options options = {
        .schema = &dv_node_schema, .damaged = on_damaged, .keeps_readable = true};
    const char *dir = dv_str_to_c(place->cli->state_dir, place->cli->arena);
    dv_str path = dv_str_printf(place->cli->arena, "%s/state.db", dir);
    const char *file = dv_str_to_c(path, place->cli->arena);

    place->state = dv_device_state_new(NULL);
    place->claims = dv_claim_state_new(&(struct dv_claim_opts){.boot_id = DV_STR("")});
    if (is_export && access(file, F_OK) < 0)
        return dv_fail_errno(err, errno, "%s", file);
    if (!is_export && mkdir(dir, 0700) < 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "make %s", dir);
    place->loop = dv_loop_new(dv_clock_real(), err);
    if (!place->loop)
        return false;
    place->store = dv_store_open(place->loop, path, &options, err);
    if (!place->store)
        return false;
    if (!dv_store_load(place->store, DV_TABLE_DEVICES, load_row, place, err) ||
        !dv_store_load(place->store, DV_TABLE_CLAIMS, load_claim, place, err) ||
        !dv_store_load(place->store, DV_TABLE_PODS, count_row, place, err))
        return false;
    name_asides(place);
    return check_damage(place, file, err);
}

static void close_place(struct place *place)
{
    if (place->store)
        dv_store_close(place->store, NULL, NULL);
    dv_loop_free(place->loop);
    dv_device_state_free(place->state);
    dv_claim_state_free(place->claims);
}

/* ---- export ---- */

/* Beside the file, then in its place: a reader sees the old or the new one, whole. */
static bool write_file(const char *path, dv_str text, struct dv_arena *arena, struct dv_err *err)
{
    const char *temporary = dv_str_to_c(dv_str_printf(arena, "%s.davit-new", path), arena);
    DV_CLEANUP(dv_close_fd)
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        return dv_fail_errno(err, errno, "make %s", temporary);
    for (size_t at = 0; at < text.n;) {
        ssize_t put = write(fd, text.p + at, text.n - at);

        if (put < 0 && errno != EINTR)
            return dv_fail_errno(err, errno, "write %s", temporary);
        at += put > 0 ? (size_t)put : 0;
    }
    if (fsync(fd) < 0)
        return dv_fail_errno(err, errno, "sync %s", temporary);
    if (rename(temporary, path) < 0)
        return dv_fail_errno(err, errno, "put %s in its place", path);
    return true;
}

/* `n` is how many of `what` are in the text, for the user. */
static bool export_text(struct place *place, const char *path, const struct dv_buf *text, size_t n,
                        const char *what, struct dv_err *err)
{
    if (!dv_buf_check(text, path, err) ||
        !write_file(path, dv_buf_str(text), place->cli->arena, err))
        return false;
    (void)printf("%zu %s written to %s\n", n, what, path);
    return true;
}

static bool export_devices(struct place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_device_checkpoint checkpoint;

    dv_buf_init(&text, CHECKPOINT_BYTES_MAX);
    dv_device_checkpoint_take(place->state, place->cli->arena, &checkpoint);
    dv_device_checkpoint_encode(&checkpoint, &text);
    return export_text(place, path, &text, checkpoint.n_records, "allocations", err);
}

static bool export_claims(struct place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_claim_checkpoint checkpoint;

    dv_buf_init(&text, CHECKPOINT_BYTES_MAX);
    dv_claim_checkpoint_take(place->claims, place->cli->arena, &checkpoint);
    dv_claim_checkpoint_encode(&checkpoint, &text);
    return export_text(place, path, &text, checkpoint.n_records, "claims", err);
}

/* Writes the health also when none is known: an old file of the kubelet would count otherwise. */
static bool export_health(struct place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_claim_health_file file;
    size_t n = 0;

    dv_buf_init(&text, CHECKPOINT_BYTES_MAX);
    dv_claim_health_take(place->claims, place->cli->arena, &file);
    for (size_t i = 0; i < file.n_drivers; i++)
        n += file.drivers[i].n_entries;
    dv_claim_health_encode(&file, &text);
    return export_text(place, path, &text, n, "devices' health", err);
}

static bool export_state(struct place *place, const struct paths *paths, struct dv_err *err)
{
    return export_devices(place, paths->devices, err) && export_claims(place, paths->claims, err) &&
           export_health(place, paths->health, err);
}

/* ---- import ---- */

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
    dv_buf_init(&buf, CHECKPOINT_BYTES_MAX);
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

    dv_buf_init(&buf, CHECKPOINT_BYTES_MAX);
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

/* Absent: the node had no DRA. */
static bool import_claims(struct place *place, const char *path, struct changes *changes,
                          struct dv_err *err)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_claim_checkpoint checkpoint;
    dv_str *uids;
    size_t n_new;
    size_t n;
    dv_str text;

    if (!dv_file_read(dv_str_from_c(path), CHECKPOINT_BYTES_MAX, arena, &text, err))
        return err->code == DV_NOT_FOUND;
    if (dv_claim_checkpoint_decode(text, arena, &checkpoint, err) != DV_CLAIM_FILE_OK)
        return dv_wrap(err, "%s", path);
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
static void import_health(struct place *place, const char *path)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_claim_health_file file;
    struct dv_err err;
    dv_str text;

    if (!dv_file_read(dv_str_from_c(path), CHECKPOINT_BYTES_MAX, arena, &text, &err)) {
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

static bool save(struct place *place, const struct changes *changes, struct dv_err *err)
{
    struct write write = {.write = {.done = on_written}};

    dv_store_write(place->store, &write.write, changes->v, changes->n);
    if (!dv_loop_run_until(place->loop, is_done, &write, 600000))
        return dv_fail(err, DV_DEADLINE_EXCEEDED, "the disk did not answer within 10 minutes");
    *err = write.err;
    return write.err.code == DV_OK;
}

static bool import_state(struct place *place, const struct paths *paths, struct dv_err *err)
{
    struct dv_arena *arena = place->cli->arena;
    struct dv_device_checkpoint checkpoint;
    const struct dv_row_change *writes;
    struct changes changes = {0};
    size_t n_left_out = 0;
    size_t n_writes;
    dv_str text;

    if (place->n_pods > 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%.*s has %zu pods already; import is for a state that is empty",
                       DV_FMT(place->cli->state_dir), place->n_pods);
    if (!dv_file_read(dv_str_from_c(paths->devices), CHECKPOINT_BYTES_MAX, arena, &text, err))
        return false;
    if (dv_device_checkpoint_decode(text, arena, &checkpoint, err) != DV_DEVICE_CHECKPOINT_OK)
        return dv_wrap(err, "%s", paths->devices);
    dv_device_checkpoint_load(place->state, &checkpoint, dv_loop_now_ns(place->loop), &n_left_out);
    n_writes = dv_device_take_changes(place->state, arena, &writes);
    for (size_t i = 0; i < n_writes; i++)
        *dv_vec_add_in(&changes, arena) = dv_store_change_of(DV_TABLE_DEVICES, &writes[i]);
    add_pods(&changes, &checkpoint, arena);
    if (!import_claims(place, paths->claims, &changes, err))
        return false;
    import_health(place, paths->health);
    n_writes = dv_claim_take_changes(place->claims, arena, &writes);
    for (size_t i = 0; i < n_writes; i++)
        *dv_vec_add_in(&changes, arena) = dv_store_change_of(DV_TABLE_CLAIMS, &writes[i]);
    if (changes.n > 0 && !save(place, &changes, err))
        return false;
    (void)printf("%zu allocations read from %s\n", checkpoint.n_records - n_left_out,
                 paths->devices);
    if (n_left_out > 0)
        (void)printf("%zu left out: their answer of the plugin cannot be read\n", n_left_out);
    return true;
}

static const char *path_of(const struct dv_cli *cli, const char *name)
{
    return dv_str_to_c(dv_str_printf(cli->arena, "%.*s/%s", DV_FMT(cli->kubelet_dir), name),
                       cli->arena);
}

enum dv_exit dv_cmd_state(struct dv_cli *cli)
{
    struct place place = {.cli = cli};
    struct paths paths = {path_of(cli, CHECKPOINT), path_of(cli, CLAIMS), path_of(cli, HEALTH)};
    bool is_export = cli->n_words == 1 && dv_str_eq(cli->words[0], DV_STR("export"));
    bool is_import = cli->n_words == 1 && dv_str_eq(cli->words[0], DV_STR("import"));
    struct dv_err err;
    bool ok;

    if (!is_export && !is_import)
        return dv_cli_complain_usage("state", "say import or export");
    ok = open_place(&place, is_export, &err) &&
         (is_export ? export_state : import_state)(&place, &paths, &err);
    close_place(&place);
    return ok ? DV_EXIT_OK : dv_cli_complain("%s", err.msg);
}
