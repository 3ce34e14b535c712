/* text.c - the texts of documents: other encodings to UTF-8, and the escapes of JSON strings. */
#include "json/tree.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"

static const dv_str replacement = DV_STR_INIT("\xef\xbf\xbd"); /* U+FFFD */

dv_str dv_json_to_utf8(dv_str s, struct dv_arena *arena)
{
    size_t n = 0;
    char *text;

    if (dv_str_is_utf8(s))
        return s;
    for (size_t at = 0, len; at < s.n; at += len ? len : 1) {
        len = dv_str_utf8_char(dv_str_slice(s, at, s.n));
        n += len ? len : replacement.n;
    }
    text = dv_arena_alloc(arena, n, 1);
    n = 0;
    for (size_t at = 0, len; at < s.n; at += len ? len : 1) {
        len = dv_str_utf8_char(dv_str_slice(s, at, s.n));
        memcpy(text + n, len ? s.p + at : replacement.p, len ? len : replacement.n);
        n += len ? len : replacement.n;
    }
    return (dv_str){text, n};
}

/* -- JSON strings --------------------------------------------------------------------------- */

/* Eight bytes at a time: most of a document is text like that. */
const char *dv_json_skip_plain(const char *at, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);

    while (end - at >= 8) {
        uint64_t word, quote, backslash, control;

        memcpy(&word, at, 8);
        quote = word ^ (ones * '"');
        backslash = word ^ (ones * '\\');
        /* A byte's top bit is set in x - 1 and clear in x when x was 0; a borrow from a lower byte
         * can only add to what the byte below already found. */
        control = (word - ones * 0x20) & ~word;
        quote = (quote - ones) & ~quote;
        backslash = (backslash - ones) & ~backslash;
        if ((word | control | quote | backslash) & tops)
            break;
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 &&
           (unsigned char)*at < 0x80)
        at++;
    return at;
}

int32_t dv_json_read_hex4(const char *at, const char *end)
{
    int32_t code = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = dv_hex_value(at[i]);

        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *put_code(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* \uXXXX, or two of them that make one character; *at is at the first digit and known to be right.
 * Half a pair alone is U+FFFD. */
static char *unescape_code(const char **at, const char *end, char *to)
{
    uint32_t code = (uint32_t)dv_json_read_hex4(*at, end);

    *at += 4;
    if (code >= 0xd800 && code <= 0xdbff && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int32_t low = dv_json_read_hex4(*at + 2, end);

        if (low >= 0xdc00 && low <= 0xdfff) {
            *at += 6;
            return put_code(to, 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)low - 0xdc00));
        }
    }
    return put_code(to, code >= 0xd800 && code <= 0xdfff ? 0xfffd : code);
}

static char unescape_letter(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c; /* a quote, a slash, a backslash */
    }
}

dv_str dv_json_unescape(dv_str s, size_t n_bad, struct dv_arena *arena)
{
    /* An escape is longer than what it stands for; a bad byte takes two more. */
    char *text = dv_arena_alloc(arena, s.n + 2 * n_bad, 1);
    const char *from = s.p;
    const char *end = s.p + s.n;
    char *to = text;

    while (from < end) {
        const char *before = from;
        size_t n = (size_t)(dv_json_skip_plain(from, end) - from);

        if (n == 0 && *from != '\\')
            n = dv_str_utf8_char((dv_str){from, (size_t)(end - from)});
        if (n > 0) {
            memcpy(to, from, n);
            to += n;
            from += n;
        } else if (*from != '\\') {
            memcpy(to, replacement.p, replacement.n);
            to += replacement.n;
            from++;
        } else if (from[1] == 'u') {
            from += 2;
            to = unescape_code(&from, end, to);
        } else {
            *to++ = unescape_letter(from[1]);
            from += 2;
        }
        assert(from > before); /* or it would never end */
    }
    return (dv_str){text, (size_t)(to - text)};
}
