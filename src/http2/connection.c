#include "http2/connection.h"

#include <stdlib.h>

#include "base/num.h"

/* Some of what a peer sends must be answered (a PING, a request that is refused), which costs
 * memory until the peer reads. More answers than a read or two of ours can cause are an attack. */
#define UNSENT_FRAMES_MAX 16384u
/* The limit of the text that comes with a GOAWAY, and of nghttp2's own. */
#define REASON_BYTES_MAX 160u

void dv_h2_goodbye_say(nghttp2_session *ng, enum dv_h2_goodbye *goodbye)
{
    int32_t last = nghttp2_session_get_last_proc_stream_id(ng); /* 0 at a client */

    *goodbye = GOODBYE_SAID;
    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_goaway(ng, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
}

void dv_h2_goodbye_announce(nghttp2_session *ng, enum dv_h2_goodbye *goodbye)
{
    *goodbye = GOODBYE_DUE;
    (void)nghttp2_submit_shutdown_notice(ng); /* fails only when out of memory */
}

void dv_h2_goodbye_on_goaway_sent(nghttp2_session *ng, enum dv_h2_goodbye *goodbye)
{
    if (*goodbye != GOODBYE_DUE)
        return;
    /* The PING is not sent earlier, because it would overtake what waits to be sent. */
    *goodbye = GOODBYE_PINGED;
    (void)nghttp2_submit_ping(ng, NGHTTP2_FLAG_NONE, NULL); /* fails only out of memory */
}

void dv_h2_goodbye_on_ping_ack(nghttp2_session *ng, enum dv_h2_goodbye *goodbye)
{
    if (*goodbye == GOODBYE_PINGED)
        dv_h2_goodbye_say(ng, goodbye);
}

bool dv_h2_check_received(nghttp2_session *ng, ssize_t got, struct dv_err *err)
{
    size_t n_unsent = nghttp2_session_get_outbound_queue_size(ng);

    if (got == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        return dv_fail(err, DV_INTERNAL, "the peer does not speak HTTP/2");
    if (got < 0)
        return dv_fail(err, DV_INTERNAL, "HTTP/2: %s", nghttp2_strerror((int)got));
    if (n_unsent > UNSENT_FRAMES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "the peer does not read: %zu frames wait for it",
                       n_unsent);
    return true;
}

void dv_h2_fail_goaway(const nghttp2_goaway *goaway, enum dv_code code, const char *what,
                       struct dv_err *err)
{
    int n = (int)dv_size_min(goaway->opaque_data_len, REASON_BYTES_MAX);

    (void)dv_fail(err, code, "%s: %s %.*s", what, nghttp2_http2_strerror(goaway->error_code), n,
                  (const char *)goaway->opaque_data);
}

void dv_h2_fail_complaint(int lib_error_code, const char *text, size_t n, struct dv_err *err)
{
    (void)dv_fail(err, DV_INTERNAL, "HTTP/2: %.*s (%s)", (int)dv_size_min(n, REASON_BYTES_MAX),
                  text, nghttp2_strerror(lib_error_code));
}

/* How many bytes of DATA nghttp2 should put into a frame. */
static ssize_t on_data_length(nghttp2_session *ng, uint8_t type, int32_t stream,
                              int32_t session_window, int32_t stream_window, uint32_t frame_max,
                              void *ctx)
{
    (void)ng;
    (void)type;
    (void)stream;
    (void)ctx;
    (void)session_window; /* nghttp2 itself never exceeds the windows */
    (void)stream_window;
    return (ssize_t)dv_u64_min(frame_max, DV_H2_FRAME_BYTES);
}

nghttp2_session_callbacks *dv_h2_callbacks_new(const struct dv_h2_callbacks *callbacks)
{
    nghttp2_session_callbacks *ng;

    if (nghttp2_session_callbacks_new(&ng) != 0)
        abort(); /* out of memory */
    nghttp2_session_callbacks_set_on_begin_frame_callback(ng, callbacks->begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(ng, callbacks->begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(ng, callbacks->header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(ng, callbacks->invalid_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(ng, callbacks->data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(ng, callbacks->frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(ng, callbacks->invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(ng, callbacks->stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(ng, callbacks->frame_sent);
    nghttp2_session_callbacks_set_error_callback2(ng, callbacks->complaint);
    nghttp2_session_callbacks_set_data_source_read_length_callback(ng, on_data_length);
    return ng;
}

nghttp2_option *dv_h2_option_new(void)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        abort(); /* out of memory */
    nghttp2_option_set_no_closed_streams(option, 1);
    return option;
}
