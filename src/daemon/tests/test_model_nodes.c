/* test_model_nodes.c - the node halves: they prepare what pods have, run them, and let them go. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "cluster/cluster.h"
#include "daemon/tests/test_daemon_model.h"
#include "daemon/tests/test_model_world.h"
#include "resource/resource.h"

static bool has_device(const struct dv_api_resource_claim *claim, const char *device)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++)
        if (dv_str_eq(allocation->devices.results[i].device, dv_str_from_c(device)))
            return true;
    return false;
}

/* By a pod of this node, and still for that claim: it may have been given up by force, and given
 * another device for another pod since. */
static bool is_used(struct story *story, const struct prepared *prepared)
{
    struct dv_object **pods;

    for (size_t i = 0, n = list(story->world, DV_KIND_POD, &pods); i < n; i++) {
        const struct dv_api_pod *pod = pods[i]->value;

        if (is_over(pod) || pod->metadata.deletion_timestamp.is_set ||
            !dv_str_eq(pod->spec.node_name, NAME(story->world, "n%u", prepared->node)))
            continue;
        for (size_t j = 0; j < n_claims_of(pod); j++) {
            const struct dv_object *claim = look(story->world, DV_KIND_CLAIM, claim_of(pod, j));

            if (claim && dv_str_eq(claim->meta->uid, dv_str_from_c(prepared->claim)) &&
                is_reserved_for(claim->value, pod) && has_device(claim->value, prepared->device))
                return true;
        }
    }
    return false;
}

static bool is_excused(struct story *story, const char *uid)
{
    struct dv_object **claims;

    for (size_t i = 0, n = list(story->world, DV_KIND_CLAIM, &claims); i < n; i++)
        if (dv_str_eq(claims[i]->meta->uid, dv_str_from_c(uid)))
            return is_meddled(claims[i]->meta);
    return true; /* deleted by force, or never used again */
}

static void prepare(struct story *story, unsigned node, const struct dv_api_resource_claim *claim)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;
    const char *uid = dv_str_to_c(claim->metadata.uid, story->world->api.arena);

    for (size_t i = 0; i < allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &allocation->devices.results[i];
        const char *device = dv_str_to_c(result->device, story->world->api.arena);
        struct prepared *added;
        bool is_there = false;

        for (size_t j = 0; j < story->prepared.n; j++) {
            const struct prepared *other = &story->prepared.v[j];

            if (other->node != node || strcmp(other->device, device) != 0)
                continue;
            is_there |= strcmp(other->claim, uid) == 0;
            if (strcmp(other->claim, uid) != 0 && result->share_id.n == 0 && !story->had_rivals &&
                !is_meddled(&claim->metadata) && !is_excused(story, other->claim))
                fail_msg("n%u/%s is prepared for claim %s, and now for %.*s", node, device,
                         other->claim, DV_FMT(claim->metadata.name));
        }
        if (is_there)
            continue;
        added = dv_vec_add(&story->prepared);
        added->node = node;
        (void)snprintf(added->claim, sizeof(added->claim), "%s", uid);
        (void)snprintf(added->device, sizeof(added->device), "%s", device);
    }
}

/* Whether all that it needs is the pod's, and not yet an error. */
static bool may_run(struct story *story, const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < n_claims_of(pod); i++) {
        const struct dv_object *object = look(story->world, DV_KIND_CLAIM, claim_of(pod, i));
        const struct dv_api_resource_claim *claim = object ? object->value : NULL;

        if (!claim || !claim->status.allocation || !is_reserved_for(claim, pod) ||
            !is_for_node(claim, pod->spec.node_name))
            return false;
    }
    return true;
}

static void turn_pod(struct story *story, unsigned node, dv_str name)
{
    struct world *world = story->world;
    const struct dv_object *object = look(world, DV_KIND_POD, name);
    const struct dv_api_pod *pod = object ? object->value : NULL;

    if (!pod)
        return;
    if (pod->metadata.deletion_timestamp.is_set) {
        (void)destroy(world, DV_KIND_POD, name, 0);
    } else if (dv_str_eq(pod->status.phase, DV_STR("Running"))) {
        if (world->has_faults && roll(&story->dice, 100) == 0)
            (void)change(world, DV_KIND_POD, DV_SUB_STATUS, name,
                         roll(&story->dice, 2) ? "{status: {phase: Succeeded}}"
                                               : "{status: {phase: Failed}}");
    } else if (!is_over(pod) && may_run(story, pod)) {
        for (size_t i = 0; i < n_claims_of(pod); i++)
            prepare(story, node, look(world, DV_KIND_CLAIM, claim_of(pod, i))->value);
        (void)change(world, DV_KIND_POD, DV_SUB_STATUS, name, "{status: {phase: Running}}");
    }
}

static void turn_node(struct story *story, unsigned node)
{
    struct world *world = story->world;
    struct dv_object **pods;
    DV_VEC(dv_str) names = {0};

    for (size_t i = story->prepared.n; i-- > 0;)
        if (story->prepared.v[i].node == node && !is_used(story, &story->prepared.v[i]))
            dv_vec_remove_swap(&story->prepared, i);
    for (size_t i = 0, n = list(world, DV_KIND_POD, &pods); i < n; i++)
        if (dv_str_eq(((const struct dv_api_pod *)pods[i]->value)->spec.node_name,
                      NAME(world, "n%u", node)))
            *dv_vec_add_in(&names, world->api.arena) =
                dv_str_copy(pods[i]->meta->name, world->api.arena);
    for (size_t i = 0; i < names.n; i++)
        turn_pod(story, node, names.v[i]);
}

void turn_nodes(struct story *story, bool is_all)
{
    for (unsigned i = 0; i < N_NODES; i++) {
        if (is_all)
            story->is_dead[i] = false;
        if (is_all || (!story->is_dead[i] && roll(&story->dice, 4)))
            turn_node(story, i);
    }
}
