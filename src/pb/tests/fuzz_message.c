/* dv_pb_decode against itself (what it read, written and read again, is the same), against its
 * bound on memory, and against protobuf-c's unpack where that one is right. The first byte of an
 * input chooses the type. */
#include <assert.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "pb/tests/test_pb_memory.h"
#include "proto/deviceplugin_v0_1.pb-c.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "proto/dra_v1.pb-c.h"
#include "proto/dra_v1alpha3.pb-c.h"
#include "proto/health_v1alpha1.pb-c.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/pods_v1alpha1.pb-c.h"
#include "proto/registration_v1.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Corpus files count on the order: add at the end. */
static const ProtobufCMessageDescriptor *const types[] = {
    &dp_v1beta1__list_and_watch_response__descriptor,
    &dp_v1beta1__allocate_response__descriptor,
    &dp_v1beta1__preferred_allocation_request__descriptor,
    &dp_v1beta1__register_request__descriptor,
    &dra_v1__node_prepare_resources_response__descriptor,
    &dra_v1__node_prepare_resources_request__descriptor,
    &registration_v1__plugin_info__descriptor,
    &health_v1alpha1__node_watch_resources_response__descriptor,
    &podres_v1__list_pod_resources_response__descriptor,
    &podres_v1__get_pod_resources_response__descriptor,
    &podres_v1__allocatable_resources_response__descriptor,
    &pods_v1alpha1__watch_pods_event__descriptor,
    &dra_v1alpha3__claim__descriptor,
    &dra_v1alpha3__node_list_and_watch_resources_response__descriptor,
    &dp_v0_1__allocate_response__descriptor,
};

static dv_str encode(const ProtobufCMessage *message, struct dv_arena *arena)
{
    size_t n = dv_pb_size(message);
    char *bytes = dv_arena_alloc(arena, n, 1);

    dv_pb_encode(message, bytes, n);
    return (dv_str){bytes, n};
}

/* Whether parts of a message may have to be merged: protobuf-c loses some of what is in them. */
static bool has_single_message(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];

        if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
            (field->label != PROTOBUF_C_LABEL_REPEATED || has_single_message(field->descriptor)))
            return true;
    }
    return false;
}

/* protobuf-c loses those of a message that comes in parts, and takes a bool of a wrong wire type
 * for one, where all others see an unknown field. */
static bool has_unknown_fields(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;

    if (message->n_unknown_fields > 0)
        return true;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const char *at = (const char *)message + field->offset;
        ProtobufCMessage *single = NULL;
        ProtobufCMessage **list = &single;
        size_t n = 1;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, (const char *)message + field->quantifier_offset, sizeof(n));
            memcpy(&list, at, sizeof(list));
        } else {
            memcpy(&single, at, sizeof(single));
        }
        for (size_t k = 0; k < n; k++)
            if (list[k] && has_unknown_fields(list[k]))
                return true;
    }
    return false;
}

/* What protobuf-c accepts too, and writes, means the same as what we write. */
static void compare(const ProtobufCMessageDescriptor *type, dv_str bytes, dv_str want,
                    struct dv_arena *arena)
{
    ProtobufCMessage *theirs =
        protobuf_c_message_unpack(type, NULL, bytes.n, (const uint8_t *)bytes.p);
    ProtobufCMessage *settled; /* of their maps: each key once, and always a value */
    struct dv_err err;

    if (!theirs) { /* bytes from outside can have a form that it does not know; ours cannot */
        assert(bytes.p != want.p);
        return;
    }
    settled = dv_pb_decode(type, encode(theirs, arena), arena, &err);
    assert(settled && dv_str_eq(encode(settled, arena), want));
    protobuf_c_message_free_unpacked(theirs, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const ProtobufCMessageDescriptor *type;
    ProtobufCMessage *message;
    struct dv_err err;
    dv_str bytes, encoded;

    if (size == 0)
        return 0;
    type = types[data[0] % DV_COUNT(types)];
    bytes = (dv_str){(const char *)data + 1, size - 1};
    message = dv_pb_decode(type, bytes, arena, &err);
    assert(dv_arena_size_bytes(arena) <= MEMORY_FACTOR * bytes.n + MEMORY_FLAT);
    if (!message) {
        assert(err.code == DV_INVALID_ARGUMENT);
        return 0;
    }
    encoded = encode(message, scratch);
    message = dv_pb_decode(type, encoded, scratch, &err);
    assert(message && dv_str_eq(encode(message, scratch), encoded));
    if (has_unknown_fields(message))
        return 0;
    compare(type, encoded, encoded, scratch);
    if (!has_single_message(type))
        compare(type, bytes, encoded, scratch);
    return 0;
}
