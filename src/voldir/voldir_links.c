/* voldir_links.c - links to the logs of containers: made, removed, and those that lead nowhere. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/values.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"

/* ---- made, removed ---- */

/* Reads where a link leads; false: it is no link. */
static bool read_link(int dir, const char *name, char target[PATH_MAX])
{
    ssize_t n = readlinkat(dir, name, target, PATH_MAX - 1);

    if (n < 0)
        return false;
    target[n] = '\0';
    return true;
}

static bool remove_link(int dir, const char *name, struct dv_err *err)
{
    char target[PATH_MAX];

    if (!read_link(dir, name, target))
        return true; /* it is not there, or not ours */
    return unlinkat(dir, name, 0) == 0 || errno == ENOENT ||
           dv_fail_errno(err, errno, "remove link %s", name);
}

static bool make_link(int dir, const char *name, const char *target, struct dv_err *err)
{
    char old[PATH_MAX];

    if (symlinkat(target, dir, name) == 0)
        return true;
    if (errno != EEXIST)
        return dv_fail_errno(err, errno, "make link %s", name);
    if (!read_link(dir, name, old))
        return dv_fail(err, DV_ALREADY_EXISTS, "%s is there, and no link", name);
    if (strcmp(old, target) == 0)
        return true;
    if (unlinkat(dir, name, 0) < 0 || symlinkat(target, dir, name) < 0)
        return dv_fail_errno(err, errno, "replace link %s", name);
    return true;
}

static bool do_link(const struct dv_voldir_link *link, struct dv_arena *arena, struct dv_err *err)
{
    const char *path = dv_str_to_c(link->path, arena);
    const char *slash = strrchr(path, '/');
    DV_CLEANUP(dv_close_fd) int dir = -1;
    dv_str above;

    if (!slash || !dv_voldir_is_name(dv_str_from_c(slash + 1)))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%s\" is no name of a link", path);
    above = dv_str_slice(link->path, 0, (size_t)(slash - path));
    if (link->target.n == 0) {
        dir = open(dv_str_to_c(above, arena), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir < 0 || remove_link(dir, slash + 1, err);
    }
    dir = dv_voldir_open_path(above, DV_VOLDIR_LOG_MODE, arena, err);
    return dir >= 0 && make_link(dir, slash + 1, dv_str_to_c(link->target, arena), err);
}

bool dv_voldir_run_links(struct dv_voldir_links *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    bool is_done = true;

    for (size_t i = 0; i < op->n_links; i++) {
        struct dv_err one;

        if (!do_link(&op->links[i], scratch, &one) && is_done) {
            *err = one;
            is_done = false;
        }
    }
    return is_done && dv_succeed(err);
}

/* ---- those that lead nowhere ---- */

/* Whether the link is of a container with one of these ids: NAME-ID.log. */
static bool is_kept(dv_str name, const struct dv_strs *ids)
{
    const dv_str suffix = DV_STR(".log");

    name = dv_str_slice(name, 0, name.n - suffix.n);
    for (size_t i = 0; i < ids->n; i++)
        if (ids->v[i].n > 0 && dv_str_ends_with(name, ids->v[i]))
            return true;
    return false;
}

static bool is_dangling(int dir, const char *name, dv_str log_dir)
{
    char target[PATH_MAX];
    struct stat about;

    if (!read_link(dir, name, target) || !dv_str_starts_with(dv_str_from_c(target), log_dir) ||
        target[log_dir.n] != '/')
        return false;
    return stat(target, &about) < 0 && errno == ENOENT;
}

bool dv_voldir_run_clean_links(struct dv_voldir_clean_links *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DIR *dir = opendir(dv_str_to_c(op->dir, scratch));
    const struct dirent *entry;
    bool is_done = true;

    if (!dir)
        return errno == ENOENT ? dv_succeed(err)
                               : dv_fail_errno(err, errno, "read directory %.*s", DV_FMT(op->dir));
    while (is_done && (entry = readdir(dir)) != NULL) {
        dv_str name = dv_str_from_c(entry->d_name);

        if (dv_str_ends_with(name, DV_STR(".log")) &&
            is_dangling(dirfd(dir), entry->d_name, op->log_dir) && !is_kept(name, &op->ids))
            is_done = remove_link(dirfd(dir), entry->d_name, err);
    }
    (void)closedir(dir);
    return is_done && dv_succeed(err);
}
