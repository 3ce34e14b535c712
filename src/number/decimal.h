/* decimal.h - numbers of any size, for quantities that no 64 bits hold.
 *
 * A decimal is a whole number of nanos in limbs of nine digits. So limb 0 is the fraction of the
 * quantity, the others are its whole part, and two decimals are always aligned:
 *
 *     limb       2          1     .    0
 *              000000012  345678901 . 500000000      12345678901.5
 *
 * Limbs are numbered from the lowest; the lowest `n_zeros` are zero and not stored. */
#ifndef DV_RESOURCE_DECIMAL_H
#define DV_RESOURCE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"

struct dv_arena;
struct dv_buf;

#define DV_LIMB_DIGITS 9u
#define DV_LIMB_END 1000000000u /* one more than the largest */
/* What dv_decimal_from_i64 needs: 2^63 * 10^8 has 27 digits. */
#define DV_DECIMAL_I64_LIMBS 3u

struct dv_decimal {
    const uint32_t *limbs; /* numbers n_zeros and up; the highest is not zero */
    uint32_t n_limbs;      /* stored ones; none for 0 */
    uint32_t n_zeros;
    bool is_negative; /* never for 0 */
};

/* 10^n; n < 20. */
uint64_t dv_pow10(unsigned n);

/* Leaves zeros out at both ends: `limbs` may have some. Keeps `limbs`. */
struct dv_decimal dv_decimal_make(const uint32_t *limbs, uint32_t n_limbs, uint32_t n_zeros,
                                  bool is_negative);
/* value * 10^scale; scale >= -9. Keeps `room` for its limbs. */
struct dv_decimal dv_decimal_from_i64(int64_t value, int scale,
                                      uint32_t room[DV_DECIMAL_I64_LIMBS]);
struct dv_decimal *dv_decimal_copy(const struct dv_decimal *a, struct dv_arena *arena);

int dv_decimal_cmp(const struct dv_decimal *a, const struct dv_decimal *b); /* -1, 0, 1 */
struct dv_decimal dv_decimal_add(const struct dv_decimal *a, const struct dv_decimal *b,
                                 struct dv_arena *arena);
bool dv_decimal_is_whole(const struct dv_decimal *a);  /* no fraction of 1 */
uint32_t dv_decimal_zeros(const struct dv_decimal *a); /* digits 0 at the end, in nanos; a != 0 */

/* Gives the number without its sign and without its lowest n_digits digits in nanos, and whether
 * all of those were zero. False when it does not fit. */
DV_CHECKED bool dv_decimal_to_u64(const struct dv_decimal *a, uint32_t n_digits, uint64_t *value,
                                  bool *is_exact);
double dv_decimal_to_nanos(const struct dv_decimal *a); /* rounded; infinite when too large */

/* Prints the number without its sign and without its lowest n_digits digits, which are zero; a !=
 * 0. */
void dv_decimal_print(const struct dv_decimal *a, uint32_t n_digits, struct dv_buf *buf);
/* How often 1024 divides it, at most `max` times; a is whole and not 0. */
unsigned dv_decimal_n_1024(const struct dv_decimal *a, unsigned max);
/* a / 1024^n without its sign, which is whole; n <= 6. */
void dv_decimal_print_1024(const struct dv_decimal *a, unsigned n, struct dv_buf *buf);

#endif
