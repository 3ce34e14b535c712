#include "policy/policy.h"

#include "policy/policy_rules.h"

static const char *const action_names[] = {
    [DV_POLICY_DRIVER] = "drivers",
    [DV_POLICY_RESOURCE] = "resources",
    [DV_POLICY_CONNECT] = "sockets",
    [DV_POLICY_CALL] = "calls",
};

static const char *const mode_names[] = {
    [DV_POLICY_OFF] = "off",
    [DV_POLICY_WARN] = "warn",
    [DV_POLICY_ENFORCE] = "enforce",
};

const char *dv_policy_action_name(enum dv_policy_action action)
{
    return action_names[action];
}

const char *dv_policy_mode_name(enum dv_policy_mode mode)
{
    return mode_names[mode];
}

enum dv_policy_mode dv_policy_mode(const struct dv_policy *policy)
{
    return policy->mode;
}

size_t dv_policy_n_rules(const struct dv_policy *policy)
{
    return policy->n_rules;
}

/* Matches with a pattern. It goes back to the last star only, which is linear in practice; the
 * worst case is the product of both lengths, which are bounded. */
bool dv_policy_matches(dv_str pattern, dv_str text)
{
    size_t p = 0, t = 0;
    size_t star = pattern.n, kept = 0; /* the last star, and how much of the text it stands for */

    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            kept = t;
        } else if (p < pattern.n && pattern.p[p] == text.p[t]) {
            p++;
            t++;
        } else if (star < pattern.n) {
            p = star + 1;
            t = ++kept;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

static bool is_one_of(const dv_str *patterns, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_policy_matches(patterns[i], text))
            return true;
    return false;
}

static bool has_gid(const struct dv_policy_peer *peer, gid_t gid)
{
    for (size_t i = 0; i < peer->n_gids; i++)
        if (peer->gids[i] == gid)
            return true;
    return false;
}

/* Whether the peer is one that the entry describes. A property of the peer that is not known
 * matches nothing, not even `*`. */
static bool is_by(const struct dv_policy_who *who, const struct dv_policy_peer *peer)
{
    if (who->has_uid && (!peer->has_ids || peer->uid != who->uid))
        return false;
    if (who->has_gid && (!peer->has_ids || !has_gid(peer, who->gid)))
        return false;
    if (who->unit.n > 0 && (peer->unit.n == 0 || !dv_policy_matches(who->unit, peer->unit)))
        return false;
    return who->executable.n == 0 ||
           (peer->executable.n > 0 && dv_policy_matches(who->executable, peer->executable));
}

static bool is_by_any(const struct dv_policy_who *by, size_t n_by,
                      const struct dv_policy_peer *peer)
{
    for (size_t i = 0; i < n_by; i++)
        if (is_by(&by[i], peer))
            return true;
    return false;
}

struct dv_policy_verdict dv_policy_judge(const struct dv_policy *policy,
                                         const struct dv_policy_peer *peer,
                                         enum dv_policy_action action, dv_str name)
{
    struct dv_policy_verdict verdict = {.is_ruled = policy->is_ruled[action], .rule = DV_STR("")};

    for (size_t i = 0; i < policy->n_rules && !verdict.is_allowed; i++) {
        const struct dv_policy_rule *rule = &policy->rules[i];

        if (!is_one_of(rule->names[action], rule->n_names[action], name))
            continue;
        verdict.rule = rule->name;
        verdict.is_allowed = is_by_any(rule->by, rule->n_by, peer);
    }
    if (!verdict.is_ruled)
        verdict.is_allowed = true;
    return verdict;
}

/* ---- leases ---- */

static bool lease_rule_has(const struct dv_policy_lease_rule *rule, bool is_class, dv_str name)
{
    enum dv_policy_lease_names kind =
        is_class ? DV_POLICY_LEASE_CLASSES : DV_POLICY_LEASE_RESOURCES;

    return is_one_of(rule->names[kind], rule->n_names[kind], name);
}

struct dv_policy_grant dv_policy_judge_lease(const struct dv_policy *policy,
                                             const struct dv_policy_peer *peer, bool is_class,
                                             dv_str name)
{
    struct dv_policy_grant grant = {.is_allowed = !policy->has_leases,
                                    .is_ruled = policy->has_leases,
                                    .rule = DV_STR(""),
                                    .devices_max = DV_POLICY_NO_LIMIT,
                                    .seconds_max = DV_POLICY_NO_LIMIT};

    for (size_t i = 0; i < policy->n_leases; i++) {
        const struct dv_policy_lease_rule *rule = &policy->leases[i];

        if (!lease_rule_has(rule, is_class, name) || !is_by_any(rule->by, rule->n_by, peer))
            continue;
        grant.is_allowed = true;
        grant.rule = rule->name;
        grant.devices_max = rule->devices_max;
        grant.seconds_max = rule->seconds_max;
        grant.priority_max = rule->priority_max;
        grant.has_priority = rule->has_priority;
        break;
    }
    return grant;
}

bool dv_policy_rule_has(const struct dv_policy *policy, dv_str rule, bool is_class, dv_str name)
{
    for (size_t i = 0; i < policy->n_leases; i++)
        if (dv_str_eq(policy->leases[i].name, rule))
            return lease_rule_has(&policy->leases[i], is_class, name);
    return false;
}

bool dv_policy_is_admin(const struct dv_policy *policy, const struct dv_policy_peer *peer)
{
    for (size_t i = 0; i < policy->n_leases; i++)
        if (policy->leases[i].is_admin &&
            is_by_any(policy->leases[i].by, policy->leases[i].n_by, peer))
            return true;
    return false;
}

static bool is_unit(dv_str part)
{
    return (dv_str_ends_with(part, DV_STR(".service")) && part.n > 8) ||
           (dv_str_ends_with(part, DV_STR(".scope")) && part.n > 6);
}

/* Finds the unit in lines "id:controllers:/path". The line of the unified hierarchy, "0::/path", is
 * preferred. */
dv_str dv_policy_unit_of(dv_str cgroup)
{
    dv_str unit = DV_STR("");
    dv_str line;

    while (dv_str_split(&cgroup, '\n', &line)) {
        bool is_unified = dv_str_starts_with(line, DV_STR("0::"));
        bool is_systemd = dv_str_find(line, DV_STR(":name=systemd:")) < line.n;
        dv_str path = dv_str_slice(line, dv_str_find(line, DV_STR(":/")), line.n);
        dv_str found = DV_STR("");
        dv_str part;

        if (!is_unified && !is_systemd)
            continue;
        while (path.n > 0 && dv_str_split(&path, '/', &part))
            found = is_unit(part) ? part : found;
        if (found.n > 0 && (is_unified || unit.n == 0))
            unit = found;
    }
    return unit;
}
