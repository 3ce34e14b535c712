#include "resource/codec/json_text.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

/* The class of a byte in a string; BLANK counts outside of strings only. */
enum {
    PLAIN = 0,
    ESCAPED = 1, /* may not stand in a string as it is */
    WIDE = 2,    /* begins a character beyond ASCII, or none */
    BLANK = 4,   /* between the parts of a JSON text */
};

#define FOUR(x) (x), (x), (x), (x)
#define SIXTEEN(x) FOUR(x), FOUR(x), FOUR(x), FOUR(x)

static const unsigned char classes[256] = {
    SIXTEEN(ESCAPED), SIXTEEN(ESCAPED),
    /*     !     "           #      $      %      &           ' */
    BLANK, PLAIN, ESCAPED, PLAIN, PLAIN, PLAIN, ESCAPED, PLAIN, FOUR(PLAIN), FOUR(PLAIN),
    /* 0 to ;                             <           =      >           ? */
    FOUR(PLAIN), FOUR(PLAIN), FOUR(PLAIN), ESCAPED, PLAIN, ESCAPED, PLAIN, SIXTEEN(PLAIN),
    /* P to [                             \ */
    FOUR(PLAIN), FOUR(PLAIN), FOUR(PLAIN), ESCAPED, PLAIN, PLAIN, PLAIN, SIXTEEN(PLAIN),
    SIXTEEN(PLAIN), SIXTEEN(WIDE), SIXTEEN(WIDE), SIXTEEN(WIDE), SIXTEEN(WIDE), SIXTEEN(WIDE),
    SIXTEEN(WIDE), SIXTEEN(WIDE), SIXTEEN(WIDE)};

static unsigned class_of(char c)
{
    return classes[(unsigned char)c];
}

/* The number of bytes before the first that needs more than copying in a string. */
static size_t plain_length(const char *at, size_t n)
{
    size_t i = 0;

    while (i < n && !(class_of(at[i]) & (ESCAPED | WIDE)))
        i++;
    return i;
}

static void add_escape(struct dv_buf *buf, char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    char code[] = "\\u00xx";

    for (size_t i = 0; i + 1 < sizeof(shorts); i += 2)
        if (shorts[i] == c) {
            dv_buf_add(buf, (dv_str){
                                (char[]){'\\', shorts[i + 1]},
                                2
            });
            return;
        }
    code[4] = hex[(unsigned char)c >> 4];
    code[5] = hex[(unsigned char)c & 15];
    dv_buf_add(buf, (dv_str){code, 6});
}

/* Adds the character beyond ASCII that `text` begins with; returns the number of its bytes. */
static size_t add_wide(struct dv_buf *buf, dv_str text)
{
    size_t n = dv_str_utf8_char(text);

    if (n == 0) {
        dv_buf_add(buf, DV_STR("\xef\xbf\xbd"));
        return 1;
    }
    if (n == 3 && memcmp(text.p, "\xe2\x80\xa8", 3) == 0)
        dv_buf_add(buf, DV_STR("\\u2028"));
    else if (n == 3 && memcmp(text.p, "\xe2\x80\xa9", 3) == 0)
        dv_buf_add(buf, DV_STR("\\u2029"));
    else
        dv_buf_add(buf, (dv_str){text.p, n});
    return n;
}

void dv_json_text_add_str(struct dv_buf *buf, dv_str text)
{
    size_t plain = plain_length(text.p, text.n);
    char *at;

    if (plain == text.n) {
        at = dv_buf_extend(buf, text.n + 2);
        if (!at)
            return;
        at[0] = '"';
        if (text.n > 0)
            memcpy(at + 1, text.p, text.n);
        at[text.n + 1] = '"';
        return;
    }
    dv_buf_add_char(buf, '"');
    while (text.n > 0) {
        const char *before = text.p;

        plain = plain_length(text.p, text.n);
        dv_buf_add(buf, (dv_str){text.p, plain});
        text = dv_str_slice(text, plain, text.n);
        if (text.n == 0)
            break;
        if (class_of(*text.p) & ESCAPED) {
            add_escape(buf, *text.p);
            text = dv_str_slice(text, 1, text.n);
        } else {
            text = dv_str_slice(text, add_wide(buf, text), text.n);
        }
        assert(text.p > before); /* otherwise the loop would never end */
    }
    dv_buf_add_char(buf, '"');
}

/* The number of bytes of a JSON text from `i` on that are written as they are. */
static size_t raw_plain_length(dv_str text, size_t i, bool *in_string)
{
    size_t start = i;

    for (; i < text.n; i++) {
        char c = text.p[i];

        if (c == '"') {
            *in_string = !*in_string;
        } else if (*in_string && c == '\\') {
            i++; /* an escaped quote does not end the string */
        } else if (class_of(c) != PLAIN && (!*in_string || class_of(c) != BLANK)) {
            break;
        }
    }
    return (i < text.n ? i : text.n) - start;
}

/* A loop without branches, which compilers make quick. */
bool dv_json_text_is_plain(dv_str text)
{
    unsigned odd = 0;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        odd |= (unsigned)(c <= ' ') | (unsigned)(c >= 0x80) | (unsigned)(c == '<') |
               (unsigned)(c == '>') | (unsigned)(c == '&');
    }
    return odd == 0;
}

void dv_json_text_add_raw(struct dv_buf *buf, dv_str text)
{
    bool in_string = false;
    size_t i = 0;

    if (dv_json_text_is_plain(text)) {
        dv_buf_add(buf, text);
        return;
    }

    while (i < text.n) {
        size_t before = i;
        size_t plain = raw_plain_length(text, i, &in_string);

        dv_buf_add(buf, (dv_str){text.p + i, plain});
        i += plain;
        if (i == text.n)
            break;
        if (!in_string)
            i++; /* outside of strings only blanks are not plain */
        else if (class_of(text.p[i]) & WIDE)
            i += add_wide(buf, dv_str_slice(text, i, text.n));
        else
            add_escape(buf, text.p[i++]);
        assert(i > before); /* otherwise the loop would never end */
    }
}
