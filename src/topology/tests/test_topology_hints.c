#include "topology/tests/test_topology_hints.h"

#include "support/dvtest.h"

#include "base/num.h"
#include "base/vec.h"

dv_numa_mask read_mask(dv_str text)
{
    dv_numa_mask mask = 0;
    uint32_t id;
    dv_str piece;

    while (text.n > 0 && dv_str_split(&text, ',', &piece)) {
        if (!dv_str_to_u32(piece, &id) || id > DV_NUMA_ID_MAX)
            fail_msg("no node: %.*s", DV_FMT(piece));
        mask |= UINT64_C(1) << id;
    }
    return mask;
}

static struct dv_numa_hint read_hint(dv_str text)
{
    dv_str nodes = dv_str_slice(text, 0, text.n - 1);
    bool has_mask = !dv_str_eq(nodes, DV_STR("none"));

    if (text.n == 0 || (text.p[nodes.n] != '+' && text.p[nodes.n] != '-'))
        fail_msg("no hint: %.*s", DV_FMT(text));
    return (struct dv_numa_hint){has_mask ? read_mask(nodes) : 0, has_mask, text.p[nodes.n] == '+'};
}

static struct dv_hint_list read_list(dv_str text, struct dv_arena *arena)
{
    DV_VEC(struct dv_numa_hint) hints = {0};
    dv_str piece;

    if (dv_str_eq(text, DV_STR("null")))
        return (struct dv_hint_list){.is_any = true};
    if (!dv_str_eq(text, DV_STR("[]")))
        while (dv_str_split(&text, ' ', &piece))
            *dv_vec_add_in(&hints, arena) = read_hint(piece);
    return (struct dv_hint_list){hints.v, hints.n, false};
}

size_t read_lists(const char *text, struct dv_arena *arena, struct dv_hint_list lists[LISTS_MAX])
{
    dv_str rest = dv_str_from_c(text);
    dv_str piece;
    size_t n = 0;

    while (rest.n > 0 && dv_str_split(&rest, '|', &piece)) {
        assert_true(n < LISTS_MAX);
        lists[n++] = read_list(dv_str_trim(piece), arena);
    }
    return n;
}

dv_str print_hint(const struct dv_numa_hint *hint, struct dv_arena *arena)
{
    dv_str text = hint->has_mask ? DV_STR("") : DV_STR("none");

    for (dv_numa_mask mask = hint->mask; mask; mask &= mask - 1)
        text = dv_str_printf(arena, "%.*s%s%d", DV_FMT(text), text.n > 0 ? "," : "",
                             __builtin_ctzll(mask));
    return dv_str_printf(arena, "%.*s%c", DV_FMT(text), hint->is_preferred ? '+' : '-');
}

dv_str print_list(const struct dv_hint_list *list, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    if (list->n_hints == 0)
        return list->is_any ? DV_STR("null") : DV_STR("[]");
    for (size_t i = 0; i < list->n_hints; i++)
        text = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(text), i > 0 ? " " : "",
                             DV_FMT(print_hint(&list->hints[i], arena)));
    return text;
}

struct dv_numa_machine make_machine(const char *online, const char *distances,
                                    struct dv_arena *arena)
{
    dv_str rest = dv_str_from_c(distances);
    struct dv_numa_machine machine;
    struct dv_err err;
    dv_str row;

    assert_ok(dv_topology_machine_parse(dv_str_from_c(online), arena, &machine, &err), &err);
    for (size_t i = 0; distances && i < machine.n_nodes; i++) {
        assert_true(dv_str_split(&rest, '\n', &row));
        assert_ok(dv_topology_distances_parse(&machine.nodes[i], row, arena, &err), &err);
    }
    return machine;
}

struct dv_topology_config make_config(enum dv_topology_policy policy)
{
    return (struct dv_topology_config){
        .policy = policy,
        .scope = policy == DV_TOPOLOGY_NONE ? DV_TOPOLOGY_SCOPE_NONE : DV_TOPOLOGY_SCOPE_CONTAINER,
        .max_nodes = DV_TOPOLOGY_NODES_DEFAULT,
    };
}
