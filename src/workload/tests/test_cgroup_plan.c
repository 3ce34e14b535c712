/* The cgroups of pods, planned for all kinds of machines. */
#include "base/buf.h"
#include "workload/cgroup.h"
#include "workload/config.h"
#include "workload/tests/test_workload.h"

/* As this kernel prints it: version 1 with version 2 beside it, and what else is mounted. */
#define HYBRID                                                                                     \
    "23 1 0:20 / /sys rw - sysfs sysfs rw\n"                                                       \
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                          \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:2 - cgroup cgroup "                \
    "rw,cpu,cpuacct\n"                                                                             \
    "33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                   \
    "34 31 0:31 / /sys/fs/cgroup/hugetlb rw,relatime - cgroup cgroup rw,hugetlb\n"                 \
    "35 31 0:32 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"      \
    "36 31 0:33 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"                       \
    "37 1 0:30 / /mnt/elsewhere rw - cgroup cgroup rw,memory\n"                                    \
    "38 1 0:30 / /sys/fs/cgroups rw - cgroup cgroup rw,memory\n"                                   \
    "39 31 0:34 / /sys/fs/cgroup/with\\040blank rw - cgroup cgroup rw,pids\n"                      \
    "short line\n"
#define UNIFIED "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

#define DIR DV_STR("/sys/fs/cgroup")

static struct dv_cgroup_mounts parse(const char *text)
{
    struct dv_cgroup_mounts mounts;

    dv_cgroup_mounts_parse(dv_str_from_c(text), DIR, arena, &mounts);
    return mounts;
}

static void finds_what_is_mounted(void **state)
{
    struct dv_cgroup_mounts mounts = parse(HYBRID);

    (void)state;
    assert_int_equal(mounts.n, 5);
    assert_str(mounts.v[0].path, "/sys/fs/cgroup/cpu,cpuacct");
    assert_str(mounts.v[0].controllers, "rw,cpu,cpuacct");
    assert_false(mounts.v[0].is_v2);
    assert_str(mounts.v[4].path, "/sys/fs/cgroup/unified");
    assert_true(mounts.v[4].is_v2);
    assert_true(dv_cgroup_mounts_are_useful(&mounts));
    mounts = parse(UNIFIED);
    assert_int_equal(mounts.n, 1);
    assert_str(mounts.v[0].path, "/sys/fs/cgroup");
    assert_false(dv_cgroup_mounts_are_useful(&mounts)); /* what it can is not known yet */
    mounts.v[0].controllers = DV_STR("cpuset cpu io memory pids");
    assert_true(dv_cgroup_mounts_are_useful(&mounts));
    mounts = parse("");
    assert_false(dv_cgroup_mounts_are_useful(&mounts));
}

/* The steps as lines: "DIR/" for a directory, "FILE=TEXT", all without the place of cgroups. */
static const char *print(const struct dv_cgroup_plan *plan)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, 1u << 16);
    for (size_t i = 0; i < plan->n; i++) {
        dv_buf_add(&buf, dv_str_slice(plan->v[i].path, DIR.n, plan->v[i].path.n));
        dv_buf_add_char(&buf, plan->v[i].text.p ? '=' : '/');
        dv_buf_add(&buf, plan->v[i].text);
        dv_buf_add_char(&buf, '\n');
    }
    text = dv_str_to_c(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

static dv_str sizes[] = {DV_STR_INIT("2MB"), DV_STR_INIT("1GB")};

static void plans_the_tree(void **state)
{
    struct dv_cgroup_mounts mounts = {parse(HYBRID).v, 1};
    struct dv_cgroup_tree tree = {.mounts = &mounts, .n_cpus = 4};
    struct dv_cgroup_plan plan = {0};

    (void)state;
    dv_cgroup_plan_tree(&tree, arena, &plan);
    assert_string_equal(print(&plan), "/cpu,cpuacct/kubepods/\n"
                                      "/cpu,cpuacct/kubepods/burstable/\n"
                                      "/cpu,cpuacct/kubepods/besteffort/\n"
                                      "/cpu,cpuacct/kubepods/besteffort/cpu.shares=2\n"
                                      "/cpu,cpuacct/kubepods/cpu.shares=4096\n");
    mounts = parse(UNIFIED);
    mounts.v[0].controllers = DV_STR("cpuset cpu rdma memory");
    tree.root = DV_STR("/davit");
    plan = (struct dv_cgroup_plan){0};
    dv_cgroup_plan_tree(&tree, arena, &plan);
    assert_string_equal(print(&plan),
                        "/cgroup.subtree_control=+cpuset +cpu +memory\n"
                        "/davit/\n"
                        "/davit/cgroup.subtree_control=+cpuset +cpu +memory\n"
                        "/davit/kubepods/\n"
                        "/davit/kubepods/cgroup.subtree_control=+cpuset +cpu +memory\n"
                        "/davit/kubepods/burstable/\n"
                        "/davit/kubepods/besteffort/\n"
                        "/davit/kubepods/besteffort/cpu.weight=1\n"
                        "/davit/cpu.weight=157\n"
                        "/davit/kubepods/cpu.weight=157\n");
}

/* ---- a pod ---- */

#define BURSTABLE                                                                                  \
    "containers: [{name: c, image: x, resources: {requests: {cpu: 100m}, "                         \
    "limits: {memory: 64Mi, hugepages-2Mi: 4Mi}}}]"
#define GUARANTEED                                                                                 \
    "containers: [{name: c, image: x, resources: {limits: {cpu: 200m, memory: 64Mi}}}]"

static void plan_pod(const struct dv_cgroup_tree *tree, const char *spec, uint64_t shares,
                     struct dv_cgroup_plan *plan)
{
    struct dv_workload_node node = test_node();
    struct dv_workload_pod pod = test_pod(spec);
    struct dv_config_cgroup limits;

    node.cgroup_root = tree->root;
    pod.uid = DV_STR("u1");
    dv_config_cgroup(&pod, arena, &limits);
    *plan = (struct dv_cgroup_plan){0};
    dv_cgroup_plan_pod(tree, dv_config_cgroup_parent(&node, &pod, arena), &limits, shares, arena,
                       plan);
}

static void plans_a_pod_in_each_hierarchy(void **state)
{
    struct dv_cgroup_mounts mounts = parse(HYBRID);
    struct dv_cgroup_tree tree = {
        .mounts = &mounts, .page_sizes = {sizes, 2}
    };
    struct dv_cgroup_plan plan;

    (void)state;
    plan_pod(&tree, BURSTABLE, 300, &plan);
    assert_string_equal(print(&plan),
                        "/cpu,cpuacct/kubepods/\n"
                        "/cpu,cpuacct/kubepods/burstable/\n"
                        "/cpu,cpuacct/kubepods/burstable/podu1/\n"
                        "/cpu,cpuacct/kubepods/burstable/podu1/cpu.shares=102\n"
                        "/cpu,cpuacct/kubepods/burstable/cpu.shares=300\n"
                        "/memory/kubepods/\n"
                        "/memory/kubepods/burstable/\n"
                        "/memory/kubepods/burstable/podu1/\n"
                        "/memory/kubepods/burstable/podu1/memory.limit_in_bytes=67108864\n"
                        "/hugetlb/kubepods/\n"
                        "/hugetlb/kubepods/burstable/\n"
                        "/hugetlb/kubepods/burstable/podu1/\n"
                        "/hugetlb/kubepods/burstable/podu1/hugetlb.2MB.limit_in_bytes=4194304\n"
                        "/hugetlb/kubepods/burstable/podu1/hugetlb.1GB.limit_in_bytes=0\n");
    mounts.n = 1;
    plan_pod(&tree, GUARANTEED, 0, &plan);
    assert_string_equal(print(&plan), "/cpu,cpuacct/kubepods/\n"
                                      "/cpu,cpuacct/kubepods/podu1/\n"
                                      "/cpu,cpuacct/kubepods/podu1/cpu.shares=204\n"
                                      "/cpu,cpuacct/kubepods/podu1/cpu.cfs_period_us=100000\n"
                                      "/cpu,cpuacct/kubepods/podu1/cpu.cfs_quota_us=20000\n");
}

static void plans_a_pod_in_version_2(void **state)
{
    struct dv_cgroup_mounts mounts = parse(UNIFIED);
    struct dv_cgroup_tree tree = {
        .mounts = &mounts, .root = DV_STR("/davit"), .page_sizes = {sizes, 1}
    };
    struct dv_cgroup_plan plan;

    (void)state;
    mounts.v[0].controllers = DV_STR("cpu memory hugetlb");
    plan_pod(&tree, GUARANTEED, 0, &plan);
    assert_string_equal(print(&plan),
                        "/cgroup.subtree_control=+cpu +memory +hugetlb\n"
                        "/davit/\n"
                        "/davit/cgroup.subtree_control=+cpu +memory +hugetlb\n"
                        "/davit/kubepods/\n"
                        "/davit/kubepods/cgroup.subtree_control=+cpu +memory +hugetlb\n"
                        "/davit/kubepods/podu1/\n"
                        "/davit/kubepods/podu1/cgroup.subtree_control=+cpu +memory +hugetlb\n"
                        "/davit/kubepods/podu1/cpu.weight=8\n"
                        "/davit/kubepods/podu1/cpu.max=20000 100000\n"
                        "/davit/kubepods/podu1/memory.max=67108864\n"
                        "/davit/kubepods/podu1/hugetlb.2MB.max=0\n");
}

/* A pod's class may not be known any more when it is removed, and a runtime has made its group in
 * all hierarchies. */
static void removes_a_pod_from_everywhere(void **state)
{
    struct dv_cgroup_mounts mounts = parse(HYBRID);
    struct dv_cgroup_tree tree = {.mounts = &mounts, .root = DV_STR("/davit")};
    struct dv_strs dirs = dv_cgroup_dirs_of_pod(&tree, DV_STR("u1"), arena);

    (void)state;
    assert_int_equal(dirs.n, 15);
    assert_str(dirs.v[0], "/sys/fs/cgroup/cpu,cpuacct/davit/kubepods/podu1");
    assert_str(dirs.v[1], "/sys/fs/cgroup/cpu,cpuacct/davit/kubepods/burstable/podu1");
    assert_str(dirs.v[14], "/sys/fs/cgroup/unified/davit/kubepods/besteffort/podu1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(finds_what_is_mounted),         doc_test(plans_the_tree),
        doc_test(plans_a_pod_in_each_hierarchy), doc_test(plans_a_pod_in_version_2),
        doc_test(removes_a_pod_from_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
