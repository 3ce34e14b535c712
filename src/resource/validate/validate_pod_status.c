/* validate_pod_status.c - what is told about a pod's claims and devices. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"

#define HEALTH_BYTES_MAX 1024u

static const struct dv_field_path status_path = {.kind = PATH_NAME, .name = "status"};

static void check_claim_statuses(struct dv_problems *problems, const struct dv_api_pod *pod)
{
    struct dv_field_path path = dv_path_name(&status_path, "resourceClaimStatuses");
    const struct dv_api_pod_resource_claim_status *statuses = pod->status.resource_claim_statuses;
    DV_CLEANUP(dv_map_fini) struct dv_map claims;

    dv_map_init(&claims);
    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        (void)dv_map_set(&claims, pod->spec.resource_claims[i].name, &pod->spec.resource_claims[i]);
    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        if (!dv_map_get(&claims, statuses[i].name))
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

/* Indexes the containers by name; of two with one name the first counts, and containers before init
 * containers. */
static void index_containers(const struct dv_api_pod_spec *spec, struct dv_map *containers)
{
    for (size_t i = spec->n_init_containers; i > 0; i--)
        (void)dv_map_set(containers, spec->init_containers[i - 1].name,
                         &spec->init_containers[i - 1]);
    for (size_t i = spec->n_containers; i > 0; i--)
        (void)dv_map_set(containers, spec->containers[i - 1].name, &spec->containers[i - 1]);
}

static bool asks_for(const struct dv_api_container *container, dv_str resource)
{
    const struct dv_api_resource_requirements *resources = &container->resources;
    const struct dv_quantity_entry key = {.key = resource};

    return resources->n_requests > 0 && bsearch(&key, resources->requests, resources->n_requests,
                                                sizeof(key), dv_str_compare) != NULL;
}

static void check_mapping(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_container_extended_resource_request *mapping,
                          const struct dv_map *containers)
{
    const struct dv_api_container *container = dv_map_get(containers, mapping->container_name);

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

/* A text that is equal for equal mappings. */
static dv_str mapping_key(const struct dv_api_container_extended_resource_request *mapping,
                          struct dv_arena *arena)
{
    return dv_str_printf(arena, "%zu %zu %.*s%.*s%.*s", mapping->container_name.n,
                         mapping->resource_name.n, DV_FMT(mapping->container_name),
                         DV_FMT(mapping->resource_name), DV_FMT(mapping->request_name));
}

static void check_extended(struct dv_problems *problems, const struct dv_api_pod *pod,
                           const struct dv_api_pod_extended_resource_claim_status *status)
{
    struct dv_field_path path = dv_path_name(&status_path, "extendedResourceClaimStatus");
    struct dv_field_path mappings = dv_path_name(&path, "requestMappings");
    DV_CLEANUP(dv_map_fini) struct dv_map containers;
    DV_CLEANUP(dv_map_fini) struct dv_map seen;

    dv_map_init(&containers);
    dv_map_init(&seen);
    index_containers(&pod->spec, &containers);
    dv_check_required(problems, &path, "resourceClaimName", status->resource_claim_name,
                      dv_check_dns_subdomain);
    if (status->n_request_mappings == 0)
        dv_required(problems, &mappings, NULL);
    for (size_t i = 0; i < status->n_request_mappings; i++) {
        struct dv_api_container_extended_resource_request *mapping = &status->request_mappings[i];
        struct dv_field_path item = dv_path_index(&mappings, i);

        check_mapping(problems, &item, mapping, &containers);
        if (dv_map_set(&seen, mapping_key(mapping, problems->arena), mapping))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL,
                           dv_bad_message(&dv_message_container_extended_resource_request, mapping,
                                          problems->arena),
                           "%s", "");
    }
}

/* Indexes the claims that the pod uses by name: those in its spec, and those that were made
 * for it. */
static void index_used_claims(const struct dv_api_pod *pod, struct dv_map *claims)
{
    struct dv_api_pod_extended_resource_claim_status *extended =
        pod->status.extended_resource_claim_status;

    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        (void)dv_map_set(claims, pod->spec.resource_claims[i].resource_claim_name,
                         &pod->spec.resource_claims[i]);
    for (size_t i = 0; i < pod->status.n_resource_claim_statuses; i++)
        (void)dv_map_set(claims, pod->status.resource_claim_statuses[i].resource_claim_name,
                         &pod->status.resource_claim_statuses[i]);
    if (extended)
        (void)dv_map_set(claims, extended->resource_claim_name, extended);
}

static void check_allocatable(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_node_allocatable_resource_claim_status *status,
                              const struct dv_map *claims)
{
    struct dv_field_path resources = dv_path_name(path, "resources");

    if (status->resource_claim_name.n == 0)
        dv_required(problems, path, "resourceClaimName");
    else if (!dv_map_get(claims, status->resource_claim_name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "resourceClaimName",
                       dv_bad_str(status->resource_claim_name),
                       "must be a claim that the pod refers to");
    if (status->n_containers == 0)
        dv_required(problems, path, "containers");
    if (status->n_resources == 0)
        dv_required(problems, &resources, NULL);
    for (size_t i = 0; i < status->n_resources; i++) {
        struct dv_field_path item = dv_path_key(&resources, status->resources[i].key);

        if (!dv_is_native_resource_name(status->resources[i].key))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &resources, NULL,
                           dv_bad_str(status->resources[i].key),
                           "must be the name of a resource of the node, not an extended resource");
        dv_check_resource_value(problems, &item, status->resources[i].key,
                                &status->resources[i].value);
    }
}

static void check_health(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_resource_status *status)
{
    static const dv_str states[] = {
        DV_STR_INIT("Healthy"),
        DV_STR_INIT("Unhealthy"),
        DV_STR_INIT("Unknown"),
    };
    struct dv_field_path resources = dv_path_name(path, "resources");

    for (size_t i = 0; i < status->n_resources; i++) {
        const struct dv_api_resource_health *health = &status->resources[i];
        struct dv_field_path item = dv_path_index(&resources, i);

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
    struct dv_field_path path = dv_path_name(&status_path, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        struct dv_field_path all = dv_path_name(&item, "allocatedResourcesStatus");

        for (size_t j = 0; j < statuses[i].n_allocated_resources_status; j++) {
            struct dv_field_path one = dv_path_index(&all, j);

            check_health(problems, &one, &statuses[i].allocated_resources_status[j]);
        }
    }
}

void dv_check_pod_status(struct dv_problems *problems, const struct dv_api_pod *pod,
                         const struct dv_api_pod *old)
{
    struct dv_field_path allocatable =
        dv_path_name(&status_path, "nodeAllocatableResourceClaimStatuses");
    const struct dv_api_pod_status *status = &pod->status;
    struct dv_map claims;

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
    if (status->n_node_allocatable_resource_claim_statuses == 0)
        return;
    dv_map_init(&claims);
    index_used_claims(pod, &claims);
    for (size_t i = 0; i < status->n_node_allocatable_resource_claim_statuses; i++) {
        struct dv_field_path item = dv_path_index(&allocatable, i);

        check_allocatable(problems, &item, &status->node_allocatable_resource_claim_statuses[i],
                          &claims);
    }
    dv_map_fini(&claims);
}
