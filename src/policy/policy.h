/* policy.h - who may register which names, whose sockets are called, and who may call ours.
 *
 * Pure: a file's text becomes rules, and a peer with what it wants becomes a verdict. Who a peer is
 * finds plugin/guard.h.
 *
 *     mode: enforce                    # off, warn, enforce
 *     rules:
 *     - name: nvidia                   # for the log
 *       drivers: [gpu.nvidia.com]      # of DRA drivers
 *       resources: [nvidia.com/gpu]    # of device plugins; a star stands for any text
 *       by:                            # one of these; all that one says must hold
 *       - unit: nvidia-dra.service
 *         uid: 0
 *       - executable: /usr/bin/nvidia-device-plugin
 *     - name: admins
 *       calls: [davit.sock, pod-resources]
 *       by:
 *       - group: wheel
 *
 *     leases:                          # who may lease what, and how much of it
 *     - name: students
 *       by: [{group: students}]
 *       resources: [nvidia.com/gpu]    # of device plugins
 *       classes: [gpu.nvidia.com]      # of DRA drivers
 *       devices: 2                     # at once, of all these together; each user on its own
 *       maxTime: 8h                    # the longest lease, with all renewals
 *       priority: 5                    # the highest; a request without one gets it
 *     - name: operators
 *       by: [{group: wheel}]
 *       admin: true                    # may end the leases of others
 *
 * What no rule speaks of is free: without any `calls` everybody may call. What some rule speaks of
 * is for those whom a rule allows: with one `drivers`, every driver needs a rule that has its name.
 * With `leases`, a user other than root may lease what a rule names for it; of several rules the
 * first counts.
 */
#ifndef DV_POLICY_H
#define DV_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

struct dv_arena;
struct dv_err;

enum dv_policy_mode {
    DV_POLICY_OFF,
    DV_POLICY_WARN,
    DV_POLICY_ENFORCE,
};

/* What a peer wants to do; each action has names of its own kind. */
enum dv_policy_action {
    DV_POLICY_DRIVER,   /* to be a DRA driver: its name */
    DV_POLICY_RESOURCE, /* to be a device plugin: the name of its resource */
    DV_POLICY_CONNECT,  /* to be called by us: the path of its socket */
    DV_POLICY_CALL,     /* to call us: "kubelet.sock", "davit.sock", "pod-resources" */
    DV_N_POLICY_ACTIONS,
};
const char *dv_policy_action_name(enum dv_policy_action action); /* "drivers", as in the file */

/* What could be found out about a peer. */
struct dv_policy_peer {
    pid_t pid; /* 0: unknown, and then all other fields are too */
    bool has_ids;
    uid_t uid;
    const gid_t *gids; /* the process's own group comes first */
    size_t n_gids;
    dv_str unit;       /* systemd's; empty: none, or unknown */
    dv_str executable; /* empty: unknown; why is in `doubt` */
    dv_str doubt;      /* what could not be found out, and why; for the log */
};

struct dv_policy;

/* Looks up a group's number; false: there is no such group. */
typedef bool dv_policy_group_fn(void *ctx, dv_str name, gid_t *gid);

/* Reads a policy from a file's text; everything is in `arena`. DV_INVALID_ARGUMENT names the line
 * and what may be there. */
const struct dv_policy *dv_policy_parse(dv_str text, dv_policy_group_fn *find_group, void *ctx,
                                        struct dv_arena *arena, struct dv_err *err);
enum dv_policy_mode dv_policy_mode(const struct dv_policy *policy);
const char *dv_policy_mode_name(enum dv_policy_mode mode);
size_t dv_policy_n_rules(const struct dv_policy *policy);

struct dv_policy_verdict {
    bool is_allowed;
    bool is_ruled; /* some rule names this action */
    dv_str rule;   /* the rule that allows it, or the last one that has the name; empty: none has */
};

/* Judges what the peer wants without regard to the mode: the caller applies that. */
struct dv_policy_verdict dv_policy_judge(const struct dv_policy *policy,
                                         const struct dv_policy_peer *peer,
                                         enum dv_policy_action action, dv_str name);
/* ---- leases ---- */

#define DV_POLICY_NO_LIMIT UINT64_MAX

struct dv_policy_grant {
    bool is_allowed;
    bool is_ruled; /* there are rules about leases */
    dv_str rule;   /* the rule that allows it; empty: none does, or none is needed */
    uint64_t devices_max;
    uint64_t seconds_max;
    int32_t priority_max;
    bool has_priority; /* the rule names one: a request without any gets it */
};

/* Judges whether the peer may lease the resource, or devices of the class, of that name. Without
 * any rule about leases everybody may, with priorities up to 0. */
struct dv_policy_grant dv_policy_judge_lease(const struct dv_policy *policy,
                                             const struct dv_policy_peer *peer, bool is_class,
                                             dv_str name);
/* Whether the rule names the resource or class: what a user holds of these counts together. */
bool dv_policy_rule_has(const struct dv_policy *policy, dv_str rule, bool is_class, dv_str name);
/* Whether the peer may end the leases of others. */
bool dv_policy_is_admin(const struct dv_policy *policy, const struct dv_policy_peer *peer);

/* Whether the text matches: `*` stands for any text, also none, and every other character for
 * itself. */
bool dv_policy_matches(dv_str pattern, dv_str text);

/* Finds the systemd unit in the text of /proc/PID/cgroup: the last part of the path that names a
 * service or a scope; empty: there is none. */
dv_str dv_policy_unit_of(dv_str cgroup);

#endif
