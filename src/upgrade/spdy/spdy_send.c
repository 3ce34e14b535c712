/* spdy_send.c - frames that go out. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "upgrade/spdy/spdy_header.h"
#include "upgrade/spdy/spdy_state.h"

#define CONTROL_WORD 0x80030000u /* version 3 */

static void add_u32(struct dv_buf *out, uint32_t value)
{
    const char bytes[] = {(char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                          (char)value};

    dv_buf_add(out, (dv_str){bytes, sizeof(bytes)});
}

static void set_u32(struct dv_buf *out, size_t at, uint32_t value)
{
    for (size_t i = 0; i < 4; i++)
        out->p[at + i] = (char)(value >> (24 - 8 * i));
}

/* Adds the head of a frame whose length is set when the frame is complete; returns where. */
static size_t begin_control(struct dv_buf *out, enum dv_spdy_type type)
{
    add_u32(out, CONTROL_WORD | type);
    add_u32(out, 0);
    return out->n;
}

static void end_control(struct dv_buf *out, size_t begin, uint8_t flags)
{
    set_u32(out, begin - 4, (uint32_t)flags << 24 | (uint32_t)(out->n - begin));
}

void dv_spdy_add_syn(struct dv_spdy_stream *stream, const struct dv_spdy_field *fields,
                     size_t n_fields)
{
    struct dv_buf *out = &stream->spdy->outbox.filled;
    size_t begin = begin_control(out, SPDY_SYN_STREAM);

    add_u32(out, stream->id);
    add_u32(out, 0);         /* associated with no other */
    dv_buf_add_char(out, 0); /* the highest priority */
    dv_buf_add_char(out, 0); /* slot */
    dv_spdy_headers_print(&stream->spdy->headers, fields, n_fields, out);
    end_control(out, begin, 0);
}

void dv_spdy_add_reply(struct dv_spdy_stream *stream)
{
    struct dv_buf *out = &stream->spdy->outbox.filled;
    size_t begin = begin_control(out, SPDY_SYN_REPLY);

    add_u32(out, stream->id);
    dv_spdy_headers_print(&stream->spdy->headers, NULL, 0, out);
    end_control(out, begin, 0);
}

void dv_spdy_add_data(struct dv_spdy_stream *stream, dv_str bytes, bool is_fin)
{
    struct dv_buf *out = &stream->spdy->outbox.filled;

    add_u32(out, stream->id);
    add_u32(out, (is_fin ? SPDY_FLAG_FIN : 0) << 24 | (uint32_t)bytes.n);
    dv_buf_add(out, bytes);
}

void dv_spdy_add_control(struct dv_spdy *spdy, enum dv_spdy_type type, const uint32_t *numbers,
                         size_t n_numbers)
{
    struct dv_buf *out = &spdy->outbox.filled;
    size_t begin = begin_control(out, type);

    for (size_t i = 0; i < n_numbers; i++)
        add_u32(out, numbers[i]);
    end_control(out, begin, 0);
}

void dv_spdy_add_reset(struct dv_spdy *spdy, uint32_t id, enum dv_spdy_status status)
{
    dv_spdy_add_control(spdy, SPDY_RST_STREAM, (uint32_t[]){id, status}, 2);
}

void dv_spdy_add_goaway(struct dv_spdy *spdy, uint32_t status)
{
    if (spdy->has_gone)
        return;
    spdy->has_gone = true;
    dv_spdy_add_control(spdy, SPDY_GOAWAY, (uint32_t[]){spdy->last_id, status}, 2);
}
