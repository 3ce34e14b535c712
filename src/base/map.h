/* map.h - from string keys to pointers.
 *
 * Keys are borrowed: they must live as long as their entry (usually they are a member of the
 * value). Hashing is seeded per process, so a peer that chooses names cannot choose collisions.
 * Walking goes in the order of insertion. */
#ifndef DV_BASE_MAP_H
#define DV_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_map_entry {
    dv_str key;
    void *value; /* NULL: removed */
};

struct dv_map_slot {
    uint32_t place; /* index into entries + 1; 0: the slot is free */
    uint32_t hash;  /* its lower half: most keys that are others are told from the slot alone */
};

struct dv_map {
    struct dv_map_entry *entries; /* in order of insertion, with holes where some were removed */
    struct dv_map_slot *slots;    /* open addressing */
    size_t n;                     /* live entries */
    size_t n_entries;             /* live and removed */
    size_t n_room;                /* of entries */
    size_t n_slots;               /* a power of two, or 0 */
};

void dv_map_init(struct dv_map *map);
void dv_map_fini(struct dv_map *map); /* frees no values */

void *dv_map_get(const struct dv_map *map, dv_str key); /* NULL when absent */
/* Sets `key` to `value` (not NULL) and returns the value it replaces, or NULL. A replaced entry
 * takes the new key too. */
void *dv_map_set(struct dv_map *map, dv_str key, void *value);
/* Removes the key and returns its value; NULL when absent. */
void *dv_map_remove(struct dv_map *map, dv_str key);
void dv_map_clear(struct dv_map *map);

/* The next live entry at or after *at, which is moved past it; NULL at the end. Start with 0.
 * Removing the entry just returned is fine, but what is needed of it is to be taken out before;
 * adding is not. */
const struct dv_map_entry *dv_map_next(const struct dv_map *map, size_t *at);

/* ---- tables of names ---- */

/* A hash table of things that have a namespace and a name. It holds pointers and asks the things
 * themselves for their names, so that an object in a table costs a slot and nothing more. */
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

/* SipHash-1-3 under the process' random seed. */
uint64_t dv_hash(dv_str s);

#endif
