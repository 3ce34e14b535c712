/* endpoints.h - which addresses are behind a service. Pure. */
#ifndef DV_CONTROL_ENDPOINTS_H
#define DV_CONTROL_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>

struct dv_api_endpoint_slice;
struct dv_api_pod;
struct dv_api_service;
struct dv_arena;

/* Who makes slices, as the reference's label says. */
#define DV_SLICES_MANAGER "endpointslice-controller.k8s.io"
#define DV_SLICES_MANAGER_LABEL "endpointslice.kubernetes.io/managed-by"
#define DV_SLICES_SERVICE_LABEL "kubernetes.io/service-name"

/* Whether slices are made for the service: it has a selector, and is more than another name. */
bool dv_service_has_slices(const struct dv_api_service *service);
/* Whether the pod is behind the service: its labels are selected, it has an address and is not
 * over. */
bool dv_service_selects(const struct dv_api_service *service, const struct dv_api_pod *pod);
/* Whether the two states of a pod look the same to every service. */
bool dv_is_same_endpoint(const struct dv_api_pod *a, const struct dv_api_pod *b);

/* Makes the slices that the service shall have, in the arena, from those of the pods that it
 * selects: one for each set of ports that named ports stand for in the pods, of up to 1000
 * addresses. They refer to the service and the pods. */
struct dv_api_endpoint_slice *dv_service_slices(const struct dv_api_service *service,
                                                const struct dv_api_pod *const *pods, size_t n_pods,
                                                struct dv_arena *arena, size_t *n_slices);

#endif
