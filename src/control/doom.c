/* doom.c - pods that have to be evicted, and when. A pod is doomed from the moment that a taint of
 * one of its devices is not tolerated for ever; when its time has come it is queued for
 * eviction_sync.c, and when the taint goes before that, it may stay. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/recorder.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "loop/loop.h"
#include "resource/resource.h"

/* The time of an eviction is one of the wall clock, but timers run by the monotonic clock. Somebody
 * may set the wall clock, so it is looked at at least this often. */
#define LOOK_MS 60000u

static void set_timer(struct dv_doomed *doomed);

void dv_doom_free(struct dv_doomed *doomed)
{
    dv_timer_cancel(&doomed->timer);
    dv_arena_free(doomed->arena);
    free(doomed);
}

/* How long until the pod has to go, by the wall clock as it is now. */
static uint64_t left_ms(const struct dv_doomed *doomed)
{
    struct dv_loop *loop = doomed->evictor->control->loop;
    uint64_t now_ms = dv_clock_wall_ns(dv_loop_clock(loop)) / 1000000u;
    uint64_t at_s = doomed->eviction.at_s > 0 ? (uint64_t)doomed->eviction.at_s : 0;
    uint64_t at_ms = at_s > UINT64_MAX / 1000 ? UINT64_MAX : at_s * 1000;

    return at_ms > now_ms ? at_ms - now_ms : 0;
}

static void on_timer(struct dv_timer *timer)
{
    set_timer(DV_CONTAINER(timer, struct dv_doomed, timer));
}

static void set_timer(struct dv_doomed *doomed)
{
    struct dv_control *control = doomed->evictor->control;
    uint64_t ms = left_ms(doomed);
    dv_str namespace;
    dv_str name;

    if (ms > 0) {
        dv_timer_start(&doomed->timer, control->loop,
                       dv_loop_now_ms(control->loop) + dv_u64_min(ms, LOOK_MS), on_timer);
        return;
    }
    dv_timer_cancel(&doomed->timer);
    dv_control_split(doomed->key, &namespace, &name);
    dv_queue_add(&control->queues[DV_CONTROL_EVICTION_QUEUE], namespace, name);
}

/* The rules that doom the pod have something new to tell in their status. */
static void look_at_rules(struct dv_evictor *evictor, const struct dv_eviction *eviction)
{
    for (size_t i = 0; i < eviction->n_rules; i++)
        dv_rules_look(evictor, eviction->rules[i]);
}

static void forget(struct dv_doomed *doomed)
{
    struct dv_evictor *evictor = doomed->evictor;

    (void)dv_map_remove(&evictor->doomed, doomed->key);
    dv_index_set(&evictor->doomed_by_rule, doomed->key, NULL, 0);
    look_at_rules(evictor, &doomed->eviction);
    dv_doom_free(doomed);
}

static void tell_cancelled(struct dv_evictor *evictor, dv_str key)
{
    const struct dv_object *object;
    struct dv_note_subject subject;
    dv_str namespace;
    dv_str name;

    dv_control_split(key, &namespace, &name);
    object = dv_control_get(evictor->control, DV_CONTROL_PODS, namespace, name);
    if (!object)
        return;
    subject = dv_note_subject_of(object);
    dv_recorder_note(evictor->control->taints_recorder, &subject, false, DV_STR(DV_EVICTION_REASON),
                     DV_STR("Cancelling deletion"));
}

static void doom(struct dv_evictor *evictor, dv_str key, const struct dv_api_pod *pod,
                 const struct dv_eviction *eviction)
{
    struct dv_doomed *doomed = DV_ALLOC(struct dv_doomed);

    doomed->evictor = evictor;
    doomed->arena = dv_arena_new();
    doomed->key = dv_str_copy(key, doomed->arena);
    doomed->uid = dv_str_copy(pod->metadata.uid, doomed->arena);
    doomed->eviction = *eviction;
    doomed->eviction.rules = DV_NEW_ARRAY(doomed->arena, dv_str, eviction->n_rules);
    for (size_t i = 0; i < eviction->n_rules; i++)
        doomed->eviction.rules[i] = dv_str_copy(eviction->rules[i], doomed->arena);
    /* The call of dv_doom_set has removed the old one. */
    (void)dv_map_set(&evictor->doomed, doomed->key, doomed);
    dv_index_set(&evictor->doomed_by_rule, doomed->key, doomed->eviction.rules,
                 doomed->eviction.n_rules);
    look_at_rules(evictor, &doomed->eviction);
    set_timer(doomed);
}

void dv_doom_set(struct dv_evictor *evictor, dv_str key, const struct dv_api_pod *pod,
                 const struct dv_eviction *eviction)
{
    struct dv_doomed *doomed = dv_map_get(&evictor->doomed, key);
    bool is_same = doomed && pod && dv_str_eq(doomed->uid, pod->metadata.uid);

    if (is_same && dv_eviction_eq(&doomed->eviction, eviction))
        return;
    if (doomed)
        forget(doomed);
    if (pod && eviction->is_set)
        doom(evictor, key, pod, eviction);
    else if (is_same && !pod->metadata.deletion_timestamp.is_set &&
             !dv_recent_has(&evictor->evicted, pod->metadata.uid))
        tell_cancelled(evictor, key);
}

struct dv_doomed *dv_doom_due(const struct dv_evictor *evictor, dv_str key)
{
    struct dv_doomed *doomed = dv_map_get(&evictor->doomed, key);

    return doomed && left_ms(doomed) == 0 ? doomed : NULL;
}
