/* kube_json_error.c - finds where a text stops being JSON. Clients show these messages to people
 * who know them from the reference, so they are the same. */
#include "serve/wire/kube_json_error.h"

#include <assert.h>
#include <stdio.h>

#include "base/ascii.h"
#include "base/buf.h"

/* As deep as our reader goes. */
#define DEPTH_MAX 10000u

struct scan {
    dv_str text;
    size_t at;
    struct dv_buf *buf;
    unsigned char open[DEPTH_MAX / 8 + 1]; /* a bit for each level: set for objects */
    size_t depth;
};

static bool is_one_of(char c, dv_str set)
{
    return dv_str_find_char(set, c) < set.n;
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->text.n && is_one_of(scan->text.p[scan->at], DV_STR(" \t\r\n")))
        scan->at++;
}

static bool is_end(const struct scan *scan)
{
    return scan->at >= scan->text.n;
}

static char peek(const struct scan *scan)
{
    return scan->text.p[scan->at];
}

/* Prints a byte as the reference quotes it: as if it were a character. */
static void print_char(unsigned char c, struct dv_buf *buf)
{
    if (c == '\'' || c == '\\')
        dv_buf_printf(buf, "'\\%c'", c);
    else if (c == '\n')
        dv_buf_add_c(buf, "'\\n'");
    else if (c == '\t')
        dv_buf_add_c(buf, "'\\t'");
    else if (c == '\r')
        dv_buf_add_c(buf, "'\\r'");
    else if (c < ' ' || c == 0x7f)
        dv_buf_printf(buf, "'\\x%02x'", c);
    else if (c < 0x80)
        dv_buf_printf(buf, "'%c'", c);
    else if (c < 0xa1 || c == 0xad)
        dv_buf_printf(buf, "'\\u%04x'", c);
    else
        dv_buf_printf(buf, "'%c%c'", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

static bool fail(struct scan *scan, const char *where)
{
    if (is_end(scan)) {
        dv_buf_add_c(scan->buf, "unexpected end of JSON input");
    } else {
        dv_buf_add_c(scan->buf, "invalid character ");
        print_char((unsigned char)peek(scan), scan->buf);
        dv_buf_printf(scan->buf, " %s", where);
    }
    return false;
}

static bool scan_escape(struct scan *scan)
{
    scan->at++;
    if (is_end(scan) || !is_one_of(peek(scan), DV_STR("\"\\/bfnrtu")))
        return fail(scan, "in string escape code");
    if (peek(scan) == 'u')
        for (size_t i = 0; i < 4; i++) {
            scan->at++;
            if (is_end(scan) || !dv_is_hex(peek(scan)))
                return fail(scan, "in \\u hexadecimal character escape");
        }
    scan->at++;
    return true;
}

static bool scan_string(struct scan *scan)
{
    scan->at++;
    for (;;) {
        if (is_end(scan) || (unsigned char)peek(scan) < ' ')
            return fail(scan, "in string literal");
        if (peek(scan) == '"') {
            scan->at++;
            return true;
        }
        if (peek(scan) != '\\')
            scan->at++;
        else if (!scan_escape(scan))
            return false;
    }
}

static bool scan_digits(struct scan *scan, const char *where)
{
    if (is_end(scan) || peek(scan) < '0' || peek(scan) > '9')
        return fail(scan, where);
    while (!is_end(scan) && peek(scan) >= '0' && peek(scan) <= '9')
        scan->at++;
    return true;
}

static bool scan_number(struct scan *scan)
{
    if (peek(scan) == '-')
        scan->at++;
    if (!is_end(scan) && peek(scan) == '0')
        scan->at++;
    else if (!scan_digits(scan, "in numeric literal"))
        return false;
    if (!is_end(scan) && peek(scan) == '.') {
        scan->at++;
        if (!scan_digits(scan, "after decimal point in numeric literal"))
            return false;
    }
    if (!is_end(scan) && (peek(scan) == 'e' || peek(scan) == 'E')) {
        scan->at++;
        if (!is_end(scan) && (peek(scan) == '+' || peek(scan) == '-'))
            scan->at++;
        return scan_digits(scan, "in exponent of numeric literal");
    }
    return true;
}

static bool scan_word(struct scan *scan, const char *word)
{
    char where[64];

    for (size_t i = 0; word[i]; i++, scan->at++)
        if (is_end(scan) || peek(scan) != word[i]) {
            (void)snprintf(where, sizeof(where), "in literal %s (expecting '%c')", word, word[i]);
            return fail(scan, where);
        }
    return true;
}

static bool scan_scalar(struct scan *scan)
{
    switch (is_end(scan) ? '\0' : peek(scan)) {
    case '"':
        return scan_string(scan);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    default:
        if (!is_end(scan) && is_one_of(peek(scan), DV_STR("-0123456789")))
            return scan_number(scan);
        return fail(scan, "looking for beginning of value");
    }
}

static bool is_object(const struct scan *scan)
{
    return scan->open[(scan->depth - 1) / 8] >> ((scan->depth - 1) % 8) & 1;
}

static bool push(struct scan *scan, bool object)
{
    unsigned char bit = (unsigned char)(1u << (scan->depth % 8));

    if (scan->depth == DEPTH_MAX) {
        dv_buf_add_c(scan->buf, "exceeded max depth");
        return false;
    }
    scan->open[scan->depth / 8] = (unsigned char)(object ? scan->open[scan->depth / 8] | bit
                                                         : scan->open[scan->depth / 8] & ~bit);
    scan->depth++;
    scan->at++;
    return true;
}

static bool scan_key(struct scan *scan)
{
    skip_blanks(scan);
    if (is_end(scan) || peek(scan) != '"')
        return fail(scan, "looking for beginning of object key string");
    if (!scan_string(scan))
        return false;
    skip_blanks(scan);
    if (is_end(scan) || peek(scan) != ':')
        return fail(scan, "after object key");
    scan->at++;
    return true;
}

/* Opens the object or array that begins here. *is_value: a whole value was passed; otherwise one
 * has to come. */
static bool scan_begin(struct scan *scan, bool *is_value)
{
    bool object;

    skip_blanks(scan);
    *is_value = true;
    if (is_end(scan) || (peek(scan) != '{' && peek(scan) != '['))
        return scan_scalar(scan);
    object = peek(scan) == '{';
    if (!push(scan, object))
        return false;
    skip_blanks(scan);
    if (!is_end(scan) && peek(scan) == (object ? '}' : ']')) {
        scan->at++;
        scan->depth--;
        return true;
    }
    *is_value = false;
    return !object || scan_key(scan);
}

/* After a value: closes what ends here, up to the next comma. */
static bool scan_after(struct scan *scan)
{
    while (scan->depth) {
        bool object = is_object(scan);

        skip_blanks(scan);
        if (is_end(scan))
            return fail(scan, "");
        if (peek(scan) == ',') {
            scan->at++;
            return !object || scan_key(scan);
        }
        if (peek(scan) != (object ? '}' : ']'))
            return fail(scan, object ? "after object key:value pair" : "after array element");
        scan->at++;
        scan->depth--;
    }
    return true;
}

bool dv_json_error_print(dv_str text, struct dv_buf *buf)
{
    struct scan scan = {.text = text, .buf = buf};
    bool is_value;

    do {
        size_t before = scan.at;

        if (!scan_begin(&scan, &is_value))
            return true;
        if (is_value && !scan_after(&scan))
            return true;
        assert(scan.at > before); /* otherwise it would never end */
    } while (scan.depth);
    skip_blanks(&scan);
    return !is_end(&scan) && !fail(&scan, "after top-level value");
}
