/* regex_reader.h - a pattern of RE2 that is read, and what PCRE2 gets of it: for regex_syntax.c and
 * regex_escape.c. */
#ifndef DV_CEL_REGEX_READER_H
#define DV_CEL_REGEX_READER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/ascii.h"
#include "base/str.h"
#include "cel/value/build.h"

#define DV_REGEX_NESTING_MAX 200u

struct dv_regex_reader {
    dv_str in;
    size_t at;
    struct dv_cel_build *out;
    unsigned nesting;
    bool has_no_posix; /* ":]" does not come any more */
    /* How often the last atom may be repeated, for a{500}{3} and (a{500}){3}: RE2 limits the
     * product. */
    unsigned repeats[DV_REGEX_NESTING_MAX + 1];
};

static inline char dv_regex_peek(const struct dv_regex_reader *r, size_t ahead)
{
    return r->at + ahead < r->in.n ? r->in.p[r->at + ahead] : '\0';
}

static inline bool dv_regex_is_at_end(const struct dv_regex_reader *r)
{
    return r->at >= r->in.n;
}

static inline bool dv_regex_starts(const struct dv_regex_reader *r, const char *text)
{
    return dv_str_starts_with(dv_str_slice(r->in, r->at, r->in.n), dv_str_from_c(text));
}

static inline void dv_regex_put(struct dv_regex_reader *r, const char *text)
{
    dv_cel_build_add(r->out, dv_str_from_c(text));
}

/* Copies n bytes, which must be there. */
static inline void dv_regex_copy(struct dv_regex_reader *r, size_t n)
{
    assert(n <= r->in.n - r->at);
    dv_cel_build_add(r->out, dv_str_slice(r->in, r->at, r->at + n));
    r->at += n;
}

/* Copies one character. There is always one: the whole pattern is UTF-8, and nothing but whole
 * characters is ever taken from it. */
static inline void dv_regex_copy_char(struct dv_regex_reader *r)
{
    size_t n = dv_str_utf8_char(dv_str_slice(r->in, r->at, r->in.n));

    assert(n > 0);
    dv_regex_copy(r, n);
}

static inline bool dv_regex_is_alnum(char c)
{
    return dv_is_alphanumeric(c) || c == '_';
}

/* regex_escape.c. They return what is wrong with the pattern, or NULL. */

/* Copies an escape that means the same in both, inside of a class or not. */
const char *dv_regex_read_escape(struct dv_regex_reader *r, bool in_class);
/* Reads \Q...\E, in which every character stands for itself. False when it is empty. */
bool dv_regex_read_quoted(struct dv_regex_reader *r);

#endif
