/* Hints for the topology manager, from a state. */
#include "test_device_node.h"
#include "topology/topology.h"

#include <string.h>

static const struct dv_numa_machine two_nodes = {
    .nodes = (struct dv_numa_node[]){{.id = 0}, {.id = 1}},
    .n_nodes = 2,
    .mask = 3,
};

/* "01+ 0-": nodes, and whether it is preferred; "any" when all nodes do, "none" when none does. */
static const char *print(struct node *node, const struct dv_hint_list *list)
{
    dv_str text = DV_STR("");

    if (list->is_any)
        return "any";
    for (size_t i = 0; i < list->n_hints; i++)
        text = dv_str_printf(node->arena, "%.*s%s%s%s%s", DV_FMT(text), i > 0 ? " " : "",
                             list->hints[i].mask & 1 ? "0" : "", list->hints[i].mask & 2 ? "1" : "",
                             list->hints[i].is_preferred ? "+" : "-");
    return list->n_hints > 0 ? dv_str_to_c(text, node->arena) : "none";
}

static const char *container_hints(struct node *node, const char *pod, const char *limits)
{
    struct dv_device_request request = node_request(node, pod, "c", DV_DEVICE_REGULAR, limits);
    const struct dv_hint_list *lists;
    struct dv_err err;
    size_t n;

    assert_ok(
        dv_device_container_hints(node->state, &two_nodes, &request, node->arena, &lists, &n, &err),
        &err);
    return n > 0 ? print(node, &lists[0]) : "nothing";
}

static void hints_follow_the_list(void **state)
{
    static const struct {
        const char *devices;
        const char *limits;
        const char *hints;
    } cases[] = {
        {"a b",             GPU "=1",   "any"      },
        {"a@ b@",           GPU "=1",   "any"      },
        {"a b@1",           GPU "=1",   "1+"       },
        {"a@0 b@1",         GPU "=1",   "0+ 1+ 01-"},
        {"a@0 b@1",         GPU "=2",   "01+"      },
        {"a@0 b@0 c@1 d@1", GPU "=2",   "0+ 1+ 01-"},
        {"a@0 b@0 c@1 d@1", GPU "=5",   "none"     },
        {"a@0",             GPU "=1",   "0+"       },
        {"a!@0 b@0 c@1",    GPU "=2",   "01-"      },
        {"a@0 b@99",        GPU "=1",   "0+"       },
        {"a@0",             "x.io/x=1", "nothing"  },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct node *node;
        const char *hints;

        (void)node_setup(state);
        node = *state;
        node_register(node, GPU, "a.sock", cases[i].devices);
        hints = container_hints(node, "p", cases[i].limits);
        if (strcmp(hints, cases[i].hints) != 0)
            fail_msg("case %zu: %s", i, hints);
        (void)node_teardown(state);
    }
}

static void hints_see_who_holds_what(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "a@0 b@0 c@1 d@1");
    assert_true(node_allocate_near(node, "q", GPU "=1", "0"));
    assert_true(node_allocate_near(node, "r", GPU "=1", "1"));
    assert_string_equal(container_hints(node, "p", GPU "=2"), "01-");
    assert_string_equal(container_hints(node, "q", GPU "=1"), "0+ 01-"); /* what it has */
    assert_string_equal(container_hints(node, "q", GPU "=2"), "none");
    dv_device_begin_admission(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    assert_string_equal(node_held(node, "p", "i", GPU), "b");
    assert_string_equal(container_hints(node, "p", GPU "=1"), "0+ 01-"); /* lent */
    assert_string_equal(container_hints(node, "p", GPU "=2"), "01-");
    dv_device_end_admission(node->state, DV_STR("p"));
    dv_device_deactivate_pod(node->state, DV_STR("q"));
    (void)container_hints(node, "p", GPU "=1"); /* collects */
    assert_null(node_held(node, "q", "c", GPU));
}

static void a_device_that_is_gone_is_in_no_known_place(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "a@0 b@1");
    assert_true(node_allocate_near(node, "q", GPU "=1", "0"));
    (void)node_list(node, GPU, "b@1"); /* the reference crashes here */
    assert_string_equal(container_hints(node, "q", GPU "=1"), "none");
    assert_string_equal(container_hints(node, "p", GPU "=1"), "1+");
}

static void a_pod_asks_for_the_most_it_needs_at_a_time(void **state)
{
    struct node *node = *state;
    struct dv_device_request containers[] = {
        node_request(node, "p", "i", DV_DEVICE_INIT, GPU "=2"),
        node_request(node, "p", "s", DV_DEVICE_SIDECAR, GPU "=1"),
        node_request(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1 x.io/x=1"),
    };
    const struct dv_hint_list *lists;
    struct dv_err err;
    size_t n;

    node_register(node, GPU, "a.sock", "a@0 b@0 c@1 d@1");
    assert_ok(
        dv_device_pod_hints(node->state, &two_nodes, containers, 3, node->arena, &lists, &n, &err),
        &err);
    assert_int_equal(n, 1);
    assert_string_equal(print(node, &lists[0]), "0+ 1+ 01-");
    assert_true(node_allocate_near(node, "q", GPU "=1", "0"));
    assert_true(node_allocate_near(node, "r", GPU "=1", "1"));
    assert_ok(
        dv_device_pod_hints(node->state, &two_nodes, containers, 3, node->arena, &lists, &n, &err),
        &err);
    assert_string_equal(print(node, &lists[0]), "01-");
    /* What the pod holds by then: a device that was handed on counts once. */
    dv_device_deactivate_pod(node->state, DV_STR("q"));
    dv_device_begin_admission(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=2"));
    assert_true(node_allocate(node, "p", "s", DV_DEVICE_SIDECAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    dv_device_end_admission(node->state, DV_STR("p"));
    assert_ok(
        dv_device_pod_hints(node->state, &two_nodes, containers, 3, node->arena, &lists, &n, &err),
        &err);
    assert_string_equal(print(node, &lists[0]), "0+ 01-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hints_follow_the_list),
        node_test(hints_see_who_holds_what),
        node_test(a_device_that_is_gone_is_in_no_known_place),
        node_test(a_pod_asks_for_the_most_it_needs_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
