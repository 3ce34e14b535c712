#include "cri/cri_view.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_state.h"
#include "loop/loop.h"

static void on_tell_task(struct dv_task *task)
{
    struct dv_cri_view *view = DV_CONTAINER(task, struct dv_cri_view, tell_task);
    struct dv_link *link = dv_list_shift(&view->told);
    struct dv_cri *cri = view->cri;

    if (!link)
        return;
    /* One at a time, because who is told may close the runtime. */
    if (!dv_list_is_empty(&view->told))
        dv_task_post(&view->tell_task, cri->loop, on_tell_task);
    cri->options.pod_changed(cri->options.ctx,
                             DV_CONTAINER(link, struct dv_cri_record, told)->shown.uid);
}

void dv_cri_view_tell(struct dv_cri_view *view, struct dv_cri_record *record)
{
    if (!view->cri->options.pod_changed)
        return;
    if (!dv_link_is_in(&record->told))
        dv_list_push(&view->told, &record->told);
    dv_task_post(&view->tell_task, view->cri->loop, on_tell_task);
}

void dv_cri_view_review(struct dv_cri_view *view)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    if (view->is_complete || view->listed_ns == 0)
        return;
    while ((entry = dv_map_next(&view->records, &at)) != NULL) {
        const struct dv_cri_record *record = entry->value;

        if (record->taken_ns == 0 && !record->has_failed)
            return;
    }
    view->is_complete = true;
    dv_cri_tell_state(view->cri);
}

void dv_cri_view_init(struct dv_cri_view *view, struct dv_cri *cri)
{
    view->cri = cri;
    dv_map_init(&view->records);
    dv_map_init(&view->items);
    dv_list_init(&view->queue);
    dv_list_init(&view->told);
}

void dv_cri_view_fini(struct dv_cri_view *view)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&view->records, &at)) != NULL)
        dv_cri_look_forget(view, entry->value);
    dv_map_fini(&view->records);
    dv_map_fini(&view->items);
    dv_arena_free(view->listing.arena);
}

void dv_cri_view_stop(struct dv_cri_view *view)
{
    dv_timer_cancel(&view->timer);
    dv_task_cancel(&view->tell_task);
    dv_cri_events_stop(view);
}

void dv_cri_view_begin(struct dv_cri_view *view)
{
    dv_cri_look_retry(view);
    dv_cri_events_begin(view);
    dv_cri_listing_now(view);
    dv_cri_listing_set_timer(view);
}

/* ---- what others see ---- */

const struct dv_cri_pod *dv_cri_view_pod(const struct dv_cri *cri, dv_str uid)
{
    const struct dv_cri_record *record = dv_map_get(&cri->view.records, uid);

    return record && record->items.n > 0 ? &record->shown : NULL;
}

const struct dv_cri_pod *dv_cri_view_next(const struct dv_cri *cri, size_t *at)
{
    const struct dv_map_entry *entry;

    while ((entry = dv_map_next(&cri->view.records, at)) != NULL) {
        const struct dv_cri_record *record = entry->value;

        if (record->items.n > 0)
            return &record->shown;
    }
    return NULL;
}

bool dv_cri_view_is_complete(const struct dv_cri *cri)
{
    return cri->view.is_complete;
}

uint64_t dv_cri_view_taken_ns(const struct dv_cri *cri, dv_str uid)
{
    const struct dv_cri_record *record = dv_map_get(&cri->view.records, uid);

    return record ? record->taken_ns : cri->view.listed_ns;
}

void dv_cri_view_relist(struct dv_cri *cri, dv_str uid)
{
    dv_cri_look_want(&cri->view, dv_cri_look_record(&cri->view, uid));
    dv_cri_look_start(&cri->view);
}
