/* exec_run.c - runs a program for credentials, and reads what it prints. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/remote/exec_plugin.h"

/* Some ask a server far away, none a person. */
#define RUN_MS 60000
/* How often it is looked whether it is still wanted, or has ended. */
#define LOOK_MS 50
#define TEXT_BYTES_MAX (1u << 20)
#define SHOWN_BYTES_MAX 80u
#define MS_PER_S 1000
#define NS_PER_MS 1000000

/* A program that runs. */
struct run {
    pid_t pid;
    int fd; /* what it prints */
    int64_t until_ms;
    const atomic_bool *stop;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* it is always there */
    return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / NS_PER_MS;
}

static bool is_over(const struct run *run)
{
    return now_ms() >= run->until_ms || (run->stop && atomic_load(run->stop));
}

/* ---- the start ---- */

/* The kernel's calls want texts that they do not change as if they did. */
static char *to_c(dv_str text, struct dv_arena *arena)
{
    return (char *)(uintptr_t)dv_str_to_c(text, arena);
}

static char **make_argv(const struct dv_exec_plugin *plugin, struct dv_arena *arena)
{
    char **argv = DV_NEW_ARRAY(arena, char *, plugin->n_args + 2);

    argv[0] = to_c(plugin->command, arena);
    for (size_t i = 0; i < plugin->n_args; i++)
        argv[i + 1] = to_c(plugin->args[i], arena);
    return argv;
}

/* Ours, then the plugin's: the last of a name would not count everywhere, so ours of that name is
 * left out. */
static char **make_env(const struct dv_exec_plugin *plugin, struct dv_arena *arena)
{
    size_t n_own = 0;
    size_t n = 0;
    char **env;

    while (environ[n_own])
        n_own++;
    env = DV_NEW_ARRAY(arena, char *, n_own + plugin->n_env + 1);
    for (size_t i = 0; i < n_own; i++) {
        dv_str own = dv_str_from_c(environ[i]);
        bool is_set = false;

        for (size_t k = 0; k < plugin->n_env; k++)
            is_set |= dv_str_starts_with(plugin->env[k],
                                         dv_str_slice(own, 0, dv_str_find_char(own, '=') + 1));
        if (!is_set)
            env[n++] = environ[i];
    }
    for (size_t k = 0; k < plugin->n_env; k++)
        env[n++] = to_c(plugin->env[k], arena);
    return env;
}

static int spawn(char **argv, char **env, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    int status;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    /* These fail out of memory only, and then the spawning does too. */
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    status = posix_spawnp(pid, argv[0], &actions, &attributes, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return status;
}

static bool start(const struct dv_exec_plugin *plugin, struct dv_arena *arena, struct run *run,
                  struct dv_err *err)
{
    int ends[2];
    int status;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return dv_fail_errno(err, errno, "pipe");
    status = spawn(make_argv(plugin, arena), make_env(plugin, arena), ends[1], &run->pid);
    (void)close(ends[1]);
    run->fd = ends[0];
    if (status == 0)
        return true;
    (void)close(ends[0]);
    (void)dv_fail_errno(err, status, "it cannot be run");
    if (plugin->hint.n > 0)
        (void)dv_fail(err, DV_NOT_FOUND, "it cannot be run: %s: %.*s", strerrordesc_np(status),
                      DV_FMT(dv_str_slice(plugin->hint, 0, SHOWN_BYTES_MAX)));
    return false;
}

/* ---- the end ---- */

/* Reads to the end of what it prints; false: it was not over in time. */
static bool read_all(const struct run *run, struct dv_buf *text, struct dv_err *err)
{
    struct pollfd polled = {.fd = run->fd, .events = POLLIN};
    char bytes[4096];

    while (!is_over(run)) {
        ssize_t n;

        if (poll(&polled, 1, LOOK_MS) <= 0)
            continue;
        n = read(run->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dv_fail_errno(err, errno, "what it prints");
        if (n == 0)
            return dv_buf_check(text, "what it prints", err);
        dv_buf_add(text, (dv_str){bytes, (size_t)n});
        if (text->is_over)
            return dv_buf_check(text, "what it prints", err);
    }
    return dv_fail(err, DV_DEADLINE_EXCEEDED, "it has not ended in %d s", RUN_MS / MS_PER_S);
}

/* Waits for its end, or ends it. */
static bool wait_end(const struct run *run, bool is_wanted, struct dv_err *err)
{
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(run->pid, &status, WNOHANG)) == 0 && is_wanted && !is_over(run))
        (void)poll(NULL, 0, LOOK_MS);
    if (ended == 0) {
        (void)kill(run->pid, SIGKILL);
        (void)waitpid(run->pid, &status, 0);
        return !is_wanted ||
               dv_fail(err, DV_DEADLINE_EXCEEDED, "it has not ended in %d s", RUN_MS / MS_PER_S);
    }
    if (ended < 0)
        return dv_fail_errno(err, errno, "how it ended");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return dv_fail(err, DV_UNAVAILABLE, "it ended with %s %d",
                   WIFSIGNALED(status) ? "signal" : "exit code",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static bool run_to_end(const struct dv_exec_plugin *plugin, const atomic_bool *stop,
                       struct dv_arena *arena, dv_str *printed, struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct run run = {.until_ms = now_ms() + RUN_MS, .stop = stop};
    struct dv_err late;
    bool is_read;
    bool has_ended;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    if (!start(plugin, arena, &run, err))
        return false;
    is_read = read_all(&run, &text, err);
    has_ended = wait_end(&run, is_read, is_read ? err : &late);
    (void)close(run.fd);
    *printed = dv_str_copy(dv_buf_str(&text), arena);
    return is_read && has_ended;
}

bool dv_exec_plugin_run(const struct dv_exec_plugin *plugin, const atomic_bool *stop,
                        struct dv_arena *arena, struct dv_exec_answer *answer, struct dv_err *err)
{
    dv_str printed;

    if (!run_to_end(plugin, stop, arena, &printed, err) ||
        !dv_exec_answer_parse(printed, plugin->api_version, arena, answer, err))
        return dv_wrap(err, "exec: %.*s",
                       DV_FMT(dv_str_slice(plugin->command, 0, SHOWN_BYTES_MAX)));
    return true;
}
