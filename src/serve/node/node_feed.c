#include "serve/node/node_feed.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/serve.h"

/* The limit of a part: a list of 100,000 devices with their holders is about 20 MB. */
#define PART_BYTES_MAX (256u << 20)
#define DOCUMENT_BYTES_MAX (1u << 30)
/* How much a stream is given at a time: it takes 4 MiB, and a document may be longer. */
#define CHUNK_BYTES (256u << 10)
/* The shortest time between two documents: people do not read faster. */
#define GAP_MS 200u
/* The pause after a document is this many times as long as making it took, so that it costs at most
 * about a tenth of the thread. */
#define GAP_FACTOR 10u
/* How often the parts are made anew whose changes are not reported: plugins, trouble with the
 * disk. */
#define LOOK_MS 1000u
/* A page that hears nothing for longer may take the connection for lost. */
#define PULSE_MS 15000u
/* How long a watch lasts. The page then comes again, and its token is checked again; not all do so
 * at the same time. */
#define LIFE_MS UINT64_C(1800000)

#define NS_PER_MS 1000000u

/* The number of parts of a document, which are in the order of the bits. */
#define N_PARTS 4u
#define ALL_PARTS ((1u << N_PARTS) - 1u)

struct part {
    struct dv_buf text;
    uint64_t version; /* the version of the feed at its last change */
};

struct dv_node_feed {
    const struct dv_node *node;
    struct part parts[N_PARTS];
    unsigned stale; /* parts that have to be made anew */
    uint64_t version;
    uint64_t earliest_ms; /* nothing is made before this time */
    struct dv_list watches;
    struct dv_timer timer; /* set while somebody watches */
    bool is_stopped;
};

/* ---- the parts ---- */

static const ProtobufCMessage *make_status(const struct dv_node *node, struct dv_arena *arena)
{
    return &dv_serve_status(node, arena)->base;
}

static const ProtobufCMessage *make_plugins(const struct dv_node *node, struct dv_arena *arena)
{
    return &dv_serve_plugin_list(node, arena)->base;
}

static const ProtobufCMessage *make_devices(const struct dv_node *node, struct dv_arena *arena)
{
    return &dv_serve_device_list(node, DV_STR(""), arena)->base;
}

static const ProtobufCMessage *make_claims(const struct dv_node *node, struct dv_arena *arena)
{
    return &dv_serve_claim_list(node, DV_STR(""), DV_STR(""), arena)->base;
}

static const ProtobufCMessage *(*const makers[N_PARTS])(const struct dv_node *node,
                                                        struct dv_arena *arena) = {
    make_status,
    make_plugins,
    make_devices,
    make_claims,
};

static void refresh_part(struct dv_node_feed *feed, size_t i)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct part *part = &feed->parts[i];
    struct dv_buf text;

    dv_buf_init(&text, PART_BYTES_MAX);
    dv_pb_print_json(makers[i](feed->node, scratch), &text);
    if (part->version && dv_str_eq(dv_buf_str(&text), dv_buf_str(&part->text))) {
        dv_buf_fini(&text);
        return;
    }
    dv_buf_fini(&part->text);
    part->text = text;
    part->version = ++feed->version;
}

static void refresh(struct dv_node_feed *feed)
{
    struct dv_clock *clock = dv_loop_clock(feed->node->loop);
    uint64_t start_ns = dv_clock_now_ns(clock);
    uint64_t took_ms;

    for (size_t i = 0; i < N_PARTS; i++)
        if (feed->stale & (1u << i))
            refresh_part(feed, i);
    feed->stale = 0;
    took_ms = (dv_clock_now_ns(clock) - start_ns) / NS_PER_MS;
    feed->earliest_ms = dv_loop_now_ms(feed->node->loop) + dv_u64_max(GAP_MS, took_ms * GAP_FACTOR);
}

/* Prints the fields of all parts that are newer than `version`. False: there are none. */
static bool print_since(const struct dv_node_feed *feed, uint64_t version, struct dv_buf *buf)
{
    bool is_first = true;

    for (size_t i = 0; i < N_PARTS; i++) {
        dv_str text = dv_buf_str(&feed->parts[i].text);

        if (feed->parts[i].version <= version)
            continue;
        dv_buf_add_char(buf, is_first ? '{' : ',');
        dv_buf_add(buf, dv_str_slice(text, 1, text.n - 1)); /* without its braces */
        is_first = false;
    }
    if (!is_first)
        dv_buf_add_c(buf, "}\n");
    return !is_first;
}

/* ---- those who watch ---- */

static void finish(struct dv_feed_watch *watch)
{
    if (watch->is_over)
        return;
    watch->is_over = true;
    dv_link_remove(&watch->link);
    dv_rest_stream_finish(&watch->stream);
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct dv_feed_watch *watch = DV_CONTAINER(stream, struct dv_feed_watch, stream);

    (void)err; /* a page that is closed is not worth a log line */
    dv_link_remove(&watch->link);
    if (dv_list_is_empty(&watch->feed->watches))
        dv_timer_cancel(&watch->feed->timer);
    dv_buf_fini(&watch->text);
    watch->ended(watch);
}

static void send(struct dv_feed_watch *watch, dv_str bytes)
{
    struct dv_err err;

    watch->told_ms = dv_loop_now_ms(watch->feed->node->loop);
    if (dv_rest_stream_send(&watch->stream, bytes, &err))
        return;
    watch->is_over = true; /* the stream is gone, and `ended` tells so */
    dv_link_remove(&watch->link);
    dv_rest_stream_cancel(&watch->stream);
}

/* Sends more of the document, as far as there is room. */
static void pump(struct dv_feed_watch *watch)
{
    while (!watch->is_over && watch->sent < watch->text.n &&
           dv_rest_stream_unsent_bytes(&watch->stream) < CHUNK_BYTES) {
        dv_str rest = dv_str_slice(dv_buf_str(&watch->text), watch->sent, watch->text.n);

        rest.n = dv_size_min(rest.n, CHUNK_BYTES);
        watch->sent += rest.n;
        send(watch, rest);
    }
    if (watch->sent == watch->text.n) {
        dv_buf_fini(&watch->text);
        dv_buf_init(&watch->text, DOCUMENT_BYTES_MAX);
        watch->sent = 0;
    }
}

/* Sends what is new. A page that has not read the last document gets the newest one when it has. */
static void tell(struct dv_feed_watch *watch)
{
    if (watch->is_over || watch->text.n > 0 ||
        dv_rest_stream_unsent_bytes(&watch->stream) > CHUNK_BYTES)
        return;
    if (print_since(watch->feed, watch->seen, &watch->text)) {
        watch->seen = watch->feed->version;
        pump(watch);
    } else if (dv_loop_now_ms(watch->feed->node->loop) >= watch->told_ms + PULSE_MS) {
        send(watch, DV_STR("{}\n"));
    }
}

static void on_room(struct dv_rest_stream *stream)
{
    struct dv_feed_watch *watch = DV_CONTAINER(stream, struct dv_feed_watch, stream);

    pump(watch);
    tell(watch);
}

static void on_time(struct dv_timer *timer)
{
    struct dv_node_feed *feed = DV_CONTAINER(timer, struct dv_node_feed, timer);
    uint64_t now_ms = dv_loop_now_ms(feed->node->loop);
    struct dv_link *link = feed->watches.head.next;

    feed->stale |= DV_FEED_STATUS | DV_FEED_PLUGINS;
    refresh(feed);
    while (link != &feed->watches.head) {
        struct dv_link *next = link->next; /* taken first: a watch that ends leaves the list */
        struct dv_feed_watch *watch = DV_CONTAINER(link, struct dv_feed_watch, link);

        tell(watch);
        if (now_ms >= watch->end_ms)
            finish(watch);
        link = next;
    }
    if (!dv_list_is_empty(&feed->watches))
        dv_timer_start(timer, feed->node->loop, dv_u64_max(feed->earliest_ms, now_ms + LOOK_MS),
                       on_time);
}

void dv_feed_watch_start(struct dv_node_feed *feed, struct dv_feed_watch *watch,
                         struct dv_rest_call *call)
{
    uint64_t now_ms = dv_loop_now_ms(feed->node->loop);

    watch->feed = feed;
    watch->stream.room = on_room;
    watch->stream.ended = on_ended;
    watch->end_ms = now_ms + LIFE_MS + dv_random_u64() % LIFE_MS;
    dv_buf_init(&watch->text, DOCUMENT_BYTES_MAX);
    if (dv_list_is_empty(&feed->watches)) {
        feed->stale = ALL_PARTS; /* nobody kept them current */
        dv_timer_start(&feed->timer, feed->node->loop, now_ms + LOOK_MS, on_time);
    }
    dv_list_push(&feed->watches, &watch->link);
    dv_rest_stream_start(&watch->stream, call, 200);
    refresh(feed);
    tell(watch);
}

/* ---- life ---- */

struct dv_node_feed *dv_node_feed_new(const struct dv_node *node)
{
    struct dv_node_feed *feed = DV_ALLOC(struct dv_node_feed);

    feed->node = node;
    dv_list_init(&feed->watches);
    for (size_t i = 0; i < N_PARTS; i++)
        dv_buf_init(&feed->parts[i].text, PART_BYTES_MAX);
    return feed;
}

void dv_node_feed_changed(struct dv_node_feed *feed, unsigned parts)
{
    uint64_t now_ms;

    if (!feed || dv_list_is_empty(&feed->watches))
        return;
    now_ms = dv_loop_now_ms(feed->node->loop);
    feed->stale |= parts;
    dv_timer_start(&feed->timer, feed->node->loop, dv_u64_max(now_ms, feed->earliest_ms), on_time);
}

void dv_node_feed_stop(struct dv_node_feed *feed)
{
    struct dv_link *link;

    feed->is_stopped = true;
    dv_timer_cancel(&feed->timer);
    while ((link = dv_list_first(&feed->watches)) != NULL)
        finish(DV_CONTAINER(link, struct dv_feed_watch, link));
}

void dv_node_feed_free(struct dv_node_feed *feed)
{
    if (!feed)
        return;
    for (size_t i = 0; i < N_PARTS; i++)
        dv_buf_fini(&feed->parts[i].text);
    free(feed);
}

/* ---- what is asked ---- */

dv_str dv_node_feed_name(const struct dv_node_feed *feed)
{
    return feed->node->name;
}

bool dv_node_feed_is_stopped(const struct dv_node_feed *feed)
{
    return feed->is_stopped;
}

void dv_node_feed_print(struct dv_node_feed *feed, struct dv_buf *buf)
{
    feed->stale = ALL_PARTS;
    refresh(feed);
    (void)print_since(feed, 0, buf); /* every part is newer than version 0 */
}
