/* A WebSocket session of either side, whatever its peer sends: it is told the same however the
 * bytes are cut, and what it has understood is understood again when it is sent on.
 *
 *     1 byte   bit 0: we are the client; bit 1: what comes is sent on
 *     rest     what the peer sends */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "upgrade/websocket.h"

#define INPUT_BYTES_MAX 4096u
#define LOG_BYTES_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gathers messages, and writes down what each was. */
struct run {
    struct dv_ws_handler handler;
    struct dv_ws *ws;
    struct dv_buf message;
    struct dv_buf log;
    bool is_in_message;
    bool is_text;
    bool is_sent_on;
    bool is_over;
};

static void on_message(struct dv_ws_handler *handler, const struct dv_ws_part *part)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);
    struct dv_err err;

    assert(!run->is_over && part->is_first == !run->is_in_message);
    assert(part->bytes.n > 0 || part->is_first || part->is_last);
    if (part->is_first)
        dv_buf_clear(&run->message);
    assert(part->is_first || part->is_text == run->is_text);
    run->is_text = part->is_text;
    run->is_in_message = !part->is_last;
    dv_buf_add(&run->message, part->bytes);
    if (!part->is_last)
        return;
    assert(!part->is_text || dv_str_is_utf8(dv_buf_str(&run->message)));
    dv_buf_printf(&run->log, "%d %zu %016llx\n", part->is_text, run->message.n,
                  (unsigned long long)dv_hash(dv_buf_str(&run->message)));
    if (run->is_sent_on && !dv_ws_send(run->ws, part->is_text, dv_buf_str(&run->message), &err))
        assert(err.code == DV_RESOURCE_EXHAUSTED || err.code == DV_FAILED_PRECONDITION);
}

static void on_pong(struct dv_ws_handler *handler, dv_str payload)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);

    assert(!run->is_over && payload.n <= 125);
    dv_buf_printf(&run->log, "pong %zu\n", payload.n);
}

static void on_closed(struct dv_ws_handler *handler, unsigned code, dv_str reason)
{
    struct run *run = DV_CONTAINER(handler, struct run, handler);

    assert(!run->is_over && code >= 1000 && code < 5000 && dv_str_is_utf8(reason));
    run->is_over = true;
    dv_buf_printf(&run->log, "closed %u %zu\n", code, reason.n);
}

static void any_mask(void *ctx, uint8_t mask[4])
{
    static const uint8_t fixed[4] = {0x12, 0x34, 0x56, 0x78};

    (void)ctx;
    memcpy(mask, fixed, sizeof(fixed));
}

static void run_init(struct run *run, bool is_client, bool is_sent_on)
{
    struct dv_ws_options options = {
        .is_client = is_client, .random = any_mask, .unsent_bytes_max = 4096};

    *run = (struct run){
        .handler = {on_message, on_pong, on_closed},
          .is_sent_on = is_sent_on
    };
    dv_buf_init(&run->message, LOG_BYTES_MAX);
    dv_buf_init(&run->log, LOG_BYTES_MAX);
    run->ws = dv_ws_new(&options, &run->handler);
}

static void run_fini(struct run *run)
{
    dv_ws_free(run->ws);
    dv_buf_fini(&run->message);
    dv_buf_fini(&run->log);
}

/* What one of our sessions says, another one understands. */
static void check_output(struct run *run, bool is_client)
{
    struct run peer;
    struct dv_err err;
    dv_str bytes;

    run_init(&peer, !is_client, false);
    while (dv_ws_pull(run->ws, &bytes))
        assert(dv_ws_receive(peer.ws, bytes, &err));
    assert(!peer.is_in_message);
    run_fini(&peer);
}

static bool feed(struct run *run, dv_str bytes, size_t step)
{
    struct dv_err err = {0};
    bool is_fine = true;

    while (bytes.n > 0) {
        bool was_fine = is_fine;

        is_fine = dv_ws_receive(run->ws, dv_str_slice(bytes, 0, step), &err);
        assert(was_fine || !is_fine);
        bytes = dv_str_slice(bytes, step, bytes.n);
    }
    assert(is_fine == (err.code == DV_OK));
    run->is_over |= !is_fine;
    assert(!run->is_over || is_fine == false || dv_ws_is_over(run->ws));
    return is_fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run runs[2];
    bool is_client;
    bool is_fine;
    dv_str bytes;

    if (size < 1 || size > INPUT_BYTES_MAX)
        return 0;
    is_client = data[0] & 1;
    bytes = (dv_str){(const char *)data + 1, size - 1};
    run_init(&runs[0], is_client, data[0] & 2);
    run_init(&runs[1], is_client, data[0] & 2);
    is_fine = feed(&runs[0], bytes, SIZE_MAX);
    assert(feed(&runs[1], bytes, 1 + data[0] / 4 % 16) == is_fine);
    assert(dv_str_eq(dv_buf_str(&runs[0].log), dv_buf_str(&runs[1].log)));
    for (int i = 0; i < 2; i++) {
        check_output(&runs[i], is_client);
        run_fini(&runs[i]);
    }
    return 0;
}
