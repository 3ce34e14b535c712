/* voldir_container.c - what one start of a container needs on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "workload/volume.h"

#define HOSTS "etc-hosts"
#define HOSTS_MODE 0644
/* The container may run as any user. */
#define MESSAGE_MODE 0666
#define NAME_TRIES 16

static bool make_log_dir(const struct dv_voldir_container *op, struct dv_arena *arena,
                         struct dv_err *err)
{
    dv_str path =
        dv_str_printf(arena, "%.*s/%.*s", DV_FMT(op->plan->log_dir), DV_FMT(op->container));
    int fd = dv_voldir_open_path(path, DV_VOLDIR_LOG_MODE, arena, err);

    dv_close_fd(&fd);
    return fd >= 0;
}

/* A new file each time: what an earlier one of this container said may still be read. */
static bool make_message_file(struct dv_voldir_container *op, int pod, struct dv_arena *arena,
                              struct dv_err *err)
{
    dv_str path = dv_str_printf(arena, "containers/%.*s", DV_FMT(op->container));
    DV_CLEANUP(dv_close_fd)
    int dir = dv_voldir_open_dirs(pod, path, DV_VOLDIR_OWN_MODE, arena, err);
    DV_CLEANUP(dv_close_fd) int fd = -1;
    char name[sizeof("01234567")];

    if (dir < 0)
        return false;
    for (int i = 0; fd < 0 && i < NAME_TRIES; i++) {
        (void)snprintf(name, sizeof(name), "%08x", (unsigned)dv_random_u64());
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        return dv_fail_errno(err, errno, "make file %.*s/%s", DV_FMT(path), name);
    if (fchmod(fd, MESSAGE_MODE) < 0)
        return dv_fail_errno(err, errno, "set the mode of file %.*s/%s", DV_FMT(path), name);
    op->termination_path =
        dv_str_printf(op->arena, "%.*s/%.*s/%s", DV_FMT(op->plan->pod_dir), DV_FMT(path), name);
    return true;
}

/* Writes it where it is: containers that run have this very file mounted. */
static bool write_hosts(struct dv_voldir_container *op, int pod, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int fd = openat(pod, HOSTS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return dv_fail_errno(err, errno, "open file " HOSTS);
    if (!dv_voldir_write(fd, op->hosts) || ftruncate(fd, (off_t)op->hosts.n) < 0)
        return dv_fail_errno(err, errno, "write file " HOSTS);
    if (fchmod(fd, HOSTS_MODE) < 0)
        return dv_fail_errno(err, errno, "set the mode of file " HOSTS);
    return true;
}

bool dv_voldir_run_container(struct dv_voldir_container *op, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_close_fd) int pod = -1;

    if (!dv_voldir_is_name(op->container))
        return dv_fail(err, DV_INVALID_ARGUMENT, "container \"%.*s\" is no file name",
                       DV_FMT(op->container));
    pod = dv_voldir_open_pod(op->plan, scratch, err);
    if (pod < 0 || !make_log_dir(op, scratch, err) || !make_message_file(op, pod, scratch, err))
        return false;
    return !op->hosts.p || write_hosts(op, pod, err);
}
