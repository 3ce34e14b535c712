#include "voldir/voldir_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <syscall.h>
#include <unistd.h>

#include "base/err.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

bool dv_voldir_is_name(dv_str name)
{
    return name.n > 0 && name.n <= NAME_MAX && !memchr(name.p, '/', name.n) &&
           !memchr(name.p, '\0', name.n) && !dv_str_eq(name, DV_STR(".")) &&
           !dv_str_eq(name, DV_STR(".."));
}

int dv_voldir_open_dir(int parent, const char *name, mode_t mode, bool *is_new, struct dv_err *err)
{
    bool is_made = mkdirat(parent, name, mode & S_IRWXU) == 0;
    int error = is_made ? 0 : errno;
    int fd;

    if (error != 0 && error != EEXIST) {
        (void)dv_fail_errno(err, error, "make directory %s", name);
        return -1;
    }
    fd = openat(parent, name, OPEN_DIR | O_NOFOLLOW);
    if (fd < 0) {
        (void)dv_fail_errno(err, errno, "open directory %s", name);
        return -1;
    }
    if (is_made && fchmod(fd, mode) < 0) { /* mkdir's mode is cut by the umask */
        (void)dv_fail_errno(err, errno, "set the mode of directory %s", name);
        (void)close(fd);
        return -1;
    }
    if (is_new)
        *is_new = is_made;
    return fd;
}

int dv_voldir_open_dirs(int parent, dv_str path, mode_t mode, struct dv_arena *arena,
                        struct dv_err *err)
{
    int fd = fcntl(parent, F_DUPFD_CLOEXEC, 0);
    dv_str rest = path;
    dv_str part;

    if (fd < 0)
        (void)dv_fail_errno(err, errno, "copy a descriptor");
    while (fd >= 0 && dv_str_split(&rest, '/', &part)) {
        int next;

        if (part.n == 0)
            continue;
        next = dv_voldir_is_name(part)
                   ? dv_voldir_open_dir(fd, dv_str_to_c(part, arena), mode, NULL, err)
                   : -1;
        if (!dv_voldir_is_name(part))
            (void)dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no file name", DV_FMT(part));
        (void)close(fd);
        fd = next;
    }
    return fd;
}

/* The part of the path that is there, without a slash at its end; "" is the root. */
static int open_nearest(dv_str path, struct dv_arena *arena, dv_str *rest)
{
    size_t n = path.n;

    for (;;) {
        dv_str head = dv_str_slice(path, 0, n);
        int fd = open(n > 0 ? dv_str_to_c(head, arena) : "/", OPEN_DIR);

        *rest = dv_str_slice(path, n, path.n);
        if (fd >= 0 || errno != ENOENT || n == 0)
            return fd;
        while (n > 0 && path.p[n - 1] != '/')
            n--;
        while (n > 0 && path.p[n - 1] == '/')
            n--;
    }
}

int dv_voldir_open_path(dv_str path, mode_t mode, struct dv_arena *arena, struct dv_err *err)
{
    dv_str rest;
    int fd;
    int made;

    if (path.n == 0 || path.p[0] != '/' || memchr(path.p, '\0', path.n)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no absolute path", DV_FMT(path));
        return -1;
    }
    fd = open_nearest(path, arena, &rest);
    if (fd < 0) {
        (void)dv_fail_errno(err, errno, "open directory %.*s", DV_FMT(path));
        return -1;
    }
    made = dv_voldir_open_dirs(fd, rest, mode, arena, err);
    (void)close(fd);
    if (made < 0)
        (void)dv_wrap(err, "%.*s", DV_FMT(path));
    return made;
}

bool dv_voldir_write(int fd, dv_str text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno != EINTR)
            return false;
        text = dv_str_slice(text, n > 0 ? (size_t)n : 0, text.n);
    }
    return true;
}

int dv_voldir_openat2(int parent, const char *path, int flags, unsigned long long resolve)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = resolve};

    return (int)syscall(SYS_openat2, parent, path, &how, sizeof(how));
}
