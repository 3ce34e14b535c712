/* cel_validate.c - validates a selector as the API server does when an object is written: it
 * compiles, returns a bool, and cannot cost more than the limit. */
#include "base/buf.h"
#include "base/str.h"
#include "cel/check/cel_check.h"
#include "cel/check/decls.h"
#include "cel/functions/regex.h"
#include "cel/read/ast.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"

#define TYPE_BYTES_MAX 2000u

struct validator {
    const struct dv_cel_decls *decls;
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    bool in_format; /* whose list may mix types */
};

static bool is_call(const struct dv_cel_ast *ast, const char *name)
{
    return dv_str_eq(ast->name, dv_str_from_c(name));
}

static bool is_literal(const struct dv_cel_ast *ast, enum dv_cel_kind kind)
{
    return ast->kind == DV_CEL_AST_LITERAL && ast->literal.kind == kind;
}

static void validate_conversion(struct validator *v, const struct dv_cel_ast *ast)
{
    const struct dv_cel_ast *arg = ast->n_args == 1 && !ast->target ? ast->args[0] : NULL;
    struct dv_cel_val val = dv_cel_null();

    if (!arg)
        return;
    if (is_call(ast, "duration") && is_literal(arg, DV_CEL_STRING))
        val = dv_cel_duration_parse(arg->literal.s);
    else if (is_call(ast, "timestamp") && is_literal(arg, DV_CEL_STRING))
        val = dv_cel_time_parse(arg->literal.s);
    else if (is_call(ast, "timestamp") && is_literal(arg, DV_CEL_INT))
        val = dv_cel_time_from_seconds(arg->literal.i);
    if (dv_cel_is_error(&val))
        dv_cel_issue_add(v->issues, arg->at, "invalid %.*s argument", DV_FMT(ast->name));
}

static void validate_matches(struct validator *v, const struct dv_cel_ast *ast)
{
    const struct dv_cel_ast *pattern = ast->n_args > 0 ? ast->args[ast->n_args - 1] : NULL;
    struct dv_cel_val error;

    if (is_call(ast, "matches") && pattern && is_literal(pattern, DV_CEL_STRING) &&
        !dv_cel_regex_new(pattern->literal.s, v->arena, &error))
        dv_cel_issue_add(v->issues, pattern->at, "invalid matches argument");
}

static void validate_format(struct validator *v, const struct dv_cel_ast *ast)
{
    if (is_call(ast, "format") && ast->target && is_literal(ast->target, DV_CEL_STRING) &&
        ast->n_args == 1 && ast->args[0]->kind == DV_CEL_AST_LIST)
        dv_cel_validate_format(ast, v->issues);
}

/* Whether the element has the type of those before it; if not, that is reported. */
static bool is_alike(struct validator *v, const struct dv_cel_ast *ast, bool is_optional,
                     const struct dv_cel_type **type)
{
    const struct dv_cel_type *own = ast->type;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TYPE_BYTES_MAX);
    if (is_optional && dv_cel_type_is_optional(own))
        own = own->params[0];
    if (!*type)
        *type = own;
    if (dv_cel_type_eq(*type, own))
        return true;
    dv_buf_add_c(&buf, "expected type '");
    dv_cel_type_print(*type, true, &buf);
    dv_buf_add_c(&buf, "' but found '");
    dv_cel_type_print(own, true, &buf);
    dv_buf_add_char(&buf, '\'');
    dv_cel_issue_add(v->issues, ast->at, "%s", dv_buf_c(&buf));
    return false;
}

static void validate_aggregate(struct validator *v, const struct dv_cel_ast *ast)
{
    bool is_map = ast->kind == DV_CEL_AST_MAP;
    const struct dv_cel_type *keys = NULL;
    const struct dv_cel_type *values = NULL;

    if (v->in_format || v->decls->allow_mixed)
        return;
    for (uint32_t i = 0; i < ast->n_args; i++) {
        bool is_key = is_map && i % 2 == 0;
        bool is_optional = ast->optionals && !is_key && ast->optionals[is_map ? i / 2 : i];

        if (!is_alike(v, ast->args[i], is_optional, is_key ? &keys : &values))
            return;
    }
}

static void validate(struct validator *v, const struct dv_cel_ast *ast)
{
    bool in_format = v->in_format;

    if (ast->kind == DV_CEL_AST_CALL) {
        validate_conversion(v, ast);
        validate_matches(v, ast);
        validate_format(v, ast);
        if (is_call(ast, "format") && ast->target)
            v->in_format = true;
    } else if (ast->kind == DV_CEL_AST_LIST || ast->kind == DV_CEL_AST_MAP) {
        validate_aggregate(v, ast);
    }
    if (ast->target && ast->kind != DV_CEL_AST_IDENT)
        validate(v, ast->target);
    for (uint32_t i = 0; i < ast->n_args; i++)
        validate(v, ast->args[i]);
    if (ast->fold) {
        validate(v, ast->fold->range);
        validate(v, ast->fold->init);
        validate(v, ast->fold->step);
        validate(v, ast->fold->result);
    }
    v->in_format = in_format;
}

void dv_cel_validate(const struct dv_cel_ast *ast, const struct dv_cel_decls *decls,
                     struct dv_arena *arena, struct dv_cel_issues *issues)
{
    struct validator v = {.decls = decls, .arena = arena, .issues = issues};

    validate(&v, ast);
}
