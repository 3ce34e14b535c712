/* api_time.c - times as the API writes them: RFC 3339, read as Go's time package reads it. */
#include "resource/resource.h"

#include "base/buf.h"
#include "base/err.h"

#define DAY_S 86400
#define NANO_DIGITS 9u
/* Go's zero time, 0001-01-01T00:00:00Z, is no time at all. */
#define ZERO_SECONDS (-62135596800)
/* 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z. */
#define FIRST_SECONDS (-62167219200)
#define LAST_SECONDS 253402300799

struct reader {
    const char *at;
    const char *end;
};

/* Of the Gregorian calendar, counted from 1970; months from 1. Years begin in March here, so that
 * the leap day is the last of them. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = (shifted >= 0 ? shifted : shifted - 399) / 400;
    int64_t of_era = shifted - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = of_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = y + era * 400 + (*month <= 2);
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

static bool skip(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

/* `min` to `max` digits, for a number that is no larger than `limit`. */
static bool number(struct reader *r, unsigned min, unsigned max, int64_t limit, int64_t *value)
{
    unsigned n = 0;

    for (*value = 0; n < max && is_digit(r); n++)
        *value = *value * 10 + (*r->at++ - '0');
    return n >= min && *value <= limit;
}

static bool fraction(struct reader *r, int32_t *nanos)
{
    unsigned n = 0;

    *nanos = 0;
    if (!skip(r, '.') && !skip(r, ','))
        return true;
    for (; is_digit(r); n++, r->at++)
        if (n < NANO_DIGITS)
            *nanos = *nanos * 10 + (*r->at - '0');
    for (unsigned i = n; i < NANO_DIGITS; i++)
        *nanos *= 10;
    return n > 0;
}

static bool offset(struct reader *r, int64_t *seconds)
{
    bool is_negative = r->at < r->end && *r->at == '-';
    int64_t hours;
    int64_t minutes;

    *seconds = 0;
    if (skip(r, 'Z'))
        return true;
    if (!skip(r, '+') && !skip(r, '-'))
        return false;
    if (!number(r, 2, 2, 24, &hours) || !skip(r, ':') || !number(r, 2, 2, 60, &minutes))
        return false;
    *seconds = (hours * 60 + minutes) * (is_negative ? -60 : 60);
    return true;
}

static bool read_time(struct reader *r, struct dv_time *time)
{
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t ahead;
    int32_t nanos;

    if (!number(r, 4, 4, 9999, &year) || !skip(r, '-') || !number(r, 2, 2, 12, &month) ||
        !skip(r, '-') || !number(r, 2, 2, 31, &day) || !skip(r, 'T'))
        return false;
    if (month < 1 || day < 1 || day > days_in_month(year, month))
        return false;
    /* One digit will do for the hour: so Go reads it. */
    if (!number(r, 1, 2, 23, &hour) || !skip(r, ':') || !number(r, 2, 2, 59, &minute) ||
        !skip(r, ':') || !number(r, 2, 2, 59, &second) || !fraction(r, &nanos) ||
        !offset(r, &ahead) || r->at != r->end)
        return false;
    time->seconds =
        days_from_date(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second - ahead;
    time->nanos = nanos;
    time->is_set = time->seconds != ZERO_SECONDS || nanos != 0;
    return true;
}

bool dv_api_time_parse(dv_str text, struct dv_time *time, struct dv_err *err)
{
    struct reader r = {text.p, text.p + text.n};
    struct dv_time read = {0};

    if (text.n == 0 || !read_time(&r, &read))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is no time like 2006-01-02T15:04:05Z",
                       DV_FMT(text));
    if (!dv_api_time_is_in_range(read)) /* an offset can leave the years that have four digits */
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not in the years 0 to 9999",
                       DV_FMT(text));
    *time = read;
    return true;
}

struct dv_time dv_api_time_round(struct dv_time time, bool with_micros)
{
    time.nanos = with_micros ? time.nanos / 1000 * 1000 : 0;
    time.is_set = time.is_set && (time.seconds != ZERO_SECONDS || time.nanos != 0);
    return time;
}

static char *put_digits(char *at, int64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + n;
}

bool dv_api_time_is_in_range(struct dv_time time)
{
    return time.seconds >= FIRST_SECONDS && time.seconds <= LAST_SECONDS;
}

struct dv_time dv_api_time_add(struct dv_time time, int64_t seconds)
{
    int64_t sum;

    if (__builtin_add_overflow(time.seconds, seconds, &sum))
        sum = seconds > 0 ? LAST_SECONDS : FIRST_SECONDS;
    if (sum > LAST_SECONDS)
        sum = LAST_SECONDS;
    time.seconds = sum < FIRST_SECONDS ? FIRST_SECONDS : sum;
    return time;
}

void dv_api_time_print(struct dv_time time, bool with_micros, struct dv_buf *buf)
{
    char text[sizeof("2006-01-02T15:04:05.000000Z")];
    char *at = text;
    int64_t of_day = ((time.seconds % DAY_S) + DAY_S) % DAY_S;
    int64_t year;
    int64_t month;
    int64_t day;

    date_from_days((time.seconds - of_day) / DAY_S, &year, &month, &day);
    at = put_digits(at, year, 4);
    *at++ = '-';
    at = put_digits(at, month, 2);
    *at++ = '-';
    at = put_digits(at, day, 2);
    *at++ = 'T';
    at = put_digits(at, of_day / 3600, 2);
    *at++ = ':';
    at = put_digits(at, of_day / 60 % 60, 2);
    *at++ = ':';
    at = put_digits(at, of_day % 60, 2);
    if (with_micros) {
        *at++ = '.';
        at = put_digits(at, time.nanos / 1000, 6);
    }
    *at++ = 'Z';
    dv_buf_add(buf, (dv_str){text, (size_t)(at - text)});
}
