/* lease_session.h - a lease being taken, and what davitd tells about it. */
#ifndef DV_CLI_LEASE_SESSION_H
#define DV_CLI_LEASE_SESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "cli/cli.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "proto/davit_node_v1.pb-c.h"

/* Zeroed, then the first members are filled in. */
struct dv_lease_session {
    struct dv_cli *cli;
    NodeV1__TakeLeaseRequest *request;
    /* The devices are ours; runs once. NULL: the session ends then. */
    void (*granted)(struct dv_lease_session *session);
    /* davitd has ended the lease, or the stream; session->err says why there is none. */
    void (*ended)(struct dv_lease_session *session);

    struct dv_loop *loop;
    struct dv_channel *channel;
    struct dv_call call;
    struct dv_timer again; /* attaches to the lease anew, or prints the line with the new time */
    struct dv_timer tick;
    const NodeV1__LeaseGrant *grant; /* NULL: none yet */
    const NodeV1__LeaseEnd *end;     /* NULL: not told */
    struct dv_arena *waiting_arena;
    const NodeV1__LeaseWaiting *waiting; /* the last; NULL: it does not wait */
    char *told;                          /* the last line without times, that a file got */
    bool has_line;                       /* a terminal has one that is to be replaced */
    bool was_reached;
    bool is_running; /* the call is under way */
    bool is_closing;
    struct dv_err err; /* code DV_OK: none */
};

/* Opens the loop and takes the lease. False: err. */
DV_CHECKED bool dv_lease_session_open(struct dv_lease_session *session, struct dv_err *err);
/* Removes the line about waiting from a terminal. */
void dv_lease_session_clear_line(struct dv_lease_session *session);
/* Cancels what is under way, and frees everything but what is in cli->arena. */
void dv_lease_session_close(struct dv_lease_session *session);
/* Prints why there is no lease, and returns how to end. */
enum dv_exit dv_lease_session_explain(const struct dv_lease_session *session);

#endif
