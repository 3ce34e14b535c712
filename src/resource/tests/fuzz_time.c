/* fuzz_time.c - a time that is read is printed as a text that is read as the same time. */
#include "resource/resource.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_time time;
    struct dv_time again;
    struct dv_err err;

    dv_buf_init(&buf, 100);
    if (!dv_api_time_parse((dv_str){(const char *)data, size}, &time, &err))
        return 0;
    assert(dv_api_time_is_in_range(time));
    dv_api_time_print(time, true, &buf);
    assert(dv_api_time_parse(dv_buf_str(&buf), &again, &err));
    assert(again.seconds == time.seconds && again.nanos == time.nanos / 1000 * 1000);
    return 0;
}
