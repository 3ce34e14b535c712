#include "rest/tests/test_guest2.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/num.h"
#include "loop/loop.h"
#include "support/dvtest.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 60000u
#define BODY_BYTES_MAX (64u << 20)

/* ---- what nghttp2 tells ---- */

static struct reply *reply_of(struct guest *guest, int32_t id)
{
    for (size_t i = 0; i < guest->n_replies; i++)
        if (guest->replies[i].id == id)
            return &guest->replies[i];
    fail_msg("no stream %d", id);
    return NULL;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    struct reply *reply = reply_of(ctx, frame->hd.stream_id);
    dv_str text = {(const char *)name, name_n};

    (void)ng;
    (void)flags;
    if (dv_str_eq(text, DV_STR(":status")))
        memcpy(reply->status, value, dv_size_min(value_n, 3));
    else
        dv_buf_printf(&reply->fields, "%.*s=%.*s;", DV_FMT(text), (int)value_n,
                      (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t n,
                   void *ctx)
{
    (void)ng;
    (void)flags;
    dv_buf_add(&reply_of(ctx, id)->body, (dv_str){(const char *)data, n});
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error_code, void *ctx)
{
    struct reply *reply = reply_of(ctx, id);

    (void)ng;
    reply->is_over = true;
    reply->error_code = error_code;
    return 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *ctx)
{
    struct guest *guest = ctx;

    (void)ng;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        guest->was_told_to_go = true;
    return 0;
}

static ssize_t read_body(nghttp2_session *ng, int32_t id, uint8_t *to, size_t max, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx)
{
    struct reply *reply = reply_of(ctx, id);
    size_t n = dv_size_min(max, reply->to_send.n);

    (void)ng;
    (void)source;
    if (n == 0 && reply->holds_back)
        return NGHTTP2_ERR_DEFERRED;
    if (n > 0)
        memcpy(to, reply->to_send.p, n);
    reply->to_send = dv_str_slice(reply->to_send, n, reply->to_send.n);
    if (reply->to_send.n == 0 && !reply->holds_back)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- bytes ---- */

void guest_flush(struct guest *guest)
{
    const uint8_t *bytes;
    ssize_t n;

    while (!guest->is_closed && (n = nghttp2_session_mem_send(guest->ng, &bytes)) > 0) {
        for (ssize_t at = 0; at < n;) {
            ssize_t put = gnutls_record_send(guest->tls, bytes + at, (size_t)(n - at));

            if (put == GNUTLS_E_AGAIN) {
                loop_turns(guest->fixture->loop, 1); /* the server reads */
            } else if (put < 0) {
                guest->is_closed = true;
                return;
            } else {
                at += put;
            }
        }
    }
}

static void end(struct guest *guest)
{
    guest->is_closed = true;
    dv_poll_set(guest->poll, 0);
}

static void on_readable(void *ctx, unsigned events)
{
    struct guest *guest = ctx;
    uint8_t bytes[65536];
    ssize_t n;

    (void)events;
    if (!guest->is_shaken) {
        int status = gnutls_handshake(guest->tls);

        if (status == GNUTLS_E_SUCCESS)
            guest->is_shaken = true;
        else if (status != GNUTLS_E_AGAIN)
            end(guest);
        return;
    }
    while ((n = gnutls_record_recv(guest->tls, bytes, sizeof(bytes))) > 0) {
        if (nghttp2_session_mem_recv(guest->ng, bytes, (size_t)n) < 0)
            fail_msg("the server does not speak HTTP/2");
        guest_flush(guest);
    }
    if (n != GNUTLS_E_AGAIN)
        end(guest);
}

static nghttp2_session *new_session(struct guest *guest, bool gives_windows)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *ng;

    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_auto_window_update(option, !gives_windows);
    assert_int_equal(nghttp2_session_client_new2(&ng, callbacks, guest, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(ng, NGHTTP2_FLAG_NONE, NULL, 0), 0);
    return ng;
}

static bool is_shaken(void *ctx)
{
    struct guest *guest = ctx;

    return guest->is_shaken || guest->is_closed;
}

void guest_open(struct guest *guest, struct fixture *fixture, bool gives_windows)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(fixture->port)};
    gnutls_datum_t protocol = {(unsigned char *)(uintptr_t) "h2", 2};
    int one = 1;

    memset(guest, 0, sizeof(*guest));
    guest->fixture = fixture;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    guest->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(guest->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)setsockopt(guest->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* no 40 ms pauses */
    assert_int_equal(fcntl(guest->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(gnutls_init(&guest->tls, GNUTLS_CLIENT), 0);
    assert_int_equal(gnutls_set_default_priority(guest->tls), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(&guest->creds), 0);
    assert_int_equal(gnutls_credentials_set(guest->tls, GNUTLS_CRD_CERTIFICATE, guest->creds), 0);
    assert_int_equal(gnutls_alpn_set_protocols(guest->tls, &protocol, 1, 0), 0);
    gnutls_transport_set_int(guest->tls, guest->fd);
    guest->ng = new_session(guest, gives_windows);
    guest->poll = fixture_watch(fixture, guest->fd, on_readable, guest);
    on_readable(guest, DV_POLL_READ); /* says hello */
    assert_true(dv_loop_run_until(fixture->loop, is_shaken, guest, PATIENCE_MS));
    assert_false(guest->is_closed);
    assert_int_equal(gnutls_alpn_get_selected_protocol(guest->tls, &protocol), 0);
    guest_flush(guest);
}

void guest_close(struct guest *guest)
{
    if (guest->fd < 0)
        return;
    gnutls_deinit(guest->tls);
    gnutls_certificate_free_credentials(guest->creds);
    nghttp2_session_del(guest->ng);
    fixture_unwatch(guest->fixture, guest->fd);
    guest->fd = -1;
    for (size_t i = 0; i < guest->n_replies; i++) {
        dv_buf_fini(&guest->replies[i].body);
        dv_buf_fini(&guest->replies[i].fields);
    }
}

/* ---- requests ---- */

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static struct reply *start(struct guest *guest, const char *method, const char *path,
                           const nghttp2_nv *more, dv_str body, bool holds_back)
{
    nghttp2_nv fields[5] = {nv(":method", method), nv(":scheme", "https"),
                            nv(":authority", "host:1"), nv(":path", path)};
    nghttp2_data_provider provider = {.read_callback = read_body};
    struct reply *reply = &guest->replies[guest->n_replies++];

    assert_true(guest->n_replies <= DV_COUNT(guest->replies));
    if (more)
        fields[4] = *more;
    dv_buf_init(&reply->body, BODY_BYTES_MAX);
    dv_buf_init(&reply->fields, BODY_BYTES_MAX);
    reply->to_send = body;
    reply->holds_back = holds_back;
    reply->id = nghttp2_submit_request(guest->ng, NULL, fields, more ? 5 : 4,
                                       body.n > 0 || holds_back ? &provider : NULL, NULL);
    assert_true(reply->id > 0);
    guest_flush(guest);
    return reply;
}

struct reply *guest_ask(struct guest *guest, const char *method, const char *path, dv_str body)
{
    return start(guest, method, path, NULL, body, false);
}

struct reply *guest_begin(struct guest *guest, const char *path, dv_str body)
{
    return start(guest, "POST", path, NULL, body, true);
}

struct reply *guest_ask_with(struct guest *guest, const char *path, const char *name,
                             const char *value)
{
    nghttp2_nv more = nv(name, value);

    return start(guest, "GET", path, &more, DV_STR(""), false);
}

/* ---- waiting ---- */

static bool is_over(void *ctx)
{
    return ((struct reply *)ctx)->is_over;
}

void guest_expect_over(struct guest *guest, struct reply *reply)
{
    if (!dv_loop_run_until(guest->fixture->loop, is_over, reply, PATIENCE_MS))
        fail_msg("stream %d is not over; log: %s", reply->id, dv_buf_c(&guest->fixture->log));
}

void guest_expect(struct guest *guest, struct reply *reply, const char *status, const char *body)
{
    guest_expect_over(guest, reply);
    assert_string_equal(reply->status, status);
    assert_string_equal(dv_buf_c(&reply->body), body);
    assert_int_equal(reply->error_code, NGHTTP2_NO_ERROR);
}

static bool is_closed(void *ctx)
{
    return ((struct guest *)ctx)->is_closed;
}

void guest_expect_closed(struct guest *guest)
{
    if (!dv_loop_run_until(guest->fixture->loop, is_closed, guest, PATIENCE_MS))
        fail_msg("not closed; log: %s", dv_buf_c(&guest->fixture->log));
}
