/* api_time.c - times as the API writes them: RFC 3339, read as Go's time package reads it. */
#include "resource/resource.h"

#include "base/buf.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#define MICRO_DIGITS 6
/* Go's zero time, 0001-01-01T00:00:00Z, stands for no time at all. */
#define ZERO_SECONDS (-62135596800)

bool dv_api_time_parse(dv_str text, struct dv_time *time, struct dv_err *err)
{
    struct dv_rfc3339 parsed;
    struct dv_time read;

    if (!dv_rfc3339_parse(text, DV_RFC3339_LAX, &parsed))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no time like 2006-01-02T15:04:05Z",
                       DV_FMT(text));
    read = (struct dv_time){
        .seconds = parsed.seconds,
        .nanos = parsed.nanos,
        .is_set = parsed.seconds != ZERO_SECONDS || parsed.nanos != 0,
    };
    /* an offset can lead out of the years that have four digits */
    if (!dv_api_time_is_in_range(read))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not in the years 0 to 9999",
                       DV_FMT(text));
    *time = read;
    return true;
}

struct dv_time dv_api_time_from_ns(uint64_t wall_ns)
{
    return (struct dv_time){.seconds = (int64_t)(wall_ns / DV_NS_PER_S),
                            .nanos = (int32_t)(wall_ns % DV_NS_PER_S),
                            .is_set = true};
}

struct dv_time dv_api_seconds_from_ns(uint64_t wall_ns)
{
    return (struct dv_time){.seconds = (int64_t)(wall_ns / DV_NS_PER_S), .is_set = true};
}

struct dv_time dv_api_time_round(struct dv_time time, bool with_micros)
{
    time.nanos = with_micros ? time.nanos / 1000 * 1000 : 0;
    time.is_set = time.is_set && (time.seconds != ZERO_SECONDS || time.nanos != 0);
    return time;
}

bool dv_api_time_is_in_range(struct dv_time time)
{
    return time.seconds >= DV_RFC3339_SECONDS_MIN && time.seconds <= DV_RFC3339_SECONDS_MAX;
}

struct dv_time dv_api_time_add(struct dv_time time, int64_t seconds)
{
    int64_t sum;

    if (__builtin_add_overflow(time.seconds, seconds, &sum))
        sum = seconds > 0 ? DV_RFC3339_SECONDS_MAX : DV_RFC3339_SECONDS_MIN;
    if (sum > DV_RFC3339_SECONDS_MAX)
        sum = DV_RFC3339_SECONDS_MAX;
    time.seconds = sum < DV_RFC3339_SECONDS_MIN ? DV_RFC3339_SECONDS_MIN : sum;
    return time;
}

void dv_api_time_print(struct dv_time time, bool with_micros, struct dv_buf *buf)
{
    char text[DV_RFC3339_BYTES];
    size_t n = dv_rfc3339_print((struct dv_rfc3339){.seconds = time.seconds, .nanos = time.nanos},
                                with_micros ? MICRO_DIGITS : 0, text);

    dv_buf_add(buf, (dv_str){text, n});
}
