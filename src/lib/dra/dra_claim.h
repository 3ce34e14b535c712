/* dra_claim.h - a claim as a driver sees it. Pure. */
#ifndef DV_LIB_DRA_CLAIM_H
#define DV_LIB_DRA_CLAIM_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct davit_dra_claim;
struct dv_api_resource_claim;
struct dv_arena;
struct dv_err;

/* "gpu" of "gpu/small": what a pod's containers refer to. */
dv_str dv_lib_base_request(dv_str request);

/* Makes the part of the claim that is for `driver`, in `arena`; `uid` is that of the claim that was
 * asked for. DV_FAILED_PRECONDITION: another claim has its name now, or it is not allocated. */
DV_CHECKED bool dv_lib_claim_view(const struct dv_api_resource_claim *claim, dv_str driver,
                                  dv_str uid, struct dv_arena *arena, struct davit_dra_claim *view,
                                  struct dv_err *err);

#endif
