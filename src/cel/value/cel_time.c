#include "cel/value/cel_time.h"

#include <assert.h>
#include <string.h>

#include "base/calendar.h"
#include "base/err.h"
#include "cel/value/cel_value.h"

#define NS_PER_SECOND 1000000000

/* -- The calendar ---------------------------------------------------------------------------- */

struct dv_cel_date dv_cel_date_of(int64_t days)
{
    struct dv_date date = dv_date_from_days(days);

    return (struct dv_cel_date){
        .year = date.year,
        .month = date.month,
        .day = date.day,
        .day_of_year = (int)(days - dv_date_to_days(date.year, 1, 1)),
        .day_of_week = (int)(((days % 7) + 11) % 7),
    };
}

/* -- Arithmetic ------------------------------------------------------------------------------ */

struct dv_cel_val dv_cel_time_from_seconds(int64_t seconds)
{
    if (seconds < DV_CEL_SECONDS_MIN || seconds > DV_CEL_SECONDS_MAX)
        return dv_cel_error(DV_STR("timestamp overflow"));
    return dv_cel_timestamp(seconds, 0);
}

struct dv_cel_val dv_cel_time_add(const struct dv_cel_val *time, int64_t ns, bool subtract)
{
    int64_t sign = subtract ? -1 : 1;
    int64_t seconds = time->i + sign * (ns / NS_PER_SECOND);
    int64_t nanos = time->nanos + sign * (ns % NS_PER_SECOND);
    struct dv_cel_val sum;

    if (nanos < 0) {
        nanos += NS_PER_SECOND;
        seconds--;
    } else if (nanos >= NS_PER_SECOND) {
        nanos -= NS_PER_SECOND;
        seconds++;
    }
    if (seconds < DV_CEL_SECONDS_MIN || seconds > DV_CEL_SECONDS_MAX)
        return dv_cel_error(DV_STR("timestamp overflow"));
    sum = dv_cel_timestamp(seconds, (int32_t)nanos);
    sum.offset_minutes = time->offset_minutes;
    return sum;
}

struct dv_cel_val dv_cel_time_between(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    int64_t ns;

    if (__builtin_mul_overflow(a->i - b->i, (int64_t)NS_PER_SECOND, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a->nanos - b->nanos, &ns))
        return dv_cel_error(DV_STR("duration overflow"));
    return dv_cel_duration(ns);
}

/* -- Text ----------------------------------------------------------------------------------------
 */

struct dv_cel_val dv_cel_time_parse(dv_str text)
{
    struct dv_rfc3339 time;
    struct dv_cel_val val;

    if (!dv_rfc3339_parse(text, DV_RFC3339_LAX, &time))
        return dv_cel_error(DV_STR("invalid timestamp"));
    if (time.seconds < DV_CEL_SECONDS_MIN || time.seconds > DV_CEL_SECONDS_MAX)
        return dv_cel_error(DV_STR("timestamp overflow"));
    val = dv_cel_timestamp(time.seconds, time.nanos);
    val.offset_minutes = time.offset_minutes;
    return val;
}

struct dv_cel_val dv_cel_duration_parse(dv_str text)
{
    struct dv_err err;
    int64_t ns;

    if (!dv_duration_parse(text, &ns, &err))
        return dv_cel_error(DV_STR("invalid duration")); /* selectors never show Go's words */
    return dv_cel_duration(ns);
}

void dv_cel_time_print(const struct dv_cel_val *time, char text[DV_CEL_NUMBER_BYTES])
{
    static_assert(DV_RFC3339_BYTES <= DV_CEL_NUMBER_BYTES, "every time fits");
    (void)dv_rfc3339_print((struct dv_rfc3339){.seconds = time->i,
                                               .nanos = time->nanos,
                                               .offset_minutes = time->offset_minutes},
                           DV_RFC3339_TRIMMED, text);
}

void dv_cel_duration_print(int64_t ns, char text[DV_CEL_NUMBER_BYTES])
{
    /* As the reference does: whole seconds and the fraction are added apart, so that the sum is the
     * nearest double. */
    int64_t whole = ns / NS_PER_SECOND;
    double seconds = (double)whole + (double)(ns - whole * NS_PER_SECOND) / NS_PER_SECOND;

    dv_cel_print_fixed(seconds, text);
    memcpy(text + strlen(text), "s", 2);
}
