/* fuzz_lease_where.c - whatever is written as a selector: what is taken is CEL that compiles, and
 * taken once more, as whole CEL, it stays as it is. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel.h"
#include "lease/state/lease_where.h"

#define BYTES_MAX 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dv_lease_name names[] = {
        {DV_STR_INIT("memory"),        DV_STR_INIT("gpu.example.com"),        DV_LEASE_CAPACITY },
        {DV_STR_INIT("model"),         DV_STR_INIT("gpu.example.com"),        DV_LEASE_ATTRIBUTE},
        {DV_STR_INIT("driverVersion"), DV_STR_INIT("gpu.example.com"),        DV_LEASE_VERSION  },
        {DV_STR_INIT("pcieRoot"),      DV_STR_INIT("resource.kubernetes.io"), DV_LEASE_ATTRIBUTE},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cel_options options = {.env = DV_CEL_ENV_NEW,
                                           .features = {.consumable_capacity = true}};
    struct dv_err err;
    dv_str cel;

    if (size > BYTES_MAX || !dv_lease_where_expand((dv_str){(const char *)data, size}, names,
                                                   DV_COUNT(names), arena, &cel, &err))
        return 0;
    assert(dv_cel_compile(cel, &options, arena, &err));
    return 0;
}
