/* kin.h - who owns whom: objects by their uid, and what depends on a uid.
 *
 * An owner need not be there: what depends on it is known by its uid all the same. */
#ifndef DV_CLUSTER_KIN_H
#define DV_CLUSTER_KIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_api_owner_reference;
struct dv_entry;
struct dv_object;

struct dv_kin {
    struct dv_map objects; /* uid -> struct dv_entry */
    struct dv_map owners;  /* uid -> struct dv_kin_owner */
};

struct dv_kin_owner {
    struct dv_list dependents; /* of struct dv_dependence */
    size_t n_uid;
    char uid[];
};

struct dv_dependence {
    struct dv_link link;
    struct dv_kin_owner *owner;
    struct dv_entry *entry;     /* that depends on it */
    struct dv_dependence *next; /* of the same entry */
    bool is_blocking;           /* blockOwnerDeletion */
};

void dv_kin_init(struct dv_kin *kin);
void dv_kin_fini(struct dv_kin *kin);

/* An object came, changed or went; `entry` holds it already. */
void dv_kin_change(struct dv_kin *kin, struct dv_entry *entry, const struct dv_object *old,
                   const struct dv_object *now);
/* The entry whose object has that uid; NULL: none. */
struct dv_entry *dv_kin_find(const struct dv_kin *kin, dv_str uid);
/* NULL when nothing depends on it. */
const struct dv_kin_owner *dv_kin_get(const struct dv_kin *kin, dv_str uid);

#endif
