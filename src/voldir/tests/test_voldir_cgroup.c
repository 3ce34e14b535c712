/* Cgroups that are made up of plain directories and files: what is planned is done, and undone. */
#include <sys/stat.h>

#include "base/arena.h"
#include "support/dvtest.h"
#include "support/rig.h"
#include "voldir/tests/test_voldir.h"
#include "voldir/voldir.h"
#include "voldir/voldir_jobs.h"
#include "workload/cgroup.h"
#include "workload/config.h"

static void make_dir(const char *path)
{
    assert_int_equal(mkdir(path, 0755), 0);
}

/* One hierarchy with the controller cpu, in which a pod's group is there with its files, as the
 * kernel would make them. */
static void make_hierarchy(struct host *host)
{
    make_dir(at(host, "cpu"));
    make_dir(at(host, "cpu/kubepods"));
    make_dir(at(host, "cpu/kubepods/podu1"));
    write_file(at(host, "cpu/kubepods/podu1/cpu.shares"), "1024");
}

static struct dv_cgroup_tree tree_of(struct host *host)
{
    struct dv_cgroup_mounts *mounts = DV_NEW(host->rig.arena, struct dv_cgroup_mounts);

    mounts->v = DV_NEW(host->rig.arena, struct dv_cgroup_mount);
    mounts->n = 1;
    mounts->v[0].path = dv_str_copy(dv_str_from_c(at(host, "cpu")), host->rig.arena);
    mounts->v[0].controllers = DV_STR("rw,cpu");
    return (struct dv_cgroup_tree){.mounts = mounts, .n_cpus = 2};
}

static void writes_what_is_planned(void **state)
{
    struct host *host = *state;
    struct dv_cgroup_tree tree = tree_of(host);
    struct dv_config_cgroup limits = {.cpu_shares = 102};
    struct dv_cgroup_plan plan = {0};
    struct dv_err err;

    make_hierarchy(host);
    dv_cgroup_plan_pod(&tree, DV_STR("/kubepods/podu1"), &limits, 0, host->rig.arena, &plan);
    assert_ok(dv_voldir_make_cgroups(&plan, &err), &err);
    assert_str(read_file(host, at(host, "cpu/kubepods/podu1/cpu.shares")), "102");
}

static void says_what_cannot_be_made(void **state)
{
    struct host *host = *state;
    struct dv_cgroup_tree tree = tree_of(host);
    struct dv_cgroup_plan plan = {0};
    struct dv_err err;

    dv_cgroup_plan_tree(&tree, host->rig.arena, &plan);
    assert_false(dv_voldir_make_cgroups(&plan, &err)); /* nothing is mounted there */
    assert_err(&err, DV_NOT_FOUND, "make cgroup");
    make_hierarchy(host);
    assert_false(dv_voldir_make_cgroups(&plan, &err)); /* plain directories have no such files */
    assert_err(&err, DV_NOT_FOUND, "cpu.shares");
}

/* The set-up of a pod fails with its cgroup, and says that this is why. */
static void a_pod_has_its_cgroup_first(void **state)
{
    struct host *host = *state;
    struct dv_cgroup_tree tree = tree_of(host);
    struct dv_config_cgroup limits = {.cpu_shares = 2};
    struct dv_cgroup_plan plan = {0};
    struct dv_voldir_set_up op = {.plan = &host->plan, .cgroup = &plan, .arena = host->rig.arena};
    struct dv_err err;

    dv_cgroup_plan_pod(&tree, DV_STR("/kubepods/podu1"), &limits, 0, host->rig.arena, &plan);
    assert_false(dv_voldir_run_set_up(&op, &err));
    assert_true(op.has_no_cgroup);
    assert_true(is_there(at(host, "k/pods/u1"))); /* by which it is found when it is left over */
    make_hierarchy(host);
    op.has_no_cgroup = false;
    assert_ok(dv_voldir_run_set_up(&op, &err), &err);
    assert_false(op.has_no_cgroup);
}

static void a_pods_cgroups_go_with_its_directory(void **state)
{
    struct host *host = *state;
    struct dv_cgroup_tree tree = tree_of(host);
    struct dv_voldir_tear_down op = {
        .root_dir = dv_str_from_c(at(host, "k")),
        .uid = DV_STR("u1"),
        .cgroup_dirs = dv_cgroup_dirs_of_pod(&tree, DV_STR("u1"), host->rig.arena),
    };
    struct dv_err err;

    make_dir(at(host, "cpu"));
    make_dir(at(host, "cpu/kubepods"));
    make_dir(at(host, "cpu/kubepods/podu2"));
    make_dir(at(host, "cpu/kubepods/burstable"));
    make_dir(at(host, "cpu/kubepods/burstable/podu1"));
    make_dir(at(host, "cpu/kubepods/burstable/podu1/left"));
    make_dir(at(host, "cpu/kubepods/burstable/podu1/left/deep"));
    host_set_up(host);
    assert_ok(dv_voldir_run_tear_down(&op, &err), &err);
    assert_str(names_in(host, at(host, "cpu/kubepods")), "burstable podu2");
    assert_str(names_in(host, at(host, "cpu/kubepods/burstable")), "");
    assert_false(is_there(at(host, "k/pods/u1")));
    assert_ok(dv_voldir_run_tear_down(&op, &err), &err); /* again is fine */
}

/* What is no group, or in use, stays, and so does the directory that it is found by. */
static void a_cgroup_that_stays_keeps_the_directory(void **state)
{
    struct host *host = *state;
    struct dv_cgroup_tree tree = tree_of(host);
    struct dv_voldir_tear_down op = {
        .root_dir = dv_str_from_c(at(host, "k")),
        .uid = DV_STR("u1"),
        .cgroup_dirs = dv_cgroup_dirs_of_pod(&tree, DV_STR("u1"), host->rig.arena),
    };
    struct dv_err err;

    make_hierarchy(host); /* with a file, which no cgroup that can be removed has */
    host_set_up(host);
    assert_false(dv_voldir_run_tear_down(&op, &err));
    assert_err(&err, DV_FAILED_PRECONDITION, "podu1");
    assert_true(is_there(at(host, "k/pods/u1")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(writes_what_is_planned),
        host_test(says_what_cannot_be_made),
        host_test(a_pod_has_its_cgroup_first),
        host_test(a_pods_cgroups_go_with_its_directory),
        host_test(a_cgroup_that_stays_keeps_the_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
