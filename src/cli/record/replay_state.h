/* replay_state.h - a recorded driver that is served again. */
#ifndef DV_CLI_REPLAY_STATE_H
#define DV_CLI_REPLAY_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/record/exchange.h"
#include "grpc/grpc.h"

struct dv_arena;
struct dv_cli;

/* A method that the driver was called by. */
struct dv_replay_method {
    struct dv_replay *replay;
    struct dv_method method;
    bool is_stream;
};

struct dv_replay {
    struct dv_cli *cli;
    struct dv_arena *arena;
    struct dv_loop *loop;
    struct dv_exchanges exchanges;
    dv_str driver;
    struct dv_replay_method *methods;
    struct dv_service *services;
    size_t n_methods;
    struct dv_server *server;   /* the driver's own */
    struct dv_server *registry; /* where the agent asks who it is; NULL: it registers itself */
    dv_str info;                /* the answer to that */
    struct dv_channel *agent;   /* while it registers itself */
    struct dv_call register_call;
    struct dv_signal *signals[2];
    size_t n_open; /* servers and channels that are not closed */
    struct dv_err err;
};

/* replay_answer.c: sets `methods` and `services` from what was recorded. */
void dv_replay_find_methods(struct dv_replay *replay);

/* replay_register.c */
/* Makes the paths, and serves where the driver registers. DV_FAILED_PRECONDITION: the recording has
 * no registration. */
DV_CHECKED bool dv_replay_open(struct dv_replay *replay, struct dv_err *err);

#endif
