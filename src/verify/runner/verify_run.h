/* verify_run.h - a run of cases: what the runner keeps of it, and its workers, each a process. */
#ifndef DV_VERIFY_RUN_H
#define DV_VERIFY_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/defs.h"
#include "verify/kit/trial.h"
#include "verify/runner/attachment.h"
#include "verify/runner/verify_guard.h"
#include "verify/runner/verify_report.h"

struct dv_arena;
struct dv_err;
struct dv_skew;
struct dv_verify_case;
struct dv_verify_options;

#define DV_JOBS_MAX 64u

/* A trial that is being run. */
struct dv_worker {
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

struct dv_verify_runner {
    const struct dv_verify_options *options;
    const struct dv_skew *release;
    struct dv_arena *arena;
    struct dv_facts facts;
    bool has_facts;
    const struct dv_verify_case **cases; /* of each result */
    size_t *order;                       /* places of results, as they are begun */
    struct dv_verify_report report;
    struct dv_verify_guard guard;    /* zeroed with --attach: all is the user's there */
    struct dv_attachment attachment; /* zeroed without --attach */
    struct dv_worker workers[DV_JOBS_MAX];
    size_t n_jobs;
    size_t n_begun;
    size_t n_printed;
    const volatile int *signum; /* of a signal that has come: workers are told to end */
    bool is_quiet;              /* a report goes to standard output */
    bool is_ending;             /* by a failure of ours: workers are told to end */
};

uint64_t dv_verify_now_ms(void);

/* ---- workers ---- */

/* A place for one more; NULL: all are taken. */
struct dv_worker *dv_worker_find_free(struct dv_verify_runner *runner);
/* Begins a trial in a free place; its result goes to `place`. `test` NULL: the probe. */
DV_CHECKED bool dv_worker_begin(struct dv_verify_runner *runner, struct dv_worker *worker,
                                const struct dv_verify_case *test, size_t place,
                                struct dv_err *err);
/* A trial as a case has it, before it has directories. */
struct dv_trial dv_verify_new_trial(const struct dv_verify_runner *runner,
                                    const struct dv_verify_case *test);
/* Waits for what workers tell, a little while; their results are in the report. */
void dv_workers_attend(struct dv_verify_runner *runner);
bool dv_workers_are_idle(const struct dv_verify_runner *runner);

#endif
