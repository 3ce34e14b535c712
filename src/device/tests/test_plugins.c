/* Plugins come and go, and what the node reports. */
#include "base/clock.h"
#include "test_device_node.h"

#include <stdio.h>

/* -- Plugins come and go -------------------------------------------------------------------- */

static void a_second_plugin_takes_over_with_its_own_list(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_string_equal(node_capacity(node, GPU), "2/2");
    node_register(node, GPU, "b.sock", "d1 d2");
    assert_string_equal(node_capacity(node, GPU), "2/2");
    node_register(node, GPU, "c.sock", "d3");
    assert_string_equal(node_capacity(node, GPU), "1/1");
    assert_str(node_info(node, GPU).socket, "c.sock");
}

static void the_end_of_an_old_plugin_leaves_the_new_one_alone(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    node_register(node, GPU, "b.sock", "d1 d2 d3");
    node_disconnect(node, GPU, "a.sock");
    assert_string_equal(node_capacity(node, GPU), "3/3");
    assert_str(node_info(node, GPU).socket, "b.sock");
    node_disconnect(node, GPU, "b.sock");
    assert_string_equal(node_capacity(node, GPU), "3/0");
}

static void the_newest_of_those_left_is_called_with_its_own_options(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    node->needs_pre_start = true;
    node_register(node, GPU, "b.sock", "d1");
    assert_true(node_info(node, GPU).options.needs_pre_start);
    node_disconnect(node, GPU, "b.sock");
    assert_str(node_info(node, GPU).socket, "a.sock");
    assert_false(node_info(node, GPU).options.needs_pre_start);
    assert_string_equal(node_capacity(node, GPU), "1/1");
}

static void refuses_a_socket_that_is_connected(void **state)
{
    struct node *node = *state;
    struct dv_device_plugin_options options = {0};
    struct dv_err err;

    node_register(node, GPU, "a.sock", "d1");
    assert_false(dv_device_connect(node->state, DV_STR(GPU), DV_STR("a.sock"), &options, &err));
    assert_err(&err, DV_ALREADY_EXISTS, "device plugin already connected: a.sock");
    node_disconnect(node, GPU, "a.sock");
    node_connect(node, GPU, "a.sock");
}

static void refuses_more_plugins_and_resources_than_a_node_has(void **state)
{
    struct node *node = *state;
    struct dv_device_plugin_options options = {0};
    struct dv_err err;
    char text[64];

    for (unsigned i = 0; i < DV_DEVICE_PLUGINS_MAX; i++) {
        (void)snprintf(text, sizeof(text), "%u.sock", i);
        node_connect(node, GPU, text);
    }
    assert_false(dv_device_connect(node->state, DV_STR(GPU), DV_STR("x"), &options, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "more than 16 plugins");
    for (unsigned i = 1; i < DV_DEVICE_RESOURCES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "vendor.io/r%u", i);
        node_connect(node, text, "x");
    }
    assert_false(dv_device_connect(node->state, DV_STR(NIC), DV_STR("x"), &options, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "vendor.io/nic: more than 1024 resources");
    assert_false(dv_device_connect(node->state, DV_STR("gpu"), DV_STR("x"), &options, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "the ResourceName \"gpu\" is invalid");
}

static void a_plugin_that_only_connects_shows_nothing(void **state)
{
    struct node *node = *state;

    node_connect(node, GPU, "a.sock");
    assert_string_equal(node_capacity(node, GPU), "-");
    assert_false(node_info(node, GPU).is_known);
    assert_int_equal(node_info(node, GPU).plugin, DV_DEVICE_NOT_LISTED);
}

static void a_plugin_that_ends_without_a_list_shows_zero(void **state)
{
    struct node *node = *state;

    node_connect(node, GPU, "a.sock");
    node_disconnect(node, GPU, "a.sock");
    assert_string_equal(node_capacity(node, GPU), "0/0");
    assert_false(node_info(node, GPU).is_known);
}

static void a_stopped_plugin_keeps_its_capacity_for_the_grace_period(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3!");
    node_register(node, NIC, "n.sock", "n1");
    node_disconnect(node, GPU, "a.sock");
    assert_string_equal(node_capacity(node, GPU), "3/0");
    assert_int_equal(node_info(node, GPU).plugin, DV_DEVICE_STOPPED);
    node->now_ns += 300 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "3/0");
    node->now_ns++;
    assert_string_equal(node_capacity(node, GPU), "removed");
    assert_string_equal(node_capacity(node, GPU), "-");
    assert_int_equal(node_info(node, GPU).plugin, DV_DEVICE_NO_PLUGIN);
    assert_string_equal(node_capacity(node, NIC), "1/1");
}

static void a_removed_resource_comes_back_with_a_list(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    node_disconnect(node, GPU, "a.sock");
    node->now_ns += 301 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "removed");
    assert_true(node_info(node, GPU).is_known); /* it is held */
    node_connect(node, GPU, "a.sock");
    assert_string_equal(node_capacity(node, GPU), "-");
    assert_true(node_list(node, GPU, "d1 d2").is_back);
    assert_string_equal(node_capacity(node, GPU), "2/2");
}

static void the_first_removal_is_known_in_advance(void **state)
{
    struct node *node = *state;
    uint64_t first_ns;

    assert_true(dv_device_next_removal_ns(node->state) == UINT64_MAX);
    node_register(node, GPU, "a.sock", "d1");
    node_register(node, NIC, "n.sock", "n1");
    assert_true(dv_device_next_removal_ns(node->state) == UINT64_MAX);
    node_disconnect(node, NIC, "n.sock");
    first_ns = node->now_ns + DV_DEVICE_GRACE_NS + 1;
    node->now_ns += DV_NS_PER_S;
    node_disconnect(node, GPU, "a.sock");
    assert_true(dv_device_next_removal_ns(node->state) == first_ns);
    node->now_ns = first_ns - 1;
    assert_string_equal(node_capacity(node, NIC), "1/0");
    node->now_ns = first_ns;
    assert_string_equal(node_capacity(node, NIC), "removed");
    assert_true(dv_device_next_removal_ns(node->state) == first_ns + DV_NS_PER_S);
    node_connect(node, GPU, "a.sock");
    assert_true(dv_device_next_removal_ns(node->state) == UINT64_MAX);
}

/* -- Capacity ------------------------------------------------------------------------------- */

static void capacity_follows_each_list(void **state)
{
    static const struct {
        const char *devices;
        const char *capacity;
    } lists[] = {
        {"d1 d2 d3!",   "3/2"},
        {"d1 d2",       "2/2"},
        {"d1! d2",      "2/1"},
        {"d1!",         "1/0"},
        {"",            "0/0"},
        {"a b c d",     "4/4"},
        {"a b! c d",    "4/3"},
        {"a b c d",     "4/4"},
        {"a! b! c d",   "4/2"},
        {"a! b c d",    "4/3"},
        {"d c b a",     "4/4"},
        {"d@0 c@1 b a", "4/4"},
        {"a a!",        "1/0"}, /* the last of two counts */
        {"a! a",        "1/1"},
    };
    struct node *node = *state;

    node_register(node, NIC, "n.sock", "n1 n2!");
    node_connect(node, GPU, "a.sock");
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        (void)node_list(node, GPU, lists[i].devices);
        assert_string_equal(node_capacity(node, GPU), lists[i].capacity);
        assert_string_equal(node_capacity(node, NIC), "2/1");
    }
}

static void allocation_does_not_change_capacity(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_capacity(node, GPU), "1/1");
    (void)node_list(node, GPU, "d1!");
    assert_string_equal(node_capacity(node, GPU), "1/0");
    assert_string_equal(node_held(node, "p", "c", GPU), "d1");
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_int_equal(dv_device_collect(node->state), 1);
    assert_string_equal(node_capacity(node, GPU), "1/0");
}

static void allocatable_devices_are_the_healthy_ones(void **state)
{
    struct node *node = *state;
    const struct dv_device_healthy *devices;

    node_register(node, NIC, "n.sock", "n1");
    node_register(node, GPU, "a.sock", "d10@1 d9@1 d3@0,1 d4 d5! d6@");
    assert_int_equal(dv_device_allocatable(node->state, node->arena, &devices), 6);
    assert_str(devices[0].id, "d3"); /* by nodes, then by number */
    assert_int_equal(devices[0].n_nodes, 2);
    assert_int_equal(devices[0].nodes[1], 1);
    assert_str(devices[1].id, "d9");
    assert_str(devices[2].id, "d10");
    assert_str(devices[3].id, "d4");
    assert_false(devices[3].has_topology);
    assert_str(devices[4].id, "d6");
    assert_true(devices[4].has_topology);
    assert_str(devices[5].resource, NIC);
    (void)node_list(node, GPU, "d5");
    assert_int_equal(dv_device_allocatable(node->state, node->arena, &devices), 2);
    node_disconnect(node, GPU, "a.sock");
    assert_int_equal(dv_device_allocatable(node->state, node->arena, &devices), 1);
}

static void capacity_is_reset_when_the_directory_is_empty(void **state)
{
    static const dv_str names[] = {DV_STR_INIT(".tmp"), DV_STR_INIT("kubelet.sock")};

    (void)state;
    assert_true(dv_device_should_reset_capacity(names, 0));
    assert_true(dv_device_should_reset_capacity(names, 1));
    assert_false(dv_device_should_reset_capacity(names, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(a_second_plugin_takes_over_with_its_own_list),
        node_test(the_end_of_an_old_plugin_leaves_the_new_one_alone),
        node_test(the_newest_of_those_left_is_called_with_its_own_options),
        node_test(refuses_a_socket_that_is_connected),
        node_test(refuses_more_plugins_and_resources_than_a_node_has),
        node_test(a_plugin_that_only_connects_shows_nothing),
        node_test(a_plugin_that_ends_without_a_list_shows_zero),
        node_test(a_stopped_plugin_keeps_its_capacity_for_the_grace_period),
        node_test(a_removed_resource_comes_back_with_a_list),
        node_test(the_first_removal_is_known_in_advance),
        node_test(capacity_follows_each_list),
        node_test(allocation_does_not_change_capacity),
        node_test(allocatable_devices_are_the_healthy_ones),
        cmocka_unit_test(capacity_is_reset_when_the_directory_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
