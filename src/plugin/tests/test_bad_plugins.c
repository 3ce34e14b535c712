/* Plugins that lie, hang and babble. */
#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "grpc/grpc.h"
#include "loop/loop.h"
#include "plugin/tests/test_plugin_node.h"

/* ---- what it says ---- */

static void what_is_wrong_with_an_info_is_told_in_the_references_words(void **state)
{
    static char long_text[400];
    static const struct {
        struct fake_plugin plugin;
        const char *text; /* the whole, %s: the socket; or its beginning when it ends with '*' */
    } cases[] = {
        {{.type = "NoSuchType", .plugin_name = "n", .endpoint = "/nope.sock"},
         "RegisterPlugin error -- no handler registered for plugin type: NoSuchType at socket %s"},
        {{.type = ""},
         "RegisterPlugin error -- no handler registered for plugin type:  at socket %s"          },
        {{.type = "deviceplugin"},
         "RegisterPlugin error -- no handler registered for plugin type: deviceplugin at "
         "socket %s"                                                                             },
        {{.type = long_text},
         "RegisterPlugin error -- plugin validation failed with err: type of 399 bytes is*"      },
        {{.plugin_name = long_text},
         "RegisterPlugin error -- plugin validation failed with err: name of 399 bytes is*"      },
        {{.endpoint = long_text},
         "RegisterPlugin error -- plugin validation failed with err: endpoint of 399 bytes is*"  },
        {{.endpoint = "/var/lib/kubelet/../../../etc/x.sock"},
         "RegisterPlugin error -- plugin validation failed with err: endpoint "
         "\"/var/lib/kubelet/../../../etc/x.sock\" has \"..\" in its path"                       },
        {{.endpoint = "relative.sock"},
         "RegisterPlugin error -- plugin validation failed with err: endpoint \"relative.sock\" "
         "is not an absolute path"                                                               },
        {{.endpoint = "/nope.sock"},
         "RegisterPlugin error -- plugin validation failed with err: endpoint /nope.sock is "
         "outside of*"                                                                           },
    };
    struct node *node = *state;

    memset(long_text, 'x', sizeof(long_text) - 1);
    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct fake_plugin plugin = cases[i].plugin;
        char want[512];
        char name[32];
        size_t n;

        (void)snprintf(name, sizeof(name), "bad-%zu.sock", i);
        fake_plugin_start(&plugin, node, name);
        wait_state(node, name, DV_PLUGIN_FAILING);
        assert_int_equal(plugin.n_refused, 1);
        assert_int_equal(plugin.n_ok, 0);
        (void)snprintf(want, sizeof(want), "%.*s%s", (int)strcspn(cases[i].text, "%"),
                       cases[i].text, strchr(cases[i].text, '%') ? plugin.path : "");
        n = strlen(want);
        if (want[n - 1] == '*') {
            n--;
            assert_memory_equal(dv_buf_c(&plugin.error), want, n);
        } else {
            assert_string_equal(dv_buf_c(&plugin.error), want);
        }
        fake_plugin_end(&plugin);
    }
    assert_int_equal(node->device.n_start, 0);
    assert_others_get_on(node);
}

static void an_endpoint_that_is_a_link_out_is_refused(void **state)
{
    struct node *node = *state;
    char endpoint[96];
    struct fake_plugin plugin = {.endpoint = endpoint};

    node_open_and_scan(node);
    (void)snprintf(endpoint, sizeof(endpoint), "%s/link.sock", node->dir);
    assert_int_equal(symlink("/tmp/elsewhere-no-such", endpoint), 0);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_count(node, &plugin.n_refused, 1);
    assert_int_equal(count_text(&plugin.error, "link.sock is a link to nowhere"), 1);
    assert_int_equal(unlink(endpoint), 0);
    assert_int_equal(symlink("/dev/null", endpoint), 0);
    wait_state(node, "a.sock", DV_PLUGIN_FAILING);
    advance(node, 600);
    wait_count(node, &plugin.n_refused, 2);
    assert_int_equal(count_text(&plugin.error, "a link to /dev/null, is outside of"), 1);
    assert_int_equal(node->device.n_start, 0);
    fake_plugin_end(&plugin);
}

static void other_directories_may_be_allowed_instead(void **state)
{
    struct fake_plugin plugin = {.endpoint = "/opt/vendor/a.sock"};
    struct fake_plugin usual = {0};
    struct node *node = *state;

    node->endpoint_root = DV_STR("/opt");
    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_start(&usual, node, "b.sock");
    wait_count(node, &usual.n_refused, 1);
    assert_int_equal(count_text(&usual.error, "b.sock is outside of /opt"), 1);
    fake_plugin_end(&plugin);
    fake_plugin_end(&usual);
}

static void strict_mode_takes_every_endpoint_that_an_address_holds(void **state)
{
    struct fake_plugin plugin = {.endpoint = "/nope/../nope.sock"};
    struct node *node = *state;

    node->accepts_any_endpoint = true;
    node_open_and_scan(node);
    fake_plugin_start(&plugin, node, "a.sock");
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    assert_int_equal(count_text(&node->device.calls, "start(,/nope/../nope.sock) "), 1);
    fake_plugin_end(&plugin);
}

static void an_empty_name_is_the_handlers_to_judge(void **state)
{
    struct fake_plugin plugin = {.plugin_name = ""};
    struct node *node = *state;

    node_open_and_scan(node);
    node->device.fail_validate = 1;
    fake_plugin_start(&plugin, node, "a.sock");
    wait_count(node, &plugin.n_refused, 1);
    assert_string_equal(dv_buf_c(&plugin.error),
                        "RegisterPlugin error -- plugin validation failed with err: not valid");
    wait_state(node, "a.sock", DV_PLUGIN_FAILING);
    advance(node, 600);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_end(&plugin);
}

static void a_long_text_of_a_handler_arrives_whole(void **state)
{
    static char text[3000];
    struct fake_plugin plugin = {0};
    struct node *node = *state;

    memset(text, 'y', sizeof(text) - 1);
    node_open_and_scan(node);
    node->device.fail_validate = 1;
    node->device.text = text;
    fake_plugin_start(&plugin, node, "a.sock");
    wait_count(node, &plugin.n_refused, 1);
    assert_int_equal(count_text(&plugin.error, text), 1);
    fake_plugin_end(&plugin);
}

static void an_info_that_cannot_be_read_fails_the_call(void **state)
{
    static char huge[16u << 20];
    static const struct {
        const void *bytes;
        size_t n;
        enum dv_code code;
    } cases[] = {
        {huge,         sizeof(huge), DV_RESOURCE_EXHAUSTED},
        {huge,         32769,        DV_RESOURCE_EXHAUSTED},
        {"\x0a\xff",   2,            DV_INVALID_ARGUMENT  },
        {"\x0a\1\xff", 3,            DV_INVALID_ARGUMENT  },
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct fake_plugin plugin = {.info = cases[i].bytes, .info_bytes = cases[i].n};
        struct dv_err err;
        char name[32];

        (void)snprintf(name, sizeof(name), "bad-%zu.sock", i);
        fake_plugin_start(&plugin, node, name);
        wait_state(node, name, DV_PLUGIN_FAILING);
        err = last_err(node, name);
        assert_err(&err, cases[i].code, "failed to get plugin info using RPC GetInfo at socket ");
        assert_int_equal(plugin.n_refused, 0);
        fake_plugin_end(&plugin);
    }
    assert_others_get_on(node);
}

static void a_plugin_that_says_cancelled_has_failed_like_any_other(void **state)
{
    struct fake_plugin plugins[2] = {
        {.fails_with = DV_CANCELLED, .fail_info = 1000  },
        {.fails_with = DV_CANCELLED, .fail_notify = 1000},
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(plugins); i++) {
        const char *name = i == 0 ? "a.sock" : "b.sock";
        struct dv_err err;

        fake_plugin_start(&plugins[i], node, name);
        wait_state(node, name, DV_PLUGIN_FAILING);
        settle(node);
        err = last_err(node, name);
        assert_int_equal(err.code, DV_UNKNOWN);
        assert_int_equal(plugins[i].n_info, 1); /* it is waited for, not tried without end */
        fake_plugin_end(&plugins[i]);
    }
    assert_int_equal(node->device.n_started, 0);
}

static void a_socket_with_a_path_that_no_address_holds_is_named(void **state)
{
    struct node *node = *state;
    char deep[200];
    struct dv_err err;

    node_open_and_scan(node);
    make_socket(node_path(node, ".short"));
    (void)snprintf(deep, sizeof(deep), "%080d", 0);
    make_dir(node_path(node, deep));
    (void)snprintf(deep, sizeof(deep), "%080d/a.sock", 0);
    assert_int_equal(rename(node_path(node, ".short"), node_path(node, deep)), 0);
    wait_state(node, deep, DV_PLUGIN_FAILING);
    err = last_err(node, deep);
    assert_err(&err, DV_INVALID_ARGUMENT, "dial failed at socket ");
    assert_others_get_on(node);
}

/* ---- how it hangs ---- */

static void a_plugin_that_hangs_is_given_up_in_time(void **state)
{
    static const struct {
        enum fake_step at;
        uint64_t after_ms;
        const char *text;
    } cases[] = {
        {AT_INFO,   1000, "GetInfo at socket "                        },
        {AT_NOTIFY, 5000, "failed to send registration status at sock"},
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct fake_plugin plugin = {.holds_at = cases[i].at};
        struct dv_plugin_view view;
        char name[32];

        (void)snprintf(name, sizeof(name), "bad-%zu.sock", i);
        fake_plugin_start(&plugin, node, name);
        wait_count(node, cases[i].at == AT_INFO ? &plugin.n_info : &plugin.n_ok, 1);
        assert_others_get_on(node);
        advance(node, cases[i].after_ms - 1);
        assert_true(node_view(node, name, &view));
        assert_int_equal(view.last_err.code, DV_OK);
        advance(node, 1);
        wait_state(node, name, DV_PLUGIN_FAILING);
        view.last_err = last_err(node, name);
        assert_err(&view.last_err, DV_DEADLINE_EXCEEDED, cases[i].text);
        settle(node);
        assert_int_equal(dv_server_n_connections(plugin.server), 0);
        fake_plugin_end(&plugin);
    }
    assert_int_equal(node->device.n_started, 0); /* told or not: taken back */
}

static void a_socket_without_a_listener_is_tried_for_ten_seconds(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;
    struct dv_err err;

    node_open_and_scan(node);
    make_socket(node_path(node, "a.sock"));
    wait_state(node, "a.sock", DV_PLUGIN_CONNECTING);
    settle(node);
    advance(node, 9999);
    wait_state(node, "a.sock", DV_PLUGIN_CONNECTING);
    advance(node, 1);
    wait_state(node, "a.sock", DV_PLUGIN_FAILING);
    err = last_err(node, "a.sock");
    assert_err(&err, DV_UNAVAILABLE, "RegisterPlugin error -- dial failed at socket ");
    assert_err(&err, DV_UNAVAILABLE, "Connection refused");
    fake_plugin_start(&plugin, node, "a.sock"); /* as after a crash: the file is replaced */
    settle(node);
    advance(node, 600);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_end(&plugin);
}

/* Bound, and listening within the window: the first attempt to connect fails, a later one not. */
static void a_listener_that_comes_late_is_still_in_time(void **state)
{
    struct fake_plugin plugin = {0};
    struct node *node = *state;
    char target[96];

    node_open_and_scan(node);
    (void)snprintf(target, sizeof(target), "%s/target", node->dir);
    make_socket(target);
    assert_int_equal(symlink(target, node_path(node, "a.sock")), 0);
    wait_state(node, "a.sock", DV_PLUGIN_CONNECTING);
    settle(node);
    fake_plugin_start(&plugin, node, ".other");
    assert_int_equal(rename(plugin.path, target), 0); /* outside: no event */
    advance(node, 1200);
    wait_state(node, "a.sock", DV_PLUGIN_REGISTERED);
    fake_plugin_end(&plugin);
}

/* ---- how it babbles ---- */

struct babbler {
    struct dv_listener_handler handler;
    struct dv_listener *listener;
    struct dv_stream_handler streams; /* ignores what it hears */
    struct dv_stream *open[8];
    size_t n_open;
    dv_str says;
    bool hangs_up;
};

static void ignore_read(struct dv_stream_handler *handler, dv_str bytes)
{
    (void)handler;
    (void)bytes;
}

static void ignore_end(struct dv_stream_handler *handler, const struct dv_err *err)
{
    (void)handler;
    (void)err;
}

static void ignore_drained(struct dv_stream_handler *handler)
{
    (void)handler;
}

static void on_accept(struct dv_listener_handler *handler, struct dv_stream *stream)
{
    struct babbler *babbler = DV_CONTAINER(handler, struct babbler, handler);

    if (babbler->hangs_up || babbler->n_open == DV_COUNT(babbler->open)) {
        dv_stream_close(stream, NULL, NULL);
        return;
    }
    babbler->streams = (struct dv_stream_handler){ignore_read, ignore_end, ignore_drained};
    babbler->open[babbler->n_open++] = stream;
    dv_stream_start(stream, &babbler->streams);
    dv_stream_write(stream, babbler->says);
}

static void garbage_on_the_socket_fails_the_attempt(void **state)
{
    static const struct {
        const char *what;
        dv_str says;
        bool hangs_up;
    } cases[] = {
        {"http 1",     DV_STR_INIT("HTTP/1.1 400 Bad Request\r\n\r\n"),       false},
        {"noise",      DV_STR_INIT("\xde\xad\xbe\xef\0\0\0\0\0\0\0\0\0\0\0"), false},
        {"silence",    DV_STR_INIT(""),                                       false},
        {"hanging up", DV_STR_INIT(""),                                       true },
    };
    struct node *node = *state;

    node_open_and_scan(node);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct babbler babbler = {
            .handler = {.accept = on_accept}, .says = cases[i].says, .hangs_up = cases[i].hangs_up};
        struct dv_err err;
        char name[32];

        (void)snprintf(name, sizeof(name), "bad-%zu.sock", i);
        babbler.listener = dv_listener_open(node->loop, dv_str_from_c(node_path(node, name)), 0600,
                                            &babbler.handler, &err);
        assert_non_null(babbler.listener);
        wait_state(node, name, DV_PLUGIN_CONNECTING);
        settle(node);
        assert_others_get_on(node);
        advance(node, 10000);
        wait_state(node, name, DV_PLUGIN_FAILING);
        err = last_err(node, name);
        if (!strstr(err.msg, "dial failed at socket "))
            fail_msg("%s: %s", cases[i].what, err.msg);
        dv_listener_close(babbler.listener, NULL, NULL);
        wait_state(node, name, DV_PLUGIN_GONE);
        for (size_t j = 0; j < babbler.n_open; j++)
            dv_stream_close(babbler.open[j], NULL, NULL);
        settle(node);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_with_an_info_is_told_in_the_references_words),
        cmocka_unit_test(an_endpoint_that_is_a_link_out_is_refused),
        cmocka_unit_test(other_directories_may_be_allowed_instead),
        cmocka_unit_test(strict_mode_takes_every_endpoint_that_an_address_holds),
        cmocka_unit_test(an_empty_name_is_the_handlers_to_judge),
        cmocka_unit_test(a_long_text_of_a_handler_arrives_whole),
        cmocka_unit_test(an_info_that_cannot_be_read_fails_the_call),
        cmocka_unit_test(a_plugin_that_says_cancelled_has_failed_like_any_other),
        cmocka_unit_test(a_socket_with_a_path_that_no_address_holds_is_named),
        cmocka_unit_test(a_plugin_that_hangs_is_given_up_in_time),
        cmocka_unit_test(a_socket_without_a_listener_is_tried_for_ten_seconds),
        cmocka_unit_test(a_listener_that_comes_late_is_still_in_time),
        cmocka_unit_test(garbage_on_the_socket_fails_the_attempt),
    };
    struct CMUnitTest with_node[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_node[i] = tests[i];
        with_node[i].setup_func = node_start;
        with_node[i].teardown_func = node_end;
    }
    return cmocka_run_group_tests(with_node, NULL, NULL);
}
