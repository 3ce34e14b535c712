/* What PodResources answers of claims. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "pod/pod.h"
#include "proto/podresources_v1.pb-c.h"
#include "serve/podresources/podres_answer.h"

#define TEXT_BYTES_MAX (1u << 20)

/* -- Claims --------------------------------------------------------------------------------- */

static const dv_str gpu0_ids[] = {DV_STR_INIT("v/gpu=0"), DV_STR_INIT("v/gpu=all")};
static const dv_str gpu2_ids[] = {DV_STR_INIT("v/gpu=2")};
static const dv_str nic_ids[] = {DV_STR_INIT("v/nic=0")};

#define POOL DV_STR_INIT("pool")
#define NONE DV_STR_INIT("")
static const struct dv_podres_claim_device gpus[] = {
    {POOL, DV_STR_INIT("gpu0"), NONE,              false, gpu0_ids, DV_COUNT(gpu0_ids)},
    {POOL, DV_STR_INIT("gpu1"), NONE,              false, NULL,     0                 },
    {POOL, DV_STR_INIT("gpu2"), DV_STR_INIT("s1"), true,  gpu2_ids, DV_COUNT(gpu2_ids)},
};
static const struct dv_podres_claim_device nics[] = {
    {NONE, DV_STR_INIT("nic0"), NONE, false, nic_ids, DV_COUNT(nic_ids)},
};
static const struct dv_podres_claim_driver both_drivers[] = {
    {DV_STR_INIT("gpu.io"), gpus, DV_COUNT(gpus)},
    {DV_STR_INIT("nic.io"), nics, DV_COUNT(nics)},
};
static const struct dv_podres_claim_driver nic_driver[] = {
    {DV_STR_INIT("nic.io"), nics, DV_COUNT(nics)},
};

static const struct dv_podres_claim large = {DV_STR_INIT("default"), DV_STR_INIT("large"),
                                             both_drivers, DV_COUNT(both_drivers)};
static const struct dv_podres_claim small = {DV_STR_INIT("default"), DV_STR_INIT("small"),
                                             nic_driver, DV_COUNT(nic_driver)};
static const struct dv_podres_claim empty = {DV_STR_INIT("default"), DV_STR_INIT("empty"), NULL, 0};

/* -- A node with one pod -------------------------------------------------------------------- */

static struct dv_pod_container containers[] = {
    {DV_STR_INIT("setup"), DV_DEVICE_INIT,    NULL, 0},
    {DV_STR_INIT("proxy"), DV_DEVICE_SIDECAR, NULL, 0},
    {DV_STR_INIT("main"),  DV_DEVICE_REGULAR, NULL, 0},
};
static const struct dv_pod_spec spec = {
    .ref = {DV_STR_INIT("uid"), DV_STR_INIT("default"), DV_STR_INIT("p")},
    .containers = containers,
    .n_containers = DV_COUNT(containers),
};

static void print_claim(struct dv_buf *buf, const PodresV1__DynamicResource *claim)
{
    dv_buf_printf(buf, " %s/%s{", claim->claim_namespace, claim->claim_name);
    for (size_t i = 0; i < claim->n_claim_resources; i++) {
        const PodresV1__ClaimResource *device = claim->claim_resources[i];

        dv_buf_printf(buf, "%s%s:%s/%s", i > 0 ? " " : "", device->driver_name, device->pool_name,
                      device->device_name);
        if (device->has_share_id_case != PODRES_V1__CLAIM_RESOURCE__HAS_SHARE_ID__NOT_SET)
            dv_buf_printf(buf, "#%s", device->share_id);
        for (size_t k = 0; k < device->n_cdi_devices; k++)
            dv_buf_printf(buf, ",%s", device->cdi_devices[k]->name);
    }
    dv_buf_add_char(buf, '}');
}

struct options {
    bool is_strict;
    bool has_device; /* "main" holds one */
};

static void hold_a_device(struct dv_device_state *devices)
{
    static const dv_str ids[] = {DV_STR_INIT("d1")};
    const struct dv_device_placed placed = {0, ids, DV_COUNT(ids)};
    const struct dv_device_record record = {
        .pod_uid = spec.ref.uid,
        .container = DV_STR("main"),
        .resource = DV_STR("a.io/gpu"),
        .placed = &placed,
        .n_placed = 1,
        .response = DV_STR(""),
    };
    const struct dv_device_checkpoint checkpoint = {.records = &record, .n_records = 1};
    size_t n_left_out;

    dv_device_checkpoint_load(devices, &checkpoint, 0, &n_left_out);
    assert_int_equal(n_left_out, 0);
}

/* Both of List and Get: "proxy: main: [d1] default/small{nic.io:/nic0,v/nic=0}". */
static void assert_listed(const struct dv_podres_use *uses, struct options options,
                          const char *wanted)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_device_state_freep) struct dv_device_state *devices = dv_device_state_new(NULL);
    const struct dv_podres_pod pod = {.spec = &spec, .uses = uses, .is_active = true};
    const struct dv_podres_node node = {
        .devices = devices, .pods = &pod, .n_pods = 1, .is_strict = options.is_strict};
    const PodresV1__PodResources *answers[2];
    struct dv_err err;

    if (options.has_device)
        hold_a_device(devices);
    answers[0] = dv_podres_list(&node, arena)->pod_resources[0];
    answers[1] =
        dv_podres_get(&node, spec.ref.namespace, spec.ref.name, arena, &err)->pod_resources;
    for (size_t i = 0; i < DV_COUNT(answers); i++) {
        struct dv_buf buf;

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        for (size_t k = 0; k < answers[i]->n_containers; k++) {
            const PodresV1__ContainerResources *container = answers[i]->containers[k];

            dv_buf_printf(&buf, "%s%s:", k > 0 ? " " : "", container->name);
            for (size_t m = 0; m < container->n_devices; m++)
                dv_buf_printf(&buf, " [%s]", container->devices[m]->device_ids[0]);
            for (size_t m = 0; m < container->n_dynamic_resources; m++)
                print_claim(&buf, container->dynamic_resources[m]);
        }
        assert_str(dv_buf_str(&buf), wanted);
        dv_buf_fini(&buf);
    }
}

/* -- Tests ---------------------------------------------------------------------------------- */

static void claims_are_shown_beside_devices(void **state)
{
    static const struct dv_podres_claim *const main_claims[] = {&small};
    static const struct dv_podres_use uses[] = {
        {NULL,        0},
        {NULL,        0},
        {main_claims, 1}
    };

    (void)state;
    assert_listed(uses, (struct options){0}, "proxy: main: default/small{nic.io:/nic0,v/nic=0}");
    assert_listed(uses, (struct options){.has_device = true},
                  "proxy: main: [d1] default/small{nic.io:/nic0,v/nic=0}");
    assert_listed(NULL, (struct options){.has_device = true}, "proxy: main: [d1]");
}

static void each_container_has_its_own_claims_in_their_order(void **state)
{
    static const struct dv_podres_claim *const init_claims[] = {&large};
    static const struct dv_podres_claim *const proxy_claims[] = {&small, &empty};
    static const struct dv_podres_claim *const main_claims[] = {&empty, &small};
    static const struct dv_podres_use uses[] = {
        {init_claims,  DV_COUNT(init_claims) },
        {proxy_claims, DV_COUNT(proxy_claims)},
        {main_claims,  DV_COUNT(main_claims) },
    };

    (void)state;
    assert_listed(uses, (struct options){0},
                  "proxy: default/small{nic.io:/nic0,v/nic=0} default/empty{}"
                  " main: default/empty{} default/small{nic.io:/nic0,v/nic=0}");
}

static void all_devices_of_a_claim_are_shown_with_their_own_ids(void **state)
{
    static const struct dv_podres_claim *const main_claims[] = {&large};
    static const struct dv_podres_use uses[] = {
        {NULL,        0},
        {NULL,        0},
        {main_claims, 1}
    };

    (void)state;
    assert_listed(uses, (struct options){0},
                  "proxy: main: default/large{gpu.io:pool/gpu0,v/gpu=0,v/gpu=all gpu.io:pool/gpu1"
                  " gpu.io:pool/gpu2#s1,v/gpu=2 nic.io:/nic0,v/nic=0}");
}

static void strictly_a_device_has_the_ids_of_those_before_it(void **state)
{
    static const struct dv_podres_claim *const main_claims[] = {&large};
    static const struct dv_podres_use uses[] = {
        {NULL,        0},
        {NULL,        0},
        {main_claims, 1}
    };

    (void)state;
    assert_listed(uses, (struct options){.is_strict = true},
                  "proxy: main: default/large{gpu.io:pool/gpu0,v/gpu=0,v/gpu=all"
                  " gpu.io:pool/gpu1,v/gpu=0,v/gpu=all"
                  " gpu.io:pool/gpu2#s1,v/gpu=0,v/gpu=all,v/gpu=2 nic.io:/nic0,v/nic=0}");
}

static void a_claim_that_is_not_prepared_hides_those_of_its_container(void **state)
{
    static const struct dv_podres_claim *const proxy_claims[] = {&small};
    static const struct dv_podres_claim *const main_claims[] = {&small, NULL};
    static const struct dv_podres_use uses[] = {
        {NULL,         0                     },
        {proxy_claims, DV_COUNT(proxy_claims)},
        {main_claims,  DV_COUNT(main_claims) },
    };

    (void)state;
    assert_listed(uses, (struct options){.has_device = true},
                  "proxy: default/small{nic.io:/nic0,v/nic=0} main: [d1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_shown_beside_devices),
        cmocka_unit_test(each_container_has_its_own_claims_in_their_order),
        cmocka_unit_test(all_devices_of_a_claim_are_shown_with_their_own_ids),
        cmocka_unit_test(strictly_a_device_has_the_ids_of_those_before_it),
        cmocka_unit_test(a_claim_that_is_not_prepared_hides_those_of_its_container),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
