/* json_number.c - numbers as text and back.
 *
 * Not by printf("%g") and strtod alone: what they read and write depends on the locale of whoever
 * embeds us, and Go lays floats out in its own way. */
#include "json/tree.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* Digits that tell any double apart from its neighbours. */
#define DIGITS_MAX 17

/* 0.d1d2d3... * 10^point */
struct decimal {
    char digits[DIGITS_MAX + 1];
    int n;
    int point;
    bool is_negative;
};

double dv_json_text_to_double(dv_str text)
{
    char small[64];
    char *copy = text.n < sizeof(small) ? small : dv_alloc(text.n + 1);
    double value;

    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    /* For "C" it hands out a static object: nothing is allocated, and nothing to be freed. */
    value = strtod_l(copy, NULL, newlocale(LC_ALL_MASK, "C", NULL));
    if (copy != small)
        free(copy);
    return value;
}

/* The value rounded to n digits. */
static void round_to(double value, int n, struct decimal *decimal)
{
    char text[64]; /* "-d.ddde-308", where the point is the locale's and may be several bytes */
    const char *at = text;

    (void)snprintf(text, sizeof(text), "%.*e", n - 1, value);
    decimal->is_negative = *at == '-';
    decimal->n = 0;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9')
            decimal->digits[decimal->n++] = *at;
    }
    decimal->point = (int)strtol(at + 1, NULL, 10) + 1;
    while (decimal->n > 1 && decimal->digits[decimal->n - 1] == '0')
        decimal->n--;
    decimal->digits[decimal->n] = '\0';
    if (value == 0)
        decimal->point = 1;
}

static double to_double(const struct decimal *decimal)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s0.%se%d", decimal->is_negative ? "-" : "",
                     decimal->digits, decimal->point);

    return dv_json_text_to_double((dv_str){text, (size_t)n});
}

/* Finds the fewest digits that read back as the same value. */
static struct decimal shorten(double value, bool is_float32)
{
    struct decimal decimal;

    for (int n = 1; n <= DIGITS_MAX; n++) {
        round_to(value, n, &decimal);
        if (is_float32 ? (float)to_double(&decimal) == (float)value : to_double(&decimal) == value)
            break;
    }
    return decimal;
}

/* "1.25e+21"; the exponent has `exponent_digits` at least. */
static void print_exponent(const struct decimal *decimal, int exponent_digits,
                           char text[DV_JSON_DOUBLE_BYTES])
{
    int exponent = decimal->point - 1;

    (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s%c%s%se%c%0*d", decimal->is_negative ? "-" : "",
                   decimal->digits[0], decimal->n > 1 ? "." : "", decimal->digits + 1,
                   exponent < 0 ? '-' : '+', exponent_digits, abs(exponent));
}

/* "125000", "1.25", "0.00125" */
static void print_fixed(const struct decimal *decimal, char text[DV_JSON_DOUBLE_BYTES])
{
    static const char zeros[] = "000000000000000000000";
    const char *sign = decimal->is_negative ? "-" : "";
    int point = decimal->point;

    if (point <= 0)
        (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s0.%.*s%s", sign, -point, zeros,
                       decimal->digits);
    else if (point >= decimal->n)
        (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s%s%.*s", sign, decimal->digits,
                       point - decimal->n, zeros);
    else
        (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s%.*s.%s", sign, point, decimal->digits,
                       decimal->digits + point);
}

void dv_json_double_to_text(double value, char text[DV_JSON_DOUBLE_BYTES])
{
    struct decimal decimal;

    assert(isfinite(value));
    decimal = shorten(value, false);
    if (value != 0 && (decimal.point - 1 < -6 || decimal.point - 1 >= 21))
        print_exponent(&decimal, 1, text);
    else
        print_fixed(&decimal, text);
}

void dv_json_float_to_key(double value, char text[DV_JSON_DOUBLE_BYTES])
{
    struct decimal decimal;

    if (isnan(value) || isinf((float)value)) {
        (void)snprintf(text, DV_JSON_DOUBLE_BYTES, "%s",
                       isnan(value) ? ".nan" : (value < 0 ? "-.inf" : ".inf"));
        return;
    }
    decimal = shorten((double)(float)value, true);
    if ((float)value != 0 && (decimal.point - 1 < -4 || decimal.point - 1 >= 6))
        print_exponent(&decimal, 2, text);
    else
        print_fixed(&decimal, text);
}
