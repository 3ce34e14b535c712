/* test_life_world.h - a node in virtual time for tests of lives: a runtime whose containers do as
 * the test says, and an API with one pod. What happens is written down as lines. */
#ifndef DV_WORKLOAD_TESTS_TEST_LIFE_WORLD_H
#define DV_WORKLOAD_TESTS_TEST_LIFE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "workload/life.h"
#include "workload/probe.h"

struct dv_arena;

/* What a container does; the last one of a name counts for all further instances. */
struct life_habit {
    const char *name;
    uint64_t runs_ms; /* then it ends by itself; 0: never */
    int32_t exit_code;
    const char *reason;
    const char *message;
    const char *create_error; /* NULL: it can be made */
    bool is_config_error;
    const char *start_error;
    uint64_t stop_ms; /* how long it takes to end when told; 0: at once */
    const char *hook_error;
    uint64_t hook_ms;
};

/* What may go wrong, asked for each action; the model's chance. */
enum life_chance {
    LIFE_GOES_WELL,
    LIFE_FAILS,
    LIFE_FAILS_AFTER, /* it was done, but the answer is an error */
    LIFE_LIES,        /* the answer is good, but nothing was done */
};

struct life_job {
    uint64_t due_ms;
    struct dv_life_action action;
    enum life_chance chance;
};

/* What the log directory has of a container. */
struct life_log {
    dv_str name;
    uint32_t n; /* of the last file */
};

struct life_world {
    struct dv_arena *arena;
    struct dv_life *life;
    struct dv_api_pod pod;
    bool has_pod;               /* the agent has seen the object */
    struct dv_life_facts facts; /* what a test may set beforehand: refusal, static, network */
    uint64_t now_ms;
    uint64_t agent_ms; /* when the agent started */
    const struct life_habit *habits;
    size_t n_habits;
    enum life_chance (*chance)(struct life_world *world, const struct dv_life_action *action);
    uint64_t (*takes_ms)(struct life_world *world, const struct dv_life_action *action);
    enum dv_probe_outcome (*probe)(struct life_world *world, const struct dv_life_action *action);
    void *ctx;
    const char *absent_image; /* part of its name: INSPECT_IMAGE does not find it */
    const char *pull_error;
    const char *set_up_error; /* the reason is FailedMount */
    const char *prepare_error;
    const char *release_error;
    const char *stop_error;
    const char *sandbox_error;
    DV_VEC(struct dv_life_container) containers; /* what the runtime really has */
    DV_VEC(struct dv_life_sandbox) sandboxes;
    DV_VEC(struct dv_life_container) seen;
    DV_VEC(struct dv_life_sandbox) seen_sandboxes;
    DV_VEC(struct life_job) jobs;
    DV_VEC(uint64_t) ends_ms; /* of each container; 0: by itself never */
    uint32_t n_made;
    DV_VEC(struct life_log) logs;
    uint64_t view_ms;
    uint64_t again_ms;
    uint64_t view_after_ms;
    enum dv_life_stage stage;
    bool is_released;
    size_t n_looks;
    struct dv_buf lines; /* what happened: "call ...", "event ..." */
};

/* Begins with a pod of the API; `pod` is copied shallowly. */
void life_world_init(struct life_world *world, const struct dv_api_pod *pod,
                     struct dv_arena *arena);
void life_world_fini(struct life_world *world);
/* Lets everything happen until that time. */
void life_world_run(struct life_world *world, uint64_t until_ms);
/* The agent dies, and another one begins; what was under way has been done or not. */
void life_world_restart(struct life_world *world);
/* DELETE; 0: by force. */
void life_world_delete(struct life_world *world, int64_t grace_s);
/* The newest instance of a container that the runtime has; NULL: none. */
struct dv_life_container *life_world_newest(struct life_world *world, const char *name);
/* A container ends by itself, now. */
void life_world_end(struct life_world *world, struct dv_life_container *container,
                    int32_t exit_code);
size_t life_world_n_running(const struct life_world *world);

const struct dv_api_container_status *life_world_status(const struct life_world *world,
                                                        const char *name);
const struct dv_api_pod_condition *life_world_condition(const struct life_world *world,
                                                        const char *type);
/* Whether a line that contains this was written. */
bool life_world_has(const struct life_world *world, const char *text);
size_t life_world_count(const struct life_world *world, const char *text);
/* Where in the lines the text is for the first time; beyond the end: nowhere. */
size_t life_world_at(const struct life_world *world, const char *text);

#endif
