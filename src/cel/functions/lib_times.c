/* lib_times.c - what parts a timestamp or duration has. */
#include "base/calendar.h"
#include "base/str.h"
#include "cel/check/decls.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"

#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000LL

/* The work of a call with a zone: the zone is searched and its rules are read each time, which
 * takes some five microseconds. */
#define ZONE_WORK 500u

/* The wall clock of a zone. */
struct wall {
    struct dv_cel_date date;
    int64_t seconds; /* of the day */
};

/* Converts to the time of a zone. False, with the error in out: there is no such zone. `args` has
 * the zone second, when there is one. */
static bool to_wall(struct dv_cel_run *run, const struct dv_cel_val *args, bool has_zone,
                    struct wall *wall, struct dv_cel_val *out)
{
    int64_t seconds = args[0].i;
    int64_t offset = 0;
    int64_t days;

    if (has_zone)
        dv_cel_run_work(run, ZONE_WORK);
    if (has_zone && !dv_cel_zone_offset(args[1].s, seconds, &offset)) {
        *out = dv_cel_error_printf(run->arena, "unknown time zone %.*s", DV_FMT(args[1].s));
        return false;
    }
    seconds += offset;
    days = dv_days_of_seconds(seconds);
    wall->date = dv_cel_date_of(days);
    wall->seconds = seconds - days * DV_DAY_SECONDS;
    return true;
}

enum part {
    YEAR,
    MONTH,
    DATE,
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    DAY_OF_YEAR,
    HOURS,
    MINUTES,
    SECONDS,
    MILLISECONDS,
};

static int64_t part_of(const struct wall *wall, int32_t nanos, enum part part)
{
    switch (part) {
    case YEAR:
        return wall->date.year;
    case MONTH:
        return wall->date.month - 1;
    case DATE:
        return wall->date.day;
    case DAY_OF_MONTH:
        return wall->date.day - 1;
    case DAY_OF_WEEK:
        return wall->date.day_of_week;
    case DAY_OF_YEAR:
        return wall->date.day_of_year;
    case HOURS:
        return wall->seconds / 3600;
    case MINUTES:
        return wall->seconds / 60 % 60;
    case SECONDS:
        return wall->seconds % 60;
    case MILLISECONDS:
        break;
    }
    return nanos / NS_PER_MS;
}

static void get(struct dv_cel_run *run, const struct dv_cel_val *args, bool has_zone,
                enum part part, struct dv_cel_val *out)
{
    struct wall wall;

    if (to_wall(run, args, has_zone, &wall, out))
        *out = dv_cel_int(part_of(&wall, args[0].nanos, part));
}

#define GETTER(NAME, PART)                                                                         \
    static void fn_##NAME(struct dv_cel_run *run, const struct dv_cel_val *args,                   \
                          struct dv_cel_val *out)                                                  \
    {                                                                                              \
        get(run, args, false, PART, out);                                                          \
    }                                                                                              \
    static void fn_##NAME##_in(struct dv_cel_run *run, const struct dv_cel_val *args,              \
                               struct dv_cel_val *out)                                             \
    {                                                                                              \
        get(run, args, true, PART, out);                                                           \
    }

GETTER(year, YEAR)
GETTER(month, MONTH)
GETTER(date, DATE)
GETTER(day_of_month, DAY_OF_MONTH)
GETTER(day_of_week, DAY_OF_WEEK)
GETTER(day_of_year, DAY_OF_YEAR)
GETTER(hours, HOURS)
GETTER(minutes, MINUTES)
GETTER(seconds, SECONDS)
GETTER(milliseconds, MILLISECONDS)

/* Functions of a duration: the whole of it in that unit. */
static void fn_hours_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                        struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].i / (3600 * NS_PER_SECOND));
}

static void fn_minutes_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].i / (60 * NS_PER_SECOND));
}

static void fn_seconds_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].i / NS_PER_SECOND);
}

static void fn_milliseconds_of(struct dv_cel_run *run, const struct dv_cel_val *args,
                               struct dv_cel_val *out)
{
    (void)run;
    *out = dv_cel_int(args[0].i / NS_PER_MS);
}

#define ROWS(NAME, FN)                                                                             \
    {NAME, ".T>i", FN, DV_CEL_COST_ONE, 0},                                                        \
    {                                                                                              \
        NAME, ".Ts>i", FN##_in, DV_CEL_COST_ONE, 0                                                 \
    }

static const struct dv_cel_overload rows[] = {
    ROWS("getFullYear", fn_year),
    ROWS("getMonth", fn_month),
    ROWS("getDate", fn_date),
    ROWS("getDayOfMonth", fn_day_of_month),
    ROWS("getDayOfWeek", fn_day_of_week),
    ROWS("getDayOfYear", fn_day_of_year),
    ROWS("getHours", fn_hours),
    {"getHours",        ".D>i", fn_hours_of,        DV_CEL_COST_ONE, 0},
    ROWS("getMinutes", fn_minutes),
    {"getMinutes",      ".D>i", fn_minutes_of,      DV_CEL_COST_ONE, 0},
    ROWS("getSeconds", fn_seconds),
    {"getSeconds",      ".D>i", fn_seconds_of,      DV_CEL_COST_ONE, 0},
    ROWS("getMilliseconds", fn_milliseconds),
    {"getMilliseconds", ".D>i", fn_milliseconds_of, DV_CEL_COST_ONE, 0},
};
const struct dv_cel_lib dv_cel_lib_times = {rows, DV_COUNT(rows)};
