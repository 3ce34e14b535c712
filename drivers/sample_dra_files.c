#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "davit/driver.h"
#include "sample_dra.h"

static bool fail(struct davit_error *error, const char *what, const char *path)
{
    int errnum = errno;

    error->code = DAVIT_INTERNAL;
    (void)snprintf(error->message, sizeof(error->message), "%s %.150s: %s", what, path,
                   strerror(errnum));
    return false;
}

static bool write_all(int fd, const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t written = write(fd, text, n);

        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
    return true;
}

/* A name is on the disk when its directory is. */
static bool sync_dir_of(const char *path)
{
    char *dir = sample_copy(path);
    char *slash = strrchr(dir, '/');
    bool is_good = false;
    int fd;

    if (slash)
        *slash = '\0';
    fd = open(slash && dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        is_good = fsync(fd) == 0;
        (void)close(fd); /* was only synced */
    }
    free(dir);
    return is_good;
}

bool sample_file_replace(const char *path, const char *text, struct davit_error *error)
{
    char *temporary = sample_printf("%s.%d.tmp", path, (int)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool is_good = fd >= 0 && write_all(fd, text) && fsync(fd) == 0;

    if (!is_good)
        (void)fail(error, "writing", temporary);
    if (fd >= 0 && close(fd) != 0 && is_good)
        is_good = fail(error, "closing", temporary);
    if (is_good && (rename(temporary, path) != 0 || !sync_dir_of(path)))
        is_good = fail(error, "making", path);
    if (!is_good)
        (void)unlink(temporary); /* gone is what we want */
    free(temporary);
    return is_good;
}

bool sample_file_remove(const char *path, struct davit_error *error)
{
    if (unlink(path) == 0)
        return sync_dir_of(path) || fail(error, "removing", path);
    return errno == ENOENT || fail(error, "removing", path);
}

bool sample_dir_make(const char *path, struct davit_error *error)
{
    char *copy = sample_copy(path);
    bool is_good = true;

    for (char *at = strchr(copy + 1, '/'); at && is_good; at = strchr(at + 1, '/')) {
        *at = '\0';
        is_good = mkdir(copy, 0755) == 0 || errno == EEXIST || fail(error, "making", copy);
        *at = '/';
    }
    is_good = is_good && (mkdir(copy, 0755) == 0 || errno == EEXIST || fail(error, "making", copy));
    free(copy);
    return is_good;
}
