/* eviction_sync.c - evicts a pod whose time has come: reads it from the server, writes the reason
 * into its status, and deletes it. Before each step it looks whether the pod is still to go,
 * because taints may be removed meanwhile. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/metric.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/recorder.h"
#include "control/control.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct eviction_sync {
    struct dv_control_sync sync;
    /* What was due when the sync began; in its arena. */
    dv_str uid;
    struct dv_eviction eviction;
};

static void delete_pod(struct eviction_sync *eviction_sync);

size_t dv_control_eviction_sync_bytes(void)
{
    return sizeof(struct eviction_sync);
}

static struct eviction_sync *eviction_sync_of(struct dv_control_sync *sync)
{
    return DV_CONTAINER(sync, struct eviction_sync, sync);
}

/* Ends the sync for good: nothing is left to be done for that pod. `is_ours`: we have deleted it,
 * which is counted. */
static void finish(struct eviction_sync *eviction_sync, bool is_ours)
{
    struct dv_control_sync *sync = &eviction_sync->sync;
    struct dv_evictor *evictor = sync->control->evictor;
    const struct dv_doomed *doomed = dv_doom_due(evictor, sync->item.key);

    if (is_ours)
        dv_recent_add(&evictor->evicted, eviction_sync->uid);
    /* A new pod may have taken the name meanwhile, and may be doomed itself: that is not the one
     * that was evicted. */
    if (doomed && dv_str_eq(doomed->uid, eviction_sync->uid))
        dv_doom_set(evictor, sync->item.key, NULL, &(struct dv_eviction){.is_set = false});
    dv_control_sync_finish(sync);
}

/* Whether the same pod is still to be evicted. If not, the sync is ended here. */
static bool is_still_due(struct eviction_sync *eviction_sync)
{
    struct dv_control_sync *sync = &eviction_sync->sync;
    const struct dv_doomed *doomed = dv_doom_due(sync->control->evictor, sync->item.key);

    if (doomed && dv_str_eq(doomed->uid, eviction_sync->uid))
        return true;
    dv_control_sync_finish(sync);
    return false;
}

/* ---- the end ---- */

static void count(struct eviction_sync *eviction_sync)
{
    struct dv_control *control = eviction_sync->sync.control;
    uint64_t now_ns = dv_clock_wall_ns(dv_loop_clock(control->loop));
    int64_t at_s = eviction_sync->eviction.at_s;
    uint64_t at_ns = at_s > 0 ? (uint64_t)at_s * 1000000000u : 0;

    control->stats.n_pod_deletions++;
    if (control->options.deletion_seconds)
        dv_histogram_observe_ns(control->options.deletion_seconds,
                                now_ns > at_ns ? now_ns - at_ns : 0);
    for (size_t i = 0; i < eviction_sync->eviction.n_rules; i++) {
        struct dv_rule *rule =
            dv_map_get(&control->evictor->rule_uids, eviction_sync->eviction.rules[i]);

        if (!rule)
            continue;
        rule->n_evicted++;
        dv_rules_look(control->evictor, rule->uid);
    }
}

static void on_deleted(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct eviction_sync *eviction_sync = eviction_sync_of(sync);

    if (failure && failure->code != 404) {
        /* This is so for 409 too, which tells of a new pod of that name: the next run reads it. */
        dv_control_sync_fail(sync, "delete a pod", failure);
        return;
    }
    if (!failure)
        count(eviction_sync);
    finish(eviction_sync, !failure);
}

static void delete_pod(struct eviction_sync *eviction_sync)
{
    struct dv_control_sync *sync = &eviction_sync->sync;
    struct dv_api_delete_options *options = DV_NEW(sync->arena, struct dv_api_delete_options);

    options->preconditions = DV_NEW(sync->arena, struct dv_api_preconditions);
    options->preconditions->uid = eviction_sync->uid;
    sync->request = (struct dv_request){.verb = DV_VERB_DELETE,
                                        .kind = dv_kind(DV_KIND_POD),
                                        .namespace = sync->item.namespace,
                                        .name = sync->item.name,
                                        .delete_options = options};
    dv_control_sync_ask(sync, on_deleted);
}

/* ---- the condition ---- */

static bool has_condition(const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++) {
        const struct dv_api_pod_condition *condition = &pod->status.conditions[i];

        if (dv_str_eq(condition->type, DV_STR(DV_DISRUPTION)) &&
            dv_str_eq(condition->status, DV_STR("True")) &&
            dv_str_eq(condition->reason, DV_STR("DeletionByDeviceTaintManager")))
            return true;
    }
    return false;
}

static void on_marked(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct eviction_sync *eviction_sync = eviction_sync_of(sync);

    if (failure && failure->code == 404)
        finish(eviction_sync, false);
    else if (failure)
        dv_control_sync_fail(sync, "mark a pod for deletion", failure);
    else if (is_still_due(eviction_sync))
        delete_pod(eviction_sync);
}

static void mark_pod(struct eviction_sync *eviction_sync, const struct dv_api_pod *pod)
{
    struct dv_control_sync *sync = &eviction_sync->sync;
    struct dv_note_subject subject = dv_note_subject_of(sync->request.object);
    const struct dv_api_pod_condition condition = {
        .type = DV_STR(DV_DISRUPTION),
        .status = DV_STR("True"),
        .last_transition_time = dv_control_now(sync->control),
        .reason = DV_STR("DeletionByDeviceTaintManager"),
        .message = DV_STR("Device Taint manager: deleting due to NoExecute taint")};

    dv_recorder_note(sync->control->taints_recorder, &subject, false, DV_STR(DV_EVICTION_REASON),
                     DV_STR("Marking for deletion"));
    if (has_condition(pod)) {
        delete_pod(eviction_sync);
        return;
    }
    sync->request =
        (struct dv_request){.verb = DV_VERB_PATCH,
                            .subresource = DV_SUB_STATUS,
                            .kind = dv_kind(DV_KIND_POD),
                            .namespace = sync->item.namespace,
                            .name = sync->item.name,
                            .patch_type = DV_PATCH_STRATEGIC,
                            .patch = dv_control_disruption_patch(&condition, eviction_sync->uid,
                                                                 DV_STR_NONE, sync->arena),
                            .field_manager = DV_STR(DV_CONTROL_TAINTS)};
    dv_control_sync_ask(sync, on_marked);
}

static void on_pod(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct eviction_sync *eviction_sync = eviction_sync_of(sync);
    const struct dv_api_pod *pod;

    if (failure && failure->code != 404) {
        dv_control_sync_fail(sync, "look for a pod to evict", failure);
        return;
    }
    pod = failure ? NULL : sync->request.object->value;
    if (!pod || !dv_str_eq(pod->metadata.uid, eviction_sync->uid) ||
        pod->metadata.deletion_timestamp.is_set)
        finish(eviction_sync, false);
    else if (is_still_due(eviction_sync))
        mark_pod(eviction_sync, pod);
}

/* Whether a rule that dooms the pod has yet to say in its status that pods will be evicted. It says
 * so before the first of them is, so that whoever made the rule sees it in time. */
static bool is_rule_first(const struct dv_evictor *evictor, const struct dv_eviction *eviction)
{
    for (size_t i = 0; i < eviction->n_rules; i++) {
        const struct dv_rule *rule = dv_map_get(&evictor->rule_uids, eviction->rules[i]);

        if (rule && !rule->is_told)
            return true;
    }
    return false;
}

void dv_control_eviction_sync_run(struct dv_queue_item *item)
{
    struct eviction_sync *eviction_sync = DV_CONTAINER(item, struct eviction_sync, sync.item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_EVICTION_QUEUE]);
    struct dv_object *object =
        dv_control_get(control, DV_CONTROL_PODS, item->namespace, item->name);
    const struct dv_doomed *doomed = dv_doom_due(control->evictor, item->key);
    struct dv_control_sync *sync = &eviction_sync->sync;

    if (!object || !doomed || is_rule_first(control->evictor, &doomed->eviction)) {
        dv_queue_finish(item); /* the timer of doom.c or the rule's sync queues the pod again */
        return;
    }
    dv_control_sync_begin(sync, control, object);
    eviction_sync->uid = dv_str_copy(doomed->uid, sync->arena);
    eviction_sync->eviction = (struct dv_eviction){.is_set = true, .at_s = doomed->eviction.at_s};
    dv_eviction_merge(&eviction_sync->eviction, &doomed->eviction, sync->arena);
    for (size_t i = 0; i < eviction_sync->eviction.n_rules; i++)
        eviction_sync->eviction.rules[i] =
            dv_str_copy(eviction_sync->eviction.rules[i], sync->arena);
    sync->request = (struct dv_request){.verb = DV_VERB_GET,
                                        .kind = dv_kind(DV_KIND_POD),
                                        .namespace = item->namespace,
                                        .name = item->name};
    dv_control_sync_ask(sync, on_pod);
}
