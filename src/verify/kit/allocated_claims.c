/* allocated_claims.c - claims for the driver under test: made in the API, allocated as the
 * scheduler does. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "proto/dra_v1.pb-c.h"
#include "resource/resource.h"
#include "verify/kit/dra_link.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"

static void on_share_id(void *ctx, char text[DV_UUID_BYTES])
{
    (void)ctx;
    (void)dv_random_uuid(text);
}

static struct dv_inventory *take_inventory(struct dv_trial *trial)
{
    const struct dv_alloc_features features = dv_alloc_features_default();
    struct dv_inventory *inventory = dv_inventory_new(&features);
    static const enum dv_kind_id kinds[] = {DV_KIND_CLASS, DV_KIND_CLAIM};
    struct dv_object **objects;
    size_t n = dv_api_slices(trial, &objects);

    for (size_t i = 0; i < n; i++)
        (void)dv_inventory_add_slice(inventory, objects[i]);
    for (size_t k = 0; k < DV_COUNT(kinds); k++) {
        n = dv_api_list(trial, kinds[k], &objects);
        for (size_t i = 0; i < n; i++) {
            const struct dv_api_resource_claim *claim = objects[i]->value;

            if (kinds[k] == DV_KIND_CLASS)
                dv_inventory_set_class(inventory, objects[i]);
            else if (claim->status.allocation)
                dv_inventory_hold(inventory, claim->status.allocation, claim->metadata.name);
        }
    }
    return inventory;
}

/* False: devices do not suffice, and link->miss says which and why. */
static bool allocate(struct dv_dra_link *link, const struct dv_object *object,
                     struct dv_test_claim *made)
{
    struct dv_trial *trial = link->trial;
    const struct dv_api_resource_claim *claim = object->value;
    struct dv_api_resource_claim *changed = DV_NEW(trial->arena, struct dv_api_resource_claim);
    struct dv_inventory *inventory = take_inventory(trial);
    const struct dv_alloc_node node = {.name = trial->node};
    const struct dv_alloc_options options = {.share_id = on_share_id};
    struct dv_alloc_result result;
    struct dv_alloc_miss miss;
    struct dv_err err = {.code = DV_OK};
    dv_str failure;

    dv_allocate(inventory, &node, &claim, 1, &options, trial->arena, &result, &err);
    if (result.outcome == DV_ALLOC_NONE) {
        dv_alloc_miss(inventory, &node, &claim, 1, &options, trial->arena, &miss);
        link->miss = dv_str_copy(miss.text, trial->arena);
        dv_inventory_free(inventory);
        return false;
    }
    if (result.outcome != DV_ALLOC_DONE)
        dv_trial_break(trial, "the claim cannot be allocated: %s", err.msg);
    dv_message_copy(object->kind->versions[0].message, claim, trial->arena, changed);
    changed->status.allocation = DV_NEW(trial->arena, struct dv_api_allocation_result);
    dv_message_copy(&dv_message_allocation_result, &result.allocations[0], trial->arena,
                    changed->status.allocation);
    dv_inventory_free(inventory);
    if (!dv_api_set_status(trial, object, changed, &failure))
        dv_trial_break(trial, "the API does not take the allocation: %.*s", DV_FMT(failure));
    made->allocation = changed->status.allocation;
    return true;
}

static dv_str next_name(struct dv_trial *trial)
{
    return dv_str_printf(trial->arena, "claim-%zu", ++trial->n_claims);
}

struct dv_test_claim *dv_claim_try(struct dv_dra_link *link, enum dv_claim_shape shape)
{
    struct dv_trial *trial = link->trial;
    struct dv_test_claim *made = DV_NEW(trial->arena, struct dv_test_claim);
    struct dv_api_resource_claim *value;
    struct dv_object *object;
    dv_str failure;

    if (!trial->facts.has_slices)
        dv_trial_skip(trial, "the driver publishes no slices that a claim could be allocated from");
    value = dv_claim_wanted(trial, shape);
    value->metadata = (struct dv_api_object_meta){.name = next_name(trial)};
    value->status = (struct dv_api_resource_claim_status){0};
    object = dv_api_make(trial, dv_kind(DV_KIND_CLAIM), value, &failure);
    if (!object)
        dv_trial_break(trial, "the API does not take the claim: %.*s", DV_FMT(failure));
    made->name = object->meta->name;
    made->uid = object->meta->uid;
    return shape == DV_CLAIM_UNALLOCATED || allocate(link, object, made) ? made : NULL;
}

struct dv_test_claim *dv_claim_make(struct dv_dra_link *link, enum dv_claim_shape shape)
{
    struct dv_test_claim *made = dv_claim_try(link, shape);

    if (!made)
        dv_trial_skip(link->trial, "the driver's devices do not suffice for its claims: %.*s",
                      DV_FMT(link->miss));
    return made;
}

struct dv_test_claim *dv_claim_invent(struct dv_dra_link *link)
{
    struct dv_test_claim *made = DV_NEW(link->trial->arena, struct dv_test_claim);
    char uid[DV_UUID_BYTES];

    made->name = next_name(link->trial);
    made->uid = dv_str_copy(dv_random_uuid(uid), link->trial->arena);
    return made;
}

bool dv_claim_has_result(const struct dv_test_claim *claim, const DraV1__Device *device)
{
    for (size_t i = 0; i < claim->allocation->devices.n_results; i++) {
        const struct dv_api_device_request_allocation_result *result =
            &claim->allocation->devices.results[i];

        if (dv_str_eq(result->pool, dv_str_from_c(device->pool_name)) &&
            dv_str_eq(result->device, dv_str_from_c(device->device_name)))
            return true;
    }
    return false;
}
