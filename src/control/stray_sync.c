/* stray_sync.c - pods on nodes that are gone. No agent will ever say that they have ended: when
 * their node has been away for a while they are marked as failed and deleted by force, so that
 * their owners make others and their devices are given back. A node that comes back in time keeps
 * them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "loop/loop.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "json/json.h"

/* How long a node may be away, as in the reference. */
#define AWAY_MS 40000u
#define REASON "DeletionByPodGC"

struct gone_node {
    uint64_t since_ms; /* on the loop's clock */
    dv_str name;
    char text[];
};

size_t dv_control_stray_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

void dv_control_strays_init(struct dv_control *control)
{
    dv_index_init(&control->placed);
    dv_map_init(&control->gone_nodes);
}

void dv_control_strays_fini(struct dv_control *control)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&control->gone_nodes, &at));)
        free(entry->value);
    dv_map_fini(&control->gone_nodes);
    dv_index_fini(&control->placed);
}

/* ---- what a change concerns ---- */

static void forget(struct dv_control *control, dv_str node)
{
    free(dv_map_remove(&control->gone_nodes, node));
}

/* Remembers since when the node is away, and has its pods looked at when that is too long. */
static void note_gone(struct dv_control *control, dv_str node)
{
    struct gone_node *gone;

    if (dv_map_get(&control->gone_nodes, node))
        return;
    gone = dv_alloc(sizeof(*gone) + node.n);
    memcpy(gone->text, node.p, node.n);
    gone->name = (dv_str){gone->text, node.n};
    gone->since_ms = dv_loop_now_ms(control->loop);
    (void)dv_map_set(&control->gone_nodes, gone->name, gone); /* there was none */
    dv_queue_add_after(&control->queues[DV_CONTROL_STRAY_QUEUE], DV_STR_NONE, node, AWAY_MS);
}

void dv_control_stray_node_changed(struct dv_control *control, dv_str node, bool is_there)
{
    if (is_there)
        forget(control, node);
    else if (dv_index_find(&control->placed, node))
        note_gone(control, node);
}

void dv_control_stray_changed(struct dv_control *control, const struct dv_api_pod *was,
                              const struct dv_api_pod *pod)
{
    const struct dv_api_object_meta *meta = &(pod ? pod : was)->metadata;
    dv_str node = pod ? pod->spec.node_name : DV_STR_NONE;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;

    if (!control->views[DV_CONTROL_NODES] ||
        dv_str_eq(node, was ? was->spec.node_name : DV_STR_NONE))
        return;
    scratch = dv_arena_new();
    dv_index_set(&control->placed,
                 dv_str_printf(scratch, "%.*s/%.*s", DV_FMT(meta->namespace), DV_FMT(meta->name)),
                 &node, node.n > 0);
    if (node.n > 0 && !dv_control_get(control, DV_CONTROL_NODES, DV_STR_NONE, node))
        note_gone(control, node);
}

/* ---- what is done ---- */

struct dv_json *dv_control_disruption_patch(const struct dv_api_pod_condition *condition,
                                            dv_str uid, dv_str phase, struct dv_arena *arena)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *meta = dv_json_new_object(arena);
    struct dv_json *status = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    dv_json_set(meta, DV_STR("uid"), dv_json_new_str(uid, arena), arena);
    dv_json_set(patch, DV_STR("metadata"), meta, arena);
    dv_json_append(list, dv_encode_patch(&dv_message_pod_condition, condition, arena));
    dv_json_set(status, DV_STR("conditions"), list, arena);
    if (phase.n > 0)
        dv_json_set(status, DV_STR("phase"), dv_json_new_str(phase, arena), arena);
    dv_json_set(patch, DV_STR("status"), status, arena);
    return patch;
}

/* What has been deleted by force, and is there because of its finalizers alone, is left to them. */
static bool is_deleted(const struct dv_api_pod *pod)
{
    const int64_t *grace_s = pod->metadata.deletion_grace_period_seconds;

    return pod->metadata.deletion_timestamp.is_set && grace_s && *grace_s == 0;
}

/* The next pod on the node that is to go; NULL: there is none. */
static struct dv_object *find_pod(const struct dv_control *control, dv_str node)
{
    const struct dv_list *refs = dv_index_find(&control->placed, node);
    struct dv_link *link;

    if (!refs)
        return NULL;
    DV_LIST_EACH (refs, link) {
        dv_str namespace;
        dv_str name;
        struct dv_object *object;

        dv_control_split(dv_index_thing(link), &namespace, &name);
        object = dv_control_get(control, DV_CONTROL_PODS, namespace, name);
        if (object && !is_deleted(object->value))
            return object;
    }
    return NULL;
}

static void on_deleted(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    if (failure && failure->code != 404 && failure->code != 409)
        dv_control_sync_fail(sync, "delete a pod whose node is gone", failure);
    else
        dv_control_sync_finish_after(sync, 0); /* the next one */
}

static void delete_pod(struct dv_control_sync *sync)
{
    const struct dv_api_object_meta *meta = sync->object->meta;
    struct dv_api_delete_options *options = DV_NEW(sync->arena, struct dv_api_delete_options);
    int64_t *grace_s = DV_NEW(sync->arena, int64_t);

    options->preconditions = DV_NEW(sync->arena, struct dv_api_preconditions);
    options->preconditions->uid = meta->uid;
    options->grace_period_seconds = grace_s;
    sync->request = (struct dv_request){.verb = DV_VERB_DELETE,
                                        .kind = dv_kind(DV_KIND_POD),
                                        .namespace = meta->namespace,
                                        .name = meta->name,
                                        .delete_options = options};
    dv_control_sync_ask(sync, on_deleted);
}

static void on_marked(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    const struct dv_api_pod *pod = sync->object->value;

    if (failure && failure->code != 404 && failure->code != 409)
        dv_control_sync_fail(sync, "mark a pod whose node is gone", failure);
    else if (failure ||
             dv_control_get(sync->control, DV_CONTROL_NODES, DV_STR_NONE, pod->spec.node_name))
        dv_control_sync_finish_after(sync, 0);
    else
        delete_pod(sync);
}

static void mark_pod(struct dv_control_sync *sync)
{
    const struct dv_api_object_meta *meta = sync->object->meta;
    const struct dv_api_pod_condition condition = {
        .type = DV_STR(DV_DISRUPTION),
        .status = DV_STR("True"),
        .last_transition_time = dv_control_now(sync->control),
        .reason = DV_STR(REASON),
        .message = DV_STR("PodGC: node no longer exists")};

    sync->request = (struct dv_request){
        .verb = DV_VERB_PATCH,
        .subresource = DV_SUB_STATUS,
        .kind = dv_kind(DV_KIND_POD),
        .namespace = meta->namespace,
        .name = meta->name,
        .patch_type = DV_PATCH_STRATEGIC,
        .patch = dv_control_disruption_patch(&condition, meta->uid, DV_STR("Failed"), sync->arena),
        .field_manager = DV_STR("pod-garbage-collector")};
    dv_control_sync_ask(sync, on_marked);
}

void dv_control_stray_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_STRAY_QUEUE]);
    const struct gone_node *gone = dv_map_get(&control->gone_nodes, item->name);
    uint64_t now_ms = dv_loop_now_ms(control->loop);
    struct dv_object *pod;

    /* At a start pods are shown before all nodes are. */
    if (!gone || dv_control_get(control, DV_CONTROL_NODES, DV_STR_NONE, item->name)) {
        forget(control, item->name);
        dv_queue_finish(item);
        return;
    }
    if (now_ms - gone->since_ms < AWAY_MS) { /* it was there for a moment */
        dv_queue_finish_after(item, gone->since_ms + AWAY_MS - now_ms);
        return;
    }
    pod = find_pod(control, item->name);
    if (!pod) {
        forget(control, item->name);
        dv_queue_finish(item);
        return;
    }
    dv_control_sync_begin(sync, control, pod);
    dv_log(DV_LOG_INFO, "control: a pod is deleted, because its node is gone",
           DV_F_STR("pod", pod->meta->name), DV_F_STR("node", item->name));
    if (dv_pod_is_terminal(pod->value))
        delete_pod(sync);
    else
        mark_pod(sync);
}
