#include "support/api_front.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "loop/loop.h"
#include "support/dvtest.h"
#include "json/json.h"

#define LATE_MS 1500u

/* A request on its way. The tested part keeps its own one, the API gets a copy of it. */
struct relay {
    struct dv_link link;
    struct api_front *front;
    struct dv_request *outer;
    struct dv_request inner;
    struct dv_task task;
    struct dv_timer timer;
    unsigned n_late_turns;
    enum fault fault;
    bool is_held;
    bool is_sent;
    bool is_cancelled;
};

static void answer(struct relay *relay, const struct dv_api_status *failure)
{
    struct dv_request *outer = relay->outer;

    outer->priv = NULL;
    if (!failure) {
        outer->object = relay->inner.object;
        outer->objects = relay->inner.objects;
        outer->n_objects = relay->inner.n_objects;
        outer->is_created = relay->inner.is_created;
        outer->is_removed = relay->inner.is_removed;
        if (outer->verb == DV_VERB_CREATE)
            relay->front->n_created[outer->kind->id]++;
    }
    relay->front->n_sent -= relay->is_sent;
    dv_link_remove(&relay->link);
    dv_timer_cancel(&relay->timer);
    dv_task_cancel(&relay->task);
    free(relay);
    outer->done(outer, failure);
}

static void on_inner(struct dv_request *inner, const struct dv_api_status *failure)
{
    struct relay *relay = DV_CONTAINER(inner, struct relay, inner);
    const struct dv_api_status lost = {.code = 503, .message = DV_STR("the answer got lost")};

    answer(relay, !failure && relay->fault == FAULT_AFTER ? &lost : failure);
}

static void on_turn(struct dv_task *task)
{
    static const int codes[] = {
        [FAULT_BEFORE] = 503, [FAULT_CONFLICT] = 409, [FAULT_REFUSED] = 422};
    struct relay *relay = DV_CONTAINER(task, struct relay, task);
    struct dv_api_status failure = {.message = DV_STR("a fault of the test")};

    if (relay->is_cancelled) {
        failure.code = 499;
        answer(relay, &failure);
    } else if (relay->fault == FAULT_NONE || relay->fault == FAULT_AFTER) {
        relay->is_sent = true;
        relay->front->n_sent++;
        dv_request_start(relay->front->back, &relay->inner);
    } else {
        failure.code = codes[relay->fault];
        answer(relay, &failure);
    }
}

static void on_late(struct dv_timer *timer)
{
    struct relay *relay = DV_CONTAINER(timer, struct relay, timer);

    if (relay->n_late_turns == 0) {
        dv_task_post(&relay->task, timer->loop, on_turn);
        return;
    }
    relay->n_late_turns--;
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), on_late);
}

static enum fault draw_fault(struct api_front *front)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};

    if (front->fault_odds > 0)
        return roll(&front->luck, front->fault_odds) == 0 ? faults[roll(&front->luck, 3)]
                                                          : FAULT_NONE;
    return front->fault_at == 0 || front->fault_at == front->n_requests ? front->fault : FAULT_NONE;
}

static void set_out(struct relay *relay)
{
    struct api_front *front = relay->front;
    struct dv_loop *loop = front->cluster.loop;
    unsigned luck = front->is_late ? roll(&front->luck, 10) : 10;
    uint64_t now_ms = dv_loop_now_ms(loop);

    relay->is_held = false;
    if (luck > 2 || relay->outer->kind->id == DV_KIND_EVENT) {
        dv_task_post(&relay->task, loop, on_turn);
        return;
    }
    relay->n_late_turns = roll(&front->luck, FRONT_LATE_TURNS);
    dv_timer_start(&relay->timer, loop, luck == 0 ? now_ms + roll(&front->luck, LATE_MS) : now_ms,
                   on_late);
}

/* Whether a member of that name is taken away on purpose when it is null. */
static bool is_cleared(dv_str name)
{
    return dv_str_eq(name, DV_STR("reason")) || dv_str_eq(name, DV_STR("message")) ||
           dv_str_eq(name, DV_STR("taints"));
}

/* A patch of ours has only what it means: anything empty would empty what is there. Items of lists
 * may be whole objects, so nothing is said of them. */
static void assert_meant(const struct dv_json *object)
{
    for (const struct dv_json *member = dv_json_first(object); member;
         member = dv_json_next(member)) {
        dv_str name = dv_json_key(member);
        struct dv_err err;
        dv_str text;

        if (dv_json_is(member, DV_JSON_NULL) && !is_cleared(name))
            fail_msg("a patch takes %.*s away", DV_FMT(name));
        if (dv_json_is(member, DV_JSON_STRING) && dv_json_as_str(member, &text, &err) &&
            text.n == 0)
            fail_msg("a patch empties %.*s", DV_FMT(name));
        if (dv_json_is(member, DV_JSON_OBJECT)) {
            if (dv_json_n(member) == 0)
                fail_msg("a patch has an empty %.*s", DV_FMT(name));
            assert_meant(member);
        }
    }
}

static void front_start(struct dv_cluster *cluster, struct dv_request *request)
{
    struct api_front *front = DV_CONTAINER(cluster, struct api_front, cluster);
    struct relay *relay = DV_ALLOC(struct relay);

    if (request->verb == DV_VERB_PATCH && request->patch && request->patch_type != DV_PATCH_APPLY)
        assert_meant(request->patch);
    relay->front = front;
    relay->outer = request;
    relay->inner = *request;
    relay->inner.done = on_inner;
    request->priv = relay;
    dv_list_push(&front->relays, &relay->link);
    if (request->kind->id != DV_KIND_EVENT) {
        front->n_requests++;
        relay->fault = draw_fault(front);
    }
    relay->is_held = front->is_holding;
    if (!relay->is_held)
        set_out(relay);
}

static void front_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    struct api_front *front = DV_CONTAINER(cluster, struct api_front, cluster);
    struct relay *relay = request->priv;

    if (!relay)
        fail_msg("a request was cancelled that is not under way");
    relay->is_cancelled = true;
    if (relay->is_sent) {
        dv_request_cancel(front->back, &relay->inner);
        return;
    }
    dv_timer_cancel(&relay->timer);
    dv_task_post(&relay->task, front->cluster.loop, on_turn);
}

static struct dv_view *front_view_open(struct dv_cluster *cluster,
                                       const struct dv_view_options *options, struct dv_err *err)
{
    const struct api_front *front = DV_CONTAINER(cluster, struct api_front, cluster);
    struct dv_view_options own = *options;

    if (front->hidden.n > 0)
        own.label_selector = front->hidden;
    return dv_view_open(front->back, &own, err);
}

/* A view knows its own engine, so that no other function of this one is called. */
static const struct dv_cluster_engine engine = {
    .view_open = front_view_open, .request_start = front_start, .request_cancel = front_cancel};

void api_front_init(struct api_front *front, struct dv_loop *loop)
{
    front->cluster = (struct dv_cluster){.engine = &engine, .loop = loop, .is_embedded = true};
    dv_list_init(&front->relays);
}

void api_front_send(struct api_front *front, size_t n)
{
    struct dv_link *link;

    DV_LIST_EACH (&front->relays, link) {
        struct relay *relay = DV_CONTAINER(link, struct relay, link);

        if (n > 0 && relay->is_held) {
            set_out(relay);
            n--;
        }
    }
}
