/* pod_marks.h - which pods nobody has asked how to start, kept over a restart of davitd: a file
 * each, in a directory that goes with the machine's boot (/run).
 *
 * A mark is taken away before anybody learns how to start the pod. That is a change in the kernel's
 * memory, not a write to a disk: it outlives this process, and works when the disk does not. What
 * has no mark may run: so a lost directory, or a mark of an earlier boot, costs a pod that nobody
 * has started its grace period, and nothing else. */
#ifndef DV_POD_MARKS_H
#define DV_POD_MARKS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_pod_marks;

/* Makes the directory, if it is not there. Returns NULL when there can be none; all functions take
 * that, and then no pod has a mark. Blocks. */
struct dv_pod_marks *dv_pod_marks_open(dv_str dir, dv_str boot_id);
void dv_pod_marks_close(struct dv_pod_marks *marks);
void dv_pod_marks_put(struct dv_pod_marks *marks, dv_str uid);
bool dv_pod_marks_has(const struct dv_pod_marks *marks, dv_str uid);
/* False: the mark is still there. */
DV_CHECKED bool dv_pod_marks_remove(struct dv_pod_marks *marks, dv_str uid, struct dv_err *err);
/* Removes the marks of pods that are not known. Blocks. */
void dv_pod_marks_sweep(struct dv_pod_marks *marks, bool (*is_known)(const void *ctx, dv_str uid),
                        const void *ctx);

#endif
