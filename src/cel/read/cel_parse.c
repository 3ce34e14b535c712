/* cel_parse.c - parses CEL into a syntax tree by recursive descent, with limits on depth and size;
 * errors are those of the reference's parser. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cel/read/ast.h"
#include "cel/read/lex.h"
#include "cel/read/parser.h"

/* The reference's limits: on expressions inside each other, and on operators inside each other. */
#define NESTING_MAX 250u
#define DEPTH_MAX 250u

void dv_cel_parser_advance(struct dv_cel_parser *p)
{
    p->token = dv_cel_lex(&p->lexer);
}

bool dv_cel_parser_fail(struct dv_cel_parser *p, const char *expected)
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

bool dv_cel_parser_is_op(const struct dv_cel_parser *p, int op)
{
    return p->token.kind == DV_CEL_TOKEN_PUNCT && p->token.op == op;
}

bool dv_cel_parser_take(struct dv_cel_parser *p, int op)
{
    if (!dv_cel_parser_is_op(p, op))
        return false;
    dv_cel_parser_advance(p);
    return true;
}

bool dv_cel_parser_is_word(const struct dv_cel_parser *p, const char *word)
{
    return p->token.kind == DV_CEL_TOKEN_IDENT && dv_str_eq(p->token.text, dv_str_from_c(word));
}

bool dv_cel_parser_expect(struct dv_cel_parser *p, int op)
{
    char expected[] = {'\'', (char)op, '\'', '\0'};

    if (dv_cel_parser_take(p, op))
        return true;
    if (p->token.kind != DV_CEL_TOKEN_END || op == ':')
        return dv_cel_parser_fail(p, expected);
    dv_cel_issue_add(p->issues, p->token.at, "Syntax error: missing %s at '<EOF>'", expected);
    return false;
}

struct dv_cel_ast *dv_cel_parser_ast(struct dv_cel_parser *p, enum dv_cel_ast_kind kind,
                                     uint32_t at)
{
    struct dv_cel_ast *ast = DV_NEW(p->arena, struct dv_cel_ast);

    ast->kind = kind;
    ast->at = at;
    return ast;
}

bool dv_cel_parser_give(struct dv_cel_parser *p, struct dv_cel_ast *ast, uint32_t depth,
                        struct dv_cel_piece *out)
{
    if (depth > DEPTH_MAX) {
        dv_cel_issue_add(p->issues, UINT32_MAX, "max recursion depth exceeded");
        return false;
    }
    *out = (struct dv_cel_piece){ast, depth};
    return true;
}

struct dv_cel_ast *dv_cel_parser_call(struct dv_cel_parser *p, const char *name, uint32_t at,
                                      struct dv_cel_ast *const *args, uint32_t n_args)
{
    struct dv_cel_ast *ast = dv_cel_parser_ast(p, DV_CEL_AST_CALL, at);

    ast->name = dv_str_from_c(name);
    ast->args = DV_NEW_ARRAY(p->arena, struct dv_cel_ast *, n_args);
    memcpy(ast->args, args, n_args * sizeof(args[0]));
    ast->n_args = n_args;
    return ast;
}

/* -- Operators ------------------------------------------------------------------------------------
 */

static bool is_number(const struct dv_cel_parser *p)
{
    return p->token.kind == DV_CEL_TOKEN_INT || p->token.kind == DV_CEL_TOKEN_DOUBLE;
}

static bool parse_unary(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    uint32_t at = p->token.at;
    const char *name = NULL;
    size_t n = 0;

    if (dv_cel_parser_is_op(p, '!')) {
        for (name = "!_"; dv_cel_parser_take(p, '!');)
            n++;
    } else if (dv_cel_parser_is_op(p, '-')) {
        for (name = "-_"; dv_cel_parser_take(p, '-');)
            n++;
        if (n == 1 && is_number(p))
            return dv_cel_parse_member(p, true, at, out);
    }
    if (n > 0 && dv_cel_parser_is_op(p, '-')) { /* !-1 is a negative literal */
        uint32_t minus = p->token.at;

        dv_cel_parser_advance(p);
        if (!is_number(p))
            return dv_cel_parser_fail(p, "a number");
        if (!dv_cel_parse_member(p, true, minus, out))
            return false;
    } else if (!dv_cel_parse_member(p, false, at, out)) {
        return false;
    }
    if (n % 2 == 0) /* two signs cancel each other, as the reference reads it */
        return true;
    return dv_cel_parser_give(p, dv_cel_parser_call(p, name, at, &out->ast, 1), out->depth + 1,
                              out);
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

static const char *binary_name(const struct dv_cel_parser *p, size_t level)
{
    if (level == RELATION && dv_cel_parser_is_word(p, "in"))
        return "@in";
    for (size_t i = 0; i < levels[level].n_ops; i++)
        if (dv_cel_parser_is_op(p, levels[level].ops[i]))
            return levels[level].names[i];
    return NULL;
}

static bool parse_binary(struct dv_cel_parser *p, size_t level, struct dv_cel_piece *out)
{
    const char *name;

    if (!(level == 0 ? parse_unary(p, out) : parse_binary(p, level - 1, out)))
        return false;
    while ((name = binary_name(p, level))) {
        uint32_t at = p->token.at;
        struct dv_cel_piece right;

        dv_cel_parser_advance(p);
        if (!(level == 0 ? parse_unary(p, &right) : parse_binary(p, level - 1, &right)) ||
            !dv_cel_parser_give(
                p, dv_cel_parser_call(p, name, at, (struct dv_cel_ast *[]){out->ast, right.ast}, 2),
                dv_cel_deeper(out->depth, right.depth) + 1, out))
            return false;
    }
    return true;
}

/* a && b && c is one node: the tree stays flat however long the chain is. */
static bool parse_logical(struct dv_cel_parser *p, bool is_or, struct dv_cel_piece *out)
{
    int op = is_or ? DV_CEL_OP_OR : DV_CEL_OP_AND;
    uint32_t at = 0;
    DV_VEC(struct dv_cel_ast *) terms = {0};
    uint32_t depth;

    if (!(is_or ? parse_logical(p, false, out) : parse_binary(p, RELATION, out)))
        return false;
    if (!dv_cel_parser_is_op(p, op))
        return true;
    *dv_vec_add_in(&terms, p->arena) = out->ast;
    depth = out->depth;
    while (dv_cel_parser_is_op(p, op)) {
        struct dv_cel_piece term;

        at = p->token.at;
        dv_cel_parser_advance(p);
        if (!(is_or ? parse_logical(p, false, &term) : parse_binary(p, RELATION, &term)))
            return false;
        *dv_vec_add_in(&terms, p->arena) = term.ast;
        depth = dv_cel_deeper(depth, term.depth);
    }
    return dv_cel_parser_give(
        p, dv_cel_parser_call(p, is_or ? "_||_" : "_&&_", at, terms.v, (uint32_t)terms.n),
        depth + 1, out);
}

static bool parse_ternary(struct dv_cel_parser *p, struct dv_cel_piece *out)
{
    struct dv_cel_piece then;
    struct dv_cel_piece other;
    uint32_t at;

    if (!parse_logical(p, true, out))
        return false;
    at = p->token.at;
    if (!dv_cel_parser_take(p, '?'))
        return true;
    if (!parse_logical(p, true, &then) || !dv_cel_parser_expect(p, ':') ||
        !dv_cel_parse_expr(p, &other))
        return false;
    return dv_cel_parser_give(
        p,
        dv_cel_parser_call(p, "_?_:_", at, (struct dv_cel_ast *[]){out->ast, then.ast, other.ast},
                           3),
        dv_cel_deeper(out->depth, dv_cel_deeper(then.depth, other.depth)) + 1, out);
}

bool dv_cel_parse_expr(struct dv_cel_parser *p, struct dv_cel_piece *out)
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
    struct dv_cel_parser p = {
        .lexer = {text, 0},
          .arena = arena, .issues = issues
    };
    struct dv_cel_piece piece;

    assert(text.n < UINT32_MAX);
    if (!dv_str_is_utf8(text)) {
        dv_cel_issue_add(issues, UINT32_MAX, "the expression is not UTF-8");
        return NULL;
    }
    dv_cel_parser_advance(&p);
    if (!dv_cel_parse_expr(&p, &piece))
        return NULL;
    if (p.token.kind != DV_CEL_TOKEN_END) {
        dv_cel_parser_fail(&p, "<EOF>");
        return NULL;
    }
    return piece.ast;
}
