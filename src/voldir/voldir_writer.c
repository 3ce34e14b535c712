#include "voldir/voldir_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_remove.h"
#include "workload/volume.h"

#define DATA "..data"
#define DATA_NEW "..data_tmp"
#define DIR_MODE 0755
/* What a group may do with files that are read-only to containers, and the bit by which what is
 * made in a directory is the group's, too. */
#define GROUP_FILE_BITS 0440
#define GROUP_DIR_BITS (S_ISGID | 0550)
#define CHUNK_BYTES 65536u

struct writing {
    int dir; /* the volume's */
    const struct dv_volume *volume;
    const int64_t *group;
    struct dv_arena *arena;
    dv_str old; /* the directory that ..data points to; empty: there is none */
};

/* ---- what is there ---- */

/* The target of a link in `dir`; empty when it is none, or cannot be one of ours. */
static dv_str read_link(int dir, const char *name, struct dv_arena *arena)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof(target));

    if (n <= 0 || (size_t)n >= sizeof(target))
        return DV_STR_NONE;
    return dv_str_copy((dv_str){target, (size_t)n}, arena);
}

static bool has_content(int fd, dv_str content)
{
    char chunk[CHUNK_BYTES];
    ssize_t n;

    do {
        n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !dv_str_starts_with(content, (dv_str){chunk, (size_t)n}))
            return false;
        content = dv_str_slice(content, (size_t)n, content.n);
    } while (n != 0);
    return content.n == 0;
}

/* Whether `data` has this file with this content, in directories that are no links. */
static bool has_file(const struct writing *writing, int data, const struct dv_volume_file *file)
{
    struct stat about;
    DV_CLEANUP(dv_close_fd)
    int fd = dv_voldir_openat2(data, dv_str_to_c(file->path, writing->arena), O_RDONLY | O_NONBLOCK,
                               DV_VOLDIR_NO_LINKS);

    return fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
           (uint64_t)about.st_size == file->content.n && has_content(fd, file->content);
}

static int compare_path(const void *key, const void *file)
{
    return dv_str_cmp(*(const dv_str *)key, ((const struct dv_volume_file *)file)->path);
}

/* Whether a file of the volume has this path, or is in a directory of this path. */
static bool is_wanted(const struct writing *writing, dv_str path)
{
    const struct dv_volume *volume = writing->volume;
    size_t low = 0;
    size_t high = volume->n_files;

    while (low < high) { /* the first that does not come before it */
        size_t middle = low + (high - low) / 2;

        if (compare_path(&path, &volume->files[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < volume->n_files && dv_str_starts_with(volume->files[low].path, path); low++) {
        dv_str rest = dv_str_slice(volume->files[low].path, path.n, SIZE_MAX);

        if (rest.n == 0 || rest.p[0] == '/')
            return true;
    }
    return false;
}

/* Whether all that is in a directory of `..data` is wanted. Directories are no deeper than paths of
 * files that we wrote once. */
static bool has_nothing_else(const struct writing *writing, int parent, const char *name,
                             dv_str prefix)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    bool is_so = dir;

    while (is_so && (entry = readdir(dir))) {
        dv_str path;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        path = dv_str_printf(writing->arena, "%.*s%s%s", DV_FMT(prefix), prefix.n ? "/" : "",
                             entry->d_name);
        is_so = is_wanted(writing, path);
        if (is_so && entry->d_type == DT_DIR)
            is_so = has_nothing_else(writing, fd, entry->d_name, path);
    }
    if (dir)
        (void)closedir(dir);
    else if (fd >= 0)
        (void)close(fd);
    return is_so;
}

static bool is_current(const struct writing *writing)
{
    const char *old = dv_str_to_c(writing->old, writing->arena);
    DV_CLEANUP(dv_close_fd) int data = -1;

    if (writing->old.n == 0)
        return false;
    data = openat(writing->dir, old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (data < 0)
        return false;
    for (size_t i = 0; i < writing->volume->n_files; i++)
        if (!has_file(writing, data, &writing->volume->files[i]))
            return false;
    return has_nothing_else(writing, writing->dir, old, DV_STR_NONE);
}

/* ---- new files ---- */

static bool give(const struct writing *writing, int fd, const int64_t *user, mode_t mode)
{
    uid_t uid = user ? (uid_t)*user : (uid_t)-1;
    gid_t gid = writing->group ? (gid_t)*writing->group : (gid_t)-1;

    /* The mode last: a change of owner takes bits of it away. */
    return (!(user || writing->group) || fchown(fd, uid, gid) == 0) && fchmod(fd, mode) == 0;
}

static mode_t dir_mode(const struct writing *writing)
{
    return writing->group ? DIR_MODE | GROUP_DIR_BITS : DIR_MODE;
}

/* Opens the directory for a file below `data`, made where it is not there; *name is the last part
 * of the path. */
static int open_parent(const struct writing *writing, int data, dv_str path, const char **name,
                       struct dv_err *err)
{
    int fd = fcntl(data, F_DUPFD_CLOEXEC, 0);
    dv_str rest = path;
    dv_str part;

    if (fd < 0)
        (void)dv_fail_errno(err, errno, "copy a descriptor");
    while (fd >= 0 && dv_str_split(&rest, '/', &part)) {
        bool is_new;
        int next;

        *name = dv_str_to_c(part, writing->arena);
        if (!rest.p)
            return fd;
        next = dv_voldir_open_dir(fd, *name, DIR_MODE, &is_new, err);
        if (next >= 0 && is_new && !give(writing, next, NULL, dir_mode(writing))) {
            (void)dv_fail_errno(err, errno, "give directory %s to its group", *name);
            (void)close(next);
            next = -1;
        }
        (void)close(fd);
        fd = next;
    }
    return fd;
}

static bool write_file(const struct writing *writing, int data, const struct dv_volume_file *file,
                       struct dv_err *err)
{
    mode_t mode = file->mode | (writing->group ? GROUP_FILE_BITS : 0);
    const char *name = "";
    DV_CLEANUP(dv_close_fd) int parent = open_parent(writing, data, file->path, &name, err);
    DV_CLEANUP(dv_close_fd) int fd = -1;

    if (parent < 0)
        return dv_wrap(err, "%.*s", DV_FMT(file->path));
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return dv_fail_errno(err, errno, "make file %.*s", DV_FMT(file->path));
    if (!dv_voldir_write(fd, file->content))
        return dv_fail_errno(err, errno, "write file %.*s", DV_FMT(file->path));
    if (!give(writing, fd, file->uid, mode))
        return dv_fail_errno(err, errno, "set the owner and mode of file %.*s", DV_FMT(file->path));
    return true;
}

/* "..2026_11_16_14_00_00.1234567890": the time is for people, the rest makes it new. */
static const char *name_of_now(struct dv_arena *arena)
{
    time_t now = time(NULL);
    struct tm utc;

    (void)gmtime_r(&now, &utc);
    return dv_str_printf(arena, "..%04d_%02d_%02d_%02d_%02d_%02d.%010llu", utc.tm_year + 1900,
                         utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                         (unsigned long long)(dv_random_u64() % UINT64_C(10000000000)))
        .p;
}

static bool fill(const struct writing *writing, const char *name, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int data = openat(writing->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (data < 0)
        return dv_fail_errno(err, errno, "open directory %s", name);
    for (size_t i = 0; i < writing->volume->n_files; i++)
        if (!write_file(writing, data, &writing->volume->files[i], err))
            return false;
    if (!give(writing, data, NULL, dir_mode(writing)))
        return dv_fail_errno(err, errno, "give directory %s to its group", name);
    return true;
}

/* ---- links ---- */

static bool make_link(const struct writing *writing, const char *target, const char *name,
                      const int64_t *user, struct dv_err *err)
{
    if (symlinkat(target, writing->dir, name) < 0)
        return dv_fail_errno(err, errno, "make link %s", name);
    if ((user || writing->group) &&
        fchownat(writing->dir, name, user ? (uid_t)*user : (uid_t)-1,
                 writing->group ? (gid_t)*writing->group : (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
        return dv_fail_errno(err, errno, "set the owner of link %s", name);
    return true;
}

/* Makes the new files the volume's. */
static bool switch_to(const struct writing *writing, const char *name, struct dv_err *err)
{
    if (unlinkat(writing->dir, DATA_NEW, 0) < 0 && errno != ENOENT)
        return dv_fail_errno(err, errno, "remove %s", DATA_NEW);
    if (!make_link(writing, name, DATA_NEW, NULL, err))
        return false;
    if (renameat(writing->dir, DATA_NEW, writing->dir, DATA) < 0)
        return dv_fail_errno(err, errno, "replace %s", DATA);
    return true;
}

/* Sees to it that containers find the file by its name. */
static bool show(const struct writing *writing, const struct dv_volume_file *file,
                 struct dv_err *err)
{
    dv_str top = dv_str_slice(file->path, 0, dv_str_find_char(file->path, '/'));
    const char *name = dv_str_to_c(top, writing->arena);
    const char *target = dv_str_printf(writing->arena, DATA "/%s", name).p;

    if (dv_str_eq(read_link(writing->dir, name, writing->arena), dv_str_from_c(target)))
        return true;
    /* A part of the volume that was mounted before it had such a file is a directory there. */
    if (!dv_voldir_remove(writing->dir, name, err))
        return false;
    return make_link(writing, target, name, file->uid, err);
}

/* ---- what is left over ---- */

/* Whether an entry of the volume is none of its files, and was made by this writer: a name without
 * a file any more, or a directory of files that is not used (any more, or yet: a crash). */
static bool is_stale(const struct writing *writing, dv_str name, dv_str current)
{
    if (dv_str_eq(name, DV_STR(DATA)) || dv_str_eq(name, current) || dv_str_eq(name, DV_STR(".")) ||
        dv_str_eq(name, DV_STR("..")))
        return false;
    if (dv_str_starts_with(name, DV_STR("..")))
        return true;
    return !is_wanted(writing, name) &&
           dv_str_starts_with(
               read_link(writing->dir, dv_str_to_c(name, writing->arena), writing->arena),
               DV_STR(DATA "/"));
}

static bool sweep(const struct writing *writing, dv_str current, struct dv_err *err)
{
    int fd = openat(writing->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    DV_VEC(dv_str) stale = {0};

    if (!dir) {
        dv_close_fd(&fd);
        return dv_fail_errno(err, errno, "read the volume");
    }
    while ((entry = readdir(dir)))
        if (is_stale(writing, dv_str_from_c(entry->d_name), current))
            *dv_vec_add_in(&stale, writing->arena) =
                dv_str_copy(dv_str_from_c(entry->d_name), writing->arena);
    (void)closedir(dir);
    for (size_t i = 0; i < stale.n; i++)
        if (!dv_voldir_remove(writing->dir, dv_str_to_c(stale.v[i], writing->arena), err))
            return false;
    return true;
}

/* ---- all of it ---- */

/* Makes a directory with the new files and switches to it; *current is its name then. */
static bool replace(const struct writing *writing, dv_str *current, struct dv_err *err)
{
    const char *name = name_of_now(writing->arena);
    struct dv_err ignored;

    if (mkdirat(writing->dir, name, 0700) < 0)
        return dv_fail_errno(err, errno, "make directory %s", name);
    if (!fill(writing, name, err) || !switch_to(writing, name, err)) {
        bool is_gone = dv_voldir_remove(writing->dir, name, &ignored);

        (void)is_gone; /* otherwise the next call sweeps it */
        return false;
    }
    *current = dv_str_from_c(name);
    return true;
}

bool dv_voldir_write_files(int dir, const struct dv_volume *volume, const int64_t *group,
                           struct dv_arena *arena, struct dv_err *err)
{
    struct writing writing = {.dir = dir, .volume = volume, .group = group, .arena = arena};
    dv_str current;

    writing.old = read_link(dir, DATA, arena);
    if (!dv_voldir_is_name(writing.old))
        writing.old = DV_STR_NONE;
    current = writing.old;
    if (!is_current(&writing) && !replace(&writing, &current, err))
        return false;
    for (size_t i = 0; i < volume->n_files; i++)
        if (!show(&writing, &volume->files[i], err))
            return false;
    return sweep(&writing, current, err);
}
