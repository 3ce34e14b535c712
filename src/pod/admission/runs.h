/* runs.h - the runs of containers that somebody told about, because davitd does not start them
 * itself. A process that was told about is watched until it ends.
 *
 *     nothing told --started--> running --ended, or its process is gone--> terminated
 *                                  ^                                           |
 *                                  '----------------- started -----------------'
 *
 * They are kept, in memory and in the store, as statuses of containers: that is what the API is
 * told. The process stands in the container's id: "process://4711/88123", its number and its start.
 * A pod that is not the API's loses them when it is released, others when the API knows how they
 * ended. */
#ifndef DV_POD_RUNS_H
#define DV_POD_RUNS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

struct dv_arena;
struct dv_err;
struct dv_pods;
struct dv_runs;

/* Reads one row; ctx is the pods. */
bool dv_runs_load(void *ctx, const struct dv_store_row *row, struct dv_err *err);
/* The row of these runs as it has to be written, in `arena`. */
struct dv_store_change dv_runs_row(const struct dv_runs *runs, struct dv_arena *arena);
/* Removes those of the pod from memory; the caller removes the row. */
void dv_runs_forget(struct dv_pods *pods, dv_str uid);
void dv_runs_free_all(struct dv_pods *pods);

#endif
