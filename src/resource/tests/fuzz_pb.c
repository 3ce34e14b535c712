/* fuzz_pb.c - an object from protobuf: written and read again it is the same, and its JSON too. */
#include <assert.h>

#include "base/str.h"
#include "fuzz_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_kind *kind;
    const struct dv_message *message;
    void *value;
    void *again;
    void *from_json;
    dv_str bytes;
    struct dv_err err;

    if (size == 0)
        return 0;
    kind = chosen_kind(data[0]);
    message = chosen_version(kind, data[0])->message;
    value = new_value(message, arena);
    if (!dv_decode_pb(message, (dv_str){(const char *)data + 1, size - 1}, arena, value, &err))
        return 0;
    bytes = encode_bytes(message, value, arena);
    again = new_value(message, arena);
    assert(dv_decode_pb(message, bytes, arena, again, &err));
    assert(dv_str_eq(encode_bytes(message, again, arena), bytes));
    assert(dv_message_eq(message, value, again));
    from_json = decode_text(message, encode_text(message, value, arena), DV_UNKNOWN_KEEP, arena);
    assert(from_json);
    return 0;
}
