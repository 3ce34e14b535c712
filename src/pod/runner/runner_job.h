/* runner_job.h - one action of a pod's life while it is under way.
 *
 * A job is made by dv_runner_job_start and ends in dv_runner_job_end, once, which tells the life.
 * Each kind of action has a function that begins it; what the files job_*.c do is in steps, each of
 * which begins the next in its callback. */
#ifndef DV_POD_RUNNER_JOB_H
#define DV_POD_RUNNER_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "pod/runner/pod_objects.h"
#include "voldir/voldir.h"
#include "workload/config.h"
#include "workload/life.h"
#include "workload/workload.h"

struct CriV1__ImageSpec;
struct ProtobufCMessage;
struct dv_api_pod;
struct dv_api_secret;
struct dv_arena;
struct dv_object;
struct dv_pull_auth;
struct dv_runner_pod;
struct dv_volume_plan;
struct dv_volume_token;

/* What makes a container, see job_create.c. */
struct dv_runner_making {
    struct dv_pod_start start;
    struct dv_work count; /* of its logs */
    const char *log_dir;  /* of the container */
    struct dv_config_input input;
    struct dv_workload_given given;
    struct dv_config_environment environment;
    struct dv_workload_mount *mounts;
    dv_str *sub_paths;
    size_t i_mount;
    struct dv_voldir_sub_path sub_path;
    struct dv_voldir_container files;
};

/* The pull of an image, see job_image.c. */
struct dv_runner_pull {
    dv_str registry;
    struct dv_work work; /* finds the credentials */
    const struct dv_api_secret **secrets;
    size_t n_secrets;
    bool has_turn;
    struct dv_pull_auth *auths; /* to be tried one after the other; none: without */
    size_t n_auths;
    size_t i_auth;
};

struct dv_runner_job {
    struct dv_runner_pod *pod;
    struct dv_link link; /* in the pod's jobs */
    struct dv_arena *arena;
    struct dv_object *object;        /* the pod as it was at the start; NULL: it is not known */
    struct dv_life_action action;    /* its texts are in the arena */
    struct dv_workload_pod workload; /* its handler after dv_runner_job_get_handler */
    void (*cancel)(struct dv_runner_job *job); /* cuts short what is under way; NULL: nothing is */
    bool is_cancelled;
    struct dv_task task;     /* for an end that is known at once */
    struct dv_timer timer;   /* of the action's limit */
    struct dv_link waiting;  /* in the runner's pulls, or in its pulling */
    struct dv_cri_call call; /* the one call that is under way */
    struct dv_pod_objects objects;
    struct dv_volume_token *tokens; /* those that its volumes want */
    size_t n_tokens;
    size_t i_token;
    void (*got_tokens)(struct dv_runner_job *job);
    void (*got_handler)(struct dv_runner_job *job, const struct dv_err *err);
    struct dv_request request; /* for a token or a class */
    struct dv_volume_plan *plan;
    struct dv_life_result result; /* what is known so far */
    struct dv_err err;            /* for `task` */
    union {
        struct dv_voldir_set_up set_up;
        struct dv_voldir_tear_down tear_down;
        struct dv_voldir_remove_logs remove_logs;
        struct dv_claim_operation claims;
        struct dv_pod_release release;
        struct dv_runner_making making;
        struct dv_runner_pull pull;
        void *probe;
    } part;
};

void dv_runner_job_start(struct dv_runner_pod *pod, const struct dv_life_action *action);
/* Cuts the job short: it still ends. */
void dv_runner_job_cancel(struct dv_runner_job *job);
/* Tells the life how the job ended, by job->result, and frees the job. */
void dv_runner_job_end(struct dv_runner_job *job);
/* Like dv_runner_job_end, for an action that has failed; `err` may be in the job. */
void dv_runner_job_fail(struct dv_runner_job *job, const struct dv_err *err);
/* Like dv_runner_job_fail or dv_runner_job_end, in a task: for steps that begin in the start. `err`
 * may be NULL. */
void dv_runner_job_end_later(struct dv_runner_job *job, const struct dv_err *err);

/* Starts a call; the answer is in the job's arena. */
void dv_runner_job_call(struct dv_runner_job *job, enum dv_cri_method method,
                        const struct ProtobufCMessage *request,
                        void (*done)(struct dv_cri_call *call, const void *answer,
                                     const struct dv_err *err));
/* The `done` of a call whose answer is empty and that is the job's last step. */
void dv_runner_job_on_empty(struct dv_cri_call *call, const void *answer, const struct dv_err *err);
struct dv_runner_job *dv_runner_job_of_call(struct dv_cri_call *call);
/* Returns the job's pod; NULL: its object was never seen. */
const struct dv_api_pod *dv_runner_job_pod(const struct dv_runner_job *job);
/* The message that names an image, with the pod's annotations. */
struct CriV1__ImageSpec *dv_runner_job_image(struct dv_runner_job *job, dv_str image);
/* Gets the objects that the pod refers to, then calls `done`. */
void dv_runner_job_get_objects(struct dv_runner_job *job,
                               void (*done)(struct dv_pod_objects *op, const struct dv_err *err));
/* Finds the handler of the pod's RuntimeClass, then calls `done`: perhaps before it returns, when
 * the pod names no class. err: NULL, or there is no such class. */
void dv_runner_job_get_handler(struct dv_runner_job *job,
                               void (*done)(struct dv_runner_job *job, const struct dv_err *err));
/* Gets the tokens that the pod's volumes want, then calls `done`: perhaps before it returns. */
void dv_runner_job_get_tokens(struct dv_runner_job *job, void (*done)(struct dv_runner_job *job));
/* Plans the pod's volumes, from the objects and tokens. */
void dv_runner_job_plan(struct dv_runner_job *job);

/* The functions that begin each kind of action: the table is in runner_job.c. */
void dv_runner_begin_set_up(struct dv_runner_job *job);
void dv_runner_begin_clean_up(struct dv_runner_job *job);
void dv_runner_begin_prepare(struct dv_runner_job *job);
void dv_runner_begin_release(struct dv_runner_job *job);
void dv_runner_begin_sandbox(struct dv_runner_job *job);
void dv_runner_begin_inspect(struct dv_runner_job *job);
void dv_runner_begin_pull(struct dv_runner_job *job);
void dv_runner_begin_create(struct dv_runner_job *job);
void dv_runner_begin_start(struct dv_runner_job *job);
void dv_runner_begin_hook(struct dv_runner_job *job);
void dv_runner_begin_probe(struct dv_runner_job *job);
void dv_runner_begin_stop(struct dv_runner_job *job);
void dv_runner_begin_remove(struct dv_runner_job *job);
void dv_runner_begin_stop_sandbox(struct dv_runner_job *job);
void dv_runner_begin_remove_sandbox(struct dv_runner_job *job);

#endif
