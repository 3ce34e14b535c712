/* Admissions, releases and what the disk has of them. */
#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/defs.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "pod/pod.h"
#include "pod/tests/test_pod_host.h"
#include "store/store.h"
#include "topology/topology.h"

/* Longer than the first pause before another attempt to write. */
#define RETRY_MS 1500u

static void assert_free(struct host *host, size_t n)
{
    struct dv_device_resource_info info;

    assert_true(dv_device_find(dv_device_manager_state(host->devices), DV_STR(GPU), &info));
    assert_int_equal(info.n_free, n);
}

static void a_pod_is_admitted_and_released(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1 2"), DV_OK);
    assert_true(asked.is_admitted);
    host_check(host, "p0=g0,g1,g2 ");
    assert_int_equal(host_admit(host, &asked, "p1", "2"), DV_OK);
    assert_false(asked.is_admitted);
    assert_string_equal(asked.reason, "UnexpectedAdmissionError");
    host_check(host, "p0=g0,g1,g2 ");
    assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_true(asked.was_known);
    host_check(host, "");
    assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_false(asked.was_known);
    assert_free(host, 4);
    assert_int_equal(host->n_ended, 2);
    assert_int_equal(host->n_verdicts, 2);
}

static void what_was_admitted_is_there_after_a_restart_and_nothing_else(void **state)
{
    const struct dv_pod_ref ref = {.name = DV_STR("p1")};
    struct host *host = *state;
    struct dv_pod_view before;
    struct dv_pod_view view;
    struct asked asked;

    host_reopen_on_disk(host);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(host_admit(host, &asked, "p1", "1"), DV_OK);
    assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_true(dv_pods_find(host->pods, &ref, &before));
    rig_advance(&host->rig, RETRY_MS);
    host_reopen_on_disk(host);
    host_check(host, "p1=g1 ");
    assert_true(dv_pods_find(host->pods, &ref, &view));
    assert_int_equal(view.since_wall_ns, before.since_wall_ns); /* it has had it all the time */
    assert_int_equal(host_admit(host, &asked, "p2", "3"), DV_OK);
    assert_true(asked.is_admitted); /* p0 left nothing behind */
    host_check(host, "p1=g1 p2=g0,g2,g3 ");
}

/* ---- every write fails in turn ---- */

/* What one attempt came to: done, or the fault was the reason and nothing has changed. */
static bool is_done(struct host *host, const struct asked *asked, const char *before)
{
    if (asked->err.code == DV_OK)
        return true;
    assert_err(&asked->err, DV_RESOURCE_EXHAUSTED, "fails as it was told");
    assert_int_equal(host->faults.n_until, 0);
    rig_advance(&host->rig, RETRY_MS);
    assert_string_equal(host_pods(host), before);
    return false;
}

/* A pod comes with two containers, comes again with another request, another one comes, both go.
 * What failed is asked for again, and works. */
static void live(struct host *host)
{
    struct asked asked;

    (void)host_admit(host, &asked, "p0", "1 1");
    if (!is_done(host, &asked, ""))
        assert_int_equal(host_admit(host, &asked, "p0", "1 1"), DV_OK);
    assert_true(asked.is_admitted);
    host_check(host, "p0=g0,g1 ");
    (void)host_admit(host, &asked, "p0", "1 1 1");
    if (!is_done(host, &asked, "p0=g0,g1 "))
        assert_int_equal(host_admit(host, &asked, "p0", "1 1 1"), DV_OK);
    assert_true(asked.is_admitted);
    host_check(host, "p0=g0,g1,g2 ");
    (void)host_admit(host, &asked, "p1", "1");
    if (!is_done(host, &asked, "p0=g0,g1,g2 "))
        assert_int_equal(host_admit(host, &asked, "p1", "1"), DV_OK);
    assert_true(asked.is_admitted);
    host_check(host, "p0=g0,g1,g2 p1=g3 ");
    /* A release that is not on the disk leaves the pod known, and its devices free. */
    (void)host_release(host, &asked, "p0");
    if (!is_done(host, &asked, "p0= p1=g3 "))
        assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_true(asked.was_known);
    host_check(host, "p1=g3 ");
    (void)host_release(host, &asked, "p1");
    if (!is_done(host, &asked, "p1= "))
        assert_int_equal(host_release(host, &asked, "p1"), DV_OK);
    host_check(host, "");
    assert_free(host, 4);
}

static void a_release_that_fails_does_not_change_since_when_devices_are_held(void **state)
{
    const struct dv_pod_ref ref = {.name = DV_STR("p0")};
    struct host *host = *state;
    struct dv_pod_view view;
    struct asked asked;
    uint64_t since_ms;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_true(dv_pods_find(host->pods, &ref, &view));
    since_ms = dv_pod_held_since_ms(&view);
    rig_advance(&host->rig, RETRY_MS);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(host_release(host, &asked, "p0"), DV_RESOURCE_EXHAUSTED);
    assert_true(dv_pods_find(host->pods, &ref, &view));
    assert_true(view.since_wall_ns / DV_NS_PER_MS > since_ms); /* of its state */
    assert_int_equal(dv_pod_held_since_ms(&view), since_ms);
}

static void every_write_of_admissions_and_releases_may_fail(void **state)
{
    struct host *host = *state;
    bool has_failed = true;
    uint64_t n = 0;

    while (has_failed) {
        host->faults = (struct test_store_faults){.n_until = ++n, .code = DV_RESOURCE_EXHAUSTED};
        live(host);
        has_failed = host->faults.n_until == 0;
        host_renew(host);
    }
    assert_in_range(n, 6, 20);
}

/* ---- waiting ---- */

static bool is_waiting(void *ctx)
{
    struct host *host = ctx;
    struct dv_pod_view view;
    size_t at = 0;

    return dv_pods_next(host->pods, &at, &view) && view.state == DV_POD_WAITING;
}

static void a_pod_waits_for_its_plugin_and_no_longer_than_it_may(void **state)
{
    struct host *host = *state;
    struct asked asked;

    host_kill_plugin(host);
    host_ask(host, &asked, "p0", "1");
    rig_wait(&host->rig, is_waiting, host);
    rig_advance(&host->rig, DV_POD_WAIT_MS - 1);
    assert_int_equal(asked.n_done, 0);
    rig_advance(&host->rig, 1);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_false(asked.is_admitted);
    assert_non_null(strstr(asked.err.msg, "no healthy devices present"));
    assert_int_equal(host->times.all_ns, (uint64_t)DV_POD_WAIT_MS * 1000000);
    assert_int_equal(host->times.allocation_ns, 0);
    host_ask(host, &asked, "p0", "1");
    rig_wait(&host->rig, is_waiting, host);
    host_start_plugin(host);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_true(asked.is_admitted);
    host_check(host, "p0=g0 ");
}

static void a_pod_is_refused_when_the_resource_was_removed(void **state)
{
    struct host *host = *state;
    struct asked asked;

    host_kill_plugin(host);
    rig_advance(&host->rig, 300001);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_false(asked.is_admitted);
    assert_string_equal(asked.reason, "UnknownResource");
    assert_non_null(strstr(asked.err.msg, "has been gone for more than 5 minutes"));
    host_start_plugin(host);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_true(asked.is_admitted);
}

static void an_admission_can_be_cancelled_at_any_time(void **state)
{
    struct host *host = *state;
    struct asked asked;

    host_ask(host, &asked, "p0", "1"); /* before it has begun */
    dv_pods_cancel(&asked.admission);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(asked.err.code, DV_CANCELLED);
    host->plugin.holds_allocate = true; /* while a plugin is asked */
    host_ask(host, &asked, "p0", "1");
    rig_wait_count(&host->rig, &host->plugin.n_allocate, 1);
    dv_pods_cancel(&asked.admission);
    dv_pods_cancel(&asked.admission);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(asked.err.code, DV_CANCELLED);
    host->plugin.holds_allocate = false;
    host_check(host, "");
    assert_free(host, 4);
    host_kill_plugin(host); /* while it waits */
    host_ask(host, &asked, "p0", "1");
    rig_wait(&host->rig, is_waiting, host);
    dv_pods_cancel(&asked.admission);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(asked.err.code, DV_CANCELLED);
    assert_string_equal(host_pods(host), "");
    host_ask(host, &asked, "p0", "1"); /* and when all ends */
    rig_wait(&host->rig, is_waiting, host);
    host_close(host);
    assert_int_equal(asked.err.code, DV_CANCELLED);
}

static void what_is_under_way_for_a_pod_keeps_others_from_it(void **state)
{
    struct host *host = *state;
    struct asked first;
    struct asked second;

    host->plugin.holds_allocate = true;
    host_ask(host, &first, "p0", "1");
    rig_wait_count(&host->rig, &host->plugin.n_allocate, 1);
    assert_int_equal(host_admit(host, &second, "p0", "1"), DV_ABORTED);
    assert_int_equal(host_release(host, &second, "p0"), DV_ABORTED);
    device_plugin_answer(&host->plugin);
    rig_wait_count(&host->rig, &first.n_done, 1);
    assert_true(first.is_admitted);
    host_check(host, "p0=g0 ");
}

/* ---- a store that lost all ---- */

/* As when the file was found damaged: what was there is not. */
struct loss {
    struct dv_store_write write;
    int n_done;
};

static void on_lost(struct dv_store_write *write, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(write, struct loss, write)->n_done++;
}

static void lose_all(struct host *host)
{
    static const struct dv_store_change changes[] = {
        {.kind = DV_STORE_DELETE_PREFIX, .table = DV_TABLE_DEVICES},
        {.kind = DV_STORE_DELETE_PREFIX, .table = DV_TABLE_PODS   },
    };
    struct loss loss = {.write = {.done = on_lost}};

    dv_store_write(host->store, &loss.write, changes, DV_COUNT(changes));
    rig_wait_count(&host->rig, &loss.n_done, 1);
}

static void all_is_written_anew_into_a_store_that_lost_it(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(host_admit(host, &asked, "p1", "2"), DV_OK);
    lose_all(host);
    assert_string_equal(host_stored(host), "");
    dv_pods_save_all(host->pods);
    host_check(host, "p0=g0 p1=g1,g2 ");
}

static void a_rewrite_that_fails_is_tried_again(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    lose_all(host);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    dv_pods_save_all(host->pods);
    rig_advance(&host->rig, 0);
    assert_int_equal(host->faults.n_until, 0);
    assert_string_equal(host_stored(host), ""); /* the pod is not there yet */
    host->faults.n_until = 1;
    rig_advance(&host->rig, RETRY_MS);
    assert_int_equal(host->faults.n_until, 0);
    assert_int_equal(host_admit(host, &asked, "p1", "1"), DV_OK); /* others are not held up */
    rig_advance(&host->rig, 2 * RETRY_MS);
    host_check(host, "p0=g0 p1=g1 ");
    assert_non_null(strstr(dv_buf_c(&host->rig.log), "cannot write all pods anew; trying again"));
}

static void a_rewrite_that_fails_is_tried_once_more_at_the_end(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    dv_pods_save_all(host->pods);
    rig_advance(&host->rig, 0);
    host->faults.n_until = 1;
    host_close(host); /* in vain, and without hanging */
    assert_int_equal(host->faults.n_until, 0);
}

/* Whatever of a release is under way when all is written anew, the pod does not come back. */
static void a_rewrite_brings_no_released_pod_back(void **state)
{
    struct host *host = *state;
    struct asked first;
    struct asked second;

    assert_int_equal(host_admit(host, &first, "p0", "1"), DV_OK);
    assert_int_equal(host_admit(host, &first, "p1", "1"), DV_OK);
    host_begin_release(host, &first, "p0"); /* in the same write */
    dv_pods_save_all(host->pods);
    rig_wait_count(&host->rig, &first.n_done, 1);
    host_check(host, "p1=g1 ");
    host_begin_release(host, &first, "p1"); /* in the write before it */
    rig_advance(&host->rig, 0);
    dv_pods_save_all(host->pods);
    host_ask(host, &second, "p2", "1");
    rig_wait_count(&host->rig, &first.n_done, 1);
    rig_wait_count(&host->rig, &second.n_done, 1);
    host_check(host, "p2=g0 ");
}

/* ---- what is counted ---- */

static void admissions_are_counted_whatever_comes_of_them(void **state)
{
    struct host *host = *state;
    const struct dv_topology_counts *counts = dv_pods_topology_counts(host->pods);
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(host_admit(host, &asked, "p1", "9"), DV_OK); /* refused */
    assert_int_equal(counts->n_requests, 2);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(host_admit(host, &asked, "p2", "1"), DV_RESOURCE_EXHAUSTED);
    assert_int_equal(counts->n_requests, 3);
    assert_int_equal(host->n_ended, 3);
    assert_int_equal(host->n_verdicts, 2);
    rig_advance(&host->rig, RETRY_MS);
    host->plugin.holds_allocate = true;
    host_ask(host, &asked, "p3", "1");
    rig_wait_count(&host->rig, &host->plugin.n_allocate, 3);
    dv_pods_cancel(&asked.admission);
    rig_wait_count(&host->rig, &asked.n_done, 1);
    assert_int_equal(counts->n_requests, 4);
    assert_int_equal(counts->n_errors, 0); /* policy none counts none */
    assert_int_equal(counts->of_containers.n_kept + counts->of_pods.n_kept, 0);
    host->plugin.holds_allocate = false;
}

static void a_policy_s_errors_and_alignment_are_counted_by_scope(void **state)
{
    static const struct {
        const char *scope;
        uint64_t of_containers;
        uint64_t of_pods;
    } rows[] = {
        {"container", 2, 0},
        {"pod",       0, 1},
    };
    struct host *host = *state;
    struct asked asked;
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_topology_counts *counts;

        assert_ok(dv_topology_config_parse(DV_STR("single-numa-node"), dv_str_from_c(rows[i].scope),
                                           NULL, 0, &host->machine, &host->topology, &err),
                  &err);
        host_renew(host);
        counts = dv_pods_topology_counts(host->pods);
        assert_true(dv_pods_has_policy(host->pods));
        assert_int_equal(counts->n_requests, 0);
        assert_int_equal(host_admit(host, &asked, "p0", "1 1"), DV_OK);
        assert_true(asked.is_admitted);
        assert_int_equal(counts->of_containers.n_kept, rows[i].of_containers);
        assert_int_equal(counts->of_pods.n_kept, rows[i].of_pods);
        assert_int_equal(counts->n_errors, 0);
        host->plugin.fails = DV_INTERNAL;
        assert_int_equal(host_admit(host, &asked, "p1", "1"), DV_OK);
        assert_false(asked.is_admitted);
        host->plugin.fails = DV_OK;
        assert_int_equal(counts->n_errors, 1);
        assert_int_equal(counts->n_requests, 2);
    }
}

static void names_are_the_same_wherever_they_are_kept(void **state)
{
#define POD(metadata, container)                                                                   \
    "{\"metadata\":{\"name\":\"p\"" metadata "},\"spec\":{\"containers\":[{" container "}]}}"
#define C "\"name\":\"c\""
    static const struct {
        const char *json;
        const char *why; /* NULL: it is fine */
    } rows[] = {
        {POD(",\"uid\":\"a/b c\",\"namespace\":\"n\"", C),                                             NULL},
        {POD(",\"uid\":\"a\\u0000b\"",                                            C),                                                               "uid: has a control"},
        {POD(",\"uid\":\"a\\u001f\"",                        C),        "uid: has a control"},
        {POD(",\"uid\":\"a\\u007f\"",                   C),                                      "uid: has a control"},
        {POD(",\"namespace\":\"\\u0000\"",                  C),                                            "namespace: has a control"},
        {POD("",                                            "\"name\":\"c\\u0000d\""),                                                           "name: has a control"},
        {POD("",                  "\"name\":\"c/d\""),                     "it has a slash"},
        {POD("","\"name\":\"\""),"it is empty"},
        {POD("",                                       C ",\"resources\":{\"limits\":{\"a.b/c\\u0000\":\"1\"}}"),
         "resource has a control"},
        {POD(",\"annotations\":{\"davit.node/owner-cgroup\":\"/a\\u0000\"}",                                            C),                                                                                     "has a control"},
        {"{\"metadata\":{\"name\":\"p\\u0000\"}}",                               "metadata.name: has a cont"                                                                                                                                      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_pod_spec spec;
        struct dv_err err;
        bool is_fine = dv_pod_spec_parse(dv_str_from_c(rows[i].json), arena, &spec, &err);

        if (!rows[i].why)
            assert_ok(is_fine, &err);
        assert_int_equal(is_fine, !rows[i].why);
        if (rows[i].why)
            assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
    }
#undef POD
#undef C
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(a_pod_is_admitted_and_released),
        host_test(what_was_admitted_is_there_after_a_restart_and_nothing_else),
        host_test(a_release_that_fails_does_not_change_since_when_devices_are_held),
        host_test(every_write_of_admissions_and_releases_may_fail),
        host_test(a_pod_waits_for_its_plugin_and_no_longer_than_it_may),
        host_test(a_pod_is_refused_when_the_resource_was_removed),
        host_test(an_admission_can_be_cancelled_at_any_time),
        host_test(what_is_under_way_for_a_pod_keeps_others_from_it),
        host_test(all_is_written_anew_into_a_store_that_lost_it),
        host_test(a_rewrite_that_fails_is_tried_again),
        host_test(a_rewrite_that_fails_is_tried_once_more_at_the_end),
        host_test(a_rewrite_brings_no_released_pod_back),
        host_test(admissions_are_counted_whatever_comes_of_them),
        host_test(a_policy_s_errors_and_alignment_are_counted_by_scope),
        cmocka_unit_test(names_are_the_same_wherever_they_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
