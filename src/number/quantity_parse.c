/* quantity_parse.c - reads quantities ("1500m", "2Gi", "1e3") as the reference does: exactly, and
 * rounded up to nanos. */
#include "quantity.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "decimal.h"

/* Twice what the largest number needs, so that there is room for zeros, and for digits that are
 * rounded away. */
#define TEXT_BYTES_MAX (2u * DV_QUANTITY_DIGITS_MAX)
#define EXPONENT_MAX (2 * DV_QUANTITY_DIGITS_MAX)
/* Up to so many digits the reference keeps a decimal as int64_t; fewer with a binary suffix. */
#define SMALL_DIGITS_MAX 18u
#define SMALL_BINARY_DIGITS_MAX 14u
#define SMALL_SCALE_MIN (-9)
/* Limbs on the stack, and how many more there may be than the digits need: three for 2^60, one for
 * the carry of rounding. */
#define FEW_LIMBS 8u
#define SPARE_LIMBS 4u

/* digits * 10^exponent * 2^n_bits */
struct parts {
    bool is_negative;
    dv_str whole; /* digits before the point, without zeros in front */
    dv_str fraction;
    int exponent;
    unsigned n_bits;
    enum dv_quantity_format format;
};

/* The text is last, where a long one may be cut. */
static bool fail(struct dv_err *err, enum dv_code code, const char *what, dv_str text)
{
    return dv_fail(err, code, "quantity: %s: \"%.*s\"", what, DV_FMT(text));
}

static dv_str take_digits(dv_str *rest)
{
    size_t n = 0;
    dv_str digits;

    while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
        n++;
    digits = dv_str_slice(*rest, 0, n);
    *rest = dv_str_slice(*rest, n, rest->n);
    return digits;
}

static bool parse_exponent(dv_str suffix, struct parts *parts, bool *is_in_range)
{
    dv_str number = dv_str_slice(suffix, 1, suffix.n);
    bool has_plus = dv_str_starts_with(number, DV_STR("+"));
    int64_t exponent;

    if (suffix.n < 2 || (suffix.p[0] != 'e' && suffix.p[0] != 'E') ||
        (has_plus && dv_str_starts_with(number, DV_STR("+-"))) ||
        !dv_str_to_i64(dv_str_slice(number, has_plus, number.n), &exponent))
        return false;
    parts->format = DV_QUANTITY_DECIMAL_EXPONENT;
    *is_in_range = exponent >= -EXPONENT_MAX && exponent <= EXPONENT_MAX;
    if (*is_in_range)
        parts->exponent = (int)exponent;
    return true;
}

static bool find_letter(char letter, const char *letters, int *place)
{
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

    if (found)
        *place = (int)(found - letters);
    return found != NULL;
}

/* A suffix of letters; or none. */
static bool parse_suffix(dv_str suffix, struct parts *parts)
{
    int place;

    if (suffix.n == 0) {
        parts->format = DV_QUANTITY_DECIMAL_SI;
    } else if (suffix.n == 1 && find_letter(suffix.p[0], "num", &place)) {
        parts->exponent = (place - 3) * 3;
        parts->format = DV_QUANTITY_DECIMAL_SI;
    } else if (suffix.n == 1 && find_letter(suffix.p[0], "kMGTPE", &place)) {
        parts->exponent = (place + 1) * 3;
        parts->format = DV_QUANTITY_DECIMAL_SI;
    } else if (suffix.n == 2 && suffix.p[1] == 'i' && find_letter(suffix.p[0], "KMGTPE", &place)) {
        parts->n_bits = (unsigned)(place + 1) * 10;
        parts->format = DV_QUANTITY_BINARY_SI;
    } else {
        return false;
    }
    return true;
}

static bool split(dv_str text, struct parts *parts, struct dv_err *err)
{
    bool is_in_range = true;
    dv_str rest = text;

    *parts = (struct parts){0};
    if (text.n == 0)
        return fail(err, DV_INVALID_ARGUMENT, "no text", text);
    if (text.n > TEXT_BYTES_MAX)
        return fail(err, DV_OUT_OF_RANGE, "too long", text);
    parts->is_negative = rest.p[0] == '-';
    if (rest.p[0] == '-' || rest.p[0] == '+')
        rest = dv_str_slice(rest, 1, rest.n);
    parts->whole = take_digits(&rest);
    while (parts->whole.n > 0 && parts->whole.p[0] == '0')
        parts->whole = dv_str_slice(parts->whole, 1, parts->whole.n);
    if (rest.n > 0 && rest.p[0] == '.') {
        rest = dv_str_slice(rest, 1, rest.n);
        parts->fraction = take_digits(&rest);
    }
    if (!parse_suffix(rest, parts) && !parse_exponent(rest, parts, &is_in_range))
        return fail(err, DV_INVALID_ARGUMENT,
                    "not a number alone or before n u m k M G T P E Ki Mi Gi Ti Pi Ei e<number>",
                    text);
    if (!is_in_range)
        return fail(err, DV_OUT_OF_RANGE, "exponent too far from 0", text);
    return true;
}

/* Whether the reference keeps it as int64_t and a scale. */
static bool is_small(const struct parts *parts)
{
    size_t n_whole = parts->whole.n > 0 ? parts->whole.n : 1;

    if (parts->format == DV_QUANTITY_BINARY_SI)
        return parts->fraction.n == 0 &&
               n_whole + parts->n_bits * 3 / 10 <= SMALL_BINARY_DIGITS_MAX;
    return n_whole + parts->fraction.n <= SMALL_DIGITS_MAX &&
           parts->exponent - (int)parts->fraction.n >= SMALL_SCALE_MIN;
}

static struct dv_quantity read_small(const struct parts *parts)
{
    struct dv_quantity quantity = {
        .scale = (int16_t)(parts->exponent - (int)parts->fraction.n),
        .format = parts->format,
    };

    for (size_t i = 0; i < parts->whole.n; i++)
        quantity.value = quantity.value * 10 + (parts->whole.p[i] - '0');
    for (size_t i = 0; i < parts->fraction.n; i++)
        quantity.value = quantity.value * 10 + (parts->fraction.p[i] - '0');
    quantity.value *= (int64_t)1 << parts->n_bits;
    if (parts->is_negative)
        quantity.value = -quantity.value;
    return quantity;
}

/* Adds digits to the number in `limbs`, the last one in place `*place`; goes on to the left. */
static void put_digits(dv_str digits, uint32_t *place, uint32_t *limbs)
{
    for (size_t i = digits.n; i-- > 0; (*place)++)
        limbs[*place / DV_LIMB_DIGITS] +=
            (uint32_t)(digits.p[i] - '0') * (uint32_t)dv_pow10(*place % DV_LIMB_DIGITS);
}

static void multiply(uint32_t *limbs, uint32_t n, unsigned n_bits)
{
    const unsigned n_most = 30; /* 10^9 * 2^30 and a carry fit into 64 bits */

    for (unsigned n_now; n_bits > 0; n_bits -= n_now) {
        uint64_t carry = 0;

        n_now = n_bits < n_most ? n_bits : n_most;
        for (uint32_t i = 0; i < n; i++) {
            carry += (uint64_t)limbs[i] << n_now;
            limbs[i] = (uint32_t)(carry % DV_LIMB_END);
            carry /= DV_LIMB_END;
        }
    }
}

static void add_one(uint32_t *limbs)
{
    while (++*limbs == DV_LIMB_END)
        *limbs++ = 0;
}

/* Leaves out what is finer than a nano: the lowest `n_finer` limbs, which may be more than there
 * are. What they hold counts as one nano more. */
static struct dv_decimal round_away(uint32_t *limbs, uint32_t n, uint32_t n_finer, bool is_negative)
{
    uint32_t n_cut = n_finer < n - 1 ? n_finer : n - 1; /* the highest is empty */
    bool is_finer = false;

    for (uint32_t i = 0; i < n_cut; i++)
        is_finer = is_finer || limbs[i] != 0;
    if (is_finer)
        add_one(limbs + n_cut);
    return dv_decimal_make(limbs + n_cut, n - n_cut, 0, is_negative);
}

static struct dv_quantity read_decimal(const struct parts *parts, struct dv_arena *arena)
{
    uint32_t n_digits = (uint32_t)(parts->whole.n + parts->fraction.n);
    /* Where the last digit stands, in nanos; and the number of the limb that it is in. */
    int last = parts->exponent - (int)parts->fraction.n + (int)DV_LIMB_DIGITS;
    int lowest = (last < 0 ? last - (int)DV_LIMB_DIGITS + 1 : last) / (int)DV_LIMB_DIGITS;
    uint32_t place = (uint32_t)(last - lowest * (int)DV_LIMB_DIGITS);
    uint32_t n = (place + n_digits) / DV_LIMB_DIGITS + 1 + SPARE_LIMBS;
    uint32_t few[FEW_LIMBS] = {0};
    uint32_t *limbs = n <= FEW_LIMBS ? few : DV_NEW_ARRAY(arena, uint32_t, n);
    struct dv_decimal decimal;

    put_digits(parts->fraction, &place, limbs);
    put_digits(parts->whole, &place, limbs);
    multiply(limbs, n, parts->n_bits);
    if (lowest < 0)
        decimal = round_away(limbs, n, (uint32_t)-lowest, parts->is_negative);
    else
        decimal = dv_decimal_make(limbs, n, (uint32_t)lowest, parts->is_negative);
    return dv_quantity_from_decimal(&decimal, parts->format, arena);
}

/* What holds for binary suffixes only: a cap, and none for what is below 1. */
static struct dv_quantity limit_binary(struct dv_quantity quantity)
{
    struct dv_quantity max = dv_quantity_from_i64(INT64_MAX, DV_QUANTITY_BINARY_SI);
    struct dv_quantity one = dv_quantity_from_i64(1, DV_QUANTITY_BINARY_SI);
    int sign = dv_quantity_sign(&quantity);

    max.is_decimal = true;
    max.value *= sign < 0 ? -1 : 1;
    one.value *= sign < 0 ? -1 : 1;
    if (dv_quantity_cmp(&quantity, &max) == sign)
        return max;
    if (dv_quantity_cmp(&quantity, &one) == -sign)
        quantity.format = DV_QUANTITY_DECIMAL_SI;
    return quantity;
}

static struct dv_quantity read_parts(const struct parts *parts, struct dv_arena *arena)
{
    if (is_small(parts))
        return read_small(parts);
    if (parts->format == DV_QUANTITY_BINARY_SI)
        return limit_binary(read_decimal(parts, arena));
    return read_decimal(parts, arena);
}

bool dv_quantity_parse(dv_str text, struct dv_arena *arena, struct dv_quantity *quantity,
                       struct dv_err *err)
{
    struct dv_quantity end = {.scale = DV_QUANTITY_DIGITS_MAX};
    struct dv_quantity read;
    struct parts parts;

    if (!split(text, &parts, err))
        return false;
    read = read_parts(&parts, arena);
    end.value = dv_quantity_sign(&read);
    if (end.value != 0 && dv_quantity_cmp(&read, &end) != -end.value)
        return fail(err, DV_OUT_OF_RANGE, "too large", text);
    *quantity = read;
    return true;
}

/* The reference trims Unicode's white space, but before it looks at escapes: so what Go's JSON
 * always escapes (controls, U+2028, U+2029) is no blank for it. */
static bool trim_one(dv_str *text)
{
    static const char *const blanks[] = {
        " ",
        "\xc2\x85",
        "\xc2\xa0",
        "\xe1\x9a\x80",
        "\xe2\x80\x80", /* U+2000 to U+200A */
        "\xe2\x80\x81",
        "\xe2\x80\x82",
        "\xe2\x80\x83",
        "\xe2\x80\x84",
        "\xe2\x80\x85",
        "\xe2\x80\x86",
        "\xe2\x80\x87",
        "\xe2\x80\x88",
        "\xe2\x80\x89",
        "\xe2\x80\x8a",
        "\xe2\x80\xaf",
        "\xe2\x81\x9f",
        "\xe3\x80\x80",
    };

    for (size_t i = 0; i < DV_COUNT(blanks); i++) {
        dv_str blank = dv_str_from_c(blanks[i]);

        if (dv_str_starts_with(*text, blank)) {
            *text = dv_str_slice(*text, blank.n, text->n);
            return true;
        }
        if (dv_str_ends_with(*text, blank)) {
            *text = dv_str_slice(*text, 0, text->n - blank.n);
            return true;
        }
    }
    return false;
}

static bool may_be_blank(char c)
{
    return c == ' ' || (unsigned char)c >= 0x80;
}

bool dv_quantity_parse_json(dv_str text, struct dv_arena *arena, struct dv_quantity *quantity,
                            struct dv_err *err)
{
    while (text.n > 0 && (may_be_blank(text.p[0]) || may_be_blank(text.p[text.n - 1])))
        if (!trim_one(&text))
            break;
    return dv_quantity_parse(text, arena, quantity, err);
}
