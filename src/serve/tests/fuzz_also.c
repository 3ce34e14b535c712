/* fuzz_also.c - rules that widen a driver's token: whatever is read, only reading is given, and no
 * secrets. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str text = {(const char *)data, size};
    struct dv_auth_also also;
    struct dv_err err;

    if (!dv_auth_also_parse(text, &also, &err))
        return 0;
    assert(also.verbs != 0 && (also.verbs & ~(unsigned)DV_MAY_READ) == 0);
    assert(also.resource.n > 0 && !dv_str_eq(also.resource, DV_STR("secrets")));
    assert(!also.subresource.n || dv_str_eq(also.subresource, DV_STR("status")));
    return 0;
}
