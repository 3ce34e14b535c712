/* go_quote.c - texts in quotes, as Go's %q writes them. */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "resource/go_print.h"

/* Characters beyond ASCII that Go does not print as they are. The table has those that occur:
 * controls, blanks, marks of direction, what is never assigned, and private use. */
static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
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

    for (size_t i = 0; i < DV_COUNT(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static uint32_t code_of(const unsigned char *p, size_t n)
{
    uint32_t code;

    switch (n) {
    case 2:
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    case 3:
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    default:
        code = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12;
        return code | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    }
}

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
        const unsigned char *p = (const unsigned char *)text.p;
        size_t n = dv_str_utf8_char(text);
        uint32_t code = n > 1 ? code_of(p, n) : 0;

        if (n <= 1)
            quote_ascii(p[0], buf);
        else if (!is_hidden(code))
            dv_buf_add(buf, dv_str_slice(text, 0, n));
        else
            dv_buf_printf(buf, code > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)code);
        text = dv_str_slice(text, n > 0 ? n : 1, text.n);
    }
    dv_buf_add_char(buf, '"');
}
