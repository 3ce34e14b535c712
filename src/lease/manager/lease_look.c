/* lease_look.c - the queue at work: who waits, what is free for them, who goes, what they are told.
 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "lease/state/lease_queue.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/sched.h"

/* Those who wait are told how they stand every so often, so many at a time: a thousand cost the
 * loop about a millisecond a second. */
#define TELL_MS 1000u
#define TOLD_MAX 64u
/* How often the allocator is asked in one turn; one question may take milliseconds. */
#define ASKED_MAX 4u
/* For how many in one turn it is counted what is free of a class. */
#define COUNTED_MAX 4u
/* One that does not wait has this long to get an answer from the allocator. */
#define NOT_AT_ALL_MS 2000u
/* How many go in one turn. */
#define WENT_MAX 64u
/* One that was refused is tried again after such a pause. */
#define REFUSED_FIRST_MS 500u
#define REFUSED_MAX_MS 30000u
#define JITTER_PER_MILLE 200u

/* ---- who may go ---- */

static bool is_barred(const struct dv_lease_item *item)
{
    const struct dv_lease *lease =
        (const struct dv_lease *)(const void *)((const char *)item -
                                                offsetof(struct dv_lease, item));

    return dv_timer_is_set(&lease->pause_timer) || dv_lease_find_exceeded(lease);
}

/* ---- what is free ---- */

/* What leases that are being taken will get of the resource, and have not yet. */
static uint64_t promised(const struct dv_leases *leases, dv_str resource)
{
    struct dv_link *link;
    uint64_t n = 0;

    /* the newest are last, and few are being taken at a time */
    for (link = leases->held.head.prev; link != &leases->held.head; link = link->prev) {
        const struct dv_lease *lease = DV_CONTAINER(link, struct dv_lease, link);

        if (lease->is_granted)
            continue;
        for (size_t i = 0; i < lease->spec.n_resources; i++)
            if (dv_str_eq(lease->spec.resources[i].name, resource))
                n += lease->spec.resources[i].n;
    }
    return n;
}

static uint64_t free_of(const struct dv_leases *leases, dv_str resource)
{
    struct dv_device_resource_info info;

    if (!dv_device_find(dv_device_manager_state(leases->options.devices), resource, &info))
        return 0;
    return info.n_free;
}

static void set_free(struct dv_leases *leases)
{
    for (size_t i = 0; i < leases->queue.pools.n; i++) {
        struct dv_lease_pool *pool = leases->queue.pools.v[i];
        uint64_t n_free = pool->is_asked ? 0 : free_of(leases, pool->name);
        uint64_t n_promised = pool->is_asked ? 0 : promised(leases, pool->name);

        pool->n_free = n_free - dv_u64_min(n_free, n_promised);
    }
}

/* ---- a look ---- */

struct looking {
    size_t n_asked;
    size_t n_went;
    bool is_cut;         /* there is more to be asked than in one turn */
    bool is_undecided;   /* somebody could not be told yes or no */
    struct dv_list went; /* by `link`, which is free while a lease waits */
    struct dv_list failed;
};

/* Asks the scheduler's inventory for the devices of classes. */
static bool has_devices(struct dv_leases *leases, struct dv_lease *lease, struct looking *looking)
{
    struct dv_api_allocation_result found;
    struct dv_err err;

    if (lease->spec.n_devices == 0)
        return true;
    if (!leases->sched)
        return false;
    /* What was refused since devices last became free is refused still. It is not asked for again,
     * so that those behind come to be asked for, however many there are. */
    if (lease->refused_at == leases->n_changes)
        return false;
    if (looking->n_asked++ >= ASKED_MAX) {
        looking->is_cut = looking->is_undecided = true;
        return false;
    }
    if (!lease->claim && !dv_lease_make_claim(lease, &err)) {
        lease->failure = err;
        return false;
    }
    switch (dv_sched_hold(leases->sched, leases->options.node_name, lease->claim,
                          lease->claim_arena, &found, &err)) {
    case DV_SCHED_HELD:
        lease->allocation = DV_NEW(lease->claim_arena, struct dv_api_allocation_result);
        dv_message_copy(&dv_message_allocation_result, &found, lease->claim_arena,
                        lease->allocation);
        return true;
    case DV_SCHED_NEVER:
        lease->failure = err;
        return false;
    case DV_SCHED_NOT_NOW:
        lease->refused_at = leases->n_changes;
        dv_lease_set_awaited(lease, "%s", err.msg);
        break;
    case DV_SCHED_BUSY: /* it is told when that is over */
        looking->is_undecided = true;
        dv_lease_set_awaited(lease, "%s", err.msg);
        break;
    }
    return false;
}

static void walk(struct dv_leases *leases, struct looking *looking)
{
    struct dv_lease_walk walking;
    struct dv_lease_item *item;

    dv_lease_walk_begin(&walking, &leases->queue);
    walking.bars = is_barred;
    while ((item = dv_lease_walk_next(&walking))) {
        struct dv_lease *lease = DV_CONTAINER(item, struct dv_lease, item);
        bool goes = looking->n_went < WENT_MAX &&
                    leases->n_held + looking->n_went < DV_LEASES_MAX &&
                    has_devices(leases, lease, looking);

        dv_lease_walk_tell(&walking, item, goes);
        if (goes) {
            looking->n_went++;
            /* at once: the user's next request in the same walk is judged by it */
            dv_list_push(&lease->user->held, &lease->of_user);
            dv_list_push(&looking->went, &lease->link);
        } else if (lease->failure.code != DV_OK) {
            dv_list_push(&looking->failed, &lease->link);
        }
    }
}

static void end_waiting(struct dv_lease *lease, const char *when);

/* Ends those who do not wait and were kept until all were asked for. */
static void end_kept(struct dv_leases *leases)
{
    struct dv_list all;
    struct dv_link *link;

    dv_list_init(&all);
    for (size_t i = 0; i < leases->queue.items.n; i++) {
        struct dv_lease *lease = DV_CONTAINER(leases->queue.items.v[i], struct dv_lease, item);

        if (lease->is_kept)
            dv_list_push(&all, &lease->link);
    }
    leases->n_kept = 0;
    while ((link = dv_list_shift(&all)))
        end_waiting(DV_CONTAINER(link, struct dv_lease, link), "");
}

static void look(struct dv_leases *leases)
{
    struct looking looking = {0};
    struct dv_link *link;

    if (leases->is_closing || !leases->is_started || leases->queue.items.n == 0)
        return;
    dv_list_init(&looking.went);
    dv_list_init(&looking.failed);
    set_free(leases);
    walk(leases, &looking);
    while ((link = dv_list_shift(&looking.failed))) {
        struct dv_lease *lease = DV_CONTAINER(link, struct dv_lease, link);
        struct dv_err err = lease->failure;

        lease->failure = (struct dv_err){0};
        dv_lease_give_up(lease, err.code, err.msg);
    }
    while ((link = dv_list_shift(&looking.went)))
        dv_lease_begin(DV_CONTAINER(link, struct dv_lease, link));
    leases->is_undecided = looking.is_undecided;
    if (looking.n_went >= WENT_MAX || looking.is_cut)
        dv_leases_look_soon(leases);
    if (leases->n_kept > 0 && !looking.is_undecided)
        end_kept(leases);
}

static void on_look(struct dv_task *task)
{
    look(DV_CONTAINER(task, struct dv_leases, look_task));
}

static void on_tell(struct dv_timer *timer);

static void tell_later(struct dv_leases *leases)
{
    if (!dv_timer_is_set(&leases->tell_timer) && leases->queue.items.n > 0 && !leases->is_closing)
        dv_timer_start(&leases->tell_timer, leases->loop, dv_loop_now_ms(leases->loop) + TELL_MS,
                       on_tell);
}

void dv_leases_look_again(struct dv_leases *leases)
{
    leases->n_changes++;
    dv_leases_look_soon(leases);
}

void dv_leases_look_soon(struct dv_leases *leases)
{
    leases->version++;
    if (leases->is_closing)
        return;
    dv_task_post_next_turn(&leases->look_task, leases->loop, on_look);
    tell_later(leases);
}

/* Finds out how many devices of its first class it could have. */
static void count_free(struct dv_lease *lease)
{
    const struct dv_leases *leases = lease->leases;

    lease->has_count =
        lease->claim && leases->sched &&
        dv_sched_count_free(leases->sched, leases->options.node_name, lease->claim, &lease->n_free);
}

/* One that is over its user's quota waits for that user, whatever is free. */
static void say_exceeded(struct dv_lease *lease)
{
    const struct dv_lease_quota *quota = dv_lease_find_exceeded(lease);

    if (quota && !dv_timer_is_set(&lease->pause_timer))
        dv_lease_set_awaited(lease,
                             "the end of another lease of user %.*s: rule %.*s allows %" PRIu64
                             " devices at once",
                             DV_FMT(lease->spec.user_name), DV_FMT(quota->rule), quota->n_max);
}

/* Tells one how it stands. */
static void tell_one(struct dv_lease *lease, size_t *n_counted)
{
    lease->told_version = lease->leases->version;
    lease->has_count = false;
    if (lease->spec.n_devices > 0 && (*n_counted)++ < COUNTED_MAX)
        count_free(lease);
    say_exceeded(lease);
    dv_lease_tell(lease, DV_LEASE_WAITS);
}

/* Tells some of those who wait, and the others when it is their turn to be told. */
static void tell_waiting(struct dv_leases *leases)
{
    size_t n = dv_size_min(leases->queue.items.n, TOLD_MAX);
    bool is_behind = false;
    size_t n_counted = 0;

    for (size_t i = 0; i < n && leases->queue.items.n > 0; i++) {
        struct dv_lease *lease;

        if (leases->tell_at >= leases->queue.items.n)
            leases->tell_at = 0;
        lease = DV_CONTAINER(leases->queue.items.v[leases->tell_at++], struct dv_lease, item);
        if (lease->told_version == leases->version)
            continue;
        is_behind = true;
        tell_one(lease, &n_counted);
    }
    if (is_behind || leases->queue.items.n > TOLD_MAX)
        tell_later(leases);
}

static void on_tell(struct dv_timer *timer)
{
    struct dv_leases *leases = DV_CONTAINER(timer, struct dv_leases, tell_timer);

    tell_waiting(leases);
}

/* ---- in and out ---- */

/* Ends what waits no longer, and says for what it would have to. */
static void end_waiting(struct dv_lease *lease, const char *when)
{
    struct dv_lease_shortage shortage;
    struct dv_err err;

    count_free(lease);
    say_exceeded(lease);
    dv_lease_get_shortage(lease, &shortage);
    if (shortage.name.n == 0)
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED, "it would have to wait for %.*s%s",
                      DV_FMT(lease->awaited), when);
    else if (!shortage.has_count)
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED,
                      "not all of the %" PRIu64 " wanted %.*s are free%s", shortage.n_wanted,
                      DV_FMT(shortage.name), when);
    else
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED,
                      "%" PRIu64 " of %" PRIu64 " wanted %.*s are free%s%s", shortage.n_free,
                      shortage.n_wanted, DV_FMT(shortage.name),
                      shortage.n_free >= shortage.n_wanted ? ", but others come before" : "", when);
    dv_lease_give_up(lease, err.code, err.msg);
}

static void on_patience_over(struct dv_timer *timer)
{
    end_waiting(DV_CONTAINER(timer, struct dv_lease, wait_timer), ", and the wait is over");
}

static void on_entered(struct dv_task *task)
{
    struct dv_lease *lease = DV_CONTAINER(task, struct dv_lease, task);
    struct dv_leases *leases = lease->leases;
    size_t n_counted = 0;

    /* It is told that it waits only when it does not go at once. */
    if (lease->step || lease->failure.code != DV_OK)
        return;
    lease->is_kept = lease->is_impatient && lease->spec.n_devices > 0 && leases->is_undecided;
    if (lease->is_kept)
        leases->n_kept++;
    else if (lease->is_impatient)
        end_waiting(lease, "");
    else
        tell_one(lease, &n_counted);
}

void dv_leases_enter(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;

    lease->failure = (struct dv_err){0};
    lease->awaited = DV_STR("");
    lease->refused_at = 0;
    lease->user->n_waiting++;
    dv_lease_queue_add(&leases->queue, &lease->item);
    dv_leases_tell_changed(leases);
    dv_leases_look_soon(leases);
    dv_task_post_next_turn(&lease->task, leases->loop, on_entered);
}

static void on_pause_over(struct dv_timer *timer)
{
    dv_leases_look_soon(DV_CONTAINER(timer, struct dv_lease, pause_timer)->leases);
}

void dv_leases_enter_again(struct dv_lease *lease)
{
    struct dv_loop *loop = lease->leases->loop;
    uint64_t pause_ms =
        dv_u64_min((uint64_t)REFUSED_FIRST_MS << dv_u64_min(lease->n_refusals, 8), REFUSED_MAX_MS);

    struct dv_err why = lease->failure;

    lease->n_refusals++;
    dv_timer_start(&lease->pause_timer, loop,
                   dv_loop_now_ms(loop) + dv_jitter(pause_ms, JITTER_PER_MILLE), on_pause_over);
    dv_lease_drop_claim(lease); /* as the API had it: the next one is made anew */
    dv_leases_enter(lease);
    dv_lease_set_awaited(lease, "plugins and drivers: %s", why.msg);
}

void dv_lease_arm_patience(struct dv_lease *lease, uint64_t wait_ms)
{
    struct dv_loop *loop = lease->leases->loop;

    lease->is_impatient = wait_ms == 0;
    if (wait_ms != UINT64_MAX)
        dv_timer_start(
            &lease->wait_timer, loop,
            dv_u64_add_clamped(dv_loop_now_ms(loop), wait_ms > 0 ? wait_ms : NOT_AT_ALL_MS),
            on_patience_over);
}

/* ---- why it waits ---- */

void dv_lease_get_shortage(const struct dv_lease *lease, struct dv_lease_shortage *shortage)
{
    const struct dv_lease_spec *spec = &lease->spec;

    *shortage = (struct dv_lease_shortage){.name = DV_STR("")};
    if (dv_timer_is_set(&lease->pause_timer) || dv_lease_find_exceeded(lease))
        return; /* `awaited` tells */
    for (size_t i = 0; i < spec->n_resources; i++) {
        uint64_t n_free = free_of(lease->leases, spec->resources[i].name);

        if (n_free >= spec->resources[i].n)
            continue;
        *shortage = (struct dv_lease_shortage){.name = spec->resources[i].name,
                                               .n_wanted = spec->resources[i].n,
                                               .has_count = true,
                                               .n_free = n_free};
        return;
    }
    if (spec->n_devices > 0)
        *shortage = (struct dv_lease_shortage){.name = spec->devices[0].class,
                                               .is_class = true,
                                               .n_wanted = spec->devices[0].n,
                                               .has_count = lease->has_count,
                                               .n_free = lease->n_free};
    else if (spec->n_resources > 0) /* enough is free, and others come before */
        *shortage =
            (struct dv_lease_shortage){.name = spec->resources[0].name,
                                       .n_wanted = spec->resources[0].n,
                                       .has_count = true,
                                       .n_free = free_of(lease->leases, spec->resources[0].name)};
}
