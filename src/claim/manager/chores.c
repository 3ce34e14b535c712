/* chores.c - what is left over is finished: after a restart, after a reboot, and what pods that are
 * gone have left behind. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/num.h"
#include "base/vec.h"
#include "claim/manager/claim_manager_state.h"

#define PERIOD_MS 60000u
/* The first pause after drivers have refused. Many events make chores look again, and without a
 * pause each of them would be a call. */
#define PAUSE_FIRST_MS 1000u
#define PAUSE_MAX_MS (10u * PERIOD_MS)
#define PAUSE_JITTER_PER_MILLE 200u
/* How many chores run at the same time: enough to share writes of the disk, few enough for a driver
 * that has just come back. */
#define RUNNING_MAX 64u

enum chore_kind {
    UNPREPARE_POD,   /* the pod is gone */
    UNPREPARE_CLAIM, /* the claim has no pod, or was being unprepared */
    PREPARE_POD,     /* the pod is there, and its claims are not prepared */
};

struct dv_claim_chore_item {
    enum chore_kind kind;
    dv_str pod_uid;
    dv_str namespace;
    dv_str name;
    dv_str uid;
};

struct chore {
    struct dv_claim_operation operation;
    struct dv_link link;
    enum chore_kind kind;
};

static void pump(struct dv_claim_manager *claims);

/* ---- which there are ---- */

static bool are_drivers_there(const struct dv_claim_manager *claims, const struct dv_claim *claim)
{
    for (size_t i = 0; i < claim->record.n_drivers; i++)
        if (!dv_dra_is_usable(claims->drivers, claim->record.drivers[i].name))
            return false;
    return true;
}

void dv_claim_answered(struct dv_claim_manager *claims, struct dv_claim *claim, bool is_prepare,
                       const struct dv_err *err)
{
    struct dv_claim_pause *pause = &claim->pause;
    bool is_alike = pause->is_prepare == is_prepare;
    uint64_t length_ms = is_alike && pause->next_ms ? pause->next_ms : PAUSE_FIRST_MS;
    uint64_t now_ms = dv_loop_now_ms(claims->loop);
    uint64_t wake_ms = is_alike ? pause->wake_ms : 0;

    dv_claim_set_error(claim, err);
    if (!err) {
        *pause = (struct dv_claim_pause){0};
        return;
    }
    /* the drivers were asked before the pause was over, and have failed again */
    if (is_alike && now_ms < pause->until_ms)
        wake_ms = wake_ms ? dv_u64_min(wake_ms * 2, PERIOD_MS) : PAUSE_FIRST_MS;
    *pause = (struct dv_claim_pause){
        .is_prepare = is_prepare,
        .until_ms = now_ms + dv_jitter(length_ms, PAUSE_JITTER_PER_MILLE),
        .next_ms = dv_u64_min(length_ms * 2, PAUSE_MAX_MS),
        .epoch = dv_claim_epoch(claims, claim),
        .wake_at_ms = now_ms + wake_ms,
        .wake_ms = wake_ms,
    };
}

/* Whether the claim's drivers can be asked, and have not failed at the same just now. */
static bool is_time(const struct dv_claim_manager *claims, const struct dv_claim *claim,
                    bool is_prepare)
{
    uint64_t now_ms = dv_loop_now_ms(claims->loop);

    return are_drivers_there(claims, claim) &&
           (claim->pause.is_prepare != is_prepare || now_ms >= claim->pause.until_ms ||
            (now_ms >= claim->pause.wake_at_ms &&
             claim->pause.epoch != dv_claim_epoch(claims, claim)));
}

/* Finds out what can be done for the pod now. */
static bool look_at_pod(const struct dv_claim_manager *claims, dv_str uid, struct dv_arena *arena,
                        enum chore_kind *kind)
{
    bool is_wanted =
        !claims->options.is_wanted || claims->options.is_wanted(claims->options.ctx, uid);
    struct dv_claim **of_pod;
    size_t n = dv_claim_of_pod(claims->state, uid, arena, &of_pod);
    bool has_any = false;

    if (is_wanted && claims->options.is_admitted &&
        !claims->options.is_admitted(claims->options.ctx, uid))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool is_due = is_wanted ? of_pod[i]->is_left_over &&
                                      of_pod[i]->record.phase == DV_CLAIM_PREPARING &&
                                      of_pod[i]->n_holds == 0
                                : of_pod[i]->n_holds == 0;

        has_any |= is_due && is_time(claims, of_pod[i], is_wanted);
    }
    *kind = is_wanted ? PREPARE_POD : UNPREPARE_POD;
    return has_any;
}

static bool is_nobodys(const struct dv_claim *claim)
{
    return claim->n_holds == 0 &&
           (claim->record.n_pods == 0 ||
            (claim->is_left_over && claim->record.phase == DV_CLAIM_UNPREPARING));
}

static void gather(struct dv_claim_manager *claims)
{
    struct dv_claim_chores *chores = &claims->chores;
    struct dv_arena *arena = dv_arena_new();
    DV_VEC(struct dv_claim_chore_item) items = {0};
    const struct dv_claim *claim;
    enum chore_kind kind;
    dv_str *uids;
    size_t n = dv_claim_pods(claims->state, arena, &uids);

    for (size_t at = 0; (claim = dv_claim_next(claims->state, &at)) != NULL;)
        if (is_nobodys(claim) && is_time(claims, claim, false))
            *dv_vec_add_in(&items, arena) = (struct dv_claim_chore_item){
                .kind = UNPREPARE_CLAIM,
                .namespace = dv_str_copy(claim->record.namespace, arena),
                .name = dv_str_copy(claim->record.name, arena),
                .uid = dv_str_copy(claim->record.uid, arena),
            };
    for (size_t i = 0; i < n; i++)
        if (look_at_pod(claims, uids[i], arena, &kind))
            *dv_vec_add_in(&items, arena) =
                (struct dv_claim_chore_item){.kind = kind, .pod_uid = uids[i]};
    dv_arena_free(chores->arena);
    chores->arena = arena;
    chores->items = items.v;
    chores->n_items = items.n;
    chores->at = 0;
}

/* ---- doing them ---- */

static void on_done(struct dv_claim_operation *operation, const struct dv_err *err)
{
    struct chore *chore = DV_CONTAINER(operation, struct chore, operation);
    struct dv_claim_manager *claims = operation->priv.claims;

    if (err && err->code != DV_CANCELLED)
        dv_log(DV_LOG_WARN,
               chore->kind == PREPARE_POD ? "claim: cannot prepare again; trying later"
                                          : "claim: cannot unprepare what is left; trying later",
               DV_F_CODE(err), DV_F_ERR(err), DV_F_U64("retry_ms", PERIOD_MS));
    dv_link_remove(&chore->link);
    claims->chores.n_running--;
    free(chore);
    pump(claims);
    dv_claim_manager_check_closed(claims);
}

static void prepare_pod(struct dv_claim_manager *claims, struct dv_claim_operation *operation,
                        dv_str uid)
{
    struct dv_claim **of_pod;
    size_t n_jobs = 0;
    size_t n;

    dv_claim_operation_init(claims, operation, DV_CLAIM_PREPARE_AGAIN);
    operation->priv.pod_uid = dv_str_copy(uid, operation->priv.arena);
    n = dv_claim_of_pod(claims->state, uid, operation->priv.arena, &of_pod);
    dv_claim_operation_set_jobs(operation, n);
    for (size_t i = 0; i < n; i++) {
        const struct dv_claim_record *record = &of_pod[i]->record;

        if (of_pod[i]->is_left_over && record->phase == DV_CLAIM_PREPARING &&
            is_time(claims, of_pod[i], true))
            dv_claim_job_set(&operation->priv.jobs[n_jobs++], record->namespace, record->name,
                             record->uid);
    }
    operation->priv.n_jobs = n_jobs;
}

static void start(struct dv_claim_manager *claims, const struct dv_claim_chore_item *item)
{
    struct chore *chore = DV_ALLOC(struct chore);

    chore->kind = item->kind;
    chore->operation.done = on_done;
    dv_list_push(&claims->chores.running, &chore->link);
    claims->chores.n_running++;
    if (item->kind == UNPREPARE_POD) {
        dv_claim_manager_unprepare(claims, &chore->operation, item->pod_uid);
    } else if (item->kind == PREPARE_POD) {
        prepare_pod(claims, &chore->operation, item->pod_uid);
        dv_claim_operation_start(&chore->operation);
    } else {
        dv_claim_operation_init(claims, &chore->operation, DV_CLAIM_UNPREPARE);
        dv_claim_operation_set_jobs(&chore->operation, 1);
        chore->operation.priv.jobs[0].ignores_pods = true;
        dv_claim_job_set(&chore->operation.priv.jobs[0], item->namespace, item->name, item->uid);
        dv_claim_operation_start(&chore->operation);
    }
    chore->operation.priv.is_chore = true;
}

static void pump(struct dv_claim_manager *claims)
{
    struct dv_claim_chores *chores = &claims->chores;

    while (!claims->is_closing && chores->at < chores->n_items && chores->n_running < RUNNING_MAX)
        start(claims, &chores->items[chores->at++]);
    if (chores->is_asked && chores->n_running == 0 && chores->at == chores->n_items) {
        chores->is_asked = false;
        dv_claim_manager_reconcile(claims);
    }
}

static void on_look(struct dv_task *task)
{
    struct dv_claim_manager *claims = DV_CONTAINER(task, struct dv_claim_manager, chores.task);
    struct dv_claim_chores *chores = &claims->chores;

    if (chores->n_running > 0 || chores->at < chores->n_items) {
        chores->is_asked = true;
        return;
    }
    gather(claims);
    pump(claims);
}

void dv_claim_manager_reconcile(struct dv_claim_manager *claims)
{
    if (claims->chores.is_ready && !claims->is_closing)
        dv_task_post(&claims->chores.task, claims->loop, on_look);
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_claim_manager *claims = DV_CONTAINER(timer, struct dv_claim_manager, chores.timer);

    dv_claim_manager_reconcile(claims);
    dv_timer_start(timer, claims->loop, dv_loop_now_ms(claims->loop) + PERIOD_MS, on_timer);
}

void dv_claim_manager_set_ready(struct dv_claim_manager *claims)
{
    if (claims->chores.is_ready || claims->is_closing)
        return;
    claims->chores.is_ready = true;
    on_timer(&claims->chores.timer);
}

void dv_claim_chores_stop(struct dv_claim_manager *claims)
{
    dv_timer_cancel(&claims->chores.timer);
    dv_task_cancel(&claims->chores.task);
    claims->chores.at = claims->chores.n_items;
    claims->chores.is_asked = false;
}

bool dv_claim_chores_are_idle(const struct dv_claim_manager *claims)
{
    return claims->chores.n_running == 0;
}
