/* ws_session.c - frames of WebSocket: RFC 6455, sections 5 to 7. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "upgrade/websocket.h"
#include "upgrade/wire/outbox.h"

#define UNSENT_BYTES_MAX (256u * 1024u)
#define HEAD_BYTES_MAX 14u
#define MASK_BYTES 4u
#define CONTROL_BYTES_MAX 125u
#define LENGTH_16 126u
#define LENGTH_64 127u
/* Masked payload is unmasked in pieces of this size; a message may be of any. */
#define PIECE_BYTES (16u * 1024u)

#define FLAG_FIN 0x80u
#define FLAGS_RESERVED 0x70u
#define FLAG_MASKED 0x80u
#define FLAG_CONTROL 0x08u

enum opcode {
    OP_CONTINUATION = 0,
    OP_TEXT = 1,
    OP_BINARY = 2,
    OP_CLOSE = 8,
    OP_PING = 9,
    OP_PONG = 10,
};

/* Where in a character of UTF-8 the text is. */
struct utf8 {
    unsigned n_left; /* bytes of the character that are missing */
    uint8_t low;     /* what the next of them may be */
    uint8_t high;
};

struct dv_ws {
    struct dv_ws_options options;
    struct dv_ws_handler *handler;
    struct dv_outbox outbox;
    struct dv_err err;
    bool is_broken;    /* the peer broke the protocol */
    bool has_closed;   /* our Close is sent */
    bool peer_is_done; /* its Close has arrived */

    /* the frame that arrives */
    uint8_t head[HEAD_BYTES_MAX];
    size_t n_head;
    size_t head_size; /* 0: not known yet */
    uint64_t left;    /* bytes of the payload that are missing */
    size_t mask_at;
    uint8_t control[CONTROL_BYTES_MAX];
    size_t n_control;

    /* the message that arrives */
    bool is_in_message;
    bool is_first;
    bool is_text;
    struct utf8 utf8;

    /* Only the latest ping is answered, as RFC 6455, 5.5.3, allows, so that pings cost a constant.
     */
    bool owes_pong;
    uint8_t pong[CONTROL_BYTES_MAX];
    size_t n_pong;

    uint8_t piece[PIECE_BYTES];
};

/* ---- sending ---- */

static void apply_mask(uint8_t *bytes, size_t n, const uint8_t mask[MASK_BYTES], size_t at)
{
    uint8_t turned[8];
    uint64_t wide;

    for (size_t i = 0; i < sizeof(turned); i++)
        turned[i] = mask[(at + i) % MASK_BYTES];
    memcpy(&wide, turned, sizeof(wide));
    for (; n >= sizeof(wide); n -= sizeof(wide), bytes += sizeof(wide)) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        word ^= wide;
        memcpy(bytes, &word, sizeof(word));
    }
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= turned[i];
}

static void add_frame(struct dv_ws *ws, enum opcode opcode, dv_str payload)
{
    struct dv_buf *out = &ws->outbox.filled;
    uint8_t masked = ws->options.is_client ? FLAG_MASKED : 0;
    uint8_t mask[MASK_BYTES];
    size_t n_length = payload.n < LENGTH_16 ? 0 : payload.n <= UINT16_MAX ? 2 : 8;
    uint64_t word = n_length == 0 ? payload.n : n_length == 2 ? LENGTH_16 : LENGTH_64;

    dv_buf_add_char(out, (char)(FLAG_FIN | opcode));
    dv_buf_add_char(out, (char)(masked | (uint8_t)word));
    for (size_t i = n_length; i > 0; i--)
        dv_buf_add_char(out, (char)((uint64_t)payload.n >> (8 * (i - 1))));
    if (masked) {
        ws->options.random(ws->options.random_ctx, mask);
        dv_buf_add(out, (dv_str){(const char *)mask, sizeof(mask)});
    }
    dv_buf_add(out, payload);
    if (masked)
        apply_mask((uint8_t *)out->p + out->n - payload.n, payload.n, mask, 0);
}

bool dv_ws_send(struct dv_ws *ws, bool is_text, dv_str message, struct dv_err *err)
{
    size_t max = ws->options.unsent_bytes_max;
    size_t n_unsent = ws->outbox.filled.n;

    if (ws->has_closed)
        return dv_fail(err, DV_FAILED_PRECONDITION, "the WebSocket is closed");
    if (n_unsent > 0 && (message.n > max || n_unsent > max - message.n))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "the peer does not read: %zu bytes wait, %zu more pass the limit of %zu",
                       n_unsent, message.n, max);
    add_frame(ws, is_text ? OP_TEXT : OP_BINARY, message);
    return true;
}

void dv_ws_ping(struct dv_ws *ws, dv_str payload)
{
    if (!ws->has_closed)
        add_frame(ws, OP_PING, dv_str_slice(payload, 0, CONTROL_BYTES_MAX));
}

static void send_close(struct dv_ws *ws, unsigned code, dv_str reason)
{
    char payload[CONTROL_BYTES_MAX];
    size_t n = dv_size_min(reason.n, sizeof(payload) - 2);

    if (ws->has_closed)
        return;
    ws->has_closed = true;
    ws->owes_pong = false; /* nothing may follow a Close */
    if (code == DV_WS_NO_CODE) {
        add_frame(ws, OP_CLOSE, DV_STR_NONE);
        return;
    }
    while (n > 0 && !dv_str_is_utf8(dv_str_slice(reason, 0, n)))
        n--; /* at most to the beginning of a character, unless the reason is no text */
    payload[0] = (char)(code >> 8);
    payload[1] = (char)code;
    if (n > 0)
        memcpy(payload + 2, reason.p, n);
    add_frame(ws, OP_CLOSE, (dv_str){payload, n + 2});
}

void dv_ws_close(struct dv_ws *ws, enum dv_ws_code code, dv_str reason)
{
    send_close(ws, code, reason);
}

bool dv_ws_pull(struct dv_ws *ws, dv_str *bytes)
{
    if (ws->owes_pong) {
        ws->owes_pong = false;
        add_frame(ws, OP_PONG, (dv_str){(const char *)ws->pong, ws->n_pong});
    }
    return dv_outbox_pull(&ws->outbox, bytes);
}

/* ---- receiving ---- */

static void break_off(struct dv_ws *ws, enum dv_ws_code code, const char *why)
{
    ws->is_broken = true;
    (void)dv_fail(&ws->err, DV_INVALID_ARGUMENT, "WebSocket: %s", why);
    send_close(ws, code, dv_str_from_c(why));
}

/* Begins a character of more than one byte. RFC 3629: no surrogates, nothing overlong, nothing
 * beyond U+10FFFF, all of which the second byte decides. */
static bool begin_char(struct utf8 *utf8, uint8_t c)
{
    if (c < 0xc2 || c > 0xf4)
        return false;
    utf8->n_left = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    utf8->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    utf8->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    return true;
}

static bool go_on_char(struct utf8 *utf8, uint8_t c)
{
    if (c < utf8->low || c > utf8->high)
        return false;
    *utf8 = (struct utf8){utf8->n_left - 1, 0x80, 0xbf};
    return true;
}

static bool take_utf8(struct utf8 *utf8, dv_str text)
{
    bool is_fine = true;

    for (size_t i = 0; is_fine && i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];

        if (utf8->n_left > 0)
            is_fine = go_on_char(utf8, c);
        else if (c >= 0x80)
            is_fine = begin_char(utf8, c);
    }
    return is_fine;
}

static enum opcode opcode_of(const struct dv_ws *ws)
{
    return (enum opcode)(ws->head[0] & 0x0fu);
}

static bool is_final(const struct dv_ws *ws)
{
    return ws->head[0] & FLAG_FIN;
}

/* The codes that may be on the wire: 7.4.2. */
static bool is_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static void on_close(struct dv_ws *ws, dv_str payload)
{
    unsigned code = DV_WS_NO_CODE;
    dv_str reason = dv_str_slice(payload, 2, payload.n);

    if (payload.n >= 2)
        code = (unsigned)(uint8_t)payload.p[0] << 8 | (uint8_t)payload.p[1];
    if (payload.n == 1 || (payload.n >= 2 && !is_code(code))) {
        break_off(ws, DV_WS_PROTOCOL_ERROR, "a Close frame without a valid code");
        return;
    }
    if (!dv_str_is_utf8(reason)) {
        break_off(ws, DV_WS_NOT_UTF8, "the reason of a Close frame is not UTF-8");
        return;
    }
    ws->peer_is_done = true;
    send_close(ws, code, DV_STR_NONE);
    ws->handler->closed(ws->handler, code, reason);
}

static void on_control(struct dv_ws *ws)
{
    dv_str payload = {(const char *)ws->control, ws->n_control};

    if (opcode_of(ws) == OP_CLOSE) {
        on_close(ws, payload);
    } else if (opcode_of(ws) == OP_PONG) {
        if (ws->handler->pong)
            ws->handler->pong(ws->handler, payload);
    } else if (!ws->has_closed) {
        memcpy(ws->pong, ws->control, ws->n_control);
        ws->n_pong = ws->n_control;
        ws->owes_pong = true;
    }
}

static void on_data(struct dv_ws *ws, dv_str bytes)
{
    struct dv_ws_part part = {
        .bytes = bytes,
        .is_text = ws->is_text,
        .is_first = ws->is_first,
        .is_last = is_final(ws) && ws->left == 0,
    };

    if (part.is_text && (!take_utf8(&ws->utf8, bytes) || (part.is_last && ws->utf8.n_left > 0))) {
        break_off(ws, DV_WS_NOT_UTF8, "a text message is not UTF-8");
        return;
    }
    if (bytes.n == 0 && !part.is_first && !part.is_last)
        return; /* an empty fragment */
    ws->is_first = false;
    ws->is_in_message = !part.is_last;
    ws->handler->message(ws->handler, &part);
}

/* Handles some of a frame's payload, or all of an empty one. */
static void on_payload(struct dv_ws *ws, dv_str bytes)
{
    if (opcode_of(ws) & FLAG_CONTROL) {
        if (bytes.n > 0)
            memcpy(ws->control + ws->n_control, bytes.p, bytes.n);
        ws->n_control += bytes.n;
        if (ws->left == 0)
            on_control(ws);
    } else {
        on_data(ws, bytes);
    }
}

/* Returns what is wrong with the first two bytes of a frame; NULL: nothing. */
static const char *judge_head(const struct dv_ws *ws)
{
    enum opcode opcode = opcode_of(ws);
    bool is_masked = ws->head[1] & FLAG_MASKED;

    if (ws->head[0] & FLAGS_RESERVED)
        return "a reserved bit is set";
    if (is_masked == ws->options.is_client)
        return is_masked ? "a server's frame is masked" : "a client's frame is not masked";
    switch (opcode) {
    case OP_CONTINUATION:
        return ws->is_in_message ? NULL : "a continuation without a message";
    case OP_TEXT:
    case OP_BINARY:
        return ws->is_in_message ? "a message within a message" : NULL;
    case OP_CLOSE:
    case OP_PING:
    case OP_PONG:
        if (!is_final(ws))
            return "a control frame in fragments";
        return (ws->head[1] & ~FLAG_MASKED) > CONTROL_BYTES_MAX ? "a long control frame" : NULL;
    }
    return "an unknown opcode";
}

static uint64_t length_of(const struct dv_ws *ws)
{
    uint8_t first = (uint8_t)(ws->head[1] & ~FLAG_MASKED);
    size_t n = first == LENGTH_16 ? 2 : first == LENGTH_64 ? 8 : 0;
    uint64_t length = n == 0 ? first : 0;

    for (size_t i = 0; i < n; i++)
        length = length << 8 | ws->head[2 + i];
    return length;
}

/* Whether the length is in as few bytes as it needs, and its highest bit is not set: 5.2. */
static bool is_length(const struct dv_ws *ws, uint64_t length)
{
    uint8_t first = (uint8_t)(ws->head[1] & ~FLAG_MASKED);

    if (first == LENGTH_64)
        return length > UINT16_MAX && length <= INT64_MAX;
    return first != LENGTH_16 || length >= LENGTH_16;
}

static void on_head(struct dv_ws *ws)
{
    enum opcode opcode = opcode_of(ws);

    ws->left = length_of(ws);
    if (!is_length(ws, ws->left)) {
        break_off(ws, DV_WS_PROTOCOL_ERROR, "a frame's length is malformed");
        return;
    }
    ws->mask_at = 0;
    ws->n_control = 0;
    if (opcode == OP_TEXT || opcode == OP_BINARY) {
        ws->is_in_message = true;
        ws->is_first = true;
        ws->is_text = opcode == OP_TEXT;
        ws->utf8 = (struct utf8){0};
    }
    if (ws->left == 0)
        on_payload(ws, DV_STR_NONE);
}

/* Takes bytes of a frame's head; returns the rest. */
static dv_str take_head(struct dv_ws *ws, dv_str bytes)
{
    size_t n = dv_size_min((ws->head_size ? ws->head_size : 2) - ws->n_head, bytes.n);

    memcpy(ws->head + ws->n_head, bytes.p, n);
    ws->n_head += n;
    if (ws->n_head == 2 && ws->head_size == 0) {
        uint8_t length = (uint8_t)(ws->head[1] & ~FLAG_MASKED);
        const char *fault = judge_head(ws);

        ws->head_size = 2 +
                        (length == LENGTH_16   ? 2u
                         : length == LENGTH_64 ? 8u
                                               : 0u) +
                        (ws->head[1] & FLAG_MASKED ? MASK_BYTES : 0u);
        if (fault)
            break_off(ws, DV_WS_PROTOCOL_ERROR, fault);
    }
    if (!ws->is_broken && ws->n_head == ws->head_size)
        on_head(ws);
    return dv_str_slice(bytes, n, bytes.n);
}

/* Takes bytes of a frame's payload; returns the rest. */
static dv_str take_payload(struct dv_ws *ws, dv_str bytes)
{
    bool is_masked = ws->head[1] & FLAG_MASKED;
    size_t n = dv_size_min(bytes.n, is_masked ? PIECE_BYTES : SIZE_MAX);
    dv_str part;

    n = (size_t)dv_u64_min(n, ws->left);
    part = dv_str_slice(bytes, 0, n);
    if (is_masked) {
        memcpy(ws->piece, part.p, n);
        apply_mask(ws->piece, n, ws->head + ws->head_size - MASK_BYTES, ws->mask_at);
        ws->mask_at = (ws->mask_at + n) % MASK_BYTES;
        part.p = (const char *)ws->piece;
    }
    ws->left -= n;
    on_payload(ws, part);
    return dv_str_slice(bytes, n, bytes.n);
}

bool dv_ws_receive(struct dv_ws *ws, dv_str bytes, struct dv_err *err)
{
    while (bytes.n > 0 && !ws->is_broken && !ws->peer_is_done) {
        if (ws->head_size == 0 || ws->n_head < ws->head_size)
            bytes = take_head(ws, bytes);
        else
            bytes = take_payload(ws, bytes);
        if (ws->head_size > 0 && ws->n_head == ws->head_size && ws->left == 0)
            ws->n_head = ws->head_size = 0; /* the next frame */
    }
    if (ws->is_broken)
        *err = ws->err;
    return !ws->is_broken;
}

bool dv_ws_is_over(const struct dv_ws *ws)
{
    return ws->is_broken || (ws->has_closed && ws->peer_is_done);
}

size_t dv_ws_unsent_bytes(const struct dv_ws *ws)
{
    return ws->outbox.filled.n;
}

struct dv_ws *dv_ws_new(const struct dv_ws_options *options, struct dv_ws_handler *handler)
{
    struct dv_ws *ws = DV_ALLOC(struct dv_ws);

    ws->options = *options;
    if (options->unsent_bytes_max == 0)
        ws->options.unsent_bytes_max = UNSENT_BYTES_MAX;
    ws->handler = handler;
    dv_outbox_init(&ws->outbox);
    return ws;
}

void dv_ws_free(struct dv_ws *ws)
{
    if (!ws)
        return;
    dv_outbox_fini(&ws->outbox);
    free(ws);
}
