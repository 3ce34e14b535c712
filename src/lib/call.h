/* call.h - questions of the agent that the driver answers: one RPC asks for several containers, and
 * each of them is one davit_call. */
#ifndef DV_LIB_CALL_H
#define DV_LIB_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "davit/driver.h"

struct davit_device_plugin;
struct dv_lib_rpc;
struct dv_server_call;

enum dv_lib_rpc_kind {
    DV_RPC_ALLOCATE,
    DV_RPC_PRESTART,
    DV_RPC_PREFER,
};

struct davit_call {
    struct dv_lib_rpc *rpc;
    struct davit_allocate_request allocate; /* also the ids of a prestart */
    struct davit_prefer_request prefer;
    struct dv_buf answer; /* the container's part of the response, encoded */
    struct dv_err err;    /* the first mistake in the answer, or what the driver failed it with */
    bool is_ended;
};

/* Lives as long as its server call, in that one's arena. */
struct dv_lib_rpc {
    struct davit_device_plugin *plugin;
    struct dv_link link; /* in the plugin's rpcs */
    struct dv_server_call *server_call;
    enum dv_lib_rpc_kind kind;
    struct davit_call *calls;
    size_t n_calls;
    size_t n_open;
    bool is_asking; /* the driver's callbacks run: the end waits for them */
};

/* The calls are zeroed; fill in their requests, then ask. */
struct dv_lib_rpc *dv_lib_rpc_new(struct davit_device_plugin *plugin,
                                  struct dv_server_call *server_call, enum dv_lib_rpc_kind kind,
                                  size_t n_calls);
/* Hands the calls to the driver's callbacks, one by one; the last answer ends the RPC. */
void dv_lib_rpc_ask(struct dv_lib_rpc *rpc);
/* Ends all that the driver still holds: the plugin closes. */
void dv_lib_rpcs_abandon(struct davit_device_plugin *plugin);

#endif
