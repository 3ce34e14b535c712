/* cmd_state.c - davit state: a node moves from a kubelet to davit and back, by the kubelet's own
 * state files; state_backup.c has what concerns backups. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "cli/cli.h"
#include "cli/commands/state_place.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "store/store.h"

#define CHECKPOINT "device-plugins/kubelet_internal_checkpoint"
#define CLAIMS "dra_manager_state"
#define HEALTH "dra_health_state"
static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_state_place *place = ctx;

    place->n_rows++;
    return dv_device_load(place->state, row->key, row->value, dv_loop_now_ns(place->loop), err);
}

static bool load_claim(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_state_place *place = ctx;

    place->n_rows++;
    return dv_claim_load(place->claims, row->key, row->value, err);
}

static bool count_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    (void)row;
    (void)err;
    ((struct dv_state_place *)ctx)->n_pods++;
    ((struct dv_state_place *)ctx)->n_rows++;
    return true;
}

/* Names the parts that could not be used and were left where they are: an export of the rest is
 * better than none. */
static void name_asides(const struct dv_state_place *place)
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
static bool check_damage(const struct dv_state_place *place, const char *path, struct dv_err *err)
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

static bool open_place(struct dv_state_place *place, bool is_export, struct dv_err *err)
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

static void close_place(struct dv_state_place *place)
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
static bool export_text(struct dv_state_place *place, const char *path, const struct dv_buf *text,
                        size_t n, const char *what, struct dv_err *err)
{
    if (!dv_buf_check(text, path, err) ||
        !write_file(path, dv_buf_str(text), place->cli->arena, err))
        return false;
    (void)printf("%zu %s written to %s\n", n, what, path);
    return true;
}

static bool export_devices(struct dv_state_place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_device_checkpoint checkpoint;

    dv_buf_init(&text, DV_STATE_FILE_BYTES_MAX);
    dv_device_checkpoint_take(place->state, place->cli->arena, &checkpoint);
    dv_device_checkpoint_encode(&checkpoint, &text);
    return export_text(place, path, &text, checkpoint.n_records, "allocations", err);
}

static bool export_claims(struct dv_state_place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_claim_checkpoint checkpoint;

    dv_buf_init(&text, DV_STATE_FILE_BYTES_MAX);
    dv_claim_checkpoint_take(place->claims, place->cli->arena, &checkpoint);
    dv_claim_checkpoint_encode(&checkpoint, &text);
    return export_text(place, path, &text, checkpoint.n_records, "claims", err);
}

/* Writes the health also when none is known: an old file of the kubelet would count otherwise. */
static bool export_health(struct dv_state_place *place, const char *path, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_claim_health_file file;
    size_t n = 0;

    dv_buf_init(&text, DV_STATE_FILE_BYTES_MAX);
    dv_claim_health_take(place->claims, place->cli->arena, &file);
    for (size_t i = 0; i < file.n_drivers; i++)
        n += file.drivers[i].n_entries;
    dv_claim_health_encode(&file, &text);
    return export_text(place, path, &text, n, "devices' health", err);
}

static bool export_state(struct dv_state_place *place, const struct dv_state_paths *paths,
                         struct dv_err *err)
{
    return export_devices(place, paths->devices, err) && export_claims(place, paths->claims, err) &&
           export_health(place, paths->health, err);
}

static const char *path_of(const struct dv_cli *cli, const char *name)
{
    return dv_str_to_c(dv_str_printf(cli->arena, "%.*s/%s", DV_FMT(cli->kubelet_dir), name),
                       cli->arena);
}

/* Whether the words are this one and a file. */
static bool is_verb(const struct dv_cli *cli, const char *word)
{
    return cli->n_words == 2 && dv_str_eq(cli->words[0], dv_str_from_c(word));
}

enum dv_exit dv_cmd_state(struct dv_cli *cli)
{
    struct dv_state_place place = {.cli = cli};
    struct dv_state_paths paths = {path_of(cli, CHECKPOINT), path_of(cli, CLAIMS),
                                   path_of(cli, HEALTH)};
    bool is_export = cli->n_words == 1 && dv_str_eq(cli->words[0], DV_STR("export"));
    bool is_import = cli->n_words == 1 && dv_str_eq(cli->words[0], DV_STR("import"));
    struct dv_err err;
    bool ok;

    if (is_verb(cli, "backup"))
        return dv_state_backup(cli, dv_str_to_c(cli->words[1], cli->arena));
    if (is_verb(cli, "restore"))
        return dv_state_restore(cli, dv_str_to_c(cli->words[1], cli->arena));
    if (!is_export && !is_import)
        return dv_cli_complain_usage("state", "say backup FILE, restore FILE, import or export");
    ok = open_place(&place, is_export, &err) &&
         (is_export ? export_state : dv_state_import)(&place, &paths, &err);
    close_place(&place);
    return ok ? DV_EXIT_OK : dv_cli_complain("%s", err.msg);
}
