/* test_config_environment.c - variables: where they come from, in which order, and what $(X) is. */
#include "workload/config/env_file.h"
#include "workload/tests/test_config.h"

static void references_are_replaced(void **state)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"",              ""                          },
        {"plain",         "plain"                     },
        {"$(A)",          "1"                         },
        {"$(A)$$(A)$(B)", "1$(A)$(B)"                 },
        {"$$$(A)",        "$1"                        },
        {"$$$$(A)",       "$$(A)"                     },
        {"a$(A)b$(A)c",   "a1b1c"                     },
        {"$(LOOP)",       "$(A)"                      }, /* a value is not expanded again */
        {"$(EMPTY)x",     "x"                         },
        {"$(",            "$("                        },
        {"$(A",           "$(A"                       },
        {"$($(A)",        "$($(A)"                    }, /* the name is "$(A" */
        {"$(A $(A)",      "$(A $(A)"                  },
        {"$",             "$"                         },
        {"a$",            "a$"                        },
        {"$x$(A)",        "$x1"                       },
        {"$\xc3\xa9$(A)", "$\xc3\xa9"
                          "1"},
        {"$\xff",         "$\xef\xbf\xbd"             }, /* as Go decodes it */
        {"$()",           "$()"                       },
        {"%d %s $(A)",    "%d %s 1"                   },
    };
    struct test_setting *setting =
        test_setting("containers: [{name: c, image: x, env: [{name: A, value: '1'}, {name: LOOP, "
                     "value: $$(A)}, {name: EMPTY, value: ''}]}]");
    struct dv_err err;

    (void)state;
    (void)test_make(setting);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str value;

        assert_ok(dv_config_expand(dv_str_from_c(cases[i].text), &setting->environment, arena,
                                   &value, &err),
                  &err);
        assert_str(value, cases[i].want);
    }
}

static void a_variable_knows_only_those_before_it(void **state)
{
    struct test_setting *setting = test_setting(
        "containers: [{name: c, image: x, command: [run, $(LATER)], args: [$(EARLY)], env: ["
        "{name: FIRST, value: $(LATER)}, {name: EARLY, value: e}, {name: SECOND, value: $(EARLY)},"
        "{name: LATER, value: l}, {name: TWICE, value: old}, {name: TWICE, value: "
        "$(TWICE)-new}]}]");
    CriV1__ContainerConfig *config = test_make(setting);

    (void)state;
    assert_string_equal(test_env(config, "FIRST"), "$(LATER)");
    assert_string_equal(test_env(config, "SECOND"), "e");
    assert_string_equal(test_env(config, "TWICE"), "old-new");
    assert_int_equal(config->n_envs, 5);
    assert_string_equal(test_join(config->command, config->n_command), "run l");
    assert_string_equal(test_join(config->args, config->n_args), "e");
}

static void plugins_variables_come_first_and_lose(void **state)
{
    static const struct dv_str_entry envs[] = {
        {DV_STR_INIT("PLUG"), DV_STR_INIT("p")     },
        {DV_STR_INIT("BOTH"), DV_STR_INIT("plugin")},
    };
    static const struct dv_workload_given given = {.envs = envs, .n_envs = 2};
    struct test_setting *setting =
        test_setting("containers: [{name: c, image: x, args: [$(PLUG)], env: [{name: BOTH, value: "
                     "pod}, {name: REF, value: $(PLUG)}]}]");
    CriV1__ContainerConfig *config;

    (void)state;
    setting->input.given = &given;
    config = test_make(setting);
    assert_string_equal(config->envs[0]->key, "PLUG");
    assert_string_equal(config->envs[1]->key, "BOTH");
    assert_string_equal(test_env(config, "BOTH"), "pod");
    /* The pod's variables do not know those of plugins; commands do. */
    assert_string_equal(test_env(config, "REF"), "$(PLUG)");
    assert_string_equal(config->args[0], "p");
}

/* The objects that the cases below refer to. */
static void add_objects(struct test_setting *setting)
{
    const struct dv_api_config_map **maps =
        DV_NEW_ARRAY(arena, const struct dv_api_config_map *, 1);
    const struct dv_api_secret **secrets = DV_NEW_ARRAY(arena, const struct dv_api_secret *, 1);

    maps[0] = test_object(DV_KIND_CONFIG_MAP, "{metadata: {name: m}, data: {a: one, b: two, "
                                              "'not-a name': x}, binaryData: {bin: AAE=}}");
    secrets[0] = test_object(DV_KIND_SECRET, "{metadata: {name: s}, data: {a: c2VjcmV0, z: eno=}}");
    setting->objects.config_maps = maps;
    setting->objects.n_config_maps = 1;
    setting->objects.secrets = secrets;
    setting->objects.n_secrets = 1;
}

static void variables_come_from_objects(void **state)
{
    struct test_setting *setting = test_setting(
        "containers: [{name: c, image: x, envFrom: [{configMapRef: {name: m}}, {prefix: S_, "
        "secretRef: {name: s}}, {configMapRef: {name: none, optional: true}}, {secretRef: {name: "
        "none, optional: true}}], env: [{name: b, value: own}, {name: K, valueFrom: "
        "{configMapKeyRef: {name: m, key: a}}}, {name: P, valueFrom: {secretKeyRef: {name: s, key: "
        "a}}}, {name: O, valueFrom: {configMapKeyRef: {name: m, key: gone, optional: true}}}, "
        "{name: "
        "Q, valueFrom: {secretKeyRef: {name: none, key: gone, optional: true}}}, {name: REF, "
        "value: "
        "$(a)-$(S_a)}]}]");
    CriV1__ContainerConfig *config;

    (void)state;
    add_objects(setting);
    config = test_make(setting);
    assert_string_equal(test_env(config, "a"), "one");
    assert_string_equal(test_env(config, "b"), "own");
    assert_string_equal(test_env(config, "not-a name"), "x");
    assert_string_equal(test_env(config, "S_a"), "secret");
    assert_string_equal(test_env(config, "S_z"), "zz");
    assert_string_equal(test_env(config, "K"), "one");
    assert_string_equal(test_env(config, "P"), "secret");
    assert_string_equal(test_env(config, "REF"), "one-secret");
    assert_null(test_env(config, "O"));
    assert_null(test_env(config, "Q"));
    assert_null(test_env(config, "bin"));
}

static void says_what_is_missing(void **state)
{
    static const struct {
        const char *container; /* its fields */
        const char *want;
    } cases[] = {
        {"envFrom: [{configMapRef: {name: none}}]",                                                 "configmap \"none\" not found"},
        {"envFrom: [{secretRef: {name: none}}]",                                                    "secret \"none\" not found"   },
        {"env: [{name: A, valueFrom: {configMapKeyRef: {name: none, key: k}}}]",
         "configmap \"none\" not found"                                                                                           },
        {"env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]",
         "couldn't find key k in ConfigMap ns/m"                                                                                  },
        {"env: [{name: A, valueFrom: {secretKeyRef: {name: none, key: k}}}]",
         "secret \"none\" not found"                                                                                              },
        {"env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]",
         "couldn't find key k in Secret ns/s"                                                                                     },
        {"env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.color}}}]",
         "field label not supported: metadata.color"                                                                              },
        {"env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.pods}}}]",
         "unsupported container resource : limits.pods"                                                                           },
        {"env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: f, key: k}}}]",
         "couldn't parse env file"                                                                                                },
        {"volumeMounts: [{name: v, mountPath: /v}]",
         "cannot find volume \"v\" to mount into container \"c\""                                                                 },
        {"volumeMounts: [{name: e, mountPath: /v, subPath: /abs}]",
         "error SubPath `/abs` must not be an absolute path"                                                                      },
        {"volumeMounts: [{name: e, mountPath: /v, subPath: a/../b}]",
         "unable to provision SubPath `a/../b`: must not contain '..'"                                                            },
        {"volumeMounts: [{name: e, mountPath: /v, subPathExpr: $(X)/$(B)/$(X)}], env: [{name: B}]",
         "missing value for B, X"                                                                                                 },
        {"volumeMounts: [{name: e, mountPath: /v, mountPropagation: Sideways}]",
         "invalid MountPropagation mode: \"Sideways\""                                                                            },
        {"volumeMounts: [{name: e, mountPath: /v, recursiveReadOnly: Enabled}]",
         "failed to resolve recursive read-only mode: volume \"e\" requested recursive read-only "
         "mode, "
         "but it is not read-only"                                                                                                },
        {"volumeMounts: [{name: e, mountPath: /v, readOnly: true, recursiveReadOnly: Enabled}]",
         "failed to resolve recursive read-only mode: volume \"e\" requested recursive read-only "
         "mode, "
         "but it is not supported by the runtime"                                                                                 },
        {"volumeDevices: [{name: v, devicePath: /dev/x}]",
         "cannot find volume \"v\" to pass into container \"c\""                                                                  },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct test_setting *setting = test_setting(
            dv_str_printf(
                arena, "volumes: [{name: e, emptyDir: {}}], containers: [{name: c, image: x, %s}]",
                cases[i].container)
                .p);
        struct dv_err err = {0};

        add_objects(setting);
        assert_null(test_try(setting, &err));
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void sub_paths_are_expanded(void **state)
{
    struct test_setting *setting = test_setting(
        "volumes: [{name: e, emptyDir: {}}], containers: [{name: c, image: x, env: [{name: P, "
        "value:"
        " logs}], volumeMounts: [{name: e, mountPath: /a}, {name: e, mountPath: /b, subPath: $(P)},"
        " {name: e, mountPath: /c, subPathExpr: x/$(P)}]}]");
    struct dv_err err;
    dv_str *paths;

    (void)state;
    (void)test_make(setting);
    assert_ok(dv_config_sub_paths(&setting->input, &setting->environment, arena, &paths, &err),
              &err);
    assert_str(paths[0], "");
    assert_str(paths[1], "$(P)");
    assert_str(paths[2], "x/logs");
}

static void services_have_variables(void **state)
{
    static const struct dv_workload_port kube[] = {
        {DV_STR_INIT("https"), 443, DV_STR_INIT("TCP")}
    };
    static const struct dv_workload_port web[] = {
        {DV_STR_INIT("http"), 80,   DV_STR_INIT("")   },
        {DV_STR_INIT("q-u"),  8443, DV_STR_INIT("UDP")},
    };
    static const struct dv_workload_service services[] = {
        {DV_STR_INIT("default"), DV_STR_INIT("kubernetes"), DV_STR_INIT("10.0.0.1"), kube, 1},
        {DV_STR_INIT("ns"),      DV_STR_INIT("my-web"),     DV_STR_INIT("10.0.0.2"), web,  2},
        {DV_STR_INIT("ns"),      DV_STR_INIT("six"),        DV_STR_INIT("fd00::2"),  kube, 1},
        {DV_STR_INIT("ns"),      DV_STR_INIT("headless"),   DV_STR_INIT("None"),     kube, 1},
        {DV_STR_INIT("ns"),      DV_STR_INIT("external"),   DV_STR_INIT(""),         NULL, 0},
        {DV_STR_INIT("other"),   DV_STR_INIT("far"),        DV_STR_INIT("10.0.0.3"), kube, 1},
    };
    struct test_setting *setting = test_setting("containers: [{name: c, image: x, env: [{name: "
                                                "MY_WEB_PORT, value: mine}, {name: URL, value:"
                                                " http://$(MY_WEB_SERVICE_HOST)}]}]");
    struct test_setting *without =
        test_setting("enableServiceLinks: false, containers: [{name: c, image: x}]");
    CriV1__ContainerConfig *config;

    (void)state;
    setting->objects.services = services;
    setting->objects.n_services = DV_COUNT(services);
    config = test_make(setting);
    assert_string_equal(test_env(config, "KUBERNETES_SERVICE_HOST"), "10.0.0.1");
    assert_string_equal(test_env(config, "KUBERNETES_PORT_443_TCP"), "tcp://10.0.0.1:443");
    assert_string_equal(test_env(config, "MY_WEB_SERVICE_PORT"), "80");
    assert_string_equal(test_env(config, "MY_WEB_SERVICE_PORT_Q_U"), "8443");
    assert_string_equal(test_env(config, "MY_WEB_PORT_8443_UDP_PROTO"), "udp");
    assert_string_equal(test_env(config, "MY_WEB_PORT_8443_UDP_ADDR"), "10.0.0.2");
    assert_string_equal(test_env(config, "SIX_PORT"), "tcp://[fd00::2]:443");
    assert_string_equal(test_env(config, "MY_WEB_PORT"), "mine");
    assert_string_equal(test_env(config, "URL"), "http://10.0.0.2");
    assert_null(test_env(config, "HEADLESS_SERVICE_HOST"));
    assert_null(test_env(config, "EXTERNAL_SERVICE_HOST"));
    assert_null(test_env(config, "FAR_SERVICE_HOST"));

    without->objects = setting->objects;
    config = test_make(without);
    assert_string_equal(test_env(config, "KUBERNETES_SERVICE_PORT_HTTPS"), "443");
    assert_null(test_env(config, "MY_WEB_SERVICE_HOST"));
}

static void a_service_called_kubernetes_takes_the_place_of_defaults(void **state)
{
    static const struct dv_workload_port two[] = {
        {DV_STR_INIT("https"), 443, DV_STR_INIT("")}
    };
    static const struct dv_workload_port own[] = {
        {DV_STR_INIT(""), 99, DV_STR_INIT("")}
    };
    static const struct dv_workload_service services[] = {
        {DV_STR_INIT("ns"),      DV_STR_INIT("kubernetes"), DV_STR_INIT("10.9.9.9"), own, 1},
        {DV_STR_INIT("default"), DV_STR_INIT("kubernetes"), DV_STR_INIT("10.0.0.1"), two, 1},
    };
    struct test_setting *setting = test_setting("containers: [{name: c, image: x}]");
    CriV1__ContainerConfig *config;

    (void)state;
    setting->objects.services = services;
    setting->objects.n_services = DV_COUNT(services);
    config = test_make(setting);
    assert_string_equal(test_env(config, "KUBERNETES_SERVICE_HOST"), "10.9.9.9");
    assert_string_equal(test_env(config, "KUBERNETES_SERVICE_PORT"), "99");
    assert_null(test_env(config, "KUBERNETES_SERVICE_PORT_HTTPS"));
}

static void a_file_gives_variables(void **state)
{
    static const struct {
        const char *text;
        const char *want; /* of K; NULL: not such a file */
    } cases[] = {
        {"K='v'",                         "v"      },
        {"K='v'\n",                       "v"      },
        {"# c\n\n  \t\n  K='v' # more\n", "v"      },
        {"A='1'\nK='a\nb'\nB='2'",        "a\nb"   },
        {"K='a\r\nb'\r\n",                "a\nb"   },
        {"K='first'\nK='second'",         "first"  },
        {"K='$(X)\\n'",                   "$(X)\\n"},
        {"K= 'v'",                        ""       },
        {"A='1'",                         ""       },
        {"",                              ""       },
        {"K='v'\ngarbage",                "v"      },
        {"garbage\nK='v'",                NULL     },
        {"K=v",                           NULL     },
        {"K=",                            NULL     },
        {"K ='v'",                        NULL     },
        {"='v'",                          NULL     },
        {"K='v",                          NULL     },
        {"K='v' x",                       NULL     },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str value = {0};
        bool is_good = dv_env_file_find(dv_str_from_c(cases[i].text), DV_STR("K"), arena, &value);

        assert_int_equal(is_good, cases[i].want != NULL);
        if (is_good)
            assert_str(value, cases[i].want);
    }
}

static void probes_know_literal_values_only(void **state)
{
    struct test_setting *setting =
        test_setting("containers: [{name: c, image: x, env: [{name: A, value: $(B)}, {name: B, "
                     "value: b}, {name: "
                     "F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]");
    dv_str command[] = {DV_STR("$(A)"), DV_STR("<$(F)>"), DV_STR("$(NONE)")};
    struct dv_strs texts = {command, 3};
    struct dv_strs expanded;
    struct dv_err err;

    (void)state;
    assert_ok(dv_config_probe_command(setting->input.container, &texts, arena, &expanded, &err),
              &err);
    assert_str(expanded.v[0], "$(B)");
    assert_str(expanded.v[1], "<>");
    assert_str(expanded.v[2], "$(NONE)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(references_are_replaced),
        doc_test(a_variable_knows_only_those_before_it),
        doc_test(plugins_variables_come_first_and_lose),
        doc_test(variables_come_from_objects),
        doc_test(says_what_is_missing),
        doc_test(sub_paths_are_expanded),
        doc_test(services_have_variables),
        doc_test(a_service_called_kubernetes_takes_the_place_of_defaults),
        doc_test(a_file_gives_variables),
        doc_test(probes_know_literal_values_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
