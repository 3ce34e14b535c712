/* test_model_world.h - one machine's API, controllers and schedulers, on a clock that is turned.
 *
 * Their requests are late, get lost or fail at random; each of them, or all at once, can be killed.
 * What the store has outlives them. */
#ifndef DV_DAEMON_TEST_MODEL_WORLD_H
#define DV_DAEMON_TEST_MODEL_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cluster/cluster.h"
#include "resource/resource.h"
#include "support/api.h"

struct dv_control;
struct dv_sched;

#define N_SCHEDS 2u

struct world {
    struct api api;                    /* controllers and schedulers have its front */
    struct dv_control *control;        /* NULL: killed */
    struct dv_sched *scheds[N_SCHEDS]; /* the same */
    bool has_faults;                   /* of requests through the front; see set_faults */
};

struct world *world_new(uint64_t seed);
void world_free(struct world *world);
/* From now on, requests through the front are late, get lost or fail at random; or no more. */
void set_faults(struct world *world, bool has_faults);

void start_control(struct world *world);
void kill_control(struct world *world);
void start_sched(struct world *world, size_t i);
void kill_sched(struct world *world, size_t i);
/* The whole process. The controllers and the first scheduler are started again. */
void kill_all(struct world *world);

/* ---- what users, nodes and drivers do: the code of the answer, 0 is success ---- */

int make(struct world *world, enum dv_kind_id kind, const char *yaml);
/* A merge patch, of the object or of its status. */
int change(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource, dv_str name,
           const char *yaml);
/* In `grace_s` seconds; negative: as the object says. */
int destroy(struct world *world, enum dv_kind_id kind, dv_str name, int64_t grace_s);

/* ---- what is there: borrowed until the next turn ---- */

struct dv_object *look(const struct world *world, enum dv_kind_id kind, dv_str name);
size_t list(struct world *world, enum dv_kind_id kind, struct dv_object ***objects);

/* A text, until the end of the step. */
#define text(world, ...) api_text(&(world)->api, __VA_ARGS__)
#define NAME(...) dv_str_from_c(text(__VA_ARGS__))

/* ---- time ---- */

/* Until nothing happens before the clock is turned. */
void settle(struct world *world);
/* Turns the clock, and settles. */
void pass(struct world *world, uint64_t ms);
/* No request is under way. */
bool is_at_rest(const struct world *world);

#endif
