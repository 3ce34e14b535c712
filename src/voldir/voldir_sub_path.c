/* voldir_sub_path.c - a part of a volume, bound to where the runtime finds it.
 *
 * The volume may be full of links, and its containers may change them at any moment. So nothing is
 * looked up twice: the kernel resolves the path below the volume and gives a descriptor, and what
 * that stands for is mounted, whatever the path leads to by then. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "voldir/voldir_mount.h"
#include "workload/volume.h"

/* Links that stay in the volume are fine: all files of a config map are some. */
#define WITHIN (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)

static int fail_open(int error, dv_str path, dv_str volume, struct dv_err *err)
{
    if (error == EXDEV || error == ELOOP)
        (void)dv_fail(err, DV_FAILED_PRECONDITION,
                      "subpath \"%.*s\" not within volume path \"%.*s\"", DV_FMT(path),
                      DV_FMT(volume));
    else if (error == ENOSYS)
        (void)dv_fail(err, DV_UNIMPLEMENTED, "subPath needs openat2: Linux 5.6 has it");
    else
        (void)dv_fail_errno(err, error, "open \"%.*s\" in volume path \"%.*s\"", DV_FMT(path),
                            DV_FMT(volume));
    return -1;
}

/* EAGAIN: something was renamed meanwhile, and the kernel is not sure. */
static int open_within(int root, const char *path, int flags)
{
    int fd;
    int n_tries = 0;

    do
        fd = dv_voldir_openat2(root, path, O_PATH | flags, WITHIN);
    while (fd < 0 && errno == EAGAIN && ++n_tries < 128);
    return fd;
}

/* Makes directory `name` in `parent`, with the mode of the volume, and opens it. */
static int make_part(int parent, const char *name, mode_t mode)
{
    bool is_made = mkdirat(parent, name, 0700) == 0;
    struct stat about;
    int fd;

    if (!is_made && errno != EEXIST) /* a container may have been faster */
        return -1;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !is_made)
        return fd;
    /* The bit that hands the group down comes from the parent. */
    if (fstat(fd, &about) == 0 && fchmod(fd, (mode & ACCESSPERMS) | (about.st_mode & S_ISGID)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Opens the longest part of the path that is there, and makes the rest; no link is followed in
 * that. */
static int make_within(int root, dv_str path, struct dv_arena *arena)
{
    struct stat about;
    size_t n = path.n;
    int fd = -1;
    dv_str rest;
    dv_str part;

    if (fstat(root, &about) < 0)
        return -1;
    while (fd < 0 && n > 0) {
        while (n > 0 && path.p[n - 1] != '/')
            n--;
        while (n > 0 && path.p[n - 1] == '/')
            n--;
        fd = n > 0 ? open_within(root, dv_str_to_c(dv_str_slice(path, 0, n), arena), O_DIRECTORY)
                   : fcntl(root, F_DUPFD_CLOEXEC, 0);
        if (fd < 0 && errno != ENOENT)
            return -1;
    }
    rest = dv_str_slice(path, n, path.n);
    while (fd >= 0 && dv_str_split(&rest, '/', &part)) {
        int next;

        if (part.n == 0 || dv_str_eq(part, DV_STR(".")))
            continue;
        next = make_part(fd, dv_str_to_c(part, arena), about.st_mode);
        if (next < 0) {
            int error = errno;

            (void)close(fd);
            errno = error;
            return -1;
        }
        (void)close(fd);
        fd = next;
    }
    return fd;
}

static int open_part(const struct dv_voldir_sub_path *op, const struct dv_volume *volume,
                     struct dv_arena *arena, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int root = open(dv_str_to_c(volume->path, arena), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *path = dv_str_to_c(op->sub_path, arena);
    int fd;

    if (root < 0)
        return fail_open(errno, op->sub_path, volume->path, err);
    fd = open_within(root, path, 0);
    if (fd < 0 && errno == ENOENT)
        fd = make_within(root, op->sub_path, arena);
    if (fd < 0)
        return fail_open(errno, op->sub_path, volume->path, err);
    return fd;
}

/* ---- the place ---- */

static bool is_same(int fd, int dir, const char *name)
{
    struct stat one;
    struct stat other;

    return fstat(fd, &one) == 0 && fstatat(dir, name, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Takes away what an earlier container of this name had bound there. */
static bool clear(int dir, const char *name, const char *path, struct dv_err *err)
{
    bool is_mounted = true;

    while (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!dv_voldir_is_mounted(dir, name, &is_mounted, err))
            return false;
        if (!is_mounted)
            break;
        if (!dv_voldir_unmount(path, err))
            return false;
    }
    if (unlinkat(dir, name, 0) < 0 && errno == EISDIR && unlinkat(dir, name, AT_REMOVEDIR) < 0)
        return dv_fail_errno(err, errno, "remove %s", path);
    return true;
}

/* What is mounted on: a directory for a directory, a file for all else. */
static bool make_place(int fd, int dir, const char *name, struct dv_err *err)
{
    struct stat about;
    int file;

    if (fstat(fd, &about) < 0)
        return dv_fail_errno(err, errno, "look at the part of a volume");
    if (S_ISDIR(about.st_mode))
        return mkdirat(dir, name, DV_VOLDIR_OWN_MODE) == 0 ||
               dv_fail_errno(err, errno, "make directory %s", name);
    file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    dv_close_fd(&file);
    return file >= 0 || dv_fail_errno(err, errno, "make file %s", name);
}

static bool bind_part(const struct dv_voldir_sub_path *op, int part, const char *place,
                      struct dv_arena *arena, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int pod = dv_voldir_open_pod(op->plan, arena, err);
    DV_CLEANUP(dv_close_fd) int dir = -1;
    const char *name = strrchr(place, '/') + 1;
    bool is_mounted = false;

    if (pod < 0)
        return false;
    dir = dv_voldir_open_dirs(pod,
                              dv_str_printf(arena, "volume-subpaths/%.*s/%.*s", DV_FMT(op->volume),
                                            DV_FMT(op->container)),
                              DV_VOLDIR_OWN_MODE, arena, err);
    if (dir < 0)
        return false;
    if (is_same(part, dir, name) && dv_voldir_is_mounted(dir, name, &is_mounted, err) && is_mounted)
        return true;
    return clear(dir, name, place, err) && make_place(part, dir, name, err) &&
           dv_voldir_bind(part, place, err);
}

bool dv_voldir_run_sub_path(struct dv_voldir_sub_path *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_volume *volume = dv_volume_find(op->plan, op->volume);
    const char *fault = dv_volume_sub_path_fault(op->sub_path);
    dv_str place =
        dv_volume_sub_path_place(op->plan, op->volume, op->container, op->index, op->arena);
    DV_CLEANUP(dv_close_fd) int part = -1;

    if (fault || op->sub_path.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "subPath \"%.*s\" %s", DV_FMT(op->sub_path),
                       fault ? fault : "must not be empty");
    if (!volume || volume->path.n == 0)
        return dv_fail(err, DV_NOT_FOUND, "volume \"%.*s\" has no directory", DV_FMT(op->volume));
    part = open_part(op, volume, scratch, err);
    if (part < 0 || !bind_part(op, part, dv_str_to_c(place, scratch), scratch, err))
        return dv_wrap(err,
                       "failed to prepare subPath for volumeMount \"%.*s\" of container \"%.*s\"",
                       DV_FMT(op->volume), DV_FMT(op->container));
    op->path = place;
    return true;
}
