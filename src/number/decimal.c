#include "decimal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"

/* Limbs that together fit into 128 bits. */
#define WIDE_LIMBS 4u

__extension__ typedef unsigned __int128 wide;

static const uint64_t powers[] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    10000000000000000000u,
};

uint64_t dv_pow10(unsigned n)
{
    assert(n < DV_COUNT(powers));
    return powers[n];
}

/* One past the number of the highest limb. */
static uint32_t end_of(const struct dv_decimal *a)
{
    return a->n_zeros + a->n_limbs;
}

static uint32_t limb_at(const struct dv_decimal *a, uint32_t i)
{
    return i >= a->n_zeros && i < end_of(a) ? a->limbs[i - a->n_zeros] : 0;
}

struct dv_decimal dv_decimal_make(const uint32_t *limbs, uint32_t n_limbs, uint32_t n_zeros,
                                  bool is_negative)
{
    while (n_limbs > 0 && limbs[n_limbs - 1] == 0)
        n_limbs--;
    for (; n_limbs > 0 && limbs[0] == 0; n_limbs--, n_zeros++)
        limbs++;
    if (n_limbs == 0)
        return (struct dv_decimal){0};
    return (struct dv_decimal){limbs, n_limbs, n_zeros, is_negative};
}

struct dv_decimal dv_decimal_from_i64(int64_t value, int scale, uint32_t room[DV_DECIMAL_I64_LIMBS])
{
    unsigned power = (unsigned)(scale + (int)DV_LIMB_DIGITS);
    wide rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    assert(scale >= -(int)DV_LIMB_DIGITS);
    rest *= powers[power % DV_LIMB_DIGITS];
    for (unsigned i = 0; i < DV_DECIMAL_I64_LIMBS; i++, rest /= DV_LIMB_END)
        room[i] = (uint32_t)(rest % DV_LIMB_END);
    return dv_decimal_make(room, DV_DECIMAL_I64_LIMBS, power / DV_LIMB_DIGITS, value < 0);
}

struct dv_decimal *dv_decimal_copy(const struct dv_decimal *a, struct dv_arena *arena)
{
    struct dv_decimal *copy = DV_NEW(arena, struct dv_decimal);
    uint32_t *limbs = DV_NEW_ARRAY(arena, uint32_t, a->n_limbs);

    if (a->n_limbs > 0)
        memcpy(limbs, a->limbs, a->n_limbs * sizeof(*limbs));
    *copy = (struct dv_decimal){limbs, a->n_limbs, a->n_zeros, a->is_negative};
    return copy;
}

/* As dv_decimal_cmp, without the signs. */
static int cmp_sizes(const struct dv_decimal *a, const struct dv_decimal *b)
{
    uint32_t i = end_of(a);
    uint32_t end = a->n_zeros < b->n_zeros ? a->n_zeros : b->n_zeros;

    if (i != end_of(b))
        return i < end_of(b) ? -1 : 1;
    while (i-- > end)
        if (limb_at(a, i) != limb_at(b, i))
            return limb_at(a, i) < limb_at(b, i) ? -1 : 1;
    return 0;
}

int dv_decimal_cmp(const struct dv_decimal *a, const struct dv_decimal *b)
{
    if (a->is_negative != b->is_negative)
        return a->is_negative ? -1 : 1;
    return a->is_negative ? cmp_sizes(b, a) : cmp_sizes(a, b);
}

/* The larger one minus or plus the smaller one, by size. */
static struct dv_decimal combine(const struct dv_decimal *large, const struct dv_decimal *small,
                                 bool is_minus, struct dv_arena *arena)
{
    uint32_t start = large->n_zeros < small->n_zeros ? large->n_zeros : small->n_zeros;
    uint32_t n = end_of(large) - start + 1; /* and a carry */
    uint32_t *limbs = DV_NEW_ARRAY(arena, uint32_t, n);
    uint32_t carry = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t mine = limb_at(large, start + i);
        uint32_t other = limb_at(small, start + i) + carry;

        if (is_minus) {
            carry = mine < other;
            limbs[i] = mine + (carry ? DV_LIMB_END : 0) - other;
        } else {
            carry = mine + other >= DV_LIMB_END;
            limbs[i] = mine + other - (carry ? DV_LIMB_END : 0);
        }
    }
    return dv_decimal_make(limbs, n, start, large->is_negative);
}

struct dv_decimal dv_decimal_add(const struct dv_decimal *a, const struct dv_decimal *b,
                                 struct dv_arena *arena)
{
    bool is_minus = a->is_negative != b->is_negative;

    /* A 0 has no digits to align with: those of the other could be far away. */
    if (a->n_limbs == 0 || b->n_limbs == 0)
        return *dv_decimal_copy(a->n_limbs == 0 ? b : a, arena);
    return cmp_sizes(a, b) < 0 ? combine(b, a, is_minus, arena) : combine(a, b, is_minus, arena);
}

bool dv_decimal_is_whole(const struct dv_decimal *a)
{
    return limb_at(a, 0) == 0;
}

uint32_t dv_decimal_zeros(const struct dv_decimal *a)
{
    uint32_t n = a->n_zeros * DV_LIMB_DIGITS;

    assert(a->n_limbs > 0 && a->limbs[0] != 0);
    for (uint32_t rest = a->limbs[0]; rest % 10 == 0; rest /= 10)
        n++;
    return n;
}

bool dv_decimal_to_u64(const struct dv_decimal *a, uint32_t n_digits, uint64_t *value,
                       bool *is_exact)
{
    uint32_t start = n_digits / DV_LIMB_DIGITS;
    uint64_t power = powers[n_digits % DV_LIMB_DIGITS];
    uint32_t i = end_of(a);
    wide sum = 0;

    if (i > start + WIDE_LIMBS)
        return false;
    while (i-- > start)
        sum = sum * DV_LIMB_END + limb_at(a, i);
    if (sum / power > UINT64_MAX)
        return false;
    *value = (uint64_t)(sum / power);
    *is_exact = sum % power == 0 && (a->n_limbs == 0 || a->n_zeros >= start);
    return true;
}

double dv_decimal_to_nanos(const struct dv_decimal *a)
{
    uint32_t end = end_of(a);
    uint32_t start = end > WIDE_LIMBS ? end - WIDE_LIMBS : 0;
    char text[64];
    size_t n = 0;

    /* The highest 28 digits or more decide: what is left out is below 1e-27 of it. */
    for (uint32_t i = end; i-- > start;)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%09" PRIu32, limb_at(a, i));
    /* There is no point in the text, so that it is read the same in every locale. */
    (void)snprintf(text + n, sizeof(text) - n, "e%" PRIu32, start * DV_LIMB_DIGITS);
    return a->is_negative ? -strtod(text, NULL) : strtod(text, NULL);
}

/* The first one without zeros before it. */
static void add_limb(struct dv_buf *buf, bool is_first, unsigned n_digits, uint32_t limb)
{
    char text[DV_LIMB_DIGITS];

    for (unsigned i = n_digits; i-- > 0; limb /= 10)
        text[i] = (char)('0' + limb % 10);
    for (unsigned i = 0; i < n_digits; i++) {
        if (!is_first || text[i] != '0') {
            dv_buf_add(buf, (dv_str){text + i, n_digits - i});
            return;
        }
    }
}

void dv_decimal_print(const struct dv_decimal *a, uint32_t n_digits, struct dv_buf *buf)
{
    uint32_t start = n_digits / DV_LIMB_DIGITS;
    unsigned n_left_out = n_digits % DV_LIMB_DIGITS;
    uint32_t i = end_of(a);
    bool is_first = true;

    for (; i-- > start + 1; is_first = false)
        add_limb(buf, is_first, DV_LIMB_DIGITS, limb_at(a, i));
    add_limb(buf, is_first, DV_LIMB_DIGITS - n_left_out,
             (uint32_t)(limb_at(a, start) / powers[n_left_out]));
}

unsigned dv_decimal_n_1024(const struct dv_decimal *a, unsigned max)
{
    uint64_t low = 0; /* the whole part, modulo 2^64 */

    for (uint32_t i = end_of(a); i-- > 1;)
        low = low * DV_LIMB_END + limb_at(a, i);
    return low == 0 ? max : (unsigned)dv_u64_min((unsigned)__builtin_ctzll(low) / 10, max);
}

void dv_decimal_print_1024(const struct dv_decimal *a, unsigned n, struct dv_buf *buf)
{
    wide rest = 0;
    bool is_first = true;

    for (uint32_t i = end_of(a); i-- > 1;) {
        uint32_t limb;

        rest = rest * DV_LIMB_END + limb_at(a, i);
        limb = (uint32_t)(rest >> (10 * n));
        rest -= (wide)limb << (10 * n);
        add_limb(buf, is_first, DV_LIMB_DIGITS, limb);
        is_first = is_first && limb == 0;
    }
}
