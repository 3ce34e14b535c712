/* driver_calls.h - calls to the driver, as a kubelet makes them: each runs the loop until it is
 * answered. */
#ifndef DV_VERIFY_DRIVER_CALLS_H
#define DV_VERIFY_DRIVER_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "grpc/grpc.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;
struct dv_registration;
struct dv_trial;

/* What the kubelet takes of a message: 16 MiB. */
#define DV_MESSAGE_BYTES_MAX (16u << 20)
/* What a stream may send in a trial: it is all kept. */
#define DV_STREAM_BYTES_MAX (64u << 20)

/* Connects to the driver's socket, and waits until it answers; fails the trial when it does not. */
struct dv_channel *dv_driver_connect(struct dv_trial *trial,
                                     const struct dv_registration *registration);
void dv_driver_disconnect(struct dv_trial *trial, struct dv_channel *channel);

/* One unary call, lent to the channel until is_done. */
struct dv_driver_call {
    struct dv_call call;
    struct dv_trial *trial;
    const struct ProtobufCMessageDescriptor *type; /* of the answer */
    void *answer;      /* in the trial's arena; NULL: none yet, or err */
    struct dv_err err; /* DV_OK: it succeeded */
    uint64_t took_ms;
    uint64_t start_ms;
    bool is_done;
};

/* Starts a call, in the arena; for several at a time. */
struct dv_driver_call *dv_driver_start(struct dv_trial *trial, struct dv_channel *channel,
                                       const char *method, const struct ProtobufCMessage *request,
                                       const struct ProtobufCMessageDescriptor *type,
                                       uint64_t timeout_ms);
/* Like dv_driver_start, with bytes that need not be a message. */
struct dv_driver_call *dv_driver_start_bytes(struct dv_trial *trial, struct dv_channel *channel,
                                             const char *method, dv_str bytes,
                                             const struct ProtobufCMessageDescriptor *type,
                                             uint64_t timeout_ms);
/* Waits for its end, which its deadline brings at the latest. Returns the answer; NULL: it failed,
 * and call->err says how. */
void *dv_driver_finish(struct dv_driver_call *call);
/* One call from its start to its end. NULL: `err` is set. */
void *dv_driver_ask(struct dv_trial *trial, struct dv_channel *channel, const char *method,
                    const struct ProtobufCMessage *request,
                    const struct ProtobufCMessageDescriptor *type, uint64_t timeout_ms,
                    struct dv_err *err);

#endif
