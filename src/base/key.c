#include "base/key.h"

#include "base/arena.h"
#include "base/buf.h"

#define ESCAPED_ZERO '\xff'
#define TEXT_END '\x01'

void dv_key_add(struct dv_buf *key, dv_str text)
{
    for (size_t zero; (zero = dv_str_find_char(text, '\0')) < text.n;) {
        dv_buf_add(key, dv_str_slice(text, 0, zero + 1));
        dv_buf_add_char(key, ESCAPED_ZERO);
        text = dv_str_slice(text, zero + 1, text.n);
    }
    dv_buf_add(key, text);
    dv_buf_add_char(key, '\0');
    dv_buf_add_char(key, TEXT_END);
}

bool dv_key_take(dv_str *key, struct dv_arena *arena, dv_str *text)
{
    char *out = dv_arena_alloc(arena, key->n, 1);
    size_t n = 0;

    for (size_t i = 0; i + 1 < key->n; i++) {
        if (key->p[i] != '\0') {
            out[n++] = key->p[i];
        } else if (key->p[++i] == ESCAPED_ZERO) {
            out[n++] = '\0';
        } else if (key->p[i] == TEXT_END) {
            *key = dv_str_slice(*key, i + 1, key->n);
            *text = (dv_str){out, n};
            return true;
        } else {
            break;
        }
    }
    return false;
}
