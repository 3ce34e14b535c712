/* claim_container.c - what a container gets of its pod's claims, and what its status says of it.
 *
 * Users decide how long these lists are, and a turn of the loop walks them for all containers of a
 * pod: what is looked for is found by name, in maps. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "claim/state/claim_state.h"
#include "number/number.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/validate.h"

#define CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

/* -- The pod's lists ------------------------------------------------------------------------ */

/* A request that stands for an extended resource of a container. */
struct extended {
    const struct dv_api_container_extended_resource_request *mapping;
    struct extended *next; /* of the same container */
};

static void index_extended(struct dv_claim_lookup *lookup)
{
    const struct dv_api_pod_extended_resource_claim_status *status =
        lookup->pod->status.extended_resource_claim_status;

    if (!status || status->n_request_mappings == 0)
        return;
    lookup->arena = dv_arena_new();
    for (size_t i = status->n_request_mappings; i > 0; i--) { /* so the first is in front */
        const struct dv_api_container_extended_resource_request *mapping =
            &status->request_mappings[i - 1];
        struct extended *one = DV_NEW(lookup->arena, struct extended);

        one->mapping = mapping;
        one->next = dv_map_set(&lookup->extended, mapping->container_name, one);
    }
}

void dv_claim_lookup_init(struct dv_claim_lookup *lookup, const struct dv_api_pod *pod)
{
    *lookup = (struct dv_claim_lookup){.pod = pod};
    dv_map_init(&lookup->entries);
    dv_map_init(&lookup->extended);
    dv_pod_index_claim_statuses(pod, &lookup->statuses);
    for (size_t i = pod->spec.n_resource_claims; i > 0; i--) /* of equal names the first counts */
        (void)dv_map_set(&lookup->entries, pod->spec.resource_claims[i - 1].name,
                         &pod->spec.resource_claims[i - 1]);
    index_extended(lookup);
}

void dv_claim_lookup_fini(struct dv_claim_lookup *lookup)
{
    dv_map_fini(&lookup->entries);
    dv_map_fini(&lookup->statuses);
    dv_map_fini(&lookup->extended);
    dv_arena_free(lookup->arena);
    lookup->arena = NULL;
}

/* A claim of the pod that a container uses. */
struct use {
    const struct dv_api_pod_resource_claim *entry;
    const struct dv_api_container_claim *claim;
};

/* Orders uses as the pod's list has them, then as the container's list has them. */
static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a;
    const struct use *y = b;

    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return (x->claim > y->claim) - (x->claim < y->claim);
}

static size_t uses_of(const struct dv_claim_lookup *pod, const struct dv_api_container *container,
                      struct dv_arena *arena, struct use **uses)
{
    struct use *v = DV_NEW_ARRAY(arena, struct use, container->resources.n_claims);
    size_t n = 0;

    for (size_t i = 0; i < container->resources.n_claims; i++) {
        const struct dv_api_container_claim *claim = &container->resources.claims[i];
        const struct dv_api_pod_resource_claim *entry = dv_map_get(&pod->entries, claim->name);

        if (entry)
            v[n++] = (struct use){entry, claim};
    }
    if (n > 1)
        qsort(v, n, sizeof(v[0]), compare_uses);
    *uses = v;
    return n;
}

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

static bool is_from_claim(dv_str resource, const struct dv_quantity_entry *amount)
{
    return amount && dv_quantity_sign(&amount->value) != 0 &&
           (dv_is_extended_resource_name(resource) ||
            dv_str_starts_with(resource, DV_STR(CLASS_PREFIX)));
}

static void gather_extended(const struct dv_claim_lookup *pod,
                            const struct dv_api_container *container, struct needs *needs)
{
    const struct extended *extended = dv_map_get(&pod->extended, container->name);
    DV_CLEANUP(dv_map_fini) struct dv_map requests = {0};

    if (!extended)
        return;
    dv_map_init(&requests);
    for (size_t i = 0; i < container->resources.n_requests; i++)
        (void)dv_map_set(&requests, container->resources.requests[i].key,
                         &container->resources.requests[i]);
    for (; extended; extended = extended->next) {
        dv_str resource = extended->mapping->resource_name;

        if (is_from_claim(resource, dv_map_get(&requests, resource)))
            add_need(needs, dv_claim_extended(pod->pod), extended->mapping->request_name);
    }
}

static bool gather_needs(const struct dv_claim_lookup *pod,
                         const struct dv_api_container *container, struct needs *needs,
                         struct dv_err *err)
{
    struct use *uses;
    size_t n = uses_of(pod, container, needs->arena, &uses);

    for (size_t i = 0; i < n; i++) {
        struct dv_claim_ref ref;

        if (!dv_claim_resolve(pod->pod, uses[i].entry, &pod->statuses, &ref, err))
            return false;
        if (ref.name.n > 0)
            add_need(needs, ref.name, uses[i].claim->request);
    }
    gather_extended(pod, container, needs);
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

bool dv_claim_cdi_names(const struct dv_claim_state *state, const struct dv_claim_lookup *pod,
                        const struct dv_api_container *container, struct dv_arena *arena,
                        struct dv_claim_cdi_name **names, size_t *n_names, struct dv_err *err)
{
    struct needs needs = {.arena = arena};
    DV_VEC(struct dv_claim_cdi_name) v = {0};
    dv_str namespace = pod->pod->metadata.namespace;

    if (!gather_needs(pod, container, &needs, err))
        return false;
    for (size_t i = 0; i < needs.v.n; i++) {
        const struct need *need = &needs.v.v[i];
        const struct dv_claim *claim = dv_claim_find(state, namespace, need->claim);

        if (!claim)
            return dv_fail(err, DV_NOT_FOUND,
                           "internal error: unable to get claim info for ResourceClaim %.*s in "
                           "namespace %.*s",
                           DV_FMT(need->claim), DV_FMT(namespace));
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

bool dv_claim_of_container(const struct dv_claim_state *state, const struct dv_claim_lookup *pod,
                           const struct dv_api_container *container, struct dv_arena *arena,
                           const struct dv_claim ***claims, size_t *n_claims, struct dv_err *err)
{
    dv_str namespace = pod->pod->metadata.namespace;
    dv_str extended = dv_claim_extended(pod->pod);
    struct use *uses;
    size_t n_uses = uses_of(pod, container, arena, &uses);
    const struct dv_claim **v = DV_NEW_ARRAY(arena, const struct dv_claim *, n_uses + 1);
    size_t n = 0;

    for (size_t i = 0; i < n_uses; i++) {
        struct dv_claim_ref ref;

        if (i > 0 && uses[i].entry == uses[i - 1].entry)
            continue;
        if (!dv_claim_resolve(pod->pod, uses[i].entry, &pod->statuses, &ref, err))
            return false;
        if (ref.name.n == 0)
            continue;
        v[n] = dv_claim_find(state, namespace, ref.name);
        if (!v[n++])
            return dv_fail(err, DV_NOT_FOUND, "unable to get information for ResourceClaim %.*s",
                           DV_FMT(ref.name));
    }
    if (dv_map_get(&pod->extended, container->name)) {
        v[n] = dv_claim_find(state, namespace, extended);
        if (!v[n++])
            return dv_fail(err, DV_NOT_FOUND,
                           "unable to get claim info for claim %.*s in namespace %.*s",
                           DV_FMT(extended), DV_FMT(namespace));
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
    struct dv_api_resource_status *entries; /* with room for all */
    size_t n_entries;
    struct dv_map by_name; /* the entries */
};

static bool serves_base(const struct dv_claim_device *device, dv_str request)
{
    return has_request(device, dv_str_slice(request, 0, dv_str_find_char(request, '/')));
}

/* Adds the device to the entry. The first one of an id counts; `ids` has those that are there. */
static void show_device(const struct showing *showing, dv_str driver,
                        const struct dv_claim_device *device, struct dv_map *ids,
                        struct dv_api_resource_status *entry)
{
    dv_str id = device->n_cdi_ids > 0
                    ? device->cdi_ids[0]
                    : dv_str_printf(showing->arena, "%.*s/%.*s/%.*s", DV_FMT(driver),
                                    DV_FMT(device->pool), DV_FMT(device->name));
    dv_str message = DV_STR_NONE;
    enum dv_claim_health health;

    if (dv_map_set(ids, id, entry))
        return;
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
    DV_CLEANUP(dv_map_fini) struct dv_map ids = {0};
    size_t n = 0;

    dv_map_init(&ids);
    for (size_t d = 0; d < claim->record.n_drivers; d++)
        n += claim->record.drivers[d].n_devices;
    entry->resources = DV_NEW_ARRAY(showing->arena, struct dv_api_resource_health, n);
    entry->n_resources = 0;
    for (size_t d = 0; d < claim->record.n_drivers; d++) {
        const struct dv_claim_driver *driver = &claim->record.drivers[d];

        for (size_t k = 0; k < driver->n_devices; k++)
            if (serves_base(&driver->devices[k], request))
                show_device(showing, driver->name, &driver->devices[k], &ids, entry);
    }
}

static struct dv_api_resource_status *entry_of(struct showing *showing, dv_str name)
{
    struct dv_api_resource_status *entry = dv_map_get(&showing->by_name, name);

    if (entry)
        return entry;
    entry = &showing->entries[showing->n_entries++];
    entry->name = name;
    (void)dv_map_set(&showing->by_name, entry->name, entry);
    return entry;
}

/* Takes over what is known; of equal names the first one counts. */
static void show_known(struct showing *showing, const struct dv_api_resource_status *known,
                       size_t n_known)
{
    for (size_t i = 0; i < n_known; i++)
        showing->entries[i] = known[i];
    showing->n_entries = n_known;
    for (size_t i = n_known; i > 0; i--)
        (void)dv_map_set(&showing->by_name, showing->entries[i - 1].name, &showing->entries[i - 1]);
}

/* The claim's name from the pod's status, or else from its spec. */
static dv_str claim_name(const struct dv_claim_lookup *pod, dv_str pod_claim)
{
    const struct dv_api_pod_resource_claim_status *status = dv_map_get(&pod->statuses, pod_claim);
    const struct dv_api_pod_resource_claim *entry = dv_map_get(&pod->entries, pod_claim);
    struct dv_claim_ref ref;
    struct dv_err err;

    if (status && status->resource_claim_name.n > 0)
        return status->resource_claim_name;
    if (entry && dv_claim_resolve(pod->pod, entry, &pod->statuses, &ref, &err))
        return ref.name;
    return DV_STR_NONE;
}

static dv_str status_name(const struct dv_api_container_claim *use, struct dv_arena *arena)
{
    if (use->request.n == 0)
        return dv_str_printf(arena, "claim:%.*s", DV_FMT(use->name));
    return dv_str_printf(arena, "claim:%.*s/%.*s", DV_FMT(use->name), DV_FMT(use->request));
}

void dv_claim_container_status(const struct dv_claim_state *state,
                               const struct dv_claim_lookup *pod,
                               const struct dv_api_container *container,
                               const struct dv_api_resource_status *known, size_t n_known,
                               const struct dv_claim_status_options *options,
                               struct dv_arena *arena, struct dv_api_resource_status **entries,
                               size_t *n_entries)
{
    struct showing showing = {.state = state, .options = options, .arena = arena};
    size_t n = 0;

    dv_map_init(&showing.by_name);
    showing.entries =
        DV_NEW_ARRAY(arena, struct dv_api_resource_status, n_known + container->resources.n_claims);
    show_known(&showing, known, n_known);
    for (size_t i = 0; i < container->resources.n_claims; i++) {
        const struct dv_api_container_claim *use = &container->resources.claims[i];
        dv_str name = claim_name(pod, use->name);
        const struct dv_claim *claim =
            name.n > 0 ? dv_claim_find(state, pod->pod->metadata.namespace, name) : NULL;

        if (claim)
            show_claim(&showing, claim, use->request, entry_of(&showing, status_name(use, arena)));
    }
    dv_map_fini(&showing.by_name);
    for (size_t i = 0; i < showing.n_entries; i++)
        if (showing.entries[i].n_resources > 0)
            showing.entries[n++] = showing.entries[i];
    *entries = showing.entries;
    *n_entries = n;
}
