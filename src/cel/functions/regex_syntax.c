/* regex_syntax.c - reads a regular expression as RE2 (Go's, to be exact) does, and writes it for
 * PCRE2. */
#include <assert.h>
#include <string.h>

#include "base/ascii.h"
#include "cel/functions/regex.h"
#include "cel/value/build.h"

#define REPEAT_MAX 1000u
#define NESTING_MAX 200u
/* PCRE2's compiled form ends at 64 KiB, at two bytes or more for a character: what is longer is
 * refused before any work is done for it. */
#define PATTERN_BYTES_MAX (32u << 10)

struct reader {
    dv_str in;
    size_t at;
    struct dv_cel_build *out;
    unsigned nesting;
    bool has_no_posix; /* ":]" does not come any more */
    /* How often the last atom may be repeated, for a{500}{3} and (a{500}){3}: RE2 limits the
     * product. */
    unsigned repeats[NESTING_MAX + 1];
};

static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->in.n ? r->in.p[r->at + ahead] : '\0';
}

static bool is_at_end(const struct reader *r)
{
    return r->at >= r->in.n;
}

static bool starts(const struct reader *r, const char *text)
{
    return dv_str_starts_with(dv_str_slice(r->in, r->at, r->in.n), dv_str_from_c(text));
}

static void put(struct reader *r, const char *text)
{
    dv_cel_build_add(r->out, dv_str_from_c(text));
}

/* Copies n bytes, which must be there. */
static void copy(struct reader *r, size_t n)
{
    assert(n <= r->in.n - r->at);
    dv_cel_build_add(r->out, dv_str_slice(r->in, r->at, r->at + n));
    r->at += n;
}

/* Copies one character. There is always one: the whole pattern is UTF-8, and nothing but whole
 * characters is ever taken from it. */
static void copy_char(struct reader *r)
{
    size_t n = dv_str_utf8_char(dv_str_slice(r->in, r->at, r->in.n));

    assert(n > 0);
    copy(r, n);
}

static bool is_alnum(char c)
{
    return dv_is_alphanumeric(c) || c == '_';
}

/* -- Escapes --------------------------------------------------------------------------------------
 */

static const char *read_octal(struct reader *r)
{
    size_t n = 1;

    /* A single digit other than 0 would be a back reference. */
    if (peek(r, 1) != '0' && (peek(r, 2) < '0' || peek(r, 2) > '7'))
        return "invalid escape sequence";
    while (n < 3 && peek(r, n + 1) >= '0' && peek(r, n + 1) <= '7')
        n++;
    put(r, "\\o{");
    r->at++;
    copy(r, n);
    put(r, "}");
    return NULL;
}

static const char *read_hex(struct reader *r)
{
    size_t n = 3;

    if (peek(r, 2) != '{') {
        if (!dv_is_hex(peek(r, 2)) || !dv_is_hex(peek(r, 3)))
            return "invalid escape sequence";
        copy(r, 4);
        return NULL;
    }
    while (dv_is_hex(peek(r, n)))
        n++;
    if (n == 3 || n > 11 || peek(r, n) != '}')
        return "invalid escape sequence";
    copy(r, n + 1);
    return NULL;
}

/* Whether it is the short name of a general category of Unicode; any other name is a script's. */
static bool is_category(dv_str name)
{
    static const char *const names[] = {"Any", "C",  "Cc", "Cf", "Co", "Cs", "L",  "Ll", "Lm", "Lo",
                                        "Lt",  "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No",
                                        "P",   "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc",
                                        "Sk",  "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(name, dv_str_from_c(names[i])))
            return true;
    return false;
}

/* Whether the name is spelled like a script, as in Old_Italic: PCRE2 knows more spellings than Go.
 * PCRE2 says whether there is such a script. */
static bool is_script(dv_str name)
{
    if (name.n < 2 || name.p[0] < 'A' || name.p[0] > 'Z')
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!is_alnum(name.p[i]) || (name.p[i] >= '0' && name.p[i] <= '9'))
            return false;
    return true;
}

/* \pN, \p{Greek}, \p{^Greek}, and the same with P. */
static const char *read_property(struct reader *r)
{
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    bool is_braced = rest.n > 0 && rest.p[0] == '{';
    bool is_negated = peek(r, 1) == 'P';
    size_t end = is_braced ? dv_str_find_char(rest, '}') : dv_str_utf8_char(rest);
    dv_str name = dv_str_slice(rest, is_braced ? 1 : 0, end);

    if (is_braced && end == rest.n)
        return "invalid character class range";
    if (name.n > 0 && name.p[0] == '^') {
        is_negated = !is_negated;
        name = dv_str_slice(name, 1, name.n);
    }
    if (!is_category(name) && !is_script(name))
        return "invalid character class range";
    put(r, is_negated ? "\\P{" : "\\p{");
    /* Without "sc:" PCRE2 takes a script with its extensions, which Go does not. */
    put(r, is_category(name) ? "" : "sc:");
    dv_cel_build_add(r->out, name);
    put(r, "}");
    r->at += 2 + end + (is_braced ? 1 : 0);
    return NULL;
}

/* Copies an escape that means the same in both, inside of a class or not. */
static const char *read_common_escape(struct reader *r, bool in_class)
{
    char c = peek(r, 1);

    if (r->at + 1 >= r->in.n)
        return "trailing backslash at end of expression";
    if (c == 's' || c == 'S') { /* in RE2 it does not include the vertical tab */
        const char *blanks =
            c == 's' ? "\\t\\n\\f\\r " : "\\x{0}-\\x08\\x0b\\x0e-\\x1f!-\\x{10ffff}";

        put(r, in_class ? "" : "[");
        put(r, blanks);
        put(r, in_class ? "" : "]");
        r->at += 2;
        return NULL;
    }
    if (c == 'v') {
        put(r, "\\x0b");
        r->at += 2;
        return NULL;
    }
    if (c == 'x')
        return read_hex(r);
    if (c >= '0' && c <= '7')
        return read_octal(r);
    if (c == 'p' || c == 'P')
        return read_property(r);
    if (strchr("afnrtdDwW", c) || c == '_' || (!is_alnum(c) && (unsigned char)c < 0x80)) {
        copy(r, 2);
        return NULL;
    }
    return "invalid escape sequence";
}

/* Reads \Q...\E, in which every character stands for itself. False when it is empty. */
static bool read_quoted(struct reader *r)
{
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    size_t n = dv_str_find(rest, DV_STR("\\E"));

    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)rest.p[i] < 0x80 && !is_alnum(rest.p[i]))
            dv_cel_build_char(r->out, '\\');
        dv_cel_build_char(r->out, rest.p[i]);
    }
    r->at += 2 + n + (n < rest.n ? 2 : 0);
    return n > 0;
}

/* -- Classes --------------------------------------------------------------------------------- */

/* \d, \pL and the like: many characters. */
static bool is_set_escape(const struct reader *r)
{
    return peek(r, 0) == '\\' && peek(r, 1) != '\0' && strchr("dDsSwWpP", peek(r, 1));
}

static bool read_posix(struct reader *r, const char **problem)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    size_t n;
    dv_str name;

    if (r->has_no_posix || !starts(r, "[:"))
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
        copy(r, n + 4);
    return true;
}

/* Reads one end of a range, which cannot be a set of characters. */
static const char *read_class_char(struct reader *r)
{
    char c = peek(r, 0);

    if (is_at_end(r))
        return "missing closing ]";
    if (c == '\\')
        return is_set_escape(r) ? "invalid escape sequence" : read_common_escape(r, true);
    /* Punctuation stands for itself here and is escaped, as PCRE2 may give it a meaning. */
    if (!is_alnum(c) && (unsigned char)c < 0x80)
        dv_cel_build_char(r->out, '\\');
    copy_char(r);
    return NULL;
}

/* A character, a set, or a range of characters. */
static const char *read_class_range(struct reader *r)
{
    const char *problem;

    if (is_set_escape(r))
        return read_common_escape(r, true);
    problem = read_class_char(r);
    if (problem || peek(r, 0) != '-' || peek(r, 1) == ']' || r->at + 1 >= r->in.n)
        return problem;
    copy(r, 1);
    return read_class_char(r);
}

static const char *read_class(struct reader *r)
{
    bool is_first = true;
    const char *problem = NULL;

    copy(r, peek(r, 1) == '^' ? 2 : 1);
    while (!problem && (peek(r, 0) != ']' || is_first)) {
        size_t before = r->at;

        is_first = false;
        if (!read_posix(r, &problem))
            problem = read_class_range(r);
        assert(problem || r->at > before); /* otherwise the loop would never end */
    }
    if (!problem)
        copy(r, 1);
    return problem;
}

/* -- Groups and repetition ------------------------------------------------------------------- */

/* (?i), (?i:...), (?P<name>...), (?<name>...), (?:...); r is at the bracket. */
static const char *read_group_start(struct reader *r)
{
    size_t n = 2;
    bool has_minus = false;

    if (peek(r, 1) != '?') {
        copy(r, 1);
        return NULL;
    }
    if (starts(r, "(?P<") || (starts(r, "(?<") && peek(r, 3) != '=' && peek(r, 3) != '!')) {
        size_t from = starts(r, "(?P<") ? 4 : 3;

        for (n = from; is_alnum(peek(r, n));)
            n++;
        if (n == from || peek(r, n) != '>')
            return "invalid named capture";
        /* The name is dropped: nobody asks for the group by it, and PCRE2 allows fewer names. */
        put(r, "(");
        r->at += n + 1;
        return NULL;
    }
    for (; peek(r, n) != '\0' && strchr("imsU-", peek(r, n)); n++) {
        if (peek(r, n) == '-' && has_minus)
            return "invalid or unsupported Perl syntax";
        has_minus |= peek(r, n) == '-';
    }
    if (peek(r, n) != ':' && peek(r, n) != ')')
        return "invalid or unsupported Perl syntax";
    if (peek(r, n - 1) == '-')
        return "missing argument to repetition operator";
    copy(r, n + 1);
    return NULL;
}

/* Reads {2}, {2,} or {2,5}; false when it is plain text. */
static bool read_counts(struct reader *r, unsigned *max, bool *is_bad)
{
    unsigned counts[2] = {0, 0};
    size_t n = 1;
    int which = 0;
    size_t n_digits = 0;

    *is_bad = false;
    for (;; n++) {
        char c = peek(r, n);

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
    copy(r, n + 1);
    return true;
}

/* Reads the operators behind an atom. `repeats` is how often the atom repeats inside itself. */
static const char *read_repetition(struct reader *r, unsigned *repeats)
{
    unsigned max = 1;
    bool is_bad = false;

    if (peek(r, 0) == '*' || peek(r, 0) == '+' || peek(r, 0) == '?')
        copy(r, 1);
    else if (peek(r, 0) != '{' || !read_counts(r, &max, &is_bad))
        return NULL;
    if (is_bad)
        return "invalid repeat count";
    if (max > 1 && *repeats * max > REPEAT_MAX)
        return "invalid repeat count";
    *repeats = max == 0 ? 1 : *repeats * max;
    if (peek(r, 0) == '?')
        copy(r, 1);
    if (peek(r, 0) == '*' || peek(r, 0) == '+' || peek(r, 0) == '?')
        return "invalid nested repetition operator";
    if (peek(r, 0) == '{') {
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
static void copy_assertion(struct reader *r, size_t n)
{
    put(r, "(?:");
    copy(r, n);
    put(r, ")");
}

static const char *read_escape(struct reader *r, bool *is_atom)
{
    char c = peek(r, 1);

    if (c == 'Q') {
        *is_atom = read_quoted(r);
        return NULL;
    }
    if (c == 'A' || c == 'z' || c == 'b' || c == 'B') {
        copy_assertion(r, 2);
        return NULL;
    }
    return read_common_escape(r, false);
}

/* Reads one atom; *is_atom: it can be repeated. */
static const char *read_atom(struct reader *r, bool *is_atom)
{
    bool is_bad;
    unsigned max;

    *is_atom = true;
    switch (peek(r, 0)) {
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
        put(r, "\\{");
        r->at++;
        return NULL;
    case '|':
        *is_atom = false;
        copy(r, 1);
        return NULL;
    case '^':
    case '$':
        copy_assertion(r, 1);
        return NULL;
    default:
        copy_char(r);
        return NULL;
    }
}

static const char *open_group(struct reader *r)
{
    size_t n_before = r->out->n;
    const char *problem = read_group_start(r);

    if (problem)
        return problem;
    /* (?i) alone changes what follows, and opens nothing. */
    if (r->out->n > n_before && r->out->p[r->out->n - 1] == ')')
        return NULL;
    if (++r->nesting > NESTING_MAX)
        return "expression nests too deeply";
    r->repeats[r->nesting] = 1;
    return NULL;
}

static const char *close_group(struct reader *r)
{
    unsigned inner;
    const char *problem;

    if (r->nesting == 0)
        return "unexpected )";
    copy(r, 1);
    inner = r->repeats[r->nesting--];
    problem = read_repetition(r, &inner);
    if (inner > r->repeats[r->nesting])
        r->repeats[r->nesting] = inner;
    return problem;
}

static const char *read_one(struct reader *r)
{
    const char *problem;
    unsigned repeats = 1;
    bool is_atom;

    if (peek(r, 0) == '(')
        return open_group(r);
    if (peek(r, 0) == ')')
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
    struct reader r = {.in = pattern, .out = out};

    if (pattern.n > PATTERN_BYTES_MAX)
        return "expression too large";
    if (!dv_str_is_utf8(pattern))
        return "invalid UTF-8";
    r.repeats[0] = 1;
    while (!is_at_end(&r)) {
        size_t before = r.at;
        const char *problem = read_one(&r);

        if (problem)
            return problem;
        assert(r.at > before); /* otherwise the loop would never end */
    }
    assert(!out->is_over);
    return r.nesting > 0 ? "missing closing )" : NULL;
}
