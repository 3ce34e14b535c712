/* fuzz_lease_queue.c - whatever requests come and go, the queue keeps its promises: never more than
 * is free, nobody delayed by those behind, nobody waits without a reason. */
#include <stddef.h>
#include <stdint.h>

#include "test_queue_model.h"

#define BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= BYTES_MAX)
        (void)dv_test_queue_run(data, size);
    return 0;
}
