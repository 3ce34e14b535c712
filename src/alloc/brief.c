/* brief.c - says in few words what a selector has against a device: `memory = 16Gi, wanted >= 40Gi`
 * for device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0. What has not the form of one
 * value that is compared is said with the selector's own words. Used by why.c. */
#include <stdbool.h>
#include <stddef.h>

#include "alloc/search.h"
#include "base/defs.h"
#include "base/str.h"
#include "cel/cel.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The last name of a path: memory of device.capacity["d"].memory. */
static dv_str last_name(dv_str expression)
{
    size_t at = expression.n;

    while (at > 0 && is_word(expression.p[at - 1]))
        at--;
    if (at == 0 || at == expression.n || expression.p[at - 1] != '.')
        return expression;
    return dv_str_slice(expression, at, expression.n);
}

/* Takes `prefix` and `suffix` from the ends of the text. False: it does not have them. */
static bool unwrap(dv_str *text, dv_str prefix, dv_str suffix)
{
    if (text->n < prefix.n + suffix.n || !dv_str_starts_with(*text, prefix) ||
        !dv_str_ends_with(*text, suffix))
        return false;
    *text = dv_str_slice(*text, prefix.n, text->n - suffix.n);
    return true;
}

/* 40Gi of quantity("40Gi"); else the text itself. */
static dv_str plain(dv_str text)
{
    dv_str inner = text;

    if ((unwrap(&inner, DV_STR("quantity(\""), DV_STR("\")")) ||
         unwrap(&inner, DV_STR("semver(\""), DV_STR("\")"))) &&
        dv_str_find_char(inner, '"') == inner.n)
        return inner;
    return text;
}

/* What the rest of a comparison, behind the value, asks of it. False: it has another form. */
static bool read_comparison(dv_str rest, dv_str *op, dv_str *wanted)
{
    static const dv_str operators[] = {DV_STR_INIT("=="), DV_STR_INIT("!="), DV_STR_INIT(">="),
                                       DV_STR_INIT("<="), DV_STR_INIT(">"),  DV_STR_INIT("<"),
                                       DV_STR_INIT("in")};

    for (size_t i = 0; i < DV_COUNT(operators); i++) {
        dv_str inner = rest;

        *op = operators[i];
        if (dv_str_starts_with(rest, DV_STR(" ")) &&
            dv_str_starts_with(dv_str_slice(rest, 1, rest.n), operators[i])) {
            *wanted = dv_str_trim(dv_str_slice(rest, 1 + operators[i].n, rest.n));
            return true;
        }
        if (unwrap(&inner, DV_STR(".compareTo("), DV_STR(" 0")) &&
            unwrap(&inner, DV_STR_NONE, operators[i]) &&
            unwrap(&inner, DV_STR_NONE, DV_STR(") "))) {
            *wanted = plain(inner);
            return true;
        }
    }
    *op = DV_STR(">");
    if (!unwrap(&rest, DV_STR(".isGreaterThan("), DV_STR(")"))) {
        *op = DV_STR("<");
        if (!unwrap(&rest, DV_STR(".isLessThan("), DV_STR(")")))
            return false;
    }
    *wanted = plain(rest);
    return true;
}

dv_str dv_why_brief(const struct dv_cel_report *report, struct dv_arena *arena)
{
    dv_str rest = report->part;
    dv_str name;
    dv_str op;
    dv_str wanted;

    if (report->verdict == DV_CEL_FAILS)
        return dv_str_printf(arena, "%.*s fails: %.*s", DV_FMT(report->part),
                             DV_FMT(report->problem));
    if (report->n_seen != 1)
        return dv_str_printf(arena, "%.*s is false", DV_FMT(report->part));
    name = last_name(report->seen[0].expression);
    if (unwrap(&rest, report->seen[0].expression, DV_STR_NONE)) {
        if (rest.n == 0)
            return dv_str_printf(arena, "%.*s = %.*s, wanted true", DV_FMT(name),
                                 DV_FMT(report->seen[0].value));
        if (read_comparison(rest, &op, &wanted))
            return dv_str_printf(arena, "%.*s = %.*s, wanted %.*s %.*s", DV_FMT(name),
                                 DV_FMT(report->seen[0].value), DV_FMT(op), DV_FMT(wanted));
    }
    return dv_str_printf(arena, "%.*s is false, %.*s = %.*s", DV_FMT(report->part), DV_FMT(name),
                         DV_FMT(report->seen[0].value));
}
