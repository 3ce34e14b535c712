/* Whatever a driver tells about health: what is kept is bounded and fits the store;
 * what is cleared is what was told. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/row.h"
#include "base/str.h"
#include "claim/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kept(const struct dv_claim_state *state, const struct dv_claim_device_health *one)
{
    dv_str message;

    assert(one->message.n <= DV_CLAIM_HEALTH_TEXT_MAX);
    assert(one->timeout_ns > 0);
    (void)dv_claim_health_get(state, DV_STR("d"), one->pool, one->device, 1, &message);
    assert(message.n <= DV_CLAIM_HEALTH_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_state *state = dv_claim_state_new(&(struct dv_claim_opts){0});
    struct dv_claim_device_health *devices;
    const struct dv_row_change *writes;
    struct dv_claim_health_diff first;
    struct dv_claim_health_diff second;
    struct dv_err err;
    size_t n;

    if (dv_claim_health_decode((dv_str){(const char *)data, size}, arena, &devices, &n, &err)) {
        dv_claim_health_apply(state, DV_STR("d"), devices, n, 1, arena, &first);
        assert(first.n_changes <= n);
        for (size_t i = 0; i < n; i++)
            check_kept(state, &devices[i]);
        n = dv_claim_take_changes(state, arena, &writes);
        for (size_t i = 0; i < n; i++)
            assert(writes[i].key.n <= 2048);
        dv_claim_health_clear(state, DV_STR("d"), arena, &second);
        assert(second.n_changes <= first.n_changes);
    }
    dv_claim_state_free(state);
    return 0;
}
