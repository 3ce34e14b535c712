/* What happens when the disk fails: every write in turn. */
#include "support/dvtest.h"

#include "device/device_manager.h"
#include "device/tests/test_device_host.h"
#include "store/store.h"
#include "store/store_saver.h"
#include "support/device_plugin.h"

/* Longer than the first pause before another attempt. */
#define RETRY_MS 1500u

/* Something that ended with `code`, of which only the armed fault may have been the reason. When it
 * was, the disk is well again after a while. */
static bool is_done(struct host *host, enum dv_code code, const struct dv_err *err)
{
    if (code == DV_OK)
        return true;
    assert_err(err, DV_RESOURCE_EXHAUSTED, "save the state of devices: store ");
    assert_non_null(dv_device_manager_store_error(host->devices));
    assert_int_equal(host->faults.n_until, 0);
    rig_advance(&host->rig, RETRY_MS);
    host_wait_saved(host);
    return false;
}

/* A plugin comes, its list changes, a pod gets devices and gives them back, the plugin goes and is
 * forgotten. What failed is asked for again. */
static void live(struct host *host)
{
    struct device_plugin plugin = {0};
    enum dv_code code;
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0 g1");
    code = host_allocate(host, "p0", 1, &err);
    if (!is_done(host, code, &err))
        assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    assert_string_equal(host_held(host, "p0"), "g0");
    device_plugin_list(&plugin, "g0 g1 g2");
    host_wait_capacity(host, "3/3");
    code = host_allocate(host, "p1", 2, &err);
    if (!is_done(host, code, &err))
        assert_int_equal(host_allocate(host, "p1", 2, &err), DV_OK);
    assert_string_equal(host_held(host, "p1"), "g1 g2");
    code = host_release(host, "p0", &err);
    if (!is_done(host, code, &err))
        assert_int_equal(host_release(host, "p0", &err), DV_OK);
    assert_string_equal(host_held(host, "p0"), "");
    host_kill(host, &plugin);
    rig_advance(&host->rig, 300001);
    host_wait_capacity(host, "removed");
    assert_string_equal(host_held(host, "p1"), "g1 g2");
}

static void every_write_of_a_life_may_fail_once(void **state)
{
    struct host *host = *state;
    bool has_failed = true;
    uint64_t n = 0;

    while (has_failed) {
        host->faults = (struct test_store_faults){.n_until = ++n, .code = DV_RESOURCE_EXHAUSTED};
        live(host);
        has_failed = host->faults.n_until == 0;
        host->faults.n_until = 0;
        rig_advance(&host->rig, RETRY_MS);
        host_wait_saved(host);
        host_close(host);
        host_open(host);
    }
    assert_in_range(n, 5, 20); /* so many writes there are, less one */
}

/* All that comes meanwhile is written together, when the disk is well again. */
static void a_disk_that_fails_for_long_is_tried_with_growing_pauses(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};
    struct dv_err err;
    int n_tries = 0;

    host_add(host, &plugin, "a.sock", "g0 g1 g2 g3");
    host_wait_saved(host);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_RESOURCE_EXHAUSTED);
    host->faults.n_until = 1;
    for (int i = 0; i < 100; i++) { /* 100 s */
        rig_advance(&host->rig, 1000);
        n_tries += host->faults.n_until == 0;
        host->faults.n_until = 1;
    }
    assert_in_range(n_tries, 4, 8); /* after 1, 2, 4, 8, 16, 30 s, give or take a fifth */
    assert_string_equal(host_held(host, "p0"), "g0"); /* a caller who gives up says so */
    assert_int_equal(host_allocate(host, "p1", 1, &err), DV_RESOURCE_EXHAUSTED);
    host->faults.n_until = 0;
    assert_int_equal(host_allocate(host, "p2", 1, &err), DV_OK); /* takes the others along */
    host_wait_saved(host);
    assert_int_equal(host_release(host, "p0", &err), DV_OK);
    assert_int_equal(host_release(host, "p1", &err), DV_OK);
    host_wait_saved(host);
    host_kill(host, &plugin);
}

static void a_start_that_has_nothing_to_write_needs_no_disk(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {.needs_pre_start = true};
    struct dv_err err;

    host_add(host, &plugin, "a.sock", "g0");
    assert_int_equal(host_allocate(host, "p0", 1, &err), DV_OK);
    host_wait_saved(host);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_DATA_LOSS};
    assert_int_equal(host_start_container(host, "p0", 1, &err), DV_OK);
    assert_int_equal(host->faults.n_until, 1);
    host->faults.n_until = 0;
    host_kill(host, &plugin);
}

static void what_nobody_waited_for_is_written_when_it_closes(void **state)
{
    struct host *host = *state;
    struct device_plugin plugin = {0};

    host_reopen_on_disk(host);
    host_add(host, &plugin, "a.sock", "g0");
    host_reopen_on_disk(host); /* at once */
    assert_string_equal(host_capacity(host), "0/0!");
    device_plugin_kill(&plugin);
}

/* ---- saves with changes of others ---- */

struct extra {
    struct dv_save save;
    struct dv_store_change change;
    char value[8];
    int n_prepared;
    int n_done;
};

static void on_saved(struct dv_save *save, const struct dv_err *err)
{
    struct extra *extra = DV_CONTAINER(save, struct extra, save);

    assert_null(err);
    extra->n_done++;
}

static void prepare(struct dv_save *save)
{
    struct extra *extra = DV_CONTAINER(save, struct extra, save);

    extra->n_prepared++;
    extra->save.extra = &extra->change;
    extra->save.n_extra = 1;
}

static void what_comes_first_is_overwritten_by_what_was_asked_for_before_it(void **state)
{
    struct host *host = *state;
    struct extra extras[] = {{.value = "last"}, {.value = "first"}};
    struct dv_store_row *rows;
    size_t n_rows;

    for (size_t i = 0; i < DV_COUNT(extras); i++) {
        extras[i].change =
            (struct dv_store_change){DV_STORE_PUT, 0, DV_STR("~"), dv_str_from_c(extras[i].value)};
        extras[i].save =
            (struct dv_save){.done = on_saved, .prepare = prepare, .comes_first = i == 1};
        dv_device_manager_save(host->devices, &extras[i].save);
        assert_int_equal(extras[i].n_prepared, 0);
    }
    rig_wait_count(&host->rig, &extras[1].n_done, 1);
    rig_wait_count(&host->rig, &extras[0].n_done, 1);
    assert_int_equal(extras[0].n_prepared + extras[1].n_prepared, 2);
    n_rows = test_store_rows(host->store, 0, host->rig.arena, &rows);
    assert_str(rows[n_rows - 1].key, "~"); /* behind all others */
    assert_str(rows[n_rows - 1].value, "last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(every_write_of_a_life_may_fail_once),
        host_test(a_disk_that_fails_for_long_is_tried_with_growing_pauses),
        host_test(a_start_that_has_nothing_to_write_needs_no_disk),
        host_test(what_nobody_waited_for_is_written_when_it_closes),
        host_test(what_comes_first_is_overwritten_by_what_was_asked_for_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
