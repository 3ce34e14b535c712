/* fuzz_answer.c - what a device plugin answers to Allocate, GetPreferredAllocation and
 * GetDevicePluginOptions.
 *
 * Texts lie in the answer they came in. An answer that is taken can be merged, alone and with
 * itself, and merged with itself gives the same without a conflict, but for those within it. */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/state/device_message.h"

#define BYTES_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lies_in(dv_str part, dv_str whole)
{
    assert(part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n));
}

static void check_same(const struct dv_device_options *a, const struct dv_device_options *b)
{
    assert(a->n_envs == b->n_envs && a->n_mounts == b->n_mounts && a->n_nodes == b->n_nodes);
    assert(a->n_annotations == b->n_annotations && a->n_cdi_names == b->n_cdi_names);
    for (size_t i = 0; i < a->n_envs; i++)
        assert(dv_str_eq(a->envs[i].name, b->envs[i].name) &&
               dv_str_eq(a->envs[i].value, b->envs[i].value));
    for (size_t i = 0; i < a->n_cdi_names; i++)
        assert(dv_str_eq(a->cdi_names[i], b->cdi_names[i]));
}

static void check_response(dv_str response, struct dv_arena *arena)
{
    dv_str twice[] = {response, response};
    struct dv_device_options alone;
    struct dv_device_options both;
    struct dv_err err;
    bool is_good = dv_device_response_check(response, &err);

    assert(is_good == dv_device_options_merge(twice, 1, arena, &alone, &err));
    assert(is_good == dv_device_options_merge(twice, 2, arena, &both, &err));
    if (!is_good)
        return;
    for (size_t i = 0; i < alone.n_envs; i++) {
        check_lies_in(alone.envs[i].name, response);
        check_lies_in(alone.envs[i].value, response);
    }
    for (size_t i = 0; i < alone.n_mounts; i++)
        check_lies_in(alone.mounts[i].host_path, response);
    check_same(&alone, &both);
}

static void check_preferred(dv_str response, struct dv_arena *arena)
{
    const dv_str *ids;
    size_t n_ids;
    struct dv_err err;

    if (!dv_device_preferred_decode(response, arena, &ids, &n_ids, &err)) {
        assert(err.code != DV_OK && err.msg[0] != '\0');
        return;
    }
    assert(n_ids <= response.n);
    for (size_t i = 0; i < n_ids; i++) {
        check_lies_in(ids[i], response);
        assert(dv_str_is_utf8(ids[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str bytes = {(const char *)data, size};
    struct dv_device_plugin_options options;
    struct dv_err err;
    dv_str first;
    bool has_one;

    if (size > BYTES_MAX)
        return 0;
    check_response(bytes, arena);
    check_preferred(bytes, arena);
    if (dv_device_first_response(bytes, &first, &has_one, &err) && has_one) {
        check_lies_in(first, bytes);
        check_response(first, arena);
    }
    if (!dv_device_plugin_options_decode(bytes, &options, &err))
        assert(err.msg[0] != '\0');
    return 0;
}
