/* str.h - borrowed text with its length.
 *
 * A dv_str never owns its bytes and is not NUL-terminated. {NULL, 0} and {"", 0} are both the
 * empty string. */
#ifndef DV_BASE_STR_H
#define DV_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/defs.h"

struct dv_arena;

typedef struct dv_str {
    const char *p;
    size_t n;
} dv_str;

/* Makes a dv_str of a literal: DV_STR("abc"). DV_STR_INIT("abc") is for the initializers of static
 * tables. */
#define DV_STR(literal) ((dv_str){(literal), sizeof("" literal) - 1})
#define DV_STR_INIT(literal)                                                                       \
    {                                                                                              \
        (literal), sizeof("" literal) - 1                                                          \
    }
#define DV_STR_NONE ((dv_str){NULL, 0})
/* The arguments for "%.*s". Text longer than an int is cut, never overrun. */
#define DV_FMT(s) (dv_str_fmt_len(s)), ((s).p ? (s).p : "")

int dv_str_fmt_len(dv_str s);
dv_str dv_str_from_c(const char *c); /* NULL is the empty string */

static inline bool dv_str_eq(dv_str a, dv_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
bool dv_str_eq_nocase(dv_str a, dv_str b); /* ASCII letters only */
int dv_str_cmp(dv_str a, dv_str b);        /* by bytes, then by length: what Go and etcd sort by */
/* dv_str_cmp for qsort and bsearch: on texts, or on structs that begin with one. */
int dv_str_compare(const void *a, const void *b);
/* Compares in natural order: "gpu2" comes before "gpu10". */
int dv_str_natural_cmp(dv_str a, dv_str b);
static inline bool dv_str_starts_with(dv_str s, dv_str prefix)
{
    return s.n >= prefix.n && dv_str_eq((dv_str){s.p, prefix.n}, prefix);
}
bool dv_str_ends_with(dv_str s, dv_str suffix);
/* s[from, to), both clamped to the length. */
static inline dv_str dv_str_slice(dv_str s, size_t from, size_t to)
{
    to = to < s.n ? to : s.n;
    from = from < to ? from : to;
    return s.p ? (dv_str){s.p + from, to - from} : (dv_str){"", 0};
}
/* Takes the character off the front, when it is there. */
static inline bool dv_str_take(dv_str *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = dv_str_slice(*s, 1, s->n);
    return true;
}
/* Offset of the first match, or s.n. */
size_t dv_str_find(dv_str s, dv_str needle);
size_t dv_str_find_char(dv_str s, char c);
/* Takes the text before the first `separator` off *rest, and the separator with it. False when
 * *rest is used up: a text without a separator gives one piece, "a," gives "a" and "". Start with
 * rest->p not NULL. */
bool dv_str_split(dv_str *rest, char separator, dv_str *piece);
/* How many single changes make one word the other: letters added, left out, replaced, or swapped
 * with the next. */
size_t dv_str_distance(dv_str a, dv_str b);
/* The distance from which on a word is not this one mistyped: with two changes, a short word
 * becomes anything. */
size_t dv_str_distance_max(dv_str word);
dv_str dv_str_trim(dv_str s);  /* spaces, tabs, CR, LF at both ends */
bool dv_str_is_utf8(dv_str s); /* as RFC 3629: no surrogates, nothing overlong */
/* Bytes of the character that s begins with; 0 when it is empty or not UTF-8 there. */
size_t dv_str_utf8_char(dv_str s);

/* Copies to *at, and moves that behind the copy: for texts that share a block with their owner. */
dv_str dv_str_put(dv_str s, char **at);

/* Copies into `arena`. */
dv_str dv_str_copy(dv_str s, struct dv_arena *arena);
const char *dv_str_to_c(dv_str s, struct dv_arena *arena); /* NUL-terminated */
dv_str dv_str_printf(struct dv_arena *arena, const char *fmt, ...) DV_PRINTF(2, 3);
/* The texts one behind the other, in `arena`: a tenth of dv_str_printf's time, for what is made
 * many thousand times. */
dv_str dv_str_concat(const dv_str *texts, size_t n, struct dv_arena *arena);

#endif
