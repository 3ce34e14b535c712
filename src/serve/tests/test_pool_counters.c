/* What devices that are held leave of the counters that a pool's devices share. */
#include "serve/node/pool_counters.h"

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "serve/node/node_pools.h"
#include "json/json.h"

#define PARTS                                                                                      \
    "{spec: {sharedCounters: [{name: gpu-0, counters: {memory: {value: 10Gi}, cores: {value: "     \
    "'8'}}}], devices: [{name: whole, consumesCounters: [{counterSet: gpu-0, counters: {memory: "  \
    "{value: 10Gi}, cores: {value: '8'}}}]}, {name: half, consumesCounters: [{counterSet: gpu-0, " \
    "counters: {memory: {value: 5Gi}}}]}, {name: third, consumesCounters: [{counterSet: gpu-0, "   \
    "counters: {memory: {value: 3Gi}}}]}, {name: odd, consumesCounters: [{counterSet: none, "      \
    "counters: {x: {value: 3}}}]}, {name: free}]}}"

static const struct dv_api_resource_slice_spec *read_slice(struct dv_arena *arena)
{
    const struct dv_message *message = dv_kind(DV_KIND_SLICE)->versions[0].message;
    struct dv_api_resource_slice *slice = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(DV_STR(PARTS), NULL, arena, &err);

    if (!doc)
        fail_msg("%s", err.msg);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, slice, NULL, &err), &err);
    return &slice->spec;
}

static const struct {
    const char *held; /* names of devices, each with a blank behind it */
    const char *device;
    const char *shortage; /* "": it can be taken */
    size_t n_blocked_by;
} rows[] = {
    {"",            "whole", "",                                       0},
    {"half ",       "whole", "memory of gpu-0: 10Gi wanted, 5Gi left", 1},
    {"half ",       "third", "",                                       0},
    {"half third ", "half",  "memory of gpu-0: 5Gi wanted, 2Gi left",  2},
    {"whole ",      "third", "memory of gpu-0: 3Gi wanted, 0 left",    1},
    {"whole half ", "third", "memory of gpu-0: 3Gi wanted, 0 left",    2},
    {"whole odd ",  "free",  "",                                       0},
    {"whole half ", "odd",   "",                                       0},
};

static void what_is_left_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_api_resource_slice_spec *spec = read_slice(arena);
        struct dv_pool_device asked = {.driver = DV_STR("d"), .pool = DV_STR("p")};
        struct dv_pool_counters counters;

        dv_pool_counters_init(&counters, arena);
        dv_pool_counters_add(&counters, DV_STR("d"), DV_STR("p"), &spec->shared_counters[0]);
        for (size_t k = 0; k < spec->n_devices; k++) {
            struct dv_pool_device device = asked;
            dv_str word = dv_str_printf(arena, "%.*s ", DV_FMT(spec->devices[k].name));
            dv_str held = dv_str_from_c(rows[i].held);

            device.name = spec->devices[k].name;
            device.api = &spec->devices[k];
            if (dv_str_find(held, word) < held.n)
                dv_pool_counters_take(&counters, &device);
        }
        for (size_t k = 0; k < spec->n_devices; k++)
            if (dv_str_eq(spec->devices[k].name, dv_str_from_c(rows[i].device)))
                asked.api = &spec->devices[k];
        dv_pool_counters_find(&counters, &asked);
        assert_str(asked.shortage, rows[i].shortage);
        assert_int_equal(asked.n_blocked_by, rows[i].n_blocked_by);
        dv_pool_counters_fini(&counters);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left_decides)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
