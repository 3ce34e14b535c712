#include "support/dvtest.h"

#include "base/arena.h"
#include "topology/topology.h"

static void nodes_are_read_from_the_list_of_the_kernel(void **state)
{
    static const struct {
        const char *online;
        size_t n_nodes;
        uint32_t last;
        dv_numa_mask mask;
    } cases[] = {
        {"0\n",      1,    0,    1                       },
        {"0-1\n",    2,    1,    3                       },
        {"1,3-4,63", 4,    63,   UINT64_C(1) << 63 | 0x1a},
        {"0-63",     64,   63,   UINT64_MAX              },
        {"0,64-65",  3,    65,   1                       }, /* beyond what a mask holds, but there */
        {"0-1023",   1024, 1023, UINT64_MAX              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_ok(dv_topology_machine_parse(dv_str_from_c(cases[i].online), arena, &machine, &err),
                  &err);
        assert_int_equal(machine.n_nodes, cases[i].n_nodes);
        assert_int_equal(machine.nodes[machine.n_nodes - 1].id, cases[i].last);
        assert_int_equal(machine.nodes[0].n_distances, 0);
        assert_true(machine.mask == cases[i].mask);
    }
    assert_ok(dv_topology_machine_parse(DV_STR("\n"), arena, &machine, &err), &err);
    assert_int_equal(machine.n_nodes, 0);
}

static void what_is_no_list_of_nodes_is_refused(void **state)
{
    static const struct {
        const char *online;
        enum dv_code code;
        const char *want;
    } cases[] = {
        {"x",            DV_INVALID_ARGUMENT,   "\"x\" is no range of NUMA nodes"             },
        {"0,",           DV_INVALID_ARGUMENT,   "\"\" is no range"                            },
        {",0",           DV_INVALID_ARGUMENT,   "\"\" is no range"                            },
        {"0-",           DV_INVALID_ARGUMENT,   "\"0-\" is no range"                          },
        {"-1",           DV_INVALID_ARGUMENT,   "\"-1\" is no range"                          },
        {"0-1-2",        DV_INVALID_ARGUMENT,   "\"0-1-2\" is no range"                       },
        {"2-1",          DV_INVALID_ARGUMENT,   "\"2-1\" is no range"                         },
        {"0, 1",         DV_INVALID_ARGUMENT,   "\" 1\" is no range"                          },
        {"1,0",          DV_INVALID_ARGUMENT,   "NUMA node 0 is out of order"                 },
        {"0-2,2-3",      DV_INVALID_ARGUMENT,   "NUMA node 2 is out of order"                 },
        {"0-4294967295", DV_RESOURCE_EXHAUSTED, "NUMA node 4294967295: ids must be below 1024"},
        {"0-4294967296", DV_INVALID_ARGUMENT,   "is no range"                                 },
        {"1024",         DV_RESOURCE_EXHAUSTED, "NUMA node 1024"                              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_numa_machine machine;
        struct dv_err err;

        if (dv_topology_machine_parse(dv_str_from_c(cases[i].online), arena, &machine, &err))
            fail_msg("%s is accepted", cases[i].online);
        assert_err(&err, cases[i].code, cases[i].want);
    }
}

static void distances_are_read_in_order(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_node node = {.id = 1};
    struct dv_err err;

    (void)state;
    assert_ok(dv_topology_distances_parse(&node, DV_STR("21 10 254\n"), arena, &err), &err);
    assert_int_equal(node.n_distances, 3);
    assert_int_equal(node.distances[0], 21);
    assert_int_equal(node.distances[2], 254);
    assert_ok(dv_topology_distances_parse(&node, DV_STR("\n"), arena, &err), &err);
    assert_int_equal(node.n_distances, 0);
}

static void what_is_no_list_of_distances_changes_nothing(void **state)
{
    static const char *const texts[] = {"10 x", "10  20", "10\t20", "-1", "4294967296", "10,20"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_node node = {.id = 7};
    char *many = dv_arena_alloc(arena, 4096, 1);
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        if (dv_topology_distances_parse(&node, dv_str_from_c(texts[i]), arena, &err))
            fail_msg("%s is accepted", texts[i]);
        assert_err(&err, DV_INVALID_ARGUMENT, "NUMA node 7: ");
    }
    for (size_t i = 0; i < 4096; i++)
        many[i] = i % 2 ? ' ' : '1';
    assert_false(dv_topology_distances_parse(&node, (dv_str){many, 4096}, arena, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "NUMA node 7: more than 1024 distances");
    assert_null(node.distances);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read_from_the_list_of_the_kernel),
        cmocka_unit_test(what_is_no_list_of_nodes_is_refused),
        cmocka_unit_test(distances_are_read_in_order),
        cmocka_unit_test(what_is_no_list_of_distances_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
