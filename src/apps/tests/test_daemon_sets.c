/* test_daemon_sets.c - DaemonSets over the embedded API in memory, with requests that can fail. No
 * scheduler runs: pods stay meant for their nodes, and tests say how they are. */
#include "support/dvtest.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "apps/apps.h"
#include "apps/plan/daemon_set.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "support/api.h"
#include "support/api_front.h"
#include "support/turns.h"

struct world {
    struct api api;
    struct dv_apps *apps; /* NULL: closed */
};

static void open_apps(struct world *world)
{
    struct dv_err err;

    world->apps = dv_apps_open(world->api.loop, &world->api.front.cluster, &err);
    assert_ok(world->apps, &err);
    api_settle(&world->api);
}

static void close_apps(struct world *world)
{
    bool is_closed = false;

    dv_apps_close(world->apps, set_flag, &is_closed);
    world->apps = NULL;
    loop_wait_flag(world->api.loop, &is_closed);
}

static int set_up(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    *state = world;
    api_init(&world->api);
    open_apps(world);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    if (world->apps)
        close_apps(world);
    api_fini(&world->api);
    free(world);
    return 0;
}

/* ---- what tests do ---- */

static void make_node(struct world *world, const char *name)
{
    (void)api_must(api_create(&world->api, DV_KIND_NODE, NULL,
                              api_text(&world->api, "{metadata: {name: %s}}", name)));
    api_settle(&world->api);
}

#define SET(strategy)                                                                              \
    "{metadata: {name: d}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: "        \
    "{labels: {app: x}}, spec: {containers: [{name: c, image: 'i:1'}]}}, "                         \
    "updateStrategy: " strategy "}}"

static void make_set(struct world *world, const char *yaml)
{
    (void)api_must(api_create(&world->api, DV_KIND_DAEMON_SET, NULL, yaml));
    api_settle(&world->api);
}

static void change_set(struct world *world, const char *yaml)
{
    (void)api_must(api_patch(&world->api, DV_KIND_DAEMON_SET, DV_SUB_NONE, NULL, "d", yaml));
    api_settle(&world->api);
}

static void set_image(struct world *world, const char *image)
{
    change_set(world, api_text(&world->api,
                               "{spec: {template: {spec: {containers: [{name: c, image: '%s'}]}}}}",
                               image));
}

static void make_ready(struct world *world, const char *pod)
{
    (void)api_must(api_patch(&world->api, DV_KIND_POD, DV_SUB_STATUS, NULL, pod,
                             "{status: {phase: Running, conditions: [{type: Ready, status: 'True', "
                             "lastTransitionTime: '2020-01-01T00:00:00Z'}]}}"));
    api_settle(&world->api);
}

static const struct dv_api_pod *pod_on(struct world *world, const char *node, const char *image)
{
    struct dv_object **pods;
    size_t n = api_list(&world->api, DV_KIND_POD, NULL, &pods);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_pod *pod = pods[i]->value;

        if (dv_str_eq(dv_daemon_node_of(pod), dv_str_from_c(node)) &&
            dv_str_eq(pod->spec.containers[0].image, dv_str_from_c(image)))
            return pod;
    }
    return NULL;
}

static void make_ready_on(struct world *world, const char *node, const char *image)
{
    const struct dv_api_pod *pod = pod_on(world, node, image);

    assert_non_null(pod);
    make_ready(world, api_text(&world->api, "%.*s", DV_FMT(pod->metadata.name)));
}

/* "a:i:1 b:i:2": the nodes and images of all pods, in the order of the nodes that are given. */
static const char *pods_of(struct world *world, const char *const *nodes, size_t n_nodes)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    for (size_t i = 0; i < n_nodes; i++)
        for (int image = 1; image <= 3; image++) {
            const char *name = api_text(&world->api, "i:%d", image);

            if (pod_on(world, nodes[i], name))
                dv_buf_printf(&buf, "%s%s=%d", buf.n > 0 ? " " : "", nodes[i], image);
        }
    return api_text(&world->api, "%.*s", DV_FMT(dv_buf_str(&buf)));
}

static const char *const ab[] = {"a", "b"};

static const struct dv_api_daemon_set_status *status_of(struct world *world)
{
    const struct dv_object *set = api_get(&world->api, DV_KIND_DAEMON_SET, NULL, "d");

    return &((const struct dv_api_daemon_set *)set->value)->status;
}

static size_t n_of(struct world *world, enum dv_kind_id kind)
{
    struct dv_object **objects;

    return api_list(&world->api, kind, NULL, &objects);
}

/* ---- tests ---- */

static void nodes_get_their_pods(void **state)
{
    struct world *world = *state;

    make_node(world, "a");
    make_set(world, SET("{}"));
    assert_string_equal(pods_of(world, ab, 2), "a=1");
    make_node(world, "b");
    assert_string_equal(pods_of(world, ab, 2), "a=1 b=1");
    assert_int_equal(status_of(world)->desired_number_scheduled, 2);
    assert_int_equal(status_of(world)->current_number_scheduled, 2);
    assert_int_equal(status_of(world)->number_ready, 0);
    assert_int_equal(status_of(world)->updated_number_scheduled, 2);
    assert_int_equal(status_of(world)->observed_generation, 1);
    make_ready_on(world, "a", "i:1");
    assert_int_equal(status_of(world)->number_ready, 1);
    assert_int_equal(status_of(world)->number_available, 1);
    (void)api_must(api_delete(&world->api, DV_KIND_NODE, NULL, "b", NULL));
    api_settle(&world->api);
    assert_string_equal(pods_of(world, ab, 2), "a=1");
}

static void a_label_decides(void **state)
{
    struct world *world = *state;

    make_node(world, "a");
    make_set(world,
             "{metadata: {name: d}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: "
             "{labels: {app: x}}, spec: {nodeSelector: {gpu: 'yes'}, containers: [{name: c, image: "
             "'i:1'}]}}}}");
    assert_string_equal(pods_of(world, ab, 2), "");
    assert_int_equal(status_of(world)->observed_generation, 1);
    (void)api_must(api_patch(&world->api, DV_KIND_NODE, DV_SUB_NONE, NULL, "a",
                             "{metadata: {labels: {gpu: 'yes'}}}"));
    api_settle(&world->api);
    assert_string_equal(pods_of(world, ab, 2), "a=1");
    (void)api_must(api_patch(&world->api, DV_KIND_NODE, DV_SUB_NONE, NULL, "a",
                             "{metadata: {labels: {gpu: 'no'}}}"));
    api_settle(&world->api);
    assert_string_equal(pods_of(world, ab, 2), "");
}

static void a_new_template_comes_node_by_node(void **state)
{
    struct world *world = *state;

    make_node(world, "a");
    make_node(world, "b");
    make_set(world, SET("{}"));
    make_ready_on(world, "a", "i:1");
    make_ready_on(world, "b", "i:1");
    set_image(world, "i:2");
    assert_int_equal(n_of(world, DV_KIND_POD), 2);
    assert_int_equal(status_of(world)->updated_number_scheduled, 1);
    assert_int_equal(status_of(world)->number_available, 1);
    make_ready_on(world, pod_on(world, "a", "i:2") ? "a" : "b", "i:2");
    assert_string_equal(pods_of(world, ab, 2), "a=2 b=2");
    assert_int_equal(n_of(world, DV_KIND_CONTROLLER_REVISION), 2);
    set_image(world, "i:1"); /* back again: its revision is used once more */
    assert_int_equal(n_of(world, DV_KIND_CONTROLLER_REVISION), 2);
}

static void a_surge_keeps_the_old_pod(void **state)
{
    struct world *world = *state;

    make_node(world, "a");
    make_set(world, SET("{rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}"));
    make_ready_on(world, "a", "i:1");
    set_image(world, "i:2");
    assert_string_equal(pods_of(world, ab, 2), "a=1 a=2");
    make_ready_on(world, "a", "i:2");
    assert_string_equal(pods_of(world, ab, 2), "a=2");
}

static void a_failed_pod_is_made_anew(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *pod;
    const char *first;

    make_node(world, "a");
    make_set(world, SET("{}"));
    for (int i = 0; i < 3; i++) {
        pod = pod_on(world, "a", "i:1");
        first = api_text(&world->api, "%.*s", DV_FMT(pod->metadata.name));
        (void)api_must(api_patch(&world->api, DV_KIND_POD, DV_SUB_STATUS, NULL, first,
                                 "{status: {phase: Failed}}"));
        api_settle(&world->api);
        if (i > 0) { /* the second stays for a second, the third for two */
            assert_non_null(api_get(&world->api, DV_KIND_POD, NULL, first));
            api_pass(&world->api, 1000u << (i - 1));
        }
        assert_null(api_get(&world->api, DV_KIND_POD, NULL, first));
        assert_int_equal(n_of(world, DV_KIND_POD), 1);
    }
}

static void an_orphan_is_adopted_and_a_stranger_released(void **state)
{
    struct world *world = *state;
    const struct dv_api_pod *pod;
    const char *name;

    make_node(world, "a");
    make_set(world, SET("{}"));
    pod = pod_on(world, "a", "i:1");
    name = api_text(&world->api, "%.*s", DV_FMT(pod->metadata.name));
    (void)api_must(api_patch(&world->api, DV_KIND_POD, DV_SUB_NONE, NULL, name,
                             "{metadata: {labels: {app: other}}}"));
    api_settle(&world->api);
    assert_int_equal(n_of(world, DV_KIND_POD), 2);
    assert_null(dv_controller_of(api_get(&world->api, DV_KIND_POD, NULL, name)->meta));
    (void)api_must(api_patch(&world->api, DV_KIND_POD, DV_SUB_NONE, NULL, name,
                             "{metadata: {labels: {app: x}}}"));
    api_settle(&world->api);
    assert_int_equal(n_of(world, DV_KIND_POD), 1); /* of two on a node the older one stays */
}

/* Each request in turn is refused, lost with its effect or without: nothing is doubled. */
static void every_request_may_fail(void **state)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT, FAULT_REFUSED};
    struct world *world = *state;

    make_node(world, "a");
    make_node(world, "b");
    for (size_t i = 0; i < 5 * DV_COUNT(faults); i++) {
        world->api.front.fault = faults[i % DV_COUNT(faults)];
        world->api.front.fault_at = world->api.front.n_requests + i / DV_COUNT(faults) + 1;
        make_set(world, SET("{}"));
        api_pass(&world->api, 10000);
        assert_string_equal(pods_of(world, ab, 2), "a=1 b=1");
        assert_int_equal(n_of(world, DV_KIND_POD), 2);
        assert_int_equal(status_of(world)->current_number_scheduled, 2);
        world->api.front.fault = FAULT_NONE;
        (void)api_must(api_delete(&world->api, DV_KIND_DAEMON_SET, NULL, "d", NULL));
        api_pass(&world->api, 10000);
        assert_int_equal(n_of(world, DV_KIND_POD), 0);
        assert_int_equal(n_of(world, DV_KIND_CONTROLLER_REVISION), 0);
    }
}

static void it_goes_on_where_it_was(void **state)
{
    struct world *world = *state;

    make_node(world, "a");
    make_node(world, "b");
    make_set(world, SET("{}"));
    make_ready_on(world, "a", "i:1");
    make_ready_on(world, "b", "i:1");
    set_image(world, "i:2");
    close_apps(world);
    make_ready_on(world, pod_on(world, "a", "i:2") ? "a" : "b", "i:2");
    open_apps(world);
    assert_string_equal(pods_of(world, ab, 2), "a=2 b=2");
    assert_int_equal(n_of(world, DV_KIND_POD), 2);
    assert_int_equal(n_of(world, DV_KIND_CONTROLLER_REVISION), 2);
}

/* A name that is taken by something else is evaded. */
static void a_taken_name_of_a_revision_is_evaded(void **state)
{
    struct world *world = *state;
    struct dv_object **revisions;
    const char *name;

    make_node(world, "a");
    make_set(world, SET("{}"));
    assert_int_equal(api_list(&world->api, DV_KIND_CONTROLLER_REVISION, NULL, &revisions), 1);
    name = api_text(&world->api, "%.*s", DV_FMT(revisions[0]->meta->name));
    (void)api_must(api_delete(&world->api, DV_KIND_DAEMON_SET, NULL, "d", NULL));
    api_pass(&world->api, 1000);
    (void)api_must(
        api_create(&world->api, DV_KIND_CONTROLLER_REVISION, NULL,
                   api_text(&world->api, "{metadata: {name: %s}, data: {}, revision: 1}", name)));
    make_set(world, SET("{}"));
    api_pass(&world->api, 1000);
    assert_int_equal(*status_of(world)->collision_count, 1);
    assert_string_equal(pods_of(world, ab, 2), "a=1");
}

static void many_nodes_get_their_pods(void **state)
{
    struct world *world = *state;

    for (size_t i = 0; i < 600; i++)
        (void)api_must(api_create(&world->api, DV_KIND_NODE, NULL,
                                  api_text(&world->api, "{metadata: {name: n%zu}}", i)));
    make_set(world, SET("{}"));
    /* Plans for so many are made on a worker, for which the clock does not wait: up to a minute of
     * real time. */
    for (size_t i = 0; i < 60000 && status_of(world)->current_number_scheduled < 600; i++) {
        (void)poll(NULL, 0, 1);
        api_pass(&world->api, 50);
    }
    assert_int_equal(n_of(world, DV_KIND_POD), 600);
    assert_int_equal(status_of(world)->current_number_scheduled, 600);
}

#define a_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        a_test(nodes_get_their_pods),
        a_test(a_label_decides),
        a_test(a_new_template_comes_node_by_node),
        a_test(a_surge_keeps_the_old_pod),
        a_test(a_failed_pod_is_made_anew),
        a_test(an_orphan_is_adopted_and_a_stranger_released),
        a_test(every_request_may_fail),
        a_test(it_goes_on_where_it_was),
        a_test(a_taken_name_of_a_revision_is_evaded),
        a_test(many_nodes_get_their_pods),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
