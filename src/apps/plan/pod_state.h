/* pod_state.h - how far a pod is, for those who keep a number of pods running. */
#ifndef DV_APPS_POD_STATE_H
#define DV_APPS_POD_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "resource/values.h"

struct dv_api_pod;

/* So many pods of one owner may wait for a node; then no more are made until some have one. A
 * number of replicas is quickly written, and each pod takes some 10 KiB of memory. */
#define DV_PODS_WAITING_MAX INT64_C(20000)
/* Whether it has no node yet. */
bool dv_pod_is_waiting(const struct dv_api_pod *pod);
/* Whether it has been ready for so long. */
bool dv_pod_is_available(const struct dv_api_pod *pod, int64_t min_ready_s, struct dv_time now);
/* Whether it has not ended and is not to end. */
bool dv_pod_is_active(const struct dv_api_pod *pod);

#endif
