#include "cel/value/number_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

/* Seventeen digits tell every double from its neighbours. */
#define DIGITS_MAX 17
/* The reference writes an exponent when it is below the first or not below the second. */
#define EXPONENT_MIN (-4)
#define EXPONENT_MAX 6
#define TEXT_BYTES_MAX 1000u

/* The digits of a finite number, without zeros at the end, and the exponent of the first. */
struct digits {
    char text[DIGITS_MAX + 1];
    int n;
    int exponent;
    bool is_negative;
};

static struct digits shortest(double value)
{
    struct digits d = {.is_negative = signbit(value) != 0};
    char text[64];

    value = fabs(value);
    for (int precision = 0; precision < DIGITS_MAX; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (const char *p = text; *p && *p != 'e'; p++)
        if (*p != '.')
            d.text[d.n++] = *p;
    d.exponent = atoi(strchr(text, 'e') + 1);
    while (d.n > 1 && d.text[d.n - 1] == '0')
        d.n--;
    return d;
}

static bool print_special(double value, char *text)
{
    if (isnan(value))
        memcpy(text, "NaN", 4);
    else if (isinf(value))
        memcpy(text, value > 0 ? "+Inf" : "-Inf", 5);
    else
        return false;
    return true;
}

/* The printing functions return the end of what they wrote. */
static char *print_plain(const struct digits *d, char *p)
{
    int i = 0;

    if (d->is_negative)
        *p++ = '-';
    if (d->exponent < 0)
        *p++ = '0';
    for (; i <= d->exponent; i++)
        *p++ = i < d->n ? d->text[i] : '0';
    if (i < d->n)
        *p++ = '.';
    for (int zeros = -1 - d->exponent; zeros > 0; zeros--)
        *p++ = '0';
    for (; i < d->n; i++)
        *p++ = d->text[i];
    *p = '\0';
    return p;
}

static void print_exponent(const struct digits *d, char *p)
{
    if (d->is_negative)
        *p++ = '-';
    *p++ = d->text[0];
    if (d->n > 1)
        *p++ = '.';
    for (int i = 1; i < d->n; i++)
        *p++ = d->text[i];
    (void)snprintf(p, 8, "e%c%02d", d->exponent < 0 ? '-' : '+', abs(d->exponent));
}

void dv_cel_print_double(double value, char text[DV_CEL_NUMBER_BYTES])
{
    struct digits d;

    if (print_special(value, text))
        return;
    d = shortest(value);
    if (d.exponent < EXPONENT_MIN || d.exponent >= EXPONENT_MAX)
        print_exponent(&d, text);
    else
        (void)print_plain(&d, text);
}

void dv_cel_print_fixed(double value, char text[DV_CEL_NUMBER_BYTES])
{
    struct digits d;

    if (print_special(value, text))
        return;
    d = shortest(value);
    (void)print_plain(&d, text);
}

void dv_cel_print_literal(double value, char text[DV_CEL_NUMBER_BYTES])
{
    struct digits d = shortest(value);

    if (d.exponent < EXPONENT_MIN || d.exponent >= EXPONENT_MAX)
        print_exponent(&d, text);
    else
        (void)snprintf(print_plain(&d, text), 3, "%s", d.exponent >= d.n - 1 ? ".0" : "");
}

static bool is_word(dv_str text, const char *word)
{
    return dv_str_eq_nocase(text, dv_str_from_c(word));
}

/* Copies a number without its underscores, which may stand between two digits, or between the
 * prefix 0x and a digit. Returns the length; 0: one stands elsewhere. */
static size_t copy_digits(dv_str text, char copy[TEXT_BYTES_MAX])
{
    bool is_hex = text.n > 1 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x';
    bool after_digit = false;
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_digit = dv_is_digit(c) || (is_hex && (i == 1 || dv_is_hex(c)));

        if (c != '_') {
            copy[n++] = c;
        } else if (!after_digit || i + 1 == text.n ||
                   (is_hex ? !dv_is_hex(text.p[i + 1]) : !dv_is_digit(text.p[i + 1]))) {
            return 0;
        }
        after_digit = is_digit;
    }
    copy[n] = '\0';
    return n;
}

bool dv_cel_parse_double(dv_str text, double *value)
{
    char copy[TEXT_BYTES_MAX];
    bool is_negative = text.n > 0 && text.p[0] == '-';
    dv_str bare = dv_str_slice(text, text.n > 0 && (is_negative || text.p[0] == '+'), text.n);
    char *end;
    size_t n;

    if (bare.n == 0 || bare.n >= sizeof(copy))
        return false;
    if (is_word(bare, "inf") || is_word(bare, "infinity")) {
        *value = is_negative ? -INFINITY : INFINITY;
        return true;
    }
    if (is_word(text, "nan")) { /* it has no sign */
        *value = NAN;
        return true;
    }
    n = copy_digits(bare, copy);
    /* strtod also takes spaces, a second sign, nan(...) and hexadecimals without an exponent. */
    if (n == 0 || strchr("+-", copy[0]) || strspn(copy, "0123456789abcdefABCDEFxXpP.+-") != n)
        return false;
    if (strpbrk(copy, "xX") && !strpbrk(copy, "pP"))
        return false;
    *value = strtod(copy, &end);
    if (is_negative)
        *value = -*value;
    return end != copy && *end == '\0' && !isinf(*value);
}
