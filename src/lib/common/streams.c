#include "lib/common/streams.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "grpc/grpc.h"
#include "http2/http2.h"

/* The most streams: an agent has one for each registration, and a few more may be people
 * who look. */
#define STREAMS_MAX 256u

struct stream {
    struct dv_lib_streams *streams;
    struct dv_server_call *call;
    struct dv_link link;
    bool is_sending; /* what was sent last has not gone out yet */
    bool is_behind;  /* and there is a newer list */
};

void dv_lib_streams_init(struct dv_lib_streams *streams, void (*changed)(void *ctx), void *ctx)
{
    *streams = (struct dv_lib_streams){.changed = changed, .ctx = ctx};
    dv_list_init(&streams->open);
}

void dv_lib_streams_fini(struct dv_lib_streams *streams)
{
    assert(streams->n == 0);
    dv_h2_msg_unref(streams->list);
    streams->list = NULL;
}

static void end(struct stream *stream, const struct dv_err *err)
{
    struct dv_server_call *call = stream->call;

    dv_link_remove(&stream->link);
    stream->streams->n--;
    free(stream);
    dv_server_call_finish(call, err);
}

/* Sends the list. False: it could not be sent, and the stream has been ended. */
static bool send_list(struct stream *stream)
{
    struct dv_err err;

    if (stream->is_sending || !stream->streams->list) {
        stream->is_behind = true;
        return true;
    }
    stream->is_behind = false;
    stream->is_sending = true;
    if (dv_server_call_send(stream->call, stream->streams->list, &err))
        return true;
    end(stream, &err);
    return false;
}

static void on_drained(void *ctx, struct dv_server_call *call)
{
    struct stream *stream = ctx;
    struct dv_lib_streams *streams = stream->streams;

    (void)call;
    stream->is_sending = false;
    if (stream->is_behind && !send_list(stream))
        streams->changed(streams->ctx);
}

static void on_cancelled(void *ctx, struct dv_server_call *call)
{
    struct stream *stream = ctx;
    struct dv_lib_streams *streams = stream->streams;

    (void)call;
    end(stream, NULL);
    streams->changed(streams->ctx);
}

void dv_lib_streams_add(struct dv_lib_streams *streams, struct dv_server_call *call)
{
    struct stream *stream;
    struct dv_err err;

    if (streams->n >= STREAMS_MAX) {
        (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED, "%zu streams are open already", streams->n);
        dv_server_call_finish(call, &err);
        return;
    }
    stream = DV_ALLOC(struct stream);
    stream->streams = streams;
    stream->call = call;
    dv_list_push(&streams->open, &stream->link);
    streams->n++;
    dv_server_call_on_cancel(call, on_cancelled, stream);
    dv_server_call_on_drained(call, on_drained, stream);
    if (send_list(stream))
        streams->changed(streams->ctx);
}

void dv_lib_streams_push(struct dv_lib_streams *streams, struct dv_h2_msg *list)
{
    struct dv_link *next;
    size_t n_before = streams->n;

    dv_h2_msg_unref(streams->list);
    streams->list = dv_h2_msg_ref(list);
    for (struct dv_link *link = streams->open.head.next; link != &streams->open.head; link = next) {
        next = link->next; /* a stream that cannot be sent to is removed */
        (void)send_list(DV_CONTAINER(link, struct stream, link));
    }
    if (streams->n < n_before)
        streams->changed(streams->ctx);
}

void dv_lib_streams_end(struct dv_lib_streams *streams, const struct dv_err *err)
{
    struct dv_link *link;

    while ((link = dv_list_first(&streams->open)) != NULL)
        end(DV_CONTAINER(link, struct stream, link), err);
}
