/* ws_channels.c - channels within a WebSocket, as the reference frames them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "upgrade/channels.h"
#include "upgrade/websocket.h"

#define UNSENT_BYTES_MAX (256u * 1024u)
/* What the reference sends at most, and its clients expect. */
#define MESSAGE_BYTES_MAX (32u * 1024u)
/* A part of a message as it arrives, and three digits that were left before it. */
#define DIGITS_BYTES_MAX (64u * 1024u * 1024u)
/* The channel byte of a message that ends another channel: version 5. */
#define CLOSE_BYTE 0xffu
#define QUAD_BYTES 4u

static const struct dv_channel_protocol protocols[] = {
    {.name = DV_STR_INIT("v5.channel.k8s.io"), .has_status = true, .can_close = true},
    {.name = DV_STR_INIT("v4.channel.k8s.io"),                       .has_status = true},
    {.name = DV_STR_INIT("v4.base64.channel.k8s.io"), .has_status = true, .is_base64 = true},
    {.name = DV_STR_INIT("channel.k8s.io")                                       },
    {.name = DV_STR_INIT("base64.channel.k8s.io"),                      .is_base64 = true},
    {.name = DV_STR_INIT("")                                       },
};

const dv_str *dv_channel_protocols(enum dv_channel_use use, size_t *n)
{
    static const dv_str exec[] = {
        DV_STR_INIT("v5.channel.k8s.io"),        DV_STR_INIT("v4.channel.k8s.io"),
        DV_STR_INIT("v4.base64.channel.k8s.io"), DV_STR_INIT("channel.k8s.io"),
        DV_STR_INIT("base64.channel.k8s.io"),    DV_STR_INIT(""),
    };
    static const dv_str port_forward[] = {
        DV_STR_INIT(DV_CHANNEL_TUNNEL),
        DV_STR_INIT("v4.channel.k8s.io"),
        DV_STR_INIT("v4.base64.channel.k8s.io"),
        DV_STR_INIT(""),
    };

    *n = use == DV_CHANNELS_OF_EXEC ? DV_COUNT(exec) : DV_COUNT(port_forward);
    return use == DV_CHANNELS_OF_EXEC ? exec : port_forward;
}

const struct dv_channel_protocol *dv_channel_protocol_find(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(protocols); i++) {
        if (dv_str_eq(protocols[i].name, name))
            return &protocols[i];
    }
    return NULL;
}

struct dv_channels {
    struct dv_ws *ws;
    struct dv_ws_handler ws_handler;
    struct dv_channels_handler *handler;
    const struct dv_channel_protocol *protocol;
    unsigned n_channels;
    size_t unsent_bytes_max;
    struct dv_buf message; /* that goes out */
    struct dv_err err;
    bool is_broken;

    /* the message that arrives */
    bool has_channel;
    unsigned channel;
    uint8_t ended_channel; /* of a message that ends one */
    size_t n_ended;        /* bytes of it after the first */
    struct dv_buf digits;  /* base64 that is no whole group of four yet, and the part at hand */
    bool is_padded;        /* nothing may follow in this message */
    struct dv_arena *scratch;
};

/* ---- receiving ---- */

static void break_off(struct dv_channels *channels, const char *why)
{
    channels->is_broken = true;
    (void)dv_fail(&channels->err, DV_INVALID_ARGUMENT, "WebSocket channels: %s", why);
    dv_ws_close(channels->ws, DV_WS_NOT_UTF8, dv_str_from_c(why));
}

static bool is_ending(const struct dv_channels *channels)
{
    return channels->protocol->can_close && channels->channel == CLOSE_BYTE;
}

static void on_bytes(struct dv_channels *channels, dv_str bytes)
{
    if (bytes.n == 0)
        return;
    if (is_ending(channels)) {
        channels->ended_channel = (uint8_t)bytes.p[0];
        channels->n_ended += bytes.n;
    } else if (channels->channel < channels->n_channels) {
        channels->handler->data(channels->handler, channels->channel, bytes);
    }
}

static void on_digits(struct dv_channels *channels, dv_str text)
{
    struct dv_buf *digits = &channels->digits;
    size_t n;
    dv_str bytes;

    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '\r' && text.p[i] != '\n') /* which Go's decoder skips */
            dv_buf_add_char(digits, text.p[i]);
    }
    n = digits->n - digits->n % QUAD_BYTES;
    if (n == 0)
        return;
    dv_arena_reset(channels->scratch);
    if (channels->is_padded ||
        !dv_base64_decode(dv_str_slice(dv_buf_str(digits), 0, n), channels->scratch, &bytes)) {
        break_off(channels, "a message is not base64");
        return;
    }
    channels->is_padded = digits->p[n - 1] == '=';
    memmove(digits->p, digits->p + n, digits->n - n);
    digits->n -= n;
    on_bytes(channels, bytes);
}

static void on_last(struct dv_channels *channels)
{
    if (channels->digits.n > 0) {
        break_off(channels, "a message is not base64");
    } else if (channels->has_channel && is_ending(channels)) {
        if (channels->n_ended != 1)
            break_off(channels, "a channel's end names not one channel");
        else if (channels->ended_channel < channels->n_channels && channels->handler->closed)
            channels->handler->closed(channels->handler, channels->ended_channel);
    }
    channels->has_channel = false;
}

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct dv_channels *channels = DV_CONTAINER(handler, struct dv_channels, ws_handler);
    dv_str bytes = part->bytes;

    if (channels->is_broken)
        return;
    if (!channels->has_channel && bytes.n > 0) {
        uint8_t first = (uint8_t)bytes.p[0];

        channels->has_channel = true;
        channels->channel = channels->protocol->is_base64 ? (uint8_t)(first - '0') : first;
        channels->n_ended = 0;
        channels->is_padded = false;
        bytes = dv_str_slice(bytes, 1, bytes.n);
    }
    if (channels->protocol->is_base64)
        on_digits(channels, bytes);
    else
        on_bytes(channels, bytes);
    if (part->is_last && !channels->is_broken)
        on_last(channels);
}

static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    struct dv_channels *channels = DV_CONTAINER(handler, struct dv_channels, ws_handler);

    if (!channels->is_broken)
        channels->handler->ended(channels->handler, code, reason);
}

bool dv_channels_receive(struct dv_channels *channels, dv_str bytes, struct dv_err *err)
{
    if (!channels->is_broken && !dv_ws_receive(channels->ws, bytes, &channels->err))
        channels->is_broken = true;
    if (channels->is_broken)
        *err = channels->err;
    return !channels->is_broken;
}

/* ---- sending ---- */

static bool send_message(struct dv_channels *channels, unsigned channel, dv_str bytes,
                         struct dv_err *err)
{
    bool is_base64 = channels->protocol->is_base64;

    dv_buf_clear(&channels->message);
    dv_buf_add_char(&channels->message, (char)(is_base64 ? '0' + channel : channel));
    if (is_base64)
        dv_base64_encode(bytes, &channels->message);
    else
        dv_buf_add(&channels->message, bytes);
    return dv_ws_send(channels->ws, is_base64, dv_buf_str(&channels->message), err);
}

bool dv_channels_send(struct dv_channels *channels, unsigned channel, dv_str bytes,
                      struct dv_err *err)
{
    size_t n_unsent = dv_ws_unsent_bytes(channels->ws);
    size_t max = channels->unsent_bytes_max;

    assert(channel < channels->n_channels);
    if (n_unsent > 0 && (bytes.n > max || n_unsent > max - bytes.n))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "the peer does not read: %zu bytes wait, %zu more pass the limit of %zu",
                       n_unsent, bytes.n, max);
    do {
        size_t n = dv_size_min(bytes.n, MESSAGE_BYTES_MAX - 1);

        if (!send_message(channels, channel, dv_str_slice(bytes, 0, n), err))
            return false; /* it is closed, which the first message has told */
        bytes = dv_str_slice(bytes, n, bytes.n);
    } while (bytes.n > 0);
    return true;
}

bool dv_channels_close(struct dv_channels *channels, unsigned channel, struct dv_err *err)
{
    const char text[] = {(char)CLOSE_BYTE, (char)channel};

    assert(channel < channels->n_channels);
    if (!channels->protocol->can_close)
        return dv_fail(err, DV_UNIMPLEMENTED, "a channel cannot be ended in \"%.*s\"",
                       DV_FMT(channels->protocol->name));
    return dv_ws_send(channels->ws, false, (dv_str){text, sizeof(text)}, err);
}

void dv_channels_end(struct dv_channels *channels, enum dv_ws_code code, dv_str reason)
{
    dv_ws_close(channels->ws, code, reason);
}

void dv_channels_ping(struct dv_channels *channels)
{
    dv_ws_ping(channels->ws, DV_STR_NONE);
}

bool dv_channels_pull(struct dv_channels *channels, dv_str *bytes)
{
    return dv_ws_pull(channels->ws, bytes);
}

bool dv_channels_is_over(const struct dv_channels *channels)
{
    return channels->is_broken || dv_ws_is_over(channels->ws);
}

size_t dv_channels_unsent_bytes(const struct dv_channels *channels)
{
    return dv_ws_unsent_bytes(channels->ws);
}

/* ---- life ---- */

struct dv_channels *dv_channels_new(const struct dv_channels_options *options,
                                    struct dv_channels_handler *handler)
{
    struct dv_channels *channels = DV_ALLOC(struct dv_channels);
    struct dv_ws_options ws = options->ws;

    assert(options->n_channels < CLOSE_BYTE + 1);
    channels->unsent_bytes_max = ws.unsent_bytes_max ? ws.unsent_bytes_max : UNSENT_BYTES_MAX;
    ws.unsent_bytes_max = SIZE_MAX; /* dv_channels_send holds the limit, for all or nothing */
    channels->ws_handler = (struct dv_ws_handler){.message = on_message, .closed = on_closed};
    channels->ws = dv_ws_new(&ws, &channels->ws_handler);
    channels->handler = handler;
    channels->protocol = options->protocol;
    channels->n_channels = options->n_channels;
    dv_buf_init(&channels->message, 2 * MESSAGE_BYTES_MAX);
    dv_buf_init(&channels->digits, DIGITS_BYTES_MAX);
    if (options->protocol->is_base64)
        channels->scratch = dv_arena_new();
    return channels;
}

void dv_channels_free(struct dv_channels *channels)
{
    if (!channels)
        return;
    dv_ws_free(channels->ws);
    dv_buf_fini(&channels->message);
    dv_buf_fini(&channels->digits);
    dv_arena_free(channels->scratch);
    free(channels);
}
