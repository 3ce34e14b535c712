#include "rest/target.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "rest/rest.h"

/* Returns the byte that the text at `at` stands for, or -1 for a bad escape; *at is moved past
 * it. */
static int next_byte(dv_str text, size_t *at)
{
    size_t begin = *at;

    if (text.p[begin] != '%') {
        *at += 1;
        return (unsigned char)text.p[begin];
    }
    *at += 3; /* a bad escape is refused, so nobody uses *at then */
    return dv_percent_byte(text, begin);
}

/* Decodes a text that was checked before. */
static dv_str decode(dv_str text, bool plus_is_space, struct dv_arena *arena)
{
    char *decoded;
    size_t n = 0;

    if (dv_str_find_char(text, '%') == text.n &&
        (!plus_is_space || dv_str_find_char(text, '+') == text.n))
        return text; /* nearly all texts have no escapes */
    decoded = dv_arena_alloc_raw(arena, text.n, 1);
    for (size_t at = 0; at < text.n;) {
        bool is_plus = text.p[at] == '+';
        int byte = next_byte(text, &at);

        decoded[n++] = is_plus && plus_is_space ? ' ' : (char)byte;
    }
    return (dv_str){decoded, n};
}

/* Returns the length of the UTF-8 character that begins with this byte; 0: none does. */
static size_t char_bytes(int first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static bool check_encoding(dv_str text, struct dv_err *err)
{
    for (size_t at = 0; at < text.n;) {
        size_t begin = at;
        char bytes[4] = {0};
        size_t n = 1;

        for (size_t i = 0; i < n; i++) {
            int byte = at < text.n ? next_byte(text, &at) : -1;

            if (i == 0 && byte > 0)
                n = char_bytes(byte);
            if (byte <= 0 || n == 0)
                return dv_fail(err, DV_INVALID_ARGUMENT,
                               "bad encoding in the request target at \"%.*s\"",
                               DV_FMT(dv_str_slice(text, begin, begin + 12)));
            bytes[i] = (char)byte;
        }
        if (!dv_str_is_utf8((dv_str){bytes, n}))
            return dv_fail(err, DV_INVALID_ARGUMENT, "the request target is not UTF-8 at \"%.*s\"",
                           DV_FMT(dv_str_slice(text, begin, begin + 12)));
    }
    return true;
}

/* Returns the target without the scheme and host that clients send to proxies, and may send to
 * servers. */
static dv_str strip_host(dv_str target)
{
    static const dv_str schemes[] = {DV_STR_INIT("http://"), DV_STR_INIT("https://")};

    for (size_t i = 0; i < DV_COUNT(schemes); i++) {
        dv_str rest = dv_str_slice(target, schemes[i].n, target.n);
        size_t end = 0;

        if (!dv_str_eq_nocase(dv_str_slice(target, 0, schemes[i].n), schemes[i]))
            continue;
        while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
            end++;
        if (end == rest.n)
            return DV_STR("/");
        return dv_str_slice(rest, end, rest.n);
    }
    return target;
}

bool dv_rest_target_parse(dv_str target, dv_str *path, dv_str *query, struct dv_err *err)
{
    dv_str rest = strip_host(target);
    size_t end = dv_str_find_char(rest, '?');

    for (size_t i = 0; i < rest.n; i++)
        if (rest.p[i] <= ' ' || rest.p[i] >= 0x7f || rest.p[i] == '#')
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "the request target has a byte 0x%02x that must be encoded",
                           (unsigned char)rest.p[i]);
    if (rest.n == 0 || rest.p[0] != '/')
        return dv_fail(err, DV_INVALID_ARGUMENT, "the request target \"%.*s\" is no path",
                       DV_FMT(dv_str_slice(rest, 0, 40)));
    if (!check_encoding(rest, err))
        return false;
    *path = dv_str_slice(rest, 0, end);
    *query = dv_str_slice(rest, end + 1, rest.n);
    return true;
}

bool dv_rest_path_next(dv_str *rest, struct dv_arena *arena, dv_str *segment)
{
    dv_str text;
    size_t end;

    if (rest->n == 0)
        return false;
    text = dv_str_slice(*rest, 1, rest->n); /* without the slash before it */
    end = dv_str_find_char(text, '/');
    *segment = decode(dv_str_slice(text, 0, end), false, arena);
    *rest = dv_str_slice(text, end, text.n);
    return true;
}

bool dv_rest_query_next(dv_str *rest, struct dv_arena *arena, dv_str *name, dv_str *value)
{
    dv_str pair;
    size_t end;

    do { /* "a&&b" has two pairs */
        if (rest->n == 0)
            return false;
        end = dv_str_find_char(*rest, '&');
        pair = dv_str_slice(*rest, 0, end);
        *rest = dv_str_slice(*rest, end + 1, rest->n);
    } while (pair.n == 0);
    end = dv_str_find_char(pair, '=');
    *name = decode(dv_str_slice(pair, 0, end), true, arena);
    *value = decode(dv_str_slice(pair, end + 1, pair.n), true, arena);
    return true;
}

bool dv_rest_query_get(dv_str query, dv_str name, struct dv_arena *arena, dv_str *value)
{
    dv_str found_name;
    dv_str found_value;

    while (dv_rest_query_next(&query, arena, &found_name, &found_value)) {
        if (!dv_str_eq(found_name, name))
            continue;
        *value = found_value;
        return true;
    }
    return false;
}

void dv_rest_add_encoded(struct dv_buf *buf, dv_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (dv_is_alphanumeric((char)c) || c == '-' || c == '.' || c == '_' || c == '~')
            dv_buf_add_char(buf, (char)c);
        else
            dv_buf_printf(buf, "%%%02X", c);
    }
}
