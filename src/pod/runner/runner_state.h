/* runner_state.h - what the files of the runner share. */
#ifndef DV_POD_RUNNER_STATE_H
#define DV_POD_RUNNER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "workload/life.h"
#include "workload/workload.h"

struct dv_arena;
struct dv_cri;
struct dv_cri_pod;
struct dv_object;
struct dv_runner_cgroups;
struct dv_runner_images;
struct dv_runner_job;
struct dv_runner_links;
struct dv_runner_rotation;
struct dv_runner_sweep;

/* A token of the pod's service account; a secret. */
struct dv_runner_token {
    struct dv_link link;
    dv_str audience;
    int64_t lifetime_s;
    dv_str text;
    int64_t due_s; /* wall clock: when it is asked for anew */
    char bytes[];
};

/* A pod that was given, or that the runtime has. */
struct dv_runner_pod {
    struct dv_runner *runner;
    dv_str uid;
    struct dv_object *object; /* the newest one; NULL: none was ever seen */
    struct dv_life *life;
    struct dv_list jobs; /* of dv_runner_job: what is under way */
    struct dv_timer timer;
    struct dv_task task;
    struct dv_list words;  /* of ended containers: see runner_words.h */
    struct dv_list tokens; /* of dv_runner_token */
    size_t n_reading;      /* of these, how many are being read */
    /* When the runtime was asked for a view that its life waits for; 0: not since the last job
     * has ended. */
    uint64_t relisted_ns;
    uint64_t view_after_ms; /* the view that its life waits for is of later than this */
    uint64_t seen_wall_ns;  /* when it was given first */
    char *eviction_reason;  /* NULL: it is not evicted */
    char *eviction_message;
    struct dv_runner_job *releasing; /* waits for the release; NULL: none does */
    enum dv_life_stage stage;
    bool is_given;  /* false: only the runtime knows it */
    bool is_told;   /* the runtime's view of it was told since it was asked for */
    bool is_set_up; /* its volumes are */
    bool has_cgroup;
    uint64_t burstable_shares; /* of the CPUs, in its cgroup; 0: it is not of that class */
    bool is_static;
    bool has_vanished;
    char text[];
};

struct dv_runner {
    struct dv_loop *loop;
    struct dv_runner_options options;
    struct dv_runner_listener listener;
    struct dv_arena *arena;         /* of the node's facts */
    struct dv_workload_node node;   /* what pods see of this machine */
    struct dv_arena *runtime_arena; /* of those facts that the runtime tells */
    struct dv_workload_service api; /* default/kubernetes; without ports: not known yet */
    struct dv_workload_port api_port;
    struct dv_cri *cri; /* NULL: there is no runtime */
    bool is_cri_closing;
    struct dv_map pods;                  /* dv_runner_pod, by uid */
    struct dv_list pulls;                /* of jobs that wait for their turn to pull an image */
    struct dv_list pulling;              /* of those that have it, one a registry */
    struct dv_runner_cgroups *cgroups;   /* those of pods */
    struct dv_runner_images *images;     /* removes those that nobody uses */
    struct dv_runner_links *links;       /* to the logs of containers */
    struct dv_timer find_timer;          /* looks for a runtime */
    struct dv_timer sweep_timer;         /* looks for what is left over */
    struct dv_runner_sweep *sweep;       /* the search that is under way; NULL: none */
    struct dv_timer rotate_timer;        /* looks for large logs */
    struct dv_runner_rotation *rotation; /* the rotation that is under way; NULL: none */
    struct dv_task runtime_task;         /* tells that the runtime has changed */
    struct dv_task close_task;
    uint64_t start_ms;
    bool is_settled;
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* runner.c */
void dv_runner_check_closed(struct dv_runner *runner);
void dv_runner_tell(struct dv_runner_pod *pod); /* the listener, of this pod */

/* runner_pod.c */
struct dv_runner_pod *dv_runner_pod_new(struct dv_runner *runner, dv_str uid);
void dv_runner_pod_free(struct dv_runner_pod *pod);
/* Asks the pod's life in a task what to do next, and does it. */
void dv_runner_pod_look(struct dv_runner_pod *pod);
void dv_runner_pod_stop(struct dv_runner_pod *pod); /* the runner closes */
bool dv_runner_pod_is_idle(const struct dv_runner_pod *pod);
void dv_runner_pod_note(struct dv_runner_pod *pod, const struct dv_life_note *note);

/* job_tokens.c */
void dv_runner_tokens_clear(struct dv_runner_pod *pod);

/* runner_runtime.c */
/* Whether this pod of the runtime was started here, whatever became of it since. A runtime may
 * serve more than one agent, and what another one runs is none of our business. */
bool dv_runner_is_ours(const struct dv_cri_pod *pod, dv_str root_dir);
/* Connects to the runtime at this socket. */
DV_CHECKED bool dv_runner_open_cri(struct dv_runner *runner, dv_str path, struct dv_err *err);
/* Looks for a runtime, the one of the last time first, and again now and then until there is one.
 */
void dv_runner_find_cri(struct dv_runner *runner);
/* Takes what the runtime has of a pod that nobody wants any more: its life ends it. */
void dv_runner_take_left_over(struct dv_runner *runner, dv_str uid);
void dv_runner_take_all_left_over(struct dv_runner *runner);
/* Asks the lives of all pods what to do next. */
void dv_runner_look_at_all(struct dv_runner *runner);

/* runner_sweep.c */
/* Looks for what is left over of pods that nobody has: directories and logs. */
void dv_runner_sweep_start(struct dv_runner *runner);
void dv_runner_sweep_stop(struct dv_runner *runner);

/* runner_rotate.c */
/* Sets logs aside that have grown large. */
void dv_runner_rotate_start(struct dv_runner *runner);
void dv_runner_rotate_stop(struct dv_runner *runner);

#endif
