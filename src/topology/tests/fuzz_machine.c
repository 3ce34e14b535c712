/* fuzz_machine.c - a list of nodes or distances that is read, printed and read again is the same,
 * and nodes are in order. The input is both: the nodes, then a line of distances. */
#include "topology/topology.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define TEXT_BYTES_MAX (64u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_nodes(dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_numa_machine machine, again;
    dv_numa_mask mask = 0;
    struct dv_err err;
    bool is_ok;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!dv_topology_machine_parse(text, arena, &machine, &err))
        return;
    assert(machine.n_nodes <= DV_NUMA_NODES_MAX);
    for (size_t i = 0; i < machine.n_nodes; i++) {
        uint32_t id = machine.nodes[i].id;

        assert(i == 0 || id > machine.nodes[i - 1].id);
        dv_buf_printf(&buf, "%s%u", i > 0 ? "," : "", id);
        if (id <= DV_NUMA_ID_MAX)
            mask |= UINT64_C(1) << id;
    }
    assert(mask == machine.mask);
    is_ok = dv_topology_machine_parse(dv_buf_str(&buf), arena, &again, &err);
    assert(is_ok && again.n_nodes == machine.n_nodes && again.mask == machine.mask);
    for (size_t i = 0; i < machine.n_nodes; i++)
        assert(again.nodes[i].id == machine.nodes[i].id);
}

static void check_distances(dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_numa_node node = {0};
    struct dv_numa_node again = {0};
    struct dv_err err;
    bool is_ok;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!dv_topology_distances_parse(&node, text, arena, &err)) {
        assert(node.n_distances == 0);
        return;
    }
    assert(node.n_distances <= DV_NUMA_NODES_MAX);
    for (size_t i = 0; i < node.n_distances; i++)
        dv_buf_printf(&buf, "%s%u", i > 0 ? " " : "", node.distances[i]);
    is_ok = dv_topology_distances_parse(&again, dv_buf_str(&buf), arena, &err);
    assert(is_ok && again.n_distances == node.n_distances);
    for (size_t i = 0; i < node.n_distances; i++)
        assert(again.distances[i] == node.distances[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str text = {(const char *)data, size};
    size_t end = dv_str_find_char(text, '\n');

    check_nodes(dv_str_slice(text, 0, end));
    check_distances(dv_str_slice(text, end + 1, size));
    return 0;
}
