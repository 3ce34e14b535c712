/* run_isolate.h - a view of the machine in which only some devices exist. */
#ifndef DV_CLI_RUN_ISOLATE_H
#define DV_CLI_RUN_ISOLATE_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_engine_plan;
struct dv_err;

/* Gives this process a /dev of its own, with the plan's nodes and what every program expects there
 * (null, zero, full, random, urandom, tty, pts, shm), and mounts what the plan wants mounted.
 *
 * It is done in a user namespace, also for root: in one, no device node can be made, the machine's
 * own /dev cannot be mounted again, and processes outside cannot be looked into. For root without
 * user namespaces only the view is another: *is_enforced is false then.
 * DV_FAILED_PRECONDITION: the kernel does not let this user, and the setting that says so. */
DV_CHECKED bool dv_run_isolate(const struct dv_engine_plan *plan, bool *is_enforced,
                               struct dv_err *err);

#endif
