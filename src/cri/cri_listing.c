/* cri_listing.c - the listing of everything, and what it says about pods that are known. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_list.h"
#include "cri/cri_state.h"
#include "cri/cri_view.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"

/* How often everything is listed; with events, only to find what they missed. Readers of the events
 * of an old runtime take them from each other. */
#define PERIOD_MS 1000u
#define PERIOD_WITH_SHARED_EVENTS_MS 10000u
#define PERIOD_WITH_EVENTS_MS 300000u
/* As for every other call. */
#define REQUEST_BYTES_MAX 4096u
#define LISTING_TIMEOUT_MS (2u * 60u * 1000u)

/* ---- what a listing says ---- */

static bool is_as_listed(struct dv_cri_view *view, const struct dv_cri_listed *listed)
{
    struct dv_cri_item *item = dv_map_get(&view->items, listed->id);

    if (!item || item->kind != listed->kind || item->state != listed->state)
        return false;
    item->listing = view->listing.number;
    return true;
}

/* Whether all that is known of the pod was in the listing. */
static bool is_all_listed(const struct dv_cri_view *view, const struct dv_cri_record *record)
{
    for (size_t i = 0; i < record->items.n; i++)
        if (record->items.v[i]->listing != view->listing.number)
            return false;
    return true;
}

/* Holds what is known against the listing, which is complete. What was looked at after it had begun
 * is known better. */
static void compare(struct dv_cri_view *view)
{
    uint64_t begun_ns = view->listing.begun_ns;
    const struct dv_map_entry *entry;
    size_t at = 0;

    view->listing.number++;
    for (size_t i = 0; i < view->listing.list.n; i++) {
        const struct dv_cri_listed *listed = &view->listing.list.v[i];

        if (!is_as_listed(view, listed))
            dv_cri_look_want(view, dv_cri_look_record(view, listed->uid));
    }
    while ((entry = dv_map_next(&view->records, &at)) != NULL) {
        struct dv_cri_record *record = entry->value;

        if (record->is_wanted || record->look || record->has_failed || record->taken_ns > begun_ns)
            continue;
        if (!is_all_listed(view, record))
            dv_cri_look_want(view, record);
        else if (record->items.n > 0)
            record->taken_ns = begun_ns;
        else if (!dv_link_is_in(&record->told))
            dv_cri_look_forget(view, record);
    }
    view->listed_ns = begun_ns;
}

/* ---- its calls ---- */

void dv_cri_listing_call(struct dv_cri *cri, enum dv_cri_kind kind, dv_str uid,
                         struct dv_call *call)
{
    /* The number of label_selector in the filter of the request. */
    const uint32_t selector = kind == DV_CRI_SANDBOX ? 3 : 4;
    struct dv_buf request;

    dv_buf_init(&request, REQUEST_BYTES_MAX);
    if (uid.n > 0) {
        size_t filter = dv_pb_begin(&request, 1);
        size_t entry = dv_pb_begin(&request, selector);

        dv_pb_add_bytes(&request, 1, DV_STR(DV_CRI_LABEL_POD_UID));
        dv_pb_add_bytes(&request, 2, uid);
        dv_pb_end(&request, entry);
        dv_pb_end(&request, filter);
    }
    call->method = kind == DV_CRI_SANDBOX ? "/runtime.v1.RuntimeService/ListPodSandbox"
                                          : "/runtime.v1.RuntimeService/ListContainers";
    call->deadline_ms = dv_loop_now_ms(cri->loop) + LISTING_TIMEOUT_MS;
    dv_call_start(cri->channel, call, dv_h2_msg_copy(dv_buf_str(&request)));
    dv_buf_fini(&request);
}

/* Both calls have ended. */
static void finish(struct dv_cri_view *view)
{
    view->listing.ended_ms = dv_loop_now_ms(view->cri->loop);
    if (view->listing.err.code != DV_OK) {
        dv_log(DV_LOG_DEBUG, "cri: cannot list pods; trying again", DV_F_ERR(&view->listing.err));
    } else {
        compare(view);
        dv_cri_view_review(view);
        dv_cri_look_start(view);
    }
    dv_arena_free(view->listing.arena);
    view->listing.arena = NULL;
    if (view->listing.is_repeated)
        dv_cri_listing_now(view);
    dv_cri_listing_set_timer(view);
}

static struct dv_cri_view *view_of(struct dv_call *call, enum dv_cri_kind kind)
{
    return DV_CONTAINER(call - kind, struct dv_cri_view, listing.calls);
}

static void on_list(struct dv_cri_view *view, enum dv_cri_kind kind, dv_str message)
{
    struct dv_err err;

    if (view->listing.err.code == DV_OK &&
        !dv_cri_list_read(kind, message, view->listing.arena, &view->listing.list, &err))
        view->listing.err = err;
}

static void on_ended(struct dv_cri_view *view, const struct dv_err *err)
{
    if (err && view->listing.err.code == DV_OK)
        view->listing.err = *err;
    if (--view->listing.n_running == 0 && !view->cri->is_closing)
        finish(view);
}

static void on_sandboxes(struct dv_call *call, dv_str message)
{
    on_list(view_of(call, DV_CRI_SANDBOX), DV_CRI_SANDBOX, message);
}

static void on_containers(struct dv_call *call, dv_str message)
{
    on_list(view_of(call, DV_CRI_CONTAINER), DV_CRI_CONTAINER, message);
}

static void on_sandboxes_ended(struct dv_call *call, const struct dv_err *err)
{
    on_ended(view_of(call, DV_CRI_SANDBOX), err);
}

static void on_containers_ended(struct dv_call *call, const struct dv_err *err)
{
    on_ended(view_of(call, DV_CRI_CONTAINER), err);
}

void dv_cri_listing_now(struct dv_cri_view *view)
{
    struct dv_call *calls = view->listing.calls;

    /* What happened since it was begun may not be in it. */
    view->listing.is_repeated = view->listing.n_running > 0;
    if (view->listing.n_running > 0 || !view->cri->is_usable)
        return;
    view->listing.arena = dv_arena_new();
    view->listing.list = (struct dv_cri_list){.n = 0};
    (void)dv_succeed(&view->listing.err);
    view->listing.begun_ns = dv_loop_now_ns(view->cri->loop);
    view->listing.n_running = 2;
    calls[DV_CRI_SANDBOX] = (struct dv_call){.message = on_sandboxes, .done = on_sandboxes_ended};
    calls[DV_CRI_CONTAINER] =
        (struct dv_call){.message = on_containers, .done = on_containers_ended};
    dv_cri_listing_call(view->cri, DV_CRI_SANDBOX, DV_STR_NONE, &calls[DV_CRI_SANDBOX]);
    dv_cri_listing_call(view->cri, DV_CRI_CONTAINER, DV_STR_NONE, &calls[DV_CRI_CONTAINER]);
}

/* ---- when ---- */

static uint64_t period_ms(const struct dv_cri_view *view)
{
    if (view->listing.err.code != DV_OK || !dv_cri_events_flow(view))
        return PERIOD_MS;
    return view->cri->runtime.has_shared_events ? PERIOD_WITH_SHARED_EVENTS_MS
                                                : PERIOD_WITH_EVENTS_MS;
}

static void on_timer(struct dv_timer *timer)
{
    struct dv_cri_view *view = DV_CONTAINER(timer, struct dv_cri_view, timer);

    dv_cri_look_retry(view);
    if (dv_loop_now_ms(view->cri->loop) >= view->listing.ended_ms + period_ms(view))
        dv_cri_listing_now(view);
    dv_cri_listing_set_timer(view);
}

void dv_cri_listing_set_timer(struct dv_cri_view *view)
{
    uint64_t soon_ms = dv_loop_now_ms(view->cri->loop) + PERIOD_MS;
    uint64_t at_ms = view->listing.ended_ms + period_ms(view);

    if (view->n_failed > 0 || view->listing.n_running > 0)
        at_ms = soon_ms;
    if (view->cri->is_usable)
        dv_timer_start(&view->timer, view->cri->loop, at_ms, on_timer);
    else
        dv_timer_cancel(&view->timer);
}
