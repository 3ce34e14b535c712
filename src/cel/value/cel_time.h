/* cel_time.h - timestamps (seconds and nanoseconds since 1970) and durations (nanoseconds). */
#ifndef DV_CEL_TIME_H
#define DV_CEL_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cel/value/number_text.h"

struct dv_cel_val;

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
#define DV_CEL_SECONDS_MIN (-62135596800)
#define DV_CEL_SECONDS_MAX 253402300799

/* The parsers give an error value when the text is no time or duration. */
struct dv_cel_val dv_cel_time_parse(dv_str text);
struct dv_cel_val dv_cel_time_from_seconds(int64_t seconds);
struct dv_cel_val dv_cel_duration_parse(dv_str text);

struct dv_cel_val dv_cel_time_add(const struct dv_cel_val *time, int64_t ns, bool subtract);
struct dv_cel_val dv_cel_time_between(const struct dv_cel_val *a, const struct dv_cel_val *b);

void dv_cel_time_print(const struct dv_cel_val *time, char text[DV_CEL_NUMBER_BYTES]);
void dv_cel_duration_print(int64_t ns, char text[DV_CEL_NUMBER_BYTES]); /* "1.5s" */

/* A day in the calendar. */
struct dv_cel_date {
    int64_t year;
    int month;       /* 1 .. 12 */
    int day;         /* 1 .. 31 */
    int day_of_year; /* 0 .. 365 */
    int day_of_week; /* 0: Sunday */
};
struct dv_cel_date dv_cel_date_of(int64_t days); /* since 1970-01-01 */

/* Seconds east of UTC at a time, in a zone given as "+01:00" or by its name. Names follow the rules
 * in force today, also for times before them. False: no such zone. */
DV_CHECKED bool dv_cel_zone_offset(dv_str zone, int64_t seconds, int64_t *offset);

#endif
