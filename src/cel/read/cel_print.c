/* cel_print.c - expressions as text that parses to the same, and whether two are the same. */
#include <math.h>

#include "base/buf.h"
#include "cel/read/ast.h"
#include "cel/value/number_text.h"

/* How strongly the printed expression binds; one that binds less is put in parentheses. */
enum level {
    TERNARY,
    OR,
    AND,
    RELATION,
    SUM,
    PRODUCT,
    UNARY,
    MEMBER,
};

static const struct {
    const char *name;
    const char *text;
    enum level level;
} operators[] = {
    {"_||_", " || ", OR      },
    {"_&&_", " && ", AND     },
    {"_<_",  " < ",  RELATION},
    {"_<=_", " <= ", RELATION},
    {"_>_",  " > ",  RELATION},
    {"_>=_", " >= ", RELATION},
    {"_==_", " == ", RELATION},
    {"_!=_", " != ", RELATION},
    {"@in",  " in ", RELATION},
    {"_+_",  " + ",  SUM     },
    {"_-_",  " - ",  SUM     },
    {"_*_",  " * ",  PRODUCT },
    {"_/_",  " / ",  PRODUCT },
    {"_%_",  " % ",  PRODUCT },
};

static void print(const struct dv_cel_ast *ast, enum level at_least, struct dv_buf *buf);

static void print_quoted(dv_str s, bool is_bytes, struct dv_buf *buf)
{
    dv_buf_add_c(buf, is_bytes ? "b\"" : "\"");
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '"' || c == '\\')
            dv_buf_printf(buf, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || (is_bytes && c >= 0x80))
            dv_buf_printf(buf, "\\x%02x", c);
        else
            dv_buf_add_char(buf, (char)c);
    }
    dv_buf_add_char(buf, '"');
}

static void print_literal(const struct dv_cel_val *val, struct dv_buf *buf)
{
    char text[DV_CEL_NUMBER_BYTES];

    switch ((int)val->kind) {
    case DV_CEL_UINT:
        dv_buf_add_u64(buf, val->u);
        dv_buf_add_char(buf, 'u');
        break;
    case DV_CEL_DOUBLE:
        dv_cel_print_literal(val->d, text);
        dv_buf_add_c(buf, text);
        break;
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        print_quoted(val->s, val->kind == DV_CEL_BYTES, buf);
        break;
    default:
        dv_cel_val_print(val, buf);
        break;
    }
}

static void print_args(const struct dv_cel_ast *ast, char open, char close, struct dv_buf *buf)
{
    dv_buf_add_char(buf, open);
    for (uint32_t i = 0; i < ast->n_args; i++) {
        if (i > 0)
            dv_buf_add_c(buf, ", ");
        if (ast->optionals && ast->optionals[i])
            dv_buf_add_char(buf, '?');
        print(ast->args[i], TERNARY, buf);
    }
    dv_buf_add_char(buf, close);
}

static void print_map(const struct dv_cel_ast *ast, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '{');
    for (uint32_t i = 0; i < ast->n_args; i += 2) {
        if (i > 0)
            dv_buf_add_c(buf, ", ");
        if (ast->optionals && ast->optionals[i / 2])
            dv_buf_add_char(buf, '?');
        print(ast->args[i], TERNARY, buf);
        dv_buf_add_c(buf, ": ");
        print(ast->args[i + 1], TERNARY, buf);
    }
    dv_buf_add_char(buf, '}');
}

static void print_struct(const struct dv_cel_ast *ast, struct dv_buf *buf)
{
    dv_buf_add(buf, ast->name);
    dv_buf_add_char(buf, '{');
    for (uint32_t i = 0; i < ast->n_args; i++) {
        dv_buf_printf(buf, "%s%s%.*s: ", i > 0 ? ", " : "",
                      ast->optionals && ast->optionals[i] ? "?" : "", DV_FMT(ast->names[i]));
        print(ast->args[i], TERNARY, buf);
    }
    dv_buf_add_char(buf, '}');
}

static void open_if(bool is_needed, struct dv_buf *buf)
{
    if (is_needed)
        dv_buf_add_char(buf, '(');
}

static void close_if(bool is_needed, struct dv_buf *buf)
{
    if (is_needed)
        dv_buf_add_char(buf, ')');
}

/* a && b && c, a + b: the first operand may be of the same level, the others must bind more. A
 * chain of && or || is one node, so that its first operand must bind more, too. */
static void print_binary(const struct dv_cel_ast *ast, size_t op, enum level at_least,
                         struct dv_buf *buf)
{
    enum level level = operators[op].level;
    bool is_chain = level == OR || level == AND;

    open_if(level < at_least, buf);
    for (uint32_t i = 0; i < ast->n_args; i++) {
        if (i > 0)
            dv_buf_add_c(buf, operators[op].text);
        print(ast->args[i], i > 0 || is_chain ? level + 1 : level, buf);
    }
    close_if(level < at_least, buf);
}

static bool is_call(const struct dv_cel_ast *ast, const char *name)
{
    return !ast->is_member && dv_str_eq(ast->name, dv_str_from_c(name));
}

static void print_ternary(const struct dv_cel_ast *ast, enum level at_least, struct dv_buf *buf)
{
    open_if(at_least > TERNARY, buf);
    print(ast->args[0], OR, buf);
    dv_buf_add_c(buf, " ? ");
    print(ast->args[1], OR, buf);
    dv_buf_add_c(buf, " : ");
    print(ast->args[2], TERNARY, buf);
    close_if(at_least > TERNARY, buf);
}

/* The expression that the text of a member begins with. */
static const struct dv_cel_ast *leftmost(const struct dv_cel_ast *ast)
{
    for (;;) {
        if (ast->target)
            ast = ast->target;
        else if (is_call(ast, "_[_]") || is_call(ast, "_[?_]") || is_call(ast, "_?._"))
            ast = ast->args[0];
        else
            return ast;
    }
}

static bool is_negative(const struct dv_cel_val *val)
{
    return (val->kind == DV_CEL_INT && val->i < 0) ||
           (val->kind == DV_CEL_DOUBLE && signbit(val->d));
}

/* A number behind a minus would be a negative literal; behind three, it is not. A negative one is
 * put in parentheses: two signs would cancel each other. */
static void print_unary(const struct dv_cel_ast *ast, enum level at_least, struct dv_buf *buf)
{
    const struct dv_cel_ast *arg = ast->args[0];
    const struct dv_cel_ast *first = leftmost(arg);
    bool is_minus = ast->name.p[0] == '-';
    bool is_number = first->kind == DV_CEL_AST_LITERAL &&
                     (first->literal.kind == DV_CEL_INT || first->literal.kind == DV_CEL_DOUBLE);
    bool is_enclosed = is_minus && is_number && is_negative(&first->literal);

    open_if(at_least > UNARY, buf);
    dv_buf_add_c(buf, is_minus ? (is_number && !is_enclosed ? "---" : "-") : "!");
    open_if(is_enclosed, buf);
    print(arg, MEMBER, buf);
    close_if(is_enclosed, buf);
    close_if(at_least > UNARY, buf);
}

static void print_function(const struct dv_cel_ast *ast, struct dv_buf *buf)
{
    if (ast->is_member) {
        print(ast->target, MEMBER, buf);
        dv_buf_add_char(buf, '.');
    } else if (ast->is_absolute) {
        dv_buf_add_char(buf, '.');
    }
    dv_buf_add(buf, ast->name);
    print_args(ast, '(', ')', buf);
}

static void print_call(const struct dv_cel_ast *ast, enum level at_least, struct dv_buf *buf)
{
    for (size_t i = 0; i < DV_COUNT(operators); i++) {
        if (is_call(ast, operators[i].name)) {
            print_binary(ast, i, at_least, buf);
            return;
        }
    }
    if (is_call(ast, "_?_:_")) {
        print_ternary(ast, at_least, buf);
    } else if (is_call(ast, "!_") || is_call(ast, "-_")) {
        print_unary(ast, at_least, buf);
    } else if (is_call(ast, "_[_]") || is_call(ast, "_[?_]")) {
        print(ast->args[0], MEMBER, buf);
        dv_buf_add_c(buf, is_call(ast, "_[_]") ? "[" : "[?");
        print(ast->args[1], TERNARY, buf);
        dv_buf_add_char(buf, ']');
    } else if (is_call(ast, "_?._")) {
        print(ast->args[0], MEMBER, buf);
        dv_buf_add_c(buf, ".?");
        dv_buf_add(buf, ast->args[1]->literal.s);
    } else {
        print_function(ast, buf);
    }
}

static void print(const struct dv_cel_ast *ast, enum level at_least, struct dv_buf *buf)
{
    switch (ast->kind) {
    case DV_CEL_AST_LITERAL:
        print_literal(&ast->literal, buf);
        break;
    case DV_CEL_AST_IDENT:
        if (ast->is_absolute)
            dv_buf_add_char(buf, '.');
        dv_buf_add(buf, ast->name);
        break;
    case DV_CEL_AST_SELECT:
        print(ast->target, MEMBER, buf);
        dv_buf_add_char(buf, '.');
        dv_buf_add(buf, ast->name);
        break;
    case DV_CEL_AST_CALL:
        print_call(ast, at_least, buf);
        break;
    case DV_CEL_AST_LIST:
        print_args(ast, '[', ']', buf);
        break;
    case DV_CEL_AST_MAP:
        print_map(ast, buf);
        break;
    case DV_CEL_AST_STRUCT:
        print_struct(ast, buf);
        break;
    case DV_CEL_AST_FOLD: /* macros are expanded in another tree, which is not printed */
        break;
    }
}

void dv_cel_ast_print(const struct dv_cel_ast *ast, struct dv_buf *buf)
{
    print(ast, TERNARY, buf);
}
