#include "cel/value/cel_time.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cel/value/cel_value.h"

#define NS_PER_SECOND 1000000000

/* -- The calendar ---------------------------------------------------------------------------- */

/* Howard Hinnant's algorithms for the proleptic Gregorian calendar: years begin in March, so that
 * the leap day is the last. */
int64_t dv_cel_days_of(int64_t year, int month, int day)
{
    int64_t era;
    int64_t year_of_era;
    int64_t day_of_year;

    year -= month <= 2;
    era = (year >= 0 ? year : year - 399) / 400;
    year_of_era = year - era * 400;
    day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

struct dv_cel_date dv_cel_date_of(int64_t days)
{
    struct dv_cel_date date;
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    date.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = (int)(month < 10 ? month + 3 : month - 9);
    date.year = year_of_era + era * 400 + (date.month <= 2);
    date.day_of_year = (int)(days - dv_cel_days_of(date.year, 1, 1));
    date.day_of_week = (int)(((days % 7) + 11) % 7);
    return date;
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

    if (nanos < 0) {
        nanos += NS_PER_SECOND;
        seconds--;
    } else if (nanos >= NS_PER_SECOND) {
        nanos -= NS_PER_SECOND;
        seconds++;
    }
    if (seconds < DV_CEL_SECONDS_MIN || seconds > DV_CEL_SECONDS_MAX)
        return dv_cel_error(DV_STR("timestamp overflow"));
    return dv_cel_timestamp(seconds, (int32_t)nanos);
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

/* Takes `n` digits off the front. */
static bool take_digits(dv_str *text, size_t n, int *value)
{
    int sum = 0;

    if (text->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text->p[i];

        if (c < '0' || c > '9')
            return false;
        sum = sum * 10 + (c - '0');
    }
    *text = dv_str_slice(*text, n, text->n);
    *value = sum;
    return true;
}

static bool take_char(dv_str *text, char c)
{
    if (text->n == 0 || text->p[0] != c)
        return false;
    *text = dv_str_slice(*text, 1, text->n);
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool take_date(dv_str *text, int64_t *seconds)
{
    int year;
    int month;
    int day;

    if (!take_digits(text, 4, &year) || !take_char(text, '-') || !take_digits(text, 2, &month) ||
        !take_char(text, '-') || !take_digits(text, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *seconds = dv_cel_days_of(year, month, day) * 86400;
    return true;
}

/* hh:mm:ss and a fraction, of which nine digits count. */
static bool take_clock(dv_str *text, int64_t *seconds, int32_t *nanos)
{
    int hour;
    int minute;
    int second;
    int32_t unit = NS_PER_SECOND / 10;

    if (!take_digits(text, 2, &hour) || !take_char(text, ':') || !take_digits(text, 2, &minute) ||
        !take_char(text, ':') || !take_digits(text, 2, &second) || hour > 23 || minute > 59 ||
        second > 59)
        return false;
    *seconds += hour * 3600 + minute * 60 + second;
    *nanos = 0;
    if (!take_char(text, '.') && !take_char(text, ','))
        return true;
    if (text->n == 0 || text->p[0] < '0' || text->p[0] > '9')
        return false;
    while (text->n > 0 && text->p[0] >= '0' && text->p[0] <= '9') {
        *nanos += (text->p[0] - '0') * unit;
        unit /= 10;
        *text = dv_str_slice(*text, 1, text->n);
    }
    return true;
}

static bool take_offset(dv_str *text, int64_t *seconds)
{
    int sign;
    int hours;
    int minutes;

    if (take_char(text, 'Z'))
        return true;
    if (take_char(text, '-'))
        sign = -1;
    else if (take_char(text, '+'))
        sign = 1;
    else
        return false;
    if (!take_digits(text, 2, &hours) || !take_char(text, ':') || !take_digits(text, 2, &minutes) ||
        hours > 24 || minutes > 60)
        return false;
    *seconds -= sign * (hours * 3600 + minutes * 60);
    return true;
}

struct dv_cel_val dv_cel_time_parse(dv_str text)
{
    int64_t seconds;
    int32_t nanos;

    if (!take_date(&text, &seconds) || !take_char(&text, 'T') ||
        !take_clock(&text, &seconds, &nanos) || !take_offset(&text, &seconds) || text.n > 0)
        return dv_cel_error(DV_STR("invalid timestamp"));
    if (seconds < DV_CEL_SECONDS_MIN || seconds > DV_CEL_SECONDS_MAX)
        return dv_cel_error(DV_STR("timestamp overflow"));
    return dv_cel_timestamp(seconds, nanos);
}

static const struct {
    dv_str name;
    int64_t ns;
} units[] = {
    {DV_STR_INIT("ns"),        1                     },
    {DV_STR_INIT("us"),        1000                  },
    {DV_STR_INIT("\xc2\xb5s"), 1000                  }, /* the micro sign */
    {DV_STR_INIT("\xce\xbcs"), 1000                  }, /* the Greek letter */
    {DV_STR_INIT("ms"),        1000000               },
    {DV_STR_INIT("s"),         NS_PER_SECOND         },
    {DV_STR_INIT("m"),         60LL * NS_PER_SECOND  },
    {DV_STR_INIT("h"),         3600LL * NS_PER_SECOND},
};

/* The unit at the front of *text, up to the next digit or point. */
static int64_t take_unit(dv_str *text)
{
    size_t n = 0;

    while (n < text->n && text->p[n] != '.' && (text->p[n] < '0' || text->p[n] > '9'))
        n++;
    for (size_t i = 0; i < DV_COUNT(units); i++) {
        if (dv_str_eq(dv_str_slice(*text, 0, n), units[i].name)) {
            *text = dv_str_slice(*text, n, text->n);
            return units[i].ns;
        }
    }
    return 0;
}

/* "1.5h": a number and its unit, added to *ns. False: not that, or too large. */
static bool take_span(dv_str *text, uint64_t *ns)
{
    uint64_t whole = 0;
    uint64_t fraction = 0;
    double scale = 1;
    size_t n_digits = 0;
    bool is_point = false;
    int64_t unit;

    for (; text->n > 0; *text = dv_str_slice(*text, 1, text->n)) {
        char c = text->p[0];

        if (c == '.' && !is_point) {
            is_point = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        n_digits++;
        if (!is_point) {
            if (whole > (1ULL << 63) / 10)
                return false;
            whole = whole * 10 + (uint64_t)(c - '0');
        } else if (fraction < (1ULL << 63) / 10 - 1) {
            fraction = fraction * 10 + (uint64_t)(c - '0');
            scale *= 10;
        }
    }
    unit = take_unit(text);
    if (n_digits == 0 || unit == 0 || __builtin_mul_overflow(whole, (uint64_t)unit, &whole))
        return false;
    if (fraction > 0)
        whole += (uint64_t)((double)fraction * ((double)unit / scale));
    return !__builtin_add_overflow(*ns, whole, ns) && *ns <= 1ULL << 63;
}

struct dv_cel_val dv_cel_duration_parse(dv_str text)
{
    static const dv_str problem = DV_STR_INIT("invalid duration");
    bool is_negative = false;
    uint64_t ns = 0;

    if (take_char(&text, '-'))
        is_negative = true;
    else
        (void)take_char(&text, '+');
    if (dv_str_eq(text, DV_STR("0")))
        return dv_cel_duration(0);
    if (text.n == 0)
        return dv_cel_error(problem);
    while (text.n > 0) {
        size_t before = text.n;

        if (!take_span(&text, &ns))
            return dv_cel_error(problem);
        assert(text.n < before); /* or it would never end */
    }
    if (ns > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return dv_cel_error(problem);
    return dv_cel_duration((int64_t)(is_negative ? 0 - ns : ns));
}

void dv_cel_time_print(const struct dv_cel_val *time, char text[DV_CEL_NUMBER_BYTES])
{
    int64_t days = time->i / 86400 - (time->i % 86400 < 0);
    int64_t rest = time->i - days * 86400;
    struct dv_cel_date date = dv_cel_date_of(days);
    int n =
        snprintf(text, DV_CEL_NUMBER_BYTES, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)date.year,
                 date.month, date.day, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));

    if (time->nanos > 0) {
        n += snprintf(text + n, DV_CEL_NUMBER_BYTES - (size_t)n, ".%09d", time->nanos);
        while (text[n - 1] == '0')
            n--;
    }
    text[n++] = 'Z';
    text[n] = '\0';
}

void dv_cel_duration_print(int64_t ns, char text[DV_CEL_NUMBER_BYTES])
{
    /* As the reference: whole seconds and the fraction apart, so that the sum is the nearest. */
    int64_t whole = ns / NS_PER_SECOND;
    double seconds = (double)whole + (double)(ns - whole * NS_PER_SECOND) / NS_PER_SECOND;

    dv_cel_print_fixed(seconds, text);
    memcpy(text + strlen(text), "s", 2);
}
