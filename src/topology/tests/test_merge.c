/* test_merge.c - what is merged under each policy, and which pods are admitted. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "topology/tests/test_topology_hints.h"
#include "topology/topology.h"

/* Two groups of four nodes, 40 apart; in a group the pairs 0 1, 2 3, 4 5, 6 7 are 11 apart,
 * others 12. */
#define NEAR_AND_FAR                                                                               \
    "10 11 12 12 40 40 40 40\n"                                                                    \
    "11 10 12 12 40 40 40 40\n"                                                                    \
    "12 12 10 11 40 40 40 40\n"                                                                    \
    "12 12 11 10 40 40 40 40\n"                                                                    \
    "40 40 40 40 10 11 12 12\n"                                                                    \
    "40 40 40 40 11 10 12 12\n"                                                                    \
    "40 40 40 40 12 12 10 11\n"                                                                    \
    "40 40 40 40 12 12 11 10"

struct row {
    const char *lists;
    const char *want;
};

static struct dv_topology_verdict merge(const struct dv_topology_config *config,
                                        const struct dv_numa_machine *machine, const char *text,
                                        struct dv_arena *arena)
{
    struct dv_topology_verdict verdict = {0};
    struct dv_hint_list lists[LISTS_MAX];
    size_t n_lists = read_lists(text, arena, lists);
    struct dv_err err;

    assert_ok(dv_topology_merge(config, machine, lists, n_lists, &verdict, &err), &err);
    return verdict;
}

static void check_row(const struct dv_topology_config *config,
                      const struct dv_numa_machine *machine, const struct row *row)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_topology_verdict verdict = merge(config, machine, row->lists, arena);
    bool is_admitted = verdict.affinity.is_preferred || config->policy == DV_TOPOLOGY_BEST_EFFORT;
    dv_str got = print_hint(&verdict.affinity, arena);

    if (!dv_str_eq(got, dv_str_from_c(row->want)))
        fail_msg("policy %d: {%s}: got %.*s, want %s", (int)config->policy, row->lists, DV_FMT(got),
                 row->want);
    if (verdict.is_admitted != is_admitted)
        fail_msg("policy %d: {%s}: admitted %d", (int)config->policy, row->lists,
                 verdict.is_admitted);
}

/* On four nodes, so that "0,1,2,3" is all. */
static void check_rows(const enum dv_topology_policy *policies, size_t n_policies,
                       const struct row *rows, size_t n_rows)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-3", NULL, arena);

    for (size_t p = 0; p < n_policies; p++) {
        struct dv_topology_config config = make_config(policies[p]);

        for (size_t i = 0; i < n_rows; i++)
            check_row(&config, &machine, &rows[i]);
    }
}

static const enum dv_topology_policy all_but_none[] = {
    DV_TOPOLOGY_BEST_EFFORT, DV_TOPOLOGY_RESTRICTED, DV_TOPOLOGY_SINGLE_NUMA_NODE};
static const enum dv_topology_policy wide[] = {DV_TOPOLOGY_BEST_EFFORT, DV_TOPOLOGY_RESTRICTED};
static const enum dv_topology_policy single[] = {DV_TOPOLOGY_SINGLE_NUMA_NODE};

static void a_common_preference_wins_under_every_policy(void **state)
{
    static const struct row rows[] = {
        {"0+ | 0+",              "0+"},
        {"1+ | 1+",              "1+"},
        {"0+",                   "0+"}, /* the other provider has no list */
        {"0+ | null",            "0+"},
        {"null | 1+",            "1+"},
        {"0+ 1+ | 0+",           "0+"},
        {"0+ 1+ | 1+",           "1+"},
        {"0+ 1+ | 0+ 0,1-",      "0+"},
        {"1+ 0,1- | 0+ 1+ 0,1-", "1+"},
    };

    (void)state;
    check_rows(all_but_none, DV_COUNT(all_but_none), rows, DV_COUNT(rows));
}

static void best_effort_and_restricted_take_the_best_intersection(void **state)
{
    static const struct row rows[] = {
        {"0,1+ 0,2+ | 0,1+ 0,2+",                 "0,1+"    },
        {"",                                      "0,1,2,3+"},
        {"null",                                  "0,1,2,3+"},
        {"null | null",                           "0,1,2,3+"},
        {"none+",                                 "0,1,2,3+"},
        {"[]",                                    "0,1,2,3-"},
        {"none-",                                 "0,1,2,3-"},
        {"[] | 0+",                               "0-"      },
        {"0+ | 1+",                               "0,1,2,3-"},
        {"0+ | 0-",                               "0-"      },
        {"0+ | 0,1+",                             "0-"      },
        {"0+ 1+ | 0,1-",                          "0-"      },
        {"0,1,2,3- 0,1- | 0,1-",                  "0,1-"    },
        {"0,1,2,3- 0,1- | 0,3-",                  "0,3-"    },
        {"0,1,2,3- 0,1- | 1,2-",                  "1,2-"    },
        {"0,1,2,3- 0,1- | 2,3-",                  "2,3-"    },
        {"0,1,2,3- 0,1- | 1,2- 2,3-",             "1,2-"    },
        {"0,1,2,3- 0,1- | 1,2,3- 1,2- 1,3- 2,3-", "1,2-"    },
        {"none+ 1+ | none+ 2,3+",                 "1+"      }, /* all go along with either */
        {"none+ | 2,3+ 1+ | 1+ 2,3+ none-",       "1+"      },
    };

    (void)state;
    check_rows(wide, DV_COUNT(wide), rows, DV_COUNT(rows));
}

static void prefer_closest_takes_near_nodes_among_as_many(void **state)
{
    static const struct row rows[] = {
        {"0,4+ 0,2+ | 0,4+ 0,2+",                 "0,2+"},
        {"4+ 0,2+ | 4+ 0,2+",                     "4+"  },
        {"0,1,2,3- 0,1- | 1,2- 2,3-",             "2,3-"},
        {"0,1,2,3- 0,1- | 1,2,3- 1,2- 1,3- 2,3-", "2,3-"},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-7", NEAR_AND_FAR, arena);

    (void)state;
    for (size_t p = 0; p < DV_COUNT(wide); p++) {
        struct dv_topology_config config = make_config(wide[p]);

        config.prefers_closest = true;
        for (size_t i = 0; i < DV_COUNT(rows); i++)
            check_row(&config, &machine, &rows[i]);
    }
}

static void single_numa_node_takes_one_node_or_none(void **state)
{
    static const struct row rows[] = {
        {"",                    "none+"},
        {"null",                "none+"},
        {"none+",               "none+"},
        {"[]",                  "none-"},
        {"none-",               "none-"},
        {"0+ | 1+",             "none-"},
        {"0+ | 0-",             "none-"},
        {"0+ 1+ | 0,1-",        "none-"},
        {"0,1+ | 0+ 1+ 0,1-",   "none-"},
        {"0+ 1+ 0,1- | null",   "0+"   },
        {"none- 1+",            "1+"   }, /* what is dropped, and what is kept */
        {"none- none+",         "none+"},
        {"0- 1+ 2,3+",          "1+"   },
        {"0,1+ 2,3+",           "none-"},
        {"0,1,2,3+",            "none-"},
        {"1-",                  "none-"},
        {"0+ none+ | 1+ none+", "0+"   },
    };

    (void)state;
    check_rows(single, DV_COUNT(single), rows, DV_COUNT(rows));
}

static void single_numa_node_ignores_distances(void **state)
{
    /* With distances node 3, nearest to itself, would come first. */
    static const char rows[] = "20 21 21 21\n21 20 21 21\n21 21 20 21\n21 21 21 10";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-3", rows, arena);
    struct dv_topology_config config = make_config(DV_TOPOLOGY_SINGLE_NUMA_NODE);

    (void)state;
    config.prefers_closest = true;
    check_row(&config, &machine, &(struct row){"3+ 0+", "0+"});
    config.policy = DV_TOPOLOGY_RESTRICTED;
    check_row(&config, &machine, &(struct row){"3+ 0+", "3+"});
}

static void a_machine_of_one_node_needs_no_mask_under_single_numa_node(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0", NULL, arena);
    struct dv_topology_config config = make_config(DV_TOPOLOGY_SINGLE_NUMA_NODE);

    (void)state;
    check_row(&config, &machine, &(struct row){"0+", "none+"});
    check_row(&config, &machine, &(struct row){"0-", "none-"});
    config.policy = DV_TOPOLOGY_RESTRICTED;
    check_row(&config, &machine, &(struct row){"0+", "0+"});
}

static void none_admits_without_looking(void **state)
{
    static const char *const texts[] = {"", "[]", "none-", "0+ | 1+", "0+"};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-1", NULL, arena);
    struct dv_topology_config config = make_config(DV_TOPOLOGY_NONE);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_topology_verdict verdict = merge(&config, &machine, texts[i], arena);

        assert_true(verdict.is_admitted);
        assert_str(print_hint(&verdict.affinity, arena), "none-");
    }
}

/* The class of a pod (Guaranteed, Burstable) is nothing that a merge could know. */
static void admission_depends_on_the_policy_and_the_preference(void **state)
{
    static const struct {
        enum dv_topology_policy policy;
        const char *lists;
        bool is_admitted;
    } cases[] = {
        {DV_TOPOLOGY_SINGLE_NUMA_NODE, "",             true },
        {DV_TOPOLOGY_RESTRICTED,       "",             true },
        {DV_TOPOLOGY_BEST_EFFORT,      "0- 1-",        true },
        {DV_TOPOLOGY_BEST_EFFORT,      "[]",           true },
        {DV_TOPOLOGY_RESTRICTED,       "0- 1-",        false},
        {DV_TOPOLOGY_RESTRICTED,       "0+ 1+ | 0,1-", false},
        {DV_TOPOLOGY_RESTRICTED,       "0,1+",         true },
        {DV_TOPOLOGY_SINGLE_NUMA_NODE, "0,1+",         false},
        {DV_TOPOLOGY_SINGLE_NUMA_NODE, "1+ 0,1-",      true },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-1", NULL, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_config config = make_config(cases[i].policy);

        if (merge(&config, &machine, cases[i].lists, arena).is_admitted != cases[i].is_admitted)
            fail_msg("case %zu", i);
    }
}

static void a_container_without_a_merge_has_no_affinity(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_numa_hint nothing = {0}; /* what is kept for it before and after */
    const struct dv_numa_place place = {1, DV_NUMA_NODES};

    (void)state;
    assert_str(print_hint(&nothing, arena), "none-");
    assert_int_equal(dv_topology_side(&place, &nothing), DV_NUMA_NO_SIDE);
}

static void nodes_that_the_machine_lacks_are_not_in_the_result(void **state)
{
    static const struct row rows[] = {
        {"1,5+",        "1+"  },
        {"5+",          "1,3-"},
        {"1,5+ | 1,6+", "1-"  }, /* not the same hint, though the same nodes are left */
        {"1,3,5- | 1-", "1-"  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("1,3", NULL, arena);
    struct dv_topology_config config = make_config(DV_TOPOLOGY_BEST_EFFORT);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        check_row(&config, &machine, &rows[i]);
}

/* -- Size ----------------------------------------------------------------------------------- */

static struct dv_hint_list list_of(dv_numa_mask first, size_t n, struct dv_arena *arena)
{
    struct dv_numa_hint *hints = DV_NEW_ARRAY(arena, struct dv_numa_hint, n);

    for (size_t i = 0; i < n; i++)
        hints[i] = (struct dv_numa_hint){first + i, true, false};
    return (struct dv_hint_list){hints, n, false};
}

/* The product of these lists has 10^19 combinations. */
static void every_set_of_eight_nodes_in_eight_lists_is_no_work(void **state)
{
    static const struct {
        const char *online;
        const char *want;
    } cases[] = {
        {"0-7",       "0-" },
        {"1-4,60-63", "60-"}, /* the narrowest of the masks below on these nodes */
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_topology_config config = make_config(DV_TOPOLOGY_RESTRICTED);
    struct dv_hint_list lists[8];

    (void)state;
    for (size_t c = 0; c < DV_COUNT(cases); c++) {
        struct dv_numa_machine machine = make_machine(cases[c].online, NULL, arena);
        struct dv_topology_verdict verdict;
        struct dv_err err;

        for (size_t i = 0; i < DV_COUNT(lists); i++)
            lists[i] = list_of(c == 0 ? 1 : UINT64_C(1) << 60, c == 0 ? 255 : 16, arena);
        assert_ok(dv_topology_merge(&config, &machine, lists, DV_COUNT(lists), &verdict, &err),
                  &err);
        assert_str(print_hint(&verdict.affinity, arena), cases[c].want);
        assert_false(verdict.is_admitted);
    }
}

static void tables_and_pairs_agree_on_machines_with_gaps(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_topology_config config = make_config(DV_TOPOLOGY_BEST_EFFORT);
    struct dv_numa_machine machine = make_machine("0,2-5,7-9,11", NULL, arena);
    struct dv_hint_list lists[] = {list_of(1, 4095, arena), list_of(1, 4095, arena),
                                   list_of(2048 + 512, 1, arena)};
    struct dv_topology_verdict verdict;
    struct dv_err err;

    (void)state;
    assert_ok(dv_topology_merge(&config, &machine, lists, 3, &verdict, &err), &err);
    assert_str(print_hint(&verdict.affinity, arena), "9,11-");
}

static void what_cannot_be_tried_in_time_is_an_error(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_topology_config config = make_config(DV_TOPOLOGY_BEST_EFFORT);
    struct dv_numa_machine machine = make_machine("0-40", NULL, arena);
    struct dv_hint_list lists[] = {list_of(UINT64_C(0x1ffffff0000), 10000, arena),
                                   list_of(UINT64_C(0x1fffffe0000), 10000, arena)};
    struct dv_topology_verdict verdict;
    struct dv_err err;

    (void)state;
    assert_false(dv_topology_merge(&config, &machine, lists, 2, &verdict, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "hints over 39 NUMA nodes");
}

/* -- Counts --------------------------------------------------------------------------------- */

static void admissions_are_counted_by_policy_and_scope(void **state)
{
    static const struct {
        enum dv_topology_policy policy;
        enum dv_topology_scope scope;
        enum dv_topology_event event;
        struct dv_topology_counts want;
    } cases[] = {
        {DV_TOPOLOGY_SINGLE_NUMA_NODE,
         DV_TOPOLOGY_SCOPE_POD,                                DV_TOPOLOGY_REJECTED,
         {1, 1, {0, 0}, {0, 1}}                                                                             },
        {DV_TOPOLOGY_SINGLE_NUMA_NODE,
         DV_TOPOLOGY_SCOPE_POD,                                DV_TOPOLOGY_ALLOCATED,
         {1, 0, {0, 0}, {1, 0}}                                                                             },
        {DV_TOPOLOGY_SINGLE_NUMA_NODE,
         DV_TOPOLOGY_SCOPE_CONTAINER,                          DV_TOPOLOGY_REJECTED,
         {1, 1, {0, 1}, {0, 0}}                                                                             },
        {DV_TOPOLOGY_SINGLE_NUMA_NODE,
         DV_TOPOLOGY_SCOPE_CONTAINER,                          DV_TOPOLOGY_ALLOCATED,
         {1, 0, {1, 0}, {0, 0}}                                                                             },
        {DV_TOPOLOGY_SINGLE_NUMA_NODE,
         DV_TOPOLOGY_SCOPE_CONTAINER,                          DV_TOPOLOGY_FAILED,
         {1, 1, {0, 0}, {0, 0}}                                                                             },
        {DV_TOPOLOGY_RESTRICTED,
         DV_TOPOLOGY_SCOPE_POD,                                DV_TOPOLOGY_REJECTED,
         {1, 1, {0, 0}, {0, 0}}                                                                             },
        {DV_TOPOLOGY_BEST_EFFORT,
         DV_TOPOLOGY_SCOPE_POD,                                DV_TOPOLOGY_ALLOCATED,
         {1, 0, {0, 0}, {0, 0}}                                                                             },
        {DV_TOPOLOGY_NONE,             DV_TOPOLOGY_SCOPE_NONE, DV_TOPOLOGY_FAILED,    {1, 0, {0, 0}, {0, 0}}},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_topology_config config = {cases[i].policy, cases[i].scope, false, 8};
        struct dv_topology_counts counts = {0};

        dv_topology_count(&config, DV_TOPOLOGY_ASKED, &counts);
        dv_topology_count(&config, cases[i].event, &counts);
        assert_memory_equal(&counts, &cases[i].want, sizeof(counts)); /* only 64-bit numbers */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_common_preference_wins_under_every_policy),
        cmocka_unit_test(best_effort_and_restricted_take_the_best_intersection),
        cmocka_unit_test(prefer_closest_takes_near_nodes_among_as_many),
        cmocka_unit_test(single_numa_node_takes_one_node_or_none),
        cmocka_unit_test(single_numa_node_ignores_distances),
        cmocka_unit_test(a_machine_of_one_node_needs_no_mask_under_single_numa_node),
        cmocka_unit_test(none_admits_without_looking),
        cmocka_unit_test(admission_depends_on_the_policy_and_the_preference),
        cmocka_unit_test(a_container_without_a_merge_has_no_affinity),
        cmocka_unit_test(nodes_that_the_machine_lacks_are_not_in_the_result),
        cmocka_unit_test(every_set_of_eight_nodes_in_eight_lists_is_no_work),
        cmocka_unit_test(tables_and_pairs_agree_on_machines_with_gaps),
        cmocka_unit_test(what_cannot_be_tried_in_time_is_an_error),
        cmocka_unit_test(admissions_are_counted_by_policy_and_scope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
