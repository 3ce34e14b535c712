#include "apps/manager/failed_pods.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"

/* As in the reference. */
#define FIRST_MS 1000u
#define LONGEST_MS (15u * 60u * 1000u)
/* What has not failed for so long begins anew. */
#define FORGET_MS (2u * LONGEST_MS)
/* How many are remembered: more than a fleet has nodes whose pods fail together. */
#define N_MAX 65536u

struct failed {
    struct dv_link link;
    uint64_t at_ms;
    uint64_t pause_ms;
    size_t n_key;
    char key[];
};

static dv_str key_of(const struct failed *entry)
{
    return (dv_str){entry->key, entry->n_key};
}

static void forget(struct dv_failed_pods *failed, struct failed *entry)
{
    (void)dv_map_remove(&failed->by_key, key_of(entry));
    dv_link_remove(&entry->link);
    free(entry);
}

void dv_failed_pods_init(struct dv_failed_pods *failed)
{
    dv_map_init(&failed->by_key);
    dv_list_init(&failed->order);
}

void dv_failed_pods_fini(struct dv_failed_pods *failed)
{
    struct dv_link *link;

    while ((link = dv_list_first(&failed->order)) != NULL)
        forget(failed, DV_CONTAINER(link, struct failed, link));
    dv_map_fini(&failed->by_key);
}

static void forget_old(struct dv_failed_pods *failed, uint64_t now_ms)
{
    struct dv_link *link;

    while ((link = dv_list_first(&failed->order)) != NULL) {
        struct failed *entry = DV_CONTAINER(link, struct failed, link);

        if (failed->by_key.n < N_MAX && now_ms - entry->at_ms < FORGET_MS)
            return;
        forget(failed, entry);
    }
}

void dv_failed_pods_note(struct dv_failed_pods *failed, dv_str key, uint64_t now_ms)
{
    struct failed *entry;

    forget_old(failed, now_ms);
    entry = dv_map_get(&failed->by_key, key);
    if (!entry) {
        entry = dv_alloc(sizeof(*entry) + key.n);
        entry->n_key = key.n;
        if (key.n > 0)
            memcpy(entry->key, key.p, key.n);
        (void)dv_map_set(&failed->by_key, key_of(entry), entry);
    }
    entry->pause_ms = entry->pause_ms == 0 ? FIRST_MS : dv_u64_min(entry->pause_ms * 2, LONGEST_MS);
    entry->at_ms = now_ms;
    dv_link_remove(&entry->link);
    dv_list_push(&failed->order, &entry->link);
}

uint64_t dv_failed_pods_wait_ms(const struct dv_failed_pods *failed, dv_str key, uint64_t now_ms)
{
    const struct failed *entry = dv_map_get(&failed->by_key, key);

    return entry && entry->at_ms + entry->pause_ms > now_ms
               ? entry->at_ms + entry->pause_ms - now_ms
               : 0;
}
