#include "voldir/tests/test_voldir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/file.h"
#include "support/dvtest.h"
#include "voldir/voldir.h"
#include "voldir/voldir_mount.h"

#define FILE_BYTES_MAX (4u * 1024u * 1024u)

bool host_may_mount(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return true;
    (void)fprintf(stderr, "skipped: mounting needs root with CAP_SYS_ADMIN: %s\n", strerror(errno));
    return false;
}

int host_start(void **state)
{
    struct host *host = DV_ALLOC(struct host);

    rig_init(&host->rig, "voldir");
    host->plan = (struct dv_volume_plan){
        .uid = DV_STR("u1"),
        .pod_dir = dv_str_printf(host->rig.arena, "%s/k/pods/u1", host->rig.dir),
        .log_dir = dv_str_printf(host->rig.arena, "%s/l/ns_p_u1", host->rig.dir),
        .volumes = host->volumes,
    };
    *state = host;
    return 0;
}

int host_end(void **state)
{
    struct host *host = *state;
    DV_CLEANUP(dv_close_fd) int fd = open(host->rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dv_err err;

    assert_ok(dv_voldir_unmount_below(fd, host->rig.arena, &err), &err);
    rig_fini(&host->rig);
    free(host);
    return 0;
}

struct dv_volume *host_volume(struct host *host, const char *name, enum dv_volume_kind kind,
                              const char *plugin)
{
    struct dv_volume *volume = &host->volumes[host->plan.n_volumes++];

    assert_true(host->plan.n_volumes <= VOLUMES_MAX);
    *volume = (struct dv_volume){
        .name = dv_str_from_c(name),
        .kind = kind,
        .plugin = dv_str_from_c(plugin),
        .path = dv_str_printf(host->rig.arena, "%.*s/volumes/%s/%s", DV_FMT(host->plan.pod_dir),
                              plugin, name),
    };
    return volume;
}

static bool is_done(void *ctx)
{
    return ((const struct host *)ctx)->n_done > 0;
}

static void note_end(struct host *host, const struct dv_err *err)
{
    host->n_done++;
    host->code = err ? err->code : DV_OK;
    (void)snprintf(host->msg, sizeof(host->msg), "%s", err ? err->msg : "");
}

struct set_up {
    struct dv_voldir_set_up op;
    struct host *host;
};

static void on_set_up(struct dv_voldir_set_up *op, const struct dv_err *err)
{
    struct set_up *set_up = DV_CONTAINER(op, struct set_up, op);

    set_up->host->problems = op->problems;
    set_up->host->n_problems = op->n_problems;
    note_end(set_up->host, err);
}

void host_set_up(struct host *host)
{
    struct set_up set_up = {
        .op = {.done = on_set_up, .plan = &host->plan, .arena = host->rig.arena},
        .host = host,
    };

    host->n_done = 0;
    dv_voldir_set_up(&set_up.op, host->rig.loop);
    rig_wait(&host->rig, is_done, host);
}

struct tear_down {
    struct dv_voldir_tear_down op;
    struct host *host;
};

static void on_torn_down(struct dv_voldir_tear_down *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct tear_down, op)->host, err);
}

void host_tear_down(struct host *host, const char *uid)
{
    struct tear_down down = {
        .op = {.done = on_torn_down,
               .root_dir = dv_str_from_c(at(host, "k")),
               .uid = dv_str_from_c(uid)},
        .host = host,
    };

    host->n_done = 0;
    dv_voldir_tear_down(&down.op, host->rig.loop);
    rig_wait(&host->rig, is_done, host);
}

struct sub_path {
    struct dv_voldir_sub_path op;
    struct host *host;
};

static void on_sub_path(struct dv_voldir_sub_path *op, const struct dv_err *err)
{
    note_end(DV_CONTAINER(op, struct sub_path, op)->host, err);
}

dv_str host_sub_path(struct host *host, const char *volume, const char *path, size_t index)
{
    struct sub_path sub_path = {
        .op = {.done = on_sub_path,
               .plan = &host->plan,
               .volume = dv_str_from_c(volume),
               .sub_path = dv_str_from_c(path),
               .container = DV_STR("c"),
               .index = index,
               .arena = host->rig.arena},
        .host = host,
    };

    host->n_done = 0;
    dv_voldir_sub_path(&sub_path.op, host->rig.loop);
    rig_wait(&host->rig, is_done, host);
    return sub_path.op.path;
}

const char *at(const struct host *host, const char *fmt, ...)
{
    char path[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    return dv_str_printf(host->rig.arena, "%s/%s", host->rig.dir, path).p;
}

void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

dv_str read_file(struct host *host, const char *path)
{
    struct dv_err err;
    dv_str text;

    assert_ok(dv_file_read(dv_str_from_c(path), FILE_BYTES_MAX, host->rig.arena, &text, &err),
              &err);
    return text;
}

mode_t mode_of(const char *path)
{
    struct stat about;

    return lstat(path, &about) == 0 ? about.st_mode : 0;
}

bool is_there(const char *path)
{
    return mode_of(path) != 0;
}

static int is_name(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

dv_str names_in(struct host *host, const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_name, alphasort);
    dv_str names = DV_STR("");

    assert_true(n >= 0);
    for (int i = 0; i < n; i++) {
        names = dv_str_printf(host->rig.arena, "%.*s%s%s", DV_FMT(names), i ? " " : "",
                              entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}
