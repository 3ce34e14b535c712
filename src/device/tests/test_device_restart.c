/* Saving, loading, and what a restart means for pods. */
#include "base/clock.h"
#include "test_device_node.h"

#include "base/buf.h"
#include "base/row.h"

/* -- Codecs --------------------------------------------------------------------------------- */

static void a_record_is_read_as_it_was_written(void **state)
{
    static const dv_str ids[] = {DV_STR_INIT("d1"), DV_STR_INIT(""), DV_STR_INIT("d\0 2")};
    static const struct dv_device_placed placed[] = {
        {-1,        ids,     1},
        {0,         ids,     0},
        {INT64_MAX, ids + 1, 2},
    };
    static const struct dv_device_record record = {
        DV_STR_INIT("pod\0uid"),   DV_STR_INIT(""),
        DV_STR_INIT("\0\xff\x01"), placed,
        DV_COUNT(placed),          DV_STR_INIT("\x0a\x04\x0a\x02ok"),
    };
    struct node *node = *state;
    struct dv_device_record read;
    struct dv_buf key, value;
    struct dv_err err;

    dv_buf_init(&key, 1000);
    dv_buf_init(&value, 1000);
    dv_device_record_encode(&record, &key, &value);
    assert_ok(
        dv_device_record_decode(dv_buf_str(&key), dv_buf_str(&value), node->arena, &read, &err),
        &err);
    assert_true(dv_str_eq(read.pod_uid, record.pod_uid));
    assert_true(dv_str_eq(read.container, record.container));
    assert_true(dv_str_eq(read.resource, record.resource));
    assert_true(dv_str_eq(read.response, record.response));
    assert_int_equal(read.n_placed, DV_COUNT(placed));
    for (size_t i = 0; i < DV_COUNT(placed); i++) {
        assert_int_equal(read.placed[i].node, placed[i].node);
        assert_int_equal(read.placed[i].n_ids, placed[i].n_ids);
        for (size_t k = 0; k < placed[i].n_ids; k++)
            assert_true(dv_str_eq(read.placed[i].ids[k], placed[i].ids[k]));
    }
    dv_buf_fini(&key);
    dv_buf_fini(&value);
}

static void keys_sort_as_their_texts(void **state)
{
    static const dv_str pods[] = {DV_STR_INIT(""),    DV_STR_INIT("\0"),   DV_STR_INIT("\0\0"),
                                  DV_STR_INIT("\0a"), DV_STR_INIT("\x01"), DV_STR_INIT("a"),
                                  DV_STR_INIT("a\0"), DV_STR_INIT("a\0b"), DV_STR_INIT("ab")};
    struct node *node = *state;
    dv_str last = DV_STR_NONE;

    for (size_t i = 0; i < DV_COUNT(pods); i++) {
        struct dv_device_record record = {.pod_uid = pods[i], .container = DV_STR("c")};
        struct dv_buf key, value;

        dv_buf_init(&key, 1000);
        dv_buf_init(&value, 1000);
        dv_device_record_encode(&record, &key, &value);
        if (dv_str_cmp(last, dv_buf_str(&key)) >= 0)
            fail_msg("case %zu", i);
        last = dv_str_copy(dv_buf_str(&key), node->arena);
        dv_buf_fini(&key);
        dv_buf_fini(&value);
    }
}

static void refuses_damaged_records(void **state)
{
    static const struct {
        dv_str key, value;
        enum dv_code code;
        const char *text;
    } cases[] = {
        {DV_STR_INIT(""),                     DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "of another kind"   },
        {DV_STR_INIT("x"),                    DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "of another kind"   },
        {DV_STR_INIT("ap\0\x01"),             DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "the key is cut off"},
        {DV_STR_INIT("ap\0\x02"),             DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "the key is cut off"},
        {DV_STR_INIT("a\0\x01\0\x01\0\x01x"), DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "goes on"           },
        {DV_STR_INIT("a\0\x01\0\x01\0\x01"),  DV_STR_INIT(""),                 DV_DATA_LOSS,     "the value is empty"},
        {DV_STR_INIT("a\0\x01\0\x01\0\x01"),  DV_STR_INIT("\x02"),             DV_UNIMPLEMENTED,
         "of version 2, known is 1"                                                                                  },
        {DV_STR_INIT("a\0\x01\0\x01\0\x01"),  DV_STR_INIT("\x01\x0a\x05"),     DV_DATA_LOSS,     "longer"            },
        {DV_STR_INIT("a\0\x01\0\x01\0\x01"),  DV_STR_INIT("\x01\x12\x01\xff"), DV_DATA_LOSS,
         "allocate response"                                                                                         },
        {DV_STR_INIT("rp"),                   DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "the key is cut off"},
        {DV_STR_INIT("rp\0\x01z"),            DV_STR_INIT("\x01"),             DV_DATA_LOSS,     "goes on"           },
        {DV_STR_INIT("rp\0\x01"),             DV_STR_INIT("\x07"),             DV_UNIMPLEMENTED, "of version 7"      },
    };
    struct node *node = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_device_resource_info *infos;
        struct dv_err err;

        assert_false(dv_device_load(node->state, cases[i].key, cases[i].value, 1, &err));
        assert_err(&err, cases[i].code, cases[i].text);
        assert_int_equal(dv_device_resources(node->state, node->arena, &infos), 0);
    }
}

/* -- Writes --------------------------------------------------------------------------------- */

static size_t count_writes(struct node *node, size_t *n_removed)
{
    const struct dv_row_change *writes;
    size_t n = dv_device_take_changes(node->state, node->arena, &writes);

    *n_removed = 0;
    for (size_t i = 0; i < n; i++)
        *n_removed += writes[i].value.n == 0;
    return n - *n_removed;
}

static void exactly_what_changed_is_written(void **state)
{
    struct node *node = *state;
    size_t n_removed;

    node_register(node, GPU, "a.sock", "d1 d2 d3");
    assert_int_equal(count_writes(node, &n_removed), 1); /* the resource */
    assert_int_equal(count_writes(node, &n_removed), 0);
    (void)node_list(node, GPU, "d1 d2! d3");
    assert_int_equal(count_writes(node, &n_removed), 0);
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_int_equal(count_writes(node, &n_removed), 2);
    assert_int_equal(n_removed, 0);
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    assert_int_equal(count_writes(node, &n_removed), 0);
    assert_int_equal(dv_device_collect(node->state), 1);
    assert_int_equal(count_writes(node, &n_removed), 0);
    assert_int_equal(n_removed, 1);
    assert_true(node_allocate(node, "r", "c", DV_DEVICE_REGULAR, GPU "=1"));
    dv_device_deactivate_pod(node->state, DV_STR("r"));
    (void)dv_device_collect(node->state);
    assert_int_equal(count_writes(node, &n_removed), 0); /* came and went in between */
    assert_int_equal(n_removed, 0);
    node_disconnect(node, GPU, "a.sock");
    node->now_ns += 301 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "removed");
    assert_int_equal(count_writes(node, &n_removed), 0);
    assert_int_equal(n_removed, 1);
}

static void a_restart_loses_nothing(void **state)
{
    struct node *node = *state;
    size_t n_removed;

    node_register(node, GPU, "a.sock", "d1@0 d2@0,1 d3");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=3"));
    node_restart(node);
    assert_int_equal(count_writes(node, &n_removed), 0);
    assert_string_equal(node_placed(node, "p", "c", GPU), "-1:d3 0:d1,d2 1:d2");
    assert_int_equal(node_info(node, GPU).n_allocated, 3);
    assert_true(node_info(node, GPU).is_known);
    assert_int_equal(node_info(node, GPU).plugin, DV_DEVICE_STOPPED);
    assert_string_equal(node_capacity(node, GPU), "0/0");
    node_register(node, GPU, "b.sock", "d1@0 d2@0,1 d3 d4");
    assert_string_equal(node_capacity(node, GPU), "4/4");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=3"));
    assert_int_equal(node->n_allocate, 1);
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "q", "c", GPU), "d4");
}

static void a_resource_whose_plugin_stays_away_is_dropped_after_a_restart(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    node_restart(node);
    node->now_ns += 300 * DV_NS_PER_S;
    assert_string_equal(node_capacity(node, GPU), "0/0");
    node->now_ns += 1;
    assert_string_equal(node_capacity(node, GPU), "removed");
}

static void a_running_container_is_left_alone_until_sources_are_ready(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    node_restart(node);
    assert_false(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_HEALTHY_DEVICES);
    dv_device_add_running(node->state, DV_STR("p"), DV_STR("c"));
    dv_device_add_running(node->state, DV_STR("p"), DV_STR("c"));
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_false(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_CHANGED_REQUEST);
    dv_device_set_sources_ready(node->state, true);
    assert_false(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_NO_HEALTHY_DEVICES);
}

static void a_pod_deleted_meanwhile_gives_back_its_devices(void **state)
{
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    node_restart(node);
    node_register(node, GPU, "a.sock", "d1");
    assert_false(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    dv_device_set_sources_ready(node->state, true);
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_null(node_held(node, "p", "c", GPU));
}

static void amounts_are_raised_to_what_is_allocated(void **state)
{
    static const struct dv_device_amount amounts[] = {
        {DV_STR_INIT("cpu"), 4},
        {DV_STR_INIT(GPU),   1},
        {DV_STR_INIT(NIC),   9},
    };
    struct node *node = *state;
    const struct dv_device_amount *raised;

    node_register(node, GPU, "a.sock", "d1 d2");
    node_register(node, NIC, "n.sock", "n1");
    node_register(node, "x.io/x", "x.sock", "x1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2 " NIC "=1 x.io/x=1"));
    assert_int_equal(
        dv_device_raise_amounts(node->state, DV_STR("p"), amounts, 3, node->arena, &raised), 4);
    assert_int_equal(raised[0].amount, 4);
    assert_int_equal(raised[1].amount, 2);
    assert_int_equal(raised[2].amount, 9);
    assert_str(raised[3].resource, "x.io/x");
    assert_int_equal(raised[3].amount, 1);
    assert_int_equal(
        dv_device_raise_amounts(node->state, DV_STR("stranger"), amounts, 3, node->arena, &raised),
        3);
    assert_int_equal(raised[1].amount, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(a_record_is_read_as_it_was_written),
        node_test(keys_sort_as_their_texts),
        node_test(refuses_damaged_records),
        node_test(exactly_what_changed_is_written),
        node_test(a_restart_loses_nothing),
        node_test(a_resource_whose_plugin_stays_away_is_dropped_after_a_restart),
        node_test(a_running_container_is_left_alone_until_sources_are_ready),
        node_test(a_pod_deleted_meanwhile_gives_back_its_devices),
        node_test(amounts_are_raised_to_what_is_allocated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
