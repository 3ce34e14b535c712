/* validate_pod_status.c - what is told about a pod's claims and devices. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "resource/checks.h"
#include "resource/pod_checks.h"
#include "resource/resource.h"

#define HEALTH_BYTES_MAX 1024u

static const struct path status_path = {.kind = PATH_NAME, .name = "status"};

static const struct dv_api_pod_resource_claim *find_claim(const struct dv_api_pod *pod, dv_str name)
{
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].name, name))
            return &pod->spec.resource_claims[i];
    return NULL;
}

static void check_claim_statuses(struct dv_problems *problems, const struct dv_api_pod *pod)
{
    struct path path = dv_path_name(&status_path, "resourceClaimStatuses");
    const struct dv_api_pod_resource_claim_status *statuses = pod->status.resource_claim_statuses;

    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++) {
        struct path item = dv_path_index(&path, i);

        if (!find_claim(pod, statuses[i].name))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, "name",
                           dv_bad_str(statuses[i].name),
                           "must match the name of an entry in `spec.resourceClaims`");
        if (statuses[i].resource_claim_name.p)
            dv_check_dns_subdomain(problems, &item, "resourceClaimName",
                                   statuses[i].resource_claim_name);
    }
    if (pod->status.n_resource_claim_statuses > 0)
        dv_check_unique(problems, &path, "name", &statuses[0].name,
                        pod->status.n_resource_claim_statuses, sizeof(statuses[0]));
}

static const struct dv_api_container *find_container(const struct dv_api_pod *pod, dv_str name)
{
    const struct dv_api_pod_spec *spec = &pod->spec;

    for (size_t i = 0; i < spec->n_containers; i++)
        if (dv_str_eq(spec->containers[i].name, name))
            return &spec->containers[i];
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].name, name))
            return &spec->init_containers[i];
    return NULL;
}

static bool asks_for(const struct dv_api_container *container, dv_str resource)
{
    for (size_t i = 0; i < container->resources.n_requests; i++)
        if (dv_str_eq(container->resources.requests[i].key, resource))
            return true;
    return false;
}

static void check_mapping(struct dv_problems *problems, const struct path *path,
                          const struct dv_api_container_extended_resource_request *mapping,
                          const struct dv_api_pod *pod)
{
    const struct dv_api_container *container = find_container(pod, mapping->container_name);

    if (!container)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "containerName",
                       dv_bad_str(mapping->container_name),
                       "must match the name of an entry in `spec.initContainers.name` or "
                       "`spec.containers.name`");
    else if (!asks_for(container, mapping->resource_name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "resourceName",
                       dv_bad_str(mapping->resource_name),
                       "must match the extended resource name of an entry in "
                       "`spec.initContainers.resources` or `spec.containers.resources`");
    dv_check_required(problems, path, "requestName", mapping->request_name, dv_check_dns_label);
}

static bool is_mapped_before(const struct dv_api_container_extended_resource_request *mappings,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_message_eq(&dv_message_container_extended_resource_request, &mappings[i],
                          &mappings[n]))
            return true;
    return false;
}

static void check_extended(struct dv_problems *problems, const struct dv_api_pod *pod,
                           const struct dv_api_pod_extended_resource_claim_status *status)
{
    struct path path = dv_path_name(&status_path, "extendedResourceClaimStatus");
    struct path mappings = dv_path_name(&path, "requestMappings");

    dv_check_required(problems, &path, "resourceClaimName", status->resource_claim_name,
                      dv_check_dns_subdomain);
    if (status->n_request_mappings == 0)
        dv_required(problems, &mappings, NULL);
    for (size_t i = 0; i < status->n_request_mappings; i++) {
        struct path item = dv_path_index(&mappings, i);

        check_mapping(problems, &item, &status->request_mappings[i], pod);
        if (is_mapped_before(status->request_mappings, i))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL,
                           dv_bad_message(&dv_message_container_extended_resource_request,
                                          &status->request_mappings[i], problems->arena),
                           "%s", "");
    }
}

/* Whether the pod uses the claim of that name: by its spec, or by what was made for it. */
static bool uses_claim(const struct dv_api_pod *pod, dv_str name)
{
    const struct dv_api_pod_extended_resource_claim_status *extended =
        pod->status.extended_resource_claim_status;

    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (dv_str_eq(pod->spec.resource_claims[i].resource_claim_name, name))
            return true;
    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++)
        if (dv_str_eq(pod->status.resource_claim_statuses[i].resource_claim_name, name))
            return true;
    return extended && dv_str_eq(extended->resource_claim_name, name);
}

static void check_allocatable(struct dv_problems *problems, const struct path *path,
                              const struct dv_api_node_allocatable_resource_claim_status *status,
                              const struct dv_api_pod *pod)
{
    struct path resources = dv_path_name(path, "resources");

    if (status->resource_claim_name.n == 0)
        dv_required(problems, path, "resourceClaimName");
    else if (!uses_claim(pod, status->resource_claim_name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "resourceClaimName",
                       dv_bad_str(status->resource_claim_name),
                       "must be a claim that the pod refers to");
    if (status->n_containers == 0)
        dv_required(problems, path, "containers");
    if (status->n_resources == 0)
        dv_required(problems, &resources, NULL);
    for (size_t i = 0; i < status->n_resources; i++) {
        struct path item = dv_path_key(&resources, status->resources[i].key);

        if (!dv_is_native_resource_name(status->resources[i].key))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &resources, NULL,
                           dv_bad_str(status->resources[i].key),
                           "must be the name of a resource of the node, not an extended resource");
        dv_check_resource_value(problems, &item, status->resources[i].key,
                                &status->resources[i].value);
    }
}

static void check_health(struct dv_problems *problems, const struct path *path,
                         const struct dv_api_resource_status *status)
{
    static const dv_str states[] = {
        DV_STR_INIT("Healthy"),
        DV_STR_INIT("Unhealthy"),
        DV_STR_INIT("Unknown"),
    };
    struct path resources = dv_path_name(path, "resources");

    for (size_t i = 0; i < status->n_resources; i++) {
        const struct dv_api_resource_health *health = &status->resources[i];
        struct path item = dv_path_index(&resources, i);

        if (health->health.n > 0)
            dv_check_one_of(problems, &item, "health", health->health, states, DV_COUNT(states));
        if (health->message.n > HEALTH_BYTES_MAX)
            dv_too_long(problems, &item, "message", HEALTH_BYTES_MAX);
    }
    if (status->n_resources > 0)
        dv_check_unique(problems, &resources, "resourceID", &status->resources[0].resource_id,
                        status->n_resources, sizeof(status->resources[0]));
}

static void check_device_health(struct dv_problems *problems, const char *name,
                                const struct dv_api_container_status *statuses, size_t n)
{
    struct path path = dv_path_name(&status_path, name);

    for (size_t i = 0; i < n; i++) {
        struct path item = dv_path_index(&path, i);
        struct path all = dv_path_name(&item, "allocatedResourcesStatus");

        for (size_t j = 0; j < statuses[i].n_allocated_resources_status; j++) {
            struct path one = dv_path_index(&all, j);

            check_health(problems, &one, &statuses[i].allocated_resources_status[j]);
        }
    }
}

void dv_check_pod_status(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old)
{
    struct path allocatable = dv_path_name(&status_path, "nodeAllocatableResourceClaimStatuses");
    const struct dv_api_pod_status *status = &pod->status;

    if (!dv_str_eq(pod->spec.node_name, old->spec.node_name))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &status_path, "nodeName", dv_bad_none(),
                       "may not be changed directly");
    if (status->nominated_node_name.n > 0)
        dv_check_dns_subdomain(problems, &status_path, "nominatedNodeName",
                               status->nominated_node_name);
    check_device_health(problems, "containerStatuses", status->container_statuses,
                        status->n_container_statuses);
    check_device_health(problems, "initContainerStatuses", status->init_container_statuses,
                        status->n_init_container_statuses);
    check_claim_statuses(problems, pod);
    if (status->extended_resource_claim_status)
        check_extended(problems, pod, status->extended_resource_claim_status);
    for (size_t i = 0; i < status->n_node_allocatable_resource_claim_statuses; i++) {
        struct path item = dv_path_index(&allocatable, i);

        check_allocatable(problems, &item, &status->node_allocatable_resource_claim_statuses[i],
                          pod);
    }
}
