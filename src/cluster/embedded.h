/* embedded.h - the API of one machine: objects in memory, durable through the store.
 *
 * Reads see what is on the disk. Writes of one object wait for each other; all others share
 * commits. Every change has a version (resourceVersion) from one counter, and changes are told in
 * its order. The last changes of each kind are kept for watches and pages that begin at an older
 * version; a restart forgets them.
 *
 * It also does what a cluster's controllers do for every object: it collects what lost its owners,
 * carries out foreground and orphaning deletions, empties namespaces that are deleted, and removes
 * events when they are old. All of it goes on after a restart.
 *
 * Views are told a change when it is durable, in the order of versions over all kinds, and before
 * the request that made it is answered. */
#ifndef DV_CLUSTER_EMBEDDED_H
#define DV_CLUSTER_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/cluster.h" /* IWYU pragma: keep */
#include "loop/loop.h"
#include "store/store.h"

struct dv_api_status;
struct dv_arena;
struct dv_custom_set;
struct dv_embedded;

struct dv_embedded_options {
    uint32_t
        table_objects; /* of the store: "KIND/namespace/name" -> the object's row (object_row.h) */
    uint32_t table_meta;   /* of the store: the counter and the like */
    unsigned gates;        /* enum dv_gate: what may be used; 0: all that davit knows of */
    size_t n_history_max;  /* changes kept of each kind; 0: 10,000 */
    uint64_t event_ttl_ms; /* Events are removed so long after their last change; 0: 1 h */
    /* Beyond so many Events, or bytes of them, the oldest are removed; 0: 50,000, and 64 MiB. */
    size_t n_events_max;
    size_t events_bytes_max;
    /* How long a deleted namespace keeps its content; 0: 5 s, as in the reference, so that who
     * works in it sees that it is terminating. */
    uint64_t namespace_delay_ms;
    /* How long foreground and orphaning deletions, and owners that never were, wait for the
     * collector; 0: 1 s. What a deleted owner leaves behind is collected at once. */
    uint64_t owner_delay_ms;
    /* Pods that are created get a service account, which must exist, and the volume to use the API
     * with it. Somebody must see to it that each namespace has a default one, and the config map of
     * that volume (dv_control_options.serves_cluster_defaults). They also get the priority of their
     * class, and the classes that every cluster has are made. */
    bool has_accounts;
    /* Writes of and to what is larger than this are computed on a worker; 0: 32 KiB, which takes
     * about 2 ms. */
    size_t worker_bytes;
};

/* Loads what is stored; makes the namespaces that always exist. Blocks: for start-up. The store
 * must outlive it. */
struct dv_embedded *dv_embedded_open(struct dv_loop *loop, struct dv_store *store,
                                     const struct dv_embedded_options *options, struct dv_err *err);
/* Ends watches and views; requests under way end first. `closed` may be NULL. */
void dv_embedded_close(struct dv_embedded *embedded, dv_closed_fn *closed, void *ctx);
struct dv_cluster *dv_embedded_cluster(struct dv_embedded *embedded);
/* The store is empty because its file was damaged: writes back all that is in memory, an object at
 * a time, again and again until it is there. Requests go on meanwhile. `done` (may be NULL) then
 * tells that the store may be marked as rebuilt. For the store's `damaged`. */
void dv_embedded_rewrite_all(struct dv_embedded *embedded, void (*done)(void *ctx), void *ctx);

/* ---- tokens of service accounts ---- */

/* A request for one (DV_SUB_TOKEN) that has come to the embedded API: it has no tokens itself. */
struct dv_embedded_token {
    dv_str namespace; /* and name: the account's */
    dv_str name;
    struct dv_api_token_request *request;
    struct dv_arena *arena; /* as long as the request; for the answer */
};

/* Makes a token, now or later, and ends with dv_embedded_token_made. */
typedef void dv_embedded_make_token(void *ctx, struct dv_embedded_token *token);
/* Sets who makes tokens: who serves the API, and keeps them. NULL: nobody does, any more. */
void dv_embedded_set_token_maker(struct dv_embedded *embedded, dv_embedded_make_token *make,
                                 void *ctx);
/* Answers with token->request, whose status is set, or with a failure, which is in the arena. */
void dv_embedded_token_made(struct dv_embedded_token *token, const struct dv_api_status *failure);

/* ---- reviews ---- */

/* Answers a review at once: sets token_status or access_status, in `arena`. */
typedef void dv_embedded_review(void *ctx, struct dv_user_review *review, struct dv_arena *arena);
/* Sets who answers reviews: who serves the API, and knows its users. NULL: nobody does, any
 * more. */
void dv_embedded_set_reviewer(struct dv_embedded *embedded, dv_embedded_review *review, void *ctx);

/* ---- reading ---- */

/* The version of the newest change that is durable. */
uint64_t dv_embedded_version(const struct dv_embedded *embedded);
/* Borrowed until the next turn; NULL when absent. */
/* The kinds that definitions make, and that are served now. */
const struct dv_custom_set *dv_embedded_customs(const struct dv_embedded *embedded);
struct dv_object *dv_embedded_get(const struct dv_embedded *embedded, const struct dv_kind *kind,
                                  dv_str namespace, dv_str name);

enum dv_version_match {
    DV_MATCH_NONE,
    DV_MATCH_NOT_OLDER,
    DV_MATCH_EXACT,
};

struct dv_list_query {
    const struct dv_kind *kind;
    const struct dv_api_version *version;
    dv_str namespace;
    dv_str label_selector;
    dv_str field_selector;
    dv_str resource_version; /* as sent */
    enum dv_version_match match;
    uint64_t limit; /* 0: all */
    dv_str continue_token;
};

struct dv_list_page {
    struct dv_object **objects; /* in the order of the bytes of "namespace/name"; in the arena,
                                   borrowed until the next turn; some may be packed
                                   (resource/object_pool.h) */
    size_t n_objects;
    uint64_t version;
    dv_str continue_token; /* empty: that was all */
    uint64_t n_remaining;  /* valid when has_remaining */
    bool has_remaining;
};

/* False with *failure set to a Status: 400 bad selectors, 410 expired, 504 too large a version. The
 * pages of a list show the version of the first one. */
DV_CHECKED bool dv_embedded_list(struct dv_embedded *embedded, const struct dv_list_query *query,
                                 struct dv_arena *arena, struct dv_list_page *page,
                                 struct dv_api_status **failure);

/* ---- watching ---- */

enum dv_object_event {
    DV_OBJECT_ADDED,
    DV_OBJECT_MODIFIED,
    DV_OBJECT_DELETED,
    DV_OBJECT_INITIAL_END, /* object is NULL: what was there has been told, as of `version` */
};

/* A watch, embedded in what waits for it; zeroed, filled in, lent until it is stopped. */
struct dv_watcher {
    const struct dv_kind *kind;
    const struct dv_api_version *version;
    dv_str namespace;
    dv_str label_selector;
    dv_str field_selector;
    uint64_t since;         /* changes after it; with 0 what is there comes first */
    bool wants_initial_end; /* sendInitialEvents: what is there first, then DV_OBJECT_INITIAL_END */
    /* Tells one change after the other, in the order of their versions. DELETED has the last state
     * with the version of the deletion. May stop the watcher. The object is borrowed: take a
     * reference to keep it. */
    void (*event)(struct dv_watcher *watcher, enum dv_object_event event, struct dv_object *object,
                  uint64_t version);
    /* It is stopped: the embedded API closes or, when is_expired, the history has moved past it. */
    void (*closed)(struct dv_watcher *watcher);
    bool is_expired;
    void *priv;
};

/* What is there and what is due is told in the next turns, in bounded portions. False with a
 * Status: 410 when `since` is older than the history, 400 bad selectors. A `since` that is yet to
 * come is waited for. */
DV_CHECKED bool dv_watcher_start(struct dv_embedded *embedded, struct dv_watcher *watcher,
                                 struct dv_arena *arena, struct dv_api_status **failure);
void dv_watcher_stop(struct dv_watcher *watcher); /* one that is not running is fine */
/* Holds back events until resumed: who cannot send them does not get them. Ends in `closed` when
 * the history moves past it. */
void dv_watcher_pause(struct dv_watcher *watcher);
void dv_watcher_resume(struct dv_watcher *watcher);
/* Up to which version it has been told everything, for bookmarks; 0: not yet what was there. */
uint64_t dv_watcher_version(const struct dv_watcher *watcher);

#endif
