/* device_endpoint.h - a plugin that has registered, as the files of its life share it: connecting
 * and options (device_endpoint.c), its list (device_endpoint_list.c), calls to it
 * (device_endpoint_call.c). */
#ifndef DV_DEVICE_ENDPOINT_H
#define DV_DEVICE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "device/device.h"
#include "device/manager/device_manager_state.h"
#include "device/state/list_pace.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_policy_peer;

enum dv_device_endpoint_state {
    DV_ENDPOINT_CONNECTING,
    DV_ENDPOINT_ASKING,
    DV_ENDPOINT_LISTING,
    DV_ENDPOINT_CLOSING,
};

struct dv_endpoint {
    struct dv_device_manager *devices;
    struct dv_link link;
    dv_str resource;
    dv_str socket;
    pid_t caller;
    enum dv_endpoint_version version;
    enum dv_device_endpoint_state state;
    struct dv_channel *channel;
    struct dv_err connect_err; /* of the last attempt */
    struct dv_timer connect_timer;
    struct dv_call options_call;
    struct dv_device_plugin_options options;
    struct dv_err options_err; /* of decoding them */
    struct dv_call list_call;
    struct dv_list_pace pace; /* of its lists */
    struct dv_timer list_timer;
    struct dv_buf newest; /* list, which waits for the timer, or for the job */
    bool has_newest;
    struct dv_list_job *job; /* reads a long list; NULL: none */
    uint64_t reading_ns;     /* when the last list began to be read */
    uint64_t asked_ns;       /* for its options, or its list */
    bool has_listed;
    void (*registered)(void *ctx, const struct dv_err *err);
    void *registered_ctx;
    struct dv_arena *arena;            /* of peer */
    const struct dv_policy_peer *peer; /* who listens on the socket; NULL: nobody looked */
    struct dv_task refused_task;
    char text[];
};

/* Ends the endpoint for this reason; does nothing when it has ended. */
void dv_endpoint_finish(struct dv_endpoint *endpoint, const struct dv_err *err);
/* Begins to watch the plugin's list, and stops reading lists that have come. */
void dv_endpoint_watch_list(struct dv_endpoint *endpoint);
void dv_endpoint_stop_reading(struct dv_endpoint *endpoint);
/* The path of ListAndWatch in its version of the API. */
const char *dv_endpoint_list_method(const struct dv_endpoint *endpoint);

#endif
