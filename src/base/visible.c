#include "base/visible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

/* "\u{10ffff}" */
#define ESCAPE_BYTES 16u
/* Every byte may take four. */
#define GROWTH 4u

/* Characters of no width of their own: of the general categories Cc and Cf those that occur, and
 * line and paragraph separators. By code point, both ends included. */
static const struct {
    uint32_t first;
    uint32_t last;
} hidden[] = {
    {0x00,    0x1f   }, /* C0 */
    {0x7f,    0x9f   }, /* DEL, C1 */
    {0xad,    0xad   }, /* soft hyphen */
    {0x61c,   0x61c  }, /* Arabic letter mark */
    {0x180e,  0x180e },
    {0x200b,  0x200f }, /* zero width, marks of direction */
    {0x2028,  0x202e }, /* separators, embeddings and overrides */
    {0x2060,  0x206f }, /* joiners, isolates */
    {0xfeff,  0xfeff }, /* byte order mark */
    {0xfff9,  0xfffb }, /* annotations */
    {0xe0000, 0xe007f}, /* tags */
};

static uint32_t decode(dv_str s, size_t n)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)s.p[0] & first_bits[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
    return c;
}

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < DV_COUNT(hidden); i++)
        if (c >= hidden[i].first && c <= hidden[i].last)
            return true;
    return false;
}

size_t dv_visible_char(dv_str s, bool *is_visible)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = 1;

    if (c < 0x80) {
        *is_visible = c >= ' ' && c != 0x7f;
        return n;
    }
    n = dv_str_utf8_char(s);
    *is_visible = n > 0 && !is_hidden(decode(s, n));
    return n > 0 ? n : 1;
}

bool dv_str_is_visible(dv_str s)
{
    bool is_visible = true;

    for (size_t at = 0; is_visible && at < s.n;)
        at += dv_visible_char(dv_str_slice(s, at, s.n), &is_visible);
    return is_visible;
}

/* The escape of the character of `n` bytes that `s` begins with. */
static void print_escape(dv_str s, size_t n, char out[ESCAPE_BYTES])
{
    unsigned char c = (unsigned char)s.p[0];
    uint32_t point = n > 1 ? decode(s, n) : c;

    if (c == '\n' || c == '\r' || c == '\t')
        (void)snprintf(out, ESCAPE_BYTES, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (n == 1)
        (void)snprintf(out, ESCAPE_BYTES, "\\x%02x", point);
    else if (point <= 0xffff)
        (void)snprintf(out, ESCAPE_BYTES, "\\u%04x", point);
    else
        (void)snprintf(out, ESCAPE_BYTES, "\\u{%x}", point);
}

void dv_buf_add_visible(struct dv_buf *buf, dv_str s)
{
    size_t plain = 0; /* where the run that needs nothing began */
    char escape[ESCAPE_BYTES];
    size_t n;

    for (size_t at = 0; at < s.n; at += n) {
        dv_str rest = dv_str_slice(s, at, s.n);
        bool is_visible;

        n = dv_visible_char(rest, &is_visible);
        if (is_visible)
            continue;
        print_escape(rest, n, escape);
        dv_buf_add(buf, dv_str_slice(s, plain, at));
        dv_buf_add_c(buf, escape);
        plain = at + n;
    }
    dv_buf_add(buf, dv_str_slice(s, plain, s.n));
}

dv_str dv_str_visible(dv_str s, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str made;

    if (dv_str_is_visible(s))
        return s;
    dv_buf_init(&buf, s.n * GROWTH + ESCAPE_BYTES);
    dv_buf_add_visible(&buf, s);
    made = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return made;
}

void dv_visible_in_place(char *text, size_t size)
{
    dv_str s = dv_str_from_c(text);
    char escape[ESCAPE_BYTES];
    struct dv_buf buf;
    size_t n;

    if (dv_str_is_visible(s))
        return;
    dv_buf_init(&buf, s.n * GROWTH + ESCAPE_BYTES);
    for (size_t at = 0; at < s.n; at += n) {
        dv_str rest = dv_str_slice(s, at, s.n);
        bool is_visible;

        n = dv_visible_char(rest, &is_visible);
        if (is_visible || rest.p[0] == '\n' || rest.p[0] == '\t') {
            (void)snprintf(escape, sizeof(escape), "%.*s", (int)n, rest.p);
        } else {
            print_escape(rest, n, escape);
        }
        if (buf.n + strlen(escape) >= size)
            break;
        dv_buf_add_c(&buf, escape);
    }
    memcpy(text, dv_buf_c(&buf), buf.n + 1);
    dv_buf_fini(&buf);
}
