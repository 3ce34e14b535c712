#include "pod/admission/holdings_items.h"

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/holdings_slices.h"
#include "pod/admission/pods.h"
#include "pod/ledger/finder.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* So many comparisons of attributes take as long as to enter a device. */
#define COMPARES_PER_DEVICE 128u

static const struct dv_cdi_index *index_of(const struct dv_holdings *holdings)
{
    return holdings->pods->options.cdi ? dv_cdi_dirs_index(holdings->pods->options.cdi) : NULL;
}

struct dv_holdings_item *dv_holdings_add_item(struct dv_holdings_items *items,
                                              const struct dv_pod *pod,
                                              enum dv_ledger_giver_kind giver_kind, dv_str giver,
                                              struct dv_arena *arena)
{
    struct dv_holdings_item *item = dv_vec_add_in(items, arena);

    *item = (struct dv_holdings_item){
        .holder = {.pod_uid = pod->spec.ref.uid,
                   .namespace = pod->spec.ref.namespace,
                   .name = pod->spec.ref.name,
                   .giver_kind = giver_kind,
                   .giver = giver}
    };
    return item;
}

size_t dv_holdings_records(const struct dv_holdings *holdings, const struct dv_pod *pod,
                           struct dv_arena *arena, const struct dv_device_record **records)
{
    return dv_device_records_of_pod(dv_device_manager_state(holdings->pods->options.devices),
                                    pod->spec.ref.uid, arena, records);
}

void dv_holdings_add_record(const struct dv_holdings *holdings, const struct dv_pod *pod,
                            const struct dv_device_record *record,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items)
{
    struct dv_holdings_item *item = dv_holdings_add_item(
        items, pod, DV_LEDGER_PLUGIN, dv_str_copy(record->resource, arena), arena);
    dv_str *ids;
    struct dv_err err;

    item->holder.container = dv_str_copy(record->container, arena);
    if (!dv_identities_of_record(record, index_of(holdings), host, arena, &item->identities, &ids,
                                 &item->holder.n_devices, &err))
        /* its identities cannot be read; it was admitted, and that was logged, before */
        items->n--;
    else
        item->holder.devices = ids;
}

/* Adds a device of the pod's claim; returns what that took. */
static size_t add_device(struct dv_holdings *holdings, const struct dv_pod *pod, dv_str claim,
                         dv_str driver, const struct dv_claim_device *device,
                         const struct dv_identity_host *host, struct dv_arena *arena,
                         struct dv_holdings_items *items)
{
    struct dv_holdings_item *item =
        dv_holdings_add_item(items, pod, DV_LEDGER_DRIVER, driver, arena);
    dv_str *name = DV_NEW(arena, dv_str);
    size_t n_devices;
    const struct dv_api_device *devices =
        dv_holdings_slices_find(&holdings->slices, driver, device->pool, device->name, &n_devices);

    *name = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(device->pool), DV_FMT(device->name));
    item->holder.claim = claim;
    item->holder.devices = name;
    item->holder.n_devices = 1;
    item->is_described = devices != NULL;
    dv_identities_of_claim_device(device, devices, n_devices, host ? index_of(holdings) : NULL,
                                  host, arena, &item->identities);
    return 1 + (devices
                    ? item->identities.n * n_devices * devices[0].n_attributes / COMPARES_PER_DEVICE
                    : 0);
}

size_t dv_holdings_add_results(struct dv_holdings *holdings, const struct dv_pod *pod,
                               const struct dv_api_resource_claim *claim, struct dv_arena *arena,
                               struct dv_holdings_items *items)
{
    const struct dv_api_allocation_result *allocation = claim->status.allocation;
    size_t cost = 1;

    for (size_t i = 0; allocation && i < allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &allocation->devices.results[i];
        const struct dv_claim_device device = {.pool = result->pool, .name = result->device};

        cost += add_device(holdings, pod, claim->metadata.name, result->driver, &device, NULL,
                           arena, items);
    }
    return cost;
}

static size_t add_claim(struct dv_holdings *holdings, const struct dv_pod *pod,
                        const struct dv_claim_record *claim, const struct dv_identity_host *host,
                        struct dv_arena *arena, struct dv_holdings_items *items)
{
    size_t cost = 1;

    for (size_t k = 0; k < claim->n_drivers; k++)
        for (size_t d = 0; d < claim->drivers[k].n_devices; d++)
            cost += add_device(holdings, pod, claim->name, claim->drivers[k].name,
                               &claim->drivers[k].devices[d], host, arena, items);
    return cost;
}

bool dv_holdings_add_claims(struct dv_holdings *holdings, const struct dv_pod *pod,
                            struct dv_holdings_place *place, size_t cost_max,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items)
{
    struct dv_claim_manager *manager = holdings->pods->options.claims;
    struct dv_claim **claims = NULL;
    size_t n = manager ? dv_claim_of_pod(dv_claim_manager_state(manager), pod->spec.ref.uid, arena,
                                         &claims)
                       : 0;
    size_t cost = 0;

    if (place->n_claims != n) /* one has come or gone: what is held already is replaced */
        *place = (struct dv_holdings_place){.n_claims = n};
    while (place->at < n && (cost == 0 || cost < cost_max))
        cost += add_claim(holdings, pod, &claims[place->at++]->record, host, arena, items);
    return place->at == n;
}

struct dv_holdings_items dv_holdings_items_of(struct dv_holdings *holdings,
                                              const struct dv_pod *pod, struct dv_arena *arena)
{
    struct dv_finder *finder = dv_finder_new(arena);
    const struct dv_identity_host *host = dv_finder_host(finder);
    struct dv_holdings_items items = {0};
    struct dv_holdings_place place = {0};
    const struct dv_device_record *records;
    size_t n = dv_holdings_records(holdings, pod, arena, &records);

    for (size_t i = 0; i < n; i++)
        dv_holdings_add_record(holdings, pod, &records[i], host, arena, &items);
    (void)dv_holdings_add_claims(holdings, pod, &place, SIZE_MAX, host, arena, &items); /* all */
    dv_finder_fini(finder);
    return items;
}
