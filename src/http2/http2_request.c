/* http2_request.c - judges a request's header, and hands it on. nghttp2 has looked at most of RFC
 * 9113, section 8, before: which pseudo-fields there are and where, names in lower case,
 * characters, connection-specific fields, content-length. Here is what it leaves to us. */
#include <stdio.h>

#include <nghttp2/nghttp2.h>

#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "http2/header_list.h"
#include "http2/http2_server.h"
#include "http2/http2_server_state.h"
#include "http2/nv.h"

struct parts {
    struct dv_h2_http_request request;
    dv_str host;
    size_t n_hosts;
    bool has_authority;
    bool expects_continue;
};

static bool read_pseudo(struct parts *parts, const struct dv_h2_field *field)
{
    struct dv_h2_http_request *request = &parts->request;

    if (dv_str_eq(field->name, DV_STR(":method"))) {
        request->method = field->value;
    } else if (dv_str_eq(field->name, DV_STR(":scheme"))) {
        request->scheme = field->value;
    } else if (dv_str_eq(field->name, DV_STR(":path"))) {
        request->target = field->value;
    } else if (dv_str_eq(field->name, DV_STR(":authority"))) {
        request->authority = field->value;
        parts->has_authority = true;
    } else {
        return false;
    }
    return true;
}

static void read_field(struct parts *parts, const struct dv_h2_field *field)
{
    struct dv_h2_http_request *request = &parts->request;

    if (dv_str_eq(field->name, DV_STR("content-length")))
        request->has_length = dv_str_to_u64(field->value, &request->length);
    else if (dv_str_eq(field->name, DV_STR("expect")))
        parts->expects_continue = dv_str_eq_nocase(field->value, DV_STR("100-continue"));
}

static struct parts read_header(struct dv_h2_server *server)
{
    const struct dv_h2_header_list *list = &server->headers;
    struct parts parts = {.request = {.fields = server->fields}};

    for (size_t i = 0; i < list->n; i++) {
        struct dv_h2_field field = dv_h2_headers_at(list, i);

        if (read_pseudo(&parts, &field))
            continue;
        if (dv_str_eq(field.name, DV_STR("host"))) {
            parts.host = field.value;
            parts.n_hosts++;
            continue;
        }
        read_field(&parts, &field);
        server->fields[parts.request.n_fields++] = field;
    }
    if (!parts.has_authority)
        parts.request.authority = parts.host;
    return parts;
}

/* Returns the status that the request is refused with; 0: it is well-formed. */
static unsigned judge(const struct dv_h2_server *server, const struct parts *parts,
                      struct dv_err *err)
{
    const struct dv_h2_http_request *request = &parts->request;

    if (server->headers.is_over) {
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED,
                      "the request's header is larger than %zu bytes, or has more than %u fields",
                      server->options.header_bytes_max, DV_H2_SERVER_FIELDS_MAX);
        return 431;
    }
    if (dv_str_eq(request->method, DV_STR("CONNECT"))) {
        (void)dv_fail(err, DV_UNIMPLEMENTED, "CONNECT is not served");
        return 501;
    }
    /* RFC 9113, 8.3.1: both name the same place; what they name has no user in it. */
    if (parts->n_hosts > 1 || (parts->n_hosts == 1 && parts->has_authority &&
                               !dv_str_eq_nocase(parts->host, request->authority))) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "the host field differs from :authority");
        return 400;
    }
    if (request->authority.n == 0 ||
        dv_str_find_char(request->authority, '@') < request->authority.n) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "the authority \"%.*s\" is no host",
                      DV_FMT(dv_str_slice(request->authority, 0, 64)));
        return 400;
    }
    return 0;
}

static void refuse(struct dv_h2_stream *stream, unsigned status, const struct dv_err *err)
{
    struct dv_h2_server_handler *handler = stream->server->handler;
    static const struct dv_h2_field plain = {DV_STR_INIT("content-type"),
                                             DV_STR_INIT("text/plain")};
    struct dv_h2_answer answer = {.status = status, .fields = &plain, .n_fields = 1};

    stream->is_refused = true;
    if (handler->refused)
        handler->refused(handler, stream, status, err);
    if (stream->state != STREAM_OPEN)
        return;
    /* A code is enough for who has no words of his own; the text may be what the client sent. */
    answer.body.bytes = DV_STR("the request was refused\n");
    dv_h2_stream_answer(stream, &answer);
}

/* A client that waits for it has not sent its body yet, and is about to be heard. */
static void submit_continue(struct dv_h2_stream *stream)
{
    const nghttp2_nv status = constant(DV_STR(":status"), DV_STR("100"));

    /* Fails only when out of memory, which ends nghttp2's session by itself. */
    (void)nghttp2_submit_headers(stream->server->ng, NGHTTP2_FLAG_NONE, stream->id, NULL, &status,
                                 1, NULL);
}

void dv_h2_stream_on_header(struct dv_h2_stream *stream, bool is_end)
{
    struct dv_h2_server *server = stream->server;
    struct parts parts = read_header(server);
    struct dv_err err;
    unsigned status;

    stream->is_complete = is_end;
    stream->is_head = dv_str_eq(parts.request.method, DV_STR("HEAD"));
    stream->state = STREAM_OPEN;
    status = judge(server, &parts, &err);
    if (status != 0) {
        refuse(stream, status, &err);
        return;
    }
    parts.request.has_body = !is_end;
    server->handler->request(server->handler, stream, &parts.request);
    if (stream->state != STREAM_OPEN)
        return;
    if (is_end)
        server->handler->complete(server->handler, stream);
    else if (parts.expects_continue)
        submit_continue(stream);
}
