/* Whatever a driver answers: what is kept of it belongs to claims that were asked for, is bounded,
 * can be written and read; and what went well is complete. The first byte says which service it
 * is, and whether it was asked to prepare. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "claim/claim.h"
#include "resource/resource.h"

#define N_CLAIMS 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dv_claim *attach(struct dv_claim_state *state, dv_str name, dv_str uid)
{
    struct dv_api_device_request_allocation_result result = {.driver = DV_STR("d")};
    struct dv_api_allocation_result allocation = {
        .devices = {.results = &result, .n_results = 1}
    };
    struct dv_api_resource_claim object = {
        .metadata = {.namespace = DV_STR("ns"), .name = name, .uid = uid},
        .status = {.allocation = &allocation              },
    };
    struct dv_claim *claim = NULL;
    struct dv_err err;

    assert(dv_claim_attach(state, DV_STR("p"), &object, &claim, &err));
    return claim;
}

static void check_kept(const struct dv_claim *claim, struct dv_arena *arena)
{
    const struct dv_claim_driver *driver = &claim->record.drivers[0];
    struct dv_claim_record read;
    struct dv_cdi_name name;
    struct dv_buf key;
    struct dv_buf value;
    struct dv_err err;

    for (size_t i = 0; i < driver->n_devices; i++)
        for (size_t k = 0; k < driver->devices[i].n_cdi_ids; k++)
            assert(dv_cdi_name_parse(driver->devices[i].cdi_ids[k], &name, &err));
    dv_buf_init(&key, SIZE_MAX);
    dv_buf_init(&value, SIZE_MAX);
    dv_claim_record_encode(&claim->record, &key, &value);
    assert(value.n < 2 * DV_CLAIM_ANSWER_BYTES_MAX);
    assert(dv_claim_record_decode(dv_buf_str(&key), dv_buf_str(&value), arena, &read, &err));
    assert(read.drivers[0].n_devices == driver->n_devices);
    dv_buf_fini(&key);
    dv_buf_fini(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim_state *state = dv_claim_state_new(&(struct dv_claim_opts){0});
    struct dv_claim *claims[N_CLAIMS] = {
        attach(state, DV_STR("a"), DV_STR("u1")),
        attach(state, DV_STR("b"), DV_STR("u2")),
        attach(state, DV_STR("c"), DV_STR("u3")),
    };
    enum dv_dra_service service = size > 0 ? (enum dv_dra_service)(data[0] % DV_N_DRA_SERVICES) : 0;
    bool is_prepare = size > 0 && data[0] & 0x80;
    bool is_single = service == DV_DRA_V1ALPHA2 || service == DV_DRA_V1ALPHA1;
    dv_str response = {(const char *)data + 1, size > 0 ? size - 1 : 0};
    struct dv_claim_answer *answers;
    struct dv_err err;
    size_t n = 0;

    if (size > 0 && dv_claim_response_decode(service, is_prepare, DV_STR("u1"), response, arena,
                                             &answers, &n, &err)) {
        size_t n_asked = is_single ? 1 : N_CLAIMS;

        if (dv_claim_apply(state, is_prepare, DV_STR("d"), claims, n_asked, answers, n, &err))
            assert(n == n_asked);
        for (size_t i = 0; i < N_CLAIMS; i++)
            check_kept(claims[i], arena);
        assert(!is_single || claims[1]->record.drivers[0].n_devices == 0);
    }
    assert(dv_claim_count(state) == N_CLAIMS);
    dv_claim_state_free(state);
    return 0;
}
