/* dra_job.h - a call of the agent about claims, from the request to the last claim's answer.
 *
 *   fetch the claims (prepare only) -> wait for its turn -> ask the driver, claim by claim
 *
 * Without DAVIT_DRA_PARALLEL a turn comes when the job before has ended; among instances of a
 * driver, when serialize.lock is ours. With it, when no job before is about one of its claims. */
#ifndef DV_LIB_DRA_JOB_H
#define DV_LIB_DRA_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

struct davit_dra;
struct dv_lib_rpc;

/* The longest uid of a claim; those of Kubernetes have 36 bytes. */
#define DV_LIB_UID_BYTES_MAX 256u

struct dv_lib_dra_jobs {
    struct davit_dra *dra;
    struct dv_list ready;  /* struct dv_lib_dra_job: waiting for their turn or running, in order */
    struct dv_task task;   /* looks whose turn it is */
    dv_str lock_path;      /* empty: no lock */
    int lock_fd;           /* -1: not ours */
    struct dv_timer timer; /* to try the lock again */
    uint64_t pause_ms;
};

/* One job. It lives as long as its RPC, in the arena of that. */
struct dv_lib_dra_job {
    struct davit_dra *dra;
    struct dv_lib_rpc *rpc;
    struct dv_link link; /* in `ready` */
    bool is_running;
    struct fetch **fetches;
    size_t n_fetching;
    bool has_shares; /* the answer may name them */
};

/* Keeps `lock_path`. */
void dv_lib_dra_jobs_init(struct dv_lib_dra_jobs *jobs, struct davit_dra *dra, dv_str lock_path);
/* To be called after the RPCs have been closed. */
void dv_lib_dra_jobs_close(struct dv_lib_dra_jobs *jobs);

/* Starts the job; the RPC's calls have the refs of their claims. */
void dv_lib_dra_job_start(struct davit_dra *dra, struct dv_lib_rpc *rpc, bool has_shares);
/* To be called when the RPC ends, for whatever reason. */
void dv_lib_dra_job_ended(struct dv_lib_dra_job *job);

#endif
