/* verify_run.c - runs trials, a worker process each, so many at a time, and gathers what they tell.
 *
 *     the probe --> facts --> cases that apply --> worker --- a result in a pipe ---> report
 *                                   skipped, why -----------------------------------> report
 */
#include "verify/runner/verify_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "verify/cases/driver_probe.h"
#include "verify/kit/skew.h"
#include "verify/kit/trial.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/attachment.h"
#include "verify/runner/case_needs.h"
#include "verify/runner/report_files.h"
#include "verify/runner/selection.h"
#include "verify/runner/verify_guard.h"
#include "verify/runner/verify_report.h"
#include "verify/verify.h"

/* Cases wait for the driver most of the time. */
#define JOBS_A_CORE 2
#define JOBS_DEFAULT_MAX 16
#define TEXT_BYTES_MAX (16u << 20)

/* Set by a signal: no more cases are begun, and workers are told to end. */
static volatile int signal_raised;

static void on_signal(int signum)
{
    signal_raised = signum;
}

static bool skip(struct dv_verify_runner *runner, size_t place)
{
    const char *reason = dv_needs_miss(runner->options, runner->has_facts ? &runner->facts : NULL,
                                       runner->cases[place]);
    struct dv_verify_result *result = &runner->report.results[place];

    if (!reason)
        return false;
    result->outcome = DV_SKIPPED;
    result->reason = dv_str_from_c(reason);
    if (dv_selection_is_required(runner->options, result->id)) {
        result->outcome = DV_FAILED;
        result->reason = dv_str_printf(runner->arena, DV_REQUIRED_TEXT "%s", reason);
    }
    result->is_done = true;
    return true;
}

/* ---- the run ---- */

/* Tells how far the cases are. */
static void tell(const struct dv_verify_runner *runner)
{
    struct dv_verify_progress progress = {.n_all = runner->report.n_results - 1};
    const struct dv_worker *longest = NULL;

    if (!runner->options->told)
        return;
    for (size_t i = 1; i < runner->report.n_results; i++)
        progress.n_done += runner->report.results[i].is_done;
    for (size_t i = 0; i < runner->n_jobs; i++)
        if (runner->workers[i].pid && (!longest || runner->workers[i].start_ms < longest->start_ms))
            longest = &runner->workers[i];
    if (longest)
        progress.longest = dv_str_from_c(runner->report.results[longest->place].id);
    runner->options->told(runner->options->ctx, &progress);
}

/* Waits for one result or more. */
static void attend(struct dv_verify_runner *runner)
{
    tell(runner);
    dv_workers_attend(runner);
}

static void say(const struct dv_verify_runner *runner, struct dv_buf *buf)
{
    if (!runner->is_quiet && buf->n > 0) {
        if (runner->options->told)
            runner->options->told(runner->options->ctx,
                                  &(struct dv_verify_progress){.is_printing = true});
        (void)fwrite(buf->p, 1, buf->n, stdout);
        (void)fflush(stdout);
    }
    dv_buf_fini(buf);
}

/* In the order of the table, as far as all before are known. After a probe that failed nearly all
 * are skipped, for that one reason, which stands above. */
static void print_done(struct dv_verify_runner *runner)
{
    while (runner->n_printed < runner->report.n_results &&
           runner->report.results[runner->n_printed].is_done) {
        const struct dv_verify_result *result = &runner->report.results[runner->n_printed++];
        struct dv_buf buf;

        if (runner->n_printed > 1 && !runner->has_facts && result->outcome == DV_SKIPPED)
            continue;
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_report_print_case(&runner->report, result, &buf);
        say(runner, &buf);
    }
}

static bool run_cases(struct dv_verify_runner *runner, struct dv_err *err)
{
    while (!(runner->n_begun == runner->report.n_results && dv_workers_are_idle(runner))) {
        struct dv_worker *worker = dv_worker_find_free(runner);

        if (worker && runner->n_begun < runner->report.n_results && !signal_raised) {
            size_t place = runner->order[runner->n_begun++];

            if (!skip(runner, place) &&
                !dv_worker_begin(runner, worker, runner->cases[place], place, err))
                return false;
            print_done(runner);
            continue;
        }
        attend(runner);
        print_done(runner);
        if (!dv_attachment_check(&runner->attachment, err))
            return false;
        if (signal_raised && dv_workers_are_idle(runner))
            return dv_fail(err, DV_CANCELLED, "interrupted by %s", strsignal(signal_raised));
    }
    return true;
}

/* Waits for the end of all workers; false when they have nothing to work with any more. */
static bool await_idle(struct dv_verify_runner *runner, struct dv_err *err)
{
    while (!dv_workers_are_idle(runner)) {
        attend(runner);
        if (!dv_attachment_check(&runner->attachment, err))
            return false;
    }
    return true;
}

/* The probe is a result only when it fails. */
static bool run_probe(struct dv_verify_runner *runner, struct dv_err *err)
{
    struct dv_verify_result *result = &runner->report.results[0];
    struct dv_buf buf;

    if (!dv_worker_begin(runner, &runner->workers[0], NULL, 0, err))
        return false;
    if (!await_idle(runner, err))
        return false;
    if (signal_raised)
        return dv_fail(err, DV_CANCELLED, "interrupted by %s", strsignal(signal_raised));
    if (result->outcome == DV_BROKEN)
        return dv_fail(err, DV_FAILED_PRECONDITION, "%.*s", DV_FMT(result->reason));
    runner->report.name = dv_str_from_c(runner->facts.name);
    if (runner->has_facts) {
        runner->n_printed = 1;
    } else {
        print_done(runner);
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_report_print_last_words(&runner->report, &buf);
        say(runner, &buf);
    }
    runner->n_begun = 1;
    return true;
}

/* Slow cases wait more than they compute: begun first, they do so beside all others. */
static void set_order(struct dv_verify_runner *runner, size_t n)
{
    size_t n_set = 1; /* the probe is the first in any case */

    runner->order = DV_NEW_ARRAY(runner->arena, size_t, n);
    for (int is_slow = 1; is_slow >= 0; is_slow--)
        for (size_t i = 1; i < n; i++)
            if (runner->cases[i]->is_slow == (is_slow == 1))
                runner->order[n_set++] = i;
}

static void gather_cases(struct dv_verify_runner *runner)
{
    struct dv_selection at = {0};
    size_t n = 1;

    while (dv_selection_next(runner->options, &at))
        n++;
    runner->cases = DV_NEW_ARRAY(runner->arena, const struct dv_verify_case *, n);
    runner->report.results = DV_NEW_ARRAY(runner->arena, struct dv_verify_result, n);
    runner->report.n_results = n;
    runner->report.results[0].id = "probe";
    runner->report.results[0].proves = "the driver starts, registers and answers";
    at = (struct dv_selection){0};
    for (size_t i = 1; i < n; i++) {
        runner->cases[i] = dv_selection_next(runner->options, &at);
        runner->report.results[i].id = runner->cases[i]->id;
        runner->report.results[i].proves = runner->cases[i]->proves;
        runner->report.results[i].is_case = true;
    }
    set_order(runner, n);
}

static bool report_all(struct dv_verify_runner *runner, struct dv_verify_sum *sum,
                       struct dv_err *err)
{
    struct dv_buf buf;

    if (runner->has_facts) { /* the probe was only a means */
        runner->report.results++;
        runner->report.n_results--;
    }
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_report_print_sum(&runner->report, &buf);
    say(runner, &buf);
    *sum = dv_report_sum(&runner->report);
    return dv_reports_write(&runner->report, err);
}

static size_t count_jobs(const struct dv_verify_options *options)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->attach.n > 0)
        return 1; /* one driver, one kubelet */
    if (options->n_jobs > 0)
        return options->n_jobs < DV_JOBS_MAX ? options->n_jobs : DV_JOBS_MAX;
    n_cores *= JOBS_A_CORE;
    return n_cores < 1 ? 1 : n_cores > JOBS_DEFAULT_MAX ? JOBS_DEFAULT_MAX : (size_t)n_cores;
}

static bool prepare(struct dv_verify_runner *runner, struct dv_err *err)
{
    const struct dv_verify_options *options = runner->options;
    struct sigaction action = {.sa_handler = on_signal};

    if (!dv_verify_check_cases(options, err) || !dv_needs_check_hooks(options, err) ||
        !dv_reports_check(options, err))
        return false;
    if (!runner->release)
        return dv_fail(err, DV_INVALID_ARGUMENT, "--emulate is %s, not \"%.*s\"", dv_skew_names(),
                       DV_FMT(options->release));
    if (mkdir(dv_str_to_c(options->dir, runner->arena), 0755) != 0 && errno != EEXIST)
        return dv_fail_errno(err, errno, "making %.*s", DV_FMT(options->dir));
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    /* What a hook starts for a driver of --attach is to stay. */
    if (options->attach.n == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        return dv_fail_errno(err, errno, "prctl");
    return options->attach.n > 0 || dv_verify_guard_open(&runner->guard, options, err);
}

/* Before the first case of a driver that runs already. Who has to start it learns what it needs. */
static bool attach(struct dv_verify_runner *runner, struct dv_err *err)
{
    struct dv_trial trial;
    dv_str root;

    if (runner->options->attach.n == 0)
        return true;
    trial = dv_verify_new_trial(runner, NULL);
    if (!dv_attachment_open(&runner->attachment, &trial, err))
        return false;
    root = runner->attachment.trial.paths.root;
    if (runner->attachment.keeper)
        (void)fprintf(stderr,
                      "davit: waiting for a driver with its registration socket in "
                      "%.*s/kubelet/plugins_registry, --kubeconfig %.*s/kubeconfig, node %.*s, CDI "
                      "specs in %.*s/cdi\n",
                      DV_FMT(root), DV_FMT(root), DV_FMT(trial.node), DV_FMT(root));
    return true;
}

/* A driver that runs already is left without claims. */
static bool take_leave(struct dv_verify_runner *runner, struct dv_err *err)
{
    if (!runner->attachment.keeper || !runner->has_facts)
        return true;
    return dv_worker_begin(runner, &runner->workers[0], &dv_farewell, 0, err) &&
           await_idle(runner, err);
}

bool dv_verify_run(const struct dv_verify_options *options, struct dv_verify_sum *sum,
                   struct dv_err *err)
{
    struct dv_verify_runner *runner = DV_ALLOC(struct dv_verify_runner);
    uint64_t start_ms = dv_verify_now_ms();
    bool is_good;

    runner->options = options;
    runner->arena = dv_arena_new();
    runner->release = dv_skew_find(options->release);
    runner->report.options = options;
    runner->n_jobs = count_jobs(options);
    runner->signum = &signal_raised;
    runner->is_quiet = dv_reports_use_stdout(options);
    is_good = prepare(runner, err);
    if (is_good) {
        gather_cases(runner);
        is_good = attach(runner, err) && run_probe(runner, err) && run_cases(runner, err) &&
                  take_leave(runner, err);
        runner->report.took_ms = dv_verify_now_ms() - start_ms;
        is_good = is_good && report_all(runner, sum, err);
    }
    runner->is_ending = true;
    while (!dv_workers_are_idle(runner)) /* a failure of ours while others run */
        dv_workers_attend(runner);
    dv_verify_guard_close(&runner->guard);
    dv_attachment_close(&runner->attachment);
    dv_arena_free(runner->arena);
    free(runner);
    return is_good;
}
