/* Lists of devices: what changes, who is told, what is refused. */
#include "test_device_node.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "pb/pb.h"
#include "topology/topology.h"

static void a_list_tells_what_changed(void **state)
{
    static const struct {
        const char *devices;
        const char *changes; /* id, + added, - removed, ~ flipped, @ moved */
    } lists[] = {
        {"a b c@0",      "a+ b+ c+"},
        {"a b c@0",      ""        },
        {"c@0 b a",      ""        },
        {"a b! c@0",     "b~"      },
        {"a b! c@1",     "c@"      },
        {"a b c@0,1",    "b~ c@"   },
        {"a b c@0,1 d@", "d+"      },
        {"a d",          "d@ c- b-"}, /* removed ones come last, in order of choice
  */
        {"a! a",         "d-"      },
        {"a! a a!",      "a~"      },
        {"",             "a-"      },
    };
    struct node *node = *state;

    node_connect(node, GPU, "a.sock");
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct dv_device_diff diff = node_list(node, GPU, lists[i].devices);
        struct dv_buf buf;

        dv_buf_init(&buf, 1000);
        for (size_t k = 0; k < diff.n_changes; k++)
            dv_buf_printf(&buf, "%s%.*s%s%s%s%s", k > 0 ? " " : "", DV_FMT(diff.changes[k].id),
                          diff.changes[k].what & DV_DEVICE_ADDED ? "+" : "",
                          diff.changes[k].what & DV_DEVICE_REMOVED ? "-" : "",
                          diff.changes[k].what & DV_DEVICE_FLIPPED ? "~" : "",
                          diff.changes[k].what & DV_DEVICE_MOVED ? "@" : "");
        assert_str(dv_buf_str(&buf), lists[i].changes);
        dv_buf_fini(&buf);
    }
}

static void those_who_hold_what_changed_its_health_are_told(void **state)
{
    static const struct {
        const char *devices;
        const char *told;
    } lists[] = {
        {"d1 d2 d3",   ""   },
        {"d1! d2 d3",  "p"  },
        {"d1! d2 d3",  ""   },
        {"d1 d2! d3!", "p q"},
        {"d1 d2!",     ""   }, /* one that vanishes is not told */
        {"d1 d2! d3!", "q"  }, /* one that comes back is */
        {"d1@0 d2!",   ""   },
    };
    struct node *node = *state;

    node_register(node, NIC, "n.sock", "d1 d2 d3");
    node_register(node, GPU, "a.sock", "d1 d2 d3");
    assert_true(node_allocate(node, "other", "c", DV_DEVICE_REGULAR, NIC "=3"));
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct dv_device_diff diff = node_list(node, GPU, lists[i].devices);
        struct dv_buf buf;

        dv_buf_init(&buf, 1000);
        for (size_t k = 0; k < diff.n_pods; k++)
            dv_buf_printf(&buf, "%s%.*s", k > 0 ? " " : "", DV_FMT(diff.pods[k]));
        assert_str(dv_buf_str(&buf), lists[i].told);
        dv_buf_fini(&buf);
    }
}

static void strictly_one_holder_of_the_id_is_told_whatever_its_resource(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_register(node, NIC, "n.sock", "d1");
    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "b", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "a", "c", DV_DEVICE_REGULAR, NIC "=1"));
    diff = node_list(node, GPU, "d1!");
    assert_int_equal(diff.n_pods, 1);
    assert_str(diff.pods[0], "a");
}

static void status_has_the_health_of_each_device(void **state)
{
    struct node *node = *state;
    const struct dv_device_status *statuses;

    node_register(node, GPU, "a.sock", "dev1 dev2 dev3");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=3"));
    (void)node_list(node, GPU, "dev1 dev2!");
    assert_int_equal(
        dv_device_status(node->state, DV_STR("p"), DV_STR("c"), node->arena, &statuses), 1);
    assert_str(statuses[0].resource, GPU);
    assert_int_equal(statuses[0].n_ids, 3);
    assert_str(statuses[0].ids[0], "dev1");
    assert_true(statuses[0].is_healthy[0]);
    assert_str(statuses[0].ids[1], "dev2");
    assert_false(statuses[0].is_healthy[1]);
    assert_true(statuses[0].is_healthy[2]); /* nothing is known of it */
    node_disconnect(node, GPU, "a.sock");   /* says nothing about their health */
    (void)dv_device_status(node->state, DV_STR("p"), DV_STR("c"), node->arena, &statuses);
    assert_true(statuses[0].is_healthy[0]);
    assert_int_equal(
        dv_device_status(node->state, DV_STR("p"), DV_STR("x"), node->arena, &statuses), 0);
}

/* -- Bad lists ------------------------------------------------------------------------------ */

static void add_id(struct dv_buf *buf, dv_str id)
{
    size_t mark = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 1, id);
    dv_pb_end(buf, mark);
}

static void refuse(struct node *node, struct dv_buf *bytes, enum dv_code code, const char *text)
{
    struct dv_device_diff diff;
    struct dv_err err;

    assert_false(dv_device_apply_list(node->state, DV_STR(GPU), dv_buf_str(bytes), node->arena,
                                      &diff, &err));
    assert_err(&err, code, text);
    assert_string_equal(node_capacity(node, GPU), "3/2"); /* nothing has changed */
    assert_int_equal(node_list(node, GPU, "d1 d2 d3!").n_changes, 0);
    dv_buf_clear(bytes);
}

static void refuses_a_bad_list_as_a_whole(void **state)
{
    static char long_id[DV_DEVICE_ID_BYTES_MAX + 1];
    struct node *node = *state;
    struct dv_buf buf;
    size_t device, topology;

    memset(long_id, 'x', sizeof(long_id));
    dv_buf_init(&buf, DV_DEVICE_LIST_BYTES_MAX + 1000);
    node_register(node, GPU, "a.sock", "d1 d2 d3!");

    add_id(&buf, DV_STR("new"));
    add_id(&buf, DV_STR(""));
    refuse(node, &buf, DV_INVALID_ARGUMENT,
           "device list of vendor.io/gpu: device 1: the id is empty");
    add_id(&buf, (dv_str){long_id, sizeof(long_id)});
    refuse(node, &buf, DV_RESOURCE_EXHAUSTED, "device 0: an id of 1025 bytes");
    add_id(&buf, DV_STR("\xff"));
    refuse(node, &buf, DV_INVALID_ARGUMENT, "device 0: id: ");
    add_id(&buf, DV_STR("d1"));
    dv_buf_add(&buf, DV_STR("\x0a\x05\x0a"));
    refuse(node, &buf, DV_INVALID_ARGUMENT, "longer than what contains it");

    device = dv_pb_begin(&buf, 1);
    dv_pb_add_bytes(&buf, 1, DV_STR("d1"));
    topology = dv_pb_begin(&buf, 3);
    for (unsigned i = 0; i <= DV_NUMA_NODES_MAX; i++)
        dv_pb_add_bytes(&buf, 1, DV_STR(""));
    dv_pb_end(&buf, topology);
    dv_pb_end(&buf, device);
    refuse(node, &buf, DV_RESOURCE_EXHAUSTED, "device 0: topology: more than 1024 nodes");

    (void)dv_buf_extend(&buf, DV_DEVICE_LIST_BYTES_MAX + 1);
    refuse(node, &buf, DV_RESOURCE_EXHAUSTED, "67108865 bytes, where 67108864 are allowed");
    dv_buf_fini(&buf);
}

static void an_empty_device_in_a_list_of_20_mb_is_found_at_once(void **state)
{
    struct node *node = *state;
    struct dv_buf buf;
    char *bytes;

    node_register(node, GPU, "a.sock", "d1 d2 d3!");
    dv_buf_init(&buf, DV_DEVICE_LIST_BYTES_MAX);
    bytes = dv_buf_extend(&buf, 20 * 1000 * 1000);
    for (size_t i = 0; i < buf.n; i += 2) {
        bytes[i] = 0x0a; /* a device, of no bytes */
        bytes[i + 1] = 0;
    }
    refuse(node, &buf, DV_INVALID_ARGUMENT, "device 0: the id is empty");
    dv_buf_fini(&buf);
}

static void a_list_says_how_often_ids_come_twice(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_connect(node, GPU, "a.sock");
    diff = node_list(node, GPU, "a b a@1 b a");
    assert_int_equal(diff.n_duplicates, 3);
    assert_str(diff.duplicate, "a");
    assert_int_equal(diff.n_changes, 2);
    assert_string_equal(node_capacity(node, GPU), "2/2");
}

static void any_other_health_is_unhealthy(void **state)
{
    static const char *const healths[] = {"", "healthy", "HEALTHY", "Healthy ", "Unknown"};
    struct node *node = *state;
    struct dv_device_diff diff;
    struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, 1000);
    for (size_t i = 0; i < DV_COUNT(healths); i++) {
        size_t mark = dv_pb_begin(&buf, 1);
        char id[] = {(char)('a' + i), '\0'};

        dv_pb_add_bytes(&buf, 1, dv_str_from_c(id));
        dv_pb_add_bytes(&buf, 2, dv_str_from_c(healths[i]));
        dv_pb_end(&buf, mark);
    }
    node_connect(node, GPU, "a.sock");
    assert_ok(
        dv_device_apply_list(node->state, DV_STR(GPU), dv_buf_str(&buf), node->arena, &diff, &err),
        &err);
    assert_string_equal(node_capacity(node, GPU), "5/0");
    dv_buf_fini(&buf);
}

/* An entry that begins as in the last list is read whole all the same: the last of each field
 * counts, and what cannot be read is refused. */
static void what_follows_a_known_beginning_counts(void **state)
{
    static const struct {
        const char *then; /* behind the id and the health */
        size_t n_then;
        const char *capacity; /* NULL: the list is refused */
    } cases[] = {
        {"",                  0,  "1/1"},
        {"\x12\x09Unhealthy", 11, "1/0"},
        {"",                  0,  "1/1"},
        {"\x0a\x01z",         3,  "1/1"},
        {"\x0a\x01\x01",      3,  NULL },
        {"\x1a\x04\x0a\x02",  4,  NULL },
        {"\x1a\x02\x0a\x00",  4,  "1/1"},
        {"\x22\x01x",         3,  "1/1"},
    };
    struct node *node = *state;

    node_connect(node, GPU, "a.sock");
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        struct dv_device_diff diff;
        struct dv_err err;
        size_t mark;
        bool is_taken;

        dv_buf_init(&buf, 1000);
        mark = dv_pb_begin(&buf, 1);
        dv_pb_add_bytes(&buf, 1, DV_STR("d"));
        dv_pb_add_bytes(&buf, 2, DV_STR("Healthy"));
        dv_buf_add(&buf, (dv_str){cases[i].then, cases[i].n_then});
        dv_pb_end(&buf, mark);
        is_taken = dv_device_apply_list(node->state, DV_STR(GPU), dv_buf_str(&buf), node->arena,
                                        &diff, &err);
        assert_int_equal(is_taken, cases[i].capacity != NULL);
        if (is_taken)
            assert_string_equal(node_capacity(node, GPU), cases[i].capacity);
    }
}

/* Many devices, so that free ones are on all levels of the set. */
static void a_long_list_is_chosen_from_in_natural_order(void **state)
{
    enum { N = 5000 };
    struct node *node = *state;
    struct dv_device_diff diff;
    struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, 1 << 20);
    for (unsigned i = 0; i < N; i++) {
        size_t mark = dv_pb_begin(&buf, 1);
        char id[32];

        (void)snprintf(id, sizeof(id), "d%u", (i * 7919) % N);
        dv_pb_add_bytes(&buf, 1, dv_str_from_c(id));
        dv_pb_add_bytes(&buf, 2, DV_STR("Healthy"));
        dv_pb_end(&buf, mark);
    }
    node_connect(node, GPU, "a.sock");
    assert_ok(
        dv_device_apply_list(node->state, DV_STR(GPU), dv_buf_str(&buf), node->arena, &diff, &err),
        &err);
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=12"));
    assert_string_equal(node_held(node, "p", "c", GPU), "d0 d1 d10 d11 d2 d3 d4 d5 d6 d7 d8 d9");
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=4986"));
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_true(node_allocate(node, "r", "c", DV_DEVICE_REGULAR, GPU "=13"));
    assert_string_equal(node_held(node, "r", "c", GPU),
                        "d0 d1 d10 d11 d2 d3 d4 d4998 d5 d6 d7 d8 d9");
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(a_list_tells_what_changed),
        node_test(those_who_hold_what_changed_its_health_are_told),
        strict_node_test(strictly_one_holder_of_the_id_is_told_whatever_its_resource),
        node_test(status_has_the_health_of_each_device),
        node_test(refuses_a_bad_list_as_a_whole),
        node_test(an_empty_device_in_a_list_of_20_mb_is_found_at_once),
        node_test(a_list_says_how_often_ids_come_twice),
        node_test(any_other_health_is_unhealthy),
        node_test(what_follows_a_known_beginning_counts),
        node_test(a_long_list_is_chosen_from_in_natural_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
