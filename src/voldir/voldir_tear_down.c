/* voldir_tear_down.c - what is left of pods: found, unmounted, removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "voldir/voldir_mount.h"
#include "voldir/voldir_remove.h"

/* Opens a directory that is there; -1 without an error in `err` (DV_OK) when it is not. */
static int open_there(int parent, const char *path, struct dv_err *err)
{
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)dv_succeed(err);
    if (fd < 0 && errno != ENOENT)
        (void)dv_fail_errno(err, errno, "open directory %s", path);
    return fd;
}

static int open_pods(dv_str root_dir, struct dv_arena *arena, struct dv_err *err)
{
    return open_there(AT_FDCWD, dv_str_printf(arena, "%.*s/pods", DV_FMT(root_dir)).p, err);
}

bool dv_voldir_run_tear_down(struct dv_voldir_tear_down *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_close_fd) int pods = -1;
    DV_CLEANUP(dv_close_fd) int pod = -1;
    const char *name;

    if (!dv_voldir_is_name(op->uid))
        return dv_fail(err, DV_INVALID_ARGUMENT, "pod UID \"%.*s\" is no file name",
                       DV_FMT(op->uid));
    if (!dv_voldir_remove_cgroups(&op->cgroup_dirs, err))
        return dv_wrap(err, "pod %.*s", DV_FMT(op->uid));
    pods = open_pods(op->root_dir, scratch, err);
    if (pods < 0)
        return err->code == DV_OK;
    name = dv_str_to_c(op->uid, scratch);
    pod = openat(pods, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pod < 0 && errno == ENOENT)
        return dv_succeed(err);
    if (pod < 0)
        return dv_fail_errno(err, errno, "open directory %s", name);
    if (!dv_voldir_unmount_below(pod, scratch, err) || !dv_voldir_remove(pods, name, err))
        return dv_wrap(err, "pod directory %s", name);
    return true;
}

/* ---- lists ---- */

bool dv_voldir_run_list(struct dv_voldir_list *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    int fd = op->place == DV_VOLDIR_PODS ? open_pods(op->dir, scratch, err)
                                         : open_there(AT_FDCWD, dv_str_to_c(op->dir, scratch), err);
    const struct dirent *entry;
    DV_VEC(dv_str) names = {0};
    DIR *dir;

    if (fd < 0)
        return err->code == DV_OK;
    dir = fdopendir(fd);
    if (!dir) {
        (void)dv_fail_errno(err, errno, "read directory %.*s", DV_FMT(op->dir));
        (void)close(fd);
        return false;
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
            *dv_vec_add_in(&names, op->arena) =
                dv_str_copy(dv_str_from_c(entry->d_name), op->arena);
    }
    (void)closedir(dir);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(names.v[0]), dv_str_compare);
    op->names = names.v;
    op->n_names = names.n;
    return dv_succeed(err);
}

/* ---- logs ---- */

/* Splits a path at its last slash. */
static bool split_last(dv_str path, dv_str *dir, dv_str *name)
{
    size_t n = path.n;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    *dir = dv_str_slice(path, 0, n > 0 ? n - 1 : 0);
    *name = dv_str_slice(path, n, path.n);
    return n > 0;
}

bool dv_voldir_run_remove_logs(struct dv_voldir_remove_logs *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_close_fd) int logs = -1;
    dv_str path = op->file.n > 0
                      ? dv_str_printf(scratch, "%.*s/%.*s", DV_FMT(op->log_dir), DV_FMT(op->file))
                      : op->log_dir;
    dv_str dir;
    dv_str name;

    if (!split_last(path, &dir, &name) || !dv_voldir_is_name(name) || memchr(path.p, '\0', path.n))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no log of a pod", DV_FMT(path));
    logs = open_there(AT_FDCWD, dv_str_to_c(dir, scratch), err);
    if (logs < 0)
        return err->code == DV_OK;
    return dv_voldir_remove(logs, dv_str_to_c(name, scratch), err) ||
           dv_wrap(err, "logs in %.*s", DV_FMT(dir));
}
