/* claim_container.c - what a container gets of its pod's claims, and what its status says of it. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "claim/state/claim_state.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/validate.h"

#define CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

/* -- What a container gets ------------------------------------------------------------------ */

/* A request of a container's claim; empty: the whole claim. */
struct need {
    dv_str claim;
    dv_str request;
};

struct needs {
    struct dv_arena *arena;
    DV_VEC(struct need) v;
};

static void add_need(struct needs *needs, dv_str claim, dv_str request)
{
    *dv_vec_add_in(&needs->v, needs->arena) = (struct need){claim, request};
}

static bool wants_resource(const struct dv_api_container *container, dv_str resource)
{
    for (size_t i = 0; i < container->resources.n_requests; i++) {
        const struct dv_quantity_entry *entry = &container->resources.requests[i];

        if (dv_str_eq(entry->key, resource))
            return dv_quantity_sign(&entry->value) != 0 &&
                   (dv_is_extended_resource_name(resource) ||
                    dv_str_starts_with(resource, DV_STR(CLASS_PREFIX)));
    }
    return false;
}

static bool gather_needs(const struct dv_api_pod *pod, const struct dv_api_container *container,
                         struct needs *needs, struct dv_err *err)
{
    const struct dv_api_pod_extended_resource_claim_status *extended =
        pod->status.extended_resource_claim_status;

    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        const struct dv_api_pod_resource_claim *entry = &pod->spec.resource_claims[i];
        struct dv_claim_ref ref = {0};

        for (size_t k = 0; k < container->resources.n_claims; k++) {
            const struct dv_api_container_claim *use = &container->resources.claims[k];

            if (!dv_str_eq(use->name, entry->name))
                continue;
            if (ref.pod_claim.p == NULL && !dv_claim_resolve(pod, entry, &ref, err))
                return false;
            if (ref.name.n > 0)
                add_need(needs, ref.name, use->request);
        }
    }
    for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
        const struct dv_api_container_extended_resource_request *mapping =
            &extended->request_mappings[i];

        if (dv_str_eq(mapping->container_name, container->name) &&
            wants_resource(container, mapping->resource_name))
            add_need(needs, extended->resource_claim_name, mapping->request_name);
    }
    return true;
}

static bool has_request(const struct dv_claim_device *device, dv_str request)
{
    if (request.n == 0 || device->n_requests == 0)
        return true;
    for (size_t i = 0; i < device->n_requests; i++)
        if (dv_str_eq(device->requests[i], request))
            return true;
    return false;
}

bool dv_claim_cdi_names(const struct dv_claim_state *state, const struct dv_api_pod *pod,
                        const struct dv_api_container *container, struct dv_arena *arena,
                        struct dv_claim_cdi_name **names, size_t *n_names, struct dv_err *err)
{
    struct needs needs = {.arena = arena};
    DV_VEC(struct dv_claim_cdi_name) v = {0};

    if (!gather_needs(pod, container, &needs, err))
        return false;
    for (size_t i = 0; i < needs.v.n; i++) {
        const struct need *need = &needs.v.v[i];
        const struct dv_claim *claim = dv_claim_find(state, pod->metadata.namespace, need->claim);

        if (!claim)
            return dv_fail(err, DV_NOT_FOUND,
                           "internal error: unable to get claim info for ResourceClaim %.*s in "
                           "namespace %.*s",
                           DV_FMT(need->claim), DV_FMT(pod->metadata.namespace));
        for (size_t d = 0; d < claim->record.n_drivers; d++) {
            const struct dv_claim_driver *driver = &claim->record.drivers[d];

            for (size_t k = 0; k < driver->n_devices; k++) {
                const struct dv_claim_device *device = &driver->devices[k];

                for (size_t m = 0; has_request(device, need->request) && m < device->n_cdi_ids; m++)
                    *dv_vec_add_in(&v, arena) = (struct dv_claim_cdi_name){
                        .id = device->cdi_ids[m],
                        .claim = claim->record.name,
                        .driver = driver->name,
                        .pool = device->pool,
                        .device = device->name,
                    };
            }
        }
    }
    *names = v.v;
    *n_names = v.n;
    return true;
}

static bool uses(const struct dv_api_container *container, dv_str pod_claim)
{
    for (size_t i = 0; i < container->resources.n_claims; i++)
        if (dv_str_eq(container->resources.claims[i].name, pod_claim))
            return true;
    return false;
}

static bool uses_extended(const struct dv_api_pod *pod, const struct dv_api_container *container)
{
    const struct dv_api_pod_extended_resource_claim_status *extended =
        pod->status.extended_resource_claim_status;

    for (size_t i = 0; extended && i < extended->n_request_mappings; i++)
        if (dv_str_eq(extended->request_mappings[i].container_name, container->name))
            return true;
    return false;
}

bool dv_claim_of_container(const struct dv_claim_state *state, const struct dv_api_pod *pod,
                           const struct dv_api_container *container, struct dv_arena *arena,
                           const struct dv_claim ***claims, size_t *n_claims, struct dv_err *err)
{
    const struct dv_claim **v =
        DV_NEW_ARRAY(arena, const struct dv_claim *, pod->spec.n_resource_claims + 1);
    dv_str namespace = pod->metadata.namespace;
    size_t n = 0;

    for (size_t i = 0; i < pod->spec.n_resource_claims; i++) {
        struct dv_claim_ref ref;

        if (!uses(container, pod->spec.resource_claims[i].name))
            continue;
        if (!dv_claim_resolve(pod, &pod->spec.resource_claims[i], &ref, err))
            return false;
        if (ref.name.n == 0)
            continue;
        v[n] = dv_claim_find(state, namespace, ref.name);
        if (!v[n++])
            return dv_fail(err, DV_NOT_FOUND, "unable to get information for ResourceClaim %.*s",
                           DV_FMT(ref.name));
    }
    if (uses_extended(pod, container)) {
        v[n] = dv_claim_find(state, namespace, dv_claim_extended(pod));
        if (!v[n++])
            return dv_fail(err, DV_NOT_FOUND,
                           "unable to get claim info for claim %.*s in namespace %.*s",
                           DV_FMT(dv_claim_extended(pod)), DV_FMT(namespace));
    }
    *claims = v;
    *n_claims = n;
    return true;
}

/* -- The status of a container -------------------------------------------------------------- */

struct showing {
    const struct dv_claim_state *state;
    const struct dv_claim_status_options *options;
    struct dv_arena *arena;
    DV_VEC(struct dv_api_resource_status) entries;
};

static bool serves_base(const struct dv_claim_device *device, dv_str request)
{
    return has_request(device, dv_str_slice(request, 0, dv_str_find_char(request, '/')));
}

static void show_device(const struct showing *showing, dv_str driver,
                        const struct dv_claim_device *device, struct dv_api_resource_status *entry)
{
    dv_str id = device->n_cdi_ids > 0
                    ? device->cdi_ids[0]
                    : dv_str_printf(showing->arena, "%.*s/%.*s/%.*s", DV_FMT(driver),
                                    DV_FMT(device->pool), DV_FMT(device->name));
    dv_str message = DV_STR_NONE;
    enum dv_claim_health health;

    for (size_t i = 0; i < entry->n_resources; i++)
        if (dv_str_eq(entry->resources[i].resource_id, id))
            return; /* the first entry of an id counts */
    health = dv_claim_health_get(showing->state, driver, device->pool, device->name,
                                 showing->options->now_wall_ns, &message);
    if (showing->options->without_messages || message.n == 0)
        message = DV_STR_NONE;
    entry->resources[entry->n_resources++] = (struct dv_api_resource_health){
        .resource_id = id,
        .health = dv_str_from_c(dv_claim_health_name(health)),
        .message = message,
    };
}

static void show_claim(const struct showing *showing, const struct dv_claim *claim, dv_str request,
                       struct dv_api_resource_status *entry)
{
    size_t n = 0;

    for (size_t d = 0; d < claim->record.n_drivers; d++)
        n += claim->record.drivers[d].n_devices;
    entry->resources = DV_NEW_ARRAY(showing->arena, struct dv_api_resource_health, n);
    entry->n_resources = 0;
    for (size_t d = 0; d < claim->record.n_drivers; d++) {
        const struct dv_claim_driver *driver = &claim->record.drivers[d];

        for (size_t k = 0; k < driver->n_devices; k++)
            if (serves_base(&driver->devices[k], request))
                show_device(showing, driver->name, &driver->devices[k], entry);
    }
}

static struct dv_api_resource_status *entry_of(struct showing *showing, dv_str name)
{
    struct dv_api_resource_status *entry;

    for (size_t i = 0; i < showing->entries.n; i++)
        if (dv_str_eq(showing->entries.v[i].name, name))
            return &showing->entries.v[i];
    entry = dv_vec_add_in(&showing->entries, showing->arena);
    entry->name = name;
    return entry;
}

/* The claim's name from the pod's status, or else from its spec. */
static dv_str claim_name(const struct dv_api_pod *pod, dv_str pod_claim)
{
    const struct dv_api_pod_resource_claim_status *status = dv_claim_status_of(pod, pod_claim);
    struct dv_claim_ref ref;
    struct dv_err err;

    if (status && status->resource_claim_name.n > 0)
        return status->resource_claim_name;
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].name, pod_claim) &&
            dv_claim_resolve(pod, &pod->spec.resource_claims[i], &ref, &err))
            return ref.name;
    return DV_STR_NONE;
}

void dv_claim_container_status(const struct dv_claim_state *state, const struct dv_api_pod *pod,
                               const struct dv_api_container *container,
                               const struct dv_api_resource_status *known, size_t n_known,
                               const struct dv_claim_status_options *options,
                               struct dv_arena *arena, struct dv_api_resource_status **entries,
                               size_t *n_entries)
{
    struct showing showing = {.state = state, .options = options, .arena = arena};
    size_t n = 0;

    for (size_t i = 0; i < n_known; i++)
        *dv_vec_add_in(&showing.entries, arena) = known[i];
    for (size_t i = 0; i < container->resources.n_claims; i++) {
        const struct dv_api_container_claim *use = &container->resources.claims[i];
        dv_str name = claim_name(pod, use->name);
        const struct dv_claim *claim =
            name.n > 0 ? dv_claim_find(state, pod->metadata.namespace, name) : NULL;

        if (claim)
            show_claim(
                &showing, claim, use->request,
                entry_of(&showing, use->request.n > 0
                                       ? dv_str_printf(arena, "claim:%.*s/%.*s", DV_FMT(use->name),
                                                       DV_FMT(use->request))
                                       : dv_str_printf(arena, "claim:%.*s", DV_FMT(use->name))));
    }
    for (size_t i = 0; i < showing.entries.n; i++)
        if (showing.entries.v[i].n_resources > 0)
            showing.entries.v[n++] = showing.entries.v[i];
    *entries = showing.entries.v;
    *n_entries = n;
}
