/* Allocation: what containers get, what they hand on, how it fails. */
#include "base/clock.h"
#include "test_device_node.h"

#define RESOURCE1 "domain1.com/resource1"

static bool regular(struct node *node, const char *pod, const char *limits)
{
    return node_allocate(node, pod, "c", DV_DEVICE_REGULAR, limits);
}

static void takes_what_is_asked_and_says_what_is_not_there(void **state)
{
    struct node *node = *state;

    node_register(node, RESOURCE1, "1.sock", "dev1 dev2");
    node_register(node, "domain2.com/resource2", "2.sock", "dev3 dev4");
    assert_true(regular(node, "p1", RESOURCE1 "=2 domain2.com/resource2=1 cpu=4"));
    assert_int_equal(node_info(node, RESOURCE1).n_allocated, 2);
    assert_int_equal(node_info(node, "domain2.com/resource2").n_allocated, 1);
    assert_false(regular(node, "p2", RESOURCE1 "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_UNAVAILABLE);
    assert_string_equal(node->err.msg, "requested number of devices unavailable for " RESOURCE1
                                       ". Requested: 1, Available: 0");
    assert_null(node_held(node, "p2", "c", RESOURCE1));
    assert_int_equal(node_info(node, RESOURCE1).n_allocated, 2);
    assert_true(regular(node, "p3", "domain2.com/resource2=1"));
    assert_string_equal(node_held(node, "p3", "c", "domain2.com/resource2"), "dev4");
}

static void a_recorded_container_needs_its_plugin_back(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(regular(node, "p", GPU "=1"));
    assert_true(regular(node, "p", GPU "=1")); /* again: nothing to do */
    assert_int_equal(node->n_allocate, 1);

    (void)node_list(node, GPU, "d1! d2");
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY);
    assert_string_equal(node->err.msg, "previously allocated devices are no longer healthy; "
                                       "cannot allocate unhealthy devices " GPU);
    (void)node_list(node, GPU, "d2");
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_ALLOCATED_UNHEALTHY);

    node_disconnect(node, GPU, "a.sock");
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_HEALTHY_DEVICES);
    assert_string_equal(node->err.msg,
                        "no healthy devices present; cannot allocate unhealthy devices " GPU);
    node->now_ns += 301 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "removed");
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_UNREGISTERED);
    assert_string_equal(node->err.msg, "cannot allocate unregistered device " GPU);
}

static void a_second_admission_with_another_number_is_refused(void **state)
{
    static const char *const limits[] = {GPU "=1", GPU "=3", GPU "=0"};
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3 d4");
    assert_true(regular(node, "p", GPU "=2"));
    for (size_t i = 0; i < DV_COUNT(limits); i++) {
        assert_false(regular(node, "p", limits[i]));
        assert_int_equal(node->failure, DV_DEVICE_FAIL_CHANGED_REQUEST);
        assert_string_equal(node_held(node, "p", "c", GPU), "d1 d2");
    }
    assert_string_equal(node->err.msg, "pod \"p\" container \"c\" changed request for resource "
                                       "\"" GPU "\" from 2 to 0");
}

static void bad_requests_are_refused_and_foreign_ones_skipped(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(regular(node, "p", "cpu=4 memory=-1 other.io/x=2"));
    assert_false(regular(node, "p", GPU "=-1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_BAD_REQUEST);
    assert_err(&node->err, DV_INVALID_ARGUMENT, GPU ": a limit of -1");
    assert_false(regular(node, "p", GPU "=1 " GPU "=1"));
    assert_err(&node->err, DV_INVALID_ARGUMENT, GPU ": two limits");
    assert_false(regular(node, "p", GPU "=9223372036854775807"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_UNAVAILABLE);
    assert_true(regular(node, "p", GPU "=2"));
}

static void what_a_claim_provides_is_not_for_plugins(void **state)
{
    struct node *node = *state;
    struct dv_device_request request;
    struct dv_device_limit limit = {DV_STR(GPU), 5, true};
    struct dv_device_operation *op;

    node_register(node, GPU, "a.sock", "d1");
    request = node_request(node, "p", "c", DV_DEVICE_REGULAR, "");
    request.limits = &limit;
    request.n_limits = 1;
    op = dv_device_allocate(node->state, &request);
    assert_int_equal(dv_device_operation_step(op)->kind, DV_DEVICE_DONE);
    dv_device_operation_free(op);
    op = dv_device_start(node->state, &request);
    assert_int_equal(dv_device_operation_step(op)->kind, DV_DEVICE_DONE);
    dv_device_operation_free(op);
    limit.is_claimed = false;
    op = dv_device_allocate(node->state, &request);
    assert_int_equal(dv_device_operation_step(op)->kind, DV_DEVICE_FAILED);
    dv_device_operation_free(op);
}

static void a_limit_of_zero_asks_nobody(void **state)
{
    struct node *node = *state;

    node->needs_pre_start = true;
    node_register(node, GPU, "a.sock", "d1");
    assert_true(regular(node, "p", GPU "=0"));
    assert_true(node_start(node, "p", "c", GPU "=0"));
    assert_int_equal(node->n_allocate + node->n_pre_start, 0);
    (void)node_list(node, GPU, "d1!");
    assert_false(regular(node, "p", GPU "=0")); /* as in the reference */
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_HEALTHY_DEVICES);
}

/* -- Init containers and sidecars ----------------------------------------------------------- */

static void init_containers_lend_to_all_after_them(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(node_allocate(node, "p", "i1", DV_DEVICE_INIT, GPU "=1"));
    assert_true(node_allocate(node, "p", "i2", DV_DEVICE_INIT, GPU "=2"));
    assert_true(node_allocate(node, "p", "a1", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "a2", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "i1", GPU), "d1");
    assert_string_equal(node_held(node, "p", "i2", GPU), "d1 d2");
    assert_string_equal(node_held(node, "p", "a1", GPU), "d1");
    assert_string_equal(node_held(node, "p", "a2", GPU), "d2");
    assert_false(node_allocate(node, "p", "a3", DV_DEVICE_REGULAR, GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_UNAVAILABLE);
}

static void sidecars_keep_what_they_take(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3 d4 d5 d6");
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=3"));
    assert_true(node_allocate(node, "p", "s1", DV_DEVICE_SIDECAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "s2", DV_DEVICE_SIDECAR, GPU "=2"));
    assert_true(node_allocate(node, "p", "a1", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "a2", DV_DEVICE_REGULAR, GPU "=2"));
    assert_string_equal(node_held(node, "p", "i", GPU), "d1 d2 d3");
    assert_string_equal(node_held(node, "p", "s1", GPU), "d1");
    assert_string_equal(node_held(node, "p", "s2", GPU), "d2 d3");
    assert_string_equal(node_held(node, "p", "a1", GPU), "d4");
    assert_string_equal(node_held(node, "p", "a2", GPU), "d5 d6");
}

static void what_is_lent_is_taken_whatever_its_health(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    (void)node_list(node, GPU, "d2");
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "a", GPU), "d1");
}

static void lending_ends_when_another_pod_is_handled(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3");
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "a", GPU), "d3");
}

static void an_open_admission_keeps_what_was_lent(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3");
    dv_device_begin_admission(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    dv_device_end_admission(node->state, DV_STR("p"));
    assert_string_equal(node_held(node, "p", "a", GPU), "d1");
}

static void what_a_collected_pod_lent_is_lent_no_more(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    dv_device_begin_admission(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "q", "c", GPU), "d1");
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "a", GPU), "d2");
    dv_device_end_admission(node->state, DV_STR("p"));
}

/* What `a` took is lent once more when the pod is admitted again, until it is its turn. */
static void what_is_in_use_is_not_taken_from_a_second_lending(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    assert_true(node_allocate(node, "p", "a", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    assert_true(node_allocate(node, "p", "b", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "a", GPU), "d1");
    assert_string_equal(node_held(node, "p", "b", GPU), "d2");
}

/* -- Collection ----------------------------------------------------------------------------- */

static void inactive_pods_give_back_what_they_hold(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    assert_true(regular(node, "p", GPU "=1"));
    assert_true(regular(node, "q", GPU "=1"));
    assert_int_equal(dv_device_collect(node->state), 0);
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_string_equal(node_held(node, "p", "c", GPU), "d1"); /* until it is collected */
    assert_true(regular(node, "r", GPU "=1"));                 /* which this does */
    assert_null(node_held(node, "p", "c", GPU));
    assert_string_equal(node_held(node, "r", "c", GPU), "d1");
}

static void nothing_is_collected_before_sources_are_ready(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(regular(node, "p", GPU "=1"));
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    dv_device_set_sources_ready(node->state, false);
    assert_int_equal(dv_device_collect(node->state), 0);
    assert_false(regular(node, "q", GPU "=1"));
    dv_device_set_sources_ready(node->state, true);
    assert_true(regular(node, "q", GPU "=1"));
}

/* -- Failing plugins ------------------------------------------------------------------------ */

static void a_failed_call_gives_back_what_was_taken(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2");
    node->allocate_fails = DV_RESOURCE_EXHAUSTED;
    assert_false(regular(node, "p", GPU "=2"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_ALLOCATE);
    assert_string_equal(node->err.msg, "rpc error: code = ResourceExhausted desc = no luck");
    assert_int_equal(node->err.code, DV_RESOURCE_EXHAUSTED);
    assert_int_equal(node_info(node, GPU).n_free, 2);
    node->allocate_fails = DV_OK;
    node->is_empty = true;
    assert_false(regular(node, "p", GPU "=2"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_EMPTY_RESPONSE);
    assert_string_equal(node->err.msg, "no containers return in allocation response ");
    assert_int_equal(node_info(node, GPU).n_free, 2);
    node->is_empty = false;
    assert_true(regular(node, "p", GPU "=2"));
}

static void a_response_that_is_no_message_fails_the_call(void **state)
{
    static const dv_str bad = DV_STR_INIT("\x0a\x05");
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    node->response = &bad;
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_ALLOCATE);
    assert_err(&node->err, DV_INTERNAL,
               "rpc error: code = Internal desc = grpc: failed to unmarshal the received message");
    assert_int_equal(node_info(node, GPU).n_free, 1);
}

static void the_first_resource_stays_when_the_second_fails(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    node_register(node, NIC, "n.sock", "n1");
    assert_false(regular(node, "p", GPU "=1 " NIC "=2"));
    assert_string_equal(node_held(node, "p", "c", GPU), "d1");
    assert_null(node_held(node, "p", "c", NIC));
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_true(regular(node, "q", GPU "=1"));
}

/* The reference does so; strictly davit does, too, though nobody would recommend it. */
static void strictly_an_empty_response_leaves_devices_taken(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3");
    node->is_empty = true;
    assert_false(regular(node, "p", GPU "=2"));
    assert_int_equal(node_info(node, GPU).n_free, 1);
    node->is_empty = false;
    assert_false(regular(node, "q", GPU "=2"));
    assert_string_equal(node->err.msg, "requested number of devices unavailable for " GPU
                                       ". Requested: 2, Available: 1");
    node->allocate_fails = DV_UNAVAILABLE; /* counts anew */
    assert_false(regular(node, "q", GPU "=1"));
    assert_int_equal(node_info(node, GPU).n_free, 3);
}

static void a_stopped_plugin_is_not_called(void **state)
{
    struct node *node = *state;

    node->needs_pre_start = true;
    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, GPU "=1"));
    node_disconnect(node, GPU, "a.sock");
    assert_false(node_start(node, "p", "i", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_PRESTART);
    assert_err(&node->err, DV_UNKNOWN,
               "device plugin PreStartContainer rpc failed with err: endpoint");
    assert_err(&node->err, DV_UNKNOWN, "has been stopped");
    assert_int_equal(node->n_pre_start, 0);
}

/* A list came, but no plugin is known: not in real life. */
static void a_list_without_a_plugin_is_not_allocated_from(void **state)
{
    struct node *node = *state;

    (void)node_list(node, GPU, "d1@0");
    assert_false(regular(node, "p", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_ENDPOINT);
    assert_false(node_allocate_near(node, "p", GPU "=1", "0"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_UNKNOWN_PLUGIN);
    assert_string_equal(node->err.msg, "unknown Device Plugin " GPU);
    assert_int_equal(node_info(node, GPU).n_free, 1);
}

/* -- Ops under way together ----------------------------------------------------------------- */

static void two_ops_never_take_the_same_device(void **state)
{
    struct node *node = *state;
    struct dv_device_request p = node_request(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1");
    struct dv_device_request q = node_request(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1");
    struct dv_device_request r = node_request(node, "r", "c", DV_DEVICE_REGULAR, GPU "=1");
    struct dv_device_operation *op_p, *op_q, *op_r;

    node_register(node, GPU, "a.sock", "d1 d2");
    op_p = dv_device_allocate(node->state, &p);
    op_q = dv_device_allocate(node->state, &q);
    op_r = dv_device_allocate(node->state, &r);
    assert_str(dv_device_operation_step(op_p)->ids[0], "d1");
    assert_str(dv_device_operation_step(op_p)->socket, "a.sock");
    assert_str(dv_device_operation_step(op_q)->ids[0], "d2");
    assert_int_equal(dv_device_operation_step(op_r)->kind, DV_DEVICE_FAILED);
    dv_device_operation_free(op_r);
    dv_device_operation_free(op_p); /* given up: what it had taken is free again */
    op_r = dv_device_allocate(node->state, &r);
    assert_str(dv_device_operation_step(op_r)->ids[0], "d1");
    dv_device_operation_answer(op_q, DV_STR("\x0a\x00"));
    assert_int_equal(dv_device_operation_step(op_q)->kind, DV_DEVICE_DONE);
    dv_device_operation_free(op_q);
    dv_device_operation_free(op_r);
    assert_string_equal(node_held(node, "q", "c", GPU), "d2");
    assert_int_equal(node_info(node, GPU).n_allocated, 1);
}

static void a_device_that_vanishes_while_it_is_allocated_is_held(void **state)
{
    struct node *node = *state;
    struct dv_device_request p = node_request(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1");
    struct dv_device_operation *op;

    node_register(node, GPU, "a.sock", "d1@3 d2@3");
    op = dv_device_allocate(node->state, &p);
    (void)node_list(node, GPU, "d2@3");
    node_disconnect(node, GPU, "a.sock");
    node->now_ns += 301 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "removed");
    dv_device_operation_answer(op, DV_STR("\x0a\x00"));
    assert_int_equal(dv_device_operation_step(op)->kind, DV_DEVICE_DONE);
    dv_device_operation_free(op);
    assert_string_equal(node_placed(node, "p", "c", GPU), "3:d1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(takes_what_is_asked_and_says_what_is_not_there),
        node_test(a_recorded_container_needs_its_plugin_back),
        node_test(a_second_admission_with_another_number_is_refused),
        node_test(bad_requests_are_refused_and_foreign_ones_skipped),
        node_test(what_a_claim_provides_is_not_for_plugins),
        node_test(a_limit_of_zero_asks_nobody),
        node_test(init_containers_lend_to_all_after_them),
        node_test(sidecars_keep_what_they_take),
        node_test(what_is_lent_is_taken_whatever_its_health),
        node_test(lending_ends_when_another_pod_is_handled),
        node_test(an_open_admission_keeps_what_was_lent),
        node_test(what_a_collected_pod_lent_is_lent_no_more),
        node_test(what_is_in_use_is_not_taken_from_a_second_lending),
        node_test(inactive_pods_give_back_what_they_hold),
        node_test(nothing_is_collected_before_sources_are_ready),
        node_test(a_failed_call_gives_back_what_was_taken),
        node_test(a_response_that_is_no_message_fails_the_call),
        node_test(the_first_resource_stays_when_the_second_fails),
        strict_node_test(strictly_an_empty_response_leaves_devices_taken),
        node_test(a_stopped_plugin_is_not_called),
        node_test(a_list_without_a_plugin_is_not_allocated_from),
        node_test(two_ops_never_take_the_same_device),
        node_test(a_device_that_vanishes_while_it_is_allocated_is_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
