#include "http1/tests/http1_events.h"

#include <assert.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "http1/http1.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

static void add_head(struct dv_buf *text, const struct dv_h1_head *head)
{
    dv_buf_printf(text, "%.*s %.*s", DV_FMT(head->method), DV_FMT(head->target));
    for (size_t i = 0; i < head->n_fields; i++)
        dv_buf_printf(text, " [%.*s=%.*s]", DV_FMT(head->fields[i].name),
                      DV_FMT(head->fields[i].value));
    if (head->is_chunked)
        dv_buf_add_c(text, " chunked");
    if (head->length > 0)
        dv_buf_printf(text, " %llu", (unsigned long long)head->length);
    if (head->expects_a_word)
        dv_buf_add_c(text, " expects");
    if (head->is_old)
        dv_buf_add_c(text, " old");
    dv_buf_add_c(text, "\n");
}

/* Holds what a reader of the header may rely on. */
static void check_head(const struct dv_h1_head *head)
{
    assert(dv_h1_is_token(head->method) && head->target.n > 0);
    assert(head->text.n <= DV_H1_HEAD_BYTES_MAX);
    for (size_t i = 0; i < head->n_fields; i++) {
        assert(dv_h1_is_token(head->fields[i].name) && dv_h1_is_value(head->fields[i].value));
        assert(head->fields[i].name.p >= head->text.p);
        assert(head->fields[i].value.p + head->fields[i].value.n <= head->text.p + head->text.n);
    }
    assert(!head->is_chunked || head->length == 0);
}

/* Adds the events of one piece. False: there will be no more. */
static bool add_some(struct dv_buf *text, struct dv_h1 *h1, dv_str bytes, struct dv_buf *body)
{
    const struct dv_err *err;
    unsigned status;
    dv_str part;

    for (;;) {
        switch (dv_h1_next(h1, &bytes, &part)) {
        case DV_H1_MORE:
            assert(bytes.n == 0);
            return true;
        case DV_H1_LINE:
            dv_buf_add_c(text, "line\n");
            break;
        case DV_H1_HEAD:
            check_head(dv_h1_head(h1));
            add_head(text, dv_h1_head(h1));
            break;
        case DV_H1_BODY:
            assert(part.n > 0);
            dv_buf_add(body, part);
            break;
        case DV_H1_END:
            dv_buf_printf(text, "end \"%.*s\"%s\n", DV_FMT(dv_buf_str(body)),
                          dv_h1_closes(h1) ? " closes" : "");
            dv_buf_clear(body);
            break;
        case DV_H1_BAD:
            status = dv_h1_refusal(h1, &err);
            assert(err->code != DV_OK && dv_h1_closes(h1));
            dv_buf_printf(text, "bad %u %s\n", status, err->msg);
            return false;
        }
    }
}

void add_events(struct dv_buf *text, dv_str bytes, size_t piece)
{
    struct dv_h1 h1 = {0};
    struct dv_buf body;
    bool goes_on = true;

    dv_buf_init(&body, TEXT_BYTES_MAX);
    for (size_t at = 0; at < bytes.n && goes_on; at += piece)
        goes_on =
            add_some(text, &h1, dv_str_slice(bytes, at, dv_size_min(at + piece, bytes.n)), &body);
    dv_buf_printf(text, "rest \"%.*s\"\n", DV_FMT(dv_buf_str(&body)));
    dv_buf_fini(&body);
    dv_h1_fini(&h1);
}
