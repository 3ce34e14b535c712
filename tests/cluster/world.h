/* world.h - the embedded API, served over HTTP on a Unix socket, a proxy before it, and a client of
 * that, all on one loop with a virtual clock. */
#ifndef DV_TESTS_CLUSTER_WORLD_H
#define DV_TESTS_CLUSTER_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "cluster/proxy.h"

struct dv_arena;
struct dv_embedded;
struct dv_kube;
struct dv_loop;
struct dv_remote;
struct dv_rest_server;
struct dv_store;
struct dv_tokens;

struct world {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena;
    char dir[64];
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_tokens *tokens;
    struct dv_kube *kube;
    struct dv_rest_server *rest;
    struct proxy proxy;
    struct dv_remote *remote;
    int n_closed;
};

struct world_options {
    uint64_t seed;
    bool has_tls;
    size_t n_history_max; /* 0: the default */
    size_t n_page_objects;
};

struct world *world_open(const struct world_options *options);
void world_close(struct world *world); /* views are closed by then */

/* One turn of the loop, and some time passes. */
void world_turn(struct world *world, uint64_t ms);
/* Until the condition holds, or fails the test after so much time on the world's clock. */
void world_wait(struct world *world, bool (*is_met)(void *ctx), void *ctx, uint64_t ms);

#endif
