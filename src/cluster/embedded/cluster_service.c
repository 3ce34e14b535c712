/* cluster_service.c - addresses of services: each has one of its own, though nothing forwards what
 * is sent there. Charts and their tools wait for it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "cluster/embedded/cluster_operation.h"
#include "cluster/embedded/cluster_pods.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/status.h"

/* Addresses are 10.96.0.2 to 10.96.255.254, of the range that kubeadm has. The first one would be
 * that of the API, which has a real one here. */
#define FIRST 2u
#define LAST 65534u

static bool is_taken(const struct dv_cluster_operation *operation, dv_str address)
{
    struct dv_collection_range range =
        dv_collection_range(&operation->embedded->collections[DV_KIND_SERVICE], DV_STR_NONE);
    const struct dv_entry *entry;

    while ((entry = dv_collection_range_next(&range)) != NULL) {
        const struct dv_api_service *service = entry->object ? entry->object->value : NULL;

        if (service && dv_str_eq(service->spec.cluster_ip, address))
            return true;
    }
    return false;
}

/* Chooses the next address that is free. Those that were given out to services which are not stored
 * yet are behind: the search goes on where it was. */
static bool choose(struct dv_cluster_operation *operation)
{
    struct dv_embedded *embedded = operation->embedded;

    if (embedded->last_address == 0) /* after a start, addresses of before are not used at once */
        embedded->last_address = FIRST + (uint32_t)(dv_random_u64() % (LAST - FIRST));
    for (uint32_t i = FIRST; i <= LAST; i++) {
        uint32_t next = embedded->last_address >= LAST ? FIRST : embedded->last_address + 1;
        char text[sizeof("10.96.255.255")];
        int n = snprintf(text, sizeof(text), "10.96.%u.%u", next >> 8, next & 255);

        embedded->last_address = next;
        if (is_taken(operation, (dv_str){text, (size_t)n}))
            continue;
        operation->address = dv_str_copy((dv_str){text, (size_t)n}, operation->arena);
        return true;
    }
    return dv_cluster_operation_fail(
        operation, dv_status_new(500, DV_STR("InternalError"), operation->arena,
                                 "failed to allocate a serviceIP: range is full"));
}

bool dv_service_admit(struct dv_cluster_operation *operation, const void *value)
{
    const struct dv_api_service *service = value;
    dv_str wanted;

    if (operation->entry->collection->kind->id != DV_KIND_SERVICE)
        return true;
    if (dv_service_wants_address(service))
        return choose(operation);
    wanted = service->spec.cluster_ip;
    if (!wanted.n || dv_str_eq(wanted, DV_STR("None")) || !is_taken(operation, wanted))
        return true;
    return dv_cluster_operation_fail(
        operation,
        dv_status_new(422, DV_STR("Invalid"), operation->arena,
                      "Service \"%.*s\" is invalid: spec.clusterIPs: Invalid value: [\"%.*s\"]: "
                      "failed to allocate IP %.*s: provided IP is already allocated",
                      DV_FMT(service->metadata.name), DV_FMT(wanted), DV_FMT(wanted)));
}

void dv_service_apply(struct dv_cluster_operation *operation, void *value)
{
    if (operation->address.n > 0)
        dv_service_set_address(value, operation->address, operation->arena);
}
