/* pod_life_world.h - a node in virtual time: a runtime whose containers do as recorded, an API with
 * one pod, and a life that leads it. */
#ifndef DV_GOLDEN_POD_LIFE_WORLD_H
#define DV_GOLDEN_POD_LIFE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "pod_life_record.h"
#include "resource/resource.h"
#include "workload/life.h"

struct dv_arena;

/* What the life's clock shows at the creation. */
enum { LIFE_CLOCK_MS = 1000000 };

/* What was seen of our pod. */
struct seen_status {
    uint64_t ms;
    struct dv_api_pod_status status;
};
struct seen_call {
    uint64_t ms;
    const char *method;
    dv_str container;
    uint32_t attempt;
    bool has_timeout;
    int64_t timeout_s;
    bool is_hook;
};

struct world_container {
    struct dv_life_container view;
    bool is_there;
    bool is_known;    /* to the agent's view */
    uint64_t ends_ms; /* by itself; 0: never */
    unsigned n_probes;
    struct record_end end;
};

struct world_job {
    uint64_t due_ms;
    struct dv_life_action action;
    unsigned of_agent;
};

struct world {
    const struct record *record;
    struct dv_arena *arena;
    uint64_t now_ms; /* since the creation */
    struct dv_api_pod pod;
    bool has_pod; /* the API, or the folder of static pods */
    bool is_static;
    bool has_vanished;
    bool is_down;    /* the agent */
    bool has_config; /* what the pod refers to was made */
    unsigned n_agents;
    uint64_t agent_since_ms;
    uint64_t view_ms; /* when it was taken; 0: never */
    size_t i_action;
    size_t n_starts; /* calls of ours that begin something, to keep in step with the recording */
    unsigned n_static;
    dv_str uid;
    struct dv_life *life;
    uint64_t again_ms;
    uint64_t view_after_ms;
    DV_VEC(struct world_container) containers;
    DV_VEC(struct dv_life_sandbox) sandboxes;
    DV_VEC(struct dv_life_sandbox) seen_sandboxes;
    DV_VEC(struct dv_life_container) seen_containers;
    DV_VEC(struct world_job) jobs;
    DV_VEC(struct seen_status) statuses;
    DV_VEC(struct seen_call) calls;
    DV_VEC(struct record_event) events;
};

void world_init(struct world *world, const struct record *record, struct dv_arena *arena);
void world_fini(struct world *world);
/* Goes on to the next thing that happens. False: nothing will before `end_ms`. */
bool world_step(struct world *world, uint64_t end_ms);

#endif
