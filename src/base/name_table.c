/* name_table.c - a hash table of entries by namespace and name, with open addressing: a lookup
 * needs no key to be composed, and an entry needs no memory beside its slot. */
#include "base/name_table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"

#define FIRST_SLOTS 8u

/* Hashes both parts with the process's seed, so that those who choose names cannot choose their
 * places and slow the table down. */
static uint64_t hash_of(dv_str namespace, dv_str name)
{
    uint64_t hash = dv_hash(name);

    return namespace.n > 0 ? hash ^ (dv_hash(namespace) * UINT64_C(0x9e3779b97f4a7c15)) : hash;
}

static bool is_it(const struct dv_names *names, const struct dv_names_slot *slot, uint64_t hash,
                  dv_str namespace, dv_str name)
{
    struct dv_name own;

    if (slot->hash != hash)
        return false;
    own = names->name_of(slot->item);
    return dv_str_eq(own.name, name) && dv_str_eq(own.namespace, namespace);
}

/* Finds the slot of the entry, or the free one where it would be. */
static struct dv_names_slot *find(const struct dv_names *names, uint64_t hash, dv_str namespace,
                                  dv_str name)
{
    size_t mask = names->n_slots - 1;
    size_t at = hash & mask;

    while (names->slots[at].item && !is_it(names, &names->slots[at], hash, namespace, name))
        at = (at + 1) & mask;
    return &names->slots[at];
}

static void grow(struct dv_names *names)
{
    struct dv_names_slot *old = names->slots;
    size_t n_old = names->n_slots;
    size_t mask;

    names->n_slots = n_old > 0 ? n_old * 2 : FIRST_SLOTS;
    names->slots = dv_alloc(names->n_slots * sizeof(names->slots[0]));
    mask = names->n_slots - 1;
    for (size_t i = 0; i < n_old; i++) {
        size_t at = old[i].hash & mask;

        if (!old[i].item)
            continue;
        while (names->slots[at].item)
            at = (at + 1) & mask;
        names->slots[at] = old[i];
    }
    free(old);
}

void dv_names_init(struct dv_names *names, struct dv_name (*name_of)(const void *item))
{
    *names = (struct dv_names){.name_of = name_of};
}

void dv_names_fini(struct dv_names *names)
{
    free(names->slots);
    names->slots = NULL;
    names->n = names->n_slots = 0;
}

void *dv_names_get(const struct dv_names *names, dv_str namespace, dv_str name)
{
    return names->n > 0 ? find(names, hash_of(namespace, name), namespace, name)->item : NULL;
}

void *dv_names_put(struct dv_names *names, void *item)
{
    struct dv_name own = names->name_of(item);
    uint64_t hash = hash_of(own.namespace, own.name);
    struct dv_names_slot *slot;
    void *old;

    if ((names->n + 1) * 4 > names->n_slots * 3)
        grow(names);
    slot = find(names, hash, own.namespace, own.name);
    old = slot->item;
    *slot = (struct dv_names_slot){.item = item, .hash = hash};
    names->n += !old;
    return old;
}

/* Closes the hole that a removed entry leaves: entries behind it move up, unless they would pass
 * their own place. Without this, lookups would stop at the hole. */
static void close_hole(struct dv_names *names, size_t hole)
{
    size_t mask = names->n_slots - 1;

    for (size_t at = (hole + 1) & mask; names->slots[at].item; at = (at + 1) & mask) {
        size_t home = names->slots[at].hash & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        names->slots[hole] = names->slots[at];
        hole = at;
    }
    names->slots[hole] = (struct dv_names_slot){0};
}

void *dv_names_remove(struct dv_names *names, dv_str namespace, dv_str name)
{
    struct dv_names_slot *slot;
    void *item;

    if (names->n == 0)
        return NULL;
    slot = find(names, hash_of(namespace, name), namespace, name);
    item = slot->item;
    if (!item)
        return NULL;
    close_hole(names, (size_t)(slot - names->slots));
    names->n--;
    return item;
}

void *dv_names_next(const struct dv_names *names, size_t *at)
{
    while (*at < names->n_slots) {
        void *item = names->slots[(*at)++].item;

        if (item)
            return item;
    }
    return NULL;
}
