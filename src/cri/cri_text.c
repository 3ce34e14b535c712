/* cri_text.c - texts of a runtime for people. */
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "cri/cri.h"

void dv_cri_print_text(dv_str text, dv_str id, dv_str name, struct dv_buf *buf)
{
    while (id.n > 0 && text.n > 0) {
        size_t at = dv_str_find(text, id);

        dv_buf_add(buf, dv_str_slice(text, 0, at));
        if (at == text.n)
            return;
        dv_buf_add(buf, name);
        text = dv_str_slice(text, at + id.n, text.n);
    }
    dv_buf_add(buf, text);
}
