#include "verify/runner/verify_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "verify/kit/trial.h"
#include "verify/verify.h"

#define ROOT_BYTES_MAX 4096u
/* For what was killed to be gone: more than the kernel ever takes. */
#define END_TRIES 1000u
#define END_NS 10000000

/* The first letter of what it is told. */
#define NOTE '+'
#define FORGET '-'
#define END '.'
/* Looks that find nobody, before it is believed: who is just calling execve has no environment. */
#define QUIET_LOOKS 3u

/* ---- in its process ---- */

struct roots {
    struct dv_arena *arena;
    DV_VEC(dv_str) v;
};

static void take(struct roots *roots, dv_str word)
{
    dv_str root = dv_str_slice(word, 1, word.n);

    if (word.p[0] == NOTE) {
        *dv_vec_add_in(&roots->v, roots->arena) = dv_str_copy(root, roots->arena);
        return;
    }
    for (size_t i = 0; i < roots->v.n; i++)
        if (dv_str_eq(roots->v.v[i], root)) {
            roots->v.v[i] = roots->v.v[--roots->v.n];
            return;
        }
}

/* Until davit is done, or nobody has the other end any more. */
static void listen_to(int fd, struct roots *roots)
{
    char word[ROOT_BYTES_MAX];
    ssize_t n;

    while ((n = recv(fd, word, sizeof(word), 0)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && word[0] == END)
            break;
        else if (n > 0)
            take(roots, (dv_str){word, (size_t)n});
}

static void clean_up(const struct dv_verify_options *options, const struct roots *roots)
{
    unsigned n_quiet = 0;

    for (unsigned i = 0; i < END_TRIES && n_quiet < QUIET_LOOKS; i++) {
        n_quiet = dv_processes_end_marked(roots->v.v, roots->v.n) ? 0 : n_quiet + 1;
        (void)nanosleep(&(struct timespec){.tv_nsec = END_NS}, NULL); /* shorter is fine */
    }
    for (size_t i = 0; i < roots->v.n; i++) {
        struct dv_trial trial = {
            .options = options, .arena = roots->arena, .paths.root = roots->v.v[i]};

        dv_trial_dirs_remove(&trial);
    }
}

/* Its name differs, so that who kills all davits leaves it; and it has nothing of the caller's. */
static _Noreturn void guard_run(int fd, const struct dv_verify_options *options)
{
    struct roots roots = {.arena = dv_arena_new()};
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    (void)prctl(PR_SET_NAME, "verify-guard", 0, 0, 0);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < 3; i++)
        (void)dup2(null_fd, i);
    listen_to(fd, &roots);
    if (roots.v.n > 0)
        clean_up(options, &roots);
    _exit(0);
}

/* ---- in davit ---- */

bool dv_verify_guard_open(struct dv_verify_guard *guard, const struct dv_verify_options *options,
                          struct dv_err *err)
{
    int fds[2];
    int error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return dv_fail_errno(err, errno, "socketpair");
    guard->pid = fork();
    error = errno;
    if (guard->pid == 0) {
        (void)close(fds[0]); /* or it would wait for itself */
        guard_run(fds[1], options);
    }
    (void)close(fds[1]);
    guard->fd = fds[0];
    if (guard->pid > 0)
        return true;
    (void)close(fds[0]);
    guard->pid = 0;
    return dv_fail_errno(err, error, "starting a process");
}

static void tell(const struct dv_verify_guard *guard, char what, dv_str root)
{
    char word[ROOT_BYTES_MAX] = {what};

    if (guard->pid == 0 || root.n == 0 || root.n >= sizeof(word))
        return;
    memcpy(word + 1, root.p, root.n);
    (void)send(guard->fd, word, root.n + 1, MSG_NOSIGNAL); /* one that was killed guards nothing */
}

void dv_verify_guard_note(const struct dv_verify_guard *guard, dv_str root)
{
    tell(guard, NOTE, root);
}

void dv_verify_guard_forget(const struct dv_verify_guard *guard, dv_str root)
{
    tell(guard, FORGET, root);
}

void dv_verify_guard_close(struct dv_verify_guard *guard)
{
    if (guard->pid == 0)
        return;
    tell(guard, END, DV_STR(" "));
    (void)close(guard->fd);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
}
