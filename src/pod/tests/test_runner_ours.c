#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cri/cri.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "support/dvtest.h"
#include "support/scratch.h"

/* A pod u1 of one sandbox, with a container that has this mounted; NULL: with none. */
static bool is_ours(const char *host_path, bool is_ready, const char *root_dir)
{
    CriV1__PodSandboxStatus sandbox = CRI_V1__POD_SANDBOX_STATUS__INIT;
    CriV1__ContainerStatus container = CRI_V1__CONTAINER_STATUS__INIT;
    CriV1__Mount mount = CRI_V1__MOUNT__INIT;
    CriV1__Mount *mounts[] = {&mount};
    const CriV1__PodSandboxStatus *sandboxes[] = {&sandbox};
    const CriV1__ContainerStatus *containers[] = {&container};
    char path[256];

    sandbox.state = is_ready ? CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY
                             : CRI_V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
    (void)snprintf(path, sizeof(path), "%s", host_path ? host_path : "");
    mount.host_path = path;
    container.mounts = mounts;
    container.n_mounts = 1;
    return dv_runner_is_ours(&(struct dv_cri_pod){.uid = DV_STR("u1"),
                                                  .sandboxes = sandboxes,
                                                  .n_sandboxes = 1,
                                                  .containers = containers,
                                                  .n_containers = host_path ? 1 : 0},
                             dv_str_from_c(root_dir));
}

static void what_is_mounted_tells_whose_a_pod_is(void **state)
{
    (void)state;
    for (int ready = 0; ready < 2; ready++) {
        assert_true(is_ours("/var/lib/kubelet/pods/u1/etc-hosts", ready, "/var/lib/kubelet"));
        assert_true(is_ours("/k/pods/u1/containers/c/01234567", ready, "/k"));
        assert_false(is_ours("/var/lib/kubelet/pods/u1/etc-hosts", ready, "/k"));
        assert_false(is_ours("/var/lib/kubelet/pods/u12/etc-hosts", ready, "/var/lib/kubelet"));
        assert_false(is_ours("/var/lib/kubelet/pods/u1", ready, "/var/lib/kubelet"));
        assert_false(is_ours("/var/lib/kubelet2/pods/u1/etc-hosts", ready, "/var/lib/kubelet"));
        assert_false(is_ours("", ready, "/var/lib/kubelet"));
    }
}

static void a_sandbox_alone_is_ours_when_its_directory_is(void **state)
{
    char dir[64];
    char path[128];

    (void)state;
    scratch_make_in_memory("ours", dir, sizeof(dir));
    assert_false(is_ours(NULL, true, dir));
    assert_true(is_ours(NULL, false, dir)); /* of use to nobody */
    (void)snprintf(path, sizeof(path), "%s/pods", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/pods/u1", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(is_ours(NULL, true, dir));
    scratch_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mounted_tells_whose_a_pod_is),
        cmocka_unit_test(a_sandbox_alone_is_ours_when_its_directory_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
