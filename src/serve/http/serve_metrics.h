/* serve_metrics.h - prints what the node counts. */
#ifndef DV_SERVE_METRICS_H
#define DV_SERVE_METRICS_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_buf;
struct dv_err;
struct dv_node_metrics;

/* Prints the metrics in Prometheus' text format. False: not all of it fits, but what was printed is
 * valid. */
DV_CHECKED bool dv_node_metrics_print(struct dv_node_metrics *metrics, struct dv_buf *buf,
                                      struct dv_err *err);

#endif
