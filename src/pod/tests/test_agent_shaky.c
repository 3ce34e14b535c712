/* test_agent_shaky.c - the API of test_agent_host.h, which fails. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "pod/tests/test_agent_host.h"
#include "resource/resource.h"

struct failing {
    struct dv_task task;
    struct dv_link link;
    struct dv_request *request;
    void (*done)(struct dv_request *request, const struct dv_api_status *failure);
    void *ctx; /* the request's own */
    bool is_cancelled;
    bool has_conflict;
};

static void end_failing(struct failing *failing)
{
    struct dv_api_status status = {.code = 503, .message = DV_STR("the API has no time")};
    struct dv_request *request = failing->request;
    void (*done)(struct dv_request *, const struct dv_api_status *) = failing->done;

    if (failing->is_cancelled)
        status.code = 499;
    else if (failing->has_conflict)
        status.code = 409;
    request->object = NULL;
    request->done = done;
    request->ctx = failing->ctx;
    dv_link_remove(&failing->link);
    free(failing);
    done(request, &status);
}

static void on_failing(struct dv_task *task)
{
    end_failing(DV_CONTAINER(task, struct failing, task));
}

static struct failing *find_failing(struct shaky *shaky, const struct dv_request *request)
{
    struct dv_link *link;

    DV_LIST_EACH (&shaky->failing, link) {
        struct failing *failing = DV_CONTAINER(link, struct failing, link);

        if (failing->request == request)
            return failing;
    }
    return NULL;
}

static void on_done_and_lost(struct dv_request *request, const struct dv_api_status *failure)
{
    (void)failure;
    end_failing(request->ctx);
}

static void start_request(struct dv_cluster *cluster, struct dv_request *request)
{
    struct shaky *shaky = DV_CONTAINER(cluster, struct shaky, cluster);
    struct failing *failing;

    shaky->n_requests++;
    shaky->n_pod_requests += request->kind == dv_kind(DV_KIND_POD);
    if (!shaky->is_down && (shaky->n_until_failure == 0 || --shaky->n_until_failure > 0)) {
        dv_request_start(shaky->inner, request);
        return;
    }
    failing = DV_ALLOC(struct failing);
    failing->request = request;
    failing->done = request->done;
    failing->ctx = request->ctx;
    failing->has_conflict = shaky->has_conflict;
    dv_list_push(&shaky->failing, &failing->link);
    if (shaky->fails_after) {
        request->done = on_done_and_lost;
        request->ctx = failing;
        dv_request_start(shaky->inner, request);
    } else {
        dv_task_post(&failing->task, shaky->cluster.loop, on_failing);
    }
}

static void cancel_request(struct dv_cluster *cluster, struct dv_request *request)
{
    struct shaky *shaky = DV_CONTAINER(cluster, struct shaky, cluster);
    struct failing *failing = find_failing(shaky, request);

    if (failing)
        failing->is_cancelled = true;
    if (!failing || request->done == on_done_and_lost)
        dv_request_cancel(shaky->inner, request);
}

static struct dv_view *open_view(struct dv_cluster *cluster, const struct dv_view_options *options,
                                 struct dv_err *err)
{
    return dv_view_open(DV_CONTAINER(cluster, struct shaky, cluster)->inner, options, err);
}

const struct dv_cluster_engine shaky_engine = {
    .view_open = open_view, /* what it opens closes itself */
    .request_start = start_request,
    .request_cancel = cancel_request,
};
