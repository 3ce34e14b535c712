/* Slices in the API: made, followed, put right. */
#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "lib/tests/test_dra_node.h"
#include "resource/prepare.h"
#include "resource/resource.h"

#define DEVICES_MAX 400u

/* Publishes pools of devices: "p a,b" or "p a,b*|q c"; '*': tainted; "p #300": so many. */
static bool try_publish(struct dra_node *test, const char *text, struct davit_error *error)
{
    static const struct davit_dra_taint taint = {.key = "example.com/k", .effect = "NoSchedule"};
    struct dv_arena *arena = test->node->arena;
    struct davit_dra_pool *pools = DV_NEW_ARRAY(arena, struct davit_dra_pool, 4);
    dv_str rest = dv_str_from_c(text);
    size_t n_pools = 0;
    dv_str piece;

    while (rest.n > 0 && dv_str_split(&rest, '|', &piece)) {
        struct davit_dra_device *devices =
            DV_NEW_ARRAY(arena, struct davit_dra_device, DEVICES_MAX);
        struct davit_dra_pool *pool = &pools[n_pools++];
        dv_str name;

        assert_true(dv_str_split(&piece, ' ', &name));
        pool->name = dv_str_to_c(name, arena);
        pool->devices = devices;
        if (piece.n > 0 && piece.p[0] == '#') {
            pool->n_devices = (size_t)strtoul(piece.p + 1, NULL, 10);
            for (size_t i = 0; i < pool->n_devices; i++)
                devices[i].name = dv_str_printf(arena, "d%zu", i).p;
            continue;
        }
        while (piece.n > 0 && dv_str_split(&piece, ',', &name)) {
            struct davit_dra_device *device = &devices[pool->n_devices++];

            device->n_taints = dv_str_ends_with(name, DV_STR("*"));
            device->taints = &taint;
            device->name = dv_str_to_c(dv_str_slice(name, 0, name.n - device->n_taints), arena);
        }
    }
    return davit_dra_publish(test->dra, pools, n_pools, error);
}

static void publish(struct dra_node *test, const char *text)
{
    struct davit_error error;

    if (!try_publish(test, text, &error))
        fail_msg("%s: %s", text, error.message);
}

static int start(void **state)
{
    struct dra_node *test;

    assert_int_equal(dra_node_start(state), 0);
    test = *state;
    test->options.flags = DAVIT_DRA_PUBLISH_ONLY;
    dra_open(test);
    return 0;
}

static void assert_counts(struct dra_node *test, uint64_t created, uint64_t updated,
                          uint64_t deleted)
{
    struct davit_dra_counts counts = davit_dra_count(test->dra);

    assert_int_equal(counts.n_created, created);
    assert_int_equal(counts.n_updated, updated);
    assert_int_equal(counts.n_deleted, deleted);
}

static void a_pool_becomes_a_slice_of_the_node(void **state)
{
    struct dra_node *test = *state;
    const struct dv_api_resource_slice *slice;
    const struct dv_api_owner_reference *owner;

    publish(test, "p a,b");
    wait_dra_events(test, "published p;");
    assert_str(list_slices(test), "00000 1/1 a,b; ");
    slice = nth_slice(test, 0)->value;
    assert_true(
        dv_str_starts_with(slice->metadata.name, DV_STR("00000-" TEST_DRIVER "-" TEST_NODE "-")));
    assert_str(slice->spec.driver, TEST_DRIVER);
    assert_str(slice->spec.node_name, TEST_NODE);
    assert_int_equal(slice->metadata.n_owner_references, 1);
    owner = &slice->metadata.owner_references[0];
    assert_str(owner->api_version, "v1");
    assert_str(owner->kind, "Node");
    assert_str(owner->name, TEST_NODE);
    assert_true(owner->uid.n > 0 && *owner->controller);
    assert_counts(test, 1, 0, 0);
}

static void nothing_is_written_while_nothing_changes(void **state)
{
    struct dra_node *test = *state;

    publish(test, "p a*,b");
    wait_dra_events(test, "published p;");
    for (int i = 0; i < 10; i++)
        dra_advance(test, 20000);
    publish(test, "p a*,b"); /* the server has given the taint its time */
    wait_dra_events(test, "published p;published p;");
    assert_counts(test, 1, 0, 0);
}

static void slices_follow_what_is_wanted(void **state)
{
    static const struct {
        const char *wanted;
        const char *slices;
        uint64_t created, updated, deleted; /* in all */
    } rows[] = {
        {"p a",     "00000 1/1 a; ",                                                        1, 0, 0},
        {"p a,b",   "00000 1/1 a,b; ",                                                      1, 1, 0},
        {"p a,b*",  "00000 1/1 a,b*; ",                                                     1, 2, 0},
        {"p #129",  "00000 2/2 128 devices; 00001 2/2 d128; ",                              2, 3, 0},
        {"p #300",  "00000 3/3 128 devices; 00001 3/3 128 devices; 00002 3/3 44 devices; ", 3, 5, 0},
        {"p #130",  "00000 4/2 128 devices; 00001 4/2 d128,d129; ",                         3, 7, 1},
        {"p a",     "00000 4/1 a; ",                                                        3, 8, 2},
        {"p ",      "00000 4/1 ; ",                                                         3, 9, 2}, /* a pool without devices is one */
        {"",        "",                                                                     3, 9, 3},
        {"p a|q b", "00000 1/1 a; 00000 1/1 b; ",                                           5, 9, 3},
        {"q b",     "00000 1/1 b; ",                                                        5, 9, 4},
    };
    struct dra_node *test = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        publish(test, rows[i].wanted);
        wait_slices(test, rows[i].slices);
        dra_settle(test);
        assert_counts(test, rows[i].created, rows[i].updated, rows[i].deleted);
    }
}

static void a_slice_that_others_delete_comes_back(void **state)
{
    struct dra_node *test = *state;

    publish(test, "p a");
    wait_slices(test, "00000 1/1 a; ");
    dra_settle(test);
    dra_advance(test, 100000);
    api_delete(test, "resourceslices", "",
               dv_str_to_c(nth_slice(test, 0)->meta->name, test->node->arena));
    dra_settle(test);
    dra_advance(test, 29999);
    assert_str(list_slices(test), "");
    dra_advance(test, 1);
    wait_slices(test, "00000 1/1 a; ");
}

static void a_slice_that_others_change_is_put_right(void **state)
{
    struct dra_node *test = *state;
    const char *name;

    publish(test, "p a,b");
    wait_slices(test, "00000 1/1 a,b; ");
    dra_settle(test);
    name = dv_str_to_c(nth_slice(test, 0)->meta->name, test->node->arena);
    api_update(test, "resourceslices", name,
               dv_str_printf(test->node->arena,
                             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"" TEST_DRIVER
                             "\",\"nodeName\":\"" TEST_NODE "\",\"pool\":{\"name\":\"p\","
                             "\"generation\":1,\"resourceSliceCount\":1},\"devices\":[{"
                             "\"name\":\"bad\"}]}}",
                             name)
                   .p);
    wait_slices(test, "00000 1/1 bad; ");
    dra_settle(test);
    dra_advance(test, 30000);
    wait_slices(test, "00000 1/1 a,b; ");
}

static void slices_of_before_are_taken_over_or_removed(void **state)
{
    struct dra_node *test = *state;
    static const char *const specs[] = {
        "00000-" TEST_DRIVER "-" TEST_NODE "-aaaaa\"},\"spec\":{\"pool\":{\"name\":\"p\",",
        "old-" TEST_DRIVER "-bbbbb\"},\"spec\":{\"pool\":{\"name\":\"p\",",
        "00000-" TEST_DRIVER "-" TEST_NODE "-ccccc\"},\"spec\":{\"pool\":{\"name\":\"unwanted\",",
    };

    for (size_t i = 0; i < DV_COUNT(specs); i++)
        (void)api_create(test, "resourceslices", "",
                         dv_str_printf(test->node->arena,
                                       "{\"metadata\":{\"name\":\"%s\"generation\":5,"
                                       "\"resourceSliceCount\":1},\"driver\":\"" TEST_DRIVER
                                       "\",\"nodeName\":\"" TEST_NODE "\",\"devices\":[{\"name\":"
                                       "\"a\"}]}}",
                                       specs[i])
                             .p);
    publish(test, "p a");
    wait_dra_events(test, "published p;");
    assert_counts(test, 0, 0, 1); /* the one with a random name */
    dra_advance(test, 30000);
    wait_slices(test, "00000 5/1 a; ");
    assert_counts(test, 0, 0, 2);
}

static void slices_of_others_are_left_alone(void **state)
{
    struct dra_node *test = *state;

    (void)api_create(test, "resourceslices", "",
                     "{\"metadata\":{\"name\":\"other-driver\"},\"spec\":{\"driver\":"
                     "\"x.example.com\",\"nodeName\":\"" TEST_NODE "\",\"pool\":{\"name\":\"p\","
                     "\"generation\":1,\"resourceSliceCount\":1}}}");
    (void)api_create(test, "resourceslices", "",
                     "{\"metadata\":{\"name\":\"other-node\"},\"spec\":{\"driver\":\"" TEST_DRIVER
                     "\",\"nodeName\":\"node-2\",\"pool\":{\"name\":\"p\",\"generation\":1,"
                     "\"resourceSliceCount\":1}}}");
    publish(test, "p a");
    wait_slices(test, "00000 1/1 a; other 1/1 ; other 1/1 ; ");
    dra_advance(test, 100000);
    publish(test, "");
    wait_slices(test, "other 1/1 ; other 1/1 ; ");
    dra_advance(test, 100000);
    assert_str(list_slices(test), "other 1/1 ; other 1/1 ; ");
}

static void only_one_pool_may_be_ours(void **state)
{
    struct dra_node *test = *state;
    struct davit_error error;

    dra_close(test);
    test->options.only_pool = "p";
    dra_open(test);
    (void)api_create(test, "resourceslices", "",
                     "{\"metadata\":{\"name\":\"other-pool\"},\"spec\":{\"driver\":\"" TEST_DRIVER
                     "\",\"nodeName\":\"" TEST_NODE "\",\"pool\":{\"name\":\"q\",\"generation\":1,"
                     "\"resourceSliceCount\":1}}}");
    publish(test, "p a");
    wait_slices(test, "00000 1/1 a; other 1/1 ; ");
    dra_advance(test, 100000);
    assert_str(list_slices(test), "00000 1/1 a; other 1/1 ; ");
    assert_false(try_publish(test, "q a", &error));
    assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
}

static void pools_of_no_node_are_published_without_one(void **state)
{
    struct dra_node *test = *state;
    static const struct davit_dra_owner owner = {"v1", "Pod", "driver", "u-1"};
    static const struct davit_dra_device device = {.name = "a"};
    struct davit_dra_pool pool = {
        .name = "net", .place = DAVIT_DRA_ALL_NODES, .devices = &device, .n_devices = 1};
    const struct dv_api_resource_slice *slice;
    struct davit_error error;

    assert_false(davit_dra_publish(test->dra, &pool, 1, &error)); /* not of this node */
    assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
    dra_close(test);
    test->options.node = NULL;
    test->options.owner = &owner;
    dra_open(test);
    assert_true(davit_dra_publish(test->dra, &pool, 1, &error));
    wait_dra_events(test, "published net;");
    slice = nth_slice(test, 0)->value;
    assert_true(slice->spec.all_nodes && *slice->spec.all_nodes);
    assert_true(dv_str_starts_with(slice->metadata.name, DV_STR("00000-" TEST_DRIVER "-driver-")));
    assert_str(slice->metadata.owner_references[0].kind, "Pod");
    dra_advance(test, 100000);
    assert_counts(test, 1, 0, 0);
    assert_true(davit_dra_publish(test->dra, NULL, 0, &error));
    wait_slices(test, "");
}

static void a_node_that_is_not_there_yet_is_waited_for(void **state)
{
    struct dra_node *test = *state;

    dra_close(test);
    test->options.node = "node-3";
    dra_open(test);
    publish(test, "p a");
    wait_dra_events(test, "problem NOT_FOUND;");
    assert_true(test->retry_ms >= 800 && test->retry_ms <= 1200);
    (void)api_create(test, "nodes", "", "{\"metadata\":{\"name\":\"node-3\"}}");
    dra_advance(test, 1200);
    wait_slices(test, "00000 1/1 a; ");
}

/* With the node go its slices, and whatever is made in its name: nothing is made before there is
 * another one, and that is the owner then. */
static void a_node_that_is_deleted_takes_its_slices_along(void **state)
{
    struct dra_node *test = *state;
    const struct dv_object *node;
    const struct dv_object *slice;

    dra_close(test);
    test->options.node = "node-3";
    (void)api_create(test, "nodes", "", "{\"metadata\":{\"name\":\"node-3\"}}");
    dra_open(test);
    publish(test, "p a");
    wait_slices(test, "00000 1/1 a; ");
    dra_settle(test);
    dra_advance(test, 100000);
    api_delete(test, "nodes", "", "node-3");
    wait_slices(test, "");
    for (int i = 0; i < 60; i++) {
        dra_advance(test, 10000);
        dra_settle(test);
    }
    assert_str(list_slices(test), "");
    assert_true(test->retry_ms >= 48000); /* it asks less and less often */
    assert_counts(test, 1, 0, 0);
    node = api_create(test, "nodes", "", "{\"metadata\":{\"name\":\"node-3\"}}");
    for (int i = 0; i < 12 && list_slices(test).n == 0; i++) {
        dra_advance(test, 10000);
        dra_settle(test);
    }
    wait_slices(test, "00000 1/1 a; ");
    slice = nth_slice(test, 0);
    assert_int_equal(slice->meta->n_owner_references, 1);
    assert_true(dv_str_eq(slice->meta->owner_references[0].uid, node->meta->uid));
}

static void what_the_server_refuses_is_tried_again_with_growing_pauses(void **state)
{
    struct dra_node *test = *state;

    publish(test, "p UPPER");
    wait_dra_events(test, "problem p INVALID_ARGUMENT;");
    assert_true(test->retry_ms >= 800 && test->retry_ms <= 1200);
    assert_non_null(strstr(test->error.message, "pool p: creating a slice: "));
    dra_advance(test, 1200);
    wait_dra_events(test, "problem p INVALID_ARGUMENT;problem p INVALID_ARGUMENT;");
    assert_true(test->retry_ms >= 1600 && test->retry_ms <= 2400);
    publish(test, "p a"); /* at once */
    wait_slices(test, "00000 1/1 a; ");
    assert_int_equal(davit_dra_count(test->dra).n_failed, 2);
}

static int start_without_taints(void **state)
{
    struct dra_node *test;

    assert_int_equal(
        dra_node_start_with(state, DV_GATES_DEFAULT & ~(unsigned)DV_GATE_DEVICE_TAINTS), 0);
    test = *state;
    test->options.flags = DAVIT_DRA_PUBLISH_ONLY;
    dra_open(test);
    return 0;
}

static void what_the_server_drops_is_told_once_and_not_sent_again(void **state)
{
    struct dra_node *test = *state;

    publish(test, "p a*,b");
    wait_dra_events(test, "dropped p;published p;");
    assert_str(list_slices(test), "00000 1/1 a,b; ");
    for (int i = 0; i < 10; i++)
        dra_advance(test, 20000);
    assert_counts(test, 1, 0, 0);
}

static void every_write_may_fail_and_all_comes_true(void **state)
{
    struct dra_node *test = *state;

    for (unsigned n = 1; n <= 6; n++) {
        publish(test, "p a|q b");
        reach_slices(test, "00000 1/1 a; 00000 1/1 b; ");
        dra_settle(test);
        test->faults = (struct test_store_faults){.n_until = n, .code = DV_UNAVAILABLE};
        publish(test, "q #3|r c|s d"); /* one goes, one changes, two come */
        reach_slices(test, "00000 1/1 d0,d1,d2; 00000 1/1 c; 00000 1/1 d; ");
        test->faults.n_until = 0;
        publish(test, "");
        reach_slices(test, "");
    }
    assert_true(davit_dra_count(test->dra).n_failed > 0);
}

static void the_last_of_many_publications_counts(void **state)
{
    struct dra_node *test = *state;

    for (int i = 0; i < 20; i++) {
        publish(test, i % 2 ? "p #300" : "p a|q b");
        if (i % 3 == 0)
            dra_settle(test);
    }
    publish(test, "q c");
    wait_slices(test, "00000 1/1 c; ");
    dra_advance(test, 100000);
    assert_str(list_slices(test), "00000 1/1 c; ");
}

static void mistakes_change_nothing(void **state)
{
    static const char *const rows[] = {"p a,a", "p a|p b"};
    struct dra_node *test = *state;
    struct davit_error error;

    publish(test, "p a");
    wait_slices(test, "00000 1/1 a; ");
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        assert_false(try_publish(test, rows[i], &error));
        assert_int_equal(error.code, DAVIT_INVALID_ARGUMENT);
    }
    dra_advance(test, 100000);
    assert_str(list_slices(test), "00000 1/1 a; ");
}

static bool is_closed(void *ctx)
{
    return !((const struct dra_node *)ctx)->dra;
}

static void closing_leaves_the_slices_and_loses_nothing(void **state)
{
    struct dra_node *test = *state;

    publish(test, "p #300");
    dra_close(test); /* before anything was asked */
    dra_open(test);
    publish(test, "p #300");
    for (int i = 0; i < 3; i++)
        dra_settle(test);
    dra_close(test); /* in the middle or after it */
    dra_settle(test);
    dra_open(test);
    publish(test, "p a");
    reach_slices(test, "00000 1/1 a; "); /* what the one before wrote last is seen late */
    test->closes_at_event = true;
    publish(test, "p b");
    wait_until(test->node, is_closed, test, "an event");
    assert_str(list_slices(test), "00000 1/1 b; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define PUBLISH_TEST(name) cmocka_unit_test_setup_teardown(name, start, dra_node_end)
        PUBLISH_TEST(a_pool_becomes_a_slice_of_the_node),
        PUBLISH_TEST(nothing_is_written_while_nothing_changes),
        PUBLISH_TEST(slices_follow_what_is_wanted),
        PUBLISH_TEST(a_slice_that_others_delete_comes_back),
        PUBLISH_TEST(a_slice_that_others_change_is_put_right),
        PUBLISH_TEST(slices_of_before_are_taken_over_or_removed),
        PUBLISH_TEST(slices_of_others_are_left_alone),
        PUBLISH_TEST(only_one_pool_may_be_ours),
        PUBLISH_TEST(pools_of_no_node_are_published_without_one),
        PUBLISH_TEST(a_node_that_is_not_there_yet_is_waited_for),
        PUBLISH_TEST(a_node_that_is_deleted_takes_its_slices_along),
        PUBLISH_TEST(what_the_server_refuses_is_tried_again_with_growing_pauses),
        cmocka_unit_test_setup_teardown(what_the_server_drops_is_told_once_and_not_sent_again,
                                        start_without_taints, dra_node_end),
        PUBLISH_TEST(every_write_may_fail_and_all_comes_true),
        PUBLISH_TEST(the_last_of_many_publications_counts),
        PUBLISH_TEST(mistakes_change_nothing),
        PUBLISH_TEST(closing_leaves_the_slices_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
