/* cri_events.c - the stream on which newer runtimes tell of changes as they happen. */
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri_list.h"
#include "cri/cri_state.h"
#include "cri/cri_view.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"

/* As often as the reference: after so many streams that ended, there are only listings. */
#define STREAMS_MAX 5u
#define RETRY_MS 1000u
/* A runtime that does not serve events says so sooner than this, though not always with an error.
 */
#define QUIET_MS 1000u

bool dv_cri_events_flow(const struct dv_cri_view *view)
{
    return view->events.is_running &&
           (view->events.has_told ||
            dv_loop_now_ms(view->cri->loop) - view->events.begun_ms >= QUIET_MS);
}

static void on_event(struct dv_call *call, dv_str message)
{
    struct dv_cri_view *view = DV_CONTAINER(call, struct dv_cri_view, events.call);
    const struct dv_cri_item *item = NULL;
    struct dv_err err;
    dv_str uid;
    dv_str id;

    view->events.has_told = true;
    if (!dv_cri_event_read(message, &uid, &id, &err)) {
        dv_log(DV_LOG_DEBUG, "cri: cannot read an event; listing pods", DV_F_ERR(&err));
        dv_cri_listing_now(view);
        return;
    }
    if (uid.n == 0)
        item = dv_map_get(&view->items, id);
    if (item)
        uid = item->uid;
    if (uid.n > 0) {
        dv_cri_look_want(view, dv_cri_look_record(view, uid));
        dv_cri_look_start(view);
    } else {
        dv_cri_listing_now(view);
    }
}

static void start(struct dv_cri_view *view);

static void on_retry(struct dv_timer *timer)
{
    start(DV_CONTAINER(timer, struct dv_cri_view, events.timer));
}

static void on_ended(struct dv_call *call, const struct dv_err *err)
{
    struct dv_cri_view *view = DV_CONTAINER(call, struct dv_cri_view, events.call);

    view->events.is_running = false;
    if (view->cri->is_closing)
        return;
    view->events.n_failed++;
    if (err && err->code == DV_UNIMPLEMENTED)
        view->events.n_failed = STREAMS_MAX;
    else
        dv_log(DV_LOG_DEBUG, "cri: the stream of events ended",
               DV_F_C("error", err ? err->msg : "none"),
               DV_F_U64("streams", view->events.n_failed));
    if (view->events.n_failed < STREAMS_MAX)
        dv_timer_start(&view->events.timer, view->cri->loop,
                       dv_loop_now_ms(view->cri->loop) + RETRY_MS, on_retry);
    /* What happened since the last event is not told any more. */
    dv_cri_listing_now(view);
    dv_cri_listing_set_timer(view);
}

static void start(struct dv_cri_view *view)
{
    if (view->events.is_running || !view->cri->is_usable)
        return;
    view->events.is_running = true;
    view->events.has_told = false;
    view->events.begun_ms = dv_loop_now_ms(view->cri->loop);
    view->events.call = (struct dv_call){
        .method = "/runtime.v1.RuntimeService/GetContainerEvents",
        .message = on_event,
        .done = on_ended,
        .deadline_ms = DV_NO_DEADLINE,
        .is_stream = true,
    };
    dv_call_start(view->cri->channel, &view->events.call, dv_h2_msg_new(0));
}

void dv_cri_events_begin(struct dv_cri_view *view)
{
    view->events.n_failed = 0;
    start(view);
}

void dv_cri_events_stop(struct dv_cri_view *view)
{
    dv_timer_cancel(&view->events.timer);
}
