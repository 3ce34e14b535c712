/* job_ask.c - probes and hooks of containers. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/runner/asking.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "resource/resource.h"
#include "workload/life.h"
#include "workload/probe.h"

struct question {
    struct dv_runner_job *job;
    struct dv_asking asking;
};

static dv_str address_of(const struct dv_runner_job *job)
{
    return job->action.ips.n > 0 ? job->action.ips.v[0] : DV_STR("");
}

static void cancel(struct dv_runner_job *job)
{
    struct question *question = job->part.probe;

    dv_asking_cancel(&question->asking);
}

static void ask(struct dv_runner_job *job, struct question *question,
                void (*done)(struct dv_asking *asking))
{
    struct dv_runner *runner = job->pod->runner;

    question->job = job;
    question->asking.done = done;
    question->asking.loop = runner->loop;
    question->asking.cri = runner->cri;
    question->asking.arena = job->arena;
    question->asking.container_id = job->action.id;
    question->asking.limit_ms = job->action.limit_ms;
    job->part.probe = question;
    job->cancel = cancel;
    dv_asking_start(&question->asking);
}

/* ---- probes ---- */

static void on_probed(struct dv_asking *asking)
{
    struct dv_runner_job *job = DV_CONTAINER(asking, struct question, asking)->job;

    job->cancel = NULL;
    job->result.outcome = asking->outcome;
    job->result.output = asking->output;
    dv_runner_job_end(job);
}

void dv_runner_begin_probe(struct dv_runner_job *job)
{
    struct question *question = DV_NEW(job->arena, struct question);
    struct dv_err err;

    if (dv_probe_read(&job->action.probe->probe_handler, job->action.spec, address_of(job),
                      job->arena, &question->asking.target, &err)) {
        ask(job, question, on_probed);
        return;
    }
    job->result.outcome = DV_PROBE_ERROR;
    job->result.output = dv_str_copy(dv_str_from_c(err.msg), job->arena);
    dv_runner_job_end_later(job, NULL);
}

/* ---- hooks ---- */

static void on_hooked(struct dv_asking *asking)
{
    struct dv_runner_job *job = DV_CONTAINER(asking, struct question, asking)->job;
    bool is_http = asking->target.means == DV_PROBE_HTTP && asking->priv.fetch.status > 0;

    job->cancel = NULL;
    /* whatever a server answers, it has been told */
    if (asking->outcome == DV_PROBE_FAILURE || asking->outcome == DV_PROBE_ERROR) {
        job->result.has_failed = !is_http;
        job->result.error = asking->output;
    }
    dv_runner_job_end(job);
}

void dv_runner_begin_hook(struct dv_runner_job *job)
{
    struct question *question = DV_NEW(job->arena, struct question);
    struct dv_err err;

    if (dv_probe_read_hook(job->action.hook, job->action.spec, address_of(job), job->arena,
                           &question->asking.target, &err))
        ask(job, question, on_hooked);
    else
        dv_runner_job_end_later(job, &err);
}
