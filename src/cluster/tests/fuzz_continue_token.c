/* fuzz_continue_token.c - continue tokens come back from clients: whatever they send is read or
 * refused, and what is read means the same when it is printed again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/objects/continue_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_continue token = {0};
    struct dv_continue again = {0};
    struct dv_err err;

    if (!dv_continue_parse((dv_str){(const char *)data, size}, arena, &token, &err))
        return 0;
    assert(dv_continue_parse(dv_continue_print(&token, arena), arena, &again, &err));
    assert(again.version == token.version && dv_str_eq(again.after, token.after));
    return 0;
}
