/* voldir_rotate.c - a log that has grown large is set aside, and of those set aside a few are kept.
 *
 *     0.log                      what the runtime writes
 *     0.log.20261116-140000      set aside last: the runtime may still write to it for a moment
 *     0.log.20261116-130000.gz   the others, packed; the names sort by time
 *     0.log.20261116-130000.tmp  is being packed, or was when davitd was killed */
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
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "zip/zip.h"

/* "20261116-140000" */
#define STAMP_BYTES sizeof("20060102-150405")

#define PACKED ".gz"
#define HALF_PACKED ".tmp"
#define READ_BYTES (64u * 1024u)
/* What the packer may give back at a time: it grows what cannot be packed by a few bytes. */
#define PACKED_BYTES_MAX (4u * READ_BYTES)

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

static bool remove_file(int dir, dv_str name, struct dv_arena *arena, struct dv_err *err)
{
    return unlinkat(dir, dv_str_to_c(name, arena), 0) == 0 || errno == ENOENT ||
           dv_fail_errno(err, errno, "remove %.*s", DV_FMT(name));
}

static bool has_name(const name_list *names, dv_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (dv_str_eq(names->v[i], name))
            return true;
    return false;
}

/* Removes what a packing left that was cut off: half of a packed file, or the file beside it. */
static bool remove_leftovers(int dir, struct dv_arena *arena, name_list *names, struct dv_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < names->n; i++) {
        dv_str name = names->v[i];
        dv_str packed = dv_str_printf(arena, "%.*s" PACKED, DV_FMT(name));

        if (!dv_str_ends_with(name, DV_STR(HALF_PACKED)) && !has_name(names, packed))
            names->v[n++] = name;
        else if (!remove_file(dir, name, arena, err))
            return false;
    }
    names->n = n;
    return true;
}

static bool pack_bytes(int from, int to, struct dv_err *err)
{
    struct dv_zip_packer *packer = dv_zip_packer_new(DV_ZIP_GZIP, DV_STR(""));
    char bytes[READ_BYTES];
    struct dv_buf packed;
    ssize_t got;
    bool is_good;

    dv_buf_init(&packed, PACKED_BYTES_MAX);
    do {
        do
            got = read(from, bytes, sizeof(bytes));
        while (got < 0 && errno == EINTR);
        is_good = got >= 0 || dv_fail_errno(err, errno, "read it");
        if (!is_good)
            break;
        dv_zip_pack(packer, (dv_str){bytes, (size_t)got}, got > 0 ? DV_ZIP_MORE : DV_ZIP_END,
                    &packed);
        is_good = dv_buf_check(&packed, "a packed part", err) &&
                  (dv_voldir_write(to, dv_buf_str(&packed)) ||
                   dv_fail_errno(err, errno, "write the packed file"));
        dv_buf_clear(&packed);
    } while (is_good && got > 0);
    dv_buf_fini(&packed);
    dv_zip_packer_free(packer);
    return is_good;
}

/* Puts a packed file in the place of one that was set aside. */
static bool pack(int dir, dv_str name, struct dv_arena *arena, struct dv_err *err)
{
    const char *plain = dv_str_to_c(name, arena);
    const char *half = dv_str_printf(arena, "%s" HALF_PACKED, plain).p;
    DV_CLEANUP(dv_close_fd)
    int from = openat(dir, plain, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DV_CLEANUP(dv_close_fd) int to = -1;
    struct stat about;

    if (from < 0 || fstat(from, &about) < 0)
        return dv_fail_errno(err, errno, "open it");
    if (!S_ISREG(about.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "it is no regular file");
    to = openat(dir, half, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                about.st_mode & 0777);
    if (to < 0)
        return dv_fail_errno(err, errno, "make the packed file");
    if (!pack_bytes(from, to, err)) {
        (void)unlinkat(dir, half, 0); /* the next look removes it otherwise */
        return false;
    }
    if (renameat(dir, half, dir, dv_str_printf(arena, "%s" PACKED, plain).p) < 0)
        return dv_fail_errno(err, errno, "rename the packed file");
    return remove_file(dir, name, arena, err);
}

/* Makes room for one more, and packs what is not yet. That a file cannot be packed does not keep
 * the log from being set aside: it is told, and tried again the next time. */
static bool tidy(int dir, const char *log, size_t n_max, struct dv_arena *arena, struct dv_err *err)
{
    name_list names = {0};
    bool is_good = true;
    struct dv_err other;
    size_t i = 0;

    if (!list_aside(dir, log, arena, &names, err) || !remove_leftovers(dir, arena, &names, err))
        return false;
    for (; i < names.n && names.n - i > n_max; i++)
        if (!remove_file(dir, names.v[i], arena, err))
            return false;
    for (; i < names.n; i++)
        if (!dv_str_ends_with(names.v[i], DV_STR(PACKED)) &&
            !pack(dir, names.v[i], arena, is_good ? err : &other))
            is_good = is_good && dv_wrap(err, "pack %.*s", DV_FMT(names.v[i]));
    return is_good;
}

/* Sets one log aside when it is large; *aside is where it is then. */
static bool rotate(const struct dv_voldir_rotate *op, dv_str path, struct dv_arena *scratch,
                   dv_str *aside, bool *is_absent, struct dv_err *err)
{
    const char *name = NULL;
    DV_CLEANUP(dv_close_fd) int dir = open_log_dir(path, scratch, &name, err);
    time_t now = time(NULL);
    char stamp[STAMP_BYTES];
    struct stat about;
    struct tm utc;
    bool is_tidy;

    if (dir < 0)
        return err->code == DV_NOT_FOUND;
    if (fstatat(dir, name, &about, AT_SYMLINK_NOFOLLOW) < 0) {
        *is_absent = errno == ENOENT;
        return true;
    }
    if (!S_ISREG(about.st_mode) || (uint64_t)about.st_size < op->max_bytes)
        return true;
    /* With the one that is written and the one that is set aside now there are as many as allowed.
     */
    is_tidy = tidy(dir, name, op->n_files_max - 2, scratch, err);
    (void)gmtime_r(&now, &utc);
    (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &utc);
    if (renameat2(dir, name, dir, dv_str_printf(scratch, "%s.%s", name, stamp).p,
                  RENAME_NOREPLACE) < 0)
        return (errno == EEXIST && is_tidy) || /* twice in a second: the next look is soon enough */
               dv_fail_errno(err, errno, "set %.*s aside", DV_FMT(path));
    *aside = dv_str_printf(op->arena, "%.*s.%s", DV_FMT(path), stamp);
    return is_tidy;
}

bool dv_voldir_run_rotate(struct dv_voldir_rotate *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str *asides = DV_NEW_ARRAY(op->arena, dv_str, op->n_logs);
    bool *are_absent = DV_NEW_ARRAY(op->arena, bool, op->n_logs);
    bool is_good = true;
    struct dv_err other;

    for (size_t i = 0; i < op->n_logs; i++) {
        is_good &= rotate(op, op->log_paths[i], scratch, &asides[i], &are_absent[i],
                          is_good ? err : &other);
        dv_arena_reset(scratch);
    }
    op->aside_paths = asides;
    op->are_absent = are_absent;
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
