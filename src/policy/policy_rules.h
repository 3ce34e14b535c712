/* policy_rules.h - a policy after its file was read. */
#ifndef DV_POLICY_RULES_H
#define DV_POLICY_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "policy/policy.h"

/* One entry of `by`. All properties that it names must hold, and it names at least one. */
struct dv_policy_who {
    bool has_uid;
    uid_t uid;
    bool has_gid;
    gid_t gid;
    dv_str unit;
    dv_str executable;
};

struct dv_policy_rule {
    dv_str name;
    const dv_str *names[DV_N_POLICY_ACTIONS]; /* patterns */
    size_t n_names[DV_N_POLICY_ACTIONS];
    const struct dv_policy_who *by;
    size_t n_by;
};

/* The names that a rule about leases has. */
enum dv_policy_lease_names {
    DV_POLICY_LEASE_RESOURCES,
    DV_POLICY_LEASE_CLASSES,
    DV_N_POLICY_LEASE_NAMES,
};

struct dv_policy_lease_rule {
    dv_str name;
    const dv_str *names[DV_N_POLICY_LEASE_NAMES]; /* patterns */
    size_t n_names[DV_N_POLICY_LEASE_NAMES];
    const struct dv_policy_who *by;
    size_t n_by;
    uint64_t devices_max;
    uint64_t seconds_max;
    int32_t priority_max;
    bool has_priority;
    bool is_admin;
};

struct dv_policy {
    enum dv_policy_mode mode;
    const struct dv_policy_rule *rules;
    size_t n_rules;
    bool is_ruled[DV_N_POLICY_ACTIONS];
    const struct dv_policy_lease_rule *leases;
    size_t n_leases;
    bool has_leases; /* the file speaks of leases, perhaps with an empty list: nobody may */
};

#endif
