/* test_spdy_side.h - SPDY sessions whose handlers write down what they are told. */
#ifndef DV_UPGRADE_TEST_SPDY_SIDE_H
#define DV_UPGRADE_TEST_SPDY_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "upgrade/spdy.h"

/* Events are lines: "1 opened streamtype=stdin", "1 replied", "1 data hi", "1 finished", "1 room",
 * "1 ended OK", "going away", "pong". */
struct side {
    struct dv_spdy_handler handler;
    struct dv_spdy *spdy;
    struct dv_buf events;
    struct dv_spdy_stream *stream; /* the latest that the peer opened */
    size_t n_data;
    size_t n_open;
    bool is_quiet;  /* events are counted only */
    bool has_reply; /* streams of the peer's are accepted at once */

    /* What the test does in a callback; NULL: nothing. */
    void (*on_finished)(struct side *side, struct dv_spdy_stream *stream);
    void (*on_room)(struct side *side, struct dv_spdy_stream *stream);
    size_t left; /* the test's own */
};

#define assert_events(side, want)                                                                  \
    do {                                                                                           \
        assert_string_equal(dv_buf_c(&(side)->events), (want));                                    \
        dv_buf_clear(&(side)->events);                                                             \
    } while (0)

void side_init(struct side *side, const struct dv_spdy_options *options);
/* Loses the session, and fails unless every stream has ended once. */
void side_fini(struct side *side);
/* Opens a stream of this type; the test fails when it cannot. */
struct dv_spdy_stream *side_open(struct side *side, const char *type);
/* The other side hears what this one has to say; false when that was nothing. */
bool side_carry(struct side *from, struct side *to, size_t step);
/* Both talk until neither has anything to say. */
void sides_talk(struct side *a, struct side *b);

#endif
