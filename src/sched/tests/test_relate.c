/* Pods that want others near or apart, and pods that want to be spread: through the API. */

#include "support/dvtest.h"

#include "resource/resource.h"
#include "sched/sched.h"
#include "sched/tests/test_sched_world.h"

#define HOST "kubernetes.io/hostname"
#define TERM(value, key) "{labelSelector: {matchLabels: {app: " value "}}, topologyKey: " key "}"
#define APART(value, key)                                                                          \
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" TERM(value,   \
                                                                                          key) "]" \
                                                                                               "}" \
                                                                                               "}"
#define NEAR(term)                                                                                 \
    "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" term "]}}"
#define SPREAD(key)                                                                                \
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: " key                                   \
    ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"

static void make_host(struct world *world, const char *name, const char *zone)
{
    (void)make(world, DV_KIND_NODE,
               text(world,
                    "{metadata: {name: %s, labels: {zone: %s, kubernetes.io/hostname: %s}}, "
                    "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}",
                    name, zone, name));
}

static void make_app(struct world *world, const char *name, const char *app, const char *more)
{
    (void)make(world, DV_KIND_POD,
               text(world,
                    "{metadata: {name: %s, labels: {app: %s}}, spec: {containers: [{name: c, "
                    "image: pause}], %s}}",
                    name, app, more));
}

static size_t n_on(struct world *world, const char *node)
{
    struct dv_object **pods;
    size_t n = list(world, DV_KIND_POD, &pods);
    size_t n_there = 0;

    for (size_t i = 0; i < n; i++)
        n_there += dv_str_eq(((const struct dv_api_pod *)pods[i]->value)->spec.node_name,
                             dv_str_from_c(node));
    return n_there;
}

static void pods_that_want_distance_get_a_node_each(void **state)
{
    struct world *world = *state;

    make_host(world, "n1", "z1");
    make_host(world, "n2", "z1");
    for (unsigned i = 1; i <= 4; i++)
        make_app(world, text(world, "p%u", i), "web", APART("web", HOST));
    open_sched(world);
    assert_int_equal(n_on(world, "n1"), 1);
    assert_int_equal(n_on(world, "n2"), 1);
    assert_string_equal(said_of(world, "p4"),
                        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
                        "no new claims to deallocate");
    make_host(world, "n3", "z1");
    pass(world, 20000);
    assert_int_equal(n_on(world, "n3"), 1);
    destroy(world, DV_KIND_POD, "p1");
    pass(world, 20000);
    assert_int_equal(n_on(world, "n1"), 1);
    assert_int_equal(numbers(world).n_pending[DV_SCHED_WAITING], 0);
    assert_at_rest(world);
}

static void a_pod_is_kept_away_by_one_that_wants_distance(void **state)
{
    struct world *world = *state;

    make_host(world, "n1", "z1");
    make_app(world, "p1", "db", APART("web", HOST));
    open_sched(world);
    make_app(world, "p2", "web", "");
    make_app(world, "p3", "other", "");
    settle(world);
    assert_string_equal(node_of(world, "p3"), "n1");
    assert_string_equal(said_of(world, "p2"),
                        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods "
                        "anti-affinity rules. no new claims to deallocate");
    /* The label that was meant goes, and with it the distance. */
    change(world, DV_KIND_POD, "p2", "{metadata: {labels: {app: x}}}");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p2"), "n1");
}

static void a_pod_waits_for_the_one_that_it_wants_near(void **state)
{
    struct world *world = *state;

    make_host(world, "n1", "z1");
    make_host(world, "n2", "z2");
    make_app(world, "p1", "web", NEAR(TERM("db", "zone")));
    open_sched(world);
    assert_string_equal(said_of(world, "p1"),
                        "0/2 nodes are available: 2 node(s) didn't match pod affinity rules. no "
                        "new claims to deallocate");
    pass(world, 20000);
    make_app(world, "p2", "db", "nodeName: n2");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p1"), "n2");
}

static void the_labels_of_nodes_and_namespaces_count_as_they_are(void **state)
{
    struct world *world = *state;

    make_host(world, "n1", "z1");
    make_host(world, "n2", "z2");
    make_app(world, "p1", "db", "nodeName: n1");
    make_app(world, "p2", "web",
             NEAR("{labelSelector: {}, topologyKey: zone, namespaceSelector: {matchLabels: {team: "
                  "red}}}"));
    open_sched(world);
    assert_string_equal(node_of(world, "p2"), "");
    change(world, DV_KIND_NAMESPACE, "default", "{metadata: {labels: {team: red}}}");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p2"), "n1");
    make_app(world, "p3", "x", APART("db", "zone") ", nodeSelector: {kubernetes.io/hostname: n1}");
    settle(world);
    assert_string_equal(node_of(world, "p3"), "");
    make_app(world, "p4", "x",
             NEAR(TERM("db", "zone")) ", nodeSelector: {kubernetes.io/hostname: n2}");
    settle(world);
    assert_string_equal(node_of(world, "p4"), "");
    change(world, DV_KIND_NODE, "n2", "{metadata: {labels: {zone: z1}}}");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p4"), "n2");
    destroy(world, DV_KIND_POD, "p1");
    pass(world, 20000);
    assert_string_equal(node_of(world, "p3"), "n1");
}

static void pods_are_spread_evenly(void **state)
{
    struct world *world = *state;

    make_host(world, "n1", "z1");
    make_host(world, "n2", "z1");
    make_host(world, "n3", "z2");
    for (unsigned i = 1; i <= 8; i++)
        make_app(world, text(world, "p%u", i), "web", SPREAD("zone"));
    open_sched(world);
    assert_int_equal(n_on(world, "n3"), 4);
    assert_int_equal(n_on(world, "n1") + n_on(world, "n2"), 4);
    change(world, DV_KIND_NODE, "n3", "{spec: {unschedulable: true}}");
    make_app(world, "p9", "web", SPREAD("zone"));
    make_app(world, "q1", "web", SPREAD("zone"));
    settle(world);
    assert_int_equal(n_on(world, "n1") + n_on(world, "n2"), 5);
    assert_string_equal(said_of(world, "q1"),
                        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't "
                        "match pod topology spread constraints. no new claims to deallocate");
    change(world, DV_KIND_NODE, "n3", "{spec: {unschedulable: false}}");
    pass(world, 20000);
    assert_int_equal(n_on(world, "n3"), 5);
    assert_at_rest(world);
}

static void wishes_decide_between_nodes_that_fit(void **state)
{
    struct world *world = *state;
    const char *wish = "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
                       "[{weight: 100, podAffinityTerm: " TERM("db", HOST) "}]}}";

    for (unsigned i = 1; i <= 5; i++)
        make_host(world, text(world, "n%u", i), "z1");
    make_app(world, "p1", "db", "nodeName: n4");
    for (unsigned i = 2; i <= 4; i++)
        make_app(world, text(world, "p%u", i), "web", wish);
    open_sched(world);
    assert_int_equal(n_on(world, "n4"), 4);
}

/* Hundreds of pods that are alike, and a world that changes under them: never are two of them on a
 * node, and none waits while a node is free. */
static void a_crowd_that_wants_distance_stays_right(void **state)
{
    struct world *world = *state;
    unsigned n_pods = 60;

    for (unsigned i = 0; i < 10; i++)
        make_host(world, text(world, "n%u", i), "z1");
    for (unsigned i = 0; i < n_pods; i++)
        make_app(world, text(world, "p%u", i), "web", APART("web", HOST));
    open_sched(world);
    for (unsigned round = 0; round < 5; round++) {
        unsigned n_gone = 0;

        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(n_on(world, text(world, "n%u", i)), 1);
        for (unsigned i = 0; i < n_pods && n_gone < 7; i++)
            if (node_of(world, text(world, "p%u", i))[0]) {
                destroy(world, DV_KIND_POD, text(world, "p%u", i));
                n_gone++;
            }
        pass(world, 30000);
    }
    assert_at_rest(world);
}

/* A term that is new is counted over turns of the loop, and not in one. */
static void many_terms_are_counted_in_parts(void **state)
{
    struct world *world = *state;
    const char *terms = "";

    world->options.turn_budget = 4000;
    for (unsigned i = 0; i < 40; i++)
        make_host(world, text(world, "n%u", i), "z1");
    for (unsigned i = 0; i < 100; i++)
        terms = text(world, "%s%s" TERM("a%u", HOST), terms, i > 0 ? ", " : "", i);
    make_app(
        world, "p1", "web",
        text(world,
             "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [%s]}}",
             terms));
    open_sched(world);
    assert_string_not_equal(node_of(world, "p1"), "");
    assert_true(numbers(world).turn_cost_max < 8000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pods_that_want_distance_get_a_node_each),
        TEST(a_pod_is_kept_away_by_one_that_wants_distance),
        TEST(a_pod_waits_for_the_one_that_it_wants_near),
        TEST(the_labels_of_nodes_and_namespaces_count_as_they_are),
        TEST(pods_are_spread_evenly),
        TEST(wishes_decide_between_nodes_that_fit),
        TEST(a_crowd_that_wants_distance_stays_right),
        TEST(many_terms_are_counted_in_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
