/* fuzz_uevent.c - all that is read of a message of the kernel is in the message. */
#include "offer/offer.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(dv_str all, dv_str part)
{
    assert(part.n == 0 || (part.p >= all.p && part.p + part.n <= all.p + all.n));
    assert(dv_str_find_char(part, '\0') == part.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str bytes = {(const char *)data, size};
    struct dv_uevent event;

    if (!dv_uevent_parse(bytes, &event))
        return 0;
    assert(event.action.n > 0 && event.sys_path.n > 0 && event.sys_path.p[0] == '/');
    check(bytes, event.action);
    check(bytes, event.sys_path);
    check(bytes, event.subsystem);
    check(bytes, event.node);
    return 0;
}
