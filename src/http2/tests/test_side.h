/* test_side.h - sessions whose handlers write down what they are told, alone or joined in pairs. */
#ifndef DV_HTTP2_TEST_SIDE_H
#define DV_HTTP2_TEST_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http2/http2.h"

/* Calls are numbered as they begin. Events are lines: "#1 request /a.B/C", "#1 message hi",
 * "#1 ended OK", "refused INTERNAL", "ready", "going away". */
struct side {
    struct dv_h2_handler handler;
    struct dv_h2 *h2;
    struct dv_buf events;
    struct dv_h2_end last_end;
    struct dv_err last_refusal;
    size_t n_begun; /* calls */
    size_t n_ended;
    size_t n_messages;
    size_t n_drained;
    bool *is_over; /* by number - 1 */
    bool is_quiet; /* events are counted only */

    /* What the test does in a callback, once it is written down; NULL: nothing. */
    void (*on_request)(struct side *side, struct dv_h2_call *call,
                       const struct dv_h2_request *request);
    void (*on_message)(struct side *side, struct dv_h2_call *call, dv_str message);
    void (*on_drained)(struct side *side, struct dv_h2_call *call);
    void (*on_ended)(struct side *side, struct dv_h2_call *call, const struct dv_h2_end *end);
    struct dv_h2_call *call; /* the latest that began */
    void *test;              /* the test's own */
};

/* The lines since this was last asked. */
#define assert_events(side, want)                                                                  \
    do {                                                                                           \
        assert_string_equal(dv_buf_c(&(side)->events), (want));                                    \
        dv_buf_clear(&(side)->events);                                                             \
    } while (0)

void side_init(struct side *side, const struct dv_h2_options *options);
/* Loses the session, and fails unless every call has ended once. */
void side_fini(struct side *side);
size_t side_number(const struct dv_h2_call *call);
/* A client begins a call; the test fails when it cannot. */
struct dv_h2_call *side_start(struct side *side, const char *path, dv_str message);
/* The same, where failing is what the test is about. */
struct dv_h2_call *side_try(struct side *side, const struct dv_h2_start *start, dv_str message,
                            struct dv_err *err);
/* A server adds a message to its answer; the test fails when it cannot. */
void side_send(struct dv_h2_call *call, dv_str message);
/* All there is to pull, thrown away; returns how much. */
size_t side_pull_all(struct side *side);

/* For on_message: answers with the message that came. */
void side_echo(struct side *side, struct dv_h2_call *call, dv_str message);

struct pair {
    struct side client;
    struct side server;
    size_t chunk_bytes; /* at most so many are received at once; 0: all there are */
};

/* NULL: the defaults. */
void pair_init(struct pair *pair, const struct dv_h2_options *client,
               const struct dv_h2_options *server);
void pair_fini(struct pair *pair);
/* What one side has to say is heard by the other; false when there was nothing. */
bool pair_carry(struct pair *pair, struct side *from, struct side *to);
/* Both talk until neither has anything to say. */
void pair_talk(struct pair *pair);

#endif
