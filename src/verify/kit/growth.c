#include "verify/kit/growth.h"

#include <stdbool.h>
#include <stdint.h>

#include "verify/kit/trial.h"

/* What is looked at for growth, and what of it comes before the measuring: caches fill first. */
#define N_CYCLES 500u
#define N_WARM 50u
#define N_ROUNDS 4u
/* A driver that takes long for a cycle is looked at for so long in a round. */
#define ROUND_MS 15000u
/* What has ended is closed and given back by and by. */
#define SETTLE_MS 2000u

size_t dv_growth_descriptors(const struct dv_growth *growth)
{
    return dv_child_n_descriptors(growth->process);
}

size_t dv_growth_memory_kib(const struct dv_growth *growth)
{
    return dv_child_rss_kib(growth->process);
}

size_t dv_growth_files(const struct dv_growth *growth)
{
    return dv_trial_list(growth->trial, growth->trial->paths.root).n;
}

/* Returns how many there was time for. */
static unsigned run_cycles(const struct dv_growth *growth, unsigned n)
{
    uint64_t start_ms = dv_trial_now_ms(growth->trial);
    unsigned i;

    for (i = 0; i < n && dv_trial_now_ms(growth->trial) - start_ms < ROUND_MS; i++)
        growth->cycle(growth->ctx);
    return i;
}

struct settling {
    const struct dv_growth *growth;
    size_t limit;
};

static bool is_settled(void *ctx)
{
    const struct settling *settling = ctx;

    return settling->growth->measure(settling->growth) <= settling->limit;
}

void dv_growth_check(const struct dv_growth *growth)
{
    struct dv_trial *trial = growth->trial;
    unsigned n = 0;
    size_t first;
    size_t last;

    (void)run_cycles(growth, N_WARM);
    first = last = growth->measure(growth);
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        struct settling settling = {growth, last + growth->max};

        n += run_cycles(growth, N_CYCLES);
        if (dv_trial_wait_ms(trial, is_settled, &settling, SETTLE_MS, "what it has ended"))
            return;
        last = growth->measure(growth);
    }
    dv_trial_fail(trial, "%u %s took %s from %zu to %zu, and it grew all the time", n, growth->of,
                  growth->what, first, last);
}
