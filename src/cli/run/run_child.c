#include "cli/run/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/run/run_isolate.h"
#include "cli/run/run_plan_wire.h"
#include "engines/engines.h"

/* Words and variables of a command: the kernel takes a few megabytes at the most. */
#define PLAN_BYTES_MAX (8u << 20)
/* What a shell ends with when there is no such program, and when it cannot be run. */
#define EXIT_ABSENT 127
#define EXIT_UNFIT 126
#define GROUPS_MAX 4096

/* ---- programs ---- */

static bool is_file(const char *path, bool *is_executable)
{
    struct stat about;

    if (stat(path, &about) < 0 || S_ISDIR(about.st_mode))
        return false;
    *is_executable = access(path, X_OK) == 0;
    return true;
}

dv_str dv_run_find_program(dv_str word, struct dv_arena *arena, bool *is_executable)
{
    const char *path = getenv("PATH");
    dv_str rest = dv_str_from_c(path ? path : "/usr/local/bin:/usr/bin:/bin");
    dv_str unfit = DV_STR_NONE;
    dv_str dir;

    *is_executable = false;
    if (dv_str_find_char(word, '/') < word.n)
        return is_file(dv_str_to_c(word, arena), is_executable) ? word : DV_STR_NONE;
    while (dv_str_split(&rest, ':', &dir)) {
        dv_str file =
            dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(dir), dir.n > 0 ? "/" : "", DV_FMT(word));

        if (!is_file(dv_str_to_c(file, arena), is_executable))
            continue;
        if (*is_executable)
            return file;
        unfit = file;
    }
    *is_executable = false;
    return unfit;
}

/* ---- in the child ---- */

static bool add_groups(const struct dv_engine_plan *plan, struct dv_err *err)
{
    gid_t groups[GROUPS_MAX];
    int n_groups = getgroups(GROUPS_MAX, groups);
    size_t n = n_groups > 0 ? (size_t)n_groups : 0;
    size_t n_before = n;

    for (size_t i = 0; i < plan->n_gids; i++) {
        bool is_there = getegid() == plan->gids[i];

        for (size_t k = 0; k < n; k++)
            is_there |= groups[k] == plan->gids[i];
        if (!is_there && n < GROUPS_MAX)
            groups[n++] = plan->gids[i];
    }
    if (n > n_before && setgroups(n, groups) < 0)
        return dv_fail_errno(err, errno,
                             "the devices want the group %u, which only root can add: let an admin "
                             "make the user a member of it",
                             groups[n_before]);
    return true;
}

/* What has gone wrong goes to the parent: the code to end with, then the message. */
static void report(int fd, int exit_code, const char *message)
{
    char text[DV_ERR_MSG_BYTES + 16];
    int n = snprintf(text, sizeof(text), "%d %s", exit_code, message);

    if (write(fd, text, (size_t)n) < 0)
        _exit(EXIT_UNFIT); /* nobody is left to be told */
    _exit(exit_code);
}

static char **to_argv(const dv_str *words, size_t n, struct dv_arena *arena)
{
    char **argv = DV_NEW_ARRAY(arena, char *, n + 1);

    for (size_t i = 0; i < n; i++) {
        argv[i] = DV_NEW_ARRAY(arena, char, words[i].n + 1);
        memcpy(argv[i], words[i].p, words[i].n);
    }
    return argv;
}

static void become(const struct dv_engine_plan *plan, bool is_isolated, int error_fd,
                   struct dv_arena *arena)
{
    char **argv = to_argv(plan->words, plan->n_words, arena);
    char **env = to_argv(plan->env, plan->n_env, arena);
    bool is_enforced = true;
    struct dv_err err;

    for (size_t i = 0; i < plan->n_env; i++)
        (void)putenv(env[i]); /* it has a '=', so it cannot fail */
    if (!add_groups(plan, &err))
        report(error_fd, EXIT_UNFIT, err.msg);
    if (is_isolated && !dv_run_isolate(plan, &is_enforced, &err)) {
        (void)dv_wrap(&err, "--isolate");
        report(error_fd, EXIT_UNFIT, err.msg);
    }
    if (!is_enforced)
        (void)fputs("davit: --isolate without a user namespace: only the view is another, and root "
                    "can still make device nodes\n",
                    stderr);
    (void)execvp(argv[0], argv);
    (void)dv_fail_errno(&err, errno, "%s", argv[0]);
    report(error_fd, errno == ENOENT ? EXIT_ABSENT : EXIT_UNFIT, err.msg);
}

/* Waits for the plan. None comes when davit was killed, or gives up. */
static void run_child(int plan_fd, int error_fd)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_engine_plan plan;
    bool is_isolated;
    struct dv_err err;
    dv_str bytes;

    if (!dv_file_read_fd(plan_fd, PLAN_BYTES_MAX, arena, &bytes, &err) ||
        !dv_run_plan_decode(bytes, arena, &plan, &is_isolated) || plan.n_words == 0)
        _exit(EXIT_UNFIT);
    (void)close(plan_fd);
    become(&plan, is_isolated, error_fd, arena);
}

/* ---- in the parent ---- */

bool dv_run_child_start(struct dv_run_child *child, struct dv_err *err)
{
    int plan[2];
    int error[2];
    pid_t pid;

    if (pipe2(plan, O_CLOEXEC) < 0)
        return dv_fail_errno(err, errno, "a pipe");
    if (pipe2(error, O_CLOEXEC) < 0) {
        (void)dv_fail_errno(err, errno, "a pipe");
        (void)close(plan[0]);
        (void)close(plan[1]);
        return false;
    }
    pid = fork();
    if (pid == 0) {
        (void)close(plan[1]);
        (void)close(error[0]);
        run_child(plan[0], error[1]);
    }
    (void)close(plan[0]);
    (void)close(error[1]);
    *child = (struct dv_run_child){pid, plan[1], error[0]};
    if (pid > 0)
        return true;
    (void)dv_fail_errno(err, errno, "a process for the command");
    dv_run_child_abandon(child);
    return false;
}

static void close_both(struct dv_run_child *child)
{
    dv_close_fd(&child->plan_fd);
    dv_close_fd(&child->error_fd);
    child->plan_fd = -1;
    child->error_fd = -1;
}

static bool send_all(int fd, dv_str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno != EINTR)
            return false;
        bytes = dv_str_slice(bytes, n > 0 ? (size_t)n : 0, bytes.n);
    }
    return true;
}

bool dv_run_child_release(struct dv_run_child *child, const struct dv_engine_plan *plan,
                          bool is_isolated, int *exit_code, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str message = DV_STR_NONE;
    bool is_sent;

    dv_buf_init(&buf, PLAN_BYTES_MAX);
    dv_run_plan_encode(plan, is_isolated, &buf);
    *exit_code = EXIT_UNFIT;
    if (!dv_buf_check(&buf, "the command", err))
        return false;
    is_sent = send_all(child->plan_fd, dv_buf_str(&buf));
    dv_close_fd(&child->plan_fd);
    child->plan_fd = -1;
    /* Its end of the pipe is closed by the exec: nothing comes when that went well. */
    if (is_sent && !dv_file_read_fd(child->error_fd, PLAN_BYTES_MAX, arena, &message, err))
        return false;
    close_both(child);
    if (!is_sent)
        return dv_fail(err, DV_UNAVAILABLE, "the process that was to become the command is gone");
    if (message.n == 0)
        return true;
    *exit_code = dv_str_starts_with(message, DV_STR("127")) ? EXIT_ABSENT : EXIT_UNFIT;
    return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s",
                   DV_FMT(dv_str_slice(message, dv_str_find_char(message, ' ') + 1, message.n)));
}

void dv_run_child_abandon(struct dv_run_child *child)
{
    int status;

    close_both(child);
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL); /* it may be stopped */
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    child->pid = 0;
}
