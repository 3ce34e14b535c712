/* device_alloc_world.h - a node for golden/device-alloc: the state under test with plugins, pods,
 * topology policy, time and a state file around it. */
#ifndef DV_GOLDEN_DEVICE_ALLOC_WORLD_H
#define DV_GOLDEN_DEVICE_ALLOC_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "topology/topology.h"

struct dv_arena;
struct dv_device_state;
struct dv_json;

struct world {
    struct dv_arena *arena; /* of the sequence */
    struct dv_numa_machine machine;
    struct dv_topology_config config;
    struct dv_device_state *state;
    uint64_t now_ns;
    unsigned n_sockets;       /* made so far */
    struct dv_map stubs;      /* struct stub by resource */
    struct dv_map pods;       /* JSON by uid */
    struct dv_map active;     /* the same, those that are */
    struct dv_map affinities; /* struct dv_numa_hint by pod and container */
    dv_str file;              /* the state file; p NULL: none */
    bool is_damaged;          /* the file is */
    struct dv_json *held;     /* as last told; NULL at first */
    struct dv_json *checkpoint;
    struct dv_json *calls; /* of this step */
};

void world_init(struct world *world, const struct dv_json *sequence, struct dv_arena *arena);
void world_fini(struct world *world);
/* What comes of an op, as the corpus describes it. */
struct dv_json *world_step(struct world *world, const struct dv_json *op);

/* -- device_alloc_pods.c: the ops on pods; they fill `result` */

void world_admit(struct world *world, const struct dv_json *op, struct dv_json *result);
void world_activate(struct world *world, const struct dv_json *op, struct dv_json *result);
void world_start(struct world *world, const struct dv_json *op, struct dv_json *result);
void world_remove(struct world *world, const struct dv_json *op, struct dv_json *result);
void world_status(struct world *world, const struct dv_json *op, struct dv_json *result);

/* -- Shared */

void world_save(struct world *world); /* writes the state file */
void set_member(struct dv_json *object, const char *key, struct dv_json *value,
                struct dv_arena *arena);
/* End the program when the op is not what the README says. */
dv_str text_of(const struct dv_json *object, const char *key);
int64_t number_of(const struct dv_json *node);
dv_str text_or_none(const struct dv_json *object, const char *key);

#endif
