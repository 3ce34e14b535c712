/* node_sync.c - watches the leases of nodes, and writes what node_health.c decides when one is not
 * renewed. What counts is when we have seen a renewal, and not the time in the lease: the clocks of
 * nodes may be wrong. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/node_health.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* A lease that says it lasts for longer counts as one that lasts for so long. */
#define LEASE_MS_MAX 3600000u

struct lease {
    dv_str node;
    struct dv_time renewed; /* the time in the lease */
    uint64_t seen_ms;       /* when we saw it change, on the loop's clock */
    uint64_t limit_ms;      /* how long its node may be silent */
};

size_t dv_control_node_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

void dv_control_leases_free(struct dv_control *control)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&control->leases, &at));)
        free(entry->value);
    dv_map_fini(&control->leases);
}

static struct lease *new_lease(struct dv_control *control, dv_str node)
{
    struct lease *lease = dv_alloc(sizeof(*lease) + node.n);

    memcpy(lease + 1, node.p, node.n);
    lease->node = (dv_str){(const char *)(lease + 1), node.n};
    (void)dv_map_set(&control->leases, lease->node, lease); /* looked up above: there was none */
    return lease;
}

static bool is_same_time(struct dv_time a, struct dv_time b)
{
    return a.is_set == b.is_set && a.seconds == b.seconds && a.nanos == b.nanos;
}

/* A node may be silent for as long as its lease lasts, and at least for the kubelet's time. */
static uint64_t limit_of(const struct dv_api_lease_spec *spec)
{
    int64_t seconds = spec->lease_duration_seconds ? *spec->lease_duration_seconds : 0;

    if (seconds <= 0)
        return DV_NODE_SILENT_MS;
    return dv_u64_max(DV_NODE_SILENT_MS, dv_u64_min((uint64_t)seconds * 1000, LEASE_MS_MAX));
}

void dv_control_lease_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_control *control = ctx;
    const struct dv_api_object_meta *meta = (now ? now : old)->meta;
    struct lease *lease = dv_map_get(&control->leases, meta->name);
    bool is_new = !lease;

    if (!dv_str_eq(meta->namespace, DV_STR(DV_NODE_LEASES)))
        return;
    if (now) {
        struct dv_time renewed = ((const struct dv_api_lease *)now->value)->spec.renew_time;

        if (is_new)
            lease = new_lease(control, meta->name);
        if (is_new || !is_same_time(lease->renewed, renewed))
            lease->seen_ms = dv_loop_now_ms(control->loop);
        lease->renewed = renewed;
        lease->limit_ms = limit_of(&((const struct dv_api_lease *)now->value)->spec);
        dv_queue_add(&control->queues[DV_CONTROL_NODE_QUEUE], DV_STR_NONE, meta->name);
    } else {
        free(dv_map_remove(&control->leases, meta->name));
    }
}

void dv_control_node_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_control *control = ctx;

    if (!old || !now)
        dv_control_stray_node_changed(control, (now ? now : old)->meta->name, now != NULL);
    if (now)
        dv_queue_add(&control->queues[DV_CONTROL_NODE_QUEUE], DV_STR_NONE, now->meta->name);
}

static void on_written(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (failure && failure->code != 404)
        dv_control_sync_fail(sync, "write what is known of a node", failure);
    /* The view shows the change, which queues the node again for the next step. */
    else
        dv_control_sync_finish(sync);
}

static void write_step(struct dv_control_sync *sync, enum dv_health_step step)
{
    const struct dv_api_node *node = sync->object->value;

    if (step != DV_HEALTH_SET_UNKNOWN)
        dv_log(DV_LOG_INFO,
               step == DV_HEALTH_ADD_TAINT ? "control: a node is silent; nothing is scheduled to it"
                                           : "control: a node is heard of again",
               DV_F_STR("node", node->metadata.name));
    sync->request = (struct dv_request){
        .verb = DV_VERB_PATCH,
        .subresource = step == DV_HEALTH_SET_UNKNOWN ? DV_SUB_STATUS : DV_SUB_NONE,
        .kind = sync->object->kind,
        .name = node->metadata.name,
        .patch_type = DV_PATCH_STRATEGIC,
        .patch = dv_health_patch(node, step, dv_control_now(sync->control), sync->arena),
        .field_manager = DV_STR(DV_CONTROL_NODES_MANAGER)};
    dv_control_sync_ask(sync, on_written);
}

void dv_control_node_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_NODE_QUEUE]);
    struct dv_object *object = dv_control_get(control, DV_CONTROL_NODES, DV_STR_NONE, item->name);
    const struct lease *lease = dv_map_get(&control->leases, item->name);
    enum dv_health_step step;
    uint64_t silent_ms;

    /* A node without a lease is that of this process, or of an agent that has not started yet. */
    if (!object || !lease) {
        dv_queue_finish(item);
        return;
    }
    silent_ms = dv_loop_now_ms(control->loop) - lease->seen_ms;
    step = dv_health_next(object->value, silent_ms >= lease->limit_ms);
    dv_control_sync_begin(sync, control, object);
    if (step != DV_HEALTH_NOTHING)
        write_step(sync, step);
    else if (silent_ms < lease->limit_ms)
        dv_control_sync_finish_after(sync, lease->limit_ms - silent_ms);
    else
        dv_control_sync_finish(sync);
}
