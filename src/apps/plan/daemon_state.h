/* daemon_state.h - a DaemonSet while a plan is made: its pods by node. */
#ifndef DV_APPS_DAEMON_STATE_H
#define DV_APPS_DAEMON_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/plan/daemon_set.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_api_controller_revision;
struct dv_api_node;
struct dv_api_object_meta;
struct dv_api_pod;
struct dv_plan;
struct dv_plan_owner;

/* A node that there is, or that pods are meant for, with the pods of the set on it. Pods that have
 * ended and are being deleted do not count. */
struct dv_daemon_place {
    dv_str name;
    const struct dv_api_node *node; /* NULL: there is no such node */
    struct dv_daemon_verdict verdict;
    DV_VEC(const struct dv_api_pod *) pods; /* in the order in which they are kept */
};

struct dv_daemon_state {
    const struct dv_daemon_input *input;
    const struct dv_plan_owner *owner;
    struct dv_plan *plan;
    struct dv_map by_name; /* of places */
    DV_VEC(struct dv_daemon_place *) places;
    const struct dv_api_controller_revision *revision; /* of the template that is wanted */
    dv_str hash;
    dv_str generation; /* of the template, as pods have it in a label */
    int64_t n_desired;
    int64_t max_surge; /* 0: the old pod of a node goes first */
    int64_t max_unavailable;
    size_t n_created; /* in this plan */
    size_t n_deleted;
};

bool dv_daemon_is_own(const struct dv_daemon_state *state, const struct dv_api_object_meta *meta);
bool dv_daemon_is_updated(const struct dv_daemon_state *state, const struct dv_api_pod *pod);
void dv_daemon_create_pod(struct dv_daemon_state *state, dv_str node);
void dv_daemon_delete_pod(struct dv_daemon_state *state, const struct dv_api_pod *pod);

/* Finds the revision of the template, and plans what makes there be one. */
void dv_daemon_plan_revision(struct dv_daemon_state *state);
/* Plans that old revisions go which nobody needs. */
void dv_daemon_plan_history(struct dv_daemon_state *state);
/* Plans that pods of older templates are replaced. */
void dv_daemon_plan_update(struct dv_daemon_state *state);

#endif
