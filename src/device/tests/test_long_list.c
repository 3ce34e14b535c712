/* Long lists, which are read apart from the state: what counts when, and who is told. */
#include "test_device_node.h"

#include "device/device_manager.h"

static struct dv_device_list *begin(struct node *node, const char *resource, const char *devices)
{
    struct dv_device_list *list = dv_device_list_begin(node->state, dv_str_from_c(resource));
    struct dv_err err;

    assert_ok(dv_device_list_read(list, node_list_bytes(node, devices), &err), &err);
    return list;
}

static bool commit(struct node *node, struct dv_device_list *list, struct dv_device_diff *diff)
{
    bool has_changed = dv_device_list_commit(list, node->arena, diff);

    dv_device_list_free(list);
    return has_changed;
}

static const char *told(struct node *node, const struct dv_device_diff *diff)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < diff->n_pods; i++)
        text = dv_str_printf(node->arena, "%.*s%s%.*s", DV_FMT(text), i > 0 ? " " : "",
                             DV_FMT(diff->pods[i]));
    return dv_str_to_c(text, node->arena);
}

static void the_list_before_counts_until_the_new_one_is_complete(void **state)
{
    struct node *node = *state;
    struct dv_device_list *list;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a b");
    list = begin(node, GPU, "b! c d c");
    assert_string_equal(node_capacity(node, GPU), "2/2");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_held(node, "p", "c", GPU), "a");
    assert_true(commit(node, list, &diff));
    assert_string_equal(node_capacity(node, GPU), "3/2");
    assert_int_equal(diff.n_duplicates, 1);
    assert_str(diff.duplicate, "c");
    assert_false(diff.is_back);
    assert_string_equal(node_held(node, "p", "c", GPU), "a"); /* which is listed no more */
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_string_equal(node_held(node, "q", "c", GPU), "c d");
    (void)node_list(node, GPU, "a b c d"); /* a short one after it */
    assert_int_equal(node_info(node, GPU).n_free, 1);
}

static void what_is_taken_while_it_is_read_stays_taken(void **state)
{
    struct node *node = *state;
    struct dv_device_list *list;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a@0 b@1 c");
    list = begin(node, GPU, "c@0 b a@1");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_string_equal(node_held(node, "p", "c", GPU), "a b");
    assert_true(commit(node, list, &diff));
    assert_int_equal(node_info(node, GPU).n_free, 1);
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_string_equal(node_placed(node, "q", "c", GPU), "0:c");
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    (void)dv_device_collect(node->state);
    assert_int_equal(node_info(node, GPU).n_free, 2);
    assert_true(node_allocate(node, "r", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_string_equal(node_placed(node, "r", "c", GPU), "-1:b 1:a");
}

static void what_is_given_back_while_it_is_read_is_free(void **state)
{
    struct node *node = *state;
    struct dv_device_list *list;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a b");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    list = begin(node, GPU, "a");
    dv_device_deactivate_pod(node->state, DV_STR("p"));
    (void)dv_device_collect(node->state);
    assert_true(commit(node, list, &diff));
    assert_int_equal(node_info(node, GPU).n_free, 1);
    assert_string_equal(told(node, &diff), "");
}

static void a_list_that_began_later_and_was_faster_counts(void **state)
{
    struct node *node = *state;
    struct dv_device_list *first, *second, *third;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a");
    first = begin(node, GPU, "a b");
    second = begin(node, GPU, "a b c");
    assert_true(commit(node, second, &diff));
    assert_false(commit(node, first, &diff));
    assert_string_equal(node_capacity(node, GPU), "3/3");
    third = begin(node, GPU, "a b");
    (void)node_list(node, GPU, "");
    assert_false(commit(node, third, &diff));
    assert_string_equal(node_capacity(node, GPU), "0/0");
    first = begin(node, GPU, "a");
    second = begin(node, GPU, "a b"); /* is given up: the one before it counts */
    dv_device_list_abandon(second);
    dv_device_list_free(second);
    assert_true(commit(node, first, &diff));
    assert_string_equal(node_capacity(node, GPU), "1/1");
}

static void one_that_is_refused_changes_nothing(void **state)
{
    struct node *node = *state;
    struct dv_device_list *list = dv_device_list_begin(node->state, DV_STR(GPU));
    struct dv_err err;

    assert_false(dv_device_list_read(list, DV_STR("\n\001\n"), &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "device list of " GPU ": device 0: ");
    dv_device_list_abandon(list);
    dv_device_list_free(list);
    assert_string_equal(node_capacity(node, GPU), "-");
    list = dv_device_list_begin(node->state, DV_STR(GPU)); /* and one that nobody read */
    dv_device_list_abandon(list);
    dv_device_list_free(list);
    assert_string_equal(node_capacity(node, GPU), "-");
}

static void a_resource_whose_plugin_goes_meanwhile_is_forgotten_in_the_end(void **state)
{
    struct node *node = *state;
    struct dv_device_list *list;

    node_connect(node, GPU, "a.sock");
    list = begin(node, GPU, "a b");
    node_disconnect(node, GPU, "a.sock");
    node->now_ns += DV_DEVICE_GRACE_NS + 1;
    assert_string_equal(node_capacity(node, GPU), "removed");
    dv_device_list_abandon(list);
    dv_device_list_free(list);
    assert_string_equal(node_capacity(node, GPU), "-");
}

/* As those_who_hold_what_changed_its_health_are_told of short ones. */
static void holders_of_what_changed_its_health_are_told(void **state)
{
    static const struct {
        const char *devices;
        const char *told;
    } lists[] = {
        {"d1 d2 d3",   ""   },
        {"d1! d2 d3",  "p"  },
        {"d1! d2 d3",  ""   },
        {"d1 d2! d3!", "p q"},
        {"d1 d2!",     ""   },
        {"d1 d2! d3!", "q"  },
        {"d1@0 d2!",   ""   },
    };
    struct node *node = *state;

    node_register(node, GPU, "a.sock", "d1 d2 d3");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_true(node_allocate(node, "q", "c", DV_DEVICE_REGULAR, GPU "=1"));
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct dv_device_diff diff;

        assert_true(commit(node, begin(node, GPU, lists[i].devices), &diff));
        assert_string_equal(told(node, &diff), lists[i].told);
    }
}

static void strictly_one_holder_of_the_id_is_told(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_register(node, NIC, "n.sock", "d1");
    node_register(node, GPU, "a.sock", "d1");
    assert_true(node_allocate(node, "b", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(node_allocate(node, "a", "c", DV_DEVICE_REGULAR, NIC "=1"));
    assert_true(commit(node, begin(node, GPU, "d1!"), &diff));
    assert_string_equal(told(node, &diff), "a");
}

static void a_list_brings_devices_back_after_the_plugin_did(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a b");
    node_disconnect(node, GPU, "a.sock");
    node_connect(node, GPU, "a.sock");
    assert_true(commit(node, begin(node, GPU, "a b"), &diff));
    assert_true(diff.is_back);
    assert_string_equal(node_capacity(node, GPU), "2/2");
}

static void views_come_by_id_whatever_their_nodes_listed_or_held(void **state)
{
    static const char *const ids[] = {"a1", "a2", "a3", "a10"};
    struct node *node = *state;
    const struct dv_device_view *views;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a2");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=1"));
    assert_true(commit(node, begin(node, GPU, "a10@0 a3! a1@1"), &diff));
    assert_int_equal(dv_device_views(node->state, DV_STR(GPU), node->arena, &views), 4);
    for (size_t i = 0; i < DV_COUNT(ids); i++) {
        assert_str(views[i].id, ids[i]);
        assert_int_equal(views[i].n_holders, i == 1);
        assert_int_equal(views[i].is_healthy, i == 0 || i == 3);
    }
}

/* ---- lists that are the last one but for a few devices ---- */

/* What a list changes, when it is compared with the last one as bytes: how many devices; -1 when it
 * has to be read. */
static int apply_same(struct node *node, const char *devices)
{
    struct dv_device_diff diff;

    if (!dv_device_apply_same(node->state, DV_STR(GPU), node_list_bytes(node, devices), node->arena,
                              &diff))
        return -1;
    assert_false(diff.is_back);
    assert_int_equal(diff.n_duplicates, 0);
    return (int)diff.n_changes;
}

static void a_list_of_the_same_devices_is_compared_as_bytes(void **state)
{
    static const struct {
        const char *devices;
        int n_changes;
        const char *capacity;
    } rows[] = {
        {"a b c d",      0,  "4/4"},
        {"a b! c d",     1,  "4/3"},
        {"a b! c d!",    1,  "4/2"},
        {"a! b c! d",    4,  "4/2"},
        {"a@0 b c@1 d@", 3,  "4/4"},
        {"a b c d",      3,  "4/4"},
        {"a b c",        -1, "4/4"},
        {"b c d",        -1, "4/4"},
        {"a c b d",      -1, "4/4"},
        {"a b x d",      -1, "4/4"},
        {"a b c d d",    -1, "4/4"},
        {"x a b c d",    -1, "4/4"},
        {"a a2 b c d",   -1, "4/4"},
        {"",             -1, "4/4"},
        {"a! b! c! d!",  4,  "4/0"},
    };
    struct node *node = *state;

    assert_int_equal(apply_same(node, "a"), -1); /* nothing was listed yet */
    node_register(node, GPU, "a.sock", "a b c d");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        assert_int_equal(apply_same(node, rows[i].devices), rows[i].n_changes);
        assert_string_equal(node_capacity(node, GPU), rows[i].capacity);
    }
}

static void a_list_is_read_where_the_last_one_was_no_plain_list(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a b a");
    assert_int_equal(apply_same(node, "a b a"), -1);
    (void)node_list(node, GPU, "a b");
    assert_int_equal(apply_same(node, "a b!"), 1);
    assert_true(commit(node, begin(node, GPU, "a c"), &diff)); /* its bytes are kept, too */
    assert_int_equal(apply_same(node, "a c!"), 1);
    assert_true(commit(node, begin(node, GPU, "a c a"), &diff));
    assert_int_equal(apply_same(node, "a c a"), -1);
    node_disconnect(node, GPU, "a.sock");
    (void)node_list(node, GPU, "a c");
    node_disconnect(node, GPU, "a.sock");
    node_connect(node, GPU, "b.sock");
    assert_int_equal(apply_same(node, "a c"), -1); /* the first of a plugin brings devices back */
}

static void holders_are_told_of_a_flip_that_was_found_in_bytes(void **state)
{
    struct node *node = *state;
    struct dv_device_diff diff;

    node_register(node, GPU, "a.sock", "a b");
    assert_true(node_allocate(node, "p", "c", DV_DEVICE_REGULAR, GPU "=2"));
    assert_true(dv_device_apply_same(node->state, DV_STR(GPU), node_list_bytes(node, "a b!"),
                                     node->arena, &diff));
    assert_string_equal(told(node, &diff), "p");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        node_test(the_list_before_counts_until_the_new_one_is_complete),
        node_test(what_is_taken_while_it_is_read_stays_taken),
        node_test(what_is_given_back_while_it_is_read_is_free),
        node_test(a_list_that_began_later_and_was_faster_counts),
        node_test(one_that_is_refused_changes_nothing),
        node_test(a_resource_whose_plugin_goes_meanwhile_is_forgotten_in_the_end),
        node_test(holders_of_what_changed_its_health_are_told),
        strict_node_test(strictly_one_holder_of_the_id_is_told),
        node_test(a_list_brings_devices_back_after_the_plugin_did),
        node_test(views_come_by_id_whatever_their_nodes_listed_or_held),
        node_test(a_list_of_the_same_devices_is_compared_as_bytes),
        node_test(a_list_is_read_where_the_last_one_was_no_plain_list),
        node_test(holders_are_told_of_a_flip_that_was_found_in_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
