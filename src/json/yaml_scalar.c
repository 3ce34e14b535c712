/* yaml_scalar.c - what a YAML scalar means.
 *
 * Kubernetes reads YAML by turning it into JSON with sigs.k8s.io/yaml, whose rules are those of
 * go-yaml v2: YAML 1.1, with changes. What a node gets from `kubectl apply` is decided there, so
 * these are our rules too. Unquoted, and without a tag:
 *
 *   (nothing) ~ null Null NULL                          null
 *   true yes on y, false no off n; also Yes YES ...     boolean, in keys too
 *   12 -12 +12 1_000 0x1F 0o17 017 0b101                integer of 64 bits, signed or not
 *   1.5 .5 1. 1e3 08, integers with more bits           double, printed as Go prints it in JSON
 *   .inf -.inf .nan                                     refused, as JSON has no such number
 *   1e999 (no double holds it), 0x1FFFFFFFFFFFFFFFFF    string
 *   2001-01-01, 12:30:45 and all else                   string
 *
 * Quoted and block scalars are strings. With a tag: !!str and ! make a string, !!int !!float !!bool
 * !!null !!timestamp demand that kind even of quoted text, !!binary is decoded (and must be UTF-8),
 * others say nothing. A key becomes a string: an integer in decimal, a boolean as true or false, a
 * double as Go prints a 32-bit one; null is refused. */
#include "json/yaml_scalar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/calendar.h"
#include "base/num.h"
#include "json/tree.h"

static const char *const true_words[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                         "True", "TRUE", "on",  "On",  "ON"};
static const char *const false_words[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                          "False", "FALSE", "off", "Off", "OFF"};
static const char *const null_words[] = {"", "~", "null", "Null", "NULL"};
static const char *const infinite_words[] = {".inf", ".Inf", ".INF"}; /* with or without a sign */
static const char *const nan_words[] = {".nan", ".NaN", ".NAN"};

/* The length of the longest word. */
#define WORD_BYTES_MAX 5u

static size_t skip_digits(dv_str s, size_t at)
{
    while (at < s.n && dv_is_digit(s.p[at]))
        at++;
    return at;
}

static bool is_char_at(dv_str s, size_t at, const char *chars)
{
    return at < s.n && s.p[at] != '\0' && strchr(chars, s.p[at]);
}

/* -- Words ---------------------------------------------------------------------------------- */

static bool is_one_of(dv_str text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dv_str_eq(text, dv_str_from_c(list[i])))
            return true;
    }
    return false;
}

static bool resolve_word(dv_str text, struct dv_yaml_scalar *scalar)
{
    bool has_sign = is_char_at(text, 0, "+-");
    dv_str unsigned_text = dv_str_slice(text, has_sign, text.n);

    *scalar = (struct dv_yaml_scalar){.kind = DV_JSON_BOOL};
    if (text.n > WORD_BYTES_MAX)
        return false;
    if (is_one_of(text, false_words, DV_COUNT(false_words)))
        return true;
    scalar->truth = true;
    if (is_one_of(text, true_words, DV_COUNT(true_words)))
        return true;
    scalar->kind = DV_JSON_NULL;
    if (is_one_of(text, null_words, DV_COUNT(null_words)))
        return true;
    *scalar = (struct dv_yaml_scalar){.kind = DV_JSON_NUMBER, .is_float = true, .value = NAN};
    if (is_one_of(text, nan_words, DV_COUNT(nan_words)))
        return true;
    scalar->value = is_char_at(text, 0, "-") ? -INFINITY : INFINITY;
    return is_one_of(unsigned_text, infinite_words, DV_COUNT(infinite_words));
}

/* -- Numbers -------------------------------------------------------------------------------- */

/* Digits of that base, all of `s` and at least one. */
static bool parse_magnitude(dv_str s, unsigned base, uint64_t *magnitude)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s.n; i++) {
        int value = dv_hex_value(s.p[i]);
        unsigned digit = (unsigned)value;

        if (value < 0 || digit >= base || sum > (UINT64_MAX - digit) / base)
            return false;
        sum = sum * base + digit;
    }
    *magnitude = sum;
    return s.n > 0;
}

/* Takes the prefix 0x, 0o, 0b, or the 0 of an octal number, off the front. */
static unsigned take_base(dv_str *s)
{
    unsigned base = 10;

    if (s->n < 2 || s->p[0] != '0')
        return base;
    if (is_char_at(*s, 1, "xX"))
        base = 16;
    else if (is_char_at(*s, 1, "oO"))
        base = 8;
    else if (is_char_at(*s, 1, "bB"))
        base = 2;
    *s = dv_str_slice(*s, base == 10 ? 1 : 2, s->n);
    return base == 10 ? 8 : base;
}

static bool parse_integer(dv_str s, struct dv_yaml_scalar *scalar)
{
    bool has_sign = is_char_at(s, 0, "+-");
    unsigned base;

    scalar->is_negative = is_char_at(s, 0, "-");
    s = dv_str_slice(s, has_sign, s.n);
    base = take_base(&s);
    if (!parse_magnitude(s, base, &scalar->magnitude))
        return false;
    /* Only a number without a sign may need the 64th bit. */
    return !has_sign || scalar->magnitude <= (uint64_t)INT64_MAX + scalar->is_negative;
}

/* [-+]? ( .D+ | D+ ( .D* )? ) ( [eE] [-+]? D+ )? */
static bool is_float(dv_str s)
{
    size_t at = is_char_at(s, 0, "+-") ? 1 : 0;
    size_t whole = skip_digits(s, at) - at;
    size_t digits;

    at += whole;
    if (is_char_at(s, at, ".")) {
        digits = at + 1;
        at = skip_digits(s, digits);
        if (whole == 0 && at == digits)
            return false;
    } else if (whole == 0) {
        return false;
    }
    if (is_char_at(s, at, "eE")) {
        digits = is_char_at(s, at + 1, "+-") ? at + 2 : at + 1;
        at = skip_digits(s, digits);
        if (at == digits)
            return false;
    }
    return at == s.n;
}

/* Go's own rule, which go-yaml applies to what begins with a point; elsewhere it ignores them. */
static bool are_underscores_between_digits(dv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '_' &&
            (i == 0 || i + 1 == s.n || !dv_is_digit(s.p[i - 1]) || !dv_is_digit(s.p[i + 1])))
            return false;
    }
    return true;
}

/* `s` is without underscores. */
static bool resolve_number(dv_str s, struct dv_yaml_scalar *scalar)
{
    *scalar = (struct dv_yaml_scalar){.kind = DV_JSON_NUMBER};
    if (!is_char_at(s, 0, ".") && parse_integer(s, scalar))
        return true;
    if (!is_float(s))
        return false;
    *scalar = (struct dv_yaml_scalar){
        .kind = DV_JSON_NUMBER, .is_float = true, .value = dv_json_text_to_double(s)};
    return isfinite(scalar->value);
}

static bool may_be_number(dv_str text)
{
    if (text.n == 0 || (!dv_is_digit(text.p[0]) && !is_char_at(text, 0, "+-.")))
        return false;
    for (size_t i = 1; i < text.n; i++) {
        if (!dv_is_digit(text.p[i]) && !is_char_at(text, i, "_.+-xXoObBeEaAcCdDfF"))
            return false;
    }
    return text.p[0] != '.' || are_underscores_between_digits(text);
}

struct dv_yaml_scalar dv_yaml_resolve(dv_str text)
{
    struct dv_yaml_scalar string = {.kind = DV_JSON_STRING, .text = text};
    struct dv_yaml_scalar scalar;
    char small[64];
    char *digits;
    size_t n = 0;
    bool is_number;

    if (resolve_word(text, &scalar))
        return scalar;
    if (!may_be_number(text))
        return string;
    digits = text.n <= sizeof(small) ? small : dv_alloc(text.n);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_')
            digits[n++] = text.p[i];
    }
    is_number = resolve_number((dv_str){digits, n}, &scalar);
    if (digits != small)
        free(digits);
    return is_number ? scalar : string;
}

/* -- What kubectl quotes -------------------------------------------------------------------- */

/* Takes one or two digits (exactly `n`, unless that is 0), for a number from `low` to `high`. */
static bool take_number(dv_str *s, size_t n, int low, int high)
{
    size_t digits = dv_size_min(skip_digits(*s, 0), 2);
    int value = 0;

    if (digits == 0 || (n > 0 && digits != n))
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (s->p[i] - '0');
    *s = dv_str_slice(*s, digits, s->n);
    return value >= low && value <= high;
}

static bool take_char(dv_str *s, const char *chars)
{
    if (!is_char_at(*s, 0, chars))
        return false;
    *s = dv_str_slice(*s, 1, s->n);
    return true;
}

/* 2001-1-2 at the start of *s, which is taken off. */
static bool take_date(dv_str *s)
{
    int year = 0;
    int month = 0;

    if (skip_digits(*s, 0) != 4)
        return false;
    for (size_t i = 0; i < 4; i++)
        year = year * 10 + (s->p[i] - '0');
    *s = dv_str_slice(*s, 4, s->n);
    if (!take_char(s, "-"))
        return false;
    for (size_t i = 0; i < s->n && i < 2 && dv_is_digit(s->p[i]); i++)
        month = month * 10 + (s->p[i] - '0');
    return take_number(s, 0, 1, 12) && take_char(s, "-") &&
           take_number(s, 0, 1, dv_date_days_in_month(year, month));
}

bool dv_yaml_looks_like_date(dv_str text)
{
    bool has_zone;

    if (!take_date(&text))
        return false;
    if (text.n == 0)
        return true;
    has_zone = is_char_at(text, 0, "Tt");
    if (!take_char(&text, "Tt ") || !take_number(&text, 0, 0, 23) || !take_char(&text, ":") ||
        !take_number(&text, 0, 0, 59) || !take_char(&text, ":") || !take_number(&text, 0, 0, 59))
        return false;
    if (is_char_at(text, 0, ".,") && text.n > 1 && dv_is_digit(text.p[1]))
        text = dv_str_slice(text, skip_digits(text, 1), text.n);
    if (has_zone && !take_char(&text, "Z") &&
        (!take_char(&text, "+-") || !take_number(&text, 2, 0, 24) || !take_char(&text, ":") ||
         !take_number(&text, 2, 0, 60)))
        return false;
    return text.n == 0;
}

/* [-+]? D [D_]* ( : [0-5]? D )+ ( . [D_]* )? */
bool dv_yaml_looks_like_base60(dv_str text)
{
    size_t n_parts = 0;

    (void)take_char(&text, "+-");
    if (skip_digits(text, 0) == 0)
        return false;
    while (is_char_at(text, 0, "0123456789_"))
        (void)take_char(&text, "0123456789_");
    while (is_char_at(text, 0, ":")) {
        (void)take_char(&text, ":");
        if (!take_number(&text, 0, 0, 59))
            return false;
        n_parts++;
    }
    if (take_char(&text, ".")) {
        while (is_char_at(text, 0, "0123456789_"))
            (void)take_char(&text, "0123456789_");
    }
    return n_parts > 0 && text.n == 0;
}
