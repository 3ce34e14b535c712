#include "base/clock.h"

#include <time.h>

#include "base/calendar.h"

#define MICRO_DIGITS 6

static uint64_t read_clock(clockid_t id)
{
    struct timespec now = {0};

    (void)clock_gettime(id, &now); /* both clocks exist on every Linux */
    return (uint64_t)now.tv_sec * DV_NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t real_monotonic_ns(struct dv_clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t real_wall_ns(struct dv_clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

struct dv_clock *dv_clock_real(void)
{
    static struct dv_clock real = {real_monotonic_ns, real_wall_ns, false};

    return &real;
}

static uint64_t virtual_monotonic_ns(struct dv_clock *clock)
{
    return ((struct dv_clock_virtual *)clock)->now_ns;
}

static uint64_t virtual_wall_ns(struct dv_clock *clock)
{
    const struct dv_clock_virtual *self = (struct dv_clock_virtual *)clock;

    return self->now_ns + self->wall_offset_ns;
}

void dv_clock_virtual_init(struct dv_clock_virtual *clock)
{
    *clock = (struct dv_clock_virtual){
        .clock = {virtual_monotonic_ns, virtual_wall_ns, true},
        .now_ns = DV_NS_PER_S,
        .wall_offset_ns = UINT64_C(1704067200) * DV_NS_PER_S - DV_NS_PER_S,
    };
}

void dv_clock_virtual_advance_ms(struct dv_clock_virtual *clock, uint64_t ms)
{
    clock->now_ns += ms * DV_NS_PER_MS;
}

uint64_t dv_clock_now_ns(struct dv_clock *clock)
{
    return clock->monotonic_ns(clock);
}

uint64_t dv_clock_now_ms(struct dv_clock *clock)
{
    return clock->monotonic_ns(clock) / DV_NS_PER_MS;
}

uint64_t dv_clock_wall_ns(struct dv_clock *clock)
{
    return clock->wall_ns(clock);
}

void dv_time_print(uint64_t wall_ns, char text[DV_TIME_BYTES])
{
    const struct dv_rfc3339 time = {.seconds = (int64_t)(wall_ns / DV_NS_PER_S),
                                    .nanos = (int32_t)(wall_ns % DV_NS_PER_S)};

    (void)dv_rfc3339_print(time, MICRO_DIGITS, text);
}
