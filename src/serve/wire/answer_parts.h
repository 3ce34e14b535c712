/* answer_parts.h - a long answer that is made in parts: a worker prints one, and the next when the
 * client has taken most of it. So the first byte goes out before the last object was looked at, and
 * the answer never lies in memory as a whole.
 *
 * The client may leave while a worker prints. What that reads must therefore not be the call's: the
 * call ends with the client, the parts when both are done. */
#ifndef DV_SERVE_ANSWER_PARTS_H
#define DV_SERVE_ANSWER_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "rest/rest.h"

/* It is embedded in what the worker reads, zeroed, filled in, and lent until `free` has run. */
struct dv_parts {
    /* Prints the next part, of `n_bytes` or a little more, into `part`; true: that was the last.
     * Runs on a worker, one call at a time. */
    bool (*print)(struct dv_parts *parts, size_t n_bytes, struct dv_buf *part);
    /* A part was printed, and no worker reads anything now. May be NULL. */
    void (*printed)(struct dv_parts *parts);
    /* The client has got everything, or has left; the call is freed after this, while a worker may
     * still print. May be NULL. */
    void (*ended)(struct dv_parts *parts);
    /* Nobody needs it any more. Runs last, once. */
    void (*free)(struct dv_parts *parts);
    struct dv_parts_private {
        struct dv_loop *loop;
        struct dv_buf part;
        struct dv_rest_stream stream;
        struct dv_timer timer;
        struct dv_work work;
        bool is_begun;    /* a part was printed */
        bool is_complete; /* the last one was */
        bool is_printing; /* a worker has it */
        bool is_over;     /* the stream takes no more */
        bool has_ended;   /* the call is gone */
    } priv;
};

/* Answers the call, whose fields have been added, with 200. About `n_bytes` will be sent: the
 * client has longer for a longer answer. */
void dv_parts_start(struct dv_parts *parts, struct dv_loop *loop, struct dv_rest_call *call,
                    size_t n_bytes);

#endif
