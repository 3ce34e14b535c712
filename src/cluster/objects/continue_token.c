/* continue_token.c - continue tokens of lists: the version of the first page and the last key, in
 * the reference's encoding. Clients send back what they got, or anything else: all of it is
 * checked. */
#include "cluster/objects/continue_token.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

/* The ceiling of a token: a key has at most two names of 253 bytes, so a longer token is not
 * ours. */
#define TOKEN_BYTES_MAX 8192u

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int digit_value(char c)
{
    const char *p = memchr(digits, c, sizeof(digits) - 1);

    return p ? (int)(p - digits) : -1;
}

static dv_str encode(dv_str bytes, struct dv_arena *arena)
{
    char *text = dv_arena_alloc_raw(arena, bytes.n * 2 + 4, 1);
    size_t n = 0;

    for (size_t at = 0; at < bytes.n; at += 3) {
        size_t left = bytes.n - at;
        uint32_t word = (uint32_t)(unsigned char)bytes.p[at] << 16;

        word |= left > 1 ? (uint32_t)(unsigned char)bytes.p[at + 1] << 8 : 0;
        word |= left > 2 ? (uint32_t)(unsigned char)bytes.p[at + 2] : 0;
        for (size_t i = 0; i < 4 && i <= left; i++)
            text[n++] = digits[word >> (18 - 6 * i) & 63];
    }
    return (dv_str){text, n};
}

static bool decode(dv_str text, struct dv_arena *arena, dv_str *bytes, struct dv_err *err)
{
    char *p = dv_arena_alloc(arena, text.n + 1, 1);
    uint32_t word = 0;
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        int value = digit_value(text.p[i]);

        if (value < 0 || (i + 1 == text.n && i % 4 == 0))
            return dv_fail(err, DV_INVALID_ARGUMENT, "illegal base64 data at input byte %zu", i);
        word = word << 6 | (uint32_t)value;
        if (i % 4 != 0)
            p[n++] = (char)(word >> (6 - 2 * (i % 4)) & 255);
    }
    *bytes = (dv_str){p, n};
    return true;
}

/* Refuses a text that cannot be JSON from its first byte on, in the words of the reference's
 * reader. */
static bool check_start(dv_str bytes, struct dv_err *err)
{
    unsigned first;

    if (bytes.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "unexpected end of JSON input");
    first = (unsigned char)bytes.p[0];
    if (first == '{')
        return true;
    if (first >= 0x80 || first < 0x20)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "invalid character '\\u%04x' looking for beginning of value", first);
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "invalid character '%c' looking for beginning of value", first);
}

static bool read_token(const struct dv_json *doc, struct dv_continue *token, struct dv_err *err)
{
    const struct dv_json *version = dv_json_get(doc, DV_STR("v"));
    const struct dv_json *start = dv_json_get(doc, DV_STR("start"));
    const struct dv_json *number = dv_json_get(doc, DV_STR("rv"));
    dv_str v = {0};

    if ((version && !dv_json_as_str(version, &v, err)) ||
        (number && !dv_json_as_i64(number, &token->version, err)) ||
        (start && !dv_json_as_str(start, &token->after, err)))
        return false;
    if (!dv_str_eq(v, DV_STR("meta.k8s.io/v1")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "server does not recognize this encoded version");
    if (!number || token->version == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "incorrect encoded start resourceVersion");
    if (token->after.n < 2 || token->after.p[token->after.n - 1] != '\0')
        return dv_fail(err, DV_INVALID_ARGUMENT, "encoded start key");
    token->after.n--;
    return true;
}

dv_str dv_continue_print(const struct dv_continue *token, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TOKEN_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"v\":\"meta.k8s.io/v1\",\"rv\":");
    dv_buf_add_i64(&buf, token->version);
    dv_buf_add_c(&buf, ",\"start\":");
    dv_buf_add_json(&buf, token->after);
    buf.p[--buf.n] = '\0'; /* removes the closing quote */
    dv_buf_add_c(&buf, "\\u0000\"}");
    text = encode(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

bool dv_continue_parse(dv_str text, struct dv_arena *arena, struct dv_continue *token,
                       struct dv_err *err)
{
    const struct dv_json *doc;
    dv_str bytes = {0};

    if (text.n > TOKEN_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "continue key is not valid: too long");
    if (!decode(text, arena, &bytes, err) || !check_start(bytes, err))
        return dv_wrap(err, "continue key is not valid");
    doc = dv_json_parse(bytes, &(struct dv_json_opts){.depth_max = 2}, arena, err);
    if (!doc || !read_token(doc, token, err))
        return dv_wrap(err, "continue key is not valid");
    return true;
}
