/* collection.h - the objects of one kind: by name, in the order of their keys, and their last
 * changes.
 *
 * A key is "namespace/name", or "name" for a kind without namespaces. Lists go in the order of the
 * bytes of the keys, as the reference's do: "a-b/x" comes before "a/x". */
#ifndef DV_CLUSTER_COLLECTION_H
#define DV_CLUSTER_COLLECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/objects/history.h"

struct dv_dependence;
struct dv_kind;
struct dv_object;
struct dv_slabs;
struct dv_cluster_operation;
struct dv_collection;
struct dv_collection_chunk;

/* A name that is taken: by an object, or by those who want to write it. */
struct dv_entry {
    struct dv_collection *collection;
    struct dv_object *object;               /* that is durable, maybe packed; NULL: none */
    struct dv_cluster_operation *operation; /* that looks at it or writes it now; NULL: none */
    struct dv_list waiting;                 /* of operations, for their turn */
    uint32_t n_waiting;   /* these, and those that have let the name go and will come back */
    uint16_t n_namespace; /* bytes of the namespace; 0: none */
    uint16_t n_key;
    struct dv_dependence *owners; /* see object_owners.h */
    struct dv_due *due;           /* NULL: the collector has nothing to do about it */
    char key[];
};

/* An entry in a queue of the collector. */
struct dv_due {
    struct dv_link link;
    struct dv_entry *entry;
    uint64_t at_ms;
};

struct dv_collection {
    const struct dv_kind *kind;
    struct dv_slabs *memory;                     /* of the entries of all kinds */
    struct dv_names names;                       /* all entries */
    DV_VEC(struct dv_collection_chunk *) chunks; /* entries with an object, in order */
    size_t n;                                    /* of those */
    size_t size_bytes;                           /* of their objects */
    struct dv_history history;
    struct dv_list watchers; /* of struct watching: see cluster_watch.c */
    struct dv_list views;    /* of struct local_view: see cluster_views.c */
    bool is_woken;           /* some watchers have something to be told */
};

/* Where a walk in order is; valid until the collection changes. */
struct dv_collection_place {
    size_t chunk;
    size_t at;
};

void dv_collection_init(struct dv_collection *collection, const struct dv_kind *kind,
                        struct dv_slabs *memory);
void dv_collection_fini(struct dv_collection *collection); /* with all entries */

/* Has the collector leave the entry alone. */
void dv_entry_forget_due(struct dv_entry *entry);
/* Of an Event: its place among all by age, see events.c. Other entries have no memory for it. */
struct dv_link *dv_entry_age(struct dv_entry *entry);
struct dv_entry *dv_entry_of_age(struct dv_link *age);

dv_str dv_entry_key(const struct dv_entry *entry);
dv_str dv_entry_namespace(const struct dv_entry *entry);
dv_str dv_entry_name(const struct dv_entry *entry);
/* The object with its value, until the next turn of the loop; NULL: there is none. */
struct dv_object *dv_entry_object(const struct dv_entry *entry);

/* NULL when the name is not taken, or too long to be. */
struct dv_entry *dv_collection_get(const struct dv_collection *collection, dv_str namespace,
                                   dv_str name);
/* Like dv_collection_get, but makes the entry when there is none. NULL: the name is too long. */
struct dv_entry *dv_collection_take(struct dv_collection *collection, dv_str namespace,
                                    dv_str name);
/* Frees an entry that nothing needs any more: no object, nobody who writes. */
void dv_collection_drop(struct dv_entry *entry);

/* Takes the reference (dv_object_keep) to `object` (NULL: it goes) and gives back the one to what
 * was there. */
struct dv_object *dv_collection_set(struct dv_entry *entry, struct dv_object *object);

/* The first entry whose key is not before `key`, and those that follow; NULL at the end. */
struct dv_collection_place dv_collection_find(const struct dv_collection *collection, dv_str key);
struct dv_entry *dv_collection_next(const struct dv_collection *collection,
                                    struct dv_collection_place *place);

/* The entries of one namespace, or all (""). */
struct dv_collection_range {
    const struct dv_collection *collection;
    struct dv_collection_place place;
    dv_str namespace; /* borrowed */
};
struct dv_collection_range dv_collection_range(const struct dv_collection *collection,
                                               dv_str namespace);
/* Like dv_collection_range, but only the entries behind `key`. */
struct dv_collection_range dv_collection_range_after(const struct dv_collection *collection,
                                                     dv_str namespace, dv_str key);
struct dv_entry *dv_collection_range_next(struct dv_collection_range *range); /* NULL at the end */

#endif
