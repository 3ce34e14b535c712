#include "pod/admission/pod_marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/log.h"

/* The longest name of a file is longer; uids of the API are UUIDs. */
#define UID_BYTES_MAX 200u
#define BOOT_ID_BYTES_MAX 128u

struct dv_pod_marks {
    int fd; /* of the directory */
    size_t n_boot_id;
    char boot_id[BOOT_ID_BYTES_MAX];
};

/* Makes the name of a pod's file. False: a pod with such a uid has no mark. */
static bool name_of(dv_str uid, char name[UID_BYTES_MAX + 1])
{
    if (uid.n == 0 || uid.n > UID_BYTES_MAX || uid.p[0] == '.')
        return false;
    for (size_t i = 0; i < uid.n; i++)
        if (!dv_is_alphanumeric(uid.p[i]) && uid.p[i] != '-' && uid.p[i] != '_' && uid.p[i] != '.')
            return false;
    memcpy(name, uid.p, uid.n);
    name[uid.n] = '\0';
    return true;
}

struct dv_pod_marks *dv_pod_marks_open(dv_str dir, dv_str boot_id)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *path = dv_str_to_c(dir, arena);
    struct dv_pod_marks *marks;
    struct dv_err err;
    int fd;

    if (dir.n == 0 || boot_id.n == 0 || boot_id.n > BOOT_ID_BYTES_MAX)
        return NULL;
    (void)mkdir(path, 0700); /* what fails is told by the next call */
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        (void)dv_fail_errno(&err, errno, "%.*s", DV_FMT(dir));
        dv_log(DV_LOG_WARN, "pod: a restart will forget which pods nobody has started",
               DV_F_ERR(&err));
        return NULL;
    }
    marks = DV_ALLOC(struct dv_pod_marks);
    marks->fd = fd;
    marks->n_boot_id = boot_id.n;
    memcpy(marks->boot_id, boot_id.p, boot_id.n);
    return marks;
}

void dv_pod_marks_close(struct dv_pod_marks *marks)
{
    if (marks)
        (void)close(marks->fd);
    free(marks);
}

void dv_pod_marks_put(struct dv_pod_marks *marks, dv_str uid)
{
    char name[UID_BYTES_MAX + 1];
    DV_CLEANUP(dv_close_fd) int fd = -1;

    if (!marks || !name_of(uid, name))
        return;
    fd = openat(marks->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    /* A mark that is not whole is none. */
    if (fd >= 0 && write(fd, marks->boot_id, marks->n_boot_id) != (ssize_t)marks->n_boot_id)
        (void)unlinkat(marks->fd, name, 0);
}

bool dv_pod_marks_has(const struct dv_pod_marks *marks, dv_str uid)
{
    char name[UID_BYTES_MAX + 1];
    char boot_id[BOOT_ID_BYTES_MAX];
    DV_CLEANUP(dv_close_fd) int fd = -1;

    if (!marks || !name_of(uid, name))
        return false;
    fd = openat(marks->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && read(fd, boot_id, sizeof(boot_id)) == (ssize_t)marks->n_boot_id &&
           memcmp(boot_id, marks->boot_id, marks->n_boot_id) == 0;
}

bool dv_pod_marks_remove(struct dv_pod_marks *marks, dv_str uid, struct dv_err *err)
{
    char name[UID_BYTES_MAX + 1];

    if (!marks || !name_of(uid, name) || unlinkat(marks->fd, name, 0) == 0 || errno == ENOENT)
        return true;
    return dv_fail_errno(err, errno, "the mark that pod %s has not been started", name);
}

void dv_pod_marks_sweep(struct dv_pod_marks *marks, bool (*is_known)(const void *ctx, dv_str uid),
                        const void *ctx)
{
    const struct dirent *entry;
    DIR *dir;
    int fd;

    if (!marks)
        return;
    fd = openat(marks->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.' && !is_known(ctx, dv_str_from_c(entry->d_name)))
            (void)unlinkat(marks->fd, entry->d_name, 0); /* it is nobody's */
    (void)closedir(dir);
}
