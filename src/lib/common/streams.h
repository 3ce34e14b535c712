/* streams.h - the ListAndWatch calls on one socket, and the list that they all are sent. */
#ifndef DV_LIB_STREAMS_H
#define DV_LIB_STREAMS_H

#include <stddef.h>

#include "base/list.h"

struct dv_err;
struct dv_h2_msg;
struct dv_server_call;

struct dv_lib_streams {
    struct dv_list open; /* struct stream */
    size_t n;
    struct dv_h2_msg *list; /* the latest; NULL: none yet, who watches waits */
    /* Called when a stream has begun, or its client has left it; `n` tells how many there are. Not
     * called for streams that we end. */
    void (*changed)(void *ctx);
    void *ctx;
};

void dv_lib_streams_init(struct dv_lib_streams *streams, void (*changed)(void *ctx), void *ctx);
void dv_lib_streams_fini(struct dv_lib_streams *streams); /* there must be none open */

/* Takes the call as a stream: it is sent the list, and each later one. */
void dv_lib_streams_add(struct dv_lib_streams *streams, struct dv_server_call *call);
/* Sends a new list to all; keeps a reference. A stream whose client has not read the one before
 * gets only the latest, once it has. */
void dv_lib_streams_push(struct dv_lib_streams *streams, struct dv_h2_msg *list);
/* Ends all streams with this error. */
void dv_lib_streams_end(struct dv_lib_streams *streams, const struct dv_err *err);

#endif
