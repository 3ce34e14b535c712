/* What an agent asks, and what the driver is handed. */
#include "support/dvtest.h"

#include <string.h>

#include "lib/tests/test_asking.h"
#include "lib/tests/test_lib_node.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

#define PRESTART "/v1beta1.DevicePlugin/PreStartContainer"
#define PREFER "/v1beta1.DevicePlugin/GetPreferredAllocation"

static void options_tell_which_calls_are_wanted(void **state)
{
    DpV1beta1__Empty empty = DP_V1BETA1__EMPTY__INIT;
    struct node *node = *state;
    struct probe probe;

    probe_run(&probe, node, "/v1beta1.DevicePlugin/GetDevicePluginOptions", &empty.base);
    assert_str(dv_buf_str(&probe.got), "\x08\x01\x10\x01");
    probe_fini(&probe);
}

static void bad_requests_never_reach_the_driver(void **state)
{
    static const struct {
        const char *ask;
        enum dv_code code;
        const char *text;
    } rows[] = {
        {"x",   DV_NOT_FOUND,        "Allocate: example.com/tty has no device \"x\""},
        {"a x", DV_NOT_FOUND,        "has no device \"x\""                          },
        {"a,a", DV_INVALID_ARGUMENT, "device \"a\" is asked for twice"              },
        {" ",   DV_INVALID_ARGUMENT, "no device is asked for"                       },
        {"",    DV_INVALID_ARGUMENT, "no container is asked for"                    },
    };
    DpV1beta1__PreStartContainerRequest start_ask = DP_V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
    const char *ids[] = {"nope"};
    struct node *node = *state;
    struct probe probe;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        probe_run(&probe, node, ALLOCATE, &make_ask(rows[i].ask, node->arena)->base);
        assert_err(&probe.err, rows[i].code, rows[i].text);
        probe_fini(&probe);
    }
    start_ask.devices_ids = ids;
    start_ask.n_devices_ids = 1;
    probe_run(&probe, node, PRESTART, &start_ask.base);
    assert_err(&probe.err, DV_NOT_FOUND, "PreStartContainer: example.com/tty has no device");
    probe_fini(&probe);
    assert_str(dv_buf_str(&asked.ids), "");
}

static void what_is_no_message_is_refused(void **state)
{
    static const char *const methods[] = {ALLOCATE, PRESTART, PREFER};
    /* Field 1 with the two bytes ff 0a: a string that is not UTF-8, or a message cut short. */
    DpV1beta1__PreStartContainerRequest junk = DP_V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
    const char *texts[] = {"\xff\x0a"};
    struct node *node = *state;
    struct probe probe;

    junk.devices_ids = texts;
    junk.n_devices_ids = 1;
    for (size_t i = 0; i < DV_COUNT(methods); i++) {
        probe_run(&probe, node, methods[i], &junk.base);
        assert_err(&probe.err, DV_INVALID_ARGUMENT, strrchr(methods[i], '/') + 1);
        probe_fini(&probe);
    }
    assert_str(dv_buf_str(&asked.ids), "");
}

static void each_container_is_a_call_and_answers_keep_their_order(void **state)
{
    struct node *node = *state;
    const DpV1beta1__AllocateResponse *response;
    struct probe probe;

    probe_start(&probe, node, ALLOCATE, &make_ask("a b", node->arena)->base);
    node_settle(node);
    assert_str(dv_buf_str(&asked.ids), "a;b;");
    assert_int_equal(asked.n_held, 2);
    davit_allocate_add_env(asked.held[1], "N", "1");
    davit_call_finish(asked.held[1]);
    node_settle(node);
    assert_false(probe.is_done);
    davit_allocate_add_env(asked.held[0], "N", "0");
    davit_call_finish(asked.held[0]);
    wait_done(&probe);
    response = read_answer(&probe, node->arena);
    assert_int_equal(response->n_container_responses, 2);
    assert_string_equal(response->container_responses[0]->envs[0]->value, "0");
    assert_string_equal(response->container_responses[1]->envs[0]->value, "1");
    probe_fini(&probe);
}

static void the_drivers_failure_fails_the_whole_call(void **state)
{
    struct node *node = *state;
    struct probe probe;

    probe_start(&probe, node, ALLOCATE, &make_ask("a b", node->arena)->base);
    node_settle(node);
    davit_call_fail(asked.held[1], DAVIT_FAILED_PRECONDITION, "device %s is %d%% broken", "b", 50);
    davit_call_finish(asked.held[0]);
    wait_done(&probe);
    assert_err(&probe.err, DV_FAILED_PRECONDITION, "device b is 50% broken");
    probe_fini(&probe);
    asked.n_held = 0;
    probe_start(&probe, node, ALLOCATE, &make_ask("a", node->arena)->base);
    node_settle(node);
    davit_call_fail(asked.held[0], DAVIT_OK, "\xff");
    wait_done(&probe);
    assert_err(&probe.err, DV_UNKNOWN, "\\xff"); /* a Go client takes nothing but UTF-8 */
    probe_fini(&probe);
}

static void add_nothing(struct davit_call *call)
{
    assert_false(davit_call_is_cancelled(call));
}

static void prestart_hands_over_the_ids(void **state)
{
    DpV1beta1__PreStartContainerRequest ask = DP_V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
    const char *ids[] = {"b", "a"};
    struct node *node = *state;
    struct probe probe;

    asked.add = add_nothing;
    ask.devices_ids = ids;
    ask.n_devices_ids = 2;
    probe_run(&probe, node, PRESTART, &ask.base);
    assert_int_equal(probe.err.code, DV_OK);
    assert_int_equal(probe.n_messages, 1);
    assert_str(dv_buf_str(&asked.ids), "b,a;");
    probe_fini(&probe);
}

static void add_b(struct davit_call *call)
{
    davit_prefer_add_id(call, "b");
}

static void preferences_are_asked_and_bad_questions_refused(void **state)
{
    static const struct {
        int size;
        size_t n_must;
        const char *text; /* NULL: it is a good one */
    } rows[] = {
        {1,  0, NULL                       },
        {2,  1, NULL                       },
        {0,  0, NULL                       },
        {-1, 0, "-1 devices out of 2"      },
        {3,  0, "3 devices out of 2"       },
        {1,  2, "2 devices must be among 1"},
    };
    DpV1beta1__PreferredAllocationRequest ask = DP_V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
    DpV1beta1__ContainerPreferredAllocationRequest one =
        DP_V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
    DpV1beta1__ContainerPreferredAllocationRequest *all[] = {&one};
    const char *ids[] = {"a", "b"};
    struct node *node = *state;
    struct probe probe;

    asked.add = add_b;
    ask.container_requests = all;
    ask.n_container_requests = 1;
    one.available_deviceids = one.must_include_deviceids = ids;
    one.n_available_deviceids = 2;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        one.allocation_size = rows[i].size;
        one.n_must_include_deviceids = rows[i].n_must;
        probe_run(&probe, node, PREFER, &ask.base);
        if (rows[i].text)
            assert_err(&probe.err, DV_INVALID_ARGUMENT, rows[i].text);
        else
            assert_str(dv_buf_str(&probe.got), "\x0a\x03\x0a\x01"
                                               "b");
        probe_fini(&probe);
    }
    assert_str(dv_buf_str(&asked.ids), "a,b;;1;a,b;a;2;a,b;;0;");
}

static void what_the_driver_does_not_want_is_answered_for_it(void **state)
{
    DpV1beta1__PreStartContainerRequest start_ask = DP_V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
    DpV1beta1__PreferredAllocationRequest prefer_ask =
        DP_V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
    DpV1beta1__ContainerPreferredAllocationRequest one =
        DP_V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
    DpV1beta1__ContainerPreferredAllocationRequest *all[] = {&one};
    const char *ids[] = {"a"};
    struct node *node = *state;
    struct probe probe;

    node_disconnect(node);
    node_close(node);
    node_settle(node);
    node->options.prestart = NULL;
    node->options.prefer = NULL;
    dv_buf_clear(&node->events);
    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    start_ask.devices_ids = ids;
    start_ask.n_devices_ids = 1;
    probe_run(&probe, node, PRESTART, &start_ask.base);
    assert_int_equal(probe.err.code, DV_OK);
    probe_fini(&probe);
    prefer_ask.container_requests = all;
    prefer_ask.n_container_requests = 1;
    probe_run(&probe, node, PREFER, &prefer_ask.base);
    assert_int_equal(probe.err.code, DV_OK);
    assert_int_equal(dv_buf_str(&probe.got).n, 0);
    probe_fini(&probe);
}

static void a_caller_that_gives_up_is_known_to_the_driver(void **state)
{
    struct node *node = *state;
    struct probe probe;

    probe_start(&probe, node, ALLOCATE, &make_ask("a", node->arena)->base);
    node_settle(node);
    assert_false(davit_call_is_cancelled(asked.held[0]));
    probe_fini(&probe);
    node_settle(node);
    assert_true(davit_call_is_cancelled(asked.held[0]));
    davit_allocate_add_env(asked.held[0], "A", "");
    davit_call_finish(asked.held[0]);
}

static void closing_ends_the_calls_that_are_held(void **state)
{
    struct node *node = *state;
    struct probe probe;

    probe_start(&probe, node, ALLOCATE, &make_ask("a b", node->arena)->base);
    node_settle(node);
    davit_call_finish(asked.held[0]);
    node_close(node);
    wait_done(&probe);
    assert_err(&probe.err, DV_UNAVAILABLE, "the device plugin is closing");
    probe_fini(&probe);
}

static struct node *closing_node;

static void close_plugin(struct davit_call *call)
{
    (void)call;
    node_close(closing_node);
}

static void a_callback_may_close_the_plugin(void **state)
{
    struct node *node = *state;
    struct probe probe;

    closing_node = node;
    asked.add = close_plugin; /* and finishes the call after that */
    probe_run(&probe, node, ALLOCATE, &make_ask("a b", node->arena)->base);
    assert_err(&probe.err, DV_UNAVAILABLE, "the device plugin is closing");
    assert_str(dv_buf_str(&asked.ids), "a;");
    probe_fini(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CALL_TEST(name) cmocka_unit_test_setup_teardown(name, asking_start, asking_end)
        CALL_TEST(options_tell_which_calls_are_wanted),
        CALL_TEST(bad_requests_never_reach_the_driver),
        CALL_TEST(what_is_no_message_is_refused),
        CALL_TEST(each_container_is_a_call_and_answers_keep_their_order),
        CALL_TEST(the_drivers_failure_fails_the_whole_call),
        CALL_TEST(prestart_hands_over_the_ids),
        CALL_TEST(preferences_are_asked_and_bad_questions_refused),
        CALL_TEST(what_the_driver_does_not_want_is_answered_for_it),
        CALL_TEST(a_caller_that_gives_up_is_known_to_the_driver),
        CALL_TEST(closing_ends_the_calls_that_are_held),
        CALL_TEST(a_callback_may_close_the_plugin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
