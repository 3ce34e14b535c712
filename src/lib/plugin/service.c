/* service.c - v1beta1.DevicePlugin: what an agent asks a device plugin. */
#include <inttypes.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "lib/common/lib_call.h"
#include "lib/plugin/device_plugin.h"
#include "lib/plugin/plugin_devices.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

/* The most containers in one request; an agent asks for one at a time. */
#define CONTAINERS_MAX 256u

static void refuse(struct davit_device_plugin *plugin, struct dv_server_call *call,
                   const struct dv_err *err)
{
    dv_log(DV_LOG_WARN, "driver: call refused", DV_F_STR("resource", plugin->resource),
           DV_F_REQUEST(dv_server_call_id(call)), DV_F_CODE(err), DV_F_ERR(err));
    dv_server_call_finish(call, err);
}

static void handle_options(void *ctx, struct dv_server_call *call, dv_str request)
{
    const struct dv_lib_way *way = ctx;
    DpV1beta1__DevicePluginOptions options = DP_V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

    (void)request; /* has no fields */
    options.pre_start_required = way->plugin->options.prestart != NULL;
    options.get_preferred_allocation_available = way->plugin->options.prefer != NULL;
    dv_server_call_reply(call, dv_grpc_encode(&options.base));
}

static void handle_watch(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct dv_lib_way *way = ctx;

    (void)request; /* has no fields */
    dv_lib_streams_add(&way->streams, call);
}

/* Checks that each id is in our list, and is asked for once. */
static bool check_ids(const struct davit_device_plugin *plugin, const char *const *ids, size_t n,
                      struct dv_err *err)
{
    struct dv_map seen;
    bool is_good = true;

    if (n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "no device is asked for");
    dv_map_init(&seen);
    for (size_t i = 0; i < n && is_good; i++) {
        dv_str id = dv_str_from_c(ids[i]);

        if (!plugin->devices || !dv_lib_devices_has(plugin->devices, id))
            is_good = dv_fail(err, DV_NOT_FOUND, "%.*s has no device \"%s\"",
                              DV_FMT(plugin->resource), ids[i]);
        else if (dv_map_set(&seen, id, &seen)) /* any value */
            is_good = dv_fail(err, DV_INVALID_ARGUMENT, "device \"%s\" is asked for twice", ids[i]);
    }
    dv_map_fini(&seen);
    return is_good;
}

static bool check_count(size_t n, struct dv_err *err)
{
    if (n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "no container is asked for");
    if (n > CONTAINERS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu containers are more than %u", n,
                       CONTAINERS_MAX);
    return true;
}

static bool check_allocate(const struct davit_device_plugin *plugin,
                           const DpV1beta1__AllocateRequest *ask, struct dv_err *err)
{
    if (!check_count(ask->n_container_requests, err))
        return false;
    for (size_t i = 0; i < ask->n_container_requests; i++) {
        const DpV1beta1__ContainerAllocateRequest *container = ask->container_requests[i];

        if (!check_ids(plugin, container->devices_ids, container->n_devices_ids, err))
            return false;
    }
    return true;
}

static void handle_allocate(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct davit_device_plugin *plugin = ((struct dv_lib_way *)ctx)->plugin;
    const DpV1beta1__AllocateRequest *ask;
    struct dv_lib_rpc *rpc;
    struct dv_err err;

    ask = dv_pb_decode(&dp_v1beta1__allocate_request__descriptor, request,
                       dv_server_call_arena(call), &err);
    if (!ask || !check_allocate(plugin, ask, &err)) {
        (void)dv_wrap(&err, "Allocate");
        refuse(plugin, call, &err);
        return;
    }
    rpc = dv_lib_rpc_new(&plugin->rpcs, call, DV_RPC_ALLOCATE, ask->n_container_requests);
    for (size_t i = 0; i < rpc->n_calls; i++)
        rpc->calls[i].allocate = (struct davit_allocate_request){
            .ids = ask->container_requests[i]->devices_ids,
            .n_ids = ask->container_requests[i]->n_devices_ids,
        };
    dv_lib_rpc_ask(rpc);
}

static void handle_prestart(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct davit_device_plugin *plugin = ((struct dv_lib_way *)ctx)->plugin;
    const DpV1beta1__PreStartContainerRequest *ask;
    struct dv_lib_rpc *rpc;
    struct dv_err err;

    ask = dv_pb_decode(&dp_v1beta1__pre_start_container_request__descriptor, request,
                       dv_server_call_arena(call), &err);
    if (!ask || !check_ids(plugin, ask->devices_ids, ask->n_devices_ids, &err)) {
        (void)dv_wrap(&err, "PreStartContainer");
        refuse(plugin, call, &err);
        return;
    }
    /* our options said that there is none, but an agent that asks all the same gets an answer */
    if (!plugin->options.prestart) {
        DpV1beta1__PreStartContainerResponse nothing =
            DP_V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;

        dv_server_call_reply(call, dv_grpc_encode(&nothing.base));
        return;
    }
    rpc = dv_lib_rpc_new(&plugin->rpcs, call, DV_RPC_PRESTART, 1);
    rpc->calls[0].allocate.ids = ask->devices_ids;
    rpc->calls[0].allocate.n_ids = ask->n_devices_ids;
    dv_lib_rpc_ask(rpc);
}

static bool read_prefer(const DpV1beta1__ContainerPreferredAllocationRequest *ask,
                        struct davit_prefer_request *request, struct dv_err *err)
{
    *request = (struct davit_prefer_request){
        .available = ask->available_deviceids,
        .n_available = ask->n_available_deviceids,
        .must_include = ask->must_include_deviceids,
        .n_must_include = ask->n_must_include_deviceids,
        .size = ask->allocation_size < 0 ? 0 : (size_t)ask->allocation_size,
    };
    if (ask->allocation_size < 0 || request->size > request->n_available)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%" PRId32 " devices out of %zu",
                       ask->allocation_size, request->n_available);
    if (request->n_must_include > request->size)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu devices must be among %" PRId32,
                       request->n_must_include, ask->allocation_size);
    return true;
}

static void handle_prefer(void *ctx, struct dv_server_call *call, dv_str request)
{
    struct davit_device_plugin *plugin = ((struct dv_lib_way *)ctx)->plugin;
    struct davit_prefer_request container;
    const DpV1beta1__PreferredAllocationRequest *ask;
    struct dv_lib_rpc *rpc;
    struct dv_err err;
    bool is_good;

    ask = dv_pb_decode(&dp_v1beta1__preferred_allocation_request__descriptor, request,
                       dv_server_call_arena(call), &err);
    is_good = ask && check_count(ask->n_container_requests, &err);
    for (size_t i = 0; is_good && i < ask->n_container_requests; i++)
        is_good = read_prefer(ask->container_requests[i], &container, &err);
    if (!is_good) {
        (void)dv_wrap(&err, "GetPreferredAllocation");
        refuse(plugin, call, &err);
        return;
    }
    if (!plugin->options.prefer) { /* the plugin has no preference, and says so */
        DpV1beta1__PreferredAllocationResponse nothing =
            DP_V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;

        dv_server_call_reply(call, dv_grpc_encode(&nothing.base));
        return;
    }
    rpc = dv_lib_rpc_new(&plugin->rpcs, call, DV_RPC_PREFER, ask->n_container_requests);
    for (size_t i = 0; i < rpc->n_calls; i++)
        /* cannot fail: it was checked before */
        (void)read_prefer(ask->container_requests[i], &rpc->calls[i].prefer, &err);
    dv_lib_rpc_ask(rpc);
}

const struct dv_method dv_lib_device_methods[] = {
    {"/v1beta1.DevicePlugin/GetDevicePluginOptions", handle_options },
    {"/v1beta1.DevicePlugin/ListAndWatch",           handle_watch   },
    {"/v1beta1.DevicePlugin/GetPreferredAllocation", handle_prefer  },
    {"/v1beta1.DevicePlugin/Allocate",               handle_allocate},
    {"/v1beta1.DevicePlugin/PreStartContainer",      handle_prestart},
};
const size_t dv_lib_n_device_methods = DV_COUNT(dv_lib_device_methods);
