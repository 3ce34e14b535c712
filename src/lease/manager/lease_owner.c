/* lease_owner.c - who holds a lease: found and checked when it is asked for, watched while it is
 * held. Signals are in lease_signal.c. */
#include <sys/stat.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "lease/lease.h"
#include "lease/manager/leases_state.h"
#include "loop/loop.h"
#include "pod/cgroup_members.h"
#include "pod/process.h"
#include "policy/policy.h"

#define LOOK_MS 1000u
/* A unit's control group is empty for a moment between the processes that systemd starts one after
 * the other. */
#define UNIT_EMPTY_MS 5000u
#define CGROUP_BYTES_MAX 65536u

/* ---- finding ---- */

/* The directory of a control group of version 2; on machines with both versions it is not where the
 * kernel's path begins. When there is none, where it would be. */
static dv_str group_dir(dv_str path, struct dv_arena *arena)
{
    static const char *const places[] = {"", "unified/", "systemd/"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        dv_str dir = dv_cgroup_dir(dv_str_printf(arena, "%s%.*s", places[i], DV_FMT(path)), arena);

        if (dv_cgroup_exists(dir, arena))
            return dir;
    }
    return dv_cgroup_dir(path, arena);
}

/* The control group of the process, as a path below /sys/fs/cgroup; empty: it is not known. */
static dv_str group_of(uint32_t pid, struct dv_arena *arena, dv_str *whole)
{
    dv_str path = dv_str_printf(arena, "/proc/%u/cgroup", pid);
    const dv_str prefix = DV_STR("0::/");
    struct dv_err absent;
    dv_str text;
    dv_str line;

    *whole = DV_STR("");
    if (!dv_file_read(path, CGROUP_BYTES_MAX, arena, &text, &absent))
        return DV_STR("");
    *whole = text;
    while (dv_str_split(&text, '\n', &line))
        if (dv_str_starts_with(line, prefix))
            return dv_str_slice(line, prefix.n, line.n);
    return DV_STR("");
}

static bool find_process(const struct dv_lease_caller *caller,
                         const struct dv_lease_owner_request *request, struct dv_arena *arena,
                         struct dv_lease_owner *owner, struct dv_err *err)
{
    uint32_t uid;
    uint64_t start;

    owner->kind = DV_LEASE_OWNER_PROCESS;
    owner->pid = request->pid ? request->pid : caller->pid;
    if (owner->pid == 0)
        return dv_fail(
            err, DV_INVALID_ARGUMENT,
            "owner: the caller's process is not in davitd's PID namespace: name a control "
            "group or a unit");
    owner->start = dv_process_start(owner->pid, arena);
    if (owner->start.n == 0 || !dv_lease_user_of(owner->pid, arena, &uid))
        return dv_fail(err, DV_INVALID_ARGUMENT, "owner: there is no process %u", owner->pid);
    if (!caller->is_root && uid != caller->uid && owner->pid != caller->pid)
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "owner: process %u is that of user %u, not of user %u", owner->pid, uid,
                       caller->uid);
    if (request->start > 0 && (!dv_str_to_u64(owner->start, &start) || start != request->start))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "owner: process %u is another one by now: it was started at %.*s, not %llu",
                       owner->pid, DV_FMT(owner->start), (unsigned long long)request->start);
    return true;
}

static bool may_name_group(const struct dv_lease_caller *caller, dv_str dir, struct dv_arena *arena)
{
    dv_str whole;
    dv_str own;
    struct stat info;

    if (caller->is_root)
        return true;
    own = group_of(caller->pid, arena, &whole);
    if (own.n > 0 && dv_str_eq(group_dir(own, arena), dir))
        return true;
    return stat(dv_str_to_c(dir, arena), &info) == 0 && info.st_uid == caller->uid;
}

static bool find_group(const struct dv_lease_caller *caller, dv_str cgroup, struct dv_arena *arena,
                       struct dv_lease_owner *owner, struct dv_err *err)
{
    (void)dv_str_take(&cgroup, '/');
    owner->kind = DV_LEASE_OWNER_CGROUP;
    if (dv_str_starts_with(cgroup, DV_STR("sys/fs/cgroup/")))
        cgroup = dv_str_slice(cgroup, DV_STR("sys/fs/cgroup/").n, cgroup.n);
    if (cgroup.n == 0 || dv_str_find(cgroup, DV_STR("..")) < cgroup.n ||
        dv_str_find_char(cgroup, '\0') < cgroup.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "owner: \"%.*s\" is no control group",
                       DV_FMT(cgroup));
    owner->cgroup = dv_str_copy(dv_cgroup_dir(cgroup, arena), arena);
    if (!dv_cgroup_exists(owner->cgroup, arena))
        return dv_fail(err, DV_INVALID_ARGUMENT, "owner: there is no control group %.*s",
                       DV_FMT(owner->cgroup));
    return may_name_group(caller, owner->cgroup, arena) ||
           dv_fail(err, DV_PERMISSION_DENIED,
                   "owner: control group %.*s is neither the caller's own nor belongs to user %u",
                   DV_FMT(owner->cgroup), caller->uid);
}

/* The control group of a unit: the caller's own, when that is in the unit, or where systemd has
 * those of the system. */
static bool find_unit(const struct dv_lease_caller *caller, dv_str unit, struct dv_arena *arena,
                      struct dv_lease_owner *owner, struct dv_err *err)
{
    dv_str whole;
    dv_str own = group_of(caller->pid, arena, &whole);
    dv_str dir;
    size_t at = dv_str_find(own, unit);

    if (dv_str_find_char(unit, '/') < unit.n || dv_str_find_char(unit, '\0') < unit.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "owner: \"%.*s\" is no unit", DV_FMT(unit));
    if (dv_str_eq(dv_policy_unit_of(whole), unit) && at < own.n)
        dir = group_dir(dv_str_slice(own, 0, at + unit.n), arena);
    else if (caller->is_root)
        dir = group_dir(dv_str_printf(arena, "system.slice/%.*s", DV_FMT(unit)), arena);
    else
        return dv_fail(err, DV_PERMISSION_DENIED, "owner: the caller is not in unit %.*s",
                       DV_FMT(unit));
    owner->kind = DV_LEASE_OWNER_UNIT;
    owner->unit = dv_str_copy(unit, arena);
    owner->cgroup = dv_str_copy(dir, arena);
    return dv_cgroup_exists(dir, arena) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "owner: unit %.*s does not run: there is no %.*s",
                   DV_FMT(unit), DV_FMT(dir));
}

bool dv_lease_find_owner(const struct dv_leases *leases, const struct dv_lease_caller *caller,
                         const struct dv_lease_owner_request *request, struct dv_arena *arena,
                         struct dv_lease_owner *owner, struct dv_err *err)
{
    int n = (request->pid > 0) + (request->cgroup.n > 0) + (request->unit.n > 0);

    *owner = (struct dv_lease_owner){.boot_id = dv_str_copy(leases->options.boot_id, arena)};
    if (n > 1)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "owner: name a process, a control group or a unit, and only one of them");
    if (request->cgroup.n > 0)
        return find_group(caller, request->cgroup, arena, owner, err);
    if (request->unit.n > 0)
        return find_unit(caller, request->unit, arena, owner, err);
    return find_process(caller, request, arena, owner, err);
}

/* ---- watching ---- */

static void on_process_ended(struct dv_process *process)
{
    dv_lease_owner_ended(DV_CONTAINER(process, struct dv_lease, process));
}

/* Whether the control group of the owner has been empty for long enough, or is gone. */
static bool is_group_over(struct dv_lease *lease, uint64_t now_ms)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str dir = lease->spec.owner.cgroup;
    bool is_unit = lease->spec.owner.kind == DV_LEASE_OWNER_UNIT;

    if (!dv_cgroup_exists(dir, arena))
        return true;
    if (dv_cgroup_is_used(dir, arena)) {
        lease->group_was_used = true;
        lease->group_empty_ms = 0;
        return false;
    }
    lease->group_was_used = lease->group_was_used || dv_cgroup_has_run(dir, arena);
    if (!lease->group_was_used)
        return false;
    if (lease->group_empty_ms == 0)
        lease->group_empty_ms = now_ms;
    return !is_unit || now_ms - lease->group_empty_ms >= UNIT_EMPTY_MS;
}

static void on_group_look(struct dv_timer *timer)
{
    struct dv_lease *lease = DV_CONTAINER(timer, struct dv_lease, group_timer);
    uint64_t now_ms = dv_loop_now_ms(lease->leases->loop);

    if (is_group_over(lease, now_ms))
        dv_lease_owner_ended(lease);
    else /* spread, so that many owners are not all looked at in the same turn */
        dv_timer_start(timer, lease->leases->loop, now_ms + dv_jitter(LOOK_MS, 200), on_group_look);
}

static void on_other_boot(struct dv_timer *timer)
{
    dv_lease_owner_ended(DV_CONTAINER(timer, struct dv_lease, group_timer));
}

void dv_lease_watch_owner(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;
    const struct dv_lease_owner *owner = &lease->spec.owner;
    uint64_t now_ms = dv_loop_now_ms(leases->loop);

    if (!dv_str_eq(owner->boot_id, leases->options.boot_id)) {
        dv_log(DV_LOG_INFO, "lease: the machine was booted since it was taken",
               DV_F_STR("lease", lease->spec.id));
        dv_timer_start(&lease->group_timer, leases->loop, now_ms, on_other_boot);
    } else if (owner->kind == DV_LEASE_OWNER_PROCESS) {
        dv_process_watch(&lease->process, leases->loop, owner->pid, owner->start, on_process_ended);
    } else {
        dv_timer_start(&lease->group_timer, leases->loop, now_ms + 1, on_group_look);
    }
}

void dv_lease_stop_watching(struct dv_lease *lease)
{
    dv_process_stop(&lease->process);
    dv_timer_cancel(&lease->group_timer);
}

void dv_lease_move(struct dv_lease *lease, const struct dv_lease_owner *owner,
                   struct dv_arena *arena)
{
    dv_log(DV_LOG_INFO, "lease: another owner holds it", DV_F_STR("lease", lease->spec.id),
           DV_F_U64("pid", owner->pid), DV_F_STR("cgroup", owner->cgroup),
           DV_F_STR("unit", owner->unit));
    dv_lease_stop_watching(lease);
    lease->group_was_used = false;
    lease->group_empty_ms = 0;
    lease->spec.owner = *owner;
    dv_arena_free(lease->owner_arena); /* of the one before */
    lease->owner_arena = arena;
    dv_lease_watch_owner(lease);
}
