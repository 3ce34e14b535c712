/* A server's session, whatever its client sends. */
#include "http2/tests/fuzz_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_session(true, data, size);
    return 0;
}
