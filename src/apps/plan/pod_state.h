/* pod_state.h - how far a pod is, for those who keep a number of pods running. */
#ifndef DV_APPS_POD_STATE_H
#define DV_APPS_POD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "resource/values.h"

struct dv_api_pod;

/* Whether it has been ready for so long. */
bool dv_pod_is_available(const struct dv_api_pod *pod, int64_t min_ready_s, struct dv_time now);
/* Whether it has not ended and is not to end. */
bool dv_pod_is_active(const struct dv_api_pod *pod);

#endif
