/* test_sched_world.h - schedulers over the embedded API in memory, with requests that can fail. */
#ifndef DV_SCHED_TEST_SCHED_WORLD_H
#define DV_SCHED_TEST_SCHED_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "resource/resource.h"
#include "sched/sched.h"
#include "support/api.h"

struct world {
    struct api api; /* schedulers have its front */
    struct dv_sched_options options;
    struct dv_sched *sched; /* NULL: closed */
};

/* With the API, a class "gpu", and without a scheduler. */
int start_world(void **state);
int end_world(void **state);
/* Opens a scheduler and lets it come to rest. */
void open_sched(struct world *world);
void close_sched(struct world *world);
struct dv_sched *open_another(struct world *world);
void close_another(struct world *world, struct dv_sched *sched);

/* Objects as YAML. Each fails the test when the API refuses. */
struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *yaml);
/* A merge patch, of the object or of its status. */
void change(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml);
void change_status(struct world *world, enum dv_kind_id kind, const char *name, const char *yaml);
/* At once, also a pod; gone is fine. */
void destroy(struct world *world, enum dv_kind_id kind, const char *name);

/* NULL when absent; borrowed until the next turn. */
struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *name);
const struct dv_api_pod *look_pod(struct world *world, const char *name);
const struct dv_api_resource_claim *look_claim(struct world *world, const char *name);
size_t list(struct world *world, enum dv_kind_id kind, struct dv_object ***objects);

/* The node that the pod is bound to; "" when it is not. */
const char *node_of(struct world *world, const char *pod);
/* The text of its PodScheduled condition while that is False; "" when it is not. */
const char *said_of(struct world *world, const char *pod);
/* The devices that the claim has: "node-0/gpu-1 node-0/gpu-2"; "" when it is not allocated. */
const char *devices_of(struct world *world, const char *claim);
size_t n_events(struct world *world, const char *pod, const char *reason);
struct dv_sched_numbers numbers(struct world *world);
/* Nothing is decided, held or to be said any more. */
void assert_at_rest(struct world *world);

/* A text, until the end of the test. */
#define text(world, ...) api_text(&(world)->api, __VA_ARGS__)

void settle(struct world *world);
void pass(struct world *world, uint64_t ms);
void release_requests(struct world *world);
/* So many of those that are held; it goes on holding. */
void release_some(struct world *world, size_t n);

/* A node "NAME" with 4 cpus and room for 110 pods, and with so many devices of the driver
 * "gpu.example" in its pool "NAME"; none: without a slice. */
void make_node(struct world *world, const char *name, unsigned n_devices);
void make_slice(struct world *world, const char *node, unsigned n_devices);
/* A claim for devices of the class "gpu". */
void make_claim(struct world *world, const char *name, unsigned n_devices);
/* A pod that uses the claim; NULL: none. `more` is more of its spec, with a comma before it. */
void make_pod(struct world *world, const char *name, const char *claim, const char *more);
/* What the controller does: removes reservations of pods that are gone, deallocates. */
void clean_up(struct world *world);

#endif
