#include "verify/kit/plugin_link.h"

#include <string.h>

#include "base/arena.h"
#include "pb/pb.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "verify/kit/driver_calls.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/trial.h"

#define SERVICE "/v1beta1.DevicePlugin/"
/* What the kubelet gives PreStartContainer; it gives the other calls no limit, but a pod waits. */
#define CALL_MS 30000u

/* ---- the list ---- */

static void on_list(struct dv_call *call, dv_str message)
{
    struct dv_list_watch *list = DV_CONTAINER(call, struct dv_list_watch, call);

    list->last = dv_pb_decode(&dp_v1beta1__list_and_watch_response__descriptor, message,
                              list->trial->arena, &list->err);
    if (list->last)
        list->n_lists++;
    else
        list->has_ended = true;
    list->n_bytes += message.n;
    if (list->n_bytes > DV_STREAM_BYTES_MAX && !list->has_ended) {
        list->has_ended = true;
        (void)dv_fail(&list->err, DV_RESOURCE_EXHAUSTED, "it has sent %zu lists, of %zu bytes",
                      list->n_lists, list->n_bytes);
        dv_call_cancel(call);
    }
}

static void on_list_end(struct dv_call *call, const struct dv_err *err)
{
    struct dv_list_watch *list = DV_CONTAINER(call, struct dv_list_watch, call);

    if (list->has_ended)
        return; /* we did it, and said why */
    list->has_ended = true;
    if (err)
        list->err = *err;
    else
        (void)dv_fail(&list->err, DV_OK, "the plugin ended it");
}

struct dv_list_watch *dv_list_start(struct dv_trial *trial, struct dv_channel *channel)
{
    struct dv_list_watch *list = DV_NEW(trial->arena, struct dv_list_watch);
    const DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;

    list->trial = trial;
    list->call = (struct dv_call){.method = SERVICE "ListAndWatch",
                                  .message = on_list,
                                  .done = on_list_end,
                                  .deadline_ms = DV_NO_DEADLINE,
                                  .is_stream = true,
                                  .waits_for_ready = true};
    (void)dv_fail(&list->err, DV_OK, "its stream is open, and silent"); /* until it ends */
    trial->n_calls++;
    dv_call_start(channel, &list->call, dv_grpc_encode(&empty.base));
    return list;
}

struct list_wait {
    const struct dv_list_watch *list;
    size_t n;
};

static bool has_list(void *ctx)
{
    const struct list_wait *wait = ctx;

    return wait->list->n_lists > wait->n || wait->list->has_ended;
}

bool dv_list_wait(struct dv_list_watch *list, size_t n, uint64_t timeout_ms)
{
    struct list_wait wait = {list, n};

    return dv_trial_wait_ms(list->trial, has_list, &wait, timeout_ms, "its list of devices") &&
           list->n_lists > n;
}

size_t dv_list_n(const struct dv_list_watch *list)
{
    return list->last ? list->last->n_devices : 0;
}

size_t dv_list_healthy(const struct dv_list_watch *list, const char ***ids)
{
    size_t n = 0;

    *ids = DV_NEW_ARRAY(list->trial->arena, const char *, dv_list_n(list));
    for (size_t i = 0; i < dv_list_n(list); i++)
        if (strcmp(list->last->devices[i]->health, "Healthy") == 0)
            (*ids)[n++] = list->last->devices[i]->id;
    return n;
}

bool dv_list_has(const struct dv_list_watch *list, const char *id)
{
    for (size_t i = 0; i < dv_list_n(list); i++)
        if (strcmp(list->last->devices[i]->id, id) == 0)
            return true;
    return false;
}

/* ---- the plugin ---- */

struct dv_plugin_link *dv_plugin_link_open(struct dv_trial *trial, struct dv_child *process,
                                           const struct dv_registration *registration)
{
    struct dv_plugin_link *link = DV_NEW(trial->arena, struct dv_plugin_link);
    const DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;
    struct dv_err err;

    link->trial = trial;
    link->process = process;
    link->registration = registration;
    link->channel = dv_driver_connect(trial, registration);
    link->options =
        dv_driver_ask(trial, link->channel, SERVICE "GetDevicePluginOptions", &empty.base,
                      &dp_v1beta1__device_plugin_options__descriptor, trial->wait_ms, &err);
    if (!link->options)
        dv_trial_fail(trial, "GetDevicePluginOptions failed: %s", err.msg);
    link->list = dv_list_start(trial, link->channel);
    if (!dv_list_wait(link->list, 0, trial->wait_ms))
        dv_trial_fail(trial, "no list of devices came within %llu ms: %s",
                      (unsigned long long)trial->wait_ms, link->list->err.msg);
    return link;
}

struct dv_plugin_link *dv_plugin_link_begin(struct dv_trial *trial)
{
    struct dv_child *process;

    if (!trial->kubelet)
        dv_kubelet_open(trial);
    process = dv_child_start(trial);
    return dv_plugin_link_open(trial, process, dv_kubelet_await(trial, 0, "after its start"));
}

void dv_plugin_link_close(struct dv_plugin_link *link)
{
    dv_driver_disconnect(link->trial, link->channel);
}

/* ---- calls ---- */

DpV1beta1__ContainerAllocateRequest *dv_plugin_container(struct dv_plugin_link *link,
                                                         const char **ids, size_t n_ids)
{
    DpV1beta1__ContainerAllocateRequest *made =
        DV_NEW(link->trial->arena, DpV1beta1__ContainerAllocateRequest);

    dp_v1beta1__container_allocate_request__init(made);
    made->devices_ids = ids;
    made->n_devices_ids = n_ids;
    return made;
}

static struct dv_driver_call *start_allocate(struct dv_plugin_link *link,
                                             DpV1beta1__ContainerAllocateRequest **containers,
                                             size_t n_containers)
{
    DpV1beta1__AllocateRequest request = DP_V1BETA1__ALLOCATE_REQUEST__INIT;

    request.container_requests = containers;
    request.n_container_requests = n_containers;
    return dv_driver_start(link->trial, link->channel, SERVICE "Allocate", &request.base,
                           &dp_v1beta1__allocate_response__descriptor, CALL_MS);
}

struct dv_driver_call *dv_plugin_start_allocate(struct dv_plugin_link *link, const char **ids,
                                                size_t n_ids)
{
    DpV1beta1__ContainerAllocateRequest *container = dv_plugin_container(link, ids, n_ids);

    return start_allocate(link, &container, 1);
}

DpV1beta1__AllocateResponse *
dv_plugin_try_allocate(struct dv_plugin_link *link,
                       DpV1beta1__ContainerAllocateRequest **containers, size_t n_containers,
                       struct dv_err *err)
{
    struct dv_driver_call *call = start_allocate(link, containers, n_containers);
    DpV1beta1__AllocateResponse *answer = dv_driver_finish(call);

    *err = call->err;
    return answer;
}

DpV1beta1__ContainerAllocateResponse *dv_plugin_allocate(struct dv_plugin_link *link,
                                                         const char **ids, size_t n_ids)
{
    DpV1beta1__ContainerAllocateRequest *container = dv_plugin_container(link, ids, n_ids);
    struct dv_err err;
    DpV1beta1__AllocateResponse *answer = dv_plugin_try_allocate(link, &container, 1, &err);

    if (!answer)
        dv_trial_fail(link->trial, "Allocate of %zu device(s), the first \"%s\", failed: %s", n_ids,
                      n_ids > 0 ? ids[0] : "", err.msg);
    if (answer->n_container_responses != 1)
        dv_trial_fail(link->trial, "Allocate for one container was answered for %zu",
                      answer->n_container_responses);
    return answer->container_responses[0];
}

DpV1beta1__PreferredAllocationResponse *
dv_plugin_try_prefer(struct dv_plugin_link *link, const char **available, size_t n_available,
                     const char **must, size_t n_must, size_t size, struct dv_err *err)
{
    DpV1beta1__ContainerPreferredAllocationRequest container =
        DP_V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
    DpV1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
    DpV1beta1__PreferredAllocationRequest request = DP_V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;

    container.available_deviceids = available;
    container.n_available_deviceids = n_available;
    container.must_include_deviceids = must;
    container.n_must_include_deviceids = n_must;
    container.allocation_size = (int32_t)size;
    request.container_requests = containers;
    request.n_container_requests = 1;
    return dv_driver_ask(link->trial, link->channel, SERVICE "GetPreferredAllocation",
                         &request.base, &dp_v1beta1__preferred_allocation_response__descriptor,
                         CALL_MS, err);
}

bool dv_plugin_try_prestart(struct dv_plugin_link *link, const char **ids, size_t n_ids,
                            struct dv_err *err)
{
    DpV1beta1__PreStartContainerRequest request = DP_V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;

    request.devices_ids = ids;
    request.n_devices_ids = n_ids;
    return dv_driver_ask(link->trial, link->channel, SERVICE "PreStartContainer", &request.base,
                         &dp_v1beta1__pre_start_container_response__descriptor, CALL_MS,
                         err) != NULL;
}

void dv_plugin_check_alive(struct dv_plugin_link *link, const char *after)
{
    const DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;
    struct dv_err err;

    if (!dv_driver_ask(link->trial, link->channel, SERVICE "GetDevicePluginOptions", &empty.base,
                       &dp_v1beta1__device_plugin_options__descriptor, link->trial->wait_ms, &err))
        dv_trial_fail(link->trial, "after %s the plugin does not answer any more: %s", after,
                      err.msg);
}
