/* test_runs_store.c - what was told about containers, and a disk that fails. */
#include "support/dvtest.h"

#include "base/defs.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "pod/tests/test_pod_host.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/rig.h"

#define WAIT_MS 20000u

struct told {
    struct dv_pod_telling telling;
    enum dv_code code;
    bool is_done;
};

static void on_told(struct dv_pod_telling *telling, const struct dv_err *err)
{
    struct told *told = DV_CONTAINER(telling, struct told, telling);

    told->code = err ? err->code : DV_OK;
    told->is_done = true;
}

static bool is_done(void *ctx)
{
    return ((const struct told *)ctx)->is_done;
}

static enum dv_code tell_started(struct host *host, const char *uid)
{
    struct told told = {.telling.done = on_told};
    const struct dv_pod_ref ref = {.uid = dv_str_from_c(uid)};

    dv_pods_tell_started(host->pods, &told.telling, &ref, DV_STR("c0"), 0);
    assert_false(told.is_done);
    assert_true(dv_loop_run_until(host->rig.loop, is_done, &told, WAIT_MS));
    return told.code;
}

static enum dv_code tell_end(struct host *host, const char *uid, int32_t code, dv_str message)
{
    struct told told = {.telling.done = on_told};
    const struct dv_pod_ref ref = {.uid = dv_str_from_c(uid)};

    dv_pods_tell_ended(host->pods, &told.telling, &ref, DV_STR("c0"), code, message);
    assert_true(dv_loop_run_until(host->rig.loop, is_done, &told, WAIT_MS));
    return told.code;
}

static enum dv_code tell_ended(struct host *host, const char *uid, int32_t code)
{
    return tell_end(host, uid, code, DV_STR(""));
}

static const struct dv_api_container_status *status_of(const struct host *host, const char *uid)
{
    struct dv_pod_told told = dv_pods_told(host->pods, dv_str_from_c(uid));

    return told.n_statuses == 1 ? told.statuses : NULL;
}

static void what_could_not_be_written_is_told_again(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(tell_started(host, "p0"), DV_RESOURCE_EXHAUSTED);
    assert_int_equal(tell_started(host, "p0"), DV_OK);
    host->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    assert_int_equal(tell_ended(host, "p0", 3), DV_RESOURCE_EXHAUSTED);
    assert_int_equal(tell_ended(host, "p0", 4), DV_FAILED_PRECONDITION);
    assert_int_equal(tell_ended(host, "p0", 3), DV_OK);
    assert_int_equal(status_of(host, "p0")->state.terminated->exit_code, 3);
}

static void what_was_told_is_loaded_and_goes_with_the_pod(void **state)
{
    struct host *host = *state;
    struct asked asked;

    host_reopen_on_disk(host);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(tell_started(host, "p0"), DV_OK);
    assert_int_equal(tell_ended(host, "p0", 7), DV_OK);
    assert_int_equal(tell_started(host, "p0"), DV_OK);
    host_reopen_on_disk(host);
    assert_non_null(status_of(host, "p0"));
    assert_non_null(status_of(host, "p0")->state.running);
    assert_int_equal(status_of(host, "p0")->restart_count, 1);
    assert_int_equal(status_of(host, "p0")->last_state.terminated->exit_code, 7);
    assert_int_equal(host_release(host, &asked, "p0"), DV_OK);
    assert_null(status_of(host, "p0"));
    host_reopen_on_disk(host);
    assert_null(status_of(host, "p0"));
}

static void long_last_words_are_cut_between_characters(void **state)
{
    struct host *host = *state;
    struct asked asked;
    char words[6000];

    for (size_t i = 0; i < sizeof(words); i += 3) { /* 4096 is in the middle of one */
        words[i] = '\xe2';
        words[i + 1] = '\x82';
        words[i + 2] = '\xac';
    }
    host_reopen_on_disk(host);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(tell_end(host, "p0", 1, (dv_str){words, sizeof(words)}), DV_OK);
    host_reopen_on_disk(host);
    assert_non_null(status_of(host, "p0"));
    assert_int_equal(status_of(host, "p0")->state.terminated->message.n, 4095);
}

struct loss {
    struct dv_store_write write;
    int n_done;
};

static void on_lost(struct dv_store_write *write, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(write, struct loss, write)->n_done++;
}

static void a_store_that_lost_it_gets_it_again(void **state)
{
    static const struct dv_store_change change = {.kind = DV_STORE_DELETE_PREFIX,
                                                  .table = DV_TABLE_RUNS};
    struct loss loss = {.write = {.done = on_lost}};
    struct host *host = *state;
    struct asked asked;

    host_reopen_on_disk(host);
    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    assert_int_equal(tell_started(host, "p0"), DV_OK);
    dv_store_write(host->store, &loss.write, &change, 1);
    rig_wait_count(&host->rig, &loss.n_done, 1);
    dv_pods_save_all(host->pods);
    host_check(host, "p0=g0 ");
    host_reopen_on_disk(host);
    assert_non_null(status_of(host, "p0"));
}

static void a_runtime_tells_itself(void **state)
{
    struct host *host = *state;
    struct asked asked;

    assert_int_equal(host_admit(host, &asked, "p0", "1"), DV_OK);
    dv_pods_set_runtime(host->pods, true);
    /* the pods of others than the agent are not the runtime's */
    assert_int_equal(tell_started(host, "p0"), DV_OK);
    assert_int_equal(tell_started(host, "nobody"), DV_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        host_test(what_could_not_be_written_is_told_again),
        host_test(what_was_told_is_loaded_and_goes_with_the_pod),
        host_test(long_last_words_are_cut_between_characters),
        host_test(a_store_that_lost_it_gets_it_again),
        host_test(a_runtime_tells_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
