/* http1.c - cuts what arrives into lines and bodies. */
#include "http1/http1.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "http1/http1_head.h"

/* The limit of the line before a chunk: a size, and perhaps an extension that nobody reads. */
#define CHUNK_LINE_BYTES_MAX 256u
/* The limit of all extensions of a body's chunks: bytes that mean nothing cannot come forever. */
#define EXTENSIONS_BYTES_MAX 4096u
/* The size of a chunk is less than this, so that it can be multiplied by 16. */
#define CHUNK_BYTES_LIMIT (UINT64_MAX / 16)

void dv_h1_fini(struct dv_h1 *h1)
{
    dv_buf_fini(&h1->text);
    dv_vec_fini(&h1->fields);
    dv_vec_fini(&h1->places);
}

/* ---- lines ---- */

enum line {
    LINE_ARRIVING,
    LINE_HERE,
    LINE_TOO_LONG,
    LINE_BAD, /* it does not end in CRLF */
};

/* Takes the bytes of a line of at most `max` bytes, its end included. *line comes without that, and
 * lies in h1->text. */
static enum line take_line(struct dv_h1 *h1, dv_str *bytes, size_t max, dv_str *line)
{
    const char *lf = bytes->n > 0 ? memchr(bytes->p, '\n', bytes->n) : NULL;
    size_t n = lf ? (size_t)(lf - bytes->p) + 1 : bytes->n;
    size_t n_line = h1->text.n - h1->line_at;

    if (n > max || n_line > max - n)
        return LINE_TOO_LONG;
    if (h1->text.max == 0)
        dv_buf_init(&h1->text, 2 * DV_H1_HEAD_BYTES_MAX); /* who takes lines has less to give */
    dv_buf_add(&h1->text, dv_str_slice(*bytes, 0, n));
    *bytes = dv_str_slice(*bytes, n, bytes->n);
    if (!lf)
        return LINE_ARRIVING;
    *line = dv_str_slice(dv_buf_str(&h1->text), h1->line_at, h1->text.n - 1);
    h1->line_at = h1->text.n;
    if (line->n == 0 || line->p[line->n - 1] != '\r')
        return LINE_BAD;
    line->n--;
    return LINE_HERE;
}

static void drop_text(struct dv_h1 *h1)
{
    dv_buf_clear(&h1->text);
    h1->line_at = 0;
}

static enum dv_h1_event bad(struct dv_h1 *h1)
{
    h1->state = DV_H1_IS_BAD;
    h1->keeps_open = false;
    return DV_H1_BAD;
}

static enum dv_h1_event bad_line(struct dv_h1 *h1)
{
    (void)dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT, "bad request: a line does not end in CRLF");
    return bad(h1);
}

static enum dv_h1_event too_large(struct dv_h1 *h1)
{
    bool is_line = h1->state == DV_H1_IN_LINE;

    (void)dv_h1_refuse(h1, is_line ? 414 : 431, DV_RESOURCE_EXHAUSTED,
                       "the header is larger than %u bytes", DV_H1_HEAD_BYTES_MAX);
    return bad(h1);
}

/* ---- from one request to the next ---- */

static void begin(struct dv_h1 *h1)
{
    /* An idle connection keeps no memory. */
    dv_h1_fini(h1);
    memset(&h1->head, 0, sizeof(h1->head));
    h1->state = DV_H1_IN_LINE;
    h1->line_at = 0;
    h1->head_bytes = 0;
    h1->extensions_bytes = 0;
}

static enum dv_h1_event end(struct dv_h1 *h1)
{
    begin(h1);
    return DV_H1_END;
}

/* ---- the header ---- */

/* Takes a line of the header or the trailer, which counts. */
static enum line take_head_line(struct dv_h1 *h1, dv_str *bytes, dv_str *line)
{
    size_t left = DV_H1_HEAD_BYTES_MAX - h1->head_bytes;
    size_t begin_at = h1->line_at;
    enum line taken;

    if (left < DV_H1_LINE_OVERHEAD)
        return LINE_TOO_LONG;
    taken = take_line(h1, bytes, left - DV_H1_LINE_OVERHEAD, line);
    if (taken == LINE_HERE)
        h1->head_bytes += h1->text.n - begin_at + DV_H1_LINE_OVERHEAD;
    return taken;
}

/* Takes the next line of the header or the trailer. False: *event says why there is none. */
static bool next_line(struct dv_h1 *h1, dv_str *bytes, dv_str *line, enum dv_h1_event *event)
{
    switch (take_head_line(h1, bytes, line)) {
    case LINE_ARRIVING:
        *event = DV_H1_MORE;
        return false;
    case LINE_TOO_LONG:
        *event = too_large(h1);
        return false;
    case LINE_BAD:
        *event = bad_line(h1);
        return false;
    case LINE_HERE:
        break;
    }
    return true;
}

static enum dv_h1_event next_of_line(struct dv_h1 *h1, dv_str *bytes)
{
    enum dv_h1_event event;
    dv_str line;

    do {
        if (!next_line(h1, bytes, &line, &event))
            return event;
        if (line.n == 0) /* RFC 9112, 2.2: some send an empty line behind a body */
            drop_text(h1);
    } while (line.n == 0);
    if (!dv_h1_take_request_line(h1, line))
        return bad(h1);
    h1->state = DV_H1_IN_FIELDS;
    return DV_H1_LINE;
}

/* Takes fields up to the empty line, and keeps those of a header. False: *event says why it has not
 * come. */
static bool take_fields(struct dv_h1 *h1, dv_str *bytes, bool are_kept, enum dv_h1_event *event)
{
    dv_str line;

    while (next_line(h1, bytes, &line, event)) {
        if (line.n == 0)
            return true;
        if (!dv_h1_take_field(h1, line, are_kept)) {
            *event = bad(h1);
            return false;
        }
        if (!are_kept)
            drop_text(h1);
    }
    return false;
}

static enum dv_h1_event next_of_fields(struct dv_h1 *h1, dv_str *bytes)
{
    enum dv_h1_event event;

    if (!take_fields(h1, bytes, true, &event))
        return event;
    if (!dv_h1_take_head_end(h1))
        return bad(h1);
    h1->left = h1->head.length;
    h1->state = h1->head.is_chunked ? DV_H1_IN_CHUNK_LINE : DV_H1_IN_BODY;
    return DV_H1_HEAD;
}

/* ---- the body ---- */

static void take_part(struct dv_h1 *h1, dv_str *bytes, dv_str *part)
{
    *part = h1->left < bytes->n ? dv_str_slice(*bytes, 0, (size_t)h1->left) : *bytes;
    *bytes = dv_str_slice(*bytes, part->n, bytes->n);
    h1->left -= part->n;
}

static enum dv_h1_event next_of_body(struct dv_h1 *h1, dv_str *bytes, dv_str *part)
{
    if (h1->left == 0)
        return end(h1);
    if (bytes->n == 0)
        return DV_H1_MORE;
    take_part(h1, bytes, part);
    return DV_H1_BODY;
}

/* Parses "1a" or "1a;extension" into h1->left. */
static bool take_chunk_size(struct dv_h1 *h1, dv_str line)
{
    uint64_t size = 0;
    size_t i = 0;

    for (; i < line.n && dv_is_hex(line.p[i]) && size < CHUNK_BYTES_LIMIT; i++)
        size = size * 16 + (uint64_t)dv_hex_value(line.p[i]);
    h1->extensions_bytes += line.n - i;
    h1->left = size;
    return i > 0 && (i == line.n || line.p[i] == ';') && dv_h1_is_value(line) &&
           h1->extensions_bytes <= EXTENSIONS_BYTES_MAX;
}

static enum dv_h1_event next_of_trailer(struct dv_h1 *h1, dv_str *bytes)
{
    enum dv_h1_event event;

    return take_fields(h1, bytes, false, &event) ? end(h1) : event;
}

/* Takes the line before a chunk, or the end of the line behind one. */
static enum line take_chunk_line(struct dv_h1 *h1, dv_str *bytes)
{
    bool is_end = h1->state == DV_H1_IN_CHUNK_END;
    dv_str line;
    enum line taken = take_line(h1, bytes, is_end ? 2 : CHUNK_LINE_BYTES_MAX, &line);

    if (taken != LINE_HERE)
        return taken;
    if (is_end ? line.n > 0 : !take_chunk_size(h1, line))
        return LINE_BAD;
    drop_text(h1);
    if (is_end)
        h1->state = DV_H1_IN_CHUNK_LINE;
    else
        h1->state = h1->left > 0 ? DV_H1_IN_CHUNK : DV_H1_IN_TRAILER;
    return LINE_HERE;
}

static enum dv_h1_event next_of_chunks(struct dv_h1 *h1, dv_str *bytes, dv_str *part)
{
    while (h1->state != DV_H1_IN_CHUNK && h1->state != DV_H1_IN_TRAILER) {
        enum line taken = take_chunk_line(h1, bytes);

        if (taken == LINE_ARRIVING)
            return DV_H1_MORE;
        if (taken == LINE_HERE)
            continue;
        (void)dv_h1_refuse(h1, 400, DV_INVALID_ARGUMENT, "bad request: a chunk is malformed");
        return bad(h1);
    }
    if (h1->state == DV_H1_IN_TRAILER)
        return next_of_trailer(h1, bytes);
    if (bytes->n == 0)
        return DV_H1_MORE;
    take_part(h1, bytes, part);
    if (h1->left == 0)
        h1->state = DV_H1_IN_CHUNK_END;
    return DV_H1_BODY;
}

enum dv_h1_event dv_h1_next(struct dv_h1 *h1, dv_str *bytes, dv_str *part)
{
    switch (h1->state) {
    case DV_H1_IN_LINE:
        return next_of_line(h1, bytes);
    case DV_H1_IN_FIELDS:
        return next_of_fields(h1, bytes);
    case DV_H1_IN_BODY:
        return next_of_body(h1, bytes, part);
    case DV_H1_IN_CHUNK_LINE:
    case DV_H1_IN_CHUNK:
    case DV_H1_IN_CHUNK_END:
    case DV_H1_IN_TRAILER:
        return next_of_chunks(h1, bytes, part);
    case DV_H1_IS_BAD:
        break;
    }
    return DV_H1_BAD;
}

const struct dv_h1_head *dv_h1_head(const struct dv_h1 *h1)
{
    return &h1->head;
}

unsigned dv_h1_refusal(const struct dv_h1 *h1, const struct dv_err **err)
{
    *err = &h1->err;
    return h1->status;
}
