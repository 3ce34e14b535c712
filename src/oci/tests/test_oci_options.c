/* test_oci_options.c - what device plugins want, applied before what CDI says. */
#include "oci/tests/test_oci.h"

static const struct dv_cdi_annotation env[] = {
    {DV_STR_INIT("A"), DV_STR_INIT("plugin")},
    {DV_STR_INIT("B"), DV_STR_INIT("plugin")},
};
static const struct dv_cdi_annotation annotations[] = {
    {DV_STR_INIT("v.com/x"), DV_STR_INIT("y")},
};
static const struct dv_oci_mount mounts[] = {
    {DV_STR_INIT("/in"),  DV_STR_INIT("/host/in"),  true },
    {DV_STR_INIT("/out"), DV_STR_INIT("/host/out"), false},
};
static const struct dv_oci_device devices[] = {
    {DV_STR_INIT("/dev/a"), DV_STR_INIT("/dev/null"), DV_STR_INIT("rw")},
};
static const struct dv_oci_options options = {
    .env = env,
    .n_env = DV_COUNT(env),
    .mounts = mounts,
    .n_mounts = DV_COUNT(mounts),
    .devices = devices,
    .n_devices = DV_COUNT(devices),
    .annotations = annotations,
    .n_annotations = DV_COUNT(annotations),
};

static void all_options_go_in_and_cdi_counts_more(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *const edits[] = {"{env: [B=cdi], mounts: [{hostPath: /spec, containerPath: /in}]}",
                                 NULL};
    DV_CLEANUP(dv_cdi_index_freep) struct dv_cdi_index *index = make_index("{}", edits, arena);
    const dv_str name = DV_STR("v.com/c=d0");
    struct dv_cdi_edits resolved;
    struct dv_json *edited;
    struct dv_err err;

    (void)state;
    assert_ok(dv_cdi_resolve(index, &name, 1, arena, &resolved, &err), &err);
    edited = dv_oci_apply_options(yaml("{process: {env: [B=x]}}", arena), &options, &resolved,
                                  &test_host, arena, &err);
    assert_ok(edited, &err);
    assert_str(print(dv_json_get(edited, DV_STR("process")), arena),
               "{\"env\":[\"B=cdi\",\"A=plugin\"]}");
    assert_str(print(dv_json_get(edited, DV_STR("annotations")), arena), "{\"v.com/x\":\"y\"}");
    assert_str(print(dv_json_get(edited, DV_STR("mounts")), arena),
               "[{\"destination\":\"/out\",\"type\":\"bind\",\"source\":\"/host/out\",\"options\":["
               "\"rbind\",\"rprivate\",\"rw\"]},{\"destination\":\"/in\",\"source\":\"/spec\","
               "\"options\":[\"rbind\"]}]");
    assert_str(print(dv_json_get(dv_json_get(edited, DV_STR("linux")), DV_STR("devices")), arena),
               "[{\"path\":\"/dev/a\",\"type\":\"c\",\"major\":1,\"minor\":3}]");
    /* applied again, it is the same */
    assert_str(
        print(dv_oci_apply_options(edited, &options, &resolved, &test_host, arena, &err), arena),
        dv_str_to_c(print(edited, arena), arena));
}

static void a_device_that_is_none_is_named(void **state)
{
    static const struct dv_oci_device gone[] = {
        {DV_STR_INIT("/dev/a"), DV_STR_INIT("/dev/gone"), DV_STR_INIT("")},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_oci_options wrong = {.devices = gone, .n_devices = 1};
    const struct dv_cdi_edits none = {0};
    struct dv_err err = {0};

    (void)state;
    assert_null(dv_oci_apply_options(yaml("{}", arena), &wrong, &none, &test_host, arena, &err));
    if (!strstr(err.msg, "what device plugins want for the container"))
        fail_msg("%s", err.msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_options_go_in_and_cdi_counts_more),
        cmocka_unit_test(a_device_that_is_none_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
