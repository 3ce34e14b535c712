/* test_daemon_model.h - a story: what users, nodes, drivers and bad luck do to a world, and what
 * must hold.
 *
 * Devices are named by their kind: "a-0" and "b-1" are for one claim at a time, "s-0" is shared.
 * Classes "a", "b" and "s" choose by it; "a" also serves the extended resource "m.example/a". Every
 * node has a slice of its own name, and a pool of that name. */
#ifndef DV_DAEMON_TEST_DAEMON_MODEL_H
#define DV_DAEMON_TEST_DAEMON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "daemon/tests/test_model_world.h"
#include "resource/resource.h"
#include "support/dice.h"

struct dv_api_object_meta;
struct dv_api_pod;
struct dv_api_resource_claim;

#define N_NODES 4u
#define N_PODS 20u
#define N_CLAIMS 5u
#define N_RULES 2u
#define NODE_CPUS 4

/* A device that a node half has prepared for a claim. */
struct prepared {
    unsigned node;
    char claim[40]; /* its uid */
    char device[16];
};

struct story {
    struct world *world;
    struct dice dice;
    bool is_dead[N_NODES]; /* the node half does nothing */
    /* Two schedulers were there since the last rest. For the same pod they can undo each other's
     * work, which is seen to later. */
    bool had_rivals;
    DV_VEC(struct prepared) prepared;
    int64_t generation; /* of pools */
};

void story_init(struct story *story, struct world *world, uint64_t seed);
void story_fini(struct story *story);

/* One of the things that may happen. */
void act(struct story *story);
/* The node halves do their part, if `is_all` all of them. */
void turn_nodes(struct story *story, bool is_all);

/* ---- what objects say ---- */

/* Succeeded or failed. */
bool is_over(const struct dv_api_pod *pod);
/* Its node was not chosen by a scheduler. */
bool is_preset(const struct dv_api_pod *pod);
/* A claim whose status somebody changed by hand, or a pod that used it then. */
bool is_meddled(const struct dv_api_object_meta *meta);
bool is_reserved_for(const struct dv_api_resource_claim *claim, const struct dv_api_pod *pod);
/* Of a claim that is allocated. */
bool is_for_node(const struct dv_api_resource_claim *claim, dv_str node);
/* How many claims the pod has, that for its extended resources included. */
size_t n_claims_of(const struct dv_api_pod *pod);
/* The name of the i-th; empty: it is not made yet. */
dv_str claim_of(const struct dv_api_pod *pod, size_t i);

/* ---- what must hold: fails the test when it does not ---- */

/* At any time, but for what rivals do. */
void check_always(struct story *story);
/* No device is given twice any more after rivals, but they can leave a pod bound without its
 * claims: deletes one. False: there is none. */
bool delete_broken(struct story *story);
/* When all has come to rest. */
void check_rest(struct story *story);
/* When besides there are no pods any more. */
void check_empty(struct story *story);

#endif
