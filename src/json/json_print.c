/* json_print.c - prints a document as JSON, compact or indented, with keys in their order or
 * sorted. The walk needs no stack: a node finds its parent by itself (tree.h). */
#include "json/tree.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"

struct printer {
    struct dv_json_style style;
    size_t depth;
    struct dv_buf *buf;
};

/* -- Strings -------------------------------------------------------------------------------- */

/* How many bytes at `s` are printed as they are. */
static size_t count_plain(dv_str s, bool escape_html)
{
    size_t i;

    for (i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < 0x20 || c == '"' || c == '\\')
            break;
        if (escape_html && (c == '<' || c == '>' || c == '&'))
            break;
        if (escape_html && c == 0xe2 && s.n - i >= 3 && memcmp(s.p + i + 1, "\x80\xa8", 2) == 0)
            break; /* U+2028 */
        if (escape_html && c == 0xe2 && s.n - i >= 3 && memcmp(s.p + i + 1, "\x80\xa9", 2) == 0)
            break; /* U+2029 */
    }
    return i;
}

/* Prints the escape for what begins `s`, and returns how many bytes that was. */
static size_t print_escape(dv_str s, struct dv_buf *buf)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    unsigned char c = (unsigned char)s.p[0];

    if (c == '"' || c == '\\' || (c < 0x20 && letters[c])) {
        dv_buf_add_char(buf, '\\');
        dv_buf_add_char(buf, c < 0x20 ? letters[c] : (char)c);
        return 1;
    }
    if (c == 0xe2) {
        dv_buf_add(buf, (unsigned char)s.p[2] == 0xa8 ? DV_STR("\\u2028") : DV_STR("\\u2029"));
        return 3;
    }
    dv_buf_printf(buf, "\\u%04x", (unsigned)c);
    return 1;
}

static void print_string(const struct printer *p, dv_str s)
{
    size_t n = count_plain(s, p->style.escape_html);
    char *room;

    if (n == s.n) { /* most are, and three small additions cost more than one */
        room = dv_buf_extend(p->buf, n + 2);
        if (!room)
            return;
        room[0] = room[n + 1] = '"';
        if (n > 0)
            memcpy(room + 1, s.p, n);
        return;
    }
    dv_buf_add_char(p->buf, '"');
    for (; s.n > 0; n = count_plain(s, p->style.escape_html)) {
        dv_buf_add(p->buf, dv_str_slice(s, 0, n));
        if (n < s.n)
            n += print_escape(dv_str_slice(s, n, s.n), p->buf);
        s = dv_str_slice(s, n, s.n);
    }
    dv_buf_add_char(p->buf, '"');
}

/* -- Trees ---------------------------------------------------------------------------------- */

static void print_break(const struct printer *p)
{
    size_t n = p->depth * p->style.indent;
    char *blanks;

    if (p->style.indent == 0)
        return;
    blanks = dv_buf_extend(p->buf, n + 1);
    if (!blanks)
        return;
    blanks[0] = '\n';
    memset(blanks + 1, ' ', n);
}

/* The key and value; of a container that is not empty only its bracket. */
static void print_node(struct printer *p, const struct dv_json *node)
{
    if (node->key && p->depth > 0) {
        print_string(p, dv_json_key(node));
        dv_buf_add(p->buf, p->style.indent > 0 ? DV_STR(": ") : DV_STR(":"));
    }
    switch (dv_json_kind(node)) {
    case DV_JSON_NULL:
        dv_buf_add(p->buf, DV_STR("null"));
        break;
    case DV_JSON_BOOL:
        dv_buf_add(p->buf, node->n ? DV_STR("true") : DV_STR("false"));
        break;
    case DV_JSON_NUMBER:
        dv_buf_add(p->buf, dv_json_number_text(node));
        break;
    case DV_JSON_STRING:
        print_string(p, (dv_str){node->text, node->n});
        break;
    case DV_JSON_ARRAY:
        dv_buf_add(p->buf, node->first ? DV_STR("[") : DV_STR("[]"));
        break;
    case DV_JSON_OBJECT:
        dv_buf_add(p->buf, node->first ? DV_STR("{") : DV_STR("{}"));
        break;
    }
}

static void print_tree(struct printer *p, const struct dv_json *root)
{
    const struct dv_json *node = root;

    print_node(p, node);
    while (!p->buf->is_over) {
        if (dv_json_first(node)) {
            p->depth++;
            node = node->first;
        } else {
            while (node != root && node->is_last) {
                node = node->next;
                p->depth--;
                print_break(p);
                dv_buf_add_char(p->buf, dv_json_is(node, DV_JSON_OBJECT) ? '}' : ']');
            }
            if (node == root)
                return;
            dv_buf_add_char(p->buf, ',');
            node = node->next;
        }
        print_break(p);
        print_node(p, node);
    }
}

void dv_json_print(const struct dv_json *node, const struct dv_json_style *style,
                   struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct printer p = {.buf = buf};

    if (style)
        p.style = *style;
    if (p.style.sort_keys) {
        struct dv_json_budget all = {SIZE_MAX, SIZE_MAX};
        struct dv_json *sorted;

        scratch = dv_arena_new();
        sorted = dv_json_copy_within(node, &all, scratch);
        dv_json_sort(sorted, DV_JSON_BY_BYTES);
        node = sorted;
    }
    print_tree(&p, node);
}
