/* test_config_security.c - security contexts: the pod's, the container's, and what an image adds.
 */
#include "workload/tests/test_config.h"

#define POD "(pod: \"p_ns(" TEST_UID ")\", container: c)"

/* A pod and a container with these contexts. */
static struct test_setting *with_contexts(const char *pod, const char *container)
{
    return test_setting(dv_str_printf(arena,
                                      "securityContext: {%s}, containers: [{name: c, image: x, "
                                      "securityContext: {%s}}]",
                                      pod, container)
                            .p);
}

static const CriV1__LinuxContainerSecurityContext *make(const char *pod, const char *container)
{
    return test_make(with_contexts(pod, container))->linux->security_context;
}

static void who_must_not_be_root_is_not(void **state)
{
    static const struct {
        const char *pod;
        const char *container;
        struct dv_config_image image;
        const char *want; /* NULL: it may run */
    } cases[] = {
        {"",                                 "",                    {.uid = 0},                          NULL},
        {"runAsNonRoot: true",               "runAsNonRoot: false", {.uid = 0},                          NULL},
        {"runAsNonRoot: true",               "",                    {.uid = 5, .has_uid = true},         NULL},
        {"runAsNonRoot: true, runAsUser: 5", "",                    {.username = DV_STR_INIT("app")},    NULL},
        {"runAsNonRoot: true, runAsUser: 0", "runAsUser: 5",        {.uid = 0},                          NULL},
        {"runAsNonRoot: true",
         "runAsUser: 0",                                            {.uid = 5, .has_uid = true},
         "container's runAsUser breaks non-root policy " POD                                                 },
        {"runAsUser: 0",
         "runAsNonRoot: true",                                      {.uid = 0},
         "container's runAsUser breaks non-root policy " POD                                                 },
        {"runAsNonRoot: true",
         "",                                                        {.has_uid = true},
         "container has runAsNonRoot and image will run as root " POD                                        },
        {"runAsNonRoot: true",
         "",                                                        {.uid = 0},
         "container has runAsNonRoot and image will run as root " POD                                        },
        {"runAsNonRoot: true",
         "",                                                        {.username = DV_STR_INIT("app")},
         "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is "
         "non-root " POD                                                                                     },
        {"runAsNonRoot: true",
         "",                                                        {.uid = 1ll << 40, .has_uid = true},
         "container has runAsNonRoot and image has an invalid user id (1099511627776). (Must be "
         "1-(2147483647)): must be between 0 and 2147483647, inclusive " POD                                 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct test_setting *setting = with_contexts(cases[i].pod, cases[i].container);
        struct dv_err err = {0};
        bool is_made;

        setting->input.image = cases[i].image;
        is_made = test_try(setting, &err) != NULL;
        assert_int_equal(is_made, cases[i].want == NULL);
        if (cases[i].want)
            assert_string_equal(err.msg, cases[i].want);
    }
}

static void the_user_is_the_contexts_or_the_images(void **state)
{
    struct test_setting *setting = with_contexts("runAsUser: 3, runAsGroup: 4", "runAsGroup: 5");
    const CriV1__LinuxContainerSecurityContext *made = test_make(setting)->linux->security_context;

    (void)state;
    assert_int_equal(made->run_as_user->value, 3);
    assert_int_equal(made->run_as_group->value, 5);
    setting = with_contexts("", "");
    setting->input.image = (struct dv_config_image){.uid = 9, .has_uid = true};
    assert_int_equal(test_make(setting)->linux->security_context->run_as_user->value, 9);
    setting->input.image = (struct dv_config_image){.username = DV_STR("app")};
    made = test_make(setting)->linux->security_context;
    assert_null(made->run_as_user);
    assert_string_equal(made->run_as_username, "app");
    setting->input.image = (struct dv_config_image){0};
    made = test_make(setting)->linux->security_context;
    assert_int_equal(made->run_as_user->value, 0);
    assert_string_equal(made->run_as_username, "");
}

static void flags_are_the_containers(void **state)
{
    const CriV1__LinuxContainerSecurityContext *made = make(
        "", "privileged: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, "
            "capabilities: {add: [NET_ADMIN, SYS_TIME], drop: [ALL]}, seLinuxOptions: {type: t}");

    (void)state;
    assert_true(made->privileged && made->readonly_rootfs && made->no_new_privs);
    assert_string_equal(
        test_join(made->capabilities->add_capabilities, made->capabilities->n_add_capabilities),
        "NET_ADMIN SYS_TIME");
    assert_string_equal(
        test_join(made->capabilities->drop_capabilities, made->capabilities->n_drop_capabilities),
        "ALL");
    assert_string_equal(made->selinux_options->type, "t");
    assert_int_equal(made->n_masked_paths, 12);
    assert_int_equal(made->n_readonly_paths, 5);
    made = make("", "allowPrivilegeEscalation: true");
    assert_false(made->privileged || made->readonly_rootfs || made->no_new_privs);
    assert_null(made->capabilities);
    assert_string_equal(make("seLinuxOptions: {type: pods}", "")->selinux_options->type, "pods");
}

static void paths_are_masked_unless_told_otherwise(void **state)
{
    dv_str paths[] = {DV_STR("/sys/devices/system/cpu/cpu0/thermal_throttle")};
    struct test_setting *setting = with_contexts("", "");
    const CriV1__LinuxContainerSecurityContext *made;

    (void)state;
    setting->node.masked_paths = (struct dv_strs){paths, 1};
    made = test_make(setting)->linux->security_context;
    assert_int_equal(made->n_masked_paths, 13);
    assert_string_equal(made->masked_paths[12], paths[0].p);
    made = make("", "procMount: Unmasked");
    assert_int_equal(made->n_masked_paths, 0);
    assert_int_equal(made->n_readonly_paths, 0);
}

static void profiles_are_the_containers_or_the_pods(void **state)
{
    static const struct {
        const char *pod;
        const char *container;
        CriV1__SecurityProfile__ProfileType type;
        const char *ref;
    } cases[] = {
        {"",                                       "",                                                              CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined, ""                                 },
        {"seccompProfile: {type: RuntimeDefault}", "",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault,                                                                                                        ""                                 },
        {"seccompProfile: {type: RuntimeDefault}", "seccompProfile: {type: Unconfined}",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined,                                                                                                            ""                                 },
        {"",                                       "seccompProfile: {type: Localhost, localhostProfile: a/b.json}",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost,                                                                                                             "/var/lib/kubelet/seccomp/a/b.json"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const CriV1__SecurityProfile *seccomp = make(cases[i].pod, cases[i].container)->seccomp;

        assert_int_equal(seccomp->profile_type, cases[i].type);
        assert_string_equal(seccomp->localhost_ref, cases[i].ref);
    }
}

static void apparmor_is_told_twice(void **state)
{
    static const struct {
        const char *pod;
        const char *container;
        const char *annotation;
        const char *text; /* "": it is not told at all */
        CriV1__SecurityProfile__ProfileType type;
    } cases[] = {
        {"",                                        "",                                                           NULL,            "",                0                                                 },
        {"appArmorProfile: {type: RuntimeDefault}", "",                                                           NULL,            "runtime/default",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault                                                                                                                                         },
        {"appArmorProfile: {type: RuntimeDefault}", "appArmorProfile: {type: Unconfined}",                        NULL,
         "unconfined",                                                                                                                                CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined},
        {"",                                        "appArmorProfile: {type: Localhost, localhostProfile: mine}", "unconfined",
         "localhost/mine",                                                                                                                            CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost },
        {"appArmorProfile: {type: RuntimeDefault}", "",                                                           "localhost/old", "localhost/old",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost                                                                                                                                              },
        {"appArmorProfile: {type: RuntimeDefault}", "",                                                           "what",          "runtime/default",
         CRI_V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault                                                                                                                                         },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct test_setting *setting = with_contexts(cases[i].pod, cases[i].container);
        struct dv_api_pod copy = *setting->pod.pod;
        struct dv_str_entry annotation = {
            DV_STR("container.apparmor.security.beta.kubernetes.io/c"),
            dv_str_from_c(cases[i].annotation)};
        const CriV1__LinuxContainerSecurityContext *made;

        copy.metadata.annotations = &annotation;
        copy.metadata.n_annotations = cases[i].annotation ? 1 : 0;
        setting->pod.pod = &copy;
        made = test_make(setting)->linux->security_context;
        assert_string_equal(made->apparmor_profile, cases[i].text);
        assert_int_equal(made->apparmor != NULL, cases[i].text[0] != '\0');
        if (made->apparmor)
            assert_int_equal(made->apparmor->profile_type, cases[i].type);
    }
}

static void refuses_contexts_that_cannot_be(void **state)
{
    static const struct {
        const char *pod;
        const char *container;
        const char *want;
    } cases[] = {
        {"",                              "seccompProfile: {type: Localhost}",
         "localhostProfile must be set if seccompProfile type is Localhost."                                               },
        {"",                              "appArmorProfile: {type: Localhost}", "missing localhost apparmor profile name"  },
        {"",                              "appArmorProfile: {type: Odd}",       "unknown apparmor profile type: \"Odd\""   },
        {"supplementalGroupsPolicy: Odd", "",                                   "unsupported supplementalGroupsPolicy: Odd"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;

        assert_null(test_try(with_contexts(cases[i].pod, cases[i].container), &err));
        assert_string_equal(err.msg, cases[i].want);
    }
}

static void users_of_its_own_need_a_runtime_that_can(void **state)
{
    static const struct dv_workload_handler can[] = {{.has_user_namespaces = true}};
    static const struct dv_workload_handler cannot[] = {{.name = DV_STR_INIT("")},
                                                        {.name = DV_STR_INIT("runc")}};
    struct test_setting *setting = test_setting(
        "hostUsers: false, volumes: [{name: e, emptyDir: {}}], containers: [{name: c, image: x, "
        "volumeMounts: [{name: e, mountPath: /e}]}]");
    struct dv_config_notes notes = {0};
    CriV1__ContainerConfig *config;
    struct dv_err err;

    (void)state;
    assert_null(dv_config_sandbox(&setting->node, &setting->pod, 0, arena, &notes, &err));
    assert_string_equal(err.msg, "can't set `spec.hostUsers: false`, runtime does not support user "
                                 "namespaces: runtime handlers are not set");
    setting->node.handlers = cannot;
    setting->node.n_handlers = 2;
    assert_null(dv_config_sandbox(&setting->node, &setting->pod, 0, arena, &notes, &err));
    assert_string_equal(err.msg, "can't set `spec.hostUsers: false`, runtime does not support user "
                                 "namespaces");
    setting->pod.handler = DV_STR("runc");
    assert_null(dv_config_sandbox(&setting->node, &setting->pod, 0, arena, &notes, &err));
    assert_string_equal(err.msg, "can't set `spec.hostUsers: false`, RuntimeClass handler \"runc\" "
                                 "does not support user namespaces");
    setting->pod.handler = DV_STR("kata");
    assert_null(test_try(setting, &err));
    assert_string_equal(err.msg, "can't set `spec.hostUsers: false`, RuntimeClass handler \"kata\" "
                                 "does not support user namespaces: the handler \"kata\" is not "
                                 "known");
    setting->pod.handler = DV_STR("");
    setting->node.handlers = can;
    setting->node.n_handlers = 1;
    assert_null(test_try(setting, &err));
    assert_err(&err, DV_UNIMPLEMENTED, "no users of the host are set aside");
    setting->pod.users_from = 65536;
    setting->pod.n_users = 65536;
    config = test_make(setting);
    assert_int_equal(config->linux->security_context->namespace_options->userns_options->mode,
                     CRI_V1__NAMESPACE_MODE__POD);
    assert_int_equal(config->mounts[0]->n_uidmappings, 1);
    assert_int_equal(config->mounts[0]->uidmappings[0]->host_id, 65536);
    assert_int_equal(config->mounts[0]->gidmappings[0]->length, 65536);
}

static void a_debugging_container_sees_its_target(void **state)
{
    struct test_setting *setting =
        test_setting("containers: [{name: c, image: x}], ephemeralContainers: [{name: d, image: x, "
                     "targetContainerName: c}]");
    const CriV1__NamespaceOption *options;

    (void)state;
    test_use(setting, "d");
    assert_int_equal(setting->input.kind, DV_WORKLOAD_EPHEMERAL);
    setting->input.target_id = DV_STR("0123abcd");
    options = test_make(setting)->linux->security_context->namespace_options;
    assert_int_equal(options->pid, CRI_V1__NAMESPACE_MODE__TARGET);
    assert_string_equal(options->target_id, "0123abcd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(who_must_not_be_root_is_not),
        doc_test(the_user_is_the_contexts_or_the_images),
        doc_test(flags_are_the_containers),
        doc_test(paths_are_masked_unless_told_otherwise),
        doc_test(profiles_are_the_containers_or_the_pods),
        doc_test(apparmor_is_told_twice),
        doc_test(refuses_contexts_that_cannot_be),
        doc_test(users_of_its_own_need_a_runtime_that_can),
        doc_test(a_debugging_container_sees_its_target),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
