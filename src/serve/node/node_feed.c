#include "serve/node/node_feed.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/node/use_ring.h"
#include "serve/serve.h"

/* The limit of a part: a list of 100,000 devices with their holders is about 20 MB. */
#define PART_BYTES_MAX (256u << 20)
/* The length of a part without fields, "{}". */
#define EMPTY_BYTES 2u
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

#define ALL_PARTS ((1u << DV_FEED_N_PARTS) - 1u)

struct dv_feed_text {
    unsigned n_refs;
    struct dv_buf buf;
};

struct part {
    struct dv_feed_text *text; /* NULL: it was never made */
    uint64_t version;          /* the version of the feed at its last change */
};

/* Parts are made in rounds. In a round each stale part becomes a message, on the loop, and the
 * message a text: a long one in a job, so that a turn makes one of them at most. */
struct dv_node_feed {
    const struct dv_node *node;
    struct part parts[DV_FEED_N_PARTS];
    unsigned stale; /* parts that have to be made anew */
    unsigned todo;  /* stale parts that the present round has still to make */
    bool is_in_round;
    uint64_t n_rounds; /* how many rounds have begun */
    uint64_t version;
    uint64_t spent_ns;    /* how much of the loop's time the present round took */
    uint64_t rested_ms;   /* no round begins before this time */
    uint64_t earliest_ms; /* nothing is told because it changed before this time */
    struct dv_list watches;
    struct dv_use_ring *uses;
    struct dv_timer uses_timer; /* takes samples, whether anybody watches or not */
    struct dv_timer timer;      /* set while somebody watches and no round is under way */
    struct dv_work work;        /* prints `message` */
    size_t i_printing;          /* the part that it is of */
    const ProtobufCMessage *message;
    struct dv_arena *arena;
    struct dv_feed_text *printed;
    bool is_same; /* it is printed as the part is already */
    bool is_printing;
    bool is_stopped;
    bool is_freed; /* while a job prints: its end frees the feed */
};

/* ---- texts ---- */

static struct dv_feed_text *ref_text(struct dv_feed_text *text)
{
    text->n_refs++;
    return text;
}

static void unref_text(struct dv_feed_text *text)
{
    if (!text || --text->n_refs > 0)
        return;
    dv_buf_fini(&text->buf);
    free(text);
}

/* Prints the message. One that passes the limit is left out as a whole. */
static struct dv_feed_text *print_text(const ProtobufCMessage *message)
{
    struct dv_feed_text *text = DV_ALLOC(struct dv_feed_text);
    struct dv_err err;

    text->n_refs = 1;
    dv_buf_init(&text->buf, PART_BYTES_MAX);
    dv_pb_print_json(message, &text->buf);
    if (!dv_buf_check(&text->buf, "part", &err)) {
        dv_buf_fini(&text->buf);
        dv_buf_init(&text->buf, PART_BYTES_MAX);
        dv_buf_add_c(&text->buf, "{}");
    }
    return text;
}

/* ---- the parts ---- */

static const ProtobufCMessage *make_status(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_status(feed->node, arena)->base;
}

static const ProtobufCMessage *make_plugins(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_plugin_list(feed->node, arena)->base;
}

static const ProtobufCMessage *make_devices(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_device_list(feed->node, DV_STR(""), arena)->base;
}

static const ProtobufCMessage *make_claims(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_claim_list(feed->node, DV_STR(""), DV_STR(""), arena)->base;
}

static const ProtobufCMessage *make_leases(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_lease_list(feed->node, 0, false, arena)->base;
}

static const ProtobufCMessage *make_uses(const struct dv_node_feed *feed, struct dv_arena *arena)
{
    return &dv_serve_uses(feed->uses, arena)->base;
}

static const ProtobufCMessage *(*const makers[DV_FEED_N_PARTS])(const struct dv_node_feed *feed,
                                                                struct dv_arena *arena) = {
    make_status, make_plugins, make_devices, make_claims, make_leases, make_uses};

/* Prints the part that is being made, and compares it with what it was; on any thread. */
static void print_part(struct dv_node_feed *feed)
{
    const struct dv_feed_text *old = feed->parts[feed->i_printing].text;

    feed->printed = print_text(feed->message);
    feed->is_same = old && dv_str_eq(dv_buf_str(&feed->printed->buf), dv_buf_str(&old->buf));
    dv_arena_free(feed->arena);
    feed->arena = NULL;
}

static void take_part(struct dv_node_feed *feed)
{
    struct part *part = &feed->parts[feed->i_printing];

    if (feed->is_same) {
        unref_text(feed->printed);
    } else {
        unref_text(part->text);
        part->text = feed->printed;
        part->version = ++feed->version;
    }
    feed->printed = NULL;
}

static void go_on(struct dv_node_feed *feed);

static void run_printing(struct dv_work *work)
{
    print_part(DV_CONTAINER(work, struct dv_node_feed, work));
}

static void on_printed(struct dv_work *work, const struct dv_err *err)
{
    struct dv_node_feed *feed = DV_CONTAINER(work, struct dv_node_feed, work);

    feed->is_printing = false;
    dv_arena_free(feed->arena); /* still there when the job was dropped */
    feed->arena = NULL;
    if (!err)
        take_part(feed);
    if (feed->is_freed)
        dv_node_feed_free(feed);
    else if (!feed->is_stopped)
        go_on(feed);
}

/* Makes the message of a part, and prints it when it is short. False: a job prints it. */
static bool make_part(struct dv_node_feed *feed, size_t i)
{
    struct dv_clock *clock = dv_loop_clock(feed->node->loop);
    uint64_t start_ns = dv_clock_now_ns(clock);
    bool is_short;

    feed->i_printing = i;
    feed->arena = dv_arena_new();
    feed->message = makers[i](feed, feed->arena);
    is_short = dv_serve_is_short(feed->arena);
    if (is_short) {
        print_part(feed);
        take_part(feed);
    } else {
        feed->is_printing = true;
        feed->work = (struct dv_work){.run = run_printing, .done = on_printed};
        dv_work_start(&feed->work, feed->node->loop);
    }
    feed->spent_ns += dv_clock_now_ns(clock) - start_ns;
    return is_short;
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

static void drop_texts(struct dv_feed_watch *watch)
{
    for (size_t i = watch->at; i < watch->n_texts; i++)
        unref_text(watch->texts[i]);
    watch->n_texts = watch->at = watch->sent = 0;
}

/* Nobody watches any more: the texts, which may be megabytes, are not kept. */
static void rest(struct dv_node_feed *feed)
{
    dv_timer_cancel(&feed->timer);
    for (size_t i = 0; i < DV_FEED_N_PARTS && !feed->is_printing; i++) {
        unref_text(feed->parts[i].text);
        feed->parts[i].text = NULL;
    }
}

static void on_ended(struct dv_rest_stream *stream, const struct dv_err *err)
{
    struct dv_feed_watch *watch = DV_CONTAINER(stream, struct dv_feed_watch, stream);

    (void)err; /* a page that is closed is not worth a log line */
    dv_link_remove(&watch->link);
    drop_texts(watch);
    if (dv_list_is_empty(&watch->feed->watches))
        rest(watch->feed);
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

/* Returns what goes out next of the present text: its fields, without its braces. */
static dv_str next_piece(const struct dv_feed_watch *watch)
{
    dv_str text = dv_buf_str(&watch->texts[watch->at]->buf);
    dv_str rest = dv_str_slice(text, 1 + watch->sent, text.n - 1);

    rest.n = dv_size_min(rest.n, CHUNK_BYTES);
    return rest;
}

/* Sends more of the document, as far as there is room. */
static void pump(struct dv_feed_watch *watch)
{
    while (!watch->is_over && watch->at < watch->n_texts &&
           dv_rest_stream_unsent_bytes(&watch->stream) < CHUNK_BYTES) {
        dv_str piece = next_piece(watch);

        if (piece.n > 0) {
            watch->sent += piece.n;
            send(watch, piece);
            continue;
        }
        unref_text(watch->texts[watch->at++]);
        watch->sent = 0;
        send(watch, watch->at < watch->n_texts ? DV_STR(",") : DV_STR("}\n"));
    }
    if (watch->is_over || watch->at < watch->n_texts)
        return;
    if (watch->n_texts == 0)
        return;
    watch->n_texts = watch->at = 0;
    if (watch->is_once)
        finish(watch);
}

/* Gathers the texts of all parts that are newer than what the watch has seen. False: there are
 * none. A part without fields is told with the others only, since no comma may follow it. */
static bool gather(struct dv_feed_watch *watch)
{
    const struct dv_node_feed *feed = watch->feed;

    for (size_t i = 0; i < DV_FEED_N_PARTS; i++) {
        const struct part *part = &feed->parts[i];

        if (part->version > watch->seen && part->text && part->text->buf.n > EMPTY_BYTES)
            watch->texts[watch->n_texts++] = ref_text(part->text);
    }
    watch->seen = feed->version;
    return watch->n_texts > 0;
}

/* Sends what is new. A page that has not read the last document gets the newest one when it has. */
static void tell(struct dv_feed_watch *watch)
{
    const struct dv_node_feed *feed = watch->feed;

    if (watch->is_over || watch->n_texts > 0 || feed->is_in_round ||
        feed->n_rounds < watch->round || dv_rest_stream_unsent_bytes(&watch->stream) > CHUNK_BYTES)
        return;
    if (gather(watch)) {
        send(watch, DV_STR("{"));
        pump(watch);
    } else if (dv_loop_now_ms(feed->node->loop) >= watch->told_ms + PULSE_MS) {
        send(watch, DV_STR("{}\n"));
    }
}

static void on_room(struct dv_rest_stream *stream)
{
    struct dv_feed_watch *watch = DV_CONTAINER(stream, struct dv_feed_watch, stream);

    pump(watch);
    tell(watch);
}

static void tell_all(struct dv_node_feed *feed)
{
    uint64_t now_ms = dv_loop_now_ms(feed->node->loop);
    struct dv_link *link = feed->watches.head.next;

    while (link != &feed->watches.head) {
        struct dv_link *next = link->next; /* taken first: a watch that ends leaves the list */
        struct dv_feed_watch *watch = DV_CONTAINER(link, struct dv_feed_watch, link);

        tell(watch);
        if (now_ms >= watch->end_ms)
            finish(watch);
        link = next;
    }
}

/* ---- rounds ---- */

static bool is_awaited(const struct dv_node_feed *feed)
{
    for (struct dv_link *link = feed->watches.head.next; link != &feed->watches.head;
         link = link->next)
        if (DV_CONTAINER(link, struct dv_feed_watch, link)->round > feed->n_rounds)
            return true;
    return false;
}

static void on_time(struct dv_timer *timer);

/* Sets the timer to the next round, while somebody watches. */
static void plan_round(struct dv_node_feed *feed)
{
    uint64_t now_ms;
    uint64_t at_ms;

    /* The end of a round, or the next watch, plans it. A daemon whose start has failed tells of
     * changes while it closes, and its node has no loop. */
    if (feed->is_in_round || feed->is_stopped || dv_list_is_empty(&feed->watches))
        return;
    now_ms = dv_loop_now_ms(feed->node->loop);
    at_ms = dv_u64_max(feed->earliest_ms, now_ms + LOOK_MS);
    if (is_awaited(feed))
        at_ms = dv_u64_max(feed->rested_ms, now_ms);
    else if (feed->stale)
        at_ms = dv_u64_max(feed->earliest_ms, now_ms);
    dv_timer_start(&feed->timer, feed->node->loop, at_ms, on_time);
}

/* Makes the parts of the round that are left; ends the round when there are none. */
static void go_on(struct dv_node_feed *feed)
{
    uint64_t now_ms = dv_loop_now_ms(feed->node->loop);
    uint64_t spent_ms;

    for (size_t i = 0; i < DV_FEED_N_PARTS; i++) {
        if (!(feed->todo & (1u << i)))
            continue;
        feed->todo &= ~(1u << i);
        if (!make_part(feed, i))
            return; /* on_printed goes on */
    }
    feed->is_in_round = false;
    spent_ms = feed->spent_ns / DV_NS_PER_MS;
    feed->rested_ms = now_ms + spent_ms * GAP_FACTOR;
    feed->earliest_ms = dv_u64_max(feed->rested_ms, now_ms + GAP_MS);
    tell_all(feed);
    plan_round(feed);
}

static void on_time(struct dv_timer *timer)
{
    struct dv_node_feed *feed = DV_CONTAINER(timer, struct dv_node_feed, timer);

    feed->n_rounds++;
    feed->is_in_round = true;
    feed->spent_ns = 0;
    feed->todo = feed->stale | DV_FEED_STATUS | DV_FEED_PLUGINS;
    feed->stale = 0;
    go_on(feed);
}

void dv_feed_watch_start(struct dv_node_feed *feed, struct dv_feed_watch *watch,
                         struct dv_rest_call *call)
{
    watch->feed = feed;
    watch->stream.room = on_room;
    watch->stream.ended = on_ended;
    watch->end_ms = dv_loop_now_ms(feed->node->loop) + LIFE_MS + dv_random_u64() % LIFE_MS;
    if (watch->is_once || dv_list_is_empty(&feed->watches)) {
        feed->stale = ALL_PARTS; /* nobody keeps them current */
        watch->round = feed->n_rounds + 1;
    }
    dv_list_push(&feed->watches, &watch->link);
    dv_rest_stream_start(&watch->stream, call, 200);
    tell(watch);
    plan_round(feed);
}

/* ---- life ---- */

struct dv_node_feed *dv_node_feed_new(const struct dv_node *node)
{
    struct dv_node_feed *feed = DV_ALLOC(struct dv_node_feed);

    feed->node = node;
    feed->uses = dv_use_ring_new();
    dv_list_init(&feed->watches);
    return feed;
}

static void on_sample(struct dv_timer *timer)
{
    struct dv_node_feed *feed = DV_CONTAINER(timer, struct dv_node_feed, uses_timer);

    dv_serve_count_uses(feed->node, feed->uses);
    dv_node_feed_changed(feed, DV_FEED_USES);
    dv_timer_start(timer, feed->node->loop, dv_loop_now_ms(feed->node->loop) + DV_USE_STEP_MS,
                   on_sample);
}

void dv_node_feed_start(struct dv_node_feed *feed)
{
    on_sample(&feed->uses_timer);
}

void dv_node_feed_changed(struct dv_node_feed *feed, unsigned parts)
{
    if (!feed)
        return;
    feed->stale |= parts;
    plan_round(feed);
}

void dv_node_feed_stop(struct dv_node_feed *feed)
{
    struct dv_link *link;

    feed->is_stopped = true;
    dv_timer_cancel(&feed->timer);
    dv_timer_cancel(&feed->uses_timer);
    while ((link = dv_list_first(&feed->watches)) != NULL)
        finish(DV_CONTAINER(link, struct dv_feed_watch, link));
}

void dv_node_feed_free(struct dv_node_feed *feed)
{
    if (!feed)
        return;
    if (feed->is_printing) {
        feed->is_freed = true; /* on_printed comes back */
        return;
    }
    for (size_t i = 0; i < DV_FEED_N_PARTS; i++)
        unref_text(feed->parts[i].text);
    dv_use_ring_free(feed->uses);
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
