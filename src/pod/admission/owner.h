/* owner.h - what runs a pod, where that is known: when it has ended, so has the pod. */
#ifndef DV_POD_OWNER_H
#define DV_POD_OWNER_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_arena;
struct dv_err;
struct dv_owner;
struct dv_pod;
struct dv_pod_spec;

/* Finds when the process that owns the pod was started, if one does. DV_INVALID_ARGUMENT: there is
 * no such process, no such control group. */
DV_CHECKED bool dv_owner_settle(struct dv_pod_spec *spec, struct dv_arena *arena,
                                struct dv_err *err);
/* Watches the pod's owner; NULL when it has none. When the owner ends, pod->has_ended is set. A pod
 * that is not the API's is then released, and tried again until that works. */
struct dv_owner *dv_owner_watch(struct dv_pod *pod);
/* Whether the owner has been seen at work: its process is there, or processes have been in its
 * control group. False for NULL. */
bool dv_owner_runs(const struct dv_owner *owner);
void dv_owner_free(struct dv_owner *owner); /* NULL is fine */

#endif
