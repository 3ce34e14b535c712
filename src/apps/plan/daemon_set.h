/* daemon_set.h - DaemonSets: which nodes shall have a pod, and how one template gives way to the
 * next.
 *
 * Revisions first: the template that is wanted has a ControllerRevision, whose hash its pods carry.
 * Then each node has one pod of the set if it shall have one, and no other; only when that is so
 * are pods of older templates replaced, as many at a time as the set allows. */
#ifndef DV_APPS_DAEMON_SET_H
#define DV_APPS_DAEMON_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/values.h"

struct dv_api_controller_revision;
struct dv_api_daemon_set;
struct dv_api_node;
struct dv_api_pod;
struct dv_api_pod_spec;
struct dv_arena;
struct dv_plan;

/* The label that pods and revisions have: the hash of their template. */
#define DV_REVISION_HASH_LABEL "controller-revision-hash"
/* How many pods are made, and how many deleted, before it is looked again. */
#define DV_DAEMON_BURST 250u

/* How long a pod that has failed stays as it is, because others have failed on its node a moment
 * ago. */
struct dv_daemon_wait {
    const struct dv_api_pod *pod;
    uint64_t ms;
};

/* What is there; all of it outlives the plan. */
struct dv_daemon_input {
    const struct dv_api_daemon_set *set;
    const struct dv_api_node *const *nodes;
    size_t n_nodes;
    const struct dv_api_pod *const *pods; /* those that it owns, and those that are nobody's */
    size_t n_pods;
    const struct dv_api_controller_revision *const *revisions; /* the same of revisions */
    size_t n_revisions;
    struct dv_time now;
    const struct dv_daemon_wait *waits;
    size_t n_waits;
    bool has_failed;   /* what was planned could not be done: nothing but the status is planned */
    bool has_collided; /* because the name of a revision is taken */
};

void dv_daemon_plan(const struct dv_daemon_input *input, struct dv_plan *plan);

/* ---- parts ---- */

/* Whether a node shall get a pod of the set, and whether one that it has may stay. */
struct dv_daemon_verdict {
    bool shall_run;
    bool may_stay;
};

/* The spec that pods of the set have on a node: with tolerations of what befalls nodes, and bound
 * to that node by name. An empty node leaves the affinity as it is. */
struct dv_api_pod_spec *dv_daemon_pod_spec(const struct dv_api_daemon_set *set, dv_str node,
                                           struct dv_arena *arena);
/* `spec` is the one of dv_daemon_pod_spec for no node. */
struct dv_daemon_verdict dv_daemon_judge(const struct dv_api_daemon_set *set,
                                         const struct dv_api_pod_spec *spec,
                                         const struct dv_api_node *node);
/* The node that a pod of a set is on or is meant for; empty: it is not known. */
dv_str dv_daemon_node_of(const struct dv_api_pod *pod);

/* The data of a revision: a patch that sets the template. */
dv_str dv_daemon_revision_data(const struct dv_api_daemon_set *set, struct dv_arena *arena);

#endif
