/* cdi_look.h - whether CDI names lead to specs, in the trial's directory and those of the host, and
 * these to what is there. */
#ifndef DV_VERIFY_CDI_LOOK_H
#define DV_VERIFY_CDI_LOOK_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;
struct dv_trial;

/* Whether a runtime could resolve the name now: one good spec has it. Reads the directories. */
DV_CHECKED bool dv_cdi_look(struct dv_trial *trial, dv_str name, struct dv_err *err);
/* The same, and whether the host has what the specs share with a container: nodes, mounts, hooks.
 */
DV_CHECKED bool dv_cdi_look_at_host(struct dv_trial *trial, dv_str name, struct dv_err *err);

#endif
