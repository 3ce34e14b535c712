#include "lease/state/lease_tokens.h"

#include "base/ascii.h"
#include "base/err.h"
#include "base/vec.h"

/* Far more than an expression of the longest text has that means something. */
#define TOKENS_MAX 2048u

static bool is_word_start(char c)
{
    return dv_is_letter(c) || c == '_';
}

static bool is_word(char c)
{
    return dv_is_alphanumeric(c) || c == '_';
}

/* The length of a text with its quotes; 0: it has no end. */
static size_t text_length(dv_str rest)
{
    char quote = rest.p[0];
    size_t width = rest.n >= 3 && rest.p[1] == quote && rest.p[2] == quote ? 3 : 1;

    for (size_t i = width; i < rest.n; i++) {
        size_t n = 0;

        if (rest.p[i] == '\\') {
            i++;
            continue;
        }
        while (n < width && i + n < rest.n && rest.p[i + n] == quote)
            n++;
        if (n == width)
            return i + width;
    }
    return 0;
}

static bool is_unit(dv_str text)
{
    static const char *const units[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
                                        "k",  "M",  "G",  "T",  "P",  "E"};

    for (size_t i = 0; i < DV_COUNT(units); i++)
        if (dv_str_eq(text, dv_str_from_c(units[i])))
            return true;
    return false;
}

/* A number, and whether letters that make it an amount follow. */
static size_t number_length(dv_str rest, enum dv_lease_token_kind *kind)
{
    size_t n = 0;
    size_t unit;

    while (n < rest.n && (dv_is_digit(rest.p[n]) ||
                          (rest.p[n] == '.' && n + 1 < rest.n && dv_is_digit(rest.p[n + 1]))))
        n++;
    for (unit = n; unit < rest.n && is_word(rest.p[unit]);)
        unit++;
    *kind = is_unit(dv_str_slice(rest, n, unit)) ? DV_LEASE_TOKEN_AMOUNT : DV_LEASE_TOKEN_NUMBER;
    return unit;
}

static size_t operator_length(dv_str rest, enum dv_lease_token_kind *kind)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "&&", "||"};

    for (size_t i = 0; i < DV_COUNT(two); i++)
        if (dv_str_starts_with(rest, dv_str_from_c(two[i]))) {
            *kind = i < 4 ? DV_LEASE_TOKEN_COMPARES : DV_LEASE_TOKEN_OTHER;
            return 2;
        }
    *kind = rest.p[0] == '<' || rest.p[0] == '>' ? DV_LEASE_TOKEN_COMPARES : DV_LEASE_TOKEN_OTHER;
    return 1;
}

static bool take_token(dv_str source, size_t at, struct dv_arena *arena,
                       struct dv_lease_tokens *tokens, size_t *next, struct dv_err *err)
{
    dv_str rest = dv_str_slice(source, at, source.n);
    struct dv_lease_token token = {.at = at};
    size_t n = 0;

    if (rest.p[0] == '"' || rest.p[0] == '\'') {
        token.kind = DV_LEASE_TOKEN_TEXT;
        n = text_length(rest);
        if (n == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "character %zu: the text has no end", at + 1);
    } else if (is_word_start(rest.p[0])) {
        token.kind = DV_LEASE_TOKEN_WORD;
        while (n < rest.n && is_word(rest.p[n]))
            n++;
    } else if (dv_is_digit(rest.p[0])) {
        n = number_length(rest, &token.kind);
    } else {
        n = operator_length(rest, &token.kind);
    }
    token.text = dv_str_slice(rest, 0, n);
    *dv_vec_add_in(tokens, arena) = token;
    *next = at + n;
    return true;
}

bool dv_lease_tokens_read(dv_str source, struct dv_arena *arena, struct dv_lease_tokens *tokens,
                          struct dv_err *err)
{
    for (size_t at = 0; at < source.n;) {
        char c = source.p[at];

        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            at++;
            continue;
        }
        if (tokens->n >= TOKENS_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "has more than %u words", TOKENS_MAX);
        if (!take_token(source, at, arena, tokens, &at, err))
            return false;
    }
    return true;
}
