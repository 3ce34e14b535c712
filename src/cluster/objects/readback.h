/* readback.h - nothing is stored that is not read as it was written. */
#ifndef DV_CLUSTER_READBACK_H
#define DV_CLUSTER_READBACK_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_kind;

/* What others write is held against it up to this size: a millisecond at the most. */
#define DV_READBACK_BYTES_MAX (64u * 1024u)

/* Whether the row decodes as an object of that key; in builds for finding faults also whether the
 * result encodes to the same row. */
DV_CHECKED bool dv_readback_check(const struct dv_kind *kind, dv_str key, dv_str row,
                                  struct dv_arena *arena, struct dv_err *err);

/* Whether every row is checked, and one that fails ends the program: so in builds for finding
 * faults. */
static inline bool dv_readback_is_strict(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

#endif
