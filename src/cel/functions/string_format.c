#include "cel/functions/string_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/check/cel_check.h"
#include "cel/read/ast.h"
#include "cel/value/build.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"
#include "cel/value/type.h"

#define PRECISION_DEFAULT 6
/* A limit for the width that %e makes of the precision; the reference has none. */
#define PRECISION_MAX 100000
/* %f keeps the precision in one byte. */
#define FIXED_PRECISION(n) ((n)&0xff)
#define TEXT_BYTES 1024

/* -- Format strings -----------------------------------------------------------------------------
 */

struct clause {
    char verb; /* one of sdfebxXo */
    int precision;
};

/* Takes "%.3f" after its percent sign. Returns NULL, or what is wrong. */
static const char *take_clause(dv_str *rest, struct clause *clause)
{
    clause->precision = PRECISION_DEFAULT;
    if (rest->n > 0 && rest->p[0] == '.') {
        size_t n = 1;
        int precision = 0;

        for (; n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9'; n++)
            if (precision <= PRECISION_MAX)
                precision = precision * 10 + (rest->p[n] - '0');
        if (n == 1 || n == rest->n)
            return "could not parse formatting clause: error while parsing precision";
        if (precision > PRECISION_MAX)
            return "could not parse formatting clause: precision is too large";
        clause->precision = precision;
        *rest = dv_str_slice(*rest, n, rest->n);
    }
    if (rest->n == 0)
        return "unexpected end of string";
    clause->verb = rest->p[0];
    if (!strchr("sdfebxXo", clause->verb) || clause->verb == '\0')
        return "could not parse formatting clause: unrecognized formatting clause";
    *rest = dv_str_slice(*rest, 1, rest->n);
    return NULL;
}

/* Takes the text up to the next clause, with %% as %. False at the end. */
static bool take_text(dv_str *rest, dv_str *text, bool *is_percent)
{
    size_t at = dv_str_find_char(*rest, '%');

    *text = dv_str_slice(*rest, 0, at);
    *is_percent = at + 1 < rest->n && rest->p[at + 1] == '%';
    if (at >= rest->n) {
        *rest = DV_STR_NONE;
        return false;
    }
    *rest = dv_str_slice(*rest, at + (*is_percent ? 2 : 1), rest->n);
    return true;
}

static const char *clause_name(char verb)
{
    switch (verb) {
    case 's':
        return "string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
               "lists, types, durations, and timestamps";
    case 'd':
        return "decimal clause can only be used on integers";
    case 'f':
        return "fixed-point clause can only be used on doubles";
    case 'e':
        return "scientific clause can only be used on doubles";
    case 'b':
        return "only integers and bools can be formatted as binary";
    case 'o':
        return "octal clause can only be used on integers";
    default:
        return "only integers, byte buffers, and strings can be formatted as hex";
    }
}

/* -- Checking literals ----------------------------------------------------------------------- */

static bool is_type_for(char verb, const struct dv_cel_type *type)
{
    switch (type->kind) {
    case DV_CEL_T_DYN:
        return true;
    case DV_CEL_T_INT:
    case DV_CEL_T_UINT:
        return strchr("sdbxXo", verb) != NULL;
    case DV_CEL_T_DOUBLE:
        return strchr("sfe", verb) != NULL;
    case DV_CEL_T_STRING:
        return strchr("sfexX", verb) != NULL;
    case DV_CEL_T_BYTES:
        return strchr("sxX", verb) != NULL;
    case DV_CEL_T_BOOL:
        return strchr("sb", verb) != NULL;
    case DV_CEL_T_NULL:
    case DV_CEL_T_LIST:
    case DV_CEL_T_MAP:
    case DV_CEL_T_TYPE:
    case DV_CEL_T_TIMESTAMP:
    case DV_CEL_T_DURATION:
        return verb == 's';
    case DV_CEL_T_ERROR:
    case DV_CEL_T_ANY:
    case DV_CEL_T_OPAQUE:
    case DV_CEL_T_OBJECT:
    case DV_CEL_T_WRAPPER:
    case DV_CEL_T_VAR:
        break;
    }
    return false;
}

/* The first value that does not fit the verb, also inside of literals; NULL: all fit. */
static const struct dv_cel_ast *find_misfit(char verb, const struct dv_cel_ast *ast)
{
    if (!is_type_for(verb, ast->type))
        return ast;
    if (ast->kind != DV_CEL_AST_LIST && ast->kind != DV_CEL_AST_MAP)
        return NULL;
    for (uint32_t i = 0; i < ast->n_args; i++) {
        const struct dv_cel_ast *misfit = find_misfit(verb, ast->args[i]);

        if (misfit)
            return misfit;
    }
    return NULL;
}

void dv_cel_validate_format(const struct dv_cel_ast *call, struct dv_cel_issues *issues)
{
    const struct dv_cel_ast *list = call->args[0];
    dv_str rest = call->target->literal.s;
    uint32_t n = 0;
    dv_str text;
    bool is_percent;

    while (take_text(&rest, &text, &is_percent)) {
        const struct dv_cel_ast *misfit;
        struct clause clause;
        const char *problem;

        if (is_percent)
            continue;
        problem = take_clause(&rest, &clause);
        if (problem) {
            dv_cel_issue_add(issues, call->at, "%s", problem);
            return;
        }
        if (n >= list->n_args) {
            dv_cel_issue_add(issues, call->at, "index %u out of range", n);
            return;
        }
        misfit = find_misfit(clause.verb, list->args[n++]);
        if (misfit) {
            dv_cel_issue_add(issues, misfit->at, "error during formatting: %s, was given %.*s",
                             clause_name(clause.verb), DV_FMT(misfit->type->name));
            return;
        }
    }
    if (n < list->n_args)
        dv_cel_issue_add(issues, call->at,
                         "too many arguments supplied to string.format (expected %u, got %u)", n,
                         list->n_args);
}

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
    (void)snprintf(text, sizeof(text), "%.6e", value);
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

static bool put_clause(struct dv_cel_build *build, const struct clause *clause,
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

    while (take_text(&rest, &text, &is_percent)) {
        struct clause clause;
        const char *problem;

        dv_cel_build_add(&build, text);
        if (is_percent) {
            dv_cel_build_char(&build, '%');
            continue;
        }
        problem = take_clause(&rest, &clause);
        if (!problem && n >= list->n)
            problem = "index out of range";
        if (!problem && !put_clause(&build, &clause, &list->v[n++]))
            problem = clause_name(clause.verb);
        if (problem) {
            *out = dv_cel_error(dv_str_from_c(problem));
            return;
        }
    }
    dv_cel_build_add(&build, text);
    *out = dv_cel_build_end(run, &build);
}
