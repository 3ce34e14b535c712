/* fuzz_line.c - the objects of a cluster as a line of JSON, as wrong as they may be: all of
 * check_world must hold of what can be read. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_verify.h"
#include "base/str.h"

#define STEPS_MAX 3000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    const char *problem = NULL;

    if (world_open(&world, (dv_str){(const char *)data, size}))
        problem = check_world(&world, STEPS_MAX);
    world_close(&world);
    if (problem) {
        (void)fprintf(stderr, "%s\n", problem);
        abort();
    }
    return 0;
}
