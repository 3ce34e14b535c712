#include "fuzz_check.h"

#include <assert.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "device/state/bits.h"
#include "device/state/device_state.h"

static void check_holders(const struct dv_device *device)
{
    const struct dv_device_pod *pod = NULL;
    size_t n_exclusive = 0;
    struct dv_link *link;

    DV_LIST_EACH (&device->holders, link) {
        const struct dv_device_held *held =
            DV_CONTAINER(link, struct dv_device_holding, in_device)->held;

        assert(!pod || pod == held->pod);
        pod = held->pod;
        n_exclusive += held->container.n == 0 || held->container.p[0] != 'i';
    }
    assert(n_exclusive <= 1);
}

static void check_device(const struct dv_device *device)
{
    const struct dv_device_resource *resource = device->resource;
    bool is_ranked = device->rank != DV_DEVICE_NO_RANK;

    assert(device->is_taken == (!dv_list_is_empty(&device->holders) || device->n_reserved > 0 ||
                                dv_link_is_in(&device->in_leaked)));
    assert(dv_link_is_in(&device->in_kept) == (device->is_taken || device->lender));
    assert(device->is_listed == is_ranked);
    assert(device->is_listed || device->is_taken || device->lender); /* something needs it */
    assert(device->is_free == (device->is_listed && device->is_healthy && !device->is_taken));
    if (is_ranked) {
        assert(resource->ranked.v[device->rank] == device);
        assert((dv_device_bits_next(&resource->free_ranks, device->rank) == device->rank) ==
               device->is_free);
        assert(device->nodes->begin <= device->rank && device->rank < device->nodes->end);
    }
    check_holders(device);
}

static void check_resource(const struct dv_device_resource *resource)
{
    const struct dv_map_entry *entry;
    size_t n_listed = 0;
    size_t n_healthy = 0;
    size_t n_taken = 0;
    size_t n_free = 0;
    size_t n_free_in_groups = 0;

    for (size_t at = 0; (entry = dv_map_next(&resource->devices, &at)) != NULL;) {
        const struct dv_device *device = entry->value;

        check_device(device);
        n_listed += device->is_listed;
        n_healthy += device->is_listed && device->is_healthy;
        n_taken += device->is_taken;
        n_free += device->is_free;
    }
    for (size_t i = 0; i < resource->groups.n; i++) {
        assert(i == 0 || resource->groups.v[i - 1]->end == resource->groups.v[i]->begin);
        assert(i == 0 || dv_device_nodes_cmp(resource->groups.v[i - 1], resource->groups.v[i]) < 0);
        n_free_in_groups += resource->groups.v[i]->n_free;
    }
    for (size_t i = 1; i < resource->ranked.n; i++)
        assert(resource->ranked.v[i - 1]->nodes != resource->ranked.v[i]->nodes ||
               dv_str_natural_cmp(resource->ranked.v[i - 1]->id, resource->ranked.v[i]->id) < 0);
    assert(n_listed == resource->n_listed && n_listed == resource->ranked.n);
    assert(n_healthy == resource->n_healthy);
    assert(n_taken == resource->n_taken);
    assert(n_free == resource->n_free && n_free == n_free_in_groups);
    assert(resource->n_records == 0 || resource->has_allocated);
}

static void check_pod(const struct dv_device_pod *pod)
{
    bool is_to_collect = !pod->is_active && !dv_list_is_empty(&pod->held);

    assert(dv_link_is_in(&pod->in_inactive) == is_to_collect);
    assert(dv_link_is_in(&pod->in_lenders) == !dv_list_is_empty(&pod->lent));
    assert(pod->is_active || pod->n_admissions > 0 || pod->n_operations > 0 ||
           !dv_list_is_empty(&pod->held) || !dv_list_is_empty(&pod->lent));
}

void fuzz_check_state(const struct dv_device_state *state)
{
    const struct dv_map_entry *entry;
    size_t n_records = 0;

    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;) {
        const struct dv_device_resource *resource = entry->value;

        check_resource(resource);
        n_records += resource->n_records;
    }
    assert(n_records == state->held.n);
    for (size_t at = 0; (entry = dv_map_next(&state->pods, &at)) != NULL;)
        check_pod(entry->value);
}
