#include "cli/run/run_isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "engines/engines.h"

/* What a program expects in every /dev; a folder is bound with all that is mounted in it. */
static const char *const usual[] = {"null",    "zero", "full", "random",
                                    "urandom", "tty",  "shm",  "mqueue"};
static const struct {
    const char *name;
    const char *target;
} links[] = {
    {"fd",     "/proc/self/fd"},
    {"stdin",  "fd/0"         },
    {"stdout", "fd/1"         },
    {"stderr", "fd/2"         },
    {"ptmx",   "pts/ptmx"     },
};

/* A map of ids has 340 lines at the most. */
#define MAP_BYTES_MAX (16u << 10)
/* "/dev/pts/1048576" */
#define TERMINAL_BYTES_MAX 64u

static bool write_file(const char *path, dv_str text, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n)
        return dv_fail_errno(err, errno, "%s", path);
    return true;
}

/* A user who is not root maps himself, and gives up setgroups(2) for it. The groups that the
 * process has stay, and count. */
static bool map_self(uid_t uid, gid_t gid, struct dv_err *err)
{
    char map[64];

    (void)snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
    if (!write_file("/proc/self/setgroups", DV_STR("deny"), err) ||
        !write_file("/proc/self/uid_map", dv_str_from_c(map), err))
        return false;
    (void)snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
    return write_file("/proc/self/gid_map", dv_str_from_c(map), err);
}

/* ---- root maps everybody to himself, which only a process outside of the namespace can do ---- */

/* Writes a map with all ids that this process knows to the same file of another process. */
static bool copy_map(const char *name, pid_t pid, struct dv_arena *arena, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf map = {0};
    dv_str own = dv_str_printf(arena, "/proc/self/%s", name);
    dv_str theirs = dv_str_printf(arena, "/proc/%d/%s", (int)pid, name);
    dv_str text;
    dv_str line;

    dv_buf_init(&map, MAP_BYTES_MAX);
    if (!dv_file_read(own, MAP_BYTES_MAX, arena, &text, err))
        return false;
    while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
        unsigned inside;
        unsigned outside;
        unsigned count;

        if (sscanf(dv_str_to_c(line, arena), "%u %u %u", &inside, &outside, &count) == 3)
            dv_buf_printf(&map, "%u %u %u\n", inside, inside, count);
    }
    return write_file(dv_str_to_c(theirs, arena), dv_buf_str(&map), err);
}

/* The process outside: waits until its parent is in the namespace, writes its maps, and ends. */
static void map_parent(int ready_fd, pid_t parent)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    char byte;
    bool is_good = read(ready_fd, &byte, 1) == 1 && copy_map("uid_map", parent, arena, &err) &&
                   copy_map("gid_map", parent, arena, &err);

    _exit(is_good ? 0 : 1);
}

/* Enters a user namespace in which all ids mean what they mean outside. False: there is none. */
static bool enter_as_root(void)
{
    pid_t self = getpid();
    int ready[2];
    int status = 1;
    bool is_in;
    pid_t pid;

    if (pipe2(ready, O_CLOEXEC) < 0)
        return false;
    pid = fork();
    if (pid == 0) {
        (void)close(ready[1]);
        map_parent(ready[0], self);
    }
    is_in = pid > 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write(ready[1], "", 1) == 1;
    (void)close(ready[0]);
    (void)close(ready[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return is_in && status == 0;
}

static bool enter_namespaces(bool *is_enforced, struct dv_err *err)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    *is_enforced = true;
    if (uid == 0 && enter_as_root())
        return true;
    if (uid != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0)
        return map_self(uid, gid, err);
    *is_enforced = false;
    if (uid == 0 && unshare(CLONE_NEWNS) == 0)
        return true;
    (void)dv_fail_errno(err, errno,
                        "this kernel gives user %u no user namespace (sysctl "
                        "user.max_user_namespaces, kernel.unprivileged_userns_clone, "
                        "kernel.apparmor_restrict_unprivileged_userns)",
                        uid);
    err->code = DV_FAILED_PRECONDITION;
    return false;
}

/* Makes a place to mount on. That is done in the new /dev alone: elsewhere it would stay when the
 * process has ended. */
static bool make_place(const char *target, bool is_folder, struct dv_arena *arena,
                       struct dv_err *err)
{
    dv_str path = dv_str_from_c(target);
    int fd;

    if (!dv_str_starts_with(path, DV_STR("/dev/")))
        return access(target, F_OK) == 0 ||
               dv_fail(err, DV_FAILED_PRECONDITION,
                       "there is no %s to mount on, and none is made on this machine: a container "
                       "has a place for it",
                       target);
    for (size_t i = sizeof("/dev/"); i < path.n; i++)
        if (path.p[i] == '/' && mkdir(dv_str_to_c(dv_str_slice(path, 0, i), arena), 0755) < 0 &&
            errno != EEXIST)
            return dv_fail_errno(err, errno, "%s", target);
    if (is_folder)
        return mkdir(target, 0755) == 0 || errno == EEXIST ||
               dv_fail_errno(err, errno, "%s", target);
    fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return dv_fail_errno(err, errno, "%s", target);
    dv_close_fd(&fd);
    return true;
}

static bool bind_on(const char *source, const char *target, bool is_read_only,
                    struct dv_arena *arena, struct dv_err *err)
{
    unsigned long flags = MS_BIND | MS_REC;
    struct stat about;

    if (stat(source, &about) < 0)
        return dv_fail_errno(err, errno, "%s", target);
    if (!make_place(target, S_ISDIR(about.st_mode), arena, err))
        return false;
    if (mount(source, target, NULL, flags, NULL) < 0)
        return dv_fail_errno(err, errno, "mounting on %s", target);
    if (is_read_only && mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
        return dv_fail_errno(err, errno, "mounting on %s for reading only", target);
    return true;
}

/* Gives terminals: those of the machine, where whoever asks may open new ones there by their own
 * file (root may), else an own set of them, in which the one that we have is the console. */
static bool add_terminals(int old, const char *terminal, struct dv_arena *arena, struct dv_err *err)
{
    dv_str pts = dv_str_printf(arena, "/proc/self/fd/%d/pts", old);

    if (faccessat(old, "pts/ptmx", R_OK | W_OK, AT_EACCESS) == 0)
        return bind_on(dv_str_to_c(pts, arena), "/dev/pts", false, arena, err);
    if (!make_place("/dev/pts", true, arena, err))
        return false;
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620") < 0)
        return dv_fail_errno(err, errno, "mounting on /dev/pts");
    if (!dv_str_starts_with(dv_str_from_c(terminal), DV_STR("/dev/pts/")))
        return true;
    pts = dv_str_printf(arena, "/proc/self/fd/%d%s", old, terminal + sizeof("/dev") - 1);
    return bind_on(dv_str_to_c(pts, arena), "/dev/console", false, arena, err);
}

/* Fills the new /dev from the old one, which is open as `old`. */
static bool fill_dev(const struct dv_engine_plan *plan, int old, const char *terminal,
                     struct dv_arena *arena, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(usual); i++) {
        dv_str source = dv_str_printf(arena, "/proc/self/fd/%d/%s", old, usual[i]);
        dv_str target = dv_str_printf(arena, "/dev/%s", usual[i]);

        if (faccessat(old, usual[i], F_OK, 0) == 0 &&
            !bind_on(dv_str_to_c(source, arena), dv_str_to_c(target, arena), false, arena, err))
            return false;
    }
    if (!add_terminals(old, terminal, arena, err))
        return false;
    for (size_t i = 0; i < DV_COUNT(links); i++)
        if (symlinkat(links[i].target, AT_FDCWD,
                      dv_str_to_c(dv_str_printf(arena, "/dev/%s", links[i].name), arena)) < 0)
            return dv_fail_errno(err, errno, "/dev/%s", links[i].name);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        dv_str host = plan->nodes[i].host_path;
        dv_str source = host;

        if (dv_str_starts_with(host, DV_STR("/dev/")))
            source = dv_str_printf(arena, "/proc/self/fd/%d/%.*s", old,
                                   DV_FMT(dv_str_slice(host, 5, host.n)));
        if (!bind_on(dv_str_to_c(source, arena), dv_str_to_c(plan->nodes[i].path, arena), false,
                     arena, err))
            return dv_wrap(err, "device %.*s", DV_FMT(host));
    }
    return true;
}

/* Mounts what belongs into /dev, or what does not. */
static bool mount_all(const struct dv_engine_plan *plan, bool is_in_dev, struct dv_arena *arena,
                      struct dv_err *err)
{
    for (size_t i = 0; i < plan->n_mounts; i++) {
        const struct dv_engine_mount *mount = &plan->mounts[i];

        if (dv_str_starts_with(mount->path, DV_STR("/dev/")) == is_in_dev &&
            !bind_on(dv_str_to_c(mount->host_path, arena), dv_str_to_c(mount->path, arena),
                     mount->is_read_only, arena, err))
            return false;
    }
    return true;
}

/* Nodes that are elsewhere, in the root of a container for example, are nobody's way around /dev.
 * Kernels before 5.12 cannot be asked for that. */
static void forbid_nodes_elsewhere(const struct dv_engine_plan *plan, struct dv_arena *arena)
{
    struct mount_attr forbidden = {.attr_set = MOUNT_ATTR_NODEV};
    struct mount_attr allowed = {.attr_clr = MOUNT_ATTR_NODEV};

    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &forbidden, sizeof(forbidden)) < 0)
        return;
    /* A place of which the machine itself says that no nodes count stays so: that is an error. */
    (void)mount_setattr(AT_FDCWD, "/dev/pts", 0, &allowed, sizeof(allowed));
    (void)mount_setattr(AT_FDCWD, "/dev/console", 0, &allowed, sizeof(allowed));
    for (size_t i = 0; i < DV_COUNT(usual); i++)
        (void)mount_setattr(AT_FDCWD, dv_str_to_c(dv_str_printf(arena, "/dev/%s", usual[i]), arena),
                            0, &allowed, sizeof(allowed));
    for (size_t i = 0; i < plan->n_nodes; i++)
        (void)mount_setattr(AT_FDCWD, dv_str_to_c(plan->nodes[i].path, arena), 0, &allowed,
                            sizeof(allowed));
}

bool dv_run_isolate(const struct dv_engine_plan *plan, bool *is_enforced, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_close_fd) int old = -1;
    mode_t mask = umask(022);
    char terminal[TERMINAL_BYTES_MAX] = "";
    bool is_good;

    if (ttyname_r(STDIN_FILENO, terminal, sizeof(terminal)) != 0)
        terminal[0] = '\0'; /* there is none */
    if (!enter_namespaces(is_enforced, err))
        return false;
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) /* ours are not seen outside */
        return dv_fail_errno(err, errno, "a mount namespace of its own");
    if (!mount_all(plan, false, arena, err))
        return false;
    old = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (old < 0 || mount("davit", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0)
        return dv_fail_errno(err, errno, "a /dev of its own");
    is_good = fill_dev(plan, old, terminal, arena, err) && mount_all(plan, true, arena, err);
    (void)umask(mask);
    if (is_good && mount(NULL, "/dev", NULL,
                         MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0)
        is_good = dv_fail_errno(err, errno, "a /dev that stays as it is");
    if (!is_good || !*is_enforced)
        return is_good;
    forbid_nodes_elsewhere(plan, arena);
    /* Whoever may mount can also take away what was mounted in the same namespace, and would find
     * the machine's /dev under ours. In one below it, all that is mounted by now is fixed. */
    return enter_namespaces(is_enforced, err);
}
