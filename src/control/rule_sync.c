/* rule_sync.c - writes the status of a DeviceTaintRule: how many pods it evicts, or would evict. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* "resource.k8s.io/v1beta2" and its like. */
#define VERSION_BYTES_MAX 128u
/* The first status is written at once, later ones this long after each other, as in the reference:
 * while thousands of pods are evicted, the counts change all the time. */
#define STATUS_MS 10000u

size_t dv_control_rule_sync_bytes(void)
{
    return sizeof(struct dv_control_sync);
}

/* The rule has told what it does, or cannot: pods that waited for that may be evicted now. */
static void set_told(struct dv_evictor *evictor, struct dv_rule *rule)
{
    if (rule->is_told)
        return;
    rule->is_told = true;
    dv_control_queue_all(evictor->control, DV_CONTROL_EVICTION_QUEUE, &evictor->doomed_by_rule,
                         rule->uid);
}

static void on_applied(struct dv_control_sync *sync, const struct dv_api_status *failure)
{
    struct dv_evictor *evictor = sync->control->evictor;
    struct dv_rule *rule = dv_map_get(&evictor->rule_uids, sync->object->meta->uid);

    if (rule && !failure)
        rule->told_ms = dv_loop_now_ms(sync->control->loop);
    if (rule)
        set_told(evictor, rule);
    if (failure && failure->code != 404)
        dv_control_sync_fail(sync, "write the rule's status", failure);
    else
        dv_control_sync_finish(sync);
}

static dv_str api_version(const struct dv_kind *kind, struct dv_arena *arena)
{
    struct dv_buf text;
    dv_str copy;

    dv_buf_init(&text, VERSION_BYTES_MAX);
    dv_api_version_print(&kind->versions[0], &text);
    copy = dv_str_copy(dv_buf_str(&text), arena);
    dv_buf_fini(&text);
    return copy;
}

/* How long it takes until the rule's status may be written again. */
static uint64_t wait_ms(const struct dv_control *control, const struct dv_rule *rule)
{
    const struct dv_api_device_taint_rule *value = rule->object->value;
    const struct dv_api_condition *condition = dv_rule_find_condition(value);
    uint64_t now_ms = dv_loop_now_ms(control->loop);

    if (rule->told_ms == 0 || !condition ||
        condition->observed_generation != value->metadata.generation)
        return 0;
    return rule->told_ms + STATUS_MS > now_ms ? rule->told_ms + STATUS_MS - now_ms : 0;
}

static void write_status(struct dv_control_sync *sync, const struct dv_api_condition *condition)
{
    const struct dv_api_device_taint_rule *rule = sync->object->value;
    const struct dv_kind *kind = sync->object->kind;

    sync->request = (struct dv_request){
        .verb = DV_VERB_PATCH,
        .subresource = DV_SUB_STATUS,
        .kind = kind,
        .name = rule->metadata.name,
        .patch_type = DV_PATCH_APPLY,
        .patch = dv_rule_status(rule, condition, api_version(kind, sync->arena), sync->arena),
        .field_manager = DV_STR(DV_CONTROL_TAINTS),
        .is_forced = true};
    dv_control_sync_ask(sync, on_applied);
}

static void run(struct dv_control_sync *sync, struct dv_rule *rule)
{
    struct dv_control *control = sync->control;
    const struct dv_api_device_taint_rule *value = sync->object->value;
    struct dv_api_condition condition;
    struct dv_rule_counts counts;

    dv_rules_count(control->evictor, rule, sync->arena, &counts);
    dv_rule_condition(value, &counts, dv_control_now(control), sync->arena, &condition);
    if (dv_rule_has_condition(value, &condition)) {
        set_told(control->evictor, rule);
        dv_control_sync_finish(sync);
    } else if (wait_ms(control, rule) > 0) {
        dv_control_sync_finish_after(sync, wait_ms(control, rule));
    } else {
        write_status(sync, &condition);
    }
}

void dv_control_rule_sync_run(struct dv_queue_item *item)
{
    struct dv_control_sync *sync = DV_CONTAINER(item, struct dv_control_sync, item);
    struct dv_control *control =
        DV_CONTAINER(item->queue, struct dv_control, queues[DV_CONTROL_RULE_QUEUE]);
    struct dv_rule *rule = dv_map_get(&control->evictor->rules, item->name);

    if (rule && dv_evictor_is_judging(control->evictor))
        /* Its counts are not known before the pending judgements are made. */
        rule->is_waiting = true;
    else if (rule && dv_rule_is_settled(rule->object->value))
        set_told(control->evictor, rule);
    else if (rule) {
        dv_control_sync_begin(sync, control, rule->object);
        run(sync, rule);
        return;
    }
    dv_queue_finish(item);
}
