#include "serve/kube/kube_watch_share.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define MIB (1024u * 1024u)
/* The limits of one user: room for some dozens of slow readers of large lists, then for a few more
 * large events. */
#define FIRST_BYTES_MAX (8u * MIB)
#define SECOND_BYTES_MAX (32u * MIB)
/* The limit of all users together; beyond it each one gets room only for the largest event there
 * is. */
#define ALL_BYTES_MAX (128u * MIB)
#define CROWDED_BYTES_MAX (4u * MIB)

void dv_watch_shares_init(struct dv_watch_shares *shares)
{
    *shares = (struct dv_watch_shares){0};
    dv_map_init(&shares->by_user);
}

void dv_watch_shares_fini(struct dv_watch_shares *shares)
{
    dv_map_fini(&shares->by_user);
}

size_t dv_watch_shares_n(const struct dv_watch_shares *shares, dv_str user)
{
    const struct dv_watch_share *share = dv_map_get(&shares->by_user, user);

    return share ? share->n_watches : 0;
}

void dv_watch_part_join(struct dv_watch_part *part, struct dv_watch_shares *shares, dv_str user)
{
    struct dv_watch_share *share = dv_map_get(&shares->by_user, user);

    if (!share) {
        share = dv_alloc(sizeof(*share) + user.n);
        share->shares = shares;
        dv_list_init(&share->watches);
        share->n_user = user.n;
        if (user.n > 0)
            memcpy(share->user, user.p, user.n);
        (void)dv_map_set(&shares->by_user, (dv_str){share->user, user.n},
                         share); /* it was not in the map */
    }
    part->share = share;
    dv_list_push(&share->watches, &part->link);
    share->n_watches++;
}

static void note(struct dv_watch_part *part, size_t unsent_bytes)
{
    struct dv_watch_share *share = part->share;

    share->unsent_bytes += unsent_bytes;
    share->unsent_bytes -= part->unsent_bytes;
    share->shares->unsent_bytes += unsent_bytes;
    share->shares->unsent_bytes -= part->unsent_bytes;
    part->unsent_bytes = unsent_bytes;
}

static size_t second_max(const struct dv_watch_share *share)
{
    return share->shares->unsent_bytes > ALL_BYTES_MAX ? CROWDED_BYTES_MAX : SECOND_BYTES_MAX;
}

enum dv_watch_pace dv_watch_part_note(struct dv_watch_part *part, size_t unsent_bytes)
{
    struct dv_watch_share *share = part->share;

    note(part, unsent_bytes);
    if (!share->is_full && share->unsent_bytes > second_max(share)) {
        share->is_full = true;
        return DV_PACE_STOP;
    }
    if (share->is_full && share->unsent_bytes <= second_max(share) / 2) {
        share->is_full = false;
        return DV_PACE_GO;
    }
    return share->is_full || share->unsent_bytes > FIRST_BYTES_MAX ? DV_PACE_ONE_BY_ONE
                                                                   : DV_PACE_FREE;
}

bool dv_watch_part_leave(struct dv_watch_part *part)
{
    struct dv_watch_share *share = part->share;
    bool goes_on;

    if (!share)
        return false;
    goes_on = dv_watch_part_note(part, 0) == DV_PACE_GO;
    dv_link_remove(&part->link);
    part->share = NULL;
    if (--share->n_watches > 0)
        return goes_on;
    /* It is in the map. */
    (void)dv_map_remove(&share->shares->by_user, (dv_str){share->user, share->n_user});
    free(share);
    return false;
}
