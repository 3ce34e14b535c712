/* Plugins that die at every step; handlers that fail. */
#include "support/dvtest.h"

#include <stdio.h>

#include "plugin/tests/test_plugin_node.h"

/* ---- how it dies ---- */

static void a_plugin_may_die_at_every_step(void **state)
{
    static const enum fake_step steps[] = {AT_INFO, AT_NOTIFY, AFTER_NOTIFY};
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(steps) * 2; i++) {
        struct fake_plugin plugin = {.dies_at = steps[i / 2], .unlinks_when_dying = i % 2 == 1};
        bool was_registered = steps[i / 2] == AFTER_NOTIFY; /* in time; unlinks nothing */
        char name[32];

        (void)snprintf(name, sizeof(name), "bad-%zu.sock", i);
        fake_plugin_start(&plugin, node, name);
        if (was_registered)
            wait_state(node, name, DV_PLUGIN_REGISTERED);
        else
            wait_state(node, name, plugin.unlinks_when_dying ? DV_PLUGIN_GONE : DV_PLUGIN_FAILING);
        settle(node);
        assert_int_equal(node->device.n_started, was_registered ? 1 : 0);
        plugin.dies_at = AT_NOTHING;
        fake_plugin_start(&plugin, node, name); /* it comes back, and its old file goes */
        settle(node);
        advance(node, 1100);
        wait_state(node, name, DV_PLUGIN_REGISTERED);
        assert_int_equal(node->device.n_started, 1);
        fake_plugin_stop(&plugin);
        wait_state(node, name, DV_PLUGIN_GONE);
        settle(node);
        assert_int_equal(node->device.n_started, 0);
        fake_plugin_end(&plugin);
    }
    assert_others_get_on(node);
}

static void a_plugin_that_goes_while_it_is_registered_is_taken_back(void **state)
{
    static const struct {
        const char *what;
        bool ends_well; /* the handler is done before it hears of it */
        bool answers_at_once;
    } cases[] = {
        {"cancelled",         false, false},
        {"cancelled at once", false, true },
        {"too late",          true,  false},
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct fake_plugin plugin = {0};
        struct dv_plugin_view view;
        char name[32];

        (void)snprintf(name, sizeof(name), "%zu.sock", i);
        node->device.holds = true;
        node->device.ignores_cancel = cases[i].ends_well;
        node->device.answers_at_once = cases[i].answers_at_once;
        node->device.n_start = node->device.n_cancel = node->device.n_deregister = 0;
        fake_plugin_start(&plugin, node, name);
        wait_count(node, &node->device.n_start, 1);
        assert_true(node_view(node, name, &view));
        assert_int_equal(view.state, DV_PLUGIN_REGISTERING);
        assert_true(view.is_actual); /* so that its going is seen as one */
        fake_plugin_stop(&plugin);
        wait_count(node, &node->device.n_cancel, 1);
        if (cases[i].ends_well)
            fake_handler_answer(&node->device, NULL);
        wait_state(node, name, DV_PLUGIN_GONE);
        wait_actual(node, 0);
        settle(node);
        assert_int_equal(node->device.n_deregister, cases[i].ends_well ? 1 : 0);
        assert_int_equal(node->device.n_started, 0);
        assert_true(node_view(node, name, &view));
        assert_int_equal(view.last_err.code, DV_OK); /* that was no failure */
        fake_plugin_end(&plugin);
    }
}

/* ---- handlers ---- */

static void each_call_of_a_handler_may_fail(void **state)
{
    static const struct {
        int fail_validate, fail_start;
        const char *text;
    } cases[] = {
        {1, 0, "RegisterPlugin error -- plugin validation failed with err: not valid"},
        {0, 1, "RegisterPlugin error -- plugin registration failed with err: no luck"},
        {2, 0, "RegisterPlugin error -- plugin validation failed with err: not valid"},
        {0, 2, "RegisterPlugin error -- plugin registration failed with err: no luck"},
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct fake_plugin plugin = {.fail_notify = 1}; /* which changes nothing */
        int n_failures = cases[i].fail_validate + cases[i].fail_start;
        char name[32];

        (void)snprintf(name, sizeof(name), "%zu.sock", i);
        node->device.n_validate = node->device.n_start = node->device.n_deregister = 0;
        node->device.fail_validate = cases[i].fail_validate;
        node->device.fail_start = cases[i].fail_start;
        node->device.answers_at_once = i % 2 == 1;
        fake_plugin_start(&plugin, node, name);
        for (int j = 1; j <= n_failures; j++) {
            wait_count(node, &plugin.n_refused, j);
            wait_state(node, name, DV_PLUGIN_FAILING);
            assert_string_equal(last_err(node, name).msg, cases[i].text);
            assert_string_equal(dv_buf_c(&plugin.error), cases[i].text);
            wait_actual(node, 0);
            advance(node, (500u << (j - 1)) * 11 / 10);
        }
        wait_state(node, name, DV_PLUGIN_REGISTERED);
        assert_int_equal(node->device.n_deregister, 0); /* not for what has failed */
        fake_plugin_stop(&plugin);
        wait_state(node, name, DV_PLUGIN_GONE);
        wait_actual(node, 0);
        assert_int_equal(node->device.n_deregister, 1);
        fake_plugin_end(&plugin);
    }
}

static void a_handler_that_does_not_end_is_cancelled_in_time(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;

    node_open_and_scan(node);
    node->device.holds = true;
    fake_plugin_start(&plugin, node, "a.sock");
    wait_count(node, &node->device.n_start, 1);
    advance(node, 59999);
    assert_int_equal(node->device.n_cancel, 0);
    assert_others_get_on(node);
    node->device.holds = false;
    advance(node, 1);
    wait_count(node, &plugin.n_refused, 1);
    assert_int_equal(node->device.n_cancel, 1);
    assert_string_equal(dv_buf_c(&plugin.error),
                        "RegisterPlugin error -- plugin registration failed with err: not done "
                        "within 60000 ms");
    wait_state(node, "a.sock", DV_PLUGIN_FAILING);
    advance(node, 600);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_end(&plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_may_die_at_every_step),
        cmocka_unit_test(a_plugin_that_goes_while_it_is_registered_is_taken_back),
        cmocka_unit_test(each_call_of_a_handler_may_fail),
        cmocka_unit_test(a_handler_that_does_not_end_is_cancelled_in_time),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
