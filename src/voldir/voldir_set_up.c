/* voldir_set_up.c - the volumes of a pod, each by its kind. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "voldir/voldir.h"
#include "voldir/voldir_dirs.h"
#include "voldir/voldir_jobs.h"
#include "voldir/voldir_mount.h"
#include "voldir/voldir_writer.h"
#include "workload/volume.h"

/* Where marks are kept of what has been set up; volumes of files count as built on an emptyDir. */
#define MARKS "plugins/kubernetes.io~empty-dir"
#define MARK "ready"

struct setting {
    const struct dv_volume_plan *plan;
    const struct dv_volume *volume;
    struct dv_arena *arena;
    int pod;    /* the pod's directory */
    int parent; /* "volumes/<plugin>" in it */
    const char *name;
};

int dv_voldir_open_pod(const struct dv_volume_plan *plan, struct dv_arena *arena,
                       struct dv_err *err)
{
    dv_str end = dv_str_printf(arena, "/%.*s", DV_FMT(plan->uid));

    if (!dv_voldir_is_name(plan->uid) || !dv_str_ends_with(plan->pod_dir, end)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "pod UID \"%.*s\" is no file name",
                      DV_FMT(plan->uid));
        return -1;
    }
    return dv_voldir_open_path(plan->pod_dir, DV_VOLDIR_OWN_MODE, arena, err);
}

static bool has_files(const struct dv_volume *volume)
{
    return volume->kind == DV_VOLUME_FILES || volume->kind == DV_VOLUME_MEMORY_FILES;
}

static bool is_in_memory(const struct dv_volume *volume)
{
    return volume->kind == DV_VOLUME_MEMORY || volume->kind == DV_VOLUME_MEMORY_FILES ||
           volume->kind == DV_VOLUME_HUGE_PAGES;
}

/* ---- marks ---- */

static int open_marks(const struct setting *setting, struct dv_err *err)
{
    dv_str path = dv_str_printf(setting->arena, MARKS "/%s%s",
                                has_files(setting->volume) ? "wrapped_" : "", setting->name);

    return dv_voldir_open_dirs(setting->pod, path, DV_VOLDIR_OWN_MODE, setting->arena, err);
}

static bool is_marked(int marks)
{
    return faccessat(marks, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool set_mark(int marks, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int fd = openat(marks, MARK, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);

    return fd >= 0 || dv_fail_errno(err, errno, "make file " MARK);
}

/* ---- the volume's directory ---- */

static bool mount_kind(const struct setting *setting, struct dv_err *err)
{
    const struct dv_volume *volume = setting->volume;
    const char *path = dv_str_to_c(volume->path, setting->arena);

    if (volume->kind == DV_VOLUME_HUGE_PAGES)
        return dv_voldir_mount_huge_pages(path, volume->page_bytes, err);
    return dv_voldir_mount_memory(path, volume->size_bytes, err);
}

/* What a volume of memory is mounted on: once, and anew after a reboot. */
static bool mount_memory(const struct setting *setting, struct dv_err *err)
{
    bool is_mounted;

    if (!is_in_memory(setting->volume))
        return true;
    return dv_voldir_is_mounted(setting->parent, setting->name, &is_mounted, err) &&
           (is_mounted || mount_kind(setting, err));
}

/* Makes the volume every user's, and its group's: what is made in it belongs to that, too. */
static bool open_up(const struct setting *setting, int dir, struct dv_err *err)
{
    const int64_t *group = setting->plan->fs_group;
    mode_t mode = DV_VOLDIR_VOLUME_MODE;
    struct stat about;

    if (fstat(dir, &about) < 0)
        return dv_fail_errno(err, errno, "look at the volume");
    mode |= about.st_mode & S_ISVTX; /* a tmpfs has it from the kernel */
    if (group && fchown(dir, (uid_t)-1, (gid_t)*group) < 0)
        return dv_fail_errno(err, errno, "give the volume to group %lld", (long long)*group);
    if (fchmod(dir, group ? mode | S_ISGID : mode) < 0)
        return dv_fail_errno(err, errno, "set the mode of the volume");
    return true;
}

static bool make_dir(const struct setting *setting, struct dv_err *err)
{
    bool is_new;
    int fd =
        dv_voldir_open_dir(setting->parent, setting->name, DV_VOLDIR_VOLUME_MODE, &is_new, err);

    if (fd < 0)
        return false;
    (void)close(fd); /* what is mounted on it is opened by its name */
    return mount_memory(setting, err);
}

/* A volume that has been made is not touched again: its containers may have changed its mode. */
static bool make_volume(const struct setting *setting, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int marks = open_marks(setting, err);
    DV_CLEANUP(dv_close_fd) int dir = -1;
    bool was_mounted = true;
    bool was_there;

    if (marks < 0)
        return false;
    was_there = faccessat(setting->parent, setting->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (was_there && is_in_memory(setting->volume) &&
        !dv_voldir_is_mounted(setting->parent, setting->name, &was_mounted, err))
        return false;
    if (!make_dir(setting, err))
        return false;
    dir = openat(setting->parent, setting->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return dv_fail_errno(err, errno, "open the volume");
    if (!(was_there && was_mounted && is_marked(marks)) && !open_up(setting, dir, err))
        return false;
    if (has_files(setting->volume) &&
        !dv_voldir_write_files(dir, setting->volume, setting->plan->fs_group, setting->arena, err))
        return false;
    return is_marked(marks) || set_mark(marks, err);
}

static bool set_up_volume(struct setting *setting, struct dv_err *err)
{
    const struct dv_volume *volume = setting->volume;
    DV_CLEANUP(dv_close_fd) int parent = -1;

    if (volume->kind == DV_VOLUME_IMAGE)
        return true;
    if (volume->kind == DV_VOLUME_HOST_PATH)
        return dv_voldir_check_host_path(volume, setting->arena, err);
    parent = dv_voldir_open_dirs(
        setting->pod, dv_str_printf(setting->arena, "volumes/%.*s", DV_FMT(volume->plugin)),
        DV_VOLDIR_OWN_MODE, setting->arena, err);
    if (parent < 0)
        return false;
    setting->parent = parent;
    setting->name = dv_str_to_c(volume->name, setting->arena);
    return make_volume(setting, err);
}

/* ---- all of them ---- */

typedef DV_VEC(struct dv_voldir_problem) problem_list;

static void add_problem(problem_list *problems, dv_str volume, dv_str text, struct dv_arena *arena)
{
    *dv_vec_add_in(problems, arena) = (struct dv_voldir_problem){volume, dv_str_copy(text, arena)};
}

static bool is_to_do(const struct dv_voldir_set_up *op, const struct dv_volume *volume)
{
    return !op->is_refresh || has_files(volume);
}

static bool make_log_dir(const struct dv_volume_plan *plan, struct dv_arena *arena,
                         struct dv_err *err)
{
    int fd = dv_voldir_open_path(plan->log_dir, DV_VOLDIR_LOG_MODE, arena, err);

    dv_close_fd(&fd);
    return fd >= 0;
}

bool dv_voldir_run_set_up(struct dv_voldir_set_up *op, struct dv_err *err)
{
    const struct dv_volume_plan *plan = op->plan;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_close_fd) int pod = dv_voldir_open_pod(plan, scratch, err);
    struct setting setting = {.plan = plan, .arena = scratch, .pod = pod};
    problem_list problems = {0};

    if (pod < 0 || !make_log_dir(plan, scratch, err))
        return false;
    /* After the directory: whatever has a cgroup is found by its directory when it is left over. */
    if (op->cgroup && !dv_voldir_make_cgroups(op->cgroup, err)) {
        op->has_no_cgroup = true;
        return false;
    }
    for (size_t i = 0; i < plan->n_volumes; i++) {
        struct dv_err cause;

        setting.volume = &plan->volumes[i];
        if (!is_to_do(op, setting.volume))
            continue;
        if (setting.volume->problem.n > 0)
            add_problem(&problems, setting.volume->name, setting.volume->problem, op->arena);
        else if (!set_up_volume(&setting, &cause))
            add_problem(&problems, setting.volume->name, dv_str_from_c(cause.msg), op->arena);
    }
    op->problems = problems.v;
    op->n_problems = problems.n;
    if (problems.n == 0)
        return true;
    return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s",
                   DV_FMT(dv_volume_event(problems.v[0].volume, problems.v[0].text, scratch)));
}
