#include "base/map.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"

#define FIRST_SLOTS 8u
/* Of four slots three may be in use: a search that finds nothing then looks at eight of them, which
 * are side by side. */
#define FULL_PARTS 3u
#define SLOT_PARTS 4u

/* An empty map keeps room for so many entries. */
#define ROOM_KEPT 256u

static struct {
    uint64_t k0, k1;
    pthread_once_t once;
    atomic_bool is_made;
} seed = {.once = PTHREAD_ONCE_INIT};

static void make_seed(void)
{
    seed.k0 = dv_random_u64();
    seed.k1 = dv_random_u64();
    atomic_store_explicit(&seed.is_made, true, memory_order_release);
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* A value that is given and returned stays in registers, other than an array. */
struct sip {
    uint64_t a, b, c, d;
};

static inline struct sip sip_round(struct sip v)
{
    v.a += v.b;
    v.c += v.d;
    v.b = rotate(v.b, 13) ^ v.a;
    v.d = rotate(v.d, 16) ^ v.c;
    v.a = rotate(v.a, 32);
    v.c += v.b;
    v.a += v.d;
    v.b = rotate(v.b, 17) ^ v.c;
    v.d = rotate(v.d, 21) ^ v.a;
    v.c = rotate(v.c, 32);
    return v;
}

/* SipHash-1-3: one round a word, three at the end. */
uint64_t dv_hash(dv_str s)
{
    uint64_t last = (uint64_t)s.n << 56;
    struct sip v;
    uint64_t word;
    size_t at = 0;

    if (!atomic_load_explicit(&seed.is_made, memory_order_acquire))
        (void)pthread_once(&seed.once, make_seed); /* fails only on a bad argument */
    v.a = seed.k0 ^ UINT64_C(0x736f6d6570736575);
    v.b = seed.k1 ^ UINT64_C(0x646f72616e646f6d);
    v.c = seed.k0 ^ UINT64_C(0x6c7967656e657261);
    v.d = seed.k1 ^ UINT64_C(0x7465646279746573);
    for (; s.n - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, s.p + at, sizeof(word));
        v.d ^= word;
        v = sip_round(v);
        v.a ^= word;
    }
    for (size_t i = 0; at + i < s.n; i++)
        last |= (uint64_t)(unsigned char)s.p[at + i] << (8 * i);
    v.d ^= last;
    v = sip_round(v);
    v.a ^= last;
    v.c ^= 0xff;
    v = sip_round(sip_round(sip_round(v)));
    return v.a ^ v.b ^ v.c ^ v.d;
}

void dv_map_init(struct dv_map *map)
{
    *map = (struct dv_map){0};
}

void dv_map_fini(struct dv_map *map)
{
    free(map->entries);
    free(map->slots);
    dv_map_init(map);
}

void dv_map_clear(struct dv_map *map)
{
    map->n = map->n_entries = 0;
    if (map->slots)
        memset(map->slots, 0, map->n_slots * sizeof(map->slots[0]));
}

static size_t max_entries(size_t n_slots)
{
    return n_slots / SLOT_PARTS * FULL_PARTS;
}

/* The slot that holds `key`, or the free one where the search for it ends. */
static size_t find_slot(const struct dv_map *map, dv_str key, uint32_t hash)
{
    size_t mask = map->n_slots - 1;
    size_t slot = hash & mask;

    for (; map->slots[slot].place != 0; slot = (slot + 1) & mask) {
        const struct dv_map_entry *entry;

        if (map->slots[slot].hash != hash)
            continue;
        entry = &map->entries[map->slots[slot].place - 1];
        if (entry->value && dv_str_eq(entry->key, key))
            break;
    }
    return slot;
}

/* The first slot on the way to `end` whose entry was removed, or `end`: a key that comes and goes
 * would otherwise leave a longer way behind each time. */
static size_t reuse_slot(const struct dv_map *map, uint32_t hash, size_t end)
{
    size_t mask = map->n_slots - 1;
    size_t slot = hash & mask;

    while (slot != end && map->entries[map->slots[slot].place - 1].value)
        slot = (slot + 1) & mask;
    return slot;
}

/* The live entries move together at the front, in their order; so do the hashes, which are in that
 * order, too. */
static void drop_holes(struct dv_map *map, uint32_t *hashes)
{
    size_t kept = 0;

    for (size_t i = 0; i < map->n_entries; i++)
        if (map->entries[i].value) {
            hashes[kept] = hashes[i];
            map->entries[kept++] = map->entries[i];
        }
    map->n_entries = kept;
}

/* Drops the holes, and makes so many slots that a fifth more entries come before it is done again.
 */
static void rebuild(struct dv_map *map)
{
    uint32_t *hashes = dv_alloc(map->n_entries * sizeof(hashes[0]));
    size_t n_slots = FIRST_SLOTS;
    size_t n_room;

    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].place != 0)
            hashes[map->slots[i].place - 1] = map->slots[i].hash;
    while (n_slots * FULL_PARTS < (map->n + map->n / 5 + 1) * SLOT_PARTS)
        n_slots *= 2;
    assert(n_slots <= UINT32_MAX);
    drop_holes(map, hashes);
    n_room = dv_size_min(map->n_room, max_entries(n_slots)); /* a map that has shrunk gives back */
    if (n_room < map->n_room)
        map->entries = dv_realloc(map->entries, n_room * sizeof(map->entries[0]));
    map->n_room = n_room;
    free(map->slots);
    map->slots = dv_alloc(n_slots * sizeof(map->slots[0]));
    map->n_slots = n_slots;
    for (size_t i = 0; i < map->n_entries; i++) {
        size_t slot = hashes[i] & (n_slots - 1);

        while (map->slots[slot].place != 0)
            slot = (slot + 1) & (n_slots - 1);
        map->slots[slot] = (struct dv_map_slot){(uint32_t)(i + 1), hashes[i]};
    }
    free(hashes);
}

/* Makes room for one more entry. */
static void grow(struct dv_map *map)
{
    size_t n_max;

    if (map->n_entries >= max_entries(map->n_slots))
        rebuild(map);
    if (map->n_entries < map->n_room)
        return;
    n_max = max_entries(map->n_slots);
    map->n_room = dv_size_min(dv_size_max(map->n_room + map->n_room / 4, FIRST_SLOTS / 2), n_max);
    map->entries = dv_realloc(map->entries, map->n_room * sizeof(map->entries[0]));
}

void *dv_map_get(const struct dv_map *map, dv_str key)
{
    size_t slot;

    if (map->n == 0)
        return NULL;
    slot = find_slot(map, key, (uint32_t)dv_hash(key));
    return map->slots[slot].place ? map->entries[map->slots[slot].place - 1].value : NULL;
}

void *dv_map_set(struct dv_map *map, dv_str key, void *value)
{
    uint32_t hash = (uint32_t)dv_hash(key);
    size_t slot;

    assert(value);
    grow(map);
    slot = find_slot(map, key, hash);
    if (map->slots[slot].place) {
        struct dv_map_entry *entry = &map->entries[map->slots[slot].place - 1];
        void *old = entry->value;

        entry->key = key;
        entry->value = value;
        return old;
    }
    slot = reuse_slot(map, hash, slot);
    map->entries[map->n_entries++] = (struct dv_map_entry){key, value};
    map->slots[slot] = (struct dv_map_slot){(uint32_t)map->n_entries, hash};
    map->n++;
    return NULL;
}

void *dv_map_remove(struct dv_map *map, dv_str key)
{
    struct dv_map_entry *entry;
    size_t slot;
    void *value;

    if (map->n == 0)
        return NULL;
    slot = find_slot(map, key, (uint32_t)dv_hash(key));
    if (!map->slots[slot].place)
        return NULL;
    entry = &map->entries[map->slots[slot].place - 1];
    value = entry->value;
    *entry = (struct dv_map_entry){0}; /* the slot stays, so that searches walk over it */
    if (--map->n == 0 && map->n_room > ROOM_KEPT)
        dv_map_fini(map); /* a queue's, after a burst */
    return value;
}

const struct dv_map_entry *dv_map_next(const struct dv_map *map, size_t *at)
{
    while (*at < map->n_entries) {
        const struct dv_map_entry *entry = &map->entries[(*at)++];

        if (entry->value)
            return entry;
    }
    return NULL;
}

/* ---- tables of names ---- */

/* Open addressing: a lookup needs no key to be composed, and an entry no memory beside its slot. */

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
static struct dv_names_slot *find_name(const struct dv_names *names, uint64_t hash,
                                       dv_str namespace, dv_str name)
{
    size_t mask = names->n_slots - 1;
    size_t at = hash & mask;

    while (names->slots[at].item && !is_it(names, &names->slots[at], hash, namespace, name))
        at = (at + 1) & mask;
    return &names->slots[at];
}

static void grow_names(struct dv_names *names)
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
    return names->n > 0 ? find_name(names, hash_of(namespace, name), namespace, name)->item : NULL;
}

void *dv_names_put(struct dv_names *names, void *item)
{
    struct dv_name own = names->name_of(item);
    uint64_t hash = hash_of(own.namespace, own.name);
    struct dv_names_slot *slot;
    void *old;

    if ((names->n + 1) * 4 > names->n_slots * 3)
        grow_names(names);
    slot = find_name(names, hash, own.namespace, own.name);
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
    slot = find_name(names, hash_of(namespace, name), namespace, name);
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
