/* Opening, closing, and being told. */
#include "support/dvtest.h"

#include "plugin/tests/test_plugin_node.h"

static void changes_are_told_in_order(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;

    node_open_and_scan(node);
    node->device.holds = true;
    fake_plugin_start(&plugin, node, "a.sock");
    wait_count(node, &node->device.n_start, 1);
    settle(node);
    fake_handler_answer(&node->device, NULL);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_stop(&plugin);
    wait_state(node, "a.sock", DV_PLUGIN_GONE);
    settle(node);
    assert_true(count_text(&node->changes, "a.sock=connecting ") > 0);
    assert_true(count_text(&node->changes, "a.sock=registering ") > 0);
    assert_true(count_text(&node->changes, "a.sock=registered ") > 0);
    assert_true(count_text(&node->changes, "a.sock=gone ") > 0);
    assert_int_equal(count_text(&node->log, "plugin: registered socket="), 1);
    assert_int_equal(count_text(&node->log, "plugin: deregistered socket="), 1);
    fake_plugin_end(&plugin);
}

static void who_is_told_may_close_everything(void **state)
{
    struct fake_plugin plugins[3] = {0};
    struct node *node = *state;

    make_dir(node->registry);
    for (size_t i = 0; i < DV_COUNT(plugins); i++)
        fake_plugin_start(&plugins[i], node, (const char *[]){"a", "b", "c"}[i]);
    node->closes_in_change = true;
    node_open(node);
    wait_count(node, &node->n_closed, 1);
    for (size_t i = 0; i < DV_COUNT(plugins); i++)
        fake_plugin_end(&plugins[i]);
}

static void the_kubelets_directory_must_be_absolute(void **state)
{
    struct node *node = *state;
    struct dv_plugins_options options = {.kubelet_dir = DV_STR("var/lib/kubelet")};
    struct dv_err err;

    assert_null(dv_plugins_open(node->loop, &options, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "\"var/lib/kubelet\" is not an absolute path");
}

static void closing_works_at_every_step(void **state)
{
    struct node *node = *state;

    make_dir(node->registry);
    for (int i = 0; i < 5; i++) {
        struct fake_plugin plugin = {0};

        node->device.holds = i == 1;
        node->device.n_start = 0;
        plugin.holds_at = i == 2 ? AT_INFO : i == 3 ? AT_NOTIFY : AT_NOTHING;
        plugin.fail_info = i == 4 ? 100 : 0;
        fake_plugin_start(&plugin, node, "a.sock");
        node_open(node);
        if (i == 1)
            wait_count(node, &node->device.n_start, 1);
        if (i == 2 || i == 4)
            wait_count(node, &plugin.n_info, 1);
        if (i == 3)
            wait_count(node, &plugin.n_ok, 1);
        node_close(node);
        assert_null(node->device.held); /* what runs is cancelled */
        fake_plugin_end(&plugin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_told_in_order),
        cmocka_unit_test(who_is_told_may_close_everything),
        cmocka_unit_test(the_kubelets_directory_must_be_absolute),
        cmocka_unit_test(closing_works_at_every_step),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
