/* lib_call.h - questions of the agent that the driver answers: one RPC asks for several containers
 * or claims, and each of them is one davit_call. */
#ifndef DV_LIB_CALL_H
#define DV_LIB_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "davit/dra.h"

struct dv_lib_dra_job;
struct dv_lib_rpc;
struct dv_server_call;

enum dv_lib_rpc_kind {
    DV_RPC_ALLOCATE,
    DV_RPC_PRESTART,
    DV_RPC_PREFER,
    DV_RPC_PREPARE,
    DV_RPC_UNPREPARE,
};

/* The calls that a driver has not answered; part of its device plugin or its davit_dra. */
struct dv_lib_rpcs {
    struct dv_list open; /* struct dv_lib_rpc */
    bool is_closing;
};

struct davit_call {
    struct dv_lib_rpc *rpc;
    struct davit_allocate_request allocate; /* also the ids of a prestart */
    struct davit_prefer_request prefer;
    struct davit_dra_claim claim; /* of an unprepare only its ref */
    struct dv_buf answer;         /* its part of the response, encoded */
    struct dv_err err; /* the first mistake in the answer, or what the driver failed it with */
    bool is_ended;
};

/* One RPC. It lives as long as its server call, in the arena of that. */
struct dv_lib_rpc {
    struct dv_lib_rpcs *rpcs;
    struct dv_link link; /* in it */
    struct dv_server_call *server_call;
    enum dv_lib_rpc_kind kind;
    struct davit_call *calls;
    size_t n_calls;
    size_t n_open;
    bool is_asking;             /* the driver's callbacks run: the end waits for them */
    struct dv_err err;          /* of the whole; code DV_OK: each call has its own */
    struct dv_lib_dra_job *job; /* PREPARE, UNPREPARE */
};

void dv_lib_rpcs_init(struct dv_lib_rpcs *rpcs);
/* Ends all calls that the driver still has, and lets none begin: `what` is closing. */
void dv_lib_rpcs_close(struct dv_lib_rpcs *rpcs, const char *what);

/* Makes an RPC with zeroed calls: the caller fills in their requests, then calls dv_lib_rpc_ask. */
struct dv_lib_rpc *dv_lib_rpc_new(struct dv_lib_rpcs *rpcs, struct dv_server_call *server_call,
                                  enum dv_lib_rpc_kind kind, size_t n_calls);
/* Hands the calls to the driver's callbacks, one by one; the last answer ends the RPC. */
void dv_lib_rpc_ask(struct dv_lib_rpc *rpc);
/* Ends the RPC with this error, without asking the driver. */
void dv_lib_rpc_fail(struct dv_lib_rpc *rpc, const struct dv_err *err);

#endif
