/* operation.c - one attempt to register the plugin behind a socket, step by step. The table of the
 * steps is at the end of this file.
 *
 *     CONNECTING --> ASKING --> CHECKING --> REGISTERING --> TELLING --> CLOSING --> done
 *                                  |           |     | late     ^           ^
 *                                  |           |     v          |           |
 *                                  |           |  OVERDUE ------'           |
 *                           failed |    failed |     | failed               |
 *                                  '-----------'-----'--> REFUSING ---------'
 *
 * A failure in any other step goes to CLOSING at once. So does a cancellation while CONNECTING;
 * later it goes to LEAVING, until what was begun has ended, or to LEAVING_REGISTERING, while that
 * is the handler. A plugin that has answered GetInfo is told how it ended: in TELLING that it is
 * registered, in REFUSING why it is not. */
#include "plugin/operation.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "loop/loop.h"
#include "plugin/guard.h"
#include "plugin/info.h"
#include "plugin/plugin.h"
#include "plugin/plugin_check.h"
#include "plugin/plugin_endpoint.h"
#include "policy/policy.h"
#include "proto/registration_v1.pb-c.h"

/* The reference's limits: for the connection to be ready, however many attempts that takes; for
 * GetInfo; for each NotifyRegistrationStatus. */
#define CONNECT_TIMEOUT_MS 10000u
#define INFO_TIMEOUT_MS 1000u
#define NOTIFY_TIMEOUT_MS 5000u
/* The limit for the handler, whose own steps have shorter ones: connecting alone may take 10 s. */
#define REGISTER_TIMEOUT_MS 60000u

#define GET_INFO "/pluginregistration.Registration/GetInfo"
#define NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"

enum step {
    CONNECTING,
    ASKING,              /* GetInfo is under way */
    CHECKING,            /* what GetInfo answered is checked */
    REGISTERING,         /* the handler is at work */
    OVERDUE,             /* the handler is at work past its deadline */
    TELLING,             /* NotifyRegistrationStatus is under way: registered */
    REFUSING,            /* NotifyRegistrationStatus is under way: not registered */
    LEAVING,             /* cancelled: what was begun ends first */
    LEAVING_REGISTERING, /* cancelled while the handler is at work */
    CLOSING,
};

enum event {
    ON_DONE,
    ON_FAILED, /* `cause` says why */
    ON_LATE,
    ON_CANCEL,
};

struct dv_plugin_operation {
    struct dv_loop *loop;
    const struct dv_plugin_rules *rules;
    struct dv_plugin_operation_owner *owner;
    enum step step;
    struct dv_task task; /* for what must not happen within start or cancel */
    struct dv_timer timer;
    struct dv_channel *channel; /* NULL: not open */
    struct dv_call call;
    struct dv_work check;
    struct dv_err check_err; /* written by the check alone while it runs */
    struct dv_plugin_registration registration;
    const struct dv_plugin_handler *handler;
    struct dv_arena *arena; /* holds info */
    struct dv_plugin_info info;
    const struct dv_policy_peer *peer; /* who listens on the socket */
    struct dv_err cause;               /* why the last step failed */
    struct dv_plugin_failure failure;  /* why the registration fails */
    bool has_given_way;                /* OVERDUE before its time, because others wait */
    dv_str path;
    char path_text[];
};

static void handle(struct dv_plugin_operation *op, enum event event);

/* ---- the connection ---- */

static void finish(struct dv_plugin_operation *op)
{
    struct dv_plugin_operation_owner *owner = op->owner;
    struct dv_err err = op->failure.err;

    dv_arena_free(op->arena);
    dv_plugin_failure_fini(&op->failure);
    free(op);
    owner->done(owner, err.code == DV_OK ? NULL : &err);
}

static void on_channel_closed(void *ctx)
{
    handle(ctx, ON_DONE);
}

static void on_not_open(struct dv_task *task)
{
    handle(DV_CONTAINER(task, struct dv_plugin_operation, task), ON_DONE);
}

static void close_connection(struct dv_plugin_operation *op)
{
    dv_timer_cancel(&op->timer);
    dv_task_cancel(&op->task);
    if (op->channel)
        dv_channel_close(op->channel, on_channel_closed, op);
    else
        dv_task_post(&op->task, op->loop, on_not_open);
}

static void fail_connect(struct dv_plugin_operation *op)
{
    (void)dv_plugin_failure_set(&op->failure, op->cause.code, "dial failed at socket %.*s, err: %s",
                                DV_FMT(op->path), op->cause.msg);
    close_connection(op);
}

static void on_changed(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_plugin_operation *op = ctx;

    if (op->step != CONNECTING)
        return; /* a running call reports the loss itself */
    if (err)
        op->cause = *err;
    if (state == DV_CHANNEL_READY)
        handle(op, ON_DONE);
}

static void on_connect_timeout(struct dv_timer *timer)
{
    struct dv_plugin_operation *op = DV_CONTAINER(timer, struct dv_plugin_operation, timer);

    if (op->cause.code == DV_OK)
        (void)dv_fail(&op->cause, DV_DEADLINE_EXCEEDED, "no HTTP/2 connection within %u ms",
                      CONNECT_TIMEOUT_MS);
    handle(op, ON_FAILED);
}

/* Ends the attempt after the policy refused the peer: one a second later would be refused as
 * well. */
static void on_refused(struct dv_task *task)
{
    handle(DV_CONTAINER(task, struct dv_plugin_operation, task), ON_FAILED);
}

static bool may_be_called(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    struct dv_plugin_operation *op = ctx;

    op->peer = dv_guard_identify(op->rules->guard, stream, op->arena);
    if (dv_guard_judge(op->rules->guard, op->peer, DV_POLICY_CONNECT, op->path, err))
        return true;
    op->cause = *err;
    if (op->step == CONNECTING)
        dv_task_post(&op->task, op->loop, on_refused);
    return false;
}

/* Connects; until the deadline the channel retries as often as gRPC does. */
static void on_connect(struct dv_task *task)
{
    struct dv_plugin_operation *op = DV_CONTAINER(task, struct dv_plugin_operation, task);
    const struct dv_channel_options options = {
        .name = op->path,
        .message_bytes_max = DV_PLUGIN_INFO_BYTES_MAX,
        .allows = may_be_called,
        .changed = on_changed,
        .ctx = op,
        .observer = op->rules->observer,
    };

    op->channel = dv_channel_open(op->loop, op->path, &options, &op->cause);
    if (op->channel)
        dv_timer_start(&op->timer, op->loop, dv_loop_now_ms(op->loop) + CONNECT_TIMEOUT_MS,
                       on_connect_timeout);
    else
        handle(op, ON_FAILED);
}

/* ---- calls ---- */

static void on_call_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_plugin_operation *op = DV_CONTAINER(call, struct dv_plugin_operation, call);

    if (err)
        op->cause = *err; /* without an error, the cause is what on_info found */
    handle(op, op->cause.code == DV_OK ? ON_DONE : ON_FAILED);
}

static void start_call(struct dv_plugin_operation *op, const char *method, uint64_t timeout_ms,
                       void (*message)(struct dv_call *call, dv_str message),
                       struct dv_h2_msg *request)
{
    (void)dv_succeed(&op->cause); /* the cause of an earlier step is settled */
    op->call = (struct dv_call){
        .method = method,
        .message = message,
        .done = on_call_done,
        .deadline_ms = dv_loop_now_ms(op->loop) + timeout_ms,
    };
    dv_call_start(op->channel, &op->call, request);
}

static void cancel_call(struct dv_plugin_operation *op)
{
    dv_call_cancel(&op->call);
}

static void on_info(struct dv_call *call, dv_str message)
{
    struct dv_plugin_operation *op = DV_CONTAINER(call, struct dv_plugin_operation, call);
    struct dv_err err;

    if (!dv_plugin_info_decode(message, op->path, op->arena, &op->info, &err))
        op->cause = err; /* it counts when the call is done */
    op->info.peer = op->peer;
}

static void ask_info(struct dv_plugin_operation *op)
{
    dv_timer_cancel(&op->timer);
    start_call(op, GET_INFO, INFO_TIMEOUT_MS, on_info, dv_h2_msg_new(0));
}

static void fail_info(struct dv_plugin_operation *op)
{
    (void)dv_plugin_failure_set(
        &op->failure, op->cause.code,
        "failed to get plugin info using RPC GetInfo at socket %.*s, err: %s", DV_FMT(op->path),
        op->cause.msg);
    close_connection(op);
}

static void notify(struct dv_plugin_operation *op, bool is_registered, const char *error)
{
    RegistrationV1__RegistrationStatus status = REGISTRATION_V1__REGISTRATION_STATUS__INIT;

    status.plugin_registered = is_registered;
    status.error = error;
    start_call(op, NOTIFY, NOTIFY_TIMEOUT_MS, NULL, dv_grpc_encode(&status.base));
}

/* ---- what the plugin says of itself ---- */

static void on_check_run(struct dv_work *work)
{
    struct dv_plugin_operation *op = DV_CONTAINER(work, struct dv_plugin_operation, check);

    if (dv_plugin_endpoint_check(op->info.endpoint, op->rules->endpoint_roots,
                                 op->rules->n_endpoint_roots, &op->check_err))
        (void)dv_succeed(&op->check_err);
}

static void on_check_done(struct dv_work *work, const struct dv_err *err)
{
    struct dv_plugin_operation *op = DV_CONTAINER(work, struct dv_plugin_operation, check);

    if (err)
        op->check_err = *err;
    if (op->check_err.code != DV_OK)
        (void)dv_plugin_failure_set(&op->failure, op->check_err.code,
                                    "plugin validation failed with err: %s", op->check_err.msg);
    handle(op, op->check_err.code == DV_OK ? ON_DONE : ON_FAILED);
}

static void check(struct dv_plugin_operation *op)
{
    bool is_in_limits = dv_plugin_check_limits(&op->info, &op->failure);

    if (is_in_limits) /* otherwise it is not worth keeping */
        op->owner->learned(op->owner, &op->info);
    if (!is_in_limits || !dv_plugin_judge(op->rules, &op->info, &op->handler, &op->failure)) {
        handle(op, ON_FAILED);
        return;
    }
    if (op->rules->accepts_any_endpoint) {
        handle(op, ON_DONE);
        return;
    }
    op->check.run = on_check_run;
    op->check.done = on_check_done;
    dv_work_start(&op->check, op->loop);
}

static void cancel_check(struct dv_plugin_operation *op)
{
    dv_work_cancel(&op->check);
}

/* ---- the handler ---- */

static void on_registered(struct dv_plugin_registration *registration, const struct dv_err *err)
{
    struct dv_plugin_operation *op =
        DV_CONTAINER(registration, struct dv_plugin_operation, registration);

    dv_timer_cancel(&op->timer);
    if (err)
        op->cause = *err;
    handle(op, err ? ON_FAILED : ON_DONE);
}

static void on_late(struct dv_timer *timer)
{
    handle(DV_CONTAINER(timer, struct dv_plugin_operation, timer), ON_LATE);
}

static void ask_handler(struct dv_plugin_operation *op)
{
    op->owner->added(op->owner, op->handler);
    op->registration = (struct dv_plugin_registration){
        .done = on_registered,
        .info = &op->info,
        .deadline_ms = dv_loop_now_ms(op->loop) + REGISTER_TIMEOUT_MS,
    };
    dv_timer_start(&op->timer, op->loop, op->registration.deadline_ms, on_late);
    op->handler->start(op->handler->ctx, &op->registration);
}

static void cancel_handler(struct dv_plugin_operation *op)
{
    op->handler->cancel(op->handler->ctx, &op->registration);
}

static void take_back(struct dv_plugin_operation *op)
{
    op->owner->removed(op->owner);
    close_connection(op);
}

/* ---- what the plugin is told ---- */

static void tell(struct dv_plugin_operation *op)
{
    notify(op, true, "");
}

static void refuse(struct dv_plugin_operation *op)
{
    notify(op, false, dv_buf_c(&op->failure.text));
}

static void refuse_after_handler(struct dv_plugin_operation *op)
{
    op->owner->removed(op->owner);
    (void)dv_plugin_failure_set(&op->failure, op->cause.code,
                                "plugin registration failed with err: %s", op->cause.msg);
    refuse(op);
}

static void refuse_late(struct dv_plugin_operation *op)
{
    if (op->has_given_way)
        (void)dv_fail(&op->cause, DV_DEADLINE_EXCEEDED, "not done yet, and others wait");
    else
        (void)dv_fail(&op->cause, DV_DEADLINE_EXCEEDED, "not done within %u ms",
                      REGISTER_TIMEOUT_MS);
    refuse_after_handler(op);
}

/* Ends the registration again: a plugin that does not know that it is registered will not work as
 * one. */
static void fail_telling(struct dv_plugin_operation *op)
{
    (void)dv_plugin_failure_set(&op->failure, op->cause.code,
                                "failed to send registration status at socket %.*s, err: %s",
                                DV_FMT(op->path), op->cause.msg);
    op->owner->removed(op->owner);
    op->handler->deregister(op->handler->ctx, &op->info);
    close_connection(op);
}

/* Goes on although the plugin answered a refusal with an error: that is common, the DRA helper
 * always does so. */
static void fail_refusing(struct dv_plugin_operation *op)
{
    dv_log(DV_LOG_DEBUG, "plugin: refusal not taken", DV_F_STR("socket", op->path),
           DV_F_ERR(&op->cause));
    close_connection(op);
}

/* ---- steps ---- */

/* When the socket goes away, what has begun ends, and nothing new begins. A plugin that the handler
 * has registered stays added: the owner sees that it is not desired any more, and removes it. */
static const struct {
    enum step in;
    enum event on;
    enum step next;
    void (*act)(struct dv_plugin_operation *op);
} steps[] = {
    {CONNECTING,          ON_DONE,   ASKING,              ask_info            },
    {CONNECTING,          ON_FAILED, CLOSING,             fail_connect        },
    {CONNECTING,          ON_CANCEL, CLOSING,             close_connection    },
    {ASKING,              ON_DONE,   CHECKING,            check               },
    {ASKING,              ON_FAILED, CLOSING,             fail_info           },
    {ASKING,              ON_CANCEL, LEAVING,             cancel_call         },
    {CHECKING,            ON_DONE,   REGISTERING,         ask_handler         },
    {CHECKING,            ON_FAILED, REFUSING,            refuse              },
    {CHECKING,            ON_CANCEL, LEAVING,             cancel_check        },
    {REGISTERING,         ON_DONE,   TELLING,             tell                },
    {REGISTERING,         ON_FAILED, REFUSING,            refuse_after_handler},
    {REGISTERING,         ON_LATE,   OVERDUE,             cancel_handler      },
    {REGISTERING,         ON_CANCEL, LEAVING_REGISTERING, cancel_handler      },
    {OVERDUE,             ON_DONE,   TELLING,             tell                },
    {OVERDUE,             ON_FAILED, REFUSING,            refuse_late         },
    {OVERDUE,             ON_CANCEL, LEAVING_REGISTERING, cancel_handler      },
    {TELLING,             ON_DONE,   CLOSING,             close_connection    },
    {TELLING,             ON_FAILED, CLOSING,             fail_telling        },
    {TELLING,             ON_CANCEL, LEAVING,             cancel_call         },
    {REFUSING,            ON_DONE,   CLOSING,             close_connection    },
    {REFUSING,            ON_FAILED, CLOSING,             fail_refusing       },
    {REFUSING,            ON_CANCEL, LEAVING,             cancel_call         },
    {LEAVING,             ON_DONE,   CLOSING,             close_connection    },
    {LEAVING,             ON_FAILED, CLOSING,             close_connection    },
    {LEAVING_REGISTERING, ON_DONE,   CLOSING,             close_connection    },
    {LEAVING_REGISTERING, ON_FAILED, CLOSING,             take_back           },
    {CLOSING,             ON_DONE,   CLOSING,             finish              },
};

static void handle(struct dv_plugin_operation *op, enum event event)
{
    size_t i = 0;

    while (i < DV_COUNT(steps) && (steps[i].in != op->step || steps[i].on != event))
        i++;
    if (i == DV_COUNT(steps)) { /* a cancellation that comes late or twice, or a late timer */
        dv_log(DV_LOG_TRACE, "plugin: event ignored", DV_F_STR("socket", op->path),
               DV_F_U64("step", op->step), DV_F_U64("event", event));
        return;
    }
    op->step = steps[i].next;
    if (event != ON_CANCEL) /* the owner cancelled, so it knows */
        op->owner->stepped(op->owner);
    steps[i].act(op); /* comes last, because it may free the operation */
}

struct dv_plugin_operation *dv_plugin_operation_start(struct dv_loop *loop, dv_str path,
                                                      const struct dv_plugin_rules *rules,
                                                      struct dv_plugin_operation_owner *owner)
{
    struct dv_plugin_operation *op = dv_alloc(sizeof(*op) + path.n);

    memcpy(op->path_text, path.p, path.n);
    op->path = (dv_str){op->path_text, path.n};
    op->loop = loop;
    op->rules = rules;
    op->owner = owner;
    op->step = CONNECTING;
    op->arena = dv_arena_new();
    dv_plugin_failure_init(&op->failure);
    dv_task_post(&op->task, loop, on_connect);
    return op;
}

void dv_plugin_operation_cancel(struct dv_plugin_operation *op)
{
    if (op->step != CLOSING && op->failure.err.code == DV_OK)
        (void)dv_fail(&op->failure.err, DV_CANCELLED, "the socket went away");
    handle(op, ON_CANCEL);
}

bool dv_plugin_operation_give_way(struct dv_plugin_operation *op)
{
    if (op->step != CONNECTING && op->step != REGISTERING)
        return false;
    if (op->step == CONNECTING) {
        if (op->cause.code == DV_OK)
            (void)dv_fail(&op->cause, DV_DEADLINE_EXCEEDED,
                          "no HTTP/2 connection yet, and others wait");
        handle(op, ON_FAILED);
    } else {
        op->has_given_way = true;
        handle(op, ON_LATE);
    }
    return true;
}

bool dv_plugin_operation_is_registering(const struct dv_plugin_operation *op)
{
    return op->step == REGISTERING || op->step == OVERDUE || op->step == TELLING;
}
