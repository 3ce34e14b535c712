#include "support/rig.h"

#include "base/arena.h"
#include "base/log.h"
#include "loop/loop.h"
#include "support/dvtest.h"
#include "support/lines.h"
#include "support/scratch.h"
#include "support/turns.h"

/* Far more than a test logs: a test that fills it goes round in circles. */
#define LOG_BYTES_MAX (64u << 20)
/* So much of the log's end is printed when a wait fails. */
#define TAIL_BYTES 1500u

void rig_init(struct rig *rig, const char *name)
{
    struct dv_err err;

    rig->arena = dv_arena_new();
    dv_buf_init(&rig->log, LOG_BYTES_MAX);
    lines_keep(&rig->log, DV_LOG_INFO);
    dv_clock_virtual_init(&rig->clock);
    rig->loop = dv_loop_new(&rig->clock.clock, &err);
    assert_ok(rig->loop, &err);
    scratch_make(name, rig->dir, sizeof(rig->dir));
}

void rig_fini(struct rig *rig)
{
    dv_loop_free(rig->loop);
    lines_end(&rig->log);
    dv_arena_free(rig->arena);
    scratch_remove(rig->dir);
}

void rig_wait(struct rig *rig, bool (*is_met)(void *ctx), void *ctx)
{
    if (!dv_loop_run_until(rig->loop, is_met, ctx, TEST_WAIT_MS)) {
        size_t n = rig->log.n > TAIL_BYTES ? TAIL_BYTES : rig->log.n;

        fail_msg("waited in vain; log: ...%s", dv_buf_c(&rig->log) + rig->log.n - n);
    }
}

struct wait {
    const int *count;
    int at_least;
};

static bool has_count(void *ctx)
{
    const struct wait *wait = ctx;

    return *wait->count >= wait->at_least;
}

void rig_wait_count(struct rig *rig, const int *count, int at_least)
{
    rig_wait(rig, has_count, &(struct wait){count, at_least});
}

void rig_advance(struct rig *rig, uint64_t ms)
{
    dv_clock_virtual_advance_ms(&rig->clock, ms);
    loop_turns(rig->loop, 1);
}

void rig_on_closed(void *ctx)
{
    ((struct rig *)ctx)->n_closed++;
}
