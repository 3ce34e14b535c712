/* quota_use.c - what an object uses of each resource that a quota may name. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/quota_use.h"
#include "resource/resource.h"
#include "resource/validate.h"

#define MILLI 1000
/* What a request for all devices counts for: no claim gets more. */
#define DEVICES_MAX 32
#define COUNT_PREFIX "count/"
#define CLASS_SUFFIX ".deviceclass.resource.k8s.io/devices"
#define REQUESTS "requests."
#define LIMITS "limits."
/* More than the names of a pod's containers have together. */
#define NAMES_BYTES_MAX (4u << 20)

/* -- Amounts -------------------------------------------------------------------------------- */

struct dv_quota_amount dv_quota_from_quantity(const struct dv_quantity *quantity)
{
    struct dv_quota_amount amount = {.format = quantity->format};
    int64_t n;

    if (dv_quantity_to_milli_ceil(quantity, &n))
        amount.milli = n;
    else if (dv_quantity_to_i64_ceil(quantity, &n))
        amount.milli = (dv_quota_sum)n * MILLI;
    else /* more than any machine has */
        amount.milli = (dv_quota_sum)INT64_MAX * MILLI;
    return amount;
}

struct dv_quantity dv_quota_to_quantity(struct dv_quota_amount amount, struct dv_arena *arena)
{
    dv_quota_sum whole = amount.milli / MILLI;
    struct dv_quantity quantity;
    struct dv_err err;
    dv_str text;

    if (amount.milli % MILLI == 0 || whole > INT64_MAX / MILLI)
        return dv_quantity_from_i64((int64_t)(whole > INT64_MAX ? INT64_MAX : whole),
                                    amount.format);
    text = dv_str_printf(arena, "%lldm", (long long)amount.milli);
    if (!dv_quantity_parse(text, arena, &quantity, &err))
        quantity = dv_quantity_from_i64((int64_t)whole, amount.format);
    return quantity;
}

static struct dv_quota_amount count_of(int64_t n)
{
    return (struct dv_quota_amount){(dv_quota_sum)n * MILLI, DV_QUANTITY_DECIMAL_SI};
}

static struct dv_quota_amount sum_of(struct dv_quota_amount a, struct dv_quota_amount b)
{
    return (struct dv_quota_amount){a.milli + b.milli, a.milli ? a.format : b.format};
}

static struct dv_quota_amount larger_of(struct dv_quota_amount a, struct dv_quota_amount b)
{
    return b.milli > a.milli ? b : a;
}

/* -- Pods ----------------------------------------------------------------------------------- */

static const struct dv_quantity *find(const struct dv_api_resource_requirements *resources,
                                      const struct dv_quota_resource *asked)
{
    if (!resources)
        return NULL;
    return asked->is_limit
               ? dv_quantity_find(resources->limits, resources->n_limits, asked->of)
               : dv_quantity_find(resources->requests, resources->n_requests, asked->of);
}

static struct dv_quota_amount amount_of(const struct dv_api_resource_requirements *resources,
                                        const struct dv_quota_resource *asked)
{
    const struct dv_quantity *found = find(resources, asked);

    return found ? dv_quota_from_quantity(found) : (struct dv_quota_amount){0};
}

static const struct dv_quantity *overhead_of(const struct dv_api_pod_spec *spec, dv_str resource)
{
    return dv_quantity_find(spec->overhead, spec->n_overhead, resource);
}

/* All containers together, or the init container that needs most beside those before it that stay;
 * what the pod asks for as a whole replaces that. */
static struct dv_quota_amount use_of_spec(const struct dv_api_pod_spec *spec,
                                          const struct dv_quota_resource *asked)
{
    struct dv_quota_amount all = {0};
    struct dv_quota_amount staying = {0};
    struct dv_quota_amount peak = {0};
    const struct dv_quantity *overhead = overhead_of(spec, asked->of);

    for (size_t i = 0; i < spec->n_containers; i++)
        all = sum_of(all, amount_of(&spec->containers[i].resources, asked));
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        const struct dv_api_container *container = &spec->init_containers[i];
        struct dv_quota_amount own = amount_of(&container->resources, asked);

        peak = larger_of(peak, sum_of(own, staying));
        if (dv_str_eq(container->restart_policy, DV_STR("Always")))
            staying = sum_of(staying, own);
    }
    all = larger_of(sum_of(all, staying), peak);
    if (find(spec->resources, asked))
        all = amount_of(spec->resources, asked);
    if (overhead && (!asked->is_limit || all.milli != 0))
        all = sum_of(all, dv_quota_from_quantity(overhead));
    return all;
}

static bool is_finished(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

static struct dv_quota_amount use_of_pod(const struct dv_api_pod *pod,
                                         const struct dv_quota_resource *resource)
{
    if (is_finished(pod))
        return (struct dv_quota_amount){0};
    return resource->type == DV_QUOTA_PODS ? count_of(1) : use_of_spec(&pod->spec, resource);
}

/* -- Claims --------------------------------------------------------------------------------- */

static int64_t devices_of(dv_str mode, int64_t count)
{
    return dv_str_eq(mode, DV_STR("All")) ? DEVICES_MAX : count;
}

/* Of alternatives only one is taken: the largest of the class counts. */
static int64_t devices_of_request(const struct dv_api_device_request *request, dv_str class)
{
    int64_t n = 0;

    if (request->exactly && dv_str_eq(request->exactly->device_class_name, class))
        return devices_of(request->exactly->allocation_mode, request->exactly->count);
    for (size_t i = 0; i < request->n_first_available; i++) {
        const struct dv_api_device_sub_request *one = &request->first_available[i];

        if (dv_str_eq(one->device_class_name, class)) {
            int64_t most = devices_of(one->allocation_mode, one->count);

            n = most > n ? most : n;
        }
    }
    return n;
}

static struct dv_quota_amount use_of_claim(const struct dv_api_resource_claim *claim, dv_str class)
{
    struct dv_quota_amount all = {0};

    for (size_t i = 0; i < claim->spec.devices.n_requests; i++)
        all = sum_of(all, count_of(devices_of_request(&claim->spec.devices.requests[i], class)));
    return all;
}

/* -- Objects -------------------------------------------------------------------------------- */

static bool is_computed(dv_str name)
{
    return dv_str_eq(name, DV_STR("cpu")) || dv_str_eq(name, DV_STR("memory")) ||
           dv_str_eq(name, DV_STR("ephemeral-storage"));
}

static dv_str without(dv_str text, dv_str prefix)
{
    return (dv_str){text.p + prefix.n, text.n - prefix.n};
}

/* Reads the name of one of the requests or limits of containers. */
static bool read_pod_resource(struct dv_quota_resource *resource)
{
    bool is_request = dv_str_starts_with(resource->name, DV_STR(REQUESTS));
    bool is_limit = dv_str_starts_with(resource->name, DV_STR(LIMITS));
    dv_str of = is_request ? without(resource->name, DV_STR(REQUESTS))
                : is_limit ? without(resource->name, DV_STR(LIMITS))
                           : resource->name;
    bool is_huge = !is_limit && dv_str_starts_with(of, DV_STR("hugepages-"));

    if (!is_computed(of) && !is_huge && !(is_request && dv_is_extended_resource_name(of)))
        return false;
    resource->of = of;
    resource->is_limit = is_limit;
    return true;
}

/* The kinds of the core that quotas also know by their resource alone. */
static bool is_core_kind(dv_str name)
{
    static const dv_str names[] = {DV_STR_INIT("configmaps"), DV_STR_INIT("secrets"),
                                   DV_STR_INIT("resourcequotas"), DV_STR_INIT("services")};

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (dv_str_eq(name, names[i]))
            return true;
    return false;
}

struct dv_quota_resource dv_quota_resource_of(dv_str name)
{
    struct dv_quota_resource resource = {.name = name, .type = DV_QUOTA_NOTHING, .of = name};

    if (name.n > sizeof(CLASS_SUFFIX) - 1 && dv_str_ends_with(name, DV_STR(CLASS_SUFFIX)))
        resource.class = dv_str_slice(name, 0, name.n - (sizeof(CLASS_SUFFIX) - 1));
    if (dv_str_starts_with(name, DV_STR(COUNT_PREFIX))) {
        resource.type = DV_QUOTA_OBJECTS;
        resource.of = without(name, DV_STR(COUNT_PREFIX));
    } else if (is_core_kind(name)) {
        resource.type = DV_QUOTA_CORE_OBJECTS;
    } else if (dv_str_eq(name, DV_STR("pods"))) {
        resource.type = DV_QUOTA_PODS;
    } else if (read_pod_resource(&resource)) {
        resource.type = DV_QUOTA_POD_RESOURCES;
    }
    return resource;
}

/* Whether the text is "RESOURCE.GROUP" of the kind. */
static bool is_kind(const struct dv_kind *kind, dv_str text)
{
    dv_str group = kind->versions[0].group;
    dv_str rest;

    if (!dv_str_starts_with(text, kind->plural))
        return false;
    rest = without(text, kind->plural);
    if (group.n == 0)
        return rest.n == 0;
    return rest.n > 0 && rest.p[0] == '.' && dv_str_eq(without(rest, DV_STR(".")), group);
}

/* Whether the resource is how many objects of the kind there are. */
static bool is_count(const struct dv_kind *kind, const struct dv_quota_resource *resource)
{
    if (resource->type == DV_QUOTA_OBJECTS)
        return is_kind(kind, resource->of);
    return resource->type == DV_QUOTA_CORE_OBJECTS && kind->versions[0].group.n == 0 &&
           dv_str_eq(kind->plural, resource->of);
}

bool dv_quota_counts(const struct dv_kind *kind, const struct dv_quota_resource *resource)
{
    if (!kind->is_namespaced)
        return false;
    if (is_count(kind, resource))
        return true;
    if (kind->id == DV_KIND_POD)
        return resource->type == DV_QUOTA_PODS || resource->type == DV_QUOTA_POD_RESOURCES;
    return kind->id == DV_KIND_CLAIM && resource->class.n > 0;
}

struct dv_quota_amount dv_quota_use(const struct dv_kind *kind, const void *value,
                                    const struct dv_quota_resource *resource)
{
    if (!dv_quota_counts(kind, resource))
        return (struct dv_quota_amount){0};
    if (is_count(kind, resource))
        return count_of(1);
    return kind->id == DV_KIND_POD ? use_of_pod(value, resource)
                                   : use_of_claim(value, resource->class);
}

/* -- What containers have to say ------------------------------------------------------------ */

/* A quota of these is only worth something when every container says what it needs. */
static bool has_to_be_said(const struct dv_quota_resource *asked)
{
    return asked->type == DV_QUOTA_POD_RESOURCES &&
           (dv_str_eq(asked->of, DV_STR("cpu")) || dv_str_eq(asked->of, DV_STR("memory")));
}

/* Lists the containers that say nothing, sorted and each once. */
static dv_str list_silent(const struct dv_api_pod_spec *spec, const struct dv_quota_resource *asked,
                          struct dv_arena *arena)
{
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, spec->n_containers + spec->n_init_containers);
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    size_t n = 0;

    dv_buf_init(&text, NAMES_BYTES_MAX);
    for (size_t i = 0; i < spec->n_containers; i++)
        if (!find(&spec->containers[i].resources, asked))
            names[n++] = spec->containers[i].name;
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (!find(&spec->init_containers[i].resources, asked))
            names[n++] = spec->init_containers[i].name;
    if (n > 0)
        qsort(names, n, sizeof(names[0]), dv_str_compare);
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(&text, i > 0 ? "," : "");
        dv_buf_add(&text, names[i]);
    }
    return dv_str_copy(dv_buf_str(&text), arena);
}

dv_str dv_quota_missing(const void *pod, const struct dv_quota_resource *const *resources, size_t n,
                        struct dv_arena *arena)
{
    const struct dv_api_pod *value = pod;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, NAMES_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        dv_str silent;

        if (!has_to_be_said(resources[i]))
            continue;
        silent = list_silent(&value->spec, resources[i], arena);
        if (silent.n > 0)
            dv_buf_printf(&text, "%s%.*s for: %.*s", text.n > 0 ? "; " : "",
                          DV_FMT(resources[i]->name), DV_FMT(silent));
    }
    return dv_str_copy(dv_buf_str(&text), arena);
}
