/* test_choice.c - the order of candidates, held against the reference's own comparisons. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "topology/choice.h"
#include "topology/tests/test_topology_hints.h"

/* The reference's comparisons, step by step: the oracle of this file. */
static bool candidate_is_fitter(dv_numa_mask current, dv_numa_mask candidate)
{
    unsigned n_current = dv_topology_mask_count(current);
    unsigned n_candidate = dv_topology_mask_count(candidate);

    return n_candidate != n_current ? n_candidate < n_current : candidate < current;
}

static bool candidate_wins(unsigned wanted, dv_numa_mask current, dv_numa_mask candidate)
{
    unsigned c = dv_topology_mask_count(current);
    unsigned d = dv_topology_mask_count(candidate);

    if (candidate == 0)
        return false;
    if (c > wanted)
        return candidate_is_fitter(current, candidate);
    if (c == wanted)
        return d == wanted && candidate_is_fitter(current, candidate);
    if (d > wanted)
        return false;
    if (d == wanted || d > c)
        return true;
    return d == c && candidate_is_fitter(current, candidate);
}

static void an_unpreferred_candidate_wins_as_the_rules_say(void **state)
{
    (void)state;
    for (unsigned wanted = 0; wanted <= 7; wanted++) /* B from 1 to 4, and past both ends */
        for (dv_numa_mask current = 1; current < 64; current++)
            for (dv_numa_mask candidate = 0; candidate < 64; candidate++) {
                struct dv_topology_choice choice = {.n_nodes_wanted = wanted};

                dv_topology_choice_offer(&choice, current, false);
                dv_topology_choice_offer(&choice, candidate, false);
                if (choice.best.mask !=
                    (candidate_wins(wanted, current, candidate) ? candidate : current))
                    fail_msg("B %u, current %llx, candidate %llx", wanted,
                             (unsigned long long)current, (unsigned long long)candidate);
            }
}

static void a_preferred_candidate_beats_any_other(void **state)
{
    static const struct {
        const char *offers;
        const char *want;
    } cases[] = {
        {"0,1,2,3+ 0-", "0,1,2,3+"},
        {"0- 0,1,2,3+", "0,1,2,3+"},
        {"0,1+ 2+",     "2+"      },
        {"2+ 0,1+",     "2+"      },
        {"2,3+ 0,4+",   "2,3+"    }, /* the smaller number */
        {"0,4+ 2,3+",   "2,3+"    },
        {"1+ 1+",       "1+"      },
        {"+ 1-",        "1-"      }, /* an empty one never counts */
        {"1- +",        "1-"      },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_topology_choice choice = {.n_nodes_wanted = 2};
        struct dv_hint_list lists[LISTS_MAX];

        assert_int_equal(read_lists(cases[i].offers, arena, lists), 1);
        for (size_t k = 0; k < lists[0].n_hints; k++)
            dv_topology_choice_offer(&choice, lists[0].hints[k].mask,
                                     lists[0].hints[k].is_preferred);
        assert_str(print_hint(&choice.best, arena), cases[i].want);
    }
}

static void an_empty_candidate_is_not_even_the_first(void **state)
{
    struct dv_topology_choice choice = {.n_nodes_wanted = 1};

    (void)state;
    dv_topology_choice_offer(&choice, 0, true);
    dv_topology_choice_offer(&choice, 0, false);
    assert_false(choice.has_best);
}

static void the_nodes_wanted_are_the_widest_of_the_narrowest(void **state)
{
    static const struct {
        const char *lists;
        unsigned want;
    } cases[] = {
        {"",                         0},
        {"+",                        0},
        {"none+ | null | []",        0},
        {"0- 0,1-",                  1},
        {"0,1- 0,1,2- | 1,2,3-",     3},
        {"1,2,3- | 0,1- 0,1,2-",     3},
        {"1,2,3- | 0,1- 0,1,2- | +", 3},
        {"none- 0,1-",               2},
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_hint_list lists[LISTS_MAX];
        size_t n_lists = read_lists(cases[i].lists, arena, lists);

        assert_int_equal(dv_topology_nodes_wanted(lists, n_lists), cases[i].want);
    }
}

static void among_as_many_nodes_the_closest_are_taken(void **state)
{
    static const struct {
        const char *a;
        const char *b; /* loses */
    } cases[] = {
        {"0",   "0,1"}, /* fewer nodes first, however far */
        {"3",   "0,1"},
        {"1,2", "0,1"}, /* nearer */
        {"1,2", "0,3"},
        {"0,1", "2,3"}, /* as near: more low nodes */
        {"2",   "3"  },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine =
        make_machine("0-3", "10 12 20 20\n12 10 11 20\n20 11 10 12\n20 20 12 10", arena);

    (void)state;
    for (size_t i = 0; i < 2 * DV_COUNT(cases); i++) {
        dv_numa_mask a = read_mask(dv_str_from_c(cases[i / 2].a));
        dv_numa_mask b = read_mask(dv_str_from_c(cases[i / 2].b));
        struct dv_topology_choice choice = {.machine = &machine, .prefers_closest = true};

        dv_topology_choice_offer(&choice, i % 2 ? a : b, true);
        dv_topology_choice_offer(&choice, i % 2 ? b : a, true);
        if (choice.best.mask != a)
            fail_msg("case %zu", i / 2);
    }
}

static void distances_are_summed_over_ordered_pairs(void **state)
{
    static const struct {
        const char *online;
        const char *rows;
        const char *mask;
        uint64_t want;
    } cases[] = {
        {"0-2", "10 12 20\n13 11 30\n21 31 14", "",      0                },
        {"0-2", "10 12 20\n13 11 30\n21 31 14", "1",     11               },
        {"0-2", "10 12 20\n13 11 30\n21 31 14", "0,1",   10 + 12 + 13 + 11},
        {"0-2", "10 12 20\n13 11 30\n21 31 14", "0,1,2",
         10 + 12 + 20 + 13 + 11 + 30 + 21 + 31 + 14                       },
 /* By id, as far as the row goes: that is the column of node 4. Then by place. */
        {"1,4", "10 12\n13 11",                 "1",     12               },
        {"1,4", "10 12\n13 11",                 "4",     11               },
        {"1,4", "10 12\n13 11",                 "1,4",   12 + 12 + 11 + 11},
 /* No kernel writes a row so short. */
        {"0-2", "10\n13\n21",                   "2",     255              },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_numa_machine machine = make_machine(cases[i].online, cases[i].rows, arena);

        if (dv_topology_distance(&machine, read_mask(dv_str_from_c(cases[i].mask))) !=
            cases[i].want)
            fail_msg("case %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unpreferred_candidate_wins_as_the_rules_say),
        cmocka_unit_test(a_preferred_candidate_beats_any_other),
        cmocka_unit_test(an_empty_candidate_is_not_even_the_first),
        cmocka_unit_test(the_nodes_wanted_are_the_widest_of_the_narrowest),
        cmocka_unit_test(among_as_many_nodes_the_closest_are_taken),
        cmocka_unit_test(distances_are_summed_over_ordered_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
