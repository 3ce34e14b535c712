/* lease_life.c - the life of a lease: every step, and what follows it. What the steps do is in
 * lease_steps.c and lease_claim.c.
 *
 *   its turn -> record -> create -> allocate -> admit -> start -> hold
 *                 |         |          |          |        |        | it ends
 *                 | failed  | failed   | failed   |        |        v
 *                 |         |          |          |        |      note -> signal
 *                 v         v          v          v        v                 v
 *                 '---------'----------'----------'--------'-------------> release
 *                                                                            |
 *                the queue, or gone <- forget <- delete <- unreserve <-------'
 *
 * The row is written first and removed last: a crash in between leaves a lease that is undone at
 * the next start, or held, if its pod was admitted. From `release` on a step that fails is tried
 * again after a pause, until it works: what a driver has prepared is in use until it says
 * otherwise. */
#include <assert.h>
#include <signal.h>

#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "loop/loop.h"
#include "pod/pod.h"

/* The owner is warned this long before the end; of a short lease a tenth of its time. */
#define WARNING_MS 60000u
/* A process that was killed is gone within this time, or hangs in the kernel: then its devices are
 * given back all the same. */
#define KILLED_MS 5000u
/* How often it is looked whether what the owner has started is still there. */
#define DESCENDANTS_MS 200u
#define PAUSE_FIRST_MS 500u
#define PAUSE_MAX_MS 30000u
#define JITTER_PER_MILLE 200u

enum step {
    NOWHERE,
    RECORD,
    CREATE,
    ALLOCATE,
    ADMIT,
    START,
    HOLD,
    NOTE,
    SIGNAL,
    RELEASE,
    UNRESERVE,
    DELETE,
    FORGET,
    OVER,
};

struct dv_lease_step {
    enum dv_lease_outcome (*does)(struct dv_lease *lease);
    enum step done;
    enum step failed;    /* where it is the step itself, that is tried again after a pause */
    const char *awaited; /* what people are told that the lease waits for */
};

static enum dv_lease_outcome hold(struct dv_lease *lease);
static enum dv_lease_outcome note(struct dv_lease *lease);
static enum dv_lease_outcome signal_owner(struct dv_lease *lease);
static enum dv_lease_outcome be_over(struct dv_lease *lease);

/* Columns: step, what is done in it; what follows, and after a failure; what it waits for. */
/* clang-format off */
static const struct dv_lease_step steps[] = {
    [RECORD]    = {dv_lease_step_record,    CREATE,    RELEASE,   "the disk"},
    [CREATE]    = {dv_lease_step_create,    ALLOCATE,  RELEASE,   "its claim"},
    [ALLOCATE]  = {dv_lease_step_allocate,  ADMIT,     RELEASE,   "its claim"},
    [ADMIT]     = {dv_lease_step_admit,     START,     RELEASE,   "plugins and drivers"},
    [START]     = {dv_lease_step_start,     HOLD,      RELEASE,   "plugins and drivers"},
    [HOLD]      = {hold,                    NOTE,      NOWHERE,   ""},
    [NOTE]      = {note,                    SIGNAL,    SIGNAL,    "the disk"},
    [SIGNAL]    = {signal_owner,            RELEASE,   RELEASE,   "the end of its owner"},
    [RELEASE]   = {dv_lease_step_release,   UNRESERVE, RELEASE,   "plugins and drivers"},
    [UNRESERVE] = {dv_lease_step_unreserve, DELETE,    UNRESERVE, "its claim"},
    [DELETE]    = {dv_lease_step_delete,    FORGET,    DELETE,    "its claim"},
    [FORGET]    = {dv_lease_step_forget,    OVER,      FORGET,    "the disk"},
    [OVER]      = {be_over,                 NOWHERE,   NOWHERE,   ""},
};
/* clang-format on */

static enum step step_of(const struct dv_lease *lease)
{
    return lease->step ? (enum step)(lease->step - steps) : NOWHERE;
}

bool dv_lease_is_held(const struct dv_lease *lease)
{
    return step_of(lease) == HOLD;
}

bool dv_lease_is_ending(const struct dv_lease *lease)
{
    return step_of(lease) >= NOTE;
}

/* ---- from step to step ---- */

static void on_pause_over(struct dv_timer *timer)
{
    struct dv_lease *lease = DV_CONTAINER(timer, struct dv_lease, pause_timer);

    dv_lease_go(lease, DV_LEASE_STEP_PENDING);
}

static void try_again_later(struct dv_lease *lease)
{
    uint64_t pause_ms =
        dv_u64_min((uint64_t)PAUSE_FIRST_MS << dv_u64_min(lease->n_pauses, 8), PAUSE_MAX_MS);

    lease->n_pauses++;
    dv_timer_start(&lease->pause_timer, lease->leases->loop,
                   dv_loop_now_ms(lease->leases->loop) + dv_jitter(pause_ms, JITTER_PER_MILLE),
                   on_pause_over);
}

/* Tells the outcome of the step where the lease is, and takes those that follow; PENDING tries the
 * step once more. While a step waits for its callback it counts as under way, but for `hold`. */
void dv_lease_go(struct dv_lease *lease, enum dv_lease_outcome outcome)
{
    struct dv_leases *leases = lease->leases;
    enum step at = step_of(lease);

    if (at != HOLD)
        leases->n_under_way--;
    for (;;) {
        enum step next = at;

        if (outcome == DV_LEASE_STEP_DONE) {
            next = steps[at].done;
            lease->n_pauses = 0;
        } else if (outcome == DV_LEASE_STEP_FAILED) {
            next = steps[at].failed;
        }
        assert(next != NOWHERE);
        if (leases->is_closing && next != OVER) {
            /* What is on the disk says how it goes on. */
            dv_leases_check_closed(leases);
            return;
        }
        if (next == at && outcome == DV_LEASE_STEP_FAILED) {
            leases->n_under_way++;
            try_again_later(lease);
            return;
        }
        at = next;
        lease->step = &steps[at];
        lease->awaited = dv_str_from_c(steps[at].awaited);
        outcome = steps[at].does(lease); /* the last one may free the lease */
        if (at == OVER)
            return;
        if (outcome == DV_LEASE_STEP_PENDING) {
            if (at != HOLD)
                leases->n_under_way++;
            return;
        }
    }
}

static void begin_at(struct dv_lease *lease, enum step at)
{
    lease->step = &steps[at];
    lease->leases->n_under_way++;
    dv_lease_go(lease, DV_LEASE_STEP_PENDING);
}

void dv_lease_begin(struct dv_lease *lease)
{
    lease->failure = (struct dv_err){0};
    lease->waits_again = false;
    begin_at(lease, RECORD);
}

/* ---- held ---- */

static uint64_t wall_ms(const struct dv_leases *leases)
{
    return dv_clock_wall_ns(dv_loop_clock(leases->loop)) / DV_NS_PER_MS;
}

static uint64_t warning_ms(const struct dv_lease *lease)
{
    uint64_t all_ms = lease->spec.ends_ms - lease->spec.since_ms;

    return lease->spec.ends_ms - dv_u64_min(WARNING_MS, all_ms / 10);
}

static void on_end_timer(struct dv_timer *timer)
{
    struct dv_lease *lease = DV_CONTAINER(timer, struct dv_lease, end_timer);
    uint64_t now_ms = wall_ms(lease->leases);

    if (step_of(lease) == SIGNAL) {
        if (lease->is_killed) {
            dv_lease_go(lease, DV_LEASE_STEP_DONE);
            return;
        }
        dv_lease_signal_owner(lease, SIGKILL);
        lease->is_killed = true;
        dv_timer_start(timer, lease->leases->loop, dv_loop_now_ms(lease->leases->loop) + KILLED_MS,
                       on_end_timer);
        return;
    }
    if (step_of(lease) != HOLD)
        return;
    if (now_ms >= lease->spec.ends_ms) {
        dv_lease_end(lease, "MaxTime", DV_STR("its time is over"), DV_STR(""));
        return;
    }
    if (now_ms >= warning_ms(lease))
        dv_lease_tell(lease, DV_LEASE_WARNS);
    dv_lease_arm_end(lease);
}

void dv_lease_arm_end(struct dv_lease *lease)
{
    struct dv_loop *loop = lease->leases->loop;
    uint64_t now_ms = wall_ms(lease->leases);
    uint64_t at_ms = lease->spec.ends_ms;

    dv_timer_cancel(&lease->end_timer);
    if (at_ms == 0)
        return;
    if (now_ms < warning_ms(lease))
        at_ms = warning_ms(lease);
    dv_timer_start(&lease->end_timer, loop,
                   dv_loop_now_ms(loop) + (at_ms > now_ms ? at_ms - now_ms : 0), on_end_timer);
}

static enum dv_lease_outcome hold(struct dv_lease *lease)
{
    dv_timer_cancel(&lease->wait_timer);
    lease->is_granted = true;
    dv_lease_watch_owner(lease);
    dv_lease_arm_end(lease);
    dv_leases_tell_changed(lease->leases);
    dv_log(DV_LOG_INFO, "lease: granted", DV_F_STR("lease", lease->spec.id),
           DV_F_U64("user", lease->spec.user));
    if (lease->failure.code != DV_OK) {
        /* Nobody waits for it any more: its caller left while it was being taken. */
        lease->spec.end =
            (struct dv_lease_end){DV_STR("Given"), DV_STR("nobody waited for it"), DV_STR("")};
        return DV_LEASE_STEP_DONE;
    }
    /* What it was promised is its own by now, and does not count twice any more. */
    dv_leases_look_soon(lease->leases);
    dv_lease_tell(lease, DV_LEASE_GRANTED);
    return DV_LEASE_STEP_PENDING;
}

void dv_lease_end(struct dv_lease *lease, const char *reason, dv_str message, dv_str by)
{
    if (step_of(lease) != HOLD)
        return;
    lease->spec.end = (struct dv_lease_end){
        dv_str_from_c(reason), dv_str_copy(message, lease->arena), dv_str_copy(by, lease->arena)};
    dv_log(DV_LOG_INFO, "lease: ends", DV_F_STR("lease", lease->spec.id),
           DV_F_U64("user", lease->spec.user), DV_F_C("reason", reason),
           DV_F_STR("message", message), DV_F_STR("by", by));
    dv_lease_go(lease, DV_LEASE_STEP_DONE);
}

/* ---- the end ---- */

static void on_noted(struct dv_save *save, const struct dv_err *err)
{
    /* A reason that could not be written is written with the next change. */
    dv_lease_go(DV_CONTAINER(save, struct dv_lease, save),
                err ? DV_LEASE_STEP_FAILED : DV_LEASE_STEP_DONE);
}

static bool is_given(const struct dv_lease *lease)
{
    return dv_str_eq(lease->spec.end.reason, DV_STR("Given"));
}

/* Has the reason written before anybody is signalled: an end that has begun goes on after a crash.
 */
static enum dv_lease_outcome note(struct dv_lease *lease)
{
    dv_timer_cancel(&lease->end_timer);
    dv_leases_tell_changed(lease->leases);
    /* That the owner has ended is found out again after a crash. Nobody is signalled for a lease
     * that is given back, and who gives it has no answer yet. */
    if (lease->owner_has_ended || is_given(lease))
        return DV_LEASE_STEP_DONE;
    dv_lease_mark_dirty(lease);
    lease->save = (struct dv_save){.done = on_noted};
    dv_saver_start(&lease->leases->saver, &lease->save);
    return DV_LEASE_STEP_PENDING;
}

static enum dv_lease_outcome signal_owner(struct dv_lease *lease)
{
    struct dv_loop *loop = lease->leases->loop;

    if (lease->owner_has_ended || is_given(lease))
        return DV_LEASE_STEP_DONE;
    dv_lease_signal_owner(lease, SIGTERM);
    lease->is_killed = false;
    dv_timer_start(&lease->end_timer, loop,
                   dv_loop_now_ms(loop) + lease->spec.grace_s * UINT64_C(1000), on_end_timer);
    return DV_LEASE_STEP_PENDING;
}

/* The row is gone: the lease goes back into the queue, or is over. */
static enum dv_lease_outcome be_over(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;

    lease->step = NULL;
    if (lease->waits_again && !leases->is_closing && !dv_list_is_empty(&lease->listeners)) {
        dv_leases_enter_again(lease);
        return DV_LEASE_STEP_DONE;
    }
    if (lease->is_granted)
        dv_lease_tell_last(lease, DV_LEASE_ENDED, NULL);
    else
        dv_lease_tell_last(lease, DV_LEASE_FAILED, &lease->failure);
    dv_lease_free(lease);
    dv_leases_tell_changed(leases);
    dv_leases_look_again(leases);
    dv_leases_check_closed(leases);
    return DV_LEASE_STEP_DONE;
}

void dv_lease_give_up(struct dv_lease *lease, enum dv_code code, const char *text)
{
    struct dv_leases *leases = lease->leases;

    if (lease->is_granted || lease->failure.code != DV_OK)
        return;
    (void)dv_fail(&lease->failure, code, "%s", text);
    lease->waits_again = false;
    if (lease->step) {
        if (step_of(lease) == ADMIT)
            dv_pods_cancel(&lease->admission);
        return; /* its step ends, and then it is undone */
    }
    dv_lease_queue_remove(&leases->queue, &lease->item);
    lease->user->n_waiting--;
    dv_lease_tell_last(lease, DV_LEASE_FAILED, &lease->failure);
    dv_lease_free(lease);
    dv_leases_tell_changed(leases);
    dv_leases_look_soon(leases);
}

static void on_descendants_look(struct dv_timer *timer)
{
    struct dv_lease *lease = DV_CONTAINER(timer, struct dv_lease, group_timer);
    struct dv_loop *loop = lease->leases->loop;

    if (step_of(lease) != SIGNAL)
        return;
    if (dv_lease_has_descendants(lease)) {
        dv_timer_start(timer, loop, dv_loop_now_ms(loop) + DESCENDANTS_MS, on_descendants_look);
        return;
    }
    dv_timer_cancel(&lease->end_timer);
    dv_lease_go(lease, DV_LEASE_STEP_DONE);
}

void dv_lease_owner_ended(struct dv_lease *lease)
{
    dv_lease_stop_watching(lease);
    lease->owner_has_ended = true;
    if (step_of(lease) == HOLD) {
        dv_lease_end(lease, "OwnerEnded", DV_STR(""), DV_STR(""));
    } else if (step_of(lease) == SIGNAL) {
        on_descendants_look(&lease->group_timer);
    }
}

void dv_lease_close(struct dv_lease *lease)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_UNAVAILABLE, "davitd is stopping");
    if (step_of(lease) == SIGNAL || (lease->step && dv_timer_is_set(&lease->pause_timer)))
        lease->leases->n_under_way--; /* what the step waits for does not come any more */
    dv_timer_cancel(&lease->wait_timer);
    dv_timer_cancel(&lease->end_timer);
    dv_timer_cancel(&lease->pause_timer);
    dv_lease_stop_watching(lease);
    if (step_of(lease) == ADMIT)
        dv_pods_cancel(&lease->admission);
    else if (step_of(lease) == RELEASE && lease->leases->n_under_way > 0)
        dv_pods_cancel_release(&lease->release);
    dv_lease_tell_last(lease, DV_LEASE_FAILED, &err);
}

/* ---- after a start of davitd ---- */

void dv_lease_go_on(struct dv_lease *lease)
{
    const struct dv_pod_ref ref = {.uid = lease->spec.uid};
    struct dv_pod_view view;
    bool is_admitted = dv_pods_find(lease->leases->options.pods, &ref, &view) && view.was_admitted;

    lease->is_granted = is_admitted;
    if (!is_admitted)
        (void)dv_fail(&lease->failure, DV_ABORTED, "davitd was started anew while it was taken");
    if (!is_admitted)
        begin_at(lease, RELEASE);
    else if (lease->spec.end.reason.n > 0) {
        dv_lease_watch_owner(lease);
        begin_at(lease, SIGNAL);
    } else {
        lease->step = &steps[HOLD];
        dv_lease_watch_owner(lease);
        dv_lease_arm_end(lease);
    }
}
