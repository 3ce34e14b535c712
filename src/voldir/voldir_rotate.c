/* voldir_rotate.c - a log that has grown large is set aside, and of those set aside a few are kept.
 *
 *     0.log                   what the runtime writes
 *     0.log.20261116-140000   set aside; the names sort by time */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"

/* "20261116-140000" */
#define STAMP_BYTES sizeof("20060102-150405")

typedef DV_VEC(dv_str) name_list;

/* Splits the path of a log; *name is NUL-terminated. */
static int open_log_dir(dv_str path, struct dv_arena *arena, const char **name, struct dv_err *err)
{
    const char *whole = dv_str_to_c(path, arena);
    const char *slash = strrchr(whole, '/');
    int fd;

    if (!slash || !dv_voldir_is_name(dv_str_from_c(slash + 1))) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no log", DV_FMT(path));
        return -1;
    }
    *name = slash + 1;
    fd = open(dv_str_to_c((dv_str){whole, (size_t)(slash - whole) + 1}, arena),
              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        (void)dv_fail_errno(err, errno, "open the directory of %.*s", DV_FMT(path));
    return fd;
}

/* Lists the files that were set aside before, the oldest first. */
static bool list_aside(int dir, const char *name, struct dv_arena *arena, name_list *names,
                       struct dv_err *err)
{
    dv_str prefix = dv_str_printf(arena, "%s.", name);
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (!entries) {
        (void)dv_fail_errno(err, errno, "read the directory of %s", name);
        dv_close_fd(&fd);
        return false;
    }
    while ((entry = readdir(entries)))
        if (dv_str_starts_with(dv_str_from_c(entry->d_name), prefix))
            *dv_vec_add_in(names, arena) = dv_str_copy(dv_str_from_c(entry->d_name), arena);
    (void)closedir(entries);
    if (names->n > 0)
        qsort(names->v, names->n, sizeof(names->v[0]), dv_str_compare);
    return true;
}

static bool is_large(int dir, const char *name, uint64_t max_bytes)
{
    struct stat about;

    return fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
           (uint64_t)about.st_size >= max_bytes;
}

/* Sets one log aside when it is large; *aside is where it is then. */
static bool rotate(const struct dv_voldir_rotate *op, dv_str path, struct dv_arena *scratch,
                   dv_str *aside, struct dv_err *err)
{
    const char *name = NULL;
    DV_CLEANUP(dv_close_fd) int dir = open_log_dir(path, scratch, &name, err);
    time_t now = time(NULL);
    char stamp[STAMP_BYTES];
    name_list names = {0};
    struct tm utc;

    if (dir < 0)
        return err->code == DV_NOT_FOUND;
    if (!is_large(dir, name, op->max_bytes))
        return true;
    if (!list_aside(dir, name, scratch, &names, err))
        return false;
    /* With the one that is written and the one that is set aside now there are as many as allowed.
     */
    for (size_t i = 0; i < names.n && names.n - i + 2 > op->n_files_max; i++)
        if (unlinkat(dir, dv_str_to_c(names.v[i], scratch), 0) < 0 && errno != ENOENT)
            return dv_fail_errno(err, errno, "remove %.*s", DV_FMT(names.v[i]));
    (void)gmtime_r(&now, &utc);
    (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &utc);
    if (renameat2(dir, name, dir, dv_str_printf(scratch, "%s.%s", name, stamp).p,
                  RENAME_NOREPLACE) < 0)
        return errno == EEXIST || /* twice in a second: the next look is soon enough */
               dv_fail_errno(err, errno, "set %.*s aside", DV_FMT(path));
    *aside = dv_str_printf(op->arena, "%.*s.%s", DV_FMT(path), stamp);
    return true;
}

bool dv_voldir_run_rotate(struct dv_voldir_rotate *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str *asides = DV_NEW_ARRAY(op->arena, dv_str, op->n_logs);
    bool is_good = true;
    struct dv_err other;

    for (size_t i = 0; i < op->n_logs; i++) {
        is_good &= rotate(op, op->log_paths[i], scratch, &asides[i], is_good ? err : &other);
        dv_arena_reset(scratch);
    }
    op->aside_paths = asides;
    return is_good;
}

bool dv_voldir_run_unrotate(struct dv_voldir_unrotate *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    if (renameat2(AT_FDCWD, dv_str_to_c(op->aside_path, scratch), AT_FDCWD,
                  dv_str_to_c(op->log_path, scratch), RENAME_NOREPLACE) == 0 ||
        errno == EEXIST) /* the runtime has begun a new one after all */
        return true;
    return dv_fail_errno(err, errno, "bring %.*s back", DV_FMT(op->log_path));
}
