/* say.c - what pods are told: the PodScheduled condition while they wait, and events.
 *
 * Conditions are written until they are there, a few at a time, and only when they say something
 * new. Events are for people. They are written after what they tell of, in a burst of pods some
 * dozens at a time; when too many wait, no decision is made until fewer do (dv_sched_says_keep_up),
 * so that none has to be dropped. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/patch.h"
#include "resource/resource.h"
#include "sched/binding.h"
#include "sched/sched.h"
#include "sched/sched_state.h"
#include "json/json.h"

#define N_SAYING_MAX 64u
#define N_TELLING_MAX 256u
/* With so many events waiting no decision is made; those that are under way may add as many again.
 */
#define N_EVENTS_SLOW 4096u
#define N_EVENTS_MAX (2u * N_EVENTS_SLOW)
/* While many pods are being bound, so many events are written together, or those of so long a time:
 * what is new in one commit shares pages of the file. */
#define N_BINDING_FEW 8u
#define N_TOLD_TOGETHER 64u
#define TELL_MS 100u
/* How often an event is tried that the API has no time for. */
#define N_TELLS_MAX 5u
/* The pause before conditions are written again after one could not be: doubled each time, for all
 * pods together, because it is the API that has no time. */
#define AGAIN_MS 1000u
#define AGAIN_MS_MAX 10000u
#define AGAIN_DOUBLED_MAX 4u
#define JITTER_PER_MILLE 200u
/* The API's limit for the text of an event. */
#define NOTE_BYTES_MAX 1024u
/* An event's name: how much of the pod's it has, and "." with 16 digits and an end. */
#define NAME_PREFIX_MAX 230u
#define NAME_SUFFIX_BYTES sizeof(".0123456789abcdef")

static void pump(struct dv_sched *sched);

/* ---- conditions ---- */

static const struct dv_api_pod_condition *condition_of(const struct dv_sched_pod *pod)
{
    const struct dv_api_pod_status *status = &dv_sched_pod_value(pod)->status;

    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, DV_STR("PodScheduled")))
            return &status->conditions[i];
    return NULL;
}

/* The condition as it shall be. */
static struct dv_api_pod_condition *new_condition(const struct dv_sched_pod *pod,
                                                  struct dv_arena *arena)
{
    const struct dv_api_pod_condition *old = condition_of(pod);
    struct dv_api_pod_condition *now = DV_NEW(arena, struct dv_api_pod_condition);

    *now = (struct dv_api_pod_condition){
        .type = DV_STR("PodScheduled"),
        .status = DV_STR("False"),
        .reason = dv_str_from_c(pod->said_reason),
        .message = dv_str_copy(dv_str_from_c(pod->said), arena),
        .observed_generation = dv_sched_pod_value(pod)->metadata.generation,
        /* The time changes with the status alone, and not with the reason or the text. */
        .last_transition_time = old && dv_str_eq(old->status, DV_STR("False"))
                                    ? old->last_transition_time
                                    : dv_sched_now(pod->sched)};
    return now;
}

void dv_sched_set_condition(struct dv_api_pod_status *status,
                            const struct dv_api_pod_condition *now, struct dv_arena *arena)
{
    struct dv_api_pod_condition *all =
        DV_NEW_ARRAY(arena, struct dv_api_pod_condition, status->n_conditions + 1);
    size_t at = status->n_conditions;

    for (size_t i = 0; i < status->n_conditions; i++) {
        all[i] = status->conditions[i];
        if (dv_str_eq(all[i].type, now->type))
            at = i;
    }
    if (at == status->n_conditions)
        status->n_conditions++;
    all[at] = *now;
    status->conditions = all;
}

/* Sets the condition, which is `ctx`. */
static bool set_condition(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    dv_sched_set_condition(&((struct dv_api_pod *)value)->status, request->ctx, arena);
    return true;
}

struct dv_json *dv_sched_condition_patch(const struct dv_api_pod_condition *now,
                                         struct dv_arena *arena)
{
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *status = dv_json_new_object(arena);
    struct dv_json *conditions = dv_json_new_array(arena);

    dv_json_append(conditions, dv_encode_patch(&dv_message_pod_condition, now, arena));
    dv_json_set(status, DV_STR("conditions"), conditions, arena);
    dv_json_set(doc, DV_STR("status"), status, arena);
    return doc;
}

static void on_again(struct dv_timer *timer)
{
    pump(DV_CONTAINER(timer, struct dv_sched, say_again));
}

static void to_say(struct dv_sched_pod *pod)
{
    if (dv_link_is_in(&pod->says))
        return;
    dv_list_push(&pod->sched->to_say, &pod->says);
    pod->sched->n_unsaid++;
}

static void say_later(struct dv_sched *sched)
{
    uint64_t ms = dv_u64_min((uint64_t)AGAIN_MS << sched->n_say_pauses, AGAIN_MS_MAX);

    if (sched->n_say_pauses < AGAIN_DOUBLED_MAX)
        sched->n_say_pauses++;
    dv_timer_start(&sched->say_again, sched->loop,
                   dv_loop_now_ms(sched->loop) + dv_jitter(ms, JITTER_PER_MILLE), on_again);
}

static void on_said(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_sched_pod *pod = DV_CONTAINER(request, struct dv_sched_pod, say_request);
    struct dv_sched *sched = pod->sched;
    bool is_lost = failure && failure->code != 404;

    pod->is_saying = false;
    dv_arena_free(pod->say_arena); /* pods may wait for long, and by the thousand */
    pod->say_arena = NULL;
    sched->n_saying--;
    if (is_lost && !pod->is_gone && !pod->binding && !sched->is_closing) {
        to_say(pod);
        say_later(sched);
    }
    if (!failure)
        sched->n_say_pauses = 0;
    if (pod->is_gone && !pod->binding)
        dv_sched_pod_release(pod);
    else if (pod->binding)
        dv_sched_binding_look(pod->binding);
    pump(sched);
    dv_sched_request_done(sched);
}

static void send_condition(struct dv_sched_pod *pod)
{
    struct dv_sched *sched = pod->sched;
    const struct dv_api_object_meta *meta = pod->object->meta;

    pod->say_arena = dv_arena_new();
    pod->is_saying = true;
    sched->n_saying++;
    pod->say_request = (struct dv_request){
        .verb = DV_VERB_PATCH,
        .subresource = DV_SUB_STATUS,
        .kind = dv_kind(DV_KIND_POD),
        .namespace = dv_str_copy(meta->namespace, pod->say_arena),
        .name = dv_str_copy(meta->name, pod->say_arena),
        .patch_type = DV_PATCH_STRATEGIC,
        .field_manager = sched->name,
        .ctx = new_condition(pod, pod->say_arena),
        .done = on_said,
    };
    if (sched->cluster->is_embedded)
        pod->say_request.change = set_condition;
    else
        pod->say_request.patch = dv_sched_condition_patch(pod->say_request.ctx, pod->say_arena);
    dv_sched_request(sched, &pod->say_request);
}

static bool is_said(const struct dv_sched_pod *pod, const char *reason, dv_str text)
{
    const struct dv_api_pod_condition *condition;

    if (pod->said)
        return strcmp(pod->said_reason, reason) == 0 && dv_str_eq(dv_str_from_c(pod->said), text);
    condition = condition_of(pod);
    return condition && dv_str_eq(condition->status, DV_STR("False")) &&
           dv_str_eq(condition->reason, dv_str_from_c(reason)) &&
           dv_str_eq(condition->message, text);
}

void dv_sched_say(struct dv_sched_pod *pod, const char *reason, dv_str text)
{
    struct dv_sched *sched = pod->sched;
    char *copy;

    if (is_said(pod, reason, text))
        return;
    copy = dv_alloc(text.n + 1);
    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    free(pod->said);
    pod->said = copy;
    pod->said_reason = reason;
    dv_sched_say_event(pod, "Warning", "FailedScheduling", "Scheduling", text);
    /* Its PodScheduled condition is True, because it has a node: only the event tells. */
    if (pod->is_preset)
        return;
    to_say(pod);
    pump(sched);
}

bool dv_sched_say_nothing(struct dv_sched_pod *pod)
{
    if (dv_link_is_in(&pod->says)) {
        dv_link_remove(&pod->says);
        pod->sched->n_unsaid--;
    }
    return !pod->is_saying;
}

void dv_sched_say_cancel(struct dv_sched_pod *pod)
{
    if (!dv_sched_say_nothing(pod))
        dv_request_cancel(pod->sched->cluster, &pod->say_request);
}

/* ---- events ---- */

static void free_event(struct dv_sched_said_event *event)
{
    dv_link_remove(&event->link);
    free(event);
}

static void on_tell_again(struct dv_timer *timer)
{
    pump(DV_CONTAINER(timer, struct dv_sched, tell_again));
}

/* Whether the API has only no time, or no room, for what it was asked. */
static bool is_busy(const struct dv_api_status *failure)
{
    return failure->code == 429 || failure->code >= 500;
}

static void on_told(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_sched_said_event *event = DV_CONTAINER(request, struct dv_sched_said_event, request);
    struct dv_sched *sched = event->sched;

    sched->n_telling--;
    if (failure && is_busy(failure) && ++event->n_failures < N_TELLS_MAX && !sched->is_closing) {
        dv_link_remove(&event->link);
        dv_list_push(&sched->events, &event->link);
        sched->n_events++;
        dv_timer_start(&sched->tell_again, sched->loop,
                       dv_loop_now_ms(sched->loop) + dv_jitter(AGAIN_MS, JITTER_PER_MILLE),
                       on_tell_again);
    } else {
        sched->numbers.n_events_dropped += failure != NULL;
        free_event(event);
    }
    pump(sched);
    dv_sched_turn(sched); /* it may have waited until fewer events do */
    dv_sched_request_done(sched);
}

bool dv_sched_says_keep_up(const struct dv_sched *sched)
{
    return sched->n_events < N_EVENTS_SLOW;
}

static dv_str cut(dv_str text)
{
    size_t n = dv_size_min(text.n, NOTE_BYTES_MAX);

    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0u) == 0x80u)
        n--; /* do not cut a UTF-8 character in two */
    return (dv_str){text.p, n};
}

void dv_sched_say_event_of(struct dv_sched *sched, const struct dv_api_object_meta *meta,
                           const char *type, const char *reason, const char *action, dv_str note)
{
    dv_str prefix = dv_str_slice(meta->name, 0, NAME_PREFIX_MAX);
    uint64_t wall_ns = dv_clock_wall_ns(dv_loop_clock(sched->loop));
    struct dv_sched_said_event *event;
    char *at;

    if (sched->n_events >= N_EVENTS_MAX || sched->is_closing) {
        sched->numbers.n_events_dropped++;
        return;
    }
    note = cut(note);
    /* Many may wait, so each is one small block. */
    event = dv_alloc(sizeof(*event) + meta->namespace.n + meta->name.n + meta->uid.n +
                     meta->resource_version.n + note.n + prefix.n + NAME_SUFFIX_BYTES);
    at = event->texts;
    event->sched = sched;
    event->value = (struct dv_api_event){
        .involved_object = {.kind = DV_STR("Pod"),
                            .api_version = DV_STR("v1"),
                            .namespace = dv_str_put(meta->namespace, &at),
                            .name = dv_str_put(meta->name, &at),
                            .uid = dv_str_put(meta->uid, &at),
                            .resource_version = dv_str_put(meta->resource_version, &at)},
        .type = dv_str_from_c(type),
        .reason = dv_str_from_c(reason),
        .action = dv_str_from_c(action),
        .message = dv_str_put(note, &at),
        .event_time = {.seconds = (int64_t)(wall_ns / 1000000000u),
                            .nanos = (int32_t)(wall_ns % 1000000000u / 1000u * 1000u),
                            .is_set = true            },
        .reporting_component = sched->name,
        .reporting_instance = sched->name,
    };
    event->value.metadata.namespace = event->value.involved_object.namespace;
    event->value.metadata.name = (dv_str){at, prefix.n + NAME_SUFFIX_BYTES - 1};
    (void)dv_str_put(prefix, &at);
    (void)snprintf(at, NAME_SUFFIX_BYTES, ".%016llx", (unsigned long long)dv_random_u64());
    event->request = (struct dv_request){.verb = DV_VERB_CREATE,
                                         .kind = dv_kind(DV_KIND_EVENT),
                                         .namespace = event->value.metadata.namespace,
                                         .value = &event->value,
                                         .done = on_told};
    dv_list_push(&sched->events, &event->link);
    sched->n_events++;
    pump(sched);
}

void dv_sched_say_event(struct dv_sched_pod *pod, const char *type, const char *reason,
                        const char *action, dv_str note)
{
    dv_sched_say_event_of(pod->sched, pod->object->meta, type, reason, action, note);
}

/* Writes the events that wait. */
static void tell(struct dv_sched *sched)
{
    struct dv_link *link;

    dv_timer_cancel(&sched->tell_late);
    while (sched->n_telling < N_TELLING_MAX && !dv_timer_is_set(&sched->tell_again) &&
           (link = dv_list_shift(&sched->events))) {
        struct dv_sched_said_event *event = DV_CONTAINER(link, struct dv_sched_said_event, link);

        sched->n_events--;
        sched->n_telling++;
        dv_list_push(&sched->telling, link);
        dv_sched_request(sched, &event->request);
    }
}

static void on_tell_late(struct dv_timer *timer)
{
    tell(DV_CONTAINER(timer, struct dv_sched, tell_late));
}

void dv_sched_says_look(struct dv_sched *sched)
{
    if (sched->is_closing || sched->n_events == 0)
        return;
    if (sched->n_events >= N_TOLD_TOGETHER || sched->n_binding < N_BINDING_FEW)
        tell(sched);
    else if (!dv_timer_is_set(&sched->tell_late))
        dv_timer_start(&sched->tell_late, sched->loop, dv_loop_now_ms(sched->loop) + TELL_MS,
                       on_tell_late);
}

static void pump(struct dv_sched *sched)
{
    struct dv_link *link;

    if (sched->is_closing)
        return;
    while (sched->n_saying < N_SAYING_MAX && !dv_timer_is_set(&sched->say_again) &&
           (link = dv_list_shift(&sched->to_say))) {
        struct dv_sched_pod *pod = DV_CONTAINER(link, struct dv_sched_pod, says);

        sched->n_unsaid--;
        /* An older condition of the pod is being written: the new one goes afterwards. */
        if (pod->is_saying) {
            dv_list_push(&sched->to_say, link);
            sched->n_unsaid++;
            break;
        }
        send_condition(pod);
    }
    dv_sched_says_look(sched);
}

void dv_sched_says_cancel(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;
    struct dv_link *link;

    dv_timer_cancel(&sched->say_again);
    dv_timer_cancel(&sched->tell_again);
    dv_timer_cancel(&sched->tell_late);
    while ((link = dv_list_first(&sched->events)))
        free_event(DV_CONTAINER(link, struct dv_sched_said_event, link));
    sched->n_events = 0;
    DV_LIST_EACH (&sched->telling, link) {
        dv_request_cancel(sched->cluster,
                          &DV_CONTAINER(link, struct dv_sched_said_event, link)->request);
    }
    for (size_t at = 0; (entry = dv_map_next(&sched->pods, &at));)
        dv_sched_say_cancel(entry->value);
}
