/* dra_pool.h - one pool of a publisher: what is desired of it, and the writes that make it so. */
#ifndef DV_LIB_DRA_POOL_H
#define DV_LIB_DRA_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "lib/dra/dra_publish.h"
#include "lib/dra/dra_slices.h"
#include "loop/loop.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_object;

struct dv_lib_pool {
    struct dv_lib_publisher *publisher;
    struct dv_link link;
    struct dv_arena *arena;
    dv_str name;
    struct dv_lib_wanted wanted; /* `desired` NULL: it is to go */
    struct dv_lib_wanted next;   /* has_next: in place of it, when this run has ended */
    bool has_next;
    bool is_news; /* the driver has not been told yet that it is as desired */
    bool is_due;  /* runs again when this run has ended */
    struct dv_timer timer;
    uint64_t backoff_ms;

    /* A run: a plan being carried out. */
    bool is_running;
    struct dv_arena *run_arena;
    struct dv_lib_slice_plan plan;
    size_t n_steps;
    size_t at; /* the step that is under way */
    struct dv_request request;
    struct dv_api_resource_slice value; /* that it sends */
    struct dv_api_delete_options delete_options;
    struct dv_api_preconditions preconditions;
};

struct dv_lib_pool *dv_lib_pool_new(struct dv_lib_publisher *publisher, dv_str name);
/* Sets what is wanted of the pool; takes the arena. */
void dv_lib_pool_want(struct dv_lib_pool *pool, const struct dv_lib_wanted *wanted);
/* Looks at the pool after this delay, or earlier if a look is due already. */
void dv_lib_pool_look(struct dv_lib_pool *pool, uint64_t delay_ms);
/* Closes the pool: nothing more is written, and its memory is freed when the request under way has
 * ended. */
void dv_lib_pool_close(struct dv_lib_pool *pool);

/* ---- of the publisher ---- */

/* Whether the view and the owner are known, so that pools may run. */
bool dv_lib_publisher_is_ready(const struct dv_lib_publisher *publisher);
/* Notes what the server answered; `now` NULL: the slice is deleted. */
void dv_lib_publisher_wrote(struct dv_lib_publisher *publisher, dv_str name, struct dv_object *now);
/* The slices of the pool, as far as they are known, with a reference each; in `arena`. */
struct dv_object **dv_lib_publisher_slices(struct dv_lib_publisher *publisher, dv_str pool,
                                           struct dv_arena *arena, size_t *n);

#endif
