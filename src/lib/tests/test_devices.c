/* The list of devices: what is refused, how it looks on the wire, who gets which version of it. */
#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "http2/http2.h"
#include "lib/plugin/plugin_devices.h"
#include "lib/tests/test_lib_node.h"

static void the_wire_form_is_that_of_the_protocol(void **state)
{
    static const int zero[] = {0};
    static const int some[] = {1, 300};
    static const struct davit_device from[] = {
        {.id = "a",           .is_healthy = true, .numa_nodes = zero, .n_numa_nodes = 1},
        {.id = "b",  .numa_nodes = some,                    .n_numa_nodes = 2},
        {.id = "c",.is_healthy = true},
    };
    static const char want[] = "\x0a\x10\x0a\x01"
                               "a\x12\x07Healthy\x1a\x02\x0a\x00" /* node 0 is an empty message */
                               "\x0a\x19\x0a\x01"
                               "b\x12\x09Unhealthy\x1a\x09\x0a\x02\x08\x01\x0a\x03\x08\xac\x02"
                               "\x0a\x0c\x0a\x01"
                               "c\x12\x07Healthy";
    struct dv_err err;
    struct dv_lib_devices *devices = dv_lib_devices_new(from, DV_COUNT(from), &err);
    struct dv_h2_msg *msg;

    (void)state;
    assert_ok(devices != NULL, &err);
    msg = dv_lib_devices_encode(devices);
    assert_int_equal(dv_h2_msg_size(msg), sizeof(want) - 1);
    assert_memory_equal(dv_h2_msg_data(msg), want, sizeof(want) - 1);
    dv_h2_msg_unref(msg);
    dv_lib_devices_free(devices);
}

static void bad_lists_are_refused_and_change_nothing(void **state)
{
    static const int negative[] = {0, -1};
    static char long_id[1026];
    const struct {
        struct davit_device device;
        const char *text;
    } rows[] = {
        {{.id = NULL},                                              "device 1 of the list: its id is empty"},
        {{.id = ""},                                                "its id is empty"                      },
        {{.id = "\xff"},                                            "its id is not UTF-8"                  },
        {{.id = "a"},                                               "device \"a\" is in the list twice"    },
        {{.id = long_id},                                           "its id of 1025 bytes is longer"       },
        {{.id = "x", .numa_nodes = negative, .n_numa_nodes = 2},    "x: NUMA node -1 is negative"          },
        {{.id = "x", .numa_nodes = negative, .n_numa_nodes = 2000}, "x: 2000 NUMA nodes are more"          },
    };
    struct node *node = *state;
    struct davit_error error;
    struct probe watch;

    memset(long_id, 'x', sizeof(long_id) - 1);
    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct davit_device devices[2] = {
            {.id = "a", .is_healthy = true},
            rows[i].device
        };

        assert_false(davit_device_plugin_set_devices(node->plugin, devices, 2, &error));
        assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
        if (!strstr(error.message, rows[i].text))
            fail_msg("row %zu: %s", i, error.message);
        assert_false(davit_device_plugin_set_devices(node->plugin, devices, 2, NULL));
    }
    assert_false(davit_device_plugin_set_health(node->plugin, "x", true, &error));
    assert_int_equal(error.code, DAVIT_NOT_FOUND);
    assert_string_equal(error.message, "no device \"x\"");
    node_settle(node);
    assert_int_equal(watch.n_messages, 1);
    probe_fini(&watch);
}

/* Devices whose ids are long; the caller frees the array, the arena has the ids. */
static struct davit_device *make_many(size_t n, const char *mark, struct dv_arena *arena)
{
    struct davit_device *devices = calloc(n, sizeof(devices[0]));

    assert_non_null(devices);
    for (size_t i = 0; i < n; i++)
        devices[i].id = dv_str_to_c(dv_str_printf(arena, "%s-%060zu-%0200d", mark, i, 0), arena);
    return devices;
}

static void a_list_that_no_agent_takes_is_refused(void **state)
{
    struct node *node = *state;
    struct davit_device *devices = make_many(60000, "x", node->arena);
    struct davit_error error;

    node_open(node);
    assert_false(davit_device_plugin_set_devices(node->plugin, devices, 60000, &error));
    assert_int_equal(error.code, DAVIT_RESOURCE_EXHAUSTED);
    assert_true(davit_device_plugin_set_devices(node->plugin, devices, 50000, &error));
    free(devices);
}

static void who_watches_waits_for_the_first_list(void **state)
{
    struct node *node = *state;
    struct davit_error error;
    struct probe watch;

    node->plugin = davit_device_plugin_open(node->driver, &node->options, &error);
    assert_non_null(node->plugin);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    node_settle(node);
    assert_int_equal(watch.n_messages, 0);
    assert_false(davit_device_plugin_set_health(node->plugin, "a", true, &error));
    assert_int_equal(error.code, DAVIT_NOT_FOUND);
    node_set(node, NULL, 0);
    wait_list(&watch, ""); /* an empty list is one */
    assert_int_equal(watch.n_messages, 1);
    probe_fini(&watch);
}

static void only_what_differs_is_sent_and_once_for_a_turn(void **state)
{
    static const int nodes[] = {0, 1};
    static const struct davit_device same[] = {
        {.id = "a", .is_healthy = true},
        {.id = "b"        }
    };
    static const struct davit_device more[] = {
        {.id = "a",            .is_healthy = true, .numa_nodes = nodes, .n_numa_nodes = 2},
        {.id = "c"},
    };
    struct node *node = *state;
    struct probe watch;

    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    node_set(node, same, 2);
    node_settle(node);
    assert_int_equal(watch.n_messages, 1);
    assert_true(davit_device_plugin_set_health(node->plugin, "b", true, NULL));
    assert_true(davit_device_plugin_set_health(node->plugin, "a", false, NULL));
    wait_list(&watch, "a- b+ ");
    assert_int_equal(watch.n_messages, 2);
    assert_true(davit_device_plugin_set_health(node->plugin, "a", true, NULL));
    assert_true(davit_device_plugin_set_health(node->plugin, "a", false, NULL));
    node_settle(node);
    assert_int_equal(watch.n_messages, 2); /* there and back within a turn is no change */
    node_set(node, same, 2);
    node_set(node, more, 2);
    wait_list(&watch, "a+0,1 c- ");
    assert_int_equal(watch.n_messages, 3);
    probe_fini(&watch);
}

static void all_streams_get_each_change_and_new_ones_the_latest(void **state)
{
    struct node *node = *state;
    struct probe watches[4];

    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    for (size_t i = 0; i < 3; i++) {
        watch_start(&watches[i], node);
        wait_list(&watches[i], "a+ b- ");
    }
    assert_true(davit_device_plugin_set_health(node->plugin, "b", true, NULL));
    for (size_t i = 0; i < 3; i++)
        wait_list(&watches[i], "a+ b+ ");
    probe_fini(&watches[1]);
    watch_start(&watches[3], node);
    wait_list(&watches[3], "a+ b+ ");
    assert_int_equal(watches[3].n_messages, 1);
    assert_true(davit_device_plugin_set_health(node->plugin, "a", false, NULL));
    wait_list(&watches[0], "a- b+ ");
    wait_list(&watches[2], "a- b+ ");
    wait_list(&watches[3], "a- b+ ");
    assert_int_equal(watches[0].n_messages, 3);
    probe_fini(&watches[0]);
    probe_fini(&watches[2]);
    probe_fini(&watches[3]);
}

static bool has_turned(void *ctx)
{
    return (*(int *)ctx)++ > 0; /* asked before the first turn, too */
}

static void a_slow_reader_is_spared_what_is_old(void **state)
{
    struct node *node = *state;
    struct davit_device *first = make_many(20000, "first", node->arena); /* 5 MB: many turns */
    struct davit_device *second = make_many(20000, "second", node->arena);
    static const struct davit_device last[] = {{.id = "last"}};
    struct probe watch;

    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    watch_start(&watch, node);
    wait_list(&watch, "a+ b- ");
    for (int i = 0; i < 5; i++) { /* in turns of their own; the first is still on its way */
        struct davit_device *devices = i % 2 ? second : first;

        node_set(node, devices, 20000);
        wait_until(node, has_turned, &(int){0}, "a turn");
    }
    node_set(node, last, 1);
    wait_list(&watch, "last- ");
    assert_in_range(watch.n_messages, 3, 4);
    probe_fini(&watch);
    free(first);
    free(second);
}

static void streams_have_a_bound(void **state)
{
    struct node *node = *state;
    struct probe *watches = calloc(257, sizeof(watches[0]));

    assert_non_null(watches);
    node_open(node);
    wait_events(node, "serving;problem UNAVAILABLE;");
    node_connect(node, node->socket_path);
    for (size_t i = 0; i < 257; i++)
        watch_start(&watches[i], node);
    wait_done(&watches[256]);
    assert_err(&watches[256].err, DV_RESOURCE_EXHAUSTED, "256 streams are open already");
    for (size_t i = 0; i < 257; i++)
        probe_fini(&watches[i]);
    free(watches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, node_start, node_end)
        cmocka_unit_test(the_wire_form_is_that_of_the_protocol),
        NODE_TEST(bad_lists_are_refused_and_change_nothing),
        NODE_TEST(a_list_that_no_agent_takes_is_refused),
        NODE_TEST(who_watches_waits_for_the_first_list),
        NODE_TEST(only_what_differs_is_sent_and_once_for_a_turn),
        NODE_TEST(all_streams_get_each_change_and_new_ones_the_latest),
        NODE_TEST(a_slow_reader_is_spared_what_is_old),
        NODE_TEST(streams_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
