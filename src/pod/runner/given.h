/* given.h - what device plugins and claims give a container, as its config wants it. */
#ifndef DV_POD_GIVEN_H
#define DV_POD_GIVEN_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_arena;
struct dv_claim_manager;
struct dv_device_manager;
struct dv_err;
struct dv_workload_given;

/* Sets `given` to what the container holds, in `arena` but for texts, which are those of `devices`
 * and `claims`: to be used in the same turn of the loop. Fails as dv_claim_cdi_names does. */
DV_CHECKED bool dv_given_gather(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                                const struct dv_api_pod *pod, dv_str uid,
                                const struct dv_api_container *container, struct dv_arena *arena,
                                struct dv_workload_given *given, struct dv_err *err);

/* Copies everything into `arena`. */
void dv_given_copy(const struct dv_workload_given *given, struct dv_arena *arena,
                   struct dv_workload_given *copy);

#endif
