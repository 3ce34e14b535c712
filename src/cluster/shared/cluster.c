#include "cluster/cluster.h"

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

void dv_request_start(struct dv_cluster *cluster, struct dv_request *request)
{
    cluster->engine->request_start(cluster, request);
}

void dv_request_cancel(struct dv_cluster *cluster, struct dv_request *request)
{
    cluster->engine->request_cancel(cluster, request);
}
