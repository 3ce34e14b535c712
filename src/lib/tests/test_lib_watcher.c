/* Registering through plugins_registry/. */
#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tests/test_lib_node.h"
#include "pb/pb.h"
#include "proto/registration_v1.pb-c.h"

#define GET_INFO "/pluginregistration.Registration/GetInfo"
#define NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"

static int start(void **state)
{
    struct node *node;

    assert_int_equal(node_start(state), 0);
    node = *state;
    node->options.register_through = DAVIT_REGISTER_WATCHER;
    node_open(node);
    wait_events(node, "serving;");
    node_connect(node, node->registry_path);
    return 0;
}

static void get_info(struct node *node)
{
    RegistrationV1__InfoRequest ask = REGISTRATION_V1__INFO_REQUEST__INIT;
    const RegistrationV1__PluginInfo *info;
    struct probe probe;
    struct dv_err err;

    probe_run(&probe, node, GET_INFO, &ask.base);
    info = dv_pb_decode(&registration_v1__plugin_info__descriptor, dv_buf_str(&probe.got),
                        node->arena, &err);
    assert_non_null(info);
    assert_string_equal(info->type, "DevicePlugin");
    assert_string_equal(info->name, TEST_RESOURCE);
    assert_string_equal(info->endpoint, ""); /* the socket that was asked */
    assert_int_equal(info->n_supported_versions, 1);
    assert_string_equal(info->supported_versions[0], "v1beta1");
    probe_fini(&probe);
}

static void notify(struct probe *probe, struct node *node, const char *error)
{
    RegistrationV1__RegistrationStatus status = REGISTRATION_V1__REGISTRATION_STATUS__INIT;

    status.plugin_registered = !error;
    status.error = error ? error : "";
    probe_run(probe, node, NOTIFY, &status.base);
}

static void the_socket_says_who_it_is_and_serves_the_plugin(void **state)
{
    struct node *node = *state;
    struct probe watch;
    struct probe probe;

    get_info(node);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    notify(&probe, node, NULL);
    assert_int_equal(probe.err.code, DV_OK);
    wait_events(node, "serving;registered;");
    assert_false(is_file(node->socket_path)); /* nothing of it is in device-plugins/ */
    probe_fini(&probe);
    probe_fini(&watch);
}

static void a_refusal_is_told_and_answered_with_its_text(void **state)
{
    struct node *node = *state;
    struct probe probe;

    get_info(node);
    notify(&probe, node, "no room");
    assert_err(&probe.err, DV_UNKNOWN, "no room");
    wait_events(node, "serving;problem UNKNOWN;");
    assert_non_null(strstr(node->error.message, "no room"));
    assert_int_equal(node->retry_ms, 0);
    node_advance(node, 100000); /* it is the agent that tries again */
    assert_str(dv_buf_str(&node->events), "serving;problem UNKNOWN;");
    probe_fini(&probe);
}

static ino_t inode_of(const char *path)
{
    struct stat info;

    assert_int_equal(lstat(path, &info), 0);
    return info.st_ino;
}

static void watch_and_leave(struct node *node)
{
    struct probe watch;

    get_info(node);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    probe_fini(&watch);
    node_settle(node);
}

static void a_socket_that_nobody_watches_any_more_is_made_anew(void **state)
{
    struct node *node = *state;
    char other[160];

    watch_and_leave(node);
    wait_events(node, "serving;lost;");
    /* Keeps the inode in use, so that the new file has another. */
    (void)snprintf(other, sizeof(other), "%s.kept", node->registry_path);
    assert_int_equal(link(node->registry_path, other), 0);
    node_advance(node, 3999);
    assert_int_equal(inode_of(node->registry_path), inode_of(other));
    node_advance(node, 2001);
    wait_events(node, "serving;lost;lost;serving;");
    assert_int_not_equal(inode_of(node->registry_path), inode_of(other));
    assert_int_equal(unlink(other), 0);
    node_advance(node, 1000000); /* once: an agent that starts later finds it */
    assert_str(dv_buf_str(&node->events), "serving;lost;lost;serving;");
}

/* The agent is there again on the socket that was made last. */
static void come_back(struct node *node)
{
    node_disconnect(node);
    node_connect(node, node->registry_path);
}

/* An agent that has accepted the plugin was right: what became of those before it does not count.
 */
static void pauses_begin_anew_when_an_agent_has_accepted(void **state)
{
    struct node *node = *state;
    struct probe probe;

    watch_and_leave(node); /* without a word: the next pause is twice as long, 8 to 12 s */
    node_advance(node, 6000);
    wait_events(node, "serving;lost;lost;serving;");
    come_back(node);
    watch_and_leave(node);
    wait_events(node, "serving;lost;lost;serving;lost;");
    node_advance(node, 7999);
    assert_str(dv_buf_str(&node->events), "serving;lost;lost;serving;lost;");
    node_advance(node, 4001);
    wait_events(node, "serving;lost;lost;serving;lost;lost;serving;");

    come_back(node);
    notify(&probe, node, NULL);
    probe_fini(&probe);
    watch_and_leave(node);
    node_advance(node, 6000); /* at most 6 s again */
    wait_events(node, "serving;lost;lost;serving;lost;lost;serving;registered;lost;lost;serving;");
}

static void an_agent_that_comes_back_by_itself_finds_the_same_socket(void **state)
{
    struct node *node = *state;
    struct probe watch;

    watch_and_leave(node);
    wait_events(node, "serving;lost;");
    node_advance(node, 3000);
    get_info(node);
    node_advance(node, 20000);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    node_advance(node, 100000);
    assert_str(dv_buf_str(&node->events), "serving;lost;");
    probe_fini(&watch);
}

static void an_agent_that_asks_but_never_watches_is_shown_a_new_socket(void **state)
{
    struct node *node = *state;

    get_info(node);
    node_advance(node, 29999);
    assert_str(dv_buf_str(&node->events), "serving;");
    node_advance(node, 1);
    wait_events(node, "serving;lost;serving;");
}

static void a_removed_socket_is_made_again(void **state)
{
    struct node *node = *state;

    node_advance(node, 1000);
    assert_int_equal(unlink(node->registry_path), 0);
    wait_events(node, "serving;lost;serving;");
    assert_true(is_file(node->registry_path));
}

static void both_ways_are_sockets_of_their_own(void **state)
{
    struct node *node = *state;
    struct probe watches[2];

    node_disconnect(node);
    node_close(node);
    node_settle(node);
    agent_start(node);
    node->options.register_through = DAVIT_REGISTER_CLASSIC | DAVIT_REGISTER_WATCHER;
    dv_buf_clear(&node->events);
    node_open(node);
    wait_events(node, "serving;serving;registered;");
    node_connect(node, node->registry_path);
    watch_start(&watches[0], node);
    wait_list(&watches[0], "a+ b- ");
    node_disconnect(node);
    wait_done(&watches[0]);
    probe_fini(&watches[0]);
    node_connect(node, node->socket_path);
    watch_start(&watches[1], node);
    wait_list(&watches[1], "a+ b- ");
    assert_true(davit_device_plugin_set_health(node->plugin, "b", true, NULL));
    wait_list(&watches[1], "a+ b+ ");
    probe_fini(&watches[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WATCHER_TEST(name) cmocka_unit_test_setup_teardown(name, start, node_end)
        WATCHER_TEST(the_socket_says_who_it_is_and_serves_the_plugin),
        WATCHER_TEST(a_refusal_is_told_and_answered_with_its_text),
        WATCHER_TEST(a_socket_that_nobody_watches_any_more_is_made_anew),
        WATCHER_TEST(pauses_begin_anew_when_an_agent_has_accepted),
        WATCHER_TEST(an_agent_that_comes_back_by_itself_finds_the_same_socket),
        WATCHER_TEST(an_agent_that_asks_but_never_watches_is_shown_a_new_socket),
        WATCHER_TEST(a_removed_socket_is_made_again),
        WATCHER_TEST(both_ways_are_sockets_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
