/* cdi_nodes.c - the device nodes that devices of a kind have, and which devices share them.
 *
 *     v.com/gpu=a {/dev/gpu0, /dev/ctl} --.
 *     v.com/gpu=b {/dev/gpu0, /dev/ctl} ---+-- one set of nodes, twice --.
 *     v.com/gpu=c {/dev/gpu1, /dev/ctl} ------ another -------------------+-- owners of /dev/ctl
 *
 * A driver may have thousands of claims on one device, with a name for each: their nodes are one
 * set, whatever their number. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "cdi/cdi_index.h"

/* All sets of a kind with one node. */
struct owners {
    struct {
        struct dv_cdi_nodes **v;
        size_t n;
        size_t size;
    } sets;
    dv_str key; /* the kind and the node */
    char text[];
};

/* A key of a set, and where the set is among its owners. */
struct place {
    struct owners *owners;
    size_t at;
};

struct dv_cdi_node_set {
    struct dv_cdi_nodes nodes;
    size_t n_devices;
    dv_str key;            /* the kind and the nodes */
    struct place places[]; /* of each key; the keys and all texts follow */
};

/* ---- one node ---- */

/* The key that nodes of different specs share when they are the same device. For a node with
 * numbers and no path of the host, the path is only the container's name for it. */
static dv_str node_key(const struct dv_cdi_node *node, struct dv_arena *arena)
{
    if (node->major != 0 && node->host_path.n == 0)
        return dv_str_printf(arena, "%s %u:%u", node->type == DV_CDI_NODE_BLOCK ? "block" : "char",
                             node->major, node->minor);
    return dv_path_clean_absolute(node->host_path.n > 0 ? node->host_path : node->path, arena);
}

static char *put(char *at, const void *bytes, size_t n)
{
    if (n > 0)
        memcpy(at, bytes, n);
    return at + n;
}

/* Joins keys so that different sets have different texts: each key has its length before it, as it
 * may have any byte. A kind has no space. */
static dv_str join_keys(dv_str kind, const dv_str *keys, size_t n_keys, struct dv_arena *arena)
{
    size_t n = kind.n + 1;
    char *text;
    char *at;

    for (size_t i = 0; i < n_keys; i++)
        n += sizeof(keys[i].n) + keys[i].n;
    text = dv_arena_alloc_raw(arena, n, 1);
    at = put(text, kind.p, kind.n);
    at = put(at, " ", 1);
    for (size_t i = 0; i < n_keys; i++) {
        at = put(at, &keys[i].n, sizeof(keys[i].n));
        at = put(at, keys[i].p, keys[i].n);
    }
    return (dv_str){text, n};
}

/* ---- sets ---- */

/* Sorted, each once. */
static size_t list_keys(const struct dv_cdi_container_edits *edits, struct dv_arena *arena,
                        dv_str **keys)
{
    dv_str *all = DV_NEW_ARRAY(arena, dv_str, edits->n_nodes);
    size_t n = 0;

    for (size_t i = 0; i < edits->n_nodes; i++)
        all[i] = node_key(&edits->nodes[i], arena);
    qsort(all, edits->n_nodes, sizeof(dv_str), dv_str_compare);
    for (size_t i = 0; i < edits->n_nodes; i++) {
        if (n == 0 || !dv_str_eq(all[n - 1], all[i]))
            all[n++] = all[i];
    }
    *keys = all;
    return n;
}

static struct owners *owners_of(struct dv_cdi_node_index *nodes, dv_str key)
{
    struct owners *owners = dv_map_get(&nodes->owners, key);

    if (owners)
        return owners;
    owners = dv_alloc(sizeof(*owners) + key.n);
    (void)put(owners->text, key.p, key.n);
    owners->key = (dv_str){owners->text, key.n};
    (void)dv_map_set(&nodes->owners, owners->key, owners); /* it was absent */
    return owners;
}

static struct dv_cdi_node_set *new_set(struct dv_cdi_node_index *nodes, dv_str kind, dv_str joined,
                                       const dv_str *keys, size_t n_keys, struct dv_arena *scratch)
{
    struct dv_cdi_node_set *set;
    size_t n_text = joined.n;
    char *at;

    for (size_t i = 0; i < n_keys; i++)
        n_text += keys[i].n;
    set = dv_alloc(sizeof(*set) + n_keys * (sizeof(set->places[0]) + sizeof(dv_str)) + n_text);
    set->nodes.keys = (dv_str *)(void *)&set->places[n_keys]; /* aligned as a pointer is, too */
    set->nodes.n_keys = n_keys;
    at = (char *)&set->nodes.keys[n_keys];
    set->key = (dv_str){at, joined.n};
    at = put(at, joined.p, joined.n);
    for (size_t i = 0; i < n_keys; i++) {
        struct owners *owners = owners_of(nodes, join_keys(kind, &keys[i], 1, scratch));

        set->nodes.keys[i] = (dv_str){at, keys[i].n};
        at = put(at, keys[i].p, keys[i].n);
        set->places[i] = (struct place){owners, owners->sets.n};
        *dv_vec_add(&owners->sets) = &set->nodes;
    }
    (void)dv_map_set(&nodes->sets, set->key, set); /* it was absent */
    return set;
}

struct dv_cdi_node_set *dv_cdi_node_set_ref(struct dv_cdi_node_index *nodes, dv_str kind,
                                            const struct dv_cdi_device *device)
{
    struct dv_arena *scratch = nodes->scratch;
    struct dv_cdi_node_set *set;
    dv_str joined;
    dv_str *keys;
    size_t n_keys;

    if (device->edits.n_nodes == 0)
        return NULL;
    n_keys = list_keys(&device->edits, scratch, &keys);
    joined = join_keys(kind, keys, n_keys, scratch);
    set = dv_map_get(&nodes->sets, joined);
    if (!set)
        set = new_set(nodes, kind, joined, keys, n_keys, scratch);
    set->n_devices++;
    dv_arena_reset(scratch);
    return set;
}

static size_t find_key(const struct dv_cdi_node_set *set, dv_str key)
{
    const dv_str *at =
        bsearch(&key, set->nodes.keys, set->nodes.n_keys, sizeof(dv_str), dv_str_compare);

    return (size_t)(at - set->nodes.keys);
}

/* The last one takes its place. */
static void leave(struct dv_cdi_node_index *nodes, struct dv_cdi_node_set *set, size_t i)
{
    struct owners *owners = set->places[i].owners;
    size_t place = set->places[i].at;
    struct dv_cdi_node_set *moved;

    dv_vec_remove_swap(&owners->sets, place);
    if (place < owners->sets.n) {
        moved = DV_CONTAINER(owners->sets.v[place], struct dv_cdi_node_set, nodes);
        moved->places[find_key(moved, set->nodes.keys[i])].at = place;
    }
    if (owners->sets.n == 0) {
        (void)dv_map_remove(&nodes->owners, owners->key);
        dv_vec_fini(&owners->sets);
        free(owners);
    }
}

void dv_cdi_node_set_unref(struct dv_cdi_node_index *nodes, struct dv_cdi_node_set *set)
{
    if (!set || --set->n_devices > 0)
        return;
    for (size_t i = 0; i < set->nodes.n_keys; i++)
        leave(nodes, set, i);
    (void)dv_map_remove(&nodes->sets, set->key);
    free(set);
}

void dv_cdi_node_index_init(struct dv_cdi_node_index *nodes)
{
    nodes->scratch = dv_arena_new();
    dv_map_init(&nodes->sets);
    dv_map_init(&nodes->owners);
}

void dv_cdi_node_index_fini(struct dv_cdi_node_index *nodes)
{
    dv_arena_free(nodes->scratch);
    dv_map_fini(&nodes->sets);
    dv_map_fini(&nodes->owners);
}

const struct dv_cdi_nodes *const *dv_cdi_index_owners(const struct dv_cdi_index *index, dv_str kind,
                                                      const struct dv_cdi_node *node,
                                                      size_t *n_sets)
{
    struct dv_arena *scratch = index->nodes.scratch;
    dv_str key = node_key(node, scratch);
    const struct owners *owners =
        dv_map_get(&index->nodes.owners, join_keys(kind, &key, 1, scratch));

    dv_arena_reset(scratch);
    *n_sets = owners ? owners->sets.n : 0;
    return owners ? (const struct dv_cdi_nodes *const *)owners->sets.v : NULL;
}
