/* agent_pause.h - when what has failed is tried again, and what is worth telling anew. Pure.
 *
 * Pauses grow from a quarter of a second to a minute, as docs/differences.md says. What may help (a
 * driver is back, the claim is another) makes a try due at once. A driver that comes back only to
 * fail again would then be asked as often as it restarts: so tries that were asked for in this way
 * have growing pauses between them, too. */
#ifndef DV_POD_AGENT_PAUSE_H
#define DV_POD_AGENT_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define DV_AGENT_PAUSE_FIRST_MS 250u
#define DV_AGENT_PAUSE_MAX_MS 60000u
/* The first pause between two tries that were asked for, after the first has failed. */
#define DV_AGENT_WAKE_FIRST_MS 1000u

/* Zeroed memory: nothing has failed. */
struct dv_agent_pause {
    uint64_t next_ms;   /* after the next failure */
    uint64_t wake_ms;   /* after the last failure, until a try can be asked for */
    uint64_t failed_ms; /* when it has failed last */
    bool is_woken;      /* the try that is due or under way was asked for */
};

/* Tells that the try has failed now. Returns how long the next one has to wait, at most
 * `max_ms`. */
uint64_t dv_agent_pause_fail(struct dv_agent_pause *pause, uint64_t now_ms, uint64_t max_ms);
/* Tells that something has happened that may help a pod whose next try is due at `due_ms`. Returns
 * when it is due now. */
uint64_t dv_agent_pause_wake(struct dv_agent_pause *pause, uint64_t now_ms, uint64_t due_ms);

/* Whether two messages say the same but for numbers, times, addresses and ids: a driver that
 * repeats its failure with another number says nothing new. */
bool dv_agent_says_same(dv_str a, dv_str b);

#endif
