/* kube_watch_share.h - what the watches of one user may hold in memory. Pure.
 *
 * An event that a client has not read yet is kept for it, and a copy for each watch. So a user's
 * watches have a share together: while they are over the first limit none gets a second event
 * before it has read the last one; over the second, none gets any. What the others have to wait for
 * is then at most the time limit of those who do not read. */
#ifndef DV_SERVE_KUBE_WATCH_SHARE_H
#define DV_SERVE_KUBE_WATCH_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

/* The shares of all users. */
struct dv_watch_shares {
    struct dv_map by_user;
    size_t unsent_bytes;
};

struct dv_watch_share {
    struct dv_watch_shares *shares;
    struct dv_list watches; /* struct dv_watch_part of its watches */
    size_t n_watches;
    size_t unsent_bytes; /* as last noted */
    bool is_full;        /* all its watches are held back */
    size_t n_user;
    char user[];
};

/* A watch's part in its user's share; zeroed, then joined. */
struct dv_watch_part {
    struct dv_watch_share *share; /* NULL: it has not joined */
    struct dv_link link;
    size_t unsent_bytes; /* as last noted */
};

void dv_watch_shares_init(struct dv_watch_shares *shares);
void dv_watch_shares_fini(struct dv_watch_shares *shares); /* nobody has a part any more */

/* Returns how many watches a user has. */
size_t dv_watch_shares_n(const struct dv_watch_shares *shares, dv_str user);
void dv_watch_part_join(struct dv_watch_part *part, struct dv_watch_shares *shares, dv_str user);
/* Gives back what the watch held. True: the user's watches were held back, and need not be any
 * more. A second call does nothing. */
bool dv_watch_part_leave(struct dv_watch_part *part);

enum dv_watch_pace {
    DV_PACE_FREE,
    DV_PACE_ONE_BY_ONE, /* the next event when the last has been read */
    DV_PACE_STOP,       /* all watches of the user are held back from now on */
    DV_PACE_GO,         /* all watches of the user go on */
};

/* Notes how many bytes that were sent to the watch have not been read, and returns how it goes
 * on. */
enum dv_watch_pace dv_watch_part_note(struct dv_watch_part *part, size_t unsent_bytes);

#endif
