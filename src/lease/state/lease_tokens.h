/* lease_tokens.h - the words, numbers and signs that a selector in its short form has. Pure. */
#ifndef DV_LEASE_TOKENS_H
#define DV_LEASE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

enum dv_lease_token_kind {
    DV_LEASE_TOKEN_OTHER, /* an operator of one or two characters, or what is not ours to judge */
    DV_LEASE_TOKEN_COMPARES,
    DV_LEASE_TOKEN_WORD,
    DV_LEASE_TOKEN_NUMBER,
    DV_LEASE_TOKEN_AMOUNT, /* a number with the unit of a quantity */
    DV_LEASE_TOKEN_TEXT,
};

struct dv_lease_token {
    enum dv_lease_token_kind kind;
    dv_str text;
    size_t at; /* in the source */
};

struct dv_lease_tokens {
    struct dv_lease_token *v;
    size_t n;
    size_t size;
};

/* Reads the text into `tokens`, which is zeroed, all in `arena`; texts are borrowed from it. What
 * is no token of CEL is one, too: the compiler knows better what is wrong with it.
 * DV_INVALID_ARGUMENT: a quote has no end, or there are too many. */
DV_CHECKED bool dv_lease_tokens_read(dv_str source, struct dv_arena *arena,
                                     struct dv_lease_tokens *tokens, struct dv_err *err);

#endif
