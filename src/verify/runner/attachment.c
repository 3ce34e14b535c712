#include "verify/runner/attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "verify/kit/api_keeper.h"
#include "verify/verify.h"

/* For an API to be opened, on a busy machine; and for its process to end. */
#define OPEN_MS 30000
#define END_MS 5000u
#define LOOK_NS 2000000

/* A lock of the directory itself leaves nothing behind, whatever ends us. */
static bool lock(struct dv_attachment *attachment, struct dv_err *err)
{
    const struct dv_trial *trial = &attachment->trial;
    dv_str root = trial->paths.root;

    attachment->dir_fd = open(dv_str_to_c(root, trial->arena), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (attachment->dir_fd < 0)
        return dv_fail_errno(err, errno, "--attach %.*s", DV_FMT(root));
    if (flock(attachment->dir_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "--attach %.*s: another davit verify uses this directory now", DV_FMT(root));
}

static _Noreturn void keep(struct dv_attachment *attachment, pid_t parent)
{
    /* Not in the runner's group, as workers: whoever kills that leaves us to clean up. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != parent) /* it died before that was said */
        _exit(1);
    dv_trial_init(&attachment->trial);
    dv_keeper_run(&attachment->trial);
}

static bool await(struct dv_attachment *attachment, struct dv_err *err)
{
    struct pollfd fd = {.fd = attachment->keeper_fd, .events = POLLIN};
    struct dv_trial_result result = {.outcome = DV_BROKEN};
    int n;

    do
        n = poll(&fd, 1, OPEN_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || read(fd.fd, &result, sizeof(result)) != (ssize_t)sizeof(result))
        return dv_fail(err, DV_UNAVAILABLE, "the API does not start");
    result.reason[sizeof(result.reason) - 1] = '\0';
    return result.outcome == DV_PASSED || dv_fail(err, DV_FAILED_PRECONDITION, "%s", result.reason);
}

static bool start_keeper(struct dv_attachment *attachment, struct dv_err *err)
{
    pid_t self = getpid();
    int fds[2];
    int error;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return dv_fail_errno(err, errno, "pipe");
    attachment->keeper_fd = fds[0];
    attachment->trial.result_fd = fds[1];
    (void)fflush(NULL);
    attachment->keeper = fork();
    error = errno;
    if (attachment->keeper == 0) {
        (void)close(fds[0]); /* the other end's */
        keep(attachment, self);
    }
    (void)close(fds[1]); /* the other end's */
    if (attachment->keeper > 0)
        return await(attachment, err);
    attachment->keeper = 0;
    return dv_fail_errno(err, error, "starting a process for the API");
}

bool dv_attachment_open(struct dv_attachment *attachment, const struct dv_trial *model,
                        struct dv_err *err)
{
    *attachment = (struct dv_attachment){.trial = *model, .dir_fd = -1, .keeper_fd = -1};
    attachment->trial.is_keeper = true;
    if (dv_trial_root_choose(&attachment->trial, err) && lock(attachment, err) &&
        (model->options->kind != DV_VERIFY_DRA || start_keeper(attachment, err)))
        return true;
    dv_attachment_close(attachment);
    return false;
}

/* One that has ended by itself has said why: cases only see that it is gone. */
static void print_last_words(const struct dv_attachment *attachment)
{
    struct pollfd fd = {.fd = attachment->keeper_fd, .events = POLLIN};
    struct dv_trial_result result;

    if (poll(&fd, 1, 0) <= 0 || read(fd.fd, &result, sizeof(result)) != (ssize_t)sizeof(result))
        return;
    result.reason[sizeof(result.reason) - 1] = '\0';
    (void)fprintf(stderr, "davit: the API ended: %s\n", result.reason);
}

/* It removes its socket when it is told to end; one that does not is ended by the kernel. */
static void end_keeper(struct dv_attachment *attachment)
{
    int status = 0;

    print_last_words(attachment);
    if (waitpid(attachment->keeper, &status, WNOHANG) == attachment->keeper) {
        if (WIFSIGNALED(status))
            (void)fprintf(stderr, "davit: the process of the API ended by signal %d\n",
                          WTERMSIG(status));
        attachment->keeper = 0;
        return;
    }
    (void)kill(attachment->keeper, SIGTERM);
    for (unsigned ms = 0; waitpid(attachment->keeper, NULL, WNOHANG) == 0; ms += 2) {
        if (ms == END_MS)
            (void)kill(attachment->keeper, SIGKILL);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL); /* shorter is fine */
    }
    attachment->keeper = 0;
}

void dv_attachment_close(struct dv_attachment *attachment)
{
    if (attachment->keeper > 0)
        end_keeper(attachment);
    if (attachment->trial.arena && attachment->keeper_fd >= 0)
        (void)close(attachment->keeper_fd); /* was only read */
    if (attachment->trial.arena && attachment->dir_fd >= 0)
        (void)close(attachment->dir_fd); /* the lock goes with it */
    dv_arena_free(attachment->trial.arena);
    *attachment = (struct dv_attachment){.dir_fd = -1, .keeper_fd = -1};
}
