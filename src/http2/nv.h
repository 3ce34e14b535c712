/* nv.h - header fields as nghttp2 takes them. */
#ifndef DV_HTTP2_NV_H
#define DV_HTTP2_NV_H

#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "base/str.h"

static inline nghttp2_nv field(dv_str name, dv_str value, uint8_t flags)
{
    /* nghttp2 does not write to these texts; its type only lacks the const. */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
                        value.n, flags};
}

/* Makes a field of literals, which nghttp2 need not copy. */
static inline nghttp2_nv constant(dv_str name, dv_str value)
{
    return field(name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

static inline nghttp2_nv variable(dv_str name, dv_str value)
{
    return field(name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

#endif
