/* Preference and alignment: which of several devices. */
#include "test_device_node.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "topology/topology.h"

static void devices_near_the_affinity_come_first(void **state)
{
    static const struct {
        const char *devices;
        const char *limit;
        const char *nodes; /* NULL: no affinity */
        const char *placed;
    } cases[] = {
        {"d1 d2",                           GPU "=1", "0",   "-1:d1"        },
        {"d1 d2@1",                         GPU "=1", "1",   "1:d2"         },
        {"d1@0 d2@1",                       GPU "=1", "0",   "0:d1"         },
        {"d1@0 d2@1",                       GPU "=1", "1",   "1:d2"         },
        {"d1@0 d2@0 d3@1 d4@1",             GPU "=2", "0",   "0:d1,d2"      },
        {"d1@0 d2@0 d3@1 d4@1",             GPU "=2", "1",   "1:d3,d4"      },
        {"a@0 b@0 c@0 d@1 e@1 f@1",         GPU "=4", "0",   "0:a,b,c 1:d"  },
        {"a@0 b@0 c@0 d@1 e@1 f@1",         GPU "=4", "1",   "0:a 1:d,e,f"  },
        {"a@0 b@0 c@1 d@1 e@2 f@2 g@3 h@3", GPU "=4", "1,3", "1:c,d 3:g,h"  },
        {"a@1 b@1,2 c",                     GPU "=1", "2",   "1:b 2:b"      },
        {"a@1 b@1,2 c",                     GPU "=2", "2",   "1:a,b 2:b"    },
        {"a b@1",                           GPU "=2", "0",   "-1:a 1:b"     },
        {"a b@1 c",                         GPU "=1", "0",   "1:b"          }, /* before none */
        {"a@-1 b@70 c@0",                   GPU "=2", "0",   "0:c 70:b"     },
        {"a@-1 b@70 c@0",                   GPU "=3", "0",   "-1:a 0:c 70:b"},
        {"a@ b@0",                          GPU "=2", "0",   "-1:a 0:b"     },
        {"d2@1 d10@1 d3@0 d1@0",            GPU "=3", NULL,  "0:d1,d3 1:d2" },
        {"d2 d10 d1",                       GPU "=2", NULL,  "-1:d1,d2"     },
        {"a@0 b@0 c!@1",                    GPU "=2", "1",   "0:a,b"        },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct node *node;

        (void)node_setup(state);
        node = *state;
        node_register(node, GPU, "a.sock", cases[i].devices);
        if (!node_allocate_near(node, "p", cases[i].limit, cases[i].nodes))
            fail_msg("case %zu: %s", i, node->err.msg);
        if (strcmp(node_placed(node, "p", "c", GPU), cases[i].placed) != 0)
            fail_msg("case %zu: %s", i, node_placed(node, "p", "c", GPU));
        (void)node_teardown(state);
    }
}

static void the_plugin_is_asked_and_heard(void **state)
{
    static const struct {
        const char *devices;
        const char *limit;
        const char *nodes;
        const char *preferred;
        const char *held;
    } cases[] = {
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "d b",     "b d"      },
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "d b c a", "b d"      }, /* more than needed */
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "d",       "a d"      },
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "e d",     "a d"      }, /* e is not aligned */
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "x y",     "a b"      },
        {"a@0 b@0 c@0 d@0 e@1",     GPU "=2", "0",  "",        "a b"      },
        {"a@0 b@0 c@0 d@1 e@1 f@1", GPU "=5", "0",  "f e",     "a b c e f"},
        {"a@0 b@0 c@0 d@1 e@1 f@1", GPU "=5", "0",  "f x",     "a b c d f"},
        {"a@0 b@1 c",               GPU "=2", "0",  "c",       "a c"      },
        {"a b c",                   GPU "=1", NULL, "c",       "c"        },
        {"a b! c",                  GPU "=1", NULL, "b c",     "c"        },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct node *node;

        (void)node_setup(state);
        node = *state;
        node->preferred = cases[i].preferred;
        node_register(node, GPU, "a.sock", cases[i].devices);
        if (!node_allocate_near(node, "p", cases[i].limit, cases[i].nodes))
            fail_msg("case %zu: %s", i, node->err.msg);
        if (strcmp(node_held(node, "p", "c", GPU), cases[i].held) != 0)
            fail_msg("case %zu: %s", i, node_held(node, "p", "c", GPU));
        if (node->n_preferred != 1)
            fail_msg("case %zu: asked %u times", i, node->n_preferred);
        (void)node_teardown(state);
    }
}

static void five_of_a_hundred_are_what_the_plugin_chooses(void **state)
{
    struct node *node = *state;
    struct dv_buf buf;

    dv_buf_init(&buf, 10000);
    for (unsigned i = 0; i < 200; i++)
        dv_buf_printf(&buf, "%sdev%u@%u", i > 0 ? " " : "", i, i / 100);
    node->preferred = "dev10 dev20 dev30 dev40 dev50";
    node_register(node, GPU, "a.sock", dv_buf_c(&buf));
    assert_true(node_allocate_near(node, "p", GPU "=5", "0"));
    assert_string_equal(node_held(node, "p", "c", GPU), "dev10 dev20 dev30 dev40 dev50");
    dv_buf_fini(&buf);
}

static void the_plugin_is_not_asked_when_there_is_no_choice(void **state)
{
    struct node *node = *state;

    node->preferred = "c";
    node_register(node, GPU, "a.sock", "a@0 b@0 c@1");
    assert_true(node_allocate_near(node, "p", GPU "=2", "0")); /* exactly the aligned ones */
    assert_string_equal(node_held(node, "p", "c", GPU), "a b");
    assert_int_equal(node->n_preferred, 0);
    node->preferred = NULL;
    node_register(node, NIC, "n.sock", "a b");
    assert_true(node_allocate_near(node, "q", NIC "=1", NULL)); /* has no preference */
    assert_int_equal(node->n_preferred, 0);
}

/* A pod whose init container holds `lent`; another holds `taken`. Then one of the pod's containers
 * asks, with affinity {0}. */
static void ask(struct node *node, const char *devices, const char *lent, const char *taken,
                const char *limit)
{
    struct dv_device_request request;
    struct dv_device_operation *op;
    char list[64];

    node->preferred = "";
    node_register(node, GPU, "a.sock", taken); /* alone, so that it gets exactly these */
    (void)snprintf(list, sizeof(list), GPU "=%zu", (strlen(taken) + 1) / 5);
    if (taken[0])
        assert_true(node_allocate(node, "other", "c", DV_DEVICE_REGULAR, list));
    (void)node_list(node, GPU, lent);
    (void)snprintf(list, sizeof(list), GPU "=%zu", (strlen(lent) + 1) / 5);
    dv_device_begin_admission(node->state, DV_STR("p"));
    if (lent[0])
        assert_true(node_allocate(node, "p", "i", DV_DEVICE_INIT, list));
    (void)node_list(node, GPU, devices);
    node->n_preferred = 0;
    request = node_request(node, "p", "c", DV_DEVICE_REGULAR, limit);
    request.affinity = (struct dv_numa_hint){.mask = 1, .has_mask = true};
    op = dv_device_allocate(node->state, &request);
    assert_int_equal(dv_device_operation_step(op)->kind, DV_DEVICE_ASK_PREFERRED);
    dv_device_operation_free(op);
    assert_true(node_allocate_near(node, "p", limit, "0"));
    dv_device_end_admission(node->state, DV_STR("p"));
}

static void the_plugin_gets_candidates_and_what_must_be_included(void **state)
{
    static const struct {
        const char *devices, *lent, *taken, *limit;
        const char *available, *must_include;
    } cases[] = {
        {"d1@0 d2@0 d3@0 d4@0",                     "",          "",          GPU "=1", "d1 d2 d3 d4", ""           },
        {"d1@0 d2@0 d3@0 d4@0 d5@0 d6@0 d7@0 d8@0", "d1@0 d2@0", "",          GPU "=4",
         "d1 d2 d3 d4 d5 d6 d7 d8",                                                                    "d1 d2"      },
        {"d1@0 d2@0 d3@0 d4@0 d5@0 d6@0 d7@0 d8@0", "d1@0 d2@0", "d5@0 d6@0", GPU "=4",
         "d1 d2 d3 d4 d7 d8",                                                                          "d1 d2"      },
        {"d1@0 d2@0 d3@0 d4@0 d5@1 d6@1 d7@1 d8@1", "d1@0 d2@0", "",          GPU "=6",
         "d1 d2 d3 d4 d5 d6 d7 d8",                                                                    "d1 d2 d3 d4"},
        {"d1@0 d2@0 d3@0 d4@0 d5@1 d6@1 d7@1 d8@1", "d1@0 d2@0", "d5@1 d6@1", GPU "=6",
         "d1 d2 d3 d4 d7 d8",                                                                          "d1 d2 d3 d4"},
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct node *node;

        (void)node_setup(state);
        node = *state;
        ask(node, cases[i].devices, cases[i].lent, cases[i].taken, cases[i].limit);
        assert_int_equal(node->n_preferred, 1);
        assert_str(node->available, cases[i].available);
        assert_str(node->must_include, cases[i].must_include);
        assert_int_equal(node->size, cases[i].limit[strlen(cases[i].limit) - 1] - '0');
        (void)node_teardown(state);
    }
}

static void a_plugin_that_cannot_choose_fails_the_allocation(void **state)
{
    struct node *node = *state;

    node->preferred = "";
    node->preferred_fails = DV_INTERNAL;
    node_register(node, GPU, "a.sock", "a@0 b@1 c@1");
    assert_false(node_allocate_near(node, "p", GPU "=2", "0"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_PLUGIN_PREFERRED);
    assert_string_equal(node->err.msg, "device plugin GetPreferredAllocation rpc failed with err: "
                                       "rpc error: code = Internal desc = no idea");
    assert_int_equal(node_info(node, GPU).n_free, 3); /* `a` was taken, and is free again */
}

/* -- While the plugin thinks ---------------------------------------------------------------- */

static void collect_now(struct node *node)
{
    dv_device_deactivate_pod(node->state, DV_STR("other"));
    assert_int_equal(dv_device_collect(node->state), 1);
}

static void a_collection_meanwhile_does_no_harm(void **state)
{
    struct node *node = *state;

    node->preferred = "";
    node_register(node, GPU, "a.sock", "a@0 b@1 c@1 d@1");
    assert_true(node_allocate_near(node, "other", GPU "=1", "1"));
    node->while_asked = collect_now;
    assert_true(node_allocate_near(node, "p", GPU "=2", "0"));
    assert_string_equal(node_held(node, "p", "c", GPU), "a b"); /* b is free again by then */
    assert_int_equal(node_info(node, GPU).n_allocated, 2);
}

static void lose_devices(struct node *node)
{
    (void)node_list(node, GPU, "a@0 c!@1");
}

static void devices_lost_meanwhile_are_not_given_out(void **state)
{
    struct node *node = *state;

    node->preferred = "b c";
    node->while_asked = lose_devices;
    node_register(node, GPU, "a.sock", "a@0 b@1 c@1");
    assert_false(node_allocate_near(node, "p", GPU "=2", "0"));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_ALLOCATED_LESS);
    assert_string_equal(node->err.msg, "unexpectedly allocated less resources than required. "
                                       "Requested: 2, Got: 1");
    assert_int_equal(node_info(node, GPU).n_free, 1);
}

static void take_meanwhile(struct node *node)
{
    node->while_asked = NULL;
    node->preferred = "b";
    assert_true(node_allocate_near(node, "other", GPU "=1", NULL));
    node->preferred = "b a";
}

static void what_another_took_meanwhile_is_not_given_out_again(void **state)
{
    struct node *node = *state;

    node->preferred = "b a";
    node->while_asked = take_meanwhile;
    node_register(node, GPU, "a.sock", "a b c");
    assert_true(node_allocate_near(node, "p", GPU "=1", NULL));
    assert_string_equal(node_held(node, "other", "c", GPU), "b");
    assert_string_equal(node_held(node, "p", "c", GPU), "a");
}

static void stop_plugin(struct node *node)
{
    node_disconnect(node, GPU, "a.sock");
}

static void a_plugin_that_stops_meanwhile_is_not_called(void **state)
{
    struct node *node = *state;

    node->preferred = "b";
    node->while_asked = stop_plugin;
    node_register(node, GPU, "a.sock", "a b");
    assert_false(node_allocate_near(node, "p", GPU "=1", NULL));
    assert_int_equal(node->failure, DV_DEVICE_FAIL_ENDPOINT_STOPPED);
    assert_err(&node->err, DV_UNAVAILABLE, "has been stopped");
    assert_int_equal(node->n_allocate, 0);
    assert_int_equal(node_info(node, GPU).n_allocated, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_near_the_affinity_come_first),
        cmocka_unit_test(the_plugin_is_asked_and_heard),
        node_test(five_of_a_hundred_are_what_the_plugin_chooses),
        node_test(the_plugin_is_not_asked_when_there_is_no_choice),
        cmocka_unit_test(the_plugin_gets_candidates_and_what_must_be_included),
        node_test(a_plugin_that_cannot_choose_fails_the_allocation),
        node_test(a_collection_meanwhile_does_no_harm),
        node_test(devices_lost_meanwhile_are_not_given_out),
        node_test(what_another_took_meanwhile_is_not_given_out_again),
        node_test(a_plugin_that_stops_meanwhile_is_not_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
