/* format_clause.c - reads the clauses of a format string, and checks them against the literals that
 * they are given: what can be known before an expression is run. */
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "cel/check/cel_check.h"
#include "cel/functions/string_format.h"
#include "cel/read/ast.h"
#include "cel/value/cel_value.h"
#include "cel/value/type.h"

#define PRECISION_DEFAULT 6
/* A limit for the width that %e makes of the precision; the reference has none. */
#define PRECISION_MAX 100000

const char *dv_cel_format_take_clause(dv_str *rest, struct dv_cel_clause *clause)
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

bool dv_cel_format_take_text(dv_str *rest, dv_str *text, bool *is_percent)
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

const char *dv_cel_format_misuse(char verb)
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

/* ---- checking literals ---- */

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

    while (dv_cel_format_take_text(&rest, &text, &is_percent)) {
        const struct dv_cel_ast *misfit;
        struct dv_cel_clause clause;
        const char *problem;

        if (is_percent)
            continue;
        problem = dv_cel_format_take_clause(&rest, &clause);
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
                             dv_cel_format_misuse(clause.verb), DV_FMT(misfit->type->name));
            return;
        }
    }
    if (n < list->n_args)
        dv_cel_issue_add(issues, call->at,
                         "too many arguments supplied to string.format (expected %u, got %u)", n,
                         list->n_args);
}
