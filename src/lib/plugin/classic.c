#include "lib/plugin/classic.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/num.h"
#include "grpc/grpc.h"
#include "lib/common/lib_name.h"
#include "lib/common/parts.h"
#include "lib/common/streams.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

/* The pauses between attempts to register. An agent that comes is seen at once; they are for one
 * that refuses, or that is stuck. */
#define BACKOFF_FIRST_MS 1000u
#define BACKOFF_MAX_MS 60000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* After an agent that watched for this long the pauses begin anew. */
#define GOOD_AGENT_MS 10000u
/* Within the call the agent connects to us (up to 10 s) and asks for our options. */
#define REGISTER_TIMEOUT_MS 30000u
/* An agent that has accepted us watches at once; one that has not by then never will. */
#define WATCH_TIMEOUT_MS 30000u

enum event {
    ON_SERVING,
    ON_NOT_SERVING,
    ON_NEW_AGENT,
    ON_RETRY,
    ON_ACCEPTED,
    ON_REFUSED,
    ON_LOST,
};

/* One call of Register, on a connection of its own. */
struct dv_lib_attempt {
    struct dv_lib_classic *classic; /* NULL: its outcome does not matter any more */
    struct dv_lib_parts *parts;
    struct dv_channel *channel;
    struct dv_call call;
};

static void handle(struct dv_lib_classic *classic, enum event event);

/* ---- attempts ---- */

static void on_channel_closed(void *ctx)
{
    struct dv_lib_attempt *attempt = ctx;
    struct dv_lib_parts *parts = attempt->parts;

    free(attempt);
    dv_lib_part_closed(parts);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_lib_attempt *attempt = DV_CONTAINER(call, struct dv_lib_attempt, call);
    struct dv_lib_classic *classic = attempt->classic;

    if (!classic)
        return; /* dropped: the channel is closing */
    classic->attempt = NULL;
    attempt->classic = NULL;
    dv_channel_close(attempt->channel, on_channel_closed, attempt);
    if (err) {
        classic->err = *err;
        (void)dv_wrap(&classic->err, "register with kubelet.sock");
    }
    handle(classic, err ? ON_REFUSED : ON_ACCEPTED);
}

static void drop_attempt(struct dv_lib_classic *classic)
{
    struct dv_lib_attempt *attempt = classic->attempt;

    if (!attempt)
        return;
    classic->attempt = NULL;
    attempt->classic = NULL;
    dv_channel_close(attempt->channel, on_channel_closed, attempt);
}

/* Makes the request. Its options are for agents of long ago: today's ask for them. */
static struct dv_h2_msg *make_request(const struct dv_lib_classic_options *from)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DpV1beta1__DevicePluginOptions options = DP_V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    DpV1beta1__RegisterRequest request = DP_V1BETA1__REGISTER_REQUEST__INIT;

    options.pre_start_required = from->needs_prestart;
    options.get_preferred_allocation_available = from->has_preference;
    request.version = "v1beta1";
    request.endpoint = dv_str_to_c(from->endpoint, arena);
    request.resource_name = dv_str_to_c(from->resource, arena);
    request.options = &options;
    return dv_grpc_encode(&request.base);
}

static void start_attempt(struct dv_lib_classic *classic)
{
    struct dv_loop *loop = classic->parts->loop;
    struct dv_channel_options options = {.name = DV_STR("kubelet.sock"), .connects_once = true};
    struct dv_lib_attempt *attempt = DV_ALLOC(struct dv_lib_attempt);

    (void)dv_lib_file_look(classic->options.agent_path, &classic->agent); /* none: it will fail */
    attempt->channel = dv_channel_open(loop, classic->options.agent_path, &options, &classic->err);
    if (!attempt->channel) { /* only for a path that is no address */
        free(attempt);
        handle(classic, ON_REFUSED);
        return;
    }
    dv_lib_parts_add(classic->parts);
    attempt->classic = classic;
    attempt->parts = classic->parts;
    attempt->call.method = "/v1beta1.Registration/Register";
    attempt->call.done = on_done;
    attempt->call.deadline_ms = dv_loop_now_ms(loop) + REGISTER_TIMEOUT_MS;
    classic->attempt = attempt;
    classic->was_watched = false;
    dv_call_start(attempt->channel, &attempt->call, make_request(&classic->options));
}

/* ---- what is done from state to state ---- */

static void on_timer(struct dv_timer *timer)
{
    struct dv_lib_classic *classic = DV_CONTAINER(timer, struct dv_lib_classic, timer);

    if (classic->state != DV_CLASSIC_REGISTERED) {
        handle(classic, ON_RETRY);
        return;
    }
    (void)dv_fail(&classic->err, DV_UNAVAILABLE, "the agent accepted us but does not watch");
    handle(classic, ON_LOST);
}

static void set_timer(struct dv_lib_classic *classic, uint64_t delay_ms)
{
    struct dv_loop *loop = classic->parts->loop;

    dv_timer_start(&classic->timer, loop, dv_loop_now_ms(loop) + delay_ms, on_timer);
}

static void rest(struct dv_lib_classic *classic)
{
    dv_timer_cancel(&classic->timer);
    drop_attempt(classic);
}

static void call(struct dv_lib_classic *classic)
{
    rest(classic);
    start_attempt(classic);
}

/* An agent makes its socket once, when it starts. So a new socket means a new agent: the one that
 * watched before is gone, or will be. */
static void call_new_agent(struct dv_lib_classic *classic)
{
    struct dv_err err;

    (void)dv_fail(&err, DV_UNAVAILABLE, "registering with the new %.*s",
                  DV_FMT(classic->options.agent_path));
    dv_lib_streams_end(classic->options.streams, &err);
    classic->backoff_ms = BACKOFF_FIRST_MS;
    call(classic);
}

static void settle(struct dv_lib_classic *classic)
{
    classic->registered_ms = dv_loop_now_ms(classic->parts->loop);
    if (classic->options.streams->n == 0)
        set_timer(classic, classic->was_watched ? 0 : WATCH_TIMEOUT_MS);
    classic->options.registered(classic->options.ctx);
}

static uint64_t next_pause_ms(struct dv_lib_classic *classic)
{
    uint64_t pause_ms = dv_jitter(classic->backoff_ms, BACKOFF_JITTER_PER_MILLE);

    classic->backoff_ms = dv_u64_min(classic->backoff_ms * 2, BACKOFF_MAX_MS);
    return pause_ms;
}

static void retry_later(struct dv_lib_classic *classic)
{
    uint64_t pause_ms = next_pause_ms(classic);

    set_timer(classic, pause_ms);
    classic->options.failed(classic->options.ctx, &classic->err, pause_ms);
}

static void register_again(struct dv_lib_classic *classic)
{
    uint64_t now_ms = dv_loop_now_ms(classic->parts->loop);

    if (now_ms - classic->registered_ms >= GOOD_AGENT_MS)
        classic->backoff_ms = BACKOFF_FIRST_MS;
    set_timer(classic, next_pause_ms(classic));
    classic->options.lost(classic->options.ctx, &classic->err);
}

static const struct {
    enum dv_lib_classic_state in;
    enum event on;
    enum dv_lib_classic_state next;
    void (*act)(struct dv_lib_classic *classic);
} steps[] = {
    {DV_CLASSIC_IDLE,       ON_SERVING,     DV_CLASSIC_CALLING,    call          },
    {DV_CLASSIC_WAITING,    ON_RETRY,       DV_CLASSIC_CALLING,    call          },
    {DV_CLASSIC_WAITING,    ON_NEW_AGENT,   DV_CLASSIC_CALLING,    call_new_agent},
    {DV_CLASSIC_WAITING,    ON_NOT_SERVING, DV_CLASSIC_IDLE,       rest          },
    {DV_CLASSIC_CALLING,    ON_ACCEPTED,    DV_CLASSIC_REGISTERED, settle        },
    {DV_CLASSIC_CALLING,    ON_REFUSED,     DV_CLASSIC_WAITING,    retry_later   },
    {DV_CLASSIC_CALLING,    ON_NEW_AGENT,   DV_CLASSIC_CALLING,    call_new_agent},
    {DV_CLASSIC_CALLING,    ON_NOT_SERVING, DV_CLASSIC_IDLE,       rest          },
    {DV_CLASSIC_REGISTERED, ON_LOST,        DV_CLASSIC_WAITING,    register_again},
    {DV_CLASSIC_REGISTERED, ON_NEW_AGENT,   DV_CLASSIC_CALLING,    call_new_agent},
    {DV_CLASSIC_REGISTERED, ON_NOT_SERVING, DV_CLASSIC_IDLE,       rest          },
};

/* Handles an event by the table. An event that a state does not have is ignored, such as a stream
 * that ends before we are accepted. */
static void handle(struct dv_lib_classic *classic, enum event event)
{
    for (size_t i = 0; i < DV_COUNT(steps); i++)
        if (steps[i].in == classic->state && steps[i].on == event) {
            classic->state = steps[i].next;
            steps[i].act(classic);
            return;
        }
}

/* ---- what happens around it ---- */

void dv_lib_classic_open(struct dv_lib_classic *classic, struct dv_lib_parts *parts,
                         const struct dv_lib_classic_options *options)
{
    *classic = (struct dv_lib_classic){
        .parts = parts,
        .options = *options,
        .backoff_ms = BACKOFF_FIRST_MS,
    };
}

void dv_lib_classic_close(struct dv_lib_classic *classic)
{
    rest(classic);
    classic->state = DV_CLASSIC_IDLE;
}

void dv_lib_classic_set_serving(struct dv_lib_classic *classic, bool is_serving)
{
    handle(classic, is_serving ? ON_SERVING : ON_NOT_SERVING);
}

void dv_lib_classic_check(struct dv_lib_classic *classic, dv_str name)
{
    bool has_event = dv_str_eq(name, dv_lib_file_name(classic->options.agent_path));
    struct dv_lib_file file;
    bool is_new;

    if (name.n > 0 && !has_event)
        return;
    if (!dv_lib_file_look(classic->options.agent_path, &file))
        return; /* the agent is gone: its streams end by themselves */
    if (has_event)
        is_new = classic->state == DV_CLASSIC_WAITING || /* it may not have listened yet */
                 !dv_lib_file_is_untouched(&file, &classic->agent);
    else
        is_new = !dv_lib_file_is_same(&file, &classic->agent);
    if (is_new)
        handle(classic, ON_NEW_AGENT);
}

void dv_lib_classic_watched(struct dv_lib_classic *classic)
{
    if (classic->options.streams->n > 0) {
        if (classic->state == DV_CLASSIC_REGISTERED)
            dv_timer_cancel(&classic->timer);
        return;
    }
    classic->was_watched = true;
    (void)dv_fail(&classic->err, DV_UNAVAILABLE, "the agent watches no more");
    handle(classic, ON_LOST);
}
