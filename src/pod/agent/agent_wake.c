/* agent_wake.c - what may help a pod that could not be admitted, or released: it is tried at once
 * then, and not at the end of its pause. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "pod/pod.h"
#include "resource/resource.h"

struct dv_err;

/* ---- plugins, drivers, other pods ---- */

static uint64_t epoch_of_plugins(const struct dv_agent *agent,
                                 const struct dv_api_container *containers, size_t n)
{
    const struct dv_device_state *state = dv_device_manager_state(agent->options.devices);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < containers[i].resources.n_limits; k++) {
            struct dv_device_resource_info info;

            if (dv_device_find(state, containers[i].resources.limits[k].key, &info))
                sum += info.epoch;
        }
    return sum;
}

uint64_t dv_agent_pod_epoch(const struct dv_agent_pod *pod)
{
    const struct dv_agent *agent = pod->agent;
    const struct dv_api_pod *value = pod->object ? pod->object->value : NULL;
    uint64_t sum =
        agent->options.claims ? dv_claim_manager_epoch_of_pod(agent->options.claims, pod->uid) : 0;

    if (!value)
        return sum;
    return sum + epoch_of_plugins(agent, value->spec.containers, value->spec.n_containers) +
           epoch_of_plugins(agent, value->spec.init_containers, value->spec.n_init_containers);
}

static bool is_rival_gone(const struct dv_agent_pod *pod)
{
    struct dv_pod_ref ref = {.uid = pod->rival ? dv_str_from_c(pod->rival) : DV_STR("")};
    struct dv_pod_view view;

    return pod->rival && !dv_pods_find(pod->agent->options.pods, &ref, &view);
}

void dv_agent_pod_check(struct dv_agent_pod *pod)
{
    uint64_t epoch = dv_agent_pod_epoch(pod);

    if (epoch == pod->epoch && !is_rival_gone(pod))
        return;
    pod->epoch = epoch;
    dv_agent_pod_wake(pod);
}

void dv_agent_waiting_check(struct dv_agent *agent)
{
    struct dv_link *link;

    DV_LIST_EACH (&agent->waiting, link) {
        struct dv_agent_pod *pod = DV_CONTAINER(link, struct dv_agent_pod, waiting);

        if (pod->state == DV_AGENT_PAUSING || pod->kept)
            dv_agent_pod_check(pod);
    }
}

/* ---- the pod itself ---- */

static bool do_claims_differ(const struct dv_api_pod_status *a, const struct dv_api_pod_status *b)
{
    if (a->n_resource_claim_statuses != b->n_resource_claim_statuses ||
        !a->extended_resource_claim_status != !b->extended_resource_claim_status)
        return true;
    for (size_t i = 0; i < a->n_resource_claim_statuses; i++)
        if (!dv_message_eq(&dv_message_pod_resource_claim_status, &a->resource_claim_statuses[i],
                           &b->resource_claim_statuses[i]))
            return true;
    return a->extended_resource_claim_status &&
           !dv_message_eq(&dv_message_pod_extended_resource_claim_status,
                          a->extended_resource_claim_status, b->extended_resource_claim_status);
}

/* The generation counts the changes of the spec; it is 0 where the API is older than that. A pod
 * may be megabytes long, and each write of its status comes here. */
static bool is_same_spec(const struct dv_api_pod *a, const struct dv_api_pod *b)
{
    return (a->metadata.generation > 0 && a->metadata.generation == b->metadata.generation) ||
           dv_message_eq(&dv_message_pod_spec, &a->spec, &b->spec);
}

/* Compares spec and claims only. Conditions are what we write, and annotations may be what a
 * failing driver writes: either would wake the pod because of its own failure. */
bool dv_agent_pod_differs(const struct dv_object *old, const struct dv_object *now)
{
    const struct dv_api_pod *a = old->value;
    const struct dv_api_pod *b = now->value;

    return !is_same_spec(a, b) || do_claims_differ(&a->status, &b->status);
}

/* ---- its resources ---- */

static bool are_known(const struct dv_map *capacity, const struct dv_api_container *containers,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < containers[i].resources.n_limits; k++) {
            dv_str resource = containers[i].resources.limits[k].key;

            if (dv_str_find_char(resource, '/') < resource.n && !dv_map_get(capacity, resource))
                return false;
        }
    return true;
}

static bool has_all(const struct dv_api_node *node, const struct dv_api_pod *pod)
{
    struct dv_map capacity; /* both lists may be long */
    bool has;

    dv_map_init(&capacity);
    for (size_t i = 0; i < node->status.n_capacity; i++)
        dv_map_set(&capacity, node->status.capacity[i].key, &node->status.capacity[i]);
    has = are_known(&capacity, pod->spec.containers, pod->spec.n_containers) &&
          are_known(&capacity, pod->spec.init_containers, pod->spec.n_init_containers);
    dv_map_fini(&capacity);
    return has;
}

bool dv_agent_pod_was_possible(const struct dv_agent_pod *pod)
{
    const struct dv_agent *agent = pod->agent;
    const struct dv_object *object =
        agent->node.view ? dv_view_get(agent->node.view, DV_STR(""), agent->options.node_name)
                         : NULL;

    return object && pod->object && has_all(object->value, pod->object->value);
}

/* ---- its claims ---- */

static bool is_allocated_alike(const struct dv_api_resource_claim *a,
                               const struct dv_api_resource_claim *b)
{
    if (!a->status.allocation || !b->status.allocation)
        return !a->status.allocation && !b->status.allocation;
    return dv_message_eq(&dv_message_allocation_result, a->status.allocation, b->status.allocation);
}

/* Whether the claim is allocated otherwise, or reserved for others. What drivers write into its
 * status does not count: it may be about their failure. */
static bool does_help(const struct dv_object *old, const struct dv_object *now)
{
    const struct dv_api_resource_claim *a = old ? old->value : NULL;
    const struct dv_api_resource_claim *b = now->value;

    return !a || !dv_str_eq(a->metadata.uid, b->metadata.uid) || !is_allocated_alike(a, b) ||
           a->status.n_reserved_for != b->status.n_reserved_for;
}

static void on_claim(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_agent *agent = ctx;
    const struct dv_api_resource_claim *claim = now ? now->value : NULL;

    if (!claim || !does_help(old, now))
        return;
    for (size_t i = 0; i < claim->status.n_reserved_for; i++) {
        struct dv_agent_pod *pod = dv_map_get(&agent->pods, claim->status.reserved_for[i].uid);

        if (pod)
            dv_agent_pod_wake(pod);
    }
}

bool dv_agent_claims_open(struct dv_agent *agent, struct dv_err *err)
{
    const struct dv_view_options options = {
        .kind = dv_kind(DV_KIND_CLAIM), .changed = on_claim, .ctx = agent};

    agent->claims = dv_view_open(agent->options.cluster, &options, err);
    return agent->claims != NULL;
}
