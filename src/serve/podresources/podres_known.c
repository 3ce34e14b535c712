#include "serve/podresources/podres_known.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/pod.h"
#include "serve/serve.h"

static struct dv_podres_claim *claim_of(const struct dv_claim *claim, struct dv_arena *arena)
{
    const struct dv_claim_record *record = &claim->record;
    struct dv_podres_claim *made = DV_NEW(arena, struct dv_podres_claim);
    struct dv_podres_claim_driver *drivers =
        DV_NEW_ARRAY(arena, struct dv_podres_claim_driver, record->n_drivers);

    for (size_t i = 0; i < record->n_drivers; i++) {
        const struct dv_claim_driver *from = &record->drivers[i];
        struct dv_podres_claim_device *devices =
            DV_NEW_ARRAY(arena, struct dv_podres_claim_device, from->n_devices);

        for (size_t k = 0; k < from->n_devices; k++)
            devices[k] = (struct dv_podres_claim_device){
                .pool = from->devices[k].pool,
                .device = from->devices[k].name,
                .share_id = from->devices[k].share_id,
                .has_share_id = from->devices[k].share_id.p != NULL,
                .cdi_ids = from->devices[k].cdi_ids,
                .n_cdi_ids = from->devices[k].n_cdi_ids,
            };
        drivers[i] = (struct dv_podres_claim_driver){from->name, devices, from->n_devices};
    }
    *made = (struct dv_podres_claim){record->namespace, record->name, drivers, record->n_drivers};
    return made;
}

/* Returns what the pod's containers use; NULL: it has no claims. */
static const struct dv_podres_use *uses_of(const struct dv_node *node,
                                           const struct dv_pod_spec *spec, struct dv_arena *arena)
{
    struct dv_podres_use *uses;
    struct dv_claim_lookup lookup;

    if (!spec->object)
        return NULL;
    dv_claim_lookup_init(&lookup, spec->object);
    uses = DV_NEW_ARRAY(arena, struct dv_podres_use, spec->n_containers);
    for (size_t i = 0; i < spec->n_containers; i++) {
        const struct dv_api_container *container =
            dv_pod_spec_container(spec, spec->containers[i].name);
        const struct dv_podres_claim **claims;
        const struct dv_claim **used;
        struct dv_err missing; /* the container then shows no claims at all */
        size_t n;

        if (!container || !dv_claim_of_container(dv_claim_manager_state(node->claims), &lookup,
                                                 container, arena, &used, &n, &missing))
            continue;
        claims = DV_NEW_ARRAY(arena, const struct dv_podres_claim *, n);
        for (size_t k = 0; k < n; k++)
            claims[k] = claim_of(used[k], arena);
        uses[i] = (struct dv_podres_use){claims, n};
    }
    dv_claim_lookup_fini(&lookup);
    return uses;
}

/* A pod is active when it is admitted, or was before and has not been looked at again. */
struct dv_podres_pod dv_podres_known_pod(const struct dv_node *node, const struct dv_pod_view *view,
                                         struct dv_arena *arena)
{
    return (struct dv_podres_pod){
        .spec = view->spec,
        .uses = uses_of(node, view->spec, arena),
        .is_active = view->state == DV_POD_ADMITTED || view->was_admitted,
    };
}

struct dv_podres_node dv_podres_known_node(const struct dv_node *node, struct dv_arena *arena)
{
    struct dv_device_state *devices = dv_device_manager_state(node->devices);
    struct dv_podres_pod *pods =
        DV_NEW_ARRAY(arena, struct dv_podres_pod, dv_pods_count(node->pods));
    struct dv_pod_view view;
    size_t at = 0;
    size_t n = 0;

    (void)dv_device_collect(devices); /* it does not matter how many were given back */
    while (dv_pods_next(node->pods, &at, &view))
        pods[n++] = dv_podres_known_pod(node, &view, arena);
    return (struct dv_podres_node){
        .devices = devices, .pods = pods, .n_pods = n, .is_strict = node->is_strict};
}
