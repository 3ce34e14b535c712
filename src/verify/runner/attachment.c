#include "verify/runner/attachment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "verify/kit/api_keeper.h"
#include "verify/kit/api_orders.h"
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
    (void)close(attachment->dir_fd); /* another run's */
    attachment->dir_fd = -1;
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "--attach %.*s: another davit verify uses this directory now", DV_FMT(root));
}

static bool is_known(const char *name, const char *const *known, size_t n_known)
{
    for (size_t i = 0; i < n_known; i++)
        if (dv_str_starts_with(dv_str_from_c(name), dv_str_from_c(known[i])))
            return true;
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Whether a file is the directory of --dir, which may be in that of --attach. */
static bool is_kept(const struct dv_trial *trial, int dir_fd, const char *name)
{
    struct stat found;
    struct stat kept;

    return fstatat(dir_fd, name, &found, 0) == 0 &&
           stat(dv_str_to_c(trial->options->dir, trial->arena), &kept) == 0 &&
           found.st_dev == kept.st_dev && found.st_ino == kept.st_ino;
}

/* The first file in a directory of DIR whose name does not begin as one of those known; empty:
 * there is none, or no such directory. */
static dv_str find_other(struct dv_trial *trial, const char *name, const char *const *known,
                         size_t n_known)
{
    dv_str path = dv_str_printf(trial->arena, "%.*s%s", DV_FMT(trial->paths.root), name);
    DIR *dir = opendir(dv_str_to_c(path, trial->arena));
    dv_str found = DV_STR_NONE;
    const struct dirent *entry;

    while (dir && found.n == 0 && (entry = readdir(dir)))
        if (!is_known(entry->d_name, known, n_known) && !is_kept(trial, dirfd(dir), entry->d_name))
            found = dv_str_printf(trial->arena, "%.*s/%s", DV_FMT(path), entry->d_name);
    if (dir)
        (void)closedir(dir); /* was only read */
    return found;
}

/* Cases remove what is in device-plugins, as a kubelet does that starts, and for a reboot what is
 * in cdi and run: a directory that may be somebody else's is left alone. One with a kubeconfig has
 * been used before, and whether that is ours is seen when it is read. */
static bool check_owner(struct dv_attachment *attachment, struct dv_err *err)
{
    static const char *const of_kubelet[] = {"device-plugins", "plugins_registry", "plugins"};
    static const char *const of_root[] = {"kubelet", "cdi", "run", "state", "api.db"};
    struct dv_trial *trial = &attachment->trial;
    dv_str root = trial->paths.root;
    dv_str other = find_other(trial, "/kubelet", of_kubelet, DV_COUNT(of_kubelet));

    if (!dv_trial_has_file(trial, dv_str_printf(trial->arena, "%.*s/kubeconfig", DV_FMT(root)))) {
        if (other.n == 0)
            other = find_other(trial, "", of_root, DV_COUNT(of_root));
        if (other.n == 0 && trial->options->kind == DV_VERIFY_DRA)
            other = find_other(trial, "/cdi", NULL, 0);
        if (other.n == 0)
            other = find_other(trial, "/run", NULL, 0);
    }
    return other.n == 0 || dv_fail(err, DV_FAILED_PRECONDITION,
                                   "--attach %.*s: %.*s is not of davit verify, which needs a "
                                   "directory of its own",
                                   DV_FMT(root), DV_FMT(other));
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
        check_owner(attachment, err) &&
        (model->options->kind != DV_VERIFY_DRA || start_keeper(attachment, err)))
        return true;
    dv_attachment_close(attachment);
    return false;
}

/* One that has ended by itself has said why. */
static bool read_last_words(const struct dv_attachment *attachment, struct dv_trial_result *result)
{
    struct pollfd fd = {.fd = attachment->keeper_fd, .events = POLLIN};

    if (poll(&fd, 1, 0) <= 0 || read(fd.fd, result, sizeof(*result)) != (ssize_t)sizeof(*result))
        return false;
    result->reason[sizeof(result->reason) - 1] = '\0';
    return true;
}

bool dv_attachment_check(struct dv_attachment *attachment, struct dv_err *err)
{
    struct dv_trial_result result;
    int status = 0;

    if (attachment->keeper == 0 ||
        waitpid(attachment->keeper, &status, WNOHANG) != attachment->keeper)
        return true;
    attachment->keeper = 0;
    dv_trial_remove_file(&attachment->trial, dv_orders_path(&attachment->trial));
    if (read_last_words(attachment, &result))
        return dv_fail(err, DV_UNAVAILABLE, "the API ended: %s", result.reason);
    return dv_fail(err, DV_UNAVAILABLE, "the process of the API ended by %s %d",
                   WIFSIGNALED(status) ? "signal" : "exit status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* It removes its socket when it is told to end; one that does not is ended by the kernel. */
static void end_keeper(struct dv_attachment *attachment)
{
    (void)kill(attachment->keeper, SIGTERM);
    for (unsigned ms = 0; waitpid(attachment->keeper, NULL, WNOHANG) == 0; ms += 2) {
        if (ms == END_MS)
            (void)kill(attachment->keeper, SIGKILL);
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL); /* shorter is fine */
    }
    dv_trial_remove_file(&attachment->trial, dv_orders_path(&attachment->trial));
    attachment->keeper = 0;
}

/* A worker that was killed has left it. */
static void remove_stale_socket(const struct dv_attachment *attachment)
{
    const struct dv_trial *trial = &attachment->trial;
    dv_str path = dv_str_printf(trial->arena, "%.*s/kubelet/device-plugins/kubelet.sock",
                                DV_FMT(trial->paths.root));
    struct dv_err err;

    if (dv_socket_is_free(path, &err))
        dv_trial_remove_file(trial, path);
}

void dv_attachment_close(struct dv_attachment *attachment)
{
    if (attachment->keeper > 0)
        end_keeper(attachment);
    if (attachment->trial.arena && attachment->keeper_fd >= 0)
        (void)close(attachment->keeper_fd); /* was only read */
    if (attachment->trial.arena && attachment->dir_fd >= 0) {
        remove_stale_socket(attachment);
        (void)close(attachment->dir_fd); /* the lock goes with it */
    }
    dv_arena_free(attachment->trial.arena);
    *attachment = (struct dv_attachment){.dir_fd = -1, .keeper_fd = -1};
}
