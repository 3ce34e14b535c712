/* receive.c - handles what arrives on a call: its header lists and its messages. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "http2/header_list.h"
#include "http2/http2.h"
#include "http2/http2_fields.h"
#include "http2/http2_server.h"
#include "http2/session.h"

/* A message that comes in pieces gets this much at first and grows as it really arrives: a length
 * prefix alone costs the peer nothing, so it must cost us little. */
#define PARTIAL_FIRST_BYTES (64u * 1024u)
/* A stream on which such messages follow each other keeps the memory of one for the next, up to
 * this size: taking it from the system and giving it back costs more than the copy into it. All
 * streams of a connection together keep a quarter of what half messages may take, at most. */
#define KEPT_BYTES_MAX (8u << 20)
#define KEPT_SHARE 4u

void dv_h2_refuse(struct dv_h2 *h2, enum dv_code code, const char *fmt, ...)
{
    struct dv_err err;
    va_list args;

    if (!h2->handler->refused)
        return;
    va_start(args, fmt);
    (void)dv_vfail(&err, code, fmt, args);
    va_end(args);
    h2->handler->refused(h2->handler, &err);
}

/* ---- requests ---- */

/* The fields of a request's header, before they are checked. */
struct request_fields {
    struct dv_h2_request request;
    dv_str method;
    dv_str content_type;
    dv_str timeout; /* p is NULL when there is none; an empty one is malformed */
    dv_str encoding;
    size_t n_methods, n_paths;
    bool has_connection;
};

static struct request_fields read_request(const struct dv_h2_header_list *list)
{
    struct request_fields fields = {0};

    for (size_t i = 0; i < list->n; i++) {
        struct dv_h2_field header = dv_h2_headers_at(list, i);

        if (dv_str_eq(header.name, DV_STR(":method"))) {
            fields.method = header.value;
            fields.n_methods++;
        } else if (dv_str_eq(header.name, DV_STR(":path"))) {
            fields.request.path = header.value;
            fields.n_paths++;
        } else if (dv_str_eq(header.name, DV_STR("content-type"))) {
            fields.content_type = header.value;
        } else if (dv_str_eq(header.name, DV_STR("grpc-timeout"))) {
            fields.timeout = header.value;
        } else if (dv_str_eq(header.name, DV_STR("grpc-encoding"))) {
            fields.encoding = header.value;
        } else if (dv_str_eq(header.name, DV_STR("connection"))) {
            fields.has_connection = true;
        }
    }
    return fields;
}

/* Whether the path has the form "/package.Service/Method". */
static bool is_method_path(dv_str path)
{
    size_t slash;

    if (path.n < 2 || path.p[0] != '/')
        return false;
    slash = dv_str_find_char(dv_str_slice(path, 1, path.n), '/');
    return slash > 0 && slash + 2 < path.n;
}

static void refuse_request(struct dv_h2_call *call, const char *http_status, enum dv_code code,
                           const char *text)
{
    dv_h2_refuse(call->h2, code, "request refused with HTTP %s: %s", http_status, text);
    dv_h2_answer_error(call, http_status, code, dv_str_from_c(text));
}

/* Checks a request. False: it was answered with an error. */
static bool judge_request(struct dv_h2_call *call, struct request_fields *fields)
{
    struct dv_h2_request *request = &fields->request;

    if (call->h2->headers.is_over)
        refuse_request(call, "431", DV_RESOURCE_EXHAUSTED, "the header list is too large");
    else if (fields->n_methods != 1 || !dv_str_eq(fields->method, DV_STR("POST")))
        refuse_request(call, "405", DV_INTERNAL, "the HTTP method is not POST");
    else if (!dv_h2_is_grpc_content_type(fields->content_type))
        refuse_request(call, "415", DV_INTERNAL, "the content-type is not application/grpc");
    else if (fields->n_paths != 1 || !is_method_path(request->path))
        refuse_request(call, "200", DV_UNIMPLEMENTED, "the path is not /service/method");
    else if (fields->timeout.p && !dv_h2_timeout_parse(fields->timeout, &request->timeout_ns))
        refuse_request(call, "400", DV_INTERNAL, "malformed grpc-timeout");
    else
        return true;
    return false;
}

void dv_h2_on_request_headers(struct dv_h2_call *call, bool is_end)
{
    struct dv_h2 *h2 = call->h2;
    struct request_fields fields = read_request(&h2->headers);

    if (fields.has_connection) { /* HTTP/2 has no such field: RFC 9113, 8.2.2 */
        dv_h2_refuse(h2, DV_INTERNAL, "request with a connection header");
        dv_h2_call_fail(call, DV_INTERNAL, "connection header");
        return;
    }
    if (!judge_request(call, &fields))
        return;
    if (is_end) {
        refuse_request(call, "200", DV_INTERNAL, "the request has no message");
        return;
    }
    call->is_encoded = fields.encoding.n > 0 && !dv_str_eq(fields.encoding, DV_STR("identity"));
    fields.request.has_timeout = fields.timeout.p != NULL;
    call->state = CALL_OPEN;
    h2->handler->request(h2->handler, call, &fields.request);
}

/* ---- responses ---- */

struct response_fields {
    uint32_t http_status;
    bool has_status;
    dv_str content_type;
    dv_str status;
    dv_str message;
    bool is_encoded;
};

static struct response_fields read_response(const struct dv_h2_header_list *list)
{
    struct response_fields fields = {0};

    for (size_t i = 0; i < list->n; i++) {
        struct dv_h2_field header = dv_h2_headers_at(list, i);

        if (dv_str_eq(header.name, DV_STR(":status"))) {
            if (!dv_str_to_u32(header.value, &fields.http_status))
                fields.http_status = 0; /* a bad number maps to UNKNOWN */
        } else if (dv_str_eq(header.name, DV_STR("content-type"))) {
            fields.content_type = header.value;
        } else if (dv_str_eq(header.name, DV_STR("grpc-status"))) {
            fields.has_status = true;
            fields.status = header.value;
        } else if (dv_str_eq(header.name, DV_STR("grpc-message"))) {
            fields.message = header.value;
        } else if (dv_str_eq(header.name, DV_STR("grpc-encoding"))) {
            fields.is_encoded = !dv_str_eq(header.value, DV_STR("identity"));
        }
    }
    return fields;
}

/* Ends a call because the peer has said how it ended. A request that was not sent completely is
 * reset. */
static void end_by_peer(struct dv_h2_call *call, enum dv_code code, dv_str text)
{
    struct dv_h2_end end;

    if (code == DV_OK)
        (void)dv_succeed(&end.status);
    else
        (void)dv_fail(&end.status, code, "%.*s", DV_FMT(text));
    end.is_unprocessed = false;
    if (nghttp2_session_get_stream_local_close(call->h2->ng, call->stream) == 0)
        (void)nghttp2_submit_rst_stream(call->h2->ng, NGHTTP2_FLAG_NONE, call->stream,
                                        NGHTTP2_CANCEL); /* fails only when out of memory */
    dv_h2_call_end(call, &end);
}

static void end_with_status(struct dv_h2_call *call, const struct response_fields *fields)
{
    enum dv_code code = dv_h2_code_parse(fields->status);
    struct dv_buf text;

    if (code == DV_OK) {
        if (call->n_prefix > 0)
            end_by_peer(call, DV_INTERNAL, DV_STR("the answer ends in the middle of a message"));
        else
            end_by_peer(call, DV_OK, DV_STR(""));
        return;
    }
    dv_buf_init(&text, DV_ERR_MSG_BYTES * 3);
    dv_h2_percent_decode(dv_str_slice(fields->message, 0, DV_ERR_MSG_BYTES * 3), &text);
    end_by_peer(call, code, dv_buf_str(&text));
    dv_buf_fini(&text);
}

static void end_without_status(struct dv_h2_call *call)
{
    char text[64];
    int n = call->http_status == 200
                ? snprintf(text, sizeof(text), "the peer ended the call without a status")
                : snprintf(text, sizeof(text), "the peer answered HTTP %u", call->http_status);

    end_by_peer(call, dv_h2_code_from_http(call->http_status), (dv_str){text, (size_t)n});
}

void dv_h2_on_response_headers(struct dv_h2_call *call, bool is_end)
{
    struct response_fields fields = read_response(&call->h2->headers);

    if (call->h2->headers.is_over) {
        dv_h2_call_fail(call, DV_RESOURCE_EXHAUSTED, "the peer's header list is too large");
        return;
    }
    if (!is_end && fields.http_status >= 100 && fields.http_status < 200)
        return; /* it is informational, and the real headers follow */
    if (!call->has_headers) {
        call->http_status = fields.http_status;
        call->is_encoded = fields.is_encoded;
    }
    if (is_end && fields.has_status) {
        end_with_status(call, &fields);
    } else if (is_end) {
        end_without_status(call);
    } else if (call->has_headers) {
        dv_h2_call_fail(call, DV_INTERNAL, "the peer sent headers twice");
    } else if (fields.http_status != 200 || !dv_h2_is_grpc_content_type(fields.content_type)) {
        dv_h2_call_fail(call, dv_h2_code_from_http(fields.http_status),
                        "the peer answered HTTP %u with content-type \"%.*s\"", fields.http_status,
                        DV_FMT(dv_str_slice(fields.content_type, 0, 64)));
    } else {
        call->has_headers = true;
    }
}

/* ---- messages ---- */

static void drop_partial(struct dv_h2_call *call)
{
    call->h2->partial_bytes -= call->partial_size;
    free(call->partial);
    call->partial = NULL;
    call->partial_n = call->partial_size = 0;
}

/* Handles a fault in what the peer sends: a server answers it, a client cancels the call. */
static void fail_receive(struct dv_h2_call *call, enum dv_code code, const char *text)
{
    struct dv_h2 *h2 = call->h2;

    call->is_deaf = true;
    drop_partial(call);
    if (h2->options.is_server) {
        dv_h2_refuse(h2, code, "request: %s", text);
        dv_h2_finish(call, code, dv_str_from_c(text));
    } else {
        dv_h2_call_fail(call, code, "%s", text);
    }
}

static void check_prefix(struct dv_h2_call *call)
{
    const uint8_t *prefix = call->prefix;
    char text[96];

    call->message_n = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
                      (size_t)prefix[4];
    if (prefix[0] > 1) {
        fail_receive(call, DV_INTERNAL, "a message with an unknown flag");
    } else if (prefix[0] == 1 && !call->is_encoded) {
        fail_receive(call, DV_INTERNAL, "a compressed message without grpc-encoding");
    } else if (prefix[0] == 1) {
        fail_receive(call, call->h2->options.is_server ? DV_UNIMPLEMENTED : DV_INTERNAL,
                     "a compressed message; only identity is supported");
    } else if (call->message_n > call->h2->options.message_bytes_max) {
        (void)snprintf(text, sizeof(text), "a message of %zu bytes is larger than the limit of %zu",
                       call->message_n, call->h2->options.message_bytes_max);
        fail_receive(call, DV_RESOURCE_EXHAUSTED, text);
    }
}

static void deliver(struct dv_h2_call *call, dv_str message)
{
    struct dv_h2 *h2 = call->h2;

    call->n_prefix = 0;
    call->n_received++;
    if (h2->options.is_server)
        call->is_deaf = true; /* a request has one message, so what else comes is dropped */
    h2->handler->message(h2->handler, call, message);
}

/* Keeps bytes of an incomplete message. */
static void keep_partial(struct dv_h2_call *call, dv_str bytes)
{
    struct dv_h2 *h2 = call->h2;
    size_t size = call->partial_size;

    while (size < call->partial_n + bytes.n)
        size = dv_size_min(dv_size_max(size * 2, PARTIAL_FIRST_BYTES), call->message_n);
    if (h2->partial_bytes - call->partial_size + size > h2->options.partial_bytes_max) {
        fail_receive(call, DV_RESOURCE_EXHAUSTED, "too many messages in part on this connection");
        return;
    }
    if (size != call->partial_size) {
        h2->partial_bytes += size - call->partial_size;
        call->partial = dv_realloc(call->partial, size);
        call->partial_size = size;
    }
    memcpy(call->partial + call->partial_n, bytes.p, bytes.n);
    call->partial_n += bytes.n;
}

/* Whether the call keeps a buffer of the size for its next message. */
static bool keeps_buffer(const struct dv_h2_call *call, size_t size)
{
    const struct dv_h2 *h2 = call->h2;

    return !h2->options.is_server && call->n_received > 1 && call->state == CALL_OPEN &&
           !call->is_deaf && size <= KEPT_BYTES_MAX &&
           h2->partial_bytes + size <= h2->options.partial_bytes_max / KEPT_SHARE;
}

static void deliver_partial(struct dv_h2_call *call)
{
    char *whole = call->partial;
    size_t n = call->partial_n;
    size_t size = call->partial_size;

    /* The handler may fail the call, so it must not find the buffer there. */
    call->h2->partial_bytes -= size;
    call->partial = NULL;
    call->partial_n = call->partial_size = 0;
    deliver(call, (dv_str){whole, n});
    if (keeps_buffer(call, size)) {
        call->partial = whole;
        call->partial_size = size;
        call->h2->partial_bytes += size;
    } else {
        free(whole);
    }
}

/* Takes as much of one message as there is off `bytes`, and returns the rest. */
static dv_str take_message(struct dv_h2_call *call, dv_str bytes)
{
    dv_str part;
    size_t n;

    if (call->n_prefix < PREFIX_BYTES) {
        n = dv_size_min(PREFIX_BYTES - call->n_prefix, bytes.n);
        memcpy(call->prefix + call->n_prefix, bytes.p, n);
        call->n_prefix += n;
        bytes = dv_str_slice(bytes, n, bytes.n);
        if (call->n_prefix < PREFIX_BYTES)
            return bytes;
        check_prefix(call);
        if (call->is_deaf)
            return bytes;
    }
    n = dv_size_min(call->message_n - call->partial_n, bytes.n);
    part = dv_str_slice(bytes, 0, n);
    bytes = dv_str_slice(bytes, n, bytes.n);
    if (part.n == call->message_n) {
        deliver(call, part); /* the whole message is there, so it need not be copied */
        return bytes;
    }
    if (part.n > 0)
        keep_partial(call, part);
    if (!call->is_deaf && call->partial_n == call->message_n)
        deliver_partial(call);
    return bytes;
}

void dv_h2_on_data(struct dv_h2_call *call, dv_str bytes)
{
    if (!call->h2->options.is_server && !call->has_headers) {
        dv_h2_call_fail(call, DV_INTERNAL, "the peer sent data before headers");
        return;
    }
    while (bytes.n > 0 && !call->is_deaf) {
        size_t before = bytes.n;

        bytes = take_message(call, bytes);
        assert(bytes.n < before || call->is_deaf); /* otherwise it would never end */
    }
}

void dv_h2_on_peer_done(struct dv_h2_call *call)
{
    call->peer_is_done = true;
    if (!call->h2->options.is_server) {
        dv_h2_call_fail(call, DV_INTERNAL, "the peer ended the call without a status");
        return;
    }
    if (call->is_deaf)
        return;
    if (call->n_prefix > 0)
        fail_receive(call, DV_INTERNAL, "the request ends in the middle of a message");
    else
        fail_receive(call, DV_INTERNAL, "the request has no message");
}
