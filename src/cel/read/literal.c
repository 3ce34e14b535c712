/* literal.c - the values of numbers and quoted text in an expression. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/num.h"
#include "cel/read/lex.h"
#include "cel/value/build.h"

#define CODE_POINT_MAX 0x10ffffu

/* -- Numbers --------------------------------------------------------------------------------- */

static bool parse_u64(dv_str text, uint64_t *value)
{
    uint64_t sum = 0;

    if (text.n < 2 || text.p[1] != 'x') {
        /* Leading zeros are allowed, and dv_str_to_u64 takes them. */
        return dv_str_to_u64(text, value);
    }
    for (size_t i = 2; i < text.n; i++) {
        char c = text.p[i];
        unsigned digit = (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);

        if (sum >> 60)
            return false;
        sum = sum << 4 | digit;
    }
    *value = sum;
    return true;
}

static const char *parse_int(dv_str text, bool is_negative, struct dv_cel_val *value)
{
    uint64_t number;
    uint64_t max = (uint64_t)INT64_MAX + (is_negative ? 1 : 0);

    if (!parse_u64(text, &number) || number > max)
        return "invalid int literal";
    *value = dv_cel_int((int64_t)(is_negative ? 0 - number : number));
    return NULL;
}

static const char *parse_double(dv_str text, bool is_negative, struct dv_cel_val *value)
{
    char digits[512];
    double number;

    if (text.n >= sizeof(digits))
        return "invalid double literal";
    memcpy(digits, text.p, text.n);
    digits[text.n] = '\0';
    number = strtod(digits, NULL); /* cannot fail: the lexer accepts only numbers */
    if (isinf(number))
        return "invalid double literal";
    *value = dv_cel_double(is_negative ? -number : number);
    return NULL;
}

const char *dv_cel_number(const struct dv_cel_token *token, bool is_negative,
                          struct dv_cel_val *value)
{
    uint64_t number;

    if (token->kind == DV_CEL_TOKEN_INT)
        return parse_int(token->text, is_negative, value);
    if (token->kind == DV_CEL_TOKEN_DOUBLE)
        return parse_double(token->text, is_negative, value);
    if (!parse_u64(dv_str_slice(token->text, 0, token->text.n - 1), &number))
        return "invalid uint literal";
    *value = dv_cel_uint(number);
    return NULL;
}

/* -- Quoted text ----------------------------------------------------------------------------- */

struct unquoter {
    dv_str in;
    size_t at;
    bool is_bytes;
    struct dv_cel_build out;
};

/* Reads `n` digits of base 8 or 16 at q->at. */
static bool read_digits(struct unquoter *q, size_t n, unsigned base, uint32_t *value)
{
    uint32_t sum = 0;

    if (q->in.n - q->at < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int digit = dv_hex_value(q->in.p[q->at++]);

        if (digit < 0 || (unsigned)digit >= base)
            return false;
        sum = sum * base + (unsigned)digit;
    }
    *value = sum;
    return true;
}

static const char *put_code(struct unquoter *q, size_t n_digits, unsigned base, bool is_byte)
{
    uint32_t value;

    if (!read_digits(q, n_digits, base, &value))
        return "invalid escape sequence";
    if (is_byte && q->is_bytes) {
        dv_cel_build_char(&q->out, (char)value);
        return NULL;
    }
    if (q->is_bytes)
        return "illegal escape sequence: unicode escape sequences cannot be used in bytes literals";
    if (value > CODE_POINT_MAX || (value >= 0xd800 && value < 0xe000))
        return "invalid unicode code point";
    dv_cel_build_code_point(&q->out, value);
    return NULL;
}

static const char *put_escape(struct unquoter *q)
{
    static const char simple[][2] = {
        {'a',  '\a'},
        {'b',  '\b'},
        {'f',  '\f'},
        {'n',  '\n'},
        {'r',  '\r'},
        {'t',  '\t'},
        {'v',  '\v'},
        {'?',  '?' },
        {'\\', '\\'},
        {'\'', '\''},
        {'"',  '"' },
        {'`',  '`' },
    };
    char c;

    if (q->at >= q->in.n)
        return "invalid escape sequence";
    c = q->in.p[q->at++];
    for (size_t i = 0; i < DV_COUNT(simple); i++) {
        if (simple[i][0] == c) {
            dv_cel_build_char(&q->out, simple[i][1]);
            return NULL;
        }
    }
    switch (c) {
    case 'x':
    case 'X':
        return put_code(q, 2, 16, true);
    case 'u':
        return put_code(q, 4, 16, false);
    case 'U':
        return put_code(q, 8, 16, false);
    case '0':
    case '1':
    case '2':
    case '3':
        q->at--;
        return put_code(q, 3, 8, true);
    default:
        return "invalid escape sequence";
    }
}

const char *dv_cel_unquote(dv_str literal, struct dv_arena *arena, dv_str *value)
{
    struct unquoter q = {.out = {.arena = arena}};
    bool is_raw = false;
    size_t quotes = 1;

    while (literal.n > 0 && literal.p[0] != '"' && literal.p[0] != '\'') {
        is_raw |= (literal.p[0] | 0x20) == 'r';
        q.is_bytes |= (literal.p[0] | 0x20) == 'b';
        literal = dv_str_slice(literal, 1, literal.n);
    }
    if (literal.n >= 6 && literal.p[1] == literal.p[0] && literal.p[2] == literal.p[0])
        quotes = 3;
    q.in = dv_str_slice(literal, quotes, literal.n - quotes);
    while (q.at < q.in.n) {
        char c = q.in.p[q.at++];

        if (c != '\\' || is_raw) {
            dv_cel_build_char(&q.out, c);
        } else {
            const char *problem = put_escape(&q);

            if (problem)
                return problem;
        }
    }
    *value = (dv_str){q.out.p, q.out.n};
    return NULL;
}
