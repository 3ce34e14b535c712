/* top_feed.h - what davit top shows, kept current: lists of davit.sock, and the API's events. */
#ifndef DV_CLI_TOP_FEED_H
#define DV_CLI_TOP_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/top/top.h"
#include "grpc/grpc.h"
#include "loop/loop.h"
#include "rest/rest.h"

struct ProtobufCMessageDescriptor;
struct dv_arena;

/* ---- davitd ---- */

struct dv_top_feed;

/* One list, which is watched, or asked for again and again. */
struct dv_top_list {
    struct dv_top_feed *feed;
    struct dv_call call;
    const struct ProtobufCMessageDescriptor *type;
    bool is_running;
    struct dv_arena *arena; /* of the message */
    const void *message;    /* the newest; NULL: none yet */
};

#define DV_TOP_N_LISTS 6u

struct dv_top_feed {
    struct dv_loop *loop;
    struct dv_channel *channel;
    struct dv_top_list lists[DV_TOP_N_LISTS];
    struct dv_timer timer; /* to ask again */
    dv_str socket;
    struct dv_err err; /* why davitd does not answer; DV_OK: it does */
    char trouble[DV_ERR_MSG_BYTES + 512];
    void (*changed)(void *ctx);
    void *ctx;
};

/* Begins to ask. `changed` runs when something is another; `socket` is kept. */
DV_CHECKED bool dv_top_feed_open(struct dv_top_feed *feed, struct dv_loop *loop, dv_str socket,
                                 void (*changed)(void *ctx), void *ctx, struct dv_err *err);
/* Whether each list has come at least once. */
bool dv_top_feed_is_whole(const struct dv_top_feed *feed);
/* The lists as they are; they live until the loop next runs. */
void dv_top_feed_get(struct dv_top_feed *feed, struct dv_top_data *data);
void dv_top_feed_close(struct dv_top_feed *feed); /* before the loop is freed */
void dv_top_feed_fini(struct dv_top_feed *feed);  /* after it */

/* ---- events ---- */

/* More than a screen shows, and little to keep. */
#define DV_TOP_EVENTS_MAX 200u

struct dv_top_kept_event {
    struct dv_arena *arena;
    struct dv_top_event event;
};

struct dv_top_events {
    struct dv_loop *loop;
    struct dv_rest_client *client;
    struct dv_rest_fetch fetch; /* of the list, then of the watch */
    struct dv_buf line;         /* of the watch, as far as it has come */
    struct dv_timer timer;      /* to list again */
    struct dv_top_kept_event kept[DV_TOP_EVENTS_MAX + 1];
    size_t n;
    char target[256];
    char note[512]; /* why there are none */
    bool is_closing;
    void (*changed)(void *ctx);
    void *ctx;
};

/* Begins to ask; `client` is kept. */
void dv_top_events_open(struct dv_top_events *events, struct dv_loop *loop,
                        struct dv_rest_client *client, void (*changed)(void *ctx), void *ctx);
/* The newest first, in `arena`. */
void dv_top_events_get(const struct dv_top_events *events, struct dv_arena *arena,
                       struct dv_top_data *data);
void dv_top_events_close(struct dv_top_events *events); /* before the loop is freed */
void dv_top_events_fini(struct dv_top_events *events);  /* after it */

#endif
