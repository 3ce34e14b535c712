#include "cluster/cluster.h"

#include "base/defs.h"
#include "base/str.h"
#include "cluster/shared/cluster_view.h"

struct dv_view *dv_view_open(struct dv_cluster *cluster, const struct dv_view_options *options,
                             struct dv_err *err)
{
    return cluster->engine->view_open(cluster, options, err);
}

void dv_view_close(struct dv_view *view)
{
    view->engine->view_close(view);
}

static const dv_str patch_types[] = {
    [DV_PATCH_JSON] = DV_STR_INIT("application/json-patch+json"),
    [DV_PATCH_MERGE] = DV_STR_INIT("application/merge-patch+json"),
    [DV_PATCH_STRATEGIC] = DV_STR_INIT("application/strategic-merge-patch+json"),
    [DV_PATCH_APPLY] = DV_STR_INIT("application/apply-patch+yaml"),
};

dv_str dv_patch_media_type(enum dv_patch_type type)
{
    return patch_types[type];
}

bool dv_patch_type_parse(dv_str media_type, enum dv_patch_type *type)
{
    for (size_t i = 0; i < DV_COUNT(patch_types); i++) {
        if (dv_str_eq(media_type, patch_types[i])) {
            *type = (enum dv_patch_type)i;
            return true;
        }
    }
    return false;
}

void dv_request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    cluster->engine->request_start(cluster, request);
}

void dv_request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    cluster->engine->request_cancel(cluster, request);
}

void dv_user_review_start(struct dv_cluster *cluster, struct dv_user_review *review)
{
    cluster->engine->review_start(cluster, review);
}

void dv_user_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review)
{
    cluster->engine->review_cancel(cluster, review);
}
