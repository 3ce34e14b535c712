/* guard.h - the peer policy at work: who is at the other end of a connection, and may it?
 *
 * A peer is who the kernel recorded when it connected or, for a socket that we connect to, when it
 * began to listen (SO_PEERCRED). Its executable and unit are read in /proc, and count only if they
 * are those of the very process: where the kernel has it (SO_PEERPIDFD) a descriptor of the process
 * says so, elsewhere its time of start before and after. What cannot be found out matches no rule.
 */
#ifndef DV_PLUGIN_GUARD_H
#define DV_PLUGIN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "policy/policy.h"

struct dv_arena;
struct dv_err;
struct dv_guard;
struct dv_stream;

/* Loads the file. Only its owner may be able to write it, and the owner must be root or us. */
struct dv_guard *dv_guard_open(dv_str path, struct dv_err *err);
void dv_guard_free(struct dv_guard *guard); /* NULL is fine */
/* Loads the file again; on failure the policy that was loaded before stays. */
DV_CHECKED bool dv_guard_reload(struct dv_guard *guard, struct dv_err *err);

/* Finds out who is at the other end, in `arena`; NULL when the guard is NULL or off. */
const struct dv_policy_peer *dv_guard_identify(const struct dv_guard *guard,
                                               const struct dv_stream *stream,
                                               struct dv_arena *arena);
const struct dv_policy_peer *dv_policy_peer_copy(const struct dv_policy_peer *peer,
                                                 struct dv_arena *arena); /* NULL is fine */
/* DV_PERMISSION_DENIED: the text says who, what, which rule, and what to do. In mode `warn` the
 * refusal is logged and counted, and the answer is true. A guard or a peer that is NULL allows
 * everything. */
DV_CHECKED bool dv_guard_judge(struct dv_guard *guard, const struct dv_policy_peer *peer,
                               enum dv_policy_action action, dv_str name, struct dv_err *err);
/* Identifies the peer and judges one question about it. */
DV_CHECKED bool dv_guard_allows(struct dv_guard *guard, const struct dv_stream *stream,
                                enum dv_policy_action action, dv_str name, struct dv_err *err);

/* Whether the peer may lease devices of that resource or class, and how much: `grant` is set on
 * success. In mode `warn`, and without a policy, everything is allowed without limits. */
DV_CHECKED bool dv_guard_judge_lease(struct dv_guard *guard, const struct dv_policy_peer *peer,
                                     bool is_class, dv_str name, struct dv_policy_grant *grant,
                                     struct dv_err *err);
/* Whether the rule that made a grant also names that resource or class. */
bool dv_guard_rule_has(const struct dv_guard *guard, dv_str rule, bool is_class, dv_str name);
/* Whether the policy lets the peer end the leases of others. */
bool dv_guard_is_admin(const struct dv_guard *guard, const struct dv_policy_peer *peer);

/* ---- what was refused ---- */

struct dv_guard_refusal {
    enum dv_policy_action action;
    bool is_warning; /* the peer was let through, because the mode is `warn` */
    dv_str name;
    dv_str text;
    uint64_t n;
};
/* Returns the latest refusal of the i-th kind, of which there are a few dozen at most; NULL: no
 * more. It is borrowed until the next judgement. */
const struct dv_guard_refusal *dv_guard_refusal(const struct dv_guard *guard, size_t i);
/* Returns how many there were since the start. */
uint64_t dv_guard_count(const struct dv_guard *guard, enum dv_policy_action action,
                        bool is_warning);

#endif
