/* apps.h - the controllers of what makes pods: what a cluster's controller manager does about them.
 *
 * For an embedded API alone: they rely on views that show what a request did before it is answered,
 * so that what they made is never made twice. What is decided is in plan/, and pure; what there is
 * comes from views, and what is done is requests. They may be closed at any point, and go on where
 * they were when they are opened again. */
#ifndef DV_APPS_H
#define DV_APPS_H

#include "loop/loop.h"

struct dv_apps;
struct dv_cluster;
struct dv_err;

/* Keeps the cluster, which outlives it. Begins to work when its views have been filled. */
struct dv_apps *dv_apps_open(struct dv_loop *loop, struct dv_cluster *cluster, struct dv_err *err);
/* Cancels the requests that are under way. `closed` may be NULL. */
void dv_apps_close(struct dv_apps *apps, dv_closed_fn *closed, void *ctx);

#endif
