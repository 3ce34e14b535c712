#include "plugin/peer_identity.h"

#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "policy/policy.h"

#define PROC_BYTES_MAX 16384u
#define PATH_BYTES 64u
/* A process has at most 65,536 groups. Rules need the first few, and the kernel tells when there
 * are more. */
#define GROUPS_MAX 4096u
/* The place of the start time among the fields of /proc/PID/stat after the name, which may have
 * blanks. */
#define START_FIELD 20u

static const char *proc_path(pid_t pid, const char *name, char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES, "/proc/%d/%s", (int)pid, name); /* fits */
    return path;
}

/* Returns when the process started, in ticks since the boot; 0: there is no such process. */
static uint64_t start_time(pid_t pid, struct dv_arena *arena)
{
    char path[PATH_BYTES];
    struct dv_err gone;
    uint64_t start = 0;
    dv_str text, field;
    size_t end;

    if (!dv_file_read(dv_str_from_c(proc_path(pid, "stat", path)), PROC_BYTES_MAX, arena, &text,
                      &gone))
        return 0;
    for (end = text.n; end > 0 && text.p[end - 1] != ')';)
        end--;
    text = dv_str_slice(text, end + 1, text.n);
    for (size_t i = 0; dv_str_split(&text, ' ', &field); i++)
        if (i + 1 == START_FIELD)
            return dv_str_to_u64(field, &start) ? start : 0;
    return 0;
}

static dv_str read_unit(pid_t pid, struct dv_arena *arena)
{
    char path[PATH_BYTES];
    struct dv_err gone;
    dv_str text;

    return dv_file_read(dv_str_from_c(proc_path(pid, "cgroup", path)), PROC_BYTES_MAX, arena, &text,
                        &gone)
               ? dv_policy_unit_of(text)
               : DV_STR("");
}

/* Whether the file that we see at the path is the one that runs. If not, it was deleted or
 * replaced, or the process sees other mounts than we do, where the path may be any file. Comparing
 * mount namespaces would not help, since a service has one of its own. */
static bool is_at(pid_t pid, const char *executable)
{
    char path[PATH_BYTES];
    struct stat runs, there;

    return stat(proc_path(pid, "exe", path), &runs) == 0 && stat(executable, &there) == 0 &&
           runs.st_ino == there.st_ino && runs.st_dev == there.st_dev;
}

static dv_str read_executable(pid_t pid, struct dv_arena *arena, dv_str *doubt)
{
    char path[PATH_BYTES];
    char target[PATH_MAX];
    ssize_t n = readlink(proc_path(pid, "exe", path), target, sizeof(target) - 1);

    if (n <= 0) {
        *doubt = DV_STR("its executable cannot be read");
        return DV_STR("");
    }
    target[n] = '\0';
    if (!is_at(pid, target)) {
        *doubt = dv_str_printf(arena,
                               "its executable %s is not the file there: deleted, replaced, "
                               "or in other mounts",
                               target);
        return DV_STR("");
    }
    return dv_str_copy(dv_str_from_c(target), arena);
}

/* Whether the process has ended: its descriptor is readable then. */
static bool has_ended(int pidfd)
{
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) != 0;
}

static void read_process(int pidfd, struct dv_policy_peer *peer, struct dv_arena *arena)
{
    uint64_t start = start_time(peer->pid, arena);
    dv_str unit = read_unit(peer->pid, arena);
    dv_str doubt = DV_STR("");
    dv_str executable = read_executable(peer->pid, arena, &doubt);

    /* A pid may be used again while we read. All was read of one process if its start time is the
     * same afterwards, and that is the peer if the peer has not ended. */
    if (start == 0 || start_time(peer->pid, arena) != start || (pidfd >= 0 && has_ended(pidfd))) {
        peer->doubt = DV_STR("the process has ended");
        return;
    }
    peer->unit = unit;
    peer->executable = executable;
    peer->doubt = doubt;
}

const struct dv_policy_peer *dv_peer_identify(const struct dv_stream *stream,
                                              struct dv_arena *arena)
{
    struct dv_policy_peer *peer = DV_NEW(arena, struct dv_policy_peer);
    gid_t *gids = DV_NEW_ARRAY(arena, gid_t, GROUPS_MAX + 1);
    struct dv_peer found = dv_stream_peer(stream);
    DV_CLEANUP(dv_close_fd) int pidfd = dv_stream_pidfd(stream);

    if (found.uid == (uid_t)-1) {
        peer->doubt = DV_STR("the kernel does not tell who it is");
        return peer;
    }
    peer->has_ids = true;
    peer->uid = found.uid;
    gids[0] = found.gid;
    peer->gids = gids;
    peer->n_gids = 1 + dv_stream_groups(stream, gids + 1, GROUPS_MAX);
    if (found.pid <= 0) {
        peer->doubt = DV_STR("its process is not in our namespace");
        return peer;
    }
    peer->pid = found.pid;
    read_process(pidfd, peer, arena);
    return peer;
}

const struct dv_policy_peer *dv_policy_peer_copy(const struct dv_policy_peer *peer,
                                                 struct dv_arena *arena)
{
    struct dv_policy_peer *copy;
    gid_t *gids;

    if (!peer)
        return NULL;
    copy = DV_NEW(arena, struct dv_policy_peer);
    gids = DV_NEW_ARRAY(arena, gid_t, peer->n_gids);
    *copy = *peer;
    for (size_t i = 0; i < peer->n_gids; i++)
        gids[i] = peer->gids[i];
    copy->gids = gids;
    copy->unit = dv_str_copy(peer->unit, arena);
    copy->executable = dv_str_copy(peer->executable, arena);
    copy->doubt = dv_str_copy(peer->doubt, arena);
    return copy;
}
