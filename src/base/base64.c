#include "base/base64.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

#define END (-1)

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The number that a character stands for; -1 for all others. */
static int digit_of(int c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* The next character that is no CR or LF; END when there is none. */
static int next_char(dv_str text, size_t *at)
{
    while (*at < text.n && (text.p[*at] == '\r' || text.p[*at] == '\n'))
        (*at)++;
    return *at < text.n ? (unsigned char)text.p[(*at)++] : END;
}

/* Reads the padding behind the digits of a last group that is not full, and nothing more may
 * follow. */
static bool read_padding(dv_str text, size_t at, int c, unsigned n_digits)
{
    if (c != '=' || n_digits < 2)
        return false;
    if (n_digits == 2 && next_char(text, &at) != '=')
        return false;
    return next_char(text, &at) == END;
}

bool dv_base64_decode(dv_str text, struct dv_arena *arena, dv_str *bytes)
{
    char *out = dv_arena_alloc_raw(arena, text.n / 4 * 3 + 3, 1);
    uint32_t group = 0;
    unsigned n_digits = 0;
    size_t n = 0;

    for (size_t at = 0;;) {
        int c = next_char(text, &at);
        int digit = digit_of(c);

        if (c == END && n_digits == 0)
            break;
        if (digit < 0) {
            if (!read_padding(text, at, c, n_digits))
                return false;
            out[n++] = (char)(group >> (n_digits == 2 ? 4 : 10));
            if (n_digits == 3)
                out[n++] = (char)(group >> 2);
            break;
        }
        group = group << 6 | (uint32_t)digit;
        if (++n_digits < 4)
            continue;
        out[n++] = (char)(group >> 16);
        out[n++] = (char)(group >> 8);
        out[n++] = (char)group;
        n_digits = 0;
        group = 0;
    }
    *bytes = (dv_str){out, n};
    return true;
}

void dv_base64_encode(dv_str bytes, struct dv_buf *buf)
{
    char *out = dv_buf_extend(buf, (bytes.n + 2) / 3 * 4);

    for (size_t i = 0; out && i < bytes.n; i += 3) {
        size_t left = bytes.n - i;
        uint32_t group = (uint32_t)(unsigned char)bytes.p[i] << 16;

        if (left > 1)
            group |= (uint32_t)(unsigned char)bytes.p[i + 1] << 8;
        if (left > 2)
            group |= (unsigned char)bytes.p[i + 2];
        *out++ = alphabet[group >> 18];
        *out++ = alphabet[group >> 12 & 63];
        *out++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[group & 63] : '=';
    }
}

/* ---- the form for URLs ---- */

static const char url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int url_digit_of(char c)
{
    if (c == '-')
        return 62;
    if (c == '_')
        return 63;
    return c == '+' || c == '/' ? -1 : digit_of((unsigned char)c);
}

bool dv_base64url_decode(dv_str text, struct dv_arena *arena, dv_str *bytes)
{
    char *out = dv_arena_alloc_raw(arena, text.n / 4 * 3 + 3, 1);
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;

    if (text.n % 4 == 1)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int digit = url_digit_of(text.p[i]);

        if (digit < 0)
            return false;
        bits = (bits << 6 | (uint32_t)digit) & 0xffff;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        out[n++] = (char)(bits >> n_bits);
    }
    if (bits & ((1u << n_bits) - 1))
        return false;
    *bytes = (dv_str){out, n};
    return true;
}

void dv_base64url_encode(dv_str bytes, struct dv_buf *buf)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;

    for (size_t i = 0; i < bytes.n; i++) {
        bits = bits << 8 | (unsigned char)bytes.p[i];
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            dv_buf_add_char(buf, url_alphabet[bits >> (n_bits - 6) & 63]);
    }
    if (n_bits > 0)
        dv_buf_add_char(buf, url_alphabet[bits << (6 - n_bits) & 63]);
}
