/* zone.c - how far a zone is from UTC at some time: fixed offsets, and POSIX rules such as
 * EST5EDT,M3.2.0,M11.1.0 (which of this, see tzset(3)). */
#include "cel/value/zone.h"

#include "base/calendar.h"
#include "base/num.h"
#include "cel/value/cel_time.h"

#define HOUR 3600
#define DAY DV_DAY_SECONDS

/* The day and time of each year when the clocks are changed. */
struct change {
    char kind; /* 'M': month, week, day; 'J': day 1 .. 365 without the leap day; 0: day 0 .. 365 */
    int month;
    int week;
    int day;
    int64_t seconds; /* of that day */
};

struct rule {
    int64_t standard; /* seconds east of UTC */
    int64_t summer;
    bool has_summer;
    struct change from;
    struct change to;
};

/* -- Rules ----------------------------------------------------------------------------------------
 */

static bool take_number(dv_str *s, int *value)
{
    size_t n = 0;
    int sum = 0;

    while (n < s->n && n < 4 && s->p[n] >= '0' && s->p[n] <= '9')
        sum = sum * 10 + (s->p[n++] - '0');
    *s = dv_str_slice(*s, n, s->n);
    *value = sum;
    return n > 0;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(dv_str *s, int64_t *seconds)
{
    int64_t unit = HOUR;
    int sign = 1;
    int value;

    if (dv_str_take(s, '-'))
        sign = -1;
    else
        (void)dv_str_take(s, '+');
    *seconds = 0;
    do {
        if (!take_number(s, &value))
            return false;
        *seconds += sign * value * unit;
        unit /= 60;
    } while (unit > 0 && dv_str_take(s, ':'));
    return true;
}

/* EST or <+03> */
static bool take_name(dv_str *s)
{
    size_t n = 0;

    if (s->n > 0 && s->p[0] == '<') {
        n = dv_str_find_char(*s, '>') + 1;
    } else {
        while (n < s->n && ((s->p[n] | 0x20) >= 'a' && (s->p[n] | 0x20) <= 'z'))
            n++;
    }
    *s = dv_str_slice(*s, n, s->n);
    return n > 0;
}

static bool take_change(dv_str *s, struct change *change)
{
    *change = (struct change){.seconds = 2 * HOUR};
    if (!dv_str_take(s, ','))
        return false;
    if (dv_str_take(s, 'M')) {
        change->kind = 'M';
        if (!take_number(s, &change->month) || !dv_str_take(s, '.') ||
            !take_number(s, &change->week) || !dv_str_take(s, '.'))
            return false;
    } else if (dv_str_take(s, 'J')) {
        change->kind = 'J';
    }
    if (!take_number(s, &change->day))
        return false;
    return !dv_str_take(s, '/') || take_time(s, &change->seconds);
}

/* Parses a POSIX rule, which counts west of Greenwich; we count east. */
static bool parse_rule(dv_str s, struct rule *rule)
{
    *rule = (struct rule){0};
    if (!take_name(&s) || !take_time(&s, &rule->standard))
        return false;
    rule->standard = -rule->standard;
    if (s.n == 0)
        return true;
    rule->has_summer = true;
    if (!take_name(&s))
        return false;
    rule->summer = rule->standard + HOUR;
    if (s.n > 0 && s.p[0] != ',') {
        if (!take_time(&s, &rule->summer))
            return false;
        rule->summer = -rule->summer;
    }
    return take_change(&s, &rule->from) && take_change(&s, &rule->to) && s.n == 0;
}

/* The day of a change, in days since 1970. */
static int64_t change_day(const struct change *change, int64_t year)
{
    int64_t first = dv_date_to_days(year, 1, 1);
    int64_t next;

    if (change->kind == 0)
        return first + change->day;
    if (change->kind == 'J') {
        bool is_leap = dv_date_to_days(year, 3, 1) - dv_date_to_days(year, 2, 1) == 29;

        return first + change->day - 1 + (is_leap && change->day > 59);
    }
    first = dv_date_to_days(year, change->month, 1);
    next = change->month == 12 ? dv_date_to_days(year + 1, 1, 1)
                               : dv_date_to_days(year, change->month + 1, 1);
    first += (change->day - dv_cel_date_of(first).day_of_week + 7) % 7 + 7 * (change->week - 1);
    while (first >= next)
        first -= 7;
    return first;
}

static int64_t offset_at(const struct rule *rule, int64_t seconds)
{
    int64_t local = seconds + rule->standard;
    int64_t year = dv_date_from_days(dv_days_of_seconds(local)).year;
    int64_t from = change_day(&rule->from, year) * DAY + rule->from.seconds - rule->standard;
    int64_t to = change_day(&rule->to, year) * DAY + rule->to.seconds - rule->summer;
    bool is_summer;

    if (!rule->has_summer)
        return rule->standard;
    /* South of the equator, summer time includes the new year. */
    is_summer = from < to ? seconds >= from && seconds < to : seconds >= from || seconds < to;
    return is_summer ? rule->summer : rule->standard;
}

/* -- Zones ----------------------------------------------------------------------------------- */

static bool find_rule(dv_str zone, struct rule *rule)
{
    dv_str last = DV_STR_NONE;
    dv_str word;

    for (size_t i = 0; i < dv_cel_n_zones; i++) {
        dv_str line = dv_str_from_c(dv_cel_zones[i]);

        while (dv_str_split(&line, ' ', &word)) {
            if (word.n > 0 && word.p[0] == '|')
                last = dv_str_slice(word, 1, word.n);
            else if (dv_str_eq(word, zone))
                return parse_rule(last, rule);
        }
    }
    return false;
}

/* "+05:30", "-08:00", "02:00" */
static bool parse_offset(dv_str zone, size_t colon, int64_t *offset)
{
    dv_str hours = dv_str_slice(zone, 0, colon);
    int64_t h;
    int64_t m;

    if (hours.n > 1 && hours.p[0] == '+')
        hours = dv_str_slice(hours, 1, hours.n);
    if (!dv_str_to_i64(hours, &h) || !dv_str_to_i64(dv_str_slice(zone, colon + 1, zone.n), &m) ||
        h < -1000 || h > 1000 || m < -1000 || m > 1000)
        return false;
    *offset = (h * 60 + (zone.p[0] == '-' ? -m : m)) * 60;
    return true;
}

bool dv_cel_zone_offset(dv_str zone, int64_t seconds, int64_t *offset)
{
    size_t colon = dv_str_find_char(zone, ':');
    struct rule rule;

    *offset = 0;
    /* The zone of the machine is not asked for: what an expression says must be the same on all. */
    if (zone.n == 0 || dv_str_eq(zone, DV_STR("UTC")) || dv_str_eq(zone, DV_STR("Local")))
        return true;
    if (colon < zone.n)
        return parse_offset(zone, colon, offset);
    if (!find_rule(zone, &rule))
        return false;
    *offset = offset_at(&rule, seconds);
    return true;
}
