/* lib_strings.c - on text, counted in characters. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/functions/string_format.h"
#include "cel/value/build.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

/* The byte where character i begins; false when there are fewer. The end of the text counts as a
 * character. */
static bool at_char(dv_str s, int64_t i, size_t *byte)
{
    size_t at = 0;

    if (i < 0)
        return false;
    for (; i > 0; i--) {
        if (at >= s.n)
            return false;
        at++;
        while (at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80)
            at++;
    }
    *byte = at;
    return true;
}

static struct dv_cel_val out_of_range(struct dv_cel_run *run, int64_t index)
{
    return dv_cel_error_printf(run->arena, "index out of range: %lld", (long long)index);
}

static void fn_contains(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(args[1].s.n == 0 || dv_str_find(args[0].s, args[1].s) < args[0].s.n);
}

static void fn_starts_with(struct dv_cel_run *run, const struct dv_cel_val *args,
                           struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(dv_str_starts_with(args[0].s, args[1].s));
}

static void fn_ends_with(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_bool(dv_str_ends_with(args[0].s, args[1].s));
}

static void fn_char_at(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    size_t from;

    if (!at_char(args[0].s, args[1].i, &from)) {
        *out = out_of_range(run, args[1].i);
        return;
    }
    *out = dv_cel_string(dv_str_slice(
        args[0].s, from, from + dv_str_utf8_char(dv_str_slice(args[0].s, from, args[0].s.n))));
}

/* -- Searching ----------------------------------------------------------------------------------
 */

static void find_first(struct dv_cel_run *run, const struct dv_cel_val *args, int64_t offset,
                       struct dv_cel_val *out)
{
    dv_str text = args[0].s;
    size_t from;
    size_t at;

    /* An empty part is found at the offset itself, wherever that is. */
    if (args[1].s.n == 0) {
        *out = dv_cel_int(offset);
        return;
    }
    if (offset < 0) {
        *out = out_of_range(run, offset);
        return;
    }
    if (!at_char(text, offset, &from)) {
        *out = dv_cel_int(-1);
        return;
    }
    at = dv_str_find(dv_str_slice(text, from, text.n), args[1].s);
    *out = dv_cel_int(
        from + at >= text.n ? -1 : (int64_t)dv_cel_utf8_len(dv_str_slice(text, 0, from + at)));
}

static void fn_index_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    find_first(run, args, 0, out);
}

static void fn_index_of_from(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    find_first(run, args, args[2].i, out);
}

static dv_str reversed(dv_str text, struct dv_arena *arena)
{
    char *p = dv_arena_alloc_raw(arena, text.n, 1);

    for (size_t i = 0; i < text.n; i++)
        p[i] = text.p[text.n - 1 - i];
    return (dv_str){p, text.n};
}

/* Finds the last place at or before byte `to`. It searches from behind, since looking at each place
 * from the front takes the product of both lengths. */
static struct dv_cel_val find_last(struct dv_cel_run *run, dv_str text, dv_str part, size_t to)
{
    size_t at;

    if (part.n > text.n)
        return dv_cel_int(-1);
    text = dv_str_slice(text, 0, to > text.n - part.n ? text.n : to + part.n);
    at = dv_str_find(reversed(text, run->arena), reversed(part, run->arena));
    if (at == text.n)
        return dv_cel_int(-1);
    return dv_cel_int((int64_t)dv_cel_utf8_len(dv_str_slice(text, 0, text.n - at - part.n)));
}

static void fn_last_index_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                             struct dv_cel_val *out)
{
    *out = args[1].s.n == 0 ? dv_cel_int((int64_t)dv_cel_utf8_len(args[0].s))
                            : find_last(run, args[0].s, args[1].s, args[0].s.n);
}

static void fn_last_index_of_from(struct dv_cel_run *run, const struct dv_cel_val *args,
                                  struct dv_cel_val *out)
{
    size_t to;

    if (args[1].s.n == 0)
        *out = dv_cel_int(args[2].i);
    else if (args[2].i < 0)
        *out = out_of_range(run, args[2].i);
    else if (!at_char(args[0].s, args[2].i, &to))
        *out = dv_cel_int(-1);
    else
        *out = find_last(run, args[0].s, args[1].s, to);
}

/* -- Other text from text -------------------------------------------------------------------------
 */

static struct dv_cel_val map_ascii(struct dv_cel_run *run, dv_str text, char from, char to)
{
    char *copy = dv_arena_alloc_raw(run->arena, text.n, 1);

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        copy[i] = c >= from && c <= to ? (char)(c ^ 0x20) : c;
    }
    return dv_cel_string((dv_str){copy, text.n});
}

static void fn_lower(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = map_ascii(run, args[0].s, 'A', 'Z');
}

static void fn_upper(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    *out = map_ascii(run, args[0].s, 'a', 'z');
}

/* Makes at most `max` replacements; negative: all. An empty `old` is before and after each
 * character. */
static void replace(struct dv_cel_run *run, const struct dv_cel_val *args, int64_t max,
                    struct dv_cel_val *out)
{
    struct dv_cel_build build = {.arena = run->arena};
    dv_str rest = args[0].s;
    dv_str old = args[1].s;
    bool is_start = true;

    for (; max != 0; max--) {
        size_t at = old.n > 0 ? dv_str_find(rest, old) : 0;

        if (old.n == 0 && !is_start) {
            at = dv_str_utf8_char(rest);
            if (at == 0)
                break;
        } else if (old.n > 0 && at >= rest.n) {
            break;
        }
        dv_cel_build_add(&build, dv_str_slice(rest, 0, at));
        dv_cel_build_add(&build, args[2].s);
        rest = dv_str_slice(rest, at + old.n, rest.n);
        is_start = false;
    }
    dv_cel_build_add(&build, rest);
    *out = dv_cel_build_end(run, &build);
}

static void fn_replace(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    replace(run, args, -1, out);
}

static void fn_replace_n(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    replace(run, args, args[3].i, out);
}

static size_t n_pieces(dv_str text, dv_str separator)
{
    size_t n = 1;

    if (separator.n == 0)
        return dv_cel_utf8_len(text);
    for (size_t at; (at = dv_str_find(text, separator)) < text.n; n++)
        text = dv_str_slice(text, at + separator.n, text.n);
    return n;
}

/* Splits into at most `max` pieces; negative: all. */
static void split(struct dv_cel_run *run, const struct dv_cel_val *args, int64_t max,
                  struct dv_cel_val *out)
{
    dv_str rest = args[0].s;
    dv_str separator = args[1].s;
    size_t n = max == 0 ? 0 : n_pieces(rest, separator);
    struct dv_cel_val *pieces;

    if (max >= 0 && (uint64_t)max < n)
        n = (size_t)max;
    if (n > DV_CEL_LIST_MAX) {
        dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, out);
        return;
    }
    *out = dv_cel_list_new(n, run->arena, &pieces);
    for (size_t i = 0; i < n; i++) {
        size_t at = separator.n > 0 ? dv_str_find(rest, separator) : dv_str_utf8_char(rest);

        if (i + 1 == n)
            at = rest.n;
        pieces[i] = dv_cel_string(dv_str_slice(rest, 0, at));
        rest = dv_str_slice(rest, at + separator.n, rest.n);
    }
}

static void fn_split(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    split(run, args, -1, out);
}

static void fn_split_n(struct dv_cel_run *run, const struct dv_cel_val *args,
                       struct dv_cel_val *out)
{
    split(run, args, args[2].i, out);
}

static void fn_substring(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    size_t from;

    *out = at_char(args[0].s, args[1].i, &from)
               ? dv_cel_string(dv_str_slice(args[0].s, from, args[0].s.n))
               : out_of_range(run, args[1].i);
}

static void fn_substring_to(struct dv_cel_run *run, const struct dv_cel_val *args,
                            struct dv_cel_val *out)
{
    size_t from;
    size_t to;

    if (args[1].i > args[2].i)
        *out = dv_cel_error_printf(run->arena, "invalid substring range. start: %lld, end: %lld",
                                   (long long)args[1].i, (long long)args[2].i);
    else if (!at_char(args[0].s, args[1].i, &from))
        *out = out_of_range(run, args[1].i);
    else if (!at_char(args[0].s, args[2].i, &to))
        *out = out_of_range(run, args[2].i);
    else
        *out = dv_cel_string(dv_str_slice(args[0].s, from, to));
}

/* The length of a character of Unicode's White_Space at the front; 0: there is none. */
static size_t blank_at(dv_str s)
{
    static const char *const blanks[] = {
        "\t",           "\n",           "\v",
        "\f",           "\r",           " ",
        "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
        "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
        "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85",
        "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
        "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
        "\xe3\x80\x80",
    };

    for (size_t i = 0; i < DV_COUNT(blanks); i++)
        if (dv_str_starts_with(s, dv_str_from_c(blanks[i])))
            return strlen(blanks[i]);
    return 0;
}

static void fn_trim(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    dv_str s = args[0].s;
    size_t end = 0;
    size_t n;

    (void)run;
    while ((n = blank_at(s)) > 0)
        s = dv_str_slice(s, n, s.n);
    for (size_t at = 0; at < s.n;) {
        n = blank_at(dv_str_slice(s, at, s.n));
        at += n > 0 ? n : 1;
        if (n == 0)
            end = at;
    }
    *out = dv_cel_string(dv_str_slice(s, 0, end));
}

static void join(struct dv_cel_run *run, const struct dv_cel_val *args, dv_str separator,
                 struct dv_cel_val *out)
{
    struct dv_cel_build build = {.arena = run->arena};

    for (uint32_t i = 0; i < args[0].list->n; i++) {
        if (args[0].list->v[i].kind != DV_CEL_STRING) {
            *out = dv_cel_no_overload(DV_STR("join"));
            return;
        }
        if (i > 0)
            dv_cel_build_add(&build, separator);
        dv_cel_build_add(&build, args[0].list->v[i].s);
    }
    *out = dv_cel_build_end(run, &build);
}

static void fn_join(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    join(run, args, DV_STR_NONE, out);
}

static void fn_join_with(struct dv_cel_run *run, const struct dv_cel_val *args,
                         struct dv_cel_val *out)
{
    join(run, args, args[1].s, out);
}

static void fn_quote(struct dv_cel_run *run, const struct dv_cel_val *args, struct dv_cel_val *out)
{
    struct dv_cel_build build = {.arena = run->arena};

    dv_cel_build_char(&build, '"');
    for (size_t i = 0; i < args[0].s.n; i++) {
        if (!dv_cel_build_escape(&build, args[0].s.p[i]))
            dv_cel_build_char(&build, args[0].s.p[i]);
    }
    dv_cel_build_char(&build, '"');
    *out = dv_cel_build_end(run, &build);
}

static const struct dv_cel_overload rows[] = {
    {"contains",      ".ss>b",   fn_contains,           DV_CEL_COST_CONTAINS, 0},
    {"endsWith",      ".ss>b",   fn_ends_with,          DV_CEL_COST_AFFIX,    0},
    {"startsWith",    ".ss>b",   fn_starts_with,        DV_CEL_COST_AFFIX,    0},
    {"charAt",        ".si>s",   fn_char_at,            DV_CEL_COST_ONE,      0},
    {"indexOf",       ".ss>i",   fn_index_of,           DV_CEL_COST_TRAVERSE, 0},
    {"indexOf",       ".ssi>i",  fn_index_of_from,      DV_CEL_COST_TRAVERSE, 0},
    {"lastIndexOf",   ".ss>i",   fn_last_index_of,      DV_CEL_COST_TRAVERSE, 0},
    {"lastIndexOf",   ".ssi>i",  fn_last_index_of_from, DV_CEL_COST_TRAVERSE, 0},
    {"lowerAscii",    ".s>s",    fn_lower,              DV_CEL_COST_STRING,   0},
    {"upperAscii",    ".s>s",    fn_upper,              DV_CEL_COST_STRING,   0},
    {"replace",       ".sss>s",  fn_replace,            DV_CEL_COST_REPLACE,  0},
    {"replace",       ".sssi>s", fn_replace_n,          DV_CEL_COST_REPLACE,  0},
    {"split",         ".ss>Ls",  fn_split,              DV_CEL_COST_SPLIT,    0},
    {"split",         ".ssi>Ls", fn_split_n,            DV_CEL_COST_SPLIT,    0},
    {"substring",     ".si>s",   fn_substring,          DV_CEL_COST_STRING,   0},
    {"substring",     ".sii>s",  fn_substring_to,       DV_CEL_COST_STRING,   0},
    {"trim",          ".s>s",    fn_trim,               DV_CEL_COST_STRING,   0},
    {"join",          ".Ls>s",   fn_join,               DV_CEL_COST_JOIN,     0},
    {"join",          ".Lss>s",  fn_join_with,          DV_CEL_COST_JOIN,     0},
    {"format",        ".sL?>s",  dv_cel_string_format,  DV_CEL_COST_FORMAT,   0},
    {"strings.quote", "s>s",     fn_quote,              DV_CEL_COST_QUOTE,    0},
};
const struct dv_cel_lib dv_cel_lib_strings = {rows, DV_COUNT(rows)};
