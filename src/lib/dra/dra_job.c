#include "lib/dra/dra_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "grpc/grpc.h"
#include "lib/common/lib_call.h"
#include "lib/common/parts.h"
#include "lib/dra/dra.h"
#include "lib/dra/dra_claim.h"
#include "resource/resource.h"
#include "resource/status.h"

/* The time to fetch one claim; with the steps that follow it stays under the agent's 45 s. */
#define FETCH_TIMEOUT_MS 20000u
/* The first pause between looks whether the other instance has released the lock: calls are short,
 * so waits are too. */
#define LOCK_PAUSE_FIRST_MS 10u
#define LOCK_PAUSE_MAX_MS 250u

/* One claim that is being fetched. It is on the heap, as it may outlive a job that does not wait
 * for it. */
struct fetch {
    struct dv_request request;
    struct davit_dra *dra;
    struct dv_lib_dra_job *job; /* NULL: nobody waits */
    size_t at;                  /* of the job's calls */
    struct dv_arena *arena;
};

/* ---- turns ---- */

static bool has_uid(const struct dv_lib_rpc *rpc, const char *uid)
{
    for (size_t i = 0; i < rpc->n_calls; i++)
        if (strcmp(rpc->calls[i].claim.ref.uid, uid) == 0)
            return true;
    return false;
}

static bool shares_claim(const struct dv_lib_dra_job *a, const struct dv_lib_dra_job *b)
{
    for (size_t i = 0; i < a->rpc->n_calls; i++)
        if (has_uid(b->rpc, a->rpc->calls[i].claim.ref.uid))
            return true;
    return false;
}

/* Whether the job may run: jobs before it go first, all of them or those about the same claims. */
static bool is_turn_of(const struct dv_lib_dra_jobs *jobs, const struct dv_lib_dra_job *job)
{
    bool is_parallel = jobs->dra->options.flags & DAVIT_DRA_PARALLEL;

    for (struct dv_link *link = jobs->ready.head.next; link != &job->link; link = link->next)
        if (!is_parallel || shares_claim(job, DV_CONTAINER(link, struct dv_lib_dra_job, link)))
            return false;
    return true;
}

static struct dv_lib_dra_job *find_next(const struct dv_lib_dra_jobs *jobs)
{
    struct dv_link *link;

    if (jobs->dra->rpcs.is_closing)
        return NULL;
    DV_LIST_EACH (&jobs->ready, link) {
        struct dv_lib_dra_job *job = DV_CONTAINER(link, struct dv_lib_dra_job, link);

        if (!job->is_running && is_turn_of(jobs, job))
            return job;
    }
    return NULL;
}

static void on_task(struct dv_task *task);

static void look(struct dv_lib_dra_jobs *jobs)
{
    dv_task_post(&jobs->task, jobs->dra->parts.loop, on_task);
}

static void on_timer(struct dv_timer *timer)
{
    look(DV_CONTAINER(timer, struct dv_lib_dra_jobs, timer));
}

/* Takes the lock. False: it is tried again later, or *err says why it cannot be had. */
static bool take_lock(struct dv_lib_dra_jobs *jobs, struct dv_err *err)
{
    struct dv_loop *loop = jobs->dra->parts.loop;
    int fd;

    (void)dv_succeed(err);
    if (jobs->lock_path.n == 0 || jobs->lock_fd >= 0)
        return true;
    fd = open(jobs->lock_path.p, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* made with a NUL */
    if (fd < 0)
        return dv_fail_errno(err, errno, "lock %.*s", DV_FMT(jobs->lock_path));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        jobs->lock_fd = fd;
        jobs->pause_ms = LOCK_PAUSE_FIRST_MS;
        return true;
    }
    (void)close(fd); /* was only looked at */
    dv_timer_start(&jobs->timer, loop, dv_loop_now_ms(loop) + jobs->pause_ms, on_timer);
    jobs->pause_ms = dv_u64_min(jobs->pause_ms * 2, LOCK_PAUSE_MAX_MS);
    return false;
}

static void drop_lock(struct dv_lib_dra_jobs *jobs)
{
    if (jobs->lock_fd >= 0)
        (void)close(jobs->lock_fd); /* closing unlocks it */
    jobs->lock_fd = -1;
}

static void run(struct dv_lib_dra_job *job)
{
    struct dv_err err;

    job->is_running = true;
    if (dv_server_call_is_cancelled(job->rpc->server_call)) {
        (void)dv_fail(&err, DV_CANCELLED, "nobody waits for it any more");
        dv_lib_rpc_fail(job->rpc, &err);
    } else {
        dv_lib_rpc_ask(job->rpc);
    }
}

static void on_task(struct dv_task *task)
{
    struct dv_lib_dra_jobs *jobs = DV_CONTAINER(task, struct dv_lib_dra_jobs, task);
    struct dv_lib_dra_job *job;
    struct dv_err err;

    while ((job = find_next(jobs)) != NULL) {
        if (take_lock(jobs, &err))
            run(job);
        else if (err.code != DV_OK)
            dv_lib_rpc_fail(job->rpc, &err);
        else
            return;
    }
}

static void wait_for_turn(struct dv_lib_dra_job *job)
{
    dv_list_push(&job->dra->jobs.ready, &job->link);
    look(&job->dra->jobs);
}

/* ---- fetching ---- */

static void free_fetch(struct fetch *fetch)
{
    struct dv_lib_parts *parts = &fetch->dra->parts;

    dv_arena_free(fetch->arena);
    free(fetch);
    dv_lib_part_closed(parts);
}

static bool read_claim(const struct fetch *fetch, const struct dv_api_status *failure,
                       struct davit_dra_claim *claim, struct dv_err *err)
{
    const struct dv_request *request = &fetch->request;
    struct dv_lib_rpc *rpc = fetch->job->rpc;

    if (failure) {
        dv_status_to_err(failure, err);
        return dv_wrap(err, "retrieve claim %.*s/%.*s", DV_FMT(request->namespace),
                       DV_FMT(request->name));
    }
    return dv_lib_claim_view(request->object->value, fetch->dra->name,
                             dv_str_from_c(rpc->calls[fetch->at].claim.ref.uid),
                             dv_server_call_arena(rpc->server_call), claim, err);
}

static void on_fetched(struct dv_request *request, const struct dv_api_status *failure)
{
    struct fetch *fetch = DV_CONTAINER(request, struct fetch, request);
    struct dv_lib_dra_job *job = fetch->job;
    struct dv_err err;
    bool is_good;

    if (!job) {
        free_fetch(fetch);
        return;
    }
    is_good = read_claim(fetch, failure, &job->rpc->calls[fetch->at].claim, &err);
    job->fetches[fetch->at] = NULL;
    job->n_fetching--;
    free_fetch(fetch);
    if (!is_good)
        dv_lib_rpc_fail(job->rpc, &err);
    else if (job->n_fetching == 0)
        wait_for_turn(job);
}

static void start_fetch(struct dv_lib_dra_job *job, size_t at)
{
    const struct davit_dra_claim_ref *ref = &job->rpc->calls[at].claim.ref;
    struct fetch *fetch = DV_ALLOC(struct fetch);

    fetch->dra = job->dra;
    fetch->job = job;
    fetch->at = at;
    fetch->arena = dv_arena_new();
    fetch->request = (struct dv_request){
        .verb = DV_VERB_GET,
        .kind = dv_kind(DV_KIND_CLAIM),
        .namespace = dv_str_copy(dv_str_from_c(ref->claim_namespace), fetch->arena),
        .name = dv_str_copy(dv_str_from_c(ref->name), fetch->arena),
        .timeout_ms = FETCH_TIMEOUT_MS,
        .done = on_fetched,
    };
    job->fetches[at] = fetch;
    dv_lib_parts_add(&job->dra->parts);
    dv_request_start(job->dra->cluster, &fetch->request);
}

/* ---- life ---- */

void dv_lib_dra_job_start(struct davit_dra *dra, struct dv_lib_rpc *rpc, bool has_shares)
{
    struct dv_arena *arena = dv_server_call_arena(rpc->server_call);
    struct dv_lib_dra_job *job = DV_NEW(arena, struct dv_lib_dra_job);

    job->dra = dra;
    job->rpc = rpc;
    job->has_shares = has_shares;
    rpc->job = job;
    if (rpc->kind == DV_RPC_UNPREPARE) {
        wait_for_turn(job);
        return;
    }
    job->fetches = DV_NEW_ARRAY(arena, struct fetch *, rpc->n_calls);
    job->n_fetching = rpc->n_calls;
    for (size_t i = 0; i < rpc->n_calls; i++)
        start_fetch(job, i);
}

void dv_lib_dra_job_ended(struct dv_lib_dra_job *job)
{
    struct dv_lib_dra_jobs *jobs = &job->dra->jobs;

    for (size_t i = 0; job->n_fetching > 0 && i < job->rpc->n_calls; i++) {
        struct fetch *fetch = job->fetches[i];

        if (!fetch)
            continue;
        fetch->job = NULL;
        dv_request_cancel(job->dra->cluster, &fetch->request);
    }
    dv_link_remove(&job->link);
    if (job->is_running)
        drop_lock(jobs); /* whoever has one runs alone */
    if (!job->dra->rpcs.is_closing)
        look(jobs);
}

void dv_lib_dra_jobs_init(struct dv_lib_dra_jobs *jobs, struct davit_dra *dra, dv_str lock_path)
{
    *jobs = (struct dv_lib_dra_jobs){
        .dra = dra,
        .lock_path = lock_path,
        .lock_fd = -1,
        .pause_ms = LOCK_PAUSE_FIRST_MS,
    };
    dv_list_init(&jobs->ready);
}

void dv_lib_dra_jobs_close(struct dv_lib_dra_jobs *jobs)
{
    dv_task_cancel(&jobs->task);
    dv_timer_cancel(&jobs->timer);
    drop_lock(jobs);
}
