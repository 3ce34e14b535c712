#include "serve/kubelet/review_cache.h"

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

/* What an entry with a user of a few groups takes. */
#define ENTRY_BYTES 512u

/* A review with its answer, in an arena of its own. */
struct entry {
    struct dv_review_key key;
    struct dv_arena *arena;
    struct dv_link link;
    bool is_yes;
    uint64_t until_ms;
    struct dv_api_user_info *user; /* NULL: none was told */
};

static dv_str text_of(const struct dv_review_key *key)
{
    return (dv_str){(const char *)key->bytes, sizeof(key->bytes)};
}

void dv_review_cache_init(struct dv_review_cache *cache,
                          const struct dv_review_cache_limits *limits)
{
    *cache = (struct dv_review_cache){.limits = *limits};
    dv_map_init(&cache->entries);
    dv_list_init(&cache->lists[false]);
    dv_list_init(&cache->lists[true]);
}

static void forget(struct dv_review_cache *cache, struct entry *entry)
{
    (void)dv_map_remove(&cache->entries, text_of(&entry->key)); /* it is this entry */
    dv_link_remove(&entry->link);
    cache->counts[entry->is_yes]--;
    dv_arena_free(entry->arena);
}

void dv_review_cache_fini(struct dv_review_cache *cache)
{
    for (unsigned i = 0; i < DV_COUNT(cache->lists); i++)
        while (!dv_list_is_empty(&cache->lists[i]))
            forget(cache, DV_CONTAINER(dv_list_first(&cache->lists[i]), struct entry, link));
    dv_map_fini(&cache->entries);
}

enum dv_review_answer dv_review_cache_get(const struct dv_review_cache *cache,
                                          const struct dv_review_key *key, uint64_t now_ms,
                                          const struct dv_api_user_info **user)
{
    const struct entry *entry = dv_map_get(&cache->entries, text_of(key));

    *user = NULL;
    if (!entry)
        return DV_ANSWER_UNKNOWN;
    if (now_ms >= entry->until_ms)
        return entry->is_yes ? DV_ANSWER_WAS_YES : DV_ANSWER_UNKNOWN;
    *user = entry->user;
    return entry->is_yes ? DV_ANSWER_YES : DV_ANSWER_NO;
}

void dv_review_cache_put(struct dv_review_cache *cache, const struct dv_review_key *key,
                         bool is_yes, const struct dv_api_user_info *user, uint64_t now_ms)
{
    struct dv_arena *arena = dv_arena_new_sized(ENTRY_BYTES);
    struct entry *entry = DV_NEW(arena, struct entry);
    struct entry *old = dv_map_get(&cache->entries, text_of(key));
    struct dv_list *list = &cache->lists[is_yes];

    if (old)
        forget(cache, old);
    if (cache->counts[is_yes] >= (is_yes ? cache->limits.yes_max : cache->limits.no_max))
        forget(cache, DV_CONTAINER(dv_list_first(list), struct entry, link));
    *entry = (struct entry){
        .key = *key,
        .arena = arena,
        .is_yes = is_yes,
        .until_ms = dv_u64_add_clamped(now_ms, is_yes ? cache->limits.yes_ms : cache->limits.no_ms),
    };
    if (user) {
        entry->user = DV_NEW(arena, struct dv_api_user_info);
        dv_message_copy(&dv_message_user_info, user, arena, entry->user);
    }
    (void)dv_map_set(&cache->entries, text_of(&entry->key), entry); /* the old one is gone */
    dv_list_push(list, &entry->link);
    cache->counts[is_yes]++;
}
