/* device_health.h - what device plugins and drivers say of the devices that a pod holds. */
#ifndef DV_POD_DEVICE_HEALTH_H
#define DV_POD_DEVICE_HEALTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_api_resource_status;
struct dv_arena;
struct dv_claim_lookup;
struct dv_claim_manager;
struct dv_device_manager;
struct dv_life_devices;

/* Sets *statuses to allocatedResourcesStatus of one container of the pod; returns how many there
 * are. */
size_t dv_pod_device_health_of(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                               const struct dv_claim_lookup *pod, dv_str uid,
                               const struct dv_api_container *container, uint64_t now_wall_ns,
                               struct dv_arena *arena, struct dv_api_resource_status **statuses);
/* Like dv_pod_device_health_of, for all containers of the pod that hold something. */
size_t dv_pod_device_health(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                            const struct dv_api_pod *pod, dv_str uid, uint64_t now_wall_ns,
                            struct dv_arena *arena, const struct dv_life_devices **all);

#endif
