/* cel_map.h - maps from booleans, numbers and strings; numbers of different kinds are one key. */
#ifndef DV_CEL_MAP_H
#define DV_CEL_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "cel/value/cel_value.h"

struct dv_arena;

struct dv_cel_entry {
    struct dv_cel_val key;
    struct dv_cel_val value;
    uint32_t hash;
};

/* Entries are in the order of insertion. A map made from another by adding a key may share its
 * entries: each knows how many of them are its own. */
struct dv_cel_entries;
struct dv_cel_map {
    uint32_t n;
    bool is_domains;   /* a lookup of what is absent gives an empty map */
    bool is_variables; /* the run loads what is looked up */
    const struct dv_cel_entry *v;
    struct dv_cel_entries *entries;
};

struct dv_cel_map *dv_cel_map_new(uint32_t room, struct dv_arena *arena);
/* Sets an entry, and replaces the value when the key is there: for a map that nobody else has seen.
 * A value that cannot be a key (a list, a map) is added as one that no lookup finds, as in the
 * reference. */
void dv_cel_map_set(struct dv_cel_map *map, const struct dv_cel_val *key,
                    const struct dv_cel_val *value, struct dv_arena *arena);
/* Makes a map with one key more, which must not be there yet. */
const struct dv_cel_map *dv_cel_map_with(const struct dv_cel_map *map, const struct dv_cel_val *key,
                                         const struct dv_cel_val *value, struct dv_arena *arena);

/* The value of the key; NULL when absent, also in a map of domains. */
const struct dv_cel_val *dv_cel_map_find(const struct dv_cel_map *map,
                                         const struct dv_cel_val *key);
/* Like dv_cel_map_find, for a string whose hash is known. */
const struct dv_cel_val *dv_cel_map_find_str(const struct dv_cel_map *map, dv_str key,
                                             uint32_t hash);

bool dv_cel_is_key(const struct dv_cel_val *val);
uint32_t dv_cel_str_hash(dv_str s);
enum dv_cel_equality dv_cel_map_compare(const struct dv_cel_map *a, const struct dv_cel_map *b);

/* The value that a lookup of an absent domain gives. */
extern const struct dv_cel_val dv_cel_empty_map;

#endif
