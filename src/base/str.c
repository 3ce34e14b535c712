#include "base/str.h"
#include "base/ascii.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"

/* The most mistakes that are made in one word; in a short one, one less. */
#define TYPOS_MAX 2u
#define SHORT_WORD_MAX 4u

int dv_str_fmt_len(dv_str s)
{
    return s.n > INT_MAX ? INT_MAX : (int)s.n;
}

dv_str dv_str_from_c(const char *c)
{
    return c ? (dv_str){c, strlen(c)} : (dv_str){"", 0};
}

bool dv_str_eq_nocase(dv_str a, dv_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (dv_to_lower(a.p[i]) != dv_to_lower(b.p[i]))
            return false;
    return true;
}

int dv_str_cmp(dv_str a, dv_str b)
{
    size_t n = dv_size_min(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order != 0)
        return order < 0 ? -1 : 1;
    return (a.n > b.n) - (a.n < b.n);
}

int dv_str_compare(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

/* The end of the digits from `at` on; *first is set to the first of them that is not zero. */
static size_t number_end(dv_str s, size_t at, size_t *first)
{
    while (at < s.n && s.p[at] == '0')
        at++;
    *first = at;
    while (at < s.n && dv_is_digit(s.p[at]))
        at++;
    return at;
}

int dv_str_natural_cmp(dv_str a, dv_str b)
{
    size_t i = 0;
    size_t k = 0;

    while (i < a.n && k < b.n) {
        if (dv_is_digit(a.p[i]) && dv_is_digit(b.p[k])) {
            size_t from_a, from_b;
            size_t to_a = number_end(a, i, &from_a);
            size_t to_b = number_end(b, k, &from_b);
            int order;

            if (to_a - from_a != to_b - from_b)
                return to_a - from_a < to_b - from_b ? -1 : 1;
            order = memcmp(a.p + from_a, b.p + from_b, to_a - from_a);
            if (order != 0)
                return order;
            i = to_a;
            k = to_b;
        } else if (a.p[i] != b.p[k]) {
            return (unsigned char)a.p[i] < (unsigned char)b.p[k] ? -1 : 1;
        } else {
            i++;
            k++;
        }
    }
    if (i < a.n || k < b.n)
        return k < b.n ? -1 : 1;
    return dv_str_cmp(a, b); /* the numbers are equal, as in "d1" and "d01" */
}

bool dv_str_ends_with(dv_str s, dv_str suffix)
{
    return s.n >= suffix.n && dv_str_eq(dv_str_slice(s, s.n - suffix.n, s.n), suffix);
}

size_t dv_str_find(dv_str s, dv_str needle)
{
    const char *found;

    if (needle.n == 0)
        return 0;
    if (s.n == 0)
        return s.n;
    found = memmem(s.p, s.n, needle.p, needle.n);
    return found ? (size_t)(found - s.p) : s.n;
}

size_t dv_str_find_char(dv_str s, char c)
{
    const char *found = s.n ? memchr(s.p, c, s.n) : NULL;

    return found ? (size_t)(found - s.p) : s.n;
}

bool dv_str_split(dv_str *rest, char separator, dv_str *piece)
{
    size_t end;

    if (!rest->p)
        return false;
    end = dv_str_find_char(*rest, separator);
    *piece = (dv_str){rest->p, end};
    if (end == rest->n)
        *rest = (dv_str){NULL, 0};
    else
        *rest = dv_str_slice(*rest, end + 1, rest->n);
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

dv_str dv_str_trim(dv_str s)
{
    while (s.n > 0 && is_space(s.p[0]))
        s = dv_str_slice(s, 1, s.n);
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Bytes of the well-formed character at the start of s (not empty); 0 when it is not one. */
static size_t utf8_char_bytes(const unsigned char *p, size_t n)
{
    /* The first byte decides the length and the range of the second (Unicode, table 3-7). */
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t bytes;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0x00, 1},
        {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < DV_COUNT(forms); i++) {
        if (p[0] < forms[i].first_min || p[0] > forms[i].first_max)
            continue;
        if (forms[i].bytes == 1)
            return 1;
        if (n < forms[i].bytes || p[1] < forms[i].second_min || p[1] > forms[i].second_max)
            return 0;
        for (size_t k = 2; k < forms[i].bytes; k++)
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].bytes;
    }
    return 0;
}

bool dv_str_is_utf8(dv_str s)
{
    size_t at = 0;

    while (at < s.n) {
        uint64_t eight;
        size_t bytes;

        /* Names are nearly always ASCII: eight bytes at a time. */
        if (s.n - at >= sizeof(eight)) {
            memcpy(&eight, s.p + at, sizeof(eight));
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof(eight);
                continue;
            }
        }
        bytes = utf8_char_bytes((const unsigned char *)s.p + at, s.n - at);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

size_t dv_str_utf8_char(dv_str s)
{
    return s.n ? utf8_char_bytes((const unsigned char *)s.p, s.n) : 0;
}

dv_str dv_str_put(dv_str s, char **at)
{
    dv_str copy = {*at, s.n};

    if (s.n > 0)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

dv_str dv_str_copy(dv_str s, struct dv_arena *arena)
{
    char *p;

    if (s.n == 0)
        return (dv_str){"", 0};
    p = dv_arena_alloc_raw(arena, s.n, 1);
    memcpy(p, s.p, s.n);
    return (dv_str){p, s.n};
}

const char *dv_str_to_c(dv_str s, struct dv_arena *arena)
{
    char *p = dv_arena_alloc_array(arena, s.n + 1, 1, 1);

    if (s.n > 0)
        memcpy(p, s.p, s.n);
    return p;
}

dv_str dv_str_printf(struct dv_arena *arena, const char *fmt, ...)
{
    va_list args;
    char none[1];
    char *p;
    int n;

    va_start(args, fmt);
    n = vsnprintf(none, sizeof(none), fmt, args); /* only measures */
    va_end(args);
    if (n < 0)
        abort(); /* only a bad format string of ours */
    p = dv_arena_alloc(arena, (size_t)n + 1, 1);
    va_start(args, fmt);
    (void)vsnprintf(p, (size_t)n + 1, fmt, args); /* measured above */
    va_end(args);
    return (dv_str){p, (size_t)n};
}

size_t dv_str_distance(dv_str a, dv_str b)
{
    size_t rows[3][48] = {0}; /* longer words are compared as far as this */
    size_t n = dv_size_min(b.n, DV_COUNT(rows[0]) - 1);
    size_t *row = rows[0];

    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; i < a.n; i++) {
        const size_t *above = row;
        const size_t *before = rows[(i + 2) % 3]; /* two above */

        row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t k = 0; k < n; k++) {
            row[k + 1] =
                dv_size_min(dv_size_min(row[k], above[k + 1]) + 1, above[k] + (a.p[i] != b.p[k]));
            if (i > 0 && k > 0 && a.p[i] == b.p[k - 1] && a.p[i - 1] == b.p[k])
                row[k + 1] = dv_size_min(row[k + 1], before[k - 1] + 1);
        }
    }
    return row[n];
}

size_t dv_str_distance_max(dv_str word)
{
    return word.n > SHORT_WORD_MAX ? TYPOS_MAX + 1 : dv_size_min(word.n, TYPOS_MAX);
}

dv_str dv_str_concat(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    size_t n_bytes = 0;
    char *start;
    char *at;

    for (size_t i = 0; i < n; i++)
        if (!dv_size_add(n_bytes, texts[i].n, &n_bytes))
            abort();
    if (n_bytes == 0)
        return (dv_str){"", 0};
    start = at = dv_arena_alloc_raw(arena, n_bytes, 1);
    for (size_t i = 0; i < n; i++)
        (void)dv_str_put(texts[i], &at);
    return (dv_str){start, n_bytes};
}
