/* agent_lease.c - the node's Lease: it tells others that this node is alive. */
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_state.h"
#include "resource/patch.h"
#include "resource/resource.h"

/* The kubelet's figures: a lease is renewed every 10 s, and a node without one for 40 s counts as
 * dead. */
#define OFTEN_MS 10000u
#define OFTEN_S 40
/* Where the API and the node are one process nobody has to find out that the other is gone: the
 * lease is there to be read, and each renewal is a write to the disk. */
#define SELDOM_MS 300000u
#define SELDOM_S 900
#define RETRY_FIRST_MS 500u
#define JITTER_PER_MILLE 200u
#define NOT_FOUND 404
#define CONFLICT 409

static void on_lease_timer(struct dv_timer *timer)
{
    dv_agent_lease_renew(DV_CONTAINER(timer, struct dv_agent, node.lease_timer));
}

static void on_renewed(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent *agent = DV_CONTAINER(request, struct dv_agent, node.lease.request);
    uint64_t usual_ms = agent->options.renews_lease ? OFTEN_MS : SELDOM_MS;
    uint64_t pause_ms = usual_ms;

    dv_agent_write_end(&agent->node.lease);
    if (agent->is_closing) {
        dv_agent_check_closed(agent);
        return;
    }
    if (failure && failure->code == NOT_FOUND)
        agent->node.has_lease = false;
    else if (!failure || failure->code == CONFLICT)
        agent->node.has_lease = true;
    if (failure) {
        dv_log(DV_LOG_DEBUG, "pod: the lease is not renewed", DV_F_STR("why", failure->message));
        pause_ms = agent->node.lease_retry_ms ? agent->node.lease_retry_ms : RETRY_FIRST_MS;
    }
    if (!failure && !agent->node.is_lease_owned && dv_agent_node_of(agent))
        pause_ms = 0; /* the Node came while the lease was being written */
    agent->node.lease_retry_ms = failure ? dv_u64_min(pause_ms * 2, OFTEN_MS) : 0;
    dv_timer_start(&agent->node.lease_timer, agent->loop,
                   dv_loop_now_ms(agent->loop) + dv_jitter(pause_ms, JITTER_PER_MILLE),
                   on_lease_timer);
    if (!failure)
        dv_agent_node_correct(agent);
}

/* The Node owns its lease, so that it goes with it. Until the Node is known the lease has no
 * owner. */
static void add_owner(struct dv_agent *agent, struct dv_arena *arena, struct dv_api_lease *lease)
{
    const struct dv_api_node *node = agent->node.view ? dv_agent_node_of(agent) : NULL;
    struct dv_api_owner_reference *owner;

    agent->node.is_lease_owned = node != NULL;
    if (!node)
        return;
    owner = DV_NEW(arena, struct dv_api_owner_reference);
    *owner = (struct dv_api_owner_reference){.api_version = DV_STR("v1"),
                                             .kind = DV_STR("Node"),
                                             .name = agent->options.node_name,
                                             .uid = dv_str_copy(node->metadata.uid, arena)};
    lease->metadata.owner_references = owner;
    lease->metadata.n_owner_references = 1;
}

void dv_agent_lease_renew(struct dv_agent *agent)
{
    static const int64_t often_s = OFTEN_S;
    static const int64_t seldom_s = SELDOM_S;
    struct dv_agent_write *write = &agent->node.lease;
    struct dv_api_lease *lease;

    if (!dv_agent_write_begin(write))
        return;
    lease = DV_NEW(write->arena, struct dv_api_lease);
    lease->metadata.name = agent->options.node_name;
    lease->metadata.namespace = DV_STR("kube-node-lease");
    lease->spec.holder_identity = agent->options.node_name;
    lease->spec.lease_duration_seconds = agent->options.renews_lease ? &often_s : &seldom_s;
    lease->spec.renew_time = dv_api_time_round(dv_agent_now(agent), true);
    add_owner(agent, write->arena, lease);
    write->request.verb = agent->node.has_lease ? DV_VERB_PATCH : DV_VERB_CREATE;
    write->request.kind = dv_kind(DV_KIND_LEASE);
    write->request.namespace = lease->metadata.namespace;
    write->request.name = agent->options.node_name;
    write->request.done = on_renewed;
    if (agent->node.has_lease) {
        write->request.patch_type = DV_PATCH_MERGE;
        write->request.patch = dv_encode_patch(&dv_message_lease, lease, write->arena);
    } else {
        write->request.value = lease;
    }
    dv_request_start(agent->options.cluster, &write->request);
}
