#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define CHUNK_BYTES 65536u

void dv_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing to do about a failure here; writers fsync first */
}

bool dv_file_read_fd(int fd, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                     struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    ssize_t got;

    dv_buf_init(&buf, max_bytes);
    do {
        char chunk[CHUNK_BYTES];

        got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno != EINTR)
            return dv_fail_errno(err, errno, "read");
        dv_buf_add(&buf, (dv_str){chunk, got > 0 ? (size_t)got : 0});
        if (buf.is_over)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "larger than the limit of %zu bytes",
                           max_bytes);
    } while (got != 0);
    *text = dv_str_copy(dv_buf_str(&buf), arena);
    return true;
}

bool dv_file_read(dv_str path, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                  struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int fd = open(dv_str_to_c(path, arena), O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return dv_fail_errno(err, errno, "open %.*s", DV_FMT(path));
    return dv_file_read_fd(fd, max_bytes, arena, text, err) || dv_wrap(err, "%.*s", DV_FMT(path));
}

static bool write_all(int fd, dv_str text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        text = dv_str_slice(text, (size_t)n, text.n);
    }
    return fsync(fd) == 0;
}

/* The directory of a path: where a rename is made durable. */
static bool sync_dir(dv_str path, struct dv_arena *arena)
{
    size_t n = path.n;
    const char *dir;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    dir = n > 0 ? dv_str_to_c(dv_str_slice(path, 0, n), arena) : ".";
    DV_CLEANUP(dv_close_fd) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && fsync(fd) == 0;
}

bool dv_file_replace(dv_str path, dv_str text, unsigned mode, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *target = dv_str_to_c(path, arena);
    const char *fresh = dv_str_to_c(dv_str_printf(arena, "%s.new", target), arena);
    int fd;
    bool is_ok;
    int cause;

    (void)unlink(fresh); /* of an earlier attempt that was cut short */
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
    if (fd < 0)
        return dv_fail_errno(err, errno, "make %s", fresh);
    is_ok = write_all(fd, text);
    cause = errno;
    if (close(fd) != 0 && is_ok) {
        is_ok = false;
        cause = errno;
    }
    if (is_ok && (rename(fresh, target) != 0 || !sync_dir(path, arena))) {
        is_ok = false;
        cause = errno;
    }
    if (is_ok)
        return true;
    (void)unlink(fresh); /* gone is what we want */
    return dv_fail_errno(err, cause, "write %s", target);
}

bool dv_file_make_private(const char *path, bool is_dir, unsigned mode_max, unsigned *old_mode,
                          struct dv_err *err)
{
    struct stat about;
    unsigned mode;

    *old_mode = 0;
    if (lstat(path, &about) != 0) {
        int cause = errno;

        return cause == ENOENT || dv_fail_errno(err, cause, "%s", path);
    }
    if (is_dir ? !S_ISDIR(about.st_mode) : !S_ISREG(about.st_mode))
        return dv_fail(err, DV_FAILED_PRECONDITION, "%s: not a %s%s: move it away", path,
                       is_dir ? "directory" : "regular file",
                       S_ISLNK(about.st_mode) ? " but a link" : "");
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "%s belongs to user %u, who could change it: make it user %u's (chown), or "
                       "move it away",
                       path, (unsigned)about.st_uid, (unsigned)geteuid());
    mode = about.st_mode & 07777u;
    if ((mode & ~mode_max) == 0)
        return true;
    if (chmod(path, (mode_t)(mode & mode_max)) != 0)
        return dv_fail_errno(err, errno,
                             "%s has mode %04o, which lets others in, and it cannot be changed",
                             path, mode);
    *old_mode = mode;
    return true;
}
