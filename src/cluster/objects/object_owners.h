/* object_owners.h - who owns whom: objects by their uid, and what depends on a uid.
 *
 * An owner need not be there: what depends on it is known by its uid all the same. */
#ifndef DV_CLUSTER_OBJECT_OWNERS_H
#define DV_CLUSTER_OBJECT_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_api_owner_reference;
struct dv_entry;
struct dv_object;

struct dv_object_owners {
    struct dv_map objects;  /* uid -> struct dv_entry */
    struct dv_map by_uid;   /* uid -> struct dv_object_owner */
    struct dv_slabs memory; /* of owners and dependences */
};

struct dv_object_owner {
    struct dv_list dependents; /* of struct dv_dependence */
    size_t n_uid;
    char uid[];
};

struct dv_dependence {
    struct dv_link link;
    struct dv_object_owner *owner;
    struct dv_entry *entry;     /* that depends on it */
    struct dv_dependence *next; /* of the same entry */
    bool is_blocking;           /* blockOwnerDeletion */
};

void dv_object_owners_init(struct dv_object_owners *owners);
void dv_object_owners_fini(struct dv_object_owners *owners);

/* An object came, changed or went; `entry` holds it already. */
void dv_object_owners_change(struct dv_object_owners *owners, struct dv_entry *entry,
                             const struct dv_object *old, const struct dv_object *now);
/* The entry whose object has that uid; NULL: none. */
struct dv_entry *dv_object_owners_find(const struct dv_object_owners *owners, dv_str uid);
/* NULL when nothing depends on it. */
const struct dv_object_owner *dv_object_owners_get(const struct dv_object_owners *owners,
                                                   dv_str uid);

#endif
