/* test_config_limits.c - what large pods cost, and what small ones cannot be made to cost. */
#include "support/growth.h"
#include "workload/tests/test_config.h"

/* A container with n variables, each of which doubles the one before. */
static void values_that_double_each_other_are_refused(void **state)
{
    struct test_setting *setting = test_setting("containers: [{name: c, image: x}]");
    struct dv_api_container container = *setting->input.container;
    struct dv_err err;

    (void)state;
    container.n_env = 100;
    container.env = DV_NEW_ARRAY(arena, struct dv_api_env_var, container.n_env);
    container.env[0] = (struct dv_api_env_var){.name = DV_STR("V0"), .value = DV_STR("0123456789")};
    for (size_t i = 1; i < container.n_env; i++)
        container.env[i] =
            (struct dv_api_env_var){.name = dv_str_printf(arena, "V%zu", i),
                                    .value = dv_str_printf(arena, "$(V%zu)$(V%zu)", i - 1, i - 1)};
    setting->input.container = &container;
    assert_null(test_try(setting, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "environment variable V");
}

/* Small inputs that would become gigabytes: each has its limit. */
static void what_multiplies_is_refused(void **state)
{
    enum { N = 2000 };
    struct test_setting *setting =
        test_setting("volumes: [{name: i, image: {reference: 'r:1'}}, {name: e, emptyDir: {}}], "
                     "containers: [{name: c, image: x}]");
    const struct dv_api_container plain = *setting->input.container;
    struct dv_api_config_map map = {.metadata = {.name = DV_STR("m")}};
    const struct dv_api_config_map *maps[] = {&map};
    struct dv_api_config_map_env_source source = {.local_object_reference = {.name = DV_STR("m")}};
    char *large = dv_arena_alloc(arena, 100000, 1);
    struct dv_str_entry entry = {
        DV_STR("k"), {large, 100000}
    };
    struct dv_api_container container = plain;
    struct dv_api_pod pod = *setting->pod.pod;
    struct dv_workload_mount *mounts = DV_NEW_ARRAY(arena, struct dv_workload_mount, N);
    struct dv_err err;

    (void)state;
    memset(large, 'x', 100000);
    setting->pod.pod = &pod;
    setting->input.container = &container;

    /* One object under many prefixes. */
    map.data = &entry;
    map.n_data = 1;
    setting->objects.config_maps = maps;
    setting->objects.n_config_maps = 1;
    container.n_env_from = N;
    container.env_from = DV_NEW_ARRAY(arena, struct dv_api_env_from_source, N);
    for (size_t i = 0; i < N; i++)
        container.env_from[i] = (struct dv_api_env_from_source){
            .prefix = dv_str_printf(arena, "P%zu_", i), .config_map_ref = &source};
    assert_null(test_try(setting, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "environment variable P");

    /* One variable in every argument, and in every subPath. */
    container = plain;
    container.n_env = 1;
    container.env = &(struct dv_api_env_var){
        .name = DV_STR("A"), .value = {large, 100000}
    };
    container.n_args = N;
    container.args = DV_NEW_ARRAY(arena, dv_str, N);
    for (size_t i = 0; i < N; i++)
        container.args[i] = DV_STR("$(A)");
    assert_null(test_try(setting, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "the command has more than");
    container.n_args = 0;
    container.n_volume_mounts = N;
    container.volume_mounts = DV_NEW_ARRAY(arena, struct dv_api_volume_mount, N);
    for (size_t i = 0; i < N; i++)
        container.volume_mounts[i] = (struct dv_api_volume_mount){
            .name = DV_STR("e"), .mount_path = DV_STR("/x"), .sub_path_expr = DV_STR("$(A)")};
    assert_null(test_try(setting, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "all subPaths have more than");

    /* The pod's annotations in every mount of an image. */
    for (size_t i = 0; i < N; i++) {
        container.volume_mounts[i] =
            (struct dv_api_volume_mount){.name = DV_STR("i"), .mount_path = DV_STR("/x")};
        mounts[i].image = DV_STR("sha256:1");
    }
    pod.metadata.annotations = &entry;
    pod.metadata.n_annotations = 1;
    assert_ok(dv_config_environment(&setting->input, arena, &setting->environment, &err), &err);
    assert_null(dv_config_container(&setting->input, &setting->environment, mounts, DV_STR(""),
                                    arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "annotations of all image volumes");
}

/* n variables that all refer to the first, and n references in the command. */
static void make_large(void *ctx, size_t n)
{
    struct test_setting *setting = ctx;
    struct dv_api_container container = *setting->input.container;
    struct dv_arena *kept = arena;
    struct dv_err err;

    arena = dv_arena_new();
    container.n_env = n;
    container.env = DV_NEW_ARRAY(arena, struct dv_api_env_var, n);
    container.n_args = n;
    container.args = DV_NEW_ARRAY(arena, dv_str, n);
    for (size_t i = 0; i < n; i++) {
        container.env[i] = (struct dv_api_env_var){.name = dv_str_printf(arena, "V%zu", i),
                                                   .value = DV_STR("$(V0)$($($(")};
        container.args[i] = dv_str_printf(arena, "$(V%zu)", i);
    }
    setting->input.container = &container;
    assert_ok(test_try(setting, &err), &err);
    dv_arena_free(arena);
    arena = kept;
}

static void many_variables_cost_as_many_times_as_much(void **state)
{
    struct test_setting *setting = test_setting("containers: [{name: c, image: x}]");
    const struct dv_api_container *container = setting->input.container;

    (void)state;
    make_large(setting, 1000);
    setting->input.container = container;
    assert_true(growth_is_linear(make_large, setting, 5000));
}

/* n signs that open a reference which is never closed. */
static void expand_open(void *ctx, size_t n)
{
    const struct dv_config_environment *environment = ctx;
    struct dv_arena *scratch = dv_arena_new();
    char *text = dv_arena_alloc_raw(scratch, 2 * n, 1);
    struct dv_err err;
    dv_str value;

    for (size_t i = 0; i < n; i++) {
        text[2 * i] = '$';
        text[2 * i + 1] = '(';
    }
    assert_ok(dv_config_expand((dv_str){text, 2 * n}, environment, scratch, &value, &err), &err);
    assert_int_equal(value.n, 2 * n);
    dv_arena_free(scratch);
}

static void references_that_are_not_closed_cost_no_square(void **state)
{
    struct dv_config_environment none = {0};

    (void)state;
    assert_true(growth_is_linear(expand_open, &none, 50000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(values_that_double_each_other_are_refused),
        doc_test(what_multiplies_is_refused),
        doc_test(many_variables_cost_as_many_times_as_much),
        doc_test(references_that_are_not_closed_cost_no_square),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
