/* pb_write.c - fields of the wire format, one after the other. */
#include "pb/pb.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"

/* 64 bits in groups of seven. */
#define VARINT_BYTES_MAX 10u

static size_t put_varint(char *out, uint64_t value)
{
    size_t n = 0;

    while (value > 0x7f) {
        out[n++] = (char)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (char)value;
    return n;
}

void dv_pb_add_varint(struct dv_buf *buf, uint64_t value)
{
    char bytes[VARINT_BYTES_MAX];

    if (value <= 0x7f) /* most are a tag or a short length */
        dv_buf_add_char(buf, (char)value);
    else
        dv_buf_add(buf, (dv_str){bytes, put_varint(bytes, value)});
}

void dv_pb_add_number(struct dv_buf *buf, uint32_t number, uint64_t value)
{
    dv_pb_add_varint(buf, DV_PB_TAG(number, DV_PB_VARINT));
    dv_pb_add_varint(buf, value);
}

void dv_pb_add_bytes(struct dv_buf *buf, uint32_t number, dv_str bytes)
{
    char head[2 * VARINT_BYTES_MAX];
    size_t n = put_varint(head, DV_PB_TAG(number, DV_PB_BYTES));
    char *at;

    n += put_varint(head + n, bytes.n);
    if (bytes.n > SIZE_MAX - n)
        at = dv_buf_extend(buf, SIZE_MAX); /* which is over any ceiling */
    else
        at = dv_buf_extend(buf, n + bytes.n);
    if (!at)
        return;
    memcpy(at, head, n);
    if (bytes.n > 0)
        memcpy(at + n, bytes.p, bytes.n);
}

void dv_pb_add_texts(struct dv_buf *buf, uint32_t number, const dv_str *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dv_pb_add_bytes(buf, number, texts[i]);
}

size_t dv_pb_begin(struct dv_buf *buf, uint32_t number)
{
    dv_pb_add_varint(buf, DV_PB_TAG(number, DV_PB_BYTES));
    dv_buf_add_char(buf, 0); /* room for a length of one byte, the usual one */
    return buf->n;
}

void dv_pb_end(struct dv_buf *buf, size_t mark)
{
    char length[VARINT_BYTES_MAX];
    size_t n_body;
    size_t n_length;

    if (buf->is_over) /* then the mark may be wrong, and the buffer is of no use anyway */
        return;
    n_body = buf->n - mark;
    n_length = put_varint(length, n_body);
    if (n_length > 1) {
        if (!dv_buf_extend(buf, n_length - 1))
            return;
        memmove(buf->p + mark + n_length - 1, buf->p + mark, n_body);
    }
    memcpy(buf->p + mark - 1, length, n_length);
}
