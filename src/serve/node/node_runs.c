/* node_runs.c - davit.node.v1: ContainerStarted and ContainerEnded. */
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "pod/pod.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/node_service.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* A call whose answer comes when what it tells is on the disk; in the call's arena. */
struct telling_call {
    struct dv_pod_telling telling;
    struct dv_server_call *call;
};

static struct telling_call *new_telling(struct dv_server_call *call,
                                        void (*done)(struct dv_pod_telling *telling,
                                                     const struct dv_err *err))
{
    struct telling_call *made = DV_NEW(dv_server_call_arena(call), struct telling_call);

    made->call = call;
    made->telling.done = done;
    return made;
}

static void on_started_told(struct dv_pod_telling *telling, const struct dv_err *err)
{
    struct dv_server_call *call = DV_CONTAINER(telling, struct telling_call, telling)->call;
    NodeV1__ContainerStartedResponse response = NODE_V1__CONTAINER_STARTED_RESPONSE__INIT;

    if (err)
        dv_server_call_finish(call, err);
    else
        dv_serve_reply(call, &response.base);
}

void dv_node_handle_started(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ContainerStartedRequest *request =
        dv_node_decode(call, &node_v1__container_started_request__descriptor, bytes);
    struct dv_pod_ref ref;

    if (!request)
        return;
    ref = dv_node_ref(request->pod);
    dv_pods_tell_started(server->node->pods, &new_telling(call, on_started_told)->telling, &ref,
                         dv_str_from_c(request->container), request->pid);
}

static void on_ended_told(struct dv_pod_telling *telling, const struct dv_err *err)
{
    struct dv_server_call *call = DV_CONTAINER(telling, struct telling_call, telling)->call;
    NodeV1__ContainerEndedResponse response = NODE_V1__CONTAINER_ENDED_RESPONSE__INIT;

    if (err)
        dv_server_call_finish(call, err);
    else
        dv_serve_reply(call, &response.base);
}

void dv_node_handle_ended(void *ctx, struct dv_server_call *call, dv_str bytes)
{
    struct dv_node_server *server = ctx;
    const NodeV1__ContainerEndedRequest *request =
        dv_node_decode(call, &node_v1__container_ended_request__descriptor, bytes);
    struct dv_pod_ref ref;

    if (!request)
        return;
    ref = dv_node_ref(request->pod);
    dv_pods_tell_ended(server->node->pods, &new_telling(call, on_ended_told)->telling, &ref,
                       dv_str_from_c(request->container), request->exit_code,
                       dv_str_from_c(request->message));
}
