/* node_feed.h - the node as JSON documents, now and after every change: what davit.node.v1 tells,
 * for pages.
 *
 * A document has the fields of StatusResponse, ListPluginsResponse, ListDevicesResponse,
 * ListClaimsResponse, ListLeasesResponse and Uses side by side. Who watches gets all of them first,
 * then those of the messages that have changed; each message is printed once for all who watch, a
 * long one by a job, and not more often than a few times a second. */
#ifndef DV_SERVE_NODE_FEED_H
#define DV_SERVE_NODE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "rest/rest.h"

struct dv_node_feed;

dv_str dv_node_feed_name(const struct dv_node_feed *feed); /* returns the node's name */
/* Whether the feed was stopped: it tells nothing any more. */
bool dv_node_feed_is_stopped(const struct dv_node_feed *feed);

struct dv_feed_text; /* what a part is printed as: immutable and counted, all who watch share it */
/* The number of parts of a document, which are in the order of the bits of enum dv_feed_part. */
#define DV_FEED_N_PARTS 6u

/* A watch of the feed. It is embedded in what watches, zeroed, then `ended` and `is_once` are set;
 * it is lent until `ended` has run. */
struct dv_feed_watch {
    void (*ended)(struct dv_feed_watch *watch);
    bool is_once; /* it ends after the first document */
    /* private */
    struct dv_node_feed *feed;
    struct dv_rest_stream stream;
    struct dv_link link;
    struct dv_feed_text *texts[DV_FEED_N_PARTS]; /* the document that is being sent */
    size_t n_texts;                              /* 0: none is */
    size_t at;                                   /* which of them goes out now */
    size_t sent;                                 /* how much of that was sent */
    uint64_t round;                              /* the first round whose parts are new enough */
    uint64_t seen;                               /* the version of the feed that it tells */
    uint64_t told_ms;                            /* when something was last sent */
    uint64_t end_ms;
    bool is_over;
};

/* Begins the answer to the call. The feed must not be stopped. */
void dv_feed_watch_start(struct dv_node_feed *feed, struct dv_feed_watch *watch,
                         struct dv_rest_call *call);

#endif
