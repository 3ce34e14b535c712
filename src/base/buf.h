/* buf.h - text or bytes being built, under a ceiling given when it is made.
 *
 * What would pass the ceiling is left out whole and remembered: build first, ask once at the end
 * with dv_buf_check. The bytes are on the heap and always NUL-terminated. */
#ifndef DV_BASE_BUF_H
#define DV_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

struct dv_buf {
    char *p;
    size_t n;
    size_t size; /* bytes allocated, at most one more than the ceiling */
    size_t max;  /* the ceiling */
    bool is_over;
};

void dv_buf_init(struct dv_buf *buf, size_t max);
void dv_buf_fini(struct dv_buf *buf);
void dv_buf_clear(struct dv_buf *buf);         /* keeps the memory */
void dv_buf_cut(struct dv_buf *buf, size_t n); /* down to its first n bytes */

/* Makes room for n more bytes, which are likely to come: fewer steps than growing with them. */
void dv_buf_reserve(struct dv_buf *buf, size_t n);
/* Makes room for n more bytes at the end, counted as added; NULL when that passes the ceiling. */
void *dv_buf_extend_slow(struct dv_buf *buf, size_t n); /* for dv_buf_extend */
static inline void *dv_buf_extend(struct dv_buf *buf, size_t n)
{
    char *at;

    /* There are thousands of small additions to one buffer, and nearly all fit. */
    if (buf->is_over || n >= buf->size - buf->n)
        return dv_buf_extend_slow(buf, n);
    at = buf->p + buf->n;
    buf->n += n;
    at[n] = '\0';
    return at;
}

static inline void dv_buf_add(struct dv_buf *buf, dv_str s)
{
    void *at = dv_buf_extend(buf, s.n);

    if (at && s.n > 0)
        memcpy(at, s.p, s.n);
}

static inline void dv_buf_add_char(struct dv_buf *buf, char c)
{
    char *at = dv_buf_extend(buf, 1);

    if (at)
        *at = c;
}

void dv_buf_add_c(struct dv_buf *buf, const char *c);
void dv_buf_add_u64(struct dv_buf *buf, uint64_t value);
void dv_buf_add_i64(struct dv_buf *buf, int64_t value);
void dv_buf_printf(struct dv_buf *buf, const char *fmt, ...) DV_PRINTF(2, 3);
void dv_buf_vprintf(struct dv_buf *buf, const char *fmt, va_list args) DV_PRINTF(2, 0);
/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void dv_buf_add_json(struct dv_buf *buf, dv_str s);

dv_str dv_buf_str(const struct dv_buf *buf); /* borrowed until the next change */
const char *dv_buf_c(const struct dv_buf *buf);
/* Checks that nothing was left out. DV_RESOURCE_EXHAUSTED otherwise; `what` names the thing that
 * was built. */
DV_CHECKED bool dv_buf_check(const struct dv_buf *buf, const char *what, struct dv_err *err);

#endif
