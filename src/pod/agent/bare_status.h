/* bare_status.h - the status of a pod where davitd has no container runtime. Pure.
 *
 * Nothing is pretended: a pod that has its devices is Pending, its condition
 * davit.node/DevicesReady is True, and its containers wait with a reason that says what to do. They
 * run, and have ended, when whoever starts them has told so; then phase and conditions follow as in
 * the reference. */
#ifndef DV_POD_BARE_STATUS_H
#define DV_POD_BARE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/resource.h"

struct dv_arena;

/* The condition that tells whether a pod has all devices and claims that it asked for. */
#define DV_DEVICES_READY "davit.node/DevicesReady"
/* Why a container waits that has all it needs. */
#define DV_NO_RUNTIME "NoContainerRuntime"

enum dv_bare_stage {
    DV_BARE_WAITING,  /* it does not have all that it asked for yet */
    DV_BARE_READY,    /* it has */
    DV_BARE_RELEASED, /* it has ended, or was said to have, and holds nothing any more */
};

struct dv_bare_facts {
    const struct dv_api_pod *pod;
    enum dv_bare_stage stage;
    dv_str reason; /* why it waits */
    dv_str message;
    const struct dv_api_container_status *told; /* what was told about its containers */
    size_t n_told;
    bool is_owned;        /* what its annotations name as its owner is at work */
    struct dv_time since; /* when it got all that it asked for */
    struct dv_time now;
};

/* Phase, conditions and container statuses, in `arena` and in the memory of the facts. */
void dv_bare_status(const struct dv_bare_facts *facts, struct dv_arena *arena,
                    struct dv_api_pod_status *status);
/* Whether what was told about the containers means that the pod has succeeded or failed. */
bool dv_bare_has_ended(const struct dv_api_pod *pod, const struct dv_api_container_status *told,
                       size_t n_told);
/* Whether a container may be started again that has ended with this code. */
bool dv_bare_may_restart(const struct dv_api_pod *pod, const struct dv_api_container *container,
                         int64_t exit_code);

#endif
