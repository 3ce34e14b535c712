/* voldir_cgroup.c - cgroups of pods: made as planned, and removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/values.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "workload/cgroup.h"

#define MOUNTS_FILE "/proc/self/mountinfo"
#define TEXT_BYTES_MAX                                                                             \
    (16u << 20) /* of mountinfo: a node with ten thousand pods has many lines                      \
                 */
#define CONTROLLERS_BYTES_MAX 4096u
#define PROCS_BYTES_MAX (1u << 20)
#define GROUP_MODE 0755
/* Another process may remove an empty group above ours between two steps. */
#define TRIES 3
/* A process that was killed takes a moment to leave its group. */
#define BUSY_TRIES 100
#define BUSY_NS 10000000
/* Groups inside groups: a runtime makes one or two levels, a container with rights more. */
#define DEPTH_MAX 32

/* ---- made ---- */

static bool do_step(const struct dv_cgroup_step *step, struct dv_arena *arena, bool *is_lost,
                    struct dv_err *err)
{
    const char *path = dv_str_to_c(step->path, arena);
    DV_CLEANUP(dv_close_fd) int fd = -1;

    *is_lost = false;
    if (!step->text.p) {
        if (mkdir(path, GROUP_MODE) == 0 || errno == EEXIST)
            return true;
        *is_lost = errno == ENOENT;
        return dv_fail_errno(err, errno, "make cgroup %s", path);
    }
    fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0) {
        *is_lost = errno == ENOENT;
        return dv_fail_errno(err, errno, "open %s", path);
    }
    if (!dv_voldir_write(fd, step->text))
        return dv_fail_errno(err, errno, "write \"%.*s\" to %s", DV_FMT(step->text), path);
    return true;
}

static bool do_all(const struct dv_cgroup_plan *plan, struct dv_arena *arena, bool *is_lost,
                   struct dv_err *err)
{
    for (size_t i = 0; i < plan->n; i++)
        if (!do_step(&plan->v[i], arena, is_lost, err))
            return false;
    return dv_succeed(err);
}

bool dv_voldir_make_cgroups(const struct dv_cgroup_plan *plan, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    bool is_lost = true;

    for (int i = 0; is_lost && i < TRIES; i++)
        if (do_all(plan, arena, &is_lost, err))
            return true;
    return false;
}

/* ---- found ---- */

static bool find_mounts(dv_str dir, struct dv_arena *arena, struct dv_cgroup_mounts *mounts,
                        struct dv_err *err)
{
    dv_str text;

    if (!dv_file_read(DV_STR(MOUNTS_FILE), TEXT_BYTES_MAX, arena, &text, err))
        return false;
    dv_cgroup_mounts_parse(text, dir, arena, mounts);
    for (size_t i = 0; i < mounts->n; i++) {
        struct dv_cgroup_mount *mount = &mounts->v[i];

        if (!mount->is_v2)
            continue;
        if (!dv_file_read(dv_str_printf(arena, "%.*s/cgroup.controllers", DV_FMT(mount->path)),
                          CONTROLLERS_BYTES_MAX, arena, &text, err))
            return false;
        mount->controllers = dv_str_trim(text);
    }
    return dv_cgroup_mounts_are_useful(mounts) ||
           dv_fail(err, DV_FAILED_PRECONDITION,
                   "%.*s: no cgroups with the controllers cpu and memory are mounted", DV_FMT(dir));
}

bool dv_voldir_run_cgroups(struct dv_voldir_cgroups *op, struct dv_err *err)
{
    struct dv_cgroup_mounts *mounts = DV_NEW(op->arena, struct dv_cgroup_mounts);
    struct dv_cgroup_plan plan = {0};

    if (!find_mounts(op->dir, op->arena, mounts, err))
        return false;
    op->tree.mounts = mounts;
    dv_cgroup_plan_tree(&op->tree, op->arena, &plan);
    return dv_voldir_make_cgroups(&plan, err);
}

/* ---- removed ---- */

/* Kills what runs in the group. */
static void kill_all(int dir, struct dv_arena *arena)
{
    DV_CLEANUP(dv_close_fd) int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    struct dv_err err;
    dv_str text;
    dv_str line;

    if (fd < 0 || !dv_file_read_fd(fd, PROCS_BYTES_MAX, arena, &text, &err))
        return;
    while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
        uint32_t pid;

        /* 0 is a process that cannot be seen from here, and would stand for all of ours. */
        if (dv_str_to_u32(line, &pid) && pid > 1 && pid <= INT32_MAX)
            (void)kill((pid_t)pid, SIGKILL); /* gone is what we want */
    }
}

static void pause_a_moment(void)
{
    struct timespec moment = {.tv_nsec = BUSY_NS};

    (void)nanosleep(&moment, NULL);
}

/* Removes the group `name` with those in it, the innermost first. */
static bool remove_group(int parent, const char *name, int depth, struct dv_arena *arena,
                         struct dv_err *err)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_removed = true;
    const struct dirent *entry;
    DIR *dir;

    if (fd < 0)
        return errno == ENOENT || dv_fail_errno(err, errno, "open cgroup %s", name);
    dir = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
    if (!dir) {
        (void)close(fd);
        return dv_fail(err, DV_FAILED_PRECONDITION, "cgroup %s cannot be read", name);
    }
    while (is_removed && (entry = readdir(dir)) != NULL)
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            is_removed = remove_group(fd, entry->d_name, depth + 1, arena, err);
    for (int i = 0; is_removed && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT;
         i++) {
        is_removed = errno == EBUSY && i < BUSY_TRIES;
        if (!is_removed)
            (void)dv_fail_errno(err, errno, "remove cgroup %s", name);
        kill_all(fd, arena);
        pause_a_moment();
    }
    (void)closedir(dir);
    return is_removed;
}

bool dv_voldir_remove_cgroups(const struct dv_strs *dirs, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    for (size_t i = 0; i < dirs->n; i++)
        if (!remove_group(AT_FDCWD, dv_str_to_c(dirs->v[i], arena), 0, arena, err))
            return false;
    return dv_succeed(err);
}
