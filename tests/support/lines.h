/* lines.h - keeps what is logged during a test. */
#ifndef DV_TESTS_LINES_H
#define DV_TESTS_LINES_H

#include "base/log.h"

struct dv_buf;

/* Every line from this level on goes into `lines`, which the caller has initialized. */
void lines_keep(struct dv_buf *lines, enum dv_log_level level);
/* Nothing is kept any more; frees the lines. */
void lines_end(struct dv_buf *lines);

#endif
