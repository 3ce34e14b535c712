/* cri_able.h - what a runtime can do and how it is, read from what it answers. Pure. */
#ifndef DV_CRI_ABLE_H
#define DV_CRI_ABLE_H

#include <stdbool.h>

#include "base/defs.h"
#include "cri/cri.h"

struct CriV1__RuntimeConfigResponse;
struct CriV1__StatusResponse;
struct CriV1__VersionResponse;
struct dv_arena;
struct dv_err;

/* Fills in the name and the version. DV_FAILED_PRECONDITION: this is not the CRI that davit
 * speaks. */
DV_CHECKED bool dv_cri_able_version(const struct CriV1__VersionResponse *answer,
                                    struct dv_arena *arena, struct dv_cri_runtime *runtime,
                                    struct dv_err *err);
/* Fills in what a verbose Status tells; the version must be known. */
void dv_cri_able_status(const struct CriV1__StatusResponse *answer, struct dv_arena *arena,
                        struct dv_cri_runtime *runtime);
/* Fills in the cgroup driver, which counts more than what the Status said. */
void dv_cri_able_config(const struct CriV1__RuntimeConfigResponse *answer,
                        struct dv_cri_runtime *runtime);

/* Whether the condition ("RuntimeReady") is there and true. DV_FAILED_PRECONDITION: it is not;
 * the message begins with `what`, as the reference's node conditions have it. */
DV_CHECKED bool dv_cri_able_check(const struct CriV1__StatusResponse *answer, const char *condition,
                                  const char *what, struct dv_err *err);

#endif
