/* sim_objects.h - the objects of a simulation, as JSON texts. Pure. */
#ifndef DV_CLI_SIM_OBJECTS_H
#define DV_CLI_SIM_OBJECTS_H

#include <stddef.h>

#include "base/str.h"
#include "cli/explain/simulate.h"

struct dv_arena;

/* How many pods use a shared claim. */
#define DV_SIM_PODS_A_CLAIM 10u

dv_str dv_sim_class(void);
/* The template of the claims of pods of that shape. */
dv_str dv_sim_template(enum dv_sim_shape shape, struct dv_arena *arena);
dv_str dv_sim_node(size_t i, struct dv_arena *arena);
/* The number of slices of a node with so many devices. */
size_t dv_sim_slices_a_node(size_t n_devices);
/* The i-th slice of all nodes, each of which has n_devices. */
dv_str dv_sim_slice(size_t n_devices, size_t i, struct dv_arena *arena);
dv_str dv_sim_shared_claim(size_t i, struct dv_arena *arena);
dv_str dv_sim_pod(enum dv_sim_shape shape, size_t i, struct dv_arena *arena);

#endif
