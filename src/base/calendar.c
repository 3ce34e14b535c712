#include "base/calendar.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "base/err.h"

#define NANO_DIGITS 9
/* The calendar repeats after 400 years. */
#define ERA_YEARS 400
#define ERA_DAYS 146097
/* The days from 0000-03-01 to 1970-01-01. */
#define EPOCH_DAYS 719468

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Howard Hinnant's algorithms: years begin in March, so that the leap day is the last of a year,
 * and the days before a month follow one line, (153 m + 2) / 5. */
int64_t dv_date_to_days(int64_t year, int month, int day)
{
    int64_t shifted = year - (month <= 2);
    int64_t era = floor_div(shifted, ERA_YEARS);
    int64_t year_of_era = shifted - era * ERA_YEARS;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           EPOCH_DAYS;
}

struct dv_date dv_date_from_days(int64_t days)
{
    int64_t shifted = days + EPOCH_DAYS;
    int64_t era = floor_div(shifted, ERA_DAYS);
    int64_t day_of_era = shifted - era * ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct dv_date date;

    date.day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
    date.month = (int)(month < 10 ? month + 3 : month - 9);
    date.year = year_of_era + era * ERA_YEARS + (date.month <= 2);
    return date;
}

int dv_date_days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return month == 2 && is_leap ? 29 : days[month - 1];
}

int64_t dv_days_of_seconds(int64_t seconds)
{
    return floor_div(seconds, DV_DAY_SECONDS);
}

/* ---- reading ---- */

static bool is_digit_next(dv_str rest)
{
    return rest.n > 0 && dv_is_digit(rest.p[0]);
}

/* Takes `n_min` to `n_max` digits off the front, for a number that is no larger than `limit`. */
static bool take_number(dv_str *rest, int n_min, int n_max, int limit, int *value)
{
    int n = 0;

    for (*value = 0; n < n_max && is_digit_next(*rest); n++) {
        *value = *value * 10 + (rest->p[0] - '0');
        *rest = dv_str_slice(*rest, 1, rest->n);
    }
    return n >= n_min && *value <= limit;
}

static bool take_date(dv_str *rest, int64_t *days)
{
    int year;
    int month;
    int day;

    if (!take_number(rest, 4, 4, 9999, &year) || !dv_str_take(rest, '-') ||
        !take_number(rest, 2, 2, 12, &month) || !dv_str_take(rest, '-') ||
        !take_number(rest, 2, 2, 31, &day))
        return false;
    if (month < 1 || day < 1 || day > dv_date_days_in_month(year, month))
        return false;
    *days = dv_date_to_days(year, month, day);
    return true;
}

static bool take_clock(dv_str *rest, int hour_digits_min, int *seconds)
{
    int hour;
    int minute;
    int second;

    if (!take_number(rest, hour_digits_min, 2, 23, &hour) || !dv_str_take(rest, ':') ||
        !take_number(rest, 2, 2, 59, &minute) || !dv_str_take(rest, ':') ||
        !take_number(rest, 2, 2, 59, &second))
        return false;
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

static bool take_fraction(dv_str *rest, bool may_be_comma, int32_t *nanos)
{
    int32_t unit = 100000000;

    *nanos = 0;
    if (!dv_str_take(rest, '.') && !(may_be_comma && dv_str_take(rest, ',')))
        return true;
    if (!is_digit_next(*rest))
        return false;
    for (; is_digit_next(*rest); unit /= 10) {
        *nanos += (rest->p[0] - '0') * unit;
        *rest = dv_str_slice(*rest, 1, rest->n);
    }
    return true;
}

static bool take_offset(dv_str *rest, int hours_max, int minutes_max, int32_t *minutes)
{
    int sign = rest->n > 0 && rest->p[0] == '-' ? -1 : 1;
    int hour;
    int minute;

    *minutes = 0;
    if (dv_str_take(rest, 'Z'))
        return true;
    if (!dv_str_take(rest, '+') && !dv_str_take(rest, '-'))
        return false;
    if (!take_number(rest, 2, 2, hours_max, &hour) || !dv_str_take(rest, ':') ||
        !take_number(rest, 2, 2, minutes_max, &minute))
        return false;
    *minutes = sign * (hour * 60 + minute);
    return true;
}

bool dv_rfc3339_parse(dv_str text, enum dv_rfc3339_reader reader, struct dv_rfc3339 *time)
{
    bool is_lax = reader == DV_RFC3339_LAX;
    struct dv_rfc3339 read = {0};
    int64_t days;
    int seconds;

    if (!take_date(&text, &days) || !dv_str_take(&text, 'T') ||
        !take_clock(&text, is_lax ? 1 : 2, &seconds) ||
        !take_fraction(&text, is_lax, &read.nanos) ||
        !take_offset(&text, is_lax ? 24 : 23, is_lax ? 60 : 59, &read.offset_minutes) || text.n > 0)
        return false;
    read.seconds = days * DV_DAY_SECONDS + seconds - INT64_C(60) * read.offset_minutes;
    *time = read;
    return true;
}

/* ---- printing ---- */

/* Prints digits by hand: an object in a list of thousands has several times, and printf takes ten
 * times as long. */
static char *put_digits(char *at, int64_t value, int n)
{
    for (int i = n - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    return at + n;
}

static char *put_then(char *at, int64_t value, int n, char after)
{
    at = put_digits(at, value, n);
    *at = after;
    return at + 1;
}

size_t dv_rfc3339_print(struct dv_rfc3339 time, int n_digits, char text[DV_RFC3339_BYTES])
{
    int64_t local;
    int64_t fraction = time.nanos;
    struct dv_date date;
    int64_t of_day;
    char *at = text;

    if (__builtin_add_overflow(time.seconds, INT64_C(60) * time.offset_minutes, &local))
        local = time.seconds; /* far beyond the limit either way */
    local = local < DV_RFC3339_SECONDS_MIN ? DV_RFC3339_SECONDS_MIN : local;
    local = local > DV_RFC3339_SECONDS_MAX ? DV_RFC3339_SECONDS_MAX : local;
    date = dv_date_from_days(dv_days_of_seconds(local));
    of_day = local - dv_days_of_seconds(local) * DV_DAY_SECONDS;
    at = put_then(at, date.year, 4, '-');
    at = put_then(at, date.month, 2, '-');
    at = put_then(at, date.day, 2, 'T');
    at = put_then(at, of_day / 3600, 2, ':');
    at = put_then(at, of_day / 60 % 60, 2, ':');
    at = put_digits(at, of_day % 60, 2);
    for (int i = NANO_DIGITS; n_digits >= 0 && i > n_digits; i--)
        fraction /= 10;
    if (n_digits == DV_RFC3339_TRIMMED && fraction > 0)
        for (n_digits = NANO_DIGITS; fraction % 10 == 0; fraction /= 10)
            n_digits--;
    if (n_digits > 0) {
        *at++ = '.';
        at = put_digits(at, fraction, n_digits);
    }
    if (time.offset_minutes == 0) {
        *at++ = 'Z';
    } else {
        *at++ = time.offset_minutes < 0 ? '-' : '+';
        at = put_then(at, abs(time.offset_minutes) / 60, 2, ':');
        at = put_digits(at, abs(time.offset_minutes) % 60, 2);
    }
    *at = '\0';
    return (size_t)(at - text);
}

/* ---- durations ---- */

#define NS_PER_SECOND 1000000000

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

struct amount {
    uint64_t whole;
    uint64_t fraction;
    double scale; /* of the fraction: 100 for two digits */
};

/* Takes the number at the front of *text: "1.5", "1.", ".5". False: there is none, or it is too
 * large. Digits of the fraction that do not fit are beyond any unit. */
static bool take_amount(dv_str *text, struct amount *number)
{
    size_t n_digits = 0;
    bool is_point = false;

    *number = (struct amount){.scale = 1};
    for (; text->n > 0; *text = dv_str_slice(*text, 1, text->n)) {
        char c = text->p[0];

        if (c == '.' && !is_point) {
            is_point = true;
            continue;
        }
        if (!dv_is_digit(c))
            break;
        n_digits++;
        if (!is_point) {
            if (number->whole > (1ULL << 63) / 10)
                return false;
            number->whole = number->whole * 10 + (uint64_t)(c - '0');
        } else if (number->fraction < (1ULL << 63) / 10 - 1) {
            number->fraction = number->fraction * 10 + (uint64_t)(c - '0');
            number->scale *= 10;
        }
    }
    return n_digits > 0;
}

/* Takes what stands before the next number. */
static dv_str take_unit(dv_str *text)
{
    size_t n = 0;
    dv_str unit;

    while (n < text->n && text->p[n] != '.' && !dv_is_digit(text->p[n]))
        n++;
    unit = dv_str_slice(*text, 0, n);
    *text = dv_str_slice(*text, n, text->n);
    return unit;
}

static int64_t find_unit(dv_str name)
{
    for (size_t i = 0; i < DV_COUNT(units); i++)
        if (dv_str_eq(name, units[i].name))
            return units[i].ns;
    return 0;
}

/* Adds the number of units to *ns. False: it is too long. */
static bool add_amount(const struct amount *number, int64_t unit, uint64_t *ns)
{
    uint64_t more;

    if (__builtin_mul_overflow(number->whole, (uint64_t)unit, &more))
        return false;
    if (number->fraction > 0)
        more += (uint64_t)((double)number->fraction * ((double)unit / number->scale));
    return !__builtin_add_overflow(*ns, more, ns) && *ns <= 1ULL << 63;
}

bool dv_duration_parse(dv_str text, int64_t *ns, struct dv_err *err)
{
    dv_str rest = text;
    bool is_negative = dv_str_take(&rest, '-');
    uint64_t sum = 0;

    if (!is_negative)
        (void)dv_str_take(&rest, '+');
    if (dv_str_eq(rest, DV_STR("0"))) {
        *ns = 0;
        return true;
    }
    if (rest.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "time: invalid duration \"%.*s\"", DV_FMT(text));
    while (rest.n > 0) { /* each round takes a digit at least */
        struct amount number;
        dv_str unit;

        if (!take_amount(&rest, &number))
            return dv_fail(err, DV_INVALID_ARGUMENT, "time: invalid duration \"%.*s\"",
                           DV_FMT(text));
        unit = take_unit(&rest);
        if (unit.n == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "time: missing unit in duration \"%.*s\"",
                           DV_FMT(text));
        if (find_unit(unit) == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "time: unknown unit \"%.*s\" in duration \"%.*s\"", DV_FMT(unit),
                           DV_FMT(text));
        if (!add_amount(&number, find_unit(unit), &sum))
            return dv_fail(err, DV_INVALID_ARGUMENT, "time: invalid duration \"%.*s\"",
                           DV_FMT(text));
    }
    if (sum > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return dv_fail(err, DV_INVALID_ARGUMENT, "time: invalid duration \"%.*s\"", DV_FMT(text));
    *ns = (int64_t)(is_negative ? 0 - sum : sum);
    return true;
}
