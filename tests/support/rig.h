/* rig.h - what every test of a node has: a loop on a clock that is turned, an arena, a directory
 * and the log. The hosts of claim, device, pod and others are built around one. */
#ifndef DV_TESTS_RIG_H
#define DV_TESTS_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

struct dv_arena;
struct dv_loop;

struct rig {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena; /* for what tests make; until the end */
    char dir[64];
    struct dv_buf log; /* all that was logged */
    int n_closed;      /* how often rig_on_closed ran */
};

/* `name` is a part of the directory's name. Takes over the log until rig_fini. */
void rig_init(struct rig *rig, const char *name);
void rig_fini(struct rig *rig);

/* Until it is so; the end of the log is printed when it does not become so. */
void rig_wait(struct rig *rig, bool (*is_met)(void *ctx), void *ctx);
void rig_wait_count(struct rig *rig, const int *count, int at_least);
/* Turns the clock, and runs what is due. */
void rig_advance(struct rig *rig, uint64_t ms);

/* For close functions: `ctx` is the rig. */
void rig_on_closed(void *ctx);

#endif
