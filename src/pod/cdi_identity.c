/* cdi_identity.c - the device nodes in CDI edits that are those of one device.
 *
 * Devices of a kind that share a node, sorted by the number of their nodes, are names of ever more
 * of the same when each has all nodes of the one before ("0", its UUID, "all"); otherwise the node
 * is common: mig0 {n0, c1} and mig1 {n0, c2} both have n0, and it is neither's.
 *
 * One walk over the nodes of the kinds in question finds all owners of all nodes of the edits. */
#include "pod/identity.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdi/cdi.h"

/* A kind, and a path of the file system. */
#define KEY_BYTES_MAX 8192u

/* A device of a kind, and its nodes. */
struct owner {
    const struct dv_cdi_device *device;
    dv_str *keys; /* sorted, each once; made when they are asked for */
    size_t n_keys;
};

/* A node that some of the edits have. */
struct shared {
    dv_str key;
    struct {
        struct owner **v;
        size_t n;
        size_t size;
    } owners;
};

struct search {
    struct dv_arena *arena; /* scratch */
    struct dv_buf key;
    struct dv_map nodes; /* struct shared, by kind and node */
    struct dv_map kinds; /* those of the edits */
};

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

/* What two nodes of specs have in common when they are the same. With numbers and no path of the
 * host, the path is only what the container calls it. */
static dv_str node_key(const struct dv_cdi_node *node, struct dv_arena *arena)
{
    if (has_numbers(node) && node->host_path.n == 0)
        return print_numbers(node, arena);
    return dv_identity_clean_path(host_path(node), arena);
}

/* Borrowed until the next one. */
static dv_str search_key(struct search *search, dv_str kind, const struct dv_cdi_node *node)
{
    dv_str key = node_key(node, search->arena);

    dv_buf_clear(&search->key);
    dv_buf_add(&search->key, kind);
    dv_buf_add_char(&search->key, ' ');
    dv_buf_add(&search->key, key);
    return dv_buf_str(&search->key);
}

/* ---- who has it ---- */

static int by_text(const void *a, const void *b)
{
    return dv_str_cmp(*(const dv_str *)a, *(const dv_str *)b);
}

static void list_keys(struct owner *owner, struct dv_arena *arena)
{
    const struct dv_cdi_container_edits *edits = &owner->device->edits;
    size_t n = 0;

    if (owner->keys || edits->n_nodes == 0)
        return;
    owner->keys = DV_NEW_ARRAY(arena, dv_str, edits->n_nodes);
    for (size_t i = 0; i < edits->n_nodes; i++)
        owner->keys[i] = node_key(&edits->nodes[i], arena);
    qsort(owner->keys, edits->n_nodes, sizeof(dv_str), by_text);
    for (size_t i = 0; i < edits->n_nodes; i++) {
        if (n == 0 || !dv_str_eq(owner->keys[n - 1], owner->keys[i]))
            owner->keys[n++] = owner->keys[i];
    }
    owner->n_keys = n;
}

static bool is_within(const struct owner *small, const struct owner *large)
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
    const struct owner *x = *(struct owner *const *)a;
    const struct owner *y = *(struct owner *const *)b;

    return (x->n_keys > y->n_keys) - (x->n_keys < y->n_keys);
}

static bool is_common(struct shared *shared, struct dv_arena *arena)
{
    struct owner **owners = shared->owners.v;
    size_t n = shared->owners.n;

    if (n < 2)
        return false;
    for (size_t i = 0; i < n; i++) {
        list_keys(owners[i], arena);
        /* Two neighbours settle it for a control node, which thousands may have. */
        if (i > 0 && !is_within(owners[i - 1], owners[i]) && !is_within(owners[i], owners[i - 1]))
            return true;
    }
    qsort(owners, n, sizeof(owners[0]), by_size);
    for (size_t i = 1; i < n; i++) {
        if (!is_within(owners[i - 1], owners[i]))
            return true;
    }
    return false;
}

/* ---- the walk ---- */

static void ask_for(struct search *search, const struct dv_cdi_part *part)
{
    if (!dv_map_get(&search->kinds, part->spec->kind))
        (void)dv_map_set(&search->kinds, part->spec->kind, search);
    for (size_t i = 0; i < part->edits->n_nodes; i++) {
        dv_str key = search_key(search, part->spec->kind, &part->edits->nodes[i]);
        struct shared *shared;

        if (dv_map_get(&search->nodes, key))
            continue;
        shared = DV_NEW(search->arena, struct shared);
        shared->key = dv_str_copy(key, search->arena);
        (void)dv_map_set(&search->nodes, shared->key, shared);
    }
}

static void find_owners(struct search *search, const struct dv_cdi_index *index)
{
    const struct dv_cdi_entry *entry;

    for (size_t at = 0; (entry = dv_cdi_index_next(index, &at)) != NULL;) {
        struct owner *owner = NULL;

        if (!dv_map_get(&search->kinds, entry->spec->kind))
            continue;
        for (size_t i = 0; i < entry->device->edits.n_nodes; i++) {
            dv_str key = search_key(search, entry->spec->kind, &entry->device->edits.nodes[i]);
            struct shared *shared = dv_map_get(&search->nodes, key);

            if (!shared ||
                (shared->owners.n > 0 && owner && shared->owners.v[shared->owners.n - 1] == owner))
                continue; /* nobody asks; or the device has it twice */
            if (!owner) {
                owner = DV_NEW(search->arena, struct owner);
                owner->device = entry->device;
            }
            *dv_vec_add_in(&shared->owners, search->arena) = owner;
        }
    }
}

static void add_node(struct dv_identities *set, const struct dv_cdi_node *node,
                     const struct dv_identity_host *host, struct dv_arena *arena)
{
    struct dv_identities from_path = {0};
    dv_str numbers;

    if (node->type == DV_CDI_NODE_FIFO)
        return;
    dv_identities_add_path(&from_path, host_path(node), host, arena);
    if (from_path.n == 0)
        return; /* the kernel has it once */
    if (!has_numbers(node) || node->host_path.n > 0) {
        for (size_t i = 0; i < from_path.n; i++)
            dv_identities_add(set, from_path.v[i], arena);
    }
    if (!has_numbers(node))
        return;
    numbers = print_numbers(node, arena);
    dv_identities_add(set, (struct dv_identity){DV_IDENTITY_NODE, numbers}, arena);
    /* The path is the host's, too, when it has there what the spec says. */
    if (from_path.v[0].kind == DV_IDENTITY_NODE && dv_str_eq(from_path.v[0].text, numbers))
        dv_identities_add(set, from_path.v[1], arena);
}

void dv_identities_add_edits(struct dv_identities *set, const struct dv_cdi_index *index,
                             const struct dv_cdi_edits *edits, const struct dv_identity_host *host,
                             struct dv_arena *arena)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct search search = {.arena = scratch};

    dv_buf_init(&search.key, KEY_BYTES_MAX);
    dv_map_init(&search.nodes);
    dv_map_init(&search.kinds);
    for (size_t i = 0; i < edits->n_parts; i++) {
        if (edits->parts[i].device)
            ask_for(&search, &edits->parts[i]);
    }
    find_owners(&search, index);
    for (size_t i = 0; i < edits->n_parts; i++) {
        const struct dv_cdi_part *part = &edits->parts[i];

        for (size_t k = 0; part->device && k < part->edits->n_nodes; k++) {
            struct shared *shared = dv_map_get(
                &search.nodes, search_key(&search, part->spec->kind, &part->edits->nodes[k]));

            if (!is_common(shared, scratch))
                add_node(set, &part->edits->nodes[k], host, arena);
        }
    }
    dv_map_fini(&search.nodes);
    dv_map_fini(&search.kinds);
    dv_buf_fini(&search.key);
}

void dv_identities_add_cdi_names(struct dv_identities *set, const struct dv_cdi_index *index,
                                 const dv_str *names, size_t n_names,
                                 const struct dv_identity_host *host, struct dv_arena *arena)
{
    struct dv_cdi_edits edits = {.parts = DV_NEW_ARRAY(arena, struct dv_cdi_part, n_names)};

    for (size_t i = 0; i < n_names; i++) {
        const struct dv_cdi_entry *entry = dv_cdi_index_find(index, names[i]);

        if (entry && !entry->rival)
            edits.parts[edits.n_parts++] =
                (struct dv_cdi_part){entry->spec, entry->device, &entry->device->edits};
    }
    if (edits.n_parts > 0)
        dv_identities_add_edits(set, index, &edits, host, arena);
}
