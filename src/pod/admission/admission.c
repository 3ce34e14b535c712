/* admission.c - the life of a pod on this node: every step of an admission, a release and the start
 * of a container, and what follows it. What the steps do is in step_*.c.
 *
 *   admission
 *
 *     asked -> open, print
 *                |                                                               .--.
 *                v                                                               |  | more
 *              look -> begin -> align pod -> next container -> prepare -> check -> take -> save
 *              ^  |                             |     ^                             |        |
 *              |  | absent                 more |     | done                        |        v
 *              |  v                             v     |                             |    admitted
 *              wait <---- absent ---- align container, allocate                     |
 *                                                     | in use                      | in use
 *              look <------- done ------- evade <-----'-----------------------------'
 *
 *     what is not drawn goes to refused (with a verdict) or failed (without one), which undo all
 *
 *   release              asked -> open -> unprepare -> give back -> released
 *                                  |          |            |
 *                                  |          |            '------> not released
 *                                  '----------'-------------------> not here, not released
 *
 *   container's start    asked -> open -> prepare again -> find specs and plugins -> ask -> ready
 *                                  '------------'------------------'----------------'-> not ready
 *
 * Crash safety lies in the order. A pod is on the disk only when it has all it asked for, in one
 * transaction with its devices; claims write their intent themselves before a driver is called.
 * What a crash leaves before `save` belongs to no pod, and is given back at the next start. In a
 * release the claims are unprepared first: what a driver has prepared is in use until it says
 * otherwise. */
#include "pod/admission/admission.h"

#include <assert.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "loop/loop.h"
#include "pod/admission/pods.h"
#include "pod/pod.h"

enum step {
    NOWHERE, /* a step has no such outcome: the operation has a bug */

    ADMIT_ASKED,
    ADMIT_OPEN,
    PRINT,
    LOOK,
    WAIT,
    BEGIN,
    ALIGN_POD,
    NEXT_CONTAINER,
    ALIGN_CONTAINER,
    ALLOCATE,
    EVADE,
    PREPARE,
    CHECK,
    TAKE,
    SAVE,
    ADMITTED,
    REFUSED,
    FAILED,

    RELEASE_ASKED,
    RELEASE_OPEN,
    UNPREPARE,
    GIVE_BACK,
    RELEASED,
    NOT_HERE,
    NOT_RELEASED,

    START_ASKED,
    START_OPEN,
    PREPARE_AGAIN,
    FIND_SPECS,   /* the CDI names of what was prepared again can be found */
    FIND_PLUGINS, /* they have come since davitd started, where the caller needs that */
    PRE_START,    /* plugins are asked for PreStartContainer */
    READY,
    NOT_READY,
};

struct dv_pod_step {
    /* NULL: the operation has not begun */
    enum dv_pod_outcome (*does)(struct dv_pod_operation *op);
    /* NULL: a cancel comes too late, or too early, here */
    void (*cancel)(struct dv_pod_operation *op);
    /* the step that follows each outcome */
    enum step done, more, absent, in_use, refused, failed;
};

/* clang-format off */
static const struct dv_pod_step steps[] = {
    /* An admission. What it takes it gives back in REFUSED and FAILED (undo in step_end.c). */
    [ADMIT_ASKED]     = {.done = ADMIT_OPEN, .failed = FAILED, .cancel = dv_admit_cancel_wait},
    [ADMIT_OPEN]      = {.does = dv_admit_open,     .done = PRINT, .failed = FAILED},
    [PRINT]           = {.does = dv_admit_print,    .done = LOOK, .failed = FAILED,
                         .cancel = dv_admit_cancel_print},
    [LOOK]            = {.does = dv_admit_look,     .done = BEGIN, .absent = WAIT, .refused = REFUSED},
    [WAIT]            = {.does = dv_admit_wait,     .done = LOOK, .failed = FAILED,
                         .cancel = dv_admit_cancel_wait},
    [BEGIN]           = {.does = dv_admit_begin,    .done = ALIGN_POD},
    [ALIGN_POD]       = {.does = dv_admit_align_pod, .done = NEXT_CONTAINER, .refused = REFUSED},
    [NEXT_CONTAINER]  = {.does = dv_admit_next,     .more = ALIGN_CONTAINER, .done = PREPARE},
    [ALIGN_CONTAINER] = {.does = dv_admit_align_container, .done = ALLOCATE, .refused = REFUSED},
    [ALLOCATE]        = {.does = dv_admit_allocate, .done = NEXT_CONTAINER, .absent = WAIT,
                         .in_use = EVADE, .refused = REFUSED, .failed = FAILED,
                         .cancel = dv_admit_cancel_allocate},
    [EVADE]           = {.does = dv_admit_evade,    .done = LOOK, .refused = REFUSED},
    [PREPARE]         = {.does = dv_admit_prepare,  .done = CHECK, .refused = REFUSED, .failed = FAILED,
                         .cancel = dv_pod_operation_cancel_claims},
    [CHECK]           = {.does = dv_admit_check,    .done = TAKE, .refused = REFUSED},
    [TAKE]            = {.does = dv_admit_take,     .more = TAKE, .done = SAVE, .in_use = EVADE,
                         .failed = FAILED, .cancel = dv_admit_cancel_wait},
    [SAVE]            = {.does = dv_admit_save,     .done = ADMITTED, .failed = FAILED},
    [ADMITTED]        = {.does = dv_admit_end_admitted},
    [REFUSED]         = {.does = dv_admit_end_refused},
    [FAILED]          = {.does = dv_admit_end_failed},

    /* A release. When a step fails the pod stays admitted: NOT_RELEASED. */
    [RELEASE_ASKED]   = {.done = RELEASE_OPEN},
    [RELEASE_OPEN]    = {.does = dv_release_open,   .done = UNPREPARE, .absent = NOT_HERE,
                         .failed = NOT_RELEASED},
    [UNPREPARE]       = {.does = dv_release_unprepare, .done = GIVE_BACK, .absent = NOT_HERE,
                         .failed = NOT_RELEASED, .cancel = dv_pod_operation_cancel_claims},
    [GIVE_BACK]       = {.does = dv_release_give_back, .done = RELEASED, .failed = NOT_RELEASED},
    [RELEASED]        = {.does = dv_release_end_released},
    [NOT_HERE]        = {.does = dv_release_end_absent},
    [NOT_RELEASED]    = {.does = dv_release_end_failed},

    /* The start of a container. Whatever becomes of it, the pod keeps what it holds. */
    [START_ASKED]     = {.done = START_OPEN},
    [START_OPEN]      = {.does = dv_start_open,     .done = PREPARE_AGAIN, .failed = NOT_READY},
    [PREPARE_AGAIN]   = {.does = dv_start_prepare,  .done = FIND_SPECS, .failed = NOT_READY,
                         .cancel = dv_pod_operation_cancel_claims},
    [FIND_SPECS]      = {.does = dv_start_find_specs, .done = FIND_PLUGINS, .failed = NOT_READY},
    [FIND_PLUGINS]    = {.does = dv_start_find_plugins, .done = PRE_START, .failed = NOT_READY},
    [PRE_START]       = {.does = dv_start_ask_plugins, .done = READY, .failed = NOT_READY,
                         .cancel = dv_start_cancel_asking},
    [READY]           = {.does = dv_start_end_ready},
    [NOT_READY]       = {.does = dv_start_end_failed},
};
/* clang-format on */

static enum step next_of(const struct dv_pod_step *step, enum dv_pod_outcome outcome)
{
    switch (outcome) {
    case DV_STEP_PENDING:
        return NOWHERE;
    case DV_STEP_DONE:
        return step->done;
    case DV_STEP_MORE:
        return step->more;
    case DV_STEP_ABSENT:
        return step->absent;
    case DV_STEP_IN_USE:
        return step->in_use;
    case DV_STEP_REFUSED:
        return step->refused;
    case DV_STEP_FAILED:
        return step->failed;
    }
    return NOWHERE;
}

void dv_pod_operation_go(struct dv_pod_operation *op, enum dv_pod_outcome outcome)
{
    while (outcome != DV_STEP_PENDING) {
        enum step next = next_of(op->step, outcome);

        assert(next != NOWHERE);
        op->step = &steps[next];
        outcome = op->step->does(op); /* the last step may free `op`: the loop ends */
    }
}

static void on_posted(struct dv_task *task)
{
    struct dv_pod_operation *op = DV_CONTAINER(task, struct dv_pod_operation, task);

    dv_pod_operation_go(op, op->posted);
}

enum dv_pod_outcome dv_pod_operation_post(struct dv_pod_operation *op, enum dv_pod_outcome outcome)
{
    op->posted = outcome;
    dv_task_post(&op->task, op->pods->loop, on_posted);
    return DV_STEP_PENDING;
}

enum dv_pod_outcome dv_pod_operation_post_next_turn(struct dv_pod_operation *op,
                                                    enum dv_pod_outcome outcome)
{
    op->posted = outcome;
    dv_task_post_next_turn(&op->task, op->pods->loop, on_posted);
    return DV_STEP_PENDING;
}

static void begin(struct dv_pod_operation *op, struct dv_pods *pods, enum step asked)
{
    op->pods = pods;
    op->step = &steps[asked];
    pods->n_under_way++;
}

/* ---- admission ---- */

struct dv_pod_admission *dv_admission_of(struct dv_pod_operation *op)
{
    return DV_CONTAINER(op, struct dv_pod_admission, priv.op);
}

void dv_pods_admit(struct dv_pods *pods, struct dv_pod_admission *admission,
                   struct dv_pod_input *input, uint64_t wait_ms)
{
    assert(admission->done);
    memset(&admission->priv, 0, sizeof(admission->priv));
    admission->priv.input = input;
    admission->priv.wait_until_ms = dv_u64_add_clamped(
        dv_loop_now_ms(pods->loop), wait_ms == UINT64_MAX ? pods->options.wait_ms : wait_ms);
    admission->priv.start_ns = dv_loop_now_ns(pods->loop);
    begin(&admission->priv.op, pods, ADMIT_ASKED);
    if (pods->is_closing)
        (void)dv_fail(&admission->priv.op.err, DV_CANCELLED, "davitd is stopping");
    (void)dv_pod_operation_post(&admission->priv.op,
                                pods->is_closing ? DV_STEP_FAILED : DV_STEP_DONE);
}

/* Has the admission's step fail soon, with DV_CANCELLED and this text. */
static void give_up(struct dv_pod_admission *admission, const char *text)
{
    struct dv_pod_operation *op = &admission->priv.op;

    if (op->err.code != DV_OK || !op->step->cancel)
        /* the admission has failed already, or is being written, which nobody can take back */
        return;
    (void)dv_fail(&op->err, DV_CANCELLED, "%s", text);
    op->step->cancel(op);
}

void dv_pods_cancel(struct dv_pod_admission *admission)
{
    give_up(admission, "the admission was cancelled");
}

void dv_pods_cancel_waiting(struct dv_pods *pods)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    dv_list_move_all(&all, &pods->waiting);
    while ((link = dv_list_shift(&all)) != NULL)
        give_up(DV_CONTAINER(link, struct dv_pod_admission, priv.link), "davitd is stopping");
}

void dv_pods_look(struct dv_pods *pods)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    /* those that still wait put themselves back into the list */
    dv_list_move_all(&all, &pods->waiting);
    while ((link = dv_list_shift(&all)) != NULL)
        dv_pod_operation_go(&DV_CONTAINER(link, struct dv_pod_admission, priv.link)->priv.op,
                            DV_STEP_DONE);
}

/* ---- release ---- */

struct dv_pod_release *dv_release_of(struct dv_pod_operation *op)
{
    return DV_CONTAINER(op, struct dv_pod_release, priv.op);
}

void dv_pods_release(struct dv_pods *pods, struct dv_pod_release *release,
                     const struct dv_pod_ref *ref)
{
    memset(&release->priv, 0, sizeof(release->priv));
    release->priv.ref = ref;
    begin(&release->priv.op, pods, RELEASE_ASKED);
    dv_pod_operation_go(&release->priv.op, DV_STEP_DONE);
    /* the caller's ref ends here: a step that ends at once is posted and does not use it */
    release->priv.ref = NULL;
}

void dv_pods_cancel_release(struct dv_pod_release *release)
{
    if (release->priv.op.step->cancel)
        release->priv.op.step->cancel(&release->priv.op);
}

/* ---- start of a container ---- */

struct dv_pod_start *dv_start_of(struct dv_pod_operation *op)
{
    return DV_CONTAINER(op, struct dv_pod_start, priv.op);
}

void dv_pods_start_container(struct dv_pods *pods, struct dv_pod_start *start,
                             const struct dv_pod_ref *ref, dv_str container)
{
    memset(&start->priv, 0, sizeof(start->priv));
    start->priv.ref = ref;
    start->priv.container = container;
    begin(&start->priv.op, pods, START_ASKED);
    dv_pod_operation_go(&start->priv.op, DV_STEP_DONE);
    /* the caller's ref ends here: a step that ends at once is posted and does not use it */
    start->priv.ref = NULL;
    start->priv.container = DV_STR("");
}

void dv_pods_cancel_start(struct dv_pod_start *start)
{
    if (start->priv.op.step->cancel)
        start->priv.op.step->cancel(&start->priv.op);
}

void dv_pods_cancel_claims(struct dv_pods *pods)
{
    struct dv_link *link;

    DV_LIST_EACH (&pods->claim_ops, link)
        dv_claim_manager_cancel(&DV_CONTAINER(link, struct dv_pod_operation, link)->claims);
}
