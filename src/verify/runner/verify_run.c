/* verify_run.c - runs trials, a worker process each, so many at a time, and gathers what they tell.
 *
 *     the probe --> facts --> cases that apply --> worker --- a result in a pipe ---> report
 *                                   skipped, why -----------------------------------> report
 *
 * A worker ends its driver and removes its directories itself, also when it is told to end. What a
 * worker that crashes leaves behind becomes a child of ours, and is ended here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "verify/cases/driver_probe.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/attachment.h"
#include "verify/runner/case_needs.h"
#include "verify/runner/selection.h"
#include "verify/runner/verify_report.h"
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
/* For a worker that was told to end: it kills, unmounts and removes. */
#define END_MS 15000u
#define JOBS_MAX 64u
/* Cases wait for the driver most of the time. */
#define JOBS_A_CORE 2
#define JOBS_DEFAULT_MAX 16
#define REPORT_BYTES_MAX (16u << 20)

/* Set by a signal: no more cases are begun, and workers are told to end. */
static volatile int signal_raised;

/* A trial that is being run. */
struct worker {
    pid_t pid;    /* 0: the place is free */
    int fd;       /* its result comes here */
    size_t place; /* of its result */
    struct dv_trial trial;
    struct dv_trial_result told;
    size_t n_told; /* bytes */
    uint64_t start_ms;
    uint64_t deadline_ms;
    bool is_told_to_end;
};

struct run {
    const struct dv_verify_options *options;
    const struct dv_skew *release;
    struct dv_arena *arena;
    struct dv_facts facts;
    bool has_facts;
    const struct dv_verify_case **cases; /* of each result */
    size_t *order;                       /* places of results, as they are begun */
    struct dv_verify_report report;
    struct dv_attachment attachment; /* zeroed without --attach */
    struct worker workers[JOBS_MAX];
    size_t n_jobs;
    size_t n_begun;
    size_t n_printed;
    bool is_quiet; /* a report goes to standard output */
};

static uint64_t now_ms(void)
{
    return dv_clock_now_ns(dv_clock_real()) / 1000000u;
}

static void on_signal(int signum)
{
    signal_raised = signum;
}

/* ---- workers ---- */

static _Noreturn void work(struct run *run, struct worker *worker, pid_t parent)
{
    struct dv_trial *trial = &worker->trial;

    /* Not in the runner's group: who kills that with SIGKILL leaves us to clean up. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != parent) /* it died before that was said */
        _exit(1);
    dv_trial_init(trial);
    if (run->options->setup.n > 0 && !dv_child_run(trial, run->options->setup))
        dv_trial_break(trial, "--setup failed: %.*s", DV_FMT(run->options->setup));
    if (dv_trial_is_restarting(trial))
        dv_trial_stop_attached(trial);
    if (trial->test)
        trial->test->run(trial);
    else
        dv_probe(trial);
    dv_trial_end(trial, DV_PASSED, "");
}

static uint64_t wait_ms(const struct run *run, const struct dv_verify_case *test)
{
    uint64_t by_start_ms = WAIT_STARTS * run->facts.start_ms;

    if (run->options->wait_ms)
        return run->options->wait_ms;
    if (!test)
        return run->attachment.keeper ? ATTACH_WAIT_MS : PROBE_WAIT_MS;
    return by_start_ms > WAIT_MS ? by_start_ms : WAIT_MS;
}

/* `test` NULL: the probe. */
static struct dv_trial new_trial(const struct run *run, const struct dv_verify_case *test)
{
    const struct dv_verify_options *options = run->options;
    struct dv_trial trial = {
        .options = options,
        .test = test,
        .release = run->release,
        .facts = run->facts,
        .node = options->node.n > 0 ? options->node : DV_STR("verify-node"),
        .wait_ms = wait_ms(run, test),
        .grace_ms = options->grace_ms ? options->grace_ms : GRACE_MS,
        .recover_ms = options->recover_ms ? options->recover_ms : RECOVER_MS,
        .must_not_skip = test && dv_selection_is_required(options, test->id),
        .arena = dv_arena_new(),
    };

    trial.facts.has_slices |= dv_needs_is_required(options, "slices");
    return trial;
}

/* Begins a trial in a free place. `test` NULL: the probe. */
static bool begin(struct run *run, struct worker *worker, const struct dv_verify_case *test,
                  size_t place, struct dv_err *err)
{
    const struct dv_verify_options *options = run->options;
    pid_t self = getpid();
    int fds[2];

    memset(worker, 0, sizeof(*worker));
    worker->place = place;
    worker->start_ms = now_ms();
    worker->trial = new_trial(run, test);
    worker->deadline_ms =
        worker->start_ms +
        (options->case_ms ? options->case_ms : CASE_MS + CASE_STARTS * run->facts.start_ms) +
        (test ? 0 : worker->trial.wait_ms);
    if (!dv_trial_root_choose(&worker->trial, err))
        return false;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return dv_fail_errno(err, errno, "pipe");
    worker->trial.result_fd = fds[1];
    (void)fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)close(fds[0]);
        work(run, worker, self);
    }
    (void)close(fds[1]);
    if (worker->pid > 0)
        (void)setpgid(worker->pid, worker->pid); /* whoever of the two is first */
    worker->fd = fds[0];
    return worker->pid > 0 || dv_fail_errno(err, errno, "fork");
}

/* Ends what a worker that crashed has left: children of ours that are no workers. */
static void sweep(struct run *run, struct worker *worker)
{
    pid_t known[JOBS_MAX + 1];
    size_t n = 0;

    if (run->attachment.keeper > 0)
        known[n++] = run->attachment.keeper;
    for (size_t i = 0; i < run->n_jobs; i++)
        if (run->workers[i].pid)
            known[n++] = run->workers[i].pid;
    dv_children_end_others(known, n);
    dv_trial_dirs_remove(&worker->trial);
}

/* The worker is gone, or has said all it has to say. */
static void finish(struct run *run, struct worker *worker)
{
    struct dv_verify_result *result = &run->report.results[worker->place];
    bool has_result = worker->n_told == sizeof(worker->told);
    pid_t pid = worker->pid;
    int status = 0;

    (void)close(worker->fd);
    (void)waitpid(pid, &status, 0); /* it closed the pipe by its end */
    worker->pid = 0;
    dv_trial_dirs_remove(&worker->trial); /* what its threads wrote to the last */
    result->is_done = true;
    result->took_ms = now_ms() - worker->start_ms;
    if (has_result) {
        result->outcome = worker->told.outcome;
        result->n_calls = worker->told.n_calls;
        worker->told.reason[sizeof(worker->told.reason) - 1] = '\0';
        result->reason = dv_str_copy(dv_str_from_c(worker->told.reason), run->arena);
    } else {
        sweep(run, worker);
        result->outcome = DV_BROKEN;
        result->reason =
            dv_str_printf(run->arena, "the worker ended without a result (%s %d)",
                          WIFSIGNALED(status) ? "signal" : "exit status",
                          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (worker->is_told_to_end && !signal_raised) {
        result->outcome = DV_FAILED;
        result->reason = dv_str_printf(
            run->arena, "it was not done within %llu ms, while waiting for the driver",
            (unsigned long long)(worker->deadline_ms - worker->start_ms));
    }
    if (!worker->trial.test) {
        run->facts = worker->told.facts;
        run->has_facts = result->outcome == DV_PASSED;
    }
    dv_arena_free(worker->trial.arena);
}

static void read_result(struct run *run, struct worker *worker)
{
    char *at = (char *)&worker->told + worker->n_told;
    ssize_t n = read(worker->fd, at, sizeof(worker->told) - worker->n_told);

    if (n > 0)
        worker->n_told += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR) || worker->n_told == sizeof(worker->told))
        finish(run, worker);
}

/* Tells a worker whose time is over to end; later, the kernel does. */
static void press(struct worker *worker)
{
    uint64_t now = now_ms();

    if (now < worker->deadline_ms && !signal_raised)
        return;
    if (!worker->is_told_to_end) {
        worker->is_told_to_end = true;
        worker->deadline_ms = now;
        (void)kill(worker->pid, SIGTERM);
    } else if (now > worker->deadline_ms + END_MS) {
        (void)kill(worker->pid, SIGKILL);
    }
}

/* Waits for one result or more. */
static void attend(struct run *run)
{
    struct pollfd fds[JOBS_MAX];
    struct worker *whose[JOBS_MAX];
    nfds_t n = 0;

    for (size_t i = 0; i < run->n_jobs; i++)
        if (run->workers[i].pid) {
            press(&run->workers[i]);
            whose[n] = &run->workers[i];
            fds[n++] = (struct pollfd){.fd = run->workers[i].fd, .events = POLLIN};
        }
    if (n == 0 || poll(fds, n, 200) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (fds[i].revents)
            read_result(run, whose[i]);
}

static bool is_idle(const struct run *run)
{
    for (size_t i = 0; i < run->n_jobs; i++)
        if (run->workers[i].pid)
            return false;
    return true;
}

static bool skip(struct run *run, size_t place)
{
    const char *reason =
        dv_needs_miss(run->options, run->has_facts ? &run->facts : NULL, run->cases[place]);
    struct dv_verify_result *result = &run->report.results[place];

    if (!reason)
        return false;
    result->outcome = DV_SKIPPED;
    result->reason = dv_str_from_c(reason);
    if (dv_selection_is_required(run->options, result->id)) {
        result->outcome = DV_FAILED;
        result->reason = dv_str_printf(run->arena, DV_REQUIRED_TEXT "%s", reason);
    }
    result->is_done = true;
    return true;
}

/* ---- the run ---- */

static void say(const struct run *run, struct dv_buf *buf)
{
    if (!run->is_quiet) {
        (void)fwrite(buf->p, 1, buf->n, stdout);
        (void)fflush(stdout);
    }
    dv_buf_fini(buf);
}

/* In the order of the table, as far as all before are known. After a probe that failed nearly all
 * are skipped, for that one reason, which stands above. */
static void print_done(struct run *run)
{
    while (run->n_printed < run->report.n_results && run->report.results[run->n_printed].is_done) {
        const struct dv_verify_result *result = &run->report.results[run->n_printed++];
        struct dv_buf buf;

        if (run->n_printed > 1 && !run->has_facts && result->outcome == DV_SKIPPED)
            continue;
        dv_buf_init(&buf, REPORT_BYTES_MAX);
        dv_report_print_case(&run->report, result, &buf);
        say(run, &buf);
    }
}

static struct worker *free_place(struct run *run)
{
    for (size_t i = 0; i < run->n_jobs; i++)
        if (!run->workers[i].pid)
            return &run->workers[i];
    return NULL;
}

static bool run_cases(struct run *run, struct dv_err *err)
{
    while (!(run->n_begun == run->report.n_results && is_idle(run))) {
        struct worker *worker = free_place(run);

        if (worker && run->n_begun < run->report.n_results && !signal_raised) {
            size_t place = run->order[run->n_begun++];

            if (!skip(run, place) && !begin(run, worker, run->cases[place], place, err))
                return false;
            print_done(run);
            continue;
        }
        attend(run);
        print_done(run);
        if (signal_raised && is_idle(run))
            return dv_fail(err, DV_CANCELLED, "interrupted by %s", strsignal(signal_raised));
    }
    return true;
}

/* The probe is a result only when it fails. */
static bool run_probe(struct run *run, struct dv_err *err)
{
    struct dv_verify_result *result = &run->report.results[0];
    struct dv_buf buf;

    if (!begin(run, &run->workers[0], NULL, 0, err))
        return false;
    while (!is_idle(run))
        attend(run);
    if (signal_raised)
        return dv_fail(err, DV_CANCELLED, "interrupted by %s", strsignal(signal_raised));
    run->report.name = dv_str_from_c(run->facts.name);
    if (run->has_facts) {
        run->n_printed = 1;
    } else {
        print_done(run);
        dv_buf_init(&buf, REPORT_BYTES_MAX);
        dv_report_print_last_words(&run->report, &buf);
        say(run, &buf);
    }
    run->n_begun = 1;
    return result->outcome != DV_BROKEN ||
           dv_fail(err, DV_FAILED_PRECONDITION, "%.*s", DV_FMT(result->reason));
}

/* Slow cases wait more than they compute: begun first, they do so beside all others. */
static void set_order(struct run *run, size_t n)
{
    size_t n_set = 1; /* the probe is the first in any case */

    run->order = DV_NEW_ARRAY(run->arena, size_t, n);
    for (int is_slow = 1; is_slow >= 0; is_slow--)
        for (size_t i = 1; i < n; i++)
            if (run->cases[i]->is_slow == (is_slow == 1))
                run->order[n_set++] = i;
}

static void gather_cases(struct run *run)
{
    struct dv_selection at = {0};
    size_t n = 1;

    while (dv_selection_next(run->options, &at))
        n++;
    run->cases = DV_NEW_ARRAY(run->arena, const struct dv_verify_case *, n);
    run->report.results = DV_NEW_ARRAY(run->arena, struct dv_verify_result, n);
    run->report.n_results = n;
    run->report.results[0].id = "probe";
    run->report.results[0].proves = "the driver starts, registers and answers";
    at = (struct dv_selection){0};
    for (size_t i = 1; i < n; i++) {
        run->cases[i] = dv_selection_next(run->options, &at);
        run->report.results[i].id = run->cases[i]->id;
        run->report.results[i].proves = run->cases[i]->proves;
        run->report.results[i].is_case = true;
    }
    set_order(run, n);
}

static bool write_report(const struct run *run, dv_str path,
                         void (*print)(const struct dv_verify_report *report, struct dv_buf *buf),
                         struct dv_err *err)
{
    struct dv_buf buf;
    bool is_good = true;

    if (path.n == 0)
        return true;
    dv_buf_init(&buf, REPORT_BYTES_MAX);
    print(&run->report, &buf);
    if (dv_str_eq(path, DV_STR("-")))
        (void)fwrite(buf.p, 1, buf.n, stdout);
    else
        is_good = dv_file_replace(path, dv_buf_str(&buf), 0644, err);
    dv_buf_fini(&buf);
    return is_good;
}

static bool report_all(struct run *run, struct dv_verify_sum *sum, struct dv_err *err)
{
    const struct dv_verify_options *options = run->options;
    struct dv_buf buf;

    if (run->has_facts) { /* the probe was only a means */
        run->report.results++;
        run->report.n_results--;
    }
    dv_buf_init(&buf, REPORT_BYTES_MAX);
    dv_report_print_sum(&run->report, &buf);
    say(run, &buf);
    *sum = dv_report_sum(&run->report);
    return write_report(run, options->tap, dv_report_print_tap, err) &&
           write_report(run, options->junit, dv_report_print_junit, err) &&
           write_report(run, options->json, dv_report_print_json, err);
}

static size_t count_jobs(const struct dv_verify_options *options)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->attach.n > 0)
        return 1; /* one driver, one kubelet */
    if (options->n_jobs > 0)
        return options->n_jobs < JOBS_MAX ? options->n_jobs : JOBS_MAX;
    n_cores *= JOBS_A_CORE;
    return n_cores < 1 ? 1 : n_cores > JOBS_DEFAULT_MAX ? JOBS_DEFAULT_MAX : (size_t)n_cores;
}

static bool prepare(struct run *run, struct dv_err *err)
{
    const struct dv_verify_options *options = run->options;
    struct sigaction action = {.sa_handler = on_signal};
    dv_str stranger = dv_selection_stranger(options);

    if (stranger.n > 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "no case of %s is called \"%.*s\"; see --list",
                       dv_verify_kind_name(options->kind), DV_FMT(stranger));
    if (!dv_needs_check_hooks(options, err))
        return false;
    if (!run->release)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--emulate is %s, not \"%.*s\"", dv_skew_names(),
                       DV_FMT(options->release));
    if (mkdir(dv_str_to_c(options->dir, run->arena), 0755) != 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "making %.*s", DV_FMT(options->dir));
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    /* What a hook starts for a driver of --attach is to stay. */
    if (options->attach.n == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return dv_fail_errno(err, errno, "prctl");
    return true;
}

/* Before the first case of a driver that runs already. Who has to start it learns what it needs. */
static bool attach(struct run *run, struct dv_err *err)
{
    struct dv_trial trial;
    dv_str root;

    if (run->options->attach.n == 0)
        return true;
    trial = new_trial(run, NULL);
    if (!dv_attachment_open(&run->attachment, &trial, err))
        return false;
    root = run->attachment.trial.paths.root;
    if (run->attachment.keeper)
        (void)fprintf(stderr,
                      "davit: waiting for a driver with its registration socket in "
                      "%.*s/kubelet/plugins_registry, --kubeconfig %.*s/kubeconfig, node %.*s, CDI "
                      "specs in %.*s/cdi\n",
                      DV_FMT(root), DV_FMT(root), DV_FMT(trial.node), DV_FMT(root));
    return true;
}

/* A driver that runs already is left without claims. */
static bool take_leave(struct run *run, struct dv_err *err)
{
    if (!run->attachment.keeper || !run->has_facts)
        return true;
    if (!begin(run, &run->workers[0], &dv_farewell, 0, err))
        return false;
    while (!is_idle(run))
        attend(run);
    return true;
}

bool dv_verify_run(const struct dv_verify_options *options, struct dv_verify_sum *sum,
                   struct dv_err *err)
{
    struct run *run = DV_ALLOC(struct run);
    uint64_t start_ms = now_ms();
    bool is_good;

    run->options = options;
    run->arena = dv_arena_new();
    run->release = dv_skew_find(options->release);
    run->report.options = options;
    run->n_jobs = count_jobs(options);
    run->is_quiet = dv_str_eq(options->tap, DV_STR("-")) ||
                    dv_str_eq(options->junit, DV_STR("-")) || dv_str_eq(options->json, DV_STR("-"));
    is_good = prepare(run, err);
    if (is_good) {
        gather_cases(run);
        is_good =
            attach(run, err) && run_probe(run, err) && run_cases(run, err) && take_leave(run, err);
        run->report.took_ms = now_ms() - start_ms;
        is_good = is_good && report_all(run, sum, err);
    }
    while (!is_idle(run)) /* a failure of ours while others run */
        attend(run);
    dv_attachment_close(&run->attachment);
    dv_arena_free(run->arena);
    free(run);
    return is_good;
}
