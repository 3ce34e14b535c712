/* cri_call.c - the methods of CRI as a table, and the life of a call to one of them. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_answer.h"
#include "cri/cri_state.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"

/* The reference's runtimeRequestTimeout; a sandbox, whose network may take long, has twice that. */
#define LIMIT_MS (2u * 60u * 1000u)
#define SANDBOX_LIMIT_MS (4u * 60u * 1000u)
/* Whoever asks for statistics asks again soon. */
#define STATS_LIMIT_MS (10u * 1000u)
#define NO_LIMIT_MS 0u

#define RUNTIME "/runtime.v1.RuntimeService/"
#define IMAGES "/runtime.v1.ImageService/"

struct method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    uint64_t limit_ms;
    bool ends_things; /* DV_NOT_FOUND says that it has ended already */
};

#define ROW(service, name, type, limit, ends)                                                      \
    {                                                                                              \
        service name, &cri_v1__##type##_request__descriptor,                                       \
            &cri_v1__##type##_response__descriptor, limit, ends                                    \
    }

static const struct method methods[] = {
    [DV_CRI_VERSION] = ROW(RUNTIME, "Version", version, LIMIT_MS, false),
    [DV_CRI_STATUS] = ROW(RUNTIME, "Status", status, LIMIT_MS, false),
    [DV_CRI_RUNTIME_CONFIG] = ROW(RUNTIME, "RuntimeConfig", runtime_config, LIMIT_MS, false),
    [DV_CRI_UPDATE_RUNTIME_CONFIG] =
        ROW(RUNTIME, "UpdateRuntimeConfig", update_runtime_config, LIMIT_MS, false),
    [DV_CRI_RUN_POD_SANDBOX] =
        ROW(RUNTIME, "RunPodSandbox", run_pod_sandbox, SANDBOX_LIMIT_MS, false),
    [DV_CRI_STOP_POD_SANDBOX] = ROW(RUNTIME, "StopPodSandbox", stop_pod_sandbox, LIMIT_MS, true),
    [DV_CRI_REMOVE_POD_SANDBOX] =
        ROW(RUNTIME, "RemovePodSandbox", remove_pod_sandbox, LIMIT_MS, true),
    [DV_CRI_POD_SANDBOX_STATUS] =
        ROW(RUNTIME, "PodSandboxStatus", pod_sandbox_status, LIMIT_MS, false),
    [DV_CRI_LIST_POD_SANDBOX] = ROW(RUNTIME, "ListPodSandbox", list_pod_sandbox, LIMIT_MS, false),
    [DV_CRI_CREATE_CONTAINER] = ROW(RUNTIME, "CreateContainer", create_container, LIMIT_MS, false),
    [DV_CRI_START_CONTAINER] = ROW(RUNTIME, "StartContainer", start_container, LIMIT_MS, false),
    [DV_CRI_STOP_CONTAINER] = ROW(RUNTIME, "StopContainer", stop_container, LIMIT_MS, true),
    [DV_CRI_REMOVE_CONTAINER] = ROW(RUNTIME, "RemoveContainer", remove_container, LIMIT_MS, true),
    [DV_CRI_LIST_CONTAINERS] = ROW(RUNTIME, "ListContainers", list_containers, LIMIT_MS, false),
    [DV_CRI_CONTAINER_STATUS] = ROW(RUNTIME, "ContainerStatus", container_status, LIMIT_MS, false),
    [DV_CRI_UPDATE_CONTAINER_RESOURCES] =
        ROW(RUNTIME, "UpdateContainerResources", update_container_resources, LIMIT_MS, false),
    [DV_CRI_UPDATE_POD_SANDBOX_RESOURCES] =
        ROW(RUNTIME, "UpdatePodSandboxResources", update_pod_sandbox_resources, LIMIT_MS, false),
    [DV_CRI_REOPEN_CONTAINER_LOG] =
        ROW(RUNTIME, "ReopenContainerLog", reopen_container_log, LIMIT_MS, false),
    [DV_CRI_LIST_CONTAINER_STATS] =
        ROW(RUNTIME, "ListContainerStats", list_container_stats, STATS_LIMIT_MS, false),
    [DV_CRI_LIST_POD_SANDBOX_STATS] =
        ROW(RUNTIME, "ListPodSandboxStats", list_pod_sandbox_stats, STATS_LIMIT_MS, false),
    [DV_CRI_EXEC_SYNC] = ROW(RUNTIME, "ExecSync", exec_sync, LIMIT_MS, false),
    [DV_CRI_EXEC] = ROW(RUNTIME, "Exec", exec, LIMIT_MS, false),
    [DV_CRI_ATTACH] = ROW(RUNTIME, "Attach", attach, LIMIT_MS, false),
    [DV_CRI_PORT_FORWARD] = ROW(RUNTIME, "PortForward", port_forward, LIMIT_MS, false),
    [DV_CRI_LIST_IMAGES] = ROW(IMAGES, "ListImages", list_images, LIMIT_MS, false),
    [DV_CRI_IMAGE_STATUS] = ROW(IMAGES, "ImageStatus", image_status, LIMIT_MS, false),
    /* A download takes what it takes: who waits for it cancels it. */
    [DV_CRI_PULL_IMAGE] = ROW(IMAGES, "PullImage", pull_image, NO_LIMIT_MS, false),
    [DV_CRI_REMOVE_IMAGE] = ROW(IMAGES, "RemoveImage", remove_image, LIMIT_MS, true),
    [DV_CRI_IMAGE_FS_INFO] = ROW(IMAGES, "ImageFsInfo", image_fs_info, LIMIT_MS, false),
};

const char *dv_cri_method_name(enum dv_cri_method method)
{
    return strrchr(methods[method].path, '/') + 1;
}

/* The seconds that the request itself gives the runtime, in ms; less than none is none. */
static uint64_t asked_ms(int64_t seconds)
{
    return seconds <= 0 ? 0 : dv_u64_min((uint64_t)seconds, UINT64_MAX / 4000) * 1000;
}

static uint64_t deadline_of(const struct dv_cri *cri, enum dv_cri_method method,
                            const ProtobufCMessage *request)
{
    uint64_t now_ms = dv_loop_now_ms(cri->loop);
    uint64_t limit_ms = methods[method].limit_ms;

    if (method == DV_CRI_STOP_CONTAINER) {
        limit_ms += asked_ms(((const CriV1__StopContainerRequest *)request)->timeout);
    } else if (method == DV_CRI_EXEC_SYNC) {
        uint64_t timeout_ms = asked_ms(((const CriV1__ExecSyncRequest *)request)->timeout);

        limit_ms = timeout_ms == 0 ? NO_LIMIT_MS : limit_ms + timeout_ms;
    }
    return limit_ms == NO_LIMIT_MS ? DV_NO_DEADLINE : dv_u64_add_clamped(now_ms, limit_ms);
}

const void *dv_cri_decode(enum dv_cri_method method, dv_str bytes, struct dv_arena *arena,
                          struct dv_err *err)
{
    const void *answer = dv_pb_decode(methods[method].response, bytes, arena, err);

    if (!answer)
        err->code = DV_INTERNAL; /* the runtime's fault, not that of who called */
    else if (dv_cri_answer_check(method, answer, err))
        return answer;
    (void)dv_wrap(err, "%s", dv_cri_method_name(method));
    return NULL;
}

static void on_message(struct dv_call *inner, dv_str message)
{
    struct dv_cri_call *call = DV_CONTAINER(inner, struct dv_cri_call, priv.call);
    struct dv_arena *arena = call->arena;
    dv_str *bytes;

    if (!arena)
        arena = call->priv.own_arena = dv_arena_new();
    if (call->is_left_encoded) {
        bytes = DV_NEW(arena, dv_str);
        *bytes = dv_str_copy(message, arena);
        call->priv.answer = bytes;
    } else {
        call->priv.answer = dv_cri_decode(call->method, message, arena, &call->priv.err);
    }
    if (call->priv.answer)
        (void)dv_succeed(&call->priv.err);
}

static void on_done(struct dv_call *inner, const struct dv_err *err)
{
    struct dv_cri_call *call = DV_CONTAINER(inner, struct dv_cri_call, priv.call);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *own_arena = NULL;
    const void *answer;
    struct dv_err bad;

    if (err && err->code == DV_NOT_FOUND && methods[call->method].ends_things) {
        dv_arena_free(call->priv.own_arena);
        /* The empty answer that the runtime would have given had it been quicker. */
        on_message(inner, DV_STR(""));
        err = NULL;
    }
    own_arena = call->priv.own_arena;
    call->priv.own_arena = NULL;
    answer = err ? NULL : call->priv.answer;
    bad = err ? *err : call->priv.err;
    /* Comes last, because it may free the call. */
    call->done(call, answer, answer ? NULL : &bad);
}

void dv_cri_call_start(struct dv_cri *cri, struct dv_cri_call *call,
                       const struct ProtobufCMessage *request)
{
    assert(request->descriptor == methods[call->method].request && call->done);
    memset(&call->priv, 0, sizeof(call->priv));
    call->priv.call = (struct dv_call){
        .method = methods[call->method].path,
        .message = on_message,
        .done = on_done,
        .deadline_ms = deadline_of(cri, call->method, request),
    };
    dv_call_start(cri->channel, &call->priv.call, dv_grpc_encode(request));
}

void dv_cri_call_cancel(struct dv_cri_call *call)
{
    dv_call_cancel(&call->priv.call);
}
