#include "verify/kit/driver_calls.h"

#include "base/arena.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "verify/kit/kubelet_side.h"
#include "verify/kit/trial.h"

/* Drivers are started by cases: what is not there yet comes soon. */
#define BACKOFF_FIRST_MS 20u
#define BACKOFF_MAX_MS 200u
/* Beyond the deadline of a call: its end is told by then, however busy the machine is. */
#define LATE_MS 5000u

struct connecting {
    struct dv_trial *trial;
    struct dv_channel *channel;
    struct dv_err err;
};

static void on_changed(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct connecting *connecting = ctx;

    (void)state;
    if (err)
        connecting->err = *err;
}

static bool is_ready(void *ctx)
{
    const struct connecting *connecting = ctx;

    return dv_channel_state(connecting->channel) == DV_CHANNEL_READY;
}

/* NULL, with the reason in `err`, when nobody answers in time. */
static struct dv_channel *try_connect(struct dv_trial *trial,
                                      const struct dv_registration *registration,
                                      uint64_t timeout_ms, struct dv_err *err)
{
    struct connecting *connecting = DV_NEW(trial->arena, struct connecting);
    const struct dv_channel_options options = {.name = registration->name,
                                               .message_bytes_max = DV_MESSAGE_BYTES_MAX,
                                               .backoff_first_ms = BACKOFF_FIRST_MS,
                                               .backoff_max_ms = BACKOFF_MAX_MS,
                                               .changed = on_changed,
                                               .ctx = connecting,
                                               .observer = &trial->observer};

    connecting->trial = trial;
    connecting->channel = dv_channel_open(trial->loop, registration->endpoint, &options, err);
    if (!connecting->channel)
        return NULL;
    if (dv_trial_wait_ms(trial, is_ready, connecting, timeout_ms, "a connection to it"))
        return connecting->channel;
    *err = connecting->err;
    if (err->code == DV_OK)
        (void)dv_fail(err, DV_DEADLINE_EXCEEDED, "nobody answers");
    (void)dv_wrap(err, "%.*s", DV_FMT(registration->endpoint));
    dv_channel_close(connecting->channel, NULL, NULL);
    return NULL;
}

struct dv_channel *dv_driver_connect(struct dv_trial *trial,
                                     const struct dv_registration *registration)
{
    struct dv_err err;
    struct dv_channel *channel = try_connect(trial, registration, trial->wait_ms, &err);

    if (!channel)
        dv_trial_fail(trial, "the driver does not serve on the socket that it named: %s", err.msg);
    return channel;
}

static bool is_true(void *ctx)
{
    const bool *flag = ctx;

    return *flag;
}

void dv_driver_disconnect(struct dv_trial *trial, struct dv_channel *channel)
{
    bool *is_closed = DV_NEW(trial->arena, bool);

    dv_channel_close(channel, dv_flag_set, is_closed);
    (void)dv_trial_wait_flag(trial, is_closed, "the end of a connection");
}

/* ---- calls ---- */

static void on_message(struct dv_call *call, dv_str message)
{
    struct dv_driver_call *driver_call = DV_CONTAINER(call, struct dv_driver_call, call);

    driver_call->answer =
        dv_pb_decode(driver_call->type, message, driver_call->trial->arena, &driver_call->err);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_driver_call *driver_call = DV_CONTAINER(call, struct dv_driver_call, call);

    driver_call->took_ms = dv_trial_now_ms(driver_call->trial) - driver_call->start_ms;
    if (err) {
        driver_call->err = *err;
        driver_call->answer = NULL;
    }
    driver_call->is_done = true;
}

static struct dv_driver_call *start(struct dv_trial *trial, struct dv_channel *channel,
                                    const char *method, struct dv_h2_msg *message,
                                    const struct ProtobufCMessageDescriptor *type,
                                    uint64_t timeout_ms)
{
    struct dv_driver_call *made = DV_NEW(trial->arena, struct dv_driver_call);

    made->trial = trial;
    made->type = type;
    made->start_ms = dv_trial_now_ms(trial);
    made->call = (struct dv_call){.method = method,
                                  .message = on_message,
                                  .done = on_done,
                                  .deadline_ms = dv_loop_now_ms(trial->loop) + timeout_ms,
                                  .waits_for_ready = true};
    trial->n_calls++;
    dv_call_start(channel, &made->call, message);
    return made;
}

struct dv_driver_call *dv_driver_start(struct dv_trial *trial, struct dv_channel *channel,
                                       const char *method, const struct ProtobufCMessage *request,
                                       const struct ProtobufCMessageDescriptor *type,
                                       uint64_t timeout_ms)
{
    return start(trial, channel, method, dv_grpc_encode(request), type, timeout_ms);
}

struct dv_driver_call *dv_driver_start_bytes(struct dv_trial *trial, struct dv_channel *channel,
                                             const char *method, dv_str bytes,
                                             const struct ProtobufCMessageDescriptor *type,
                                             uint64_t timeout_ms)
{
    return start(trial, channel, method, dv_h2_msg_copy(bytes), type, timeout_ms);
}

void *dv_driver_finish(struct dv_driver_call *call)
{
    uint64_t now_ms = dv_loop_now_ms(call->trial->loop);
    uint64_t left_ms = call->call.deadline_ms > now_ms ? call->call.deadline_ms - now_ms : 0;

    if (!dv_trial_wait_ms(call->trial, is_true, &call->is_done, left_ms + LATE_MS,
                          call->call.method))
        dv_trial_break(call->trial, "a call had no end: %s", call->call.method);
    return call->answer;
}

void *dv_driver_ask(struct dv_trial *trial, struct dv_channel *channel, const char *method,
                    const struct ProtobufCMessage *request,
                    const struct ProtobufCMessageDescriptor *type, uint64_t timeout_ms,
                    struct dv_err *err)
{
    struct dv_driver_call *call =
        dv_driver_start(trial, channel, method, request, type, timeout_ms);
    void *answer = dv_driver_finish(call);

    *err = call->err;
    return answer;
}
