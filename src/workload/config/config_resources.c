/* config_resources.c - CPU and memory as the kernel counts them: shares, quotas, scores. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "number/number.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

/* The kernel's limits of cpu.shares, and of a quota. */
#define SHARES_MIN 2
#define SHARES_MAX 262144
#define SHARES_PER_CPU 1024
#define QUOTA_MIN_US 1000
#define MILLI 1000

/* Scores of processes for the kernel's out-of-memory killer. */
#define SCORE_GUARANTEED (-997)
#define SCORE_BEST_EFFORT 1000
#define SCORE_MIN (SCORE_BEST_EFFORT + SCORE_GUARANTEED)
#define SCORE_MAX (SCORE_BEST_EFFORT - 1)

#define HUGEPAGES DV_STR("hugepages-")

uint64_t dv_config_shares(int64_t milli_cpu)
{
    int64_t shares;

    if (__builtin_mul_overflow(milli_cpu, SHARES_PER_CPU, &shares))
        return milli_cpu < 0 ? SHARES_MIN : SHARES_MAX;
    shares /= MILLI;
    if (shares < SHARES_MIN)
        return SHARES_MIN;
    return shares > SHARES_MAX ? SHARES_MAX : (uint64_t)shares;
}

int64_t dv_config_quota_us(int64_t milli_cpu)
{
    int64_t quota;

    if (milli_cpu == 0)
        return 0;
    if (__builtin_mul_overflow(milli_cpu, DV_CONFIG_PERIOD_US, &quota))
        return milli_cpu < 0 ? QUOTA_MIN_US : INT64_MAX;
    quota /= MILLI;
    return quota < QUOTA_MIN_US ? QUOTA_MIN_US : quota;
}

/* ---- sums over the containers of a pod ---- */

/* An amount that may be absent. */
struct amount {
    struct dv_quantity value;
    bool is_there;
};

static void add(struct amount *sum, const struct amount *more, struct dv_arena *arena)
{
    if (!more->is_there)
        return;
    sum->value = sum->is_there ? dv_quantity_add(&sum->value, &more->value, arena) : more->value;
    sum->is_there = true;
}

static void raise_to(struct amount *most, const struct amount *other)
{
    if (other->is_there && (!most->is_there || dv_quantity_cmp(&other->value, &most->value) > 0))
        *most = *other;
}

static const struct dv_quantity *find(const struct dv_api_resource_requirements *resources,
                                      enum dv_config_side side, dv_str resource)
{
    return side == DV_CONFIG_LIMITS
               ? dv_workload_amount(resources->limits, resources->n_limits, resource)
               : dv_workload_amount(resources->requests, resources->n_requests, resource);
}

static struct amount of_container(const struct dv_api_container *container,
                                  enum dv_config_side side, dv_str resource)
{
    const struct dv_quantity *found = find(&container->resources, side, resource);

    return found ? (struct amount){*found, true} : (struct amount){0};
}

static bool is_sidecar(const struct dv_api_container *init)
{
    return dv_str_eq(init->restart_policy, DV_STR("Always"));
}

/* Sums an amount over the pod's containers: all that run together, or the init container that has
 * more. False: none of them has it. */
static bool sum_of(const struct dv_api_pod *pod, enum dv_config_side side, dv_str resource,
                   struct dv_arena *arena, struct dv_quantity *sum)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    struct amount total = {0};
    struct amount sidecars = {0};
    struct amount most = {0}; /* while init containers run */

    for (size_t i = 0; i < spec->n_containers; i++) {
        struct amount own = of_container(&spec->containers[i], side, resource);

        add(&total, &own, arena);
    }
    for (size_t i = 0; i < spec->n_init_containers; i++) {
        struct amount own = of_container(&spec->init_containers[i], side, resource);

        if (is_sidecar(&spec->init_containers[i])) {
            add(&total, &own, arena);
            add(&sidecars, &own, arena);
            own = sidecars;
        } else {
            add(&own, &sidecars, arena);
        }
        raise_to(&most, &own);
    }
    raise_to(&total, &most);
    if (total.is_there)
        *sum = total.value;
    return total.is_there;
}

bool dv_config_pod_amount(const struct dv_api_pod *pod, enum dv_config_side side, dv_str resource,
                          struct dv_arena *arena, struct dv_quantity *amount)
{
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(pod);
    const struct dv_quantity *found = of_pod ? find(of_pod, side, resource) : NULL;

    if (!found)
        return sum_of(pod, side, resource, arena, amount);
    *amount = *found;
    return true;
}

/* ---- messages ---- */

/* Makes what all three kinds have. `request` may be NULL: then the limit counts. */
static CriV1__LinuxContainerResources *make(const struct dv_workload_node *node,
                                            const struct dv_quantity *request,
                                            const struct dv_quantity *limit,
                                            const struct dv_quantity *memory_limit,
                                            struct dv_arena *arena)
{
    CriV1__LinuxContainerResources *made = DV_NEW(arena, CriV1__LinuxContainerResources);
    /* The kernel ends all processes of a container that is out of memory, not only one. */
    static const struct dv_str_entry unified[] = {
        {DV_STR_INIT("memory.oom.group"), DV_STR_INIT("1")},
    };

    *made = (CriV1__LinuxContainerResources)CRI_V1__LINUX_CONTAINER_RESOURCES__INIT;
    made->cpu_shares = (int64_t)dv_config_shares(dv_workload_milli(request ? request : limit));
    made->cpu_period = DV_CONFIG_PERIOD_US;
    made->cpu_quota = dv_config_quota_us(dv_workload_milli(limit));
    made->memory_limit_in_bytes = dv_workload_whole(memory_limit);
    if (node->cgroup_version == 2) {
        made->n_unified = 1;
        made->unified = dv_config_map(&cri_v1__linux_container_resources__unified_entry__descriptor,
                                      unified, 1, arena);
    }
    return made;
}

CriV1__LinuxContainerResources *dv_config_sandbox_resources(const struct dv_workload_node *node,
                                                            const struct dv_workload_pod *pod,
                                                            struct dv_arena *arena)
{
    struct dv_quantity request;
    struct dv_quantity limit;
    struct dv_quantity memory;
    bool has_request =
        dv_config_pod_amount(pod->pod, DV_CONFIG_REQUESTS, DV_STR("cpu"), arena, &request);
    bool has_limit = dv_config_pod_amount(pod->pod, DV_CONFIG_LIMITS, DV_STR("cpu"), arena, &limit);
    bool has_memory =
        dv_config_pod_amount(pod->pod, DV_CONFIG_LIMITS, DV_STR("memory"), arena, &memory);

    return make(node, has_request ? &request : NULL, has_limit ? &limit : NULL,
                has_memory ? &memory : NULL, arena);
}

CriV1__LinuxContainerResources *dv_config_overhead(const struct dv_workload_node *node,
                                                   const struct dv_workload_pod *pod,
                                                   struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    const struct dv_quantity *cpu;
    const struct dv_quantity *memory;

    if (!spec->overhead) {
        CriV1__LinuxContainerResources *none = DV_NEW(arena, CriV1__LinuxContainerResources);

        *none = (CriV1__LinuxContainerResources)CRI_V1__LINUX_CONTAINER_RESOURCES__INIT;
        return none;
    }
    cpu = dv_workload_amount(spec->overhead, spec->n_overhead, DV_STR("cpu"));
    memory = dv_workload_amount(spec->overhead, spec->n_overhead, DV_STR("memory"));
    return make(node, cpu, cpu, memory, arena);
}

/* The container's own limit, or that of the pod as a whole where it has none. */
static const struct dv_quantity *limit_of(const struct dv_config_input *input, dv_str resource)
{
    const struct dv_quantity *own = find(&input->container->resources, DV_CONFIG_LIMITS, resource);
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(input->pod->pod);

    if (of_pod && (!own || dv_quantity_sign(own) == 0))
        return find(of_pod, DV_CONFIG_LIMITS, resource);
    return own;
}

/* ---- out of memory ---- */

static int64_t memory_request(const struct dv_api_container *container)
{
    return dv_workload_whole(find(&container->resources, DV_CONFIG_REQUESTS, DV_STR("memory")));
}

/* What the pod as a whole requests beyond its containers, for each of them. */
static int64_t spare_request(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(pod);
    const struct dv_quantity *whole =
        of_pod ? find(of_pod, DV_CONFIG_REQUESTS, DV_STR("memory")) : NULL;
    size_t n = pod->spec.n_containers + pod->spec.n_init_containers;
    struct dv_quantity sum = {0};
    int64_t spare;

    if (!whole || dv_quantity_sign(whole) == 0 || n == 0)
        return 0;
    (void)sum_of(pod, DV_CONFIG_REQUESTS, DV_STR("memory"), arena, &sum); /* none is 0 */
    if (__builtin_sub_overflow(dv_workload_whole(whole), dv_workload_whole(&sum), &spare))
        return 0;
    return spare / (int64_t)n;
}

/* 1000 without a request, down to 0 when it is all memory of the node, and less. */
static int64_t score_for(int64_t request, int64_t capacity)
{
    int64_t thousandfold;

    if (__builtin_mul_overflow(request, 1000, &thousandfold))
        return request < 0 ? SCORE_BEST_EFFORT : 0;
    return SCORE_BEST_EFFORT - thousandfold / capacity;
}

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t smallest_request(const struct dv_api_pod_spec *spec)
{
    int64_t smallest = INT64_MAX;

    for (size_t i = 0; i < spec->n_containers; i++) {
        int64_t request = memory_request(&spec->containers[i]);

        smallest = request < smallest ? request : smallest;
    }
    return smallest;
}

static int64_t oom_score(const struct dv_config_input *input, struct dv_arena *arena)
{
    const struct dv_api_pod *pod = input->pod->pod;
    int64_t capacity = dv_workload_whole(
        dv_workload_amount(input->node->capacity, input->node->n_capacity, DV_STR("memory")));
    dv_str qos = dv_config_qos(pod, arena);
    int64_t spare;
    int64_t score;

    if (dv_str_eq(pod->spec.priority_class_name, DV_STR("system-node-critical")) ||
        dv_str_eq(qos, DV_STR("Guaranteed")))
        return SCORE_GUARANTEED;
    if (dv_str_eq(qos, DV_STR("BestEffort")))
        return SCORE_BEST_EFFORT;
    if (capacity <= 0) /* not known yet */
        return SCORE_MAX;
    spare = spare_request(pod, arena);
    score = score_for(add_clamped(memory_request(input->container), spare), capacity);
    /* A sidecar must not go before the containers that need it. */
    if (input->kind == DV_WORKLOAD_SIDECAR && pod->spec.n_containers > 0) {
        int64_t of_others = score_for(add_clamped(smallest_request(&pod->spec), spare), capacity);

        score = of_others < score ? of_others : score;
    }
    if (score < SCORE_MIN)
        return SCORE_MIN;
    return score > SCORE_MAX ? SCORE_MAX : score;
}

/* ---- huge pages ---- */

/* Prints the size of pages as cgroups do: "2MB" for "hugepages-2Mi". False: not such a size. */
static bool page_size(dv_str resource, struct dv_arena *arena, dv_str *size)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    struct dv_quantity quantity;
    struct dv_err err;
    int64_t bytes;
    size_t unit = 0;

    if (!dv_str_starts_with(resource, HUGEPAGES) ||
        !dv_quantity_parse(dv_str_slice(resource, HUGEPAGES.n, resource.n), arena, &quantity, &err))
        return false;
    bytes = dv_workload_whole(&quantity);
    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    *size = dv_str_printf(arena, "%lld%s", (long long)bytes, units[unit]);
    return bytes > 0;
}

static void limit_pages(CriV1__LinuxContainerResources *made,
                        const struct dv_quantity_entry *limits, size_t n_limits,
                        struct dv_arena *arena)
{
    for (size_t i = 0; i < n_limits; i++) {
        int64_t bytes = dv_workload_whole(&limits[i].value);
        dv_str size;

        if (!page_size(limits[i].key, arena, &size))
            continue;
        for (size_t j = 0; j < made->n_hugepage_limits; j++)
            if (dv_str_eq(dv_str_from_c(made->hugepage_limits[j]->page_size), size))
                made->hugepage_limits[j]->limit = bytes > 0 ? (uint64_t)bytes : 0;
    }
}

/* Every size that the host has is limited, to nothing unless the pod asks for it. */
static void add_pages(CriV1__LinuxContainerResources *made, const struct dv_config_input *input,
                      struct dv_arena *arena)
{
    const struct dv_strs *sizes = &input->node->hugepage_sizes;
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(input->pod->pod);
    const struct dv_api_resource_requirements *own = &input->container->resources;

    made->n_hugepage_limits = sizes->n;
    made->hugepage_limits = DV_NEW_ARRAY(arena, CriV1__HugepageLimit *, sizes->n);
    for (size_t i = 0; i < sizes->n; i++) {
        made->hugepage_limits[i] = DV_NEW(arena, CriV1__HugepageLimit);
        *made->hugepage_limits[i] = (CriV1__HugepageLimit)CRI_V1__HUGEPAGE_LIMIT__INIT;
        made->hugepage_limits[i]->page_size = dv_str_to_c(sizes->v[i], arena);
    }
    if (of_pod)
        limit_pages(made, of_pod->limits, of_pod->n_limits, arena);
    limit_pages(made, own->limits, own->n_limits, arena);
}

/* No container swaps. */
static void forbid_swap(CriV1__LinuxContainerResources *made, const struct dv_workload_node *node,
                        struct dv_arena *arena)
{
    static const struct dv_str_entry unified[] = {
        {DV_STR_INIT("memory.oom.group"), DV_STR_INIT("1")},
        {DV_STR_INIT("memory.swap.max"),  DV_STR_INIT("0")},
    };

    if (!node->has_swap_controller)
        return;
    if (node->cgroup_version == 2) {
        made->n_unified = 2;
        made->unified = dv_config_map(&cri_v1__linux_container_resources__unified_entry__descriptor,
                                      unified, 2, arena);
    } else {
        made->memory_swap_limit_in_bytes = made->memory_limit_in_bytes;
    }
}

CriV1__LinuxContainerResources *dv_config_resources(const struct dv_config_input *input,
                                                    struct dv_arena *arena)
{
    CriV1__LinuxContainerResources *made =
        make(input->node, find(&input->container->resources, DV_CONFIG_REQUESTS, DV_STR("cpu")),
             limit_of(input, DV_STR("cpu")), limit_of(input, DV_STR("memory")), arena);

    made->oom_score_adj = oom_score(input, arena);
    add_pages(made, input, arena);
    forbid_swap(made, input->node, arena);
    return made;
}

dv_str dv_config_qos(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    return pod->status.qos_class.n > 0 ? pod->status.qos_class : dv_pod_qos_class(pod, arena);
}
