/* calendar.h - days of the Gregorian calendar, times as RFC 3339 writes them, and durations as Go
 * does.
 *
 * Days and seconds are counted from 1970-01-01T00:00:00Z, without leap seconds. The calendar holds
 * for the years before it was made, too, as everybody's time stamps have it. */
#ifndef DV_BASE_CALENDAR_H
#define DV_BASE_CALENDAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

#define DV_DAY_SECONDS INT64_C(86400)
/* 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: a year of four digits goes no further. */
#define DV_RFC3339_SECONDS_MIN INT64_C(-62167219200)
#define DV_RFC3339_SECONDS_MAX INT64_C(253402300799)

struct dv_date {
    int64_t year;
    int month; /* 1 .. 12 */
    int day;   /* 1 .. 31 */
};

int64_t dv_date_to_days(int64_t year, int month, int day);
struct dv_date dv_date_from_days(int64_t days);
int dv_date_days_in_month(int64_t year, int month);
int64_t dv_days_of_seconds(int64_t seconds); /* the day that the second is in */

struct dv_rfc3339 {
    int64_t seconds;
    int32_t nanos;          /* 0 .. 999,999,999, also before 1970 */
    int32_t offset_minutes; /* of the place that the text was written for, east of UTC */
};

/* Go has two readers. The strict one is for JSON; time.Parse also takes "T1:02:03", a comma before
 * the fraction, and offsets of 24 hours or 60 minutes. */
enum dv_rfc3339_reader {
    DV_RFC3339_STRICT,
    DV_RFC3339_LAX,
};
/* Parses a time; parts finer than a nanosecond are cut off. An offset can lead out of the years of
 * four digits: seconds may be a day beyond the limits above. */
DV_CHECKED bool dv_rfc3339_parse(dv_str text, enum dv_rfc3339_reader reader,
                                 struct dv_rfc3339 *time);

#define DV_RFC3339_BYTES sizeof("2006-01-02T15:04:05.999999999+00:00")
/* As many digits after the point as the nanoseconds need, and no point where they are 0. */
#define DV_RFC3339_TRIMMED (-1)
/* Prints with `n_digits` after the point, NUL-terminated, and returns the text's length. A time
 * beyond the limits above is shown as the limit. */
size_t dv_rfc3339_print(struct dv_rfc3339 time, int n_digits, char text[DV_RFC3339_BYTES]);

/* Parses a duration like "1h30m", "-1.5s" or "300ms" into nanoseconds. DV_INVALID_ARGUMENT, in Go's
 * words: it is none, it has no unit or an unknown one, or it is too long. */
DV_CHECKED bool dv_duration_parse(dv_str text, int64_t *ns, struct dv_err *err);

#endif
