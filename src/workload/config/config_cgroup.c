/* config_cgroup.c - the cgroup of a pod: its name, its parent, its limits. */
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/workload.h"

#define HUGEPAGES DV_STR("hugepages-")

/* "-" means a level to systemd. */
static dv_str escape(dv_str uid, struct dv_arena *arena)
{
    char *copy = dv_arena_alloc_raw(arena, uid.n, 1);

    for (size_t i = 0; i < uid.n; i++)
        copy[i] = uid.p[i] == '-' ? '_' : uid.p[i];
    return (dv_str){copy, uid.n};
}

dv_str dv_config_cgroup_parent(const struct dv_workload_node *node,
                               const struct dv_workload_pod *pod, struct dv_arena *arena)
{
    dv_str qos = dv_config_qos(pod->pod, arena);
    const char *class = NULL; /* Guaranteed pods have no level of their own */
    dv_str uid;

    if (!node->has_pod_cgroups)
        return DV_STR("");
    if (dv_str_eq(qos, DV_STR("Burstable")))
        class = "burstable";
    else if (dv_str_eq(qos, DV_STR("BestEffort")))
        class = "besteffort";
    if (!node->has_systemd_cgroups)
        return dv_str_printf(arena, "%.*s/kubepods%s%s/pod%.*s", DV_FMT(node->cgroup_root),
                             class ? "/" : "", class ? class : "", DV_FMT(pod->uid));
    uid = escape(pod->uid, arena);
    if (!class)
        return dv_str_printf(arena, "/kubepods.slice/kubepods-pod%.*s.slice", DV_FMT(uid));
    return dv_str_printf(arena, "/kubepods.slice/kubepods-%s.slice/kubepods-%s-pod%.*s.slice",
                         class, class, DV_FMT(uid));
}

/* Whether every container has that limit, or the pod as a whole. */
static bool is_limited(const struct dv_api_pod *pod, dv_str resource)
{
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(pod);
    const struct dv_quantity *limit =
        of_pod ? dv_workload_amount(of_pod->limits, of_pod->n_limits, resource) : NULL;

    if (limit && dv_quantity_sign(limit) != 0)
        return true;
    for (size_t i = 0; i < pod->spec.n_containers + pod->spec.n_init_containers; i++) {
        const struct dv_api_resource_requirements *own =
            i < pod->spec.n_containers
                ? &pod->spec.containers[i].resources
                : &pod->spec.init_containers[i - pod->spec.n_containers].resources;

        limit = dv_workload_amount(own->limits, own->n_limits, resource);
        if (!limit || dv_quantity_sign(limit) == 0)
            return false;
    }
    return true;
}

/* What the pod has of it with its overhead; an overhead makes no limit where there is none. */
static struct dv_quantity whole_amount(const struct dv_api_pod *pod, enum dv_config_side side,
                                       dv_str resource, struct dv_arena *arena)
{
    const struct dv_quantity *overhead =
        dv_workload_amount(pod->spec.overhead, pod->spec.n_overhead, resource);
    struct dv_quantity amount = {0};
    bool is_there = dv_config_pod_amount(pod, side, resource, arena, &amount);

    if (overhead && (side == DV_CONFIG_REQUESTS || (is_there && dv_quantity_sign(&amount) != 0)))
        amount = dv_quantity_add(&amount, overhead, arena);
    return amount;
}

/* Adds the sizes of pages that are not there yet. */
static void add_sizes(struct dv_config_cgroup *cgroup, size_t *size, const struct dv_api_pod *pod,
                      const struct dv_quantity_entry *requests, size_t n, struct dv_arena *arena)
{
    struct {
        struct dv_quantity_entry *v;
        size_t n;
        size_t size;
    } list = {cgroup->hugepages, cgroup->n_hugepages, *size};

    for (size_t i = 0; i < n; i++)
        if (dv_str_starts_with(requests[i].key, HUGEPAGES) &&
            !dv_workload_amount(list.v, list.n, requests[i].key))
            *dv_vec_add_in(&list, arena) = (struct dv_quantity_entry){
                requests[i].key, whole_amount(pod, DV_CONFIG_REQUESTS, requests[i].key, arena)};
    cgroup->hugepages = list.v;
    cgroup->n_hugepages = list.n;
    *size = list.size;
}

static void add_pages(struct dv_config_cgroup *cgroup, const struct dv_api_pod *pod,
                      struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    const struct dv_api_resource_requirements *of_pod = dv_workload_pod_level(pod);
    size_t size = 0;

    if (of_pod)
        add_sizes(cgroup, &size, pod, of_pod->requests, of_pod->n_requests, arena);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_sizes(cgroup, &size, pod, spec->containers[i].resources.requests,
                  spec->containers[i].resources.n_requests, arena);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        add_sizes(cgroup, &size, pod, spec->init_containers[i].resources.requests,
                  spec->init_containers[i].resources.n_requests, arena);
}

struct dv_quantity dv_config_request(const struct dv_api_pod *pod, dv_str resource,
                                     struct dv_arena *arena)
{
    return whole_amount(pod, DV_CONFIG_REQUESTS, resource, arena);
}

void dv_config_cgroup(const struct dv_workload_pod *pod, struct dv_arena *arena,
                      struct dv_config_cgroup *cgroup)
{
    dv_str qos = dv_config_qos(pod->pod, arena);
    struct dv_quantity request = whole_amount(pod->pod, DV_CONFIG_REQUESTS, DV_STR("cpu"), arena);
    struct dv_quantity limit = whole_amount(pod->pod, DV_CONFIG_LIMITS, DV_STR("cpu"), arena);
    struct dv_quantity memory = whole_amount(pod->pod, DV_CONFIG_LIMITS, DV_STR("memory"), arena);
    bool is_guaranteed = dv_str_eq(qos, DV_STR("Guaranteed"));
    bool is_best_effort = dv_str_eq(qos, DV_STR("BestEffort"));

    *cgroup = (struct dv_config_cgroup){
        .cpu_shares = dv_config_shares(is_best_effort ? 0 : dv_workload_milli(&request)),
        .cpu_period_us = DV_CONFIG_PERIOD_US,
    };
    if (is_guaranteed || (!is_best_effort && is_limited(pod->pod, DV_STR("cpu"))))
        cgroup->cpu_quota_us = dv_config_quota_us(dv_workload_milli(&limit));
    if (is_guaranteed || (!is_best_effort && is_limited(pod->pod, DV_STR("memory"))))
        cgroup->memory_bytes = dv_workload_whole(&memory);
    add_pages(cgroup, pod->pod, arena);
}
