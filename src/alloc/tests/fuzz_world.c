/* fuzz_world.c - bytes choose a small cluster and its claims; all of check_world must hold. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_verify.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"

#define STEPS_MAX 20000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct choices choices = {data, size, 0};
    dv_str line = world_line(&choices, arena);
    struct world world;
    const char *problem = "the line is not a world";

    if (world_open(&world, line))
        problem = check_world(&world, STEPS_MAX);
    world_close(&world);
    if (problem) {
        (void)fprintf(stderr, "%s: %.*s\n", problem, DV_FMT(line));
        abort();
    }
    return 0;
}
