/* grpc_conn.h - a socket and the HTTP/2 session on it: what channels and servers have in common. */
#ifndef DV_GRPC_CONN_H
#define DV_GRPC_CONN_H

#include <stdbool.h>

#include "base/err.h"
#include "http2/http2.h"
#include "loop/loop.h"

/* A connection; it is embedded in a channel's or a server's own struct. */
struct dv_conn {
    struct dv_loop *loop;
    struct dv_stream *stream;
    struct dv_stream_handler stream_handler;
    struct dv_h2 *h2;
    struct dv_task flush_task;
    struct dv_task break_task;
    struct dv_timer stall_timer; /* set while the peer does not take what we write */
    struct dv_err reason;        /* why the connection breaks; code DV_OK: it does not */
    /* The connection is gone and every call on it has ended. The owner frees it when `closed`
     * runs. */
    void (*gone)(struct dv_conn *conn, const struct dv_err *reason);
    void (*closed)(struct dv_conn *conn);
};

/* Starts to use the stream and owns it. The handler, `gone` and `closed` are kept. */
void dv_conn_start(struct dv_conn *conn, struct dv_loop *loop, struct dv_stream *stream,
                   const struct dv_h2_options *options, struct dv_h2_handler *handler);
/* Sends what the session has to send, later in this turn. */
void dv_conn_flush_later(struct dv_conn *conn);
/* Ends the connection, later in this turn; the first reason counts. */
void dv_conn_break(struct dv_conn *conn, enum dv_code code, const char *text);
/* Like dv_conn_break, after a GOAWAY for a peer that reads. */
void dv_conn_dismiss(struct dv_conn *conn, enum dv_code code, const char *text);
bool dv_conn_is_breaking(const struct dv_conn *conn);

#endif
