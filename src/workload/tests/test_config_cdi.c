/* test_config_cdi.c - CDI edits in the fields of a runtime that has no CDI. */
#include "cdi/cdi.h"
#include "workload/tests/test_config.h"

/* The host has /dev/null (1:3) and a disk. */
static struct dv_config_node look(void *ctx, dv_str path)
{
    unsigned *n_looks = ctx;

    (*n_looks)++;
    if (dv_str_eq(path, DV_STR("/dev/null")))
        return (struct dv_config_node){.is_device = true, .major = 1, .minor = 3, .mode = 0666};
    if (dv_str_eq(path, DV_STR("/dev/sda")))
        return (struct dv_config_node){
            .is_device = true, .is_block = true, .major = 8, .mode = 0660, .gid = 6};
    return (struct dv_config_node){0};
}

/* Expands a device with these containerEdits (JSON in single quotes) into `config`. */
static bool expand(CriV1__ContainerConfig *config, const char *edits_text, struct dv_err *err)
{
    struct dv_workload_node node = test_node();
    dv_str text = dv_str_printf(arena,
                                "{cdiVersion: 1.1.0, kind: v.example/gpu, devices: [{name: a, "
                                "containerEdits: %s}], containerEdits: {env: [ALL=1]}}",
                                edits_text);
    struct dv_cdi_spec *spec =
        dv_cdi_spec_new(&(struct dv_cdi_file){.path = DV_STR("/etc/cdi/v.yaml"), .text = text});
    struct dv_cdi_index *index = dv_cdi_index_new(&spec, 1);
    dv_str name = DV_STR("v.example/gpu=a");
    struct dv_cdi_edits edits;
    unsigned n_looks = 0;
    bool is_good;

    if (spec->n_problems > 0)
        fail_msg("%.*s", DV_FMT(spec->problems[0]));
    node.runtime_name = DV_STR("containerd");
    node.runtime_version = DV_STR("1.6.20");
    assert_ok(dv_cdi_resolve(index, &name, 1, arena, &edits, err), err);
    is_good = dv_config_expand_cdi(config, &edits, &node, look, &n_looks, arena, err);
    dv_cdi_index_free(index);
    dv_cdi_spec_unref(spec);
    return is_good;
}

static CriV1__ContainerConfig *make(void)
{
    static const dv_str names[] = {DV_STR_INIT("v.example/gpu=a")};
    static const struct dv_str_entry envs[] = {
        {DV_STR_INIT("ALL"), DV_STR_INIT("plugin")},
    };
    static const struct dv_workload_given given = {
        .envs = envs, .n_envs = 1, .cdi_names = names, .n_cdi_names = 1};
    struct test_setting *setting = test_setting(
        "securityContext: {fsGroup: 5}, containers: [{name: c, image: x, env: [{name: GPU, value: "
        "pod}]}]");

    setting->input.given = &given;
    return test_make(setting);
}

static void edits_become_fields(void **state)
{
    CriV1__ContainerConfig *config = make();
    size_t n_mounts = config->n_mounts;
    struct dv_err err;

    (void)state;
    assert_ok(
        expand(config,
               "{env: [GPU=edit, 'X=a=b', NONE=], deviceNodes: [{path: /dev/gpu, hostPath: "
               "/dev/null, permissions: rw}, {path: /dev/sda, type: b, fileMode: 432, gid: 6}, "
               "{path: /dev/null, type: c, major: 1, minor: 3}], mounts: [{hostPath: /h, "
               "containerPath: /c, options: [ro, bind, rslave]}, {hostPath: /i, containerPath: "
               "/d, type: bind}], additionalGids: [0, 44]}",
               &err),
        &err);
    assert_int_equal(config->n_cdi_devices, 0);
    assert_string_equal(test_env(config, "ALL"), "1");
    assert_string_equal(test_env(config, "GPU"), "edit");
    assert_string_equal(test_env(config, "X"), "a=b");
    assert_string_equal(test_env(config, "NONE"), "");
    assert_int_equal(config->n_devices, 3);
    assert_string_equal(config->devices[0]->container_path, "/dev/gpu");
    assert_string_equal(config->devices[0]->host_path, "/dev/null");
    assert_string_equal(config->devices[0]->permissions, "rw");
    assert_string_equal(config->devices[1]->host_path, "/dev/sda");
    assert_string_equal(config->devices[1]->permissions, "rwm");
    assert_int_equal(config->n_mounts, n_mounts + 2);
    assert_string_equal(config->mounts[n_mounts]->container_path, "/c");
    assert_true(config->mounts[n_mounts]->readonly);
    assert_int_equal(config->mounts[n_mounts]->propagation,
                     CRI_V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER);
    assert_false(config->mounts[n_mounts + 1]->readonly);
    assert_int_equal(config->linux->security_context->n_supplemental_groups, 2);
    assert_int_equal(config->linux->security_context->supplemental_groups[1], 44);
}

static void what_cannot_be_told_is_named(void **state)
{
    static const struct {
        const char *edits;
        const char *want;
    } cases[] = {
        {"{hooks: [{hookName: createContainer, path: /bin/h}]}",                              "hook createContainer /bin/h"                   },
        {"{intelRdt: {closID: a}}",                                                           "intelRdt"                                      },
        {"{netDevices: [{hostInterfaceName: eth7, name: eth1}]}",                             "network device eth7"                           },
        {"{mounts: [{hostPath: /h, containerPath: /c, type: tmpfs}]}",                        "mount /c of type tmpfs"                        },
        {"{mounts: [{hostPath: /h, containerPath: /c, options: [nosuid]}]}",
         "mount /c with option nosuid"                                                                                                        },
        {"{deviceNodes: [{path: /dev/none}]}",                                                "device node /dev/none is no device of the host"},
        {"{deviceNodes: [{path: /dev/x, hostPath: /dev/null, major: 9, minor: 9, type: c}]}",
         "device node /dev/x is with other numbers than the host's"                                                                           },
        {"{deviceNodes: [{path: /dev/null, type: b}]}",
         "device node /dev/null is of another type than the host's"                                                                           },
        {"{deviceNodes: [{path: /dev/sda, type: c, major: 8, minor: 0}]}",
         "device node /dev/sda is of another type"                                                                                            },
        {"{deviceNodes: [{path: /dev/p, type: p}]}",                                          "device node /dev/p is a FIFO"                  },
        {"{deviceNodes: [{path: /dev/null, fileMode: 384}]}",
         "device node /dev/null is with a mode of its own"                                                                                    },
        {"{deviceNodes: [{path: /dev/null, uid: 7}]}",
         "device node /dev/null is with an owner of its own"                                                                                  },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        CriV1__ContainerConfig *config = make();
        CriV1__ContainerConfig before = *config;
        struct dv_err err;

        assert_false(expand(config, cases[i].edits, &err));
        assert_err(&err, DV_FAILED_PRECONDITION, cases[i].want);
        assert_err(&err, DV_FAILED_PRECONDITION, "CDI device v.example/gpu=a: ");
        assert_err(&err, DV_FAILED_PRECONDITION, "containerd 1.6.20: it takes containerd 2.0");
        assert_memory_equal(config, &before, sizeof(before));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(edits_become_fields),
        doc_test(what_cannot_be_told_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
