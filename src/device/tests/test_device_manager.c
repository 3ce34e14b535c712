/* The life of plugins on the loop. */
#include "support/dvtest.h"

#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "device/device_manager.h"
#include "device/tests/test_device_host.h"
#include "plugin/plugin.h"
#include "support/device_plugin.h"

#define GRACE_MS 300000u

/* ---- registration ---- */

static void a_plugin_registers_and_its_devices_are_there(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    dv_str resource;
    uint64_t n;
    size_t at = 0;

    host_add(host, &plugin, "a.sock", "g0 g1! g2");
    assert_string_equal(host_capacity(host), "3/2");
    assert_true(dv_device_manager_next_count(host->devices, &at, &resource, &n));
    assert_str(resource, GPU);
    assert_int_equal(n, 1);
    device_plugin_list(&plugin, "g0! g2");
    host_wait_capacity(host, "2/1");
    host_wait_saved(host);
    host_kill(host, &plugin);
}

static void options_that_fail_fail_the_registration_4(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.fails_at_options = DV_INTERNAL};

    device_plugin_start(&plugin, host->rig.loop, host->plugins, "a.sock", GPU, "g0");
    device_plugin_register(&plugin, host->plugins);
    rig_wait_count(&host->rig, &plugin.n_registered, 1);
    assert_err(&plugin.err, DV_UNKNOWN, "failed to get device plugin options");
    assert_err(&plugin.err, DV_UNKNOWN, "not today");
    assert_int_equal(plugin.n_options, 1);
    assert_int_equal(plugin.n_lists, 0);
    assert_string_equal(host_capacity(host), "-");
    device_plugin_kill(&plugin);
}

static void a_list_that_fails_at_once_leaves_a_resource_without_devices_5(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.refuses_list = true};

    device_plugin_start(&plugin, host->rig.loop, host->plugins, "a.sock", GPU, "g0");
    device_plugin_register(&plugin, host->plugins);
    rig_wait_count(&host->rig, &plugin.n_registered, 1);
    assert_int_equal(plugin.err.code, DV_OK);
    host_wait_capacity(host, "0/0!");
    rig_advance(&host->rig, GRACE_MS - 1000);
    assert_string_equal(host_capacity(host), "0/0!");
    assert_int_equal(plugin.n_options + plugin.n_lists, 2); /* never again */
    device_plugin_kill(&plugin);
}

static bool is_registering(void *ctx)
{
    dv_str resource;
    uint64_t n;
    size_t at = 0;

    return dv_device_manager_next_count(((struct host *)ctx)->devices, &at, &resource, &n);
}

static void a_plugin_that_does_not_serve_is_refused_after_ten_seconds(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    device_plugin_start(&plugin, host->rig.loop, host->plugins, "a.sock", GPU, "g0");
    (void)unlink(plugin.path);
    device_plugin_register(&plugin, host->plugins);
    rig_wait(&host->rig, is_registering, host);
    rig_advance(&host->rig, 10000);
    rig_wait_count(&host->rig, &plugin.n_registered, 1);
    assert_err(&plugin.err, DV_UNKNOWN, "failed to dial device plugin");
    device_plugin_kill(&plugin);
}

static void an_endpoint_that_is_a_link_to_nowhere_is_refused_at_once(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    device_plugin_start(&plugin, host->rig.loop, host->plugins, "a.sock", GPU, "g0");
    (void)unlink(plugin.path);
    assert_int_equal(symlink("/nowhere/a.sock", plugin.path), 0);
    device_plugin_register(&plugin, host->plugins);
    rig_wait_count(&host->rig, &plugin.n_registered, 1);
    assert_err(&plugin.err, DV_UNKNOWN, "is a link to nowhere");
    assert_string_equal(host_capacity(host), "-");
    device_plugin_kill(&plugin);
}

static void the_newest_of_two_is_called_and_the_older_when_it_is_gone_2(void **state)
{
    struct host *host = *state;
    struct device_plugin old = {0};
    struct device_plugin young = {0};
    struct dv_err err;

    host_add(host, &old, "old.sock", "g0 g1");
    host_add(host, &young, "young.sock", "g0 g1");
    host_wait_capacity(host, "2/2");
    device_plugin_list(&young, "g9");
    host_wait_capacity(host, "1/1");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    assert_string_equal(host_held(host, "p0"), "g9");
    assert_int_equal(young.n_allocate, 1);
    device_plugin_end_list(&young);
    device_plugin_list(&old, "g0 g1");
    host_wait_capacity(host, "2/2"); /* only when the last one goes, they count as unhealthy */
    assert_int_equal(host_allocate(host, "p1", 1, &err), DV_OK);
    assert_int_equal(old.n_allocate, 1);
    host_wait_saved(host);
    device_plugin_kill(&young);
    host_kill(host, &old);
    assert_string_equal(host_capacity(host), "2/0!");
}

/* ---- through the watcher ---- */

struct watched {
    struct dv_plugin_registration registration;
    int n_done;
    struct dv_err err;
};

static void on_watched(struct dv_plugin_registration *registration, const struct dv_err *err)
{
    struct watched *watched = DV_CONTAINER(registration, struct watched, registration);

    watched->n_done++;
    if (err)
        watched->err = *err;
}

static void the_watcher_s_way_is_the_same_3(void **state)
{
    struct host *host = *state;
    struct dv_plugin_handler handler = dv_device_manager_handler(host->devices);
    struct device_plugin plugins[3] = {0};
    static const char *const names[] = {"a.sock", "b.sock", "c.sock"};
    static const char *const lists[] = {"g0 g1", "g0 g1", "g7"};
    static const char *const wanted[] = {"2/2", "2/2", "1/1"};

    for (size_t i = 0; i < DV_COUNT(plugins); i++) {
        struct dv_plugin_info info = {.type = handler.type, .name = DV_STR(GPU)};
        struct watched watched = {
            .registration = {.done = on_watched, .info = &info, .deadline_ms = UINT64_MAX}
        };

        device_plugin_start(&plugins[i], host->rig.loop, host->plugins, names[i], GPU, lists[i]);
        info.endpoint = dv_str_from_c(plugins[i].path);
        handler.start(handler.ctx, &watched.registration);
        rig_wait_count(&host->rig, &watched.n_done, 1);
        assert_int_equal(watched.err.code, DV_OK);
        host_wait_capacity(host, wanted[i]);
        rig_wait_count(&host->rig, &plugins[i].n_lists, 1);
    }
    for (size_t i = 0; i < DV_COUNT(plugins); i++) {
        struct dv_plugin_info info = {.name = DV_STR(GPU),
                                      .endpoint = dv_str_from_c(plugins[i].path)};

        handler.deregister(handler.ctx, &info);
        device_plugin_kill(&plugins[i]);
    }
    assert_string_equal(host_capacity(host), "1/0!");
    host_wait_saved(host);
}

/* ---- the grace period: 6, 7, 9, 16 ---- */

static void a_resource_is_removed_five_minutes_after_its_plugin_went(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    int n_changed;

    host_add(host, &plugin, "a.sock", "g0 g1");
    host_kill(host, &plugin);
    assert_string_equal(host_capacity(host), "2/0!");
    host_wait_saved(host);
    rig_advance(&host->rig, GRACE_MS);
    assert_string_equal(host_capacity(host), "2/0!"); /* longer than that, not as long */
    n_changed = host->n_changed;
    rig_advance(&host->rig, 1);
    rig_wait_count(&host->rig, &host->n_changed,
                   n_changed + 1); /* nobody has asked: a timer did it */
    assert_string_equal(host_capacity(host), "removed");
    assert_true(dv_device_manager_is_removed(host->devices, DV_STR(GPU)));
    host_wait_saved(host);
    host_add(host, &plugin, "a.sock", "g0");
    assert_string_equal(host_capacity(host), "1/1");
    assert_false(dv_device_manager_is_removed(host->devices, DV_STR(GPU)));
    host_wait_saved(host);
    host_kill(host, &plugin);
}

static void a_plugin_that_comes_back_in_time_removes_nothing(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    host_add(host, &plugin, "a.sock", "g0 g1");
    host_kill(host, &plugin);
    rig_advance(&host->rig, GRACE_MS - 1000);
    host_add(host, &plugin, "a.sock", "g0 g1");
    rig_advance(&host->rig, 2 * GRACE_MS);
    assert_string_equal(host_capacity(host), "2/2");
    host_kill(host, &plugin); /* and then the time begins anew */
    rig_advance(&host->rig, GRACE_MS - 1000);
    assert_string_equal(host_capacity(host), "2/0!");
    rig_advance(&host->rig, 2000);
    assert_string_equal(host_capacity(host), "removed");
}

static void what_is_held_of_a_removed_resource_stays_held(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0 g1");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    host_kill(host, &plugin);
    rig_advance(&host->rig, GRACE_MS + 1);
    host_wait_capacity(host, "removed");
    assert_string_equal(host_held(host, "p0"), "g0");
    host_wait_saved(host);
    assert_int_not_equal(host_allocate(host, "p1", 1, &err), DV_OK);
    assert_err(&err, err.code, "cannot allocate unregistered device " GPU);
    host_add(host, &plugin, "a.sock", "g0 g1");
    assert_int_equal(host_allocate(host, "p1", 1, &err), DV_OK);
    assert_string_equal(host_held(host, "p1"), "g1"); /* g0 is still p0's */
    assert_int_not_equal(host_allocate(host, "p2", 1, &err), DV_OK);
    host_kill(host, &plugin);
}

static void after_a_start_without_its_plugin_a_resource_goes_too_18(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct dv_err err;

    host_reopen_on_disk(host);
    host_add(host, &plugin, "a.sock", "g0 g1");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    host_wait_saved(host);
    device_plugin_kill(&plugin);
    host_reopen_on_disk(host);
    assert_string_equal(host_capacity(host), "0/0!");
    assert_string_equal(host_held(host, "p0"), "g0");
    rig_advance(&host->rig, GRACE_MS + 1);
    host_wait_capacity(host, "removed");
    host_wait_saved(host);
    host_reopen_on_disk(host);
    assert_string_equal(host_capacity(host), "-");
    assert_string_equal(host_held(host, "p0"), "g0"); /* it was not told that p0 is gone */
}

/* ---- health of what is held: 53, 54 ---- */

static bool is_told_twice(void *ctx)
{
    return strcmp(dv_buf_c(&((struct host *)ctx)->told), "p0 | ") != 0;
}

static void those_that_hold_a_device_are_told_of_its_health(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0 g1 g2");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    assert_int_equal(host_allocate(host, "p1", 1, &err), DV_OK);
    device_plugin_list(&plugin, "g0 g1 g2!"); /* nobody's */
    host_wait_capacity(host, "3/2");
    assert_string_equal(dv_buf_c(&host->told), "");
    device_plugin_list(&plugin, "g0! g1 g2!");
    host_wait_capacity(host, "3/1");
    assert_string_equal(dv_buf_c(&host->told), "p0 | ");
    device_plugin_list(&plugin, "g0! g1 g2"); /* unchanged for those who hold */
    host_wait_capacity(host, "3/2");
    assert_string_equal(dv_buf_c(&host->told), "p0 | ");
    device_plugin_list(&plugin, "g0 g1! g2");
    rig_wait(&host->rig, is_told_twice, host);
    assert_string_equal(dv_buf_c(&host->told), "p0 | p0 p1 | ");
    host_kill(host, &plugin); /* changes no device's own health */
    assert_string_equal(dv_buf_c(&host->told), "p0 | p0 p1 | ");
}

/* ---- calls ---- */

static void a_plugin_that_is_gone_is_not_called_10(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.needs_pre_start = true};
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0 g1");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    assert_int_equal(host_start_container(host, "p0", 1, &err), DV_OK);
    assert_int_equal(plugin.n_pre_start, 1);
    device_plugin_end_list(&plugin);
    host_wait_capacity(host, "2/0!");
    assert_int_not_equal(host_allocate(host, "p1", 1, &err), DV_OK);
    assert_int_not_equal(host_start_container(host, "p0", 1, &err), DV_OK);
    assert_err(&err, err.code, "has been stopped");
    assert_int_equal(plugin.n_allocate, 1);
    assert_int_equal(plugin.n_pre_start, 1);
    device_plugin_kill(&plugin);
}

static void an_allocation_that_fails_gives_the_devices_back(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.fails = DV_INTERNAL};
    struct dv_device_resource_info info;
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0 g1");
    assert_int_not_equal(host_allocate(host, "p0", 2, &err), DV_OK);
    assert_err(&err, err.code, "not today");
    assert_string_equal(host_held(host, "p0"), "");
    assert_true(dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &info));
    assert_int_equal(info.n_free, 2);
    host_wait_saved(host);
    plugin.fails = DV_OK;
    assert_int_equal(host_allocate(host, "p0", 2, &err), DV_OK);
    host_wait_saved(host);
    host_kill(host, &plugin);
}

struct hanging {
    struct dv_device_run run;
    int n_done;
    struct dv_err err;
};

static void on_hanging(struct dv_device_run *run, const struct dv_err *err)
{
    struct hanging *hanging = DV_CONTAINER(run, struct hanging, run);

    hanging->n_done++;
    if (err)
        hanging->err = *err;
}

static void hang(struct host *host, struct device_plugin *plugin, struct hanging *hanging)
{
    static const struct dv_device_limit limit = {.resource = DV_STR_INIT(GPU), .amount = 1};
    const struct dv_device_request request = {.pod_uid = DV_STR("p0"),
                                              .container = DV_STR("c"),
                                              .kind = DV_DEVICE_REGULAR,
                                              .limits = &limit,
                                              .n_limits = 1};

    *hanging = (struct hanging){.run = {.done = on_hanging}};
    dv_device_activate_pod(dv_device_manager_state(host->devices), request.pod_uid);
    dv_device_manager_allocate(host->devices, &hanging->run, &request);
    rig_wait_count(&host->rig, &plugin->n_allocate, plugin->n_allocate + 1);
    assert_int_equal(hanging->n_done, 0);
}

static void an_allocation_ends_when_its_plugin_is_too_slow_or_it_is_cancelled(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.holds_allocate = true};
    struct hanging hanging;

    host_add(host, &plugin, "a.sock", "g0");
    hang(host, &plugin, &hanging);
    rig_advance(&host->rig, 60000);
    rig_wait_count(&host->rig, &hanging.n_done, 1);
    assert_err(&hanging.err, hanging.err.code, "deadline");
    hang(host, &plugin, &hanging);
    dv_device_manager_cancel(&hanging.run);
    dv_device_manager_cancel(&hanging.run); /* twice is once */
    assert_int_equal(hanging.n_done, 0);
    rig_wait_count(&host->rig, &hanging.n_done, 1);
    assert_int_equal(hanging.err.code, DV_CANCELLED);
    assert_string_equal(host_held(host, "p0"), "");
    hang(host, &plugin, &hanging);
    device_plugin_answer(&plugin);
    rig_wait_count(&host->rig, &hanging.n_done, 1);
    assert_int_equal(hanging.err.code, DV_OK);
    assert_string_equal(host_held(host, "p0"), "g0");
    host_kill(host, &plugin);
}

static void closing_ends_what_runs(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.holds_allocate = true};
    struct hanging hanging;

    host_add(host, &plugin, "a.sock", "g0");
    hang(host, &plugin, &hanging);
    host_close(host);
    assert_int_equal(hanging.n_done, 1);
    assert_int_equal(hanging.err.code, DV_CANCELLED);
    device_plugin_kill(&plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(a_plugin_registers_and_its_devices_are_there),
        host_test(options_that_fail_fail_the_registration_4),
        host_test(a_list_that_fails_at_once_leaves_a_resource_without_devices_5),
        host_test(a_plugin_that_does_not_serve_is_refused_after_ten_seconds),
        host_test(an_endpoint_that_is_a_link_to_nowhere_is_refused_at_once),
        host_test(the_newest_of_two_is_called_and_the_older_when_it_is_gone_2),
        host_test(the_watcher_s_way_is_the_same_3),
        host_test(a_resource_is_removed_five_minutes_after_its_plugin_went),
        host_test(a_plugin_that_comes_back_in_time_removes_nothing),
        host_test(what_is_held_of_a_removed_resource_stays_held),
        host_test(after_a_start_without_its_plugin_a_resource_goes_too_18),
        host_test(those_that_hold_a_device_are_told_of_its_health),
        host_test(a_plugin_that_is_gone_is_not_called_10),
        host_test(an_allocation_that_fails_gives_the_devices_back),
        host_test(an_allocation_ends_when_its_plugin_is_too_slow_or_it_is_cancelled),
        host_test(closing_ends_what_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
