/* After a crash at any instant no claim is leaked, prepared without its record, or forgotten. */
#include <stdio.h>
#include <string.h>

#include "claim/claim.h"
#include "claim/manager/claim_manager_state.h"
#include "claim/tests/test_claim_host.h"
#include "support/dvtest.h"

/* ---- that all is as it should be ---- */

struct check {
    struct host *host;
    const struct driver *gpu;
};

static bool is_for_pods(const struct host *host, const struct dv_claim *claim)
{
    for (size_t i = 0; i < claim->record.n_pods; i++)
        if (!host->options.is_wanted(host->options.ctx, claim->record.pods[i]))
            return false;
    return claim->record.n_pods > 0;
}

/* What the driver has prepared is what there are records of, and all of it is prepared, for pods
 * that are there. */
static bool is_in_order(void *ctx)
{
    const struct check *check = ctx;
    struct dv_claim_state *state = dv_claim_manager_state(check->host->claims);
    const struct dv_claim *claim;

    if (!dv_claim_chores_are_idle(check->host->claims))
        return false;
    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        if (claim->record.phase != DV_CLAIM_PREPARED || !is_for_pods(check->host, claim) ||
            !dv_map_get(&check->gpu->prepared, claim->record.uid))
            return false;
    return check->gpu->prepared.n == dv_claim_count(state);
}

static void wait_in_order(struct host *host, const struct driver *gpu)
{
    host_wait(host, is_in_order, &(struct check){host, gpu});
}

static void come_back(struct host *host, struct driver *gpu)
{
    host_come_back(host);
    gpu->manner = DRIVER_WORKS;
    driver_answer(gpu); /* what a driver still does of its own accord */
    driver_register(gpu);
    host_wait_connected(host, GPU, true);
    dv_claim_manager_set_ready(host->claims);
    wait_in_order(host, gpu);
    assert_int_equal(gpu->n_unrecorded, 0);
}

/* ---- a life with two pods and three claims, one of them shared ---- */

enum {
    N_STEPS = 5,
};

static void start_step(struct host *host, struct pending *pending, int step)
{
    switch (step) {
    case 0:
        pending_prepare(host, &pending[0], host_pod(host, "p1", "c1 shared"));
        break;
    case 1:
        pending_prepare(host, &pending[1], host_pod(host, "p2", "c2 shared"));
        break;
    case 2:
        pending_unprepare(host, &pending[2], "p1");
        break;
    case 3:
        pending_prepare(host, &pending[3], host_pod(host, "p3", "c1"));
        break;
    default:
        pending_unprepare(host, &pending[4], "p2");
        break;
    }
}

static void add_claims(struct host *host)
{
    host_add_claim(host, "c1", "p1 p3", GPU);
    host_add_claim(host, "c2", "p2", GPU);
    host_add_claim(host, "shared", "p1 p2", GPU);
}

/* Lives until the disk dies; each step begins when the one before has ended. */
static void live(struct host *host, struct pending *pending)
{
    for (int step = 0; step < N_STEPS && !host_has_died(host); step++) {
        start_step(host, pending, step);
        (void)pending_end(host, &pending[step]);
    }
}

static void set_gone(struct host *host, const char *pods)
{
    dv_buf_clear(&host->gone_pods);
    dv_buf_add_c(&host->gone_pods, pods);
}

static void leaks_nothing_whichever_write_is_the_last(void **state)
{
    static const char *const gone[] = {"", "p1 ", "p1 p2 p3 "};
    struct host *host = *state;
    int n_crashes = 0;

    add_claims(host);
    for (size_t i = 0; i < DV_COUNT(gone); i++) {
        for (uint64_t n = 1; n <= 12; n++) {
            struct driver gpu = {0};
            struct pending pending[N_STEPS] = {0};

            set_gone(host, "");
            driver_start(&gpu, host, GPU, "gpu.sock");
            host_die_at_write(host, n);
            live(host, pending);
            n_crashes += host_has_died(host);
            set_gone(host, gone[i]);
            come_back(host, &gpu);
            if (i == 2)
                assert_int_equal(gpu.prepared.n, 0);
            /* And the node is as good as new. */
            set_gone(host, "p1 p2 p3 ");
            dv_claim_manager_reconcile(host->claims);
            host_settle(host);
            wait_in_order(host, &gpu);
            assert_int_equal(gpu.prepared.n, 0);
            driver_deregister(&gpu);
            driver_end(&gpu);
        }
    }
    assert_true(n_crashes >= 24);
}

/* The same at every turn of the loop, with two pods at the same time, and a driver that goes on
 * with what it was asked for. */
static void leaks_nothing_whichever_turn_is_the_last(void **state)
{
    struct host *host = *state;

    add_claims(host);
    for (int n_turns = 0; n_turns < 60; n_turns++) {
        struct driver gpu = {.manner = n_turns % 3 == 0 ? DRIVER_HOLDS : DRIVER_WORKS};
        struct pending pending[N_STEPS] = {0};
        bool is_unpreparing = n_turns >= 30;

        set_gone(host, "");
        driver_start(&gpu, host, GPU, "gpu.sock");
        start_step(host, pending, 0);
        start_step(host, pending, 1);
        if (is_unpreparing) {
            gpu.manner = DRIVER_WORKS;
            (void)pending_end(host, &pending[0]);
            (void)pending_end(host, &pending[1]);
            gpu.manner = n_turns % 3 == 0 ? DRIVER_HOLDS : DRIVER_WORKS;
            start_step(host, pending, 2);
            start_step(host, pending, 4);
        }
        for (int i = 0; i < n_turns % 30; i++)
            host_turn(host);
        host_die(host);
        host_settle(host);
        set_gone(host, n_turns % 2 == 0 ? "p1 p2 " : "");
        come_back(host, &gpu);
        set_gone(host, "p1 p2 ");
        dv_claim_manager_reconcile(host->claims);
        host_settle(host);
        wait_in_order(host, &gpu);
        assert_int_equal(gpu.prepared.n, 0);
        driver_deregister(&gpu);
        driver_end(&gpu);
    }
}

/* What is prepared stays so over a restart; strictly, it is prepared again. */
static void remembers_what_is_prepared(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    const struct dv_api_pod *pod = host_pod(host, "p1", "c1");

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, pod), "");
    host_come_back(host);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    assert_string_equal(host_names(host, pod), "vendor.example/gpu=u-c1");
    driver_register(&gpu);
    host_wait_connected(host, GPU, true);
    dv_claim_manager_set_ready(host->claims);
    host_settle(host);
    assert_string_equal(host_prepare(host, pod), "");
    assert_int_equal(gpu.n_prepare, 1);
    host->options.is_strict = true;
    host_come_back(host);
    assert_string_equal(host_claim(host, "c1"), "preparing " GPU ":1 p1");
    assert_string_equal(host_names(host, pod), "vendor.example/gpu=u-c1");
    driver_register(&gpu);
    host_wait_connected(host, GPU, true);
    assert_string_equal(host_prepare(host, pod), "");
    assert_int_equal(gpu.n_prepare, 2);
    driver_end(&gpu);
}

/* After a reboot: what is still wanted is prepared anew, as soon as its driver is back. */
static void prepares_anew_after_a_reboot(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    host_add_claim(host, "c2", "p2", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    assert_string_equal(host_prepare(host, host_pod(host, "p2", "c2")), "");
    dv_map_clear(&gpu.prepared); /* the devices know nothing any more */
    host->options.boot_id = DV_STR("boot-2");
    host_come_back(host);
    set_gone(host, "p2 ");
    assert_string_equal(host_claim(host, "c1"), "preparing " GPU ":1 p1");
    dv_claim_manager_set_ready(host->claims);
    host_settle(host);
    assert_int_equal(gpu.n_prepare, 2); /* the driver is not there yet */
    driver_register(&gpu);
    wait_in_order(host, &gpu);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    assert_string_equal(host_claim(host, "c2"), "-");
    assert_int_equal(gpu.n_prepare, 3);
    assert_int_equal(gpu.n_unprepare, 1);
    driver_end(&gpu);
}

/* And once only, when its pod asks for it at the same time. */
static void prepares_anew_once_for_a_pod_that_asks(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending asking = {.operation = {.wait_ms = 10000}};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    host->options.boot_id = DV_STR("boot-2");
    host_come_back(host);
    dv_claim_manager_set_ready(host->claims);
    pending_prepare(host, &asking, host_pod(host, "p1", "c1"));
    host_settle(host);
    driver_register(&gpu);
    assert_string_equal(pending_end(host, &asking), "");
    wait_in_order(host, &gpu);
    assert_int_equal(gpu.n_prepare, 2);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    driver_end(&gpu);
}

/* What a pod left behind that nobody ends is unprepared within a minute. */
static void finishes_what_pods_have_left_behind(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    dv_claim_manager_set_ready(host->claims);
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    set_gone(host, "p1 ");
    gpu.manner = DRIVER_FAILS;
    host_advance(host, 60000);
    host_wait_text(host, &host->rig.log, "cannot unprepare what is left");
    assert_string_equal(host_claim(host, "c1"), "unpreparing " GPU ":1 p1");
    gpu.manner = DRIVER_WORKS;
    host_advance(host, 60000);
    wait_in_order(host, &gpu);
    assert_string_equal(host_claim(host, "c1"), "-");
    assert_null(strstr(dv_buf_c(&host->metrics), "UnprepareResources ok")); /* not counted */
    driver_end(&gpu);
}

/* A crash has left it half undone, and its pod comes back for it while that is about to go on: the
 * pod has it then. */
static void leaves_a_claim_to_the_pod_that_comes_back_for_it(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending ending = {0};
    struct pending coming = {.operation = {.wait_ms = 10000}};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_add_claim(host, "c1", "p1", GPU);
    assert_string_equal(host_prepare(host, host_pod(host, "p1", "c1")), "");
    gpu.manner = DRIVER_HOLDS;
    pending_unprepare(host, &ending, "p1");
    host_wait_count(host, &gpu.n_unprepare, 1);
    host_come_back(host);
    gpu.manner = DRIVER_WORKS;
    driver_answer(&gpu);
    assert_string_equal(host_claim(host, "c1"), "unpreparing " GPU ":1 p1");
    dv_claim_manager_set_ready(host->claims);
    pending_prepare(host, &coming, host_pod(host, "p1", "c1"));
    host_settle(host);
    driver_register(&gpu);
    assert_string_equal(pending_end(host, &coming), "");
    host_settle(host);
    wait_in_order(host, &gpu);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    assert_true(driver_has(&gpu, "u-c1"));
    driver_end(&gpu);
}

/* More pods are gone than are looked after at the same time, and the last of them is here again
 * before its turn. */
static void leaves_the_claims_of_a_pod_that_is_here_again(void **state)
{
    enum { N_PODS = 70, N_AT_ONCE = 64 };
    struct host *host = *state;
    struct driver gpu = {0};
    char gone[N_PODS * 8] = "";

    driver_start(&gpu, host, GPU, "gpu.sock");
    for (int i = 0; i < N_PODS; i++) {
        char claim[8];
        char pod[8];

        (void)snprintf(claim, sizeof(claim), "c%d", i);
        (void)snprintf(pod, sizeof(pod), "p%d", i);
        host_add_claim(host, claim, pod, GPU);
        assert_string_equal(host_prepare(host, host_pod(host, pod, claim)), "");
        (void)snprintf(gone + strlen(gone), sizeof(gone) - strlen(gone), "%s ", pod);
    }
    set_gone(host, gone);
    gpu.manner = DRIVER_HOLDS;
    dv_claim_manager_set_ready(host->claims);
    host_wait_count(host, &gpu.n_unprepare, N_AT_ONCE);
    *strstr(gone, "p69 ") = '\0';
    set_gone(host, gone);
    assert_string_equal(host_prepare(host, host_pod(host, "p69", "c69")), "");
    gpu.manner = DRIVER_WORKS;
    driver_answer(&gpu);
    wait_in_order(host, &gpu);
    assert_string_equal(host_claim(host, "c69"), "prepared " GPU ":1 p69");
    assert_int_equal(gpu.prepared.n, 1);
    driver_end(&gpu);
}

/* Two pods come, come again, and go; each operation that fails is asked for again. How many did. */
static int live_through_failures(struct host *host)
{
    int n_failures = 0;

    for (int step = 0; step < 6; step++) {
        const char *name = step % 2 == 0 ? "p1" : "p2";
        const struct dv_api_pod *pod =
            host_pod(host, name, step % 2 == 0 ? "c1 shared" : "c2 shared");
        const char *error = step < 4 ? host_prepare(host, pod) : host_unprepare(host, name);

        if (!error[0])
            continue;
        n_failures++;
        error = step < 4 ? host_prepare(host, pod) : host_unprepare(host, name);
        assert_string_equal(error, "");
    }
    return n_failures;
}

/* Every write fails once, and every request to the API: the operation tells, and works when asked
 * again.
 */
static void survives_each_failure_in_turn(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    int n_failures = 0;

    driver_start(&gpu, host, GPU, "gpu.sock");
    add_claims(host);
    for (uint64_t n = 2; n <= 13; n++) {
        host->faults.code = DV_RESOURCE_EXHAUSTED;
        host->faults.n_until = n % 2 == 0 ? n / 2 : 0;
        host->api.n_until_failure = n % 2 == 1 ? (int)(n / 2) : 0;
        n_failures += live_through_failures(host);
        host->faults.n_until = 0;
        host->api.n_until_failure = 0;
        host_advance(host, 2000); /* what was to be written is written again */
        assert_null(dv_claim_manager_store_error(host->claims));
        wait_in_order(host, &gpu);
        assert_int_equal(gpu.prepared.n, 0);
    }
    assert_true(n_failures >= 8);
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

/* A kubelet's state is taken over, and nothing of it counts as prepared. */
static void takes_over_from_a_kubelet(void **state)
{
    static const dv_str pods[] = {DV_STR_INIT("p1")};
    static const dv_str cdi[] = {DV_STR_INIT("v.example/gpu=7")};
    static const struct dv_claim_device device = {
        .pool = DV_STR_INIT("pool"), .name = DV_STR_INIT("dev"), .cdi_ids = cdi, .n_cdi_ids = 1};
    static const struct dv_claim_driver driver = {
        .name = DV_STR_INIT(GPU), .devices = &device, .n_devices = 1};
    static const struct dv_claim_record records[] = {
        {.namespace = DV_STR_INIT("ns"),
         .name = DV_STR_INIT("c1"),
         .uid = DV_STR_INIT("u-c1"),
         .pods = pods,
         .n_pods = 1,
         .drivers = &driver,
         .n_drivers = 1},
        {.namespace = DV_STR_INIT("ns"),
         .name = DV_STR_INIT("nobodys"),
         .uid = DV_STR_INIT("u-nobodys"),
         .drivers = &driver,
         .n_drivers = 1},
    };
    static const struct dv_claim_checkpoint checkpoint = {records, DV_COUNT(records)};
    struct host *host = *state;
    struct driver gpu = {0};

    assert_int_equal(dv_claim_checkpoint_apply(dv_claim_manager_state(host->claims), &checkpoint),
                     2);
    assert_int_equal(dv_claim_n_prepared(dv_claim_manager_state(host->claims)), 0);
    assert_string_equal(host_names(host, host_pod(host, "p1", "c1")), "v.example/gpu=7");
    driver_start(&gpu, host, GPU, "gpu.sock");
    (void)dv_map_set(&gpu.prepared, DV_STR("u-nobodys"), &gpu);
    dv_claim_manager_set_ready(host->claims);
    wait_in_order(host, &gpu);
    assert_string_equal(host_claim(host, "c1"), "prepared " GPU ":1 p1");
    assert_string_equal(host_claim(host, "nobodys"), "-");
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

int main(void)
{
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, host_start, host_end)
    const struct CMUnitTest tests[] = {
        ON_HOST(leaks_nothing_whichever_write_is_the_last),
        ON_HOST(leaks_nothing_whichever_turn_is_the_last),
        ON_HOST(remembers_what_is_prepared),
        ON_HOST(prepares_anew_after_a_reboot),
        ON_HOST(prepares_anew_once_for_a_pod_that_asks),
        ON_HOST(finishes_what_pods_have_left_behind),
        ON_HOST(leaves_a_claim_to_the_pod_that_comes_back_for_it),
        ON_HOST(leaves_the_claims_of_a_pod_that_is_here_again),
        ON_HOST(survives_each_failure_in_turn),
        ON_HOST(takes_over_from_a_kubelet),
    };
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
