/* ResourceSlices of drivers that do not serve. */
#include <string.h>

#include "claim/tests/test_claim_host.h"
#include "support/dvtest.h"

#define NODE "spec.nodeName=node-1;"
#define OF_GPU "spec.driver=" GPU ",spec.nodeName=node-1;"

/* The plan of the start is carried out, with nobody registered. */
static void pass_start(struct host *host)
{
    host_advance(host, 30000);
    host_wait_text(host, &host->api.wiped, NODE);
}

/* The reference does not wait: it deletes all of the node's slices when it starts. */
static void wipes_at_the_start_what_no_driver_has_registered_for_in_time(void **state)
{
    struct host *host = *state;

    host_advance(host, 29000);
    assert_string_equal(dv_buf_c(&host->api.wiped), "");
    host_advance(host, 1000);
    host_wait_text(host, &host->api.wiped, NODE);
    host_advance(host, 600000);
    assert_string_equal(dv_buf_c(&host->api.wiped), NODE);
}

static void keeps_at_the_start_what_a_driver_has_registered_for(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_advance(host, 30000);
    host_wait_text(host, &host->api.wiped, "spec.nodeName=node-1,spec.driver!=" GPU ";");
    host_advance(host, 600000);
    assert_string_equal(dv_buf_c(&host->api.wiped), "spec.nodeName=node-1,spec.driver!=" GPU ";");
    driver_end(&gpu);
}

/* It registered, and left: it has the same time as at any other moment. */
static void the_start_does_not_shorten_the_time_of_who_left(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    driver_start(&gpu, host, GPU, "gpu.sock");
    host_advance(host, 20000);
    driver_deregister(&gpu);
    host_advance(host, 10000);
    host_wait_text(host, &host->api.wiped, "spec.nodeName=node-1,spec.driver!=" GPU ";");
    dv_buf_clear(&host->api.wiped);
    host_advance(host, 19000);
    assert_string_equal(dv_buf_c(&host->api.wiped), "");
    host_advance(host, 1000);
    host_wait_text(host, &host->api.wiped, OF_GPU);
    driver_end(&gpu);
}

/* Who registers while the API does not answer is left out of the next attempt. */
static void the_start_looks_again_who_is_there_at_every_attempt(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    host->api.fails_wiping = true;
    pass_start(host);
    driver_start(&gpu, host, GPU, "gpu.sock");
    host->api.fails_wiping = false;
    dv_buf_clear(&host->api.wiped);
    host_advance(host, 10000);
    host_wait_text(host, &host->api.wiped, "spec.nodeName=node-1,spec.driver!=" GPU ";");
    driver_end(&gpu);
}

static void strict_wipes_at_once_as_the_reference(void **state)
{
    struct host *host = *state;

    host->options.is_strict = true;
    host_come_back(host);
    host_wait_text(host, &host->api.wiped, NODE);
}

static void wipes_after_the_driver_has_gone(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    pass_start(host);
    driver_start(&gpu, host, GPU, "gpu.sock");
    driver_deregister(&gpu);
    host_advance(host, 29000);
    assert_string_equal(dv_buf_c(&host->api.wiped), NODE);
    host_advance(host, 1000);
    host_wait_text(host, &host->api.wiped, OF_GPU);
    host_advance(host, 600000);
    assert_string_equal(dv_buf_c(&host->api.wiped), NODE OF_GPU);
    driver_end(&gpu);
}

static void keeps_the_slices_of_a_driver_that_comes_back(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    pass_start(host);
    driver_start(&gpu, host, GPU, "gpu.sock");
    driver_stop(&gpu);
    host_wait_connected(host, GPU, false);
    host_advance(host, 5000);
    driver_serve(&gpu, host, GPU, "gpu.sock");
    host_advance(host, 10000);
    host_wait_connected(host, GPU, true);
    host_advance(host, 60000);
    assert_string_equal(dv_buf_c(&host->api.wiped), NODE);
    driver_stop(&gpu);
    host_wait_connected(host, GPU, false);
    host_advance(host, 30000);
    host_wait_text(host, &host->api.wiped, NODE OF_GPU);
    driver_end(&gpu);
}

static void wipes_when_the_service_never_listens(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    pass_start(host);
    driver_serve(&gpu, host, GPU, "gpu.sock");
    driver_stop(&gpu);
    driver_register(&gpu);
    assert_int_equal(gpu.err.code, DV_OK);
    host_advance(host, 30000);
    host_wait_text(host, &host->api.wiped, OF_GPU);
    driver_end(&gpu);
}

/* Deleting is tried until it works, with growing pauses, and no more when the driver is back. */
static void tries_again_until_the_slices_are_gone(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    pass_start(host);
    driver_start(&gpu, host, GPU, "gpu.sock");
    host->api.fails_wiping = true;
    driver_stop(&gpu);
    host_wait_connected(host, GPU, false);
    for (int i = 0; i < 12; i++)
        host_advance(host, 400000); /* more than the longest pause */
    dv_buf_clear(&host->api.wiped);
    host_advance(host, 400000);
    host_wait_text(host, &host->api.wiped, OF_GPU); /* far more than nine times */
    dv_buf_clear(&host->api.wiped);
    driver_serve(&gpu, host, GPU, "gpu.sock");
    host_advance(host, 150000);
    host_wait_connected(host, GPU, true);
    host->api.fails_wiping = false;
    dv_buf_clear(&host->api.wiped);
    host_advance(host, 4000000);
    assert_string_equal(dv_buf_c(&host->api.wiped), "");
    driver_end(&gpu);
}

/* A driver with two sockets serves while one of them is connected. */
static void keeps_the_slices_while_one_instance_serves(void **state)
{
    struct host *host = *state;
    struct driver old = {0};
    struct driver new = {0};

    pass_start(host);
    driver_start(&old, host, GPU, "old.sock");
    driver_serve(&new, host, GPU, "new.sock");
    driver_register(&new);
    host_settle(host);
    driver_deregister(&old);
    driver_end(&old);
    host_advance(host, 60000);
    assert_string_equal(dv_buf_c(&host->api.wiped), NODE);
    driver_end(&new);
}

static void does_without_an_api(void **state)
{
    struct host *host = *state;
    struct driver gpu = {0};

    host->options.cluster = NULL;
    host_come_back(host);
    dv_buf_clear(&host->api.wiped);
    driver_start(&gpu, host, GPU, "gpu.sock");
    driver_deregister(&gpu);
    host_advance(host, 60000);
    assert_string_equal(dv_buf_c(&host->api.wiped), "");
    assert_non_null(strstr(host_prepare(host, host_pod(host, "p1", "c1")),
                           "fetch ResourceClaim c1: there is no API server"));
    driver_end(&gpu);
}

/* Closing does not wait for an API that does not answer. */
static void closes_while_the_api_is_silent(void **state)
{
    struct host *host = *state;
    struct pending pending = {0};

    host_settle(host);
    host->api.holds = true;
    host_come_back(host);
    host_add_claim(host, "c1", "p1", GPU);
    pending_prepare(host, &pending, host_pod(host, "p1", "c1"));
    host_settle(host);
    host_close(host);
    assert_int_equal(pending.n_done, 1);
    assert_int_equal(pending.err.code, DV_CANCELLED);
}

int main(void)
{
#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, host_start, host_end)
    const struct CMUnitTest tests[] = {
        ON_HOST(wipes_at_the_start_what_no_driver_has_registered_for_in_time),
        ON_HOST(keeps_at_the_start_what_a_driver_has_registered_for),
        ON_HOST(the_start_does_not_shorten_the_time_of_who_left),
        ON_HOST(the_start_looks_again_who_is_there_at_every_attempt),
        ON_HOST(strict_wipes_at_once_as_the_reference),
        ON_HOST(wipes_after_the_driver_has_gone),
        ON_HOST(keeps_the_slices_of_a_driver_that_comes_back),
        ON_HOST(wipes_when_the_service_never_listens),
        ON_HOST(tries_again_until_the_slices_are_gone),
        ON_HOST(keeps_the_slices_while_one_instance_serves),
        ON_HOST(does_without_an_api),
        ON_HOST(closes_while_the_api_is_silent),
    };
#undef ON_HOST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
