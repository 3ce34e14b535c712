/* http2_server_state.h - the structs of a server's session and its streams, shared by its files. */
#ifndef DV_HTTP2_SERVER_STATE_H
#define DV_HTTP2_SERVER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nghttp2/nghttp2.h>

#include "base/err.h"
#include "base/list.h"
#include "http2/connection.h"
#include "http2/flood.h"
#include "http2/header_list.h"
#include "http2/http2_server.h"

struct dv_h2_server {
    nghttp2_session *ng;
    struct dv_h2_server_options options;
    struct dv_h2_server_handler *handler;
    struct dv_list open;   /* streams that nghttp2 knows */
    struct dv_list ending; /* streams that were reset, for which `ended` is due */
    size_t n_streams;      /* streams in both lists */
    size_t unsent_bytes;
    struct dv_h2_header_list headers;
    struct dv_h2_field *fields; /* of the request that is handed on: DV_H2_SERVER_FIELDS_MAX */
    struct dv_h2_flood flood;
    struct dv_err err; /* the latest complaint about the client; code DV_OK: none */
    enum dv_h2_goodbye goodbye;
    bool is_broken; /* what still arrives is ignored */
    bool is_flooded;
    bool client_is_leaving; /* its GOAWAY has arrived */
    /* Nghttp2 ends the session for a fault of the client's that does not matter to us. */
    bool is_forgiving;
};

/* The state of a stream.
 *
 *     BEGUN ---> OPEN ---> STREAMED ---> FINISHED ---> gone     (the answer went out)
 *       any of them ---> gone                                   (the client reset it)
 *       any of them ---> ENDING ---> gone                       (we reset it) */
enum dv_h2_stream_state {
    STREAM_BEGUN,    /* the handler does not know it: its header is not complete */
    STREAM_OPEN,     /* the handler knows it, and has not answered */
    STREAM_STREAMED, /* the answer has begun, and has more */
    STREAM_FINISHED, /* the answer is complete, though perhaps not sent */
    STREAM_ENDING,   /* we have reset it */
};

struct dv_h2_piece {
    struct dv_link link;
    struct dv_h2_bytes bytes;
};

struct dv_h2_stream {
    struct dv_h2_server *server;
    void *ctx;
    enum dv_h2_stream_state state;
    int32_t id; /* 0: nghttp2 does not know it any more */
    struct dv_link link;

    /* the request */
    bool is_refused;     /* the rest of it does not matter */
    bool is_head;        /* the answer has no body */
    bool is_complete;    /* END_STREAM has arrived */
    bool is_paused;      /* the client's window is not opened again for now */
    size_t n_unreturned; /* bytes of the window that the client has not got back */

    /* the answer */
    struct dv_list pieces; /* struct dv_h2_piece */
    size_t sent_of_first;
    size_t unsent_bytes;
    bool answer_is_out;
    bool is_reset_by_client;
    struct dv_err *end; /* STREAM_ENDING: how it ends */
};

/* http2_stream.c */
struct dv_h2_stream *dv_h2_stream_new(struct dv_h2_server *server, int32_t id);
/* Removes the stream, tells the handler if that knows of it, and frees the stream. err: NULL when
 * it was answered. */
void dv_h2_stream_end(struct dv_h2_stream *stream, const struct dv_err *err);
/* Whether the rest of the request matters to nobody. */
bool dv_h2_stream_is_deaf(const struct dv_h2_stream *stream);
/* Gives the client back what it has used of its windows. */
void dv_h2_stream_return_window(struct dv_h2_stream *stream, size_t n);

/* http2_request.c */
/* Handles the complete header of a request: hands it on, or refuses it. */
void dv_h2_stream_on_header(struct dv_h2_stream *stream, bool is_end);

#endif
