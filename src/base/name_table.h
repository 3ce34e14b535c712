/* name_table.h - a hash table of things that have a namespace and a name.
 *
 * It holds pointers and asks the things themselves for their names, so that an object in a table
 * costs a slot and nothing more. Hashing is seeded per process. */
#ifndef DV_BASE_NAME_TABLE_H
#define DV_BASE_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_name {
    dv_str namespace; /* empty for what is in no namespace */
    dv_str name;
};

struct dv_names_slot {
    void *item; /* NULL: free */
    uint64_t hash;
};

struct dv_names {
    struct dv_name (*name_of)(const void *item);
    struct dv_names_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;
};

void dv_names_init(struct dv_names *names, struct dv_name (*name_of)(const void *item));
void dv_names_fini(struct dv_names *names); /* frees no items */

void *dv_names_get(const struct dv_names *names, dv_str namespace, dv_str name); /* NULL: absent */
/* Puts it in, and returns what it replaces, or NULL. */
void *dv_names_put(struct dv_names *names, void *item);
/* Takes it out and returns it; NULL when absent. */
void *dv_names_remove(struct dv_names *names, dv_str namespace, dv_str name);
/* The next item at or after slot *at, which is moved past it; NULL at the end. Start with 0. */
void *dv_names_next(const struct dv_names *names, size_t *at);

#endif
