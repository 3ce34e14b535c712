/* test_topology_device.c - the hints of devices. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "topology/tests/test_topology_hints.h"
#include "topology/topology.h"

/* A device in a table: its nodes ("0", "0,1"), "[]" for a topology without any, "?" for none told;
 * then what is special about it: */
#define BUSY 'b'      /* in use by another pod */
#define UNHEALTHY 'u' /* free */
#define REUSABLE 'r'  /* in use by an init container of the pod */
#define HELD 'h'      /* by the container that asks */
#define GONE 'g'      /* held too, but no longer listed */

static struct dv_numa_place read_place(dv_str text)
{
    int64_t ids[8];
    size_t n = 0;
    dv_str piece;

    if (dv_str_eq(text, DV_STR("?")))
        return (struct dv_numa_place){0};
    if (dv_str_eq(text, DV_STR("[]")))
        return dv_topology_place_from_ids(NULL, 0);
    while (dv_str_split(&text, ',', &piece))
        assert_true(dv_str_to_i64(piece, &ids[n++]));
    return dv_topology_place_from_ids(ids, n);
}

static struct dv_numa_group read_device(dv_str text)
{
    char last = text.p[text.n - 1];
    char what = last >= 'a' && last <= 'z' ? last : ' ';

    return (struct dv_numa_group){
        .place = read_place(dv_str_slice(text, 0, text.n - (what != ' '))),
        .n_listed = what != GONE,
        .n_available = what == ' ',
        .n_reusable = what == REUSABLE,
        .n_held = what == HELD || what == GONE,
    };
}

static struct dv_hint_list hints_of(const char *online, const char *devices, uint64_t requested,
                                    struct dv_arena *arena)
{
    struct dv_numa_machine machine = make_machine(online, NULL, arena);
    DV_VEC(struct dv_numa_group) groups = {0};
    dv_str rest = dv_str_from_c(devices);
    struct dv_hint_list list = {0};
    struct dv_err err;
    dv_str piece;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &piece))
        *dv_vec_add_in(&groups, arena) = read_device(piece);
    assert_ok(dv_topology_device_hints(&machine, groups.v, groups.n, requested, arena, &list, &err),
              &err);
    return list;
}

struct row {
    const char *online;
    const char *devices;
    uint64_t requested;
    const char *want;
};

static void check_rows(const struct row *rows, size_t n_rows)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    for (size_t i = 0; i < n_rows; i++) {
        struct dv_hint_list list =
            hints_of(rows[i].online, rows[i].devices, rows[i].requested, arena);
        dv_str got = print_list(&list, arena);

        if (!dv_str_eq(got, dv_str_from_c(rows[i].want)))
            fail_msg("%llu of {%s}: got %.*s, want %s", (unsigned long long)rows[i].requested,
                     rows[i].devices, DV_FMT(got), rows[i].want);
    }
}

static void without_any_nodes_there_is_no_preference(void **state)
{
    static const struct row rows[] = {
        {"0-1", "? ?",   1, "null"},
        {"0-1", "[] []", 1, "null"},
        {"0-1", "? []",  9, "null"},
        {"0-1", "",      1, "null"},
        {"0-1", "?h ?",  2, "null"}, /* what is held is not looked at */
        {"0-1", "? 0g",  1, "null"}, /* what is not listed has no say */
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void every_set_of_nodes_with_enough_devices_is_a_hint(void **state)
{
    static const struct row rows[] = {
        {"0-1", "? 1",       1, "1+"                            },
        {"0-1", "0 1",       1, "0+ 1+ 0,1-"                    },
        {"0-1", "0 1",       2, "0,1+"                          },
        {"0-1", "0 0 1 1",   2, "0+ 1+ 0,1-"                    },
        {"0-1", "0 0b 1 1b", 2, "0,1-"                          },
        {"0-1", "0",         1, "0+"                            },
        {"0-1", "0 1",       3, "[]"                            },
        {"0-1", "0 1 ?",     3, "[]"                            }, /* enough, but not placed */
        {"0-1", "0u 1",      1, "1+ 0,1-"                       },
        {"0-1", "0u 0u 1 0", 2, "0,1-"                          }, /* unhealthy ones could be */
        {"0-2", "0,1 2",     1, "0+ 1+ 2+ 0,1- 0,2- 1,2- 0,1,2-"},
        {"0-2", "0 1 2",     2, "0,1+ 0,2+ 1,2+ 0,1,2-"         },
        {"0-1", "0 1",       0, "0+ 1+ 0,1-"                    },
        {"0-1", "0b 1b",     0, "0+ 1+ 0,1-"                    },
        {"0-1", "0b 1b",     1, "[]"                            },
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void hints_come_by_size_and_then_by_ids(void **state)
{
    static const struct row rows[] = {
        {"0-3",  "0 1 2 3", 1,
         "0+ 1+ 2+ 3+ 0,1- 0,2- 0,3- 1,2- 1,3- 2,3- 0,1,2- 0,1,3- 0,2,3- 1,2,3- 0,1,2,3-"},
        {"0-63", "5 40 63", 2, "5,40+ 5,63+ 40,63+ 5,40,63-"                             },
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void devices_that_are_held_decide_alone(void **state)
{
    static const struct row rows[] = {
        {"0-1", "0h 0 1",    1, "0+ 0,1-"},
        {"0-1", "0h 0",      1, "0+"     },
        {"0-1", "0h 0h 1",   2, "0+ 0,1-"},
        {"0-1", "0h 0 1",    2, "[]"     },
        {"0-1", "0h 0h 1",   1, "[]"     },
        {"0-1", "0h 0h 1",   0, "[]"     },
        {"0-1", "0h 1r",     1, "0+ 0,1-"}, /* without what could be reused */
        {"0-1", "0h 1h 0 1", 2, "0,1-"   },
        {"0-1", "0h ?g 0 1", 2, "[]"     }, /* where the reference crashes */
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void reusable_devices_must_be_part_of_every_hint(void **state)
{
    static const struct row rows[] = {
        {"0-1", "0r",      1, "0+"     },
        {"0-1", "0r 1",    2, "0,1+"   },
        {"0-1", "0r 1",    1, "0+ 0,1-"},
        {"0-1", "0r 1r 0", 1, "0,1-"   },
        {"0-1", "[]r 0",   1, "[]"     }, /* a topology, but nowhere */
        {"0-1", "?r 0",    1, "0+"     }, /* no topology: not counted */
        {"0-1", "?r 0",    2, "[]"     },
        {"0-1", "99r 0",   1, "[]"     },
        {"0-1", "0r 1b",   2, "[]"     },
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void only_nodes_with_devices_are_combined(void **state)
{
    static const struct row rows[] = {
        {"0-1",  "0,99 1", 1, "0+ 1+ 0,1-"},
        {"0-1",  "0 ? []", 1, "0+"        },
        {"0-1",  "99",     1, "[]"        }, /* no such node: all are tried */
        {"0-1",  "99",     0, "0+ 1+ 0,1-"},
        {"0-1",  "-1",     1, "[]"        },
        {"0-1",  "-1 0",   1, "0+"        },
        {"1,3",  "0 1 3",  1, "1+ 3+ 1,3-"},
        {"0-1",  "0",      1, "0+"        },
        {"0-33", "0 1",    1, "0+ 1+ 0,1-"},
        {"0-1",  "0 1",    2, "0,1+"      },
        {"",     "0",      0, "[]"        },
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

static void a_device_on_each_node_gives_the_full_mask_once(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_hint_list list = hints_of("0-7", "0 1 2 3 4 5 6 7", 1, arena);
    size_t n_full = 0;

    (void)state;
    assert_int_equal(list.n_hints, 255);
    for (size_t i = 0; i < list.n_hints; i++) {
        n_full += list.hints[i].mask == 255;
        assert_int_equal(list.hints[i].is_preferred, i < 8);
    }
    assert_int_equal(n_full, 1);
    assert_true(list.hints[254].mask == 255);
}

static void groups_count_as_their_devices_would(void **state)
{
    static const struct dv_numa_group groups[] = {
        {{1, DV_NUMA_NODES}, 100000, 60000, 0, 0},
        {{2, DV_NUMA_NODES}, 100000, 30000, 0, 0},
        {{2, DV_NUMA_NODES}, 1,      1,     0, 0}, /* a place may come twice */
    };
    static const struct {
        uint64_t requested;
        const char *want;
    } cases[] = {
        {30001,      "0+ 1+ 0,1-"},
        {30002,      "0+ 0,1-"   },
        {90001,      "0,1-"      },
        {90002,      "[]"        },
        {UINT64_MAX, "[]"        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-1", NULL, arena);

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_hint_list list;
        struct dv_err err;

        assert_ok(dv_topology_device_hints(&machine, groups, DV_COUNT(groups), cases[i].requested,
                                           arena, &list, &err),
                  &err);
        assert_str(print_list(&list, arena), cases[i].want);
    }
}

static void devices_on_too_many_nodes_are_refused(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_numa_machine machine = make_machine("0-33", NULL, arena);
    struct dv_numa_group group = {
        {UINT64_C(0x1fffff), DV_NUMA_NODES},
        1, 1, 0, 0
    };
    struct dv_hint_list list;
    struct dv_err err;

    (void)state;
    assert_false(dv_topology_device_hints(&machine, &group, 1, 1, arena, &list, &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "devices on 21 NUMA nodes");
    group.place.mask >>= 5;
    assert_ok(dv_topology_device_hints(&machine, &group, 1, 1, arena, &list, &err), &err);
    assert_int_equal(list.n_hints, 65535);
}

static void a_pod_requests_its_peak(void **state)
{
    static const struct {
        const char *needs; /* i: init, s: sidecar; regular without a letter */
        uint64_t want;
    } cases[] = {
        {"",                       0         },
        {"1 1",                    2         },
        {"i2 i4",                  4         },
        {"i2 i2 1 1",              2         },
        {"i3 2",                   3         },
        {"i2 1",                   2         },
        {"i2 3 3",                 6         },
        {"s1 i3 s2 i1 2",          5         }, /* sidecars stay: 1, 1+3, 3, 3+1, 3+2 */
        {"s1 i5 2",                6         },
        {"i5 s1 2",                5         },
        {"18446744073709551615 1", UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        dv_str rest = dv_str_from_c(cases[i].needs);
        struct dv_topology_need needs[8];
        size_t n = 0;
        dv_str piece;

        while (rest.n > 0 && dv_str_split(&rest, ' ', &piece)) {
            bool is_init = piece.p[0] == 'i';
            bool is_sidecar = piece.p[0] == 's';

            needs[n].kind = is_init      ? DV_TOPOLOGY_NEED_INIT
                            : is_sidecar ? DV_TOPOLOGY_NEED_SIDECAR
                                         : DV_TOPOLOGY_NEED_REGULAR;
            assert_true(dv_str_to_u64(dv_str_slice(piece, is_init || is_sidecar, piece.n),
                                      &needs[n++].limit));
        }
        assert_int_equal(dv_topology_pod_request(needs, n), cases[i].want);
    }
}

static void a_pod_sees_devices_of_others_as_taken(void **state)
{
    static const struct row rows[] = {
        {"0-1", "0 0b 1 1b", 2, "0,1-"},
    };

    (void)state;
    check_rows(rows, DV_COUNT(rows));
}

/* Providers that know nothing of devices offer all sets of nodes, the single ones preferred. */
static struct dv_hint_list all_sets(const struct dv_numa_machine *machine, struct dv_arena *arena)
{
    struct dv_numa_group group = {
        {machine->mask, DV_NUMA_NODES},
        1, 1, 0, 0
    };
    struct dv_hint_list list = {0};
    struct dv_err err;

    assert_ok(dv_topology_device_hints(machine, &group, 1, 1, arena, &list, &err), &err);
    return list;
}

static void cpus_and_memory_follow_the_node_of_the_device(void **state)
{
    static const struct {
        const char *online;
        const char *device;
    } cases[] = {
        {"0-1", "0"},
        {"0-1", "1"},
        {"3,7", "3"},
        {"3,7", "7"},
    };
    static const enum dv_topology_policy policies[] = {
        DV_TOPOLOGY_BEST_EFFORT, DV_TOPOLOGY_RESTRICTED, DV_TOPOLOGY_SINGLE_NUMA_NODE};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases) * DV_COUNT(policies); i++) {
        const char *online = cases[i % DV_COUNT(cases)].online;
        const char *device = cases[i % DV_COUNT(cases)].device;
        struct dv_topology_config config = make_config(policies[i / DV_COUNT(cases)]);
        struct dv_numa_machine machine = make_machine(online, NULL, arena);
        struct dv_hint_list lists[] = {hints_of(online, device, 1, arena),
                                       all_sets(&machine, arena), all_sets(&machine, arena)};
        struct dv_topology_verdict verdict;
        struct dv_err err;

        assert_ok(dv_topology_merge(&config, &machine, lists, DV_COUNT(lists), &verdict, &err),
                  &err);
        assert_true(verdict.is_admitted && verdict.affinity.is_preferred);
        assert_true(verdict.affinity.mask == read_mask(dv_str_from_c(device)));
    }
}

static void a_device_with_a_node_in_the_mask_is_aligned(void **state)
{
    static const struct {
        const char *device;
        enum dv_numa_side want;
    } cases[] = {
        {"1,2",  DV_NUMA_ALIGNED  },
        {"2",    DV_NUMA_ALIGNED  },
        {"2,-1", DV_NUMA_ALIGNED  },
        {"1",    DV_NUMA_UNALIGNED},
        {"99",   DV_NUMA_UNALIGNED},
        {"-1,1", DV_NUMA_UNALIGNED},
        {"-1",   DV_NUMA_NO_SIDE  },
        {"[]",   DV_NUMA_NO_SIDE  },
        {"?",    DV_NUMA_NO_SIDE  },
    };
    const struct dv_numa_hint affinity = {4, true, true};
    const struct dv_numa_hint none = {0, false, true};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_numa_place place = read_place(dv_str_from_c(cases[i].device));

        if (dv_topology_side(&place, &affinity) != cases[i].want)
            fail_msg("%s", cases[i].device);
        assert_int_equal(dv_topology_side(&place, &none), DV_NUMA_NO_SIDE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_any_nodes_there_is_no_preference),
        cmocka_unit_test(every_set_of_nodes_with_enough_devices_is_a_hint),
        cmocka_unit_test(hints_come_by_size_and_then_by_ids),
        cmocka_unit_test(devices_that_are_held_decide_alone),
        cmocka_unit_test(reusable_devices_must_be_part_of_every_hint),
        cmocka_unit_test(only_nodes_with_devices_are_combined),
        cmocka_unit_test(a_device_on_each_node_gives_the_full_mask_once),
        cmocka_unit_test(groups_count_as_their_devices_would),
        cmocka_unit_test(devices_on_too_many_nodes_are_refused),
        cmocka_unit_test(a_pod_requests_its_peak),
        cmocka_unit_test(a_pod_sees_devices_of_others_as_taken),
        cmocka_unit_test(cpus_and_memory_follow_the_node_of_the_device),
        cmocka_unit_test(a_device_with_a_node_in_the_mask_is_aligned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
