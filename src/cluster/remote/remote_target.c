/* remote_target.c - what a view asks an API server for. */
#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/remote/remote_engine.h"
#include "cluster/remote/remote_view.h"
#include "cluster/shared/cluster_view.h"

#define WATCH_S_SPREAD 300u

void dv_remote_view_target(struct dv_remote_view *view)
{
    const struct dv_view_options *options = &view->view.options;
    struct dv_buf *target = &view->target;

    dv_buf_clear(target);
    dv_remote_path(options->kind, view->api_version, options->namespace, DV_STR_NONE, DV_STR_NONE,
                   target);
    dv_remote_query(target, "labelSelector", options->label_selector);
    dv_remote_query(target, "fieldSelector", options->field_selector);
    if (view->state == KUBE_LISTING) {
        dv_remote_query_u64(target, "limit", view->n_page_objects);
        dv_remote_query(target, "continue", dv_buf_str(&view->more));
        return;
    }
    if (view->state == KUBE_CHECKING) {
        dv_remote_query_u64(target, "limit", 1);
        return;
    }
    dv_remote_query(target, "watch", DV_STR("true"));
    dv_remote_query(target, "allowWatchBookmarks", DV_STR("true"));
    dv_remote_query_u64(target, "resourceVersion", view->version);
    dv_remote_query_u64(target, "timeoutSeconds",
                        DV_REMOTE_WATCH_S_MIN + dv_random_u64() % WATCH_S_SPREAD);
}
