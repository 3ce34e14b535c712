/* alloc_extended.c - extended resources that device classes serve: the requests of the pod's claim.
 */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "alloc/inventory.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/validate.h"

/* ---- classes by resource ---- */

bool dv_class_serves_before(const struct dv_api_device_class *a,
                            const struct dv_api_device_class *b)
{
    int64_t left = a->metadata.creation_timestamp.seconds;
    int64_t right = b->metadata.creation_timestamp.seconds;

    if (left != right)
        return left > right;
    return dv_str_cmp(a->metadata.name, b->metadata.name) < 0;
}

static void index_classes(struct dv_inventory *inventory)
{
    const struct dv_map_entry *entry;

    dv_map_clear(&inventory->extended);
    inventory->is_extended_current = true;
    for (size_t at = 0; (entry = dv_map_next(&inventory->classes, &at));) {
        struct dv_object *object = entry->value;
        const struct dv_api_device_class *class = object->value;
        const struct dv_object *other;

        if (class->spec.extended_resource_name.n == 0)
            continue;
        other = dv_map_get(&inventory->extended, class->spec.extended_resource_name);
        if (!other || dv_class_serves_before(class, other->value))
            dv_map_set(&inventory->extended, class->spec.extended_resource_name, object);
    }
}

const struct dv_api_device_class *dv_inventory_extended(struct dv_inventory *inventory,
                                                        dv_str resource)
{
    const struct dv_object *class;

    if (dv_str_starts_with(resource, DV_STR(DV_ALLOC_EXTENDED_PREFIX)))
        return dv_inventory_class(
            inventory, dv_str_slice(resource, sizeof(DV_ALLOC_EXTENDED_PREFIX) - 1, resource.n));
    if (!dv_is_extended_resource_name(resource))
        return NULL;
    if (!inventory->is_extended_current)
        index_classes(inventory);
    class = dv_map_get(&inventory->extended, resource);
    return class ? class->value : NULL;
}

/* ---- what containers ask for ---- */

/* One container's amount of one resource. */
struct amount {
    const struct dv_api_container *container;
    size_t index;  /* among all containers, those for initialization first */
    size_t nth;    /* the resource among all that the container requests */
    bool is_short; /* it ends before the others begin */
    int64_t n;
    dv_str request; /* the name of the request that serves it */
};

struct reading {
    struct dv_inventory *inventory;
    struct dv_arena *arena;
    dv_str resource;
    const struct dv_api_device_class *class;
    DV_VEC(struct amount) amounts;
    DV_VEC(struct dv_api_device_request) requests;
    DV_VEC(struct dv_api_container_extended_resource_request) mappings;
};

static bool add_amount(struct reading *reading, const struct dv_api_container *container,
                       size_t index, bool is_short, struct dv_err *err)
{
    const struct dv_api_resource_requirements *resources = &container->resources;

    for (size_t i = 0; i < resources->n_requests; i++) {
        struct amount *amount;
        int64_t n;

        if (!dv_str_eq(resources->requests[i].key, reading->resource))
            continue;
        if (!dv_quantity_to_i64(&resources->requests[i].value, &n) || n < 0)
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "container %.*s: the amount of %.*s is not a whole number",
                           DV_FMT(container->name), DV_FMT(reading->resource));
        if (n == 0)
            continue;
        amount = dv_vec_add_in(&reading->amounts, reading->arena);
        *amount = (struct amount){
            .container = container, .index = index, .nth = i, .is_short = is_short, .n = n};
    }
    return true;
}

static bool gather_amounts(struct reading *reading, const struct dv_api_pod_spec *pod,
                           struct dv_err *err)
{
    dv_vec_clear(&reading->amounts);
    for (size_t i = 0; i < pod->n_init_containers; i++) {
        const struct dv_api_container *container = &pod->init_containers[i];
        bool is_short = !dv_str_eq(container->restart_policy, DV_STR("Always"));

        if (!add_amount(reading, container, i, is_short, err))
            return false;
    }
    for (size_t i = 0; i < pod->n_containers; i++)
        if (!add_amount(reading, &pod->containers[i], pod->n_init_containers + i, false, err))
            return false;
    return true;
}

/* ---- requests ---- */

static dv_str name_of(const struct reading *reading, const struct amount *amount)
{
    return dv_str_printf(reading->arena, "container-%zu-request-%zu", amount->index, amount->nth);
}

static void add_request(struct reading *reading, dv_str name, int64_t n)
{
    struct dv_api_device_request *request = dv_vec_add_in(&reading->requests, reading->arena);

    request->name = name;
    request->exactly = DV_NEW(reading->arena, struct dv_api_exact_device_request);
    request->exactly->device_class_name = reading->class->metadata.name;
    request->exactly->allocation_mode = DV_STR("ExactCount");
    request->exactly->count = n;
}

static void add_mapping(struct reading *reading, const struct amount *amount, dv_str request)
{
    struct dv_api_container_extended_resource_request *mapping =
        dv_vec_add_in(&reading->mappings, reading->arena);

    mapping->container_name = amount->container->name;
    mapping->resource_name = reading->resource;
    mapping->request_name = request;
}

/* Uses again what containers that start later will have; how many are still missing. */
static int64_t reuse(struct reading *reading, const struct amount *amount)
{
    int64_t n_missing = amount->n;

    for (size_t i = 0; i < reading->amounts.n && n_missing > 0; i++) {
        const struct amount *later = &reading->amounts.v[i];

        if (later->is_short || later->index < amount->index)
            continue;
        add_mapping(reading, amount, later->request);
        n_missing -= later->n;
    }
    return n_missing > 0 ? n_missing : 0;
}

/* Containers that end before the others start, one after the other: one request, as large as the
 * largest of them needs, serves all. */
static void add_short(struct reading *reading)
{
    dv_str name = {0};
    int64_t n_most = 0;
    size_t first = reading->mappings.n;

    for (size_t i = 0; i < reading->amounts.n; i++) {
        const struct amount *amount = &reading->amounts.v[i];
        int64_t n_missing;

        if (!amount->is_short)
            continue;
        n_missing = reuse(reading, amount);
        if (n_missing == 0)
            continue;
        add_mapping(reading, amount, DV_STR_NONE);
        if (n_missing > n_most) {
            n_most = n_missing;
            name = name_of(reading, amount);
        }
    }
    if (n_most == 0)
        return;
    for (size_t i = first; i < reading->mappings.n; i++)
        if (reading->mappings.v[i].request_name.n == 0)
            reading->mappings.v[i].request_name = name;
    add_request(reading, name, n_most);
}

static bool read_resource(struct reading *reading, const struct dv_api_pod_spec *pod,
                          struct dv_err *err)
{
    if (!gather_amounts(reading, pod, err))
        return false;
    for (size_t i = 0; i < reading->amounts.n; i++) {
        struct amount *amount = &reading->amounts.v[i];

        if (amount->is_short)
            continue;
        amount->request = name_of(reading, amount);
        add_request(reading, amount->request, amount->n);
        add_mapping(reading, amount, amount->request);
    }
    add_short(reading);
    return true;
}

/* ---- pods ---- */

struct names {
    DV_VEC(dv_str) v;
};

static void add_names(struct names *resources, const struct dv_api_container *containers, size_t n,
                      struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < containers[i].resources.n_requests; j++)
            *dv_vec_add_in(&resources->v, arena) = containers[i].resources.requests[j].key;
}

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp(((const struct dv_api_device_request *)a)->name,
                      ((const struct dv_api_device_request *)b)->name);
}

static bool node_has(const struct dv_quantity_entry *allocatable, size_t n, dv_str resource)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(allocatable[i].key, resource))
            return dv_quantity_sign(&allocatable[i].value) > 0;
    return false;
}

bool dv_extended_read(struct dv_inventory *inventory, const struct dv_api_pod_spec *pod,
                      const struct dv_quantity_entry *allocatable, size_t n_allocatable,
                      struct dv_arena *arena, struct dv_extended *extended, struct dv_err *err)
{
    struct reading reading = {.inventory = inventory, .arena = arena};
    struct names resources = {0};

    add_names(&resources, pod->init_containers, pod->n_init_containers, arena);
    add_names(&resources, pod->containers, pod->n_containers, arena);
    if (resources.v.n > 0)
        qsort(resources.v.v, resources.v.n, sizeof(dv_str), dv_str_compare);
    for (size_t i = 0; i < resources.v.n; i++) {
        reading.resource = resources.v.v[i];
        if (i > 0 && dv_str_eq(reading.resource, resources.v.v[i - 1]))
            continue;
        reading.class = dv_inventory_extended(inventory, reading.resource);
        if (!reading.class || node_has(allocatable, n_allocatable, reading.resource))
            continue;
        if (!read_resource(&reading, pod, err))
            return false;
    }
    if (reading.requests.n > 0)
        qsort(reading.requests.v, reading.requests.n, sizeof(struct dv_api_device_request),
              by_name);
    *extended = (struct dv_extended){reading.requests.v, reading.requests.n, reading.mappings.v,
                                     reading.mappings.n};
    return true;
}
