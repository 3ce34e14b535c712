/* Options of containers, and their start. */
#include "base/clock.h"
#include "test_device_node.h"

#include "base/buf.h"
#include "pb/pb.h"

/* -- Responses ------------------------------------------------------------------------------ */

static void add_pair(struct dv_buf *buf, uint32_t part, const char *a, const char *b)
{
    size_t mark = dv_pb_begin(buf, part);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(a));
    if (b)
        dv_pb_add_bytes(buf, 2, dv_str_from_c(b));
    dv_pb_end(buf, mark);
}

static void add_mount(struct dv_buf *buf, const char *to, const char *from, bool is_read_only)
{
    size_t mark = dv_pb_begin(buf, 2);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(to));
    dv_pb_add_bytes(buf, 2, dv_str_from_c(from));
    dv_pb_add_number(buf, 3, is_read_only);
    dv_pb_end(buf, mark);
}

static void add_node(struct dv_buf *buf, const char *to, const char *from, const char *permissions)
{
    size_t mark = dv_pb_begin(buf, 3);

    dv_pb_add_bytes(buf, 1, dv_str_from_c(to));
    dv_pb_add_bytes(buf, 2, dv_str_from_c(from));
    dv_pb_add_bytes(buf, 3, dv_str_from_c(permissions));
    dv_pb_end(buf, mark);
}

#define env(buf, name, value) add_pair(buf, 1, name, value)
#define annotation(buf, name, value) add_pair(buf, 4, name, value)
#define cdi(buf, name) add_pair(buf, 5, name, NULL)

static dv_str finish(struct node *node, struct dv_buf *buf)
{
    dv_str bytes = dv_str_copy(dv_buf_str(buf), node->arena);

    dv_buf_clear(buf);
    return bytes;
}

/* -- Merging -------------------------------------------------------------------------------- */

static void the_first_response_wins(void **state)
{
    struct node *node = *state;
    struct dv_device_options options;
    struct dv_buf buf;
    struct dv_err err;
    dv_str responses[2];

    dv_buf_init(&buf, 10000);
    env(&buf, "A", "old");
    env(&buf, "A", "1"); /* a map: the last of one response counts */
    env(&buf, "B", "1");
    add_mount(&buf, "/m", "/host/1", true);
    add_node(&buf, "/dev/d", "/dev/1", "rw");
    add_node(&buf, "/dev/d", "/dev/other", "r"); /* a list: the first counts */
    annotation(&buf, "x.io/a", "1");
    cdi(&buf, "v.io/c=1");
    responses[0] = finish(node, &buf);
    env(&buf, "B", "2");
    env(&buf, "A", "1"); /* the same: no conflict */
    env(&buf, "C", "2");
    add_mount(&buf, "/m", "/host/1", false);
    add_mount(&buf, "/n", "/host/2", false);
    add_node(&buf, "/dev/d", "/dev/1", "r");
    add_node(&buf, "/dev/e", "/dev/2", "mrw");
    annotation(&buf, "x.io/a", "2");
    annotation(&buf, "x.io/b", "2");
    cdi(&buf, "v.io/c=1");
    cdi(&buf, "v.io/c=2");
    responses[1] = finish(node, &buf);
    assert_ok(dv_device_options_merge(responses, 2, node->arena, &options, &err), &err);

    assert_int_equal(options.n_envs, 3);
    assert_str(options.envs[0].value, "1");
    assert_str(options.envs[1].value, "1");
    assert_str(options.envs[2].name, "C");
    assert_int_equal(options.n_mounts, 2);
    assert_true(options.mounts[0].is_read_only);
    assert_str(options.mounts[1].host_path, "/host/2");
    assert_int_equal(options.n_nodes, 2);
    assert_str(options.nodes[0].permissions, "rw");
    assert_str(options.nodes[1].permissions, "mrw");
    assert_int_equal(options.n_annotations, 2);
    assert_str(options.annotations[0].value, "1");
    assert_int_equal(options.n_cdi_names, 2);
    assert_str(options.cdi_names[1], "v.io/c=2");
    assert_int_equal(options.n_conflicts, 3);
    assert_string_equal(options.conflicts[0].part, "device node");
    assert_str(options.conflicts[0].dropped, "/dev/other");
    assert_string_equal(options.conflicts[1].part, "environment variable");
    assert_str(options.conflicts[1].name, "B");
    assert_str(options.conflicts[1].kept, "1");
    assert_string_equal(options.conflicts[2].part, "annotation");
    dv_buf_fini(&buf);
}

static void refuses_what_is_no_response(void **state)
{
    static const dv_str bad[] = {
        DV_STR_INIT("\x0a"),                 /* cut off */
        DV_STR_INIT("\x0a\x03\x0a\x01\xff"), /* a name that is not UTF-8 */
        DV_STR_INIT("\x2a\x04\x0a\x02\xff\xfe"),
        DV_STR_INIT("\xff\xff\xff\xff\xff"),
    };
    static const dv_str good[] = {
        DV_STR_INIT(""),
        DV_STR_INIT("\x9a\x06\x03xyz"),      /* an unknown field */
        DV_STR_INIT("\x0a\x00"),             /* an entry without name and value */
        DV_STR_INIT("\x2a\x03\x12\x01\xff"), /* CDI devices have no second field */
        DV_STR_INIT("\x08\x01"),             /* another wire type */
    };
    struct node *node = *state;
    struct dv_device_options options;
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(bad); i++) {
        assert_false(dv_device_options_merge(&bad[i], 1, node->arena, &options, &err));
        assert_err(&err, DV_INVALID_ARGUMENT, "allocate response");
    }
    for (size_t i = 0; i < DV_COUNT(good); i++)
        assert_ok(dv_device_options_merge(&good[i], 1, node->arena, &options, &err), &err);
}

/* -- Of containers -------------------------------------------------------------------------- */

static bool options_of(struct node *node, const char *pod, struct dv_device_options *options)
{
    return dv_device_container_options(node->state, dv_str_from_c(pod), DV_STR("c"), node->arena,
                                       options);
}

static void options_last_until_the_pod_is_collected(void **state)
{
    struct node *node = *state;
    struct dv_device_options options;
    struct dv_buf buf;
    dv_str response;

    dv_buf_init(&buf, 1000);
    add_node(&buf, "/dev/aaa", "/dev/aaa", "mrw");
    add_mount(&buf, "/container_dir1", "/host_dir1", true);
    env(&buf, "key1", "val1");
    response = finish(node, &buf);
    node_register(node, GPU, "a.sock", "d1 d2");
    node->response = &response;
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_true(options_of(node, "p", &options));
    assert_int_equal(options.n_nodes, 1);
    assert_str(options.mounts[0].container_path, "/container_dir1");
    assert_str(options.envs[0].value, "val1");
    assert_false(options_of(node, "q", &options));
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    (void)dv_device_collect(node->state);
    assert_true(node_start(node, "p", "c", GPU "=2"));
    assert_false(options_of(node, "p", &options));
    node->response = NULL; /* an empty one */
    assert_true(node_allocate(node, "e", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(options_of(node, "e", &options));
    assert_int_equal(options.n_nodes + options.n_envs + options.n_cdi_names, 0);
    dv_buf_fini(&buf);
}

static void resources_are_merged_by_name(void **state)
{
    struct node *node = *state;
    struct dv_device_options options;
    struct dv_buf buf;
    dv_str response;

    dv_buf_init(&buf, 1000);
    node_register(node, "z.io/x", "z.sock", "d1");
    node_register(node, "a.io/x", "a.sock", "d1");
    env(&buf, "WHO", "z");
    response = finish(node, &buf);
    node->response = &response;
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, "z.io/x=1"));
    env(&buf, "WHO", "a");
    response = finish(node, &buf);
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, "z.io/x=1 a.io/x=1"));
    assert_true(options_of(node, "p", &options));
    assert_int_equal(options.n_envs, 1);
    assert_str(options.envs[0].value, "a");
    assert_str(options.conflicts[0].dropped, "z");
    dv_buf_fini(&buf);
}

static void pre_start_gets_exactly_what_is_held(void **state)
{
    struct node *node = *state;

    node->needs_pre_start = true;
    node_register(node, GPU, "a.sock", "d1@0,1 d2@0 d3");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_true(node_start(node, "p", "c", GPU "=2"));
    assert_str(node->pre_started, "d1 d2");
    assert_true(node_start(node, "p", "c", GPU "=2")); /* a restart */
    assert_int_equal(node->n_pre_start, 2);
    node->pre_start_fails = DV_UNAVAILABLE;
    assert_false(node_start(node, "p", "c", GPU "=2"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_PRESTART);
    assert_string_equal(node->err.msg, "device plugin PreStartContainer rpc failed with err: "
                                       "rpc error: code = Unavailable desc = not now");
}

static void a_start_without_record_or_plugin_says_so(void **state)
{
    struct node *node = *state;

    node->needs_pre_start = true;
    node_register(node, GPU, "a.sock", "d1");
    assert_false(node_start(node, "p", "c", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NOTHING_ALLOCATED);
    assert_string_equal(node->err.msg, "no devices found allocated in local cache for pod p, "
                                       "container c, resource " GPU);
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    node_disconnect(node, GPU, "a.sock");
    node->now_ns += 301 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "removed");
    assert_false(node_start(node, "p", "c", GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_ENDPOINT);
    assert_string_equal(node->err.msg,
                        "endpoint not found in cache for a registered resource: " GPU);
}

static void a_start_allocates_what_is_not_recorded(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_start(node, "p", "c", GPU "=1")); /* not active: nothing */
    assert_null(node_held(node, "p", "c", GPU));
    dv_device_activate_pod(node->state, DV_STR("p"));
    assert_true(node_start(node, "p", "c", GPU "=1"));
    assert_string_equal(node_held(node, "p", "c", GPU), "d1");
    assert_true(node_start(node, "p", "c", GPU "=1"));
    assert_int_equal(node->n_allocate, 1);
}

static void plugin_options_are_read(void **state)
{
    struct dv_device_plugin_options options;
    struct dv_err err;

    (void)state;
    assert_ok(dv_device_plugin_options_decode(DV_STR("\x10\x01\x08\x01"), &options, &err), &err);
    assert_true(options.needs_pre_start && options.has_preference);
    assert_ok(dv_device_plugin_options_decode(DV_STR("\x1a\x01x"), &options, &err), &err);
    assert_false(options.needs_pre_start || options.has_preference);
    assert_false(dv_device_plugin_options_decode(DV_STR("\x08"), &options, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "device plugin options: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(the_first_response_wins),
        node_test(refuses_what_is_no_response),
        node_test(options_last_until_the_pod_is_collected),
        node_test(resources_are_merged_by_name),
        node_test(pre_start_gets_exactly_what_is_held),
        node_test(a_start_without_record_or_plugin_says_so),
        node_test(a_start_allocates_what_is_not_recorded),
        cmocka_unit_test(plugin_options_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
