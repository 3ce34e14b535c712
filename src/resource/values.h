/* values.h - the values that the API's structs are made of, beside texts and numbers.
 *
 * In these structs a pointer that is NULL, a text or a list whose `p` or pointer is NULL, and a
 * time that is not set are absent. A text or list may be there and empty: {"", 0}, and a pointer to
 * nothing with the count 0. Where the API does not tell the two apart, neither does printing. */
#ifndef DV_RESOURCE_VALUES_H
#define DV_RESOURCE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "number/number.h"

/* A point in time. `time` fields have whole seconds, `microtime` fields whole microseconds. */
struct dv_time {
    int64_t seconds; /* since 1970, UTC */
    int32_t nanos;
    bool is_set;
};

struct dv_int_or_str {
    int64_t number;
    dv_str text;
    bool is_text;
};

struct dv_strs {
    dv_str *v;
    size_t n;
};

/* Entries of maps, sorted by key (bytes). */
struct dv_str_entry {
    dv_str key;
    dv_str value;
};
struct dv_quantity_entry {
    dv_str key;
    struct dv_quantity value;
};
struct dv_strs_entry {
    dv_str key;
    struct dv_strs value;
};

#endif
