#include "cel/value/cel_time.h"

#include <assert.h>
#include <string.h>

#include "base/calendar.h"
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

/* Takes the unit at the front of *text, up to the next digit or point. */
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

    if (dv_str_take(&text, '-'))
        is_negative = true;
    else
        (void)dv_str_take(&text, '+');
    if (dv_str_eq(text, DV_STR("0")))
        return dv_cel_duration(0);
    if (text.n == 0)
        return dv_cel_error(problem);
    while (text.n > 0) {
        size_t before = text.n;

        if (!take_span(&text, &ns))
            return dv_cel_error(problem);
        assert(text.n < before); /* otherwise the loop would never end */
    }
    if (ns > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return dv_cel_error(problem);
    return dv_cel_duration((int64_t)(is_negative ? 0 - ns : ns));
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
