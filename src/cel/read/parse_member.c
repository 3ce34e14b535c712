/* parse_member.c - names, literals, lists, calls: what binds closest. */
#include "base/vec.h"
#include "cel/read/parser.h"

/* -- Lists of expressions -----------------------------------------------------------------------
 */

/* expr, expr, ... up to `close`; with `is_list`, `?` before one and a comma behind the last. The
 * comma may be there without an element, too: "[,]" is empty, and so are maps and structs. */
static bool parse_elements(struct dv_cel_parser *p, int close, bool is_list,
                           struct dv_cel_ast *into, uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    bool has_optional = false;

    if (is_list && dv_cel_parser_take(p, ','))
        return dv_cel_parser_expect(p, close);
    while (!dv_cel_parser_is_op(p, close)) {
        bool is_optional = is_list && dv_cel_parser_take(p, '?');
        struct dv_cel_piece piece;

        if (!dv_cel_parse_expr(p, &piece))
            return false;
        *dv_vec_add_in(&args, p->arena) = piece.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        has_optional |= is_optional;
        *depth = dv_cel_deeper(*depth, piece.depth);
        if (!dv_cel_parser_take(p, ','))
            break;
        if (!is_list && dv_cel_parser_is_op(p, close))
            return dv_cel_parser_fail(p, DV_CEL_EXPECTED_EXPR);
    }
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->optionals = has_optional ? optionals.v : NULL;
    return dv_cel_parser_expect(p, close);
}

/* key: value, ... up to the brace. */
static bool parse_entries(struct dv_cel_parser *p, struct dv_cel_ast *into, uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    bool has_optional = false;

    if (dv_cel_parser_take(p, ','))
        return dv_cel_parser_expect(p, '}');
    while (!dv_cel_parser_is_op(p, '}')) {
        bool is_optional = dv_cel_parser_take(p, '?');
        struct dv_cel_piece key;
        struct dv_cel_piece value;

        if (!dv_cel_parse_expr(p, &key) || !dv_cel_parser_expect(p, ':') ||
            !dv_cel_parse_expr(p, &value))
            return false;
        *dv_vec_add_in(&args, p->arena) = key.ast;
        *dv_vec_add_in(&args, p->arena) = value.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        has_optional |= is_optional;
        *depth = dv_cel_deeper(*depth, dv_cel_deeper(key.depth, value.depth));
        if (!dv_cel_parser_take(p, ','))
            break;
    }
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->optionals = has_optional ? optionals.v : NULL;
    return dv_cel_parser_expect(p, '}');
}

/* name: value, ... up to the brace. */
static bool parse_fields(struct dv_cel_parser *p, struct dv_cel_ast *into, uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    DV_VEC(dv_str) names = {0};

    if (dv_cel_parser_take(p, ','))
        return dv_cel_parser_expect(p, '}');
    while (!dv_cel_parser_is_op(p, '}')) {
        bool is_optional = dv_cel_parser_take(p, '?');
        struct dv_cel_piece value;

        if (p->token.kind != DV_CEL_TOKEN_IDENT)
            return dv_cel_parser_fail(p, "IDENTIFIER");
        *dv_vec_add_in(&names, p->arena) = p->token.text;
        dv_cel_parser_advance(p);
        if (!dv_cel_parser_expect(p, ':') || !dv_cel_parse_expr(p, &value))
            return false;
        *dv_vec_add_in(&args, p->arena) = value.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        *depth = dv_cel_deeper(*depth, value.depth);
        if (!dv_cel_parser_take(p, ','))
            break;
    }
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->names = names.v;
    into->optionals = optionals.v;
    return dv_cel_parser_expect(p, '}');
}

/* -- Primaries and what follows them --------------------------------------------------------------
 */

static bool is_reserved(dv_str name)
{
    static const char *const words[] = {
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",    "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while",
    };

    for (size_t i = 0; i < DV_COUNT(words); i++)
        if (dv_str_eq(name, dv_str_from_c(words[i])))
            return true;
    return false;
}

static bool is_keyword(dv_str name)
{
    return dv_str_eq(name, DV_STR("in")) || dv_str_eq(name, DV_STR("true")) ||
           dv_str_eq(name, DV_STR("false")) || dv_str_eq(name, DV_STR("null"));
}

static bool parse_literal(struct dv_cel_parser *p, bool is_negative, uint32_t at,
                          struct dv_cel_piece *out)
{
    struct dv_cel_ast *ast = dv_cel_parser_ast(p, DV_CEL_AST_LITERAL, at);
    const char *problem;

    if (p->token.kind == DV_CEL_TOKEN_STRING || p->token.kind == DV_CEL_TOKEN_BYTES) {
        ast->literal.kind = p->token.kind == DV_CEL_TOKEN_STRING ? DV_CEL_STRING : DV_CEL_BYTES;
        problem = dv_cel_unquote(p->token.text, p->arena, &ast->literal.s);
    } else {
        problem = dv_cel_number(&p->token, is_negative, &ast->literal);
    }
    if (problem) {
        dv_cel_issue_add(p->issues, at, "%s", problem);
        return false;
    }
    dv_cel_parser_advance(p);
    return dv_cel_parser_give(p, ast, 1, out);
}

/* true, false, null; false for other words. */
static bool parse_constant(struct dv_cel_parser *p, struct dv_cel_ast *ast)
{
    if (dv_cel_parser_is_word(p, "true"))
        ast->literal = dv_cel_bool(true);
    else if (dv_cel_parser_is_word(p, "false"))
        ast->literal = dv_cel_bool(false);
    else if (dv_cel_parser_is_word(p, "null"))
        ast->literal = dv_cel_null();
    else
        return false;
    ast->kind = DV_CEL_AST_LITERAL;
    dv_cel_parser_advance(p);
    return true;
}

static bool parse_name(struct dv_cel_parser *p, bool is_absolute, uint32_t at,
                       struct dv_cel_piece *out)
{
    struct dv_cel_ast *ast = dv_cel_parser_ast(p, DV_CEL_AST_IDENT, at);
    uint32_t depth = 0;

    if (!is_absolute && parse_constant(p, ast))
        return dv_cel_parser_give(p, ast, 1, out);
    if (is_keyword(p->token.text))
        return dv_cel_parser_fail(p, DV_CEL_EXPECTED_EXPR);
    ast->name = p->token.text;
    ast->is_absolute = is_absolute;
    if (is_reserved(ast->name)) {
        dv_cel_issue_add(p->issues, at, "reserved identifier: %.*s", DV_FMT(ast->name));
        return false;
    }
    dv_cel_parser_advance(p);
    if (!dv_cel_parser_is_op(p, '('))
        return dv_cel_parser_give(p, ast, 1, out);
    ast->kind = DV_CEL_AST_CALL;
    ast->at = p->token.at;
    dv_cel_parser_advance(p);
    return parse_elements(p, ')', false, ast, &depth) && dv_cel_parser_give(p, ast, depth + 1, out);
}

static bool parse_punct_primary(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    uint32_t at = p->token.at;
    struct dv_cel_ast *ast;
    uint32_t depth = 0;

    if (dv_cel_parser_take(p, '('))
        return dv_cel_parse_expr(p, out) && dv_cel_parser_expect(p, ')');
    if (dv_cel_parser_take(p, '[')) {
        ast = dv_cel_parser_ast(p, DV_CEL_AST_LIST, at);
        return parse_elements(p, ']', true, ast, &depth) &&
               dv_cel_parser_give(p, ast, depth + 1, out);
    }
    if (dv_cel_parser_take(p, '{')) {
        ast = dv_cel_parser_ast(p, DV_CEL_AST_MAP, at);
        return parse_entries(p, ast, &depth) && dv_cel_parser_give(p, ast, depth + 1, out);
    }
    if (dv_cel_parser_take(p, '.')) {
        if (p->token.kind != DV_CEL_TOKEN_IDENT)
            return dv_cel_parser_fail(p, "IDENTIFIER");
        return parse_name(p, true, at, out);
    }
    return dv_cel_parser_fail(p, DV_CEL_EXPECTED_EXPR);
}

static bool parse_primary(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    switch (p->token.kind) {
    case DV_CEL_TOKEN_INT:
    case DV_CEL_TOKEN_UINT:
    case DV_CEL_TOKEN_DOUBLE:
    case DV_CEL_TOKEN_STRING:
    case DV_CEL_TOKEN_BYTES:
        return parse_literal(p, false, p->token.at, out);
    case DV_CEL_TOKEN_IDENT:
        return parse_name(p, false, p->token.at, out);
    case DV_CEL_TOKEN_PUNCT:
        return parse_punct_primary(p, out);
    case DV_CEL_TOKEN_END:
    case DV_CEL_TOKEN_BAD:
        break;
    }
    return dv_cel_parser_fail(p, DV_CEL_EXPECTED_EXPR);
}

/* Fails as the reference, which quotes all that it has read since it knew what was meant. */
static bool fail_after_dot(struct dv_cel_parser *p, uint32_t dot)
{
    dv_str source = p->issues->source;
    size_t end = p->token.kind == DV_CEL_TOKEN_END ? dot + 1 : p->token.at + p->token.text.n;

    if (p->token.kind == DV_CEL_TOKEN_BAD)
        return dv_cel_parser_fail(p, "IDENTIFIER");
    dv_cel_issue_add(p->issues, p->token.at, "Syntax error: no viable alternative at input '%.*s'",
                     DV_FMT(dv_str_slice(source, dot, end)));
    return false;
}

/* .name, .?name, .name(args) */
static bool parse_dot(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    uint32_t at = p->token.at;
    struct dv_cel_ast *ast;
    bool is_optional;
    uint32_t depth = out->depth;
    dv_str name;

    dv_cel_parser_advance(p);
    is_optional = dv_cel_parser_take(p, '?');
    if (p->token.kind != DV_CEL_TOKEN_IDENT || is_keyword(p->token.text))
        return fail_after_dot(p, at);
    name = p->token.text;
    dv_cel_parser_advance(p);
    if (is_optional) {
        struct dv_cel_ast *field = dv_cel_parser_ast(p, DV_CEL_AST_LITERAL, at);
        struct dv_cel_ast *args[] = {out->ast, field};

        field->literal = dv_cel_string(name);
        return dv_cel_parser_give(p, dv_cel_parser_call(p, "_?._", at, args, 2), depth + 1, out);
    }
    if (dv_cel_parser_is_op(p, '(')) {
        ast = dv_cel_parser_ast(p, DV_CEL_AST_CALL, p->token.at);
        ast->is_member = true;
        dv_cel_parser_advance(p);
        if (!parse_elements(p, ')', false, ast, &depth))
            return false;
    } else {
        ast = dv_cel_parser_ast(p, DV_CEL_AST_SELECT, at);
    }
    ast->target = out->ast;
    ast->name = name;
    return dv_cel_parser_give(p, ast, depth + 1, out);
}

static bool parse_index(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    uint32_t at = p->token.at;
    struct dv_cel_piece index;
    bool is_optional;

    dv_cel_parser_advance(p);
    is_optional = dv_cel_parser_take(p, '?');
    if (!dv_cel_parse_expr(p, &index) || !dv_cel_parser_expect(p, ']'))
        return false;
    return dv_cel_parser_give(p,
                              dv_cel_parser_call(p, is_optional ? "_[?_]" : "_[_]", at,
                                                 (struct dv_cel_ast *[]){out->ast, index.ast}, 2),
                              dv_cel_deeper(out->depth, index.depth) + 1, out);
}

/* a.b.C as a name, for a struct; NONE when it is another expression. */
static dv_str dotted_name(const struct dv_cel_parser *p, const struct dv_cel_ast *ast)
{
    dv_str up;

    if (ast->kind == DV_CEL_AST_IDENT)
        return ast->is_absolute ? dv_str_printf(p->arena, ".%.*s", DV_FMT(ast->name)) : ast->name;
    if (ast->kind != DV_CEL_AST_SELECT)
        return DV_STR_NONE;
    up = dotted_name(p, ast->target);
    return up.n == 0 ? up : dv_str_printf(p->arena, "%.*s.%.*s", DV_FMT(up), DV_FMT(ast->name));
}

static bool parse_struct(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    struct dv_cel_ast *ast = dv_cel_parser_ast(p, DV_CEL_AST_STRUCT, p->token.at);
    uint32_t depth = out->depth;

    ast->name = dotted_name(p, out->ast);
    if (ast->name.n == 0)
        return dv_cel_parser_fail(p, "<EOF>");
    dv_cel_parser_advance(p);
    return parse_fields(p, ast, &depth) && dv_cel_parser_give(p, ast, depth + 1, out);
}

bool dv_cel_parse_member(struct dv_cel_parser *p, bool is_negative, uint32_t at,
                         struct dv_cel_piece *out)
{
    if (!(is_negative ? parse_literal(p, true, at, out) : parse_primary(p, out)))
        return false;
    for (;;) {
        bool is_ok;

        if (dv_cel_parser_is_op(p, '.'))
            is_ok = parse_dot(p, out);
        else if (dv_cel_parser_is_op(p, '['))
            is_ok = parse_index(p, out);
        else if (dv_cel_parser_is_op(p, '{'))
            is_ok = parse_struct(p, out);
        else
            return true;
        if (!is_ok)
            return false;
    }
}
