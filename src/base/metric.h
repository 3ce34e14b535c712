/* metric.h - counters, gauges and histograms, and their print for Prometheus.
 *
 * A registry holds families; a family has a name, labels, and one series for each set of label
 * values. What counts keeps the handle of its series: an update is then a store or an addition.
 * All of a registry belongs to one thread. */
#ifndef DV_BASE_METRIC_H
#define DV_BASE_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_buf;
struct dv_err;
struct dv_metrics;
struct dv_family;
struct dv_counter;
struct dv_gauge;
struct dv_histogram;

struct dv_metrics *dv_metrics_new(void);
/* Ends all families and series with it. */
void dv_metrics_free(struct dv_metrics *metrics); /* NULL is fine */

/* ---- families ---- */

/* A family. All that it points to is borrowed for the registry's life: constants, as a rule. */
struct dv_family_spec {
    const char *name; /* "davit_allocations_total"; no other family has it */
    const char *help;
    const char *const *labels;
    size_t n_labels;
    /* Against values that peers choose: what comes after so many series is counted in one more,
     * whose label values are all "over_limit_<series_max>". 0: the default of 100. */
    size_t series_max;
    /* The family's series are forgotten before each print, and collectors make them anew: keep no
     * handles. */
    bool is_collected;
};

struct dv_family *dv_metrics_add_counter(struct dv_metrics *metrics,
                                         const struct dv_family_spec *spec);
struct dv_family *dv_metrics_add_gauge(struct dv_metrics *metrics,
                                       const struct dv_family_spec *spec);
/* `bounds` (borrowed as the spec) rise, and are each the largest value of their bucket; the one
 * above them all is implied. */
struct dv_family *dv_metrics_add_histogram(struct dv_metrics *metrics,
                                           const struct dv_family_spec *spec, const double *bounds,
                                           size_t n_bounds);

/* Bounds for times: 10 us to 60 s, in steps of about 1, 2.5, 5. Our own work takes microseconds,
 * and what we wait for may take a minute. */
#define DV_SECONDS_BOUNDS 21u
extern const double dv_seconds_bounds[DV_SECONDS_BOUNDS];

/* ---- series ---- */

/* The series of these label values, in the order of the spec; made when it is new. `values` may be
 * NULL where there are no labels. The handle lives until the series is removed. */
struct dv_counter *dv_family_counter(struct dv_family *family, const dv_str *values);
struct dv_gauge *dv_family_gauge(struct dv_family *family, const dv_str *values);
struct dv_histogram *dv_family_histogram(struct dv_family *family, const dv_str *values);

void dv_counter_add(struct dv_counter *counter, uint64_t n);
void dv_gauge_set(struct dv_gauge *gauge, double value);
void dv_gauge_add(struct dv_gauge *gauge, double delta);
/* NaN is dropped. */
void dv_histogram_observe(struct dv_histogram *histogram, double value);
void dv_histogram_observe_ns(struct dv_histogram *histogram, uint64_t ns); /* as seconds */

/* ---- print ---- */

/* `collect` runs before each print, to set what is known only by looking; in the order of adding.
 * It may add families, but no collectors. */
void dv_metrics_add_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx);
/* Removes a collector; does nothing when it was not added. */
void dv_metrics_remove_collector(struct dv_metrics *metrics, void (*collect)(void *ctx), void *ctx);

/* Adds a label's value as that format has it, between quotes: for who prints families by himself,
 * because there are too many series to be kept. */
void dv_metrics_add_value(struct dv_buf *out, dv_str value);

#define DV_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Everything, in Prometheus' text format, sorted by name and label values.
 * DV_RESOURCE_EXHAUSTED: not all fits under the ceiling of `out`; what is there is still valid: a
 * family is in it whole or not at all. */
DV_CHECKED bool dv_metrics_print(struct dv_metrics *metrics, struct dv_buf *out,
                                 struct dv_err *err);

#endif
