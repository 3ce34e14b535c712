/* cdi_identity.c - the device nodes in CDI edits that are those of one device.
 *
 * Devices of a kind that share a node, sorted by the number of their nodes, are names of ever more
 * of the same when each has all nodes of the one before ("0", its UUID, "all"); otherwise the node
 * is common: mig0 {n0, c1} and mig1 {n0, c2} both have n0, and it is neither's. The
 * index knows the different sets of nodes that have a node, however many devices have each. */
#include "pod/ledger/pod_identity.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "cdi/cdi.h"

/* ---- a node ---- */

static bool has_numbers(const struct dv_cdi_node *node)
{
    return node->major != 0;
}

static dv_str host_path(const struct dv_cdi_node *node)
{
    return node->host_path.n > 0 ? node->host_path : node->path;
}

static dv_str print_numbers(const struct dv_cdi_node *node, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%s %u:%u", node->type == DV_CDI_NODE_BLOCK ? "block" : "char",
                         node->major, node->minor);
}

/* ---- who has it ---- */

static bool is_within(const struct dv_cdi_nodes *small, const struct dv_cdi_nodes *large)
{
    size_t k = 0;

    for (size_t i = 0; i < small->n_keys; i++) {
        while (k < large->n_keys && dv_str_cmp(large->keys[k], small->keys[i]) < 0)
            k++;
        if (k == large->n_keys || !dv_str_eq(large->keys[k], small->keys[i]))
            return false;
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const struct dv_cdi_nodes *x = *(const struct dv_cdi_nodes *const *)a;
    const struct dv_cdi_nodes *y = *(const struct dv_cdi_nodes *const *)b;

    return (x->n_keys > y->n_keys) - (x->n_keys < y->n_keys);
}

static bool is_common(const struct dv_cdi_index *index, dv_str kind, const struct dv_cdi_node *node)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_cdi_nodes **sorted;
    size_t n;
    const struct dv_cdi_nodes *const *sets = dv_cdi_index_owners(index, kind, node, &n);

    for (size_t i = 1; i < n; i++) {
        /* Any two sets of which neither has all of the other settle it. A control node, which
         * thousands of sets may have, is settled by the first two, before anything is sorted. */
        if (!is_within(sets[i - 1], sets[i]) && !is_within(sets[i], sets[i - 1]))
            return true;
    }
    if (n <= 2)
        return false;
    sorted = DV_NEW_ARRAY(scratch, const struct dv_cdi_nodes *, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = sets[i];
    qsort(sorted, n, sizeof(sorted[0]), by_size);
    for (size_t i = 1; i < n; i++) {
        if (!is_within(sorted[i - 1], sorted[i]))
            return true;
    }
    return false;
}

/* ---- identities ---- */

static void add_node(struct dv_identities *set, const struct dv_cdi_node *node,
                     const struct dv_identity_host *host, struct dv_arena *arena)
{
    struct dv_identities from_path = {0};
    dv_str numbers;

    if (node->type == DV_CDI_NODE_FIFO)
        return;
    dv_identities_add_path(&from_path, host_path(node), host, arena);
    if (from_path.n == 0)
        return; /* the kernel has this node once for a kind of devices */
    if (!has_numbers(node) || node->host_path.n > 0) {
        for (size_t i = 0; i < from_path.n; i++)
            dv_identities_add(set, from_path.v[i], arena);
    }
    if (!has_numbers(node))
        return;
    numbers = print_numbers(node, arena);
    dv_identities_add(set, (struct dv_identity){DV_IDENTITY_NODE, numbers}, arena);
    /* The path in the container is also one of the host when the same device node is there. */
    if (from_path.v[0].kind == DV_IDENTITY_NODE && dv_str_eq(from_path.v[0].text, numbers))
        dv_identities_add(set, from_path.v[1], arena);
}

void dv_identities_add_edits(struct dv_identities *set, const struct dv_cdi_index *index,
                             const struct dv_cdi_edits *edits, const struct dv_identity_host *host,
                             struct dv_arena *arena)
{
    for (size_t i = 0; i < edits->n_parts; i++) {
        const struct dv_cdi_part *part = &edits->parts[i];

        for (size_t k = 0; part->device && k < part->edits->n_nodes; k++) {
            if (!is_common(index, part->spec->kind, &part->edits->nodes[k]))
                add_node(set, &part->edits->nodes[k], host, arena);
        }
    }
}

void dv_identities_add_cdi_names(struct dv_identities *set, const struct dv_cdi_index *index,
                                 const dv_str *names, size_t n_names,
                                 const struct dv_identity_host *host, struct dv_arena *arena)
{
    struct dv_cdi_edits edits = {.parts = DV_NEW_ARRAY(arena, struct dv_cdi_part, n_names)};

    for (size_t i = 0; index && i < n_names; i++) {
        const struct dv_cdi_entry *entry = dv_cdi_index_find(index, names[i]);

        if (entry && !entry->rival)
            edits.parts[edits.n_parts++] =
                (struct dv_cdi_part){entry->spec, entry->device, &entry->device->edits};
    }
    if (edits.n_parts > 0)
        dv_identities_add_edits(set, index, &edits, host, arena);
}
