/* lease_policy.c - what the policy lets a user lease: which devices, how many at once, for how
 * long. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "lease/lease.h"
#include "lease/lease_spec.h"
#include "lease/manager/leases_state.h"
#include "plugin/guard.h"
#include "policy/policy.h"

/* What a lease asks for, as one list: resources first, then devices of classes. */
struct entry {
    dv_str name;
    bool is_class;
    uint64_t n;
};

static size_t n_entries(const struct dv_lease *lease)
{
    return lease->spec.n_resources + lease->spec.n_devices;
}

static struct entry entry_at(const struct dv_lease *lease, size_t i)
{
    const struct dv_lease_spec *spec = &lease->spec;

    if (i < spec->n_resources)
        return (struct entry){spec->resources[i].name, false, spec->resources[i].n};
    i -= spec->n_resources;
    return (struct entry){spec->devices[i].class, true, spec->devices[i].n};
}

/* ---- quotas ---- */

/* How many devices the user holds of what the rule names. */
static uint64_t user_holds(const struct dv_lease_user *user, struct dv_guard *guard, dv_str rule)
{
    const struct dv_link *link;
    uint64_t n = 0;

    DV_LIST_EACH (&user->held, link) {
        const struct dv_lease *lease =
            (const struct dv_lease *)(const void *)((const char *)link -
                                                    offsetof(struct dv_lease, of_user));

        for (size_t i = 0; i < n_entries(lease); i++) {
            struct entry entry = entry_at(lease, i);

            if (dv_guard_rule_has(guard, rule, entry.is_class, entry.name))
                n += entry.n;
        }
    }
    return n;
}

/* What the lease itself wants of what the rule names. */
static uint64_t wants_under(const struct dv_lease *lease, dv_str rule)
{
    uint64_t n = 0;

    for (size_t i = 0; i < n_entries(lease); i++)
        if (dv_str_eq(lease->quotas[i].rule, rule))
            n += entry_at(lease, i).n;
    return n;
}

const struct dv_lease_quota *dv_lease_find_exceeded(const struct dv_lease *lease)
{
    struct dv_guard *guard = lease->leases->options.guard;

    for (size_t i = 0; i < n_entries(lease); i++) {
        const struct dv_lease_quota *quota = &lease->quotas[i];

        if (quota->n_max != DV_POLICY_NO_LIMIT &&
            user_holds(lease->user, guard, quota->rule) + wants_under(lease, quota->rule) >
                quota->n_max)
            return quota;
    }
    return NULL;
}

static bool check_quotas(const struct dv_lease *lease, struct dv_err *err)
{
    for (size_t i = 0; i < n_entries(lease); i++) {
        const struct dv_lease_quota *quota = &lease->quotas[i];
        uint64_t n = wants_under(lease, quota->rule);

        if (n > quota->n_max)
            return dv_fail(err, DV_PERMISSION_DENIED,
                           "policy: rule %.*s allows %llu devices at once, and %llu are asked for",
                           DV_FMT(quota->rule), (unsigned long long)quota->n_max,
                           (unsigned long long)n);
    }
    return true;
}

/* ---- a request ---- */

static bool judge_entry(struct dv_lease *lease, const struct dv_lease_caller *caller,
                        const struct dv_lease_request *request, size_t i, struct dv_err *err)
{
    struct entry entry = entry_at(lease, i);
    struct dv_policy_grant grant;

    lease->quotas[i] = (struct dv_lease_quota){DV_STR(""), DV_POLICY_NO_LIMIT};
    if (caller->is_root)
        return true;
    if (!dv_guard_judge_lease(lease->leases->options.guard, caller->peer, entry.is_class,
                              entry.name, &grant, err))
        return false;
    lease->quotas[i] =
        (struct dv_lease_quota){dv_str_copy(grant.rule, lease->arena), grant.devices_max};
    if (request->max_s > grant.seconds_max)
        return dv_fail(
            err, DV_PERMISSION_DENIED, "policy: rule %.*s allows leases of %.*s for at most %llu s",
            DV_FMT(grant.rule), DV_FMT(entry.name), (unsigned long long)grant.seconds_max);
    if (grant.seconds_max != DV_POLICY_NO_LIMIT &&
        (lease->max_s == 0 || lease->max_s > grant.seconds_max))
        lease->max_s = grant.seconds_max;
    if (request->priority > grant.priority_max)
        return dv_fail(err, DV_PERMISSION_DENIED,
                       "policy: priorities up to %d are allowed for %.*s, not %d",
                       grant.priority_max, DV_FMT(entry.name), request->priority);
    /* Without a priority of its own it has the lowest that its rules give. */
    if (request->priority == 0 && grant.has_priority &&
        (i == 0 || lease->spec.priority > grant.priority_max))
        lease->spec.priority = grant.priority_max;
    return true;
}

bool dv_lease_judge(struct dv_lease *lease, const struct dv_lease_caller *caller,
                    const struct dv_lease_request *request, struct dv_err *err)
{
    lease->spec.priority = request->priority;
    lease->max_s = request->max_s;
    lease->quotas = DV_NEW_ARRAY(lease->arena, struct dv_lease_quota, n_entries(lease));
    for (size_t i = 0; i < n_entries(lease); i++)
        if (!judge_entry(lease, caller, request, i, err))
            return false;
    lease->item.priority = (int32_t)lease->spec.priority;
    return check_quotas(lease, err);
}

/* ---- a renewal ---- */

bool dv_lease_judge_renewal(const struct dv_lease *lease, const struct dv_lease_caller *caller,
                            uint64_t now_ms, uint64_t max_s, uint64_t *ends_ms, struct dv_err *err)
{
    if (max_s > DV_LEASE_SECONDS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "the longest lease is ten years");
    *ends_ms = max_s > 0 ? now_ms + max_s * 1000 : 0;
    for (size_t i = 0; i < n_entries(lease) && !caller->is_root; i++) {
        struct entry entry = entry_at(lease, i);
        struct dv_policy_grant grant;
        uint64_t last_ms;

        if (!dv_guard_judge_lease(lease->leases->options.guard, caller->peer, entry.is_class,
                                  entry.name, &grant, err))
            return false;
        if (grant.seconds_max == DV_POLICY_NO_LIMIT)
            continue;
        last_ms = lease->spec.since_ms + grant.seconds_max * 1000;
        if (max_s > 0 && *ends_ms > last_ms)
            return dv_fail(err, DV_PERMISSION_DENIED,
                           "policy: rule %.*s allows leases of %.*s for at most %llu s, with all "
                           "renewals; %llu s of them are left",
                           DV_FMT(grant.rule), DV_FMT(entry.name),
                           (unsigned long long)grant.seconds_max,
                           (unsigned long long)(last_ms > now_ms ? (last_ms - now_ms) / 1000 : 0));
        if (*ends_ms == 0 || *ends_ms > last_ms)
            *ends_ms = last_ms;
    }
    return true;
}
