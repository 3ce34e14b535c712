/* claim_operation.c - the life of an operation on claims, step by step, from its start to its end.
 *
 *                             .-- had to wait --.  .- took turns -.
 *                             v                 |  v              |
 *     prepare        LIST -> FETCH -> CHECK -> AWAIT -> RESERVE --'-> HOLD -> RECORD -> CALL -.
 *     prepare again                            AWAIT ---------------> HOLD -> RECORD -> CALL -|
 *     unprepare      LIST -------------------> AWAIT ---------------> HOLD -> RECORD -> CALL -|
 *     release        LIST -------------------> AWAIT ---------------> HOLD -> RECORD ---------|
 *                                                                      STORE <- ANSWER <------'
 *
 * RECORD is on the disk before a driver is called, and STORE before anyone is told: whenever davitd
 * dies, the next one knows what drivers may have done, and asks them again. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "claim/manager/claim_manager_state.h"
#include "resource/resource.h"

/* ---- the table ---- */

enum step {
    LIST,    /* finds out which claims it is about */
    FETCH,   /* gets them from the API */
    CHECK,   /* refuses claims that the pod may not use */
    AWAIT,   /* waits for drivers, and for the end of what is under way for the claims */
    RESERVE, /* asks the owner of the operation whether drivers may be called */
    HOLD,    /* takes the claims: nobody else changes them until the end */
    RECORD,  /* writes that drivers are about to be called */
    CALL,    /* calls the drivers */
    ANSWER,  /* takes what they answered into the state */
    STORE,   /* writes the answers */
    OVER,
};

struct dv_claim_step {
    enum dv_claim_operation_kind kind;
    enum step step;
    dv_claim_step_fn *run;
    enum step then;
    enum step after_waiting; /* follows instead when the step had to wait */
    enum step on_failure;    /* also follows when the operation was cancelled meanwhile */
};

static dv_claim_step_fn record;
static dv_claim_step_fn store;

/* A kind begins with its first row. A failed call is an answer too. When drivers do not let go of
 * a claim, what others have let go of is stored nevertheless.
 * Columns: operation, step, what is done in it; what follows, after waiting, after a failure. */
static const struct dv_claim_step steps[] = {
    {DV_CLAIM_PREPARE,       LIST,    dv_claim_prepare_list,     FETCH,   FETCH,  OVER  },
    {DV_CLAIM_PREPARE,       FETCH,   dv_claim_prepare_fetch,    CHECK,   CHECK,  OVER  },
    {DV_CLAIM_PREPARE,       CHECK,   dv_claim_prepare_check,    AWAIT,   AWAIT,  OVER  },
    {DV_CLAIM_PREPARE,       AWAIT,   dv_claim_prepare_await,    RESERVE, FETCH,  OVER  },
    {DV_CLAIM_PREPARE,       RESERVE, dv_claim_prepare_reserve,  HOLD,    AWAIT,  OVER  },
    {DV_CLAIM_PREPARE,       HOLD,    dv_claim_prepare_hold,     RECORD,  RECORD, OVER  },
    {DV_CLAIM_PREPARE,       RECORD,  record,                    CALL,    CALL,   OVER  },
    {DV_CLAIM_PREPARE,       CALL,    dv_claim_prepare_call,     ANSWER,  ANSWER, ANSWER},
    {DV_CLAIM_PREPARE,       ANSWER,  dv_claim_prepare_answer,   STORE,   STORE,  OVER  },
    {DV_CLAIM_PREPARE,       STORE,   store,                     OVER,    OVER,   OVER  },

    {DV_CLAIM_PREPARE_AGAIN, AWAIT,   dv_claim_again_await,      HOLD,    HOLD,   OVER  },
    {DV_CLAIM_PREPARE_AGAIN, HOLD,    dv_claim_again_hold,       RECORD,  RECORD, OVER  },
    {DV_CLAIM_PREPARE_AGAIN, RECORD,  record,                    CALL,    CALL,   OVER  },
    {DV_CLAIM_PREPARE_AGAIN, CALL,    dv_claim_prepare_call,     ANSWER,  ANSWER, ANSWER},
    {DV_CLAIM_PREPARE_AGAIN, ANSWER,  dv_claim_prepare_answer,   STORE,   STORE,  OVER  },
    {DV_CLAIM_PREPARE_AGAIN, STORE,   store,                     OVER,    OVER,   OVER  },

    {DV_CLAIM_UNPREPARE,     LIST,    dv_claim_unprepare_list,   AWAIT,   AWAIT,  OVER  },
    {DV_CLAIM_UNPREPARE,     AWAIT,   dv_claim_unprepare_await,  HOLD,    HOLD,   OVER  },
    {DV_CLAIM_UNPREPARE,     HOLD,    dv_claim_unprepare_hold,   RECORD,  RECORD, OVER  },
    {DV_CLAIM_UNPREPARE,     RECORD,  record,                    CALL,    CALL,   OVER  },
    {DV_CLAIM_UNPREPARE,     CALL,    dv_claim_call_drivers,     ANSWER,  ANSWER, ANSWER},
    {DV_CLAIM_UNPREPARE,     ANSWER,  dv_claim_unprepare_answer, STORE,   STORE,  STORE },
    {DV_CLAIM_UNPREPARE,     STORE,   store,                     OVER,    OVER,   OVER  },

    {DV_CLAIM_RELEASE,       LIST,    dv_claim_release_list,     AWAIT,   AWAIT,  OVER  },
    {DV_CLAIM_RELEASE,       AWAIT,   dv_claim_release_await,    HOLD,    HOLD,   OVER  },
    {DV_CLAIM_RELEASE,       HOLD,    dv_claim_unprepare_hold,   RECORD,  RECORD, OVER  },
    {DV_CLAIM_RELEASE,       RECORD,  record,                    ANSWER,  ANSWER, OVER  },
    {DV_CLAIM_RELEASE,       ANSWER,  dv_claim_unprepare_answer, STORE,   STORE,  STORE },
    {DV_CLAIM_RELEASE,       STORE,   store,                     OVER,    OVER,   OVER  },
};

/* Which steps begin in a turn of their own when a pod has so many claims that all steps together
 * would keep others waiting. HOLD follows AWAIT at once: what was looked at is still so. */
static const bool begins_a_turn[OVER + 1] = {[FETCH] = true,  [CHECK] = true,  [AWAIT] = true,
                                             [RECORD] = true, [ANSWER] = true, [STORE] = true};

/* How a step that takes time is ended early. A step without a function is not ended: what is being
 * written is written. */
static void (*const cancels[OVER + 1])(struct dv_claim_operation *operation) = {
    [FETCH] = dv_claim_prepare_cancel_fetch,
    [AWAIT] = dv_claim_stop_waiting,
    [CALL] = dv_claim_cancel_calls,
};

static const struct {
    const char *name;   /* in errors */
    const char *metric; /* the label operation_name; NULL: it is not counted */
    bool is_prepare;
} kinds[] = {
    [DV_CLAIM_PREPARE] = {"prepare dynamic resources",   "PrepareResources",   true },
    [DV_CLAIM_PREPARE_AGAIN] = {"prepare dynamic resources",   NULL,                 true },
    [DV_CLAIM_UNPREPARE] = {"unprepare dynamic resources", "UnprepareResources", false},
    [DV_CLAIM_RELEASE] = {"release",                     NULL,                 false},
};

static const struct dv_claim_step *first_step(enum dv_claim_operation_kind kind)
{
    const struct dv_claim_step *step = steps;

    while (step->kind != kind)
        step++;
    return step;
}

static const struct dv_claim_step *find_step(enum dv_claim_operation_kind kind, enum step name)
{
    const struct dv_claim_step *step = first_step(kind);

    while (step->step != name) {
        step++;
        assert(step < steps + DV_COUNT(steps) && step->kind == kind);
    }
    return step;
}

bool dv_claim_operation_is_prepare(const struct dv_claim_operation *operation)
{
    return kinds[operation->priv.kind].is_prepare;
}

bool dv_claim_operation_is_waiting(const struct dv_claim_operation *operation)
{
    return operation->priv.step->step == AWAIT && operation->awaited[0];
}

/* ---- the end ---- */

static void tell_ended(const struct dv_claim_operation *operation, bool is_error)
{
    const struct dv_claim_manager *claims = operation->priv.claims;
    const char *metric = kinds[operation->priv.kind].metric;

    if (claims->options.operation_ended && !operation->priv.is_chore && metric)
        claims->options.operation_ended(claims->options.ctx, metric, is_error,
                                        dv_loop_now_ns(claims->loop) - operation->priv.start_ns);
}

/* Ends the operation with priv.end. The caller may have freed it when this returns. */
static void finish(struct dv_claim_operation *operation)
{
    struct dv_claim_manager *claims = operation->priv.claims;
    struct dv_err reason = operation->priv.end;
    bool is_error = reason.code != DV_OK;

    if (is_error)
        (void)dv_wrap(&reason, "%s", kinds[operation->priv.kind].name);
    for (size_t i = 0; i < operation->priv.n_jobs; i++) {
        dv_claim_let_go(&operation->priv.jobs[i]);
        dv_object_unref(operation->priv.jobs[i].object);
    }
    for (size_t i = 0; i < operation->priv.n_batches; i++)
        dv_claim_batch_fini(&operation->priv.batches[i]);
    dv_map_fini(&operation->priv.by_driver);
    dv_timer_cancel(&operation->priv.timer);
    dv_task_cancel(&operation->priv.task);
    dv_link_remove(&operation->priv.waiting);
    dv_link_remove(&operation->priv.link);
    dv_arena_free(operation->priv.arena);
    operation->priv.arena = NULL;
    tell_ended(operation, is_error);
    dv_saver_later(&claims->saver); /* writes what changed although the operation failed */
    dv_claim_manager_tell_changed(claims);
    dv_claim_manager_check_closed(claims);
    operation->done(operation, is_error ? &reason : NULL); /* last: it may free the operation */
}

/* ---- from step to step ---- */

/* Goes to the step that the table has after this one; false: there is none. */
static bool advance(struct dv_claim_operation *operation)
{
    const struct dv_claim_step *step = operation->priv.step;
    bool has_waited = operation->priv.has_waited;
    enum step next = operation->priv.end.code != DV_OK ? step->on_failure
                     : has_waited                      ? step->after_waiting
                                                       : step->then;

    operation->priv.has_waited = false;
    if (next == OVER)
        return false;
    operation->priv.step = find_step(operation->priv.kind, next);
    return true;
}

static void run(struct dv_claim_operation *operation);

static void on_next_turn(struct dv_task *task)
{
    struct dv_claim_operation *operation = DV_CONTAINER(task, struct dv_claim_operation, priv.task);

    if (operation->priv.end.code != DV_OK && operation->priv.step->step < CALL)
        finish(operation); /* it was cancelled, and no driver was called */
    else
        run(operation);
}

enum dv_claim_progress dv_claim_go_on_next_turn(struct dv_claim_operation *operation)
{
    dv_task_post_next_turn(&operation->priv.task, operation->priv.claims->loop, on_next_turn);
    return DV_CLAIM_STEP_GOES_ON;
}

/* Whether the step is left to the next turn. */
static bool is_put_off(struct dv_claim_operation *operation)
{
    if (operation->priv.n_jobs <= DV_CLAIM_JOBS_PER_TURN ||
        !begins_a_turn[operation->priv.step->step])
        return false;
    (void)dv_claim_go_on_next_turn(operation);
    return true;
}

/* Runs steps until one takes time, or the operation is over. */
static void run(struct dv_claim_operation *operation)
{
    do {
        struct dv_err err;

        switch (operation->priv.step->run(operation, &err)) {
        case DV_CLAIM_STEP_IS_DONE:
            break;
        case DV_CLAIM_STEP_FAILED:
            operation->priv.end = err;
            break;
        case DV_CLAIM_STEP_GOES_ON:
            return;
        case DV_CLAIM_STEP_WAS_LAST:
            finish(operation);
            return;
        }
        if (!advance(operation)) {
            finish(operation);
            return;
        }
    } while (!is_put_off(operation));
}

static void clear_awaited(struct dv_claim_operation *operation)
{
    operation->awaited[0] = '\0';
    operation->is_brief = false;
    dv_timer_cancel(&operation->priv.timer);
}

void dv_claim_step_ended(struct dv_claim_operation *operation, const struct dv_err *err)
{
    clear_awaited(operation);
    if (err)
        operation->priv.end = *err;
    if (!advance(operation))
        finish(operation);
    else if (!is_put_off(operation))
        run(operation);
}

static void on_task(struct dv_task *task)
{
    struct dv_claim_operation *operation = DV_CONTAINER(task, struct dv_claim_operation, priv.task);

    if (operation->priv.end.code != DV_OK) {
        finish(operation); /* it was cancelled before it began, or while it waited */
        return;
    }
    clear_awaited(operation);
    run(operation);
}

/* ---- on the disk ---- */

static void end_save(struct dv_claim_operation *operation, const struct dv_err *err,
                     const char *what)
{
    struct dv_err reason;

    if (err) {
        reason = *err;
        (void)dv_wrap(&reason, "checkpoint ResourceClaim %s", what);
    }
    dv_claim_step_ended(operation, err ? &reason : NULL);
}

static void on_recorded(struct dv_save *save, const struct dv_err *err)
{
    end_save(DV_CONTAINER(save, struct dv_claim_operation, priv.save), err, "cache");
}

static void on_stored(struct dv_save *save, const struct dv_err *err)
{
    end_save(DV_CONTAINER(save, struct dv_claim_operation, priv.save), err, "state");
}

static enum dv_claim_progress save(struct dv_claim_operation *operation,
                                   void (*done)(struct dv_save *save, const struct dv_err *err))
{
    operation->priv.save.done = done;
    dv_claim_manager_save(operation->priv.claims, &operation->priv.save);
    dv_claim_manager_tell_changed(operation->priv.claims);
    return DV_CLAIM_STEP_GOES_ON;
}

static enum dv_claim_progress record(struct dv_claim_operation *operation, struct dv_err *err)
{
    (void)err; /* on_recorded gets the error */
    return save(operation, on_recorded);
}

static enum dv_claim_progress store(struct dv_claim_operation *operation, struct dv_err *err)
{
    (void)err; /* on_stored gets the error */
    return save(operation, on_stored);
}

/* ---- the beginning ---- */

void dv_claim_operation_init(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                             enum dv_claim_operation_kind kind)
{
    assert(operation->done);
    memset(&operation->priv, 0, sizeof(operation->priv));
    operation->awaited[0] = '\0';
    operation->is_brief = operation->has_asked = false;
    operation->priv.claims = claims;
    operation->priv.kind = kind;
    operation->priv.step = first_step(kind);
    operation->priv.arena = dv_arena_new();
    dv_map_init(&operation->priv.by_driver);
    operation->priv.start_ns = dv_loop_now_ns(claims->loop);
    operation->priv.wait_until_ms =
        dv_loop_now_ms(claims->loop) + (claims->options.is_strict ? 0 : operation->wait_ms);
    if (operation->priv.wait_until_ms < operation->wait_ms && !claims->options.is_strict)
        operation->priv.wait_until_ms = UINT64_MAX;
    dv_list_push(&claims->operations, &operation->priv.link);
    if (claims->is_closing)
        (void)dv_fail(&operation->priv.end, DV_CANCELLED, "davitd is stopping");
}

void dv_claim_operation_set_jobs(struct dv_claim_operation *operation, size_t n_jobs)
{
    operation->priv.jobs = DV_NEW_ARRAY(operation->priv.arena, struct dv_claim_job, n_jobs);
    operation->priv.n_jobs = n_jobs;
    for (size_t i = 0; i < n_jobs; i++)
        operation->priv.jobs[i].operation = operation;
}

void dv_claim_job_set(struct dv_claim_job *job, dv_str namespace, dv_str name, dv_str uid)
{
    struct dv_arena *arena = job->operation->priv.arena;

    job->namespace = dv_str_copy(namespace, arena);
    job->name = dv_str_copy(name, arena);
    job->uid = dv_str_copy(uid, arena);
}

void dv_claim_operation_start(struct dv_claim_operation *operation)
{
    dv_task_post(&operation->priv.task, operation->priv.claims->loop, on_task);
}

void dv_claim_manager_cancel(struct dv_claim_operation *operation)
{
    enum step step;

    if (!operation->priv.arena || operation->priv.end.code != DV_OK)
        return; /* it has not begun, or is over or cancelled already */
    step = operation->priv.step->step;
    if (step == STORE)
        return; /* the drivers have answered: their answers are stored first */
    (void)dv_fail(&operation->priv.end, DV_CANCELLED, "cancelled");
    if (cancels[step])
        cancels[step](operation);
}
