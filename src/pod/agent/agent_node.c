/* agent_node.c - the Node object: what this node can offer, and that it is alive. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "pod/agent/agent_pressure.h"
#include "pod/agent/agent_state.h"
#include "pod/agent/node_merge.h"
#include "resource/resource.h"

#define RETRY_FIRST_MS 500u
#define RETRY_MAX_MS 30000u
#define RETRY_JITTER_PER_MILLE 200u
/* The kubelet tells that often that nothing has changed. Memory and disk are looked at at the same
 * time: pressure is told from one look that finds it to the next one that does not. */
#define HEARTBEAT_MS 300000u
#define CONFLICT 409
#define STATUS_BYTES_MAX (1u << 20)

struct dv_time dv_agent_now(const struct dv_agent *agent)
{
    return dv_api_time_from_ns(dv_clock_wall_ns(dv_loop_clock(agent->loop)));
}

const struct dv_api_node *dv_agent_node_of(const struct dv_agent *agent)
{
    const struct dv_object *object =
        dv_view_get(agent->node.view, DV_STR(""), agent->options.node_name);

    return object ? object->value : NULL;
}

static void make_node(const struct dv_agent *agent, struct dv_arena *arena,
                      struct dv_api_node *node)
{
    /* As the kubelet with --hostname-override: pods are bound to nodes by this label. */
    const struct dv_str_entry labels[] = {
        {DV_STR("kubernetes.io/hostname"), agent->options.node_name           },
        {DV_STR("kubernetes.io/os"),       DV_STR("linux")                    },
        {DV_STR("kubernetes.io/arch"),     agent->options.machine.architecture},
    };

    *node = (struct dv_api_node){.metadata.name = agent->options.node_name};
    for (size_t i = 0; i < DV_COUNT(labels); i++)
        dv_entry_set(&node->metadata.labels, &node->metadata.n_labels, labels[i].key,
                     labels[i].value, arena);
}

/* ---- writing ---- */

static void on_retry(struct dv_timer *timer)
{
    dv_agent_node_look(DV_CONTAINER(timer, struct dv_agent, node.retry));
}

static void try_later(struct dv_agent *agent, const struct dv_api_status *failure)
{
    struct dv_agent_node *node = &agent->node;
    uint64_t pause_ms = node->retry_ms ? node->retry_ms : RETRY_FIRST_MS;

    dv_log(DV_LOG_WARN, "pod: the API does not take what is written of this node; trying again",
           DV_F_STR("node", agent->options.node_name), DV_F_STR("why", failure->message),
           DV_F_U64("retry_ms", pause_ms));
    node->retry_ms = dv_u64_min(pause_ms * 2, RETRY_MAX_MS);
    node->is_dirty = true;
    node->written = 0;
    dv_timer_cancel(&node->retry);
    dv_timer_start(&node->retry, agent->loop,
                   dv_loop_now_ms(agent->loop) + dv_jitter(pause_ms, RETRY_JITTER_PER_MILLE),
                   on_retry);
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_agent *agent = DV_CONTAINER(request, struct dv_agent, node.write.request);
    bool is_create = request->verb == DV_VERB_CREATE;
    bool is_there = !failure || (is_create && failure->code == CONFLICT);

    if (agent->is_closing) {
        dv_agent_write_end(&agent->node.write);
        dv_agent_check_closed(agent);
        return;
    }
    if (!is_there)
        try_later(agent, failure);
    else if (!failure)
        agent->node.retry_ms = 0;
    dv_agent_write_end(&agent->node.write);
    /* A Node object that was created and that the view does not show yet is not created again: the
     * view will show it, and this function runs again. */
    if (is_there && (!is_create || dv_agent_node_of(agent)))
        dv_agent_node_look(agent);
}

static void address(struct dv_agent *agent, struct dv_request *request, enum dv_verb verb,
                    enum dv_kind_id kind)
{
    request->verb = verb;
    request->kind = dv_kind(kind);
    request->name = agent->options.node_name;
    request->done = on_written;
    (void)agent;
}

static void create(struct dv_agent *agent)
{
    struct dv_agent_write *write = &agent->node.write;
    struct dv_api_node *value;

    if (!dv_agent_write_begin(write))
        return;
    value = DV_NEW(write->arena, struct dv_api_node);
    make_node(agent, write->arena, value);
    address(agent, &write->request, DV_VERB_CREATE, DV_KIND_NODE);
    write->request.value = value;
    dv_request_start(agent->options.cluster, &write->request);
}

struct status_change {
    struct dv_api_node_status status;
    const dv_str *api_key; /* NULL: there is none */
};

/* Sets what the node tells in its object. */
static bool set_status(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    const struct status_change *change = request->ctx;
    struct dv_api_node *node = value;

    dv_node_status_merge(&change->status, arena, &node->status);
    dv_node_annotate(DV_STR(DV_NODE_API_KEY), change->api_key, arena, &node->metadata);
    return true;
}

static uint64_t hash_of(const struct status_change *change)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;
    uint64_t hash;

    dv_buf_init(&bytes, STATUS_BYTES_MAX);
    dv_encode_pb(&dv_message_node_status, &change->status, &bytes);
    if (change->api_key)
        dv_buf_add(&bytes, *change->api_key);
    hash = dv_hash(dv_buf_str(&bytes));
    return hash != 0 ? hash : 1; /* 0 stands for none */
}

static void send_status(struct dv_agent *agent, struct status_change *change)
{
    struct dv_request *request = &agent->node.write.request;
    struct dv_time now = dv_agent_now(agent);

    now.nanos = 0;
    for (size_t i = 0; i < change->status.n_conditions; i++)
        change->status.conditions[i].last_heartbeat_time = now;
    request->subresource = DV_SUB_STATUS;
    request->patch_type = DV_PATCH_STRATEGIC;
    request->ctx = change;
    if (agent->options.cluster->is_embedded)
        request->change = set_status;
    else
        request->patch = dv_agent_node_patch(agent, &change->status, agent->node.write.arena);
    dv_request_start(agent->options.cluster, request);
}

static void write_status(struct dv_agent *agent)
{
    struct dv_agent_node *node = &agent->node;
    struct status_change *change;
    struct dv_api_node_status now;
    uint64_t hash;

    if (!dv_agent_write_begin(&node->write))
        return;
    node->is_dirty = false;
    address(agent, &node->write.request, DV_VERB_PATCH, DV_KIND_NODE);
    change = DV_NEW(node->write.arena, struct status_change);
    dv_agent_node_status(agent, node->write.arena, &now);
    /* The write may wait for another one, and what is told of may be gone by then. */
    dv_message_copy(&dv_message_node_status, &now, node->write.arena, &change->status);
    if (node->api_key) {
        dv_str *key = DV_NEW(node->write.arena, dv_str);

        *key = dv_str_copy(dv_str_from_c(node->api_key), node->write.arena);
        change->api_key = key;
    }
    /* That time passes is no reason to write; what is written has the time of that. */
    hash = hash_of(change);
    if (node->written == hash) {
        dv_agent_write_end(&node->write);
        return;
    }
    node->written = hash;
    send_status(agent, change);
}

void dv_agent_node_look(struct dv_agent *agent)
{
    if (agent->is_closing || !agent->node.view || !dv_view_is_synced(agent->node.view) ||
        dv_timer_is_set(&agent->node.retry))
        return;
    if (!dv_agent_node_of(agent))
        create(agent);
    else if (agent->node.is_dirty)
        write_status(agent);
}

void dv_agent_set_api(struct dv_agent *agent, uint16_t port, dv_str key)
{
    free(agent->node.api_key);
    agent->node.api_key = dv_alloc(key.n + 1);
    memcpy(agent->node.api_key, key.p, key.n);
    agent->node.port = port;
    agent->node.is_dirty = true;
    dv_agent_node_look(agent);
}

static void write_anew(struct dv_agent *agent)
{
    agent->node.is_dirty = true;
    agent->node.written = 0;
    dv_agent_node_look(agent);
}

static bool is_ready(const struct dv_api_node *node)
{
    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return dv_str_eq(node->status.conditions[i].status, DV_STR("True"));
    return false;
}

/* The lease is renewed again. While it was not, others may have marked this node as lost: its
 * status is written anew. */
void dv_agent_node_correct(struct dv_agent *agent)
{
    const struct dv_api_node *node = agent->node.view ? dv_agent_node_of(agent) : NULL;

    if (node && !is_ready(node))
        write_anew(agent);
}

/* ---- heartbeats ---- */

static void on_read(struct dv_work *work)
{
    struct dv_agent *agent = DV_CONTAINER(work, struct dv_agent, node.reading);

    dv_pressure_read(agent->options.machine.storage_dir, &agent->node.readings);
}

static void on_heartbeat(struct dv_timer *timer)
{
    struct dv_agent *agent = DV_CONTAINER(timer, struct dv_agent, node.heartbeat);

    agent->node.is_reading = true;
    dv_work_start(&agent->node.reading, agent->loop);
}

static void on_readings(struct dv_work *work, const struct dv_err *err)
{
    struct dv_agent *agent = DV_CONTAINER(work, struct dv_agent, node.reading);
    struct dv_agent_node *node = &agent->node;

    node->is_reading = false;
    if (agent->is_closing) {
        dv_agent_check_closed(agent);
        return;
    }
    if (!err)
        node->pressure = dv_pressure_judge(&node->readings);
    write_anew(agent);
    dv_timer_start(&node->heartbeat, agent->loop,
                   dv_loop_now_ms(agent->loop) + dv_jitter(HEARTBEAT_MS, RETRY_JITTER_PER_MILLE),
                   on_heartbeat);
}

/* ---- life ---- */

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_agent *agent = ctx;

    if (!old || !now) {
        agent->node.is_dirty = true;
        agent->node.written = 0;
    }
    if (!old && now)
        dv_agent_lease_renew(agent); /* of which it is the owner */
    dv_agent_node_look(agent);
    dv_agent_mirrors_look(agent); /* they have the Node as their owner */
}

static void on_synced(void *ctx)
{
    dv_agent_node_look(ctx);
}

bool dv_agent_node_open(struct dv_agent *agent, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_view_options view = {
        .kind = dv_kind(DV_KIND_NODE),
        .field_selector =
            dv_str_printf(arena, "metadata.name=%.*s", DV_FMT(agent->options.node_name)),
        .changed = on_changed,
        .synced = on_synced,
        .ctx = agent,
    };

    agent->node.is_dirty = true;
    agent->node.view = dv_view_open(agent->options.cluster, &view, err);
    if (!agent->node.view)
        return false;
    agent->node.reading.run = on_read;
    agent->node.reading.done = on_readings;
    on_heartbeat(&agent->node.heartbeat);
    dv_agent_lease_renew(agent);
    return true;
}

static void stop_write(struct dv_agent *agent, struct dv_agent_write *write)
{
    if (write->is_running)
        dv_request_cancel(agent->options.cluster, &write->request);
}

void dv_agent_node_stop(struct dv_agent *agent)
{
    dv_timer_cancel(&agent->node.lease_timer);
    dv_timer_cancel(&agent->node.heartbeat);
    dv_timer_cancel(&agent->node.retry);
    if (agent->node.is_reading)
        dv_work_cancel(&agent->node.reading);
    if (agent->node.view)
        dv_view_close(agent->node.view);
    agent->node.view = NULL;
    stop_write(agent, &agent->node.write);
    stop_write(agent, &agent->node.lease);
}

bool dv_agent_node_is_idle(const struct dv_agent *agent)
{
    return !agent->node.write.is_running && !agent->node.lease.is_running &&
           !agent->node.is_reading;
}
