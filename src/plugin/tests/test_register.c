/* The behaviours that the reference's tests pin down, on a real directory with sockets. */
#include "support/dvtest.h"

#include <stdio.h>

#include "grpc/grpc.h"
#include "loop/loop.h"
#include "plugin/plugins.h"
#include "plugin/tests/test_plugin_node.h"

#define MANY 10

static size_t n_listed(const struct node *node)
{
    struct dv_plugin_view view;
    size_t n = 0;

    for (size_t at = 0; dv_plugins_next(node->plugins, &at, &view);)
        n++;
    return n;
}

/* ---- desired ---- */

static void a_socket_is_desired_while_it_is_there(void **state)
{
    struct node *node = *state;

    node_open_and_scan(node);
    for (int i = 0; i < MANY; i++) {
        struct fake_plugin plugin = {.plugin_name = "x.example/a"};
        char name[32];

        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        fake_plugin_start(&plugin, node, name);
        wait_desired(node, 1);
        wait_state(node, name, DV_PLUGIN_REGISTERED);
        assert_int_equal(dv_plugins_status(node->plugins).n_actual, 1);
        fake_plugin_stop(&plugin);
        wait_desired(node, 0);
        wait_actual(node, 0);
        wait_state(node, name, DV_PLUGIN_GONE);
        fake_plugin_end(&plugin);
    }
    assert_int_equal(node->device.n_deregister, MANY);
    advance(node, 60000); /* listed for a while, then not */
    assert_int_equal(n_listed(node), 0);
}

static void sockets_count_not_names(void **state)
{
    struct node *node = *state;
    struct fake_plugin plugins[MANY] = {0};

    node_open_and_scan(node);
    for (int i = 0; i < MANY; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        plugins[i].plugin_name = "x.example/same";
        fake_plugin_start(&plugins[i], node, name);
    }
    wait_actual(node, MANY);
    assert_int_equal(dv_plugins_status(node->plugins).n_desired, MANY);
    assert_int_equal(n_listed(node), MANY); /* one series each */
    for (int i = 0; i < MANY; i++)
        fake_plugin_end(&plugins[i]);
}

static void a_plugin_that_restarts_is_one_entry_with_a_newer_time(void **state)
{
    struct node *node = *state;
    uint64_t seen_wall_ns = 0;

    node_open_and_scan(node);
    for (int i = 0; i < MANY; i++) {
        struct fake_plugin plugin = {0};
        struct dv_plugin_view view;
        char name[32];

        (void)snprintf(name, sizeof(name), "x.example/%d", i);
        plugin.plugin_name = name;
        fake_plugin_start(&plugin, node, "a.sock");
        wait_desired(node, 1);
        advance(node, 1000);
        wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
        wait_count(node, &plugin.n_ok, 1);
        assert_true(node_view(node, "a.sock", &view));
        assert_str(view.info->name, name);
        assert_true(view.is_desired && view.is_actual);
        assert_true(view.seen_wall_ns > seen_wall_ns);
        assert_int_equal(view.n_attempts, 1);
        seen_wall_ns = view.seen_wall_ns;
        assert_int_equal(n_listed(node), 1);
        fake_plugin_end(&plugin);
    }
}

static void a_socket_in_the_place_of_another_is_registered_after_that_is_deregistered(void **state)
{
    struct fake_plugin old = {.plugin_name = "old"};
    struct fake_plugin young = {.plugin_name = "new"};
    struct node *node = *state;

    node_open_and_scan(node);
    fake_plugin_start(&old, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_start(&young, node, ".tmp");
    assert_int_equal(rename(young.path, old.path), 0); /* no event for the old one */
    wait_count(node, &node->device.n_deregister, 1);
    assert_int_equal(node->device.n_start, 1);
    settle(node);
    assert_int_equal(young.n_info, 0); /* one period later */
    advance(node, 1000);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(young.n_ok, 1);
    assert_int_equal(n_listed(node), 1);
    assert_int_equal(count_text(&node->device.calls, "deregister(old"), 1);
    assert_int_equal(node->device.n_started, 1);
    fake_plugin_end(&old);
    fake_plugin_end(&young);
}

static void what_goes_is_deregistered_before_what_comes_is_registered(void **state)
{
    struct fake_plugin old = {.plugin_name = "old"};
    struct fake_plugin young = {.plugin_name = "new"};
    struct node *node = *state;
    dv_str calls;

    node_open_and_scan(node);
    fake_plugin_start(&old, node, "old.sock");
    wait_state(node, "old.sock", DV_PLUGIN_REGISTERED);
    dv_buf_clear(&node->device.calls);
    fake_plugin_start(&young, node, "new.sock"); /* comes before the other goes */
    fake_plugin_stop(&old);
    wait_state(node, "new.sock", DV_PLUGIN_REGISTERED);
    calls = dv_buf_str(&node->device.calls);
    assert_true(dv_str_starts_with(calls, DV_STR("deregister(old,")));
    assert_int_equal(count_text(&node->device.calls, "start(new,"), 1);
    fake_plugin_end(&old);
    fake_plugin_end(&young);
}

/* The reference looks once a second. */
static void a_socket_that_is_replaced_all_the_time_is_followed_once_a_period(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;

    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    for (int i = 0; i < 20; i++) {
        fake_plugin_stop(&plugin);
        fake_plugin_start(&plugin, node, "a.sock");
        settle(node);
    }
    wait_count(node, &node->device.n_deregister, 1);
    assert_int_equal(node->device.n_start, 1);
    advance(node, 1000);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(node->device.n_start, 2);
    fake_plugin_end(&plugin);
}

static void what_runs_at_the_start_is_registered_at_every_start(void **state)
{
    struct node *node = *state;
    struct fake_plugin plugins[MANY] = {0};

    make_dir(node->registry);
    for (int i = 0; i < MANY; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        fake_plugin_start(&plugins[i], node, name);
    }
    for (int round = 1; round <= 3; round++) {
        node_open_and_scan(node);
        wait_actual(node, MANY);
        for (int i = 0; i < MANY; i++)
            wait_count(node, &plugins[i].n_ok, round);
        node_close(node);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(plugins[i].n_info, round);
    }
    assert_int_equal(node->device.n_deregister, 0); /* closing is no reason */
    for (int i = 0; i < MANY; i++)
        fake_plugin_end(&plugins[i]);
}

/* ---- handlers ---- */

static void handlers_see_each_plugin_come_and_go_once_at_every_depth(void **state)
{
    static const char *const names[] = {"a.sock", "d/b.sock", "d/e/c.sock"};
    struct node *node = *state;
    struct fake_plugin plugins[DV_COUNT(names)] = {0};
    char endpoints[DV_COUNT(names)][96];
    char calls[1024];

    node_open_and_scan(node);
    make_dir(node_path(node, "d"));
    make_dir(node_path(node, "d/e"));
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        (void)snprintf(endpoints[i], sizeof(endpoints[i]), "%s/plugins/%zu/dra.sock", node->dir, i);
        plugins[i].type = "DRAPlugin";
        plugins[i].plugin_name = "gpu.example.com";
        plugins[i].endpoint = endpoints[i];
        plugins[i].versions[0] = "v1.DRAPlugin";
        fake_plugin_start(&plugins[i], node, names[i]);
        wait_state(node, names[i], DV_PLUGIN_REGISTERED);
        fake_plugin_stop(&plugins[i]);
        wait_state(node, names[i], DV_PLUGIN_GONE);
        settle(node);
        (void)snprintf(calls, sizeof(calls),
                       "validate(gpu.example.com,%s) start(gpu.example.com,%s) "
                       "deregister(gpu.example.com,%s) ",
                       endpoints[i], endpoints[i], endpoints[i]);
        assert_string_equal(dv_buf_c(&node->dra.calls), calls);
        dv_buf_clear(&node->dra.calls);
        fake_plugin_end(&plugins[i]);
    }
    assert_int_equal(node->device.n_validate, 0);
}

static void registrar_and_service_may_share_a_socket(void **state)
{
    struct fake_plugin plugin = {.type = "DRAPlugin", .plugin_name = "gpu.example.com"};
    struct node *node = *state;
    struct dv_plugin_view view;

    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_true(node_view(node, "a.sock", &view));
    assert_str(view.info->endpoint, plugin.path); /* the endpoint was empty */
    fake_plugin_end(&plugin);
}

/* Whether the service answers is for the handler: this module does not look. */
static void the_service_need_not_be_there_when_its_registrar_is(void **state)
{
    struct node *node = *state;
    char endpoint[96];
    struct fake_plugin plugin = {.type = "DRAPlugin", .endpoint = endpoint};

    (void)snprintf(endpoint, sizeof(endpoint), "%s/plugins/later/dra.sock", node->dir);
    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    wait_count(node, &plugin.n_ok, 1);
    fake_plugin_end(&plugin);
}

static void without_sockets_nothing_happens(void **state)
{
    struct node *node = *state;

    node_open_and_scan(node);
    advance(node, 100000);
    assert_int_equal(dv_plugins_status(node->plugins).n_desired, 0);
    assert_int_equal(dv_plugins_status(node->plugins).n_actual, 0);
    assert_int_equal(n_listed(node), 0);
    assert_string_equal(dv_buf_c(&node->changes), "");
    assert_int_equal(node->device.n_validate + node->dra.n_validate, 0);
}

static void sockets_are_registered_side_by_side_and_each_but_once(void **state)
{
    struct node *node = *state;
    struct fake_plugin plugins[MANY] = {0};
    struct dv_plugin_view view;

    node_open_and_scan(node);
    for (int i = 0; i < MANY; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        plugins[i].holds_at = AT_INFO;
        fake_plugin_start(&plugins[i], node, name);
    }
    for (int i = 0; i < MANY; i++)
        wait_count(node, &plugins[i].n_info, 1);
    assert_int_equal(node->plugins->n_running, MANY);
    settle(node);
    for (int i = 0; i < MANY; i++) {
        char name[32];

        assert_int_equal(plugins[i].n_info, 1);
        (void)snprintf(name, sizeof(name), "plugin-%d.sock", i);
        assert_true(node_view(node, name, &view));
        assert_int_equal(view.state, DV_PLUGIN_CONNECTING);
        assert_true(view.is_desired && !view.is_actual);
        plugins[i].holds_at = AT_NOTHING;
    }
    advance(node, 1000); /* GetInfo has had its time; half a second later they are asked again */
    advance(node, 550);
    wait_actual(node, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(plugins[i].n_info, 2);
        fake_plugin_end(&plugins[i]);
    }
    assert_int_equal(node->device.n_start, MANY);
}

/* ---- failures that pass ---- */

static void a_plugin_whose_info_fails_is_asked_again_without_any_event(void **state)
{
    struct fake_plugin plugin = {.fail_info = 3};
    struct node *node = *state;
    struct dv_plugin_view view;

    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    for (int i = 1; i <= 3; i++) {
        wait_count(node, &plugin.n_info, i);
        wait_state(node, "a.sock", DV_PLUGIN_FAILING);
        settle(node);
        assert_true(node_view(node, "a.sock", &view));
        assert_false(view.is_actual);
        assert_int_equal(view.n_attempts, i);
        assert_err(&view.last_err, DV_INTERNAL,
                   "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket");
        assert_err(&view.last_err, DV_INTERNAL, "a.sock, err: not today");
        assert_true(view.last_err_wall_ns > 0);
        assert_in_range(view.next_retry_ms - dv_loop_now_ms(node->loop), 500u << (i - 1),
                        (500u << (i - 1)) * 11 / 10);
        advance(node, view.next_retry_ms - dv_loop_now_ms(node->loop) - 1);
        assert_int_equal(plugin.n_info, i);
        advance(node, 1);
    }
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(plugin.n_refused, 0); /* it is not told of a failure of its own */
    assert_int_equal(plugin.n_ok, 1);
    fake_plugin_end(&plugin);
}

static void a_plugin_that_cannot_be_told_is_not_registered(void **state)
{
    struct fake_plugin plugin = {.fail_notify = 2};
    struct node *node = *state;
    struct dv_plugin_view view;

    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    for (int i = 1; i <= 2; i++) {
        wait_state(node, "a.sock", DV_PLUGIN_FAILING);
        assert_true(node_view(node, "a.sock", &view));
        assert_false(view.is_actual);
        assert_err(&view.last_err, DV_INTERNAL,
                   "RegisterPlugin error -- failed to send registration status at socket ");
        assert_int_equal(plugin.n_ok, i);
        assert_int_equal(node->device.n_start, i);
        assert_int_equal(node->device.n_deregister, i);
        advance(node, 1100);
    }
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(plugin.n_info, 3); /* from the beginning each time */
    assert_int_equal(node->device.n_started, 1);
    fake_plugin_end(&plugin);
}

/* The record of failures belongs to the path, whoever serves there. */
static void who_comes_back_waits_for_the_rest_of_the_backoff(void **state)
{
    struct fake_plugin bad = {.fail_info = 100};
    struct fake_plugin good = {0};
    struct node *node = *state;
    struct dv_plugin_view view;

    node_open_and_scan(node);
    fake_plugin_start(&bad, node, "a.sock");
    for (int i = 1; i <= 8; i++) {
        wait_count(node, &bad.n_info, i);
        wait_state(node, "a.sock", DV_PLUGIN_FAILING);
        settle(node);
        assert_true(node_view(node, "a.sock", &view));
        if (i < 8)
            advance(node, view.next_retry_ms - dv_loop_now_ms(node->loop));
    }
    fake_plugin_stop(&bad);
    wait_state(node, "a.sock", DV_PLUGIN_GONE);
    fake_plugin_start(&good, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_FAILING);
    assert_true(node_view(node, "a.sock", &view));
    assert_int_equal(view.n_attempts, 0); /* of this one */
    advance(node, 63000);
    assert_int_equal(good.n_info, 0);
    advance(node, 64000 / 10 + 1000);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_end(&bad);
    fake_plugin_end(&good);
}

/* ---- on the wire ---- */

static void times_and_connections_are_as_specified(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;

    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(plugin.info_timeout_ms, 1000);
    assert_int_equal(plugin.notify_timeout_ms, 5000);
    settle(node);
    assert_int_equal(dv_server_n_connections(plugin.server), 0);
    fake_plugin_end(&plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_is_desired_while_it_is_there),
        cmocka_unit_test(sockets_count_not_names),
        cmocka_unit_test(a_plugin_that_restarts_is_one_entry_with_a_newer_time),
        cmocka_unit_test(a_socket_in_the_place_of_another_is_registered_after_that_is_deregistered),
        cmocka_unit_test(what_goes_is_deregistered_before_what_comes_is_registered),
        cmocka_unit_test(a_socket_that_is_replaced_all_the_time_is_followed_once_a_period),
        cmocka_unit_test(what_runs_at_the_start_is_registered_at_every_start),
        cmocka_unit_test(handlers_see_each_plugin_come_and_go_once_at_every_depth),
        cmocka_unit_test(registrar_and_service_may_share_a_socket),
        cmocka_unit_test(the_service_need_not_be_there_when_its_registrar_is),
        cmocka_unit_test(without_sockets_nothing_happens),
        cmocka_unit_test(sockets_are_registered_side_by_side_and_each_but_once),
        cmocka_unit_test(a_plugin_whose_info_fails_is_asked_again_without_any_event),
        cmocka_unit_test(a_plugin_that_cannot_be_told_is_not_registered),
        cmocka_unit_test(who_comes_back_waits_for_the_rest_of_the_backoff),
        cmocka_unit_test(times_and_connections_are_as_specified),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
