/* test_cri_able.c - what a runtime can do, by its versions and configs, and its listings. */
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cri/cri.h"
#include "cri/cri_able.h"
#include "cri/cri_list.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "support/dvtest.h"

static void read_status(const char *name, const char *version, const char *config,
                        struct dv_arena *arena, struct dv_cri_runtime *runtime)
{
    CriV1__StatusResponse status = CRI_V1__STATUS_RESPONSE__INIT;
    CriV1__StatusResponse__InfoEntry *info = NULL;

    if (config)
        info = dv_pb_entry_new(&cri_v1__status_response__info_entry__descriptor, "config", config,
                               arena);
    status.info = &info;
    status.n_info = config ? 1 : 0;
    *runtime =
        (struct dv_cri_runtime){.name = dv_str_from_c(name), .version = dv_str_from_c(version)};
    dv_cri_able_status(&status, arena, runtime);
}

#define CDI_ON "{\"enableCDI\":true,\"cdiSpecDirs\":[\"/etc/cdi\",\"/var/run/cdi\"]}"
#define CDI_OFF "{\"enableCDI\":false,\"cdiSpecDirs\":[\"/etc/cdi\",\"/var/run/cdi\"]}"

static void knows_who_applies_cdi_names(void **state)
{
    static const struct {
        const char *name;
        const char *version;
        const char *config;
        bool has_cdi;
        size_t n_dirs;
    } rows[] = {
        {"containerd",  "1.6.20~ds1", "{\"enableSelinux\":false}", false, 0},
        {"containerd",  "1.6.20",     CDI_ON,                      false, 0},
        {"containerd",  "1.7.1",      CDI_ON,                      false, 0},
        {"containerd",  "1.7.2",      CDI_ON,                      true,  2},
        {"containerd",  "1.7.24",     CDI_OFF,                     false, 0},
        {"containerd",  "v1.7.24",    CDI_ON,                      true,  2},
        {"containerd",  "v2.1.9",     CDI_ON,                      true,  2},
        {"containerd",  "v2.3.4",     CDI_OFF,                     false, 0},
        {"containerd",  "2.0.0-rc.1", CDI_ON,                      true,  2},
        {"containerd",  "v2.1.9",     NULL,                        false, 0},
        {"containerd",  "v2.1.9",     "not JSON",                  false, 0},
        {"containerd",  "v2.1.9",     "{\"enableCDI\":\"true\"}",  false, 0},
        {"containerd",  "no version", CDI_ON,                      false, 0},
        {"cri-o",       "1.27.3",     NULL,                        false, 0},
        {"cri-o",       "1.28.0",     NULL,                        true,  0},
        {"cri-o",       "1.35.1",     NULL,                        true,  0},
        {"cri-dockerd", "1.35.1",     CDI_ON,                      false, 0},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cri_runtime runtime;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        read_status(rows[i].name, rows[i].version, rows[i].config, arena, &runtime);
        if (runtime.has_cdi != rows[i].has_cdi || runtime.n_cdi_dirs != rows[i].n_dirs)
            fail_msg("%s %s: %d, %zu directories", rows[i].name, rows[i].version, runtime.has_cdi,
                     runtime.n_cdi_dirs);
    }
    read_status("containerd", "1.7.24", CDI_ON, arena, &runtime);
    assert_str(runtime.cdi_dirs[0], "/etc/cdi");
    assert_str(runtime.cdi_dirs[1], "/var/run/cdi");
}

static void knows_the_cgroup_driver(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    CriV1__RuntimeConfigResponse config = CRI_V1__RUNTIME_CONFIG_RESPONSE__INIT;
    CriV1__LinuxRuntimeConfiguration own = CRI_V1__LINUX_RUNTIME_CONFIGURATION__INIT;
    struct dv_cri_runtime runtime;

    (void)state;
    read_status("containerd", "1.6.20",
                "{\"containerd\":{\"defaultRuntimeName\":\"crun\",\"runtimes\":{"
                "\"runc\":{\"options\":{\"SystemdCgroup\":false}},"
                "\"crun\":{\"options\":{\"SystemdCgroup\":true}}}}}",
                arena, &runtime);
    assert_true(runtime.knows_cgroup_driver && runtime.is_systemd_cgroups);
    read_status("containerd", "1.6.20", "{}", arena, &runtime);
    assert_false(runtime.knows_cgroup_driver);
    dv_cri_able_config(&config, &runtime);
    assert_false(runtime.knows_cgroup_driver);
    config.linux = &own;
    own.cgroup_driver = CRI_V1__CGROUP_DRIVER__CGROUPFS;
    dv_cri_able_config(&config, &runtime);
    assert_true(runtime.knows_cgroup_driver && !runtime.is_systemd_cgroups);
    own.cgroup_driver = CRI_V1__CGROUP_DRIVER__SYSTEMD;
    dv_cri_able_config(&config, &runtime);
    assert_true(runtime.is_systemd_cgroups);
}

/* Which must not be removed, and which only younger runtimes have pinned. */
static void knows_the_image_of_sandboxes(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cri_runtime runtime;

    (void)state;
    read_status("containerd", "1.6.20", "{\"sandboxImage\":\"registry.k8s.io/pause:3.6\"}", arena,
                &runtime);
    assert_str(runtime.sandbox_image, "registry.k8s.io/pause:3.6");
    read_status("containerd", "1.6.20", "{\"sandboxImage\":7}", arena, &runtime);
    assert_str(runtime.sandbox_image, "");
    read_status("cri-o", "1.35.1", "{\"sandboxImage\":\"x\"}", arena, &runtime);
    assert_str(runtime.sandbox_image, "");
}

static void knows_who_mounts_images(void **state)
{
    static const struct {
        const char *name;
        const char *version;
        bool has_image_volumes;
    } rows[] = {
        {"containerd",  "1.6.20~ds1", false},
        {"containerd",  "v1.7.29",    false},
        {"containerd",  "v2.0.5",     false},
        {"containerd",  "v2.1.9",     true },
        {"cri-o",       "1.30.9",     false},
        {"cri-o",       "1.31.0",     true },
        {"cri-dockerd", "9.9.9",      false},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cri_runtime runtime;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        read_status(rows[i].name, rows[i].version, NULL, arena, &runtime);
        if (runtime.has_image_volumes != rows[i].has_image_volumes)
            fail_msg("%s %s", rows[i].name, rows[i].version);
    }
}

static void knows_what_handlers_can(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    CriV1__StatusResponse status = CRI_V1__STATUS_RESPONSE__INIT;
    CriV1__RuntimeHandlerFeatures features = CRI_V1__RUNTIME_HANDLER_FEATURES__INIT;
    CriV1__RuntimeHandler able = CRI_V1__RUNTIME_HANDLER__INIT;
    CriV1__RuntimeHandler plain = CRI_V1__RUNTIME_HANDLER__INIT;
    CriV1__RuntimeHandler *handlers[] = {&plain, &able};
    CriV1__RuntimeFeatures all = CRI_V1__RUNTIME_FEATURES__INIT;
    struct dv_cri_runtime runtime = {.name = DV_STR("containerd"), .version = DV_STR("2.1.9")};

    (void)state;
    able.name = "runc";
    able.features = &features;
    features.recursive_read_only_mounts = true;
    all.supplemental_groups_policy = true;
    status.runtime_handlers = handlers;
    status.n_runtime_handlers = 2;
    status.features = &all;
    dv_cri_able_status(&status, arena, &runtime);
    assert_int_equal(runtime.n_handlers, 2);
    assert_str(runtime.handlers[0].name, "");
    assert_false(runtime.handlers[0].has_recursive_read_only);
    assert_str(runtime.handlers[1].name, "runc");
    assert_true(runtime.handlers[1].has_recursive_read_only);
    assert_false(runtime.handlers[1].has_user_namespaces);
    assert_true(runtime.has_supplemental_groups_policy);
    assert_false(runtime.has_shared_events);
}

/* ---- listings ---- */

/* A sandbox of the pod `uid`; NULL: without the label. */
static void add_sandbox(struct dv_buf *buf, const char *id, const char *uid, uint64_t at_state)
{
    size_t item = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(id));
    dv_pb_add_number(buf, 3, at_state);
    if (uid) {
        size_t label = dv_pb_begin(buf, 5);

        dv_pb_add_bytes(buf, 1, DV_STR(DV_CRI_LABEL_POD_UID));
        dv_pb_add_bytes(buf, 2, dv_str_from_c(uid));
        dv_pb_end(buf, label);
    }
    dv_pb_end(buf, item);
}

static void lists_only_what_has_a_pod(void **state)
{
    static const char *const strangers[] = {NULL, "", "a/b", "..", ".hide", "a\nb", "é", "a b"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cri_list list = {.n = 0};
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, 1u << 16);
    for (size_t i = 0; i < DV_COUNT(strangers); i++)
        add_sandbox(&buf, "stranger", strangers[i], 0);
    add_sandbox(&buf, "", "uid-1", 0);
    add_sandbox(&buf, "a1", "uid-1", 1);
    add_sandbox(&buf, "a2", "a1b2_C3.d", 99);
    assert_ok(dv_cri_list_read(DV_CRI_SANDBOX, dv_buf_str(&buf), arena, &list, &err), &err);
    assert_int_equal(list.n, 2);
    assert_str(list.v[0].id, "a1");
    assert_str(list.v[0].uid, "uid-1");
    assert_int_equal(list.v[0].state, 1);
    assert_str(list.v[1].uid, "a1b2_C3.d");
    assert_int_equal(list.v[1].state, 99);
    assert_false(dv_cri_list_read(DV_CRI_SANDBOX, dv_str_slice(dv_buf_str(&buf), 0, buf.n - 3),
                                  arena, &list, &err));
    assert_err(&err, DV_INTERNAL, "ListPodSandbox");
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_who_applies_cdi_names),  cmocka_unit_test(knows_the_cgroup_driver),
        cmocka_unit_test(knows_the_image_of_sandboxes), cmocka_unit_test(knows_who_mounts_images),
        cmocka_unit_test(knows_what_handlers_can),      cmocka_unit_test(lists_only_what_has_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
