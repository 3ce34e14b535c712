/* job_indexes.h - sets of completion indexes of Jobs, which the API writes as "1,3-5,7". */
#ifndef DV_RESOURCE_JOB_INDEXES_H
#define DV_RESOURCE_JOB_INDEXES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"

struct dv_arena;

struct dv_job_interval {
    int64_t first;
    int64_t last;
};

/* In order, and neither overlapping nor touching. A zeroed one is empty. */
struct dv_job_indexes {
    DV_VEC(struct dv_job_interval) intervals;
};

/* Reads a set, as it may be in a status that anybody wrote: parts that are none are left out, and
 * what is not below `completions`. */
struct dv_job_indexes dv_job_indexes_parse(dv_str text, int64_t completions,
                                           struct dv_arena *arena);
/* Why the text is no set of indexes below `completions`, in `arena`; NULL: it is one, of *n. */
const char *dv_job_indexes_fault(dv_str text, int64_t completions, struct dv_arena *arena,
                                 int64_t *n);
/* Three and more in a row are written as "a-b". */
dv_str dv_job_indexes_print(const struct dv_job_indexes *indexes, struct dv_arena *arena);

/* Adds an index that is not below any that is in the set. */
void dv_job_indexes_append(struct dv_job_indexes *indexes, int64_t index, struct dv_arena *arena);
struct dv_job_indexes dv_job_indexes_union(const struct dv_job_indexes *a,
                                           const struct dv_job_indexes *b, struct dv_arena *arena);
bool dv_job_indexes_has(const struct dv_job_indexes *indexes, int64_t index);
int64_t dv_job_indexes_n(const struct dv_job_indexes *indexes);
/* How many are in both. */
int64_t dv_job_indexes_n_shared(const struct dv_job_indexes *a, const struct dv_job_indexes *b);

#endif
