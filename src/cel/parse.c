#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cel/ast.h"
#include "cel/lex.h"

/* The reference's limits: on expressions inside each other, and on operators inside each other. */
#define NESTING_MAX 250u
#define DEPTH_MAX 250u

struct parser {
    struct dv_cel_lexer lexer;
    struct dv_cel_token token; /* the next one */
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    uint32_t nesting;
};

/* A node, and how deep the tree under it is. */
struct piece {
    struct dv_cel_ast *ast;
    uint32_t depth;
};

static bool parse_expr(struct parser *p, struct piece *out);

static void advance(struct parser *p)
{
    p->token = dv_cel_lex(&p->lexer);
}

static bool fail_here(struct parser *p, const char *expected)
{
    if (p->token.kind == DV_CEL_TOKEN_END)
        dv_cel_issue_add(p->issues, p->token.at,
                         "Syntax error: mismatched input '<EOF>' expecting %s", expected);
    else if (p->token.kind == DV_CEL_TOKEN_BAD)
        dv_cel_issue_add(p->issues, p->token.at, "Syntax error: %s at: '%.*s'", p->token.problem,
                         DV_FMT(dv_str_slice(p->token.text, 0, 40)));
    else
        dv_cel_issue_add(p->issues, p->token.at,
                         "Syntax error: mismatched input '%.*s' expecting %s",
                         DV_FMT(p->token.text), expected);
    return false;
}

static bool is_op(const struct parser *p, int op)
{
    return p->token.kind == DV_CEL_TOKEN_PUNCT && p->token.op == op;
}

static bool take_op(struct parser *p, int op)
{
    if (!is_op(p, op))
        return false;
    advance(p);
    return true;
}

static bool is_word(const struct parser *p, const char *word)
{
    return p->token.kind == DV_CEL_TOKEN_IDENT && dv_str_eq(p->token.text, dv_str_from_c(word));
}

static bool expect_op(struct parser *p, int op)
{
    char expected[] = {'\'', (char)op, '\'', '\0'};

    return take_op(p, op) || fail_here(p, expected);
}

static struct dv_cel_ast *new_ast(struct parser *p, enum dv_cel_ast_kind kind, uint32_t at)
{
    struct dv_cel_ast *ast = DV_NEW(p->arena, struct dv_cel_ast);

    ast->kind = kind;
    ast->at = at;
    return ast;
}

static bool give(struct parser *p, struct dv_cel_ast *ast, uint32_t depth, struct piece *out)
{
    if (depth > DEPTH_MAX) {
        dv_cel_issue_add(p->issues, UINT32_MAX, "max recursion depth exceeded");
        return false;
    }
    *out = (struct piece){ast, depth};
    return true;
}

static uint32_t deeper(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static struct dv_cel_ast *new_call(struct parser *p, const char *name, uint32_t at,
                                   struct dv_cel_ast *const *args, uint32_t n_args)
{
    struct dv_cel_ast *ast = new_ast(p, DV_CEL_AST_CALL, at);

    ast->name = dv_str_from_c(name);
    ast->args = DV_NEW_ARRAY(p->arena, struct dv_cel_ast *, n_args);
    memcpy(ast->args, args, n_args * sizeof(args[0]));
    ast->n_args = n_args;
    return ast;
}

/* -- Lists of expressions -----------------------------------------------------------------------
 */

/* expr, expr, ... up to `close`; with `is_list`, `?` before one and a comma behind the last. */
static bool parse_elements(struct parser *p, int close, bool is_list, struct dv_cel_ast *into,
                           uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    bool has_optional = false;

    while (!is_op(p, close)) {
        bool is_optional = is_list && take_op(p, '?');
        struct piece piece;

        if (!parse_expr(p, &piece))
            return false;
        *dv_vec_add_in(&args, p->arena) = piece.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        has_optional |= is_optional;
        *depth = deeper(*depth, piece.depth);
        if (!take_op(p, ','))
            break;
        if (!is_list && is_op(p, close))
            return fail_here(p, "an expression");
    }
    if (!expect_op(p, close))
        return false;
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->optionals = has_optional ? optionals.v : NULL;
    return true;
}

/* key: value, ... up to the brace. */
static bool parse_entries(struct parser *p, struct dv_cel_ast *into, uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    bool has_optional = false;

    while (!is_op(p, '}')) {
        bool is_optional = take_op(p, '?');
        struct piece key;
        struct piece value;

        if (!parse_expr(p, &key) || !expect_op(p, ':') || !parse_expr(p, &value))
            return false;
        *dv_vec_add_in(&args, p->arena) = key.ast;
        *dv_vec_add_in(&args, p->arena) = value.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        has_optional |= is_optional;
        *depth = deeper(*depth, deeper(key.depth, value.depth));
        if (!take_op(p, ','))
            break;
    }
    if (!expect_op(p, '}'))
        return false;
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->optionals = has_optional ? optionals.v : NULL;
    return true;
}

/* name: value, ... up to the brace. */
static bool parse_fields(struct parser *p, struct dv_cel_ast *into, uint32_t *depth)
{
    DV_VEC(struct dv_cel_ast *) args = {0};
    DV_VEC(bool) optionals = {0};
    DV_VEC(dv_str) names = {0};

    while (!is_op(p, '}')) {
        bool is_optional = take_op(p, '?');
        struct piece value;

        if (p->token.kind != DV_CEL_TOKEN_IDENT)
            return fail_here(p, "IDENTIFIER");
        *dv_vec_add_in(&names, p->arena) = p->token.text;
        advance(p);
        if (!expect_op(p, ':') || !parse_expr(p, &value))
            return false;
        *dv_vec_add_in(&args, p->arena) = value.ast;
        *dv_vec_add_in(&optionals, p->arena) = is_optional;
        *depth = deeper(*depth, value.depth);
        if (!take_op(p, ','))
            break;
    }
    if (!expect_op(p, '}'))
        return false;
    into->args = args.v;
    into->n_args = (uint32_t)args.n;
    into->names = names.v;
    into->optionals = optionals.v;
    return true;
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

static bool parse_literal(struct parser *p, bool is_negative, uint32_t at, struct piece *out)
{
    struct dv_cel_ast *ast = new_ast(p, DV_CEL_AST_LITERAL, at);
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
    advance(p);
    return give(p, ast, 1, out);
}

/* true, false, null; false for other words. */
static bool parse_constant(struct parser *p, struct dv_cel_ast *ast)
{
    if (is_word(p, "true"))
        ast->literal = dv_cel_bool(true);
    else if (is_word(p, "false"))
        ast->literal = dv_cel_bool(false);
    else if (is_word(p, "null"))
        ast->literal = dv_cel_null();
    else
        return false;
    ast->kind = DV_CEL_AST_LITERAL;
    advance(p);
    return true;
}

static bool parse_name(struct parser *p, bool is_absolute, uint32_t at, struct piece *out)
{
    struct dv_cel_ast *ast = new_ast(p, DV_CEL_AST_IDENT, at);
    uint32_t depth = 0;

    if (!is_absolute && parse_constant(p, ast))
        return give(p, ast, 1, out);
    if (is_keyword(p->token.text))
        return fail_here(p, "an expression");
    ast->name = p->token.text;
    ast->is_absolute = is_absolute;
    if (is_reserved(ast->name)) {
        dv_cel_issue_add(p->issues, at, "reserved identifier: %.*s", DV_FMT(ast->name));
        return false;
    }
    advance(p);
    if (!is_op(p, '('))
        return give(p, ast, 1, out);
    ast->kind = DV_CEL_AST_CALL;
    ast->at = p->token.at;
    advance(p);
    return parse_elements(p, ')', false, ast, &depth) && give(p, ast, depth + 1, out);
}

static bool parse_punct_primary(struct parser *p, struct piece *out)
{
    uint32_t at = p->token.at;
    struct dv_cel_ast *ast;
    uint32_t depth = 0;

    if (take_op(p, '('))
        return parse_expr(p, out) && expect_op(p, ')');
    if (take_op(p, '[')) {
        ast = new_ast(p, DV_CEL_AST_LIST, at);
        return parse_elements(p, ']', true, ast, &depth) && give(p, ast, depth + 1, out);
    }
    if (take_op(p, '{')) {
        ast = new_ast(p, DV_CEL_AST_MAP, at);
        return parse_entries(p, ast, &depth) && give(p, ast, depth + 1, out);
    }
    if (take_op(p, '.')) {
        if (p->token.kind != DV_CEL_TOKEN_IDENT)
            return fail_here(p, "IDENTIFIER");
        return parse_name(p, true, at, out);
    }
    return fail_here(p, "an expression");
}

static bool parse_primary(struct parser *p, struct piece *out)
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
    return fail_here(p, "an expression");
}

/* .name, .?name, .name(args) */
static bool parse_dot(struct parser *p, struct piece *out)
{
    uint32_t at = p->token.at;
    struct dv_cel_ast *ast;
    bool is_optional;
    uint32_t depth = out->depth;
    dv_str name;

    advance(p);
    is_optional = take_op(p, '?');
    if (p->token.kind != DV_CEL_TOKEN_IDENT || is_keyword(p->token.text))
        return fail_here(p, "IDENTIFIER");
    name = p->token.text;
    advance(p);
    if (is_optional) {
        struct dv_cel_ast *field = new_ast(p, DV_CEL_AST_LITERAL, at);
        struct dv_cel_ast *args[] = {out->ast, field};

        field->literal = dv_cel_string(name);
        return give(p, new_call(p, "_?._", at, args, 2), depth + 1, out);
    }
    if (is_op(p, '(')) {
        ast = new_ast(p, DV_CEL_AST_CALL, p->token.at);
        ast->is_member = true;
        advance(p);
        if (!parse_elements(p, ')', false, ast, &depth))
            return false;
    } else {
        ast = new_ast(p, DV_CEL_AST_SELECT, at);
    }
    ast->target = out->ast;
    ast->name = name;
    return give(p, ast, depth + 1, out);
}

static bool parse_index(struct parser *p, struct piece *out)
{
    uint32_t at = p->token.at;
    struct piece index;
    bool is_optional;

    advance(p);
    is_optional = take_op(p, '?');
    if (!parse_expr(p, &index) || !expect_op(p, ']'))
        return false;
    return give(p,
                new_call(p, is_optional ? "_[?_]" : "_[_]", at,
                         (struct dv_cel_ast *[]){out->ast, index.ast}, 2),
                deeper(out->depth, index.depth) + 1, out);
}

/* a.b.C as a name, for a struct; NONE when it is another expression. */
static dv_str dotted_name(const struct parser *p, const struct dv_cel_ast *ast)
{
    dv_str up;

    if (ast->kind == DV_CEL_AST_IDENT)
        return ast->is_absolute ? dv_str_printf(p->arena, ".%.*s", DV_FMT(ast->name)) : ast->name;
    if (ast->kind != DV_CEL_AST_SELECT)
        return DV_STR_NONE;
    up = dotted_name(p, ast->target);
    return up.n == 0 ? up : dv_str_printf(p->arena, "%.*s.%.*s", DV_FMT(up), DV_FMT(ast->name));
}

static bool parse_struct(struct parser *p, struct piece *out)
{
    struct dv_cel_ast *ast = new_ast(p, DV_CEL_AST_STRUCT, p->token.at);
    uint32_t depth = out->depth;

    ast->name = dotted_name(p, out->ast);
    if (ast->name.n == 0)
        return fail_here(p, "<EOF>");
    advance(p);
    return parse_fields(p, ast, &depth) && give(p, ast, depth + 1, out);
}

static bool parse_member(struct parser *p, bool is_negative, uint32_t at, struct piece *out)
{
    if (!(is_negative ? parse_literal(p, true, at, out) : parse_primary(p, out)))
        return false;
    for (;;) {
        bool is_ok;

        if (is_op(p, '.'))
            is_ok = parse_dot(p, out);
        else if (is_op(p, '['))
            is_ok = parse_index(p, out);
        else if (is_op(p, '{'))
            is_ok = parse_struct(p, out);
        else
            return true;
        if (!is_ok)
            return false;
    }
}

/* -- Operators ------------------------------------------------------------------------------------
 */

static bool is_number(const struct parser *p)
{
    return p->token.kind == DV_CEL_TOKEN_INT || p->token.kind == DV_CEL_TOKEN_DOUBLE;
}

static bool parse_unary(struct parser *p, struct piece *out)
{
    uint32_t at = p->token.at;
    const char *name = NULL;
    size_t n = 0;

    if (is_op(p, '!')) {
        for (name = "!_"; take_op(p, '!');)
            n++;
    } else if (is_op(p, '-')) {
        for (name = "-_"; take_op(p, '-');)
            n++;
        if (n == 1 && is_number(p))
            return parse_member(p, true, at, out);
    }
    if (n > 0 && is_op(p, '-')) { /* !-1 is a negative literal */
        uint32_t minus = p->token.at;

        advance(p);
        if (!is_number(p))
            return fail_here(p, "a number");
        if (!parse_member(p, true, minus, out))
            return false;
    } else if (!parse_member(p, false, at, out)) {
        return false;
    }
    if (n % 2 == 0) /* two of them are none: that is how the reference reads it */
        return true;
    return give(p, new_call(p, name, at, &out->ast, 1), out->depth + 1, out);
}

struct level {
    int ops[8];
    const char *names[8];
    size_t n_ops;
};

static const struct level levels[] = {
    {{'*', '/', '%'},                                                    {"_*_", "_/_", "_%_"}, 3},
    {{'+', '-'},                                                         {"_+_", "_-_"},        2},
    {{'<', DV_CEL_OP_LE, '>', DV_CEL_OP_GE, DV_CEL_OP_EQ, DV_CEL_OP_NE},
     {"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"},
     6                                                                                           },
};
#define RELATION (DV_COUNT(levels) - 1)

static const char *binary_name(const struct parser *p, size_t level)
{
    if (level == RELATION && is_word(p, "in"))
        return "@in";
    for (size_t i = 0; i < levels[level].n_ops; i++)
        if (is_op(p, levels[level].ops[i]))
            return levels[level].names[i];
    return NULL;
}

static bool parse_binary(struct parser *p, size_t level, struct piece *out)
{
    const char *name;

    if (!(level == 0 ? parse_unary(p, out) : parse_binary(p, level - 1, out)))
        return false;
    while ((name = binary_name(p, level))) {
        uint32_t at = p->token.at;
        struct piece right;

        advance(p);
        if (!(level == 0 ? parse_unary(p, &right) : parse_binary(p, level - 1, &right)) ||
            !give(p, new_call(p, name, at, (struct dv_cel_ast *[]){out->ast, right.ast}, 2),
                  deeper(out->depth, right.depth) + 1, out))
            return false;
    }
    return true;
}

/* a && b && c is one node: the tree stays flat however long the chain is. */
static bool parse_logical(struct parser *p, bool is_or, struct piece *out)
{
    int op = is_or ? DV_CEL_OP_OR : DV_CEL_OP_AND;
    uint32_t at = 0;
    DV_VEC(struct dv_cel_ast *) terms = {0};
    uint32_t depth;

    if (!(is_or ? parse_logical(p, false, out) : parse_binary(p, RELATION, out)))
        return false;
    if (!is_op(p, op))
        return true;
    *dv_vec_add_in(&terms, p->arena) = out->ast;
    depth = out->depth;
    while (is_op(p, op)) {
        struct piece term;

        at = p->token.at;
        advance(p);
        if (!(is_or ? parse_logical(p, false, &term) : parse_binary(p, RELATION, &term)))
            return false;
        *dv_vec_add_in(&terms, p->arena) = term.ast;
        depth = deeper(depth, term.depth);
    }
    return give(p, new_call(p, is_or ? "_||_" : "_&&_", at, terms.v, (uint32_t)terms.n), depth + 1,
                out);
}

static bool parse_ternary(struct parser *p, struct piece *out)
{
    struct piece then;
    struct piece other;
    uint32_t at;

    if (!parse_logical(p, true, out))
        return false;
    at = p->token.at;
    if (!take_op(p, '?'))
        return true;
    if (!parse_logical(p, true, &then) || !expect_op(p, ':') || !parse_expr(p, &other))
        return false;
    return give(p,
                new_call(p, "_?_:_", at, (struct dv_cel_ast *[]){out->ast, then.ast, other.ast}, 3),
                deeper(out->depth, deeper(then.depth, other.depth)) + 1, out);
}

static bool parse_expr(struct parser *p, struct piece *out)
{
    bool is_ok;

    if (++p->nesting > NESTING_MAX) {
        dv_cel_issue_add(p->issues, UINT32_MAX, "expression recursion limit exceeded: %u",
                         NESTING_MAX);
        return false;
    }
    is_ok = parse_ternary(p, out);
    p->nesting--;
    return is_ok;
}

struct dv_cel_ast *dv_cel_parse(dv_str text, struct dv_arena *arena, struct dv_cel_issues *issues)
{
    struct parser p = {
        .lexer = {text, 0},
          .arena = arena, .issues = issues
    };
    struct piece piece;

    assert(text.n < UINT32_MAX);
    if (!dv_str_is_utf8(text)) {
        dv_cel_issue_add(issues, UINT32_MAX, "the expression is not UTF-8");
        return NULL;
    }
    advance(&p);
    if (!parse_expr(&p, &piece))
        return NULL;
    if (p.token.kind != DV_CEL_TOKEN_END) {
        fail_here(&p, "<EOF>");
        return NULL;
    }
    return piece.ast;
}
