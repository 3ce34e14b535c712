#include "base/visible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

/* "\u{10ffff}" */
#define ESCAPE_BYTES 16u
/* Every byte may take four. */
#define GROWTH 4u

/* A range of code points, both ends included. */
struct range {
    uint32_t first;
    uint32_t last;
};

/* Characters of no width of their own: of the general categories Cc and Cf those that occur, and
 * line and paragraph separators. */
static const struct range hidden[] = {
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

static bool is_in(const struct range *ranges, size_t n_ranges, uint32_t c)
{
    for (size_t i = 0; i < n_ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
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
    *is_visible = n > 0 && !is_in(hidden, DV_COUNT(hidden), decode(s, n));
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

/* ---- as Go quotes ---- */

/* Characters beyond ASCII that Go does not print as they are. The table has those that occur:
 * controls, blanks, marks of direction, what is never assigned, and private use. */
static const struct range unprintable[] = {
    {0x0080,  0x00a0  },
    {0x00ad,  0x00ad  },
    {0x061c,  0x061c  },
    {0x1680,  0x1680  },
    {0x180e,  0x180e  },
    {0x2000,  0x200f  },
    {0x2028,  0x202f  },
    {0x205f,  0x206f  },
    {0x3000,  0x3000  },
    {0xd800,  0xf8ff  },
    {0xfeff,  0xfeff  },
    {0xfff0,  0xfffb  },
    {0xfffe,  0xffff  },
    {0xe0000, 0xe00ff },
    {0xe01f0, 0x10ffff},
};

static void quote_ascii(unsigned char c, struct dv_buf *buf)
{
    static const char letters[] = "abtnvfr"; /* \a is 7, \r is 13 */

    if (c == '"' || c == '\\')
        dv_buf_printf(buf, "\\%c", c);
    else if (c >= 7 && c <= 13)
        dv_buf_printf(buf, "\\%c", letters[c - 7]);
    else if (c < 0x20 || c >= 0x7f)
        dv_buf_printf(buf, "\\x%02x", c);
    else
        dv_buf_add_char(buf, (char)c);
}

void dv_go_quote(dv_str text, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '"');
    while (text.n > 0) {
        size_t n = dv_str_utf8_char(text);
        uint32_t code = n > 1 ? decode(text, n) : 0;

        if (n <= 1)
            quote_ascii((unsigned char)text.p[0], buf);
        else if (!is_in(unprintable, DV_COUNT(unprintable), code))
            dv_buf_add(buf, dv_str_slice(text, 0, n));
        else
            dv_buf_printf(buf, code > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)code);
        text = dv_str_slice(text, n > 0 ? n : 1, text.n);
    }
    dv_buf_add_char(buf, '"');
}
