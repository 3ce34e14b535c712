/* affinity_world.h - an index with four nodes: a and b in zone 1, c in zone 2 with a taint, d
 * without a zone. */
#ifndef DV_AFFINITY_TESTS_WORLD_H
#define DV_AFFINITY_TESTS_WORLD_H

#include <stddef.h>

#include "affinity/affinity.h"
#include "base/vec.h"

struct dv_arena;
struct dv_object;

#define N_PLACED_MAX 512u
#define N_WORLD_NODES 8u

struct placed {
    struct dv_affinity_pod pod;
    struct dv_object *object;
    size_t node;
};

struct affinity_world {
    struct dv_arena *arena;
    struct dv_affinity *index;
    struct dv_affinity_node nodes[N_WORLD_NODES];
    struct placed placed[N_PLACED_MAX];
    size_t n_placed;
    DV_VEC(struct dv_object *) objects; /* that were made */
};

struct affinity_world *affinity_world_new(void);
void affinity_world_free(struct affinity_world *world);
/* A pod of the namespace "default" unless it says another; it lives as long as the world. */
struct dv_object *affinity_pod(struct affinity_world *world, const char *yaml);
struct dv_object *affinity_node(struct affinity_world *world, const char *yaml);
void affinity_namespace(struct affinity_world *world, const char *name, const char *team);
void affinity_place(struct affinity_world *world, char node, struct dv_object *pod);
void affinity_unplace(struct affinity_world *world, size_t i);
/* The pod's wants, all counted. */
struct dv_affinity_wants *affinity_wants(struct affinity_world *world, struct dv_object *pod);

#endif
