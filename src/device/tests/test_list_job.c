/* Long lists on the loop: what comes, goes or ends while one is read on a worker. */
#include "support/dvtest.h"

#include "base/buf.h"
#include "device/manager/device_manager_state.h"
#include "device/tests/test_device_host.h"
#include "support/device_plugin.h"

/* More than is read on the loop. */
#define N_LONG 8000u

/* "d0 d1! d2", so many, the first `n_ill` of them ill; in the host's arena. */
static const char *devices(struct host *host, unsigned n, unsigned n_ill)
{
    struct dv_buf buf;
    const char *text;

    dv_buf_init(&buf, 1u << 20);
    for (unsigned i = 0; i < n; i++)
        dv_buf_printf(&buf, "%sd%u%s", i > 0 ? " " : "", i, i < n_ill ? "!" : "");
    text = dv_str_to_c(dv_buf_str(&buf), host->rig.arena);
    dv_buf_fini(&buf);
    return text;
}

static void a_long_list_counts_and_short_and_long_ones_follow_in_order(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct dv_err err;

    host_add(host, &plugin, "a.sock", devices(host, N_LONG, 0));
    host_wait_capacity(host, "8000/8000");
    assert_int_equal(host_allocate(host, "p0", 2, &err), DV_OK);
    assert_string_equal(host_held(host, "p0"), "d0 d1");
    device_plugin_list(&plugin, devices(host, N_LONG, 1));
    host_wait_capacity(host, "8000/7999");
    assert_string_equal(dv_str_to_c(dv_buf_str(&host->told), host->rig.arena), "p0 | ");
    device_plugin_list(&plugin, "d0 d1 d2");
    host_wait_capacity(host, "3/3");
    device_plugin_list(&plugin, devices(host, N_LONG + 1, 2));
    host_wait_capacity(host, "8001/7999");
    assert_string_equal(host_held(host, "p0"), "d0 d1");
    host_wait_saved(host);
    host_kill(host, &plugin);
}

static void of_lists_that_come_while_one_is_read_the_newest_counts(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    host_add(host, &plugin, "a.sock", "d0");
    host_wait_capacity(host, "1/1");
    for (unsigned i = 0; i < 8; i++)
        device_plugin_list(&plugin, devices(host, N_LONG + i, i));
    device_plugin_list(&plugin, "d0! d1 d2 d3");
    host_wait_capacity(host, "4/3");
    host_wait_saved(host);
    host_kill(host, &plugin);
}

static bool is_reading(void *ctx)
{
    return ((struct host *)ctx)->devices->n_list_jobs > 0;
}

static bool is_idle(void *ctx)
{
    return !is_reading(ctx);
}

static void a_plugin_that_goes_while_its_list_is_read_leaves_nothing_behind(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct device_plugin again = {0};

    host_add(host, &plugin, "a.sock", "d0 d1");
    host_wait_capacity(host, "2/2");
    device_plugin_list(&plugin, devices(host, N_LONG, 0));
    rig_wait(&host->rig, is_reading, host);
    host_kill(host, &plugin); /* noticed before its list has been read, or after */
    rig_wait(&host->rig, is_idle, host);
    assert_true(dv_str_ends_with(dv_str_from_c(host_capacity(host)), DV_STR("/0!")));
    host_add(host, &again, "a.sock", "d7");
    host_wait_capacity(host, "1/1");
    host_wait_saved(host);
    host_kill(host, &again);
}

static void a_manager_that_closes_waits_for_the_list_that_is_read(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    host_add(host, &plugin, "a.sock", "d0");
    host_wait_capacity(host, "1/1");
    device_plugin_list(&plugin, devices(host, N_LONG, 0));
    rig_wait(&host->rig, is_reading, host);
    host_close(host); /* the test's end finds what is left */
    device_plugin_kill(&plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(a_long_list_counts_and_short_and_long_ones_follow_in_order),
        host_test(of_lists_that_come_while_one_is_read_the_newest_counts),
        host_test(a_plugin_that_goes_while_its_list_is_read_leaves_nothing_behind),
        host_test(a_manager_that_closes_waits_for_the_list_that_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
