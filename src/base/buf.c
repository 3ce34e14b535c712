#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"

#define FIRST_BYTES 256u

void dv_buf_init(struct dv_buf *buf, size_t max)
{
    *buf = (struct dv_buf){.max = max};
}

void dv_buf_fini(struct dv_buf *buf)
{
    free(buf->p);
    *buf = (struct dv_buf){.max = buf->max};
}

void dv_buf_clear(struct dv_buf *buf)
{
    buf->n = 0;
    buf->is_over = false;
    if (buf->p)
        buf->p[0] = '\0';
}

void dv_buf_cut(struct dv_buf *buf, size_t n)
{
    assert(n <= buf->n);
    if (buf->p)
        buf->p[n] = '\0';
    buf->n = n;
}

/* Whether n more bytes stay under the ceiling. */
static bool has_room(const struct dv_buf *buf, size_t n)
{
    return n <= buf->max && buf->n <= buf->max - n && n != SIZE_MAX;
}

/* The size is never more than the ceiling asks for: dv_buf_extend relies on it. */
static void grow(struct dv_buf *buf, size_t size)
{
    size_t size_max = buf->max < SIZE_MAX ? buf->max + 1 : SIZE_MAX;

    buf->size = dv_size_min(size, size_max);
    buf->p = dv_realloc(buf->p, buf->size);
    buf->p[buf->n] = '\0';
}

void dv_buf_reserve(struct dv_buf *buf, size_t n)
{
    if (has_room(buf, n) && n >= buf->size - buf->n)
        grow(buf, buf->n + n + 1);
}

void *dv_buf_extend_slow(struct dv_buf *buf, size_t n)
{
    size_t size = dv_size_max(buf->size, FIRST_BYTES);
    size_t end;
    char *at;

    if (buf->is_over || !has_room(buf, n)) {
        buf->is_over = true;
        return NULL;
    }
    end = buf->n + n;
    while (size <= end)
        size = size > SIZE_MAX / 2 ? end + 1 : size * 2;
    grow(buf, size);
    at = buf->p + buf->n;
    buf->n = end;
    buf->p[end] = '\0';
    return at;
}

void dv_buf_add_c(struct dv_buf *buf, const char *c)
{
    dv_buf_add(buf, dv_str_from_c(c));
}

void dv_buf_add_u64(struct dv_buf *buf, uint64_t value)
{
    char digits[DV_U64_DIGITS];

    dv_buf_add(buf, dv_u64_print(value, digits));
}

void dv_buf_add_i64(struct dv_buf *buf, int64_t value)
{
    if (value < 0)
        dv_buf_add_char(buf, '-');
    dv_buf_add_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void dv_buf_vprintf(struct dv_buf *buf, const char *fmt, va_list args)
{
    va_list again;
    char small[256];
    char *at;
    int n;

    va_copy(again, args);
    n = vsnprintf(small, sizeof(small), fmt, args);
    if (n < 0)
        abort(); /* only a bad format string of ours */
    at = dv_buf_extend(buf, (size_t)n);
    if (at && (size_t)n < sizeof(small))
        memcpy(at, small, (size_t)n);
    else if (at)
        (void)vsnprintf(at, (size_t)n + 1, fmt, again); /* fits: measured above */
    va_end(again);
}

void dv_buf_printf(struct dv_buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    dv_buf_vprintf(buf, fmt, args);
    va_end(args);
}

/* The escape of a byte that may not stand in a JSON string, or NULL. */
static const char *json_escape(unsigned char c, char hex[7])
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    default:
        if (c >= 0x20)
            return NULL;
        (void)snprintf(hex, 7, "\\u%04x", c); /* six characters and the end */
        return hex;
    }
}

void dv_buf_add_json(struct dv_buf *buf, dv_str s)
{
    size_t plain = 0; /* where the run of bytes that need nothing began */
    size_t at = 0;
    char hex[7];

    dv_buf_add_char(buf, '"');
    while (at < s.n) {
        unsigned char c = (unsigned char)s.p[at];
        const char *escape = c < 0x80 ? json_escape(c, hex) : NULL;
        size_t bytes = c < 0x80 ? 1 : dv_str_utf8_char(dv_str_slice(s, at, s.n));

        if (bytes == 0) {
            escape = "\xef\xbf\xbd";
            bytes = 1;
        }
        if (escape) {
            dv_buf_add(buf, dv_str_slice(s, plain, at));
            dv_buf_add_c(buf, escape);
            plain = at + bytes;
        }
        at += bytes;
    }
    dv_buf_add(buf, dv_str_slice(s, plain, s.n));
    dv_buf_add_char(buf, '"');
}

dv_str dv_buf_str(const struct dv_buf *buf)
{
    return (dv_str){buf->p ? buf->p : "", buf->n};
}

const char *dv_buf_c(const struct dv_buf *buf)
{
    return buf->p ? buf->p : "";
}

bool dv_buf_check(const struct dv_buf *buf, const char *what, struct dv_err *err)
{
    if (!buf->is_over)
        return true;
    return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%s: larger than the limit of %zu bytes", what,
                   buf->max);
}
