/* dra_publish.h - keeps the ResourceSlices of a driver in the API as they are wanted.
 *
 *   desired --+--> plan --> delete, update, create, one by one --> told; failed: again, later
 *   view -----+
 *
 * Each pool is for itself. The view may be behind what was just written: until it has caught up,
 * what the server answered goes before what the view shows. */
#ifndef DV_LIB_DRA_PUBLISH_H
#define DV_LIB_DRA_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "davit/dra.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_err;
struct dv_lib_parts;
struct dv_lib_desired;
struct dv_view;

struct dv_lib_publisher_options {
    struct dv_cluster *cluster;
    dv_str driver;            /* texts are borrowed */
    dv_str node;              /* whose slices they are; empty: of none */
    dv_str owner_api_version; /* empty: no owner */
    dv_str owner_kind;
    dv_str owner_name;
    dv_str owner_uid; /* empty: of the node, looked up */
    dv_str only_pool; /* empty: all */
    uint64_t correct_ms;
    void (*published)(void *ctx, dv_str pool);
    void (*dropped)(void *ctx, dv_str pool, const struct dv_err *err);
    void (*failed)(void *ctx, dv_str pool, const struct dv_err *err, uint64_t retry_ms);
    void *ctx;
};

struct dv_lib_publisher {
    struct dv_lib_parts *parts;
    struct dv_lib_publisher_options options;
    struct dv_arena *arena;
    struct dv_view *view;     /* NULL: nothing was ever wanted */
    struct dv_list pools;     /* struct dv_lib_pool */
    struct dv_map written;    /* name: struct written, what the view does not show yet */
    struct dv_request lookup; /* of the node */
    bool is_looking_up;
    bool looks_up;         /* the owner's uid was not given */
    bool is_owner_known;   /* as it is now: false when it may have gone */
    struct dv_timer timer; /* until the next look-up */
    uint64_t backoff_ms;
    bool is_closing;
    struct davit_dra_counts counts;
};

/* A pool that is wanted. */
struct dv_lib_wanted {
    struct dv_arena *arena; /* of all that `desired` refers to */
    struct dv_lib_desired *desired;
};

/* Initializes the publisher; nothing is asked of the API yet. */
void dv_lib_publisher_init(struct dv_lib_publisher *publisher, struct dv_lib_parts *parts,
                           const struct dv_lib_publisher_options *options);
/* Sets all pools that are wanted from now on. Takes the arenas, also on failure.
 * DV_INVALID_ARGUMENT: a name twice, or one that is not ours. */
DV_CHECKED bool dv_lib_publisher_set(struct dv_lib_publisher *publisher,
                                     const struct dv_lib_wanted *wanted, size_t n_wanted,
                                     struct dv_err *err);
/* Closes the publisher, and leaves the slices as they are. */
void dv_lib_publisher_close(struct dv_lib_publisher *publisher);
void dv_lib_publisher_fini(struct dv_lib_publisher *publisher);

#endif
