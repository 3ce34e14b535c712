/* regex_syntax.c - reads a regular expression as RE2 (Go's, to be exact) does, and writes it for
 * PCRE2. */
#include <assert.h>
#include <string.h>

#include "cel/functions/regex.h"
#include "cel/functions/regex_reader.h"
#include "cel/value/build.h"

#define REPEAT_MAX 1000u
/* PCRE2's compiled form ends at 64 KiB, at two bytes or more for a character: what is longer is
 * refused before any work is done for it. */
#define PATTERN_BYTES_MAX (32u << 10)

/* -- Classes --------------------------------------------------------------------------------- */

/* \d, \pL and the like: many characters. */
static bool is_set_escape(const struct dv_regex_reader *r)
{
    return dv_regex_peek(r, 0) == '\\' && dv_regex_peek(r, 1) != '\0' &&
           strchr("dDsSwWpP", dv_regex_peek(r, 1));
}

static bool read_posix(struct dv_regex_reader *r, const char **problem)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    size_t n;
    dv_str name;

    if (r->has_no_posix || !dv_regex_starts(r, "[:"))
        return false;
    n = dv_str_find(rest, DV_STR(":]"));
    if (n >= rest.n) {
        r->has_no_posix = true;
        return false;
    }
    name = dv_str_slice(rest, n > 0 && rest.p[0] == '^' ? 1 : 0, n);
    *problem = "invalid character class range";
    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(name, dv_str_from_c(names[i])))
            *problem = NULL;
    if (!*problem)
        dv_regex_copy(r, n + 4);
    return true;
}

/* Reads one end of a range, which cannot be a set of characters. */
static const char *read_class_char(struct dv_regex_reader *r)
{
    char c = dv_regex_peek(r, 0);

    if (dv_regex_is_at_end(r))
        return "missing closing ]";
    if (c == '\\')
        return is_set_escape(r) ? "invalid escape sequence" : dv_regex_read_escape(r, true);
    /* Punctuation stands for itself here and is escaped, as PCRE2 may give it a meaning. */
    if (!dv_regex_is_alnum(c) && (unsigned char)c < 0x80)
        dv_cel_build_char(r->out, '\\');
    dv_regex_copy_char(r);
    return NULL;
}

/* A character, a set, or a range of characters. */
static const char *read_class_range(struct dv_regex_reader *r)
{
    const char *problem;

    if (is_set_escape(r))
        return dv_regex_read_escape(r, true);
    problem = read_class_char(r);
    if (problem || dv_regex_peek(r, 0) != '-' || dv_regex_peek(r, 1) == ']' || r->at + 1 >= r->in.n)
        return problem;
    dv_regex_copy(r, 1);
    return read_class_char(r);
}

static const char *read_class(struct dv_regex_reader *r)
{
    bool is_first = true;
    const char *problem = NULL;

    dv_regex_copy(r, dv_regex_peek(r, 1) == '^' ? 2 : 1);
    while (!problem && (dv_regex_peek(r, 0) != ']' || is_first)) {
        size_t before = r->at;

        is_first = false;
        if (!read_posix(r, &problem))
            problem = read_class_range(r);
        assert(problem || r->at > before); /* otherwise the loop would never end */
    }
    if (!problem)
        dv_regex_copy(r, 1);
    return problem;
}

/* -- Groups and repetition ------------------------------------------------------------------- */

/* (?i), (?i:...), (?P<name>...), (?<name>...), (?:...); r is at the bracket. */
static const char *read_group_start(struct dv_regex_reader *r)
{
    size_t n = 2;
    bool has_minus = false;

    if (dv_regex_peek(r, 1) != '?') {
        dv_regex_copy(r, 1);
        return NULL;
    }
    if (dv_regex_starts(r, "(?P<") ||
        (dv_regex_starts(r, "(?<") && dv_regex_peek(r, 3) != '=' && dv_regex_peek(r, 3) != '!')) {
        size_t from = dv_regex_starts(r, "(?P<") ? 4 : 3;

        for (n = from; dv_regex_is_alnum(dv_regex_peek(r, n));)
            n++;
        if (n == from || dv_regex_peek(r, n) != '>')
            return "invalid named capture";
        /* The name is dropped: nobody asks for the group by it, and PCRE2 allows fewer names. */
        dv_regex_put(r, "(");
        r->at += n + 1;
        return NULL;
    }
    for (; dv_regex_peek(r, n) != '\0' && strchr("imsU-", dv_regex_peek(r, n)); n++) {
        if (dv_regex_peek(r, n) == '-' && has_minus)
            return "invalid or unsupported Perl syntax";
        has_minus |= dv_regex_peek(r, n) == '-';
    }
    if (dv_regex_peek(r, n) != ':' && dv_regex_peek(r, n) != ')')
        return "invalid or unsupported Perl syntax";
    if (dv_regex_peek(r, n - 1) == '-')
        return "missing argument to repetition operator";
    dv_regex_copy(r, n + 1);
    return NULL;
}

/* Reads {2}, {2,} or {2,5}; false when it is plain text. */
static bool read_counts(struct dv_regex_reader *r, unsigned *max, bool *is_bad)
{
    unsigned counts[2] = {0, 0};
    size_t n = 1;
    int which = 0;
    size_t n_digits = 0;

    *is_bad = false;
    for (;; n++) {
        char c = dv_regex_peek(r, n);

        if (c >= '0' && c <= '9') {
            n_digits++;
            if (counts[which] <= REPEAT_MAX)
                counts[which] = counts[which] * 10 + (unsigned)(c - '0');
        } else if (c == ',' && which == 0 && n_digits > 0) {
            which = 1;
            n_digits = 0;
        } else if (c == '}' && (n_digits > 0 || which == 1)) {
            break;
        } else {
            return false;
        }
    }
    *max = which == 1 && n_digits > 0 ? counts[1] : counts[0];
    *is_bad = counts[0] > REPEAT_MAX || counts[1] > REPEAT_MAX ||
              (which == 1 && n_digits > 0 && counts[0] > counts[1]);
    dv_regex_copy(r, n + 1);
    return true;
}

/* Reads the operators behind an atom. `repeats` is how often the atom repeats inside itself. */
static const char *read_repetition(struct dv_regex_reader *r, unsigned *repeats)
{
    unsigned max = 1;
    bool is_bad = false;

    if (dv_regex_peek(r, 0) == '*' || dv_regex_peek(r, 0) == '+' || dv_regex_peek(r, 0) == '?')
        dv_regex_copy(r, 1);
    else if (dv_regex_peek(r, 0) != '{' || !read_counts(r, &max, &is_bad))
        return NULL;
    if (is_bad)
        return "invalid repeat count";
    if (max > 1 && *repeats * max > REPEAT_MAX)
        return "invalid repeat count";
    *repeats = max == 0 ? 1 : *repeats * max;
    if (dv_regex_peek(r, 0) == '?')
        dv_regex_copy(r, 1);
    if (dv_regex_peek(r, 0) == '*' || dv_regex_peek(r, 0) == '+' || dv_regex_peek(r, 0) == '?')
        return "invalid nested repetition operator";
    if (dv_regex_peek(r, 0) == '{') {
        size_t at = r->at;
        struct dv_cel_build out = *r->out;
        bool is_repetition = read_counts(r, &max, &is_bad);

        r->at = at;
        *r->out = out;
        if (is_repetition)
            return "invalid nested repetition operator";
    }
    return NULL;
}

/* Copies ^ or \b, in a group: PCRE2 can repeat only that. */
static void copy_assertion(struct dv_regex_reader *r, size_t n)
{
    dv_regex_put(r, "(?:");
    dv_regex_copy(r, n);
    dv_regex_put(r, ")");
}

static const char *read_escape(struct dv_regex_reader *r, bool *is_atom)
{
    char c = dv_regex_peek(r, 1);

    if (c == 'Q') {
        *is_atom = dv_regex_read_quoted(r);
        return NULL;
    }
    if (c == 'A' || c == 'z' || c == 'b' || c == 'B') {
        copy_assertion(r, 2);
        return NULL;
    }
    return dv_regex_read_escape(r, false);
}

/* Reads one atom; *is_atom: it can be repeated. */
static const char *read_atom(struct dv_regex_reader *r, bool *is_atom)
{
    bool is_bad;
    unsigned max;

    *is_atom = true;
    switch (dv_regex_peek(r, 0)) {
    case '\\':
        return read_escape(r, is_atom);
    case '[':
        return read_class(r);
    case '*':
    case '+':
    case '?':
        return "missing argument to repetition operator";
    case '{':
        if (read_counts(r, &max, &is_bad))
            return "missing argument to repetition operator";
        dv_regex_put(r, "\\{");
        r->at++;
        return NULL;
    case '|':
        *is_atom = false;
        dv_regex_copy(r, 1);
        return NULL;
    case '^':
    case '$':
        copy_assertion(r, 1);
        return NULL;
    default:
        dv_regex_copy_char(r);
        return NULL;
    }
}

static const char *open_group(struct dv_regex_reader *r)
{
    size_t n_before = r->out->n;
    const char *problem = read_group_start(r);

    if (problem)
        return problem;
    /* (?i) alone changes what follows, and opens nothing. */
    if (r->out->n > n_before && r->out->p[r->out->n - 1] == ')')
        return NULL;
    if (++r->nesting > DV_REGEX_NESTING_MAX)
        return "expression nests too deeply";
    r->repeats[r->nesting] = 1;
    return NULL;
}

static const char *close_group(struct dv_regex_reader *r)
{
    unsigned inner;
    const char *problem;

    if (r->nesting == 0)
        return "unexpected )";
    dv_regex_copy(r, 1);
    inner = r->repeats[r->nesting--];
    problem = read_repetition(r, &inner);
    if (inner > r->repeats[r->nesting])
        r->repeats[r->nesting] = inner;
    return problem;
}

static const char *read_one(struct dv_regex_reader *r)
{
    const char *problem;
    unsigned repeats = 1;
    bool is_atom;

    if (dv_regex_peek(r, 0) == '(')
        return open_group(r);
    if (dv_regex_peek(r, 0) == ')')
        return close_group(r);
    problem = read_atom(r, &is_atom);
    if (!problem && is_atom)
        problem = read_repetition(r, &repeats);
    if (repeats > r->repeats[r->nesting])
        r->repeats[r->nesting] = repeats;
    return problem;
}

const char *dv_cel_regex_translate(dv_str pattern, struct dv_cel_build *out)
{
    struct dv_regex_reader r = {.in = pattern, .out = out};

    if (pattern.n > PATTERN_BYTES_MAX)
        return "expression too large";
    if (!dv_str_is_utf8(pattern))
        return "invalid UTF-8";
    r.repeats[0] = 1;
    while (!dv_regex_is_at_end(&r)) {
        size_t before = r.at;
        const char *problem = read_one(&r);

        if (problem)
            return problem;
        assert(r.at > before); /* otherwise the loop would never end */
    }
    assert(!out->is_over);
    return r.nesting > 0 ? "missing closing )" : NULL;
}
