/* test_config.h - configs made for tests, with as little around them as possible. */
#ifndef DV_WORKLOAD_TESTS_TEST_CONFIG_H
#define DV_WORKLOAD_TESTS_TEST_CONFIG_H

#include <string.h> /* IWYU pragma: export */

#include "proto/cri_v1.pb-c.h"            /* IWYU pragma: export */
#include "workload/config.h"              /* IWYU pragma: export */
#include "workload/tests/test_workload.h" /* IWYU pragma: export */
/* IWYU pragma: no_include "cri_v1.pb-c.h" */

/* What a container is made of: change it before it is made. */
struct test_setting {
    struct dv_workload_node node;
    struct dv_workload_pod pod;
    struct dv_workload_objects objects;
    struct dv_config_input input;
    struct dv_config_environment environment;
    struct dv_workload_mount mounts[4];
};

/* A pod with this spec, and its first container. */
static inline struct test_setting *test_setting(const char *spec)
{
    struct test_setting *setting = DV_NEW(arena, struct test_setting);

    setting->node = test_node();
    setting->pod = test_pod(spec);
    setting->input = (struct dv_config_input){
        .node = &setting->node,
        .pod = &setting->pod,
        .objects = &setting->objects,
        .container = setting->pod.pod->spec.containers,
        .kind = DV_WORKLOAD_REGULAR,
        .image = {.id = DV_STR("sha256:1")},
    };
    for (size_t i = 0; i < DV_COUNT(setting->mounts); i++)
        setting->mounts[i].host_path = dv_str_printf(arena, "/host/%zu", i);
    return setting;
}

static inline void test_use(struct test_setting *setting, const char *name)
{
    setting->input.container =
        dv_workload_container(setting->pod.pod, dv_str_from_c(name), &setting->input.kind);
    assert_non_null(setting->input.container);
}

static inline CriV1__ContainerConfig *test_try(struct test_setting *setting, struct dv_err *err)
{
    dv_str *sub_paths;

    if (!dv_config_environment(&setting->input, arena, &setting->environment, err) ||
        !dv_config_sub_paths(&setting->input, &setting->environment, arena, &sub_paths, err))
        return NULL;
    return dv_config_container(&setting->input, &setting->environment, setting->mounts,
                               DV_STR("/log"), arena, err);
}

static inline CriV1__ContainerConfig *test_make(struct test_setting *setting)
{
    struct dv_err err;
    CriV1__ContainerConfig *config = test_try(setting, &err);

    assert_ok(config, &err);
    return config;
}

/* The value of the last variable of that name; NULL when there is none. */
static inline const char *test_env(const CriV1__ContainerConfig *config, const char *name)
{
    for (size_t i = config->n_envs; i > 0; i--) {
        const CriV1__KeyValue *entry = config->envs[i - 1];

        if (strcmp(entry->key, name) == 0)
            return dv_str_to_c((dv_str){(const char *)entry->value.data, entry->value.len}, arena);
    }
    return NULL;
}

static inline const char *test_annotation(const CriV1__ContainerConfig *config, const char *key)
{
    for (size_t i = 0; i < config->n_annotations; i++)
        if (strcmp(config->annotations[i]->key, key) == 0)
            return config->annotations[i]->value;
    return NULL;
}

/* The texts with a blank between them. */
static inline const char *test_join(const char *const *texts, size_t n)
{
    dv_str joined = DV_STR("");

    for (size_t i = 0; i < n; i++)
        joined = dv_str_printf(arena, "%.*s%s%s", DV_FMT(joined), i > 0 ? " " : "", texts[i]);
    return dv_str_to_c(joined, arena);
}

#endif
