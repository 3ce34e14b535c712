#include "cel/read/lex.h"

#include <string.h>

#include "base/ascii.h"

static bool is_letter(char c)
{
    return dv_is_letter(c) || c == '_';
}

static char peek(const struct dv_cel_lexer *lexer, size_t ahead)
{
    size_t at = lexer->at + ahead;

    return at < lexer->text.n ? lexer->text.p[at] : '\0';
}

static void skip_blanks(struct dv_cel_lexer *lexer)
{
    while (lexer->at < lexer->text.n) {
        char c = peek(lexer, 0);

        if (c == '/' && peek(lexer, 1) == '/') {
            while (lexer->at < lexer->text.n && peek(lexer, 0) != '\n')
                lexer->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f') {
            lexer->at++;
        } else {
            return;
        }
    }
}

static struct dv_cel_token end_token(struct dv_cel_lexer *lexer, enum dv_cel_token_kind kind,
                                     uint32_t from, uint32_t to)
{
    lexer->at = to;
    return (struct dv_cel_token){
        .kind = kind, .at = from, .text = dv_str_slice(lexer->text, from, to)};
}

static struct dv_cel_token bad_token(struct dv_cel_lexer *lexer, uint32_t from, const char *problem)
{
    struct dv_cel_token token = end_token(lexer, DV_CEL_TOKEN_BAD, from, (uint32_t)lexer->text.n);

    token.problem = problem;
    return token;
}

/* Skips the digits and, where one follows, the exponent. */
static uint32_t skip_digits(const struct dv_cel_lexer *lexer, uint32_t at)
{
    while (at < lexer->text.n && dv_is_digit(lexer->text.p[at]))
        at++;
    return at;
}

static bool skip_exponent(const struct dv_cel_lexer *lexer, uint32_t *at)
{
    dv_str text = lexer->text;
    uint32_t to = *at;

    if (to >= text.n || (text.p[to] != 'e' && text.p[to] != 'E'))
        return false;
    to++;
    if (to < text.n && (text.p[to] == '+' || text.p[to] == '-'))
        to++;
    if (to >= text.n || !dv_is_digit(text.p[to]))
        return false;
    *at = skip_digits(lexer, to);
    return true;
}

static struct dv_cel_token lex_number(struct dv_cel_lexer *lexer)
{
    uint32_t from = lexer->at;
    uint32_t at = from;
    dv_str text = lexer->text;
    bool is_double = false;

    if (peek(lexer, 0) == '0' && peek(lexer, 1) == 'x' && dv_is_hex(peek(lexer, 2))) {
        at += 2;
        while (at < text.n && dv_is_hex(text.p[at]))
            at++;
    } else {
        at = skip_digits(lexer, at);
        if (at + 1 < text.n && text.p[at] == '.' && dv_is_digit(text.p[at + 1])) {
            at = skip_digits(lexer, at + 1);
            is_double = true;
        }
        if (skip_exponent(lexer, &at))
            is_double = true;
    }
    if (is_double)
        return end_token(lexer, DV_CEL_TOKEN_DOUBLE, from, at);
    if (at < text.n && (text.p[at] == 'u' || text.p[at] == 'U'))
        return end_token(lexer, DV_CEL_TOKEN_UINT, from, at + 1);
    return end_token(lexer, DV_CEL_TOKEN_INT, from, at);
}

/* The number of quotes at `at`: one or three of a kind; 0 when there are none. */
static uint32_t n_quotes(dv_str text, uint32_t at)
{
    char c;

    if (at >= text.n || (text.p[at] != '"' && text.p[at] != '\''))
        return 0;
    c = text.p[at];
    return at + 2 < text.n && text.p[at + 1] == c && text.p[at + 2] == c ? 3 : 1;
}

/* Reads a literal, from the quotes at `at` to its end. */
static struct dv_cel_token lex_string(struct dv_cel_lexer *lexer, uint32_t at, bool is_raw,
                                      enum dv_cel_token_kind kind)
{
    dv_str text = lexer->text;
    uint32_t from = lexer->at;
    uint32_t quotes = n_quotes(text, at);
    dv_str mark = dv_str_slice(text, at, at + quotes);

    for (at += quotes; at < text.n; at++) {
        char c = text.p[at];

        if (dv_str_starts_with(dv_str_slice(text, at, text.n), mark))
            return end_token(lexer, kind, from, at + quotes);
        if (quotes == 1 && (c == '\n' || c == '\r'))
            break;
        if (c == '\\' && !is_raw)
            at++;
    }
    return bad_token(lexer, from, "unterminated string");
}

/* Reads a literal with a prefix such as r, b, bR (not Rb) before the quotes; false when it is a
 * name. */
static bool lex_prefixed(struct dv_cel_lexer *lexer, struct dv_cel_token *token)
{
    uint32_t at = lexer->at;
    bool is_raw = false;
    bool is_bytes = false;

    for (; at < lexer->text.n; at++) {
        char c = lexer->text.p[at];

        if ((c == 'r' || c == 'R') && !is_raw)
            is_raw = true;
        else if ((c == 'b' || c == 'B') && !is_bytes && !is_raw)
            is_bytes = true;
        else
            break;
    }
    if (n_quotes(lexer->text, at) == 0)
        return false;
    *token = lex_string(lexer, at, is_raw, is_bytes ? DV_CEL_TOKEN_BYTES : DV_CEL_TOKEN_STRING);
    return true;
}

static struct dv_cel_token lex_word(struct dv_cel_lexer *lexer)
{
    struct dv_cel_token token;
    uint32_t at = lexer->at;

    if (lex_prefixed(lexer, &token))
        return token;
    while (at < lexer->text.n && (is_letter(lexer->text.p[at]) || dv_is_digit(lexer->text.p[at])))
        at++;
    return end_token(lexer, DV_CEL_TOKEN_IDENT, lexer->at, at);
}

static struct dv_cel_token lex_punct(struct dv_cel_lexer *lexer)
{
    static const struct {
        char text[3];
        int op;
    } pairs[] = {
        {"==", DV_CEL_OP_EQ },
        {"!=", DV_CEL_OP_NE },
        {"<=", DV_CEL_OP_LE },
        {">=", DV_CEL_OP_GE },
        {"&&", DV_CEL_OP_AND},
        {"||", DV_CEL_OP_OR },
    };
    struct dv_cel_token token;
    char c = peek(lexer, 0);

    for (size_t i = 0; i < DV_COUNT(pairs); i++) {
        if (c != pairs[i].text[0] || peek(lexer, 1) != pairs[i].text[1])
            continue;
        token = end_token(lexer, DV_CEL_TOKEN_PUNCT, lexer->at, lexer->at + 2);
        token.op = pairs[i].op;
        return token;
    }
    if (c == '\0' || !strchr("<>!+-*/%?:.,()[]{}", c))
        return bad_token(lexer, lexer->at, "token recognition error");
    token = end_token(lexer, DV_CEL_TOKEN_PUNCT, lexer->at, lexer->at + 1);
    token.op = (unsigned char)c;
    return token;
}

struct dv_cel_token dv_cel_lex(struct dv_cel_lexer *lexer)
{
    char c;

    skip_blanks(lexer);
    if (lexer->at >= lexer->text.n)
        return end_token(lexer, DV_CEL_TOKEN_END, lexer->at, lexer->at);
    c = peek(lexer, 0);
    if (dv_is_digit(c) || (c == '.' && dv_is_digit(peek(lexer, 1))))
        return lex_number(lexer);
    if (is_letter(c))
        return lex_word(lexer);
    if (n_quotes(lexer->text, lexer->at) > 0)
        return lex_string(lexer, lexer->at, false, DV_CEL_TOKEN_STRING);
    return lex_punct(lexer);
}
