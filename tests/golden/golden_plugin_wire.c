/* golden_plugin_wire.c - replays golden/plugin-wire: every message of calls.jsonl is decoded,
 * compared with its JSON form, encoded again and compared with its bytes.
 *
 *     golden_plugin_wire DIR      DIR holds calls.jsonl
 *
 * A message that is cut (message_hex_prefix) is checked as far as its fields are whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "files.h"
#include "pb/pb.h"
#include "pb_json.h"
#include "proto/deviceplugin_v0_1.pb-c.h"
#include "proto/deviceplugin_v1alpha2.pb-c.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "proto/dra_v1.pb-c.h"
#include "proto/dra_v1alpha1.pb-c.h"
#include "proto/dra_v1alpha2.pb-c.h"
#include "proto/dra_v1alpha3.pb-c.h"
#include "proto/dra_v1alpha4.pb-c.h"
#include "proto/dra_v1beta1.pb-c.h"
#include "proto/health_v1.pb-c.h"
#include "proto/health_v1alpha1.pb-c.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"
#include "proto/pods_v1alpha1.pb-c.h"
#include "proto/registration_v1.pb-c.h"

/* The gRPC status of a method that the server does not know. */
#define UNIMPLEMENTED "12"

struct method {
    const char *path;
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

/* Fields of a row: service, method, package in C, request, response. */
#define METHOD(service, name, api, request, response)                                              \
    {                                                                                              \
        "/" service "/" name, &api##__##request##__descriptor, &api##__##response##__descriptor    \
    }
#define DRA "k8s.io.kubelet.pkg.apis.dra."

/* A path with two rows has had two forms that nothing on the wire tells apart: one must fit. */
static const struct method methods[] = {
    METHOD("pluginregistration.Registration", "GetInfo", registration_v1, info_request,
           plugin_info),
    METHOD("pluginregistration.Registration", "NotifyRegistrationStatus", registration_v1,
           registration_status, registration_status_response),
    METHOD("v1beta1.Registration", "Register", dp_v1beta1, register_request, empty),
    METHOD("v1beta1.DevicePlugin", "GetDevicePluginOptions", dp_v1beta1, empty,
           device_plugin_options),
    METHOD("v1beta1.DevicePlugin", "ListAndWatch", dp_v1beta1, empty, list_and_watch_response),
    METHOD("v1beta1.DevicePlugin", "GetPreferredAllocation", dp_v1beta1,
           preferred_allocation_request, preferred_allocation_response),
    METHOD("v1beta1.DevicePlugin", "Allocate", dp_v1beta1, allocate_request, allocate_response),
    METHOD("v1beta1.DevicePlugin", "PreStartContainer", dp_v1beta1, pre_start_container_request,
           pre_start_container_response),
    METHOD("deviceplugin.Registration", "Register", dp_v1alpha2, register_request, empty),
    METHOD("deviceplugin.DevicePlugin", "ListAndWatch", dp_v1alpha2, empty,
           list_and_watch_response),
    METHOD("deviceplugin.DevicePlugin", "Allocate", dp_v1alpha2, allocate_request,
           allocate_response),
    METHOD("deviceplugin.Registration", "Register", dp_v0_1, register_request, empty),
    METHOD("deviceplugin.DevicePlugin", "ListAndWatch", dp_v0_1, empty, list_and_watch_response),
    METHOD("deviceplugin.DevicePlugin", "Allocate", dp_v0_1, allocate_request, allocate_response),
    METHOD(DRA "v1.DRAPlugin", "NodePrepareResources", dra_v1, node_prepare_resources_request,
           node_prepare_resources_response),
    METHOD(DRA "v1.DRAPlugin", "NodeUnprepareResources", dra_v1, node_unprepare_resources_request,
           node_unprepare_resources_response),
    METHOD(DRA "v1beta1.DRAPlugin", "NodePrepareResources", dra_v1beta1,
           node_prepare_resources_request, node_prepare_resources_response),
    METHOD(DRA "v1beta1.DRAPlugin", "NodeUnprepareResources", dra_v1beta1,
           node_unprepare_resources_request, node_unprepare_resources_response),
    METHOD("v1alpha3.Node", "NodePrepareResources", dra_v1alpha4, node_prepare_resources_request,
           node_prepare_resources_response),
    METHOD("v1alpha3.Node", "NodeUnprepareResources", dra_v1alpha4,
           node_unprepare_resources_request, node_unprepare_resources_response),
    METHOD("v1alpha3.Node", "NodePrepareResources", dra_v1alpha3, node_prepare_resources_request,
           node_prepare_resources_response),
    METHOD("v1alpha3.Node", "NodeUnprepareResources", dra_v1alpha3,
           node_unprepare_resources_request, node_unprepare_resources_response),
    METHOD("v1alpha3.Node", "NodeListAndWatchResources", dra_v1alpha3,
           node_list_and_watch_resources_request, node_list_and_watch_resources_response),
    METHOD("v1alpha2.Node", "NodePrepareResource", dra_v1alpha2, node_prepare_resource_request,
           node_prepare_resource_response),
    METHOD("v1alpha2.Node", "NodeUnprepareResource", dra_v1alpha2, node_unprepare_resource_request,
           node_unprepare_resource_response),
    METHOD("v1alpha1.Node", "NodePrepareResource", dra_v1alpha1, node_prepare_resource_request,
           node_prepare_resource_response),
    METHOD("v1alpha1.Node", "NodeUnprepareResource", dra_v1alpha1, node_unprepare_resource_request,
           node_unprepare_resource_response),
    METHOD("v1.DRAResourceHealth", "NodeWatchResources", health_v1, node_watch_resources_request,
           node_watch_resources_response),
    METHOD("v1alpha1.DRAResourceHealth", "NodeWatchResources", health_v1alpha1,
           node_watch_resources_request, node_watch_resources_response),
    METHOD("v1.PodResourcesLister", "List", podres_v1, list_pod_resources_request,
           list_pod_resources_response),
    METHOD("v1.PodResourcesLister", "GetAllocatableResources", podres_v1,
           allocatable_resources_request, allocatable_resources_response),
    METHOD("v1.PodResourcesLister", "Get", podres_v1, get_pod_resources_request,
           get_pod_resources_response),
    METHOD("v1alpha1.PodResourcesLister", "List", podres_v1alpha1, list_pod_resources_request,
           list_pod_resources_response),
    METHOD("v1alpha1.Pods", "WatchPods", pods_v1alpha1, watch_pods_request, watch_pods_event),
    METHOD("v1alpha1.Pods", "ListPods", pods_v1alpha1, list_pods_request, list_pods_response),
    METHOD("v1alpha1.Pods", "GetPod", pods_v1alpha1, get_pod_request, get_pod_response),
};

/* A message of a call, and where it is. */
struct sample {
    const char *path;
    const char *type; /* NULL: not given */
    const char *hex;  /* all of it, or its beginning */
    json_t *json;     /* NULL: not given */
    size_t n_bytes;   /* the length on the wire */
    bool is_from_client;
    bool is_prefix;
    bool is_unimplemented; /* what became of the call */
};

struct score {
    unsigned n_passed;
    unsigned n_failed;
};

static void free_json(json_t **json)
{
    json_decref(*json);
}

static bool bytes_from_hex(const char *hex, struct dv_arena *arena, dv_str *bytes,
                           struct dv_err *err)
{
    size_t n = strlen(hex) / 2;
    char *p = dv_arena_alloc(arena, n, 1);

    if (strlen(hex) % 2 != 0 || strspn(hex, "0123456789abcdefABCDEF") != 2 * n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "not hex: %.20s...", hex);
    for (size_t i = 0; i < n; i++) {
        const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};

        p[i] = (char)strtoul(digits, NULL, 16);
    }
    *bytes = (dv_str){p, n};
    return true;
}

/* Takes off the last field of the message's beginning, unless it happens to be whole. */
static dv_str whole_fields(dv_str bytes)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err ignored;
    dv_str whole = {bytes.p, 0};

    dv_pb_reader_init(&reader, bytes);
    while (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &ignored))
        whole.n = (size_t)(reader.at - bytes.p);
    return whole;
}

static bool check_message(const struct sample *sample, const ProtobufCMessageDescriptor *type,
                          dv_str bytes, struct dv_arena *arena, struct dv_err *err)
{
    const ProtobufCMessage *message;
    char *again;
    size_t n;

    if (sample->type && strcmp(sample->type, type->name) != 0)
        return dv_fail(err, DV_FAILED_PRECONDITION, "type %s, where the method has %s",
                       sample->type, type->name);
    message = dv_pb_decode(type, bytes, arena, err);
    if (!message)
        return dv_wrap(err, "decode");
    if (sample->json && !sample->is_prefix) {
        DV_CLEANUP(free_json) json_t *got = pb_to_json(message);

        if (!json_compare(got, sample->json, err))
            return dv_wrap(err, "json");
    }
    n = dv_pb_size(message);
    again = dv_arena_alloc(arena, n, 1);
    dv_pb_encode(message, again, n);
    if (!dv_str_eq((dv_str){again, n}, bytes))
        return dv_fail(err, DV_FAILED_PRECONDITION, "encode: %zu bytes that differ, want %zu", n,
                       bytes.n);
    return true;
}

/* No row has the path: right only where the reference did not know it either. */
static bool check_unknown(const struct sample *sample, dv_str bytes, struct dv_err *err)
{
    if (sample->type)
        return dv_fail(err, DV_NOT_FOUND, "unknown type %s", sample->type);
    if (!sample->is_unimplemented)
        return dv_fail(err, DV_NOT_FOUND, "unknown method");
    if (whole_fields(bytes).n != bytes.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "not a message");
    return true;
}

static bool check_sample(const struct sample *sample, struct dv_arena *arena, struct dv_err *err)
{
    bool is_known = false;
    dv_str bytes = {0};

    if (!bytes_from_hex(sample->hex, arena, &bytes, err))
        return false;
    if (sample->is_prefix ? sample->n_bytes < bytes.n : sample->n_bytes != bytes.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu bytes of %zu", bytes.n, sample->n_bytes);
    if (sample->is_prefix)
        bytes = whole_fields(bytes);
    for (size_t i = 0; i < DV_COUNT(methods); i++) {
        if (strcmp(methods[i].path, sample->path) != 0)
            continue;
        if (check_message(sample, sample->is_from_client ? methods[i].request : methods[i].response,
                          bytes, arena, err))
            return true;
        is_known = true;
    }
    return is_known ? false : check_unknown(sample, bytes, err);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Lists of [name, value]. */
static bool has_trailer(const json_t *trailers, const char *name, const char *value)
{
    for (size_t i = 0; i < json_array_size(trailers); i++) {
        const json_t *pair = json_array_get(trailers, i);
        const char *pair_name = json_string_value(json_array_get(pair, 0));
        const char *pair_value = json_string_value(json_array_get(pair, 1));

        if (pair_name && pair_value && strcmp(pair_name, name) == 0 &&
            strcmp(pair_value, value) == 0)
            return true;
    }
    return false;
}

static bool read_sample(const json_t *call, const json_t *message, struct sample *sample,
                        struct dv_err *err)
{
    const char *from = text_of(message, "from");
    const char *hex = text_of(message, "message_hex");
    const char *prefix = text_of(message, "message_hex_prefix");
    json_int_t n_bytes = json_integer_value(json_object_get(message, "bytes"));

    if (!from || (strcmp(from, "client") != 0 && strcmp(from, "server") != 0))
        return dv_fail(err, DV_INVALID_ARGUMENT, "from neither client nor server");
    if (!hex && !prefix)
        return dv_fail(err, DV_INVALID_ARGUMENT, "no bytes");
    if (json_is_true(json_object_get(message, "compressed")))
        return dv_fail(err, DV_UNIMPLEMENTED, "compressed");
    *sample = (struct sample){
        .path = text_of(call, "method"),
        .type = text_of(message, "type"),
        .hex = hex ? hex : prefix,
        .json = json_object_get(message, "json"),
        .n_bytes = (size_t)n_bytes,
        .is_from_client = strcmp(from, "client") == 0,
        .is_prefix = !hex,
        .is_unimplemented =
            has_trailer(json_object_get(call, "trailers"), "grpc-status", UNIMPLEMENTED),
    };
    return true;
}

static void replay_call(const json_t *call, unsigned line, struct score *score)
{
    const json_t *messages = json_object_get(call, "messages");
    const char *path = text_of(call, "method");

    if (!path || !(json_is_array(messages) || json_is_null(messages))) {
        printf("calls.jsonl:%u: not a call\n", line);
        score->n_failed++;
        return;
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const json_t *message = json_array_get(messages, i);
        struct sample sample = {.path = path, .hex = ""};
        struct dv_err err;

        if (read_sample(call, message, &sample, &err) && check_sample(&sample, arena, &err)) {
            score->n_passed++;
            continue;
        }
        printf("calls.jsonl:%u: %s: message %zu: %s\n", line, path, i, err.msg);
        score->n_failed++;
    }
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct score *score = ctx;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    (void)kind;
    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++) {
        json_error_t error;
        DV_CLEANUP(free_json) json_t *call = json_loadb(text, (size_t)n, JSON_ALLOW_NUL, &error);

        if (!call) {
            printf("%s:%u: %s\n", name, line, error.text);
            score->n_failed++;
            continue;
        }
        replay_call(call, line, score);
    }
    free(text);
}

int main(int argc, char **argv)
{
    static const struct golden_kind kind = {
        "calls.jsonl", {"messages",        "method", "requestHeaders"},
         {NULL}
    };
    struct score score = {0};
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_plugin_wire DIR\n");
        return 2;
    }
    n_lost = golden_files(argv[1], &kind, 1, replay_file, &score);
    score.n_failed += n_lost;
    printf("%u passed, %u failed\n", score.n_passed, score.n_failed);
    return score.n_failed > 0;
}
