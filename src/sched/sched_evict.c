/* sched_evict.c - victims are told why they go, and deleted with their own grace; the pod that they
 * go for is nominated. Each request is made until there is an answer, a few times at most: what
 * could not be done is found undone by the next attempt. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "sched/placed.h"
#include "sched/sched.h"
#include "sched/sched_state.h"
#include "json/json.h"

#define PAUSE_MS 200u
#define N_TRIES_MAX 8u
/* How long a victim's claim may take to be given back after the pod is gone. Until then nobody else
 * is sent away for the same devices. */
#define RELEASE_MS 10000u
#define REASON "PreemptionByScheduler"

/* The requests for one pod: a victim, or the one that is nominated. */
struct eviction {
    struct dv_link link; /* in sched->evictions */
    struct dv_sched *sched;
    struct dv_arena *arena;
    struct dv_sched_pod *pod; /* for whom; it stays until this has ended */
    enum {
        TELL,     /* the victim's condition */
        DELETE,   /* the victim */
        NOMINATE, /* the pod's status */
    } step;
    dv_str namespace;
    dv_str name;
    dv_str node; /* that it is nominated for; empty: no longer */
    struct dv_api_pod_condition condition;
    struct dv_api_preconditions preconditions;
    struct dv_api_delete_options delete_options;
    struct dv_request request;
    struct dv_timer pause;
    unsigned n_tries;
};

static void ask(struct eviction *eviction);

/* ---- nominations ---- */

void dv_sched_nominate(struct dv_sched_pod *pod, dv_str node)
{
    free(pod->nominated);
    pod->nominated = dv_alloc(node.n + 1);
    memcpy(pod->nominated, node.p, node.n);
    if (dv_link_is_in(&pod->nominates))
        return;
    dv_list_push(&pod->sched->nominated, &pod->nominates);
    pod->sched->n_nominated++;
}

static void forget_nomination(struct dv_sched_pod *pod)
{
    dv_link_remove(&pod->nominates);
    pod->sched->n_nominated--;
    free(pod->nominated);
    pod->nominated = NULL;
}

void dv_sched_unnominate(struct dv_sched_pod *pod)
{
    struct dv_sched_node *node;

    if (!pod->nominated)
        return;
    node = dv_map_get(&pod->sched->nodes_by_name, dv_str_from_c(pod->nominated));
    forget_nomination(pod);
    if (node && !pod->sched->is_closing)
        dv_sched_node_improved(pod->sched, node); /* what it was promised is for others */
}

void dv_sched_wake_nominated(struct dv_sched *sched, const struct dv_sched_node *node)
{
    struct dv_link *link;

    DV_LIST_EACH (&sched->nominated, link) {
        struct dv_sched_pod *pod = DV_CONTAINER(link, struct dv_sched_pod, nominates);

        if (pod->state != DV_SCHED_POD_WAITING && pod->state != DV_SCHED_POD_BACKOFF)
            continue;
        if (node && !dv_str_eq(dv_str_from_c(pod->nominated), node->name))
            continue;
        pod->backoff_until_ms = 0;
        dv_sched_queue(pod);
    }
}

bool dv_sched_is_promised(const struct dv_sched_pod *pod, const struct dv_sched_node *node,
                          bool for_devices)
{
    struct dv_link *link;

    DV_LIST_EACH (&pod->sched->nominated, link) {
        const struct dv_sched_pod *other = DV_CONTAINER(link, struct dv_sched_pod, nominates);

        if (other != pod && other->priority >= pod->priority &&
            dv_str_eq(dv_str_from_c(other->nominated), node->name) &&
            (!for_devices || other->n_claims > 0 || other->is_extended))
            return true;
    }
    return false;
}

bool dv_sched_is_preempting(const struct dv_sched_pod *pod)
{
    return pod->n_evictions > 0 || dv_loop_now_ms(pod->sched->loop) < pod->releases_until_ms;
}

/* ---- requests ---- */

static void end(struct eviction *eviction)
{
    struct dv_sched_pod *pod = eviction->pod;

    dv_timer_cancel(&eviction->pause);
    dv_link_remove(&eviction->link);
    if (--pod->n_evictions == 0 && pod->releases_until_ms == UINT64_MAX)
        pod->releases_until_ms = dv_loop_now_ms(pod->sched->loop) + RELEASE_MS;
    if (pod->is_gone)
        dv_sched_pod_release(pod);
    dv_arena_free(eviction->arena);
}

static void on_pause_over(struct dv_timer *timer)
{
    ask(DV_CONTAINER(timer, struct eviction, pause));
}

static bool may_try_again(const struct eviction *eviction, const struct dv_api_status *failure)
{
    return !eviction->sched->is_closing && eviction->n_tries < N_TRIES_MAX &&
           (failure->code == 408 || failure->code == 429 || failure->code >= 500);
}

static void on_answer(struct dv_request *request, const struct dv_api_status *failure)
{
    struct eviction *eviction = DV_CONTAINER(request, struct eviction, request);
    struct dv_sched *sched = eviction->sched;
    struct dv_err err;

    if (failure && may_try_again(eviction, failure)) {
        dv_timer_start(&eviction->pause, sched->loop,
                       dv_loop_now_ms(sched->loop) + ((uint64_t)PAUSE_MS << eviction->n_tries),
                       on_pause_over);
    } else if (eviction->step == TELL && !sched->is_closing && !(failure && failure->code == 404)) {
        /* Also when it could not be told: the pod that waits has the higher priority. */
        eviction->step = DELETE;
        eviction->n_tries = 0;
        ask(eviction);
    } else {
        if (failure && failure->code != 404 && !sched->is_closing) {
            dv_status_to_err(failure, &err);
            dv_log(DV_LOG_WARN, "sched: a pod was not preempted", DV_F_STR("pod", eviction->name),
                   DV_F_ERR(&err));
        }
        end(eviction);
    }
    dv_sched_request_done(sched);
}

/* Sets the condition among those of the pod, or the node that it is nominated for. Not of another
 * pod that has got the name meanwhile. */
static bool change_status(const struct dv_request *request, void *value, struct dv_arena *arena)
{
    const struct eviction *eviction = request->ctx;
    struct dv_api_pod *pod = value;

    if (!dv_str_eq(pod->metadata.uid, eviction->preconditions.uid))
        return false;
    if (eviction->step == NOMINATE)
        pod->status.nominated_node_name = eviction->node;
    else
        dv_sched_set_condition(&pod->status, &eviction->condition, arena);
    return true;
}

/* {"status":{"nominatedNodeName":...}} */
static struct dv_json *nomination_patch(const struct eviction *eviction)
{
    struct dv_arena *arena = eviction->arena;
    struct dv_json *doc = dv_json_new_object(arena);
    struct dv_json *status = dv_json_new_object(arena);

    dv_json_set(status, DV_STR("nominatedNodeName"),
                eviction->node.n > 0 ? dv_json_new_str(eviction->node, arena)
                                     : dv_json_new_null(arena),
                arena);
    dv_json_set(doc, DV_STR("status"), status, arena);
    return doc;
}

/* {"status":{"conditions":[...]}} or that of a nomination, with {"metadata":{"uid":...}}: an API
 * server refuses it for another pod of that name. */
static const struct dv_json *status_patch(const struct eviction *eviction)
{
    struct dv_arena *arena = eviction->arena;
    struct dv_json *doc = eviction->step == TELL
                              ? dv_sched_condition_patch(&eviction->condition, arena)
                              : nomination_patch(eviction);
    struct dv_json *meta = dv_json_new_object(arena);

    dv_json_set(meta, DV_STR("uid"), dv_json_new_str(eviction->preconditions.uid, arena), arena);
    dv_json_set(doc, DV_STR("metadata"), meta, arena);
    return doc;
}

static void ask(struct eviction *eviction)
{
    struct dv_sched *sched = eviction->sched;

    eviction->n_tries++;
    eviction->request = (struct dv_request){.verb = DV_VERB_PATCH,
                                            .subresource = DV_SUB_STATUS,
                                            .kind = dv_kind(DV_KIND_POD),
                                            .namespace = eviction->namespace,
                                            .name = eviction->name,
                                            .patch_type = DV_PATCH_STRATEGIC,
                                            .ctx = eviction,
                                            .done = on_answer};
    if (eviction->step == DELETE) {
        eviction->request.verb = DV_VERB_DELETE;
        eviction->request.subresource = DV_SUB_NONE;
        eviction->request.delete_options = &eviction->delete_options;
    } else if (sched->cluster->is_embedded) {
        eviction->request.change = change_status;
    } else {
        eviction->request.patch = status_patch(eviction);
    }
    dv_sched_request(sched, &eviction->request);
}

static struct eviction *new_eviction(struct dv_sched *sched, const struct dv_api_object_meta *meta)
{
    struct dv_arena *arena = dv_arena_new();
    struct eviction *eviction = DV_NEW(arena, struct eviction);

    eviction->sched = sched;
    eviction->arena = arena;
    eviction->namespace = dv_str_copy(meta->namespace, arena);
    eviction->name = dv_str_copy(meta->name, arena);
    eviction->preconditions.uid = dv_str_copy(meta->uid, arena);
    eviction->delete_options.preconditions = &eviction->preconditions;
    dv_list_push(&sched->evictions, &eviction->link);
    return eviction;
}

static void write_nomination(struct dv_sched_pod *pod, dv_str node)
{
    struct eviction *eviction = new_eviction(pod->sched, pod->object->meta);

    eviction->step = NOMINATE;
    eviction->node = dv_str_copy(node, eviction->arena);
    eviction->pod = pod;
    pod->n_evictions++;
    ask(eviction);
}

static void evict(struct dv_sched_pod *pod, const struct dv_sched_node *node,
                  const struct dv_sched_placed *placed)
{
    struct dv_sched *sched = pod->sched;
    const struct dv_object *victim = dv_object_unpack(placed->object);
    struct eviction *eviction = new_eviction(sched, victim->meta);

    eviction->condition = (struct dv_api_pod_condition){
        .type = DV_STR("DisruptionTarget"),
        .status = DV_STR("True"),
        .reason = DV_STR(REASON),
        .message =
            dv_str_printf(eviction->arena, "%.*s: preempting to accommodate a higher priority pod",
                          DV_FMT(sched->name)),
        .observed_generation = victim->meta->generation,
        .last_transition_time = dv_sched_now(sched)};
    eviction->pod = pod;
    pod->n_evictions++;
    dv_sched_say_event_of(sched, victim->meta, "Normal", "Preempted", "Preempting",
                          dv_str_printf(sched->scratch, "Preempted by pod %.*s on node %.*s",
                                        DV_FMT(pod->object->meta->uid), DV_FMT(node->name)));
    ask(eviction);
}

/* Pods of lower priority that were promised room there have to look for another place. */
static void take_promises(struct dv_sched_pod *pod, const struct dv_sched_node *node)
{
    struct dv_link *next;

    for (struct dv_link *link = pod->sched->nominated.head.next;
         link != &pod->sched->nominated.head; link = next) {
        struct dv_sched_pod *other = DV_CONTAINER(link, struct dv_sched_pod, nominates);

        next = link->next;
        if (other == pod || other->priority >= pod->priority ||
            !dv_str_eq(dv_str_from_c(other->nominated), node->name))
            continue;
        forget_nomination(other);
        write_nomination(other, DV_STR_NONE);
    }
}

void dv_sched_evict(struct dv_sched_pod *pod, struct dv_sched_node *node,
                    const struct dv_sched_victims *victims)
{
    struct dv_sched *sched = pod->sched;

    take_promises(pod, node);
    dv_sched_nominate(pod, node->name);
    write_nomination(pod, node->name);
    for (size_t i = 0; i < victims->n; i++)
        evict(pod, node, victims->v[i].placed);
    sched->numbers.n_preempted += victims->n;
    if (!sched->options.is_strict)
        dv_sched_say_event(
            pod, "Normal", "Preempting", "Preempting",
            dv_str_printf(sched->scratch,
                          "Waits for %zu pod%s of lower priority that %s preempted on node %.*s, "
                          "first %.*s",
                          victims->n, victims->n == 1 ? "" : "s", victims->n == 1 ? "was" : "were",
                          DV_FMT(node->name), DV_FMT(victims->v[0].placed->key)));
    dv_log(DV_LOG_INFO, "sched: pods are preempted", DV_F_STR("for", pod->key),
           DV_F_STR("node", node->name), DV_F_U64("victims", victims->n));
    if (pod->n_claims > 0 || pod->is_extended)
        pod->releases_until_ms = UINT64_MAX; /* until they are gone */
}

void dv_sched_victim_is_gone(struct dv_sched *sched, const struct dv_sched_node *node)
{
    struct dv_link *link;

    DV_LIST_EACH (&sched->nominated, link) {
        struct dv_sched_pod *pod = DV_CONTAINER(link, struct dv_sched_pod, nominates);

        if (pod->releases_until_ms > 0 && dv_str_eq(dv_str_from_c(pod->nominated), node->name))
            pod->releases_until_ms = dv_loop_now_ms(sched->loop) + RELEASE_MS;
    }
}

void dv_sched_evictions_cancel(struct dv_sched *sched)
{
    struct dv_link *next;

    for (struct dv_link *link = sched->evictions.head.next; link != &sched->evictions.head;
         link = next) {
        struct eviction *eviction = DV_CONTAINER(link, struct eviction, link);

        next = link->next;
        if (dv_timer_is_set(&eviction->pause))
            end(eviction);
        else
            dv_request_cancel(sched->cluster, &eviction->request);
    }
}
