/* verify_workers.c - workers: a process for each trial, which ends its driver and removes its
 * directories itself, also when it is told to end. What a worker that crashes leaves behind becomes
 * a child of ours, and is ended here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "verify/cases/driver_probe.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/attachment.h"
#include "verify/runner/case_needs.h"
#include "verify/runner/selection.h"
#include "verify/runner/verify_guard.h"
#include "verify/runner/verify_report.h"
#include "verify/runner/verify_run.h"
#include "verify/verify.h"

/* What a driver is given for what it does by itself: long in the probe, and in cases by what its
 * start took there. Machines and languages differ, and some drivers look for hardware first. */
#define PROBE_WAIT_MS 30000u
/* For a driver that somebody starts by hand, when the kubeconfig for it is there. */
#define ATTACH_WAIT_MS 120000u
#define WAIT_MS 10000u
#define WAIT_STARTS 3u
/* A case as a whole, for a driver that starts at once; cases start it up to five times. */
#define CASE_MS 120000u
#define CASE_STARTS 10u
/* What a pod has by default before it is killed. */
#define GRACE_MS 30000u
/* Clients of all kinds back off for up to half a minute after a few failures; what others do to
 * slices is put right within about 30 s, so that two who disagree do not keep each other busy; and
 * for a minute helper libraries trust what they wrote more than what they see. */
#define RECOVER_MS 90000u
/* For a worker that was told to end: it kills, unmounts and removes; commands of the user come on
 * top. */
#define END_MS 15000u

uint64_t dv_verify_now_ms(void)
{
    return dv_clock_now_ns(dv_clock_real()) / 1000000u;
}

static _Noreturn void work(struct dv_verify_runner *runner, struct dv_worker *worker, pid_t parent)
{
    struct dv_trial *trial = &worker->trial;

    /* Not in the runner's group: who kills that with SIGKILL leaves us to clean up. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != parent) /* it died before that was said */
        _exit(1);
    dv_trial_init(trial);
    if (runner->options->setup.n > 0 && !dv_child_run(trial, runner->options->setup))
        dv_trial_break(trial, "--setup failed: %.*s", DV_FMT(runner->options->setup));
    if (dv_trial_is_restarting(trial))
        dv_trial_stop_attached(trial);
    if (trial->test)
        trial->test->run(trial);
    else
        dv_probe(trial);
    dv_trial_end(trial, DV_PASSED, "");
}

static uint64_t wait_ms(const struct dv_verify_runner *runner, const struct dv_verify_case *test)
{
    uint64_t by_start_ms = WAIT_STARTS * runner->facts.start_ms;

    if (runner->options->wait_ms)
        return runner->options->wait_ms;
    if (!test)
        return runner->attachment.keeper ? ATTACH_WAIT_MS : PROBE_WAIT_MS;
    return by_start_ms > WAIT_MS ? by_start_ms : WAIT_MS;
}

struct dv_trial dv_verify_new_trial(const struct dv_verify_runner *runner,
                                    const struct dv_verify_case *test)
{
    const struct dv_verify_options *options = runner->options;
    struct dv_trial trial = {
        .options = options,
        .test = test,
        .release = runner->release,
        .facts = runner->facts,
        .node = options->node.n > 0 ? options->node : DV_STR("verify-node"),
        .wait_ms = wait_ms(runner, test),
        .grace_ms = options->grace_ms ? options->grace_ms : GRACE_MS,
        .recover_ms = options->recover_ms ? options->recover_ms : RECOVER_MS,
        .must_not_skip = test && dv_selection_is_required(options, test->id),
        .arena = dv_arena_new(),
    };

    trial.facts.has_slices |= dv_needs_is_required(options, "slices");
    return trial;
}

bool dv_worker_begin(struct dv_verify_runner *runner, struct dv_worker *worker,
                     const struct dv_verify_case *test, size_t place, struct dv_err *err)
{
    const struct dv_verify_options *options = runner->options;
    pid_t self = getpid();
    int fds[2];
    int error;

    memset(worker, 0, sizeof(*worker));
    worker->place = place;
    worker->start_ms = dv_verify_now_ms();
    worker->trial = dv_verify_new_trial(runner, test);
    worker->deadline_ms =
        worker->start_ms +
        (options->case_ms ? options->case_ms : CASE_MS + CASE_STARTS * runner->facts.start_ms) +
        (test ? 0 : worker->trial.wait_ms);
    if (!dv_trial_root_choose(&worker->trial, err))
        return false;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return dv_fail_errno(err, errno, "pipe");
    dv_verify_guard_note(&runner->guard, worker->trial.paths.root);
    worker->trial.result_fd = fds[1];
    (void)fflush(NULL);
    worker->pid = fork();
    error = errno;
    if (worker->pid == 0) {
        (void)close(fds[0]);
        work(runner, worker, self);
    }
    (void)close(fds[1]); /* the other end's */
    if (worker->pid < 0) {
        (void)close(fds[0]); /* nobody writes to it */
        worker->pid = 0;     /* the place is free: what is no process must not be signalled */
        return dv_fail_errno(err, error, "starting a process for a case");
    }
    (void)setpgid(worker->pid, worker->pid); /* whoever of the two is first */
    worker->fd = fds[0];
    return true;
}

/* Ends what a worker that crashed has left: children of ours that are no workers. */
static void sweep(struct dv_verify_runner *runner, struct dv_worker *worker)
{
    pid_t known[DV_JOBS_MAX + 2];
    size_t n = 0;

    if (runner->attachment.keeper > 0)
        known[n++] = runner->attachment.keeper;
    if (runner->guard.pid > 0)
        known[n++] = runner->guard.pid;
    for (size_t i = 0; i < runner->n_jobs; i++)
        if (runner->workers[i].pid)
            known[n++] = runner->workers[i].pid;
    dv_children_end_others(known, n);
    dv_trial_dirs_remove(&worker->trial);
}

/* The worker is gone, or has said all it has to say. */
static void finish(struct dv_verify_runner *runner, struct dv_worker *worker)
{
    struct dv_verify_result *result = &runner->report.results[worker->place];
    bool has_result = worker->n_told == sizeof(worker->told);
    pid_t pid = worker->pid;
    int status = 0;

    (void)close(worker->fd);
    (void)waitpid(pid, &status, 0); /* it closed the pipe by its end */
    worker->pid = 0;
    dv_trial_dirs_remove(&worker->trial); /* what its threads wrote to the last */
    result->is_done = true;
    result->took_ms = dv_verify_now_ms() - worker->start_ms;
    if (has_result) {
        result->outcome = worker->told.outcome;
        result->n_calls = worker->told.n_calls;
        worker->told.reason[sizeof(worker->told.reason) - 1] = '\0';
        result->reason = dv_str_copy(dv_str_from_c(worker->told.reason), runner->arena);
    } else {
        sweep(runner, worker);
        result->outcome = DV_BROKEN;
        result->reason =
            dv_str_printf(runner->arena, "the worker ended without a result (%s %d)",
                          WIFSIGNALED(status) ? "signal" : "exit status",
                          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (worker->is_told_to_end && *runner->signum == 0) {
        result->outcome = DV_FAILED;
        result->reason = dv_str_printf(
            runner->arena, "it was not done within %llu ms, while waiting for the driver",
            (unsigned long long)(worker->deadline_ms - worker->start_ms));
    }
    dv_verify_guard_forget(&runner->guard, worker->trial.paths.root);
    if (!worker->trial.test) {
        runner->facts = worker->told.facts;
        runner->has_facts = result->outcome == DV_PASSED;
    }
    dv_arena_free(worker->trial.arena);
}

static void read_result(struct dv_verify_runner *runner, struct dv_worker *worker)
{
    char *at = (char *)&worker->told + worker->n_told;
    ssize_t n = read(worker->fd, at, sizeof(worker->told) - worker->n_told);

    if (n > 0)
        worker->n_told += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR) || worker->n_told == sizeof(worker->told))
        finish(runner, worker);
}

/* What a worker may take for its end. */
static uint64_t end_ms(const struct dv_trial *trial)
{
    uint64_t teardown_ms = trial->options->teardown.n > 0 ? DV_COMMAND_MS : 0;
    uint64_t revival_ms = dv_trial_is_restarting(trial) ? trial->grace_ms + DV_COMMAND_MS : 0;

    return END_MS + teardown_ms + revival_ms;
}

/* Tells a worker whose time is over to end; later, the kernel does. */
static void press(const struct dv_verify_runner *runner, struct dv_worker *worker)
{
    uint64_t now = dv_verify_now_ms();

    if (now < worker->deadline_ms && *runner->signum == 0 && !runner->is_ending)
        return;
    if (!worker->is_told_to_end) {
        worker->is_told_to_end = true;
        worker->deadline_ms = now;
        (void)kill(worker->pid, SIGTERM);
    } else if (now > worker->deadline_ms + end_ms(&worker->trial)) {
        (void)kill(worker->pid, SIGKILL);
    }
}

void dv_workers_attend(struct dv_verify_runner *runner)
{
    struct pollfd fds[DV_JOBS_MAX];
    struct dv_worker *whose[DV_JOBS_MAX];
    nfds_t n = 0;

    for (size_t i = 0; i < runner->n_jobs; i++)
        if (runner->workers[i].pid) {
            press(runner, &runner->workers[i]);
            whose[n] = &runner->workers[i];
            fds[n++] = (struct pollfd){.fd = runner->workers[i].fd, .events = POLLIN};
        }
    if (n == 0 || poll(fds, n, 200) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents)
            read_result(runner, whose[i]);
}

bool dv_workers_are_idle(const struct dv_verify_runner *runner)
{
    for (size_t i = 0; i < runner->n_jobs; i++)
        if (runner->workers[i].pid)
            return false;
    return true;
}

struct dv_worker *dv_worker_find_free(struct dv_verify_runner *runner)
{
    for (size_t i = 0; i < runner->n_jobs; i++)
        if (!runner->workers[i].pid)
            return &runner->workers[i];
    return NULL;
}
