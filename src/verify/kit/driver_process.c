/* driver_process.c - the driver's processes: started in a group of their own, watched, and ended
 * with all that they have started. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "loop/loop.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/verify.h"

/* For what was killed to be gone: more than the kernel ever takes. */
#define GONE_MS 10000u
/* From a driver's first sign of life to SIGTERM: it may register and publish before it is prepared
 * to end, and no update of a DaemonSet is so quick. As long as its start took, up to a second. */
#define AT_WORK_MIN_MS 200u
#define AT_WORK_MAX_MS 1000u
/* Before a driver that has ended is started again. */
#define REVIVE_MS 200u
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* ---- starting ---- */

/* Puts another file in the place of the boot id, in a namespace of mounts of this process's own. */
static bool hide_boot_id(const char *boot_id)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
           mount(boot_id, BOOT_ID, NULL, MS_BIND, NULL) == 0;
}

void dv_trial_set_boot_id(struct dv_trial *trial)
{
    dv_str path = dv_str_printf(trial->arena, "%.*s/boot_id", DV_FMT(trial->paths.root));
    char text[DV_UUID_BYTES];
    struct dv_err err;
    int status = 0;
    pid_t pid;

    /* A driver that a hook starts would keep the mount, and its namespace, after our end. */
    if (trial->options->attach.n > 0 || !dv_file_replace(path, dv_random_uuid(text), 0644, &err))
        return;
    pid = fork(); /* tries it, as a namespace cannot be left */
    if (pid == 0)
        _exit(hide_boot_id(dv_str_to_c(path, trial->arena)) ? 0 : 1);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status))
        trial->boot_id = path;
}

/* In the child, where only what is safe after a fork of a process with threads may be called: no
 * memory is taken. */
static _Noreturn void become(char *const *argv, int log_fd, const char *boot_id, pid_t parent)
{
    static const char text[] = "davit verify: /bin/sh cannot be started\n";
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)setpgid(0, 0);
    /* When the worker dies, so does this; and it may have died already. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(127);
    if (boot_id[0] && !hide_boot_id(boot_id))
        _exit(126);
    if (dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0)
        _exit(127);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)execv(argv[0], argv);
    (void)!write(2, text, sizeof(text) - 1); /* to the log: the status alone says little */
    _exit(127);
}

/* Others may have been quicker: those who end all children. */
static void reap(struct dv_child *process)
{
    pid_t pid = process->has_ended ? 0 : waitpid(process->pid, &process->status, WNOHANG);

    if (pid == process->pid || (pid < 0 && errno == ECHILD))
        process->has_ended = true;
}

/* When the loop does not use it any more. */
static void close_pidfd(void *ctx)
{
    struct dv_child *process = ctx;

    (void)close(process->pidfd); /* was only watched */
    process->pidfd = -1;
}

static void on_pidfd(void *ctx, unsigned events)
{
    struct dv_child *process = ctx;

    (void)events;
    reap(process);
    if (process->has_ended) {
        dv_poll_close(process->poll, close_pidfd, process);
        process->poll = NULL;
    }
}

static struct dv_child *start(struct dv_trial *trial, dv_str command)
{
    struct dv_child *process = DV_NEW(trial->arena, struct dv_child);
    dv_str text;
    char instance[32];
    char sh[] = "/bin/sh";
    char dash_c[] = "-c";
    const char *boot_id = dv_str_to_c(trial->boot_id, trial->arena);
    pid_t self = getpid();
    struct dv_err err;

    process->trial = trial;
    process->number = (unsigned)trial->processes.n;
    (void)snprintf(instance, sizeof(instance), "i%u", process->number);
    text = dv_trial_expand(trial, command, dv_str_from_c(instance));
    {
        char *argv[] = {sh, dash_c, strdup(dv_str_to_c(text, trial->arena)), NULL};

        process->pid = fork();
        if (process->pid == 0)
            become(argv, trial->log_fd, boot_id, self);
        free(argv[2]);
    }
    if (process->pid < 0)
        dv_trial_break(trial, "cannot start a process: %s", strerror(errno));
    (void)setpgid(process->pid, process->pid); /* whoever of the two is first */
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    process->poll = process->pidfd < 0
                        ? NULL
                        : dv_poll_open(trial->loop, process->pidfd, on_pidfd, process, &err);
    if (!process->poll)
        dv_trial_break(trial, "cannot watch a process: the kernel has no pidfd_open?");
    dv_poll_set(process->poll, DV_POLL_READ);
    *dv_vec_add_in(&trial->processes, trial->arena) = process;
    return process;
}

/* ---- ending ---- */

static bool has_ended(void *ctx)
{
    const struct dv_child *process = ctx;

    return process->has_ended;
}

static bool run_within(struct dv_trial *trial, dv_str command, uint64_t timeout_ms)
{
    struct dv_child *process = start(trial, command);

    process->may_end = true;
    process->is_command = true;
    if (dv_trial_wait_ms(trial, has_ended, process, timeout_ms, "the end of a command"))
        return WIFEXITED(process->status) && WEXITSTATUS(process->status) == 0;
    dv_child_kill(process);
    return false;
}

bool dv_child_run(struct dv_trial *trial, dv_str command)
{
    return run_within(trial, command, DV_COMMAND_MS);
}

static const struct dv_verify_hook *find_hook(const struct dv_trial *trial, dv_str name)
{
    for (size_t i = 0; i < trial->options->n_hooks; i++)
        if (dv_str_eq(trial->options->hooks[i].name, name))
            return &trial->options->hooks[i];
    return NULL;
}

void dv_trial_hook(struct dv_trial *trial, dv_str name)
{
    const struct dv_verify_hook *hook = find_hook(trial, name);

    if (!hook)
        dv_trial_skip(trial, "no --hook %.*s=COMMAND makes it happen", DV_FMT(name));
    if (!dv_child_run(trial, hook->command))
        dv_trial_break(trial, "the command of --hook %.*s failed: %.*s", DV_FMT(name),
                       DV_FMT(hook->command));
}

/* ---- a driver of --attach ---- */

bool dv_trial_is_restarting(const struct dv_trial *trial)
{
    return trial->options->attach.n > 0 && trial->test && (trial->test->needs & DV_NEEDS_RESTART);
}

/* The runner has seen to it that there are hooks. */
static struct dv_child *start_attached(struct dv_trial *trial)
{
    struct dv_child *process = DV_NEW(trial->arena, struct dv_child);

    trial->is_between = true;
    dv_trial_hook(trial, DV_STR("start"));
    trial->is_between = trial->is_stopped = false;
    process->trial = trial;
    process->is_hooked = true;
    return process;
}

/* False: it still runs when its time is over, or the hook failed otherwise. */
static bool stop_attached(struct dv_trial *trial)
{
    const struct dv_verify_hook *hook = find_hook(trial, DV_STR("stop"));

    trial->is_between = true;
    trial->is_stopped = run_within(trial, hook->command, trial->grace_ms);
    trial->is_between = false;
    return trial->is_stopped;
}

static void kill_attached(struct dv_trial *trial)
{
    trial->is_between = true;
    if (!trial->is_stopped)
        dv_trial_hook(trial, DV_STR("kill"));
    trial->is_stopped = true;
    trial->is_between = false;
}

void dv_trial_stop_attached(struct dv_trial *trial)
{
    if (!stop_attached(trial))
        kill_attached(trial);
}

/* Where a hook was cut short, nobody knows whether the driver runs: it is stopped first, so that
 * there are never two. Whether it is well is told by the next case. */
void dv_trial_revive_attached(struct dv_trial *trial)
{
    if (trial->is_between)
        (void)stop_attached(trial);
    else if (!trial->is_stopped)
        return;
    (void)dv_child_run(trial, find_hook(trial, DV_STR("start"))->command);
    trial->is_stopped = false;
}

struct dv_child *dv_child_start(struct dv_trial *trial)
{
    if (dv_trial_is_restarting(trial))
        return start_attached(trial);
    return trial->options->attach.n > 0 ? NULL : start(trial, trial->options->exec);
}

/* To the whole group. */
static void send_signal(const struct dv_child *process, int signum)
{
    (void)kill(-process->pid, signum); /* gone is fine */
}

bool dv_child_stop(struct dv_child *process)
{
    const struct dv_trial *trial = process->trial;

    dv_trial_pass(process->trial,
                  dv_u64_min(dv_u64_max(AT_WORK_MIN_MS, trial->facts.start_ms), AT_WORK_MAX_MS));
    process->may_end = true;
    if (process->is_hooked) {
        process->has_ended = stop_attached(process->trial);
        return process->has_ended;
    }
    send_signal(process, SIGTERM);
    return dv_trial_wait_ms(process->trial, has_ended, process, process->trial->grace_ms,
                            "its end");
}

void dv_child_must_stop(struct dv_child *process)
{
    bool has_stopped = dv_child_stop(process);

    if (!has_stopped && process->is_hooked)
        dv_trial_fail(process->trial, "%llu ms after --hook stop it still runs, or the hook failed",
                      (unsigned long long)process->trial->grace_ms);
    if (!has_stopped)
        dv_trial_fail(process->trial, "%llu ms after SIGTERM it still runs",
                      (unsigned long long)process->trial->grace_ms);
}

bool dv_child_wait_reviving(struct dv_child **process, struct dv_trial *trial,
                            bool (*is_met)(void *ctx), void *ctx, uint64_t timeout_ms,
                            const char *what)
{
    uint64_t start_ms = dv_trial_now_ms(trial);
    bool may_end = *process && (*process)->may_end;

    do {
        if (*process && (*process)->has_ended)
            *process = dv_child_start(trial);
        if (*process)
            (*process)->may_end = true;
        if (dv_trial_wait_ms(trial, is_met, ctx, REVIVE_MS, what)) {
            if (*process)
                (*process)->may_end = may_end;
            return true;
        }
    } while (dv_trial_now_ms(trial) - start_ms < timeout_ms);
    return false;
}

static bool is_group_gone(void *ctx)
{
    const struct dv_child *process = ctx;

    return process->has_ended && dv_child_n_members(process) == 0;
}

void dv_child_kill(struct dv_child *process)
{
    process->may_end = true;
    if (process->is_hooked) {
        kill_attached(process->trial);
        process->has_ended = true;
        return;
    }
    send_signal(process, SIGKILL);
    (void)dv_trial_wait_ms(process->trial, has_ended, process, GONE_MS, "its end");
    while (!is_group_gone(process)) { /* others of the group: soon */
        (void)waitpid(-process->pid, NULL, WNOHANG);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

const char *dv_child_end_text(const struct dv_child *process)
{
    struct dv_arena *arena = process->trial->arena;
    dv_str text = WIFSIGNALED(process->status)
                      ? dv_str_printf(arena, "signal %d, %s", WTERMSIG(process->status),
                                      strsignal(WTERMSIG(process->status)))
                      : dv_str_printf(arena, "exit status %d", WEXITSTATUS(process->status));

    return dv_str_to_c(text, arena);
}

void dv_trial_processes_end(struct dv_trial *trial)
{
    for (size_t i = 0; i < trial->processes.n; i++)
        send_signal(trial->processes.v[i], SIGKILL);
    dv_children_end_others(NULL, 0);
}
