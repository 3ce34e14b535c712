#include "cel/functions/string_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/value/build.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"
#include "cel/value/type.h"

/* %f keeps the precision in one byte. */
#define FIXED_PRECISION(n) ((n)&0xff)
#define TEXT_BYTES 1024

/* -- Values ---------------------------------------------------------------------------------- */

static bool put_string(struct dv_cel_build *build, const struct dv_cel_val *val, bool is_inside);

/* Quotes as Go does: printable characters stay. */
static void put_quoted(struct dv_cel_build *build, dv_str s)
{
    dv_cel_build_char(build, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        char text[8];

        if (dv_cel_build_escape(build, s.p[i]))
            continue;
        if (c < 0x20 || c == 0x7f ||
            (c >= 0x80 && (c & 0xc0) != 0x80 && dv_str_utf8_char(dv_str_slice(s, i, s.n)) == 0)) {
            (void)snprintf(text, sizeof(text), "\\x%02x", c);
            dv_cel_build_add(build, dv_str_from_c(text));
        } else {
            dv_cel_build_char(build, s.p[i]);
        }
    }
    dv_cel_build_char(build, '"');
}

static void put_double(struct dv_cel_build *build, double value, bool is_inside)
{
    char text[TEXT_BYTES];

    if (!is_inside) {
        dv_cel_print_double(value, text);
    } else if (isnan(value) || isinf(value)) {
        dv_cel_build_add(build, isnan(value)
                                    ? DV_STR("\"NaN\"")
                                    : (value > 0 ? DV_STR("\"+Inf\"") : DV_STR("\"-Inf\"")));
        return;
    } else {
        (void)snprintf(text, sizeof(text), "%.6f", value);
    }
    dv_cel_build_add(build, dv_str_from_c(text));
}

static void put_time(struct dv_cel_build *build, const struct dv_cel_val *val, bool is_inside)
{
    char text[DV_CEL_NUMBER_BYTES];

    if (val->kind == DV_CEL_TIMESTAMP)
        dv_cel_time_print(val, text);
    else
        dv_cel_duration_print(val->i, text);
    if (is_inside)
        dv_cel_build_add(build, val->kind == DV_CEL_TIMESTAMP ? DV_STR("timestamp(\"")
                                                              : DV_STR("duration(\""));
    dv_cel_build_add(build, dv_str_from_c(text));
    if (is_inside)
        dv_cel_build_add(build, DV_STR("\")"));
}

static bool put_list(struct dv_cel_build *build, const struct dv_cel_list *list)
{
    dv_cel_build_char(build, '[');
    for (uint32_t i = 0; i < list->n; i++) {
        if (i > 0)
            dv_cel_build_add(build, DV_STR(", "));
        if (!put_string(build, &list->v[i], true))
            return false;
    }
    dv_cel_build_char(build, ']');
    return true;
}

/* Prints a map with its entries sorted by their text. */
static bool put_map(struct dv_cel_build *build, const struct dv_cel_map *map)
{
    dv_str *entries = DV_NEW_ARRAY(build->arena, dv_str, map->n);

    for (uint32_t i = 0; i < map->n; i++) {
        struct dv_cel_build entry = {.arena = build->arena};

        if (map->v[i].key.kind == DV_CEL_DOUBLE || !put_string(&entry, &map->v[i].key, true))
            return false;
        dv_cel_build_char(&entry, ':');
        if (!put_string(&entry, &map->v[i].value, true))
            return false;
        entries[i] = (dv_str){entry.p, entry.n};
    }
    qsort(entries, map->n, sizeof(entries[0]), dv_str_compare);
    dv_cel_build_char(build, '{');
    for (uint32_t i = 0; i < map->n; i++) {
        if (i > 0)
            dv_cel_build_add(build, DV_STR(", "));
        dv_cel_build_add(build, entries[i]);
    }
    dv_cel_build_char(build, '}');
    return true;
}

/* Prints for %s; inside of a list or map, as a literal. */
static bool put_string(struct dv_cel_build *build, const struct dv_cel_val *val, bool is_inside)
{
    char text[32];

    switch ((int)val->kind) {
    case DV_CEL_NULL:
        dv_cel_build_add(build, DV_STR("null"));
        return true;
    case DV_CEL_BOOL:
        dv_cel_build_add(build, val->b ? DV_STR("true") : DV_STR("false"));
        return true;
    case DV_CEL_INT:
    case DV_CEL_UINT:
        (void)snprintf(text, sizeof(text), val->kind == DV_CEL_INT ? "%" PRId64 : "%" PRIu64,
                       val->u);
        dv_cel_build_add(build, dv_str_from_c(text));
        return true;
    case DV_CEL_DOUBLE:
        put_double(build, val->d, is_inside);
        return true;
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        if (val->kind == DV_CEL_BYTES && !dv_str_is_utf8(val->s))
            return false;
        if (!is_inside) {
            dv_cel_build_add(build, val->s);
            return true;
        }
        if (val->kind == DV_CEL_BYTES)
            dv_cel_build_char(build, 'b');
        put_quoted(build, val->s);
        return true;
    case DV_CEL_TYPE:
        dv_cel_build_add(build, val->type->name);
        return true;
    case DV_CEL_TIMESTAMP:
    case DV_CEL_DURATION:
        put_time(build, val, is_inside);
        return true;
    case DV_CEL_LIST:
        return put_list(build, val->list);
    case DV_CEL_MAP:
        return put_map(build, val->map);
    default:
        return false;
    }
}

/* Reads a double, also from one of the three words that stand for one. */
static bool to_double(const struct dv_cel_val *val, double *value)
{
    if (val->kind == DV_CEL_DOUBLE) {
        *value = val->d;
        return true;
    }
    if (val->kind != DV_CEL_STRING)
        return false;
    if (!dv_str_eq(val->s, DV_STR("NaN")) && !dv_str_eq(val->s, DV_STR("Infinity")) &&
        !dv_str_eq(val->s, DV_STR("-Infinity")))
        return false;
    return dv_cel_parse_double(val->s, value);
}

/* Prints Infinity or NaN at the right of a field of `width`. */
static void put_special(struct dv_cel_build *build, double value, int width)
{
    dv_str text = isnan(value) ? DV_STR("NaN")
                               : (value > 0 ? DV_STR("\xe2\x88\x9e") : DV_STR("-\xe2\x88\x9e"));

    for (int n = (int)dv_cel_utf8_len(text); n < width; n++)
        dv_cel_build_char(build, ' ');
    dv_cel_build_add(build, text);
}

/* Prints with a comma between thousands, as in the reference's locale. */
static bool put_fixed(struct dv_cel_build *build, const struct dv_cel_val *val, int precision)
{
    char text[TEXT_BYTES];
    double value;
    size_t n_whole;

    if (!to_double(val, &value))
        return false;
    if (isnan(value) || isinf(value)) {
        put_special(build, value, 0);
        return true;
    }
    value += 0.0; /* -0.0 loses its sign */
    (void)snprintf(text, sizeof(text), "%.*f", FIXED_PRECISION(precision), fabs(value));
    n_whole = strcspn(text, ".");
    if (signbit(value))
        dv_cel_build_char(build, '-');
    for (size_t i = 0; text[i]; i++) {
        if (i > 0 && i < n_whole && (n_whole - i) % 3 == 0)
            dv_cel_build_char(build, ',');
        dv_cel_build_char(build, text[i]);
    }
    return true;
}

/* Takes the precision as the width, with a precision of six, as the reference does by mistake. */
static bool put_scientific(struct dv_cel_build *build, const struct dv_cel_val *val, int width)
{
    static const char *const raised[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    char text[64];
    const char *exponent;
    double value;

    if (!to_double(val, &value))
        return false;
    if (isnan(value) || isinf(value)) {
        put_special(build, value, width);
        return true;
    }
    (void)snprintf(text, sizeof(text), "%.6e", value + 0.0); /* -0.0 loses its sign */
    exponent = strchr(text, 'e');
    for (int n = (int)strlen(text) + 2 - (exponent[1] == '+'); n < width; n++)
        dv_cel_build_char(build, ' ');
    dv_cel_build_add(build, (dv_str){text, (size_t)(exponent - text)});
    dv_cel_build_add(build, DV_STR("\xc3\x97"
                                   "10"));
    if (exponent[1] == '-')
        dv_cel_build_add(build, DV_STR("\xe2\x81\xbb"));
    for (const char *p = exponent + 2; *p; p++)
        dv_cel_build_add(build, dv_str_from_c(raised[*p - '0']));
    return true;
}

/* Prints in base 2, 8 or 16. */
static void put_base(struct dv_cel_build *build, const struct dv_cel_val *val, unsigned shift,
                     bool is_upper)
{
    const char *digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
    bool is_negative = val->kind == DV_CEL_INT && val->i < 0;
    uint64_t value = is_negative ? 0 - val->u : val->u;
    char text[65];
    size_t at = sizeof(text);

    do {
        text[--at] = digits[value & ((1u << shift) - 1)];
        value >>= shift;
    } while (value > 0);
    if (is_negative)
        dv_cel_build_char(build, '-');
    dv_cel_build_add(build, (dv_str){text + at, sizeof(text) - at});
}

static void put_hex_text(struct dv_cel_build *build, dv_str s, bool is_upper)
{
    for (size_t i = 0; i < s.n; i++) {
        char text[4];

        (void)snprintf(text, sizeof(text), is_upper ? "%02X" : "%02x", (unsigned char)s.p[i]);
        dv_cel_build_add(build, dv_str_from_c(text));
    }
}

static bool put_clause(struct dv_cel_build *build, const struct dv_cel_clause *clause,
                       const struct dv_cel_val *val)
{
    bool is_integer = val->kind == DV_CEL_INT || val->kind == DV_CEL_UINT;
    bool is_text = val->kind == DV_CEL_STRING || val->kind == DV_CEL_BYTES;

    switch (clause->verb) {
    case 's':
        return put_string(build, val, false);
    case 'd':
        return is_integer && put_string(build, val, false);
    case 'f':
        return put_fixed(build, val, clause->precision);
    case 'e':
        return put_scientific(build, val, clause->precision);
    case 'b':
        if (val->kind == DV_CEL_BOOL)
            dv_cel_build_char(build, val->b ? '1' : '0');
        else if (is_integer)
            put_base(build, val, 1, false);
        return val->kind == DV_CEL_BOOL || is_integer;
    case 'o':
        if (is_integer)
            put_base(build, val, 3, false);
        return is_integer;
    default:
        if (is_text)
            put_hex_text(build, val->s, clause->verb == 'X');
        else if (is_integer)
            put_base(build, val, 4, clause->verb == 'X');
        return is_text || is_integer;
    }
}

void dv_cel_string_format(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    struct dv_cel_build build = {.arena = run->arena};
    const struct dv_cel_list *list = args[1].list;
    dv_str rest = args[0].s;
    uint32_t n = 0;
    dv_str text;
    bool is_percent;

    while (dv_cel_format_take_text(&rest, &text, &is_percent)) {
        struct dv_cel_clause clause;
        const char *problem;

        dv_cel_build_add(&build, text);
        if (is_percent) {
            dv_cel_build_char(&build, '%');
            continue;
        }
        problem = dv_cel_format_take_clause(&rest, &clause);
        if (!problem && n >= list->n)
            problem = "index out of range";
        if (!problem && !put_clause(&build, &clause, &list->v[n++]))
            problem = dv_cel_format_misuse(clause.verb);
        if (problem) {
            *out = dv_cel_error(dv_str_from_c(problem));
            return;
        }
    }
    dv_cel_build_add(&build, text);
    *out = dv_cel_build_end(run, &build);
}
