/* regex_escape.c - escapes of RE2, written for PCRE2. */
#include <string.h>

#include "base/ascii.h"
#include "base/defs.h"
#include "base/str.h"
#include "cel/functions/regex_reader.h"
#include "cel/value/build.h"

static const char *read_octal(struct dv_regex_reader *r)
{
    size_t n = 1;

    /* A single digit other than 0 would be a back reference. */
    if (dv_regex_peek(r, 1) != '0' && (dv_regex_peek(r, 2) < '0' || dv_regex_peek(r, 2) > '7'))
        return "invalid escape sequence";
    while (n < 3 && dv_regex_peek(r, n + 1) >= '0' && dv_regex_peek(r, n + 1) <= '7')
        n++;
    dv_regex_put(r, "\\o{");
    r->at++;
    dv_regex_copy(r, n);
    dv_regex_put(r, "}");
    return NULL;
}

static const char *read_hex(struct dv_regex_reader *r)
{
    size_t n = 3;

    if (dv_regex_peek(r, 2) != '{') {
        if (!dv_is_hex(dv_regex_peek(r, 2)) || !dv_is_hex(dv_regex_peek(r, 3)))
            return "invalid escape sequence";
        dv_regex_copy(r, 4);
        return NULL;
    }
    while (dv_is_hex(dv_regex_peek(r, n)))
        n++;
    if (n == 3 || n > 11 || dv_regex_peek(r, n) != '}')
        return "invalid escape sequence";
    dv_regex_copy(r, n + 1);
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
        if (!dv_regex_is_alnum(name.p[i]) || (name.p[i] >= '0' && name.p[i] <= '9'))
            return false;
    return true;
}

/* \pN, \p{Greek}, \p{^Greek}, and the same with P. */
static const char *read_property(struct dv_regex_reader *r)
{
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    bool is_braced = rest.n > 0 && rest.p[0] == '{';
    bool is_negated = dv_regex_peek(r, 1) == 'P';
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
    dv_regex_put(r, is_negated ? "\\P{" : "\\p{");
    /* Without "sc:" PCRE2 takes a script with its extensions, which Go does not. */
    dv_regex_put(r, is_category(name) ? "" : "sc:");
    dv_cel_build_add(r->out, name);
    dv_regex_put(r, "}");
    r->at += 2 + end + (is_braced ? 1 : 0);
    return NULL;
}

const char *dv_regex_read_escape(struct dv_regex_reader *r, bool in_class)
{
    char c = dv_regex_peek(r, 1);

    if (r->at + 1 >= r->in.n)
        return "trailing backslash at end of expression";
    if (c == 's' || c == 'S') { /* in RE2 it does not include the vertical tab */
        const char *blanks =
            c == 's' ? "\\t\\n\\f\\r " : "\\x{0}-\\x08\\x0b\\x0e-\\x1f!-\\x{10ffff}";

        dv_regex_put(r, in_class ? "" : "[");
        dv_regex_put(r, blanks);
        dv_regex_put(r, in_class ? "" : "]");
        r->at += 2;
        return NULL;
    }
    if (c == 'v') {
        dv_regex_put(r, "\\x0b");
        r->at += 2;
        return NULL;
    }
    if (c == 'x')
        return read_hex(r);
    if (c >= '0' && c <= '7')
        return read_octal(r);
    if (c == 'p' || c == 'P')
        return read_property(r);
    if (strchr("afnrtdDwW", c) || c == '_' || (!dv_regex_is_alnum(c) && (unsigned char)c < 0x80)) {
        dv_regex_copy(r, 2);
        return NULL;
    }
    return "invalid escape sequence";
}

bool dv_regex_read_quoted(struct dv_regex_reader *r)
{
    dv_str rest = dv_str_slice(r->in, r->at + 2, r->in.n);
    size_t n = dv_str_find(rest, DV_STR("\\E"));

    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)rest.p[i] < 0x80 && !dv_regex_is_alnum(rest.p[i]))
            dv_cel_build_char(r->out, '\\');
        dv_cel_build_char(r->out, rest.p[i]);
    }
    r->at += 2 + n + (n < rest.n ? 2 : 0);
    return n > 0;
}
