/* review_cache.h - answers to reviews, remembered for a while. Pure: the time is passed in.
 *
 * Yes and no are remembered for different times, and each has places of its own: who asks with ever
 * new tokens fills those of no, and nobody who is known is forgotten for it. When the places are
 * used up the oldest answer is forgotten. A yes that is too old to count is still known to have
 * been one. */
#ifndef DV_SERVE_REVIEW_CACHE_H
#define DV_SERVE_REVIEW_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "rest/rest.h"

struct dv_api_user_info;

/* What a review was about, as a hash: tokens themselves are not kept. */
struct dv_review_key {
    unsigned char bytes[DV_REST_SHA256_BYTES];
};

struct dv_review_cache_limits {
    uint64_t yes_ms;
    uint64_t no_ms;
    size_t yes_max;
    size_t no_max;
};

struct dv_review_cache {
    struct dv_review_cache_limits limits;
    struct dv_map entries;
    struct dv_list lists[2]; /* no, yes: the oldest first */
    size_t counts[2];
};

enum dv_review_answer {
    DV_ANSWER_UNKNOWN,
    DV_ANSWER_WAS_YES, /* but it is too old to count */
    DV_ANSWER_NO,
    DV_ANSWER_YES,
};

void dv_review_cache_init(struct dv_review_cache *cache,
                          const struct dv_review_cache_limits *limits);
void dv_review_cache_fini(struct dv_review_cache *cache);

/* Looks an answer up. With DV_ANSWER_YES, *user is the one that was kept with it, borrowed until
 * the cache next changes, and NULL if there was none. */
enum dv_review_answer dv_review_cache_get(const struct dv_review_cache *cache,
                                          const struct dv_review_key *key, uint64_t now_ms,
                                          const struct dv_api_user_info **user);
/* Remembers an answer in place of the one before. `user` is copied, and may be NULL. */
void dv_review_cache_put(struct dv_review_cache *cache, const struct dv_review_key *key,
                         bool is_yes, const struct dv_api_user_info *user, uint64_t now_ms);

#endif
