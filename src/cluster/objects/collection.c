/* collection.c - all objects of one kind: found by name in a hash table, and walked in the order of
 * their keys in chunks of a sorted array, which is smaller and faster than a tree for lists of
 * thousands. */
#include "cluster/objects/collection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

/* The size of a chunk: adding an object moves at most so many pointers, and a list reads so many in
 * a row. */
#define CHUNK_N 256u

/* The ceiling of a key: a namespace and a name of 253 bytes each, and more for names that will be
 * refused with a proper message. */
#define KEY_BYTES_MAX 2000u

/* So far ahead entries are fetched from memory. */
#define PREFETCHED 8u

struct dv_collection_chunk {
    size_t n; /* never 0 */
    struct dv_entry *v[CHUNK_N];
};

/* What stands before an entry in its block. */
static size_t bytes_before(const struct dv_collection *collection)
{
    return collection->kind->id == DV_KIND_EVENT ? sizeof(struct dv_link) : 0;
}

static size_t block_bytes(const struct dv_collection *collection, size_t n_key)
{
    return bytes_before(collection) + sizeof(struct dv_entry) + n_key;
}

static void free_entry(struct dv_entry *entry)
{
    dv_entry_forget_due(entry);
    dv_slab_free(entry->collection->memory, (char *)entry - bytes_before(entry->collection),
                 block_bytes(entry->collection, entry->n_key));
}

void dv_entry_forget_due(struct dv_entry *entry)
{
    if (!entry->due)
        return;
    dv_link_remove(&entry->due->link);
    free(entry->due);
    entry->due = NULL;
}

struct dv_link *dv_entry_age(struct dv_entry *entry)
{
    assert(bytes_before(entry->collection) > 0);
    return (struct dv_link *)(void *)entry - 1;
}

struct dv_entry *dv_entry_of_age(struct dv_link *age)
{
    return (struct dv_entry *)(void *)(age + 1);
}

dv_str dv_entry_key(const struct dv_entry *entry)
{
    return (dv_str){entry->key, entry->n_key};
}

dv_str dv_entry_namespace(const struct dv_entry *entry)
{
    return (dv_str){entry->key, entry->n_namespace};
}

dv_str dv_entry_name(const struct dv_entry *entry)
{
    return dv_str_slice(dv_entry_key(entry), entry->n_namespace > 0 ? entry->n_namespace + 1u : 0u,
                        entry->n_key);
}

struct dv_object *dv_entry_object(const struct dv_entry *entry)
{
    return entry->object ? dv_object_unpack(entry->object) : NULL;
}

static struct dv_name name_of(const void *item)
{
    const struct dv_entry *entry = item;

    return (struct dv_name){dv_entry_namespace(entry), dv_entry_name(entry)};
}

void dv_collection_init(struct dv_collection *collection, const struct dv_kind *kind,
                        struct dv_slabs *memory)
{
    *collection = (struct dv_collection){.kind = kind, .memory = memory};
    dv_names_init(&collection->names, name_of);
    dv_list_init(&collection->watchers);
    dv_list_init(&collection->views);
}

void dv_collection_fini(struct dv_collection *collection)
{
    struct dv_entry *entry;
    size_t at = 0;

    while ((entry = dv_names_next(&collection->names, &at)) != NULL) {
        assert(!entry->operation && dv_list_is_empty(&entry->waiting));
        dv_object_unkeep(entry->object);
        free_entry(entry);
    }
    dv_names_fini(&collection->names);
    for (size_t i = 0; i < collection->chunks.n; i++)
        free(collection->chunks.v[i]);
    dv_vec_fini(&collection->chunks);
    dv_history_fini(&collection->history);
}

/* ---- by name ---- */

struct dv_entry *dv_collection_get(const struct dv_collection *collection, dv_str namespace,
                                   dv_str name)
{
    return dv_names_get(&collection->names, namespace, name);
}

struct dv_entry *dv_collection_take(struct dv_collection *collection, dv_str namespace, dv_str name)
{
    struct dv_entry *entry = dv_collection_get(collection, namespace, name);
    size_t n_before = namespace.n > 0 ? namespace.n + 1 : 0;
    char *block;

    if (entry || namespace.n > KEY_BYTES_MAX || name.n > KEY_BYTES_MAX)
        return entry;
    block = dv_slab_alloc(collection->memory, block_bytes(collection, n_before + name.n));
    entry = (struct dv_entry *)(void *)(block + bytes_before(collection));
    entry->collection = collection;
    entry->n_namespace = (uint16_t) namespace.n;
    entry->n_key = (uint16_t)(n_before + name.n);
    dv_list_init(&entry->waiting);
    if (namespace.n > 0) {
        memcpy(entry->key, namespace.p, namespace.n);
        entry->key[namespace.n] = '/';
    }
    if (name.n > 0)
        memcpy(entry->key + n_before, name.p, name.n);
    (void)dv_names_put(&collection->names, entry); /* looked up above: there was none */
    return entry;
}

void dv_collection_drop(struct dv_entry *entry)
{
    assert(!entry->object && !entry->operation && dv_list_is_empty(&entry->waiting));
    (void)dv_names_remove(&entry->collection->names, dv_entry_namespace(entry),
                          dv_entry_name(entry));
    free_entry(entry);
}

/* ---- in order ---- */

/* Finds the last chunk that begins at or before `key`; 0 when all begin behind it. */
static size_t chunk_for(const struct dv_collection *collection, dv_str key)
{
    size_t low = 0;
    size_t high = collection->chunks.n;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (dv_str_cmp(dv_entry_key(collection->chunks.v[middle]->v[0]), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Finds the first place in the chunk whose key is not before `key`. */
static size_t place_for(const struct dv_collection_chunk *chunk, dv_str key)
{
    size_t low = 0;
    size_t high = chunk->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (dv_str_cmp(dv_entry_key(chunk->v[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Splits a full chunk in two. At the end of the collection the new chunk begins with the new entry
 * alone, so that keys that come in order fill their chunks. */
static void split(struct dv_collection *collection, size_t i)
{
    struct dv_collection_chunk *left = collection->chunks.v[i];
    struct dv_collection_chunk *right = DV_ALLOC(struct dv_collection_chunk);
    size_t n_left = i + 1 == collection->chunks.n ? CHUNK_N - 1 : CHUNK_N / 2;

    right->n = left->n - n_left;
    memcpy(right->v, left->v + n_left, right->n * sizeof(right->v[0]));
    left->n = n_left;
    (void)dv_vec_add(&collection->chunks);
    memmove(&collection->chunks.v[i + 2], &collection->chunks.v[i + 1],
            (collection->chunks.n - i - 2) * sizeof(collection->chunks.v[0]));
    collection->chunks.v[i + 1] = right;
}

static void insert(struct dv_collection *collection, struct dv_entry *entry)
{
    dv_str key = dv_entry_key(entry);
    struct dv_collection_chunk *chunk;
    size_t i;
    size_t at;

    if (collection->chunks.n == 0)
        *dv_vec_add(&collection->chunks) = DV_ALLOC(struct dv_collection_chunk);
    i = chunk_for(collection, key);
    if (collection->chunks.v[i]->n == CHUNK_N) {
        split(collection, i);
        i = chunk_for(collection, key);
    }
    chunk = collection->chunks.v[i];
    at = place_for(chunk, key);
    memmove(&chunk->v[at + 1], &chunk->v[at], (chunk->n - at) * sizeof(chunk->v[0]));
    chunk->v[at] = entry;
    chunk->n++;
    collection->n++;
}

static void take_out(struct dv_collection *collection, struct dv_entry *entry)
{
    size_t i = chunk_for(collection, dv_entry_key(entry));
    struct dv_collection_chunk *chunk = collection->chunks.v[i];
    size_t at = place_for(chunk, dv_entry_key(entry));

    assert(chunk->v[at] == entry);
    memmove(&chunk->v[at], &chunk->v[at + 1], (chunk->n - at - 1) * sizeof(chunk->v[0]));
    chunk->n--;
    collection->n--;
    if (chunk->n == 0) {
        free(chunk);
        dv_vec_remove(&collection->chunks, i);
    }
}

struct dv_object *dv_collection_set(struct dv_entry *entry, struct dv_object *object)
{
    struct dv_object *old = entry->object;

    if (object && !old)
        insert(entry->collection, entry);
    if (old && !object)
        take_out(entry->collection, entry);
    entry->collection->size_bytes -= old ? old->size_bytes : 0;
    entry->collection->size_bytes += object ? object->size_bytes : 0;
    entry->object = object;
    return old;
}

struct dv_collection_place dv_collection_find(const struct dv_collection *collection, dv_str key)
{
    struct dv_collection_place place = {0};

    if (collection->chunks.n > 0) {
        place.chunk = chunk_for(collection, key);
        place.at = place_for(collection->chunks.v[place.chunk], key);
    }
    return place;
}

/* Entries lie anywhere: who walks along all of them would wait for the memory of each. */
static void prefetch(const struct dv_collection_chunk *chunk, size_t at)
{
    if (at >= chunk->n)
        return;
    __builtin_prefetch(chunk->v[at]);
    __builtin_prefetch(chunk->v[at]->key); /* only an address */
}

struct dv_entry *dv_collection_next(const struct dv_collection *collection,
                                    struct dv_collection_place *place)
{
    while (place->chunk < collection->chunks.n) {
        const struct dv_collection_chunk *chunk = collection->chunks.v[place->chunk];

        prefetch(chunk, place->at + PREFETCHED);
        if (place->at < chunk->n)
            return chunk->v[place->at++];
        place->chunk++;
        place->at = 0;
    }
    return NULL;
}

struct dv_collection_range dv_collection_range_after(const struct dv_collection *collection,
                                                     dv_str namespace, dv_str key)
{
    struct dv_collection_range range = {.collection = collection,
                                        .place = dv_collection_find(collection, key),
                                        .namespace = namespace};
    struct dv_collection_place next = range.place;
    const struct dv_entry *entry = dv_collection_next(collection, &next);

    if (entry && dv_str_eq(dv_entry_key(entry), key))
        range.place = next;
    return range;
}

struct dv_collection_range dv_collection_range(const struct dv_collection *collection,
                                               dv_str namespace)
{
    char start[KEY_BYTES_MAX + 1];

    if (namespace.n == 0 || namespace.n > KEY_BYTES_MAX)
        return (struct dv_collection_range){.collection = collection, .namespace = namespace};
    memcpy(start, namespace.p, namespace.n);
    start[namespace.n] = '/';
    return dv_collection_range_after(collection, namespace, (dv_str){start, namespace.n + 1});
}

struct dv_entry *dv_collection_range_next(struct dv_collection_range *range)
{
    struct dv_entry *entry = dv_collection_next(range->collection, &range->place);

    if (entry && range->namespace.n > 0 && !dv_str_eq(dv_entry_namespace(entry), range->namespace))
        return NULL;
    return entry;
}
