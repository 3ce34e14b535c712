/* lease_operations.c - what people do with leases that are there: give back, end, renew. */
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/visible.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "store/store_saver.h"

static void on_task(struct dv_task *task)
{
    struct dv_lease_operation *operation = DV_CONTAINER(task, struct dv_lease_operation, task);

    operation->done(operation, operation->err.code == DV_OK ? NULL : &operation->err);
}

/* Ends the operation, after the caller has returned; err->code DV_OK: it went well. */
static void finish(struct dv_lease_operation *operation)
{
    dv_task_post(&operation->task, operation->leases->loop, on_task);
}

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    struct dv_lease_operation *operation = DV_CONTAINER(save, struct dv_lease_operation, save);

    operation->done(operation, err);
}

/* Ends the operation when all that has changed is on the disk. */
static void finish_on_disk(struct dv_lease_operation *operation)
{
    operation->save = (struct dv_save){.done = on_saved};
    dv_saver_start(&operation->leases->saver, &operation->save);
}

static struct dv_lease *find(struct dv_leases *leases, struct dv_lease_operation *operation,
                             const struct dv_lease_caller *caller, dv_str id, bool needs_own)
{
    struct dv_lease *lease = dv_map_get(&leases->by_id, id);

    operation->leases = leases;
    (void)dv_succeed(&operation->err);
    if (!lease)
        (void)dv_fail(&operation->err, DV_NOT_FOUND,
                      "there is no lease \"%.*s\"; it may have ended",
                      DV_FMT(dv_str_slice(id, 0, 64)));
    else if (needs_own && !caller->is_root && lease->spec.user != caller->uid)
        (void)dv_fail(&operation->err, DV_PERMISSION_DENIED, "lease %.*s is that of user %.*s",
                      DV_FMT(id), DV_FMT(lease->spec.user_name));
    else
        return lease;
    finish(operation);
    return NULL;
}

void dv_leases_give(struct dv_leases *leases, struct dv_lease_operation *operation,
                    const struct dv_lease_caller *caller, dv_str id)
{
    struct dv_lease *lease = find(leases, operation, caller, id, true);

    if (!lease)
        return;
    if (!lease->is_granted) {
        dv_lease_give_up(lease, DV_CANCELLED, "it was given back before it was granted");
        finish(operation);
        return;
    }
    dv_list_push(&lease->givers, &operation->link);
    dv_lease_end(lease, "Given", DV_STR(""), DV_STR(""));
}

static bool may_end(struct dv_leases *leases, const struct dv_lease_caller *caller,
                    const struct dv_lease *lease, dv_str reason, struct dv_err *err)
{
    if (reason.n > DV_LEASE_REASON_BYTES_MAX || !dv_str_is_visible(reason))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the reason is longer than %u bytes, or no text",
                       DV_LEASE_REASON_BYTES_MAX);
    if (lease->spec.user == caller->uid)
        return true;
    if (!caller->is_root && !dv_guard_is_admin(leases->options.guard, caller->peer))
        return dv_fail(
            err, DV_PERMISSION_DENIED,
            "lease %.*s is that of user %.*s: only root and whom the policy makes an admin "
            "may end it",
            DV_FMT(lease->spec.id), DV_FMT(lease->spec.user_name));
    return reason.n > 0 || dv_fail(err, DV_INVALID_ARGUMENT,
                                   "to end another user's lease, say why: the reason is recorded");
}

void dv_leases_end(struct dv_leases *leases, struct dv_lease_operation *operation,
                   const struct dv_lease_caller *caller, dv_str id, dv_str reason)
{
    struct dv_lease *lease = find(leases, operation, caller, id, false);
    bool is_own = lease && lease->spec.user == caller->uid;
    char by[sizeof("user 4294967295")];

    if (!lease)
        return;
    if (!may_end(leases, caller, lease, reason, &operation->err)) {
        finish(operation);
        return;
    }
    (void)snprintf(by, sizeof(by), "user %u", caller->uid); /* it has room for every number */
    if (lease->is_granted)
        dv_lease_end(lease, is_own ? "EndedByUser" : "EndedByAdmin", reason, dv_str_from_c(by));
    else
        dv_lease_give_up(lease, DV_ABORTED, "it was ended before it was granted");
    finish_on_disk(operation);
}

/* Does what is asked for, in memory; false: nothing of it. */
static bool renew(struct dv_lease *lease, const struct dv_lease_caller *caller,
                  const struct dv_lease_renewal *renewal, struct dv_err *err)
{
    struct dv_leases *leases = lease->leases;
    uint64_t now_ms = dv_clock_wall_ns(dv_loop_clock(leases->loop)) / DV_NS_PER_MS;
    struct dv_arena *arena = dv_arena_new();
    struct dv_lease_owner owner;
    uint64_t ends_ms = 0;

    if ((!renewal->keeps_end &&
         !dv_lease_judge_renewal(lease, caller, now_ms, renewal->max_s, &ends_ms, err)) ||
        (renewal->owner &&
         !dv_lease_find_owner(leases, caller, renewal->owner, arena, &owner, err))) {
        dv_arena_free(arena);
        return false;
    }
    if (!renewal->keeps_end) {
        lease->spec.ends_ms = ends_ms;
        dv_lease_arm_end(lease);
    }
    if (renewal->owner)
        dv_lease_move(lease, &owner, arena);
    else
        dv_arena_free(arena);
    return true;
}

void dv_leases_renew(struct dv_leases *leases, struct dv_lease_operation *operation,
                     const struct dv_lease_caller *caller, dv_str id,
                     const struct dv_lease_renewal *renewal)
{
    struct dv_lease *lease = find(leases, operation, caller, id, true);

    if (!lease)
        return;
    if (!dv_lease_is_held(lease)) {
        (void)dv_fail(&operation->err, DV_NOT_FOUND, "lease %.*s is not held", DV_FMT(id));
        finish(operation);
    } else if (!renew(lease, caller, renewal, &operation->err)) {
        finish(operation);
    } else {
        dv_lease_mark_dirty(lease);
        dv_leases_tell_changed(leases);
        finish_on_disk(operation);
    }
}
