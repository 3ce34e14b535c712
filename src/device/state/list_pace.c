#include "device/state/list_pace.h"

#include "base/num.h"

/* In the long run a list is read every 50 ms. Before that 20 in a row are: what a plugin sends when
 * it starts, or when a machine loses a dozen devices one by one. */
#define PERIOD_NS UINT64_C(50000000)
#define BURST_NS (20 * PERIOD_NS)
/* Reading the lists of one plugin takes a tenth of our time at most; a list of a million devices is
 * still read every two seconds. */
#define COST_FACTOR 9u
#define QUIET_MAX_NS UINT64_C(2000000000)

bool dv_list_pace_may_read(const struct dv_list_pace *pace, uint64_t now_ns, uint64_t *at_ns)
{
    uint64_t burst_ns = pace->free_ns > BURST_NS ? pace->free_ns - BURST_NS : 0;

    *at_ns = dv_u64_max(pace->quiet_ns, burst_ns);
    return now_ns >= *at_ns;
}

void dv_list_pace_note(struct dv_list_pace *pace, uint64_t now_ns, uint64_t cost_ns)
{
    pace->free_ns = dv_u64_max(pace->free_ns, now_ns) + PERIOD_NS;
    pace->quiet_ns =
        now_ns + dv_u64_min(dv_u64_min(cost_ns, QUIET_MAX_NS) * COST_FACTOR, QUIET_MAX_NS);
}
