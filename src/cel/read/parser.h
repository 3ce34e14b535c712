/* parser.h - the parser's state, and what its two files share. */
#ifndef DV_CEL_PARSER_H
#define DV_CEL_PARSER_H

#include <stdbool.h>
#include <stdint.h>

#include "cel/read/ast.h"
#include "cel/read/lex.h"

struct dv_arena;

struct dv_cel_parser {
    struct dv_cel_lexer lexer;
    struct dv_cel_token token; /* the next one */
    struct dv_arena *arena;
    struct dv_cel_issues *issues;
    uint32_t nesting;
};

/* A node, and how deep the tree under it is. */
struct dv_cel_piece {
    struct dv_cel_ast *ast;
    uint32_t depth;
};

static inline uint32_t dv_cel_deeper(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Reads the next token. */
void dv_cel_parser_advance(struct dv_cel_parser *p);
bool dv_cel_parser_is_op(const struct dv_cel_parser *p, int op);
bool dv_cel_parser_is_word(const struct dv_cel_parser *p, const char *word);
bool dv_cel_parser_take(struct dv_cel_parser *p, int op); /* false: it is another */
bool dv_cel_parser_expect(struct dv_cel_parser *p, int op);
/* What an expression can begin with, in the words of the reference. */
#define DV_CEL_EXPECTED_EXPR                                                                       \
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "       \
    "STRING, BYTES, IDENTIFIER}"
/* Reports the next token as a syntax error. Returns false. */
bool dv_cel_parser_fail(struct dv_cel_parser *p, const char *expected);

struct dv_cel_ast *dv_cel_parser_ast(struct dv_cel_parser *p, enum dv_cel_ast_kind kind,
                                     uint32_t at);
struct dv_cel_ast *dv_cel_parser_call(struct dv_cel_parser *p, const char *name, uint32_t at,
                                      struct dv_cel_ast *const *args, uint32_t n_args);
/* Sets *out; false, and reported, when the tree is too deep. */
bool dv_cel_parser_give(struct dv_cel_parser *p, struct dv_cel_ast *ast, uint32_t depth,
                        struct dv_cel_piece *out);

bool dv_cel_parse_expr(struct dv_cel_parser *p, struct dv_cel_piece *out);
/* Parses a.b, a[b], a(b) and what they begin with; with is_negative, a number behind a minus at
 * `at`. */
bool dv_cel_parse_member(struct dv_cel_parser *p, bool is_negative, uint32_t at,
                         struct dv_cel_piece *out);

#endif
