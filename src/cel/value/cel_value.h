/* cel_value.h - what expressions compute with.
 *
 * A value is small and copied; what does not fit is in the arena of the evaluation or of the
 * expression, and never changed afterwards. An error is a value too, so that && and || can absorb
 * it. */
#ifndef DV_CEL_VALUE_H
#define DV_CEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cel/value/number_text.h"

struct dv_arena;
struct dv_buf;
struct dv_cel_authz;
struct dv_cel_list;
struct dv_cel_map;
struct dv_cel_cidr;
struct dv_cel_format;
struct dv_cel_ip;
struct dv_cel_type;
struct dv_cel_url;
struct dv_quantity;
struct dv_version;

enum dv_cel_kind {
    DV_CEL_ERROR,
    DV_CEL_NULL,
    DV_CEL_BOOL,
    DV_CEL_INT,
    DV_CEL_UINT,
    DV_CEL_DOUBLE,
    DV_CEL_STRING,
    DV_CEL_BYTES,
    DV_CEL_LIST,
    DV_CEL_MAP,
    DV_CEL_TYPE,
    DV_CEL_TIMESTAMP,
    DV_CEL_DURATION,
    DV_CEL_OPTIONAL,
    DV_CEL_QUANTITY,
    DV_CEL_VERSION,
    DV_CEL_URL,
    DV_CEL_IP,
    DV_CEL_CIDR,
    DV_CEL_FORMAT,
    DV_CEL_AUTHORIZER,
    DV_CEL_PATH_CHECK,
    DV_CEL_GROUP_CHECK,
    DV_CEL_RESOURCE_CHECK,
    DV_CEL_DECISION,
    DV_CEL_N_KINDS,
};

/* What went wrong; `s` says more where the message has a place for it. */
enum dv_cel_fault {
    DV_CEL_FAULT_TEXT, /* `s` is all */
    DV_CEL_FAULT_NO_KEY,
    DV_CEL_FAULT_NO_OVERLOAD,
    DV_CEL_FAULT_COST,
    DV_CEL_FAULT_CANCELLED,
    DV_CEL_FAULT_MEMORY,
    DV_CEL_FAULT_INTERNAL,
};

struct dv_cel_val {
    uint8_t kind;
    uint8_t fault; /* of an error */
    bool is_sum;   /* of a quantity: add or sub made it */
    int32_t nanos; /* of a timestamp */
    union {
        bool b;
        struct {
            int64_t i; /* int; seconds of a timestamp; nanoseconds of a duration */
            int32_t
                offset_minutes; /* of a timestamp: east of UTC, as it was written; only printed */
        };
        uint64_t u;
        double d;
        dv_str s; /* string, bytes, error */
        const struct dv_cel_list *list;
        const struct dv_cel_map *map;
        const struct dv_cel_type *type;
        const struct dv_cel_val *optional; /* NULL: none */
        const struct dv_quantity *quantity;
        const struct dv_version *version;
        const struct dv_cel_url *url;
        const struct dv_cel_ip *ip;
        const struct dv_cel_cidr *cidr;
        const struct dv_cel_format *format;
        const struct dv_cel_authz *authz; /* an authorizer, what it is asked, what it said */
    };
};

static inline struct dv_cel_val dv_cel_null(void)
{
    return (struct dv_cel_val){.kind = DV_CEL_NULL};
}
static inline struct dv_cel_val dv_cel_bool(bool b)
{
    return (struct dv_cel_val){.kind = DV_CEL_BOOL, .b = b};
}
static inline struct dv_cel_val dv_cel_int(int64_t i)
{
    return (struct dv_cel_val){.kind = DV_CEL_INT, .i = i};
}
static inline struct dv_cel_val dv_cel_uint(uint64_t u)
{
    return (struct dv_cel_val){.kind = DV_CEL_UINT, .u = u};
}
static inline struct dv_cel_val dv_cel_double(double d)
{
    return (struct dv_cel_val){.kind = DV_CEL_DOUBLE, .d = d};
}
static inline struct dv_cel_val dv_cel_string(dv_str s)
{
    return (struct dv_cel_val){.kind = DV_CEL_STRING, .s = s};
}
static inline struct dv_cel_val dv_cel_bytes(dv_str s)
{
    return (struct dv_cel_val){.kind = DV_CEL_BYTES, .s = s};
}
static inline struct dv_cel_val dv_cel_duration(int64_t ns)
{
    return (struct dv_cel_val){.kind = DV_CEL_DURATION, .i = ns};
}
static inline struct dv_cel_val dv_cel_timestamp(int64_t seconds, int32_t nanos)
{
    return (struct dv_cel_val){.kind = DV_CEL_TIMESTAMP, .nanos = nanos, .i = seconds};
}
static inline struct dv_cel_val dv_cel_type_val(const struct dv_cel_type *type)
{
    return (struct dv_cel_val){.kind = DV_CEL_TYPE, .type = type};
}
static inline struct dv_cel_val dv_cel_error(dv_str text)
{
    return (struct dv_cel_val){.kind = DV_CEL_ERROR, .fault = DV_CEL_FAULT_TEXT, .s = text};
}
static inline struct dv_cel_val dv_cel_no_overload(dv_str function)
{
    return (struct dv_cel_val){
        .kind = DV_CEL_ERROR, .fault = DV_CEL_FAULT_NO_OVERLOAD, .s = function};
}
static inline bool dv_cel_is_error(const struct dv_cel_val *val)
{
    return val->kind == DV_CEL_ERROR;
}
static inline bool dv_cel_is_number(const struct dv_cel_val *val)
{
    return val->kind >= DV_CEL_INT && val->kind <= DV_CEL_DOUBLE;
}
struct dv_cel_val dv_cel_error_printf(struct dv_arena *arena, const char *fmt, ...) DV_PRINTF(2, 3);
struct dv_cel_val dv_cel_optional(const struct dv_cel_val *value, struct dv_arena *arena);
static inline struct dv_cel_val dv_cel_none(void)
{
    return (struct dv_cel_val){.kind = DV_CEL_OPTIONAL, .optional = NULL};
}

/* Elements are in a block that a longer list, made by appending to this one, may share. */
struct dv_cel_block {
    uint32_t n_used;
    uint32_t size;
    struct dv_cel_val v[];
};

struct dv_cel_list {
    uint32_t n;
    const struct dv_cel_val *v;
    struct dv_cel_block *block; /* NULL: not to be appended to in place */
};

/* Makes a list of n elements, which the caller fills before anyone else sees it. */
struct dv_cel_val dv_cel_list_new(size_t n, struct dv_arena *arena, struct dv_cel_val **elements);
struct dv_cel_val dv_cel_list_concat(const struct dv_cel_list *a, const struct dv_cel_list *b,
                                     struct dv_arena *arena);
/* The elements from .. to - 1, in memory that both lists share. */
struct dv_cel_val dv_cel_list_slice(const struct dv_cel_list *list, uint32_t from, uint32_t to,
                                    struct dv_arena *arena);
bool dv_cel_list_contains(const struct dv_cel_list *list, const struct dv_cel_val *val);

/* Compares values that are ordered with each other: numbers of all kinds, strings, bytes, booleans,
 * timestamps, durations; *order is -1, 0 or 1. False for others and, with `is_nan` set, for NaN. */
bool dv_cel_cmp(const struct dv_cel_val *a, const struct dv_cel_val *b, int *order, bool *is_nan);

/* Equality is not symmetric, because the reference's is not: a quantity, version, address and so on
 * compares with its own kind alone, while other values just differ from them; and a quantity that
 * was computed does not compare when it is on the right. */
enum dv_cel_equality {
    DV_CEL_DIFFERENT,
    DV_CEL_EQUAL,
    DV_CEL_INCOMPARABLE, /* an error, where that is asked for; not equal elsewhere */
};
enum dv_cel_equality dv_cel_compare(const struct dv_cel_val *a, const struct dv_cel_val *b);
static inline bool dv_cel_eq(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    return dv_cel_compare(a, b) == DV_CEL_EQUAL;
}

/* The name of its type: "int", "google.protobuf.Timestamp", "kubernetes.Semver". */
dv_str dv_cel_val_type_name(const struct dv_cel_val *val);
const struct dv_cel_type *dv_cel_val_type(const struct dv_cel_val *val);
/* The value's size(), or that of the value in an optional; 1 for values without a size. */
uint64_t dv_cel_val_size(const struct dv_cel_val *val);
/* Counts all elements of a value, those of elements each time that they are met; about `max` when
 * there are more, and then not all are looked at. 0: it has no elements. */
uint64_t dv_cel_val_weigh(const struct dv_cel_val *val, uint64_t max);
size_t dv_cel_utf8_len(dv_str s); /* in characters */

/* The text that an error begins with; `s` is the rest. */
const char *dv_cel_error_prefix(const struct dv_cel_val *error);
/* Prints the value for a person to read. */
void dv_cel_val_print(const struct dv_cel_val *val, struct dv_buf *buf);
/* Like dv_cel_val_print, for values that are short: a bool, a number, a time, a duration or an
 * address. */
void dv_cel_val_print_short(const struct dv_cel_val *val, char text[DV_CEL_NUMBER_BYTES]);

#endif
