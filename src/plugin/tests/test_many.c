/* Many sockets at once: the work is bounded, and the good do not wait for the bad for long. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loop/loop.h"
#include "plugin/plugins.h"
#include "plugin/tests/test_plugin_node.h"

#define MANY 1000
/* Each has a descriptor here, and a process may have only 1024. */
#define ALIVE 300
#define SILENT 300

/* How many operations ran at a time, at the most. */
struct watch {
    struct node *node;
    size_t n_running_max;
    size_t n_retrying_max;
    const int *count;
    int wanted;
};

static bool is_reached(void *ctx)
{
    struct watch *watch = ctx;
    const struct dv_plugins *plugins = watch->node->plugins;

    if (plugins->n_running > watch->n_running_max)
        watch->n_running_max = plugins->n_running;
    if (plugins->n_retrying > watch->n_retrying_max)
        watch->n_retrying_max = plugins->n_retrying;
    return *watch->count >= watch->wanted;
}

static void make_dead_sockets(const struct node *node, int n)
{
    for (int i = 0; i < n; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "dead-%d.sock", i);
        make_socket(node_path(node, name));
    }
}

static int make_listener(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static void hundreds_of_plugins_are_all_registered_a_few_at_a_time(void **state)
{
    struct node *node = *state;
    struct fake_plugin *plugins = calloc(ALIVE, sizeof(*plugins));
    struct watch watch = {.node = node, .count = &node->device.n_started, .wanted = ALIVE};

    assert_non_null(plugins);
    make_dir(node->registry);
    for (int i = 0; i < ALIVE; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "%d.sock", i);
        fake_plugin_start(&plugins[i], node, name);
    }
    node_open(node);
    node_wait(node, is_reached, &watch);
    wait_actual(node, ALIVE);
    assert_in_range(watch.n_running_max, 2, DV_PLUGIN_OPERATIONS_MAX);
    for (int i = 0; i < ALIVE; i++)
        fake_plugin_stop(&plugins[i]);
    wait_actual(node, 0);
    wait_count(node, &node->device.n_deregister, ALIVE);
    for (int i = 0; i < ALIVE; i++)
        fake_plugin_end(&plugins[i]);
    free(plugins);
}

static void a_thousand_dead_sockets_hold_up_a_good_one_for_a_bounded_time(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;
    struct watch watch = {.node = node, .count = &plugin.n_ok, .wanted = 1};
    uint64_t start_ms = dv_loop_now_ms(node->loop);

    make_dir(node->registry);
    make_dead_sockets(node, MANY);
    node_open(node);
    wait_desired(node, MANY);
    fake_plugin_start(&plugin, node, "good.sock"); /* the last in the queue */
    wait_desired(node, MANY + 1);
    while (!is_reached(&watch)) {
        advance(node, 1000);
        assert_true(dv_loop_now_ms(node->loop) - start_ms < 30000);
    }
    assert_in_range(watch.n_running_max, 2, DV_PLUGIN_OPERATIONS_MAX);
    assert_true(node->plugins->n_running <= DV_PLUGIN_OPERATIONS_MAX);
    fake_plugin_end(&plugin);
}

/* Who accepts and is silent: a listener without anybody who reads. All are this process's, as is
 * the good one, so that only time tells them apart. */
static void hundreds_of_silent_sockets_hold_up_a_good_one_for_seconds(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;
    struct watch watch = {.node = node, .count = &plugin.n_ok, .wanted = 1};
    uint64_t start_ms = dv_loop_now_ms(node->loop);
    int listeners[SILENT];

    make_dir(node->registry);
    for (int i = 0; i < SILENT; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "silent-%d.sock", i);
        listeners[i] = make_listener(node_path(node, name));
    }
    node_open(node);
    wait_desired(node, SILENT);
    fake_plugin_start(&plugin, node, "good.sock");
    wait_desired(node, SILENT + 1);
    while (!is_reached(&watch)) {
        advance(node, 500);
        assert_true(dv_loop_now_ms(node->loop) - start_ms < 30000);
    }
    assert_in_range(watch.n_running_max, 2, DV_PLUGIN_OPERATIONS_MAX);
    for (int i = 0; i < SILENT; i++)
        (void)close(listeners[i]);
    fake_plugin_end(&plugin);
}

static void newcomers_do_not_wait_for_those_that_fail(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;
    struct watch watch = {.node = node, .count = &plugin.n_ok, .wanted = 1};

    make_dir(node->registry);
    make_dead_sockets(node, 200);
    node_open(node);
    wait_desired(node, 200);
    for (int i = 0; i < 30; i++) { /* all have failed by now, and are tried again */
        advance(node, 1000);
        (void)is_reached(&watch);
    }
    assert_in_range(watch.n_retrying_max, 1, DV_PLUGIN_OPERATIONS_MAX / 2);
    fake_plugin_start(&plugin, node, "good.sock");
    wait_state(node, "good.sock", DV_PLUGIN_REGISTERED); /* at once */
    fake_plugin_end(&plugin);
}

static void hanging_plugins_block_nobody(void **state)
{
    enum { HANGING = 64 };
    struct fake_plugin *hanging = calloc(HANGING, sizeof(*hanging));
    struct fake_plugin good = {0};
    struct node *node = *state;

    assert_non_null(hanging);
    make_dir(node->registry);
    for (int i = 0; i < HANGING; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "hanging-%d.sock", i);
        hanging[i].holds_at = i % 2 ? AT_INFO : AT_NOTIFY;
        fake_plugin_start(&hanging[i], node, name);
    }
    node_open(node);
    for (int i = 0; i < HANGING; i++)
        wait_count(node, i % 2 ? &hanging[i].n_info : &hanging[i].n_ok, 1);
    fake_plugin_start(&good, node, "good.sock");
    wait_state(node, "good.sock", DV_PLUGIN_REGISTERED);
    for (int i = 0; i < HANGING; i++)
        fake_plugin_end(&hanging[i]);
    fake_plugin_end(&good);
    free(hanging);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hundreds_of_plugins_are_all_registered_a_few_at_a_time,
                                        node_start, node_end),
        cmocka_unit_test_setup_teardown(
            a_thousand_dead_sockets_hold_up_a_good_one_for_a_bounded_time, node_start, node_end),
        cmocka_unit_test_setup_teardown(hundreds_of_silent_sockets_hold_up_a_good_one_for_seconds,
                                        node_start, node_end),
        cmocka_unit_test_setup_teardown(newcomers_do_not_wait_for_those_that_fail, node_start,
                                        node_end),
        cmocka_unit_test_setup_teardown(hanging_plugins_block_nobody, node_start, node_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
