/* cdi_index.h - what is inside an index.
 *
 *     name --> named: all specs that have it, in order --> entry: the one that counts
 *     kind --> its specs, in order
 *     kind, node --> the different sets of nodes of devices that have it */
#ifndef DV_CDI_INDEX_H
#define DV_CDI_INDEX_H

#include <stddef.h>

#include "base/map.h"
#include "base/str.h"

struct dv_arena;
struct dv_cdi_device;
struct dv_cdi_entry;
struct dv_cdi_node_set;
struct dv_cdi_spec;

/* A spec in its place. Those that dv_cdi_index_new was given are numbered from 1; those that were
 * added have no number, and are sorted by priority and path. */
struct dv_cdi_ranked {
    struct dv_cdi_spec *spec;
    size_t number;
};

struct dv_cdi_ranks {
    struct dv_cdi_ranked *v; /* sorted */
    size_t n;
    size_t size;
};

/* The specs of a kind. */
struct dv_cdi_kind {
    struct dv_cdi_ranks specs;
    dv_str name;
    char text[];
};

struct dv_cdi_holder {
    struct dv_cdi_ranked ranked;
    const struct dv_cdi_device *device;
};

/* A device name, and all that have it. */
struct dv_cdi_named {
    struct dv_cdi_entry *entry; /* never changes: another one takes its place */
    struct dv_cdi_holder *holders;
    size_t n_holders;
    struct dv_cdi_node_set *nodes; /* of the device that counts; NULL: it has none */
};

/* cdi_nodes.c: the nodes of the devices that count. */
struct dv_cdi_node_index {
    struct dv_map sets;   /* struct dv_cdi_node_set */
    struct dv_map owners; /* struct owners */
    struct dv_arena *scratch;
};

struct dv_cdi_index {
    size_t n_specs; /* refused ones too */
    struct dv_cdi_ranks refused;
    struct dv_map kinds;   /* struct dv_cdi_kind */
    struct dv_map by_name; /* struct dv_cdi_named */
    struct dv_cdi_node_index nodes;
    /* These are kept until they are swept: */
    struct {
        struct dv_cdi_spec **v;
        size_t n;
        size_t size;
    } gone_specs;
    struct {
        struct dv_cdi_entry **v;
        size_t n;
        size_t size;
    } gone_entries;
};

int dv_cdi_ranked_cmp(const struct dv_cdi_ranked *a, const struct dv_cdi_ranked *b);

/* The set of the nodes of a device, one more device of which has it now. NULL: it has none. */
struct dv_cdi_node_set *dv_cdi_node_set_ref(struct dv_cdi_node_index *nodes, dv_str kind,
                                            const struct dv_cdi_device *device);
void dv_cdi_node_set_unref(struct dv_cdi_node_index *nodes, struct dv_cdi_node_set *set);
void dv_cdi_node_index_init(struct dv_cdi_node_index *nodes);
/* Frees the index; all sets must have been given back. */
void dv_cdi_node_index_fini(struct dv_cdi_node_index *nodes);

#endif
