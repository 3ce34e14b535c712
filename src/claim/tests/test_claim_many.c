/* A pod with more claims than one turn of the loop has time for. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "claim/tests/test_claim_host.h"
#include "resource/resource.h"
#include "support/dvtest.h"

/* More than two parts of RESERVE, and every step in a turn of its own. */
#define N_CLAIMS 600u
#define TEXT_BYTES_MAX 65536u

static size_t n_asked; /* claims about which the owner was asked */
static size_t n_asks;
static size_t n_allowed;

static bool may_prepare(struct dv_claim_operation *operation,
                        const struct dv_api_resource_claim *const *objects, size_t n_objects,
                        struct dv_err *err)
{
    (void)operation;
    (void)objects;
    n_asks++;
    n_asked += n_objects;
    return n_asked <= n_allowed || dv_fail(err, DV_FAILED_PRECONDITION, "another pod has it");
}

/* A pod of all claims, c0 in two entries of its list. */
static const struct dv_api_pod *many_pod(struct host *host, const char *name)
{
    struct dv_buf names;
    const struct dv_api_pod *pod;

    dv_buf_init(&names, TEXT_BYTES_MAX);
    for (size_t i = 0; i < N_CLAIMS; i++)
        dv_buf_printf(&names, "c%zu ", i);
    dv_buf_add_c(&names, "c0");
    pod = host_pod(host, name, dv_buf_c(&names));
    dv_buf_fini(&names);
    return pod;
}

static void add_claims(struct host *host, const char *pods)
{
    for (size_t i = 0; i < N_CLAIMS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "c%zu", i);
        host_add_claim(host, name, pods, GPU);
    }
}

static void start(struct host *host, struct pending *pending, const struct dv_api_pod *pod)
{
    n_asked = n_asks = 0;
    *pending = (struct pending){
        .operation = {.may_prepare = may_prepare, .wait_ms = 10000}
    };
    pending_prepare(host, pending, pod);
}

static void prepares_many_claims_over_several_turns(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending;
    int n_turns = 0;

    n_allowed = SIZE_MAX;
    driver_start(&gpu, host, GPU, "gpu.sock");
    add_claims(host, "p1");
    start(host, &pending, many_pod(host, "p1"));
    for (; gpu.n_prepare == 0; n_turns++)
        host_turn(host);
    assert_true(n_turns > 3);
    assert_string_equal(pending_end(host, &pending), "");
    assert_int_equal(n_asked, N_CLAIMS + 1);
    assert_int_equal(n_asks, 3);
    assert_int_equal(gpu.n_prepare, 1);
    assert_int_equal(gpu.n_claims, N_CLAIMS); /* each once */
    assert_string_equal(host_claim(host, "c599"), "prepared " GPU ":1 p1");
    assert_string_equal(host_unprepare(host, "p1"), "");
    assert_int_equal(gpu.n_unprepare, 1);
    assert_int_equal(gpu.prepared.n, 0);
    assert_int_equal(gpu.n_unrecorded, 0);
    assert_int_equal(dv_claim_count(dv_claim_manager_state(host->claims)), 0);
    driver_end(&gpu);
}

static void asks_no_driver_when_a_later_part_is_refused(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    struct pending pending;

    n_allowed = 300;
    driver_start(&gpu, host, GPU, "gpu.sock");
    add_claims(host, "p1");
    start(host, &pending, many_pod(host, "p1"));
    assert_string_equal(pending_end(host, &pending),
                        "prepare dynamic resources: another pod has it");
    assert_int_equal(gpu.n_prepare, 0);
    assert_int_equal(dv_claim_count(dv_claim_manager_state(host->claims)), 0);
    driver_end(&gpu);
}

static void can_be_cancelled_in_every_turn(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};
    const struct dv_api_pod *pod = many_pod(host, "p1");
    bool has_ended = false;

    n_allowed = SIZE_MAX;
    driver_start(&gpu, host, GPU, "gpu.sock");
    add_claims(host, "p1");
    for (int n_turns = 0; !has_ended; n_turns++) {
        struct pending pending;
        const char *error;

        start(host, &pending, pod);
        for (int i = 0; i < n_turns && pending.n_done == 0; i++)
            host_turn(host);
        has_ended = pending.n_done > 0;
        dv_claim_manager_cancel(&pending.operation);
        error = pending_end(host, &pending);
        assert_true(error[0] == '\0' || strstr(error, "cancelled"));
        assert_int_equal(gpu.n_unrecorded, 0);
        assert_string_equal(host_unprepare(host, "p1"), "");
        assert_int_equal(gpu.prepared.n, 0);
        assert_int_equal(dv_claim_count(dv_claim_manager_state(host->claims)), 0);
    }
    driver_end(&gpu);
}

/* While the owner is asked about the claims of one pod, another takes the last one of them. */
static void waits_for_a_pod_that_has_come_meanwhile(void **state)
{
    struct host *host = *state;
    struct driver gpu = {.manner = DRIVER_HOLDS};
    struct pending first;
    struct pending second = {0};

    n_allowed = SIZE_MAX;
    driver_start(&gpu, host, GPU, "gpu.sock");
    add_claims(host, "p1 p2");
    start(host, &first, many_pod(host, "p1"));
    while (n_asks == 0)
        host_turn(host);
    assert_int_equal(n_asks, 1);
    pending_prepare(host, &second, host_pod(host, "p2", "c599"));
    host_wait_count(host, &gpu.n_prepare, 1);
    gpu.manner = DRIVER_WORKS;
    driver_answer(&gpu);
    assert_string_equal(pending_end(host, &second), "");
    assert_string_equal(pending_end(host, &first), "");
    assert_string_equal(host_claim(host, "c599"), "prepared " GPU ":1 p1 p2");
    assert_int_equal(gpu.n_unrecorded, 0);
    driver_end(&gpu);
}

int main(void)
{
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, host_start, host_end)
    const struct CMUnitTest tests[] = {
        ON_HOST(prepares_many_claims_over_several_turns),
        ON_HOST(asks_no_driver_when_a_later_part_is_refused),
        ON_HOST(can_be_cancelled_in_every_turn),
        ON_HOST(waits_for_a_pod_that_has_come_meanwhile),
    };
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
