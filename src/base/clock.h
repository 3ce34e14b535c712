/* clock.h - where time comes from, so that tests can turn it.
 *
 * Monotonic time is for deadlines and durations and has no meaning of its own; wall time is for
 * showing and for timestamps in objects. */
#ifndef DV_BASE_CLOCK_H
#define DV_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/calendar.h"

#define DV_NS_PER_S UINT64_C(1000000000)
#define DV_NS_PER_MS UINT64_C(1000000)

struct dv_clock {
    uint64_t (*monotonic_ns)(struct dv_clock *clock);
    uint64_t (*wall_ns)(struct dv_clock *clock); /* since 1970 */
    bool is_virtual; /* moves only when told: a loop on it must not sleep until a time */
};

/* The machine's clocks; shared, never freed. */
struct dv_clock *dv_clock_real(void);

/* A clock that stands still until the caller turns it. */
struct dv_clock_virtual {
    struct dv_clock clock;
    uint64_t now_ns;
    uint64_t wall_offset_ns;
};
void dv_clock_virtual_init(struct dv_clock_virtual *clock); /* begins at 1 s, wall 2024-01-01 */
void dv_clock_virtual_advance_ms(struct dv_clock_virtual *clock, uint64_t ms);

uint64_t dv_clock_now_ns(struct dv_clock *clock);
uint64_t dv_clock_now_ms(struct dv_clock *clock);
uint64_t dv_clock_wall_ns(struct dv_clock *clock);

/* Prints "2024-05-01T12:00:00.123456Z" into text[DV_TIME_BYTES]. */
#define DV_TIME_BYTES DV_RFC3339_BYTES
void dv_time_print(uint64_t wall_ns, char text[DV_TIME_BYTES]);

#endif
