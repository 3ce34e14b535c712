/* fuzz_http1_reply.c - the head of an answer is the same whatever follows it, and nothing of it is
 * seen before its end has come. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "http1/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str bytes = {(const char *)data, size};
    struct dv_h1_reply whole;
    struct dv_h1_reply head;
    struct dv_err err;

    if (!dv_h1_parse_reply(bytes, arena, &whole, &err) || whole.head_bytes == 0)
        return 0;
    assert(whole.head_bytes <= size && whole.status >= 100 && whole.status < 1000);
    assert(dv_h1_parse_reply(dv_str_slice(bytes, 0, whole.head_bytes), arena, &head, &err));
    assert(head.head_bytes == whole.head_bytes && head.status == whole.status);
    assert(head.n_fields == whole.n_fields && head.length == whole.length);
    assert(dv_h1_parse_reply(dv_str_slice(bytes, 0, whole.head_bytes - 1), arena, &head, &err));
    assert(head.head_bytes == 0);
    return 0;
}
