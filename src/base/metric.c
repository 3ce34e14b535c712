#include "base/metric.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

/* Enough for every resource of a large node; few enough to be read by a person. */
#define SERIES_DEFAULT 100u
/* No metric has more labels than a person can tell apart. */
#define LABELS_MAX 8u
/* "-1.7976931348623157e+308" and the end. */
#define NUMBER_BYTES 32u

const double dv_seconds_bounds[DV_SECONDS_BOUNDS] = {
    10e-6,  25e-6, 50e-6,  100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
    50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,  5,      10,   30,    60,
};

enum kind {
    COUNTER,
    GAUGE,
    HISTOGRAM,
};

static const char *const kind_names[] = {
    [COUNTER] = "counter",
    [GAUGE] = "gauge",
    [HISTOGRAM] = "histogram",
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
    dv_str *values; /* as many as the family has labels; the texts follow in the same piece */
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
    DV_VEC(struct series *) series; /* sorted by values */
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

static void print_number(double value, char text[NUMBER_BYTES])
{
    if (isnan(value) || isinf(value)) {
        (void)snprintf(text, NUMBER_BYTES, "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    /* The fewest digits that read back as the same number. */
    for (int precision = 15; precision <= 17; precision++) {
        (void)snprintf(text, NUMBER_BYTES, "%.*g", precision, value); /* fits: at most 24 */
        if (strtod(text, NULL) == value)
            return;
    }
}

static locale_t enter_c_locale(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", NULL);

    assert(c != NULL); /* glibc has it built in */
    return uselocale(c);
}

static void leave_c_locale(locale_t before)
{
    freelocale(uselocale(before));
}

/* ---- series ---- */

static int compare_values(const struct dv_family *family, const dv_str *a, const dv_str *b)
{
    int order = 0;

    for (size_t i = 0; i < family->spec.n_labels && order == 0; i++)
        order = dv_str_cmp(a[i], b[i]);
    return order;
}

/* Where the series is, or where it belongs. */
static bool find_series(const struct dv_family *family, const dv_str *values, size_t *place)
{
    size_t from = 0;
    size_t to = family->series.n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare_values(family, family->series.v[middle]->values, values);

        if (order == 0) {
            *place = middle;
            return true;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *place = from;
    return false;
}

static struct series *new_series(const struct dv_family *family, const dv_str *values)
{
    size_t n_labels = family->spec.n_labels;
    size_t n_counts = family->kind == HISTOGRAM ? family->n_bounds + 1 : 0;
    size_t fixed_bytes =
        sizeof(struct series) + n_counts * sizeof(uint64_t) + n_labels * sizeof(dv_str);
    size_t text_bytes = 0;
    struct series *series;
    char *text;

    for (size_t i = 0; i < n_labels; i++)
        text_bytes += values[i].n;
    series = dv_alloc(fixed_bytes + text_bytes);
    series->values = (dv_str *)(void *)((uint64_t *)(series + 1) + n_counts);
    text = (char *)series + fixed_bytes;
    for (size_t i = 0; i < n_labels; i++) {
        if (values[i].n > 0)
            memcpy(text, values[i].p, values[i].n);
        series->values[i] = (dv_str){text, values[i].n};
        text += values[i].n;
    }
    if (family->kind == HISTOGRAM) {
        series->u.histogram.family = family;
        series->u.histogram.counts = (uint64_t *)(series + 1);
    }
    return series;
}

static struct series *overflow_of(struct dv_family *family)
{
    char text[40];
    dv_str values[LABELS_MAX];

    if (!family->overflow) {
        (void)snprintf(text, sizeof(text), "over_limit_%zu", family->spec.series_max); /* fits */
        for (size_t i = 0; i < family->spec.n_labels; i++)
            values[i] = dv_str_from_c(text);
        family->overflow = new_series(family, values);
    }
    return family->overflow;
}

static struct series *get_series(struct dv_family *family, enum kind kind, const dv_str *values)
{
    size_t place;

    assert(family->kind == kind);
    if (find_series(family, values, &place))
        return family->series.v[place];
    if (family->series.n >= family->spec.series_max)
        return overflow_of(family);
    (void)dv_vec_add(&family->series); /* then moved up to its place */
    memmove(&family->series.v[place + 1], &family->series.v[place],
            (family->series.n - 1 - place) * sizeof(family->series.v[0]));
    family->series.v[place] = new_series(family, values);
    return family->series.v[place];
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

void dv_family_remove(struct dv_family *family, const dv_str *values)
{
    size_t place;

    if (!find_series(family, values, &place))
        return;
    free(family->series.v[place]);
    dv_vec_remove(&family->series, place);
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
    size_t from = 0;
    size_t to = family->n_bounds;

    if (isnan(value))
        return; /* in no bucket, and it would spoil the sum for good */
    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (value <= family->bounds[middle])
            to = middle;
        else
            from = middle + 1;
    }
    histogram->counts[from]++;
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

static void check_spec(const struct dv_family_spec *spec)
{
    assert(is_name(spec->name));
    assert(spec->n_labels <= LABELS_MAX);
    for (size_t i = 0; i < spec->n_labels; i++)
        assert(is_name(spec->labels[i]) && strcmp(spec->labels[i], "le") != 0);
}

static struct dv_family *add_family(struct dv_metrics *metrics, const struct dv_family_spec *spec,
                                    enum kind kind)
{
    struct dv_family *family = DV_ALLOC(struct dv_family);
    size_t place = 0;

    check_spec(spec);
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
    locale_t before = enter_c_locale();

    family->bounds = bounds;
    family->n_bounds = n_bounds;
    family->bound_texts = dv_alloc(n_bounds * sizeof(family->bound_texts[0]));
    for (size_t i = 0; i < n_bounds; i++) {
        assert(isfinite(bounds[i]) && (i == 0 || bounds[i - 1] < bounds[i]));
        print_number(bounds[i], family->bound_texts[i]);
    }
    leave_c_locale(before);
    return family;
}

/* ---- print ---- */

void dv_metrics_add_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    *dv_vec_add(&metrics->collectors) = (struct collector){collect, ctx};
}

void dv_metrics_remove_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < metrics->collectors.n; i++) {
        if (metrics->collectors.v[i].collect != collect || metrics->collectors.v[i].ctx != ctx)
            continue;
        dv_vec_remove(&metrics->collectors, i);
        return;
    }
}

/* The text with \ and newlines escaped, and quotes where it stands between them. */
static void add_escaped(struct dv_buf *out, dv_str text, bool is_quoted)
{
    size_t done = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c != '\\' && c != '\n' && !(c == '"' && is_quoted))
            continue;
        dv_buf_add(out, dv_str_slice(text, done, i));
        dv_buf_add_char(out, '\\');
        dv_buf_add_char(out, c == '\n' ? 'n' : c);
        done = i + 1;
    }
    dv_buf_add(out, dv_str_slice(text, done, text.n));
}

/* Label values must be UTF-8, or the whole page is refused by who reads it. */
static void add_value(struct dv_buf *out, dv_str value)
{
    size_t at = 0;

    if (dv_str_is_utf8(value)) {
        add_escaped(out, value, true);
        return;
    }
    while (at < value.n) {
        size_t n = dv_str_utf8_char(dv_str_slice(value, at, value.n));

        if (n == 0)
            dv_buf_add(out, DV_STR("\xef\xbf\xbd"));
        else
            add_escaped(out, dv_str_slice(value, at, at + n), true);
        at += n ? n : 1;
    }
}

/* name_suffix{label="value",le="bound"} and a space. */
static void add_sample_name(struct dv_buf *out, const struct dv_family *family,
                            const struct series *series, const char *suffix, const char *le)
{
    size_t n_labels = family->spec.n_labels;

    dv_buf_add_c(out, family->spec.name);
    dv_buf_add_c(out, suffix);
    for (size_t i = 0; i < n_labels; i++) {
        dv_buf_add_char(out, i == 0 ? '{' : ',');
        dv_buf_add_c(out, family->spec.labels[i]);
        dv_buf_add(out, DV_STR("=\""));
        add_value(out, series->values[i]);
        dv_buf_add_char(out, '"');
    }
    if (le) {
        dv_buf_add_c(out, n_labels == 0 ? "{le=\"" : ",le=\"");
        dv_buf_add_c(out, le);
        dv_buf_add_char(out, '"');
    }
    dv_buf_add_c(out, n_labels > 0 || le ? "} " : " ");
}

static void add_number(struct dv_buf *out, double value)
{
    char text[NUMBER_BYTES];

    print_number(value, text);
    dv_buf_add_c(out, text);
    dv_buf_add_char(out, '\n');
}

static void add_count(struct dv_buf *out, uint64_t value)
{
    dv_buf_add_u64(out, value);
    dv_buf_add_char(out, '\n');
}

static void print_histogram(struct dv_buf *out, const struct dv_family *family,
                            const struct series *series)
{
    const struct dv_histogram *histogram = &series->u.histogram;
    uint64_t count = 0;

    for (size_t i = 0; i <= family->n_bounds; i++) {
        count += histogram->counts[i];
        add_sample_name(out, family, series, "_bucket",
                        i < family->n_bounds ? family->bound_texts[i] : "+Inf");
        add_count(out, count);
    }
    add_sample_name(out, family, series, "_sum", NULL);
    add_number(out, histogram->sum);
    add_sample_name(out, family, series, "_count", NULL);
    add_count(out, count);
}

static void print_series(struct dv_buf *out, const struct dv_family *family,
                         const struct series *series)
{
    switch (family->kind) {
    case COUNTER:
        add_sample_name(out, family, series, "", NULL);
        add_count(out, series->u.counter.value);
        break;
    case GAUGE:
        add_sample_name(out, family, series, "", NULL);
        add_number(out, series->u.gauge.value);
        break;
    case HISTOGRAM:
        print_histogram(out, family, series);
        break;
    }
}

static void print_family(struct dv_buf *out, const struct dv_family *family)
{
    dv_buf_add(out, DV_STR("# HELP "));
    dv_buf_add_c(out, family->spec.name);
    dv_buf_add_char(out, ' ');
    add_escaped(out, dv_str_from_c(family->spec.help), false);
    dv_buf_add(out, DV_STR("\n# TYPE "));
    dv_buf_add_c(out, family->spec.name);
    dv_buf_add_char(out, ' ');
    dv_buf_add_c(out, kind_names[family->kind]);
    dv_buf_add_char(out, '\n');
    for (size_t i = 0; i < family->series.n; i++)
        print_series(out, family, family->series.v[i]);
    if (family->overflow)
        print_series(out, family, family->overflow);
}

static void collect(struct dv_metrics *metrics)
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
    locale_t before;

    collect(metrics);
    before = enter_c_locale();
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
    leave_c_locale(before);
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
