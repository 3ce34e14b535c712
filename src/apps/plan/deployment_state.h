/* deployment_state.h - a Deployment while a plan is made: its ReplicaSets, and how many pods each
 * wants. */
#ifndef DV_APPS_DEPLOYMENT_STATE_H
#define DV_APPS_DEPLOYMENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

struct dv_api_object_meta;
struct dv_api_replica_set;
struct dv_deployment_input;
struct dv_plan;
struct dv_plan_owner;

struct dv_deployment_set {
    const struct dv_api_replica_set *set;
    int64_t n_had; /* that it wants so far */
    int64_t n;     /* that it shall want */
    bool has_pods; /* one of its pods has not ended */
};

struct dv_deployment_state {
    const struct dv_deployment_input *input;
    const struct dv_plan_owner *owner;
    struct dv_plan *plan;
    DV_VEC(struct dv_deployment_set) sets; /* its own, the oldest first */
    struct dv_deployment_set *newest;      /* of the template that is wanted; NULL: none */
    int64_t n_wanted;
    int64_t max_surge;
    int64_t max_unavailable;
};

#define DV_DEPLOYMENT_PREFIX "deployment.kubernetes.io/"
#define DV_REVISION_ANNOTATION DV_DEPLOYMENT_PREFIX "revision"
#define DV_HISTORY_ANNOTATION DV_DEPLOYMENT_PREFIX "revision-history"
#define DV_DESIRED_ANNOTATION DV_DEPLOYMENT_PREFIX "desired-replicas"
#define DV_MAX_ANNOTATION DV_DEPLOYMENT_PREFIX "max-replicas"

/* The number in an annotation; 0: there is none. */
int64_t dv_deployment_number(const struct dv_api_object_meta *meta, dv_str annotation);
/* Whether a set wanted a number of pods for another number of the Deployment. */
bool dv_deployment_is_rescaled(const struct dv_deployment_state *state);
/* Sets the numbers of all sets: when the Deployment's own number has changed, and one step of a
 * roll-out. */
void dv_deployment_rescale(struct dv_deployment_state *state);
void dv_deployment_roll(struct dv_deployment_state *state);
void dv_deployment_recreate(struct dv_deployment_state *state);
/* How many pods a set of the newest template begins with. */
int64_t dv_deployment_first(const struct dv_deployment_state *state);
/* Plans what makes the sets want these numbers. */
void dv_deployment_plan_numbers(struct dv_deployment_state *state);

/* Plans that there is a set of the template that is wanted, with the revision that it shall have.
 */
void dv_deployment_plan_newest(struct dv_deployment_state *state);
void dv_deployment_plan_revision(struct dv_deployment_state *state);
/* Plans that old sets go which nobody needs. */
void dv_deployment_plan_history(struct dv_deployment_state *state);

bool dv_deployment_is_complete(const struct dv_deployment_state *state);
void dv_deployment_plan_status(struct dv_deployment_state *state);
/* Plans that the status tells of a set that was made. */
void dv_deployment_plan_created(struct dv_deployment_state *state, dv_str set);

#endif
