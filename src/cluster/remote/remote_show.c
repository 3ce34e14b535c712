/* remote_show.c - what a view over a real API server tells its owner. */
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_view.h"
#include "cluster/shared/cluster_view.h"
#include "resource/resource.h"

static void change(struct dv_remote_view *view, const struct dv_api_object_meta *meta,
                   struct dv_object *now)
{
    view->is_in_callback = true;
    dv_view_change(&view->view, meta->namespace, meta->name, now);
    view->is_in_callback = false;
}

bool dv_remote_view_has_another(const struct dv_remote_view *view, const struct dv_object *now)
{
    const struct dv_object *shown = dv_view_get(&view->view, now->meta->namespace, now->meta->name);

    return shown && !dv_str_eq(shown->meta->uid, now->meta->uid);
}

void dv_remote_view_tell(struct dv_remote_view *view, struct dv_object *now)
{
    struct dv_object *old = dv_view_get(&view->view, now->meta->namespace, now->meta->name);

    if (dv_remote_view_has_another(view, now)) {
        /* The uid is another one: the old object went and a new one took its name while nobody
         * watched. Both are told, as the watch would have done. */
        dv_remote_view_tell_gone(view, old);
        if (!dv_remote_view_is_live(view))
            return;
    } else if (old && old->version == now->version && !view->is_older) {
        return; /* the view shows this version already */
    }
    change(view, now->meta, now);
}

void dv_remote_view_tell_gone(struct dv_remote_view *view, const struct dv_object *old)
{
    change(view, old->meta, NULL);
}

void dv_remote_view_tell_synced(struct dv_remote_view *view)
{
    if (view->view.is_synced)
        return;
    view->view.is_synced = true;
    if (!view->view.options.synced)
        return;
    view->is_in_callback = true;
    view->view.options.synced(view->view.options.ctx);
    view->is_in_callback = false;
}

void dv_remote_view_tell_trouble(struct dv_remote_view *view, const struct dv_err *err)
{
    enum dv_code trouble = err ? err->code : DV_OK;

    if (trouble == view->trouble)
        return;
    view->trouble = trouble;
    if (!view->view.options.disturbed)
        return;
    view->is_in_callback = true;
    view->view.options.disturbed(view->view.options.ctx, err);
    view->is_in_callback = false;
}
