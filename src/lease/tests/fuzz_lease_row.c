/* fuzz_lease_row.c - a row that is read and printed again reads as the same lease, and so does a
 * copy. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "lease/lease_spec.h"
#include "lease/state/lease_row.h"

#define BYTES_MAX 16384u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf first;
    DV_CLEANUP(dv_buf_fini) struct dv_buf second;
    struct dv_lease_spec spec;
    struct dv_err err;

    dv_buf_init(&first, DV_LEASE_ROW_BYTES_MAX);
    dv_buf_init(&second, DV_LEASE_ROW_BYTES_MAX);
    if (size > BYTES_MAX ||
        !dv_lease_row_parse((dv_str){(const char *)data, size}, arena, &spec, &err))
        return 0;
    dv_lease_row_print(&spec, &first);
    assert(dv_buf_check(&first, "the row", &err));
    assert(dv_lease_row_parse(dv_str_copy(dv_buf_str(&first), arena), arena, &spec, &err));
    dv_lease_row_print(&spec, &second);
    assert(dv_str_eq(dv_buf_str(&first), dv_buf_str(&second)));
    return 0;
}
