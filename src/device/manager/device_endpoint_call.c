/* device_endpoint_call.c - calls to a plugin, in the version of the API that it speaks. */
#include <assert.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/manager/device_endpoint.h"
#include "device/manager/device_manager_state.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"

/* The paths of the methods by version; NULL: the version has no such call. */
static const struct {
    const char *list;
    const char *calls[3]; /* by DV_DEVICE_ASK_* */
} methods[] = {
    [DV_ENDPOINT_V1BETA1] = {"/v1beta1.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_PREFERRED] =
                                  "/v1beta1.DevicePlugin/GetPreferredAllocation",
                              [DV_DEVICE_ASK_ALLOCATE] = "/v1beta1.DevicePlugin/Allocate",
                              [DV_DEVICE_ASK_PRESTART] =
                                  "/v1beta1.DevicePlugin/PreStartContainer"}                   },
    [DV_ENDPOINT_V1ALPHA2] = {"/deviceplugin.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_ALLOCATE] = "/deviceplugin.DevicePlugin/Allocate"}},
    [DV_ENDPOINT_V0_1] = {"/deviceplugin.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_ALLOCATE] = "/deviceplugin.DevicePlugin/Allocate"}},
};

const char *dv_endpoint_list_method(const struct dv_endpoint *endpoint)
{
    return methods[endpoint->version].list;
}

/* The old AllocateRequest is what one container's request is today. */
static dv_str old_request(dv_str today)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, today);
    if (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &err))
        return field.bytes;
    return DV_STR("");
}

void dv_endpoint_call(struct dv_endpoint *endpoint, const struct dv_device_step *step,
                      struct dv_call *call)
{
    struct dv_buf buf;
    dv_str bytes;

    call->method = methods[endpoint->version].calls[step->kind];
    /* the old versions have no options, so no other method is ever asked of them */
    assert(call->method);
    dv_buf_init(&buf, DV_DEVICE_LIST_BYTES_MAX);
    dv_device_step_encode(step, &buf);
    bytes = dv_buf_str(&buf);
    if (endpoint->version != DV_ENDPOINT_V1BETA1)
        bytes = old_request(bytes);
    dv_call_start(endpoint->channel, call, dv_h2_msg_copy(bytes));
    dv_buf_fini(&buf);
}

/* Kubernetes 1.8 answers with a list of {id, envs, mounts, devices}. Today's response has the last
 * three one field number lower, for all devices together. */
static bool flatten_specs(dv_str answer, struct dv_buf *out, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader spec;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, answer);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (!dv_pb_enter(&reader, &field, &spec, err))
            return false;
        while (!dv_pb_is_at_end(&spec)) {
            if (!dv_pb_read(&spec, &field, err))
                return false;
            if (field.tag >= DV_PB_TAG(2, DV_PB_BYTES) && field.tag <= DV_PB_TAG(4, DV_PB_BYTES) &&
                (field.tag & 7) == DV_PB_BYTES)
                dv_pb_add_bytes(out, (field.tag >> 3) - 1, field.bytes);
        }
    }
    return true;
}

bool dv_endpoint_convert(const struct dv_endpoint *endpoint, enum dv_device_step_kind kind,
                         struct dv_buf *answer, struct dv_err *err)
{
    struct dv_buf flat;
    struct dv_buf today;
    bool ok = true;

    if (endpoint->version == DV_ENDPOINT_V1BETA1 || kind != DV_DEVICE_ASK_ALLOCATE)
        return true;
    dv_buf_init(&flat, answer->max);
    dv_buf_init(&today, answer->max);
    if (endpoint->version == DV_ENDPOINT_V0_1)
        ok = flatten_specs(dv_buf_str(answer), &flat, err);
    else
        /* 1.9 answers with one container's response as it is today */
        dv_buf_add(&flat, dv_buf_str(answer));
    dv_pb_add_bytes(&today, 1, dv_buf_str(&flat));
    dv_buf_clear(answer);
    dv_buf_add(answer, dv_buf_str(&today));
    dv_buf_fini(&flat);
    dv_buf_fini(&today);
    return ok && dv_buf_check(answer, "answer", err);
}
