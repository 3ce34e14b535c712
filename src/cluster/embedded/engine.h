/* engine.h - the state of the embedded API, and what its files do for each other. */
#ifndef DV_CLUSTER_ENGINE_H
#define DV_CLUSTER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/embedded/collect.h"
#include "cluster/embedded/namespace_quota.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/custom_kinds.h"
#include "cluster/objects/object_owners.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_cluster_operation;
struct dv_entry;
struct dv_object;
struct dv_object_pool;
struct dv_store;

/* The namespaces and classes of priorities that always exist are made by requests of the engine's
 * own. */
#define DV_N_BUILTINS 6u
struct dv_builtin {
    struct dv_request request;
    union {
        struct dv_api_namespace namespace;
        struct dv_api_priority_class priority;
    } value;
};

/* Writing everything again, an object at a time. */
struct dv_rewrite {
    bool is_running;
    bool has_failed; /* an object could not be written: it begins again after a pause */
    size_t kind;     /* the kind that it is at, and `after`, the key behind which it goes on */
    char *after;
    size_t n_after;
    size_t n_running;
    uint64_t pause_ms;
    struct dv_timer timer;
    void (*done)(void *ctx);
    void *ctx;
};

/* What is to be done for CustomResourceDefinitions: definitions.c. */
struct dv_definitions {
    struct dv_task task;
    struct dv_timer again;
    size_t n_running;
};

/* The row of options.table_meta with the version of the newest deletion, which no object has. */
#define DV_ENGINE_VERSION_KEY "version"

struct dv_embedded {
    struct dv_cluster cluster;
    struct dv_store *store;
    struct dv_embedded_options options;
    struct dv_collection collections[DV_N_KINDS];
    struct dv_slabs entries; /* of all collections */
    struct dv_custom_kinds customs;
    struct dv_definitions definitions;
    struct dv_object_owners owners;
    struct dv_collector collector;
    struct dv_quotas quotas;
    uint64_t version;      /* of the newest change that is durable */
    uint64_t last_version; /* the newest that was given to a write */
    uint32_t last_address; /* of a service: the last two bytes; 0: none was given out yet */

    /* Operations under way, those that are answered but not told included. */
    size_t n_ops;
    struct dv_list answers; /* of operations whose callers are told next */
    struct dv_task tell;
    struct dv_builtin builtins[DV_N_BUILTINS];
    size_t n_starting;     /* how many of them are being written */
    bool is_ready;         /* they exist, or could not be made: requests are served */
    struct dv_list held;   /* operations of requests that came before that */
    struct dv_list events; /* entries of Events, in the order of their last writes */
    struct dv_timer start_again;
    struct dv_timer age; /* of the histories; set while one of them is to become shorter */
    struct dv_rewrite rewrite;
    dv_embedded_make_token *make_token; /* NULL: nobody makes tokens */
    void *make_token_ctx;
    dv_embedded_review *review; /* NULL: nobody knows users */
    void *review_ctx;
    struct dv_buf row; /* of the object that is being written: kept, so that it is large enough */
    struct dv_object_pool *pool; /* of the objects that are packed while nobody uses them */
    struct dv_task pack;
    struct dv_timer pack_idle;

    struct dv_task watch;      /* tells the watchers what is due */
    size_t watch_room;         /* how many bytes the watchers may still be told in this turn */
    size_t watch_first;        /* the kind whose watchers are told first in this turn */
    struct dv_link *next_view; /* the next view to be told of a change; a callback may close it */
    bool is_closing;
    struct dv_task idle; /* looks, when the API closes, whether nothing is under way any more */
    dv_closed_fn *closed;
    void *closed_ctx;
};

struct dv_collection *dv_engine_collection(struct dv_embedded *embedded,
                                           const struct dv_kind *kind);

/* The collections of all kinds, those that definitions make behind the others: NULL at the end.
 * What walks over them in portions goes on at an index, which a collection keeps. */
struct dv_collection *dv_engine_collection_at(struct dv_embedded *embedded, size_t i);
size_t dv_engine_collection_index(const struct dv_collection *collection);
/* The kind of that name, built in or made by a definition. NULL: there is none. */
const struct dv_kind *dv_engine_kind_by_name(const struct dv_embedded *embedded, dv_str group,
                                             dv_str version, dv_str name);

/* The metadata of an object of any kind: its first member. */
static inline struct dv_api_object_meta *dv_meta_of(void *value)
{
    return value;
}

/* Logs what the engine could not do by itself, and does again. */
void dv_engine_report_retry(const char *what, const struct dv_api_status *failure);
/* Now, in whole seconds, as objects have it. */
struct dv_time dv_engine_now(const struct dv_embedded *embedded);

/* An entry's key in the store: "Pod/default/web", "custom:widgets.example.com/default/w". */
dv_str dv_engine_key(const struct dv_entry *entry, struct dv_arena *arena);
/* A version in decimal, as resourceVersion has it. */
dv_str dv_engine_version_text(uint64_t version, struct dv_arena *arena);

/* Whether objects of the kind are packed while nobody uses them. */
bool dv_engine_is_packed(const struct dv_kind *kind);
/* The pool has one more object that could be packed. */
void dv_engine_pool_grown(void *ctx);

/* Applies a change that has become durable: memory follows, and views, watchers and the collector
 * are told. `now` NULL: the object goes. Takes the reference, one of dv_object_ref. */
void dv_engine_apply(struct dv_embedded *embedded, struct dv_entry *entry, struct dv_object *now,
                     uint64_t version);

/* cluster_views.c: tells a change to the views of its kind; closes those that are open when the API
 * ends. */
void dv_views_tell(struct dv_embedded *embedded, struct dv_collection *collection,
                   struct dv_object *old, struct dv_object *now);
void dv_views_end(struct dv_embedded *embedded);
struct dv_view *dv_embedded_view_open(struct dv_cluster *cluster,
                                      const struct dv_view_options *options, struct dv_err *err);
void dv_embedded_view_close(struct dv_view *view);

/* cluster_watch.c */
void dv_watchers_wake(struct dv_embedded *embedded, struct dv_collection *collection);
void dv_watchers_end(struct dv_embedded *embedded);
void dv_watchers_end_of(struct dv_collection *collection);

/* definitions.c: an object was loaded (false: its kind cannot be made), all were, one has
 * changed; and the end. */
bool dv_definitions_loaded(struct dv_embedded *embedded, const struct dv_object *object);
void dv_definitions_start(struct dv_embedded *embedded);
void dv_definitions_look(struct dv_embedded *embedded, const struct dv_entry *entry,
                         const struct dv_object *now);
void dv_definitions_stop(struct dv_embedded *embedded);

/* cluster_token.c: starts a request for a token. */
void dv_cluster_token_start(struct dv_cluster_operation *operation);

/* cluster_review.c */
void dv_embedded_review_start(struct dv_cluster *cluster, struct dv_user_review *review);
void dv_embedded_review_cancel(struct dv_cluster *cluster, struct dv_user_review *review);

/* cluster_request.c */
void dv_embedded_request_start(struct dv_cluster *cluster, struct dv_request *request);
void dv_embedded_request_cancel(struct dv_cluster *cluster, struct dv_request *request);
/* Starts the operations of requests that came before the API was ready. */
void dv_engine_release_held(struct dv_embedded *embedded);

/* embedded.c: ends the API when it is closing and nothing is under way any more. */
void dv_engine_close_when_idle(struct dv_embedded *embedded);

#endif
