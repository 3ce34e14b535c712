#include "pod/runner/device_health.h"

#include "base/arena.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "resource/resource.h"
#include "workload/life.h"

size_t dv_pod_device_health_of(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                               const struct dv_claim_lookup *pod, dv_str uid,
                               const struct dv_api_container *container, uint64_t now_wall_ns,
                               struct dv_arena *arena, struct dv_api_resource_status **statuses)
{
    struct dv_claim_status_options options = {.now_wall_ns = now_wall_ns};
    const struct dv_device_status *held;
    size_t n =
        dv_device_status(dv_device_manager_state(devices), uid, container->name, arena, &held);
    struct dv_api_resource_status *known = DV_NEW_ARRAY(arena, struct dv_api_resource_status, n);
    size_t n_statuses = n;

    for (size_t i = 0; i < n; i++) {
        known[i].name = held[i].resource;
        known[i].n_resources = held[i].n_ids;
        known[i].resources = DV_NEW_ARRAY(arena, struct dv_api_resource_health, held[i].n_ids);
        for (size_t k = 0; k < held[i].n_ids; k++) {
            known[i].resources[k].resource_id = held[i].ids[k];
            known[i].resources[k].health =
                held[i].is_healthy[k] ? DV_STR("Healthy") : DV_STR("Unhealthy");
        }
    }
    *statuses = known;
    if (claims)
        dv_claim_container_status(dv_claim_manager_state(claims), pod, container, known, n,
                                  &options, arena, statuses, &n_statuses);
    return n_statuses;
}

static size_t add(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                  const struct dv_claim_lookup *pod, dv_str uid,
                  const struct dv_api_container *containers, size_t n_containers,
                  uint64_t now_wall_ns, struct dv_arena *arena, struct dv_life_devices *all)
{
    size_t n = 0;

    for (size_t i = 0; i < n_containers; i++) {
        struct dv_api_resource_status *statuses;
        size_t n_statuses = dv_pod_device_health_of(devices, claims, pod, uid, &containers[i],
                                                    now_wall_ns, arena, &statuses);

        if (n_statuses > 0)
            all[n++] = (struct dv_life_devices){containers[i].name, statuses, n_statuses};
    }
    return n;
}

size_t dv_pod_device_health(struct dv_device_manager *devices, struct dv_claim_manager *claims,
                            const struct dv_api_pod *pod, dv_str uid, uint64_t now_wall_ns,
                            struct dv_arena *arena, const struct dv_life_devices **all)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    struct dv_life_devices *list =
        DV_NEW_ARRAY(arena, struct dv_life_devices, spec->n_init_containers + spec->n_containers);
    struct dv_claim_lookup lookup;
    size_t n;

    dv_claim_lookup_init(&lookup, pod);
    n = add(devices, claims, &lookup, uid, spec->init_containers, spec->n_init_containers,
            now_wall_ns, arena, list);
    n += add(devices, claims, &lookup, uid, spec->containers, spec->n_containers, now_wall_ns,
             arena, list + n);
    dv_claim_lookup_fini(&lookup);
    *all = list;
    return n;
}
