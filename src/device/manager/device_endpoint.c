/* device_endpoint.c - one plugin's life with us: connect, ask for options, watch its list, call it.
 *
 *     CONNECTING --ready--> ASKING --options--> LISTING --stream ends--> CLOSING
 *          |  10 s             |  fails                                     ^
 *          '-------------------'--------------------------------------------'
 *
 * The list is watched once: a plugin whose stream ends has to register again. */
#include "device/manager/devices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "device/device.h"
#include "device/state/pace.h"
#include "grpc/grpc.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "plugin/guard.h"
#include "policy/policy.h"

/* For the plugin to accept a connection; it should serve before it registers. */
#define CONNECT_TIMEOUT_MS 10000u
/* The reference has none of its own; a plugin that takes longer hangs. */
#define OPTIONS_TIMEOUT_MS 10000u

/* Lists up to here, some thousand devices, are read on the loop, where they cost least: some
 * milliseconds at most. Longer ones are read on a worker. */
#define SHORT_LIST_BYTES (64u * 1024u)

#define NS_PER_MS UINT64_C(1000000)
/* Of one process that calls Register: more resources than this there cannot be. */
#define CALLER_WAITING_MAX DV_DEVICE_RESOURCES_MAX

enum endpoint_state {
    ENDPOINT_CONNECTING,
    ENDPOINT_ASKING,
    ENDPOINT_LISTING,
    ENDPOINT_CLOSING,
};

struct dv_endpoint {
    struct dv_devices *devices;
    struct dv_link link;
    dv_str resource;
    dv_str socket;
    pid_t caller;
    enum dv_endpoint_version version;
    enum endpoint_state state;
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

/* Method paths by version; NULL: it has no such call. */
static const struct {
    const char *list;
    const char *calls[3]; /* by DV_DEVICE_ASK_* */
} methods[] = {
    [DV_ENDPOINT_V1BETA1] = {"/v1beta1.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_PREFERRED] =
                                  "/v1beta1.DevicePlugin/GetPreferredAllocation",
                              [DV_DEVICE_ASK_ALLOCATE] = "/v1beta1.DevicePlugin/Allocate",
                              [DV_DEVICE_ASK_PRESTART] =
                                  "/v1beta1.DevicePlugin/PreStartContainer"}                   },
    [DV_ENDPOINT_V1ALPHA2] = {"/deviceplugin.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_ALLOCATE] = "/deviceplugin.DevicePlugin/Allocate"}},
    [DV_ENDPOINT_V0_1] = {"/deviceplugin.DevicePlugin/ListAndWatch",
                             {[DV_DEVICE_ASK_ALLOCATE] = "/deviceplugin.DevicePlugin/Allocate"}},
};

static struct dv_h2_msg *empty_message(void)
{
    return dv_h2_msg_new(0);
}

/* Tells whoever waits for the registration. */
static void tell_registered(struct dv_endpoint *endpoint, const struct dv_err *err)
{
    void (*registered)(void *ctx, const struct dv_err *err) = endpoint->registered;

    endpoint->registered = NULL;
    if (registered)
        registered(endpoint->registered_ctx, err);
}

void dv_endpoint_forget(struct dv_endpoint *endpoint)
{
    endpoint->registered = NULL;
}

static void on_channel_closed(void *ctx)
{
    struct dv_endpoint *endpoint = ctx;
    struct dv_devices *devices = endpoint->devices;

    dv_link_remove(&endpoint->link);
    dv_arena_free(endpoint->arena);
    dv_buf_fini(&endpoint->newest);
    free(endpoint);
    dv_devices_check_closed(devices);
}

/* The end, for this reason. */
static void finish(struct dv_endpoint *endpoint, const struct dv_err *err)
{
    struct dv_devices *devices = endpoint->devices;
    bool was_listing = endpoint->state == ENDPOINT_LISTING;

    if (endpoint->state == ENDPOINT_CLOSING)
        return;
    endpoint->state = ENDPOINT_CLOSING;
    dv_timer_cancel(&endpoint->connect_timer);
    dv_task_cancel(&endpoint->refused_task);
    dv_timer_cancel(&endpoint->list_timer);
    if (endpoint->job)
        dv_list_job_forget(endpoint->job);
    endpoint->job = NULL;
    if (was_listing) {
        bool was_last = dv_device_disconnect(devices->state, endpoint->resource, endpoint->socket,
                                             dv_loop_now_ns(devices->loop));

        dv_log(DV_LOG_WARN,
               was_last ? "device: plugin is gone; its devices count as unhealthy"
                        : "device: plugin is gone; another one serves its resource",
               DV_F_STR("resource", endpoint->resource), DV_F_STR("socket", endpoint->socket),
               DV_F_ERR(err));
        dv_devices_watch_grace(devices);
        dv_saver_later(&devices->saver);
        dv_devices_tell_changed(devices);
    }
    dv_channel_close(endpoint->channel, on_channel_closed, endpoint);
    tell_registered(endpoint, err);
}

void dv_endpoint_stop(struct dv_endpoint *endpoint, const char *reason)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "%s", reason);
    finish(endpoint, &err);
}

void dv_endpoint_stop_link(struct dv_link *link, const char *reason)
{
    dv_endpoint_stop(DV_CONTAINER(link, struct dv_endpoint, link), reason);
}

/* ---- its list ---- */

static void on_list_timer(struct dv_timer *timer);
static void read_newest(struct dv_endpoint *endpoint);

static void tell_refused(const struct dv_endpoint *endpoint, const struct dv_err *err)
{
    dv_log(DV_LOG_ERROR, "device: list refused; the one before still counts",
           DV_F_STR("resource", endpoint->resource), DV_F_STR("socket", endpoint->socket),
           DV_F_ERR(err));
}

/* Its list counts now. */
static void tell_list(struct dv_endpoint *endpoint, const struct dv_device_diff *diff)
{
    struct dv_devices *devices = endpoint->devices;

    if (diff->n_duplicates > 0)
        dv_log(DV_LOG_WARN, "device: plugin lists a device more than once; the last counts",
               DV_F_STR("resource", endpoint->resource), DV_F_STR("device", diff->duplicate),
               DV_F_U64("n", diff->n_duplicates));
    if (diff->n_pods > 0 && devices->options.pods_changed)
        devices->options.pods_changed(devices->options.ctx, diff->pods, diff->n_pods);
    dv_saver_later(&devices->saver);
    dv_devices_tell_changed(devices);
}

/* Notes what the list cost, by the clock; what came meanwhile is read when it may. */
static void end_reading(struct dv_endpoint *endpoint)
{
    struct dv_loop *loop = endpoint->devices->loop;
    uint64_t now_ns = dv_clock_now_ns(dv_loop_clock(loop));
    uint64_t at_ns;

    dv_list_pace_note(&endpoint->pace, now_ns, now_ns - endpoint->reading_ns);
    if (!endpoint->has_newest)
        return;
    if (dv_list_pace_may_read(&endpoint->pace, now_ns, &at_ns))
        read_newest(endpoint);
    else
        dv_timer_start(&endpoint->list_timer, loop, at_ns / NS_PER_MS + 1, on_list_timer);
}

static void on_job(void *ctx, const struct dv_device_diff *diff, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;
    struct dv_device_resource_info info;

    endpoint->job = NULL;
    if (err) {
        tell_refused(endpoint, err);
    } else if (diff) {
        (void)dv_device_find(endpoint->devices->state, endpoint->resource, &info); /* it is there */
        dv_log(DV_LOG_INFO, "device: long list", DV_F_STR("resource", endpoint->resource),
               DV_F_U64("devices", info.n_devices), DV_F_U64("healthy", info.n_healthy));
        tell_list(endpoint, diff);
    }
    end_reading(endpoint); /* last: the diff is of the state before the next list */
}

static void read_here(struct dv_endpoint *endpoint, dv_str message)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_device_diff diff;
    struct dv_err err;

    if (!dv_device_apply_list(endpoint->devices->state, endpoint->resource, message, arena, &diff,
                              &err)) {
        tell_refused(endpoint, &err);
        return;
    }
    dv_log(diff.n_changes > 0 || diff.is_back ? DV_LOG_INFO : DV_LOG_DEBUG, "device: list",
           DV_F_STR("resource", endpoint->resource), DV_F_U64("changes", diff.n_changes));
    tell_list(endpoint, &diff);
}

static void read_list(struct dv_endpoint *endpoint, dv_str message)
{
    endpoint->has_listed = true;
    endpoint->reading_ns = dv_clock_now_ns(dv_loop_clock(endpoint->devices->loop));
    if (message.n > SHORT_LIST_BYTES) {
        endpoint->job =
            dv_list_job_start(endpoint->devices, endpoint->resource, message, on_job, endpoint);
        return;
    }
    read_here(endpoint, message);
    end_reading(endpoint);
}

static void read_newest(struct dv_endpoint *endpoint)
{
    struct dv_buf newest = endpoint->newest;

    dv_buf_init(&endpoint->newest, DV_DEVICE_LIST_BYTES_MAX);
    endpoint->has_newest = false;
    read_list(endpoint, dv_buf_str(&newest));
    dv_buf_fini(&newest);
}

static void on_list_timer(struct dv_timer *timer)
{
    read_newest(DV_CONTAINER(timer, struct dv_endpoint, list_timer));
}

/* A list is all there is: of those that come faster than they are read the newest counts. One that
 * is being read is not given up for it: a plugin that never stops would never be heard. */
static void on_list(struct dv_call *call, dv_str message)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, list_call);
    struct dv_loop *loop = endpoint->devices->loop;
    uint64_t at_ns = 0;

    if (endpoint->state != ENDPOINT_LISTING)
        return;
    if (!endpoint->job && !endpoint->has_newest &&
        dv_list_pace_may_read(&endpoint->pace, dv_clock_now_ns(dv_loop_clock(loop)), &at_ns)) {
        read_list(endpoint, message);
        return;
    }
    dv_buf_clear(&endpoint->newest);
    dv_buf_add(&endpoint->newest, message);
    if (!endpoint->job && !endpoint->has_newest)
        dv_timer_start(&endpoint->list_timer, loop, at_ns / NS_PER_MS + 1, on_list_timer);
    endpoint->has_newest = true;
}

static void on_list_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, list_call);
    struct dv_err ended;

    if (!err) {
        (void)dv_fail(&ended, DV_UNAVAILABLE, "the plugin ended ListAndWatch");
        err = &ended;
    }
    finish(endpoint, err);
}

static void watch_list(struct dv_endpoint *endpoint)
{
    endpoint->asked_ns = dv_loop_now_ns(endpoint->devices->loop);
    endpoint->list_call = (struct dv_call){
        .method = methods[endpoint->version].list,
        .message = on_list,
        .done = on_list_done,
        .deadline_ms = DV_NO_DEADLINE,
        .is_stream = true,
    };
    dv_call_start(endpoint->channel, &endpoint->list_call, empty_message());
}

/* ---- registration ---- */

/* One socket is one plugin: the same one again takes the place of what was there. */
static void take_over(struct dv_endpoint *endpoint)
{
    struct dv_endpoint *old =
        dv_endpoint_find(endpoint->devices, endpoint->resource, endpoint->socket);

    if (old)
        dv_endpoint_stop(old, "the plugin has registered again");
}

static void serve(struct dv_endpoint *endpoint)
{
    struct dv_devices *devices = endpoint->devices;
    struct dv_err err;

    take_over(endpoint);
    if (!dv_device_connect(devices->state, endpoint->resource, endpoint->socket, &endpoint->options,
                           &err)) {
        finish(endpoint, &err);
        return;
    }
    endpoint->state = ENDPOINT_LISTING;
    dv_log(DV_LOG_INFO, "device: plugin registered", DV_F_STR("resource", endpoint->resource),
           DV_F_STR("socket", endpoint->socket),
           DV_F_BOOL("pre_start", endpoint->options.needs_pre_start),
           DV_F_BOOL("preferred", endpoint->options.has_preference));
    watch_list(endpoint);
    dv_saver_later(&devices->saver);
    dv_devices_tell_changed(devices);
    tell_registered(endpoint, NULL); /* last: it may be the end of the world above */
}

static void on_options(struct dv_call *call, dv_str message)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, options_call);

    if (dv_device_plugin_options_decode(message, &endpoint->options, &endpoint->options_err))
        (void)dv_succeed(&endpoint->options_err);
}

static void on_options_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(call, struct dv_endpoint, options_call);
    struct dv_err reason;

    if (endpoint->state != ENDPOINT_ASKING)
        return;
    if (!err && endpoint->options_err.code == DV_OK) {
        serve(endpoint);
        return;
    }
    reason = err ? *err : endpoint->options_err;
    (void)dv_wrap(&reason, "failed to get device plugin options");
    finish(endpoint, &reason);
}

static void ask_options(struct dv_endpoint *endpoint)
{
    endpoint->state = ENDPOINT_ASKING;
    endpoint->asked_ns = dv_loop_now_ns(endpoint->devices->loop);
    endpoint->options_call = (struct dv_call){
        .method = "/v1beta1.DevicePlugin/GetDevicePluginOptions",
        .message = on_options,
        .done = on_options_done,
        .deadline_ms = dv_loop_now_ms(endpoint->devices->loop) + OPTIONS_TIMEOUT_MS,
    };
    dv_call_start(endpoint->channel, &endpoint->options_call, empty_message());
}

static void on_channel(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;

    if (endpoint->state != ENDPOINT_CONNECTING)
        return;
    if (err)
        endpoint->connect_err = *err;
    if (state != DV_CHANNEL_READY)
        return;
    dv_timer_cancel(&endpoint->connect_timer);
    if (endpoint->version == DV_ENDPOINT_V1BETA1)
        ask_options(endpoint);
    else
        serve(endpoint); /* the old ones have no options */
}

/* A refusal does not go away within the time for connecting: it is told at once. */
static void on_refused(struct dv_task *task)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(task, struct dv_endpoint, refused_task);

    finish(endpoint, &endpoint->connect_err);
}

static bool judge(const struct dv_endpoint *endpoint, struct dv_err *err)
{
    struct dv_guard *guard = endpoint->devices->options.guard;

    return dv_guard_judge(guard, endpoint->peer, DV_POLICY_CONNECT, endpoint->socket, err) &&
           dv_guard_judge(guard, endpoint->peer, DV_POLICY_RESOURCE, endpoint->resource, err);
}

static bool may_serve(void *ctx, const struct dv_stream *stream, struct dv_err *err)
{
    struct dv_endpoint *endpoint = ctx;

    dv_arena_reset(endpoint->arena);
    endpoint->peer = dv_guard_identify(endpoint->devices->options.guard, stream, endpoint->arena);
    if (judge(endpoint, err))
        return true;
    endpoint->connect_err = *err;
    dv_task_post(&endpoint->refused_task, endpoint->devices->loop, on_refused);
    return false;
}

void dv_devices_judge_again(struct dv_devices *devices)
{
    struct dv_link *link = devices->endpoints.head.next;
    struct dv_err err;

    while (link != &devices->endpoints.head) {
        struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        link = link->next; /* the end of one takes it out */
        if (endpoint->state != ENDPOINT_CLOSING && !judge(endpoint, &err))
            finish(endpoint, &err);
    }
}

static void on_connect_timeout(struct dv_timer *timer)
{
    struct dv_endpoint *endpoint = DV_CONTAINER(timer, struct dv_endpoint, connect_timer);
    struct dv_err err = endpoint->connect_err;

    if (err.code == DV_OK)
        (void)dv_fail(&err, DV_DEADLINE_EXCEEDED, "no answer on %.*s within 10 s",
                      DV_FMT(endpoint->socket));
    (void)dv_wrap(&err, "failed to dial device plugin");
    finish(endpoint, &err);
}

/* Each holds a connection for as long as its plugin is silent. */
static bool check_caller(const struct dv_devices *devices, pid_t caller, struct dv_err *err)
{
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&devices->endpoints, link) {
        const struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        n += endpoint->caller == caller && endpoint->state < ENDPOINT_LISTING;
    }
    return caller == 0 || n < CALLER_WAITING_MAX ||
           dv_fail(err, DV_RESOURCE_EXHAUSTED,
                   "%zu registrations of process %d wait for their plugins to answer; try again "
                   "when one has",
                   n, (int)caller);
}

struct dv_endpoint *dv_endpoint_open(struct dv_devices *devices,
                                     const struct dv_endpoint_open *open, struct dv_err *err)
{
    struct dv_endpoint *endpoint;
    struct dv_channel_options options = {
        .name = open->resource,
        .message_bytes_max = DV_DEVICE_LIST_BYTES_MAX,
        .allows = may_serve,
        .changed = on_channel,
    };

    if (!check_caller(devices, open->caller, err))
        return NULL;
    endpoint = dv_alloc(sizeof(*endpoint) + open->resource.n + open->socket.n);
    options.ctx = endpoint;
    endpoint->caller = open->caller;
    memcpy(endpoint->text, open->resource.p, open->resource.n);
    memcpy(endpoint->text + open->resource.n, open->socket.p, open->socket.n);
    endpoint->devices = devices;
    endpoint->resource = (dv_str){endpoint->text, open->resource.n};
    endpoint->socket = (dv_str){endpoint->text + open->resource.n, open->socket.n};
    endpoint->version = open->version;
    endpoint->arena = dv_arena_new();
    dv_buf_init(&endpoint->newest, DV_DEVICE_LIST_BYTES_MAX);
    endpoint->channel = dv_channel_open(devices->loop, open->socket, &options, err);
    if (!endpoint->channel) {
        dv_arena_free(endpoint->arena);
        free(endpoint);
        return NULL;
    }
    endpoint->registered = open->registered;
    endpoint->registered_ctx = open->ctx;
    dv_list_push(&devices->endpoints, &endpoint->link);
    dv_timer_start(&endpoint->connect_timer, devices->loop,
                   dv_loop_now_ms(devices->loop) + CONNECT_TIMEOUT_MS, on_connect_timeout);
    return endpoint;
}

struct dv_endpoint *dv_endpoint_find(struct dv_devices *devices, dv_str resource, dv_str socket)
{
    struct dv_link *link;

    DV_LIST_EACH (&devices->endpoints, link) {
        struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);

        if (endpoint->state == ENDPOINT_LISTING && dv_str_eq(endpoint->socket, socket) &&
            dv_str_eq(endpoint->resource, resource))
            return endpoint;
    }
    return NULL;
}

bool dv_endpoint_link_call(struct dv_link *link, struct dv_device_call *call)
{
    const struct dv_endpoint *endpoint = DV_CONTAINER(link, struct dv_endpoint, link);
    bool is_asked = endpoint->state == ENDPOINT_ASKING;

    if (!is_asked && (endpoint->state != ENDPOINT_LISTING || endpoint->has_listed))
        return false;
    *call = (struct dv_device_call){
        .resource = endpoint->resource,
        .socket = endpoint->socket,
        .method = is_asked ? "GetDevicePluginOptions" : "ListAndWatch",
        .since_ns = endpoint->asked_ns,
    };
    return true;
}

/* ---- calls ---- */

/* The old AllocateRequest is what a container's request is today. */
static dv_str old_request(dv_str today)
{
    struct dv_pb_reader reader;
    struct dv_pb_field field;
    struct dv_err err;

    dv_pb_reader_init(&reader, today);
    if (!dv_pb_is_at_end(&reader) && dv_pb_read(&reader, &field, &err))
        return field.bytes;
    return DV_STR("");
}

void dv_endpoint_call(struct dv_endpoint *endpoint, const struct dv_device_step *step,
                      struct dv_call *call)
{
    struct dv_buf buf;
    dv_str bytes;

    call->method = methods[endpoint->version].calls[step->kind];
    assert(call->method); /* the old versions announce no options, so that nothing else is asked */
    dv_buf_init(&buf, DV_DEVICE_LIST_BYTES_MAX);
    dv_device_step_encode(step, &buf);
    bytes = dv_buf_str(&buf);
    if (endpoint->version != DV_ENDPOINT_V1BETA1)
        bytes = old_request(bytes);
    dv_call_start(endpoint->channel, call, dv_h2_msg_copy(bytes));
    dv_buf_fini(&buf);
}

/* 1.8 answers with a list of {id, envs, mounts, devices}: today's response has the last three one
 * number lower, for all devices together. */
static bool flatten_specs(dv_str answer, struct dv_buf *out, struct dv_err *err)
{
    struct dv_pb_reader reader;
    struct dv_pb_reader spec;
    struct dv_pb_field field;

    dv_pb_reader_init(&reader, answer);
    while (!dv_pb_is_at_end(&reader)) {
        if (!dv_pb_read(&reader, &field, err))
            return false;
        if (field.tag != DV_PB_TAG(1, DV_PB_BYTES))
            continue;
        if (!dv_pb_enter(&reader, &field, &spec, err))
            return false;
        while (!dv_pb_is_at_end(&spec)) {
            if (!dv_pb_read(&spec, &field, err))
                return false;
            if (field.tag >= DV_PB_TAG(2, DV_PB_BYTES) && field.tag <= DV_PB_TAG(4, DV_PB_BYTES) &&
                (field.tag & 7) == DV_PB_BYTES)
                dv_pb_add_bytes(out, (field.tag >> 3) - 1, field.bytes);
        }
    }
    return true;
}

bool dv_endpoint_convert(const struct dv_endpoint *endpoint, enum dv_device_step_kind kind,
                         struct dv_buf *answer, struct dv_err *err)
{
    struct dv_buf flat;
    struct dv_buf today;
    bool ok = true;

    if (endpoint->version == DV_ENDPOINT_V1BETA1 || kind != DV_DEVICE_ASK_ALLOCATE)
        return true;
    dv_buf_init(&flat, answer->max);
    dv_buf_init(&today, answer->max);
    if (endpoint->version == DV_ENDPOINT_V0_1)
        ok = flatten_specs(dv_buf_str(answer), &flat, err);
    else
        dv_buf_add(&flat, dv_buf_str(answer)); /* 1.9: a container's response as it is today */
    dv_pb_add_bytes(&today, 1, dv_buf_str(&flat));
    dv_buf_clear(answer);
    dv_buf_add(answer, dv_buf_str(&today));
    dv_buf_fini(&flat);
    dv_buf_fini(&today);
    return ok && dv_buf_check(answer, "answer", err);
}
