/* grpc_channel.h - a channel and its connections, as channel.c keeps them and channel_observe.c
 * tells of them. */
#ifndef DV_GRPC_CHANNEL_H
#define DV_GRPC_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "grpc/grpc.h"
#include "grpc/grpc_conn.h"
#include "http2/http2.h"
#include "loop/loop.h"

struct dv_channel_conn {
    struct dv_conn conn;
    struct dv_h2_handler handler;
    struct dv_channel *channel;
    struct dv_link link; /* in channel->conns */
    struct dv_timer settings_timer;
    struct dv_peer peer;
    uint64_t id; /* for the observer; 0: there is none */
    uint64_t ready_ms;
    bool is_ready;
};

struct dv_channel {
    struct dv_loop *loop;
    dv_str path;
    struct dv_channel_options options;
    enum dv_channel_state state;
    struct dv_err err;               /* the last failure */
    struct dv_channel_conn *current; /* connecting or ready; NULL: there is none */
    struct dv_list conns;            /* the current one, and those that finish their calls */
    struct dv_list waiting;          /* calls that wait for a connection */
    struct dv_timer retry_timer;
    struct dv_task connect_task;
    struct dv_task changed_task;
    struct dv_task close_task;
    uint64_t backoff_ms;
    size_t n_calls;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
    char text[]; /* the texts of path and name */
};

/* channel_observe.c: tell the channel's observer, which is not NULL. */
void dv_channel_observe(const struct dv_channel *channel, const struct dv_channel_conn *conn,
                        enum dv_grpc_event_kind kind, const struct dv_err *status);
void dv_channel_observe_start(const struct dv_call *call);
void dv_channel_observe_message(const struct dv_call *call, dv_str message);
void dv_channel_observe_end(const struct dv_call *call, const struct dv_err *status);

#endif
