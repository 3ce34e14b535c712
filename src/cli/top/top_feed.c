#include "cli/top/top_feed.h"

#include <stdio.h>

#include "base/arena.h"
#include "http2/http2.h"
#include "pb/pb.h"
#include "proto/davit_node_v1.pb-c.h"

/* A list of 100,000 devices with their holders. */
#define MESSAGE_BYTES_MAX (256u << 20)
/* How often the lists are asked for that cannot be watched, and davitd is looked for. */
#define LOOK_MS 1000u
#define ANSWER_MS 10000u

enum list {
    DEVICES,
    PODS,
    LEASES,
    CLAIMS,
    STATUS,
    PLUGINS,
};

static const struct {
    const char *method;
    const ProtobufCMessageDescriptor *type;
    bool is_watch;
} kinds[DV_TOP_N_LISTS] = {
    [DEVICES] = {"/davit.node.v1.Node/WatchDevices", &node_v1__list_devices_response__descriptor,
                 true                                                                                  },
    [PODS] = {"/davit.node.v1.Node/WatchPods",    &node_v1__watch_pods_response__descriptor,   true },
    [LEASES] = {"/davit.node.v1.Node/WatchLeases",  &node_v1__list_leases_response__descriptor,
                 true                                                                                  },
    [CLAIMS] = {"/davit.node.v1.Node/WatchClaims",  &node_v1__list_claims_response__descriptor,
                 true                                                                                  },
    [STATUS] = {"/davit.node.v1.Node/Status",       &node_v1__status_response__descriptor,       false},
    [PLUGINS] = {"/davit.node.v1.Node/ListPlugins",  &node_v1__list_plugins_response__descriptor,
                 false                                                                                 },
};

static void on_message(struct dv_call *call, dv_str bytes)
{
    struct dv_top_list *list = DV_CONTAINER(call, struct dv_top_list, call);
    struct dv_arena *arena = dv_arena_new();
    struct dv_err err;
    const void *message = dv_pb_decode(list->type, bytes, arena, &err);

    if (!message) { /* what was known stays */
        dv_arena_free(arena);
        return;
    }
    dv_arena_free(list->arena);
    list->arena = arena;
    list->message = message;
    list->feed->changed(list->feed->ctx);
}

static void on_done(struct dv_call *call, const struct dv_err *err)
{
    struct dv_top_list *list = DV_CONTAINER(call, struct dv_top_list, call);

    (void)err; /* the channel tells whether davitd is there; the timer asks again */
    list->is_running = false;
}

/* Starts a request. All requests are empty: everything is wanted. */
static void start(struct dv_top_feed *feed, enum list which)
{
    struct dv_top_list *list = &feed->lists[which];

    if (list->is_running)
        return;
    list->is_running = true;
    list->feed = feed;
    list->type = kinds[which].type;
    list->call = (struct dv_call){
        .method = kinds[which].method,
        .message = on_message,
        .done = on_done,
        .is_stream = kinds[which].is_watch,
        .deadline_ms =
            kinds[which].is_watch ? DV_NO_DEADLINE : dv_loop_now_ms(feed->loop) + ANSWER_MS,
    };
    dv_call_start(feed->channel, &list->call, dv_h2_msg_new(0));
}

static void start_all(struct dv_top_feed *feed)
{
    for (unsigned i = 0; i < DV_TOP_N_LISTS; i++)
        start(feed, i);
}

static void on_time(struct dv_timer *timer)
{
    struct dv_top_feed *feed = DV_CONTAINER(timer, struct dv_top_feed, timer);

    if (dv_channel_state(feed->channel) == DV_CHANNEL_READY)
        start_all(feed);
    else
        dv_channel_retry_now(feed->channel);
    dv_timer_start(timer, feed->loop, dv_loop_now_ms(feed->loop) + LOOK_MS, on_time);
    feed->changed(feed->ctx); /* ages */
}

static void on_channel(void *ctx, enum dv_channel_state state, const struct dv_err *err)
{
    struct dv_top_feed *feed = ctx;

    if (state == DV_CHANNEL_READY) {
        feed->err.code = DV_OK;
        start_all(feed);
    } else if (err) {
        feed->err = *err;
    }
    feed->changed(feed->ctx);
}

bool dv_top_feed_open(struct dv_top_feed *feed, struct dv_loop *loop, dv_str socket,
                      void (*changed)(void *ctx), void *ctx, struct dv_err *err)
{
    const struct dv_channel_options options = {
        .name = DV_STR("davitd"),
        .message_bytes_max = MESSAGE_BYTES_MAX,
        .changed = on_channel,
        .ctx = feed,
    };

    *feed = (struct dv_top_feed){.loop = loop, .socket = socket, .changed = changed, .ctx = ctx};
    feed->channel = dv_channel_open(loop, socket, &options, err);
    if (!feed->channel)
        return false;
    dv_timer_start(&feed->timer, loop, dv_loop_now_ms(loop) + LOOK_MS, on_time);
    return true;
}

bool dv_top_feed_is_whole(const struct dv_top_feed *feed)
{
    for (size_t i = 0; i < DV_TOP_N_LISTS; i++)
        if (!feed->lists[i].message)
            return false;
    return true;
}

void dv_top_feed_get(struct dv_top_feed *feed, struct dv_top_data *data)
{
    data->devices = feed->lists[DEVICES].message;
    data->pods = feed->lists[PODS].message;
    data->leases = feed->lists[LEASES].message;
    data->claims = feed->lists[CLAIMS].message;
    data->status = feed->lists[STATUS].message;
    data->plugins = feed->lists[PLUGINS].message;
    if (feed->err.code == DV_OK)
        return;
    (void)snprintf(feed->trouble, sizeof(feed->trouble), "no davitd answers on %.*s: %s",
                   DV_FMT(feed->socket), feed->err.msg); /* cut where it is too long */
    data->trouble = dv_str_from_c(feed->trouble);
}

void dv_top_feed_close(struct dv_top_feed *feed)
{
    dv_timer_cancel(&feed->timer);
    dv_channel_close(feed->channel, NULL, NULL);
}

void dv_top_feed_fini(struct dv_top_feed *feed)
{
    for (size_t i = 0; i < DV_TOP_N_LISTS; i++)
        dv_arena_free(feed->lists[i].arena);
}
