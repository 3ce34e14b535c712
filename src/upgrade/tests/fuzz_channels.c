/* Channels of a WebSocket, whatever the peer sends: each channel gets the same bytes however they
 * are cut, and what is sent on one comes out of it.
 *
 *     1 byte   bit 0: we are the client; the rest chooses the protocol
 *     rest     what the peer sends, and what is sent to a peer of our own */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "upgrade/channels.h"
#include "upgrade/websocket.h"

#define INPUT_BYTES_MAX 4096u
#define N_CHANNELS 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
    struct dv_channels_handler handler;
    struct dv_channels *channels;
    struct dv_buf got[N_CHANNELS];
    size_t n_closed;
    bool is_over;
};

static void on_data(struct dv_channels_handler *handler, unsigned channel, dv_str bytes)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);

    assert(!run->is_over && channel < N_CHANNELS && bytes.n > 0);
    dv_buf_add(&run->got[channel], bytes);
}

static void on_closed(struct dv_channels_handler *handler, unsigned channel)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);

    assert(!run->is_over && channel < N_CHANNELS);
    run->n_closed++;
}

static void on_ended(struct dv_channels_handler *handler, unsigned code, dv_str reason)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);

    assert(!run->is_over && code >= 1000 && dv_str_is_utf8(reason));
    run->is_over = true;
}

static void any_mask(void *ctx, uint8_t mask[4])
{
    static const uint8_t fixed[4] = {0x12, 0x34, 0x56, 0x78};

    (void)ctx;
    memcpy(mask, fixed, sizeof(fixed));
}

static void run_init(struct run *run, bool is_client, const struct dv_channel_protocol *protocol)
{
    struct dv_channels_options options = {
        .ws = {.is_client = is_client, .random = any_mask},
        .protocol = protocol,
        .n_channels = N_CHANNELS
    };

    *run = (struct run){
        .handler = {on_data, on_closed, on_ended}
    };
    for (size_t i = 0; i < N_CHANNELS; i++)
        dv_buf_init(&run->got[i], 4 * INPUT_BYTES_MAX);
    run->channels = dv_channels_new(&options, &run->handler);
}

static void run_fini(struct run *run)
{
    dv_channels_free(run->channels);
    for (size_t i = 0; i < N_CHANNELS; i++)
        dv_buf_fini(&run->got[i]);
}

static void carry(struct run *from, struct run *to)
{
    struct dv_err err;
    dv_str bytes;

    while (dv_channels_pull(from->channels, &bytes))
        assert(dv_channels_receive(to->channels, bytes, &err));
}

static bool feed(struct run *run, dv_str bytes, size_t step)
{
    struct dv_err err;
    bool is_fine = true;

    for (; bytes.n > 0; bytes = dv_str_slice(bytes, step, bytes.n))
        is_fine = dv_channels_receive(run->channels, dv_str_slice(bytes, 0, step), &err);
    return is_fine;
}

static void check_round_trip(bool is_client, const struct dv_channel_protocol *protocol,
                             dv_str bytes)
{
    struct run here;
    struct run there;
    struct dv_err err;

    run_init(&here, is_client, protocol);
    run_init(&there, !is_client, protocol);
    assert(dv_channels_send(here.channels, 1, bytes, &err));
    if (is_client && protocol->can_close)
        assert(dv_channels_close(here.channels, 0, &err));
    dv_channels_end(here.channels, DV_WS_NORMAL, bytes);
    carry(&here, &there);
    assert(dv_str_eq(dv_buf_str(&there.got[1]), bytes) && there.is_over);
    assert(there.n_closed == (is_client && protocol->can_close));
    carry(&there, &here);
    assert(dv_channels_is_over(here.channels) && dv_channels_is_over(there.channels));
    run_fini(&here);
    run_fini(&there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dv_channel_protocol *protocol;
    const dv_str *names;
    struct run runs[2];
    bool is_fine;
    dv_str bytes;
    size_t n;

    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    names = dv_channel_protocols(DV_CHANNELS_OF_EXEC, &n);
    protocol = dv_channel_protocol_find(names[data[0] / 2 % n]);
    bytes = (dv_str){(const char *)data + 1, size - 1};
    run_init(&runs[0], data[0] & 1, protocol);
    run_init(&runs[1], data[0] & 1, protocol);
    is_fine = feed(&runs[0], bytes, SIZE_MAX);
    assert(feed(&runs[1], bytes, 3) == is_fine);
    for (size_t i = 0; is_fine && i < N_CHANNELS; i++)
        assert(dv_str_eq(dv_buf_str(&runs[0].got[i]), dv_buf_str(&runs[1].got[i])));
    assert(!is_fine || runs[0].n_closed == runs[1].n_closed);
    run_fini(&runs[0]);
    run_fini(&runs[1]);
    check_round_trip(data[0] & 1, protocol, bytes);
    return 0;
}
