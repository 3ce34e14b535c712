/* num.h - numbers: checked arithmetic on sizes, and numbers from text. */
#ifndef DV_BASE_NUM_H
#define DV_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

/* These return false, with *sum or *product untouched, when the result does not fit. */
DV_CHECKED bool dv_size_add(size_t a, size_t b, size_t *sum);
DV_CHECKED bool dv_size_mul(size_t a, size_t b, size_t *product);
uint64_t dv_u64_add_clamped(uint64_t a, uint64_t b); /* UINT64_MAX when it does not fit */

/* The whole text must be a decimal number without spaces that fits; an optional '-' where the
 * type is signed; no '+'. */
DV_CHECKED bool dv_str_to_u64(dv_str s, uint64_t *value);
DV_CHECKED bool dv_str_to_i64(dv_str s, int64_t *value);
DV_CHECKED bool dv_str_to_u32(dv_str s, uint32_t *value);
DV_CHECKED bool dv_str_to_size(dv_str s, size_t *value);

/* Writes the number in decimal into `room`, and returns the text there: a tenth of printf's time.
 */
#define DV_U64_DIGITS 20u
dv_str dv_u64_print(uint64_t value, char room[DV_U64_DIGITS]);

bool dv_str_is_digits(dv_str s); /* at least one, and nothing else */
/* The byte that an escape such as "%2f" at that place stands for; -1 where there is none. */
int dv_percent_byte(dv_str s, size_t at);

static inline size_t dv_size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t dv_size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}
static inline uint64_t dv_u64_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t dv_u64_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The 32-bit FNV-1a hash, of which the checksums of several state files of the kubelet are made. */
uint32_t dv_fnv1a(dv_str s);

/* A random number from the kernel: seeds, jitter, ids. */
uint64_t dv_random_u64(void);
/* Prints a random UUID of version 4, in lower case and NUL-terminated; returns it, in `text`. */
#define DV_UUID_BYTES sizeof("xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx")
dv_str dv_random_uuid(char text[DV_UUID_BYTES]);
/* delay +- fraction/1000 of it, evenly spread. */
uint64_t dv_jitter(uint64_t delay, uint32_t per_mille);

#endif
