/* fuzz_base64.c - any bytes come back from their text; what is taken for base64, written again, is
 * the same bytes. */
#include "base/base64.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"

#define BYTES_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(dv_str bytes, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    dv_str again;

    dv_buf_init(&text, 2 * BYTES_MAX);
    dv_base64_encode(bytes, &text);
    assert(!text.is_over && text.n == (bytes.n + 2) / 3 * 4);
    assert(dv_base64_decode(dv_buf_str(&text), arena, &again));
    assert(dv_str_eq(bytes, again));
}

/* The form for URLs is read only if it is the one text of its bytes. */
static void check_url(dv_str input, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    dv_str bytes;

    dv_buf_init(&text, 2 * BYTES_MAX);
    dv_base64url_encode(input, &text);
    assert(dv_base64url_decode(dv_buf_str(&text), arena, &bytes));
    assert(dv_str_eq(bytes, input));
    dv_buf_clear(&text);
    if (!dv_base64url_decode(input, arena, &bytes))
        return;
    dv_base64url_encode(bytes, &text);
    assert(dv_str_eq(dv_buf_str(&text), input));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str input = {(const char *)data, size};
    dv_str bytes;

    if (size > BYTES_MAX)
        return 0;
    check_bytes(input, arena);
    check_url(input, arena);
    if (dv_base64_decode(input, arena, &bytes)) {
        assert(bytes.n <= size / 4 * 3 + 3);
        check_bytes(bytes, arena);
    }
    return 0;
}
