/* A client's session, whatever its server sends. */
#include "http2/tests/fuzz_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_session(false, data, size);
    return 0;
}
