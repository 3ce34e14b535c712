/* test_control_nodes.c - nodes whose agents fall silent, and come back. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "control/control.h"
#include "control/node_health.h"
#include "control/tests/test_control_world.h"
#include "resource/resource.h"
#include "support/api_front.h"
#include "json/json.h"

#define LEASES "kube-node-lease"
#define OURS "{key: node.kubernetes.io/unreachable, effect: NoSchedule}"

static const struct dv_api_node *node_from(const char *yaml, struct dv_arena *arena)
{
    struct dv_api_node *node = DV_NEW(arena, struct dv_api_node);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(&dv_message_node, doc, DV_UNKNOWN_DROP, arena, node, NULL, &err),
              &err);
    return node;
}

static void what_is_written_next_depends_on_what_is_there(void **state)
{
    static const struct {
        const char *node;
        bool is_silent;
        enum dv_health_step step;
        const char *patch; /* of that step; NULL: there is none */
    } cases[] = {
        {"{}",                                                                                   false, DV_HEALTH_NOTHING,      NULL                                                                                 },
        {"{status: {conditions: [{type: Ready, status: 'False'}]}}",                             false, DV_HEALTH_NOTHING,
         NULL                                                                                                                                                                                                        },
        {"{metadata: {resourceVersion: '7'}}",                                                   true,  DV_HEALTH_ADD_TAINT,
         "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[{\"key\":"
         "\"node.kubernetes.io/unreachable\",\"effect\":\"NoSchedule\",\"timeAdded\":"
         "\"1970-01-01T00:00:09Z\"}]}}"                                                                                                                                                                              },
        {"{metadata: {resourceVersion: '7'}, spec: {taints: [{key: k, effect: NoExecute}, {key: "
         "node.kubernetes.io/unreachable, effect: NoExecute}]}}",                       true,  DV_HEALTH_ADD_TAINT,
         "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[{\"key\":\"k\","
         "\"effect\":"
         "\"NoExecute\"},{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":\"NoExecute\"},{"
         "\"key\":\"node.kubernetes.io/unreachable\",\"effect\":\"NoSchedule\",\"timeAdded\":"
         "\"1970-01-01T00:00:09Z\"}]}}"                                                                                                                                                                              },
        {"{spec: {taints: [" OURS "]}, status: {conditions: [{type: Ready, status: 'True'}]}}",
         true,                                                                                          DV_HEALTH_SET_UNKNOWN,
         "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
         "\"lastTransitionTime\":\"1970-01-01T00:00:09Z\",\"reason\":\"NodeStatusUnknown\","
         "\"message\":\"Kubelet stopped posting node status.\"}]}}"                                                                                                                                                  },
        {"{spec: {taints: [" OURS "]}}",                                                         true,  DV_HEALTH_SET_UNKNOWN,  NULL                                                                                 },
        {"{spec: {taints: [" OURS "]}, status: {conditions: [{type: Ready, status: Unknown}]}}",
         true,                                                                                          DV_HEALTH_NOTHING,      NULL                                                                                 },
        {"{spec: {taints: [" OURS "]}, status: {conditions: [{type: Ready, status: Unknown}]}}",
         false,                                                                                         DV_HEALTH_REMOVE_TAINT, "{\"metadata\":{},\"spec\":{\"taints\":null}}"                                       },
        {"{spec: {taints: [{key: k, effect: NoSchedule}, " OURS "]}}",                           false,
         DV_HEALTH_REMOVE_TAINT,                                                                                                "{\"metadata\":{},\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]}}"},
        {"{spec: {taints: [{key: k, effect: NoSchedule}]}, status: {conditions: [{type: Ready, "
         "status: 'True'}]}}",                                                          false, DV_HEALTH_NOTHING,      NULL                                                                                 },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_arena *arena = dv_arena_new();
        const struct dv_api_node *node = node_from(cases[i].node, arena);
        const struct dv_time now = {.seconds = 9, .is_set = true};
        struct dv_buf text;

        assert_int_equal(dv_health_next(node, cases[i].is_silent), cases[i].step);
        dv_buf_init(&text, 4096);
        if (cases[i].patch) {
            dv_json_print(dv_health_patch(node, cases[i].step, now, arena), NULL, &text);
            assert_string_equal(dv_buf_c(&text), cases[i].patch);
        }
        dv_buf_fini(&text);
        dv_arena_free(arena);
    }
}

/* ---- over the API ---- */

static void make_node(struct world *world, const char *name)
{
    (void)make(world, DV_KIND_NODE, "", text(world, "{metadata: {name: %s}}", name));
    change_status(world, DV_KIND_NODE, "", name,
                  "{status: {conditions: [{type: Ready, status: 'True'}, {type: Other, status: "
                  "'True'}]}}");
}

static void renew(struct world *world, const char *name, unsigned second)
{
    if (!look(world, DV_KIND_LEASE, LEASES, name))
        (void)make(world, DV_KIND_LEASE, LEASES,
                   text(world, "{metadata: {name: %s}, spec: {holderIdentity: %s}}", name, name));
    change(world, DV_KIND_LEASE, LEASES, name,
           text(world, "{spec: {renewTime: '2024-01-01T00:00:%02u.000000Z'}}", second));
}

static bool is_tainted(struct world *world, const char *name)
{
    return ((const struct dv_api_node *)look(world, DV_KIND_NODE, "", name)->value)->spec.n_taints >
           0;
}

static const char *ready_of(struct world *world, const char *name)
{
    const struct dv_api_node *node = look(world, DV_KIND_NODE, "", name)->value;

    for (size_t i = 0; i < node->status.n_conditions; i++)
        if (dv_str_eq(node->status.conditions[i].type, DV_STR("Ready")))
            return text(world, "%.*s", DV_FMT(node->status.conditions[i].status));
    return "";
}

static void a_node_whose_lease_is_not_renewed_is_set_apart(void **state)
{
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    make_node(world, "free"); /* it has no lease */
    renew(world, "n1", 0);
    open_control(world);
    for (unsigned i = 1; i < 6; i++) {
        pass(world, 30000);
        renew(world, "n1", i);
    }
    pass(world, 39000);
    assert_false(is_tainted(world, "n1"));
    pass(world, 2000);
    assert_true(is_tainted(world, "n1"));
    assert_string_equal(ready_of(world, "n1"), "Unknown");
    assert_int_equal(((const struct dv_api_node *)look(world, DV_KIND_NODE, "", "n1")->value)
                         ->status.n_conditions,
                     2);
    assert_false(is_tainted(world, "free"));
    assert_string_equal(ready_of(world, "free"), "True");
    /* what others write of it does not count, and what they take away comes back */
    change(world, DV_KIND_NODE, "", "n1", "{spec: {taints: null}}");
    settle(world);
    assert_true(is_tainted(world, "n1"));
    renew(world, "n1", 30);
    settle(world);
    assert_false(is_tainted(world, "n1"));
    assert_string_equal(ready_of(world, "n1"), "Unknown"); /* its agent has to say otherwise */
    pass(world, 41000);
    assert_true(is_tainted(world, "n1"));
}

static void controllers_that_begin_give_nodes_time(void **state)
{
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    renew(world, "n1", 0);
    open_control(world);
    pass(world, 30000);
    close_control(world);
    open_control(world);
    pass(world, 30000);
    assert_false(is_tainted(world, "n1"));
    pass(world, 11000);
    assert_true(is_tainted(world, "n1"));
    close_control(world);
    open_control(world); /* nothing is known against it, until it is silent again */
    assert_false(is_tainted(world, "n1"));
}

static void what_fails_is_written_later(void **state)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    renew(world, "n1", 0);
    open_control(world);
    for (unsigned i = 0; i < 2 * DV_COUNT(faults); i++) {
        world->api.front.fault = faults[i % DV_COUNT(faults)];
        world->api.front.fault_at = world->api.front.n_requests + 1 + i / DV_COUNT(faults);
        pass(world, 50000);
        assert_true(is_tainted(world, "n1"));
        assert_string_equal(ready_of(world, "n1"), "Unknown");
        world->api.front.fault_at = world->api.front.n_requests + 1;
        renew(world, "n1", i + 1);
        pass(world, 5000);
        assert_false(is_tainted(world, "n1"));
        change_status(world, DV_KIND_NODE, "", "n1",
                      "{status: {conditions: [{type: Ready, status: 'True'}]}}");
    }
}

static void other_leases_are_nobodys_business(void **state)
{
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    (void)make(world, DV_KIND_LEASE, "default", "{metadata: {name: n1}}");
    open_control(world);
    pass(world, 60000);
    assert_false(is_tainted(world, "n1"));
    renew(world, "n1", 0);
    settle(world);
    destroy(world, DV_KIND_LEASE, LEASES, "n1");
    destroy(world, DV_KIND_LEASE, "default", "n1");
    pass(world, 60000);
    assert_false(is_tainted(world, "n1"));
}

/* ---- pods whose node is gone ---- */

static void put_pod(struct world *world, const char *name, const char *node, const char *more)
{
    (void)make(world, DV_KIND_POD, "default",
               text(world,
                    "{metadata: {name: %s%s}, spec: {nodeName: %s, containers: [{name: c, image: "
                    "i}]}}",
                    name, more, node));
}

static const char *phase_of(struct world *world, const char *name)
{
    struct dv_object *object = look(world, DV_KIND_POD, "default", name);
    const struct dv_api_pod *pod = object ? object->value : NULL;

    return pod ? text(world, "%.*s", DV_FMT(pod->status.phase)) : "gone";
}

static void pods_go_with_their_node(void **state)
{
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    make_node(world, "n2");
    put_pod(world, "before", "n1", "");
    put_pod(world, "nowhere", "n0", "");
    open_control(world);
    put_pod(world, "after", "n1", "");
    put_pod(world, "held", "n1", ", finalizers: [a.b/c]");
    put_pod(world, "other", "n2", "");
    pass(world, 39000);
    assert_string_equal(phase_of(world, "nowhere"), "Pending");
    destroy(world, DV_KIND_NODE, "", "n1");
    pass(world, 2000);
    assert_string_equal(phase_of(world, "nowhere"), "gone");
    pass(world, 37000);
    assert_string_equal(phase_of(world, "before"), "Pending");
    pass(world, 3000);
    assert_string_equal(phase_of(world, "before"), "gone");
    assert_string_equal(phase_of(world, "after"), "gone");
    assert_string_equal(phase_of(world, "held"), "Failed"); /* its finalizer has it stay */
    assert_string_equal(phase_of(world, "other"), "Pending");
}

static void a_node_that_comes_back_keeps_its_pods(void **state)
{
    struct world *world = *state;

    world->options.watches_nodes = true;
    make_node(world, "n1");
    put_pod(world, "p", "n1", "");
    open_control(world);
    for (unsigned i = 0; i < 3; i++) {
        destroy(world, DV_KIND_NODE, "", "n1");
        pass(world, 30000);
        make_node(world, "n1");
        pass(world, 5000);
        assert_string_equal(phase_of(world, "p"), "Pending");
    }
    pass(world, 60000);
    assert_string_equal(phase_of(world, "p"), "Pending");
}

static void what_fails_is_deleted_later(void **state)
{
    static const enum fault faults[] = {FAULT_BEFORE, FAULT_AFTER, FAULT_CONFLICT};
    struct world *world = *state;

    world->options.watches_nodes = true;
    open_control(world);
    for (unsigned i = 0; i < 2 * DV_COUNT(faults); i++) {
        put_pod(world, "p", "n0", "");
        world->api.front.fault = faults[i % DV_COUNT(faults)];
        world->api.front.fault_at = world->api.front.n_requests + 1 + i / DV_COUNT(faults);
        pass(world, 50000);
        assert_string_equal(phase_of(world, "p"), "gone");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_next_depends_on_what_is_there),
        TEST(a_node_whose_lease_is_not_renewed_is_set_apart),
        TEST(controllers_that_begin_give_nodes_time),
        TEST(what_fails_is_written_later),
        TEST(other_leases_are_nobodys_business),
        TEST(pods_go_with_their_node),
        TEST(a_node_that_comes_back_keeps_its_pods),
        TEST(what_fails_is_deleted_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
