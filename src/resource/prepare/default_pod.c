/* default_pod.c - the defaults of pods, without their volumes. */
#include "resource/prepare/default.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "resource/image.h"
#include "resource/resource.h"

static const bool yes = true;
static const bool no = false;

void dv_default_field_ref(struct dv_api_object_field_selector *ref)
{
    if (ref)
        dv_default_str(&ref->api_version, DV_STR("v1"));
}

dv_str dv_default_pull_policy(dv_str image)
{
    return dv_image_is_latest(image) ? DV_STR("Always") : DV_STR("IfNotPresent");
}

static void default_http_get(struct dv_api_http_get_action *get)
{
    if (!get)
        return;
    dv_default_str(&get->path, DV_STR("/"));
    dv_default_str(&get->scheme, DV_STR("HTTP"));
}

static void default_int(int64_t *number, int64_t value)
{
    if (*number == 0)
        *number = value;
}

static void default_probe(struct dv_api_probe *probe)
{
    if (!probe)
        return;
    default_int(&probe->timeout_seconds, 1);
    default_int(&probe->period_seconds, 10);
    default_int(&probe->success_threshold, 1);
    default_int(&probe->failure_threshold, 3);
    default_http_get(probe->probe_handler.http_get);
    if (probe->probe_handler.grpc && !probe->probe_handler.grpc->service.p)
        probe->probe_handler.grpc->service = DV_STR("");
}

static void default_lifecycle(struct dv_api_lifecycle *lifecycle)
{
    if (lifecycle && lifecycle->post_start)
        default_http_get(lifecycle->post_start->http_get);
    if (lifecycle && lifecycle->pre_stop)
        default_http_get(lifecycle->pre_stop->http_get);
}

static void default_env(struct dv_api_env_var *env, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dv_api_env_var_source *from = env[i].value_from;

        if (!from)
            continue;
        dv_default_field_ref(from->field_ref);
        if (from->file_key_ref && !from->file_key_ref->optional)
            from->file_key_ref->optional = &no;
    }
}

static void default_container(struct dv_api_container *container, struct dv_arena *arena)
{
    struct dv_api_resource_requirements *resources = &container->resources;

    if (container->image_pull_policy.n == 0)
        container->image_pull_policy = dv_default_pull_policy(container->image);
    dv_default_str(&container->termination_message_path, DV_STR("/dev/termination-log"));
    dv_default_str(&container->termination_message_policy, DV_STR("File"));
    for (size_t i = 0; i < container->n_ports; i++)
        dv_default_str(&container->ports[i].protocol, DV_STR("TCP"));
    default_env(container->env, container->n_env);
    dv_default_quantities(resources->limits, resources->n_limits, arena);
    dv_default_quantities(resources->requests, resources->n_requests, arena);
    default_probe(container->liveness_probe);
    default_probe(container->readiness_probe);
    default_probe(container->startup_probe);
    default_lifecycle(container->lifecycle);
}

/* Requests what is limited and not requested. Both lists are sorted, and so is the result. */
static void default_requests(struct dv_api_resource_requirements *resources, struct dv_arena *arena)
{
    const struct dv_quantity_entry *limits = resources->limits;
    const struct dv_quantity_entry *requests = resources->requests;
    struct dv_quantity_entry *all;
    size_t n = 0;
    size_t from = 0;

    if (resources->n_limits == 0)
        return;
    all =
        DV_NEW_ARRAY(arena, struct dv_quantity_entry, resources->n_limits + resources->n_requests);
    for (size_t i = 0; i < resources->n_limits; i++) {
        while (from < resources->n_requests && dv_str_cmp(requests[from].key, limits[i].key) < 0)
            all[n++] = requests[from++];
        if (from == resources->n_requests || !dv_str_eq(requests[from].key, limits[i].key))
            all[n++] = limits[i];
    }
    while (from < resources->n_requests)
        all[n++] = requests[from++];
    resources->requests = all;
    resources->n_requests = n;
}

static void default_host_ports(struct dv_api_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < containers[i].n_ports; j++)
            if (containers[i].ports[j].host_port == 0)
                containers[i].ports[j].host_port = containers[i].ports[j].container_port;
}

/* What a pod has and a template for pods does not: requests of what is limited, and ports of the
 * host. */
static void default_pod_containers(struct dv_api_container *containers, size_t n,
                                   bool is_host_network, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++)
        default_requests(&containers[i].resources, arena);
    if (is_host_network)
        default_host_ports(containers, n);
}

static void default_status(struct dv_api_pod_status *status, struct dv_arena *arena)
{
    struct {
        struct dv_api_container_status *v;
        size_t n;
    } lists[] = {
        {status->init_container_statuses,      status->n_init_container_statuses     },
        {status->container_statuses,           status->n_container_statuses          },
        {status->ephemeral_container_statuses, status->n_ephemeral_container_statuses},
    };

    for (size_t i = 0; i < DV_COUNT(lists); i++)
        for (size_t j = 0; j < lists[i].n; j++) {
            struct dv_api_container_status *container = &lists[i].v[j];

            dv_default_quantities(container->allocated_resources, container->n_allocated_resources,
                                  arena);
            if (!container->resources)
                continue;
            dv_default_quantities(container->resources->limits, container->resources->n_limits,
                                  arena);
            dv_default_quantities(container->resources->requests, container->resources->n_requests,
                                  arena);
        }
}

/* serviceAccount is the old name of serviceAccountName. */
static void default_service_account(struct dv_api_pod_spec *spec)
{
    dv_default_str(&spec->service_account_name, spec->service_account);
    spec->service_account = spec->service_account_name;
}

/* podIP is the first of podIPs: where they differ, podIP counts. */
static void default_pod_ips(struct dv_api_pod_status *status, struct dv_arena *arena)
{
    if (status->pod_ip.n > 0 &&
        (status->n_pod_i_ps == 0 || !dv_str_eq(status->pod_i_ps[0].ip, status->pod_ip))) {
        status->pod_i_ps = DV_NEW(arena, struct dv_api_pod_ip);
        status->pod_i_ps[0].ip = status->pod_ip;
        status->n_pod_i_ps = 1;
    }
    if (status->n_pod_i_ps > 0)
        status->pod_ip = status->pod_i_ps[0].ip;
}

void dv_default_pod_spec(struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    static const int64_t grace_s = 30;
    static const int64_t shortest_s = 1; /* what a negative one has always meant */

    for (size_t i = 0; i < spec->n_volumes; i++)
        dv_default_volume(&spec->volumes[i], arena);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        default_container(&spec->init_containers[i], arena);
    for (size_t i = 0; i < spec->n_containers; i++)
        default_container(&spec->containers[i], arena);
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        default_container(&spec->ephemeral_containers[i].ephemeral_container_common, arena);
    dv_default_quantities(spec->overhead, spec->n_overhead, arena);
    dv_default_str(&spec->dns_policy, DV_STR("ClusterFirst"));
    dv_default_str(&spec->restart_policy, DV_STR("Always"));
    dv_default_str(&spec->scheduler_name, DV_STR("default-scheduler"));
    if (!spec->security_context)
        spec->security_context = DV_NEW(arena, struct dv_api_pod_security_context);
    if (!spec->termination_grace_period_seconds)
        spec->termination_grace_period_seconds = &grace_s;
    else if (*spec->termination_grace_period_seconds < 0)
        spec->termination_grace_period_seconds = &shortest_s;
    default_service_account(spec);
}

void dv_default_pod(struct dv_api_pod *pod, struct dv_arena *arena)
{
    struct dv_api_pod_spec *spec = &pod->spec;

    dv_default_pod_spec(spec, arena);
    default_pod_containers(spec->init_containers, spec->n_init_containers, spec->host_network,
                           arena);
    default_pod_containers(spec->containers, spec->n_containers, spec->host_network, arena);
    if (!spec->enable_service_links)
        spec->enable_service_links = &yes;
    default_status(&pod->status, arena);
    default_pod_ips(&pod->status, arena);
}
