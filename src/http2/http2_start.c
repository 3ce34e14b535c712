/* http2_start.c - starts calls of clients, which wait until they get a stream. */
#include <assert.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "http2/header_list.h"
#include "http2/http2.h"
#include "http2/http2_fields.h"
#include "http2/nv.h"
#include "http2/session.h"

/* The number of fields that a request can have. */
#define N_REQUEST_FIELDS 8u

struct saved_start {
    size_t n_fields;
    nghttp2_nv fields[];
};

/* Gives a waiting call its stream; what the fields point to is copied unless it is constant. */
static void submit_request(struct dv_h2_call *call, const nghttp2_nv *fields, size_t n_fields)
{
    nghttp2_data_provider body = {.read_callback = dv_h2_read_data};
    struct dv_h2 *h2 = call->h2;
    int32_t stream = nghttp2_submit_request(h2->ng, NULL, fields, n_fields, &body, call);

    /* No stream ids are left: this connection has had its thousand million calls. */
    if (stream < 0) {
        /* Told at the next pull, because dv_h2_start never calls back. */
        h2->owes_going_away = true;
        dv_h2_close_to_calls(h2, nghttp2_strerror(stream));
        return;
    }
    dv_link_remove(&call->link);
    h2->n_waiting--;
    call->state = CALL_OPEN;
    call->stream = stream;
    h2->n_open++;
    dv_list_push(&h2->open, &call->link);
}

static bool has_free_stream(const struct dv_h2 *h2)
{
    uint32_t max =
        nghttp2_session_get_remote_settings(h2->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    /* Until the peer has said how many streams it takes, a second one might be refused. */
    return h2->n_open < (h2->is_ready ? max : 1);
}

/* Copies the fields and their texts into one block of memory. */
static struct saved_start *save_start(const nghttp2_nv *fields, size_t n_fields)
{
    size_t n_text = 0;
    struct saved_start *saved;
    uint8_t *text;

    for (size_t i = 0; i < n_fields; i++)
        n_text += fields[i].namelen + fields[i].valuelen;
    saved = dv_alloc(sizeof(*saved) + n_fields * sizeof(fields[0]) + n_text);
    text = (uint8_t *)&saved->fields[n_fields];
    saved->n_fields = n_fields;
    for (size_t i = 0; i < n_fields; i++) {
        nghttp2_nv *copy = &saved->fields[i];

        *copy = (nghttp2_nv){text, text + fields[i].namelen, fields[i].namelen, fields[i].valuelen,
                             NGHTTP2_NV_FLAG_NONE};
        memcpy(copy->name, fields[i].name, copy->namelen);
        if (copy->valuelen > 0)
            memcpy(copy->value, fields[i].value, copy->valuelen);
        text += copy->namelen + copy->valuelen;
    }
    return saved;
}

void dv_h2_start_waiting(struct dv_h2 *h2)
{
    struct dv_link *link;

    while (!h2->is_shut && has_free_stream(h2) && (link = dv_list_first(&h2->waiting)) != NULL) {
        struct dv_h2_call *call = DV_CONTAINER(link, struct dv_h2_call, link);

        submit_request(call, call->saved->fields, call->saved->n_fields);
    }
}

void dv_h2_close_to_calls(struct dv_h2 *h2, const char *why)
{
    struct dv_link *link;

    h2->is_shut = true;
    while ((link = dv_list_first(&h2->waiting)) != NULL)
        dv_h2_call_fail(DV_CONTAINER(link, struct dv_h2_call, link), DV_UNAVAILABLE,
                        "no more calls on this connection: %s", why);
}

static bool check_start(const struct dv_h2 *h2, const struct dv_h2_msg *msg, struct dv_err *err)
{
    if (h2->is_shut)
        return dv_fail(err, DV_UNAVAILABLE, "the peer takes no more calls on this connection");
    if (h2->n_waiting >= h2->options.calls_max && !(h2->n_waiting == 0 && has_free_stream(h2)))
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "%zu calls wait for the peer already",
                       h2->n_waiting);
    return dv_h2_check_unsent(h2, msg, err);
}

/* Checks the length of the fields: nghttp2 drops a list that is far too long, in a way that looks
 * as if the peer had refused it. */
static bool check_fields(const struct dv_h2 *h2, const nghttp2_nv *fields, size_t n_fields,
                         struct dv_err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n_fields; i++)
        bytes += fields[i].namelen + fields[i].valuelen + DV_H2_FIELD_OVERHEAD;
    if (bytes > h2->options.header_bytes_max)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu bytes of header fields are more than %zu",
                       bytes, h2->options.header_bytes_max);
    return true;
}

struct dv_h2_call *dv_h2_start(struct dv_h2 *h2, const struct dv_h2_start *start,
                               struct dv_h2_msg *msg, void *ctx, struct dv_err *err)
{
    nghttp2_nv fields[N_REQUEST_FIELDS];
    char timeout[DV_H2_TIMEOUT_BYTES];
    struct dv_h2_call *call;
    size_t n = 0;

    assert(!h2->options.is_server);
    if (!check_start(h2, msg, err))
        return NULL;
    fields[n++] = constant(DV_STR(":method"), DV_STR("POST"));
    fields[n++] = constant(DV_STR(":scheme"), DV_STR("http"));
    fields[n++] = variable(DV_STR(":path"), start->path);
    fields[n++] = constant(DV_STR(":authority"), DV_STR("localhost"));
    fields[n++] = constant(DV_STR("content-type"), DV_STR("application/grpc"));
    fields[n++] = constant(DV_STR("user-agent"), DV_STR("davit/" DV_VERSION));
    fields[n++] = constant(DV_STR("te"), DV_STR("trailers"));
    if (start->has_timeout)
        fields[n++] = variable(DV_STR("grpc-timeout"),
                               (dv_str){timeout, dv_h2_timeout_print(start->timeout_ns, timeout)});
    if (!check_fields(h2, fields, n, err))
        return NULL;
    call = dv_h2_call_new(h2, CALL_WAITING);
    call->ctx = ctx;
    dv_h2_enqueue(call, msg);
    dv_list_push(&h2->waiting, &call->link);
    h2->n_waiting++;
    if (h2->n_waiting == 1 && has_free_stream(h2))
        submit_request(call, fields, n);
    else
        call->saved = save_start(fields, n);
    return call;
}
