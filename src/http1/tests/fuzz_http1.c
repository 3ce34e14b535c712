/* fuzz_http1.c - whatever the pieces in which bytes arrive, a session makes the same of them. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "http1/tests/http1_events.h"

#define TEXT_BYTES_MAX (256u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf whole;
    DV_CLEANUP(dv_buf_fini) struct dv_buf parts;
    dv_str bytes = {(const char *)data, size};

    dv_buf_init(&whole, TEXT_BYTES_MAX);
    dv_buf_init(&parts, TEXT_BYTES_MAX);
    if (size == 0 || size > 65536)
        return 0;
    /* The first byte says how large the pieces are. */
    add_events(&whole, dv_str_slice(bytes, 1, size), SIZE_MAX / 2);
    add_events(&parts, dv_str_slice(bytes, 1, size), (size_t)data[0] % 61 + 1);
    assert(dv_str_eq(dv_buf_str(&whole), dv_buf_str(&parts)));
    return 0;
}
