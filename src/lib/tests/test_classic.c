/* Registering through kubelet.sock: when, how often, and again after what. */
#include "support/dvtest.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tests/test_lib_node.h"

static void nothing(void *ctx, struct davit_call *call, const char *const *ids, size_t n_ids)
{
    (void)ctx;
    (void)ids;
    (void)n_ids;
    davit_call_finish(call);
}

static void it_registers_when_it_serves(void **state)
{
    struct node *node = *state;

    agent_start(node);
    node->options.prestart = nothing;
    node_open(node);
    wait_events(node, "serving;registered;");
    assert_str(dv_buf_str(&node->registered),
               "v1beta1 example.com_tty.sock " TEST_RESOURCE " 1 0;");
}

static void an_agent_that_comes_later_is_registered_with_at_once(void **state)
{
    struct node *node = *state;

    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    assert_non_null(strstr(node->error.message, node->agent_path));
    assert_non_null(strstr(node->error.message, "No such file"));
    agent_start(node);
    wait_events(node, "serving;problem UNAVAILABLE;registered;");
}

static void refused_attempts_are_repeated_with_growing_pauses(void **state)
{
    static const uint64_t pauses_ms[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000};
    struct node *node = *state;

    agent_start(node);
    node->n_refusals = DV_COUNT(pauses_ms);
    node_open(node);
    for (size_t i = 0; i < DV_COUNT(pauses_ms); i++) {
        wait_registers(node, (int)i + 1);
        node_settle(node);
        assert_int_equal(node->error.code, DAVIT_UNKNOWN);
        assert_non_null(strstr(node->error.message, "not now"));
        assert_in_range(node->retry_ms, pauses_ms[i] * 8 / 10, pauses_ms[i] * 12 / 10);
        node_advance(node, node->retry_ms - 1);
        assert_int_equal(node->n_registers, i + 1);
        node_advance(node, 1);
    }
    wait_registers(node, DV_COUNT(pauses_ms) + 1);
    node_settle(node);
    assert_true(dv_str_ends_with(dv_buf_str(&node->events), DV_STR(";registered;")));
}

static void an_agent_that_does_not_answer_is_given_up(void **state)
{
    struct node *node = *state;

    agent_start(node);
    node->holds_registers = true;
    node_open(node);
    wait_registers(node, 1);
    node_advance(node, 29999);
    assert_str(dv_buf_str(&node->events), "serving;");
    node_advance(node, 1);
    wait_events(node, "serving;problem DEADLINE_EXCEEDED;");
}

static void a_new_agent_gets_a_registration_and_the_streams_of_before_end(void **state)
{
    struct node *node = *state;
    struct probe watch;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    agent_stop(node);
    node_settle(node);
    assert_int_equal(node->n_registers, 1);
    agent_start(node);
    wait_events(node, "serving;registered;registered;");
    wait_done(&watch);
    assert_err(&watch.err, DV_UNAVAILABLE, "registering with the new");
    probe_fini(&watch);
}

static void an_agent_that_stops_to_watch_is_registered_with_again(void **state)
{
    struct node *node = *state;
    struct probe watch;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    node_advance(node, 100000); /* that it watches is enough */
    assert_int_equal(node->n_registers, 1);
    probe_fini(&watch);
    wait_events(node, "serving;registered;lost;");
    node_advance(node, 799);
    assert_int_equal(node->n_registers, 1);
    node_advance(node, 401);
    wait_events(node, "serving;registered;lost;registered;");
}

/* Else an agent that drops us at once would be called without a pause. */
static void pauses_grow_when_streams_do_not_last(void **state)
{
    static const uint64_t pauses_ms[] = {1000, 2000, 4000, 8000};
    struct node *node = *state;

    agent_start(node);
    node_open(node);
    wait_registers(node, 1);
    node_connect(node, node->socket_path);
    for (size_t i = 0; i < DV_COUNT(pauses_ms); i++) {
        struct probe watch;

        watch_start(&watch, node);
        wait_list(&watch, "a+ b- ");
        probe_fini(&watch);
        node_settle(node);
        node_advance(node, pauses_ms[i] * 8 / 10 - 1);
        assert_int_equal(node->n_registers, i + 1);
        node_advance(node, pauses_ms[i] * 4 / 10 + 1);
        wait_registers(node, (int)i + 2);
        node_settle(node);
    }
}

static void one_of_several_streams_may_end(void **state)
{
    struct node *node = *state;
    struct probe watches[2];

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_connect(node, node->socket_path);
    for (size_t i = 0; i < 2; i++) {
        watch_start(&watches[i], node);
        wait_list(&watches[i], "a+ b- ");
    }
    probe_fini(&watches[0]);
    node_advance(node, 20000);
    assert_str(dv_buf_str(&node->events), "serving;registered;");
    probe_fini(&watches[1]);
    wait_events(node, "serving;registered;lost;");
}

static void an_agent_that_accepts_but_never_watches_is_asked_again(void **state)
{
    struct node *node = *state;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_advance(node, 29999);
    assert_int_equal(node->n_registers, 1);
    node_advance(node, 1);
    wait_events(node, "serving;registered;lost;");
    node_advance(node, 1200);
    wait_registers(node, 2);
}

static void a_stream_that_ends_before_the_registration_does_counts_too(void **state)
{
    struct node *node = *state;
    struct probe watch;

    agent_start(node);
    node->holds_registers = true;
    node_open(node);
    wait_registers(node, 1);
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    probe_fini(&watch);
    node_settle(node);
    assert_str(dv_buf_str(&node->events), "serving;");
    node->holds_registers = false;
    agent_answer(node);
    wait_events(node, "serving;registered;lost;");
    node_advance(node, 1200);
    wait_registers(node, 2);
}

static void a_socket_that_was_removed_is_made_again(void **state)
{
    struct node *node = *state;
    struct probe watch;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_advance(node, 1000); /* a file that stayed for a second is made anew at once */
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    assert_int_equal(unlink(node->socket_path), 0);
    wait_events(node, "serving;registered;lost;serving;registered;");
    wait_done(&watch);
    assert_err(&watch.err, DV_ABORTED, "was removed");
    probe_fini(&watch);
    assert_true(is_file(node->socket_path));
    node_disconnect(node);
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    probe_fini(&watch);
}

static void a_socket_that_is_removed_again_and_again_is_made_with_pauses(void **state)
{
    struct node *node = *state;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    assert_int_equal(unlink(node->socket_path), 0);
    wait_events(node, "serving;registered;lost;");
    node_advance(node, 399);
    assert_false(is_file(node->socket_path));
    node_advance(node, 201);
    wait_events(node, "serving;registered;lost;serving;registered;");
    assert_int_equal(unlink(node->socket_path), 0);
    wait_events(node, "serving;registered;lost;serving;registered;lost;");
    node_advance(node, 799);
    assert_false(is_file(node->socket_path));
    node_advance(node, 401);
    wait_events(node, "serving;registered;lost;serving;registered;lost;serving;registered;");
}

static void what_others_put_in_the_sockets_place_is_left_alone(void **state)
{
    struct node *node = *state;
    int fd;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_advance(node, 1000);
    assert_int_equal(unlink(node->socket_path), 0);
    fd = open(node->socket_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    wait_events(node, "serving;registered;lost;problem FAILED_PRECONDITION;");
    assert_non_null(strstr(node->error.message, "not a socket"));
    node_advance(node, 600);
    assert_true(is_file(node->socket_path));
    assert_int_equal(unlink(node->socket_path), 0);
    node_advance(node, 1200);
    wait_events(node, "serving;registered;lost;problem FAILED_PRECONDITION;"
                      "problem FAILED_PRECONDITION;serving;registered;");
}

static void directories_may_come_later(void **state)
{
    struct node *node = *state;

    assert_int_equal(rmdir(node->plugins_dir), 0);
    node_open(node);
    wait_events(node, "problem NOT_FOUND;");
    assert_int_equal(mkdir(node->plugins_dir, 0700), 0);
    agent_start(node);
    node_advance(node, 600);
    wait_events(node, "problem NOT_FOUND;serving;registered;");
    node_advance(node, 5000); /* looked at, and found to be watched again */
    assert_int_equal(unlink(node->socket_path), 0);
    wait_events(node, "problem NOT_FOUND;serving;registered;lost;serving;registered;");
}

static void a_directory_that_is_made_anew_is_found(void **state)
{
    struct node *node = *state;

    agent_start(node);
    node_open(node);
    wait_events(node, "serving;registered;");
    node_advance(node, 1000);
    agent_stop(node);
    assert_int_equal(unlink(node->socket_path), 0);
    assert_int_equal(rmdir(node->plugins_dir), 0);
    wait_events(node, "serving;registered;lost;problem NOT_FOUND;");
    assert_int_equal(mkdir(node->plugins_dir, 0700), 0);
    agent_start(node);
    node_advance(node, 600);
    wait_events(node, "serving;registered;lost;problem NOT_FOUND;serving;registered;");
}

static void it_can_be_closed_at_any_moment(void **state)
{
    struct node *node = *state;

    node_open(node);
    node_close(node); /* before anything happened */
    node_settle(node);
    agent_start(node);
    node->holds_registers = true;
    node_open(node);
    wait_registers(node, 1);
    node_close(node); /* while it registers */
    node_settle(node);
    assert_false(is_file(node->socket_path));
    dv_server_call_finish(node->registers, NULL);
    node->registers = NULL;
    node->holds_registers = false;
    dv_buf_clear(&node->events);
    node->closes_at_event = true;
    node_open(node);
    wait_events(node, "serving;"); /* in its own callback */
    node_settle(node);
    assert_str(dv_buf_str(&node->events), "serving;");
    assert_false(is_file(node->socket_path));
}

static void two_plugins_share_a_driver(void **state)
{
    struct node *node = *state;
    struct davit_device_plugin_options options = node->options;
    struct davit_device_plugin *other;

    agent_start(node);
    node_open(node);
    wait_registers(node, 1);
    options.resource = "example.com/gpu";
    other = davit_device_plugin_open(node->driver, &options, NULL);
    assert_non_null(other);
    wait_registers(node, 2);
    assert_str(dv_buf_str(&node->registered), "v1beta1 example.com_tty.sock example.com/tty 0 0;"
                                              "v1beta1 example.com_gpu.sock example.com/gpu 0 0;");
    davit_device_plugin_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, node_start, node_end)
        NODE_TEST(it_registers_when_it_serves),
        NODE_TEST(an_agent_that_comes_later_is_registered_with_at_once),
        NODE_TEST(refused_attempts_are_repeated_with_growing_pauses),
        NODE_TEST(an_agent_that_does_not_answer_is_given_up),
        NODE_TEST(a_new_agent_gets_a_registration_and_the_streams_of_before_end),
        NODE_TEST(an_agent_that_stops_to_watch_is_registered_with_again),
        NODE_TEST(pauses_grow_when_streams_do_not_last),
        NODE_TEST(one_of_several_streams_may_end),
        NODE_TEST(an_agent_that_accepts_but_never_watches_is_asked_again),
        NODE_TEST(a_stream_that_ends_before_the_registration_does_counts_too),
        NODE_TEST(a_socket_that_was_removed_is_made_again),
        NODE_TEST(a_socket_that_is_removed_again_and_again_is_made_with_pauses),
        NODE_TEST(what_others_put_in_the_sockets_place_is_left_alone),
        NODE_TEST(directories_may_come_later),
        NODE_TEST(a_directory_that_is_made_anew_is_found),
        NODE_TEST(it_can_be_closed_at_any_moment),
        NODE_TEST(two_plugins_share_a_driver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
