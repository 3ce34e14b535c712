/* turns.h - runs a loop in a test until something has happened, or fails the test. */
#ifndef DV_TESTS_TURNS_H
#define DV_TESTS_TURNS_H

#include <stdbool.h>

#include "loop/loop.h"

/* In real time. Only a broken test waits so long: sanitizers on a loaded machine are slow. */
#define TEST_WAIT_MS 60000u

void loop_wait(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx);
void loop_wait_flag(struct dv_loop *loop, const bool *flag);
void loop_wait_count(struct dv_loop *loop, const int *count, int at_least);
/* Runs the loop for so many turns. Timers that are due fire before the tasks of a turn, so one turn
 * is enough for them after the clock was turned. What one turn does may make a socket ready for the
 * next: those who wait for a peer in the same process need several. */
void loop_turns(struct dv_loop *loop, int n);

/* The end of a turn, for those who wait in a way of their own: n_passed is 1 when it has come. */
struct mark {
    struct dv_task task;
    int n_passed;
};
void mark_post(struct mark *mark, struct dv_loop *loop);

/* For what ends in a callback without arguments of its own: `ctx` is a bool, which is set. */
void set_flag(void *ctx);

#endif
