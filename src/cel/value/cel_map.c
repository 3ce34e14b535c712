#include "cel/value/cel_map.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "cel/value/type.h"

/* Below this many, comparing hashes one after the other is as fast as a table. */
#define LINEAR_MAX 8u

struct dv_cel_entries {
    uint32_t n_used;
    uint32_t size;
    uint32_t n_slots; /* 0: no table yet */
    uint32_t *slots;  /* index of an entry + 1 */
    struct dv_cel_entry v[];
};

static const struct dv_cel_map empty = {0};
const struct dv_cel_val dv_cel_empty_map = {.kind = DV_CEL_MAP, .map = &empty};

uint32_t dv_cel_str_hash(dv_str s)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ s.n;
    uint64_t word;
    size_t i = 0;

    for (; i + 8 <= s.n; i += 8) {
        memcpy(&word, s.p + i, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    if (i < s.n) {
        word = 0;
        memcpy(&word, s.p + i, s.n - i);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return (uint32_t)(hash ^ (hash >> 29));
}

static uint32_t hash_u64(uint64_t value)
{
    value *= 0xff51afd7ed558ccdu;
    return (uint32_t)(value >> 32);
}

bool dv_cel_is_key(const struct dv_cel_val *val)
{
    return val->kind == DV_CEL_STRING || val->kind == DV_CEL_BOOL || dv_cel_is_number(val);
}

/* Whether a lookup finds a key of that kind again: those, and others that the reference can compare
 * without looking into them. */
static bool is_found_again(const struct dv_cel_val *val)
{
    switch (val->kind) {
    case DV_CEL_NULL:
    case DV_CEL_DURATION:
    case DV_CEL_TIMESTAMP:
    case DV_CEL_TYPE:
    case DV_CEL_IP:
    case DV_CEL_CIDR:
        return true;
    default:
        return dv_cel_is_key(val);
    }
}

static uint32_t key_hash(const struct dv_cel_val *key)
{
    switch (key->kind) {
    case DV_CEL_NULL:
        return 11;
    case DV_CEL_TYPE:
        return dv_cel_str_hash(key->type->name);
    case DV_CEL_IP:
    case DV_CEL_CIDR:
        return 13;
    case DV_CEL_STRING:
        return dv_cel_str_hash(key->s);
    case DV_CEL_BOOL:
        return key->b ? 3 : 5;
    /* a double that is an integer has the integer's hash, as the two are equal keys */
    case DV_CEL_DOUBLE:
        if (key->d >= -0x1p63 && key->d < 0x1p63)
            return hash_u64((uint64_t)(int64_t)key->d);
        return key->d >= 0 && key->d < 0x1p64 ? hash_u64((uint64_t)key->d) : 7;
    default:
        return hash_u64(key->u);
    }
}

static struct dv_cel_entries *new_entries(uint32_t room, struct dv_arena *arena)
{
    struct dv_cel_entries *entries = dv_arena_alloc_raw(
        arena, sizeof(*entries) + room * sizeof(entries->v[0]), _Alignof(struct dv_cel_entries));

    *entries = (struct dv_cel_entries){.size = room};
    return entries;
}

struct dv_cel_map *dv_cel_map_new(uint32_t room, struct dv_arena *arena)
{
    struct dv_cel_map *map = DV_NEW(arena, struct dv_cel_map);

    map->entries = new_entries(room > 0 ? room : 4, arena);
    map->v = map->entries->v;
    return map;
}

static void enter(struct dv_cel_entries *entries, uint32_t index)
{
    uint32_t at = entries->v[index].hash & (entries->n_slots - 1);

    while (entries->slots[at])
        at = (at + 1) & (entries->n_slots - 1);
    entries->slots[at] = index + 1;
}

/* Makes a table that is at most half full with the room of `entries`. */
static void make_table(struct dv_cel_entries *entries, struct dv_arena *arena)
{
    uint32_t n_slots = 32;

    while (n_slots < entries->size * 2)
        n_slots *= 2;
    entries->n_slots = n_slots;
    entries->slots = DV_NEW_ARRAY(arena, uint32_t, n_slots);
    for (uint32_t i = 0; i < entries->n_used; i++)
        enter(entries, i);
}

static void add(struct dv_cel_map *map, const struct dv_cel_val *key,
                const struct dv_cel_val *value, struct dv_arena *arena)
{
    struct dv_cel_entries *entries = map->entries;

    if (!entries || entries->n_used != map->n || entries->n_used == entries->size) {
        struct dv_cel_entries *larger = new_entries(map->n * 2 + 4, arena);

        if (map->n > 0)
            memcpy(larger->v, map->v, map->n * sizeof(larger->v[0]));
        larger->n_used = map->n;
        entries = map->entries = larger;
        map->v = larger->v;
    }
    entries->v[entries->n_used] = (struct dv_cel_entry){*key, *value, key_hash(key)};
    entries->n_used++;
    map->n++;
    if (entries->n_slots > 0)
        enter(entries, entries->n_used - 1);
    else if (entries->n_used > LINEAR_MAX)
        make_table(entries, arena);
}

/* With `is_exact`, 1 and 1u are two keys. Otherwise they are equal, and so is 1.0 when it is looked
 * for, but not when it is in the map: as the reference does it. */
static bool is_same_key(const struct dv_cel_entry *entry, const struct dv_cel_val *key,
                        uint32_t hash, bool is_exact)
{
    if (entry->hash != hash)
        return false;
    if (entry->key.kind != key->kind && (is_exact || entry->key.kind == DV_CEL_DOUBLE))
        return false;
    return dv_cel_eq(&entry->key, key);
}

static const struct dv_cel_entry *
find_kind(const struct dv_cel_map *map, const struct dv_cel_val *key, uint32_t hash, bool is_exact)
{
    const struct dv_cel_entries *entries = map->entries;

    if (!entries || entries->n_slots == 0) {
        for (uint32_t i = 0; i < map->n; i++)
            if (is_same_key(&map->v[i], key, hash, is_exact))
                return &map->v[i];
        return NULL;
    }
    for (uint32_t at = hash & (entries->n_slots - 1); entries->slots[at];
         at = (at + 1) & (entries->n_slots - 1)) {
        uint32_t index = entries->slots[at] - 1;

        if (index < map->n && is_same_key(&map->v[index], key, hash, is_exact))
            return &map->v[index];
    }
    return NULL;
}

static const struct dv_cel_entry *find(const struct dv_cel_map *map, const struct dv_cel_val *key,
                                       uint32_t hash)
{
    const struct dv_cel_entry *entry = find_kind(map, key, hash, true);

    return entry || !dv_cel_is_number(key) ? entry : find_kind(map, key, hash, false);
}

void dv_cel_map_set(struct dv_cel_map *map, const struct dv_cel_val *key,
                    const struct dv_cel_val *value, struct dv_arena *arena)
{
    const struct dv_cel_entry *entry = NULL;

    if (is_found_again(key))
        entry = find_kind(map, key, key_hash(key), true);
    if (entry)
        map->entries->v[entry - map->v].value = *value;
    else
        add(map, key, value, arena);
}

const struct dv_cel_map *dv_cel_map_with(const struct dv_cel_map *map, const struct dv_cel_val *key,
                                         const struct dv_cel_val *value, struct dv_arena *arena)
{
    struct dv_cel_map *longer = DV_NEW(arena, struct dv_cel_map);

    assert(!map->is_domains);
    *longer = *map;
    add(longer, key, value, arena);
    return longer;
}

const struct dv_cel_val *dv_cel_map_find(const struct dv_cel_map *map, const struct dv_cel_val *key)
{
    const struct dv_cel_entry *entry = NULL;

    if (is_found_again(key))
        entry = find(map, key, key_hash(key));
    return entry ? &entry->value : NULL;
}

const struct dv_cel_val *dv_cel_map_find_str(const struct dv_cel_map *map, dv_str key,
                                             uint32_t hash)
{
    struct dv_cel_val val;
    const struct dv_cel_entry *entry;

    if (!map->entries || map->entries->n_slots == 0) {
        for (uint32_t i = 0; i < map->n; i++)
            if (map->v[i].hash == hash && map->v[i].key.kind == DV_CEL_STRING &&
                dv_str_eq(map->v[i].key.s, key))
                return &map->v[i].value;
        return NULL;
    }
    val = dv_cel_string(key);
    entry = find(map, &val, hash);
    return entry ? &entry->value : NULL;
}

enum dv_cel_equality dv_cel_map_compare(const struct dv_cel_map *a, const struct dv_cel_map *b)
{
    if (a->n != b->n)
        return DV_CEL_DIFFERENT;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct dv_cel_val *other = dv_cel_map_find(b, &a->v[i].key);

        if (!other || dv_cel_compare(&a->v[i].value, other) == DV_CEL_DIFFERENT)
            return DV_CEL_DIFFERENT;
    }
    return DV_CEL_EQUAL;
}
