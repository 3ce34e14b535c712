#include "pod/admission/holdings_items.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/admission/pods.h"
#include "pod/ledger/finder.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"
#include "pod/pod.h"
#include "resource/resource.h"

static const struct dv_cdi_index *index_of(const struct dv_holdings *holdings)
{
    return holdings->pods->options.cdi ? dv_cdi_dirs_index(holdings->pods->options.cdi) : NULL;
}

struct dv_holdings_item *dv_holdings_add_item(struct dv_holdings_items *items,
                                              const struct dv_pod *pod, enum dv_ledger_way way,
                                              dv_str giver, struct dv_arena *arena)
{
    struct dv_holdings_item *item = dv_vec_add_in(items, arena);

    *item = (struct dv_holdings_item){
        .holder = {.pod_uid = pod->spec.ref.uid,
                   .namespace = pod->spec.ref.namespace,
                   .name = pod->spec.ref.name,
                   .way = way,
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

const struct dv_api_device *dv_holdings_find_slice(const struct dv_holdings *holdings,
                                                   dv_str driver,
                                                   const struct dv_claim_device *device, size_t *n)
{
    const struct dv_object *object;

    *n = 0;
    for (size_t at = 0;
         holdings->slices && (object = dv_view_next(holdings->slices, &at)) != NULL;) {
        const struct dv_api_resource_slice_spec *spec =
            &((const struct dv_api_resource_slice *)object->value)->spec;

        if (!dv_str_eq(spec->driver, driver) || !dv_str_eq(spec->pool.name, device->pool))
            continue;
        for (size_t i = 0; i < spec->n_devices; i++) {
            if (!dv_str_eq(spec->devices[i].name, device->name))
                continue;
            *n = spec->n_devices;
            return spec->devices;
        }
    }
    return NULL;
}

void dv_holdings_add_claims(const struct dv_holdings *holdings, const struct dv_pod *pod,
                            const struct dv_identity_host *host, struct dv_arena *arena,
                            struct dv_holdings_items *items)
{
    struct dv_claim_manager *manager = holdings->pods->options.claims;
    struct dv_claim **claims;
    size_t n = manager ? dv_claim_of_pod(dv_claim_manager_state(manager), pod->spec.ref.uid, arena,
                                         &claims)
                       : 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < claims[i]->record.n_drivers; k++)
            for (size_t d = 0; d < claims[i]->record.drivers[k].n_devices; d++) {
                const struct dv_claim_driver *driver = &claims[i]->record.drivers[k];
                const struct dv_claim_device *device = &driver->devices[d];
                struct dv_holdings_item *item =
                    dv_holdings_add_item(items, pod, DV_LEDGER_DRIVER, driver->name, arena);
                dv_str *name = DV_NEW(arena, dv_str);
                size_t n_devices;
                const struct dv_api_device *devices =
                    dv_holdings_find_slice(holdings, driver->name, device, &n_devices);

                *name =
                    dv_str_printf(arena, "%.*s/%.*s", DV_FMT(device->pool), DV_FMT(device->name));
                item->holder.claim = claims[i]->record.name;
                item->holder.devices = name;
                item->holder.n_devices = 1;
                item->is_described = devices != NULL;
                dv_identities_of_claim_device(device, devices, n_devices, index_of(holdings), host,
                                              arena, &item->identities);
            }
}

struct dv_holdings_items dv_holdings_items_of(const struct dv_holdings *holdings,
                                              const struct dv_pod *pod, struct dv_arena *arena)
{
    struct dv_finder *finder = dv_finder_new(arena);
    const struct dv_identity_host *host = dv_finder_host(finder);
    struct dv_holdings_items items = {0};
    const struct dv_device_record *records;
    size_t n = dv_holdings_records(holdings, pod, arena, &records);

    for (size_t i = 0; i < n; i++)
        dv_holdings_add_record(holdings, pod, &records[i], host, arena, &items);
    dv_holdings_add_claims(holdings, pod, host, arena, &items);
    dv_finder_fini(finder);
    return items;
}
