/* test_owner.c - a pod ends with the process, or the control group, that runs it. */
#include "support/dvtest.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pod/admission/owner.h"
#include "pod/admission/pod_row.h"
#include "pod/pod.h"
#include "pod/tests/test_agent_host.h"

/* Spawned, not forked: it must not hold the locks of the stores. */
static pid_t start_child(void)
{
    char name[] = "sleep";
    char seconds[] = "100"; /* a test that fails leaves nobody behind for long */
    char *argv[] = {name, seconds, NULL};
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, name, NULL, NULL, argv, environ), 0);
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (waitpid(pid, NULL, 0) < 0)
        assert_int_equal(errno, EINTR);
}

/* A pod that wants a GPU, with these annotations. */
static const char *pod_json(struct world *world, const char *name, const char *annotations)
{
    return text(world,
                "{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":{%s}},\"spec\":{"
                "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" GPU "\":1}}}]}}",
                name, name, annotations);
}

static const char *of_process(struct world *world, pid_t pid)
{
    return text(world, "\"davit.node/owner-pid\":\"%d\"", (int)pid);
}

/* ---- processes ---- */

static void a_pod_ends_with_its_process(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    assert_null(admit_by_hand(world, pod_json(world, "p1", of_process(world, pid))));
    pass(world, 5000);
    assert_string_equal(held(world), "p1=g0 ");
    end_child(pid);
    expect_held(world, "");
}

static void a_process_that_nobody_waits_for_has_ended(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();
    const char *error;

    assert_null(admit_by_hand(world, pod_json(world, "p1", of_process(world, pid))));
    assert_int_equal(kill(pid, SIGKILL), 0);
    expect_held(world, "");
    error = admit_by_hand(world, pod_json(world, "p2", of_process(world, pid)));
    assert_non_null(error);
    while (waitpid(pid, NULL, 0) < 0)
        assert_int_equal(errno, EINTR);
}

static void a_pod_of_the_api_succeeds_with_its_process(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    create_pod_with(world, "p1",
                    text(world, "annotations: {davit.node/owner-pid: \"%d\"}", (int)pid));
    expect(world, "p1", "Running");
    end_child(pid);
    expect(world, "p1", "Succeeded PodCompleted");
    assert_string_equal(held(world), "");
}

static void an_owner_must_be_there(void **state)
{
    static const struct {
        const char *annotations;
        const char *error;
    } cases[] = {
        {"\"davit.node/owner-pid\":\"4194305\"",                             "there is no process 4194305"       },
        {"\"davit.node/owner-pid\":\"no\"",                                  "davit.node/owner-pid"              },
        {"\"davit.node/owner-pid\":\"-1\"",                                  "davit.node/owner-pid"              },
        {"\"davit.node/owner-pid\":\"1\",\"davit.node/owner-cgroup\":\"x\"", "has two owners"                    },
        {"\"davit.node/owner-cgroup\":\"dv/no/no\"",                         "no control group /sys/fs/cgroup/dv"},
    };
    struct world *world = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const char *error = admit_by_hand(world, pod_json(world, "p1", cases[i].annotations));

        assert_non_null(error);
        if (!strstr(error, cases[i].error))
            fail_msg("%s: %s", cases[i].annotations, error);
        assert_string_equal(held(world), "");
    }
}

static void a_process_that_ends_while_davitd_is_away_is_missed(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();
    pid_t other = start_child();

    assert_null(admit_by_hand(world, pod_json(world, "p1", of_process(world, pid))));
    assert_null(admit_by_hand(world, pod_json(world, "p2", of_process(world, other))));
    world_close_node(world);
    end_child(pid);
    world_open_node(world);
    expect_held(world, "p2=g1 ");
    end_child(other);
    expect_held(world, "");
}

/* ---- another process of the same number ---- */

static void another_process_of_the_same_number_is_not_the_owner(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();
    const char *json = pod_json(world, "p1", of_process(world, pid));
    struct dv_pod_spec spec;
    struct dv_err err;

    assert_ok(dv_pod_spec_parse(dv_str_from_c(json), world->arena, &spec, &err), &err);
    assert_ok(dv_owner_settle(&spec, world->arena, &err), &err);
    put_pod(world, "p1", dv_pod_row_print(&spec, dv_str_from_c(json), world->arena));
    json = text(world, "%s,\"davit.node/owner-start\":\"1\"", of_process(world, pid));
    put_pod(world, "p2", dv_str_from_c(pod_json(world, "p2", json)));
    world_close_node(world);
    world_open_node(world);
    expect_held(world, "p1= ");
    pass(world, 3000);
    assert_string_equal(held(world), "p1= ");
    end_child(pid);
    expect_held(world, "");
}

/* What is told of the start counts for nothing at an admission: only we know it. */
static void a_start_that_is_told_is_not_believed(void **state)
{
    struct world *world = *state;
    pid_t pid = start_child();

    assert_null(admit_by_hand(world, pod_json(world, "p1",
                                              text(world, "\"davit.node/owner-start\":\"1\",%s",
                                                   of_process(world, pid)))));
    pass(world, 3000);
    assert_string_equal(held(world), "p1=g0 ");
    end_child(pid);
    expect_held(world, "");
}

/* ---- busy pods ---- */

static void on_started(struct dv_pod_start *start, const struct dv_err *err)
{
    (void)start;
    assert_non_null(err);
}

static void a_pod_that_is_being_started_ends_later(void **state)
{
    struct dv_pod_start start = {.done = on_started};
    const struct dv_pod_ref ref = {.uid = DV_STR("p1")};
    struct world *world = *state;
    pid_t pid = start_child();

    create_claim(world, "c1");
    patch(world, DV_KIND_CLAIM, "c1", DV_SUB_STATUS,
          "{status: {allocation: {devices: {results: [{request: r, driver: " DRIVER
          ", pool: pool, device: dev}]}}, reservedFor: [{resource: pods, name: p1, uid: p1}]}}");
    assert_null(admit_by_hand(
        world, text(world,
                    "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\",\"annotations\":{%s}},\"spec\":{"
                    "\"resourceClaims\":[{\"name\":\"g\",\"resourceClaimName\":\"c1\"}],"
                    "\"containers\":[{\"name\":\"c\",\"resources\":{\"claims\":[{\"name\":\"g\"}]}"
                    "}]}}",
                    of_process(world, pid))));
    world_close(world);
    world->boot_id = "boot-2"; /* its claims are to be prepared again */
    world->driver.holds = true;
    world_open(world);
    dv_pods_start_container(world->pods, &start, &ref, DV_STR("c"));
    settle(world);
    end_child(pid);
    pass(world, 500);
    assert_string_equal(held(world), "p1=+c1 ");
    world->driver.holds = false;
    dv_pods_cancel_start(&start);
    expect_held(world, "");
}

/* ---- control groups ---- */

struct group {
    char path[128];
};

/* False: this machine does not let us. */
static bool make_group(struct group *group)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/cpuacct"};

    for (size_t i = 0; i < DV_COUNT(roots); i++) {
        char procs[160];

        (void)snprintf(group->path, sizeof(group->path), "%s/dv-test-%d", roots[i], (int)getpid());
        (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", group->path);
        if (mkdir(group->path, 0700) == 0 && access(procs, W_OK) == 0)
            return true;
        (void)rmdir(group->path); /* a plain directory, or none */
    }
    return false;
}

static bool join_group(const struct group *group, pid_t pid)
{
    char procs[160];
    FILE *file;
    bool ok;

    (void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", group->path);
    file = fopen(procs, "w");
    if (!file)
        return false;
    ok = fprintf(file, "%d", (int)pid) > 0;
    return fclose(file) == 0 && ok;
}

static void remove_group(const struct group *group)
{
    for (int i = 0; i < 1000 && rmdir(group->path) < 0; i++)
        (void)usleep(1000); /* the kernel takes a moment */
}

static const char *of_group(struct world *world, const struct group *group)
{
    return text(world, "\"davit.node/owner-cgroup\":\"%s\"", group->path);
}

static void a_pod_ends_when_its_control_group_is_empty_again(void **state)
{
    struct world *world = *state;
    struct group group;
    pid_t pid;

    if (!make_group(&group))
        skip();
    pid = start_child();
    assert_null(admit_by_hand(world, pod_json(world, "p1", of_group(world, &group))));
    pass(world, 5000); /* nobody is in it yet */
    assert_string_equal(held(world), "p1=g0 ");
    if (join_group(&group, pid)) {
        pass(world, 3000);
        assert_string_equal(held(world), "p1=g0 ");
        end_child(pid);
        expect_held(world, "");
    } else {
        end_child(pid);
    }
    remove_group(&group);
}

static void a_control_group_may_be_left_while_davitd_is_away(void **state)
{
    struct world *world = *state;
    struct group group;
    pid_t pid;

    if (!make_group(&group))
        skip();
    pid = start_child();
    assert_null(admit_by_hand(world, pod_json(world, "p1", of_group(world, &group))));
    pass(world, 2000);
    world_close_node(world);
    world_open_node(world);
    pass(world, 3000); /* it has not been used at all */
    assert_string_equal(held(world), "p1=g0 ");
    world_close_node(world);
    if (join_group(&group, pid)) {
        end_child(pid);
        world_open_node(world);
        expect_held(world, "");
    } else {
        end_child(pid);
    }
    remove_group(&group);
}

static void a_pod_ends_when_its_control_group_is_gone(void **state)
{
    struct world *world = *state;
    struct group group;

    if (!make_group(&group))
        skip();
    assert_null(admit_by_hand(world, pod_json(world, "p1", of_group(world, &group))));
    pass(world, 2000);
    assert_string_equal(held(world), "p1=g0 ");
    remove_group(&group);
    expect_held(world, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_pod_ends_with_its_process),
        world_test(a_process_that_nobody_waits_for_has_ended),
        world_test(a_pod_of_the_api_succeeds_with_its_process),
        world_test(an_owner_must_be_there),
        world_test(a_process_that_ends_while_davitd_is_away_is_missed),
        world_test(another_process_of_the_same_number_is_not_the_owner),
        world_test(a_start_that_is_told_is_not_believed),
        world_test(a_pod_that_is_being_started_ends_later),
        world_test(a_pod_ends_when_its_control_group_is_empty_again),
        world_test(a_control_group_may_be_left_while_davitd_is_away),
        world_test(a_pod_ends_when_its_control_group_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
