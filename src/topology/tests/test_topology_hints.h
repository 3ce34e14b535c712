/* test_topology_hints.h - hints as texts, for tables: "0+" node 0, preferred; "0,1-" nodes 0 and 1,
 * not preferred; "none+" no mask. A list is hints with blanks between, "[]" without any, "null"
 * when the provider does not care. Lists of several resources have " | " between them. */
#ifndef DV_TOPOLOGY_TEST_TOPOLOGY_HINTS_H
#define DV_TOPOLOGY_TEST_TOPOLOGY_HINTS_H

#include "base/str.h"
#include "topology/topology.h"

struct dv_arena;

#define LISTS_MAX 8u

/* Into `arena`; a text that is none of these fails the test. */
size_t read_lists(const char *text, struct dv_arena *arena, struct dv_hint_list lists[LISTS_MAX]);
dv_numa_mask read_mask(dv_str text);
dv_str print_hint(const struct dv_numa_hint *hint, struct dv_arena *arena);
dv_str print_list(const struct dv_hint_list *list, struct dv_arena *arena);

/* With these nodes ("0-3"), and distances one row a line; NULL for none. */
struct dv_numa_machine make_machine(const char *online, const char *distances,
                                    struct dv_arena *arena);
struct dv_topology_config make_config(enum dv_topology_policy policy);

#endif
