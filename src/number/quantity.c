#include "quantity.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "decimal.h"

/* Far more digits than a quantity that was read can have. */
#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* A scale counts from units, the digits of a decimal from nanos. */
#define NANO_DIGITS 9
#define MICRO_DIGITS 6
/* Below it, what is binary is printed as decimal: it has no suffix. */
#define BINARY_MIN 1024u

__extension__ typedef __int128 wide;

/* Small or big, as a decimal; `room` is for the small ones, and must live as long. */
static struct dv_decimal decimal_of(const struct dv_quantity *quantity,
                                    uint32_t room[DV_DECIMAL_I64_LIMBS])
{
    return quantity->big ? *quantity->big
                         : dv_decimal_from_i64(quantity->value, quantity->scale, room);
}

/* Value and scale of a decimal without its lowest digits, which are zero. */
static bool to_small(const struct dv_decimal *decimal, uint32_t n_digits,
                     struct dv_quantity *quantity)
{
    uint64_t size;
    bool is_exact;

    if (!dv_decimal_to_u64(decimal, n_digits, &size, &is_exact) || size > INT64_MAX)
        return false;
    assert(is_exact);
    quantity->value = decimal->is_negative ? -(int64_t)size : (int64_t)size;
    quantity->scale = (int16_t)((int)n_digits - NANO_DIGITS);
    return true;
}

struct dv_quantity dv_quantity_from_decimal(const struct dv_decimal *decimal,
                                            enum dv_quantity_format format, struct dv_arena *arena)
{
    struct dv_quantity quantity = {.format = format, .is_decimal = true};
    uint32_t n_zeros = decimal->n_limbs > 0 ? dv_decimal_zeros(decimal) : NANO_DIGITS;

    /* Units if possible: that is what most others are, so adding and comparing is easy. */
    if ((n_zeros < NANO_DIGITS || !to_small(decimal, NANO_DIGITS, &quantity)) &&
        !to_small(decimal, n_zeros, &quantity))
        quantity.big = dv_decimal_copy(decimal, arena);
    return quantity;
}

struct dv_quantity dv_quantity_from_i64(int64_t value, enum dv_quantity_format format)
{
    return (struct dv_quantity){.value = value, .format = format};
}

struct dv_quantity dv_quantity_copy(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    struct dv_quantity copy = *quantity;

    if (quantity->big)
        copy.big = dv_decimal_copy(quantity->big, arena);
    return copy;
}

size_t dv_quantity_room(const struct dv_quantity *quantity)
{
    return quantity->big ? sizeof(struct dv_decimal) + quantity->big->n_limbs * sizeof(uint32_t)
                         : 0;
}

struct dv_quantity dv_quantity_copy_to(const struct dv_quantity *quantity, void *room)
{
    struct dv_quantity copy = *quantity;
    struct dv_decimal *big = room;
    uint32_t *limbs;

    if (!quantity->big)
        return copy;
    *big = *quantity->big;
    limbs = (uint32_t *)(void *)(big + 1);
    memcpy(limbs, quantity->big->limbs, big->n_limbs * sizeof(*limbs));
    big->limbs = limbs;
    copy.big = big;
    return copy;
}

/* -- Printing ------------------------------------------------------------------------------- */

static void print_decimal(const struct dv_decimal *decimal, enum dv_quantity_format format,
                          struct dv_buf *buf)
{
    static const char *const suffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    uint32_t n_thousands = dv_decimal_zeros(decimal) / 3;
    int exponent;

    /* The reference has no suffix beyond E and prints none: 1000E becomes 1. We print 1000E. */
    if (format != DV_QUANTITY_DECIMAL_EXPONENT && n_thousands >= DV_COUNT(suffixes))
        n_thousands = DV_COUNT(suffixes) - 1;
    dv_decimal_print(decimal, n_thousands * 3, buf);
    exponent = (int)n_thousands * 3 - NANO_DIGITS;
    if (format != DV_QUANTITY_DECIMAL_EXPONENT)
        dv_buf_add_c(buf, suffixes[n_thousands]);
    else if (exponent != 0)
        dv_buf_printf(buf, "e%d", exponent);
}

static void print_binary(const struct dv_decimal *decimal, struct dv_buf *buf)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    unsigned n = dv_decimal_n_1024(decimal, DV_COUNT(suffixes) - 1);

    dv_decimal_print_1024(decimal, n, buf);
    dv_buf_add_c(buf, suffixes[n]);
}

static bool has_binary_form(const struct dv_decimal *decimal)
{
    uint64_t units;
    bool is_exact;

    return dv_decimal_is_whole(decimal) &&
           (!dv_decimal_to_u64(decimal, NANO_DIGITS, &units, &is_exact) || units >= BINARY_MIN);
}

void dv_quantity_print(const struct dv_quantity *quantity, struct dv_buf *buf)
{
    uint32_t room[DV_DECIMAL_I64_LIMBS];
    struct dv_decimal decimal = decimal_of(quantity, room);

    if (decimal.n_limbs == 0) {
        dv_buf_add_char(buf, '0');
        return;
    }
    if (decimal.is_negative)
        dv_buf_add_char(buf, '-');
    if (quantity->format == DV_QUANTITY_BINARY_SI && has_binary_form(&decimal))
        print_binary(&decimal, buf);
    else
        print_decimal(&decimal, quantity->format, buf);
}

dv_str dv_quantity_text(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* -- Comparing and adding ------------------------------------------------------------------- */

int dv_quantity_sign(const struct dv_quantity *quantity)
{
    if (quantity->big)
        return quantity->big->is_negative ? -1 : 1; /* 0 is always small */
    return (quantity->value > 0) - (quantity->value < 0);
}

/* value * 10^n against `other`. */
static int cmp_scaled(int64_t value, unsigned n, int64_t other)
{
    wide scaled;

    if (value == 0 || n > 19) /* 10^20 is past any other */
        return value == 0 ? (other < 0) - (other > 0) : (value > 0) - (value < 0);
    scaled = (wide)value * dv_pow10(n);
    return (scaled > other) - (scaled < other);
}

int dv_quantity_cmp(const struct dv_quantity *a, const struct dv_quantity *b)
{
    uint32_t room_a[DV_DECIMAL_I64_LIMBS];
    uint32_t room_b[DV_DECIMAL_I64_LIMBS];
    struct dv_decimal decimal_a;
    struct dv_decimal decimal_b;

    if (!a->big && !b->big)
        return a->scale >= b->scale
                   ? cmp_scaled(a->value, (unsigned)(a->scale - b->scale), b->value)
                   : -cmp_scaled(b->value, (unsigned)(b->scale - a->scale), a->value);
    decimal_a = decimal_of(a, room_a);
    decimal_b = decimal_of(b, room_b);
    return dv_decimal_cmp(&decimal_a, &decimal_b);
}

static bool scale_up(int64_t value, int n, int64_t *scaled)
{
    return n < 19 && !__builtin_mul_overflow(value, (int64_t)dv_pow10((unsigned)n), scaled);
}

/* a + b where all that comes up on the way fits. The reference goes on with big decimals in just
 * the same cases: is_decimal depends on it. */
static bool add_small(const struct dv_quantity *a, const struct dv_quantity *b,
                      struct dv_quantity *sum)
{
    const struct dv_quantity *high = a->scale > b->scale ? a : b;
    const struct dv_quantity *low = high == a ? b : a;
    int64_t value;

    if (a->big || b->big)
        return false;
    *sum = a->value == 0 ? *b : *a;
    sum->is_decimal = a->is_decimal || b->is_decimal;
    if (a->value == 0 || b->value == 0)
        return true;
    sum->scale = low->scale;
    return scale_up(high->value, high->scale - low->scale, &value) &&
           !__builtin_add_overflow(value, low->value, &sum->value);
}

static struct dv_quantity add_decimals(const struct dv_quantity *a, const struct dv_quantity *b,
                                       bool is_minus, enum dv_quantity_format format,
                                       struct dv_arena *arena)
{
    uint32_t room_a[DV_DECIMAL_I64_LIMBS];
    uint32_t room_b[DV_DECIMAL_I64_LIMBS];
    struct dv_decimal decimal_a = decimal_of(a, room_a);
    struct dv_decimal decimal_b = decimal_of(b, room_b);
    struct dv_decimal sum;

    if (is_minus && decimal_b.n_limbs > 0)
        decimal_b.is_negative = !decimal_b.is_negative;
    sum = dv_decimal_add(&decimal_a, &decimal_b, arena);
    return dv_quantity_from_decimal(&sum, format, arena);
}

struct dv_quantity dv_quantity_add(const struct dv_quantity *a, const struct dv_quantity *b,
                                   struct dv_arena *arena)
{
    enum dv_quantity_format format = dv_quantity_sign(a) == 0 ? b->format : a->format;
    struct dv_quantity sum;

    if (!add_small(a, b, &sum))
        return add_decimals(a, b, false, format, arena);
    sum.format = format;
    return sum;
}

struct dv_quantity dv_quantity_sub(const struct dv_quantity *a, const struct dv_quantity *b,
                                   struct dv_arena *arena)
{
    enum dv_quantity_format format = dv_quantity_sign(a) == 0 ? b->format : a->format;
    struct dv_quantity minus = *b;
    struct dv_quantity sum;

    /* The smallest number has no opposite; small numbers do not notice, as in the reference. */
    if (__builtin_sub_overflow(0, b->value, &minus.value) && (a->is_decimal || b->is_decimal))
        return add_decimals(a, b, true, format, arena);
    if (!add_small(a, &minus, &sum))
        return add_decimals(a, b, true, format, arena);
    sum.format = format;
    return sum;
}

/* -- Numbers -------------------------------------------------------------------------------- */

bool dv_quantity_to_i64(const struct dv_quantity *quantity, int64_t *value)
{
    if (quantity->is_decimal || quantity->big || quantity->scale < 0)
        return false;
    if (quantity->value != 0)
        return scale_up(quantity->value, quantity->scale, value);
    *value = 0;
    return true;
}

bool dv_quantity_is_integer(const struct dv_quantity *quantity)
{
    int64_t value;

    return dv_quantity_to_i64(quantity, &value);
}

/* Leaves the lowest digits in nanos out, rounded away from zero. */
static bool round_away(const struct dv_quantity *quantity, uint32_t n_digits, int64_t *value)
{
    uint32_t room[DV_DECIMAL_I64_LIMBS];
    struct dv_decimal decimal = decimal_of(quantity, room);
    uint64_t size;
    bool is_exact;

    if (!dv_decimal_to_u64(&decimal, n_digits, &size, &is_exact) ||
        __builtin_add_overflow(size, is_exact ? 0u : 1u, &size) ||
        size > (uint64_t)INT64_MAX + decimal.is_negative)
        return false;
    *value = decimal.is_negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool dv_quantity_to_i64_ceil(const struct dv_quantity *quantity, int64_t *value)
{
    if (quantity->big || quantity->scale != 0)
        return round_away(quantity, NANO_DIGITS, value);
    *value = quantity->value;
    return true;
}

bool dv_quantity_to_milli_ceil(const struct dv_quantity *quantity, int64_t *value)
{
    return round_away(quantity, MICRO_DIGITS, value);
}

/* 10^n for n >= -9, to the last bit what Go's math.Pow10 gives: beyond 10^31 a product of two. */
static double power_of_ten(int n)
{
    static const double small[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10,
                                   1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21,
                                   1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31};
    static const double large[] = {1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288};
    const int n_small = (int)DV_COUNT(small);

    if (n < 0)
        return 1 / small[-n];
    return n <= DBL_MAX_10_EXP ? large[n / n_small] * small[n % n_small] : HUGE_VAL;
}

double dv_quantity_to_double(const struct dv_quantity *quantity)
{
    uint32_t room[DV_DECIMAL_I64_LIMBS];
    struct dv_decimal decimal;

    if (!quantity->is_decimal)
        return (double)quantity->value * power_of_ten(quantity->scale);
    decimal = decimal_of(quantity, room); /* the reference has it in nanos, too */
    return dv_decimal_to_nanos(&decimal) * power_of_ten(-NANO_DIGITS);
}
