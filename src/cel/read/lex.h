/* lex.h - the words of an expression. */
#ifndef DV_CEL_LEX_H
#define DV_CEL_LEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/value/cel_value.h"

struct dv_arena;

enum dv_cel_token_kind {
    DV_CEL_TOKEN_END,
    DV_CEL_TOKEN_BAD, /* `problem` says why */
    DV_CEL_TOKEN_IDENT,
    DV_CEL_TOKEN_INT,
    DV_CEL_TOKEN_UINT,
    DV_CEL_TOKEN_DOUBLE,
    DV_CEL_TOKEN_STRING,
    DV_CEL_TOKEN_BYTES,
    DV_CEL_TOKEN_PUNCT, /* `op` */
};

/* Punctuation of two characters, beside those of one, which are themselves. */
enum dv_cel_op {
    DV_CEL_OP_EQ = 256,
    DV_CEL_OP_NE,
    DV_CEL_OP_LE,
    DV_CEL_OP_GE,
    DV_CEL_OP_AND,
    DV_CEL_OP_OR,
};

struct dv_cel_token {
    enum dv_cel_token_kind kind;
    uint32_t at;
    int op;
    dv_str text;
    const char *problem;
};

struct dv_cel_lexer {
    dv_str text;
    uint32_t at;
};

struct dv_cel_token dv_cel_lex(struct dv_cel_lexer *lexer);

/* The values of literals. They return NULL, or what is wrong with the literal. */
const char *dv_cel_unquote(dv_str literal, struct dv_arena *arena, dv_str *value);
const char *dv_cel_number(const struct dv_cel_token *token, bool is_negative,
                          struct dv_cel_val *value);

#endif
