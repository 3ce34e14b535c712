#include "base/metric.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"

/* Enough for every resource of a large node; few enough to be read by a person. */
#define SERIES_DEFAULT 100u
/* No metric has more labels than a person can tell apart. */
#define LABELS_MAX 8u
/* Peers may choose values: what is longer is cut, so that a page has an end. No name that we know
 * of is longer. */
#define VALUE_BYTES_MAX 256u
/* The length of all labels of a series: names are ours and short, and escaping makes at most two
 * bytes of one. */
#define LABELS_BYTES_MAX (LABELS_MAX * (2u * VALUE_BYTES_MAX + 128u))
/* "-1.7976931348623157e+308" and the end. */
#define NUMBER_BYTES 32u

const double dv_seconds_bounds[DV_SECONDS_BOUNDS] = {
    10e-6, 25e-6,  50e-6,  100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
    50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,    5,    10,     30,   60,
};

enum kind {
    COUNTER,
    GAUGE,
    HISTOGRAM,
};

struct dv_counter {
    uint64_t value;
};

struct dv_gauge {
    double value;
};

struct dv_histogram {
    const struct dv_family *family;
    double sum;
    uint64_t *counts; /* one for each bound, and one above them; not cumulative */
};

struct series {
    char *labels; /* as printed: name="value",name="value"; in the same piece */
    union {
        struct dv_counter counter;
        struct dv_gauge gauge;
        struct dv_histogram histogram;
    } u;
};

struct dv_family {
    struct dv_family_spec spec;
    enum kind kind;
    const double *bounds;
    size_t n_bounds;
    char (*bound_texts)[NUMBER_BYTES];
    DV_VEC(struct series *) series; /* sorted by labels */
    struct series *overflow;        /* made when it is needed; not in `series` */
};

struct collector {
    void (*collect)(void *ctx);
    void *ctx;
};

struct dv_metrics {
    DV_VEC(struct dv_family *) families; /* sorted by name */
    DV_VEC(struct collector) collectors;
};

/* ---- numbers as Prometheus reads them, whatever locale the program has chosen ---- */

static void put_point(char *text)
{
    const char *locales = localeconv()->decimal_point;
    char *at = strstr(text, locales);

    if (!at)
        return;
    memmove(at + 1, at + strlen(locales), strlen(at + strlen(locales)) + 1);
    *at = '.';
}

static void print_number(double value, char text[NUMBER_BYTES])
{
    const char *word = isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    int precision = 15;

    if (!isfinite(value)) {
        (void)snprintf(text, NUMBER_BYTES, "%s", word); /* fits */
        return;
    }
    do { /* the fewest digits that read back as the same number */
        (void)snprintf(text, NUMBER_BYTES, "%.*g", precision, value); /* fits: at most 24 */
    } while (strtod(text, NULL) != value && ++precision <= 17);
    put_point(text);
}

/* ---- series ---- */

/* The text with \ and newlines escaped, and quotes where it stands between them; in UTF-8, or the
 * whole page would be refused by who reads it. */
static void add_escaped(struct dv_buf *out, dv_str text, bool is_quoted)
{
    for (size_t at = 0; at < text.n;) {
        size_t n = dv_str_utf8_char(dv_str_slice(text, at, text.n));
        char c = text.p[at];

        if (n == 0 || c == '\0')
            dv_buf_add(out, DV_STR("\xef\xbf\xbd"));
        else if (c == '\n')
            dv_buf_add(out, DV_STR("\\n"));
        else if (c == '\\' || (c == '"' && is_quoted))
            dv_buf_printf(out, "\\%c", c);
        else
            dv_buf_add(out, dv_str_slice(text, at, at + n));
        at += n ? n : 1;
    }
}

void dv_metrics_add_value(struct dv_buf *out, dv_str value)
{
    dv_buf_add_char(out, '"');
    add_escaped(out, value, true);
    dv_buf_add_char(out, '"');
}

static dv_str cut(dv_str value)
{
    size_t n = dv_size_min(value.n, VALUE_BYTES_MAX);

    while (n < value.n && n > 0 && ((unsigned char)value.p[n] & 0xc0) == 0x80)
        n--; /* between characters */
    return dv_str_slice(value, 0, n);
}

static void print_labels(const struct dv_family *family, const dv_str *values, struct dv_buf *text)
{
    dv_buf_init(text, LABELS_BYTES_MAX);
    dv_buf_add(text, DV_STR("")); /* so that it is a string in any case */
    for (size_t i = 0; i < family->spec.n_labels; i++) {
        if (i > 0)
            dv_buf_add_char(text, ',');
        dv_buf_add_c(text, family->spec.labels[i]);
        dv_buf_add_char(text, '=');
        dv_metrics_add_value(text, cut(values[i]));
    }
    assert(!text->is_over);
}

/* Where the series is, or where it belongs. There are few, and who counts often keeps the handle.
 */
static bool find_series(const struct dv_family *family, const char *labels, size_t *place)
{
    int order = 1;

    for (*place = 0; *place < family->series.n; ++*place) {
        order = strcmp(family->series.v[*place]->labels, labels);
        if (order >= 0)
            break;
    }
    return order == 0;
}

static struct series *new_series(const struct dv_family *family, dv_str labels)
{
    size_t n_counts = family->kind == HISTOGRAM ? family->n_bounds + 1 : 0;
    size_t counts_bytes = n_counts * sizeof(uint64_t);
    struct series *series = dv_alloc(sizeof(*series) + counts_bytes + labels.n + 1);

    series->labels = (char *)(series + 1) + counts_bytes;
    memcpy(series->labels, labels.p, labels.n);
    if (family->kind == HISTOGRAM) {
        series->u.histogram.family = family;
        series->u.histogram.counts = (uint64_t *)(series + 1);
    }
    return series;
}

static struct series *overflow_of(struct dv_family *family)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text = {0};
    dv_str values[LABELS_MAX];
    char value[40];

    if (family->overflow)
        return family->overflow;
    (void)snprintf(value, sizeof(value), "over_limit_%zu", family->spec.series_max); /* fits */
    for (size_t i = 0; i < family->spec.n_labels; i++)
        values[i] = dv_str_from_c(value);
    print_labels(family, values, &text);
    return family->overflow = new_series(family, dv_buf_str(&text));
}

static struct series *get_series(struct dv_family *family, enum kind kind, const dv_str *values)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    size_t place;

    assert(family->kind == kind);
    print_labels(family, values, &text);
    if (find_series(family, dv_buf_c(&text), &place))
        return family->series.v[place];
    if (family->series.n >= family->spec.series_max)
        return overflow_of(family);
    (void)dv_vec_add(&family->series); /* then the others are moved up */
    memmove(&family->series.v[place + 1], &family->series.v[place],
            (family->series.n - 1 - place) * sizeof(family->series.v[0]));
    return family->series.v[place] = new_series(family, dv_buf_str(&text));
}

struct dv_counter *dv_family_counter(struct dv_family *family, const dv_str *values)
{
    return &get_series(family, COUNTER, values)->u.counter;
}

struct dv_gauge *dv_family_gauge(struct dv_family *family, const dv_str *values)
{
    return &get_series(family, GAUGE, values)->u.gauge;
}

struct dv_histogram *dv_family_histogram(struct dv_family *family, const dv_str *values)
{
    return &get_series(family, HISTOGRAM, values)->u.histogram;
}

static void forget_series(struct dv_family *family)
{
    for (size_t i = 0; i < family->series.n; i++)
        free(family->series.v[i]);
    dv_vec_clear(&family->series);
    free(family->overflow);
    family->overflow = NULL;
}

void dv_counter_add(struct dv_counter *counter, uint64_t n)
{
    counter->value += n;
}

void dv_gauge_set(struct dv_gauge *gauge, double value)
{
    gauge->value = value;
}

void dv_gauge_add(struct dv_gauge *gauge, double delta)
{
    gauge->value += delta;
}

void dv_histogram_observe(struct dv_histogram *histogram, double value)
{
    const struct dv_family *family = histogram->family;
    size_t bucket = 0;

    if (isnan(value))
        return; /* in no bucket, and it would spoil the sum for good */
    while (bucket < family->n_bounds && value > family->bounds[bucket])
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += value;
}

void dv_histogram_observe_ns(struct dv_histogram *histogram, uint64_t ns)
{
    dv_histogram_observe(histogram, (double)ns / 1e9);
}

/* ---- families ---- */

/* [a-zA-Z_][a-zA-Z0-9_]*: what both names and labels may be. Colons are for recording rules. */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return name[0] != '\0' && strspn(name, letters) == strlen(name) &&
           !(name[0] >= '0' && name[0] <= '9');
}

static struct dv_family *add_family(struct dv_metrics *metrics, const struct dv_family_spec *spec,
                                    enum kind kind)
{
    struct dv_family *family = DV_ALLOC(struct dv_family);
    size_t place = 0;

    assert(is_name(spec->name) && spec->n_labels <= LABELS_MAX);
    for (size_t i = 0; i < spec->n_labels; i++)
        assert(is_name(spec->labels[i]) && strcmp(spec->labels[i], "le") != 0);
    family->spec = *spec;
    family->kind = kind;
    if (family->spec.series_max == 0)
        family->spec.series_max = SERIES_DEFAULT;
    (void)dv_vec_add(&metrics->families); /* then moved up to its place */
    for (size_t i = metrics->families.n - 1; i > 0 && place == 0; i--) {
        int order = strcmp(metrics->families.v[i - 1]->spec.name, spec->name);

        assert(order != 0 && "a name is used twice");
        if (order > 0)
            metrics->families.v[i] = metrics->families.v[i - 1];
        else
            place = i;
    }
    metrics->families.v[place] = family;
    return family;
}

struct dv_family *dv_metrics_add_counter(struct dv_metrics *metrics,
                                         const struct dv_family_spec *spec)
{
    return add_family(metrics, spec, COUNTER);
}

struct dv_family *dv_metrics_add_gauge(struct dv_metrics *metrics,
                                       const struct dv_family_spec *spec)
{
    return add_family(metrics, spec, GAUGE);
}

struct dv_family *dv_metrics_add_histogram(struct dv_metrics *metrics,
                                           const struct dv_family_spec *spec, const double *bounds,
                                           size_t n_bounds)
{
    struct dv_family *family = add_family(metrics, spec, HISTOGRAM);

    family->bounds = bounds;
    family->n_bounds = n_bounds;
    family->bound_texts = dv_alloc(n_bounds * sizeof(family->bound_texts[0]));
    for (size_t i = 0; i < n_bounds; i++) {
        assert(isfinite(bounds[i]) && (i == 0 || bounds[i - 1] < bounds[i]));
        print_number(bounds[i], family->bound_texts[i]);
    }
    return family;
}

/* ---- print ---- */

void dv_metrics_add_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    *dv_vec_add(&metrics->collectors) = (struct collector){collect, ctx};
}

void dv_metrics_remove_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    size_t i = 0;

    while (i < metrics->collectors.n &&
           (metrics->collectors.v[i].collect != collect || metrics->collectors.v[i].ctx != ctx))
        i++;
    if (i < metrics->collectors.n)
        dv_vec_remove(&metrics->collectors, i);
}

/* `name_suffix{label="value"} `: all of a line but the number. */
static void add_sample(struct dv_buf *out, const struct dv_family *family,
                       const struct series *series, const char *suffix)
{
    bool has_labels = family->spec.n_labels > 0;

    dv_buf_printf(out, "%s%s%s%s%s ", family->spec.name, suffix, has_labels ? "{" : "",
                  series->labels, has_labels ? "}" : "");
}

static void print_counter(struct dv_buf *out, const struct dv_family *family,
                          const struct series *series)
{
    add_sample(out, family, series, "");
    dv_buf_printf(out, "%" PRIu64 "\n", series->u.counter.value);
}

static void print_gauge(struct dv_buf *out, const struct dv_family *family,
                        const struct series *series)
{
    char text[NUMBER_BYTES];

    print_number(series->u.gauge.value, text);
    add_sample(out, family, series, "");
    dv_buf_printf(out, "%s\n", text);
}

static void print_histogram(struct dv_buf *out, const struct dv_family *family,
                            const struct series *series)
{
    const struct dv_histogram *histogram = &series->u.histogram;
    uint64_t count = 0;
    char text[NUMBER_BYTES];

    for (size_t i = 0; i <= family->n_bounds; i++) {
        count += histogram->counts[i];
        dv_buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", family->spec.name,
                      series->labels, family->spec.n_labels > 0 ? "," : "",
                      i < family->n_bounds ? family->bound_texts[i] : "+Inf", count);
    }
    print_number(histogram->sum, text);
    add_sample(out, family, series, "_sum");
    dv_buf_printf(out, "%s\n", text);
    add_sample(out, family, series, "_count");
    dv_buf_printf(out, "%" PRIu64 "\n", count);
}

static const struct {
    const char *name;
    void (*print)(struct dv_buf *out, const struct dv_family *family, const struct series *series);
} kinds[] = {
    [COUNTER] = {"counter",   print_counter  },
    [GAUGE] = {"gauge",     print_gauge    },
    [HISTOGRAM] = {"histogram", print_histogram},
};

static void print_family(struct dv_buf *out, const struct dv_family *family)
{
    dv_buf_printf(out, "# HELP %s ", family->spec.name);
    add_escaped(out, dv_str_from_c(family->spec.help), false);
    dv_buf_printf(out, "\n# TYPE %s %s\n", family->spec.name, kinds[family->kind].name);
    for (size_t i = 0; i < family->series.n; i++)
        kinds[family->kind].print(out, family, family->series.v[i]);
    if (family->overflow)
        kinds[family->kind].print(out, family, family->overflow);
}

static void run_collectors(struct dv_metrics *metrics)
{
    for (size_t i = 0; i < metrics->families.n; i++)
        if (metrics->families.v[i]->spec.is_collected)
            forget_series(metrics->families.v[i]);
    for (size_t i = 0; i < metrics->collectors.n; i++)
        metrics->collectors.v[i].collect(metrics->collectors.v[i].ctx);
}

bool dv_metrics_print(struct dv_metrics *metrics, struct dv_buf *out, struct dv_err *err)
{
    size_t n_left_out = 0;

    assert(!out->is_over);
    run_collectors(metrics);
    for (size_t i = 0; i < metrics->families.n; i++) {
        const struct dv_family *family = metrics->families.v[i];
        size_t n_before = out->n;

        if (family->series.n == 0 && !family->overflow)
            continue;
        print_family(out, family);
        if (!out->is_over)
            continue;
        n_left_out++; /* what was begun goes again; a smaller one may still fit */
        out->n = n_before;
        out->is_over = false;
        if (out->p)
            out->p[n_before] = '\0';
    }
    if (n_left_out > 0)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "metrics: %zu of %zu families left out: more than %zu bytes", n_left_out,
                       metrics->families.n, out->max);
    return true;
}

/* ---- the registry ---- */

struct dv_metrics *dv_metrics_new(void)
{
    return DV_ALLOC(struct dv_metrics);
}

void dv_metrics_free(struct dv_metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->families.n; i++) {
        struct dv_family *family = metrics->families.v[i];

        forget_series(family);
        dv_vec_fini(&family->series);
        free(family->bound_texts);
        free(family);
    }
    dv_vec_fini(&metrics->families);
    dv_vec_fini(&metrics->collectors);
    free(metrics);
}
