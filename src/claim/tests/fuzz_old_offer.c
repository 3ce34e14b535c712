/* Whatever a driver offers through NodeListAndWatchResources: today's API takes the devices that
 * are made of it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "claim/claim.h"
#include "resource/resource.h"
#include "resource/validate.h"

/* Of a slice. */
#define DEVICES_MAX 128u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct dv_claim_offer *offer, struct dv_arena *arena)
{
    struct dv_api_resource_slice slice = {
        .metadata.name = DV_STR("s"),
        .spec = {.driver = DV_STR("d"),
                 .node_name = DV_STR("n"),
                 .pool = {.name = DV_STR("n"), .generation = 1, .resource_slice_count = 1},
                 .devices = offer->devices,
                 .n_devices = dv_size_min(offer->n_devices, DEVICES_MAX)},
    };
    struct dv_validation what = {
        .kind = dv_kind(DV_KIND_SLICE), .operation = DV_CREATE, .value = &slice};
    struct dv_problems problems = {.arena = arena};

    dv_validate(&what, &problems);
    assert(problems.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_offer offer;
    struct dv_err err;

    if (dv_claim_offer_decode((dv_str){(const char *)data, size}, arena, &offer, &err)) {
        assert(offer.n_devices <= DV_CLAIM_OFFER_DEVICES_MAX);
        assert(offer.n_named <= offer.n_left_out && offer.n_named <= DV_CLAIM_OFFER_LEFT_OUT_MAX);
        check(&offer, arena);
    }
    return 0;
}
